"""Whole trees: right values, pruning, smoothing, invariances, degenerate data."""

from dataclasses import fields

import numpy as np
import pytest

from pipeline.m5 import Binned, Options, Tree, grow, grow_bag, make_forest, predict, predict_row

PLAIN = {"ridge": 0.0, "smoothing": 0.0}
BOTH = pytest.mark.parametrize("split", ["score", "sdr"])


def fit(X, y, weight=None, groups=None, threads=1, **options):
    return grow(
        Binned.fit(np.asarray(X, np.float32)), y, weight, groups, Options(**options), threads
    )


def values(tree, X):
    return predict(make_forest([[tree]]), np.asarray(X, np.float32))[:, 0]


def same(one: Tree, other: Tree) -> bool:
    """Equal to the last bit."""
    return all(np.array_equal(getattr(one, f.name), getattr(other, f.name)) for f in fields(Tree))


def test_linear_data_is_one_leaf_with_its_formula():
    r = np.random.default_rng(0)
    X = r.integers(0, 50, (500, 3)).astype(float)
    y = 3 + 2 * X[:, 0] - 0.5 * X[:, 2]
    tree = fit(X, y, **PLAIN)
    assert tree.num_leaves == 1
    assert tree.term_feature.tolist() == [0, 2]
    assert tree.coefficient == pytest.approx([2, -0.5])
    assert tree.intercept == pytest.approx([3])
    assert tree.error == pytest.approx([0], abs=1e-4)


def test_pieces_are_found_exactly(pieces):
    X, y = pieces
    tree = fit(X, y, **PLAIN)
    assert (tree.feature[0], tree.threshold[0], tree.num_leaves) == (0, 9.5, 2)
    assert values(tree, X) == pytest.approx(y, abs=1e-6)
    assert tree.term_feature.tolist() == [1, 2]
    assert tree.coefficient == pytest.approx([2, -1])


def test_smallest_tree_by_hand():
    # Six rows, two constants: the only useful cut is between 2 and 7, and means are all there is.
    X = [[0], [1], [2], [7], [8], [9]]
    y = np.array([1.0, 1, 1, 5, 5, 5])
    options = {"split": "sdr", "min_leaf": 3, "features": "subtree", "split_price": 0, **PLAIN}
    tree = fit(X, y, **options)
    assert tree.feature.tolist() == [0, -1, -1]
    assert tree.threshold[0] == 4.5
    assert tree.mean == pytest.approx([3, 1, 5])
    assert tree.intercept == pytest.approx([1, 5])
    assert tree.weight.tolist() == [6, 3, 3]
    assert tree.limits.tolist() == [1, 5]
    # Quinlan's smoothing, k = 15, towards the root's own line, by hand: least squares of y on x
    # has slope 42 / 77.5 and passes (4.5, 3); n is 3 at either leaf.
    smooth = fit(X, y, **{**options, "smoothing": 15.0})
    root = 3 + 42 / 77.5 * (np.array([1.0, 8.0]) - 4.5)
    expected = (3 * np.array([1, 5]) + 15 * root) / 18
    assert values(smooth, [[1], [8]]) == pytest.approx(expected, abs=1e-6)


def test_pruning_by_estimate_takes_back_splits_on_noise():
    r = np.random.default_rng(1)
    X = r.integers(0, 20, (1000, 5))
    y = 2.0 * X[:, 0] + r.normal(size=1000)
    grown = fit(X, y, split="sdr", prune="none", min_leaf=10, min_spread=0.0)
    pruned = fit(X, y, split="sdr", min_leaf=10, min_spread=0.0)
    assert grown.num_leaves > 20 and pruned.num_leaves == 1


