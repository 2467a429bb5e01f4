"""Splitting: which rows go where. Nothing is fitted here.

A node is a stretch of one array of row numbers; splitting it reorders its stretch. Large nodes are
split one after the other, their histograms counted by all threads; once there are enough nodes,
threads grow whole subtrees each by itself. Every step depends on the node's rows alone, so the
tree is the same for any number of threads.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from pipeline.m5.binning import CHUNK_ROWS, chunks, parallel
from pipeline.m5.groups import enough_groups
from pipeline.m5.linear import Table
from pipeline.m5.options import Options
from pipeline.m5.score import score_cuts, total_weight
from pipeline.m5.sdr import Packed, histogram, pack, spread_left

_SUBTREES_PER_THREAD = 8
_TRIED = 8  # best features of a node that are tried before it stays a leaf


class Training(NamedTuple):
    """What one tree is grown from. Letters as in `binning`."""

    table: Table
    group: np.ndarray | None
    """int32 [N]"""
    spread: np.ndarray
    """float64 [F], variance of each standardised feature over the tree's rows"""
    prices: np.ndarray
    """float64 [F], how many parameters each feature counts as"""
    least: float
    """fewest rows of a leaf"""
    heaviest: float
    """the largest weight"""
    options: Options


@dataclass(slots=True, eq=False)
class Node:
    """Rows low .. high - 1 of the tree's row array, and how they are split."""

    low: int
    high: int
    feature: int = -1  # of a leaf
    cut: int = 0  # rows with codes up to this go left
    left: "Node | None" = None
    right: "Node | None" = None

    @property
    def size(self) -> int:
        return self.high - self.low

    def children(self) -> tuple["Node", "Node"]:
        assert self.left is not None and self.right is not None
        return self.left, self.right


def grow_nodes(training: Training, rows: np.ndarray, threads: int) -> Node:
    """The root of an unpruned tree over int32 [n] rows, which it reorders."""
    root = Node(0, len(rows))
    rule = (_Sdr if training.options.split == "sdr" else _Score)(training, rows)
    frontier: list[tuple[Node, Any]] = [(root, rule.start(root, threads))]
    if threads > 1:
        while 0 < len(frontier) < _SUBTREES_PER_THREAD * threads:
            frontier.sort(key=lambda item: item[0].size)
            if frontier[-1][0].size < CHUNK_ROWS // 8:
                break
            node, state = frontier.pop()
            frontier += rule.split(node, state, threads)

    def grow_below(item):
        stack = [item]
        while stack:
            node, state = stack.pop()
            stack += rule.split(node, state, 1)

    parallel(grow_below, sorted(frontier, key=lambda item: -item[0].size), threads)
    return root


class _Score:
    """Splits by `score_cuts`; a node needs no state besides itself."""

    def __init__(self, training: Training, rows: np.ndarray):
        self.training = training
        self.rows = rows

    def start(self, root: Node, threads: int) -> None:
        return None

    def split(self, node: Node, state: None, threads: int) -> list[tuple[Node, Any]]:
        """Splits the node if that pays; the children that might be split in turn."""
        training = self.training
        rows = self.rows[node.low : node.high]
        # Which rows of a large node are looked at depends on the seed and on where its rows are.
        seed = int(training.options.seed) * 0x9E3779B97F4A7C15 + (node.low << 32) + node.high
        features, cuts = score_cuts(
            training.table,
            rows,
            training.spread,
            training.prices,
            float(training.options.ridge),
            training.least,
            np.uint64(seed % (1 << 64)),
        )
        if not _take_first(training, self.rows, node, zip(features, cuts, strict=True)):
            return []
        return [(child, None) for child in node.children() if _divisible(training, child)]


class _Sdr:
    """Splits by `spread_left`; a node comes with its histogram."""

    def __init__(self, training: Training, rows: np.ndarray):
        self.training = training
        self.rows = rows
        self.packed: Packed = pack(training.table.target, training.table.weight, rows)
        self.least_spread = 0.0

    def start(self, root: Node, threads: int) -> np.ndarray:
        sums = self._histogram(root, threads)
        spread = self._spread_left(sums)[2]
        # Rounded targets that are all but equal have a deviation of about half a unit.
        self.least_spread = max(spread * self.training.options.min_spread, 1.0)
        return sums

    def split(self, node: Node, sums: np.ndarray, threads: int) -> list[tuple[Node, Any]]:
        """Splits the node; the children that might be split in turn, the smaller one last."""
        gains, cuts, spread = self._spread_left(sums)
        if spread < self.least_spread:
            return []
        best = np.argsort(-gains, kind="stable")[:_TRIED]
        tries = ((f, cuts[f]) for f in best if gains[f] > 0.0)
        if not _take_first(self.training, self.rows, node, tries):
            return []
        small, large = sorted(node.children(), key=lambda child: child.size)
        wanted = []
        if _divisible(self.training, large):
            of_small = self._histogram(small, threads)
            wanted.append((large, sums - of_small))
            if _divisible(self.training, small):
                wanted.append((small, of_small))
        elif _divisible(self.training, small):
            wanted.append((small, self._histogram(small, threads)))
        return wanted

    def _histogram(self, node: Node, threads: int) -> np.ndarray:
        codes, code_start = self.training.table.codes, self.training.table.code_start
        rows = self.rows[node.low : node.high]
        packed = self.packed
        parts = parallel(
            lambda part: histogram(codes, code_start, packed.first, packed.second, rows[part]),
            chunks(len(rows)) if threads > 1 else [slice(None)],
            threads,
        )
        return parts[0] if len(parts) == 1 else sum(parts)

    def _spread_left(self, sums: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        # Where all rows together weigh less than a leaf needs, any number that no side reaches.
        least = int(min(np.ceil(self.training.least * self.packed.unit), 2.0**62))
        code_start = self.training.table.code_start
        return spread_left(sums, code_start, self.packed.shift, least, self.training.prices)


def _take_first(training: Training, rows: np.ndarray, node: Node, tries: Iterable) -> bool:
    """Splits the node by the first (feature, cut) that leaves both sides large enough."""
    inside = rows[node.low : node.high]
    for feature, cut in tries:
        middle = partition(training.table.codes, inside, feature, cut)
        sides = inside[:middle], inside[middle:]
        if all(_large_enough(training, side) for side in sides):
            node.feature, node.cut = int(feature), int(cut)
            node.left = Node(node.low, node.low + middle)
            node.right = Node(node.low + middle, node.high)
            return True
    return False


def _large_enough(training: Training, rows: np.ndarray) -> bool:
    # The smallest shortfall is rounding of the sum.
    if total_weight(training.table.weight, rows) < training.least * (1 - 1e-9):
        return False
    least = training.options.min_groups
    return training.group is None or enough_groups(training.group, rows, least)


def _divisible(training: Training, node: Node) -> bool:
    """Could two leaves of the least size come of it, as far as its number of rows tells?"""
    return node.size >= 2 and node.size * training.heaviest >= 2 * training.least


@njit(cache=True, nogil=True)
def partition(codes, rows, feature, cut):
    """Rows with codes up to the cut first, each side in its old order; how many those are."""
    behind = np.empty(len(rows), rows.dtype)
    count = 0
    for r in range(len(rows)):
        row = rows[r]
        if codes[row, feature] <= cut:
            rows[count] = row
            count += 1
        else:
            behind[r - count] = row
    rows[count:] = behind[: len(rows) - count]
    return count
