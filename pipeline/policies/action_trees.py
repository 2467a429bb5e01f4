"""Q(s, a) by model trees, one bag per action or one per type of action (`tree_inputs`).

A bag that was learned from too few games gives way to the pooled trees, which have its number among
their features. Before anything is learned every action is worth 0.
"""

import itertools
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numba import njit

from games import Game
from pipeline import m5
from pipeline.m5.binning import frozen
from pipeline.policies.afterstates import Afterstates, action_values, unique_rows
from pipeline.policies.base import Decisions, greedy
from pipeline.policies.tree_inputs import ByAction, ByType, TreeInputs
from pipeline.streams import Streams

_BLOCK = 128  # rows that stay in the cache while every action's trees see them
_CHUNK = 1 << 14  # states whose observations are held at once
_CANDIDATES = 1 << 16  # actions whose observations are held at once, or those of one state


@njit(cache=True, nogil=True)
def _value(own, pooled, bag, which, x, row, counting, clipped):
    """What the trees of bag number `which` say of x float32 [F]; see `_action_values`.

    row: float32 [F + K], 0 behind F, also afterwards.
    """
    features = len(x)
    if bag[which] >= 0:
        value = m5.predict_row(own, x, bag[which])
        if counting:
            clipped[0] += own.bag_start[bag[which] + 1] - own.bag_start[bag[which]]
            clipped[1] += m5.clipped_trees(own, x, bag[which])
        return value
    row[:features] = x
    row[features + which] = 1.0
    value = m5.predict_row(pooled, row, 0)
    if counting:
        clipped[0] += pooled.bag_start[1]
        clipped[1] += m5.clipped_trees(pooled, row, 0)
    row[features + which] = 0.0
    return value


@njit(cache=True, nogil=True)
def _action_values(own, pooled, bag, x, wanted, counting, q, clipped):
    """Q of the wanted actions float32 [N, A] and, if `counting`, int64 [2]: how many trees were
    asked, and of these clipped.

    bag int64 [A]: of `own`, or -1 where the pooled trees stand in.
    """
    features, actions = x.shape[1], len(bag)
    row = np.zeros(features + actions, np.float32)
    for start in range(0, len(x), _BLOCK):
        end = min(start + _BLOCK, len(x))
        for action in range(actions):
            for i in range(start, end):
                if wanted[i, action]:
                    q[i, action] = _value(own, pooled, bag, action, x[i], row, counting, clipped)


@njit(cache=True, nogil=True)
def _candidate_values(own, pooled, bag, x, which, counting, values, clipped):
    """The same of bag which[i] int64 [N] at x[i], float32 [N]."""
    row = np.zeros(x.shape[1] + len(bag), np.float32)
    for i in range(len(x)):
        values[i] = _value(own, pooled, bag, which[i], x[i], row, counting, clipped)


@njit(cache=True, nogil=True)
def _any_of(inverse, legal, wanted):
    """wanted[u, a]: is action a legal in any of the rows i with inverse[i] == u?"""
    for i in range(len(inverse)):
        for action in range(legal.shape[1]):
            wanted[inverse[i], action] |= legal[i, action]


