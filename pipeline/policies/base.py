"""What a policy is, and how an action is drawn from action values.

A policy picks actions for a batch of decisions at once. A *learned* policy also gives the value of
every legal action and is greedy by itself; exploration wraps it and is configured apart from it.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numba import njit

from games import Game
from pipeline.streams import Streams


class Decisions(NamedTuple):
    """What a policy decided, one entry per row of the batch."""

    actions: np.ndarray  # int32 [B]
    probabilities: np.ndarray  # float32 [B], with which each action was chosen
    values: np.ndarray  # float32 [B], V(s) for the acting player as the policy sees it; NaN = none
    explored: np.ndarray  # bool [B], drawn uniformly by epsilon
    # Of a hierarchical policy, int8 [B]: the behaviour in force and, in its steps, the low-level
    # action, else -1; None: no such policy.
    behaviours: np.ndarray | None = None
    low_actions: np.ndarray | None = None


class Policy(Protocol):
    """Picks actions. Stateless: the same arguments give the same decisions."""

    def act(self, game: Game, states: np.ndarray, legal: np.ndarray, rng: Streams) -> Decisions:
        """Decides for every row of `states` [B] among the True entries of `legal` bool [B, A]."""
        ...


class SavedPolicy(Policy, Protocol):
    """A policy that can be saved (`pipeline.policies.store`)."""

    kind: str  # key of `store.KINDS`

    def to_parts(self) -> tuple[dict, dict[str, np.ndarray]]:
        """What makes the policy up: plain JSON, and named arrays."""
        ...


@runtime_checkable
class LearnedPolicy(SavedPolicy, Protocol):
    """A saved policy with a value for every action."""

    def action_values(self, game: Game, states: np.ndarray, legal: np.ndarray) -> np.ndarray:
        """Q(s, a) from the acting player's side, float32 [B, A]; -inf where illegal."""
        ...


@runtime_checkable
class RememberingPolicy(Policy, Protocol):
    """A policy that goes on with what it has begun. What it remembers of a game is a record per
    player that its caller keeps; `act` decides as at the first decision of a game."""

    memory_dtype: np.dtype

    def fresh_memory(self, shape: tuple[int, ...]) -> np.ndarray:
        """What is remembered before the first decision."""
        ...

    def act_on(
        self, game: Game, states: np.ndarray, legal: np.ndarray, memory: np.ndarray, rng: Streams
    ) -> Decisions:
        """As `act`; `memory` [B], of the players who decide, is brought up to date."""
        ...


@njit(cache=True)
def first_legal(row, start):
    """The first legal action from `start` on in bool [A], else A."""
    # Most actions of a large game are illegal. Sixteen at a time are one vector to look at;
    # unsigned, because an index that may be negative keeps the compiler from making it one.
    action, end = np.uint64(start), np.uint64(len(row))
    while action + np.uint64(16) <= end:
        some = False
        for k in range(16):
            some |= row[action + np.uint64(k)]
        if some:
            break
        action += np.uint64(16)
    while action < end and not row[action]:
        action += np.uint64(1)
    return np.int64(action)


@njit(cache=True)
def uniform_legal(legal, uniforms, actions, probabilities):
    """Draws one of the legal actions of each row, each equally likely."""
    for i in range(len(legal)):
        row = legal[i]
        count = 0
        for action in range(len(row)):
            count += row[action]
        probabilities[i] = 1.0 / max(count, 1)
        action = first_legal(row, 0)
        for _ in range(int(uniforms[i, 0] * count)):
            action = first_legal(row, action + 1)
        actions[i] = action


