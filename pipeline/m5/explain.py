"""Trees for people: as text, why one prediction, why one is above another, what matters overall."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pipeline.m5.tree import Tree

SMALL = 0.01  # terms below this share of a formula's size are folded


def tree_to_text(tree: Tree, names: Sequence[str] | None = None) -> str:
    """The tree, a test or a leaf per line, children indented.

    A leaf's terms are largest first, by what a standard deviation of the feature in the leaf moves.
    names: of the features; None for x0, x1, ..
    """
    names = names or _numbered(tree)
    lines = []
    stack = [(0, 0, "")]
    while stack:
        node, depth, condition = stack.pop()
        text = f"{condition}{': ' if condition else ''}{_node_size(tree, node)}"
        if tree.feature[node] < 0:
            text += f"; {_formula(tree, int(tree.right[node]), names)}"
        else:
            name, threshold = names[tree.feature[node]], f"{tree.threshold[node]:.6g}"
            left, right = tree.children(node)
            stack.append((right, depth + 1, f"{name} > {threshold}"))
            stack.append((left, depth + 1, f"{name} <= {threshold}"))
        lines.append("    " * depth + text)
    return "\n".join(lines)


def _numbered(tree: Tree) -> list[str]:
    return [f"x{f}" for f in range(tree.num_features)]


def _node_size(tree: Tree, node: int) -> str:
    groups = f", {tree.groups[node]} groups" if tree.groups[0] else ""
    return (
        f"{tree.weight[node]:.6g} rows{groups}, "
        f"mean {tree.mean[node]:.4g}, error {tree.error[node]:.4g}"
    )


def _formula(tree: Tree, leaf: int, names: Sequence[str]) -> str:
    terms = leaf_terms(tree, leaf)
    least = SMALL * sum(abs(term.effect) for term in terms)
    shown = [term for term in terms if abs(term.effect) >= least]
    text = f"y = {tree.intercept[leaf]:.6g}"
    for term in shown:
        sign = "-" if term.coefficient < 0 else "+"
        text += f" {sign} {abs(term.coefficient):.4g} {names[term.feature]}"
    folded = len(terms) - len(shown)
    return text + (f" and {folded} small terms" if folded else "")


class Term(NamedTuple):
    """One term of a leaf's formula."""

    feature: int
    coefficient: float
    mean: float
    """of the feature among the leaf's training rows"""
    deviation: float
    """its standard deviation there"""

    @property
    def effect(self) -> float:
        """What one standard deviation of the feature moves the prediction."""
        return self.coefficient * self.deviation


def leaf_terms(tree: Tree, leaf: int) -> list[Term]:
    """The terms of a leaf, by its number among the leaves: largest effect first."""
    terms = [
        Term(
            int(tree.term_feature[k]),
            float(tree.coefficient[k]),
            float(tree.term_mean[k]),
            float(tree.term_deviation[k]),
        )
        for k in range(tree.term_start[leaf], tree.term_start[leaf + 1])
    ]
    return sorted(terms, key=lambda term: -abs(term.effect))


def base_of_leaf(tree: Tree, leaf: int) -> float:
    """What a leaf predicts at the mean of its training rows, before clipping."""
    terms = slice(tree.term_start[leaf], tree.term_start[leaf + 1])
    return float(tree.intercept[leaf] + tree.coefficient[terms] @ tree.term_mean[terms])


def signed(value: float) -> str:
    """About three significant digits, to a thousandth at most, with a sign: +0.125, −1.20, +230."""
    if not np.isfinite(value):
        return "–"
    size = abs(value)
    text = f"{value:+,.{3 if size < 1 else 2 if size < 10 else 1 if size < 100 else 0}f}"
    return "0" if not text.strip("+-0.,") else text.replace("-", "−")


def number(value: float) -> str:
    """`signed` without a plus."""
    return signed(value).lstrip("+")


class Step(NamedTuple):
    """One test on the way to a leaf."""

    feature: int
    value: float
    threshold: float
    left: bool

    @property
    def margin(self) -> float:
        """How far the value is from going the other way, in the feature's units."""
        return abs(self.value - self.threshold)


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why a bag of trees predicts what it does for one row; averages over its trees.

    value = base + contributions.sum() + clipping.
    """

    value: float
    base: float
    """the prediction at the mean of each leaf's rows"""
    contributions: np.ndarray
    """float64 [F], coefficient * (value - mean in the leaf)"""
    clipping: float
    """what keeping to the range of the training targets added"""
    paths: list[list[Step]]
    """the tests passed, by tree"""


def explain(trees: Sequence[Tree], x: np.ndarray) -> Explanation:
    """Explains the prediction of a bag of trees for the row x, float32 [F].

    Raises:
        ValueError: x has another number of features.
    """
    x = np.asarray(x, np.float32)
    if x.shape != (trees[0].num_features,):
        raise ValueError(
            f"the trees are for a row of {trees[0].num_features} features, got shape {x.shape}"
        )
    parts = [_explain_tree(tree, x) for tree in trees]
    return Explanation(
        float(np.mean([part.value for part in parts])),
        float(np.mean([part.base for part in parts])),
        np.mean([part.contributions for part in parts], axis=0),
        float(np.mean([part.clipping for part in parts])),
        [path for part in parts for path in part.paths],
    )


