"""Boards of Risk: the canonical file, other programs' formats, what is refused, generated ones."""

import json

import numpy as np
import pytest

from games.risk import boards
from games.risk.boards import Continent, Start, generate, load, make_board, read, shipped

# One board in every format: nodes 0-1-2-3 in a row and 0-2, continents of 5 and 3, as worked_4.
WORKED = load("worked_4")
V_FORMAT = """
; the assignment's example
V 4
E 4
(1 2)
(2 3)
(3 4) ; a comment
(1 3)
P 2
5 1 2
3 3 4
"""
WITH_ARMIES = V_FORMAT + "4 0 2 0\n0 1 0 2\n"
ARMIES_FIRST = "4\n1 4\n2 1\n1 2\n2 2\n4\n0 1\n1 2\n2 3\n0 2\n2\n5 2 0 1\n3 2 2 3\n"
ARMIES_LAST = "4 4\n1 2\n2 3\n3 4\n1 3\n2\n2 5 1 2\n2 3 3 4\n0 4\n1 1\n0 2\n1 2\n"
WEB = {
    "nodes": [
        {"id": 3, "title": "4", "x": 10, "y": 20, "player": "Player 1"},
        {"id": 5, "title": "1", "x": 110, "y": 20, "player": "Player 2"},
        {"id": 8, "title": "2", "x": 110, "y": 70, "player": "Player 1"},
        {"id": 9, "title": "2", "x": 10, "y": 70, "player": "Player 2"},
    ],
    "edges": [["3", "5"], ["5", "8"], ["8", "9"], ["3", "8"]],
    "partitions": [["5", "3", "5"], ["3", "8", "9"]],
    "algo1": "A*",
    "algo2": "Passive",
}


def facts(board):
    """What the rules see of a board."""
    return board.edges, [(c.bonus, c.nodes) for c in board.continents], board.start


@pytest.mark.parametrize(
    "text", [WITH_ARMIES, ARMIES_FIRST, ARMIES_LAST, json.dumps(WEB), WORKED.to_text()]
)
def test_every_format_is_the_same_board(text):
    assert facts(read(text, "mine")) == facts(WORKED)


def test_the_assignments_format_may_have_no_armies():
    board = read(V_FORMAT, "mine")
    assert board.start is None and facts(board)[:2] == facts(WORKED)[:2]


def test_a_web_map_keeps_its_ids_and_proportions():
    board = read(json.dumps(WEB), "mine")
    assert board.labels == ("3", "5", "8", "9")
    assert board.places[0] == (0.05, 0.05) and board.places[2] == (0.95, 0.5)


@pytest.mark.parametrize("name", shipped())
def test_shipped_boards_are_canonical_files(name):
    text = (boards.FOLDER / f"{name}.json").read_text()
    board = load(name)
    assert board.to_text() == text and read(text, "other") == board and board.name == name


def test_boards_are_shipped_from_4_to_42_nodes():
    sizes = [load(name).num_nodes for name in shipped()]
    assert sizes == sorted(sizes) and sizes[0] == 4 and sizes[-1] == 42 and len(sizes) >= 6


def test_the_classic_map():
    # Facts of the classic board: 42 territories, 83 borders, six continents and their bonuses.
    board = load("classic_42")
    assert (board.num_nodes, len(board.edges)) == (42, 83)
    found = {c.name: (c.bonus, len(c.nodes)) for c in board.continents}
    assert found == {
        "North America": (5, 9),
        "South America": (2, 4),
        "Europe": (5, 7),
        "Africa": (3, 6),
        "Asia": (7, 12),
        "Australia": (2, 4),
    }
    near = dict(zip(board.labels, board.neighbours(), strict=True))
    names = {label: {board.labels[n] for n in nodes} for label, nodes in near.items()}
    assert names["Alaska"] == {"Northwest Territory", "Alberta", "Kamchatka"}
    assert names["Siam"] == {"India", "China", "Indonesia"}
    assert names["Middle East"] == {
        "Ukraine", "Southern Europe", "Egypt", "East Africa", "Afghanistan", "India",
    }  # fmt: skip
    # Ways into a continent: 3 for North America, 2 for South America, 1 for Australia.
    for name, gateways in (("North America", 3), ("South America", 2), ("Australia", 1)):
        (nodes,) = (set(c.nodes) for c in board.continents if c.name == name)
        assert sum(any(n not in nodes for n in board.neighbours()[u]) for u in nodes) == gateways


