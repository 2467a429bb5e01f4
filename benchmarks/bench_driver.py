"""Random Connect Four through the batched driver, beside OpenSpiel's Python API in the same run.

One core, one thread. The two take turns, so that a machine whose speed drifts slows both; the ratio
of the medians is the figure. Cost per decision is constant in the number of games, and falls with
the batch until the batch fills the cache.
"""

import random
import statistics
import time

import numpy as np

from games import make_game
from pipeline.backend import one_thread
from pipeline.policies.scripted import UniformRandom, WinOrRandom
from pipeline.selfplay import play_games
from pipeline.streams import game_keys

ROUNDS = 7


def ours(game, policy, games: int, batch: int, record: bool) -> float:
    """Decisions per second."""
    keys = game_keys(1, "benchmark", 0, np.arange(games))
    seatings = np.zeros((games, 2), np.int8)
    start = time.perf_counter()
    results, _ = play_games(game, [policy], seatings, keys, batch=batch, record=record)
    return results.decisions.sum() / (time.perf_counter() - start)


def open_spiel(game, games: int, rng: random.Random) -> float:
    """Decisions per second of OpenSpiel's Python API, its states stepped one by one."""
    decisions = 0
    start = time.perf_counter()
    for _ in range(games):
        state = game.new_initial_state()
        while not state.is_terminal():
            state.apply_action(rng.choice(state.legal_actions()))
            decisions += 1
    return decisions / (time.perf_counter() - start)


def main() -> None:
    one_thread()
    game = make_game("k_in_a_row")
    try:
        import pyspiel

        peer = pyspiel.load_game("connect_four")
    except ImportError:
        peer = None
        print("OpenSpiel is not installed: no comparison")
    cases = {
        "driver, B = 1,024": lambda: ours(game, UniformRandom(), 20_000, 1024, False),
        "driver, B = 64": lambda: ours(game, UniformRandom(), 5_000, 64, False),
        "driver recording, B = 1,024": lambda: ours(game, UniformRandom(), 5_000, 1024, True),
        "take a win, B = 1,024": lambda: ours(game, WinOrRandom(), 5_000, 1024, False),
    }
    rng = random.Random(1)
    if peer is not None:
        cases["OpenSpiel's Python API"] = lambda: open_spiel(peer, 2_000, rng)
    speeds: dict[str, list[float]] = {name: [] for name in cases}
    for case in cases.values():
        case()  # compiles, warms caches
    for _ in range(ROUNDS):
        for name, case in cases.items():
            speeds[name].append(case())
    print(f"{'random Connect Four, one core':<30} {'median':>12} {'least':>12} {'most':>12}")
    for name, values in speeds.items():
        median = statistics.median(values)
        print(
            f"{name:<30} {median:>12,.0f} {min(values):>12,.0f} {max(values):>12,.0f} decisions/s"
        )
    if peer is not None:
        ratios = [
            a / b
            for a, b in zip(
                speeds["driver, B = 1,024"], speeds["OpenSpiel's Python API"], strict=True
            )
        ]
        print(f"driver / OpenSpiel: {statistics.median(ratios):.1f} times (median of pairs)")


if __name__ == "__main__":
    main()
