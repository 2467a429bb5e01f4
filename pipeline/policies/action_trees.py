"""Q(s, a) by model trees, one bag per action: greedy on what the acting player observes.

An action that was learned from too few games shares the pooled trees, which have the action among
their features. Before anything is learned every action is worth 0.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numba import njit

from games import Game
from pipeline import m5
from pipeline.m5.binning import frozen
from pipeline.policies.afterstates import unique_rows
from pipeline.policies.base import Decisions, greedy
from pipeline.streams import Streams

_BLOCK = 128  # rows that stay in the cache while every action's trees see them
_CHUNK = 1 << 14  # states whose observations are held at once


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
                if not wanted[i, action]:
                    continue
                if bag[action] >= 0:
                    q[i, action] = m5.predict_row(own, x[i], bag[action])
                    if counting:
                        clipped[0] += own.bag_start[bag[action] + 1] - own.bag_start[bag[action]]
                        clipped[1] += m5.clipped_trees(own, x[i], bag[action])
                else:
                    row[:features] = x[i]
                    row[features + action] = 1.0
                    q[i, action] = m5.predict_row(pooled, row, 0)
                    if counting:
                        clipped[0] += pooled.bag_start[1]
                        clipped[1] += m5.clipped_trees(pooled, row, 0)
                    row[features + action] = 0.0


@njit(cache=True, nogil=True)
def _any_of(inverse, legal, wanted):
    """wanted[u, a]: is action a legal in any of the rows i with inverse[i] == u?"""
    for i in range(len(inverse)):
        for action in range(legal.shape[1]):
            wanted[inverse[i], action] |= legal[i, action]


@dataclass(frozen=True, eq=False)
class ActionTreesPolicy:
    """Model trees for every action of a game.

    Args:
        bags: [A], the trees of each action over the F features; empty where the pooled ones stand
            in.
        pooled: trees over the F features and, behind them, the action one-hot; may be empty.
        binning: how the learner codes the features, kept from generation to generation; None
            before anything is learned. Playing does not need it.
    """

    bags: tuple[tuple[m5.Tree, ...], ...]
    pooled: tuple[m5.Tree, ...] = ()
    binning: m5.Binning | None = None
    kind = "action_trees"

    @property
    def empty(self) -> bool:
        """Is nothing learned yet?"""
        return not self.pooled and not any(self.bags)

    @cached_property
    def _bag(self) -> np.ndarray:
        """int64 [A]: the number of an action's bag in `_own`, -1 where it has none."""
        own = np.array([len(bag) > 0 for bag in self.bags])
        return np.where(own, np.cumsum(own) - 1, -1)

    @cached_property
    def _own(self) -> m5.Forest:
        return m5.make_forest([bag for bag in self.bags if bag] or [self.pooled])

    @cached_property
    def _pooled(self) -> m5.Forest:
        # Where no action needs them any trees will do: kernels take no None.
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
        """Equal observations are evaluated once: early positions recur a lot in a batch."""
        clipped = np.zeros(2, np.int64)
        if self.empty:
            return np.where(legal, np.float32(0.0), np.float32(-np.inf)), clipped
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
        return q, clipped

    def act(self, game: Game, states: np.ndarray, legal: np.ndarray, rng: Streams) -> Decisions:
        return greedy(self.action_values(game, states, legal), legal, rng)

    def to_parts(self) -> tuple[dict, dict[str, np.ndarray]]:
        bags = (*self.bags, self.pooled)
        arrays = m5.bags_to_arrays(bags)
        if self.binning is not None:
            arrays |= {f"binning.{name}": part for name, part in vars(self.binning).items()}
        return {"bags": [len(bag) for bag in bags]}, arrays

    @classmethod
    def from_parts(cls, spec: dict, arrays: dict[str, np.ndarray]) -> "ActionTreesPolicy":
        *bags, pooled = m5.bags_from_arrays(spec["bags"], arrays)
        binning = {
            name.removeprefix("binning."): frozen(part, part.dtype)
            for name, part in arrays.items()
            if name.startswith("binning.")
        }
        return cls(tuple(bags), pooled, m5.Binning(**binning) if binning else None)
