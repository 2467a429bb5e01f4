"""The split rule that looks for where the linear model changes.

A linear model is fitted to the node. Each row then has a score, the derivative of its squared
error by each coefficient: its residual times (1, its features). In a node that is one linear piece,
scores sum to about zero on either side of any cut; where level or slopes change, they drift. So one
histogram of scores ranks every cut of every feature at once by how much a model per side would
gain, and the best few are then fitted exactly.

A fast relative of Zeileis, Hothorn & Hornik, Model-based recursive partitioning (2008), who test
for the same drift. Large nodes are judged by a random sample of their rows.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from pipeline.m5.linear import COLLINEAR, centered, gram, sweep, value_of
from pipeline.streams import mix

_MODEL_ROWS = 4096  # that choose the features of the node's model
_SCORE_ROWS = 8192  # that are scored
_TERMS = 13  # most features of the node's model
_COUNT = 14  # channel that holds the weight; 0 is the residual, 1.._TERMS residual times feature
_CHANNELS = 16  # a whole number of vector registers
_COARSE = 32  # bins per feature in the first look
_BY_SCORE = 5  # candidates that are fitted exactly, by the score
_BY_LINE = 3  # and by a line in the candidate feature alone, which need not be in the model
_SCORE, _LINE = 0, 1  # the two measures
_F_TO_ENTER = 4.0
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class _Model(NamedTuple):
    """A linear model of K <= _TERMS features."""

    terms: np.ndarray  # int64 [K], its features
    means: np.ndarray  # float64 [K], their means
    inverse_root: np.ndarray  # float64 [K, K], of their covariance's lower Cholesky factor
    slopes: np.ndarray  # float64 [K]
    intercept: float


@njit(cache=True, nogil=True)
def score_cuts(table, rows, spread, prices, ridge, least, seed):
    """The best cuts of a node, best first, among those that gain more than noise would.

    rows int32 [n] of the node; spread float64 [F] variances and prices float64 [F] parameters by
    feature; least: fewest rows on either side; seed decides which rows are looked at.
    Returns int64 [K] features and int64 [K] cuts, K from 0 to 8.
    """
    model = _fit_model(gram(table, sample(rows, _MODEL_ROWS, seed)), spread, prices, ridge)
    some = sample(rows, _SCORE_ROWS, seed + np.uint64(1))
    share = total_weight(table.weight, some) / total_weight(table.weight, rows)
    design = _whiten(table, some, model)
    whole = _design_gram(design, table.weight[some])
    scores = _scores(table, some, design, len(model.terms))
    features, cuts = _candidates(table, some, scores, len(model.terms), least * share, prices)
    worth = np.empty(len(features))
    for k in range(len(features)):
        f = features[k]
        gain = _exact_gain(table, some, design, whole, model.terms, f, cuts[k], ridge, spread[f])
        noise = _noise_gain(prices[model.terms].sum(), prices[f], _COARSE * len(spread))
        worth[k] = (gain - noise) / prices[f]
    order = np.argsort(-worth)
    order = order[worth[order] > 0.0]
    return features[order], cuts[order]


@njit(cache=True, nogil=True)
def _noise_gain(model_price, price, cuts):
    """What the best of so many cuts gains where there is nothing to gain, in residual variances.

    A split adds a level and a slope of price `price` to one more copy of the model's terms; on
    noise that gains chi square with so many degrees of freedom.
    Source: Laurent & Massart, Adaptive estimation of a quadratic functional (2000), lemma 1.
    """
    freedom = model_price + 2.0 * price
    x = np.log(cuts) * price
    return freedom + 2.0 * np.sqrt(freedom * x) + 2.0 * x


@njit(cache=True, nogil=True)
def total_weight(weight, rows):
    total = 0.0
    for r in range(len(rows)):
        total += weight[rows[r]]
    return total


@njit(cache=True, nogil=True)
def sample(rows, most, seed):
    """At most so many of the rows, one at random from each of `most` equal parts, in order."""
    n = len(rows)
    if n <= most:
        return rows
    chosen = np.empty(most, rows.dtype)
    for i in range(most):
        place = (i + random(seed, np.uint64(i))) * n / most
        chosen[i] = rows[min(int(place), n - 1)]
    return chosen


@njit(cache=True, nogil=True)
def random(seed, index):
    """Number `index` of the stream uint64 `seed`, float64 in [0, 1)."""
    bits = mix(mix(seed + _GOLDEN) + (index + np.uint64(1)) * _GOLDEN)
    return float(bits >> np.uint64(11)) * 2.0**-53


@njit(cache=True, nogil=True)
def _fit_model(sums, spread, prices, ridge):
    """Forward selection of a linear model from a Gram matrix."""
    n = sums[0, 0]
    everything = np.ones(len(spread), np.bool_)
    products, kept = centered(sums, spread, ridge, everything)
    matrix = products.copy()
    last = len(kept)
    inside = np.zeros(last, np.bool_)
    chosen = np.empty(_TERMS, np.int64)
    count = 0
    while count < _TERMS:
        best, most = -1, 0.0
        for k in range(last):
            if not inside[k] and matrix[k, k] > COLLINEAR * products[k, k]:
                gain = matrix[k, last] ** 2 / matrix[k, k] / prices[kept[k]]
                if gain > most:
                    best, most = k, gain
        freedom = n - count - 2
        if best < 0 or freedom <= 0:
            break
        remaining = matrix[last, last] - most * prices[kept[best]]
        if most * freedom <= _F_TO_ENTER * remaining:
            break
        sweep(matrix, best)
        inside[best] = True
        chosen[count] = best
        count += 1
    chosen = chosen[:count]
    slopes = matrix[last][chosen]
    means = sums[0][kept[chosen] + 1] / n
    intercept = sums[0, -1] / n - (slopes * means).sum()
    covariance = np.empty((count, count))
    for i in range(count):
        for j in range(count):
            covariance[i, j] = products[chosen[i], chosen[j]] / n
    return _Model(kept[chosen], means, _inverse_root(covariance), slopes, intercept)


@njit(cache=True, nogil=True)
def _inverse_root(matrix):
    """The inverse of the lower Cholesky factor of a positive definite matrix."""
    size = len(matrix)
    root = np.zeros((size, size))
    inverse = np.zeros((size, size))
    for i in range(size):
        for j in range(i + 1):
            total = matrix[i, j]
            for k in range(j):
                total -= root[i, k] * root[j, k]
            root[i, j] = np.sqrt(max(total, 1e-12)) if i == j else total / root[j, j]
    for j in range(size):
        for i in range(j, size):
            total = 1.0 if i == j else 0.0
            for k in range(j, i):
                total -= root[i, k] * inverse[k, j]
            inverse[i, j] = total / root[i, i]
    return inverse


@njit(cache=True, nogil=True)
def _whiten(table, rows, model):
    """Float64 [16, R]: ones, the residuals, then the model's features made uncorrelated with unit
    variance; the rest is zero."""
    design = np.zeros((_CHANNELS, len(rows)))
    design[0] = 1.0
    for r in range(len(rows)):
        design[1, r] = table.target[rows[r]] - model.intercept
    for k in range(len(model.terms)):
        for r in range(len(rows)):
            value = value_of(table, rows[r], model.terms[k])
            design[1, r] -= model.slopes[k] * value
            design[k + 2, r] = value - model.means[k]
    # In place from the last one back, as each takes from those before it.
    for k in range(len(model.terms) - 1, -1, -1):
        column = design[k + 2]
        column *= model.inverse_root[k, k]
        for j in range(k):
            _add_multiple(column, model.inverse_root[k, j], design[j + 2])
    return design


@njit(cache=True, nogil=True)
def _add_multiple(a, factor, b):
    for r in range(len(a)):
        a[r] += factor * b[r]


@njit(cache=True, nogil=True)
def _scores(table, rows, design, terms):
    """Float32 [R, 16]: residual times (1, features), and the weight."""
    scores = np.zeros((len(rows), _CHANNELS), np.float32)
    for r in range(len(rows)):
        w = table.weight[rows[r]]
        scores[r, 0] = w * design[1, r]
        for k in range(terms):
            scores[r, k + 1] = w * design[1, r] * design[k + 2, r]
        scores[r, _COUNT] = w
    return scores


@njit(cache=True, nogil=True)
def _candidates(table, rows, scores, terms, least, prices):
    """The most promising cuts by both measures: features [K] and cuts [K]."""
    code_start = table.code_start
    shifts = _coarse_shifts(code_start)
    sums = _score_histogram(table.codes, rows, scores, shifts)
    chosen = np.empty(_BY_SCORE + _BY_LINE, np.int64)
    cuts = np.empty(_BY_SCORE + _BY_LINE, np.int64)
    gains = np.zeros(len(prices))
    places = np.zeros(len(prices), np.int64)
    count = 0
    for measure in (_SCORE, _LINE):
        for f in range(len(prices)):
            z = table.values[code_start[f] : code_start[f + 1]]
            last = ((len(z) - 1) >> shifts[f]) + 1
            gain, place = _best_cut(sums[f], z, shifts[f], 0, last, terms, least, measure)
            gains[f] = gain / prices[f]
            places[f] = place
        for _ in range(_BY_SCORE if measure == _SCORE else _BY_LINE):
            f = int(np.argmax(gains))
            if gains[f] <= 0.0:
                break
            gains[f] = 0.0
            cut = places[f]
            if shifts[f] > 0:
                z = table.values[code_start[f] : code_start[f + 1]]
                low, high = cut << shifts[f], min((cut + 2) << shifts[f], len(z))
                fine = _fine_histogram(table.codes[:, f], rows, scores, len(z))
                cut = _best_cut(fine, z, 0, low, high, terms, least, measure)[1]
            new = cut >= 0
            for k in range(count):
                new &= chosen[k] != f or cuts[k] != cut
            if new:
                chosen[count] = f
                cuts[count] = cut
                count += 1
    return chosen[:count], cuts[:count]


@njit(cache=True, nogil=True)
def _coarse_shifts(code_start):
    """By how many bits to shift each feature's codes so that they are below 32, uint8 [F]."""
    shifts = np.zeros(len(code_start) - 1, np.uint8)
    for f in range(len(shifts)):
        while (code_start[f + 1] - code_start[f] - 1) >> shifts[f] >= _COARSE:
            shifts[f] += 1
    return shifts