PAIR = {"edges": [(0, 1)], "continents": [Continent("a", 1, (0, 1))]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"edges": [(0, 0)]}, r"must join two different nodes, got \[0, 0\]"),
        ({"edges": [(0, 1), (1, 0)]}, r"the edge \[0, 1\] is listed twice"),
        ({"edges": [(0, 2)]}, r"an edge must join two nodes of 0\.\.1, got \[0, 2\]"),
        ({"edges": [(0, 1, 1)]}, "an edge must join two nodes"),
        ({"edges": []}, "no way leads from node 0 to node 1"),
        ({"continents": [Continent("a", 1, (0,))], "labels": "xy"}, "node 1 lies in no continent"),
        (
            {"continents": [Continent("a", 1, (0, 1)), Continent("b", 1, (1,))]},
            "node 1 lies in continents 'a' and 'b'",
        ),
        ({"continents": [Continent("a", -1, (0, 1))]}, r"bonus of continent 'a' must be a whole"),
        ({"continents": [Continent("a", True, (0, 1))]}, "bonus of continent 'a' must be a whole"),
        ({"continents": [Continent("a", 1, (0, 1)), Continent("b", 1, ())]}, "'b' has no nodes"),
        ({"continents": [Continent("a\nb", 1, (0, 1))]}, "name of a continent must be text of one"),
        ({"continents": [Continent(3, 1, (0, 1))]}, "name of a continent must be text of one line"),
        ({"labels": ["x", "\ud800"]}, "the label of a node must be text of one line"),
        (
            {"places": [(0, 1), (0, 1.01)]},
            r"y of node 1 must be numbers in 0\.\.1, got \[0, 1\.01\]",
        ),
        ({"places": [(float("nan"), 0), (0, 0)]}, "x and y of node 0 must be numbers"),
        ({"places": [("0.5", 0), (0, 0)]}, "x and y of node 0 must be numbers"),
        ({"start": Start((0, 1), (1,))}, "start.armies must have an entry for each of the 2 nodes"),
        ({"start": Start((0, 2), (1, 1))}, "the owner of node 1 must be 0 or 1, got 2"),
        ({"start": Start((0, 1), (1, 0))}, "the armies of node 1 must be a whole number"),
        ({"start": Start((1, 1), (1, 1))}, "player 1 holds every node at the start: .* already w"),
    ],
)
def test_a_board_that_breaks_a_promise_is_refused(change, message):
    with pytest.raises(ValueError, match=f"board 'mine': .*{message}"):
        make_board("mine", **{**PAIR, **change})


@pytest.mark.parametrize("name", ["", "two\nlines", 3, ["a"]])
def test_the_name_of_a_board_is_a_line(name):
    with pytest.raises(ValueError, match="name"):
        make_board(name, **PAIR)


