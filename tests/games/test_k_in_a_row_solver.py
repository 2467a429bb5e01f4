"""The solver against brute force, against the scores of another solver, and against itself."""

import numpy as np
import pytest
from position_graph import scored_layers

from games import ILLEGAL, TERMINAL, make_game
from games.game import contested, weakly_right
from games.k_in_a_row_solver import first_solvable_ply, score_columns, search_memory


def board(width, height, k):
    return make_game("k_in_a_row", width=width, height=height, k=k)


FOUR = board(7, 6, 4)


def scores_of(game, states):
    return game.solver.scores(game.rules, states)


def random_positions(game, ply, count, seed):
    """Positions of that ply from random games that are not over."""
    rng = np.random.default_rng(seed)
    states = game.initial_states(np.arange(8 * count))
    for _ in range(ply):
        legal = game.legal_of(states)
        states = game.after(states, np.where(legal, rng.random(legal.shape), -1).argmax(axis=1))
        states = states[states["player"] != TERMINAL]
    assert len(states) >= count
    return states[:count]


@pytest.mark.parametrize(
    "size",
    [
        (3, 3, 3), (4, 3, 3), (3, 4, 4), (4, 4, 3), (4, 4, 4), (5, 4, 3), (3, 5, 2), (2, 6, 4),
        (5, 3, 3), (8, 2, 3), (6, 2, 5), (12, 1, 3), (9, 1, 2), (1, 7, 3), (1, 2, 2), (2, 1, 2),
    ],
)  # fmt: skip
def test_scores_of_small_boards_equal_brute_force(size):
    game = board(*size)
    rng = np.random.default_rng(1)
    for states, known in scored_layers(game):
        some = rng.permutation(len(states))[:100]
        assert (scores_of(game, states[some]) == known[some]).all()


def test_scores_of_the_data_equal_ours_from_ply_17_on():
    # 4,000 positions, scored by BitBully 0.0.79: games/data/README.md. All of them: tests/slow/.
    solution = FOUR.solution()
    late = solution.states["ply"] >= 17
    assert late.sum() == 1090
    assert (scores_of(FOUR, solution.states[late]) == solution.scores[late]).all()


def test_the_data_are_what_their_page_says():
    solution = FOUR.solution()
    assert len(solution.states) == 4000
    assert solution.states["ply"].min() == 4 and solution.states["ply"].max() == 36
    assert contested(solution.scores).sum() == 1984
    assert ((solution.scores != ILLEGAL) == FOUR.legal_of(solution.states)).all()


def test_scores_by_hand():
    # X has 3, 4 and 5 on the bottom row and is to move: a win with the disc of ply 6 is worth
    # (43 - 6) // 2 = 18.
    state = FOUR.state_from_text(FOUR.rules, "334455")
    assert scores_of(FOUR, state)[0, [2, 6]].tolist() == [18, 18]
    # The same with O to move, who can block one end only: X wins with the disc of ply 6.
    state = FOUR.state_from_text(FOUR.rules, "33445")
    assert scores_of(FOUR, state)[0].tolist() == [-18] * 7
    # Three upright discs of X, O to move: all but the block lose to the disc of ply 6.
    scores = scores_of(FOUR, FOUR.state_from_text(FOUR.rules, "30313"))[0]
    assert np.delete(scores, 3).tolist() == [-18] * 6 and scores[3] > -18
    # The last disc of a full board is worth (43 - 41) // 2 = 1 if it wins.
    state = FOUR.state_from_text(FOUR.rules, "22623116561410022541450255156444600603333")
    assert scores_of(FOUR, state)[0].tolist() == [ILLEGAL] * 3 + [1] + [ILLEGAL] * 3


def test_the_start_of_known_boards():
    # 4 x 4 and 5 x 4 with k = 4 are draws, 6 x 4 is a loss for the player who begins, and 5 x 5 a
    # draw: J. Tromp, "John's Connect Four Playground".
    for size, sign in (((4, 4, 4), 0), ((5, 4, 4), 0), ((6, 4, 4), -1), ((5, 5, 4), 0)):
        game = board(*size)
        assert np.sign(scores_of(game, game.initial_states([0])).max()) == sign


