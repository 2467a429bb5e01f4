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

from pipeline.m5.linear import fit_node, gram
from pipeline.m5.score import random

_PRICE_ROWS = 20_000


def number_groups(groups: np.ndarray) -> np.ndarray:
    """Groups as int32 numbers from 0."""
    return np.unique(groups, return_inverse=True)[1].reshape(-1).astype(np.int32)


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
def feature_correlations(codes, code_start, values, weight, rows, group, sizes):
    """The correlation within groups of every feature, float64 [F].

    `rows` must have the rows of a group one after the other.
    """
    features = codes.shape[1]
    between = np.zeros(features)
    total = np.zeros(features)
    squares = np.zeros(features)
    sums = np.zeros(features)
    for r in range(len(rows)):
        row = rows[r]
        w = weight[row]
        for f in range(features):
            z = values[code_start[f] + codes[row, f]]
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
def _residuals(codes, code_start, values, target, rows, slopes, intercept):
    out = np.empty(len(rows))
    for r in range(len(rows)):
        row = rows[r]
        out[r] = target[row] - intercept
        for f in range(len(slopes)):
            if slopes[f] != 0.0:
                out[r] -= slopes[f] * values[code_start[f] + codes[row, f]]
    return out


def parameter_prices(
    binned, target, weight, rows, group, num_groups, spread, ridge, multiplier, seed
) -> np.ndarray:
    """How many parameters each feature counts as, float64 [F], at least 1.

    The correlation of the error is that of the residual of one linear model, whose own terms were
    priced by the correlation of the target; on whole groups of 20,000 rows where there are more.
    """
    binning, codes = binned
    table = (codes, binning.code_start, binning.values)
    sizes = np.bincount(group[rows], weight[rows], num_groups)
    present = np.flatnonzero(sizes)
    if len(rows) > _PRICE_ROWS:
        share = np.random.default_rng(seed).permutation(present)
        share = share[: max(len(present) * _PRICE_ROWS // len(rows), min(len(present), 100))]
        chosen = np.zeros(num_groups, bool)
        chosen[share] = True
        rows = rows[chosen[group[rows]]]
        sizes = np.where(chosen, sizes, 0.0)
    rows = rows[np.argsort(group[rows], kind="stable")]
    alike = feature_correlations(*table, weight, rows, group, sizes)
    # The group that a row of the data finds itself in has, on average, so many rows.
    typical = (sizes * sizes).sum() / sizes.sum()
    alike_target = _correlation_of(target[rows], weight, rows, group, sizes)
    prices = 1.0 + max(typical - 1.0, 0.0) * alike * alike_target
    sums = gram(*table, target, weight, rows)
    slopes = np.empty(len(spread))
    everything = np.ones(len(spread), np.bool_)
    intercept, _, _ = fit_node(sums, spread, ridge, multiplier, prices, everything, slopes)
    errors = _residuals(*table, target, rows, slopes, intercept)
    alike_errors = _correlation_of(errors, weight, rows, group, sizes)
    return 1.0 + max(typical - 1.0, 0.0) * alike * alike_errors