def _explain_tree(tree: Tree, x: np.ndarray) -> Explanation:
    path = []
    node = 0
    while tree.feature[node] >= 0:
        feature = int(tree.feature[node])
        left = bool(x[feature] <= tree.threshold[node])
        path.append(Step(feature, float(x[feature]), float(tree.threshold[node]), left))
        node = tree.children(node)[0 if left else 1]
    leaf = tree.right[node]
    terms = slice(tree.term_start[leaf], tree.term_start[leaf + 1])
    features, coefficients = tree.term_feature[terms], tree.coefficient[terms]
    contributions = np.zeros(tree.num_features)
    contributions[features] = coefficients * (x[features] - tree.term_mean[terms])
    base = base_of_leaf(tree, int(leaf))
    free = base + float(contributions.sum())
    value = min(max(free, float(tree.limits[0])), float(tree.limits[1]))
    return Explanation(value, base, contributions, value - free, [path])


def difference(one: Explanation, other: Explanation) -> Explanation:
    """Why `one` is above `other`: every part of `one` minus that of `other`.

    Of two actions' trees at one position it explains the choice; of one tree at two positions, what
    changed. `paths` are those of `one`, then those of `other`.
    """
    return Explanation(
        one.value - other.value,
        one.base - other.base,
        one.contributions - other.contributions,
        one.clipping - other.clipping,
        one.paths + other.paths,
    )


def explanation_to_text(explanation: Explanation, names: Sequence[str]) -> str:
    """The value, its parts from the largest down to 1% of all, and the tests passed."""
    size = np.abs(explanation.contributions)
    order = np.argsort(-size, kind="stable")
    shown = order[(size[order] > 0.0) & (size[order] >= SMALL * size.sum())]
    rest = explanation.contributions.sum() - explanation.contributions[shown].sum()
    lines = [f"{explanation.value:+.4g}", f"  {explanation.base:+.4g} base"]
    lines += [f"  {explanation.contributions[f]:+.4g} {names[f]}" for f in shown]
    if np.count_nonzero(explanation.contributions) > len(shown):
        lines.append(f"  {rest:+.4g} small terms")
    if explanation.clipping:
        lines.append(f"  {explanation.clipping:+.4g} clipping")
    for path in explanation.paths:
        steps = (
            f"{names[step.feature]} = {step.value:.6g} {'<=' if step.left else '>'} "
            f"{step.threshold:.6g} by {step.margin:.3g}"
            for step in path
        )
        lines.append("  because " + (", ".join(steps) or "there is one leaf"))
    return "\n".join(lines)


class Importance(NamedTuple):
    """How much of the target's variance each feature accounts for in training, float64 [F] each.

    splits: what tests on the feature took off the squared error of the node's own model
    slopes: the variance of the feature's terms within leaves
    Slopes of correlated features overlap, so sums may exceed 1.
    """

    splits: np.ndarray
    slopes: np.ndarray

    @property
    def total(self) -> np.ndarray:
        return self.splits + self.slopes


def importance(trees: Sequence[Tree]) -> Importance:
    """The importance of every feature in a bag of trees: the mean over its trees."""
    parts = [_importance(tree) for tree in trees]
    return Importance(
        np.mean([part.splits for part in parts], axis=0),
        np.mean([part.slopes for part in parts], axis=0),
    )


def routed(trees: Sequence[Tree]) -> np.ndarray:
    """Share of the training rows, by weight, whose path tests each feature: float64 [F], the mean
    over the trees of a bag. Where a game's rows weigh as much as any other's, it counts games."""
    return np.mean([_routed(tree) for tree in trees], axis=0)


def _routed(tree: Tree) -> np.ndarray:
    weight = np.zeros(tree.num_features)
    stack: list[tuple[int, frozenset[int]]] = [(0, frozenset())]
    while stack:
        node, above = stack.pop()
        feature = int(tree.feature[node])
        if feature < 0:
            continue
        if feature not in above:  # rows are counted where they meet the feature first
            weight[feature] += tree.weight[node]
        stack += [(child, above | {feature}) for child in tree.children(node)]
    return weight / max(tree.weight[0], 1e-300)


def _importance(tree: Tree) -> Importance:
    squares = tree.weight * tree.error**2
    inside = np.flatnonzero(tree.feature >= 0)
    gain = squares[inside] - squares[inside + 1] - squares[tree.right[inside]]
    many = tree.num_features
    splits = np.bincount(tree.feature[inside], np.maximum(gain, 0.0), many)
    leaves = np.flatnonzero(tree.feature < 0)
    leaf_weight = np.empty(tree.num_leaves)
    leaf_weight[tree.right[leaves]] = tree.weight[leaves]
    weight = np.repeat(leaf_weight, np.diff(tree.term_start))
    variance = (tree.coefficient * tree.term_deviation) ** 2
    slopes = np.bincount(tree.term_feature, weight * variance, many)
    whole = max(tree.weight[0] * tree.deviation[0] ** 2, 1e-300)
    return Importance(splits / whole, slopes / whole)