@dataclass(frozen=True, eq=False)
class TreesPolicy(ABC):
    """Model trees for every action of a game.

    Args:
        bags: [K], trees over F features each; empty where the pooled ones stand in.
        pooled: trees over the F features and, behind them, the bag's number one-hot; may be empty.
        binning: how the learner codes the features, kept from generation to generation; None
            before anything is learned. Playing does not need it.
    """

    bags: tuple[tuple[m5.Tree, ...], ...]
    pooled: tuple[m5.Tree, ...] = ()
    binning: m5.Binning | None = None
    kind = ""

    @classmethod
    @abstractmethod
    def inputs(cls, game: Game) -> TreeInputs:
        """What the bags are of, and what the trees see."""

    @classmethod
    def untaught(cls, game: Game) -> Self:
        """Without trees."""
        return cls(((),) * len(cls.inputs(game).bags))

    @property
    def empty(self) -> bool:
        """Is nothing learned yet?"""
        return not self.pooled and not any(self.bags)

    @cached_property
    def _bag(self) -> np.ndarray:
        """int64 [K]: the number of a bag in `_own`, -1 where it has no trees."""
        own = np.array([len(bag) > 0 for bag in self.bags])
        return np.where(own, np.cumsum(own) - 1, -1)

    @cached_property
    def _own(self) -> m5.Forest:
        return m5.make_forest([bag for bag in self.bags if bag] or [self.pooled])

    @cached_property
    def _pooled(self) -> m5.Forest:
        # Where no bag needs them any trees will do: kernels take no None.
        return m5.make_forest([self.pooled]) if self.pooled else self._own

    def action_values(self, game: Game, states: np.ndarray, legal: np.ndarray) -> np.ndarray:
        return self._values(game, states, legal, False)[0]

    def measured_action_values(
        self, game: Game, states: np.ndarray, legal: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """`action_values`, and int64 [2]: how many trees were asked, and of these clipped."""
        return self._values(game, states, legal, True)

    def _values(
        self, game: Game, states: np.ndarray, legal: np.ndarray, counting: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        clipped = np.zeros(2, np.int64)
        if self.empty:
            return np.where(legal, np.float32(0.0), np.float32(-np.inf)), clipped
        return self._learned_values(game, states, legal, counting, clipped), clipped

    @abstractmethod
    def _learned_values(
        self,
        game: Game,
        states: np.ndarray,
        legal: np.ndarray,
        counting: bool,
        clipped: np.ndarray,
    ) -> np.ndarray:
        """`action_values` once there are trees; adds to `clipped` if `counting`."""

    def act(self, game: Game, states: np.ndarray, legal: np.ndarray, rng: Streams) -> Decisions:
        return greedy(self.action_values(game, states, legal), legal, rng)

    def to_parts(self) -> tuple[dict, dict[str, np.ndarray]]:
        bags = (*self.bags, self.pooled)
        arrays = m5.bags_to_arrays(bags)
        if self.binning is not None:
            arrays |= {f"binning.{name}": part for name, part in vars(self.binning).items()}
        return {"bags": [len(bag) for bag in bags]}, arrays

    @classmethod
    def from_parts(cls, spec: dict, arrays: dict[str, np.ndarray]) -> Self:
        *bags, pooled = m5.bags_from_arrays(spec["bags"], arrays)
        binning = {
            name.removeprefix("binning."): frozen(part, part.dtype)
            for name, part in arrays.items()
            if name.startswith("binning.")
        }
        return cls(tuple(bags), pooled, m5.Binning(**binning) if binning else None)


@dataclass(frozen=True, eq=False)
class ActionTreesPolicy(TreesPolicy):
    """A bag per action: greedy on what the acting player observes."""

    kind = "action_trees"

    @classmethod
    def inputs(cls, game: Game) -> TreeInputs:
        return ByAction(game)

    def _learned_values(
        self,
        game: Game,
        states: np.ndarray,
        legal: np.ndarray,
        counting: bool,
        clipped: np.ndarray,
    ) -> np.ndarray:
        """Equal observations are evaluated once: early positions recur a lot in a batch."""
        q = np.empty(legal.shape, np.float32)
        for start in range(0, len(states), _CHUNK):
            part = slice(start, start + _CHUNK)
            observations = game.observations_of(states[part], states["player"][part])
            firsts, inverse = unique_rows(observations)
            wanted = np.zeros((len(firsts), legal.shape[1]), np.bool_)
            _any_of(inverse, legal[part], wanted)
            distinct = np.empty(wanted.shape, np.float32)
            observations = observations.take(firsts, axis=0)
            _action_values(
                self._own,
                self._pooled,
                self._bag,
                observations,
                wanted,
                counting,
                distinct,
                clipped,
            )
            q[part] = distinct.take(inverse, axis=0)
        q[~legal] = -np.inf
        return q


@dataclass(frozen=True, eq=False)
class TypeTreesPolicy(TreesPolicy):
    """A bag per type of action: greedy on the states that actions lead to."""

    kind = "type_trees"

    @classmethod
    def inputs(cls, game: Game) -> TreeInputs:
        return ByType(game)

    def _learned_values(
        self,
        game: Game,
        states: np.ndarray,
        legal: np.ndarray,
        counting: bool,
        clipped: np.ndarray,
    ) -> np.ndarray:
        bag = self.inputs(game).bag

        def values_of(after: Afterstates) -> np.ndarray:
            values = np.empty(len(after.rows), np.float32)
            _candidate_values(
                self._own,
                self._pooled,
                self._bag,
                game.observations_of(after.states, after.movers),
                bag.take(after.actions),
                counting,
                values,
                clipped,
            )
            return values

        q = np.empty(legal.shape, np.float32)
        # Parts of states with so many legal actions in all.
        part_of = np.cumsum(np.count_nonzero(legal, axis=1)) // _CANDIDATES
        edges = [*np.flatnonzero(np.diff(part_of, prepend=-1)).tolist(), len(states)]
        for start, end in itertools.pairwise(edges):
            part = slice(start, end)
            q[part] = action_values(game, states[part], legal[part], values_of)
        return q


POLICIES: dict[str, type[TreesPolicy]] = {"action": ActionTreesPolicy, "type": TypeTreesPolicy}