@njit(cache=True, nogil=True)
def _score_histogram(codes, rows, scores, shifts):
    """Float32 [F, 32, 16]: sums of scores by feature and coarse bin."""
    sums = np.zeros((codes.shape[1], _COARSE, _CHANNELS), np.float32)
    for r in range(len(rows)):
        row = rows[r]
        score = scores[r]
        for f in range(codes.shape[1]):
            bin = sums[f, codes[row, f] >> shifts[f]]
            # A length that the compiler knew would be unrolled to single additions.
            for c in range(len(score)):
                bin[c] += score[c]
    return sums


@njit(cache=True, nogil=True)
def _fine_histogram(column, rows, scores, size):
    sums = np.zeros((size, _CHANNELS), np.float32)
    for r in range(len(rows)):
        bin = sums[column[rows[r]]]
        for c in range(_CHANNELS):
            bin[c] += scores[r, c]
    return sums


@njit(cache=True, nogil=True)
def _best_cut(sums, z, shift, low, high, terms, least, measure):
    """The gain and place of the best cut after bin low .. high - 2 of one feature.

    _SCORE: the score's gain, |S_left|^2 / n_left + |S_right|^2 / n_right;
    _LINE: the gain of a line in this feature through each side's residuals.
    """
    last = ((len(z) - 1) >> shift) + 1
    total = np.zeros(_CHANNELS)
    moments = np.zeros(3)  # sums of w z, w z^2, w z residual
    all_moments = np.zeros(3)
    for bin in range(last):
        for c in range(_CHANNELS):
            total[c] += sums[bin, c]
        _add_moments(all_moments, sums[bin], _middle(z, bin, shift))
    n = total[_COUNT]
    left = np.zeros(_CHANNELS)
    best, place = 0.0, -1
    whole = _line_gain(n, total[0], all_moments) if measure == _LINE else 0.0
    for bin in range(high - 1):
        if sums[bin, _COUNT] == 0.0:
            continue
        for c in range(_CHANNELS):
            left[c] += sums[bin, c]
        _add_moments(moments, sums[bin], _middle(z, bin, shift))
        n_left = left[_COUNT]
        n_right = n - n_left
        if bin < low or n_left < least:
            continue
        if n_right < least or n_right <= 0.0:
            break
        gain = -whole
        if measure == _SCORE:
            for c in range(terms + 1):
                gain += left[c] ** 2 / n_left + (total[c] - left[c]) ** 2 / n_right
        else:
            gain += _line_gain(n_left, left[0], moments)
            gain += _line_gain(n_right, total[0] - left[0], all_moments - moments)
        if gain > best:
            best, place = gain, bin
    return best, place


