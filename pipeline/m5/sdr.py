"""The split rule of the paper: the cut that leaves the least standard deviation.

Targets and weights are rounded to whole numbers and packed two in one, so that one addition per
row and feature counts both, and sums are exact: a histogram is the same in whatever order and by
however many threads its rows were added, and a child's is its parent's minus its sibling's.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

_MOST_WEIGHT = 1 << 25


class Packed(NamedTuple):
    """Rows as whole numbers: weight w, target y. Sums over all rows stay below 2^62."""

    first: np.ndarray
    """int64 [N], w * (y * 2^shift + 1): sums of w y and of w"""
    second: np.ndarray
    """int64 [N], w * y * y"""
    shift: int
    unit: float
    """how much of w is one row of weight 1"""


def pack(target: np.ndarray, weight: np.ndarray, rows: np.ndarray) -> Packed:
    """Packs float64 [N] targets and weights of `rows`, over which the targets have mean 0 and
    standard deviation 1; other rows become zero."""
    everything = len(weight)
    target, weight = target[rows], weight[rows]
    total = weight.sum()
    # Whole weights stay as they are: then a row of weight 2 is exactly two rows.
    whole = total <= _MOST_WEIGHT and np.array_equal(weight, np.rint(weight))
    unit = 1.0 if whole else _MOST_WEIGHT / total
    w = np.rint(weight * unit).astype(np.int64)
    bits = int(w.sum()).bit_length()
    # The sum of w |y| is at most the sum of w, as the mean of y^2 is 1 and in units of 1 / scale.
    scale = float(1 << min(15, 61 - 2 * bits))
    y = np.rint(target * scale).astype(np.int64)
    first, second = np.zeros((2, everything), np.int64)
    first[rows] = w * ((y << bits) + 1)
    second[rows] = w * y * y
    return Packed(first, second, bits, unit)


@njit(cache=True, nogil=True)
def histogram(codes, code_start, first, second, rows):
    """Sums of `first` and `second` by feature and code: int64 [C, 2]."""
    sums = np.zeros((code_start[-1], 2), np.int64)
    for r in range(len(rows)):
        row = rows[r]
        one, two = first[row], second[row]
        for f in range(codes.shape[1]):
            bin = sums[code_start[f] + codes[row, f]]
            bin[0] += one
            bin[1] += two
    return sums


@njit(cache=True, nogil=True)
def spread_left(sums, code_start, shift, least, prices):
    """By feature: how much standard deviation its best cut removes, per price, and that cut.

    sums int64 [C, 2] from `histogram`; least: the fewest of w on either side.
    Writes nothing; returns float64 [F] gains, 0 where there is no cut, int64 [F] cuts (rows with
    codes up to the cut go left) and the standard deviation of all rows.

    Source: Quinlan (1992): sd(T) - sum |T_i| / |T| sd(T_i).
    """
    features = len(code_start) - 1
    gains = np.zeros(features)
    cuts = np.zeros(features, np.int64)
    one = sums[code_start[0] : code_start[1], 0].sum()
    two = sums[code_start[0] : code_start[1], 1].sum()
    whole = _deviation(one, two, shift)
    count = one & ((np.int64(1) << shift) - 1)
    for f in range(features):
        left_one = left_two = np.int64(0)
        least_left = whole
        for code in range(code_start[f], code_start[f + 1] - 1):
            if sums[code, 0] == 0:
                continue
            left_one += sums[code, 0]
            left_two += sums[code, 1]
            left_count = left_one & ((np.int64(1) << shift) - 1)
            if left_count < least:
                continue
            if count - left_count < least:
                break
            left = _deviation(left_one, left_two, shift)
            left += _deviation(one - left_one, two - left_two, shift)
            if left < least_left:
                least_left = left
                cuts[f] = code - code_start[f]
        gains[f] = (whole - least_left) / count / prices[f]
    return gains, cuts, whole / count


@njit(cache=True, nogil=True)
def _deviation(one, two, shift):
    """Standard deviation times count."""
    count = float(one & ((np.int64(1) << shift) - 1))
    total = float(one >> shift)
    return np.sqrt(max(count * float(two) - total * total, 0.0))
