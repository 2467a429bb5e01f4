"""Do the trees of a hierarchical Catan agent learn their games by heart, and what helps?

    python benchmarks/catan_overfitting.py RUN [--root runs] [--generation N] [--games 1000]

The trees of one generation are grown again from the same games and the same labels with one thing
changed at a time. Of each variant: leaves of a tree on average, root mean squared error to the
labels on rows of the games that were learned from (not the rows themselves) and on whole games that
were not, of both levels, and how one agent with these trees fares among three with the default
ones, and the other way round (equals win 25% of the games).

`as in 1992` is Quinlan's M5 without anything that knows of games: the same game's rows are as good
as rows of different games, so that its trees grow with the rows and fit the luck of each game.
"""

import argparse
import time
from dataclasses import replace
from typing import Any

import numpy as np
from catan_ablations import share

from pipeline import traces
from pipeline.config import HierarchicalConfig, make_game_from
from pipeline.learners import hierarchical
from pipeline.learners.common import usable_cpus
from pipeline.policies.hierarchical import HierarchicalPolicy
from pipeline.policies.store import load_policy
from pipeline.run import Run

_CLASSIC: dict[str, Any] = {
    "split": "sdr",
    "rows_per_game": None,
    "group_price": False,
    "min_leaf_games": 1,
    "min_leaf": 4.0,
    "multiplier": 1.0,
    "split_price": 0.0,
    "bag": 1,
}
VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "leaves of 5 games": {"min_leaf_games": 5, "min_leaf": 5.0},
    "leaves of 80 games": {"min_leaf_games": 80, "min_leaf": 80.0},
    "leaves of 320 games": {"min_leaf_games": 320, "min_leaf": 320.0},
    "one tree": {"bag": 1},
    "bags of four": {"bag": 4},
    "pruned by held-out games": {"prune": "holdout"},
    "not pruned": {"prune": "none"},
    "one row of a game": {"rows_per_game": 1},
    "parameters at one price": {"group_price": False},
    "as in 1992": _CLASSIC,
    "as in 1992, pruned by held-out games": {**_CLASSIC, "prune": "holdout"},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run")
    parser.add_argument("--root", default="runs")
    parser.add_argument("--generation", type=int)
    parser.add_argument("--games", type=int, default=1000)
    options = parser.parse_args()
    run = Run.open(options.root, options.run)
    generation = run.complete()[-1] if options.generation is None else options.generation
    config = run.config.learner
    assert isinstance(config, HierarchicalConfig)
    config = replace(config, threads=config.threads or usable_cpus())
    game = make_game_from(run.config.game)
    first = max(generation - config.window_generations, 0) + 1
    shards = tuple(
        (each, shard["path"], shard["sha256"])
        for each in range(first, generation + 1)
        for shard in run.manifest(each)["shards"]
    )
    window = traces.read_window(run.storage, game, shards, config.window_rows)
    previous = load_policy(run.storage, run.policy(generation - 1), game)
    assert isinstance(previous, HierarchicalPolicy)
    print(
        f"{options.run}, generation {generation}: {len(window):,} rows of "
        f"{len(np.unique(window.game_id)):,} games; {options.games:,} games each way, 95% intervals"
    )
    usual = None
    for name, changes in VARIANTS.items():
        start = time.perf_counter()
        policy, report = hierarchical.fit(game, window, previous, replace(config, **changes), 1)
        seconds = time.perf_counter() - start
        low = report["low_level"]
        errors = [
            f"{np.sqrt(level[part]):.4f}"
            for level in (report, low)
            for part in ("loss_train", "loss_held_out")
        ]
        line = (
            f"{name}: {report['leaves']:.1f} leaves, high level {errors[0]} rows {errors[1]} "
            f"games, low level {errors[2]} rows {errors[3]} games, {seconds:.0f} s"
        )
        if usual is None:
            usual = policy
        elif options.games:
            line += (
                f"; among three with the default {share(game, policy, usual, options.games)}, "
                f"the other way round {share(game, usual, policy, options.games)}"
            )
        print(line, flush=True)


if __name__ == "__main__":
    main()