@njit(cache=True, nogil=True)
def _middle(z, bin, shift):
    return z[min((bin << shift) + ((1 << shift) >> 1), len(z) - 1)]


@njit(cache=True, nogil=True)
def _add_moments(moments, bin, z):
    moments[0] += bin[_COUNT] * z
    moments[1] += bin[_COUNT] * z * z
    moments[2] += bin[0] * z


@njit(cache=True, nogil=True)
def _line_gain(n, total, moments):
    """What a least-squares line explains: n ybar^2 + Szy^2 / Szz."""
    gain = total * total / n
    szz = moments[1] - moments[0] ** 2 / n
    if szz > 1e-6 * n:
        gain += (moments[2] - moments[0] * total / n) ** 2 / szz
    return gain


@njit(cache=True, nogil=True)
def _exact_gain(table, rows, design, whole, terms, feature, cut, ridge, spread):
    """What two models gain over one, in residual variances, and the parameters they have more.

    The feature joins the models. design float64 [16, R] from `_whiten`, whole its Gram matrix.
    """
    joins = True
    for k in range(len(terms)):
        joins &= terms[k] != feature
    count = len(terms) + (1 if joins else 0)
    masked = np.empty(len(rows))
    for r in range(len(rows)):
        row = rows[r]
        masked[r] = table.weight[row] if table.codes[row, feature] <= cut else 0.0
        if joins:
            design[count + 1, r] = value_of(table, row, feature)
    left = _design_gram(design[: count + 2], masked)
    both = whole[: count + 2, : count + 2].copy()
    if joins:
        for r in range(len(rows)):
            masked[r] = table.weight[rows[r]] * design[count + 1, r]
        for i in range(count + 2):
            both[i, count + 1] = both[count + 1, i] = _dot(masked, design[i])
    n = both[0, 0]
    right = both - left
    # Whitened features have unit variance, the joining one that of the whole tree.
    scales = np.ones(count + 2)
    if joins:
        scales[count + 1] = spread
    one = _residual(both, ridge * scales)
    two = _residual(left, ridge * scales) + _residual(right, ridge * scales)
    # Exact pieces leave rounding only; the target has variance 1 in the whole tree.
    variance = max(two / max(n - 2.0 * (count + 1), 1.0), 1e-10)
    return (one - two) / variance


