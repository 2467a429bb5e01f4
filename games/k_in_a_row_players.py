"""Scripted players of k in a row, from a reflex to exact play: `Game.scripted` kernels.

The alpha-beta players look `depth` discs ahead. What is decided within them they score exactly, a
sooner win above a later one; any other position by a heuristic of ours:

    4 (my cells that would complete a line - theirs) + my lines that are still open - theirs

A cell counts whether or not a disc can be dropped there now; a line is open to a player while the
other has no disc in it.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit

from games.k_in_a_row_solver import (
    board_of,
    column_cells,
    completing_cells,
    count_bits,
    first_solvable_ply,
    from_the_centre,
    lines_within,
    playable_cells,
    scores,
)

_NONE, _ONE = np.uint64(0), np.uint64(1)
_PER_CELL = 4
# What a disc fewer in a decided game is worth: more than any heuristic, which is at most 4 * 64
# cells and 4 * 64 lines.
_DECIDED = 1000
_INFINITE = 1_000_000
# Sequences of discs that an alpha-beta player may have to look at: on wider boards it would take
# seconds a move; as a baseline unless told otherwise.
_WIDEST, _FAST = 10**6, 5000


@njit(cache=True)
def _column_among(board, cells, uniform):
    """A column with one of the cells in it, each equally likely; at most one cell a column."""
    skip = int(uniform * count_bits(cells))
    for column in range(board.width):
        if cells & column_cells(board, column) != _NONE:
            if skip == 0:
                return column
            skip -= 1
    return -1


@njit(cache=True)
def block_or_random(rules, states, mask, uniforms, actions):
    """Wins at once if it can, else blocks if it must, else any column; ties evenly."""
    board = board_of(rules)
    for i in range(len(states)):
        mover, occupied = states[i]["mover"], states[i]["occupied"]
        playable = playable_cells(board, occupied)
        chosen = playable & completing_cells(board, mover)
        if chosen == _NONE:
            chosen = playable & completing_cells(board, mover ^ occupied)
        if chosen == _NONE:
            chosen = playable
        actions[i] = _column_among(board, chosen, uniforms[i])


@njit(cache=True)
def _heuristic(board, mover, occupied):
    others = mover ^ occupied
    mine = completing_cells(board, mover) & ~occupied
    theirs = completing_cells(board, others) & ~occupied
    return (
        _PER_CELL * (count_bits(mine) - count_bits(theirs))
        + lines_within(board, board.cells & ~others)
        - lines_within(board, board.cells & ~mover)
    )


@njit(cache=True)
def _look_ahead(board, mover, occupied, left, depth, alpha, beta):
    """Negamax of a position that is not over, `depth` discs deep, for the player to move."""
    if left == 0:
        return 0
    if depth == 0:
        return _heuristic(board, mover, occupied)
    playable = playable_cells(board, occupied)
    if playable & completing_cells(board, mover) != _NONE:
        return _DECIDED * ((left + 1) // 2)
    others = mover ^ occupied
    if depth > 1:
        # What else is played loses to the next disc, within the depth: it need not be searched.
        threats = completing_cells(board, others) & ~occupied
        forced = playable & threats
        if forced & (forced - _ONE if forced != _NONE else _NONE) != _NONE:
            return -_DECIDED * (left // 2)
        playable = (playable if forced == _NONE else forced) & ~(threats >> _ONE)
        if playable == _NONE:
            return -_DECIDED * (left // 2)
    best = -_INFINITE
    for i in range(board.width):
        move = playable & column_cells(board, from_the_centre(board, i))
        if move == _NONE:
            continue
        after = occupied | move
        value = -_look_ahead(board, others, after, left - 1, depth - 1, -beta, -max(alpha, best))
        best = max(best, value)
        if best >= beta:
            break
    return best


@njit(cache=True)
def _alpha_beta(depth, rules, states, uniforms, actions):
    board = board_of(rules)
    for i in range(len(states)):
        mover, occupied = states[i]["mover"], states[i]["occupied"]
        left = rules.width * rules.height - states[i]["ply"]
        playable = playable_cells(board, occupied)
        wins = playable & completing_cells(board, mover)
        if wins != _NONE:
            actions[i] = _column_among(board, wins, uniforms[i])
            continue
        best, chosen = -_INFINITE, _NONE
        for j in range(board.width):
            move = playable & column_cells(board, from_the_centre(board, j))
            if move == _NONE:
                continue
            # A window that keeps values equal to the best one exact, so that ties are known.
            value = -_look_ahead(
                board, mover ^ occupied, occupied | move, left - 1, depth - 1, -_INFINITE, 1 - best
            )
            if value > best:
                best, chosen = value, move
            elif value == best:
                chosen |= move
        actions[i] = _column_among(board, chosen, uniforms[i])


@njit(cache=True)
def alpha_beta_2(rules, states, mask, uniforms, actions):
    _alpha_beta(2, rules, states, uniforms, actions)


@njit(cache=True)
def alpha_beta_4(rules, states, mask, uniforms, actions):
    _alpha_beta(4, rules, states, uniforms, actions)


@njit(cache=True)
def alpha_beta_6(rules, states, mask, uniforms, actions):
    _alpha_beta(6, rules, states, uniforms, actions)


def perfect(rules, states, mask, uniforms, actions) -> None:
    """Any of the columns with the best exact score; needs the solver's table, so no kernel."""
    known = scores(rules, states)
    best = known == known.max(axis=1, keepdims=True)
    skip = (uniforms * best.sum(axis=1)).astype(np.int64)
    actions[:] = (best.cumsum(axis=1) > skip[:, None]).argmax(axis=1)


def late_perfect(rules, states, mask, uniforms, actions) -> None:
    """`alpha_beta_6`, or the deepest that the board has, until the solver is fast, then `perfect`."""
    (alpha_beta_6 if rules[0] ** 6 <= _WIDEST else alpha_beta_4)(
        rules, states, mask, uniforms, actions
    )
    late = np.flatnonzero(states["ply"] >= first_solvable_ply(rules))
    if len(late):
        exact = np.empty(len(late), np.int32)
        perfect(rules, states.take(late), mask[late], uniforms[late], exact)
        actions[late] = exact


def players_of(rules: NamedTuple) -> tuple[dict[str, Callable], tuple[str, ...]]:
    """The players of a board by name, and the names of those that are fast: `Game.scripted`, from
    the weakest to the strongest, and `Game.baselines`."""
    width, ply = rules[0], first_solvable_ply(rules)
    ahead = {2: alpha_beta_2, 4: alpha_beta_4, 6: alpha_beta_6}
    players: dict[str, Callable] = {"block_or_random": block_or_random}
    players |= {f"alpha_beta_{n}": each for n, each in ahead.items() if width**n <= _WIDEST}
    players |= {f"perfect_from_{ply}": late_perfect} if ply else {"perfect": perfect}
    fast = ("block_or_random", "perfect", *(f"alpha_beta_{n}" for n in ahead if width**n <= _FAST))
    return players, tuple(name for name in players if name in fast)