def test_pruning_by_rows_held_out(noisy):
    X, y = noisy
    # A feature that means nothing: what a few leaves seem to gain is luck of the held-out rows.
    assert fit(X[:, [5]], y, split="sdr", prune="none", min_leaf=4).num_leaves > 20
    assert fit(X[:, [5]], y, split="sdr", prune="holdout", min_leaf=4).num_leaves < 7
    tree = fit(X, y, split="sdr", prune="holdout", min_leaf=4)
    assert tree.num_leaves >= 4
    assert tree.weight[0] == 2250


def test_predictions_stay_in_the_range_of_the_targets():
    X = np.arange(100.0)[:, None]
    tree = fit(X, X[:, 0], **PLAIN)
    assert values(tree, [[-50], [50], [1000]]) == pytest.approx([0, 50, 99])


def test_score_fits_pieces_to_the_noise(noisy):
    X, y = noisy
    error = values(fit(X[:2000], y[:2000]), X[2000:]) - y[2000:]
    assert np.sqrt(np.mean(error**2)) < 1.1 * 2.0


# --- invariances


@BOTH
def test_row_order(split, noisy):
    X, y = noisy
    order = np.random.default_rng(2).permutation(len(y))
    one, other = fit(X, y, split=split), fit(X[order], y[order], split=split)
    assert (one.feature == other.feature).all() and (one.threshold == other.threshold).all()
    assert values(one, X) == pytest.approx(values(other, X), rel=1e-9)


@BOTH
def test_column_order(split, noisy):
    X, y = noisy
    order = np.array([4, 2, 0, 5, 1, 3])
    one, other = fit(X, y, split=split), fit(X[:, order], y, split=split)
    inside = one.feature >= 0
    assert (one.feature[inside] == order[other.feature[inside]]).all()
    assert values(one, X) == pytest.approx(values(other, X[:, order]), rel=1e-9)


@BOTH
def test_affine_target(split, noisy):
    X, y = noisy
    one, other = fit(X, y, split=split), fit(X, 1000 - 7 * y, split=split)
    assert (one.feature == other.feature).all() and (one.threshold == other.threshold).all()
    assert 1000 - 7 * values(one, X) == pytest.approx(values(other, X), rel=1e-9)


@BOTH
def test_scaled_columns(split, noisy):
    X, y = noisy
    scales = np.array([1, 1024, 2**-20, 1, 2.0**60, 2.0**-60], np.float32)  # exact in float32
    one, other = fit(X, y, split=split), fit(X * scales, y, split=split)
    assert (one.feature == other.feature).all()
    assert values(one, X) == pytest.approx(values(other, X * scales), rel=1e-9)


@BOTH
@pytest.mark.parametrize("grouped", [False, True])
def test_a_row_of_weight_two_is_two_rows(split, grouped, noisy):
    X, y = noisy
    X = np.floor(X[:, [0, 1, 5]])  # exact codes: quantiles would see more rows
    y = np.abs(X[:, 2] - 15) * (X[:, 1] - 0.5) + np.random.default_rng(3).normal(size=3000)
    weight = np.random.default_rng(4).integers(0, 3, 3000)
    groups = np.arange(3000) // 10 if grouped else None
    twice = np.repeat(np.arange(3000), weight)
    options = {"split": split, "rows_per_group": None}
    one = fit(X, y, weight, groups, **options)
    other = fit(X[twice], y[twice], None, None if groups is None else groups[twice], **options)
    assert (one.feature == other.feature).all()
    assert one.num_leaves > 2
    assert one.weight == pytest.approx(other.weight)
    assert values(one, X) == pytest.approx(values(other, X), rel=1e-9)


@BOTH
def test_any_number_of_threads_gives_the_same_bits(split):
    r = np.random.default_rng(5)
    X = r.integers(0, 30, (80_000, 12)).astype(np.float32)
    y = X[:, 0] * (X[:, 1] > 9) + 3 * np.maximum(X[:, 2], X[:, 3]) + r.normal(size=80_000)
    one, two, five = (fit(X, y, split=split, threads=threads) for threads in (1, 2, 5))
    assert one.num_leaves > 8
    assert same(one, two) and same(one, five)
    groups = np.arange(80_000) // 40
    binned = Binned.fit(X)
    bags = [grow_bag(binned, y, None, groups, Options(split=split), threads) for threads in (1, 3)]
    assert len(bags[0]) == 4
    assert all(same(a, b) for a, b in zip(*bags, strict=True))
    forest = make_forest([[one]])
    assert (predict(forest, X, 1) == predict(forest, X, 3)).all()


