"""k in a row on a width x height board with gravity: Connect Four and its smaller relatives.

State fields beyond the header, as bitboards:

    mover      the discs of the player to move (after the end: of the one who would be)
    occupied   the discs of both

Bit column * (height + 1) + row, row 0 at the bottom; the top bit of each column always stays empty,
so that no line of bits can run from one column into the next. On 7 x 6:

     6 13 20 27 34 41 48    <- always empty
     5 12 19 26 33 40 47
     .  .  .  .  .  .  .
     0  7 14 21 28 35 42

An action is the column to drop into. Player 0 moves at even plies.
"""

import csv
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numba import njit

from games import k_in_a_row_lines as lines
from games.game import HEADER, ILLEGAL, TERMINAL, Game, Solution, Symmetry, contested
from games.k_in_a_row_players import players_of
from games.k_in_a_row_solver import SOLVER, first_solvable_ply, scores

STATE = np.dtype([*HEADER, ("mover", np.uint64), ("occupied", np.uint64)])

_COLUMN_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_NONE, _ONE = np.uint64(0), np.uint64(1)


class Rules(NamedTuple):
    width: int
    height: int
    k: int


@njit(cache=True)
def _has_run(rules, discs):
    """Are there k discs in a row? Doubling: a run of length n is n/2 runs of n/2 shifted by n/2."""
    column = rules.height + 1
    for shift in (1, column - 1, column, column + 1):  # vertical, falling, level, rising
        runs = discs
        length = 1
        while length < rules.k:
            more = min(length, rules.k - length)
            if more * shift > 63:  # beyond the board; a shift that wide is undefined
                runs &= _NONE
                break
            runs &= runs >> np.uint64(more * shift)
            length += more
        if runs != 0:
            return True
    return False


@njit(cache=True)
def init(rules, states, seeds):
    for i in range(len(states)):
        state = states[i]
        state["player"] = 0
        state["ply"] = 0
        state["mover"] = 0
        state["occupied"] = 0


@njit(cache=True)
def legal_actions(rules, states, mask):
    for i in range(len(states)):
        state = states[i]
        going_on = state["player"] != TERMINAL
        for column in range(rules.width):
            top = _ONE << np.uint64(column * (rules.height + 1) + rules.height - 1)
            mask[i, column] = going_on and (state["occupied"] & top) == 0


@njit(cache=True)
def step(rules, states, actions):
    for i in range(len(states)):
        state = states[i]
        if state["player"] == TERMINAL:
            continue
        bottom = _ONE << np.uint64(actions[i] * (rules.height + 1))
        others = state["mover"] ^ state["occupied"]
        # Adding the bottom bit carries through the discs of the column into its first empty cell.
        occupied = state["occupied"] | (state["occupied"] + bottom)
        state["occupied"] = occupied
        state["mover"] = others
        state["ply"] += 1
        if _has_run(rules, occupied ^ others) or state["ply"] == rules.width * rules.height:
            state["player"] = TERMINAL
        else:
            state["player"] = 1 - state["player"]


@njit(cache=True)
def threats(rules, states, mask):
    """Columns in which the player who is not to move would complete a row now."""
    for i in range(len(states)):
        state = states[i]
        theirs = state["mover"] ^ state["occupied"]
        for column in range(rules.width):
            base = np.uint64(column * (rules.height + 1))
            cell = (state["occupied"] + (_ONE << base)) & ~state["occupied"]
            cell &= ((_ONE << np.uint64(rules.height)) - _ONE) << base
            going_on = state["player"] != TERMINAL
            mask[i, column] = going_on and cell != 0 and _has_run(rules, theirs | cell)


@njit(cache=True)
def observe(rules, states, players, out):
    """Two planes, mine and theirs, each cell by cell from the bottom row up."""
    cells = rules.width * rules.height
    for i in range(len(states)):
        state = states[i]
        mine = state["mover"]
        theirs = mine ^ state["occupied"]
        if players[i] != state["ply"] % 2:
            mine, theirs = theirs, mine
        for row in range(rules.height):
            for column in range(rules.width):
                bit = np.uint64(column * (rules.height + 1) + row)
                cell = row * rules.width + column
                out[i, cell] = (mine >> bit) & _ONE
                out[i, cells + cell] = (theirs >> bit) & _ONE


@njit(cache=True)
def returns(rules, states, out):
    for i in range(len(states)):
        state = states[i]
        out[i, 0] = 0.0
        out[i, 1] = 0.0
        # Only whoever moved last can have a row.
        if state["player"] == TERMINAL and _has_run(rules, state["mover"] ^ state["occupied"]):
            winner = (state["ply"] - 1) % 2
            out[i, winner] = 1.0
            out[i, 1 - winner] = -1.0


