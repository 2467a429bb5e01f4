"""Boards of Risk: what one is, the canonical file, other programs' files, generated boards.

A board is an undirected, simple, connected graph of 2 to 64 nodes. Every node lies in exactly one
continent, and a continent pays its bonus to whoever holds it whole. Nodes are numbered from 0. The
canonical file is JSON:

    {"name": "..",
     "nodes": [{"id": 0, "label": "..", "x": 0.5, "y": 0.5}, ..],    x, y in 0..1, y downwards
     "edges": [[0, 1], ..],
     "continents": [{"name": "..", "bonus": 2, "nodes": [0, 1]}, ..],
     "start": {"owner": [0, 1, ..], "armies": [3, 2, ..]}}            optional; one entry per node

`shipped` lists the boards that come with the game, `load` finds one of them or reads a file.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).resolve().parent / "boards"
MAX_NODES = 64
MAX_ARMIES = 1_000_000  # on a node at the start; with MAX_BONUS no sum of a long game leaves int32
MAX_BONUS = 1000


@dataclass(frozen=True)
class Continent:
    name: str
    bonus: int
    nodes: tuple[int, ...]


@dataclass(frozen=True)
class Start:
    """Who holds each node, and with how many armies."""

    owner: tuple[int, ...]  # 0 or 1
    armies: tuple[int, ...]


@dataclass(frozen=True)
class Board:
    name: str
    labels: tuple[str, ...]  # [N]
    places: tuple[tuple[float, float], ...]  # [N], x and y in 0..1, y downwards
    edges: tuple[tuple[int, int], ...]  # smaller node first, in rising order
    continents: tuple[Continent, ...]
    start: Start | None = None

    @property
    def num_nodes(self) -> int:
        return len(self.labels)

    def neighbours(self) -> list[list[int]]:
        """The nodes beside each node, in rising order."""
        beside: list[list[int]] = [[] for _ in self.labels]
        for u, v in self.edges:
            beside[u].append(v)
            beside[v].append(u)
        return [sorted(each) for each in beside]

    def to_json(self) -> dict[str, Any]:
        """The canonical form, as plain values."""
        facts: dict[str, Any] = {
            "name": self.name,
            "nodes": [
                {"id": node, "label": label, "x": x, "y": y}
                for node, (label, (x, y)) in enumerate(zip(self.labels, self.places, strict=True))
            ],
            "edges": [list(edge) for edge in self.edges],
            "continents": [
                {"name": each.name, "bonus": each.bonus, "nodes": list(each.nodes)}
                for each in self.continents
            ],
        }
        if self.start is not None:
            facts["start"] = {
                "owner": list(self.start.owner),
                "armies": list(self.start.armies),
            }
        return facts

    def to_text(self) -> str:
        """The canonical file, a line per node, edge list and continent."""
        facts = self.to_json()
        start = facts.pop("start", None)
        lines = [f'"name": {json.dumps(facts["name"])}']
        for key in ("nodes", "continents"):
            rows = ",\n  ".join(json.dumps(row) for row in facts[key])
            lines.append(f'"{key}": [\n  {rows}]')
        lines.insert(2, f'"edges": {json.dumps(facts["edges"])}')
        if start is not None:
            lines.append(f'"start": {json.dumps(start)}')
        return "{" + ",\n ".join(lines) + "}\n"


def _refuse(name: str, sentence: str) -> ValueError:
    return ValueError(f"board {name!r}: {sentence}")


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def make_board(
    name: str,
    edges: Sequence[Sequence[int]],
    continents: Sequence[Continent],
    start: Start | None = None,
    labels: Sequence[str] | None = None,
    places: Sequence[Sequence[float]] | None = None,
) -> Board:
    """Checks everything that a board promises and puts it into one order.

    Args:
        edges: pairs of nodes in any order.
        labels: names for people; None: the numbers.
        places: x and y of each node in 0..1; None: on a circle.

    Raises:
        ValueError: one sentence that names the board, what is wrong with it, and where.
    """
    inside = [node for each in continents for node in each.nodes]
    count = len(labels) if labels is not None else max(inside, default=-1) + 1
    if not 2 <= count <= MAX_NODES:
        raise _refuse(name, f"it must have 2 to {MAX_NODES} nodes, it has {count}")
    labels = [str(node) for node in range(count)] if labels is None else list(labels)
    _check_words(name, labels, continents)
    places = _circle(count) if places is None else places
    _check_places(name, places)
    pairs = _checked_edges(name, edges, count)
    _check_continents(name, continents, count)
    if start is not None:
        _check_start(name, start, count)
    return Board(
        name=name,
        labels=tuple(labels),
        places=tuple((float(x), float(y)) for x, y in places),
        edges=tuple(pairs),
        continents=tuple(
            Continent(each.name, each.bonus, tuple(sorted(each.nodes))) for each in continents
        ),
        start=start,
    )


def _check_words(name, labels: Sequence[str], continents: Sequence[Continent]) -> None:
    """Positions are printed a line per node and continent, and read again."""
    words = [("the name of a board", name), *(("the label of a node", each) for each in labels)]
    words += [("the name of a continent", each.name) for each in continents]
    for what, word in words:
        if not isinstance(word, str) or not word.isprintable():
            raise _refuse(name, f"{what} must be text of one line, got {word!r}")
    if not name:
        raise _refuse(name, "its name is empty; give it one, or leave the key out")


def _check_places(name, places: Sequence[Sequence[Any]]) -> None:
    for node, place in enumerate(places):
        for value in place:
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
                raise _refuse(
                    name, f"x and y of node {node} must be numbers in 0..1, got {list(place)}"
                )


def _checked_edges(name, edges, count: int) -> list[tuple[int, int]]:
    pairs = set()
    for edge in edges:
        if len(edge) != 2 or not all(_whole(node) and 0 <= node < count for node in edge):
            raise _refuse(name, f"an edge must join two nodes of 0..{count - 1}, got {list(edge)}")
        u, v = sorted(edge)
        if u == v:
            raise _refuse(name, f"an edge must join two different nodes, got [{u}, {v}]")
        if (u, v) in pairs:
            raise _refuse(name, f"the edge [{u}, {v}] is listed twice; list each once")
        pairs.add((u, v))
    reached, waiting = {0}, [0]
    while waiting:
        node = waiting.pop()
        for u, v in pairs:
            if node in (u, v) and (other := u + v - node) not in reached:
                reached.add(other)
                waiting.append(other)
    if len(reached) < count:
        lost = min(set(range(count)) - reached)
        raise _refuse(name, f"no way leads from node 0 to node {lost}; it must be connected")
    return sorted(pairs)


def _check_continents(name, continents: Sequence[Continent], count: int) -> None:
    home: dict[int, str] = {}
    for each in continents:
        if not _whole(each.bonus) or not 0 <= each.bonus <= MAX_BONUS:
            raise _refuse(
                name,
                f"the bonus of continent {each.name!r} must be a whole number in "
                f"0..{MAX_BONUS}, got {each.bonus!r}",
            )
        if not each.nodes:
            raise _refuse(name, f"continent {each.name!r} has no nodes; give it some or drop it")
        for node in each.nodes:
            if not _whole(node) or not 0 <= node < count:
                raise _refuse(
                    name,
                    f"continent {each.name!r} names node {node!r}; nodes are 0..{count - 1}",
                )
            if node in home:
                raise _refuse(
                    name,
                    f"node {node} lies in continents {home[node]!r} and {each.name!r}; it must lie "
                    "in exactly one",
                )
            home[node] = each.name
    for node in range(count):
        if node not in home:
            raise _refuse(name, f"node {node} lies in no continent; it must lie in exactly one")


def _check_start(name, start: Start, count: int) -> None:
    for key, values in (("owner", start.owner), ("armies", start.armies)):
        if len(values) != count:
            raise _refuse(
                name,
                f"start.{key} must have an entry for each of the {count} nodes, got {len(values)}",
            )
    for node, (owner, armies) in enumerate(zip(start.owner, start.armies, strict=True)):
        if not _whole(owner) or owner not in (0, 1):
            raise _refuse(name, f"the owner of node {node} must be 0 or 1, got {owner!r}")
        if not _whole(armies) or not 1 <= armies <= MAX_ARMIES:
            raise _refuse(
                name,
                f"the armies of node {node} must be a whole number in 1..{MAX_ARMIES}, "
                f"got {armies!r}",
            )
    if len(set(start.owner)) == 1:
        raise _refuse(
            name, f"player {start.owner[0]} holds every node at the start: the game is already won"
        )


def _circle(count: int) -> list[tuple[float, float]]:
    turns = [2 * math.pi * node / count for node in range(count)]
    return [
        (round(0.5 + 0.42 * math.sin(turn), 4), round(0.5 - 0.42 * math.cos(turn), 4))
        for turn in turns
    ]


# ---- files


def shipped() -> list[str]:
    """Names of the boards that come with the game, from small to large."""
    sizes = {path.stem: path.read_text().count('"id"') for path in FOLDER.glob("*.json")}
    return sorted(sizes, key=lambda name: (sizes[name], name))


def load(name: str) -> Board:
    """A shipped board by its name, or the board in a file of any format that is read here.

    Raises:
        ValueError: there is no such board or file, or it is not a board.
    """
    if name in shipped():
        return read((FOLDER / f"{name}.json").read_text(), name)
    path = Path(name)
    try:
        there = path.is_file()
    except OSError:  # such as a name that is too long for any file
        there = False
    if not there:
        raise ValueError(
            f"there is no board {name!r}; give the path of a file, 'generated', or one of "
            f"{', '.join(shipped())}"
        )
    try:
        text = path.read_text(encoding="utf-8-sig")  # some editors begin a file with a mark
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"board {name!r}: the file cannot be read as text: {error}") from error
    return read(text, path.stem)


def read(text: str, name: str) -> Board:
    """The board in a file's text. The format is recognised:

        canonical      JSON with "continents", as in the module's docstring
        web            JSON with "partitions": the Django program's maps (docs/games/risk.md)
        V n            text with the keys V, E and P, edges as (1 2), ";" begins a comment; two
                       lines of armies per node may follow, player 1's and player 2's
        n              text: the number of nodes, a line "player armies" for each, edges, continents
        n m            text: numbers of nodes and edges, edges, continents, "player armies" lines

    Raises:
        ValueError: it is none of them, or the board in it breaks a promise.
    """
    if text.lstrip()[:1] in "{[" and text.strip():
        try:
            facts = json.loads(text)
        except (json.JSONDecodeError, RecursionError) as error:  # brackets may be nested deeply
            raise _refuse(name, f"this is not JSON: {error}") from error
        if not isinstance(facts, dict):
            raise _refuse(name, "a board in JSON must be an object with nodes and edges")
        reader = _from_web if "partitions" in facts else _from_canonical
        try:
            return reader(facts, name)
        except KeyError as error:
            raise _refuse(name, f"the key {error} is missing in it or in a part of it") from error
        except (TypeError, AttributeError, IndexError) as error:
            raise _refuse(name, f"a part of it is missing or of the wrong kind: {error}") from error
    lines = [line.split(";")[0].strip() for line in text.splitlines()]
    lines = [line for line in lines if line]
    first = lines[0].split() if lines else []
    if len(first) == 2 and first[0] == "V":
        text_reader = _from_v
    elif len(first) in (1, 2) and all(word.isdecimal() for word in first):
        text_reader = _from_armies_first if len(first) == 1 else _from_armies_last
    else:
        raise _refuse(name, f"it is in no format that is known here; it begins {text[:40]!r}")
    try:
        return text_reader(_Numbers(name, lines), name)
    except StopIteration:
        raise _refuse(name, "the file ends too early") from None


def _from_canonical(facts: dict[str, Any], name: str) -> Board:
    unknown = set(facts) - {"name", "nodes", "edges", "continents", "start"}
    if unknown:
        raise _refuse(name, f"there is no key {min(unknown)!r} in a board")
    name = facts.get("name", name)
    nodes = facts["nodes"]
    ids = [node["id"] for node in nodes]
    if ids != list(range(len(nodes))):
        raise _refuse(name, f"the ids of the nodes must be 0, 1, .. in order, got {ids}")
    start = facts.get("start")
    placed = all("x" in node and "y" in node for node in nodes)
    return make_board(
        name,
        facts["edges"],
        [Continent(c["name"], c["bonus"], tuple(c["nodes"])) for c in facts["continents"]],
        Start(tuple(start["owner"]), tuple(start["armies"])) if start is not None else None,
        [str(node.get("label", node["id"])) for node in nodes],
        [(node["x"], node["y"]) for node in nodes] if placed else None,
    )


def _from_web(facts: dict[str, Any], name: str) -> Board:
    """Armies are the title of a node, numbers are texts, ids may have gaps."""
    nodes = facts["nodes"]

    def at(node) -> int:
        if _number(node) not in index:
            raise _refuse(name, f"there is no node with id {_number(node)}")
        return index[_number(node)]

    places = None
    try:
        index = {_number(node["id"]): at for at, node in enumerate(nodes)}
        owner = tuple(_number(str(node["player"]).split()[-1]) - 1 for node in nodes)
        armies = tuple(_number(node["title"]) for node in nodes)
        edges = [
            (at(edge["source"]), at(edge["target"]))
            if isinstance(edge, dict)
            else (at(edge[0]), at(edge[1]))
            for edge in facts["edges"]
        ]
        continents = [
            Continent(f"{number + 1}", _number(part[0]), tuple(at(node) for node in part[1:]))
            for number, part in enumerate(facts["partitions"])
        ]
        if all("x" in node and "y" in node for node in nodes):
            places = _scaled([(float(node["x"]), float(node["y"])) for node in nodes])
    except (ValueError, OverflowError) as error:
        if str(error).startswith("board "):
            raise
        raise _refuse(name, f"a number was expected: {error}") from error
    labels = [str(node["id"]) for node in nodes]
    return make_board(name, edges, continents, Start(owner, armies), labels, places)


def _number(value: Any) -> int:
    """A whole number, or the text of one; ValueError else, also for 1.5 and true."""
    return int(str(value))


def _scaled(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Points moved and shrunk into 0.05..0.95 with their proportions kept."""
    xs, ys = zip(*points, strict=True)
    size = max(max(xs) - min(xs), max(ys) - min(ys)) or 1.0
    return [
        (round(0.05 + 0.9 * (x - min(xs)) / size, 4), round(0.05 + 0.9 * (y - min(ys)) / size, 4))
        for x, y in points
    ]