def test_seed_decides_the_bag(pieces):
    X, y = pieces
    binned, groups = Binned.fit(X), np.arange(len(y)) // 20
    noise = np.random.default_rng(6).normal(size=len(y))
    bags = [grow_bag(binned, y + noise, None, groups, Options(seed=seed)) for seed in (1, 1, 9)]
    assert all(same(a, b) for a, b in zip(bags[0], bags[1], strict=True))
    assert not any(same(a, b) for a, b in zip(bags[0], bags[2], strict=True))
    assert not same(bags[0][0], bags[0][1])


def test_rows_in_order_of_a_binning_that_others_use(noisy):
    X, y = noisy
    binned = Binned.fit(X)
    chosen = np.arange(0, 3000, 2)
    whole = grow(binned, y, weight=(np.arange(3000) % 2 == 0) + 0.0)
    part = grow(binned.keep(chosen), y[chosen])
    assert same(whole, part)


# --- degenerate data


@BOTH
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("rows", [1, 2, 3, 7])
def test_a_handful_of_rows(split, grouped, rows):
    X = np.arange(rows * 2.0).reshape(rows, 2)
    y = np.arange(rows) + 5.0
    groups = np.zeros(rows) if grouped else None
    tree = fit(X, y, groups=groups, split=split, rows_per_group=None)
    out = values(tree, X)
    assert np.isfinite(out).all() and (out >= 5).all() and (out <= 4 + rows).all()
    assert tree.num_leaves == 1
    assert out.mean() == pytest.approx(y.mean())