def _cells(rules, discs) -> np.ndarray:
    """bool [height, width], row 0 at the bottom."""
    bits = np.arange(rules.height)[:, None] + np.arange(rules.width) * (rules.height + 1)
    return (int(discs) >> bits.astype(object)) & 1 == 1


def _discs_by_player(state) -> tuple[int, int]:
    mover, others = int(state["mover"]), int(state["mover"]) ^ int(state["occupied"])
    return (mover, others) if state["ply"] % 2 == 0 else (others, mover)


def state_to_text(rules, state) -> str:
    """The board from the top row down, X for player 0 and O for player 1, and whose turn it is."""
    xs, os = (_cells(rules, discs) for discs in _discs_by_player(state))
    rows = np.where(xs, "X", np.where(os, "O", "."))[::-1]
    if state["player"] != TERMINAL:
        who = f"{'XO'[state['player']]} to move"
    elif _has_run(rules, state["mover"] ^ state["occupied"]):
        who = f"{'OX'[state['ply'] % 2]} has won"
    else:
        who = "a draw"
    digits = " ".join(_COLUMN_DIGITS[: rules.width])
    return "\n".join([*(" ".join(row) for row in rows), digits, who])


def state_from_text(rules, text: str) -> np.ndarray:
    """Reads `state_to_text`, or the columns played from the empty board such as "33241" ("" is the
    start; columns from the eleventh on are the letters a, b, ..)."""
    lines = text.strip().splitlines()
    state = _from_drawing(rules, lines) if len(lines) > 1 else _from_columns(rules, text.strip())
    if state is None:
        raise ValueError(
            f"{text!r} is no position of this game; expected the columns played from the empty "
            f"board, such as '33241' with digits below {rules.width}, or a drawing of "
            f"{rules.height} rows of {rules.width} cells from . X O"
        )
    return state


def _from_columns(rules, text) -> np.ndarray | None:
    state = np.zeros(1, STATE)
    mask = np.empty((1, rules.width), np.bool_)
    for letter in text:
        column = _COLUMN_DIGITS.find(letter)
        legal_actions(rules, state, mask)
        if not 0 <= column < rules.width or not mask[0, column]:
            return None
        step(rules, state, np.array([column], np.int32))
    return state


def _from_drawing(rules, lines) -> np.ndarray | None:
    rows = [line.split() for line in lines[: rules.height]]
    if len(rows) < rules.height or any(len(row) != rules.width for row in rows):
        return None
    cells = np.array(rows)[::-1]
    full = cells != "."
    count = int(full.sum())
    # Discs lie on discs, X has moved first, and the rest of the drawing says what this one says.
    if not np.isin(cells, [".", "X", "O"]).all() or (full[1:] & ~full[:-1]).any():
        return None
    if int((cells == "X").sum()) != (count + 1) // 2:
        return None
    bits = np.arange(rules.height)[:, None] + np.arange(rules.width) * (rules.height + 1)
    xs, os = (sum(1 << int(bit) for bit in bits[cells == who]) for who in "XO")
    state = np.zeros(1, STATE)
    state["ply"] = count
    state["mover"] = xs if count % 2 == 0 else os
    state["occupied"] = xs | os
    last, before = (os, xs) if count % 2 == 0 else (xs, os)
    if _has_run(rules, np.uint64(before)):
        return None
    over = _has_run(rules, np.uint64(last)) or count == rules.width * rules.height
    state["player"] = TERMINAL if over else count % 2
    said = [line.rstrip() for line in lines[rules.height :]]
    if said != state_to_text(rules, state[0]).splitlines()[rules.height :][: len(said)]:
        return None
    return state


def action_to_text(rules, action: int) -> str:
    return f"column {_COLUMN_DIGITS[action]}"


def state_to_json(rules, state) -> dict:
    """`cells`: rows from the bottom up; null, 0 or 1 by owner."""
    xs, os = (_cells(rules, discs) for discs in _discs_by_player(state))
    owner = np.where(xs, 0, np.where(os, 1, None))
    return {
        "player": int(state["player"]),
        "ply": int(state["ply"]),
        "width": rules.width,
        "height": rules.height,
        "k": rules.k,
        "cells": owner.tolist(),
    }


def _mirror(width: int, height: int, k: int, observation: str) -> Symmetry:
    cells = np.arange(2 * height * width).reshape(2, height, width)
    features = cells[:, :, ::-1].reshape(-1)
    if observation == "lines":
        features = np.concatenate([features, cells.size + lines.mirrored(width, k)])
    return Symmetry(features.copy(), np.arange(width)[::-1].copy())