class _Numbers:
    """The lines of a text file, read as whole numbers."""

    def __init__(self, name: str, lines: list[str]):
        self.name = name
        self._lines = iter(lines)

    def line(self, length: int | None = None, key: str | None = None) -> list[int]:
        text = next(self._lines)
        words = text.strip("()").split()
        if key is not None and words[:1] == [key]:
            words = words[1:]
        elif key is not None:
            raise _refuse(self.name, f"a line '{key} ..' was expected, got {text!r}")
        try:
            numbers = [int(word) for word in words]
        except ValueError:
            raise _refuse(self.name, f"whole numbers were expected, got {text!r}") from None
        if length is not None and len(numbers) != length:
            raise _refuse(self.name, f"{length} numbers were expected, got {text!r}")
        return numbers

    def lines(self, count: int, length: int | None = None) -> list[list[int]]:
        return [self.line(length) for _ in range(count)]

    def rest(self) -> list[list[int]]:
        found = []
        while True:
            try:
                found.append(self.line())
            except StopIteration:
                return found

    def end(self) -> None:
        """Refuses lines that nothing has asked for."""
        for text in self._lines:
            raise _refuse(self.name, f"the file should end before the line {text!r}")


def _numbered(name, edges, groups, start=None) -> Board:
    """Nodes counted from 0 or from 1: every node lies in a continent, so the least one tells.

    groups: (bonus, nodes) of each continent.
    """
    first = min((node for _, nodes in groups for node in nodes), default=0)
    if first not in (0, 1):
        raise _refuse(name, f"nodes must be counted from 0 or from 1, the first one is {first}")
    return make_board(
        name,
        [[node - first for node in edge] for edge in edges],
        [
            Continent(str(number + 1), bonus, tuple(node - first for node in nodes))
            for number, (bonus, nodes) in enumerate(groups)
        ],
        start,
    )


