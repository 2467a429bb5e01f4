"""The island as tables: 19 tiles, 54 corners, 72 edges and 9 ports, from hexagonal coordinates.

Tiles stand on a point, in rows of 3, 4, 5, 4 and 3. A tile at axial (q, r) has its centre at
x = 2q + r, y = 3r and its corners at the offsets below, so that corners shared by tiles are equal
pairs of integers. Tiles, corners and edges are numbered row by row from the top, each row from the
left (an edge by its upper, left corner first). docs/games/catan.md has a picture.

A set of corners is a uint64, corner c being bit c.
"""

from itertools import pairwise

import numpy as np

RESOURCES = ("wood", "brick", "sheep", "wheat", "ore")
WOOD, BRICK, SHEEP, WHEAT, ORE = range(5)
DESERT = 5  # of a tile
ANY = 5  # of a port: three equal cards for one

TILES, CORNERS, EDGES, PORTS = 19, 54, 72, 9

_CLOCKWISE = ((0, -2), (1, -1), (1, 1), (0, 2), (-1, 1), (-1, -1))  # corners, from the top
_NE, _E, _SE, _SW, _W, _NW = range(6)  # side k of a tile joins its corners k and k + 1

_AXIAL = [(q, r) for r in range(-2, 3) for q in range(max(-2, -2 - r), min(2, 2 - r) + 1)]
TILE_XY = np.array([(2 * q + r, 3 * r) for q, r in _AXIAL])
_around = TILE_XY[:, None] + np.array(_CLOCKWISE)
CORNER_XY = np.array(
    sorted({tuple(xy) for xy in _around.reshape(-1, 2).tolist()}, key=lambda c: c[::-1])
)
_corner_at = {tuple(xy): index for index, xy in enumerate(CORNER_XY.tolist())}

# int64 [19, 6], clockwise from the top.
TILE_CORNERS = np.array(
    [[_corner_at[tuple(xy)] for xy in six] for six in _around.tolist()], np.int64
)
_sides = np.sort(np.stack([TILE_CORNERS, np.roll(TILE_CORNERS, -1, axis=1)], axis=2), axis=2)
EDGE_CORNERS = np.unique(_sides.reshape(-1, 2), axis=0)  # int64 [72, 2], smaller corner first
_edge_between = {tuple(ends): index for index, ends in enumerate(EDGE_CORNERS.tolist())}
# int64 [19, 6]: side k of a tile, clockwise from the north-east.
TILE_EDGES = np.array(
    [[_edge_between[tuple(ends)] for ends in six] for six in _sides.tolist()], np.int64
)


def _padded(rows, width) -> np.ndarray:
    """int64 [N, width], missing entries -1."""
    return np.array([[*row, *[-1] * (width - len(row))] for row in rows], np.int64)


CORNER_EDGES = _padded(
    [[int(e) for e in np.nonzero((c == EDGE_CORNERS).any(axis=1))[0]] for c in range(CORNERS)], 3
)
CORNER_TILES = _padded(
    [[int(t) for t in np.nonzero((c == TILE_CORNERS).any(axis=1))[0]] for c in range(CORNERS)], 3
)
# int64 [54, 3]: the other end of each of `CORNER_EDGES`.
CORNER_NEIGHBOURS = np.where(
    CORNER_EDGES < 0,
    -1,
    EDGE_CORNERS[CORNER_EDGES].sum(axis=2) - np.arange(CORNERS)[:, None],
).astype(np.int64)

# The frame of the base game: port 0 at the north-west, then clockwise.
_PORT_SIDES = (
    (0, _NW), (1, _NE), (6, _NE), (11, _E), (15, _SE), (17, _SE), (16, _SW), (12, _W), (3, _W),
)  # fmt: skip
PORT_EDGES = np.array([TILE_EDGES[tile, side] for tile, side in _PORT_SIDES], np.int64)
PORT_CORNERS = EDGE_CORNERS[PORT_EDGES]  # int64 [9, 2]
CORNER_PORT = np.full(CORNERS, -1, np.int64)  # which port a corner has, or -1
CORNER_PORT[PORT_CORNERS[:, 0]] = CORNER_PORT[PORT_CORNERS[:, 1]] = np.arange(PORTS)


def _bits(sets) -> np.ndarray:
    return np.array([sum(1 << int(c) for c in some if c >= 0) for some in sets], np.uint64)


CORNER_BIT = _bits(np.arange(CORNERS)[:, None])
TILE_BITS = _bits(TILE_CORNERS)
EDGE_BITS = _bits(EDGE_CORNERS)
# A corner and its neighbours: where nobody may settle once the corner is taken.
AROUND_BITS = _bits(np.column_stack([np.arange(CORNERS), CORNER_NEIGHBOURS]))
ALL_CORNERS = np.uint64((1 << CORNERS) - 1)

