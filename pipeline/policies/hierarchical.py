"""Behaviours over low-level actions over primitive ones, chosen by model trees (Pfeiffer 2004).

The high level chooses a behaviour: the trees of each say what return it promises. The behaviour's
low level chooses among its actions: their trees say how surely and soon its sub-goal is reached.
`Hierarchy.candidates` maps the action to primitive ones, and the same trees judge those. Where
nothing is learned yet the rules of the game's hierarchy decide.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numba import njit

from games import Game
from games.game import BY_GAME, BY_GOAL, MARKS, WIN, Candidates, Hierarchy
from pipeline import m5
from pipeline.m5.binning import frozen
from pipeline.policies.base import Decisions, draw_with
from pipeline.streams import Streams

# feudal: the high level chooses at every step. module: it keeps a behaviour until its sub-goal is
# reached or impossible, or for `MOST_STEPS`. heuristic: the game's rule is the high level. guided:
# the rule, explored, while learning; then as feudal, for the rule chooses at every step too.
APPROACHES = ("feudal", "module", "heuristic", "guided")
MOST_STEPS = 30  # own steps that a behaviour is kept for

MEMORY = np.dtype(
    [
        ("behaviour", np.int8),  # in force, -1 before the first
        ("steps", np.int16),  # since it was chosen
        ("marks", np.int16, MARKS),  # at the last step
    ]
)

Bag = tuple[m5.Tree, ...]


@njit(cache=True, nogil=True)
def _high_values(forest, bag, x, possible, q):
    """q[i, h] where behaviour h is possible; 0 where it has no trees."""
    for i in range(len(x)):
        for h in range(len(bag)):
            q[i, h] = 0.0
            if possible[i, h] and bag[h] >= 0:
                q[i, h] = m5.predict_row(forest, x[i], bag[h])


@njit(cache=True, nogil=True)
def _low_values(forest, bag, x, behaviours, legal, q):
    """q[i, l] of the low-level actions of row i's behaviour."""
    for i in range(len(x)):
        h = behaviours[i]
        for low in range(bag.shape[1]):
            q[i, low] = 0.0
            if legal[i, low] and bag[h, low] >= 0:
                q[i, low] = m5.predict_row(forest, x[i], bag[h, low])


@njit(cache=True)
def _choose(count, actions, scores, judged, values, chosen):
    """The candidate with the best value where it was judged, ties by score; one that wins first."""
    for i in range(len(count)):
        best = 0
        for k in range(1, count[i]):
            better = scores[i, k] > scores[i, best]
            win = scores[i, k] >= WIN or scores[i, best] >= WIN
            if judged[i] and not win and values[i, k] != values[i, best]:
                better = values[i, k] > values[i, best]
            if better:
                best = k
        chosen[i] = actions[i, best]


