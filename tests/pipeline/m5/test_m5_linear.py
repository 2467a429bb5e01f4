"""Gram matrices and regressions against numpy's least squares."""

import numpy as np
import pytest

from pipeline.m5.binning import Binned, frozen
from pipeline.m5.linear import Table, estimated_error, fit_node, gram, squared_error, sweep


def table_of(X, target, weight=None):
    binned = Binned.fit(X)
    weight = np.ones(len(X)) if weight is None else weight
    numbers = frozen(target, float), frozen(weight, float)
    return Table(binned.codes, binned.binning.code_start, binned.binning.values, *numbers)


def decoded(table):
    """The design matrix that a table stands for: ones, standardised features, target."""
    columns = [
        table.values[table.code_start[f] + table.codes[:, f]] for f in range(table.codes.shape[1])
    ]
    return np.column_stack([np.ones(len(table.target)), *columns, table.target])


@pytest.fixture
def table():
    r = np.random.default_rng(0)
    X = r.integers(0, 9, (500, 7)).astype(np.float32)
    return table_of(X, X[:, 2] - 2 * X[:, 5] + r.normal(size=500), r.random(500))


def fit(sums, prices=1.0, ridge=0.0, multiplier=1.0, allowed=None):
    features = len(sums) - 2
    slopes = np.empty(features)
    allowed = np.ones(features, bool) if allowed is None else allowed
    prices = frozen(np.full(features, prices), float)
    spread = frozen(np.ones(features), float)
    result = fit_node(sums, spread, float(ridge), multiplier, prices, allowed, slopes)
    return slopes, *result


@pytest.mark.parametrize("rows", [1, 127, 128, 129, 500])
def test_gram_is_the_sum_of_weighted_products(table, rows):
    chosen = np.random.default_rng(1).permutation(500)[:rows].astype(np.int32)
    A = decoded(table)[chosen]
    assert gram(table, chosen) == pytest.approx(A.T @ (A * table.weight[chosen, None]))


def test_sweep_solves_and_sweeping_again_takes_back():
    r = np.random.default_rng(2)
    A = r.normal(size=(40, 5))
    products = A.T @ A
    swept = products.copy()
    for k in range(4):
        sweep(swept, k)
    slopes, rss, *_ = np.linalg.lstsq(A[:, :4], A[:, 4])
    assert swept[:4, 4] == pytest.approx(slopes)
    assert swept[4, 4] == pytest.approx(rss[0])
    assert -swept[:4, :4] == pytest.approx(np.linalg.inv(products[:4, :4]))
    for k in (2, 0, 3, 1):
        sweep(swept, k)
    assert swept == pytest.approx(products)


def test_a_free_fit_is_weighted_least_squares(table):
    sums = gram(table, np.arange(500, dtype=np.int32))
    slopes, intercept, rss, parameters = fit(sums, prices=1e-9)
    A, root = decoded(table), np.sqrt(table.weight)
    expected, expected_rss, *_ = np.linalg.lstsq(A[:, :-1] * root[:, None], A[:, -1] * root)
    assert slopes == pytest.approx(expected[1:])
    assert intercept == pytest.approx(expected[0])
    assert rss == pytest.approx(expected_rss[0])
    assert rss == pytest.approx(squared_error(sums, intercept, slopes))
    assert parameters == pytest.approx(1.0)


def test_ridge_is_that_many_rows_which_say_that_slopes_are_zero(table):
    sums = gram(table, np.arange(500, dtype=np.int32))
    slopes, _, rss, _ = fit(sums, prices=1e-9, ridge=30.0)
    A, w = decoded(table), table.weight
    Z = A[:, 1:-1] - np.average(A[:, 1:-1], axis=0, weights=w)
    t = A[:, -1] - np.average(A[:, -1], weights=w)
    expected = np.linalg.solve(Z.T @ (Z * w[:, None]) + 30 * np.eye(7), Z.T @ (w * t))
    assert slopes == pytest.approx(expected)
    assert rss == pytest.approx((w * (t - Z @ expected) ** 2).sum())


def test_terms_that_do_not_pay_are_dropped(table):
    slopes, _, _, parameters = fit(gram(table, np.arange(500, dtype=np.int32)), multiplier=2.0)
    assert np.flatnonzero(slopes).tolist() == [2, 5]
    assert parameters == 3.0
    # At a price at which nothing pays, only the mean is left.
    slopes, intercept, _, parameters = fit(gram(table, np.arange(500, dtype=np.int32)), prices=300)
    assert not slopes.any() and parameters == 1.0
    assert intercept == pytest.approx(np.average(table.target, weights=table.weight))


def test_only_allowed_features_are_used(table):
    allowed = np.array([0, 0, 1, 0, 0, 0, 0], bool)
    slopes = fit(gram(table, np.arange(500, dtype=np.int32)), allowed=allowed)[0]
    assert np.flatnonzero(slopes).tolist() == [2]


def test_a_feature_said_twice_is_used_once():
    r = np.random.default_rng(3)
    X = r.integers(0, 9, (200, 1)).astype(np.float32)
    table = table_of(np.column_stack([X, 3 * X + 1, -X]), 2 * X[:, 0])
    slopes, _, rss, _ = fit(gram(table, np.arange(200, dtype=np.int32)))
    assert np.count_nonzero(slopes) == 1
    assert rss == pytest.approx(0.0, abs=1e-6)


def test_more_features_than_rows_is_not_a_fit():
    r = np.random.default_rng(4)
    table = table_of(r.integers(0, 9, (5, 20)).astype(np.float32), r.normal(size=5))
    slopes, _, _, parameters = fit(gram(table, np.arange(5, dtype=np.int32)), ridge=1.0)
    assert np.isfinite(slopes).all() and parameters < 5


def test_estimated_error_by_hand():
    # Quinlan (1992): (n + v) / (n - v) times the error; rmse = sqrt(48 / 12) = 2.
    assert estimated_error(48.0, 12.0, 4.0, 1.0) == pytest.approx(2 * 16 / 8)
    assert estimated_error(48.0, 12.0, 4.0, 2.0) == pytest.approx(2 * 20 / 8)
    assert estimated_error(48.0, 12.0, 12.0, 1.0) == np.inf