_POSITIONS = Path(__file__).parent / "data" / "connect_four_positions.csv"
_SAMPLED = 500  # contested positions of a solved sample, and as many others


@lru_cache(maxsize=1)
def _given_positions(rules) -> Solution:
    """4,000 positions of standard Connect Four, scored by another solver than ours."""
    with _POSITIONS.open(newline="") as file:
        rows = list(csv.DictReader(file))
    states = np.concatenate([state_from_text(rules, row["columns"]) for row in rows])
    known = [[row[f"s{column}"] for column in range(rules.width)] for row in rows]
    return _solution(
        states, np.array([[int(s or ILLEGAL) for s in row] for row in known], np.int16)
    )


@lru_cache(maxsize=4)
def _sampled_positions(rules) -> Solution:
    """Positions from 2,000 random games, solved: up to 500 contested ones, as many others."""
    rng = np.random.default_rng(0)
    states = np.zeros(2000, STATE)
    met = []
    while len(states):
        mask = np.empty((len(states), rules.width), np.bool_)
        legal_actions(rules, states, mask)
        met.append(states[mask.sum(axis=1) > 1])
        step(rules, states, np.where(mask, rng.random(mask.shape), -1.0).argmax(axis=1))
        states = states[states["player"] != TERMINAL]
    states = rng.permutation(np.unique(np.concatenate(met)))
    chosen: dict[bool, list] = {True: [], False: []}
    for first in range(0, len(states), 100):
        some = states[first : first + 100]
        known = scores(rules, some)
        for state, row, matters in zip(some, known, contested(known), strict=True):
            if len(chosen[bool(matters)]) < _SAMPLED:
                chosen[bool(matters)].append((state, row))
        if min(map(len, chosen.values())) == _SAMPLED:
            break
    both = chosen[True] + chosen[False]
    return _solution(np.array([s for s, _ in both], STATE), np.array([row for _, row in both]))


def _solution(states: np.ndarray, known: np.ndarray) -> Solution:
    return Solution(
        states=states,
        scores=known,
        afterstates=np.empty(0, STATE),
        players=np.empty(0, np.int32),
        values=np.empty(0, np.float32),
        labels=(),
    )


def make(width: int = 7, height: int = 6, k: int = 4, observation: str = "planes") -> Game:
    """k in a row on a width x height board.

    Args:
        observation: what players see: `planes`, the cells; or `lines`, besides them open lines and
            threats (`games/k_in_a_row_lines.py`).

    Raises:
        ValueError: the board needs more than 64 bits, k does not fit on it, or there is no such
            observation.
    """
    if observation not in ("planes", "lines"):
        raise ValueError(
            f"observation of game k_in_a_row must be one of planes, lines, got {observation!r}"
        )
    if width < 1 or height < 1 or width == height == 1 or width * (height + 1) > 64:
        raise ValueError(
            f"a board of width {width} and height {height} does not fit game k_in_a_row: width and "
            f"height must be at least 1, one of them at least 2, and width * (height + 1) at most "
            f"64, got {width * (height + 1)}"
        )
    if not 2 <= k <= max(width, height):
        raise ValueError(
            f"k of game k_in_a_row must lie in 2..{max(width, height)} on a {width} x {height} "
            f"board, got {k}"
        )
    cells = [
        f"{_COLUMN_DIGITS[column]}{row + 1}" for row in range(height) for column in range(width)
    ]
    rules = Rules(width, height, k)
    players, baselines = players_of(rules)
    solution = None
    if rules == (7, 6, 4):
        solution = _given_positions
    elif first_solvable_ply(rules) == 0 and width > 1:
        solution = _sampled_positions
    feature_names = tuple(f"{who} {cell}" for who in ("mine", "theirs") for cell in cells)
    params: dict[str, int | str] = {"width": width, "height": height, "k": k}
    if observation == "lines":
        feature_names += lines.names(width, height, k, _COLUMN_DIGITS)
        params["observation"] = observation
    return Game(
        name="k_in_a_row",
        params=params,
        rules=rules,
        num_players=2,
        num_actions=width,
        state_dtype=STATE,
        observation_names=feature_names,
        max_decisions=width * height,
        init=init,
        legal_actions=legal_actions,
        step=step,
        observe=lines.observe if observation == "lines" else observe,
        returns=returns,
        state_to_text=state_to_text,
        state_from_text=state_from_text,
        action_to_text=action_to_text,
        state_to_json=state_to_json,
        symmetries=(_mirror(width, height, k, observation),) if width > 1 else (),
        scripted=players,
        baselines=baselines,
        zero_sum=True,
        threats=threats,
        solver=SOLVER,
        solution=None if solution is None else partial(solution, rules),
    )
