"""A tree as a picture: which nodes are drawn, where they stand, and SVG that prints.

The tree grows to the right, because text is wide and low: tests stand in a column per depth, all
leaves in one last column, where their formulas can be compared. Every leaf has a strip of its own
across the picture, so that nothing overlaps.
"""

import heapq
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np

from pipeline.m5.explain import SMALL, Term, base_of_leaf, leaf_terms, number, signed
from pipeline.m5.tree import Tree

MAX_NODES, MAX_DEPTH = 64, 7  # drawn: what a sheet of paper holds

# Pixels.
_CARD, _LINE, _GAP, _COLUMN_GAP, _MARGIN = 168, 14, 10, 66, 24
_TEST_HEIGHT = 64
_NAME, _AXIS, _NUMBER = 170, 140, 54  # of the formula: feature, bars, amount
_LEAF_WIDTH = _CARD + _NAME + _AXIS + _NUMBER
_HEAD, _FOOT = 62, 72
_EDGE = 11.0  # width of the line that all games pass
_MAX_TERMS = 5


class Shown(NamedTuple):
    """The part of a tree that is shown: K nodes in preorder. What lies deeper is folded."""

    node: np.ndarray  # int64 [K], numbers of the nodes in the tree
    parent: np.ndarray  # int64 [K], place of the parent in `node`, -1 at the root
    depth: np.ndarray  # int64 [K], tests above
    folded: np.ndarray  # int64 [K], leaves below a test whose children are not shown, else 0


def shown(tree: Tree, limit: int = MAX_NODES, max_depth: int = MAX_DEPTH) -> Shown:
    """At most `limit` nodes (at least 1), at most `max_depth` tests deep: of the tests in sight the
    one with the most rows is opened next."""
    opened = []
    waiting = [(-tree.weight[0], 0, 0)]
    count = 1
    while waiting and count + 2 <= limit:
        _, node, level = heapq.heappop(waiting)
        if tree.feature[node] < 0 or level == max_depth:
            continue
        opened.append(node)
        count += 2
        for child in tree.children(node):
            heapq.heappush(waiting, (-tree.weight[child], child, level + 1))
    leaves = _leaves_below(tree)
    above = {child: node for node in opened for child in tree.children(node)}
    nodes = np.array(sorted([0, *above]), np.int64)
    place = {int(node): k for k, node in enumerate(nodes)}
    parent = np.array([place[above[int(n)]] if int(n) in above else -1 for n in nodes], np.int64)
    depth = np.zeros(len(nodes), np.int64)
    for k in range(1, len(nodes)):
        depth[k] = depth[parent[k]] + 1
    closed = (tree.feature[nodes] >= 0) & ~np.isin(nodes, opened)
    return Shown(nodes, parent, depth, np.where(closed, leaves[nodes], 0))


def _leaves_below(tree: Tree) -> np.ndarray:
    """int64 [M], 1 at a leaf."""
    leaves = np.ones(tree.num_nodes, np.int64)
    for node in range(tree.num_nodes - 1, -1, -1):
        if tree.feature[node] >= 0:
            leaves[node] = leaves[list(tree.children(node))].sum()
    return leaves


class Layout(NamedTuple):
    """Where the cards of K nodes stand, in pixels from the top left."""

    left: np.ndarray  # float64 [K]
    top: np.ndarray  # float64 [K]
    width: np.ndarray  # float64 [K]
    height: np.ndarray  # float64 [K]

    @property
    def middle(self) -> np.ndarray:
        return self.top + self.height / 2


def place(part: Shown, heights: np.ndarray) -> Layout:
    """Puts the cards in place, from (0, 0) on.

    Args:
        heights: float64 [K], of the cards; those at the end of a branch at least as high as a test.
    """
    many = len(part.node)
    inside = np.isin(np.arange(many), part.parent)
    ends = np.flatnonzero(~inside)
    middle = np.zeros(many)
    bottoms = np.cumsum(heights[ends] + _GAP)
    middle[ends] = bottoms - _GAP - heights[ends] / 2
    for k in range(many - 1, -1, -1):
        if inside[k]:
            middle[k] = middle[part.parent == k].mean()
    columns = int(part.depth[inside].max(initial=-1)) + 1
    step = _CARD + _COLUMN_GAP
    left = np.where(inside, part.depth * step, columns * step).astype(float)
    width = np.where(inside, _CARD, _LEAF_WIDTH).astype(float)
    return Layout(left, middle - heights / 2, width, heights)


