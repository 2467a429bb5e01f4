"""Pictures of trees: what is shown, that nothing overlaps, and that the numbers are the tree's."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.m5 import Binned, Options, Tree, grow
from pipeline.m5.draw import place, share_of_games, shown, tree_svg
from pipeline.m5.explain import number, signed

SVG = "{http://www.w3.org/2000/svg}"
NAMES = ("stage", "wood", "ore", "luck")


def random_tree(seed: int, leaves: int, features: int = 5) -> Tree:
    """A tree of any shape with that many leaves; every row is a game of its own."""
    r = np.random.default_rng(seed)
    feature: list[int] = []
    right: list[int] = []
    weight: list[int] = []

    def grown(below: int) -> int:
        node = len(feature)
        feature.append(-1)
        right.append(-1)
        weight.append(int(r.integers(1, 50)))
        if below > 1:
            left = int(r.integers(1, below))
            feature[node] = int(r.integers(features))
            first = grown(left)
            right[node] = len(feature)
            weight[node] = first + grown(below - left)
        return weight[node]

    grown(leaves)
    ends = iter(range(leaves))
    right = [next(ends) if k < 0 else k for k in right]
    terms = r.integers(0, 9, leaves)
    start = np.concatenate([[0], np.cumsum(terms)])
    nodes, size = len(feature), int(start[-1])
    return Tree.of(
        {
            "feature": np.array(feature),
            "threshold": r.normal(size=nodes),
            "right": np.array(right),
            "weight": np.array(weight, float),
            "groups": np.array(weight),
            "mean": r.normal(size=nodes),
            "deviation": r.random(nodes),
            "error": r.random(nodes),
            "intercept": r.normal(size=leaves),
            "term_start": start,
            "term_feature": r.integers(0, features, size),
            "coefficient": r.normal(size=size),
            "term_mean": r.normal(size=size),
            "term_deviation": r.random(size),
            "limits": np.array([-2.0, 2.0]),
            "num_features": np.array(features),
        }
    )


TREES = st.builds(random_tree, st.integers(0, 10**6), st.integers(1, 90))
LIMITS = st.integers(1, 64)


@given(TREES, LIMITS, st.integers(0, 12))
def test_what_is_shown_is_the_top_of_the_tree(tree, limit, depth):
    part = shown(tree, limit, depth)
    assert 1 <= len(part.node) <= limit and part.depth.max() <= depth
    assert part.node[0] == 0 and (np.diff(part.node) > 0).all()  # preorder
    for k in range(1, len(part.node)):
        above = part.parent[k]
        assert part.node[k] in tree.children(int(part.node[above]))
        assert part.depth[k] == part.depth[above] + 1
    opened = np.isin(np.arange(len(part.node)), part.parent)
    assert all((part.parent == k).sum() == 2 for k in np.flatnonzero(opened))
    # A leaf is either shown or counted.
    leaves = int((tree.feature[part.node] < 0).sum())
    assert leaves + part.folded.sum() == tree.num_leaves
    assert (part.folded[opened] == 0).all()


def test_the_tests_with_the_most_rows_are_opened_first():
    tree = random_tree(3, 40)
    part = shown(tree, 21)
    opened = part.node[np.isin(np.arange(len(part.node)), part.parent)]
    closed = part.node[part.folded > 0]
    assert len(part.node) == 21 and len(closed)
    assert tree.weight[closed].max() <= tree.weight[opened].min()


@given(TREES, LIMITS, st.integers(0, 10**6))
def test_nothing_overlaps_children_stand_right_of_parents_and_in_order(tree, limit, seed):
    part = shown(tree, limit)
    heights = np.random.default_rng(seed).integers(64, 120, len(part.node)).astype(float)
    inside = np.isin(np.arange(len(part.node)), part.parent)
    heights[inside] = 64.0
    spot = place(part, heights)
    right, bottom = spot.left + spot.width, spot.top + spot.height
    assert spot.left.min() >= 0 and spot.top.min() >= 0
    apart = (
        (right[:, None] <= spot.left[None, :])
        | (right[None, :] <= spot.left[:, None])
        | (bottom[:, None] <= spot.top[None, :])
        | (bottom[None, :] <= spot.top[:, None])
    )
    assert (apart | np.eye(len(apart), dtype=bool)).all()
    for k in range(1, len(part.node)):
        assert spot.left[k] > right[part.parent[k]]
    for k in np.flatnonzero(inside):
        first, second = spot.middle[part.parent == k]
        assert first < spot.middle[k] < second
    assert (np.diff(spot.top[~inside]) > 0).all()
    assert len({*spot.left[~inside]}) <= 1  # one column of leaves


@given(TREES, LIMITS)
def test_a_picture_is_xml_that_refers_to_nothing(tree, limit):
    nasty = [f"<feature & 'number' \"{f}\">" for f in range(tree.num_features)]
    picture = tree_svg(tree, nasty, "</svg><script>alert(1)</script>", limit=limit)
    root = ET.fromstring(picture)
    assert root.find(f".//{SVG}script") is None
    assert picture.count("http") == 1 and "href" not in picture and "url(" not in picture
    part = shown(tree, limit)
    assert len(root.findall(f".//{SVG}path[@class='edge']")) == len(part.node) - 1
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    for box in root.findall(f".//{SVG}g/{SVG}rect"):
        x, y, w, h = (float(box.attrib[key]) for key in ("x", "y", "width", "height"))
        assert x >= -0.1 and x + w + 24 <= width and y >= 0 and y + h <= height


def test_the_numbers_of_a_picture_by_hand(pieces):
    # y = 2 wood + 1 where stage <= 9, else 3 - ore: exact, half of the rows each.
    X, y = pieces
    groups = np.arange(len(y)) // 10
    tree = grow(
        Binned.fit(X),
        y,
        None,
        groups,
        Options(ridge=0, smoothing=0, rows_per_group=None, group_price=False),
        1,
    )
    root = ET.fromstring(tree_svg(tree, NAMES, "wood and ore"))
    words = ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]
    left = X[:, 0] <= 9
    assert "stage" in words and "≤ 9.5" in words and "> 9.5" in words
    for rows in (left, ~left):
        games = len(np.unique(groups[rows]))
        assert f"{rows.sum():,} rows · {games} games" in words
        assert f"mean {signed(y[rows].mean())} · RMSE 0" in words
        assert signed(y[rows].mean()) in words  # what the leaf predicts at its mean
    # A standard deviation of wood moves y by twice itself up, one of ore by itself down.
    up, down = root.find(f".//{SVG}rect[@class='up']"), root.find(f".//{SVG}rect[@class='down']")
    effects = 2 * X[left, 1].std(), X[~left, 2].std()
    assert signed(effects[0]) in words and signed(-effects[1]) in words
    widths = float(up.attrib["width"]), float(down.attrib["width"])
    assert widths[0] / widths[1] == pytest.approx(effects[0] / effects[1], rel=0.01)
    assert float(up.attrib["x"]) > float(down.attrib["x"])
    edges = root.findall(f".//{SVG}path[@class='edge']")
    shares = share_of_games(tree, np.array([1, 2]))
    assert shares == pytest.approx([len(np.unique(groups[r])) / 200 for r in (left, ~left)])
    assert [float(edge.attrib["stroke-width"]) for edge in edges] == pytest.approx(
        11 * shares, abs=0.01
    )


def test_a_tree_without_groups_speaks_of_rows_alone(pieces):
    X, y = pieces
    tree = grow(Binned.fit(X), y, None, None, Options(), 1)
    text = "".join(ET.fromstring(tree_svg(tree, NAMES, "t")).itertext())
    assert "2,000 rows" in text and "0 games" not in text
    assert share_of_games(tree, np.array([0])).tolist() == [1]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0001, "0"),
        (0.12345, "+0.123"),
        (-0.5, "−0.500"),
        (-1.0, "−1.00"),
        (23.456, "+23.5"),
        (-1234.5, "−1,234"),
        (float("nan"), "–"),
    ],
)
def test_numbers_have_about_three_digits_and_a_sign(value, text):
    assert signed(value) == text
    assert number(value) == text.lstrip("+")
