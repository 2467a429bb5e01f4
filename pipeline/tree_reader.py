"""A policy of trees in the words of its game: why it prefers a move, what it looks at."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from games import Game
from pipeline import m5
from pipeline.errors import UserError
from pipeline.m5.explain import Explanation, difference, explain, explanation_to_text


class ActionTrees(Protocol):
    """What is read of a policy of kind `action_trees`."""

    @property
    def bags(self) -> tuple[tuple[m5.Tree, ...], ...]:
        """[A], the trees of each action over the F features, empty where the pooled ones serve."""

    @property
    def pooled(self) -> tuple[m5.Tree, ...]:
        """Trees over the F features and, behind them, the action one-hot."""

    def action_values(self, game: Game, states: np.ndarray, legal: np.ndarray) -> np.ndarray:
        """As of any learned policy: float32 [B, A]."""


class Move(NamedTuple):
    """Why a policy prefers an action at a position."""

    values: list[tuple[int, float]]  # legal actions and their Q, best first
    best: Explanation
    second: Explanation | None  # of the runner-up; None where one action is legal
    difference: Explanation | None  # of the best from the runner-up


@dataclass(frozen=True)
class TreeReader:
    """Reads a policy that has trees.

    Contributions have F + A entries, named by `names`: those of the features, then those of the
    action itself, which are 0 in trees of one action.
    """

    game: Game
    policy: ActionTrees

    @cached_property
    def names(self) -> tuple[str, ...]:
        """[F + A]."""
        words = (self.action(each) for each in range(self.game.num_actions))
        return (*self.game.observation_names, *(f"action is {text}" for text in words))

    def action(self, action: int) -> str:
        return self.game.action_to_text(self.game.rules, action)

    @property
    def empty(self) -> bool:
        """Has it no tree at all, as before anything is learned?"""
        return not any(self.policy.bags) and not self.policy.pooled

    def shares(self, action: int) -> bool:
        """Do the pooled trees serve this action?"""
        return not self.policy.bags[action]

    def bag(self, action: int) -> tuple[m5.Tree, ...]:
        """The trees that value an action."""
        return self.policy.bags[action] or self.policy.pooled

    def rows(self, states: np.ndarray, action: int) -> np.ndarray:
        """What the trees of an action see at states [B]: float32 [B, F], or [B, F + A]."""
        rows = self.game.observations_of(states, states["player"])
        if not self.shares(action):
            return rows
        one_hot = np.zeros((len(rows), self.game.num_actions), np.float32)
        one_hot[:, action] = 1.0
        return np.concatenate([rows, one_hot], axis=1)

    def values(self, states: np.ndarray, action: int) -> np.ndarray:
        """Q(s, action) at states [B], float64 [B]; legal or not."""
        bag = self.bag(action)
        if not bag:
            return np.zeros(len(states))
        return m5.predict(m5.make_forest([bag]), self.rows(states, action))[:, 0]

    def explain(self, state: np.ndarray, action: int) -> Explanation:
        """Why Q(s, action) is what it is at a state [1]."""
        bag = self.bag(action)
        if not bag:
            return Explanation(0.0, 0.0, np.zeros(len(self.names)), 0.0, [])
        found = explain(bag, self.rows(state, action)[0])
        contributions = np.zeros(len(self.names))
        contributions[: len(found.contributions)] = found.contributions
        return replace(found, contributions=contributions)

    def move(self, state: np.ndarray) -> Move:
        """Why the policy would play what it would play at a state [1]. Equal values: the first.

        Raises:
            UserError: nobody decides there, or the policy has no trees yet.
        """
        if self.empty:
            raise UserError("this policy has no trees yet; name a later generation")
        legal = self.game.legal_of(state)
        actions = np.flatnonzero(legal[0])
        if not len(actions):
            raise UserError("nobody decides at this position; name one where a player is to move")
        q = self.policy.action_values(self.game, state, legal)[0]
        order = actions[np.argsort(-q[actions], kind="stable")]
        values = [(int(action), float(q[action])) for action in order]
        best = self.explain(state, values[0][0])
        if len(values) == 1:
            return Move(values, best, None, None)
        second = self.explain(state, values[1][0])
        return Move(values, best, second, difference(best, second))

    def move_to_text(self, state: np.ndarray) -> str:
        """`move` for a terminal: values, the paths and parts of the two best actions, and what sets
        them apart."""
        move = self.move(state)
        words = [self.action(action) for action, _ in move.values]
        lines = [self.game.state_to_text(self.game.rules, state[0]), "", "value  action"]
        for text, (action, value) in zip(words, move.values, strict=True):
            lines.append(f"{value:+.3f} {text}{' (pooled trees)' if self.shares(action) else ''}")
        lines += ["", f"{words[0]}: {explanation_to_text(move.best, self.names)}"]
        if move.second is not None and move.difference is not None:
            apart = replace(move.difference, paths=[])
            lines += ["", f"{words[1]}: {explanation_to_text(move.second, self.names)}"]
            lines += ["", f"{words[0]} over {words[1]}: {explanation_to_text(apart, self.names)}"]
        return "\n".join(lines)