def tree_svg(
    tree: Tree, names: Sequence[str], title: str, subtitle: str = "", limit: int = MAX_NODES
) -> str:
    """The tree as SVG, at most `limit` of its nodes; stands alone, with a white ground.

    Bars are terms of a leaf's formula, all to one scale: how far one standard deviation of the
    feature, among the leaf's rows, moves the prediction.

    Args:
        names: of the features [F].
        title, subtitle: what tree this is, in words.
    """
    part = shown(tree, limit)
    terms = [_terms(tree, int(node)) for node in part.node]
    most = [_listed(each) for each in terms]
    inside = np.isin(np.arange(len(part.node)), part.parent)
    lines = [len(each) + (len(each) < len(all_)) for each, all_ in zip(most, terms, strict=True)]
    heights = np.where(inside, _TEST_HEIGHT, np.maximum(_TEST_HEIGHT, 14 + _LINE * np.array(lines)))
    spot = place(part, heights.astype(float))
    scale = max((abs(term.effect) for shown_ in terms for term in shown_), default=0.0)
    body = [_edge(tree, part, spot, k) for k in range(1, len(part.node))]
    for k, node in enumerate(part.node):
        x, y = spot.left[k], spot.top[k]
        body.append(
            _card(tree, int(node), x, y, spot.width[k], spot.height[k], names, part.folded[k])
        )
        if tree.feature[node] < 0:
            body.append(_bars(terms[k], x + _CARD, y, spot.height[k], names, scale))
    width = max(float((spot.left + spot.width).max()), 640.0) + 2 * _MARGIN
    height = float((spot.top + spot.height).max()) + _HEAD + _FOOT
    foot = height - _FOOT + 24
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="img" aria-label="{escape(title)}">'
        f"<style>{_STYLE}</style>"
        f'<rect class="page" width="100%" height="100%"/>'
        f'<text class="title" x="{_MARGIN}" y="28">{escape(title)}</text>'
        f'<text class="note" x="{_MARGIN}" y="46">{escape(subtitle or _summary(tree, part))}</text>'
        f'<g transform="translate({_MARGIN} {_HEAD})">{"".join(body)}</g>'
        + "".join(
            f'<text class="note" x="{_MARGIN}" y="{foot + 15 * i}">{line}</text>'
            for i, line in enumerate(_LEGEND)
        )
        + "</svg>\n"
    )


_LEGEND = (
    "Width of a line: share of the games (of the rows, where games are not known).",
    "Strip in a card: mean of the targets and their standard deviation, between least and largest.",
    "Leaf: prediction at the mean of its rows. "
    "Bars: what one standard deviation of the feature, within the leaf, moves it.",
)

_STYLE = (
    "text{font:11px system-ui,'DejaVu Sans',sans-serif;fill:#1d2329}"
    ".page{fill:#fff}.title{font-size:16px;font-weight:600}.name{font-size:12px;font-weight:600}"
    ".note{fill:#58626c;font-size:10.5px}.card{fill:#f7f9fa;stroke:#c3cad1}.leaf{fill:#fff;stroke:#8b96a1}"
    ".edge{fill:none;stroke:#b9c7d3}.strip{fill:#dfe4e9}.spread{fill:#9db4c6}.mean{fill:#1d2329}"
    ".up{fill:#0072b2}.down{fill:#e69f00}.axis{stroke:#8b96a1}.right{text-anchor:end}"
)


def _summary(tree: Tree, part: Shown) -> str:
    folded = int(part.folded.sum())
    parts = [_size(tree, 0), f"{tree.num_leaves:,} {'leaf' if tree.num_leaves == 1 else 'leaves'}"]
    if folded:
        parts[-1] += f", {folded:,} of them folded"
    parts.append(f"targets from {number(tree.limits[0])} to {number(tree.limits[1])}")
    return " · ".join(parts)


def _size(tree: Tree, node: int) -> str:
    """Rows by weight, and distinct games where they are known."""
    games = f" · {tree.groups[node]:,} games" if tree.groups[0] else ""
    return f"{tree.weight[node]:,.0f} rows{games}"


def _terms(tree: Tree, node: int) -> list[Term]:
    return leaf_terms(tree, int(tree.right[node])) if tree.feature[node] < 0 else []


def _listed(terms: Sequence[Term]) -> list[Term]:
    """The terms that get a bar, largest first: of the others a line tells how many they are."""
    least = SMALL * sum(abs(term.effect) for term in terms)
    return [term for term in terms if abs(term.effect) >= least][:_MAX_TERMS]


def share_of_games(tree: Tree, nodes: np.ndarray) -> np.ndarray:
    """Of the games that reach the root, those that reach each node; of the rows, without games."""
    count = tree.groups if tree.groups[0] else tree.weight
    return np.minimum(count[nodes] / max(count[0], 1e-300), 1.0)


