"""Exact scores for k in a row: alpha-beta on bitboards with a table of known bounds.

Boards are those of `games/k_in_a_row.py`. The score of a position belongs to the player to move:

    0 for a draw; (cells + 1 - p) // 2 for a win whose last disc is dropped at ply p; minus that for
    a loss

so a win counts the discs that the winner has left, the winning one included, and one move later
costs 1. This is the scale that solvers of Connect Four have in common: a win at once from the empty
7 x 6 board would be 21, and the empty board is worth 1.

The method is the textbook's: negamax with null windows, halving the interval in which the score
lies (MTD with bisection, after A. Plaat et al., "Best-first fixed-depth minimax algorithms", 1996),
a transposition table, moves that make most winning cells first, forced replies only, and no
disc below a cell where the opponent wins.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numba import njit

from games.game import ILLEGAL, TERMINAL, Solver

_NONE, _ONE = np.uint64(0), np.uint64(1)
_BYTE, _LOW_BYTE = np.uint64(8), np.uint64(255)
# An entry of the table is a key's quotient and, in the low byte, a bound: _UPPER + score where the
# position is worth at most that, _LOWER + score where at least; 0 is an empty entry.
_UPPER, _LOWER = 64, 192
_LARGEST_TABLE = 23  # bits: 64 MB, committed as far as it is used
# With so many empty cells or fewer, a subtree is too small for looking up mirror images and, before
# the search, its children.
_LOOK_AHEAD = 14


class Board(NamedTuple):
    """What the kernels need of the rules."""

    width: int
    k: int
    column: np.uint64  # bits of a column, its empty top included
    bottom: np.uint64  # the lowest cell of each column
    cells: np.uint64  # all cells


class Memory(NamedTuple):
    """What a search writes into: one per process and board, for its table stays valid."""

    table: np.ndarray  # uint64 [prime]
    moves: np.ndarray  # uint64 [cells + 1, width, 2]: by empty cells: moves in order, their rank
    nodes: np.ndarray  # int64 [1]: positions searched so far


@njit(cache=True)
def board_of(rules):
    column = np.uint64(rules.height + 1)
    bottom, cells = _NONE, _NONE
    for i in range(rules.width):
        at = np.uint64(i) * column
        bottom |= _ONE << at
        cells |= ((_ONE << np.uint64(rules.height)) - _ONE) << at
    return Board(rules.width, rules.k, column, bottom, cells)


@njit(cache=True)
def playable_cells(board, occupied):
    """The lowest empty cell of each column that is not full."""
    return (occupied + board.bottom) & board.cells


@njit(cache=True)
def column_cells(board, column):
    return ((_ONE << (board.column - _ONE)) - _ONE) << (np.uint64(column) * board.column)


@njit(cache=True)
def from_the_centre(board, i):
    """Column i in the order middle, left of it, right of it, ..; on 7 columns 3 2 4 1 5 0 6."""
    step = (i + 1) // 2
    return board.width // 2 + (step if i % 2 == 0 else -step)


@njit(cache=True)
def count_bits(bits):
    count = 0
    while bits != _NONE:
        bits &= bits - _ONE
        count += 1
    return count


@njit(cache=True)
def completing_cells(board, discs):
    """The cells, empty or not, in which one more disc beside `discs` makes k in a row."""
    below = ~_NONE
    for _ in range(board.k - 1):
        below = (below & discs) << _ONE
    found = below
    if board.width > 1:  # on one column these shifts would be wider than 63 bits, hence undefined
        for shift in (board.column - _ONE, board.column, board.column + _ONE):
            if board.k == 4:  # the loop below, unrolled for the standard game
                below1, above1 = discs << shift, discs >> shift
                below2, above2 = (below1 & discs) << shift, (above1 & discs) >> shift
                below3, above3 = (below2 & discs) << shift, (above2 & discs) >> shift
                found |= below3 | (below2 & above1) | (below1 & above2) | above3
                continue
            below = ~_NONE  # cells with j discs in a row right before them
            for j in range(board.k):
                above = ~_NONE  # and with k - 1 - j right behind
                for _ in range(board.k - 1 - j):
                    above = (above & discs) >> shift
                    if above == _NONE:
                        break
                found |= below & above
                below = (below & discs) << shift
                if below == _NONE:
                    break
    return found & board.cells


@njit(cache=True)
def lines_within(board, cells):
    """How many lines of k lie in `cells`."""
    count = 0
    for shift in (_ONE, board.column - _ONE, board.column, board.column + _ONE):
        if shift > _ONE and board.width == 1:
            break
        runs = cells
        for _ in range(board.k - 1):
            runs = (runs >> shift) & cells
            if runs == _NONE:
                break
        count += count_bits(runs)
    return count


@njit(cache=True)
def _has_line(board, cells):
    for shift in (_ONE, board.column - _ONE, board.column, board.column + _ONE):
        if shift > _ONE and board.width == 1:
            break
        runs = cells
        for _ in range(board.k - 1):
            runs = (runs >> shift) & cells
            if runs == _NONE:
                break
        if runs != _NONE:
            return True
    return False


@njit(cache=True)
def _key(board, mover, occupied, left):
    """One number for a position, and above `_LOOK_AHEAD` empty cells for its mirror image too.

    In each column `occupied` has 2^discs - 1 and `mover` less than 2^discs, so no two positions
    have the same sum, and no sum runs over into the next column.
    """
    key = mover + occupied
    if left > _LOOK_AHEAD:
        mirrored, rest = _NONE, key
        for _ in range(board.width):
            mirrored = mirrored << board.column | (rest & ((_ONE << board.column) - _ONE))
            rest >>= board.column
        key = min(key, mirrored)
    return key


@njit(cache=True)
def _search(board, memory, mover, occupied, left, alpha, beta):
    """A bound of the score: at least `beta`, at most `alpha`, or between them and exact.

    The mover must not be able to win at once. left: empty cells, at least 1.
    """
    memory.nodes[0] += 1
    others = mover ^ occupied
    playable = playable_cells(board, occupied)
    threats = completing_cells(board, others) & ~occupied
    forced = playable & threats
    if forced != _NONE:
        if forced & (forced - _ONE) != _NONE:
            return -(left // 2)  # two cells to block: the opponent wins with the next disc
        playable = forced
    playable &= ~(threats >> _ONE)
    if playable == _NONE:
        return -(left // 2)
    if left <= 2:
        return 0

    # Nobody wins with this disc or the next one, and nobody ever without a line to do it in.
    alpha = max(alpha, -((left - 2) // 2))
    beta = min(beta, (left - 1) // 2)
    if beta > 0 and not _has_line(board, board.cells & ~others):
        beta = 0
    if alpha < 0 and not _has_line(board, board.cells & ~mover):
        alpha = 0
    if alpha >= beta:
        return alpha

    key = _key(board, mover, occupied, left)
    size = np.uint64(len(memory.table))
    quotient = key // size
    slot = key - quotient * size
    entry = memory.table[slot]
    if entry >> _BYTE == quotient:
        bound = np.int64(entry & _LOW_BYTE)
        if bound >= 2 * _UPPER:
            alpha = max(alpha, bound - _LOWER)
        elif bound > 0:
            beta = min(beta, bound - _UPPER)
        if alpha >= beta:
            return alpha if bound >= 2 * _UPPER else beta

    if left > _LOOK_AHEAD:
        rest = playable
        while rest != _NONE:
            move = rest & (~rest + _ONE)
            rest ^= move
            key_after = _key(board, others, occupied | move, left - 1)
            quotient_after = key_after // size
            entry = memory.table[key_after - quotient_after * size]
            if entry >> _BYTE == quotient_after:
                bound = np.int64(entry & _LOW_BYTE)
                if 0 < bound < 2 * _UPPER and _UPPER - bound >= beta:
                    return _UPPER - bound

    moves = memory.moves[left]
    count = 0
    for i in range(board.width):
        move = playable & column_cells(board, from_the_centre(board, i))
        if move == _NONE:
            continue
        # A cell above a cell where the opponent wins is out of reach.
        wins = completing_cells(board, mover | move) & ~occupied & ~(threats << _ONE)
        rank = np.uint64(count_bits(wins))
        at = count
        while at > 0 and moves[at - 1, 1] < rank:
            moves[at, 0], moves[at, 1] = moves[at - 1, 0], moves[at - 1, 1]
            at -= 1
        moves[at, 0], moves[at, 1] = move, rank
        count += 1
    for i in range(count):
        after = occupied | moves[i, 0]
        score = -_search(board, memory, others, after, left - 1, -beta, -alpha)
        if score >= beta:
            memory.table[slot] = quotient << _BYTE | np.uint64(_LOWER + score)
            return score
        alpha = max(alpha, score)
    memory.table[slot] = quotient << _BYTE | np.uint64(_UPPER + alpha)
    return alpha


@njit(cache=True)
def _score(board, memory, mover, occupied, left):
    """The exact score of a position that is not over, or of a full board."""
    if left == 0:
        return 0
    if playable_cells(board, occupied) & completing_cells(board, mover) != _NONE:
        return (left + 1) // 2
    low, high = -(left // 2), (left - 1) // 2
    while low < high:
        # The sign first: it leaves half of the scores to ask for.
        middle = (low + high) // 2
        if low < 0 < high:
            middle = 0 if high >= -low else -1
        score = _search(board, memory, mover, occupied, left, middle, middle + 1)
        if score <= middle:
            high = score
        else:
            low = score
    return low


@njit(cache=True)
def score_columns(rules, states, memory, out):
    """int16 [B, width]: the score of every legal column for the player to move, else ILLEGAL."""
    board = board_of(rules)
    for i in range(len(states)):
        mover, occupied = states[i]["mover"], states[i]["occupied"]
        left = rules.width * rules.height - states[i]["ply"]
        playable = playable_cells(board, occupied)
        if states[i]["player"] == TERMINAL:
            playable = _NONE
        wins = completing_cells(board, mover)
        for column in range(board.width):
            move = playable & column_cells(board, column)
            if move == _NONE:
                out[i, column] = ILLEGAL
            elif move & wins != _NONE:
                out[i, column] = (left + 1) // 2
            else:
                after = occupied | move
                out[i, column] = -_score(board, memory, mover ^ occupied, after, left - 1)


def _prime_below(bound: int) -> int:
    return next(n for n in range(bound - 1, 1, -1) if all(n % d for d in range(2, int(n**0.5) + 1)))


@lru_cache(maxsize=2)
def search_memory(rules: NamedTuple) -> Memory:
    """The memory of this process for a board. Its table never forgets but by overwriting."""
    width, height, _ = rules
    bits = min(_LARGEST_TABLE, width * height + 2)
    return Memory(
        # A quotient must leave a byte of the 64 bits free.
        table=np.zeros(_prime_below(max(1 << bits, 1024)), np.uint64),
        moves=np.zeros((width * height + 1, width, 2), np.uint64),
        nodes=np.zeros(1, np.int64),
    )


def scores(rules: NamedTuple, states: np.ndarray) -> np.ndarray:
    """int16 [B, width]: `Solver.scores`."""
    out = np.empty((len(states), rules[0]), np.int16)
    score_columns(rules, states, search_memory(rules), out)
    return out


def first_solvable_ply(rules: NamedTuple) -> int:
    """From this ply on a position takes about 0.1 s or less; 0 = from the start.

    A rule of thumb by measurement (docs/games/k_in_a_row.md): small boards at once; others when a
    third of the cells is full and so few are empty that lines, which are more decisive the
    shorter they are and the higher the board is, decide the rest.
    """
    width, height, k = rules
    cells = width * height
    if cells <= (20 if height > 1 else 16):
        return 0
    empty = 18 if height < 4 else 28 if k <= 4 else 22
    return max(cells - empty, -(-cells // 3))


def solvable(rules: NamedTuple, states: np.ndarray) -> np.ndarray:
    """bool [B]: `Solver.solvable`."""
    return states["ply"] >= first_solvable_ply(rules)


SOLVER = Solver(scores, solvable)
