"""Linear regression from Gram matrices: sums of products, so a node's is the sum of its children's.

A row's vector is a = (1, z_1 .. z_F, t): the standardised means of its bins and its target. The
Gram matrix of some rows is the sum of w a a' over them, w the row's weight; float64 [F+2, F+2].
"""

from typing import NamedTuple

import numpy as np
from numba import njit

# A residual below this share of the target's variance is rounding, and counts as this much.
_ROUNDING = 1e-10
# A feature of which less than this share of variance is left, given the others, is collinear.
COLLINEAR = 1e-8
_BLOCK = 128


class Table(NamedTuple):
    """N rows as kernels see them; `binning.Binning` says what codes and values are."""

    codes: np.ndarray
    """uint8 [N, F]"""
    code_start: np.ndarray
    """int32 [F+1]"""
    values: np.ndarray
    """float64 [C], what a code stands for, standardised"""
    target: np.ndarray
    """float64 [N], mean 0 and standard deviation 1 over the tree's rows"""
    weight: np.ndarray
    """float64 [N]"""


@njit(cache=True, nogil=True)
def value_of(table, row, feature):
    """The standardised value of a row's feature."""
    return table.values[table.code_start[feature] + table.codes[row, feature]]


@njit(cache=True, nogil=True, fastmath=True)
def gram(table, rows):
    """The Gram matrix of the rows int32 [n]. Cost: n F^2 / 2 multiply-adds, in a fixed order."""
    size = table.codes.shape[1] + 2
    padded = (size + 3) // 4 * 4
    sums = np.zeros((padded, padded))
    block = np.zeros((padded, _BLOCK))
    for start in range(0, len(rows), _BLOCK):
        _decode(table, rows[start : start + _BLOCK], block)
        # Tiles of 2 x 4 products keep the running sums in registers.
        for i in range(0, size, 2):
            a0, a1 = block[i], block[i + 1]
            for j in range(0, i + 2, 4):
                b0, b1, b2, b3 = block[j], block[j + 1], block[j + 2], block[j + 3]
                s00 = s01 = s02 = s03 = s10 = s11 = s12 = s13 = 0.0
                for r in range(_BLOCK):
                    s00 += a0[r] * b0[r]
                    s01 += a0[r] * b1[r]
                    s02 += a0[r] * b2[r]
                    s03 += a0[r] * b3[r]
                    s10 += a1[r] * b0[r]
                    s11 += a1[r] * b1[r]
                    s12 += a1[r] * b2[r]
                    s13 += a1[r] * b3[r]
                sums[i, j] += s00
                sums[i, j + 1] += s01
                sums[i, j + 2] += s02
                sums[i, j + 3] += s03
                sums[i + 1, j] += s10
                sums[i + 1, j + 1] += s11
                sums[i + 1, j + 2] += s12
                sums[i + 1, j + 3] += s13
    for i in range(size):
        for j in range(i):
            sums[j, i] = sums[i, j]
    return sums[:size, :size].copy()


@njit(cache=True, nogil=True)
def _decode(table, rows, block):
    """Column r of block [>= F+2, _BLOCK] becomes row r's vector times sqrt(w), or zero."""
    features = table.codes.shape[1]
    for r in range(len(rows)):
        row = rows[r]
        root = np.sqrt(table.weight[row])
        block[0, r] = root
        for f in range(features):
            block[f + 1, r] = root * value_of(table, row, f)
        block[features + 1, r] = root * table.target[row]
    if len(rows) < _BLOCK:
        block[:, len(rows) :] = 0.0


# Without fastmath: numba compiles it again into every kernel that calls it, and which copy runs
# depends on the order of loading, so the copies must not round differently.
@njit(cache=True, nogil=True)
def sweep(matrix, k):
    """Brings variable k of a symmetric matrix into the regression, or takes it out again.

    Of the matrix of products of (x, t), swept at the x's that are in: t's column holds their
    slopes, its corner the residual sum of squares, and the block of the x's minus the inverse.
    Sweeping twice is sweeping not at all.

    Source: Goodnight, A tutorial on the SWEEP operator, The American Statistician 33 (1979).
    The sign convention is the one that keeps the matrix symmetric.
    """
    size = len(matrix)
    pivot = matrix[k, k]
    column = matrix[k].copy()
    for i in range(size):
        if column[i] != 0.0 and i != k:
            share = column[i] / pivot
            for j in range(size):
                matrix[i, j] -= share * column[j]
    # A variable that is in has a negative diagonal; taking it out turns the signs of its column.
    sign = 1.0 if pivot > 0.0 else -1.0
    for i in range(size):
        matrix[i, k] = matrix[k, i] = sign * column[i] / pivot
    matrix[k, k] = -1.0 / pivot


@njit(cache=True, nogil=True)
def estimated_error(rss, n, parameters, multiplier):
    """Root mean squared error expected on new rows, inf where parameters outnumber rows.

    Source: Quinlan, Learning with continuous classes (1992), with the mean absolute error replaced
    by the root mean squared one and the multiplier of Weka's M5P.
    """
    if n <= parameters:
        return np.inf
    rmse = np.sqrt(max(rss, _ROUNDING * n) / n)
    return rmse * (n + multiplier * parameters) / (n - parameters)


