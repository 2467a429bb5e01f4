"""What trees of Q(s, a) are of, and what they see: a bag per action, or per type of action."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from games import TERMINAL, Game
from games.game import Symmetry


class TreeInputs(Protocol):
    """K bags of trees over F features (which need not be those of the game's observation)."""

    @property
    def bags(self) -> tuple[str, ...]:
        """[K], what each bag is of, in words."""

    @property
    def bag(self) -> np.ndarray:
        """int64 [A], the bag that values an action."""

    @property
    def names(self) -> tuple[str, ...]:
        """[F]."""

    @property
    def symmetries(self) -> Sequence[Symmetry]:
        """Those of the game: `observation` int64 [F] of features, `action` int64 [K] of bags."""

    def rows(self, states: np.ndarray, players: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """float32 [B, F]: what the trees see of actions int [B], legal for players int32 [B]."""
        ...

    def asked(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """bool [B]: the trees value the action there. Others are worth what the rules pay."""
        ...


@dataclass(frozen=True)
class ByAction:
    """A bag per action, over what the acting player observes."""

    game: Game

    @cached_property
    def bags(self) -> tuple[str, ...]:
        words = self.game.action_to_text
        return tuple(words(self.game.rules, action) for action in range(self.game.num_actions))

    @cached_property
    def bag(self) -> np.ndarray:
        return np.arange(self.game.num_actions)

    @property
    def names(self) -> tuple[str, ...]:
        return self.game.observation_names

    @property
    def symmetries(self) -> Sequence[Symmetry]:
        return self.game.symmetries

    def rows(self, states: np.ndarray, players: np.ndarray, actions: np.ndarray) -> np.ndarray:
        return self.game.observations_of(states, players)

    def asked(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        return np.ones(len(states), np.bool_)


@dataclass(frozen=True)
class ByType:
    """A bag per type of action, over what the acting player observes of the state right after it,
    before chance or anybody else does something. An action that ends the game is worth what the
    rules pay."""

    game: Game

    @property
    def bags(self) -> tuple[str, ...]:
        types = self.game.action_types
        return types.names if types is not None else ("action",)

    @cached_property
    def bag(self) -> np.ndarray:
        types = self.game.action_types
        return np.zeros(self.game.num_actions, int) if types is None else types.of.astype(int)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(f"after: {name}" for name in self.game.observation_names)

    @cached_property
    def symmetries(self) -> Sequence[Symmetry]:
        """An action and its image are of one type (`games.game.ActionTypes`)."""
        same = np.arange(len(self.bags))
        return tuple(Symmetry(each.observation, same) for each in self.game.symmetries)

    def rows(self, states: np.ndarray, players: np.ndarray, actions: np.ndarray) -> np.ndarray:
        return self.game.observations_of(self.game.after(states, actions), players)

    def asked(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        return self.game.after(states, actions)["player"] != TERMINAL
