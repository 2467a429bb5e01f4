"""Regressions at every node, and pruning: from the leaves up.

Only leaves read their rows, into a Gram matrix; every other node's is the sum of its children's.
Nodes are numbered in preorder, so that going through the numbers backwards meets children before
their parent, a subtree is a range of numbers, and the left child of i is i + 1.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import njit

from pipeline.m5.binning import parallel
from pipeline.m5.linear import estimated_error, fit_node, gram, squared_error
from pipeline.m5.split import Node, Training

_SUBTREES_PER_THREAD = 8


class Structure(NamedTuple):
    """The tests of a tree by node, M of them in preorder."""

    feature: np.ndarray
    """int32 [M], -1 at a leaf"""
    cut: np.ndarray
    """int32 [M], codes up to this go left"""
    right: np.ndarray
    """int32 [M], the right child"""
    low: np.ndarray
    high: np.ndarray
    """int64 [M], the node's stretch of the tree's rows"""


class Regressions(NamedTuple):
    """What the nodes of a tree fit, in standardised units. A node without a model has zeros."""

    is_leaf: np.ndarray
    """bool [M], after pruning; nodes below a leaf are gone"""
    intercept: np.ndarray
    """float64 [M]"""
    slopes: np.ndarray
    """float64 [M, F]"""
    weight: np.ndarray
    """float64 [M], rows by weight"""
    target: np.ndarray
    """float64 [M], mean target"""
    target_deviation: np.ndarray
    """float64 [M], its standard deviation"""
    means: np.ndarray
    """float64 [M, F], mean of each feature"""
    deviations: np.ndarray
    """float64 [M, F], standard deviation of each feature"""
    squares: np.ndarray
    """float64 [M], residual sum of squares of the node's own model"""
    squares_below: np.ndarray
    """float64 [M], and of the leaves below it"""


def structure(root: Node) -> Structure:
    """Numbers the nodes below `root` in preorder."""
    nodes: list[Node] = []
    right: list[int] = []
    stack = [(root, -1)]
    while stack:
        node, parent = stack.pop()
        if parent >= 0:
            right[parent] = len(nodes)
        if node.left is not None:
            left, other = node.children()
            stack += [(other, len(nodes)), (left, -1)]
        nodes.append(node)
        right.append(0)
    return Structure(
        np.array([node.feature for node in nodes], np.int32),
        np.array([node.cut for node in nodes], np.int32),
        np.array(right, np.int32),
        np.array([node.low for node in nodes], np.int64),
        np.array([node.high for node in nodes], np.int64),
    )


