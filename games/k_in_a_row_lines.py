"""What can be seen on a board of `k_in_a_row` beyond its cells: open lines, threats, what a column
does. For learners whose formulas are too small to find that out from cells, such as model trees.

A line is k cells in a row. It is open to a player as long as the other has no disc on it. The
landing cell of a column is where the next disc in it comes to lie.
"""

import numpy as np
from numba import njit

_NONE, _ONE = np.uint64(0), np.uint64(1)
_WHO = ("mine", "theirs")


@njit(cache=True)
def _count(bits):
    """How many bits are set."""
    count = 0
    while bits != _NONE:
        bits &= bits - _ONE
        count += 1
    return count


@njit(cache=True)
def _look(k, shift, starts, mine, theirs, occupied, landing, open_lines, touching, wins, next_wins):
    """Goes over the lines along one direction; adds up what `observe` writes, for `mine`.

    open_lines [k]: by number of discs on the line. touching [columns, k]: the same, of those
    through the column's landing cell. next_wins uint64 [columns]: cells that a disc in the column
    makes complete a line. Returns `wins` with the cells that complete a line now.
    """
    line = _NONE
    for j in range(k):
        line |= _ONE << np.uint64(j * shift)
    bit = 0
    while starts != _NONE:
        while starts & _ONE == _NONE:
            starts >>= _ONE
            bit += 1
        cells = line << np.uint64(bit)
        starts >>= _ONE
        bit += 1
        if cells & theirs != _NONE:
            continue
        discs = _count(cells & mine)
        open_lines[discs] += 1
        empty = cells & ~occupied
        if discs == k - 1:
            wins |= empty
        for column in range(len(landing)):
            if empty & landing[column] != _NONE:
                touching[column, discs] += 1
                if discs == k - 2:
                    next_wins[column] |= empty & ~landing[column]
    return wins


@njit(cache=True)
def observe(rules, states, players, out):
    """The two planes of `k_in_a_row.observe`, then the features that `names` names."""
    width, height, k = rules.width, rules.height, rules.k
    cells = width * height
    column_bits = np.uint64(height + 1)
    board = _NONE
    for column in range(width):
        board |= ((_ONE << np.uint64(height)) - _ONE) << np.uint64(column * (height + 1))
    shifts = np.array([1, height, height + 1, height + 2])
    starts = np.empty(4, np.uint64)
    for d in range(4):
        starts[d] = board
        for j in range(1, k):
            far = j * shifts[d]
            starts[d] &= board >> np.uint64(far) if far < 64 else _NONE
    landing = np.empty(width, np.uint64)
    above = np.empty(width, np.uint64)
    open_lines = np.empty(k, np.int64)
    touching = np.empty((width, k), np.int64)
    next_wins = np.empty(width, np.uint64)
    for i in range(len(states)):
        state = states[i]
        occupied = state["occupied"]
        mine = state["mover"]
        if players[i] != state["ply"] % 2:
            mine ^= occupied
        everywhere = _NONE
        for column in range(width):
            within = board & (((_ONE << column_bits) - _ONE) << np.uint64(column * (height + 1)))
            # Adding the bottom bit carries into the first empty cell of the column.
            full = occupied & within
            landing[column] = (full + (_ONE << np.uint64(column * (height + 1)))) & within & ~full
            above[column] = (landing[column] << _ONE) & board
            everywhere |= landing[column]
        for row in range(height):
            for column in range(width):
                bit = np.uint64(column * (height + 1) + row)
                out[i, row * width + column] = (mine >> bit) & _ONE
                out[i, cells + row * width + column] = ((mine ^ occupied) >> bit) & _ONE
        at = 2 * cells
        for _ in range(2):
            theirs = mine ^ occupied
            open_lines[:] = 0
            touching[:] = 0
            next_wins[:] = _NONE
            wins = _NONE
            for d in range(4):
                # Where k = 1 column high or wide, a direction may have no line.
                if k * shifts[d] < 64 + shifts[d]:
                    wins = _look(
                        k,
                        shifts[d],
                        starts[d],
                        mine,
                        theirs,
                        occupied,
                        landing,
                        open_lines,
                        touching,
                        wins,
                        next_wins,
                    )
            for n in range(1, k):
                out[i, at] = open_lines[n]
                at += 1
            out[i, at] = _count(wins & everywhere)
            at += 1
            for odd in range(2):
                held = 0
                for column in range(width):
                    for row in range(height):
                        if row % 2 == odd:
                            bit = np.uint64(column * (height + 1) + row)
                            held += np.int64(((wins & ~everywhere) >> bit) & _ONE)
                out[i, at] = held
                at += 1
            for column in range(width):
                for n in range(1, k):
                    out[i, at] = touching[column, n]
                    at += 1
                both = wins | next_wins[column]
                out[i, at] = 1.0 if both & above[column] != _NONE else 0.0
                out[i, at + 1] = _count(both & (everywhere & ~landing[column] | above[column]))
                at += 2
            mine = theirs


def names(width: int, height: int, k: int, columns: str) -> tuple[str, ...]:
    """Of the features behind the planes, in order."""
    out = []
    for who in _WHO:
        out += [f"{who}: open lines with {n}" for n in range(1, k)]
        out += [f"{who}: columns that win", f"{who}: threats on rows 1, 3, .."]
        out += [f"{who}: threats on rows 2, 4, .."]
        for column in range(width):
            here = f"{who}, column {columns[column]}"
            out += [f"{here}: open lines with {n}" for n in range(1, k)]
            out += [f"{here}: cell above would win", f"{here}: columns that win next"]
    return tuple(out)


def mirrored(width: int, k: int) -> np.ndarray:
    """int64: which of these features each one is in the mirror."""
    shared, each = k + 2, k + 1
    one = [np.arange(shared)]
    one += [shared + (width - 1 - column) * each + np.arange(each) for column in range(width)]
    half = np.concatenate(one)
    return np.concatenate([half, len(half) + half])