@njit(cache=True, nogil=True, fastmath=True)
def _design_gram(design, weight):
    """The Gram matrix float64 [K, K] of the rows of design [K, R]."""
    size = len(design)
    sums = np.empty((size, size))
    weighted = np.empty(design.shape[1])
    for i in range(size):
        weighted[:] = design[i] * weight
        for j in range(0, i + 1, 4):
            b0, b1 = design[j], design[min(j + 1, i)]
            b2, b3 = design[min(j + 2, i)], design[min(j + 3, i)]
            s0 = s1 = s2 = s3 = 0.0
            for r in range(len(weighted)):
                s0 += weighted[r] * b0[r]
                s1 += weighted[r] * b1[r]
                s2 += weighted[r] * b2[r]
                s3 += weighted[r] * b3[r]
            sums[i, j] = s0
            sums[i, min(j + 1, i)] = s1
            sums[i, min(j + 2, i)] = s2
            sums[i, min(j + 3, i)] = s3
    for i in range(size):
        for j in range(i):
            sums[j, i] = sums[i, j]
    return sums


@njit(cache=True, nogil=True, fastmath=True)
def _dot(a, b):
    total = 0.0
    for r in range(len(a)):
        total += a[r] * b[r]
    return total


@njit(cache=True, nogil=True)
def _residual(sums, ridges):
    """Residual sum of squares of row 1 of the design on row 0, the constant, and rows from 2 on.

    Overwrites the Gram matrix `sums`. Rows without variance are left out.
    """
    if sums[0, 0] <= 0.0:
        return 0.0
    sweep(sums, 0)
    for k in range(2, len(sums)):
        if sums[k, k] > 1e-9:
            sums[k, k] += ridges[k]
        else:
            sums[k, k] = 0.0
    for k in range(2, len(sums)):
        if sums[k, k] > 1e-9:
            sweep(sums, k)
    return max(sums[1, 1], 0.0)
