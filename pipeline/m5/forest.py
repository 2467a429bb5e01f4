"""Prediction: many rows, many trees, one kernel; or one row inside somebody else's kernel."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import njit

from pipeline.m5.binning import frozen, parallel
from pipeline.m5.tree import Tree

_BLOCK = 128  # rows that stay in the cache while every tree sees them
_ROWS_PER_TASK = 4096


class Forest(NamedTuple):
    """K bags of trees laid end to end; the value of a bag is the mean of its trees.

    A NamedTuple of arrays, so kernels take it as it is.
    """

    feature: np.ndarray  # int32 [M], -1 at a leaf
    threshold: np.ndarray  # float32 [M]
    right: np.ndarray  # int32 [M], the right child, the left one being next; at a leaf its number
    intercept: np.ndarray  # float64 [L]
    term_start: np.ndarray  # int32 [L+1]
    term_feature: np.ndarray  # int32 [T]
    coefficient: np.ndarray  # float64 [T]
    root: np.ndarray  # int32, by tree
    limits: np.ndarray  # float64 [trees, 2]
    bag_start: np.ndarray  # int32 [K+1], bag k has the trees bag_start[k]:bag_start[k+1]
    num_features: int


def make_forest(bags: Sequence[Sequence[Tree]]) -> Forest:
    """Packs bags of trees for prediction.

    Raises:
        ValueError: a bag is empty, or the trees are for different numbers of features.
    """
    trees = [tree for bag in bags for tree in bag]
    if not trees or not all(bags):
        raise ValueError("every bag needs at least one tree")
    if len({tree.num_features for tree in trees}) > 1:
        raise ValueError("the trees of a forest must be for the same number of features")
    root = np.cumsum([0, *(tree.num_nodes for tree in trees)])[:-1]
    leaf = np.cumsum([0, *(tree.num_leaves for tree in trees)])[:-1]
    term = np.cumsum([0, *(len(tree.coefficient) for tree in trees)])

    def joined(parts, dtype):
        return frozen(np.concatenate(list(parts)), dtype)

    pairs = list(zip(trees, root, leaf, strict=True))
    starts = [tree.term_start[:-1] + t for tree, t in zip(trees, term[:-1], strict=True)]
    return Forest(
        joined((tree.feature for tree in trees), np.int32),
        joined((tree.threshold for tree in trees), np.float32),
        joined((tree.right + np.where(tree.feature < 0, b, a) for tree, a, b in pairs), np.int32),
        joined((tree.intercept for tree in trees), np.float64),
        joined([*starts, term[-1:]], np.int32),
        joined((tree.term_feature for tree in trees), np.int32),
        joined((tree.coefficient for tree in trees), np.float64),
        frozen(root, np.int32),
        frozen([tree.limits for tree in trees], np.float64),
        frozen(np.cumsum([0, *map(len, bags)]), np.int32),
        trees[0].num_features,
    )


@njit(cache=True, nogil=True)
def predict_row(forest, x, bag):
    """The value of one bag for row x float32 [F], float64. For use inside jitted loops."""
    total = 0.0
    for tree in range(forest.bag_start[bag], forest.bag_start[bag + 1]):
        total += _predict_tree(forest, x, tree)
    return total / (forest.bag_start[bag + 1] - forest.bag_start[bag])


@njit(cache=True, nogil=True)
def _predict_tree(forest, x, tree):
    value = _formula(forest, x, tree)
    return min(max(value, forest.limits[tree, 0]), forest.limits[tree, 1])


@njit(cache=True, nogil=True)
def _formula(forest, x, tree):
    """What the formula of the row's leaf gives, before it is clipped."""
    i = forest.root[tree]
    while forest.feature[i] >= 0:
        i = i + 1 if x[forest.feature[i]] <= forest.threshold[i] else forest.right[i]
    leaf = forest.right[i]
    value = forest.intercept[leaf]
    for k in range(forest.term_start[leaf], forest.term_start[leaf + 1]):
        value += forest.coefficient[k] * x[forest.term_feature[k]]
    return value


@njit(cache=True, nogil=True)
def clipped_trees(forest, x, bag):
    """How many trees of a bag are clipped at row x float32 [F]: whose formula leaves the range of
    the training targets by more than a millionth of it."""
    count = 0
    for tree in range(forest.bag_start[bag], forest.bag_start[bag + 1]):
        low, high = forest.limits[tree]
        slack = 1e-6 * (high - low)
        value = _formula(forest, x, tree)
        count += value < low - slack or value > high + slack
    return count


@njit(cache=True, nogil=True)
def predict_rows(forest, X, out):
    """The values of every bag for every row: X float32 [N, F] to out [N, K].

    Neither shapes nor values are checked; `predict` checks shapes.
    """
    for start in range(0, len(X), _BLOCK):
        end = min(start + _BLOCK, len(X))
        for bag in range(out.shape[1]):
            for i in range(start, end):
                out[i, bag] = predict_row(forest, X[i], bag)


def predict(forest: Forest, X: np.ndarray, threads: int = 1) -> np.ndarray:
    """The values of every bag for every row: X [N, F], taken as float32, to float64 [N, K].

    Raises:
        ValueError: X is no table of so many features.
    """
    X = frozen(X, np.float32)
    if X.ndim != 2 or X.shape[1] != forest.num_features:
        raise ValueError(
            f"the trees are for rows of {forest.num_features} features, got X of shape {X.shape}"
        )
    out = np.empty((len(X), len(forest.bag_start) - 1))
    parts = [slice(i, i + _ROWS_PER_TASK) for i in range(0, len(X), _ROWS_PER_TASK)]
    parallel(lambda part: predict_rows(forest, X[part], out[part]), parts, threads)
    return out
