"""Where the time of tree-guided self-play in Catan goes, and what its games are like.

    python benchmarks/bench_hierarchical.py RUN [--root runs] [--generation N] [--games 500]

One process, one core. The parts are timed by wrapping what the driver and the policy call, so their
sum with "the rest" (Python of the driver and the policy) is the whole; wrapping costs nothing that
shows, for each call is for a batch. Also counted: trades between players, and with the bank.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from games.catan.state import BANK_TRADE, GIVE, PARTNER, STEAL
from pipeline import traces
from pipeline.config import make_game_from
from pipeline.policies import hierarchical
from pipeline.policies.hierarchical import ExploringHierarchy, HierarchicalPolicy
from pipeline.policies.store import load_policy
from pipeline.run import Run
from pipeline.selfplay import play_games
from pipeline.streams import game_keys

ENGINE = ("init", "legal_actions", "step", "returns", "chance_probabilities")
MAPPING = ("is_step", "possible", "heuristic", "low_legal", "mark", "reached", "candidates")


class Timed:
    """Seconds spent in each part."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    def wrap(self, part: str, function: Callable) -> Callable:
        def timed(*arguments: Any) -> Any:
            start = time.perf_counter()
            try:
                return function(*arguments)
            finally:
                self.seconds[part] += time.perf_counter() - start

        return timed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run")
    parser.add_argument("--root", default="runs")
    parser.add_argument("--generation", type=int)
    parser.add_argument("--games", type=int, default=500)
    options = parser.parse_args()
    run = Run.open(options.root, options.run)
    generation = run.complete()[-1] if options.generation is None else options.generation
    game = make_game_from(run.config.game)
    policy = load_policy(run.storage, run.policy(generation), game)
    assert isinstance(policy, HierarchicalPolicy)
    assert game.hierarchy is not None
    player = ExploringHierarchy.of(policy, [0.1], [0.1], [0.0])
    seatings = np.zeros((options.games, game.num_players), int)
    keys = game_keys(1, "benchmark", generation, np.arange(options.games))
    _, few = play_games(game, [player], seatings[:8], keys[:8])  # compiled and loaded
    assert few is not None
    facts = {"game": game.name, "params": dict(game.params), "code": "benchmark"}
    traces.to_parquet(game, facts, few)

    timed = Timed()
    engine = {name: timed.wrap("engine", getattr(game, name)) for name in ENGINE}
    mapping = {name: timed.wrap("mapping", getattr(game.hierarchy, name)) for name in MAPPING}
    watched = replace(
        game,
        **engine,
        observe=timed.wrap("features", game.observe),
        hierarchy=game.hierarchy._replace(**mapping),
    )
    for name in ("_high_values", "_low_values"):
        setattr(hierarchical, name, timed.wrap("trees", getattr(hierarchical, name)))
    start = time.perf_counter()
    results, played = play_games(watched, [player], seatings, keys)
    playing = time.perf_counter() - start
    assert played is not None
    start = time.perf_counter()
    facts = {"game": game.name, "params": dict(game.params), "code": "benchmark"}
    data = traces.to_parquet(game, facts, played)
    timed.seconds["Parquet"] = time.perf_counter() - start
    timed.seconds["the rest"] = playing - sum(
        timed.seconds[part] for part in ("engine", "features", "trees", "mapping")
    )
    whole = sum(timed.seconds.values())
    games = options.games
    print(f"{policy.approach}, generation {generation}: {games} games, {len(played):,} decisions")
    print(f"{games / whole:.0f} games/s on one core, {len(data) / games / 1024:.1f} KiB a game")
    for part, seconds in sorted(timed.seconds.items(), key=lambda item: -item[1]):
        print(f"  {part:<9} {seconds / whole:6.1%}  {1e6 * seconds / len(played):6.1f} us/decision")
    between = np.count_nonzero((played.action >= PARTNER) & (played.action < STEAL))
    bank = np.count_nonzero((played.action >= BANK_TRADE) & (played.action < GIVE))
    offered = np.count_nonzero(
        played.low_action == game.hierarchy.low_actions.index("offer a trade")
    )
    print(
        f"a game: {between / games:.2f} trades between players of {offered / games:.2f} offers, "
        f"{bank / games:.2f} with the bank, {len(played) / games:.0f} decisions, "
        f"{results.plies.mean():.0f} plies; {np.mean(results.returns.max(1) < 1):.1%} without a "
        "winner"
    )


if __name__ == "__main__":
    main()
