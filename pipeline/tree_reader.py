"""A policy of trees in the words of its game: why it prefers a move, what it looks at."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from games import Game
from pipeline import m5
from pipeline.errors import UserError
from pipeline.m5.explain import Explanation, difference, explain, explanation_to_text
from pipeline.selfplay import Traces

Bag = tuple[m5.Tree, ...]
_POOLED = -1  # source of the pooled trees


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
    """Why a policy prefers a choice at a position."""

    values: list[tuple[int, float]]  # what may be chosen and its value, best first
    best: Explanation
    second: Explanation | None  # of the runner-up; None where there is one choice
    difference: Explanation | None  # of the best from the runner-up
    question: str = ""  # what is chosen, where a position asks several things


class Reader(ABC):
    """Trees that value C choices, numbered as the rows of trees.parquet.

    The trees of a choice are its own, or those that several choices share. A *source* names them:
    the choice's number, or a negative one of `shared`.
    """

    game: Game
    names: tuple[str, ...]
    """of the features that trees see, [F] or more"""
    choices: tuple[str, ...]
    """[C], in words"""
    shared: dict[int, str]
    """sources of several choices, in words"""
    groups: dict[str, list[int]]
    """choices that are read together, by what they are called"""

    @abstractmethod
    def source(self, choice: int) -> int:
        """Where the trees of a choice are."""

    @abstractmethod
    def trees(self, source: int) -> Bag:
        """The trees of a source; none before they are learned."""

    @abstractmethod
    def rows(self, states: np.ndarray, choice: int) -> np.ndarray:
        """float32 [B, ..]: what the trees of a choice see at states [B]."""

    @abstractmethod
    def legal(self, states: np.ndarray) -> np.ndarray:
        """bool [B, C]: what may be chosen at states [B]."""

    @abstractmethod
    def chosen(self, traces: Traces) -> np.ndarray:
        """int32 [N, Q]: what was chosen at each of a decision's Q questions; -1: not asked."""

    @abstractmethod
    def moves(self, state: np.ndarray, chosen: Sequence[int]) -> list[Move]:
        """Why the policy prefers what it prefers at a state [1]: for each question that was asked.

        Args:
            chosen: [Q], as recorded there. A later question may depend on earlier answers.
        """

    @property
    def empty(self) -> bool:
        """Has it no tree at all, as before anything is learned?"""
        return not any(self.bag(choice) for choice in range(len(self.choices)))

    @property
    def sources(self) -> list[int]:
        """All that have trees, each once."""
        return [each for each in (*range(len(self.choices)), *self.shared) if self.own(each)]

    def own(self, source: int) -> Bag:
        """The trees of a source that are not another's."""
        return () if source >= 0 and self.shares(source) else self.trees(source)

    def shares(self, choice: int) -> bool:
        """Does it use trees that several choices share?"""
        return self.source(choice) < 0

    def bag(self, choice: int) -> Bag:
        """The trees that value a choice."""
        return self.trees(self.source(choice))

    def values(self, states: np.ndarray, choice: int) -> np.ndarray:
        """The value of a choice at states [B], float64 [B]; legal or not."""
        bag = self.bag(choice)
        if not bag:
            return np.zeros(len(states))
        return m5.predict(m5.make_forest([bag]), self.rows(states, choice))[:, 0]

    def explain(self, state: np.ndarray, choice: int) -> Explanation:
        """Why a choice is worth what it is worth at a state [1]."""
        bag = self.bag(choice)
        if not bag:
            return Explanation(0.0, 0.0, np.zeros(len(self.names)), 0.0, [])
        found = explain(bag, self.rows(state, choice)[0])
        contributions = np.zeros(len(self.names))
        contributions[: len(found.contributions)] = found.contributions
        return replace(found, contributions=contributions)

    def preferred(
        self, state: np.ndarray, choices: np.ndarray, values: np.ndarray, question: str = ""
    ) -> Move:
        """What is preferred among some choices [K] of these values [K], and why. Equal values: the
        first."""
        order = np.argsort(-values, kind="stable")
        ranked = [(int(choices[k]), float(values[k])) for k in order]
        best = self.explain(state, ranked[0][0])
        if len(ranked) == 1:
            return Move(ranked, best, None, None, question)
        second = self.explain(state, ranked[1][0])
        return Move(ranked, best, second, difference(best, second), question)


@dataclass(frozen=True)
class TreeReader(Reader):
    """Reads a policy of kind `action_trees`: its choices are the actions.

    Contributions have F + A entries, named by `names`: those of the features, then those of the
    action itself, which are 0 in trees of one action.
    """

    game: Game
    policy: ActionTrees

    @cached_property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        """[F + A]."""
        words = (self.action(each) for each in range(self.game.num_actions))
        return (*self.game.observation_names, *(f"action is {text}" for text in words))

    @cached_property
    def choices(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(self.action(action) for action in range(self.game.num_actions))

    @property
    def shared(self) -> dict[int, str]:  # type: ignore[override]
        return {_POOLED: "actions of few games"}

    @property
    def groups(self) -> dict[str, list[int]]:  # type: ignore[override]
        return {"all actions": list(range(len(self.choices)))}

    def action(self, action: int) -> str:
        return self.game.action_to_text(self.game.rules, action)

    def source(self, choice: int) -> int:
        return choice if self.policy.bags[choice] else _POOLED

    def trees(self, source: int) -> Bag:
        return self.policy.pooled if source == _POOLED else self.policy.bags[source]

    def rows(self, states: np.ndarray, choice: int) -> np.ndarray:
        """float32 [B, F], or [B, F + A] of pooled trees."""
        rows = self.game.observations_of(states, states["player"])
        if not self.shares(choice):
            return rows
        one_hot = np.zeros((len(rows), self.game.num_actions), np.float32)
        one_hot[:, choice] = 1.0
        return np.concatenate([rows, one_hot], axis=1)

    def legal(self, states: np.ndarray) -> np.ndarray:
        return self.game.legal_of(states)

    def chosen(self, traces: Traces) -> np.ndarray:
        return traces.action[:, None].astype(np.int32)

    def moves(self, state: np.ndarray, chosen: Sequence[int]) -> list[Move]:
        return [self.move(state)]

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
        return self.preferred(state, actions, q[actions])

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
