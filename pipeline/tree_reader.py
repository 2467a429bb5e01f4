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
from pipeline.policies.tree_inputs import TreeInputs
from pipeline.selfplay import Traces

Bag = tuple[m5.Tree, ...]
_POOLED = -1  # source of the pooled trees


class Trees(Protocol):
    """What is read of a policy of trees (`pipeline.policies.action_trees`)."""

    @property
    def bags(self) -> tuple[Bag, ...]:
        """[K], trees over F features each, empty where the pooled ones serve."""

    @property
    def pooled(self) -> Bag:
        """Trees over the F features and, behind them, the bag's number one-hot."""

    def inputs(self, game: Game) -> TreeInputs:
        """What the bags are of, and what the trees see."""
        ...

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
    """K bags of trees, numbered as the rows of trees.parquet, that value C choices.

    The trees of a bag are its own, or those that several bags share. A *source* names them: the
    bag's number, or a negative one of `shared`.
    """

    game: Game
    names: tuple[str, ...]
    """of the features that trees see, [F] or more"""
    bags: tuple[str, ...]
    """[K], what each bag is of, in words"""
    shared: dict[int, str]
    """sources of several bags, in words"""
    groups: dict[str, list[int]]
    """bags that are read together, by what they are called"""
    choices: tuple[str, ...]
    """[C], in words"""
    bag_of: np.ndarray
    """int [C], the bag that values a choice"""

    @abstractmethod
    def source(self, bag: int) -> int:
        """Where the trees of a bag are."""

    @abstractmethod
    def trees(self, source: int) -> Bag:
        """The trees of a source; none before they are learned."""

    @abstractmethod
    def rows(self, states: np.ndarray, choices: int | np.ndarray) -> np.ndarray:
        """float32 [B, ..]: what trees see of choices of one bag at states [B].

        choices: one for all states, or int [B]; possible there where trees look at what follows.
        """

    @abstractmethod
    def asked(self, states: np.ndarray) -> np.ndarray:
        """bool [B, C]: what may be chosen at states [B] and is valued by trees."""

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
        return not self.sources

    @property
    def sources(self) -> list[int]:
        """All that have trees, each once."""
        own = [bag for bag in range(len(self.bags)) if self.source(bag) == bag]
        return [source for source in (*own, *self.shared) if self.trees(source)]

    def trees_of(self, bag: int) -> Bag:
        """The trees of a bag, its own or shared."""
        return self.trees(self.source(bag))

    def shares(self, choice: int) -> bool:
        """Do trees that several bags share value this choice?"""
        return self.source(int(self.bag_of[choice])) < 0

    def bag(self, choice: int) -> Bag:
        """The trees that value a choice."""
        return self.trees_of(int(self.bag_of[choice]))

    def values(self, states: np.ndarray, choices: int | np.ndarray) -> np.ndarray:
        """What trees say of choices at states [B] (see `rows`), float64 [B]."""
        choices = np.broadcast_to(choices, len(states))
        bag = self.bag(int(choices[0])) if len(states) else ()
        if not bag:
            return np.zeros(len(states))
        return m5.predict(m5.make_forest([bag]), self.rows(states, choices))[:, 0]

    def explain(self, state: np.ndarray, choice: int) -> Explanation:
        """Why a choice is worth what trees say of it at a state [1]."""
        contributions = np.zeros(len(self.names))
        bag = self.bag(choice)
        if not bag:
            return Explanation(0.0, 0.0, contributions, 0.0, [])
        found = explain(bag, self.rows(state, choice)[0])
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
    """Reads a policy that has trees of actions, or of types of actions: its choices are actions.

    Contributions have F + K entries, named by `names`: those of the features, then those of the
    bag's number, which are 0 where a bag has trees of its own.
    """

    game: Game
    policy: Trees

    @cached_property
    def inputs(self) -> TreeInputs:
        return self.policy.inputs(self.game)

    @cached_property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        """[F + K]."""
        return (*self.inputs.names, *(f"action is {text}" for text in self.inputs.bags))

    @property
    def bags(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.inputs.bags

    @property
    def shared(self) -> dict[int, str]:  # type: ignore[override]
        return {_POOLED: "actions of few games"}

    @property
    def groups(self) -> dict[str, list[int]]:  # type: ignore[override]
        return {"all actions": list(range(len(self.bags)))}

    @cached_property
    def choices(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(self.action(action) for action in range(self.game.num_actions))

    @property
    def bag_of(self) -> np.ndarray:  # type: ignore[override]
        return self.inputs.bag

    def action(self, action: int) -> str:
        return self.game.action_to_text(self.game.rules, action)

    def source(self, bag: int) -> int:
        return bag if self.policy.bags[bag] else _POOLED

    def trees(self, source: int) -> Bag:
        return self.policy.pooled if source == _POOLED else self.policy.bags[source]

    def rows(self, states: np.ndarray, choices: int | np.ndarray) -> np.ndarray:
        """float32 [B, F], or [B, F + K] of pooled trees."""
        choices = np.broadcast_to(choices, len(states))
        rows = self.inputs.rows(states, states["player"], choices)
        if not len(rows) or not self.shares(int(choices[0])):
            return rows
        one_hot = np.zeros((len(rows), len(self.bags)), np.float32)
        one_hot[:, self.bag_of[choices[0]]] = 1.0
        return np.concatenate([rows, one_hot], axis=1)

    def asked(self, states: np.ndarray) -> np.ndarray:
        asked = self.game.legal_of(states)
        at, actions = np.nonzero(asked)
        asked[at, actions] = self.inputs.asked(states.take(at), actions)
        return asked

    def explain(self, state: np.ndarray, choice: int) -> Explanation:
        """Why Q(s, action) is what it is at a state [1]. Where no tree is asked, as the action ends
        the game, all of it is the base."""
        if self.bag(choice) and not self.inputs.asked(state, np.array([choice]))[0]:
            legal = np.zeros((1, self.game.num_actions), np.bool_)
            legal[0, choice] = True
            paid = float(self.policy.action_values(self.game, state, legal)[0, choice])
            return Explanation(paid, paid, np.zeros(len(self.names)), 0.0, [])
        return super().explain(state, choice)

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
