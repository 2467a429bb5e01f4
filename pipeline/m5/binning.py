"""Features as small whole numbers: done once, shared by every tree, kept while rows are added.

A feature with at most 255 distinct values gets one code per value; others get quantile bins. Code c
holds the values above edge c - 1 and up to edge c. A tree learns from codes alone: its linear
models see each value as the mean of its bin, in units of the feature's standard deviation.

Letters in shapes: N rows, F features, E edges of all features together, C codes of all together.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import njit

EXACT_CODES = 255
SAMPLE_ROWS = 200_000
CHUNK_ROWS = 1 << 15
_CELLS = 512  # of the lookup grid of one feature


@dataclass(frozen=True, eq=False)
class Binning:
    """Where the bins of each feature end, and what a code stands for.

    edges         float32 [E]  ascending within a feature
    edge_start    int32 [F+1]  feature f's edges are edges[edge_start[f]:edge_start[f+1]]
    code_start    int32 [F+1]  where feature f's codes begin in `values`; one more code than edges
    values        float64 [C]  mean of a bin's rows, standardised: (mean - center) / scale
    center, scale float64 [F]  mean and standard deviation of the feature; scale is 1 for a constant
    """

    edges: np.ndarray
    edge_start: np.ndarray
    code_start: np.ndarray
    values: np.ndarray
    center: np.ndarray
    scale: np.ndarray

    @property
    def num_features(self) -> int:
        return len(self.center)

    @staticmethod
    def fit(X: np.ndarray, max_bins: int = 64, threads: int = 1) -> "Binning":
        """Finds bins from float32 [N, F], or from 200,000 of its rows where there are more.

        Raises:
            ValueError: X is no table of finite numbers.
        """
        X = check_table(X)
        if not len(X):
            raise ValueError("bins cannot be found from 0 rows")
        sample = _sample(len(X))
        blocks = [slice(start, start + 16) for start in range(0, X.shape[1], 16)]

        def fit_block(block):
            columns = np.ascontiguousarray((X if sample is None else X[sample])[:, block].T)
            return [_fit_feature(column, max_bins) for column in columns]

        features = [f for block in parallel(fit_block, blocks, threads) for f in block]
        edges, means, center, scale = zip(*features, strict=True)
        values = [(m - c) / s for m, c, s in zip(means, center, scale, strict=True)]
        return Binning(
            frozen(np.concatenate(edges), np.float32),
            frozen(np.cumsum([0, *map(len, edges)]), np.int32),
            frozen(np.cumsum([0, *map(len, means)]), np.int32),
            frozen(np.concatenate(values), np.float64),
            frozen(center, np.float64),
            frozen(scale, np.float64),
        )

    def encode(self, X: np.ndarray, threads: int = 1) -> np.ndarray:
        """The codes uint8 [N, F] of float32 [N, F]; values not seen before go to the nearest bin.

        Raises:
            ValueError: X has another number of columns, or holds a value that is not finite.
        """
        X = check_table(X)
        if X.shape[1] != self.num_features:
            raise ValueError(
                f"the bins are for {self.num_features} features, but X has {X.shape[1]} columns"
            )
        codes = np.empty(X.shape, np.uint8)
        grid = self._grid
        parallel(
            lambda part: _encode(X[part], self.edges, self.edge_start, *grid, codes[part]),
            chunks(len(X)),
            threads,
        )
        return frozen(codes, np.uint8)

    def beside(self, other: "Binning") -> "Binning":
        """The bins of tables that have the other's columns behind the own ones."""

        def joined(name: str, dtype: type) -> np.ndarray:
            return frozen(np.concatenate([getattr(self, name), getattr(other, name)]), dtype)

        return Binning(
            joined("edges", np.float32),
            frozen(
                np.append(self.edge_start, self.edge_start[-1] + other.edge_start[1:]), np.int32
            ),
            frozen(
                np.append(self.code_start, self.code_start[-1] + other.code_start[1:]), np.int32
            ),
            joined("values", np.float64),
            joined("center", np.float64),
            joined("scale", np.float64),
        )

    @property
    def _grid(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Lookup grid: the lowest edge's value and cells per unit [F], edges before a cell [F, +1].

        A cell's number grows with the value, so an edge of a lower cell lies below the value and an
        edge of a higher cell above; only edges in the value's own cell need comparing.
        """
        low = np.zeros(self.num_features)
        rate = np.zeros(self.num_features)
        before = np.zeros((self.num_features, _CELLS + 1), np.uint8)
        for f in range(self.num_features):
            edges = self.edges[self.edge_start[f] : self.edge_start[f + 1]].astype(np.float64)
            if len(edges):
                low[f] = edges[0]
                span = edges[-1] - edges[0]
                rate[f] = (_CELLS - 2) / span if span > 0 else 0.0
                cell = np.clip((edges - low[f]) * rate[f] + 1.0, 0.0, _CELLS - 1.0).astype(int)
                before[f, 1:] = np.cumsum(np.bincount(cell, minlength=_CELLS))
        return frozen(low, np.float64), frozen(rate, np.float64), frozen(before, np.uint8)


class Binned(NamedTuple):
    """Rows as codes, with the binning that made them. Trees over any of its rows share it."""

    binning: Binning
    codes: np.ndarray
    """uint8 [N, F]"""

    @staticmethod
    def fit(X: np.ndarray, max_bins: int = 64, threads: int = 1) -> "Binned":
        """Finds bins for the rows X, float32 [N, F], and encodes them."""
        binning = Binning.fit(X, max_bins, threads)
        return Binned(binning, binning.encode(X, threads))

    def append(self, X: np.ndarray, threads: int = 1) -> "Binned":
        """The same bins with the rows X behind the ones there are."""
        codes = np.concatenate([self.codes, self.binning.encode(X, threads)])
        return Binned(self.binning, frozen(codes, np.uint8))

    def keep(self, rows: Any) -> "Binned":
        """The same bins with only these rows, given as a slice, a mask or indices."""
        return Binned(self.binning, frozen(self.codes[rows], np.uint8))


def _sample(n: int) -> np.ndarray | None:
    """Rows to find bins from, ascending; None for all."""
    if n <= SAMPLE_ROWS:
        return None
    return np.sort(np.random.default_rng(0).choice(n, SAMPLE_ROWS, replace=False, shuffle=False))


def _fit_feature(column: np.ndarray, max_bins: int) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Edges, bin means, mean and standard deviation of one feature."""
    column = np.sort(column)
    starts = np.flatnonzero(np.concatenate([[True], column[1:] != column[:-1]]))
    if len(starts) > EXACT_CODES:
        # A bin ends with the last row that has the value found at its quantile.
        wanted = column[(np.arange(1, max_bins) * len(column)) // max_bins - 1]
        ends = np.unique(np.searchsorted(column, wanted, side="right"))
        starts = np.concatenate([[0], ends[ends < len(column)]])
    below, above = column[starts[1:] - 1], column[starts[1:]]
    middle = (below.astype(np.float64) / 2 + above.astype(np.float64) / 2).astype(np.float32)
    edges = np.where(middle < above, middle, below)
    exact = column.astype(np.float64)
    center = float(exact.mean())
    scale = float(exact.std())
    # A constant's spread is rounding only, never exactly zero.
    if not scale > 1e-12 * abs(center):
        scale = 1.0
    counts = np.diff(np.append(starts, len(column)))
    return edges, np.add.reduceat(exact, starts) / counts, center, scale


@njit(cache=True, nogil=True)
def _encode(X, edges, edge_start, low, rate, before, codes):
    for i in range(X.shape[0]):
        for f in range(X.shape[1]):
            value = X[i, f]
            cell = int(min(max((value - low[f]) * rate[f] + 1.0, 0.0), before.shape[1] - 2.0))
            # Edges first .. last - 1 share the value's cell.
            first = np.int64(before[f, cell])
            last = np.int64(before[f, cell + 1])
            start = edge_start[f]
            while first < last:
                middle = (first + last) >> 1
                if edges[start + middle] < value:
                    first = middle + 1
                else:
                    last = middle
            codes[i, f] = first


@njit(cache=True, nogil=True)
def _first_not_finite(X):
    """Index into X.ravel() of a value that is not finite, or -1."""
    for i in range(X.shape[0]):
        row = X[i]
        total = np.float32(0.0)
        for f in range(len(row)):
            total += row[f] * np.float32(0.0)
        if total != 0.0 or total != total:
            for f in range(len(row)):
                if not np.isfinite(row[f]):
                    return i * X.shape[1] + f
    return -1


def check_table(X: np.ndarray, names: list[str] | None = None) -> np.ndarray:
    """X as read-only float32 [N, F].

    Raises:
        ValueError: X is not two-dimensional, has no columns, or a value is not a finite float32;
            the message names the row and column.
    """
    X = np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, rows and features, got shape {X.shape}")
    if X.shape[1] == 0:
        raise ValueError(f"X has no columns: 0 feature(s) (shape={X.shape}) while 1 is required")
    with np.errstate(over="ignore"):
        table = frozen(X, np.float32)
    where = _first_not_finite(table)
    if where >= 0:
        row, column = divmod(where, X.shape[1])
        name = f"{column}" if names is None else f"{names[column]!r}"
        raise ValueError(
            f"row {row} of column {name} is {X[row, column]}; "
            "NaN, inf and numbers beyond float32 cannot be used"
        )
    return table


def frozen(array: Any, dtype: Any) -> np.ndarray:
    """A read-only, C-contiguous array.

    Numba compiles a kernel again for read-only arrays, which is what shared memory hands out; so
    all that kernels only read is read-only.
    """
    view = np.ascontiguousarray(array, dtype).view()
    view.flags.writeable = False
    return view


def chunks(n: int) -> list[slice]:
    """Slices of rows that one thread works through; they do not depend on how many threads."""
    return [slice(start, start + CHUNK_ROWS) for start in range(0, n, CHUNK_ROWS)]


def parallel(function: Callable, tasks: Iterable, threads: int) -> list:
    """[function(task) for task in tasks], over so many threads."""
    tasks = list(tasks)
    if threads == 1 or len(tasks) < 2:
        return [function(task) for task in tasks]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, tasks))
