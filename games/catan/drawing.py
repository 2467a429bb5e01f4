"""The island as lines of text and as SVG."""

import math
from xml.sax.saxutils import escape

import numpy as np

from games.catan.board import (
    ANY,
    CORNER_XY,
    CORNERS,
    DESERT,
    EDGE_CORNERS,
    EDGES,
    PORT_CORNERS,
    PORT_EDGES,
    PORTS,
    RESOURCES,
    TILE_EDGES,
    TILE_XY,
    TILES,
)

_COLUMNS, _MARGIN = 6, 9  # characters of a unit of x, and left of the island
_LEVELS = sorted({int(y) for y in CORNER_XY[:, 1]})  # of corners, from the top

_LAND = ("#4f7f3b", "#b5603a", "#a9cc68", "#e6c24a", "#8d93a0", "#dcc9a0")
_SEATS = ("#c0392b", "#1f5fa8", "#e9e6df", "#e08a1e")


def owners(sets) -> np.ndarray:
    """int [54]: who has each corner in sets of corners by seat, uint64 [4]; -1 = nobody."""
    owner = np.full(CORNERS, -1)
    for seat, corners in enumerate(sets):
        owner[[c for c in range(CORNERS) if int(corners) >> c & 1]] = seat
    return owner


def road_owners(roads) -> np.ndarray:
    """int [72]: who has each edge in road sets by seat, uint64 [4, 2]; -1 = nobody."""
    owner = np.full(EDGES, -1)
    for seat, (low, high) in enumerate(roads):
        both = int(low) | int(high) << 64
        owner[[e for e in range(EDGES) if both >> e & 1]] = seat
    return owner


def _port_name(port) -> str:
    return "3:1" if port == ANY else RESOURCES[port]


def _port_tiles() -> list[int]:
    """The tile that each port lies at."""
    return [int(np.nonzero((edge == TILE_EDGES).any(axis=1))[0][0]) for edge in PORT_EDGES]


def draw_map(state) -> list[str]:
    """Corners by number, s2 = settlement of player 2, C2 = city, r2 = road; t7 = tile 7."""
    height = 2 * len(_LEVELS) + 1
    canvas = [[" "] * (10 * _COLUMNS + 2 * _MARGIN + 2) for _ in range(height)]

    def put(x: float, row: int, text: str) -> None:
        at = round((x + 5) * _COLUMNS) + _MARGIN - (len(text) - 1) // 2
        canvas[row + 1][at : at + len(text)] = text

    settlements, cities = owners(state["settlements"]), owners(state["cities"])
    for corner, (x, y) in enumerate(CORNER_XY.tolist()):
        label = str(corner)
        if settlements[corner] >= 0:
            label = f"s{settlements[corner]}"
        elif cities[corner] >= 0:
            label = f"C{cities[corner]}"
        put(x, 2 * _LEVELS.index(y), label)
    roads = road_owners(state["roads"])
    for edge, (a, b) in enumerate(EDGE_CORNERS.tolist()):
        (x0, y0), (x1, y1) = CORNER_XY[a].tolist(), CORNER_XY[b].tolist()
        line = "|" if x0 == x1 else "/" if x0 > x1 else "\\"
        row = _LEVELS.index(y0) + _LEVELS.index(y1)
        put((x0 + x1) / 2, row, f"r{roads[edge]}" if roads[edge] >= 0 else line)
    for tile, (x, y) in enumerate(TILE_XY.tolist()):
        row = 2 * _LEVELS.index(y - 1)
        resource = state["resource"][tile]
        name = "desert" if resource == DESERT else f"{RESOURCES[resource]} {state['number'][tile]}"
        put(x, row + 1, name)
        put(x, row + 2, f"t{tile}" + (" ROBBER" if state["robber"] == tile else ""))
    for port, tile in enumerate(_port_tiles()):
        middle = CORNER_XY[PORT_CORNERS[port]].mean(axis=0)
        x, y = (middle + 1.1 * (middle - TILE_XY[tile])).tolist()
        row = min(range(len(_LEVELS)), key=lambda k: abs(_LEVELS[k] - middle[1]))
        row = 2 * row + (1 if y > middle[1] else -1 if y < middle[1] else 0)
        if middle[1] in (-6, -3, 0, 3, 6):  # an upright edge
            row = _LEVELS.index(int(middle[1]) - 1) * 2 + 1
        put(x, row, _port_name(state["port"][port]))
    lines = ["".join(line).rstrip() for line in canvas]
    return [line for line in lines if line]


def _scale(size: int):
    """(unit, at): pixels of a tile's side, and the place of a lattice point in a square picture."""
    unit = size / 11.5
    across, down = unit * math.sqrt(3) / 2, unit / 2

    def at(xy) -> tuple[float, float]:
        return size / 2 + xy[0] * across, size / 2 + xy[1] * down

    return unit, at


