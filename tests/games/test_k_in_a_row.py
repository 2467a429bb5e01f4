"""k in a row against published counts, every line of a board, and a plain implementation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_rules import PlainRow, lines_of, walk
from position_graph import layers

from games import TERMINAL, make_game

# Boards that fill the 64 bits, and boards with a side of one.
EDGES = [(16, 3, 3), (8, 7, 5), (4, 15, 4), (32, 1, 3), (2, 31, 31), (1, 63, 7), (1, 2, 2)]
COLUMNS = "0123456789abcdefghijklmnopqrstuvwxyz"
BOARDS = [(7, 6, 4), (4, 4, 3), (4, 4, 4), (6, 7, 4), (3, 3, 3), (5, 4, 2), (6, 5, 6), *EDGES]


def board(width, height, k):
    return make_game("k_in_a_row", width=width, height=height, k=k)


def bit(game, cell):
    column, row = cell
    return 1 << (column * (game.params["height"] + 1) + row)


def wins(game, disc_sets):
    """bool [N]: do the rules call these discs (uint64 bitboards) of the last mover a win?"""
    states = np.zeros(len(disc_sets), game.state_dtype)
    states["player"], states["ply"] = TERMINAL, 1
    states["occupied"] = disc_sets
    returns = game.returns_of(states)
    assert (returns[:, 0] == -returns[:, 1]).all()
    return returns[:, 0] == 1


# ---- published counts


def test_positions_of_connect_four_by_ply():
    # OEIS A212693 (J. Tromp): legal 7 x 6 positions after n plies; a won game goes no further.
    counts = [len(layer[0]) for layer, _ in zip(layers(board(7, 6, 4)), range(9), strict=False)]
    assert counts == [1, 7, 49, 238, 1120, 4263, 16422, 54859, 184275]


@pytest.mark.parametrize(
    ("width", "height", "games", "value"),
    [(4, 3, 356232, 0), (5, 4, 152505051772, 0), (4, 4, None, 0)],
)
def test_number_and_value_of_all_games(width, height, games, value):
    # Games: OEIS A342329 (R. Jehn), games of Connect Four on an (n + 1) x n board. Values: the
    # table of J. Tromp, "John's Connect Four Playground": 4 x 4 and 5 x 4 are draws.
    game = board(width, height, 4)
    graph = list(layers(game))
    over = [states["player"] == TERMINAL for states, *_ in graph]
    ended = sum(ways[done].sum() for (_, ways, *_), done in zip(graph, over, strict=True))
    if games is not None:
        assert ended == games  # a float64 holds it exactly
    assert solve(game, graph) == value


def solve(game, graph):
    """The value of the start for the first player, from the last layer back."""
    best = None
    for ply, (states, _, parents, children) in reversed(list(enumerate(graph))):
        values = game.returns_of(states)[:, ply % 2]  # for the player to move, if it is over
        if best is not None:
            later = np.full(len(states), -np.inf)
            np.maximum.at(later, parents, -best[children])
            values = np.where(states["player"] == TERMINAL, values, later)
        best = values
    return best[0]


def minimax(plain, known):
    """The value for the player to move, over the plain rules."""
    if plain.over():
        return plain.returns()[plain.played % 2]
    if plain.position() not in known:
        values = []
        for column in plain.legal():
            child = plain.copy()
            child.play(column)
            values.append(-minimax(child, known))
        known[plain.position()] = max(values)
    return known[plain.position()]


@pytest.mark.parametrize(("size", "value"), [((4, 4, 3), 1), ((3, 3, 3), 0), ((2, 3, 2), 1)])
def test_values_of_small_boards_equal_minimax_over_plain_rules(size, value):
    assert minimax(PlainRow(*size), {}) == value
    assert solve(board(*size), list(layers(board(*size)))) == value


@pytest.mark.parametrize(
    ("size", "plies"),
    [((7, 6, 4), 5), ((4, 4, 3), 9), ((5, 3, 3), 8), ((3, 3, 2), 9), ((12, 1, 2), 5)],
)
def test_counts_by_ply_agree_with_plain_rules(size, plies):
    counted = [
        (len(states), int(ways.sum()))
        for (states, ways, *_), _ in zip(layers(board(*size)), range(plies + 1), strict=False)
    ]
    positions, sequences = walk(PlainRow(*size), plies)
    expected = [pair for pair in zip(positions, sequences, strict=True) if pair != (0, 0)]
    assert counted == expected


# ---- lines


def number_of_lines(width, height, k):
    across, up = max(width - k + 1, 0), max(height - k + 1, 0)
    return across * height + width * up + 2 * across * up


@pytest.mark.parametrize(
    ("width", "height", "lines"),
    [
        (4, 4, 10), (5, 4, 17), (5, 5, 28), (6, 4, 24), (6, 5, 39), (6, 6, 54), (7, 4, 31),
        (7, 5, 50), (7, 6, 69), (7, 7, 88), (8, 4, 38), (8, 5, 61), (8, 6, 84), (8, 7, 107),
    ],
)  # fmt: skip
def test_number_of_lines_of_four(width, height, lines):
    # OEIS A364823: possible places of four connected discs.
    game = board(width, height, 4)
    assert number_of_lines(width, height, 4) == lines
    sets = [sum(bit(game, cell) for cell in line) for line in set(lines_of(width, height, 4))]
    assert len(sets) == lines
    assert wins(game, np.array(sets, np.uint64)).all()


@pytest.mark.parametrize(("width", "height", "k"), BOARDS)
def test_every_line_wins_and_no_line_short_of_a_cell(width, height, k):
    game = board(width, height, k)
    lines = set(lines_of(width, height, k))
    assert len(lines) == number_of_lines(width, height, k)
    full = [sum(bit(game, cell) for cell in line) for line in lines]
    assert wins(game, np.array(full, np.uint64)).all()
    everything = (1 << width * (height + 1)) - 1
    short = [
        discs - bit(game, cell) for line, discs in zip(lines, full, strict=True) for cell in line
    ]
    assert not wins(game, np.array(short, np.uint64) & np.uint64(everything)).any()


@pytest.mark.parametrize(("width", "height", "k"), BOARDS)
def test_no_bits_in_step_win_that_are_not_a_line(width, height, k):
    """k bits at equal distances that run over the edge of a column, of a row, or nowhere near."""
    game = board(width, height, k)
    lines = {sum(bit(game, cell) for cell in line) for line in lines_of(width, height, k)}
    cells = [bit(game, (c, r)) for c in range(width) for r in range(height)]
    board_bits = sum(cells)
    sets = set()
    for start in range(width * (height + 1)):
        for shift in range(1, width * (height + 1)):
            discs = sum(1 << (start + i * shift) for i in range(k))
            if discs & ~board_bits == 0:
                sets.add(discs)
    assert lines <= sets
    sets = sorted(sets)
    expected = [discs in lines for discs in sets]
    assert wins(game, np.array(sets, np.uint64)).tolist() == expected


@pytest.mark.parametrize(("width", "height", "k"), BOARDS)
def test_random_discs_win_just_if_they_hold_a_line(width, height, k):
    game = board(width, height, k)
    lines = np.array(
        [sum(bit(game, cell) for cell in line) for line in lines_of(width, height, k)], np.uint64
    )
    rng = np.random.default_rng(7)
    sets = np.zeros(1500, np.uint64)
    density = rng.random(len(sets))
    for column in range(width):
        for row in range(height):
            there = (rng.random(len(sets)) < density).astype(np.uint64)
            sets |= there * np.uint64(bit(game, (column, row)))
    expected = ((sets[:, None] & lines) == lines).any(axis=1)
    assert 0 < expected.sum() < len(sets)
    assert wins(game, sets).tolist() == expected.tolist()


def random_games(game, games, seed):
    """Plays random games; yields (states before, actions, states after), without finished rows."""
    rng = np.random.default_rng(seed)
    states = game.initial_states(np.arange(games))
    while len(states):
        legal = game.legal_of(states)
        actions = np.where(legal, rng.random(legal.shape), -1).argmax(axis=1)
        after = game.after(states, actions)
        yield states, actions, after
        states = after[after["player"] != TERMINAL]


def test_each_of_the_69_lines_is_won_by_both_players_in_play():
    game = board(7, 6, 4)
    lines = np.array(
        [sum(bit(game, cell) for cell in line) for line in lines_of(7, 6, 4)], np.uint64
    )
    completed = np.zeros((2, len(lines)), np.bool_)
    for before, _, after in random_games(game, 20_000, seed=1):
        discs = after["mover"] ^ after["occupied"]  # of whoever has just moved
        has = (discs[:, None] & lines) == lines
        won = has.any(axis=1)
        full = after["ply"] == 42
        assert ((after["player"] == TERMINAL) == (won | full)).all()
        returns = game.returns_of(after)
        movers = before["player"]
        assert (returns[np.arange(len(after)), movers] == won).all()
        assert (returns[np.arange(len(after)), 1 - movers] == -won.astype(float)).all()
        for player in (0, 1):
            completed[player] |= has[movers == player].any(axis=0)
    assert completed.all()


# ---- single positions

DRAWN = "124435421453006125413155133340202256660606"
WON_BY_THE_LAST_DISC = "226231165614100225414502551564446006033333"


def test_a_full_board_without_a_line_is_a_draw():
    game = board(7, 6, 4)
    before = game.state_from_text(game.rules, DRAWN[:-1])
    assert before["player"][0] == 1
    assert np.nonzero(game.legal_of(before)[0])[0].tolist() == [6]
    state = game.after(before, [6])
    assert game.state_to_text(game.rules, state[0]).endswith("a draw")
    assert state["player"][0] == TERMINAL and state["ply"][0] == 42
    assert game.returns_of(state)[0].tolist() == [0, 0]
    assert not game.legal_of(state).any()
    assert plainly_played((7, 6, 4), DRAWN).returns() == [0, 0]


def test_a_line_with_the_very_last_disc_is_a_win_and_no_draw():
    game = board(7, 6, 4)
    before = game.state_from_text(game.rules, WON_BY_THE_LAST_DISC[:-1])
    assert before["player"][0] == 1 and before["ply"][0] == 41
    state = game.after(before, [3])
    assert state["player"][0] == TERMINAL
    assert game.returns_of(state)[0].tolist() == [-1, 1]
    assert game.state_to_text(game.rules, state[0]).endswith("O has won")
    assert plainly_played((7, 6, 4), WON_BY_THE_LAST_DISC).returns() == [-1, 1]


def plainly_played(size, columns):
    plain = PlainRow(*size)
    for column in columns:
        plain.play(int(column))
    return plain


RISING = """
. . . . . . .
. . . . . . .
. . . X . . .
. . X O . . .
. X O O . . .
X O O X . . X
0 1 2 3 4 5 6
X has won
"""

FALLING = """
. . . . . . .
. . . . . . .
. . . X . . .
. . . O X . .
. . . O O X .
X . . X O O X
0 1 2 3 4 5 6
X has won
"""

UPRIGHT = """
. . . . . . .
. . . . . . .
. . . O . . .
. . . O . . .
. . . O . . .
X X X O . . X
0 1 2 3 4 5 6
O has won
"""

LEVEL = """
. . . . . . .
. . . . . . .
. . . . . . .
. . . . . . X
. . . . . . X
O O O O . X X
0 1 2 3 4 5 6
O has won
"""


@pytest.mark.parametrize(
    ("columns", "drawing"),
    [
        ("01123223633", RISING),
        ("65543443033", FALLING),
        ("03132363", UPRIGHT),
        ("60616253", LEVEL),
    ],
)
def test_the_four_directions(columns, drawing):
    game = board(7, 6, 4)
    before = game.state_from_text(game.rules, columns[:-1])
    assert before["player"][0] == (len(columns) - 1) % 2
    state = game.state_from_text(game.rules, columns)
    assert game.state_to_text(game.rules, state[0]) == drawing.strip()
    assert game.state_from_text(game.rules, drawing) == state
    returns = [1, -1] if "X has won" in drawing else [-1, 1]
    assert game.returns_of(state)[0].tolist() == returns
    assert plainly_played((7, 6, 4), columns).returns() == returns


def test_a_full_column_is_illegal():
    game = board(7, 6, 4)
    state = game.state_from_text(game.rules, "30303")
    assert game.legal_of(state)[0].all()  # column 3 has three discs
    state = game.state_from_text(game.rules, "333333")
    assert np.nonzero(game.legal_of(state)[0])[0].tolist() == [0, 1, 2, 4, 5, 6]
    with pytest.raises(ValueError, match="no position of this game"):
        game.state_from_text(game.rules, "3333333")


def test_what_is_seen():
    game = board(4, 4, 3)
    state = game.state_from_text(game.rules, "0112")

    def seen_by(player):
        row = game.observations_of(state, [player])[0]
        return [name for name, there in zip(game.observation_names, row, strict=True) if there]

    # . . . .
    # . . . .
    # . X . .
    # X O O .
    assert seen_by(0) == ["mine 01", "mine 12", "theirs 11", "theirs 21"]
    assert seen_by(1) == ["mine 11", "mine 21", "theirs 01", "theirs 12"]


# ---- symmetries


def test_the_rules_treat_both_seats_alike():
    """The same discs a ply later: all is the same with the seats exchanged."""
    game = board(5, 4, 3)
    for states, actions, after in random_games(game, 500, seed=2):
        if states["ply"][0] >= 18:  # the ply says when the board is full
            break
        exchanged = states.copy()
        exchanged["ply"] += 1
        exchanged["player"] = 1 - states["player"]
        result = game.after(exchanged, actions)
        assert (game.legal_of(exchanged) == game.legal_of(states)).all()
        assert ((after["player"] == TERMINAL) == (result["player"] == TERMINAL)).all()
        assert (game.returns_of(after) == game.returns_of(result)[:, ::-1]).all()
        for player in (0, 1):
            mine = game.observations_of(after, np.full(len(after), player))
            theirs = game.observations_of(result, np.full(len(after), 1 - player))
            assert (mine == theirs).all()


@pytest.mark.parametrize(("width", "height", "k"), [(7, 6, 4), (4, 4, 3), (16, 3, 3), (2, 31, 5)])
def test_a_mirrored_game_is_the_mirror_of_the_game(width, height, k):
    game = board(width, height, k)
    (mirror,) = game.symmetries
    assert mirror.action.tolist() == list(range(width))[::-1]
    turned = dict(zip(COLUMNS[:width], COLUMNS[:width][::-1], strict=True))
    for name, feature in zip(game.observation_names, mirror.observation, strict=True):
        who, cell = name.split()
        assert game.observation_names[feature] == f"{who} {turned[cell[0]]}{cell[1:]}"
    images = game.initial_states(np.arange(300))
    for states, actions, after in random_games(game, 300, seed=3):
        image = game.after(images, width - 1 - actions)
        assert (image["player"] == after["player"]).all()
        assert (game.returns_of(image) == game.returns_of(after)).all()
        assert (game.legal_of(image)[:, ::-1] == game.legal_of(after)).all()
        for player in (0, 1):
            who = np.full(len(states), player)
            seen = game.observations_of(after, who)
            assert (game.observations_of(image, who) == seen[:, mirror.observation]).all()
        images = image[after["player"] != TERMINAL]


def test_a_board_of_one_column_has_no_mirror():
    assert board(1, 9, 4).symmetries == ()


# ---- against plain rules

SIZES = st.one_of(
    st.sampled_from(EDGES),
    st.integers(1, 12).flatmap(
        lambda width: st.integers(1 if width > 1 else 2, 64 // width - 1).flatmap(
            lambda height: st.tuples(
                st.just(width), st.just(height), st.integers(2, max(width, height))
            )
        )
    ),
)


def drawn(plain):
    """The text of a position, from the plain rules."""
    marks = {None: ".", 0: "X", 1: "O"}
    rows = [
        " ".join(marks[plain.cell(column, row)] for column in range(plain.width))
        for row in reversed(range(plain.height))
    ]
    if plain.winner is not None:
        who = f"{'XO'[plain.winner]} has won"
    else:
        who = "a draw" if plain.over() else f"{'XO'[plain.played % 2]} to move"
    columns = " ".join(COLUMNS[: plain.width])
    return "\n".join([*rows, columns, who])


@settings(derandomize=True, deadline=None, max_examples=150)
@given(SIZES, st.lists(st.integers(0, 719), max_size=63))
def test_random_games_equal_those_of_plain_rules(size, choices):
    game, plain = board(*size), PlainRow(*size)
    state = game.initial_states([0])
    played = ""
    for choice in [*choices, 0]:
        legal = plain.legal()
        assert np.nonzero(game.legal_of(state)[0])[0].tolist() == legal
        assert state["player"][0] == (TERMINAL if plain.over() else plain.played % 2)
        assert state["ply"][0] == plain.played
        assert game.returns_of(state)[0].tolist() == plain.returns()
        text = game.state_to_text(game.rules, state[0])
        assert text == drawn(plain)
        assert game.state_from_text(game.rules, text) == state
        assert game.state_from_text(game.rules, played) == state
        owners = [[plain.cell(c, r) for c in range(size[0])] for r in range(size[1])]
        assert game.state_to_json(game.rules, state[0])["cells"] == owners
        for player in (0, 1):
            planes = game.observations_of(state, [player])[0].reshape(2, size[1], size[0])
            for plane, owner in zip(planes, (player, 1 - player), strict=True):
                assert plane.tolist() == [[float(o == owner) for o in row] for row in owners]
        if not legal:
            break
        column = legal[choice % len(legal)]
        played += game.action_to_text(game.rules, column).removeprefix("column ")
        plain.play(column)
        state = game.after(state, [column])


# ---- texts

START = """
. . . .
. . . .
. . . .
0 1 2 3
X to move
""".strip()


def test_the_empty_text_is_the_start():
    game = board(4, 3, 3)
    for text in ("", " \n", START, START.removesuffix("\nX to move"), "\n".join(3 * [". . . ."])):
        assert game.state_from_text(game.rules, text) == game.initial_states([0])


@pytest.mark.parametrize(
    "text",
    [
        "4",  # no such column
        "0000",  # a fourth disc in a column of three
        "010 2",  # nothing between the columns
        "010101",  # X has won with the fifth
        "-1",
        START.replace("X to move", "O to move"),
        START.replace("X to move", "a draw"),
        START.replace("0 1 2 3", "3 2 1 0"),
        START.replace(". . . .", ". . . . .", 1),
        START + "\nand more",
        "\n".join(START.splitlines()[1:]),  # a row is missing
        ". . . .\n. . . .\nX X . .",  # O has missed a turn
        ". . . .\n. . . .\nO . . .",  # O began
        "X . . .\n. . . .\n. . . .",  # nothing below
        ". . . .\n. . . .\nX ? . .",
        ". . . .\nO . . .\nX X X O\n0 1 2 3\nO to move",  # X has won
        "O . . .\nO . . .\nX X X O",  # O went on although X had won
    ],
)
def test_bad_texts_are_refused_with_what_was_expected(text):
    game = board(4, 3, 3)
    with pytest.raises(ValueError, match=r"expected the columns played .* digits below 4, or a dr"):
        game.state_from_text(game.rules, text)


def near_misses():
    """Drawings of the 4 x 3 board with a few characters replaced, added or left out."""

    def spoil(text, edits):
        for place, letter, longer in edits:
            place %= len(text) + 1
            text = text[:place] + letter + text[place + (not longer) :]
        return text

    game = board(4, 3, 3)
    texts = [START]
    for _, _, after in random_games(game, 3, seed=5):
        texts += [game.state_to_text(game.rules, state) for state in after]
    edit = st.tuples(st.integers(0, 60), st.sampled_from(["", *"XO. \n0123"]), st.booleans())
    return st.builds(spoil, st.sampled_from(texts), st.lists(edit, max_size=3))


@settings(derandomize=True, deadline=None, max_examples=500)
@given(st.one_of(st.text(max_size=30), st.text("0123", max_size=13), near_misses()))
def test_any_text_is_a_position_or_a_value_error(text):
    game = board(4, 3, 3)
    try:
        state = game.state_from_text(game.rules, text)
    except ValueError:
        return
    assert game.state_from_text(game.rules, game.state_to_text(game.rules, state[0])) == state
