"""A hierarchical policy in words: why a behaviour, a low-level action, a place or a card."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from games import Game
from games.game import BY_GAME, BY_GOAL, Hierarchy
from pipeline import m5
from pipeline.errors import UserError
from pipeline.m5.explain import difference, explain, explanation_to_text, tree_to_text
from pipeline.policies.base import Decisions
from pipeline.policies.hierarchical import Bag, HierarchicalPolicy


@dataclass(frozen=True)
class BehaviourReader:
    """Reads a hierarchical policy of a game."""

    game: Game
    policy: HierarchicalPolicy

    @cached_property
    def hierarchy(self) -> Hierarchy:
        assert self.game.hierarchy is not None
        return self.game.hierarchy

    @property
    def empty(self) -> bool:
        return self.policy.empty

    def bag_names(self) -> dict[str, Bag]:
        """Every bag of trees by name: "expand", or "expand: build road" of a low-level action."""
        hierarchy, policy = self.hierarchy, self.policy
        bags = dict(zip(hierarchy.behaviours, policy.high, strict=True))
        for h, name in enumerate(hierarchy.behaviours):
            for low in np.flatnonzero(hierarchy.allowed[h]):
                own = policy.low[h][low] or policy.pooled[h]
                bags[f"{name}: {hierarchy.low_actions[low]}"] = own
        return bags

    def show(self, name: str | None) -> str:
        """The trees of one bag as text.

        Raises:
            UserError: there is no such bag, or it has no trees.
        """
        bags = self.bag_names()
        if name not in bags:
            raise UserError(f"show needs --action, one of {', '.join(bags)}; got {name!r}")
        if not bags[name]:
            raise UserError(f"{name} has no trees: it was played in too few games")
        return "\n\n".join(
            f"tree {i} of {len(bags[name])}\n{tree_to_text(tree, self.game.observation_names)}"
            for i, tree in enumerate(bags[name], 1)
        )

    def decision_to_text(self, state: np.ndarray, behaviour: int | None, low: int | None) -> str:
        """Why a policy decides as it does at a state [1]: the behaviours and what they promise, the
        q of each low-level action, the way through the trees of the chosen one with the formula at
        its leaf, and the candidates of the mapping.

        Args:
            behaviour: in force at a recorded decision; None: the best, or the rule's.
            low: the low-level action played at a recorded step; None: the best.
        """
        game, hierarchy, policy = self.game, self.hierarchy, self.policy
        step = np.empty(1, np.bool_)
        hierarchy.is_step(game.rules, state, step)
        legal = game.legal_of(state)
        if not legal.any():
            raise UserError("nobody decides at this position; name one where a player is to move")
        x = game.observations_of(state, state["player"])
        possible = np.empty((1, len(hierarchy.behaviours)), np.bool_)
        hierarchy.possible(game.rules, state, possible)
        promised = policy.high_values(x, possible)[0]
        ruled = np.empty(1, np.int8)
        hierarchy.heuristic(game.rules, state, ruled)
        if behaviour is None:
            best = int(np.where(possible[0], promised, -np.inf).argmax())
            behaviour = int(ruled[0]) if policy.by_rule or policy.empty else best
        lines = [game.state_to_text(game.rules, state[0]), "", "behaviour: promised return"]
        for h in np.argsort(-np.where(possible[0], promised, -np.inf), kind="stable"):
            notes = [
                note
                for note, holds in (
                    ("in force", h == behaviour),
                    ("the rule's choice", h == ruled[0]),
                    ("not possible", not possible[0, h]),
                )
                if holds
            ]
            value = f"{promised[h]:.3f}" if possible[0, h] and policy.high[h] else "  -  "
            lines.append(f"  {value} {hierarchy.behaviours[h]}{_in_brackets(notes)}")
        chosen = -1
        if step[0]:
            mask = np.empty((1, len(hierarchy.low_actions)), np.bool_)
            in_force = np.array([behaviour], np.int8)
            hierarchy.low_legal(game.rules, state, legal, in_force, mask)
            chosen = self._low_level(x, behaviour, mask, low, lines)
        else:
            lines += ["", "no step of a behaviour: the mapping decides"]
        self._candidates(state, legal, behaviour, chosen, lines)
        return "\n".join(lines)

    def _low_level(
        self, x: np.ndarray, behaviour: int, mask: np.ndarray, low: int | None, lines: list[str]
    ) -> int:
        """Adds the low-level actions and why the chosen one has its q; returns it."""
        hierarchy = self.hierarchy
        q = self.policy.low_values(x, np.array([behaviour], np.int8), mask)[0]
        order = [int(each) for each in np.argsort(-q, kind="stable") if mask[0, each]]
        chosen = order[0] if low is None else low
        lines += ["", f"low-level actions of {hierarchy.behaviours[behaviour]}: q of its sub-goal"]
        for each in order:
            shared = not self.policy.low[behaviour][each] and not self.policy.empty
            notes = ["chosen"] * (each == chosen) + ["trees of the behaviour as a whole"] * shared
            lines.append(f"  {q[each]:.3f} {hierarchy.low_actions[each]}{_in_brackets(notes)}")
        if self.policy.empty:
            lines.append("nothing is learned yet: any of them, each equally likely")
            return chosen
        names = self.game.observation_names
        why = explain(self._bag(behaviour, chosen), x[0])
        lines += ["", f"{hierarchy.low_actions[chosen]}: {explanation_to_text(why, names)}"]
        others = [each for each in order if each != chosen]
        if others:
            other = explain(self._bag(behaviour, others[0]), x[0])
            apart = replace(difference(why, other), paths=[])
            words = f"{hierarchy.low_actions[chosen]} over {hierarchy.low_actions[others[0]]}"
            lines += ["", f"{words}: {explanation_to_text(apart, names)}"]
        return chosen

    def _bag(self, behaviour: int, low: int) -> tuple[m5.Tree, ...]:
        return self.policy.low[behaviour][low] or self.policy.pooled[behaviour]

    def _candidates(
        self, state: np.ndarray, legal: np.ndarray, behaviour: int, low: int, lines: list[str]
    ) -> None:
        decisions = Decisions(
            *(np.zeros(1),) * 4, np.array([behaviour], np.int8), np.array([low], np.int8)
        )
        found, values = self.policy.candidates(self.game, state, legal, decisions)
        judged = int(found.judged[0])
        by = {BY_GOAL: "value of the sub-goal", BY_GAME: "promised return"}.get(judged)
        lines += ["", "candidates of the mapping: score by its rule" + (f", {by}" if by else "")]
        count = int(found.count[0])
        key = values[0, :count] if by else found.scores[0, :count]
        for k in np.lexsort((-found.scores[0, :count], -key)):
            words = self.game.action_to_text(self.game.rules, int(found.actions[0, k]))
            value = f"  {values[0, k]:.4f}" if by else ""
            lines.append(f"  {found.scores[0, k]:8.3f}{value}  {words}")


def _in_brackets(notes: list[str]) -> str:
    return f" ({', '.join(notes)})" if notes else ""
