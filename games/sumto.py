"""SumTo100: add 1 to 10 in turn; whoever reaches 100 wins. Target and largest step are parameters.

Source of the rules: `docs/games/sumto.md`. State fields beyond the header:

    sum      what has been added up so far, 0..target

Action a adds a + 1; an action that would pass the target is illegal. The observation is the sum
one-hot and does not say whose turn it is: it is meant for values of afterstates, which belong to
the player who has just moved.
"""

import re
from typing import NamedTuple

import numpy as np
from numba import njit

from games.game import HEADER, ILLEGAL, TERMINAL, Game, Solution, Solver

STATE = np.dtype([*HEADER, ("sum", np.int32)])


class Rules(NamedTuple):
    target: int
    max_step: int


@njit(cache=True)
def init(rules, states, seeds):
    for i in range(len(states)):
        state = states[i]
        state["player"] = 0
        state["ply"] = 0
        state["sum"] = 0


@njit(cache=True)
def legal_actions(rules, states, mask):
    for i in range(len(states)):
        state = states[i]
        room = rules.target - state["sum"]
        for action in range(rules.max_step):
            mask[i, action] = state["player"] != TERMINAL and action < room


@njit(cache=True)
def step(rules, states, actions):
    for i in range(len(states)):
        state = states[i]
        if state["player"] == TERMINAL:
            continue
        state["sum"] += actions[i] + 1
        state["ply"] += 1
        state["player"] = TERMINAL if state["sum"] == rules.target else 1 - state["player"]


@njit(cache=True)
def observe(rules, states, players, out):
    out[:] = 0.0
    for i in range(len(states)):
        out[i, states[i]["sum"]] = 1.0


@njit(cache=True)
def returns(rules, states, out):
    for i in range(len(states)):
        state = states[i]
        out[i, 0] = 0.0
        out[i, 1] = 0.0
        if state["player"] == TERMINAL:
            winner = (state["ply"] - 1) % 2  # whoever moved last
            out[i, winner] = 1.0
            out[i, 1 - winner] = -1.0


@njit(cache=True)
def perfect(rules, states, mask, uniforms, actions):
    """Leaves a distance to the target that max_step + 1 divides, if it can; else a random step."""
    for i in range(len(states)):
        room = rules.target - states[i]["sum"]
        step = room % (rules.max_step + 1)
        if step == 0:
            step = 1 + int(uniforms[i] * min(room, rules.max_step))
        actions[i] = step - 1


def scores(rules, states) -> np.ndarray:
    """int16 [B, A]: of every step, exact; a win in n steps of the winner is worth the steps that
    the longest game of best play has, plus 1, minus n.

    Whoever leaves a distance that max_step + 1 divides wins: each later round of two steps takes
    max_step + 1 off it. Whoever leaves another one lets the opponent do so.
    """
    steps = np.arange(1, rules.max_step + 1)
    left = rules.target - states["sum"].astype(np.int64)[:, None] - steps
    rounds, rest = np.divmod(left, rules.max_step + 1)
    most = rules.target // (rules.max_step + 1) + 1
    result = np.where(rest == 0, most - rounds, rounds - most)
    legal = (left >= 0) & (states["player"] != TERMINAL)[:, None]
    return np.where(legal, result, ILLEGAL).astype(np.int16)


def solvable(rules, states) -> np.ndarray:
    return np.ones(len(states), np.bool_)


def state_to_text(rules, state) -> str:
    if state["player"] == TERMINAL:
        who = f"player {(state['ply'] - 1) % 2} has won"
    else:
        who = f"player {state['player']} to move"
    return f"sum {state['sum']} of {rules.target}, {who}, ply {state['ply']}"


def state_from_text(rules, text: str) -> np.ndarray:
    """Reads `state_to_text`, or a bare sum such as "57": player 0 to move, or to have won."""
    expected = (
        f"{text!r} is no position of this game; expected a sum from 0 to {rules.target} such as "
        f"'57', or 'sum 57 of {rules.target}, player 0 to move, ply 10'"
    )
    state = np.zeros(1, STATE)
    if re.fullmatch(r"\d{1,9}", text.strip(), re.ASCII):
        total, player = int(text), 0
        ply = int(total == rules.target)
    else:
        full = re.fullmatch(
            r"sum (\d{1,9}) of (\d{1,9}), player ([01]) (to move|has won), ply (\d{1,9})",
            text.strip(),
            re.ASCII,
        )
        if not full:
            raise ValueError(expected)
        total, target, player, ply = (int(full[group]) for group in (1, 2, 3, 5))
        over = full[4] == "has won"
        # The ply may be too low for the sum: a bare sum is a position that was set up.
        possible = target == rules.target and ply <= total
        if not possible or over != (total == target) or player != (ply - over) % 2:
            raise ValueError(expected)
    if total > rules.target:
        raise ValueError(expected)
    state["sum"], state["ply"] = total, ply
    state["player"] = TERMINAL if total == rules.target else player
    return state


def action_to_text(rules, action: int) -> str:
    return f"+{action + 1}"


def state_to_json(rules, state) -> dict:
    return {
        "player": int(state["player"]),
        "ply": int(state["ply"]),
        "sum": int(state["sum"]),
        "target": rules.target,
        "max_step": rules.max_step,
    }


def make(target: int = 100, max_step: int = 10) -> Game:
    """SumTo`target` with steps of 1 to `max_step`.

    Raises:
        ValueError: unless 1 <= max_step <= 1000 and max_step < target <= 100,000.
    """
    if not 1 <= max_step <= 1000:
        raise ValueError(f"max_step of game sumto must lie in 1..1000, got {max_step}")
    if not max_step < target <= 100_000:
        raise ValueError(
            f"target of game sumto must be larger than max_step ({max_step}) and at most 100000, "
            f"got {target}"
        )
    rules = Rules(target, max_step)
    # With steps of 1 nobody has a choice; a longer game than this has more scores than int16.
    solved = max_step > 1 and target // (max_step + 1) < np.iinfo(np.int16).max

    def solution() -> Solution:
        # The winning sums are those from which the distance to the target is a multiple of
        # max_step + 1 (for 100 and 10: 1, 12, .., 100). Source: the SumTo100 document.
        sums = np.arange(target + 1)
        won = (target - sums) % (max_step + 1) == 0
        afterstates = np.zeros(target + 1, STATE)
        afterstates["sum"] = sums
        afterstates["player"] = np.where(sums == target, TERMINAL, 1)
        afterstates["ply"] = 1
        states = np.zeros(np.count_nonzero(~won), STATE)
        states["sum"] = sums[~won]
        return Solution(
            states=states,
            scores=scores(rules, states),
            afterstates=afterstates,
            players=np.zeros(target + 1, np.int32),
            values=np.where(won, 1.0, -1.0).astype(np.float32),
            labels=tuple(str(total) for total in sums),
        )

    return Game(
        name="sumto",
        params={"target": target, "max_step": max_step},
        rules=rules,
        num_players=2,
        num_actions=max_step,
        state_dtype=STATE,
        observation_names=tuple(f"sum is {total}" for total in range(target + 1)),
        max_decisions=target,
        init=init,
        legal_actions=legal_actions,
        step=step,
        observe=observe,
        returns=returns,
        state_to_text=state_to_text,
        state_from_text=state_from_text,
        action_to_text=action_to_text,
        state_to_json=state_to_json,
        scripted={"perfect": perfect},
        zero_sum=True,
        solver=Solver(scores, solvable) if solved else None,
        solution=solution if solved else None,
    )
