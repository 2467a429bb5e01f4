"""What parts of a hierarchical agent for Catan are worth, by games of one against three.

    python benchmarks/catan_ablations.py RUN [--root runs] [--generation N] [--games 2000]

A whole agent (A) against the same agent without something (B): one A against three B, and one B
against three A; equals win 25% of the games. Without
  trading between players: makes no offers and declines all (who trades needs somebody to trade
    with, so what counts is how one B fares among three A);
  judging: the mapping goes by its rule alone, not by learned values;
  learning below: chance chooses the low-level actions and the rule maps them.
"""

import argparse
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from games import Game
from games.catan.behaviours import OFFER_TRADE_ACTION
from games.catan.state import ANSWER, DECLINE
from pipeline.config import make_game_from
from pipeline.policies.base import Decisions, Policy
from pipeline.policies.hierarchical import MEMORY, HierarchicalPolicy
from pipeline.policies.scripted import baseline
from pipeline.policies.store import load_policy
from pipeline.ratings import wilson
from pipeline.run import Run
from pipeline.selfplay import play_games
from pipeline.streams import Streams, game_keys


@dataclass(frozen=True)
class Silent:
    """A hierarchical agent that does not trade with players."""

    policy: HierarchicalPolicy
    memory_dtype = MEMORY

    def fresh_memory(self, shape: tuple[int, ...]) -> np.ndarray:
        return self.policy.fresh_memory(shape)

    def act(self, game: Game, states: np.ndarray, legal: np.ndarray, rng: Streams) -> Decisions:
        return self.act_on(game, states, legal, self.fresh_memory((len(states),)), rng)

    def act_on(
        self, game: Game, states: np.ndarray, legal: np.ndarray, memory: np.ndarray, rng: Streams
    ) -> Decisions:
        assert game.hierarchy is not None
        allowed = game.hierarchy.low_legal

        def without_offers(rules: Any, some: Any, mask: Any, behaviours: Any, out: Any) -> None:
            allowed(rules, some, mask, behaviours, out)
            out[:, OFFER_TRADE_ACTION] = False

        quiet = replace(game, hierarchy=game.hierarchy._replace(low_legal=without_offers))
        decisions = self.policy.act_on(quiet, states, legal, memory, rng)
        decisions.actions[states["phase"] == ANSWER] = DECLINE
        return decisions


def share(game: Game, one: Policy, other: Policy, games: int) -> str:
    """Games that one wins against three of another, seats rotated."""
    at = np.arange(games)
    seatings = np.ones((games, game.num_players), np.int8)
    seatings[at, at % game.num_players] = 0
    keys = game_keys(1, "ablation", 0, at // game.num_players)
    results, _ = play_games(game, [one, other], seatings, keys, record=False)
    won = int((results.returns[at, at % game.num_players] == 1.0).sum())
    interval = wilson(won, games)
    return f"{won / games:5.1%} ({interval.low:.1%} to {interval.high:.1%})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run")
    parser.add_argument("--root", default="runs")
    parser.add_argument("--generation", type=int)
    parser.add_argument("--games", type=int, default=2000)
    options = parser.parse_args()
    run = Run.open(options.root, options.run)
    generation = run.complete()[-1] if options.generation is None else options.generation
    game = make_game_from(run.config.game)
    whole = load_policy(run.storage, run.policy(generation), game)
    assert isinstance(whole, HierarchicalPolicy)
    print(
        f"{options.run}, generation {generation}, {options.games:,} games each way, 95% intervals"
    )
    for name, less in (
        ("trading between players", Silent(whole)),
        ("judging", replace(whole, judge=False)),
        ("learning below", baseline("heuristic_random", game)),
    ):
        alone = share(game, whole, less, options.games)
        among = share(game, less, whole, options.games)
        words = f"one whole among three without {alone}, one without among three whole {among}"
        print(f"without {name}: {words}", flush=True)


if __name__ == "__main__":
    main()