# bool [19, 19]: tiles that share a side.
TILE_NEIGHBOURS = np.array([[len({*a} & {*b}) == 2 for b in TILE_CORNERS] for a in TILE_CORNERS])

# How many of 36 rolls of two dice give a number: [0] to [12].
PIPS = np.array([0, 0, 1, 2, 3, 4, 5, 6, 5, 4, 3, 2, 1], np.int64)

# What a random board is made of, and the starting island for beginners of the rule book.
TILE_SUPPLY = np.array(
    [WOOD] * 4 + [BRICK] * 3 + [SHEEP] * 4 + [WHEAT] * 4 + [ORE] * 3 + [DESERT], np.int64
)
NUMBER_SUPPLY = np.array([2, 3, 3, 4, 4, 5, 5, 6, 6, 8, 8, 9, 9, 10, 10, 11, 11, 12], np.int64)
BEGINNER = "o10 s2 w9 / h12 b6 s4 b10 / h9 w11 d w3 o8 / w8 o3 h4 s5 / b5 h6 s11"
FIXED_PORTS = np.array([ANY, WHEAT, ORE, ANY, SHEEP, ANY, ANY, BRICK, WOOD], np.int64)

# The tokens A to R of the rule book, laid along a spiral.
SPIRAL_NUMBERS = np.array([5, 2, 6, 3, 8, 10, 9, 12, 11, 4, 8, 10, 9, 4, 5, 6, 3, 11], np.int64)


def _spirals() -> np.ndarray:
    """int64 [6, 19]: the tiles counter-clockwise from each of the six corner tiles inwards."""
    index = {xy: tile for tile, xy in enumerate(_AXIAL)}
    turns = [(-1, 1), (0, 1), (1, 0), (1, -1), (0, -1), (-1, 0)]  # each turned left from the last
    rows = []
    for start in range(6):
        path = []
        for radius in (2, 1):
            q, r = (-radius * turns[(start + 4) % 6][k] for k in (0, 1))
            q, r = -q, -r
            for side in range(6):
                dq, dr = turns[(start + side) % 6]
                for _ in range(radius):
                    path.append(index[q, r])
                    q, r = q + dq, r + dr
        rows.append([*path, index[0, 0]])
    return np.array(rows, np.int64)


SPIRALS = _spirals()

_LETTERS = "wbshod"  # wood, brick, sheep, wheat, ore, desert


def tiles_to_text(resources, numbers) -> str:
    """The board as `tiles_from_text` reads it, such as `BEGINNER`."""
    words = [
        _LETTERS[resource] + (str(number) if number else "")
        for resource, number in zip(resources, numbers, strict=True)
    ]
    ends = (0, 3, 7, 12, 16, 19)
    return " / ".join(" ".join(words[a:b]) for a, b in pairwise(ends))


def tiles_from_text(text: str) -> tuple[np.ndarray, np.ndarray]:
    """Reads 19 tiles, row by row: a letter of w(ood), b(rick), s(heep), w(h)eat = h, o(re) and a
    number, or d for the desert. Slashes between the rows may be left out.

    Returns (resources, numbers), int8 [19] each; a desert has number 0.

    Raises:
        ValueError: not 19 tiles, or a tile that is none, or no desert for the robber to start in.
    """
    words = text.replace("/", " ").split()
    resources, numbers = np.zeros((2, TILES), np.int8)
    expected = (
        f"expected 19 tiles such as {BEGINNER!r}: w(ood), b(rick), s(heep), h (wheat) or o(re) "
        "with a number from 2 to 12 but 7, and d for the desert at least once"
    )
    if len(words) != TILES or "d" not in words:
        raise ValueError(f"{text!r} is no board; {expected}")
    for tile, word in enumerate(words):
        resource = _LETTERS.find(word[0])
        number = int(word[1:]) if word[1:].isdecimal() else 0
        fits = word == "d" if resource == DESERT else 2 <= number <= 12 and number != 7
        if resource < 0 or not fits:
            raise ValueError(f"{word!r} is no tile; {expected}")
        resources[tile], numbers[tile] = resource, number
    return resources, numbers


def ports_to_text(ports) -> str:
    return " ".join("*" if port == ANY else _LETTERS[port] for port in ports)


def ports_from_text(text: str) -> np.ndarray:
    """Reads nine ports, clockwise from the north-west: a letter of a resource, or * for 3:1.

    Raises:
        ValueError: anything else.
    """
    words = text.split()
    if len(words) != PORTS or any(len(word) != 1 or word not in "wbsho*" for word in words):
        raise ValueError(
            f"{text!r} are no ports; expected nine, clockwise from the north-west, such as "
            f"{ports_to_text(FIXED_PORTS)!r}: * for any resource, w(ood), b(rick), s(heep), "
            "h (wheat), o(re)"
        )
    return np.array(["wbsho*".index(word) for word in words], np.int8)