def test_after_the_end_every_column_is_illegal():
    state = FOUR.state_from_text(FOUR.rules, "3031323")
    assert state["player"][0] == TERMINAL
    assert (scores_of(FOUR, state) == ILLEGAL).all()
    assert scores_of(FOUR, state[:0]).shape == (0, 7)


@pytest.mark.parametrize(("size", "ply"), [((7, 6, 4), 20), ((6, 5, 5), 16), ((8, 7, 3), 10)])
def test_a_mirrored_position_has_mirrored_scores(size, ply):
    game = board(*size)
    width, height, _ = size
    bits = [
        (column * (height + 1) + row, (width - 1 - column) * (height + 1) + row)
        for column in range(width)
        for row in range(height)
    ]
    states = random_positions(game, ply, 40, seed=2)
    images = states.copy()
    for field in ("mover", "occupied"):
        images[field] = sum(
            (states[field] >> np.uint64(a) & np.uint64(1)) << np.uint64(b) for a, b in bits
        )
    assert (scores_of(game, images) == scores_of(game, states)[:, ::-1]).all()


def test_along_best_play_the_score_keeps_and_the_game_ends_when_it_says():
    states = random_positions(FOUR, 18, 60, seed=3)
    best = scores_of(FOUR, states).max(axis=1)
    sign = np.ones(len(states), np.int16)
    started = best.copy()
    while len(states):
        scores = scores_of(FOUR, states)
        assert (scores.max(axis=1) == sign * started).all()
        movers = states["player"]
        states = FOUR.after(states, scores.argmax(axis=1))
        over = states["player"] == TERMINAL
        paid = FOUR.returns_of(states)[np.arange(len(states)), movers]
        assert (paid[over] == np.sign(sign * started)[over]).all()
        won = over & (paid > 0)
        assert ((43 - (states["ply"][won] - 1)) // 2 == (sign * started)[won]).all()
        states, sign, started = states[~over], -sign[~over], started[~over]


def test_what_the_table_holds_changes_no_score():
    states = random_positions(FOUR, 19, 30, seed=4)
    used = scores_of(FOUR, states)
    memory = search_memory(FOUR.rules)
    # A table of 257 entries is overwritten all the time.
    tiny = memory._replace(table=np.zeros(257, np.uint64))
    again = np.empty_like(used)
    score_columns(FOUR.rules, states, tiny, again)
    assert (used == again).all()


@pytest.mark.parametrize(
    ("size", "ply"),
    [((7, 6, 4), 14), ((4, 4, 3), 0), ((5, 4, 4), 0), ((6, 5, 4), 10), ((7, 6, 5), 20)],
)
def test_from_where_a_board_is_solvable(size, ply):
    game = board(*size)
    assert first_solvable_ply(game.rules) == ply
    states = np.zeros(2, game.state_dtype)
    states["ply"] = ply, ply - 1
    assert game.solver.solvable(game.rules, states).tolist() == [True, False]
    assert (game.solution is not None) == (ply == 0 or size == (7, 6, 4))


@pytest.mark.parametrize("size", [(4, 4, 3), (5, 4, 4), (3, 3, 3)])
def test_the_positions_of_a_small_board_are_a_fixed_solved_sample(size):
    game = board(*size)
    solution = game.solution()
    assert (scores_of(game, solution.states) == solution.scores).all()
    assert (game.legal_of(solution.states).sum(axis=1) > 1).all()
    assert len(np.unique(solution.states)) == len(solution.states)
    matters = contested(solution.scores)
    if size != (3, 3, 3):  # which has fewer positions
        assert matters.sum() == 500 and (~matters).sum() == 500
    assert (
        weakly_right(solution.scores)[~matters].sum()
        == game.legal_of(solution.states[~matters]).sum()
    )
