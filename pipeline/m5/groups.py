"""Rows of one game are alike: they share an outcome and a board. What follows from that.

A parameter whose feature is alike within groups, and whose errors are too, is learnt from fewer
independent pieces of evidence than there are rows. The variance of its estimate is larger by

    1 + (m - 1) rho_x rho_e

(m rows per group, rho the correlations within groups of the feature and of the error), and so is
what it gains on noise. That many parameters it counts as.

Source: Moulton, Random group effects and the precision of regression estimates (1986).
"""

import numpy as np
from numba import njit

from pipeline.m5.linear import Table, fit_node, gram, value_of
from pipeline.m5.score import random

_PRICE_ROWS = 20_000


def number_groups(groups: np.ndarray) -> np.ndarray:
    """Groups as int32 numbers from 0.

    Raises:
        ValueError: they cannot be put in order, such as numbers and names together.
    """
    try:
        return np.unique(groups, return_inverse=True)[1].reshape(-1).astype(np.int32)
    except TypeError as error:
        raise ValueError("groups must be all numbers or all names, not both") from error


@njit(cache=True, nogil=True)
def draw_rows(group, rows, sizes, most, seed):
    """At most so many rows of each group, every subset of that size as likely; keeps the order.

    group int32 [N], rows int32 [n], sizes int64 [groups]: how many of `rows` each group has.
    Source: selection sampling, Knuth, The Art of Computer Programming, 3.4.2, algorithm S.
    """
    seen = np.zeros(len(sizes), np.int64)
    taken = np.zeros(len(sizes), np.int64)
    chosen = np.empty(len(rows), rows.dtype)
    count = 0
    for i in range(len(rows)):
        g = group[rows[i]]
        wanted = min(most, sizes[g]) - taken[g]
        if random(seed, np.uint64(i)) * (sizes[g] - seen[g]) < wanted:
            chosen[count] = rows[i]
            count += 1
            taken[g] += 1
        seen[g] += 1
    return chosen[:count].copy()


@njit(cache=True, nogil=True)
def enough_groups(group, rows, least):
    """Do the rows come from at least so many groups? Stops reading when they do."""
    seen = np.empty(least, group.dtype)
    count = 0
    for r in range(len(rows)):
        g = group[rows[r]]
        new = True
        for k in range(count - 1, -1, -1):
            if seen[k] == g:
                new = False
                break
        if new:
            seen[count] = g
            count += 1
            if count == least:
                return True
    return False


@njit(cache=True, nogil=True)
def correlation(between, total, total_squares, sizes):
    """Correlation within groups, in [0, 1], from one-way analysis of variance.

    between: the sum over groups of (sum of x)^2 / size; total, total_squares: sums of x and x^2;
    sizes float64 [groups] > 0. One group tells nothing: 1, the careful answer.

    Source: Donner, A review of inference procedures for the intraclass correlation coefficient
    (1986), the analysis of variance estimator.
    """
    groups = len(sizes)
    n = sizes.sum()
    squares = (sizes * sizes).sum()
    if groups < 2:
        return 1.0
    mean_between = (between - total * total / n) / (groups - 1)
    within = max(total_squares - between, 0.0)
    if n <= groups or mean_between <= 0.0:
        return 0.0
    mean_within = within / (n - groups)
    typical = (n - squares / n) / (groups - 1)
    rho = (mean_between - mean_within) / (mean_between + (typical - 1.0) * mean_within)
    return min(max(rho, 0.0), 1.0)


@njit(cache=True, nogil=True)
def _correlation_of(values, weight, rows, group, sizes):
    """`correlation` of one number per row of `rows`; sizes float64 [all groups]."""
    sums = np.zeros(len(sizes))
    total = total_squares = 0.0
    for r in range(len(rows)):
        w = weight[rows[r]]
        sums[group[rows[r]]] += w * values[r]
        total += w * values[r]
        total_squares += w * values[r] * values[r]
    there = sizes > 0.0
    between = (sums[there] ** 2 / sizes[there]).sum()
    return correlation(between, total, total_squares, sizes[there])


@njit(cache=True, nogil=True)
def feature_correlations(table, rows, group, sizes):
    """The correlation within groups of every feature, float64 [F].

    `rows` must have the rows of a group one after the other.
    """
    features = table.codes.shape[1]
    between = np.zeros(features)
    total = np.zeros(features)
    squares = np.zeros(features)
    sums = np.zeros(features)
    for r in range(len(rows)):
        row = rows[r]
        w = table.weight[row]
        for f in range(features):
            z = value_of(table, row, f)
            sums[f] += w * z
            squares[f] += w * z * z
        if r + 1 == len(rows) or group[rows[r + 1]] != group[row]:
            size = sizes[group[row]]
            for f in range(features):
                between[f] += sums[f] * sums[f] / size
                total[f] += sums[f]
                sums[f] = 0.0
    there = sizes[sizes > 0.0]
    out = np.empty(features)
    for f in range(features):
        out[f] = correlation(between[f], total[f], squares[f], there)
    return out


@njit(cache=True, nogil=True)
def _residuals(table, rows, slopes, intercept):
    out = np.empty(len(rows))
    for r in range(len(rows)):
        row = rows[r]
        out[r] = table.target[row] - intercept
        for f in range(len(slopes)):
            if slopes[f] != 0.0:
                out[r] -= slopes[f] * value_of(table, row, f)
    return out


def parameter_prices(
    table: Table,
    rows: np.ndarray,
    group: np.ndarray,
    spread: np.ndarray,
    ridge: float,
    multiplier: float,
    seed: int,
) -> np.ndarray:
    """How many parameters each feature counts as, float64 [F], at least 1.

    rows int32 [n], group int32 [N], spread float64 [F] as in `linear.centered`. The correlation of
    the error is that of the residual of one linear model, whose own terms were priced by the
    correlation of the target; on whole groups of 20,000 rows in all where there are more.
    """
    rows = _some_groups(rows, group, seed)
    rows = rows[np.argsort(group[rows], kind="stable")]
    sizes = np.bincount(group[rows], table.weight[rows])
    # How many rows the group of a row has, on average over rows, beside itself.
    others = max((sizes * sizes).sum() / sizes.sum() - 1.0, 0.0)
    alike = feature_correlations(table, rows, group, sizes)
    alike_target = _correlation_of(table.target[rows], table.weight, rows, group, sizes)
    slopes = np.empty(len(spread))
    intercept, _, _ = fit_node(
        gram(table, rows),
        spread,
        ridge,
        multiplier,
        1.0 + others * alike * alike_target,
        np.ones(len(spread), np.bool_),
        slopes,
    )
    errors = _residuals(table, rows, slopes, intercept)
    alike_errors = _correlation_of(errors, table.weight, rows, group, sizes)
    return 1.0 + others * alike * alike_errors


def _some_groups(rows: np.ndarray, group: np.ndarray, seed: int) -> np.ndarray:
    """The rows of so many random groups that there are about 20,000; of at least 100 groups."""
    if len(rows) <= _PRICE_ROWS:
        return rows
    there = np.unique(group[rows])
    many = max(len(there) * _PRICE_ROWS // len(rows), 100)
    chosen = np.zeros(there[-1] + 1, np.bool_)
    chosen[np.random.default_rng(seed).permutation(there)[:many]] = True
    return rows[chosen[group[rows]]]