def _players_and_armies(rows: list[list[int]]) -> Start:
    """Lines "player armies"; players are 1 and 2, or 0 and 1 if a 0 occurs."""
    first = 0 if any(player == 0 for player, _ in rows) else 1
    return Start(tuple(p - first for p, _ in rows), tuple(armies for _, armies in rows))


def _from_v(numbers: _Numbers, name: str) -> Board:
    (count,) = numbers.line(1, "V")
    (edge_count,) = numbers.line(1, "E")
    edges = numbers.lines(edge_count, 2)
    (parts,) = numbers.line(1, "P")
    groups = [(row[0], row[1:]) for row in numbers.lines(parts)]
    rest = numbers.rest()
    start = None
    if rest:
        if len(rest) != 2 or any(len(row) != count for row in rest):
            raise _refuse(name, f"two lines of {count} armies were expected at the end")
        for node, pair in enumerate(zip(*rest, strict=True)):
            if sum(armies > 0 for armies in pair) != 1:
                raise _refuse(
                    name, f"node {node + 1} must have armies of exactly one player, got {pair}"
                )
        start = Start(
            tuple(int(first == 0) for first in rest[0]), tuple(map(sum, zip(*rest, strict=True)))
        )
    return _numbered(name, edges, groups, start)


def _from_armies_first(numbers: _Numbers, name: str) -> Board:
    (count,) = numbers.line(1)
    start = _players_and_armies(numbers.lines(count, 2))
    edges = numbers.lines(numbers.line(1)[0], 2)
    groups = _sized(numbers, name, bonus_first=True, count=numbers.line(1)[0])
    numbers.end()
    return _numbered(name, edges, groups, start)