@dataclass(frozen=True, eq=False)
class HierarchicalPolicy:
    """Trees for every behaviour and for every low-level action of each.

    Args:
        approach: one of `APPROACHES`.
        high: [H], the trees of each behaviour; empty where nothing is learned.
        low: [H][L], of each low-level action of each behaviour; empty where it was seldom played.
        pooled: [H], of all low-level actions of a behaviour together, for those without trees.
        binning: how the learner codes the features; None before anything is learned.
        judge: whether learned values judge the candidates of the mapping.
        guiding: guided: whether the rule is still the high level.
    """

    approach: str
    high: tuple[Bag, ...]
    low: tuple[tuple[Bag, ...], ...]
    pooled: tuple[Bag, ...]
    binning: m5.Binning | None = None
    judge: bool = True
    guiding: bool = False
    kind = "hierarchical"
    memory_dtype = MEMORY

    @staticmethod
    def untrained(hierarchy: Hierarchy, approach: str, judge: bool = True) -> "HierarchicalPolicy":
        behaviours = len(hierarchy.behaviours)
        low = ((),) * len(hierarchy.low_actions)
        none = ((),) * behaviours
        return HierarchicalPolicy(approach, none, (low,) * behaviours, none, judge=judge)

    @property
    def empty(self) -> bool:
        """Is nothing learned yet?"""
        return not any(self.high)

    @property
    def by_rule(self) -> bool:
        """Is the high level the game's rule?"""
        return self.approach == "heuristic" or (self.approach == "guided" and self.guiding)

    @property
    def keeps(self) -> bool:
        """Is a behaviour kept until it ends?"""
        return self.approach == "module"

    @cached_property
    def _forest(self) -> tuple[m5.Forest, np.ndarray, np.ndarray]:
        """All trees, the bags of the behaviours [H] and of their low-level actions [H, L]; -1 where
        there are none."""
        bags: list[Bag] = []

        def number(bag: Bag) -> int:
            if not bag:
                return -1
            bags.append(bag)
            return len(bags) - 1

        high = np.array([number(bag) for bag in self.high])
        pooled = np.array([number(bag) for bag in self.pooled])
        low = np.array([[number(bag) for bag in row] for row in self.low])
        return m5.make_forest(bags), high, np.where(low < 0, pooled[:, None], low)

    def high_values(self, x: np.ndarray, possible: np.ndarray) -> np.ndarray:
        """Q(s, h) of the possible behaviours, float32 [N, H], 0 elsewhere and before anything is
        learned. x: float32 [N, F], what the players see; possible: bool [N, H]."""
        q = np.zeros(possible.shape, np.float32)
        if not self.empty:
            forest, high, _ = self._forest
            _high_values(forest, high, x, possible, q)
        return q

    def low_values(self, x: np.ndarray, behaviours: np.ndarray, legal: np.ndarray) -> np.ndarray:
        """Q_h(s, l) of the legal low-level actions of each row's behaviour, float32 [N, L], 0
        elsewhere. behaviours: int8 [N]; legal: bool [N, L]."""
        q = np.zeros(legal.shape, np.float32)
        if not self.empty:
            forest, _, low = self._forest
            _low_values(forest, low, x, behaviours, legal, q)
        return q

    # Playing.

    def fresh_memory(self, shape: tuple[int, ...]) -> np.ndarray:
        memory = np.zeros(shape, MEMORY)
        memory["behaviour"] = -1
        return memory

    def act(self, game: Game, states: np.ndarray, legal: np.ndarray, rng: Streams) -> Decisions:
        return self.act_on(game, states, legal, self.fresh_memory((len(states),)), rng)

    def act_on(
        self, game: Game, states: np.ndarray, legal: np.ndarray, memory: np.ndarray, rng: Streams
    ) -> Decisions:
        zeros = np.zeros(len(states))
        return self.explore(game, states, legal, memory, rng, zeros, zeros, zeros)

    def explore(
        self,
        game: Game,
        states: np.ndarray,
        legal: np.ndarray,
        memory: np.ndarray,
        rng: Streams,
        high_epsilon: np.ndarray,
        epsilon: np.ndarray,
        temperature: np.ndarray,
    ) -> Decisions:
        """As `act_on`, with exploration at both levels.

        Args:
            high_epsilon: float64 [B], how often any possible behaviour is chosen. The rule of
                `heuristic` never explores; that of `guided` does, for a high level that is to be
                learned needs to see what the rule would not choose.
            epsilon, temperature: float64 [B], of the low level, as `base.draw` has them.
        """
        hierarchy = _hierarchy(game)
        size = len(states)
        step = np.empty(size, np.bool_)
        hierarchy.is_step(game.rules, states, step)
        at = np.flatnonzero(step)
        uniforms = rng.uniform(4)
        decisions = Decisions(
            np.empty(size, np.int32),
            np.ones(size, np.float32),
            np.full(size, np.nan, np.float32),
            np.zeros(size, np.bool_),
            memory["behaviour"].copy(),
            np.full(size, -1, np.int8),
        )
        behaviours, low = decisions.behaviours, decisions.low_actions
        assert behaviours is not None and low is not None
        rest = np.flatnonzero(~step & (behaviours < 0))
        if len(rest):
            behaviours[rest] = _by_rule(game, states.take(rest))
        if len(at):
            some, actions = states.take(at), legal.take(at, axis=0)
            x = game.observations_of(some, some["player"])
            self._choose_behaviours(
                game, some, x, memory, at, uniforms[at, :2], high_epsilon[at], decisions
            )
            mask = np.empty((len(at), len(hierarchy.low_actions)), np.bool_)
            hierarchy.low_legal(game.rules, some, actions, behaviours[at], mask)
            q = self.low_values(x, behaviours[at], mask)
            random = np.ones(len(at)) if self.empty else epsilon[at]
            drawn = draw_with(q, mask, random, temperature[at], uniforms[at, 2:])
            low[at] = drawn.actions
            decisions.probabilities[at] = drawn.probabilities
            decisions.explored[at] |= drawn.explored
        self._map(game, states, legal, decisions)
        return decisions

    def _choose_behaviours(
        self,
        game: Game,
        states: np.ndarray,
        x: np.ndarray,
        memory: np.ndarray,
        at: np.ndarray,
        uniforms: np.ndarray,
        epsilon: np.ndarray,
        decisions: Decisions,
    ) -> None:
        """The behaviour of every step; `at` are its rows of `memory` and `decisions`."""
        hierarchy, players = _hierarchy(game), states["player"]
        old = memory.take(at)
        possible = np.empty((len(at), len(hierarchy.behaviours)), np.bool_)
        hierarchy.possible(game.rules, states, possible)
        chosen = old["behaviour"].copy()
        fresh = np.ones(len(at), np.bool_)
        if self.keeps:
            begun = np.flatnonzero(chosen >= 0)
            done = np.empty(len(begun), np.bool_)
            marks = np.ascontiguousarray(old["marks"][begun])
            hierarchy.reached(
                game.rules, states.take(begun), players[begun], chosen[begun], marks, done
            )
            done |= ~possible[begun, chosen[begun]] | (old["steps"][begun] >= MOST_STEPS)
            fresh[begun] = done
        new = np.flatnonzero(fresh)
        q = self.high_values(x, possible)
        if len(new):
            wanted = q[new]
            random = np.ones(len(new)) if self.empty else epsilon[new]
            if self.by_rule:
                wanted = np.zeros_like(wanted)
                wanted[np.arange(len(new)), _by_rule(game, states.take(new))] = 1.0
                random = np.zeros(len(new)) if self.approach == "heuristic" else epsilon[new]
            drawn = draw_with(wanted, possible[new], random, np.zeros(len(new)), uniforms[new])
            chosen[new] = drawn.actions
            decisions.explored[at[new]] = drawn.explored
        assert decisions.behaviours is not None
        decisions.behaviours[at] = chosen
        if not self.empty:
            decisions.values[at] = q[np.arange(len(at)), chosen]
        old["steps"] = np.where(fresh, 0, old["steps"]) + 1
        old["behaviour"] = chosen
        marks = np.empty((len(at), MARKS), np.int16)
        hierarchy.mark(game.rules, states, players, chosen, marks)
        old["marks"] = marks
        memory[at] = old

    def candidates(
        self, game: Game, states: np.ndarray, legal: np.ndarray, decisions: Decisions
    ) -> tuple[Candidates, np.ndarray]:
        """The primitive actions that each decision may be mapped to, and what they are worth by
        the learned values, float32 [B, C]."""
        hierarchy, size = _hierarchy(game), len(states)
        assert decisions.behaviours is not None and decisions.low_actions is not None
        most = hierarchy.max_candidates
        found = Candidates(
            np.empty(size, np.int32),
            np.empty((size, most), np.int32),
            np.empty((size, most), np.float32),
            np.empty(size, np.int8),
            np.empty((size, most), game.state_dtype),
        )
        behaviours = decisions.behaviours
        hierarchy.candidates(game.rules, states, legal, behaviours, decisions.low_actions, found)
        values = np.zeros((size, most), np.float32)
        if not self.judge or self.empty:
            found.judged[:] = 0
            return found, values
        valid = np.arange(most) < found.count[:, None]
        for how in (BY_GOAL, BY_GAME):
            row, k = np.nonzero(valid & (found.judged == how)[:, None])
            if not len(row):
                continue
            flat = found.states.reshape(-1).take(row * most + k)
            x = game.observations_of(flat, flat["player"])
            if how == BY_GAME:
                only = np.zeros((len(row), len(hierarchy.behaviours)), np.bool_)
                only[np.arange(len(row)), behaviours[row]] = True
                values[row, k] = self.high_values(x, only)[np.arange(len(row)), behaviours[row]]
            else:
                mask = np.empty((len(row), len(hierarchy.low_actions)), np.bool_)
                hierarchy.low_legal(game.rules, flat, game.legal_of(flat), behaviours[row], mask)
                q = self.low_values(x, behaviours[row], mask)
                values[row, k] = np.where(mask, q, -np.inf).max(1)
        return found, values

    def _map(self, game: Game, states: np.ndarray, legal: np.ndarray, decisions: Decisions) -> None:
        found, values = self.candidates(game, states, legal, decisions)
        _choose(found.count, found.actions, found.scores, found.judged, values, decisions.actions)

    # Saving.

    def to_parts(self) -> tuple[dict, dict[str, np.ndarray]]:
        bags = [*self.high, *self.pooled, *(bag for row in self.low for bag in row)]
        arrays = m5.bags_to_arrays(bags)
        if self.binning is not None:
            arrays |= {f"binning.{name}": part for name, part in vars(self.binning).items()}
        spec = {
            "approach": self.approach,
            "judge": self.judge,
            "behaviours": len(self.high),
            "bags": [len(bag) for bag in bags],
        }
        return spec, arrays

    @classmethod
    def from_parts(cls, spec: dict, arrays: dict[str, np.ndarray]) -> "HierarchicalPolicy":
        bags = m5.bags_from_arrays(spec["bags"], arrays)
        count = spec["behaviours"]
        high, pooled, low = bags[:count], bags[count : 2 * count], bags[2 * count :]
        width = len(low) // count
        binning = {
            name.removeprefix("binning."): frozen(part, part.dtype)
            for name, part in arrays.items()
            if name.startswith("binning.")
        }
        return cls(
            spec["approach"],
            tuple(high),
            tuple(tuple(low[h * width : (h + 1) * width]) for h in range(count)),
            tuple(pooled),
            m5.Binning(**binning) if binning else None,
            spec["judge"],
        )


