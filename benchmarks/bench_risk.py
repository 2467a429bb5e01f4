"""Random Risk on 12-node boards: the rules alone, and through the batched driver.

    python benchmarks/bench_risk.py [RUN] [--root runs]

One core, one thread; CPU seconds, so that what else the machine does does not count. A decision of
the rules alone is a legal mask, a random choice from it and a step. With a run also Q of all legal
actions by its newest policy: a candidate is stepped, observed and valued.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np

from games import TERMINAL, make_game
from games.risk import search
from pipeline.backend import one_thread
from pipeline.config import make_game_from
from pipeline.policies.afterstates import expand
from pipeline.policies.base import uniform_legal
from pipeline.policies.scripted import UniformRandom
from pipeline.policies.store import load_policy
from pipeline.run import Run
from pipeline.selfplay import play_games
from pipeline.streams import game_keys

ROUNDS = 7
BATCH = 1024
SETTINGS = {
    "islands_12": {"board": "islands_12"},
    "islands_12, classic base": {"board": "islands_12", "base": "classic"},
    "64 generated boards": {"board": "generated", "start": "random"},
    "64 generated boards, classic base": {"board": "generated", "base": "classic"},
    "classic_42, classic base": {"board": "classic_42", "base": "classic"},
}


def rules_alone(game, plies: int) -> float:
    """Decisions per second; a slot whose game has ended starts another."""
    rng = np.random.default_rng(1)
    states = game.initial_states(np.arange(BATCH))
    legal = np.empty((BATCH, game.num_actions), np.bool_)
    actions, chances = np.empty(BATCH, np.int32), np.empty(BATCH, np.float32)
    seconds, started = 0.0, BATCH
    for _ in range(plies):
        uniforms = rng.random((BATCH, 1))
        start = time.process_time()
        game.legal_actions(game.rules, states, legal)
        uniform_legal(legal, uniforms, actions, chances)
        game.step(game.rules, states, actions)
        ended = np.flatnonzero(states["player"] == TERMINAL)
        if len(ended):
            states[ended] = game.initial_states(np.arange(started, started + len(ended)))
            started += len(ended)
        seconds += time.process_time() - start
    return plies * BATCH / seconds


def driver(game, games: int) -> float:
    """Decisions per second through `play_games`."""
    keys = game_keys(1, "benchmark", 0, np.arange(games))
    start = time.process_time()
    results, _ = play_games(
        game, [UniformRandom()], np.zeros((games, 2), np.int8), keys, batch=BATCH, record=False
    )
    return results.decisions.sum() / (time.process_time() - start)


def candidates(run: Run) -> str:
    """The newest policy's time for a legal action, and its parts, at positions of random play."""
    game = make_game_from(run.config.game)
    policy = load_policy(run.storage, run.policy(run.complete()[-1]), game)
    states = game.initial_states(np.arange(BATCH))
    rng = np.random.default_rng(1)
    for _ in range(20):
        legal = game.legal_of(states)
        states = game.after(states, (legal * rng.random(legal.shape)).argmax(1))
        states = states[states["player"] != TERMINAL]
    legal = game.legal_of(states)
    after = expand(game, states, legal)

    def microseconds(work: Callable) -> float:
        work()
        seconds = []
        for _ in range(ROUNDS):
            start = time.process_time()
            work()
            seconds.append(time.process_time() - start)
        return 1e6 * statistics.median(seconds) / len(after.rows)

    whole = microseconds(lambda: policy.action_values(game, states, legal))
    stepped = microseconds(lambda: expand(game, states, legal))
    seen = microseconds(lambda: game.observations_of(after.states, after.movers))
    return (
        f"Q of {run.name}: {1e6 / whole:,.0f} candidates/s; {whole:.2f} us each, of which "
        f"stepping {stepped:.2f}, observing {seen:.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", nargs="?")
    parser.add_argument("--root", default="runs")
    options = parser.parse_args()
    one_thread()
    if options.run:
        print(candidates(Run.open(options.root, options.run)))
    print(f"{'random Risk, one core, B = 1,024':<36} {'rules':>11} {'driver':>11}  decisions/s")
    for name, params in SETTINGS.items():
        game = make_game("risk", **params)
        rules_alone(game, 20)
        driver(game, 100)  # compiles, warms caches
        alone = statistics.median(rules_alone(game, 200) for _ in range(ROUNDS))
        through = statistics.median(driver(game, 2_000) for _ in range(ROUNDS))
        print(f"{name:<36} {alone:>11,.0f} {through:>11,.0f}")
    for board, base in (("grid_20", "none"), ("classic_42", "classic")):
        game = make_game("risk", board=board, base=base)
        state = game.initial_states([1])[0]
        search.a_star(game.rules, state)
        start = time.process_time()
        plan = search.a_star(game.rules, state, exact=True)
        print(
            f"A*, {board}, half the nodes: {plan.length} turns, {plan.expansions} expansions, "
            f"{plan.generated:,} successors, {time.process_time() - start:.2f} s"
        )


if __name__ == "__main__":
    main()