@njit(cache=True)
def _draw(
    q, legal, epsilon, temperature, uniforms, weights, actions, probabilities, values, explored
):
    for i in range(len(q)):
        count = 0
        best = -np.inf
        for action in range(q.shape[1]):
            if legal[i, action]:
                count += 1
                best = max(best, q[i, action])
        # The choice without epsilon: a softmax, or at temperature 0 any of the best actions.
        total = 0.0
        for action in range(q.shape[1]):
            weight = 0.0
            if legal[i, action]:
                if temperature[i] > 0.0:
                    weight = np.exp((q[i, action] - best) / temperature[i])
                elif q[i, action] == best:
                    weight = 1.0
            weights[action] = weight
            total += weight
        explored[i] = uniforms[i, 0] < epsilon[i]
        target = uniforms[i, 1] * (count if explored[i] else total)
        chosen = -1
        for action in range(q.shape[1]):
            if legal[i, action]:
                weight = 1.0 if explored[i] else weights[action]
                if weight > 0.0:  # rounding may leave `target` just above 0 at the end
                    chosen = action
                target -= weight
                if target < 0.0 and chosen == action:
                    break
        actions[i] = chosen
        values[i] = best
        probabilities[i] = epsilon[i] / count + (1.0 - epsilon[i]) * weights[chosen] / total


def draw(
    q: np.ndarray, legal: np.ndarray, epsilon: np.ndarray, temperature: np.ndarray, rng: Streams
) -> Decisions:
    """`draw_with` two numbers of each row's stream."""
    return draw_with(q, legal, epsilon, temperature, rng.uniform(2))


def draw_with(
    q: np.ndarray,
    legal: np.ndarray,
    epsilon: np.ndarray,
    temperature: np.ndarray,
    uniforms: np.ndarray,
) -> Decisions:
    """Draws actions from action values.

    With probability epsilon any legal action, each equally likely; else by softmax(q /
    temperature), which at temperature 0 is the best action, ties broken evenly.

    Args:
        q: float32 [B, A], Q(s, a); entries of illegal actions are not read.
        legal: bool [B, A], at least one True in a row.
        epsilon, temperature: float64 [B].
        uniforms: float64 [B, 2] in [0, 1).
    """
    rows = len(q)
    decisions = Decisions(
        np.empty(rows, np.int32),
        np.empty(rows, np.float32),
        np.empty(rows, np.float32),
        np.empty(rows, np.bool_),
    )
    weights = np.empty(q.shape[1])
    _draw(
        q,
        legal,
        epsilon,
        temperature,
        uniforms,
        weights,
        decisions.actions,
        decisions.probabilities,
        decisions.values,
        decisions.explored,
    )
    return decisions


def greedy(q: np.ndarray, legal: np.ndarray, rng: Streams) -> Decisions:
    """The best action of each row, ties broken evenly; q float32 [B, A], legal bool [B, A]."""
    zeros = np.zeros(len(q))
    return draw(q, legal, zeros, zeros, rng)


@dataclass(frozen=True)
class Exploring:
    """A learned policy that explores, by ply.

    epsilon, temperature: float64 [plies]; entry i holds at ply i, the last one from there on.
    """

    policy: LearnedPolicy
    epsilon: np.ndarray
    temperature: np.ndarray

    def act(self, game: Game, states: np.ndarray, legal: np.ndarray, rng: Streams) -> Decisions:
        plies = states["ply"]
        epsilon = self.epsilon[np.minimum(plies, len(self.epsilon) - 1)]
        temperature = self.temperature[np.minimum(plies, len(self.temperature) - 1)]
        greedily = np.flatnonzero(epsilon < 1.0)
        if len(greedily) == len(states):
            q = self.policy.action_values(game, states, legal)
            return draw(q, legal, epsilon, temperature, rng)
        # Where epsilon is 1 nobody asks for the values. Row by row, so that a decision does not
        # depend on which others are made with it.
        decisions = uniform_decisions(legal, rng.rows(np.arange(len(states))), explored=True)
        if len(greedily):
            some, choices = states.take(greedily), legal[greedily]
            drawn = draw(
                self.policy.action_values(game, some, choices),
                choices,
                epsilon[greedily],
                temperature[greedily],
                rng.rows(greedily),
            )
            for column, values in zip(decisions, drawn, strict=True):
                if column is not None:
                    column[greedily] = values
        return decisions


def uniform_decisions(legal: np.ndarray, rng: Streams, explored: bool) -> Decisions:
    """Any legal action, each equally likely, without an opinion on the value."""
    rows = len(legal)
    actions, probabilities = np.empty(rows, np.int32), np.empty(rows, np.float32)
    uniform_legal(legal, rng.uniform(), actions, probabilities)
    return Decisions(
        actions, probabilities, np.full(rows, np.nan, np.float32), np.full(rows, explored)
    )