def state_to_svg(rules, state, size: int = 640) -> str:
    """A picture of a position, `size` pixels wide: the board, the pieces, the robber."""
    unit, at = _scale(size)

    def polygon(points, fill: str, stroke: str = "#6b5b3a", width: float = 1) -> str:
        words = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        return f'<polygon points="{words}" fill="{fill}" stroke="{stroke}" stroke-width="{width}"/>'

    def text(x, y, words, scale: float, fill: str = "#222") -> str:
        return (
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{unit * scale:.1f}" fill="{fill}" '
            f'text-anchor="middle" dominant-baseline="central">{escape(str(words))}</text>'
        )

    around = [(0, -2), (1, -1), (1, 1), (0, 2), (-1, 1), (-1, -1)]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size}" height="{size}" '
        f'viewBox="0 0 {size} {size}" font-family="sans-serif">',
        f'<rect width="{size}" height="{size}" fill="#bcd8e8"/>',
    ]
    for port, tile in enumerate(_port_tiles()):
        ends = CORNER_XY[PORT_CORNERS[port]]
        out = at(ends.mean(axis=0) * 1.75 - TILE_XY[tile] * 0.75)
        for end in ends:
            x, y = at(end)
            parts.append(
                f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{out[0]:.1f}" y2="{out[1]:.1f}" '
                'stroke="#8a6d3b" stroke-width="2"/>'
            )
        kind = state["port"][port]
        fill = "#fff" if kind == ANY else _LAND[kind]
        parts.append(
            f'<circle cx="{out[0]:.1f}" cy="{out[1]:.1f}" r="{unit * 0.33:.1f}" fill="{fill}"/>'
        )
        parts.append(text(*out, "3:1" if kind == ANY else "2:1", 0.26))
    for tile in range(TILES):
        centre = TILE_XY[tile]
        resource, number = state["resource"][tile], state["number"][tile]
        parts.append(polygon([at(centre + np.array(k)) for k in around], _LAND[resource]))
        x, y = at(centre)
        if state["robber"] == tile:
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{unit * 0.42:.1f}" fill="#333"/>')
            parts.append(text(x, y, number or "", 0.4, "#fff"))
        elif number:
            parts.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{unit * 0.38:.1f}" fill="#f6ecd2"/>'
            )
            parts.append(text(x, y, number, 0.4, "#b3261e" if number in (6, 8) else "#222"))
    for edge, seat in enumerate(road_owners(state["roads"])):
        if seat >= 0:
            (x1, y1), (x2, y2) = (at(CORNER_XY[c]) for c in EDGE_CORNERS[edge])
            line = f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke='
            parts.append(f'{line}"#222" stroke-width="{unit * 0.24:.1f}"/>')
            parts.append(f'{line}"{_SEATS[seat]}" stroke-width="{unit * 0.17:.1f}"/>')
    house = ((-1, 0.9), (1, 0.9), (1, -0.2), (0, -1.1), (-1, -0.2))
    town = ((-1.4, 1), (1.4, 1), (1.4, -0.1), (0, -0.1), (0, -0.9), (-0.7, -1.6), (-1.4, -0.9))
    for sets, shape in ((state["settlements"], house), (state["cities"], town)):
        for corner, seat in enumerate(owners(sets)):
            if seat >= 0:
                x, y = at(CORNER_XY[corner])
                outline = [(x + unit * 0.22 * dx, y + unit * 0.22 * dy) for dx, dy in shape]
                parts.append(polygon(outline, _SEATS[seat], "#222", 1.5))
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def numbering_svg(size: int = 720) -> str:
    """The picture of docs/games/catan.md: numbers of tiles, corners, edges and ports."""
    unit, at = _scale(size)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size}" height="{size}" '
        f'viewBox="0 0 {size} {size}" font-family="sans-serif" text-anchor="middle">',
        f'<rect width="{size}" height="{size}" fill="#fff"/>',
    ]

    def text(xy, words, scale: float, fill: str) -> None:
        x, y = at(xy)
        parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{unit * scale:.1f}" fill="{fill}" '
            f'dominant-baseline="central">{words}</text>'
        )

    for a, b in EDGE_CORNERS:
        (x1, y1), (x2, y2) = at(CORNER_XY[a]), at(CORNER_XY[b])
        parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#bbb"/>'
        )
    for edge in range(EDGES):
        text(CORNER_XY[EDGE_CORNERS[edge]].mean(axis=0), edge, 0.26, "#1f5fa8")
    for corner in range(CORNERS):
        x, y = at(CORNER_XY[corner])
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{unit * 0.22:.1f}" fill="#eee"/>')
        text(CORNER_XY[corner], corner, 0.28, "#222")
    for tile in range(TILES):
        text(TILE_XY[tile], f"t{tile}", 0.4, "#4f7f3b")
    tiles = _port_tiles()
    for port in range(PORTS):
        middle = CORNER_XY[PORT_CORNERS[port]].mean(axis=0)
        text(middle * 2 - TILE_XY[tiles[port]], f"port {port}", 0.3, "#b5603a")
    parts.append("</svg>")
    return "\n".join(parts) + "\n"
