"""Codes, bins and what they stand for."""

import numpy as np
import pytest

from pipeline.m5.binning import Binned, Binning, check_table


def edges_of(binning, feature):
    return binning.edges[binning.edge_start[feature] : binning.edge_start[feature + 1]]


def test_few_values_get_a_code_each_with_edges_midway():
    X = np.array([[5.0], [1.0], [2.0], [5.0], [1.0]], np.float32)
    binned = Binned.fit(X)
    assert binned.codes[:, 0].tolist() == [2, 0, 1, 2, 0]
    assert edges_of(binned.binning, 0).tolist() == [1.5, 3.5]
    # Mean 2.8, so values are in units of the standard deviation about it.
    assert binned.binning.center[0] == pytest.approx(2.8)
    assert binned.binning.values == pytest.approx((np.array([1, 2, 5]) - 2.8) / X.std())


def test_255_values_are_exact_and_256_are_not():
    for count in (255, 256):
        X = np.arange(count, dtype=np.float32)[:, None] ** 2
        codes = Binned.fit(X, max_bins=64).codes[:, 0]
        assert len(np.unique(codes)) == (255 if count == 255 else 64)


def test_quantile_bins_hold_equal_shares_and_know_their_means():
    X = np.random.default_rng(0).lognormal(0, 3, (10_000, 1)).astype(np.float32)
    binned = Binned.fit(X, max_bins=50)
    codes, binning = binned.codes[:, 0], binned.binning
    assert np.bincount(codes).tolist() == [200] * 50
    means = [X[codes == code].astype(float).mean() for code in range(50)]
    assert binning.values * binning.scale + binning.center == pytest.approx(np.array(means))


@pytest.mark.parametrize("kind", ["uniform", "heavy tails", "mostly one value", "few far values"])
def test_codes_are_what_binary_search_gives(kind):
    r = np.random.default_rng(2)
    X = {
        "uniform": r.random((5000, 3)),
        "heavy tails": r.standard_cauchy((5000, 3)) ** 3,
        "mostly one value": np.where(r.random((5000, 3)) < 0.9, 0.0, r.normal(size=(5000, 3))),
        "few far values": r.choice([-3e38, -1.0, 0.0, 1e-38, 3e38], (5000, 3)),
    }[kind].astype(np.float32)
    binning = Binning.fit(X)
    unseen = np.concatenate([X, -X, X * np.float32(0.5)])
    codes = binning.encode(unseen)
    for f in range(3):
        assert (codes[:, f] == np.searchsorted(edges_of(binning, f), unseen[:, f])).all()


def test_neighbouring_floats_are_told_apart():
    below = np.float32(1.0)
    X = np.array([[below], [np.nextafter(below, np.float32(2))]], np.float32)
    assert Binned.fit(X).codes[:, 0].tolist() == [0, 1]


def test_appended_rows_get_the_same_codes_and_unseen_values_the_nearest():
    X = np.array([[0.0], [10.0], [20.0]], np.float32)
    more = np.array([[10.0], [-99.0], [99.0], [14.0]], np.float32)
    binned = Binned.fit(X).append(more)
    assert binned.codes[:, 0].tolist() == [0, 1, 2, 1, 0, 2, 1]
    assert binned.keep([1, 3]).codes[:, 0].tolist() == [1, 1]


def test_threads_change_nothing():
    X = np.random.default_rng(3).normal(size=(70_000, 20)).astype(np.float32)
    one, two = Binned.fit(X, threads=1), Binned.fit(X, threads=2)
    assert (one.codes == two.codes).all()
    assert (one.binning.edges == two.binning.edges).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e39])
def test_numbers_that_are_not_finite_are_refused_by_name(bad):
    X = np.zeros((4, 3))
    X[2, 1] = bad
    with pytest.raises(ValueError, match=r"row 2 of column 1 is"):
        check_table(X)
    with pytest.raises(ValueError, match=r"row 2 of column 'ore' is"):
        check_table(X, ["wood", "ore", "wool"])


def test_wrong_shapes_are_refused():
    binning = Binning.fit(np.zeros((2, 3), np.float32))
    with pytest.raises(ValueError, match="for 3 features, but X has 2 columns"):
        binning.encode(np.zeros((2, 2), np.float32))
    with pytest.raises(ValueError, match="two dimensions"):
        Binning.fit(np.zeros(3, np.float32))
    with pytest.raises(ValueError, match="0 rows"):
        Binning.fit(np.zeros((0, 3), np.float32))
