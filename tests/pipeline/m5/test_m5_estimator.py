"""The scikit-learn face, saved trees, explanations."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from pipeline.m5 import load_trees, save_trees
from pipeline.m5.estimator import M5Regressor
from pipeline.m5.explain import (
    difference,
    explain,
    explanation_to_text,
    importance,
    tree_to_text,
)
from pipeline.m5.options import Options
from pipeline.m5.tree import Tree

NAMES = ["stage", "wood", "ore", "luck"]


# The one check that scikit-learn skips itself is check_array_api_input: it asks for SCIPY_ARRAY_API
# in the environment, and the estimator takes NumPy arrays only.
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([M5Regressor(), M5Regressor(split="sdr")])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_parameters_are_the_options():
    given = M5Regressor().get_params()
    threads = given.pop("threads")
    assert Options(**given) == Options() and threads == 1


@pytest.fixture
def model(pieces):
    X, y = pieces
    return M5Regressor().fit(pd.DataFrame(X, columns=NAMES), y)


def test_a_saved_model_predicts_the_same(tmp_path, pieces):
    X, y = pieces
    table = pd.DataFrame(X, columns=NAMES)
    model = M5Regressor(seed=np.int64(5), split="sdr").fit(table, y, groups=np.arange(len(y)) // 10)
    model.save(tmp_path / "model")
    again = M5Regressor.load(tmp_path / "model")
    assert (again.predict(table) == model.predict(table)).all()
    assert again.get_params() == model.get_params()
    assert list(again.feature_names_in_) == NAMES
    assert len(again.trees_) == 4
    with pytest.raises(ValueError, match="feature names"):
        again.predict(table[NAMES[::-1]])


def test_saved_trees_hold_no_pickle_and_are_checked(tmp_path, model):
    save_trees(tmp_path, {"a": model.trees_, "b/../c": model.trees_ * 2}, NAMES, Options())
    bags, names, options = load_trees(tmp_path)
    assert [len(bag) for bag in bags.values()] == [1, 2] and list(bags) == ["a", "b/../c"]
    assert names == NAMES and options == Options()
    with np.load(tmp_path / "trees.npz", allow_pickle=False) as arrays:
        assert all(arrays[name].dtype.kind in "if" for name in arrays.files)
        assert not any(".." in name for name in arrays.files)
    about = json.loads((tmp_path / "trees.json").read_text())
    (tmp_path / "trees.json").write_text(json.dumps({**about, "format": 99}))
    with pytest.raises(ValueError, match="format 99"):
        load_trees(tmp_path)
    for name, bad in (("right", np.array([7, 0, 1])), ("term_feature", np.array([99, 0, 0]))):
        with pytest.raises(ValueError, match="do not fit together"):
            Tree.of({**model.trees_[0].arrays(), name: bad})
    with pytest.raises(ValueError, match="lacks feature"):
        Tree.of({})


@pytest.mark.parametrize("file", ["trees.json", "trees.npz"])
def test_damaged_files_are_refused_by_name(tmp_path, model, file):
    model.save(tmp_path)
    whole = (tmp_path / file).read_bytes()
    for size in (0, len(whole) // 2, len(whole) - 3):
        (tmp_path / file).write_bytes(whole[:size])
        with pytest.raises(ValueError, match=rf"{file} is damaged .*; save the trees again"):
            M5Regressor.load(tmp_path)
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 0xFF
    (tmp_path / file).write_bytes(bytes(flipped))
    with pytest.raises(ValueError, match=rf"{file} is damaged"):
        M5Regressor.load(tmp_path)


def test_values_that_are_not_finite_are_refused_by_column_name(model, pieces):
    table = pd.DataFrame(pieces[0], columns=NAMES)
    table.loc[3, "ore"] = np.nan
    for action in (lambda: model.predict(table), lambda: M5Regressor().fit(table, pieces[1])):
        with pytest.raises(ValueError, match="row 3 of column 'ore' is nan"):
            action()


@pytest.mark.parametrize("threads", [0, 1.5, True, "two"])
def test_threads_must_be_a_count(pieces, threads):
    with pytest.raises(ValueError, match="threads must be a whole number"):
        M5Regressor(threads=threads).fit(*pieces)


def test_text_of_a_tree(pieces):
    X, y = pieces
    tree = M5Regressor(ridge=0.0, smoothing=0.0).fit(X, y).trees_[0]
    left, right = X[:, 0] <= 9, X[:, 0] > 9
    assert tree_to_text(tree, NAMES) == (
        f"2000 rows, mean {y.mean():.4g}, error {tree.error[0]:.4g}\n"
        f"    stage <= 9.5: {left.sum()} rows, mean {y[left].mean():.4g}, "
        f"error {tree.error[1]:.4g}; y = 1 + 2 wood\n"
        f"    stage > 9.5: {right.sum()} rows, mean {y[right].mean():.4g}, "
        f"error {tree.error[2]:.4g}; y = 3 - 1 ore"
    )


def test_parts_of_an_explanation_add_up(pieces):
    X, y = pieces
    noise = np.random.default_rng(0).normal(0, 3, len(y))
    model = M5Regressor(split="sdr").fit(X, y + noise, groups=np.arange(len(y)) // 10)
    predicted = model.predict(X)
    parts = [explain(model.trees_, x) for x in X[:50]]
    for part, value in zip(parts, predicted, strict=False):
        assert part.value == pytest.approx(value)
        assert part.base + part.contributions.sum() + part.clipping == pytest.approx(value)
        assert len(part.paths) == 4
        for step in (step for path in part.paths for step in path):
            assert step.left == (step.value <= step.threshold) and step.margin >= 0
    apart = difference(parts[0], parts[1])
    assert apart.value == pytest.approx(predicted[0] - predicted[1])
    assert apart.base + apart.contributions.sum() + apart.clipping == pytest.approx(apart.value)


def test_explanation_as_text(pieces):
    X, y = pieces
    model = M5Regressor(ridge=0.0, smoothing=0.0).fit(X, y)
    x = np.array([3, 10, 0, 0], np.float32)
    mean = X[X[:, 0] <= 9, 1].mean()
    assert explanation_to_text(explain(model.trees_, x), NAMES).splitlines() == [
        "+21",
        f"  {2 * mean + 1:+.4g} base",
        f"  {2 * (10 - mean):+.4g} wood",
        "  because stage = 3 <= 9.5 by 6.5",
    ]
    with pytest.raises(ValueError, match="a row of 4 features"):
        explain(model.trees_, x[:2])


def test_importance_sees_tests_and_slopes(pieces):
    X, y = pieces
    found = importance(M5Regressor(ridge=0.0, smoothing=0.0).fit(X, y).trees_)
    assert np.flatnonzero(found.splits).tolist() == [0]
    assert np.flatnonzero(found.slopes).tolist() == [1, 2]
    # Half of the rows have slope 2 on a feature of variance (20^2 - 1) / 12.
    assert found.slopes[1] == pytest.approx(0.5 * 4 * 399 / 12 / y.var(), rel=0.06)
    assert found.total[3] == 0