@BOTH
@pytest.mark.parametrize("constant", [0.0, 0.1, -3e30, 1e-30])
def test_equal_targets(split, constant, noisy):
    X, _ = noisy
    y = np.full(len(X), constant)
    tree = fit(X, y, groups=np.arange(len(X)) // 9, split=split)
    assert (values(tree, X) == constant).all()
    assert tree.num_leaves == 1 and len(tree.coefficient) == 0


@BOTH
def test_one_group_tells_nothing_but_its_mean(split, pieces):
    X, y = pieces
    tree = fit(X, y, groups=np.full(len(y), "only"), split=split, rows_per_group=None)
    assert tree.num_leaves == 1 and len(tree.coefficient) == 0
    assert tree.intercept == pytest.approx([y.mean()])


@BOTH
def test_constant_collinear_and_wildly_scaled_columns(split, pieces):
    X, y = pieces
    far = np.column_stack(
        [
            np.full(len(y), 7.0),
            X[:, 0] * 1e30,
            X[:, 1] * 1e-30,
            X[:, 2] + 1e4,
            X[:, 1] * 2e-30,
            X[:, 0] * 1e30,
            X[:, 1] + X[:, 2],
        ]
    )
    tree = fit(far, y, split=split, min_leaf=20, **PLAIN)
    assert 0 not in tree.feature and 0 not in tree.term_feature
    assert values(tree, far) == pytest.approx(y, abs=1e-4)


@BOTH
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("scale", [1e-20, 1e-3, 1e20])
def test_weights_of_any_scale_give_finite_values(split, grouped, scale, pieces):
    X, y = pieces
    r = np.random.default_rng(0)
    groups = np.arange(len(y)) // 10 if grouped else None
    for weight in (r.uniform(1, 10, len(y)), 10.0 ** r.uniform(-200, 0, len(y))):
        weight /= weight.max()
        found = values(fit(X, y, scale * weight, groups, split=split), X)
        assert np.isfinite(found).all()
        assert found.min() >= y.min() and found.max() <= y.max()


def test_a_row_of_next_to_no_weight_is_no_row(pieces):
    X, y = pieces
    weight = np.where(np.arange(len(y)) % 3 == 0, 1e-13, 1.0)
    none = np.where(weight < 1.0, 0.0, 1.0)
    assert same(fit(X, y, weight), fit(X, y, none))


@BOTH
def test_numbers_of_numpy_are_options_too(split, pieces):
    X, y = pieces
    own = fit(X, y, split=split, seed=2**62 + 1, min_leaf=20)
    assert same(own, fit(X, y, split=split, seed=np.int64(2**62 + 1), min_leaf=np.float32(20)))


@BOTH
def test_one_column(split):
    X = np.arange(1000.0)[:, None]
    tree = fit(X, np.abs(X[:, 0] - 400), split=split, **PLAIN)
    assert values(tree, X) == pytest.approx(np.abs(X[:, 0] - 400), abs=12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": np.zeros(4)}, "y must have one number per row, 5"),
        ({"y": np.array([0, 1, np.nan, 3, 4])}, "y of row 2 is nan"),
        ({"weight": -np.ones(5)}, "weights must not be negative"),
        ({"weight": np.zeros(5)}, "weight of every row is zero"),
        ({"weight": np.ones(3)}, "weight must have one number per row"),
        ({"weight": np.full(5, 1e-300)}, "largest weight is 1e-300"),
        ({"weight": np.full(5, 1e300)}, "largest weight is 1e\\+300"),
        ({"groups": np.array([1, "a", None, 2, 3], object)}, "all numbers or all names"),
        ({"groups": np.zeros(6)}, "groups must have one entry per row, 5"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(change, message):
    arguments = {"y": np.arange(5.0), "weight": None, "groups": None, **change}
    with pytest.raises(ValueError, match=message):
        fit(np.arange(5)[:, None], arguments["y"], arguments["weight"], arguments["groups"])


@pytest.mark.parametrize(
    "wrong",
    [
        {"split": "gini"},
        {"features": "some"},
        {"prune": "yes"},
        {"ridge": -1.0},
        {"min_groups": 0},
        {"trees": 0},
        {"rows_per_group": 0},
        {"holdout": 1.0},
        {"max_bins": 300},
        {"seed": -1},
        {"smoothing": float("nan")},
        {"smoothing": float("inf")},
        {"ridge": "much"},
        {"seed": None},
        {"trees": 1.5},
        {"min_groups": "a"},
        {"holdout": "a"},
    ],
)
def test_options_out_of_range_are_refused_by_name(wrong):
    with pytest.raises(ValueError, match=f"^{next(iter(wrong))} must"):
        Options(**wrong)


# --- prediction


def test_bags_are_means_of_trees_and_rows_agree_with_batches(noisy):
    X, y = noisy
    trees = [fit(X, y * k, split=split) for k in (1, 2) for split in ("score", "sdr")]
    forest = make_forest([trees[:1], trees[1:]])
    out = predict(forest, X)
    each = [values(tree, X) for tree in trees]
    assert (out[:, 0] == each[0]).all()
    assert out[:, 1] == pytest.approx(np.mean(each[1:], axis=0))
    rows = [[predict_row(forest, x, bag) for bag in range(2)] for x in X[:300]]
    assert (np.array(rows) == out[:300]).all()


def test_forests_check_what_they_are_made_of(pieces):
    X, y = pieces
    tree, other = fit(X, y), fit(X[:, :2], y)
    with pytest.raises(ValueError, match="same number of features"):
        make_forest([[tree], [other]])
    with pytest.raises(ValueError, match="at least one tree"):
        make_forest([[tree], []])
    with pytest.raises(ValueError, match="rows of 4 features, got X of shape"):
        predict(make_forest([[tree]]), X[:, :3])