def _from_armies_last(numbers: _Numbers, name: str) -> Board:
    count, edge_count = numbers.line(2)
    edges = numbers.lines(edge_count, 2)
    groups = _sized(numbers, name, bonus_first=False, count=numbers.line(1)[0])
    start = _players_and_armies(numbers.lines(count, 2))
    numbers.end()
    return _numbered(name, edges, groups, start)


def _sized(numbers: _Numbers, name, bonus_first: bool, count: int) -> list[tuple[int, list[int]]]:
    """Lines "bonus size nodes" or "size bonus nodes"."""
    groups = []
    for row in numbers.lines(count):
        if len(row) < 2:
            raise _refuse(name, f"a continent needs a bonus, a size and its nodes, got {row}")
        bonus, size = row[:2] if bonus_first else (row[1], row[0])
        if size != len(row) - 2:
            raise _refuse(name, f"a continent of {size} nodes lists {len(row) - 2}: {row}")
        groups.append((bonus, row[2:]))
    return groups


# ---- generated boards


def generate(nodes: int, seed: int) -> Board:
    """A random planar board: a jittered grid of nodes whose edges thin out.

    A random spanning tree keeps it connected; further edges of the grid, with at most one diagonal
    to a cell, bring it to 1.3 to 1.9 edges per node (the classic map has 83/42). About six nodes
    make a continent, grown from a seed node at a time. A continent pays a third of its nodes and
    gateways, rounded: 2 and 2 for the two smallest continents of the classic map, as there.

    Args:
        nodes: 6..64.
        seed: any integer from 0; equal seeds give equal boards.

    Raises:
        ValueError: out of range.
    """
    if not 6 <= nodes <= MAX_NODES:
        raise ValueError(f"generated boards have 6 to {MAX_NODES} nodes, got {nodes}")
    if seed < 0:
        raise ValueError(f"the seed of a generated board must be at least 0, got {seed}")
    rng = np.random.default_rng([seed, nodes])
    columns = round(math.sqrt(1.4 * nodes))
    rows = -(-nodes // columns)
    edges = _random_edges(rng, nodes, columns)
    home = _grow_continents(rng, nodes, edges, max(2, round(nodes / 6)))
    continents = []
    for number in range(home.max() + 1):
        members = np.flatnonzero(home == number)
        gateways = {u for u, v in [*edges, *((v, u) for u, v in edges)] if home[v] != home[u]}
        size = len(members) + len(gateways & set(members.tolist()))
        continents.append(
            Continent(f"{number + 1}", max(1, round(size / 3)), tuple(members.tolist()))
        )
    jitter = rng.uniform(-0.22, 0.22, (nodes, 2))
    places = [
        (
            round(float((node % columns + 0.5 + jitter[node, 0]) / columns), 4),
            round(float((node // columns + 0.5 + jitter[node, 1]) / rows), 4),
        )
        for node in range(nodes)
    ]
    return make_board(f"generated_{nodes}_{seed}", edges, continents, places=places)


def _random_edges(rng, nodes: int, columns: int) -> list[tuple[int, int]]:
    candidates = []
    for node in range(nodes):
        inside = node % columns + 1 < columns
        if inside and node + 1 < nodes:
            candidates.append((node, node + 1))
        if node + columns < nodes:
            candidates.append((node, node + columns))
        if inside and rng.random() < 0.5:
            if node + columns + 1 < nodes:
                candidates.append((node, node + columns + 1))
        elif inside and node + columns < nodes:
            candidates.append((node + 1, node + columns))
    order = [candidates[at] for at in rng.permutation(len(candidates))]
    root = list(range(nodes))

    def find(node: int) -> int:
        while root[node] != node:
            node = root[node]
        return node

    tree, others = [], []
    for u, v in order:
        a, b = find(u), find(v)
        if a != b:
            root[a] = b
        (tree if a != b else others).append((u, v))
    count = round(float(rng.uniform(1.3, 1.9)) * nodes)
    return tree + others[: max(0, count - len(tree))]


def _grow_continents(rng, nodes: int, edges, count: int) -> np.ndarray:
    """int64 [N]: the continent of each node; connected, and of about equal sizes."""
    beside: list[list[int]] = [[] for _ in range(nodes)]
    for u, v in edges:
        beside[u].append(v)
        beside[v].append(u)
    home = np.full(nodes, -1)
    home[rng.choice(nodes, count, replace=False)] = np.arange(count)
    while (home < 0).any():
        sizes = np.bincount(home[home >= 0], minlength=count)
        for number in np.argsort(sizes, kind="stable"):
            open_nodes = sorted(
                {b for a in np.flatnonzero(home == number) for b in beside[a] if home[b] < 0}
            )
            if open_nodes:
                home[open_nodes[rng.integers(len(open_nodes))]] = number
                break
    return home