def fit_nodes(
    training: Training, tests: Structure, rows: np.ndarray, held_out: np.ndarray, threads: int
) -> Regressions:
    """Fits every node and prunes.

    rows int32 [n]: as `grow_nodes` left them; held_out int32: rows that only pruning sees.
    """
    fitting = _Fitting(training, tests, rows, held_out)
    subtrees, top = _ranges(tests, len(rows) // (_SUBTREES_PER_THREAD * threads))
    parallel(fitting.fit_all, subtrees, threads)
    fitting.fit_all(top)
    return fitting.out


class _Fitting:
    """What is known about nodes on the way from the leaves to the root.

    Nodes write their own places only, so subtrees may be fitted side by side.
    """

    def __init__(
        self, training: Training, tests: Structure, rows: np.ndarray, held_out: np.ndarray
    ):
        self.training, self.tests, self.rows = training, tests, rows
        count, features = len(tests.feature), len(training.spread)
        self.on_path = _on_path(tests, features)
        self.used = np.zeros((count, features), np.bool_)  # by tests or models from the node down
        self.parameters = np.zeros(count)
        self.held_squares = np.zeros(count)
        leaves = _route(training.table.codes, tests.feature, tests.cut, tests.right, held_out)
        self.held_out = held_out[np.argsort(leaves, kind="stable")]
        self.held_leaves = np.sort(leaves)
        # Gram matrices of nodes whose parent is still to come: of their rows, and those held out.
        self.waiting: dict[int, tuple[np.ndarray, np.ndarray | None]] = {}
        numbers = (np.zeros(count) for _ in range(6))
        tables = (np.zeros((count, features)) for _ in range(3))
        self.out = Regressions(
            is_leaf=tests.feature < 0,
            intercept=next(numbers),
            slopes=next(tables),
            weight=next(numbers),
            target=next(numbers),
            target_deviation=next(numbers),
            means=next(tables),
            deviations=next(tables),
            squares=next(numbers),
            squares_below=next(numbers),
        )

    def fit_all(self, nodes: Sequence[int]) -> None:
        """Fits nodes, ascending and with all below them that have not been fitted."""
        for i in reversed(nodes):
            self._fit(i)

    def _fit(self, i: int) -> None:
        """Fits node i, whose children have been fitted, and makes it a leaf if that is better."""
        tests, out = self.tests, self.out
        feature, right = int(tests.feature[i]), int(tests.right[i])
        own, held = self.waiting[i] = self._products(i)
        if feature >= 0:
            self.used[i] = self.used[i + 1] | self.used[right]
            self.used[i, feature] = True
        self._fit_model(i, own)
        _describe(own, i, out)
        in_model = out.slopes[i] != 0.0
        if held is not None:
            self.held_squares[i] = squared_error(held, out.intercept[i], out.slopes[i])
        if feature < 0 or self._is_better_as_leaf(i, i + 1, right):
            out.is_leaf[i] = True
            out.squares_below[i] = out.squares[i]
            self.used[i] = in_model
        else:
            out.squares_below[i] = out.squares_below[i + 1] + out.squares_below[right]
            self.used[i] |= in_model

    def _products(self, i: int) -> tuple[np.ndarray, np.ndarray | None]:
        tests, table = self.tests, self.training.table
        if tests.feature[i] < 0:
            own = gram(table, self.rows[tests.low[i] : tests.high[i]])
            if self.training.options.prune != "holdout":
                return own, None
            first, last = np.searchsorted(self.held_leaves, [i, i + 1])
            return own, gram(table, self.held_out[first:last])
        left, left_held = self.waiting.pop(i + 1)
        right, right_held = self.waiting.pop(int(tests.right[i]))
        if left_held is None or right_held is None:
            return left + right, None
        return left + right, left_held + right_held

    def _fit_model(self, i: int, own: np.ndarray) -> None:
        training, options, out = self.training, self.training.options, self.out
        out.intercept[i], out.squares[i], self.parameters[i] = fit_node(
            own,
            training.spread,
            float(options.ridge),
            float(options.multiplier),
            training.prices,
            _allowed(options.leaf_features(), self.on_path[i], self.used[i]),
            out.slopes[i],
        )

    def _is_better_as_leaf(self, i: int, left: int, right: int) -> bool:
        """Is node i better off without its children? If not, it takes over what they are worth."""
        options, out = self.training.options, self.out
        if options.prune == "none":
            return False
        if options.prune == "holdout":
            below = self.held_squares[left] + self.held_squares[right]
            if self.held_squares[i] <= below:
                return True
            self.held_squares[i] = below
            return False
        n, multiplier = float(out.weight[i]), float(options.multiplier)
        price = options.split_price * self.training.prices[self.tests.feature[i]]
        parameters = self.parameters[left] + self.parameters[right] + price
        squares = out.squares_below[left] + out.squares_below[right]
        own = estimated_error(out.squares[i], n, self.parameters[i], multiplier)
        if own <= estimated_error(squares, n, parameters, multiplier):
            return True
        self.parameters[i] = parameters
        return False


def _allowed(which: str, on_path: np.ndarray, used: np.ndarray) -> np.ndarray:
    """Which features a node's model may use, bool [F]."""
    if which == "all":
        return np.ones_like(used)
    return used | on_path if which == "path" else used


def _on_path(tests: Structure, features: int) -> np.ndarray:
    """The features tested above each node, bool [M, F]."""
    out = np.zeros((len(tests.feature), features), np.bool_)
    for i in np.flatnonzero(tests.feature >= 0):
        for child in (i + 1, tests.right[i]):
            out[child] = out[i]
            out[child, tests.feature[i]] = True
    return out


def _ranges(tests: Structure, most: int) -> tuple[list[range], list[int]]:
    """The largest subtrees with at most so many rows, large ones first, and the nodes above."""
    subtrees, top = [], []
    stack = [(0, len(tests.feature))]
    while stack:
        first, end = stack.pop()
        right = int(tests.right[first])
        if tests.feature[first] < 0 or tests.high[first] - tests.low[first] <= most:
            subtrees.append(range(first, end))
        else:
            top.append(first)
            stack += [(first + 1, right), (right, end)]
    subtrees.sort(key=lambda s: tests.low[s[0]] - tests.high[s[0]])
    return subtrees, sorted(top)


def _describe(sums: np.ndarray, i: int, out: Regressions) -> None:
    n = sums[0, 0]
    means = sums[0, 1:] / n
    deviations = np.sqrt(np.maximum(np.diag(sums)[1:] / n - means * means, 0.0))
    out.weight[i] = n
    out.target[i], out.target_deviation[i] = means[-1], deviations[-1]
    out.means[i], out.deviations[i] = means[:-1], deviations[:-1]


@njit(cache=True, nogil=True)
def _route(codes, feature, cut, right, rows):
    """The leaf of each row, int64."""
    leaves = np.empty(len(rows), np.int64)
    for r in range(len(rows)):
        i = 0
        while feature[i] >= 0:
            i = i + 1 if codes[rows[r], feature[i]] <= cut[i] else right[i]
        leaves[r] = i
    return leaves
