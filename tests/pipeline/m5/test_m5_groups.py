"""Rows of one game: correlations, prices, draws, and that trees stop learning games by heart."""

import numpy as np
import pytest

from pipeline.m5 import Binned, Options, grow, grow_bag, make_forest, predict
from pipeline.m5.binning import frozen
from pipeline.m5.groups import correlation, draw_rows, enough_groups, parameter_prices
from pipeline.m5.linear import Table


def games_of(count, turns, seed):
    """Few real features and many board constants; the outcome is the game's: X, outcome, value."""
    r = np.random.default_rng(seed)
    lead = np.cumsum(r.normal(size=(count, turns)), 1)
    win = lead[:, -1] + r.normal(size=count) > 0
    X = np.empty((count, turns, 22))
    X[:, :, 0] = np.round(lead)
    X[:, :, 1] = r.integers(0, 10, (count, turns))
    X[:, :, 2:] = r.integers(0, 21, (count, 1, 20))
    groups = np.repeat(np.arange(count), turns)
    return X.reshape(-1, 22).astype(np.float32), np.repeat(win, turns).astype(float), groups


def correlation_of(x, groups):
    sizes = np.bincount(groups).astype(float)
    sums = np.bincount(groups, x)
    return correlation((sums**2 / sizes).sum(), x.sum(), (x**2).sum(), sizes)


def test_correlation_within_groups():
    # By hand: groups (1, 3), (5, 7), (9, 11) have means 2, 6, 10 about 6. The mean square between
    # is 2 (16 + 0 + 16) / 2 = 32, within it is 6 / 3 = 2; two rows a group: (32 - 2) / (32 + 2).
    groups = np.array([0, 0, 1, 1, 2, 2])
    assert correlation_of(np.array([1.0, 3, 5, 7, 9, 11]), groups) == pytest.approx(30 / 34)
    assert correlation_of(np.array([1.0, 3, 1, 3, 1, 3]), groups) == 0.0
    assert correlation_of(np.array([4.0, 4, 5, 5, 7, 7]), groups) == pytest.approx(1.0)
    assert correlation_of(np.array([1.0, 2, 3]), np.zeros(3, int)) == 1.0
    assert correlation_of(np.array([1.0, 2, 3]), np.arange(3)) == 0.0


def test_prices_go_by_how_alike_features_and_errors_are():
    X, y, groups = games_of(300, 20, 0)
    binned = Binned.fit(X)
    target = (y - y.mean()) / y.std()
    arrays = binned.binning.code_start, binned.binning.values, frozen(target, float)
    table = Table(binned.codes, *arrays, frozen(np.ones(len(y)), float))
    rows = np.arange(len(y), dtype=np.int32)
    prices = parameter_prices(
        table, rows, frozen(groups, np.int32), frozen(np.ones(22), float), 1.0, 2.0, 0
    )
    # 20 rows a game: board constants cost nearly 20 times the error's correlation, fresh noise 1.
    assert prices[2:].min() > 8 and prices[2:].max() <= 20
    assert 1 < prices[0] < prices[2:].min()
    assert prices[1] == pytest.approx(1.0, abs=0.3)
    # Independent errors make every feature as cheap as its parameters.
    noise = np.random.default_rng(1).normal(size=len(y))
    free = parameter_prices(
        table._replace(target=frozen(noise, float)),
        rows,
        frozen(groups, np.int32),
        frozen(np.ones(22), float),
        1.0,
        2.0,
        0,
    )
    assert free == pytest.approx(np.ones(22), abs=0.5)


def test_draws_are_even_and_within_the_cap():
    group = np.repeat(np.arange(40), np.arange(1, 41)).astype(np.int32)
    rows = np.arange(len(group), dtype=np.int32)
    sizes = np.bincount(group)
    times = np.zeros(len(group))
    for seed in range(400):
        drawn = draw_rows(group, rows, sizes, 4, np.uint64(seed))
        assert (np.bincount(group[drawn], minlength=40) == np.minimum(sizes, 4)).all()
        assert (np.diff(drawn) > 0).all()
        times[drawn] += 1
    # Each row of the group of 40 comes up in a tenth of the draws: 40 +- 6 of 400.
    assert np.abs(times[group == 39] - 40).max() < 25


