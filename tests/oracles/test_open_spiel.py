"""k in a row step by step beside connect_four of OpenSpiel, on boards of all sizes."""

import numpy as np
import pytest

from games import TERMINAL, make_game

pyspiel = pytest.importorskip("pyspiel")

# Every board up to 64 bits, with every k that fits on it.
SIZES = [
    (width, height, k)
    for width in range(1, 33)
    for height in range(1, 64 // width)
    for k in range(2, max(width, height) + 1)
]


def test_every_board_fits_the_64_bits():
    assert all(width * (height + 1) <= 64 for width, height, _ in SIZES)
    assert {(7, 6, 4), (4, 4, 3), (32, 1, 2), (2, 31, 31), (1, 63, 63)} <= set(SIZES)


def play_beside(width, height, k, rng):
    game = make_game("k_in_a_row", width=width, height=height, k=k)
    oracle = pyspiel.load_game(
        "connect_four", {"rows": height, "columns": width, "x_in_row": k}
    ).new_initial_state()
    state = game.initial_states([0])
    played = []
    while True:
        where = f"{width} x {height}, {k} in a row, after {played}"
        assert (state["player"][0] == TERMINAL) == oracle.is_terminal(), where
        assert np.nonzero(game.legal_of(state)[0])[0].tolist() == oracle.legal_actions(), where
        assert game.returns_of(state)[0].tolist() == oracle.returns(), where
        if oracle.is_terminal():
            return played, oracle.returns()
        assert state["player"][0] == oracle.current_player(), where
        action = int(rng.choice(oracle.legal_actions()))
        played.append(action)
        oracle.apply_action(action)
        state = game.after(state, [action])


def test_random_games_on_boards_of_all_sizes():
    rng = np.random.default_rng(20)
    for index in rng.choice(len(SIZES), 400, replace=False):
        play_beside(*SIZES[index], rng)


@pytest.mark.parametrize("size", [(7, 6, 4), (4, 4, 3), (8, 7, 4), (16, 3, 3), (4, 4, 4)])
def test_many_games_on_the_boards_that_are_played(size):
    rng = np.random.default_rng(21)
    endings = [tuple(play_beside(*size, rng)[1]) for _ in range(60)]
    assert {(1, -1), (-1, 1)} <= set(endings)


def test_drawn_games():
    rng = np.random.default_rng(22)
    drawn = [play_beside(4, 4, 4, rng) for _ in range(60)]
    assert any(returns == [0, 0] for _, returns in drawn)