@dataclass(frozen=True)
class ExploringHierarchy:
    """A hierarchical policy as it plays while learning, by ply: entry i of each array holds at ply
    i, the last one from there on."""

    policy: HierarchicalPolicy
    high_epsilon: np.ndarray
    epsilon: np.ndarray
    temperature: np.ndarray
    memory_dtype = MEMORY

    @staticmethod
    def of(
        policy: HierarchicalPolicy,
        high_epsilon: Sequence[float],
        epsilon: Sequence[float],
        temperature: Sequence[float],
    ) -> "ExploringHierarchy":
        arrays = (np.array(each, float) for each in (high_epsilon, epsilon, temperature))
        return ExploringHierarchy(replace(policy, guiding=True), *arrays)

    def fresh_memory(self, shape: tuple[int, ...]) -> np.ndarray:
        return self.policy.fresh_memory(shape)

    def act(self, game: Game, states: np.ndarray, legal: np.ndarray, rng: Streams) -> Decisions:
        return self.act_on(game, states, legal, self.fresh_memory((len(states),)), rng)

    def act_on(
        self, game: Game, states: np.ndarray, legal: np.ndarray, memory: np.ndarray, rng: Streams
    ) -> Decisions:
        plies = states["ply"]
        by_ply = (
            each[np.minimum(plies, len(each) - 1)]
            for each in (self.high_epsilon, self.epsilon, self.temperature)
        )
        return self.policy.explore(game, states, legal, memory, rng, *by_ply)


def _hierarchy(game: Game) -> Hierarchy:
    if game.hierarchy is None:
        raise ValueError(f"game {game.name} has no behaviours; learner hierarchical needs them")
    return game.hierarchy


def _by_rule(game: Game, states: np.ndarray) -> np.ndarray:
    """int8 [B]: the behaviours that the game's rule chooses."""
    out = np.empty(len(states), np.int8)
    _hierarchy(game).heuristic(game.rules, states, out)
    return out