def test_enough_groups():
    group = np.array([3, 3, 1, 3, 2, 1], np.int32)
    rows = np.arange(6, dtype=np.int32)
    assert enough_groups(group, rows, 3) and not enough_groups(group, rows, 4)
    assert enough_groups(group, rows[:3], 2) and not enough_groups(group, rows[:2], 2)


@pytest.mark.parametrize("split", ["score", "sdr"])
def test_leaves_have_enough_groups(split):
    X, y, groups = games_of(200, 20, 2)
    options = Options(
        split=split, min_groups=30, prune="none", min_leaf=2, rows_per_group=None, group_price=False
    )
    tree = grow(Binned.fit(X), y, groups=groups, options=options)
    assert tree.num_leaves > 1
    assert tree.groups[0] == 200 and tree.groups[tree.feature < 0].min() >= 30


def error_on_new_games(**options):
    X, y, groups = games_of(400, 20, 3)
    Xt, yt, _ = games_of(400, 20, 4)
    bag = grow_bag(Binned.fit(X), y, None, groups, Options(**options))
    return np.sqrt(np.mean((predict(make_forest([bag]), Xt)[:, 0] - yt) ** 2)), bag


@pytest.mark.parametrize("split", ["score", "sdr"])
def test_defaults_do_not_learn_games_by_heart(split):
    careless = {"rows_per_group": None, "group_price": False, "trees": 1}
    by_heart, big = error_on_new_games(split=split, **careless)
    careful, bag = error_on_new_games(split=split)
    priced, small = error_on_new_games(split=split, **{**careless, "group_price": True})
    assert careful < 0.41 and priced < 0.41  # a constant: 0.5
    assert by_heart > 0.44
    assert small[0].num_leaves < big[0].num_leaves / 4
    assert max(tree.num_leaves for tree in bag) < big[0].num_leaves / 4


def test_holding_out_and_bootstrap_take_whole_groups():
    X, y, groups = games_of(100, 20, 5)
    binned = Binned.fit(X)
    options = {"rows_per_group": None, "trees": 1}
    held = grow(binned, y, groups=groups, options=Options(prune="holdout", **options))
    assert held.groups[0] == 75 and held.weight[0] == 75 * 20
    boot = grow(binned, y, groups=groups, options=Options(bootstrap=True, **options))
    # A bootstrap of 100 sees 100 (1 - 1/e) = 63 of them, each with all its rows.
    assert 50 < boot.groups[0] < 76 and boot.weight[0] == 100 * 20


def test_bootstrap_draws_from_what_has_weight():
    X = np.arange(40.0, dtype=np.float32)[:, None]
    weight = np.zeros(40)
    weight[[3, 8]] = 1.0
    for seed in range(10):
        options = Options(bootstrap=True, seed=seed)
        assert grow(Binned.fit(X), X[:, 0], weight, options=options).weight[0] == pytest.approx(2)


@pytest.mark.parametrize("split", ["score", "sdr"])
def test_rows_held_out_may_be_far_from_the_others(split):
    y = np.zeros(40)
    y[::4] = 1e200
    tree = grow(
        Binned.fit(np.arange(40, dtype=np.float32)[:, None]),
        y,
        groups=np.arange(40) % 4,
        options=Options(split=split, prune="holdout", min_groups=1, rows_per_group=None),
    )
    assert np.isfinite(tree.intercept).all()


def test_names_of_groups_do_not_matter():
    X, y, groups = games_of(60, 10, 6)
    binned = Binned.fit(X)
    one = grow(binned, y, groups=groups)
    other = grow(binned, y, groups=[f"game {g:03d}" for g in groups])
    assert all((array == other.arrays()[name]).all() for name, array in one.arrays().items())
