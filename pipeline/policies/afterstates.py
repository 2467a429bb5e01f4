"""Policies from values of afterstates: step every legal action of a batch, evaluate all at once.

The value of an afterstate is the return of the decision that led to it, so Q(s, a) is V(the state
right after a). An action that ends the game is worth what the rules pay, whatever V says.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numba import njit

from games import TERMINAL, Game
from pipeline.policies.base import Decisions, greedy
from pipeline.streams import Streams, mix


@dataclass(frozen=True)
class Afterstates:
    """Every legal action of a batch, stepped. N is the number of legal actions in it."""

    game: Game
    rows: np.ndarray  # int64 [N]: row of the batch that the action belongs to
    actions: np.ndarray  # int64 [N]
    movers: np.ndarray  # int32 [N]: whose action it was
    states: np.ndarray  # [N]

    @cached_property
    def over(self) -> np.ndarray:
        """bool [N]: the action ended the game."""
        return self.states["player"] == TERMINAL

    @cached_property
    def final_returns(self) -> np.ndarray:
        """float32 [count of `over`, P]."""
        return self.game.returns_of(self.states[self.over])

    def take(self, rows: np.ndarray) -> "Afterstates":
        """Some of them, by their place."""
        some = (each.take(rows) for each in (self.rows, self.actions, self.movers, self.states))
        return Afterstates(self.game, *some)


def expand(game: Game, states: np.ndarray, legal: np.ndarray) -> Afterstates:
    """Steps every legal action: states [B], legal bool [B, A]."""
    rows, actions = np.nonzero(legal)
    after = states.take(rows)
    movers = after["player"].copy()
    game.step(game.rules, after, actions.astype(np.int32))
    return Afterstates(game, rows, actions, movers, after)


def action_values(
    game: Game,
    states: np.ndarray,
    legal: np.ndarray,
    values_of: Callable[[Afterstates], np.ndarray],
) -> np.ndarray:
    """Q(s, a) float32 [B, A], -inf where illegal: the value of the state right after an action, or
    what the rules pay if it ends the game.

    Args:
        values_of: V float32 of afterstates, all of them of games that go on.
    """
    after = expand(game, states, legal)
    values = np.empty(len(after.rows), np.float32)
    going_on = np.flatnonzero(~after.over)
    values[going_on] = values_of(after.take(going_on))
    if after.over.any():
        mine = after.movers[after.over]
        at = np.arange(len(mine))
        so_far = game.returns_of(states[after.rows[after.over]])
        values[after.over] = (after.final_returns - so_far)[at, mine]
    q = np.full(legal.shape, -np.inf, np.float32)
    q[after.rows, after.actions] = values
    return q


@njit(cache=True)
def _unique_rows(words, slots, firsts, inverse):
    """Open addressing over the words of a row, uint32 [N, W]; returns how many rows differ."""
    mask = np.uint64(len(slots) - 1)
    count = 0
    for i in range(len(words)):
        h = np.uint64(0)
        for j in range(words.shape[1]):
            if words[i, j] != 0:  # observations are mostly zeros
                h += mix(np.uint64(words[i, j]) + (np.uint64(j) << np.uint64(32)))
        at = mix(h) & mask
        while True:
            found = slots[at]
            if found < 0:
                slots[at] = count
                firsts[count] = i
                inverse[i] = count
                count += 1
                break
            same = True
            for j in range(words.shape[1]):
                if words[firsts[found], j] != words[i, j]:
                    same = False
                    break
            if same:
                inverse[i] = found
                break
            at = (at + np.uint64(1)) & mask
    return count


def unique_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which rows of a float32 or uint32 [N, W] array differ bit for bit.

    Returns (firsts int64 [U], inverse int64 [N]) with rows[firsts][inverse] == rows, in order of
    first appearance. Linear in N * W.
    """
    words = np.ascontiguousarray(rows).view(np.uint32)
    slots = np.full(1 << int(2 * max(len(rows), 1) - 1).bit_length(), -1, np.int64)
    firsts, inverse = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
    count = _unique_rows(words, slots, firsts, inverse)
    return firsts[:count], inverse


def unique_states(states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`unique_rows` of states [N] of any dtype."""
    raw = np.ascontiguousarray(states).view(np.uint8).reshape(len(states), states.dtype.itemsize)
    words = np.zeros((len(states), -(-raw.shape[1] // 4) * 4), np.uint8)
    words[:, : raw.shape[1]] = raw
    return unique_rows(words.view(np.uint32))


class ValueFunction(Protocol):
    """V of observations, and what it is made of."""

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        """float32 [N, F] -> float32 [N, 1]."""
        ...

    def to_parts(self) -> tuple[dict, dict[str, np.ndarray]]:
        """Plain JSON, and named arrays."""
        ...


@dataclass(frozen=True)
class AfterstatePolicy:
    """Greedy on the values of the states that its actions lead to."""

    value: ValueFunction
    kind = "afterstate_value"

    def values_of(self, game: Game, afterstates: np.ndarray, movers: np.ndarray) -> np.ndarray:
        """V float32 [N] of states that `movers` (int32 [N]) have just brought about.

        Equal observations are evaluated once: early positions recur a lot in a batch, and a small
        game has few positions at all.
        """
        observations = game.observations_of(afterstates, movers)
        firsts, inverse = unique_rows(observations)
        return self.value(observations[firsts])[inverse, 0]

    def action_values(self, game: Game, states: np.ndarray, legal: np.ndarray) -> np.ndarray:
        def values_of(after: Afterstates) -> np.ndarray:
            return self.values_of(game, after.states, after.movers)

        return action_values(game, states, legal, values_of)

    def act(self, game: Game, states: np.ndarray, legal: np.ndarray, rng: Streams) -> Decisions:
        return greedy(self.action_values(game, states, legal), legal, rng)

    def to_parts(self) -> tuple[dict, dict[str, np.ndarray]]:
        return self.value.to_parts()
