"""What changed between two bags of trees, by hand."""

import numpy as np
import pytest

from pipeline.m5 import Binned, Options, Tree, grow, make_forest, predict
from pipeline.m5.compare import (
    KEPT,
    LEAF,
    MOVED,
    NEW,
    changes,
    leaf_shift,
    leaves_of,
    status_of_tests,
)
from pipeline.m5.explain import routed


def stump(*tests: tuple[int, float], groups=(100, 60, 40)) -> Tree:
    """A chain of tests, each one's left child a leaf that predicts its number."""
    many = len(tests)
    nodes = 2 * many + 1
    feature, threshold, right = np.full(nodes, -1), np.zeros(nodes), np.zeros(nodes, int)
    for i, (f, t) in enumerate(tests):
        feature[2 * i], threshold[2 * i], right[2 * i] = f, t, 2 * i + 2
        right[2 * i + 1] = i
    right[-1] = many
    size = np.array([*groups, *[10] * nodes])[:nodes]
    return Tree.of(
        {
            "feature": feature,
            "threshold": threshold,
            "right": right,
            "weight": size.astype(float),
            "groups": size,
            "mean": np.zeros(nodes),
            "deviation": np.ones(nodes),
            "error": np.ones(nodes),
            "intercept": np.arange(many + 1.0),
            "term_start": np.zeros(many + 2, int),
            "term_feature": np.zeros(0, int),
            "coefficient": np.zeros(0),
            "term_mean": np.zeros(0),
            "term_deviation": np.zeros(0),
            "limits": np.array([-9.0, 9.0]),
            "num_features": np.array(4),
        }
    )


def test_tests_are_kept_moved_new_or_gone():
    old = [stump((0, 1.5), (1, 2.5)), stump((3, 0.5))]
    new = [stump((1, 2.5), (0, 7.5), (2, 0.5))]
    [status] = status_of_tests(new, old)
    assert status.tolist() == [KEPT, LEAF, MOVED, LEAF, NEW, LEAF, LEAF]
    assert changes(new, old) == (1, 1, 1, 2)
    assert changes(old, old) == (3, 0, 0, 0)
    assert changes(old, []) == (0, 0, 3, 0)
    assert changes([], old) == (0, 0, 0, 3)


def test_rows_come_to_the_leaf_that_predicts_for_them(noisy):
    X, y = noisy
    tree = grow(Binned.fit(X), y, None, None, Options(split="sdr", smoothing=0.0), 1)
    assert tree.num_leaves > 3
    leaf = leaves_of(tree, X)
    # The leaf's formula gives what the kernel predicts.
    slopes = np.zeros((tree.num_leaves, X.shape[1]))
    of_term = np.repeat(np.arange(tree.num_leaves), np.diff(tree.term_start))
    slopes[of_term, tree.term_feature] = tree.coefficient
    value = tree.intercept[leaf] + (slopes[leaf] * X).sum(1)
    expected = predict(make_forest([[tree]]), X)[:, 0]
    assert np.clip(value, *tree.limits) == pytest.approx(expected)


def test_shift_of_leaves_weighs_games():
    tree = stump((0, 1.5))
    X = np.array([[0, 0, 0, 0], [1, 0, 0, 0], [2, 0, 0, 0]], np.float32)
    by_leaf, overall = leaf_shift(tree, X, np.array([0.1, 0.3, -0.5]))
    assert by_leaf == pytest.approx([0.2, -0.5])
    assert overall == pytest.approx((60 * 0.2 + 40 * 0.5) / 100)
    # A leaf that no row comes to says nothing.
    by_leaf, overall = leaf_shift(tree, X[:2], np.array([0.1, 0.3]))
    assert by_leaf[0] == pytest.approx(0.2) and np.isnan(by_leaf[1])
    assert overall == pytest.approx(0.2)
    assert np.isnan(leaf_shift(tree, X[:0], np.zeros(0))[1])


def test_routed_counts_rows_once_per_feature():
    # 100 rows meet feature 0 at the root, 40 of them meet feature 1 and 10 feature 0 once more.
    chain = stump((0, 1.5), (1, 2.5), (0, 3.5), groups=(100, 60, 40, 30, 10))
    assert routed([chain]).tolist() == [1.0, 0.4, 0.0, 0.0]
    assert routed([chain, stump((2, 0.5))]) == pytest.approx([0.5, 0.2, 0.5, 0.0])
