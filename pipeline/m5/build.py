"""From rows to trees: what one tree and one bag are made of."""

from dataclasses import replace
from typing import Any

import numpy as np
from numba import njit

from pipeline.m5.binning import Binned, frozen, parallel
from pipeline.m5.groups import draw_rows, number_groups, parameter_prices
from pipeline.m5.linear import Table, value_of
from pipeline.m5.options import Options
from pipeline.m5.regress import Structure, fit_nodes, structure
from pipeline.m5.score import sample
from pipeline.m5.split import Training, grow_nodes
from pipeline.m5.tree import Tree, assemble

_SPREAD_ROWS = 1 << 16
_MOST_ROWS = 1 << 25
_HEAVIEST = 1e20  # and its inverse: the scores of a split are float32
_LIGHTEST = 1e-12  # of the largest weight; less is below the rounding of sums


def grow_bag(
    binned: Binned,
    y: np.ndarray,
    weight: np.ndarray | None = None,
    groups: np.ndarray | None = None,
    options: Options | None = None,
    threads: int = 1,
) -> list[Tree]:
    """Trees over the same rows, each with its own draw of them; see `grow`."""
    options = options or Options()
    y, weight, groups = check_rows(len(binned.codes), y, weight, groups)
    if groups is not None:
        groups = number_groups(groups)
    members = [
        replace(options, seed=(int(options.seed) + k) % (1 << 63))
        for k in range(options.bag_size(groups is not None))
    ]
    inside = max(threads // len(members), 1)  # threads that one tree may use
    return parallel(
        lambda member: grow(binned, y, weight, groups, member, inside), members, threads
    )


def grow(
    binned: Binned,
    y: np.ndarray,
    weight: np.ndarray | None = None,
    groups: np.ndarray | None = None,
    options: Options | None = None,
    threads: int = 1,
) -> Tree:
    """Grows, fits, prunes and smooths one tree.

    Args:
        binned: N rows of F features.
        y: [N], the target.
        weight: [N] or None for ones: a row of weight 2 counts as two rows, of weight 0, or of less
            than 1e-12 of the largest weight, as none.
        groups: [N] or None: which game each row is from, as numbers or names.
        options: None for the defaults.
        threads: changes the time, and nothing else.

    Raises:
        ValueError: lengths differ, a number is not finite, or no row has weight.
    """
    options = options or Options()
    y, weight, groups = check_rows(len(binned.codes), y, weight, groups)
    group = None if groups is None else number_groups(groups)
    rng = np.random.default_rng(options.seed)
    rows = np.flatnonzero(weight > 0.0).astype(np.int32)
    if options.bootstrap:
        times = _bootstrap(rng, rows if group is None else group[rows])
        weight = weight.copy()
        weight[rows] *= times
        rows = rows[times > 0]
    if group is not None and options.rows_per_group is not None:
        sizes = np.bincount(group[rows], minlength=group.max() + 1)
        rows = draw_rows(group, rows, sizes, options.rows_per_group, np.uint64(options.seed))
    if len(rows) < len(y):
        binned, y, weight = binned.keep(rows), y[rows], weight[rows]
        group = None if group is None else number_groups(group[rows])
    rows, held_out = _hold_out(rng, group, len(y), options)
    center, scale = _center_and_scale(y[rows], weight[rows])
    limits = (float(y[rows].min()), float(y[rows].max()))
    table = Table(
        binned.codes,
        binned.binning.code_start,
        binned.binning.values,
        frozen((y - center) / scale, np.float64),
        frozen(weight, np.float64),
    )
    training = _training(table, group, rows, options)
    tests = structure(grow_nodes(training, rows, threads))
    fitted = fit_nodes(training, tests, rows, held_out, threads)
    groups_by_node = _groups_by_node(tests, rows, group)
    return assemble(
        binned.binning, tests, fitted, groups_by_node, center, scale, limits, options.smoothing
    )


def _training(
    table: Table, group: np.ndarray | None, rows: np.ndarray, options: Options
) -> Training:
    spread = _spreads(table, sample(rows, _SPREAD_ROWS, np.uint64(options.seed)))
    prices = np.ones(len(spread))
    if group is not None and options.group_price:
        ridge, multiplier = float(options.ridge), float(options.multiplier)
        prices = parameter_prices(table, rows, group, spread, ridge, multiplier, options.seed)
    return Training(
        table,
        None if group is None else frozen(group, np.int32),
        frozen(spread, np.float64),
        frozen(prices, np.float64),
        options.least_leaf(float(table.weight[rows].sum())),
        float(table.weight.max()),
        options,
    )


def check_rows(
    rows: int, y: Any, weight: Any, groups: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Targets and weights (ones for None) as float64 [rows], and groups as given [rows].

    Raises:
        ValueError: as `grow` does.
    """
    if rows > _MOST_ROWS:
        raise ValueError(f"a tree takes at most {_MOST_ROWS} rows, got {rows}")
    y = _numbers("y", y, rows)
    weight = np.ones(rows) if weight is None else _numbers("weight", weight, rows)
    if (weight < 0.0).any():
        raise ValueError(f"weights must not be negative, but row {np.argmax(weight < 0.0)}'s is")
    if not weight.any():
        raise ValueError("the weight of every row is zero; at least one must be above")
    largest = float(weight.max())
    if not 1 / _HEAVIEST <= largest <= _HEAVIEST:
        raise ValueError(
            f"the largest weight is {largest:g}, but weights count rows; scale them so that it "
            f"lies in [{1 / _HEAVIEST:g}, {_HEAVIEST:g}]"
        )
    weight = np.where(weight < _LIGHTEST * largest, 0.0, weight)
    if groups is not None:
        groups = np.asarray(groups)
        if groups.shape != (rows,):
            raise ValueError(
                f"groups must have one entry per row, {rows}, got shape {groups.shape}"
            )
    return y, weight, groups


def _numbers(name: str, values: Any, rows: int) -> np.ndarray:
    values = np.asarray(values, np.float64)
    if values.shape != (rows,):
        raise ValueError(f"{name} must have one number per row, {rows}, got shape {values.shape}")
    if not np.isfinite(values).all():
        row = int(np.argmax(~np.isfinite(values)))
        raise ValueError(f"{name} of row {row} is {values[row]}; NaN and inf cannot be used")
    return values


def _bootstrap(rng: np.random.Generator, units: np.ndarray) -> np.ndarray:
    """How often each row comes up, int64 [n], if as many units are drawn as there are.

    units [n]: the row's group, or its own number.
    """
    there, unit = np.unique(units, return_inverse=True)
    draws = rng.integers(len(there), size=len(there))
    return np.bincount(draws, minlength=len(there))[unit]


def _hold_out(
    rng: np.random.Generator, group: np.ndarray | None, n: int, options: Options
) -> tuple[np.ndarray, np.ndarray]:
    """Rows to grow from and rows held out for pruning, int32, whole groups together."""
    everything = np.arange(n, dtype=np.int32)
    if options.prune != "holdout":
        return everything, everything[:0]
    unit = everything if group is None else group
    many = int(unit.max()) + 1
    held = np.zeros(many, np.bool_)
    # At least one unit stays to grow from.
    held[rng.permutation(many)[: min(int(np.ceil(options.holdout * many)), many - 1)]] = True
    return everything[~held[unit]], everything[held[unit]]


def _center_and_scale(y: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    # Divided by the largest first, so that squares of large numbers stay finite.
    unit = max(float(np.abs(y).max()), 1e-300)
    center = float(np.average(y / unit, weights=weight))
    scale = float(np.sqrt(np.average((y / unit - center) ** 2, weights=weight)))
    # Equal targets differ from their mean by rounding alone.
    return center * unit, scale * unit if scale > 1e-12 else 1.0


@njit(cache=True, nogil=True)
def _spreads(table, rows):
    """Variance of every standardised feature, float64 [F]."""
    features = table.codes.shape[1]
    sums = np.zeros(features)
    squares = np.zeros(features)
    total = 0.0
    for r in range(len(rows)):
        row = rows[r]
        w = table.weight[row]
        total += w
        for f in range(features):
            z = value_of(table, row, f)
            sums[f] += w * z
            squares[f] += w * z * z
    means = sums / total
    return np.maximum(squares / total - means * means, 0.0)


def _groups_by_node(tests: Structure, rows: np.ndarray, group: np.ndarray | None) -> np.ndarray:
    """Distinct groups by node, int32 [M]; zeros without groups."""
    if group is None:
        return np.zeros(len(tests.low), np.int32)
    return _count_groups(tests.low, tests.high, rows, group, int(group.max()) + 1)


@njit(cache=True, nogil=True)
def _count_groups(low, high, rows, group, many):
    counts = np.zeros(len(low), np.int32)
    last_node = np.full(many, -1, np.int32)
    for i in range(len(low)):
        for r in range(low[i], high[i]):
            g = group[rows[r]]
            if last_node[g] != i:
                last_node[g] = i
                counts[i] += 1
    return counts
