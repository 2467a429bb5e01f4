"""What changed from one bag of trees to the next, grown anew from other rows."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pipeline.m5.tree import Tree

LEAF, NEW, MOVED, KEPT = -1, 0, 1, 2


class Changes(NamedTuple):
    """How many tests of a bag stood in the one before, whatever their place."""

    kept: int  # the same feature at the same threshold
    moved: int  # the same feature at another threshold
    new: int  # a feature that was not tested
    gone: int  # tests of the bag before that are not made any more


def status_of_tests(trees: Sequence[Tree], before: Sequence[Tree]) -> list[np.ndarray]:
    """Of each tree int8 [M]: KEPT, MOVED or NEW at its tests, LEAF at its leaves."""
    old = _tests(before)
    features = {feature for feature, _ in old}
    out = []
    for tree in trees:
        status = np.full(tree.num_nodes, LEAF, np.int8)
        for node in np.flatnonzero(tree.feature >= 0):
            test = (int(tree.feature[node]), float(tree.threshold[node]))
            status[node] = KEPT if test in old else MOVED if test[0] in features else NEW
        out.append(status)
    return out


def changes(trees: Sequence[Tree], before: Sequence[Tree]) -> Changes:
    """Counts of tests; those of all trees of a bag together."""
    status = np.concatenate([np.zeros(0, np.int8), *status_of_tests(trees, before)])
    now = _tests(trees)
    gone = sum(
        (int(tree.feature[node]), float(tree.threshold[node])) not in now
        for tree in before
        for node in np.flatnonzero(tree.feature >= 0)
    )
    kept, moved, new = (int((status == kind).sum()) for kind in (KEPT, MOVED, NEW))
    return Changes(kept, moved, new, gone)


def _tests(trees: Sequence[Tree]) -> set[tuple[int, float]]:
    return {
        (int(feature), float(threshold))
        for tree in trees
        for feature, threshold in zip(tree.feature, tree.threshold, strict=True)
        if feature >= 0
    }


def leaves_of(tree: Tree, X: np.ndarray) -> np.ndarray:
    """The number of the leaf that each row of X float32 [N, F] comes to, int64 [N]."""
    node = np.zeros(len(X), np.int64)
    rows = np.flatnonzero(tree.feature[node] >= 0)
    while len(rows):
        at = node[rows]
        left = X[rows, tree.feature[at]] <= tree.threshold[at]
        node[rows] = np.where(left, at + 1, tree.right[at])
        rows = rows[tree.feature[node[rows]] >= 0]
    return tree.right[node].astype(np.int64)


def leaf_shift(tree: Tree, X: np.ndarray, shift: np.ndarray) -> tuple[np.ndarray, float]:
    """How far predictions moved, by leaf, and overall.

    Args:
        X: float32 [N, F], rows that both bags were asked about.
        shift: float64 [N], the new prediction less the old one.

    Returns:
        (float64 [L], the mean shift of the rows that come to each leaf, NaN where none does; the
        mean of their absolute values, a leaf weighing as many games as it stands on, or rows).
    """
    leaf = leaves_of(tree, X)
    count = np.bincount(leaf, minlength=tree.num_leaves)
    total = np.bincount(leaf, shift, tree.num_leaves)
    mean = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    ends = np.flatnonzero(tree.feature < 0)
    size = np.empty(tree.num_leaves)
    size[tree.right[ends]] = tree.groups[ends] if tree.groups[0] else tree.weight[ends]
    seen = count > 0
    if not seen.any():
        return mean, float("nan")
    return mean, float(np.average(np.abs(mean[seen]), weights=size[seen]))
