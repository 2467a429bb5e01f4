"""The scripted players of k in a row against plain look-ahead, by hand, and against each other."""

from functools import cache

import numpy as np
import pytest
from plain_rules import PlainRow, lines_of

from games import ILLEGAL, TERMINAL, make_game


def board(width, height, k):
    return make_game("k_in_a_row", width=width, height=height, k=k)


FOUR = board(7, 6, 4)
THREE = board(4, 4, 3)


def choices(game, name, text):
    """The columns that a player may choose in a position, by 200 uniform numbers."""
    states = np.repeat(game.state_from_text(game.rules, text), 200)
    actions = np.full(200, -1, np.int32)
    uniforms = np.linspace(0, 1, 200, endpoint=False)
    game.scripted[name](game.rules, states, game.legal_of(states), uniforms, actions)
    return sorted(set(actions.tolist()))


def test_the_players_of_a_board():
    assert list(FOUR.scripted) == [
        "block_or_random", "alpha_beta_2", "alpha_beta_4", "alpha_beta_6", "perfect_from_14",
    ]  # fmt: skip
    assert FOUR.baselines == ("block_or_random", "alpha_beta_2", "alpha_beta_4")
    assert THREE.baselines[-1] == "perfect"
    assert "alpha_beta_6" not in board(16, 3, 4).scripted  # 16^6 sequences of discs


@pytest.mark.parametrize("name", [name for name in FOUR.scripted if name != "perfect_from_14"])
def test_every_player_takes_a_win_and_blocks_a_loss(name):
    assert choices(FOUR, name, "505050") == [5]  # its own win, not the block in column 0
    assert choices(FOUR, name, "5050501")[0] in (0, 5)  # O wins in 0; nothing to block
    assert choices(FOUR, name, "50505") == [5]  # O must block column 5
    assert choices(FOUR, name, "334455") == [2, 6]  # both ends win


def test_block_or_random_otherwise_plays_anywhere():
    assert choices(FOUR, "block_or_random", "333333") == [0, 1, 2, 4, 5, 6]
    assert choices(FOUR, "block_or_random", "33445") == [2, 6]  # blocks one of two


@cache
def open_lines(width, height, k):
    return [frozenset(line) for line in lines_of(width, height, k)]


def plain_heuristic(plain, size):
    """What games/k_in_a_row_players.py says in words, counted line by line."""
    me = plain.played % 2
    value = 0
    for player, sign in ((me, 1), (1 - me, -1)):
        wins = set()
        for line in open_lines(*size):
            owners = [plain.cell(*cell) for cell in line]
            if 1 - player not in owners:
                value += sign
                if owners.count(player) == len(line) - 1:
                    wins |= {cell for cell in line if plain.cell(*cell) is None}
        value += 4 * sign * len(wins)
    return value


def plain_value(plain, depth, size):
    cells = size[0] * size[1]
    if plain.winner is not None:
        return -1000 * ((cells - plain.played + 2) // 2)
    if plain.over():
        return 0
    if depth == 0:
        return plain_heuristic(plain, size)
    return max(plain_values(plain, depth, size).values())


def plain_values(plain, depth, size):
    values = {}
    for column in plain.legal():
        child = plain.copy()
        child.play(column)
        values[column] = -plain_value(child, depth - 1, size)
    return values


@pytest.mark.parametrize(
    ("size", "depth", "count"),
    [((7, 6, 4), 2, 40), ((5, 4, 3), 4, 12), ((4, 3, 3), 6, 20), ((1, 6, 3), 4, 5)],
)
def test_alpha_beta_chooses_what_plain_minimax_finds_best(size, depth, count):
    rng = np.random.default_rng(6)
    game = board(*size)
    for _ in range(count):
        plain, text = PlainRow(*size), ""
        for _ in range(rng.integers(0, size[0] * size[1] - 1)):
            column = int(rng.choice(plain.legal()))
            after = plain.copy()
            after.play(column)
            if after.over():
                break
            plain, text = after, text + str(column)
        values = plain_values(plain, depth, size)
        best = [column for column, value in values.items() if value == max(values.values())]
        assert choices(game, f"alpha_beta_{depth}", text) == best


def play(game, first, second, count, opening=0):
    """float [count]: what the first player receives in games between two scripted players."""
    rng = np.random.default_rng(7)
    states = game.initial_states(np.arange(count))
    while (states["player"] != TERMINAL).any():
        legal = game.legal_of(states)
        actions = np.zeros(count, np.int32)
        for player, name in enumerate((first, second)):
            rows = np.flatnonzero(states["player"] == player)
            if len(rows):
                chosen = np.empty(len(rows), np.int32)
                uniforms = rng.random(len(rows))
                game.scripted[name](game.rules, states[rows], legal[rows], uniforms, chosen)
                actions[rows] = chosen
        states = game.after(states, actions)
    return game.returns_of(states)[:, 0]


@pytest.mark.parametrize(
    ("size", "value"), [((4, 4, 3), 1), ((3, 3, 3), 0), ((4, 4, 4), 0), ((5, 3, 3), 1)]
)
def test_perfect_players_get_the_value_of_the_game(size, value):
    # 4 x 4 with 3 and 3 x 3: minimax in test_k_in_a_row.py; 4 x 4 with 4: J. Tromp.
    game = board(*size)
    assert (play(game, "perfect", "perfect", 50) == value).all()
    against = play(game, "perfect", "block_or_random", 50)
    assert (against >= value).all()


def test_perfect_chooses_all_of_the_best_columns_and_no_other():
    states = np.concatenate([THREE.state_from_text(THREE.rules, text) for text in ("0", "01", "1")])
    for state in states:
        text = THREE.state_to_text(THREE.rules, state)
        scores = THREE.solver.scores(THREE.rules, state[None])[0]
        assert choices(THREE, "perfect", text) == np.flatnonzero(scores == scores.max()).tolist()


def test_late_perfection_begins_with_the_ply_in_its_name():
    solution = FOUR.solution()
    rows = np.flatnonzero(np.isin(solution.states["ply"], (13, 14, 22, 30)))[:120]
    states, known = solution.states[rows], solution.scores[rows]
    legal = FOUR.legal_of(states)
    uniforms = np.random.default_rng(8).random(len(rows))
    chosen, ahead = np.empty((2, len(rows)), np.int32)
    FOUR.scripted["perfect_from_14"](FOUR.rules, states, legal, uniforms, chosen)
    FOUR.scripted["alpha_beta_6"](FOUR.rules, states, legal, uniforms, ahead)
    late = states["ply"] >= 14
    right = known[np.arange(len(rows)), chosen] == known.max(axis=1)
    assert 0 < late.sum() < len(rows)
    assert right[late].all() and not right[~late].all()
    assert (chosen[~late] == ahead[~late]).all()
    assert (known[np.arange(len(rows)), chosen] != ILLEGAL).all()
