"""Both split rules, against brute force and where the answer is known."""

import numpy as np
import pytest

from pipeline.m5.binning import Binned, frozen
from pipeline.m5.linear import Table
from pipeline.m5.score import _noise_gain, random, score_cuts
from pipeline.m5.sdr import histogram, pack, spread_left

SEED = np.uint64(0)


def table_of(X, y, weight=None):
    binned = Binned.fit(np.asarray(X, np.float32))
    target = (y - y.mean()) / y.std()
    weight = np.ones(len(y)) if weight is None else weight
    numbers = frozen(target, float), frozen(weight, float)
    return Table(binned.codes, binned.binning.code_start, binned.binning.values, *numbers)


def best_cuts(table, least=1, prices=None):
    rows = np.arange(len(table.target), dtype=np.int32)
    packed = pack(table.target, table.weight, rows)
    sums = histogram(table.codes, table.code_start, packed.first, packed.second, rows)
    prices = np.ones(table.codes.shape[1]) if prices is None else prices
    return spread_left(sums, table.code_start, packed.shift, least, frozen(prices, float))


def test_packed_histogram_counts_exactly():
    r = np.random.default_rng(0)
    table = table_of(r.integers(0, 5, (1000, 3)), r.normal(size=1000), r.integers(1, 9, 1000) + 0.0)
    packed = pack(table.target, table.weight, np.arange(1000))
    rows = r.permutation(1000)[:400].astype(np.int32)
    args = table.codes, table.code_start, packed.first, packed.second
    sums = histogram(*args, rows)
    whole = packed.first >> packed.shift  # weight * whole target, as whole weights stay whole
    for f in range(3):
        for code in range(5):
            inside = rows[table.codes[rows, f] == code]
            one, two = sums[table.code_start[f] + code]
            assert one & ((1 << packed.shift) - 1) == table.weight[inside].sum()
            assert one >> packed.shift == whole[inside].sum()
            assert two == packed.second[inside].sum()
    # A child's histogram is its parent's less its sibling's, to the last bit.
    rest = np.setdiff1d(np.arange(1000), rows).astype(np.int32)
    assert (
        histogram(*args, np.arange(1000, dtype=np.int32)) - sums == histogram(*args, rest)
    ).all()


def test_sdr_is_least_standard_deviation_left():
    r = np.random.default_rng(1)
    X = r.integers(0, 6, (300, 4))
    table = table_of(X, r.normal(size=300) + (X[:, 2] > 3))
    gains, cuts, spread = best_cuts(table, least=20)
    assert spread == pytest.approx(2**15, rel=1e-3)  # of whole targets
    for f in range(4):
        left_by_cut = {}
        for cut in range(5):
            left = X[:, f] <= cut
            if min(left.sum(), (~left).sum()) >= 20:
                sides = table.target[left], table.target[~left]
                left_by_cut[cut] = sum(side.std() * len(side) / 300 for side in sides)
        best = min(left_by_cut, key=left_by_cut.get)
        assert cuts[f] == best
        assert gains[f] / 2**15 == pytest.approx(1 - left_by_cut[best], abs=1e-3)


def test_prices_divide_gains():
    table = table_of(np.arange(10)[:, None] % 5, np.arange(10.0) % 5)
    assert best_cuts(table, prices=np.array([4.0]))[0] == pytest.approx(best_cuts(table)[0] / 4)


def test_fractions_of_weight_count_in_proportion():
    r = np.random.default_rng(2)
    X, y, w = r.integers(0, 6, (400, 2)), r.normal(size=400), r.integers(1, 4, 400)
    a = best_cuts(table_of(X, y, w + 0.0))
    b = best_cuts(table_of(X, y, w / 7))
    assert a[0] / a[2] == pytest.approx(b[0] / b[2], abs=1e-3)
    assert (a[1] == b[1]).all()


def score(table, least=20.0, prices=None):
    features = table.codes.shape[1]
    prices = np.ones(features) if prices is None else prices
    rows = np.arange(len(table.target), dtype=np.int32)
    spread, prices = frozen(np.ones(features), float), frozen(prices, float)
    return score_cuts(table, rows, spread, prices, 1.0, least, SEED)


@pytest.mark.parametrize("change", ["level", "slope", "slope by a flag", "kink"])
def test_score_finds_where_the_linear_model_changes(change):
    r = np.random.default_rng(3)
    X = r.integers(0, 20, (3000, 8)).astype(float)
    X[:, 7] = X[:, 7] > 10
    y = {
        "level": 4.0 * (X[:, 3] > 12),
        "slope": np.where(X[:, 3] > 12, 1, -1) * (X[:, 5] - 9.5),
        "slope by a flag": np.where(X[:, 7] > 0, 1, -1) * (X[:, 5] - 9.5),
        "kink": np.abs(X[:, 3] - 12.5),
    }[change] + r.normal(0, 0.5, 3000)
    features, cuts = score(table_of(X, y))
    expected = (7, 0) if change == "slope by a flag" else (3, 12)
    assert (features[0], cuts[0]) == expected


def test_score_finds_nothing_in_one_linear_piece():
    r = np.random.default_rng(4)
    X = r.integers(0, 20, (3000, 30))
    for seed in range(5):
        y = X[:, 0] - 2.0 * X[:, 3] + np.random.default_rng(seed).normal(size=3000)
        assert not len(score(table_of(X, y))[0])


def test_score_keeps_to_the_least_leaf():
    r = np.random.default_rng(5)
    X = np.column_stack([np.arange(1000) < 30, r.integers(0, 9, 1000)])
    y = 50.0 * X[:, 0] + r.normal(size=1000)
    y[:30] += 30 * X[:30, 1]
    assert score(table_of(X, y))[0][0] == 0
    assert 0 not in score(table_of(X, y), least=40.0)[0]


def test_score_cuts_finely_where_there_are_many_codes():
    r = np.random.default_rng(6)
    X = r.integers(0, 250, (6000, 3))
    y = 3.0 * (X[:, 1] > 101) + r.normal(0, 0.3, 6000)
    features, cuts = score(table_of(X, y))
    assert (features[0], cuts[0]) == (1, 101)


def test_noise_gain_bounds_chi_square():
    # 99.9% quantile of chi square with 5 degrees of freedom: 20.5 (any statistical table).
    assert 20.5 < _noise_gain(3.0, 1.0, 1000) < 40
    assert _noise_gain(30.0, 10.0, 1000) == pytest.approx(10 * _noise_gain(3.0, 1.0, 1000))


def test_random_numbers_are_even_and_unlike_their_neighbours():
    draws = np.array([[random(np.uint64(s), np.uint64(i)) for i in range(200)] for s in range(50)])
    assert draws.min() >= 0 and draws.max() < 1
    assert draws.mean() == pytest.approx(0.5, abs=0.01)
    assert abs(np.corrcoef(draws[:, :-1].ravel(), draws[:, 1:].ravel())[0, 1]) < 0.03
    assert abs(np.corrcoef(draws[:-1].ravel(), draws[1:].ravel())[0, 1]) < 0.03
