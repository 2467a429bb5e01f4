"""Regressions at every node, and pruning: from the leaves up.

Only leaves read their rows, into a Gram matrix; every other node's is the sum of its children's.
Nodes are numbered in preorder, so that going through the numbers backwards meets children before
their parent, a subtree is a range of numbers, and the left child of i is i + 1.
"""

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
    options = training.options
    count, features = len(tests.feature), len(training.spread)
    on_path = _on_path(tests, features)
    used = np.zeros((count, features), np.bool_)  # below the node, by tests or models
    parameters = np.zeros(count)
    held_squares = np.zeros(count)
    out = Regressions(
        tests.feature < 0,
        np.zeros(count),
        np.zeros((count, features)),
        np.zeros(count),
        np.zeros(count),
        np.zeros(count),
        np.zeros((count, features)),
        np.zeros((count, features)),
        np.zeros(count),
        np.zeros(count),
    )
    held_leaves = _route(training.table.codes, tests.feature, tests.cut, tests.right, held_out)
    held_out = held_out[np.argsort(held_leaves, kind="stable")]
    held_leaves = np.sort(held_leaves)
    grams: dict[int, tuple[np.ndarray, np.ndarray | None]] = {}

    def products(i):
        """The node's Gram matrix, and that of its held-out rows."""
        if tests.feature[i] >= 0:
            left, right = grams.pop(i + 1), grams.pop(int(tests.right[i]))
            held = left[1] + right[1] if left[1] is not None else None
            return left[0] + right[0], held
        held = None
        if options.prune == "holdout":
            first, last = np.searchsorted(held_leaves, [i, i + 1])
            held = gram(training.table, held_out[first:last])
        return gram(training.table, rows[tests.low[i] : tests.high[i]]), held

    def prefers_own_model(i, held):
        """Is the node better off as a leaf? Its children have been asked before."""
        left, right = i + 1, int(tests.right[i])
        if options.prune == "none":
            return False
        if options.prune == "holdout":
            own = squared_error(held, out.intercept[i], out.slopes[i])
            below = held_squares[left] + held_squares[right]
            held_squares[i] = min(own, below)
            return own <= below
        n = float(out.weight[i])
        price = options.split_price * training.prices[tests.feature[i]]
        below = parameters[left] + parameters[right] + price
        own_error = estimated_error(out.squares[i], n, parameters[i], float(options.multiplier))
        below_error = estimated_error(
            out.squares_below[left] + out.squares_below[right],
            n,
            below,
            float(options.multiplier),
        )
        if own_error <= below_error:
            return True
        parameters[i] = below
        return False

    def fit(i):
        own, held = grams[i] = products(i)
        feature = tests.feature[i]
        if feature >= 0:
            used[i] = used[i + 1] | used[tests.right[i]]
            used[i, feature] = True
        allowed = _allowed(options.leaf_features(), on_path[i], used[i])
        out.intercept[i], out.squares[i], parameters[i] = fit_node(
            own,
            training.spread,
            float(options.ridge),
            float(options.multiplier),
            training.prices,
            allowed,
            out.slopes[i],
        )
        _describe(own, i, out)
        if feature < 0 and held is not None:
            held_squares[i] = squared_error(held, out.intercept[i], out.slopes[i])
        if feature < 0 or prefers_own_model(i, held):
            out.is_leaf[i] = True
            out.squares_below[i] = out.squares[i]
            used[i] = out.slopes[i] != 0.0
        else:
            out.squares_below[i] = out.squares_below[i + 1] + out.squares_below[tests.right[i]]
            used[i] |= out.slopes[i] != 0.0

    subtrees, top = _ranges(tests, len(rows) // (_SUBTREES_PER_THREAD * threads))
    parallel(lambda subtree: [fit(i) for i in reversed(subtree)], subtrees, threads)
    for i in reversed(top):
        fit(i)
    return out


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