@njit(cache=True, nogil=True)
def centered(sums, spread, ridge, allowed):
    """Products about the mean of the allowed features and the target, and which features they are.

    sums is a Gram matrix; spread float64 [F] the features' variances in the whole tree: the ridge
    adds `ridge` rows of that variance. Features without variance here are left out.
    Returns float64 [K+1, K+1] and int64 [K].
    """
    n = sums[0, 0]
    last = len(sums) - 1
    kept = np.empty(last + 1, np.int64)
    count = 0
    for f in range(last - 1):
        variance = (sums[f + 1, f + 1] - sums[f + 1, 0] ** 2 / n) / n
        if allowed[f] and spread[f] > 0.0 and variance > 1e-10 * spread[f]:
            kept[count] = f + 1
            count += 1
    kept[count] = last
    kept = kept[: count + 1]
    products = np.empty((count + 1, count + 1))
    for i in range(count + 1):
        for j in range(count + 1):
            a, b = kept[i], kept[j]
            products[i, j] = sums[a, b] - sums[a, 0] * sums[b, 0] / n
    for i in range(count):
        products[i, i] += ridge * spread[kept[i] - 1]
    products[count, count] = max(products[count, count], 0.0)
    return products, kept[:count] - 1


@njit(cache=True, nogil=True)
def fit_node(sums, spread, ridge, multiplier, prices, allowed, slopes):
    """Ridge regression on the allowed features, without those that do not pay for themselves.

    prices float64 [F]: the parameters that a feature counts as. Writes slopes float64 [F].
    Terms leave one by one, each time the one whose leaving gives the least estimated error.

    Returns (intercept, residual sum of squares, parameters).
    """
    slopes[:] = 0.0
    n = sums[0, 0]
    matrix, kept = centered(sums, spread, ridge, allowed)
    last = len(kept)
    inside = np.zeros(last, np.bool_)
    parameters = 1.0
    before = np.diag(matrix).copy()
    for k in range(last):
        if matrix[k, k] > COLLINEAR * before[k]:
            sweep(matrix, k)
            inside[k] = True
            parameters += prices[kept[k]]
    while True:
        worst = _term_to_drop(matrix, inside, kept, prices, n, parameters, multiplier)
        if worst < 0:
            break
        sweep(matrix, worst)
        inside[worst] = False
        matrix, kept, inside = _without_outside(matrix, kept, inside)
        parameters = 1.0 + prices[kept[inside]].sum()
    last = len(kept)
    intercept = sums[0, -1]
    rss = matrix[last, last]
    for k in range(last):
        if inside[k]:
            slope = matrix[k, last]
            slopes[kept[k]] = slope
            intercept -= slope * sums[0, kept[k] + 1]
            rss -= ridge * spread[kept[k]] * slope * slope  # the ridge's own rows
    return intercept / n, max(rss, 0.0), parameters


@njit(cache=True, nogil=True)
def _term_to_drop(matrix, inside, kept, prices, n, parameters, multiplier):
    """The term without which the estimated error is least, or -1 if it is less with all."""
    last = len(kept)
    rss = matrix[last, last]
    now = estimated_error(rss, n, parameters, multiplier)
    best, least, cheapest = -1, now, np.inf
    for k in range(last):
        if inside[k]:
            loss = -(matrix[k, last] ** 2) / matrix[k, k]  # the diagonal is negative inside
            price = prices[kept[k]]
            without = estimated_error(rss + loss, n, parameters - price, multiplier)
            if without <= least and without < np.inf:
                best, least = k, without
            # With more parameters than rows: drop what explains least for its price.
            if now == np.inf and least == np.inf and loss / price < cheapest:
                best, cheapest = k, loss / price
    return best


@njit(cache=True, nogil=True)
def _without_outside(matrix, kept, inside):
    """Once half of the variables are outside, the matrix without them."""
    if 2 * inside.sum() > len(inside):
        return matrix, kept, inside
    chosen = np.append(np.flatnonzero(inside), len(inside))
    smaller = np.empty((len(chosen), len(chosen)))
    for i in range(len(chosen)):
        for j in range(len(chosen)):
            smaller[i, j] = matrix[chosen[i], chosen[j]]
    return smaller, kept[inside], np.ones(len(chosen) - 1, np.bool_)


@njit(cache=True, nogil=True)
def squared_error(sums, intercept, slopes):
    """Sum of squared errors of a model on the rows of a Gram matrix."""
    last = len(sums) - 1
    model = np.zeros(last + 1)
    model[0] = intercept
    model[1:last] = slopes
    model[last] = -1.0
    total = 0.0
    for i in range(last + 1):
        if model[i] != 0.0:
            for j in range(last + 1):
                total += model[i] * model[j] * sums[i, j]
    return max(total, 0.0)