def test_a_board_has_2_to_64_nodes():
    for size in (1, 65):
        row = [(node, node + 1) for node in range(size - 1)]
        with pytest.raises(ValueError, match=f"2 to 64 nodes, it has {size}"):
            make_board("mine", row, [Continent("a", 1, tuple(range(size)))])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it is in no format that is known here"),
        ("hello", "it is in no format that is known here; it begins 'hello'"),
        ("{", "this is not JSON"),
        ("[1]", "a board in JSON must be an object"),
        ("[" * 200_000, "this is not JSON"),
        ("{}", "the key 'nodes' is missing"),
        ('{"nodes": 3, "edges": [], "continents": []}', "a part of it is missing or of the wrong"),
        (WORKED.to_text().replace('"id": 3', '"id": 4'), r"must be 0, 1, \.\. in order"),
        (WORKED.to_text().replace('"edges"', '"roads"'), "there is no key 'roads'"),
        # The original took every map: a node in no partition crashed in mid-game.
        (json.dumps({**WEB, "partitions": [["5", "3", "5", "8"]]}), "node 3 lies in no continent"),
        (json.dumps({**WEB, "edges": [["3", "4"]]}), "there is no node with id 4"),
        (json.dumps({**WEB, "partitions": [["x", "3"]]}), "a number was expected"),
        (V_FORMAT.replace("E 4", "E 5"), r"whole numbers were expected, got 'P 2'"),
        (V_FORMAT.replace("(1 2)", "(1 2 3)"), r"2 numbers were expected, got '\(1 2 3\)'"),
        (V_FORMAT.replace("P 2", "Q 2"), r"a line 'P \.\.' was expected, got 'Q 2'"),
        (V_FORMAT + "4 0 2 0\n", "two lines of 4 armies were expected"),
        (V_FORMAT + "4 1 2 0\n0 1 0 2\n", r"node 2 must have armies of exactly one player"),
        (ARMIES_FIRST[:-10], "the file ends too early"),
        (ARMIES_FIRST.replace("5 2 0 1", "5 3 0 1"), "a continent of 3 nodes lists 2"),
        (ARMIES_FIRST + "2 9\n", "the file should end before the line '2 9'"),
        (ARMIES_LAST + "x\n", "the file should end before the line 'x'"),
        (json.dumps({**WEB, "nodes": [{**WEB["nodes"][0], "id": "x"}]}), "a number was expected"),
        (json.dumps({**WEB, "partitions": [[1.5, "3"]]}), "a number was expected: .*1.5"),
        (json.dumps({**WEB, "partitions": [[float("inf"), "3"]]}), "a number was expected"),
        (json.dumps(WEB).replace("110", "NaN"), r"x and y of node 1 must be numbers in 0\.\.1"),
        (json.dumps(WEB).replace("110", '"far"'), "a number was expected"),
        (json.dumps(WEB).replace("110", "9" * 400), "a number was expected"),
    ],
)
def test_a_file_that_is_no_board_is_refused_in_one_sentence(text, message):
    with pytest.raises(ValueError, match=rf"^board '\w+': .*{message}") as caught:
        read(text, "mine")
    assert "\n" not in str(caught.value).replace("\\n", "")


def test_a_file_is_found_by_its_path(tmp_path):
    path = tmp_path / "map.txt"
    path.write_text(WITH_ARMIES)
    assert facts(load(str(path))) == facts(WORKED) and load(str(path)).name == "map"
    with pytest.raises(
        ValueError, match=r"there is no board '.*other\.txt'; give the path of a file"
    ):
        load(str(tmp_path / "other.txt"))
    path.write_text(WITH_ARMIES.replace("\n", "\r\n"), encoding="utf-8-sig")  # as Windows does
    assert facts(load(str(path))) == facts(WORKED)
    with pytest.raises(ValueError, match="there is no board 'xxx"):
        load("x" * 5000)  # too long for the name of any file
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="cannot be read as text"):
        load(str(path))


@pytest.mark.parametrize("nodes", [6, 7, 12, 30, 41, 64])
def test_generated_boards_are_connected_planar_and_of_one_piece(nodes):
    seen = set()
    for seed in range(20):
        board = generate(nodes, seed)
        assert board == generate(nodes, seed)
        seen.add(board.edges)
        assert board.num_nodes == nodes
        assert nodes - 1 <= len(board.edges) <= 3 * nodes - 6  # a planar graph has no more
        near = board.neighbours()
        for part in board.continents:  # and connected, like the board itself
            reached = {part.nodes[0]}
            for _ in part.nodes:
                reached |= {n for u in reached for n in near[u] if n in part.nodes}
            assert reached == set(part.nodes) and part.bonus >= 1
    assert len(seen) > (5 if nodes < 8 else 15)


def test_generated_boards_cross_no_edges():
    def turns(a, b, c):
        return np.sign((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))

    for seed in range(5):
        board = generate(20, seed)
        columns = round((1.4 * 20) ** 0.5)
        grid = [(node % columns, node // columns) for node in range(20)]
        for i, (a, b) in enumerate(board.edges):
            for c, d in board.edges[:i]:
                if len({a, b, c, d}) == 4:
                    p, q, r, s = (grid[node] for node in (a, b, c, d))
                    crossing = turns(p, q, r) * turns(p, q, s) < 0 > turns(r, s, p) * turns(r, s, q)
                    assert not crossing


def test_sizes_of_generated_boards_are_checked():
    for nodes in (5, 65):
        with pytest.raises(ValueError, match=f"6 to 64 nodes, got {nodes}"):
            generate(nodes, 1)
    with pytest.raises(ValueError, match="at least 0, got -1"):
        generate(6, -1)