def _edge(tree: Tree, part: Shown, spot: Layout, k: int) -> str:
    """The line from a node's parent, and what must hold to take it."""
    above = part.parent[k]
    node, test = part.node[k], part.node[above]
    share = float(share_of_games(tree, part.node[k : k + 1])[0])
    thick = max(_EDGE * share, 0.8)
    x0, y0 = spot.left[above] + spot.width[above], spot.middle[above]
    x1, x2, y1 = x0 + _COLUMN_GAP, spot.left[k], spot.middle[k]
    bend = x0 + _COLUMN_GAP / 2
    line = f"M{x0:.1f} {y0:.1f}C{bend:.1f} {y0:.1f} {bend:.1f} {y1:.1f} {x1:.1f} {y1:.1f}"
    line += f"H{x2:.1f}" if x2 > x1 else ""
    lower = node == test + 1
    sign = "≤" if lower else ">"
    label = y1 - thick / 2 - 4 if y1 < y0 else y1 + thick / 2 + 12
    return (
        f'<path class="edge" stroke-width="{thick:.2f}" d="{line}">'
        f"<title>{100 * share:.1f}% of the games</title></path>"
        f'<text class="right" x="{x1 - 5:.1f}" y="{label:.1f}">'
        f"{sign} {tree.threshold[test]:.5g}</text>"
    )


def _card(
    tree: Tree,
    node: int,
    x: float,
    y: float,
    width: float,
    height: float,
    names: Sequence[str],
    folded: int,
) -> str:
    """A node: what it asks or predicts, how much it stands on, and its targets as a strip."""
    if folded:
        head, full = f"{folded:,} leaves folded", ""
    elif tree.feature[node] >= 0:
        head, full = cut(names[tree.feature[node]], 20), names[tree.feature[node]]
    else:
        head, full = signed(base_of_leaf(tree, int(tree.right[node]))), ""
    kind = "card" if tree.feature[node] >= 0 else "leaf"
    width = _CARD if folded else width
    title = f"<title>{escape(full)}</title>" if full != head else ""
    low, high = float(tree.limits[0]), float(tree.limits[1])
    unit = (_CARD - 20) / max(high - low, 1e-300)
    mean = min(max(float(tree.mean[node]), low), high)
    spread = float(tree.deviation[node])
    a, b = max(mean - spread, low), min(mean + spread, high)
    top = y + (height - _TEST_HEIGHT) / 2
    return (
        f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.0f}" '
        f'height="{height:.0f}" rx="5"/>'
        f'<text class="name" x="{x + 10:.1f}" y="{top + 17:.1f}">{title}{escape(head)}</text>'
        f'<text class="note" x="{x + 10:.1f}" y="{top + 32:.1f}">{_size(tree, node)}</text>'
        f'<text class="note" x="{x + 10:.1f}" y="{top + 46:.1f}">mean {signed(tree.mean[node])}'
        f" · RMSE {number(tree.error[node])}</text>"
        f'<rect class="strip" x="{x + 10:.1f}" y="{top + 54:.1f}" width="{_CARD - 20}" height="3"/>'
        f'<rect class="spread" x="{x + 10 + unit * (a - low):.1f}" y="{top + 54:.1f}" '
        f'width="{unit * (b - a):.1f}" height="3"/>'
        f'<rect class="mean" x="{x + 9 + unit * (mean - low):.1f}" y="{top + 52:.1f}" '
        f'width="2" height="7"/>'
    )


def _bars(
    terms: Sequence[Term],
    x: float,
    y: float,
    height: float,
    names: Sequence[str],
    scale: float,
) -> str:
    """A leaf's formula, a line per term, largest first."""
    listed = _listed(terms)
    folded = terms[len(listed) :]
    lines = len(listed) + bool(folded)
    if not lines:
        return ""
    top = y + (height - _LINE * lines) / 2
    zero = x + _NAME + _AXIS / 2
    out = [
        f'<line class="axis" x1="{zero:.1f}" x2="{zero:.1f}" y1="{top - 2:.1f}" '
        f'y2="{top + _LINE * len(listed) + 2:.1f}"/>'
    ]
    for i, term in enumerate(listed):
        row = top + _LINE * i
        length = _AXIS / 2 * abs(term.effect) / scale
        start = zero - length if term.effect < 0 else zero
        name = names[term.feature]
        out.append(
            f'<text class="right" x="{x + _NAME - 6:.1f}" y="{row + 11:.1f}">'
            f"{escape(cut(name, 24))}<title>{escape(name)}: {term.coefficient:.4g} per unit, mean "
            f"{term.mean:.4g}, standard deviation {term.deviation:.4g}</title></text>"
            f'<rect class="{"down" if term.effect < 0 else "up"}" x="{start:.1f}" '
            f'y="{row + 3:.1f}" width="{max(length, 0.5):.1f}" height="{_LINE - 5}"/>'
            f'<text class="right" x="{x + _NAME + _AXIS + _NUMBER - 8:.1f}" y="{row + 11:.1f}">'
            f"{signed(term.effect)}</text>"
        )
    if folded:
        most = max(abs(term.effect) for term in folded)
        words = f"and {len(folded)} more, up to ±{most:.2g}"
        out.append(
            f'<text class="note right" x="{x + _NAME - 6:.1f}" '
            f'y="{top + _LINE * len(listed) + 12:.1f}">{words}</text>'
        )
    return "".join(out)


def cut(text: str, length: int) -> str:
    """The text, or its beginning with an ellipsis if it is longer."""
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"
