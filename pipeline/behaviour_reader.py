"""A hierarchical policy in words: why a behaviour, a low-level action, a place or a card."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from games import Game
from games.game import BY_GAME, BY_GOAL, Hierarchy
from pipeline.errors import UserError
from pipeline.m5.explain import difference, explain, explanation_to_text
from pipeline.policies.base import Decisions
from pipeline.policies.hierarchical import HierarchicalPolicy
from pipeline.selfplay import Traces
from pipeline.tree_reader import Bag, Move, Reader

_BEHAVIOUR = -1  # in place of a low-level action


@dataclass(frozen=True)
class BehaviourReader(Reader):
    """Reads a hierarchical policy of a game.

    Its choices, a bag each, are the behaviours, each followed by its low-level actions. Both levels
    are asked at every step of a behaviour.
    """

    game: Game
    policy: HierarchicalPolicy

    @cached_property
    def hierarchy(self) -> Hierarchy:
        assert self.game.hierarchy is not None
        return self.game.hierarchy

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        """Behaviour and low-level action of every choice."""
        allowed = self.hierarchy.allowed
        return [
            (h, low)
            for h in range(len(allowed))
            for low in (_BEHAVIOUR, *np.flatnonzero(allowed[h]).tolist())
        ]

    @cached_property
    def _number(self) -> np.ndarray:
        """int32 [H, L + 1]: the choice of a behaviour and low-level action, the behaviour's own in
        the last column."""
        number = np.full((len(self.hierarchy.behaviours), len(self.hierarchy.low_actions) + 1), -1)
        for choice, (h, low) in enumerate(self.pairs):
            number[h, low] = choice
        return number.astype(np.int32)

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.game.observation_names

    @cached_property
    def choices(self) -> tuple[str, ...]:  # type: ignore[override]
        names, low_names = self.hierarchy.behaviours, self.hierarchy.low_actions
        return tuple(
            names[h] if low == _BEHAVIOUR else f"{names[h]}: {low_names[low]}"
            for h, low in self.pairs
        )

    @property
    def bags(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.choices

    @cached_property
    def bag_of(self) -> np.ndarray:  # type: ignore[override]
        return np.arange(len(self.choices))

    @cached_property
    def shared(self) -> dict[int, str]:  # type: ignore[override]
        return {-1 - h: f"{name}: shared" for h, name in enumerate(self.hierarchy.behaviours)}

    @cached_property
    def groups(self) -> dict[str, list[int]]:  # type: ignore[override]
        groups: dict[str, list[int]] = {"behaviours": []}
        for choice, (h, low) in enumerate(self.pairs):
            below = f"low-level actions of {self.hierarchy.behaviours[h]}"
            groups.setdefault("behaviours" if low == _BEHAVIOUR else below, []).append(choice)
        return groups

    def source(self, bag: int) -> int:
        h, low = self.pairs[bag]
        return bag if low == _BEHAVIOUR or self.policy.low[h][low] else -1 - h

    def trees(self, source: int) -> Bag:
        if source < 0:
            return self.policy.pooled[-1 - source]
        h, low = self.pairs[source]
        return self.policy.high[h] if low == _BEHAVIOUR else self.policy.low[h][low]

    def rows(self, states: np.ndarray, choices: int | np.ndarray) -> np.ndarray:
        return self.game.observations_of(states, states["player"])

    def asked(self, states: np.ndarray) -> np.ndarray:
        out = np.zeros((len(states), len(self.choices)), np.bool_)
        possible = self._possible(states)
        for h in range(len(self.hierarchy.behaviours)):
            some = np.flatnonzero(possible[:, h])
            out[some, self._number[h, _BEHAVIOUR]] = True
            mask = self._low_legal(states.take(some), h)
            for low in np.flatnonzero(self.hierarchy.allowed[h]):
                out[some, self._number[h, low]] = mask[:, low]
        return out

    def chosen(self, traces: Traces) -> np.ndarray:
        h, low = traces.behaviour.astype(int), traces.low_action.astype(int)
        step = low >= 0
        behaviours = np.where(step, self._number[h, _BEHAVIOUR], -1)
        return np.stack([behaviours, np.where(step, self._number[h, low], -1)], 1)

    def moves(self, state: np.ndarray, chosen: Sequence[int]) -> list[Move]:
        x = self.game.observations_of(state, state["player"])
        possible = self._possible(state)
        behaviours = np.flatnonzero(possible[0])
        promised = self.policy.high_values(x, possible)[0, behaviours]
        h = self.pairs[chosen[0]][0]
        mask = self._low_legal(state, h)
        low = np.flatnonzero(mask[0])
        q = self.policy.low_values(x, np.array([h], np.int8), mask)[0, low]
        above = "which behaviour: the return that each promises"
        if self.policy.by_rule:
            above += "; the rule chooses"
        below = f"low-level action of {self.hierarchy.behaviours[h]}: how surely and soon it leads"
        return [
            self.preferred(state, self._number[behaviours, _BEHAVIOUR], promised, above),
            self.preferred(state, self._number[h, low], q, f"{below} to the sub-goal"),
        ]

    def _possible(self, states: np.ndarray) -> np.ndarray:
        """bool [B, H]."""
        out = np.empty((len(states), len(self.hierarchy.behaviours)), np.bool_)
        self.hierarchy.possible(self.game.rules, states, out)
        return out

    def _low_legal(self, states: np.ndarray, behaviour: int) -> np.ndarray:
        """bool [B, L]: low-level actions under a behaviour."""
        out = np.empty((len(states), len(self.hierarchy.low_actions)), np.bool_)
        in_force = np.full(len(states), behaviour, np.int8)
        legal = self.game.legal_of(states)
        self.hierarchy.low_legal(self.game.rules, states, legal, in_force, out)
        return out

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
        possible = self._possible(state)
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
                    ("no trees: counts as 0", possible[0, h] and not policy.high[h]),
                )
                if holds
            ]
            value = f"{promised[h]:.3f}" if possible[0, h] and policy.high[h] else "  -  "
            lines.append(f"  {value} {hierarchy.behaviours[h]}{_in_brackets(notes)}")
        chosen = -1
        if step[0]:
            chosen = self._low_level(x, behaviour, self._low_legal(state, behaviour), low, lines)
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
            shared = self.shares(int(self._number[behaviour, each])) and not self.policy.empty
            notes = ["chosen"] * (each == chosen) + ["trees of the behaviour as a whole"] * shared
            lines.append(f"  {q[each]:.3f} {hierarchy.low_actions[each]}{_in_brackets(notes)}")
        if self.policy.empty:
            lines.append("nothing is learned yet: any of them, each equally likely")
            return chosen
        names = self.names
        why = explain(self.bag(int(self._number[behaviour, chosen])), x[0])
        lines += ["", f"{hierarchy.low_actions[chosen]}: {explanation_to_text(why, names)}"]
        others = [each for each in order if each != chosen]
        if others:
            other = explain(self.bag(int(self._number[behaviour, others[0]])), x[0])
            apart = replace(difference(why, other), paths=[])
            words = f"{hierarchy.low_actions[chosen]} over {hierarchy.low_actions[others[0]]}"
            lines += ["", f"{words}: {explanation_to_text(apart, names)}"]
        return chosen

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
