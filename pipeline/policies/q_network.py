"""Q(s, a) by a network with one output per action: greedy on what the acting player observes."""

from dataclasses import dataclass

import numpy as np

from games import Game
from pipeline.policies.base import Decisions, greedy
from pipeline.policies.mlp import MLP
from pipeline.streams import Streams


@dataclass(frozen=True)
class QNetworkPolicy:
    """The network alone: no action is tried out, no state is looked ahead to."""

    network: MLP
    kind = "q_network"

    def action_values(self, game: Game, states: np.ndarray, legal: np.ndarray) -> np.ndarray:
        q = self.network(game.observations_of(states, states["player"]))
        return np.where(legal, q, np.float32(-np.inf))

    def act(self, game: Game, states: np.ndarray, legal: np.ndarray, rng: Streams) -> Decisions:
        return greedy(self.action_values(game, states, legal), legal, rng)

    def to_parts(self) -> tuple[dict, dict[str, np.ndarray]]:
        return self.network.to_parts()
