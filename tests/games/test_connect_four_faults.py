"""Faults of the notebook that the Connect Four experiment starts from, in which the rules had a
part: a test for each, with a position in which it showed. The faults of its learning, 1 to 6, 13
and 14, are tested in tests/pipeline/.
"""

import numpy as np
import pytest

from games import TERMINAL, make_game
from games.k_in_a_row_solver import board_of, completing_cells, playable_cells

GAME = make_game("k_in_a_row")


def position(columns):
    return GAME.state_from_text(GAME.rules, columns)


def owner(state, column, row):
    return GAME.state_to_json(GAME.rules, state[0])["cells"][row][column]


@pytest.mark.parametrize(
    ("columns", "line"),
    [
        ("155551342553232440344", [(2, 2), (3, 3), (4, 4), (5, 5)]),
        ("4524233322", [(2, 3), (3, 2), (4, 1), (5, 0)]),
        ("66651536546356450344", [(3, 2), (4, 3), (5, 4), (6, 5)]),
        ("3446343355", [(3, 3), (4, 2), (5, 1), (6, 0)]),
    ],
)
def test_fault_7_four_diagonals_were_never_seen(columns, line):
    state = position(columns)
    winner = (len(columns) - 1) % 2
    assert [owner(state, *cell) for cell in line] == [winner] * 4
    assert state["player"][0] == TERMINAL
    assert GAME.returns_of(state)[0, winner] == 1


@pytest.mark.parametrize(
    ("columns", "three"),
    [
        ("411223122341336233", [(1, 3), (2, 4), (3, 5)]),
        ("566445566", [(4, 1), (5, 2), (6, 3)]),
    ],
)
def test_fault_8_three_on_a_diagonal_at_the_edge_counted_as_four(columns, three):
    state = position(columns)
    mover = (len(columns) - 1) % 2
    assert [owner(state, *cell) for cell in three] == [mover] * 3
    assert state["player"][0] == 1 - mover  # the game goes on
    assert (GAME.returns_of(state) == 0).all()


def test_fault_9_a_game_with_only_column_0_open_was_stopped_as_a_draw():
    state = position("336235622466321366515141341424415525")  # columns 1 to 6 are full
    for ply in range(36, 42):
        assert state["player"][0] == ply % 2
        assert GAME.legal_of(state)[0].tolist() == [True] + [False] * 6
        state = GAME.after(state, [0])
        if state["player"][0] == TERMINAL:
            break
        assert owner(state, 0, ply - 36) == ply % 2
    assert state["player"][0] == TERMINAL


def test_fault_10_a_full_column_could_be_chosen_and_cost_the_turn():
    state = position("333333")
    assert GAME.legal_of(state)[0].tolist() == [True, True, True, False, True, True, True]
    states = np.repeat(state, 100)
    legal, uniforms = GAME.legal_of(states), np.linspace(0, 1, 100, endpoint=False)
    for name in ("block_or_random", "alpha_beta_2", "alpha_beta_4", "alpha_beta_6"):
        chosen = np.full(100, 3, np.int32)
        GAME.scripted[name](GAME.rules, states, legal, uniforms, chosen)
        assert not (chosen == 3).any()
        after = GAME.after(states, chosen)
        assert (after["player"] == 1).all() and (after["ply"] == 7).all()
        discs = np.array([int(each).bit_count() for each in after["occupied"]])
        assert (discs == 7).all()  # no turn without a disc


def test_fault_11_the_second_player_s_win_in_the_last_cell_paid_nothing():
    state = position("226231165614100225414502551564446006033333")
    assert state["ply"][0] == 42 and state["player"][0] == TERMINAL
    assert GAME.returns_of(state)[0].tolist() == [-1, 1]


def test_fault_12_only_the_first_winning_column_was_seen_and_an_own_win_overlooked():
    # X has 3, 4 and 5 on the bottom row: columns 2 and 6 win, and both must be seen.
    state = position("33445")
    board = board_of(GAME.rules)
    others = state["mover"][0] ^ state["occupied"][0]
    wins = completing_cells(board, others) & playable_cells(board, state["occupied"][0])
    assert int(wins) == 1 << 2 * 7 | 1 << 6 * 7
    blocks = {chosen("block_or_random", state, uniform) for uniform in (0.0, 0.99)}
    assert blocks == {2, 6}
    # X wins in column 5, O threatens to in column 0, which comes first.
    assert chosen("block_or_random", position("505050"), 0.0) == 5


def chosen(name, state, uniform):
    actions = np.empty(1, np.int32)
    GAME.scripted[name](GAME.rules, state, GAME.legal_of(state), np.array([uniform]), actions)
    return int(actions[0])


def test_fault_15_a_game_went_on_after_a_win_and_over_a_full_board():
    won = position("3031323")  # X's fourth disc in column 3
    assert won["player"][0] == TERMINAL  # at once, not after O's next disc
    assert GAME.returns_of(won)[0].tolist() == [1, -1]
    full = position("124435421453006125413155133340202256660606")
    assert full["ply"][0] == 42 and full["player"][0] == TERMINAL
    for state in (won, full):
        assert not GAME.legal_of(state).any()
        assert (GAME.after(state, [0]) == state).all()
    with pytest.raises(ValueError, match="no position of this game"):
        position("30313230")
    with pytest.raises(ValueError, match="no position of this game"):
        position("3333333")  # a seventh disc in a column of six
