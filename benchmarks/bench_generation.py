"""A whole self-play generation (Ray actors, recording, Parquet) against the driver alone.

Both play the same Connect Four shards with the same cheap policy (take a win, else random), in
turns. The driver alone runs in this process on one core; a generation on one actor also runs on one
core, so their ratio is what actors and traces cost. Two actors against one is what a second core
brings.
"""

import statistics
import tempfile
import time

import numpy as np

from games import make_game
from pipeline.actors import RayBackend
from pipeline.backend import one_thread
from pipeline.config import ClusterConfig
from pipeline.league import Pool
from pipeline.policies.scripted import baseline
from pipeline.policies.store import PolicySource
from pipeline.selfplay import play_games
from pipeline.storage import Storage
from pipeline.streams import game_keys
from pipeline.work import Setting, ShardTask

SHARDS, GAMES = 16, 5_000
ROUNDS = 5


def tasks(root: str, policy: str, generation: int) -> list[ShardTask]:
    setting = Setting(root, "k_in_a_row", {"width": 7, "height": 6, "k": 4}, 1, "benchmark")
    return [
        ShardTask(
            setting=setting,
            path=f"generation={generation}/shard-{shard:05d}.parquet",
            generation=generation,
            shard=shard,
            first=shard * GAMES,
            count=GAMES,
            pool=Pool((PolicySource(policy),), (1.0,)),
            epsilon=(0.0,),
            temperature=(0.0,),
            batch=1024,
        )
        for shard in range(SHARDS)
    ]


def driver_alone(policy: str) -> float:
    """Decisions per second without recording, on one core."""
    game = make_game("k_in_a_row")
    decisions = 0
    start = time.perf_counter()
    for shard in range(SHARDS):
        keys = game_keys(1, "selfplay", 1, np.arange(shard * GAMES, (shard + 1) * GAMES))
        seatings = np.zeros((GAMES, 2), np.int8)
        results, _ = play_games(game, [baseline(policy, game)], seatings, keys, record=False)
        decisions += int(results.decisions.sum())
    return decisions / (time.perf_counter() - start)


def generation(backend: RayBackend, root: str, policy: str, number: int) -> float:
    """Decisions per second from the first task sent to the last shard on disk."""
    start = time.perf_counter()
    decisions = 0
    for _, done in backend.play(tasks(root, policy, number)):
        decisions += done.summary["decisions"]
    return decisions / (time.perf_counter() - start)


def main() -> None:
    one_thread()
    with tempfile.TemporaryDirectory() as root:
        Storage(root)
        for policy in ("win_or_random", "random"):
            speeds: dict[str, list[float]] = {"driver": [], "one actor": [], "two actors": []}
            with RayBackend(ClusterConfig(kind="ray", actors=2)) as backend:
                everyone = backend._idle[:]
                number = 0
                for turn in range(ROUNDS + 1):
                    alone = driver_alone(policy)
                    backend._idle[:] = everyone[:1]
                    one = generation(backend, root, policy, number)
                    backend._idle[:] = everyone[:]
                    two = generation(backend, root, policy, number + 1)
                    number += 2
                    if turn:  # the first turn warms caches
                        for name, speed in zip(speeds, (alone, one, two), strict=True):
                            speeds[name].append(speed)
            print(f"policy {policy}:")
            for name, values in speeds.items():
                print(f"  {name:<11} {statistics.median(values):>12,.0f} decisions/s")
            share = statistics.median(
                a / b for a, b in zip(speeds["one actor"], speeds["driver"], strict=True)
            )
            gain = statistics.median(
                a / b for a, b in zip(speeds["two actors"], speeds["one actor"], strict=True)
            )
            print(f"  a generation on one actor / the driver alone: {share:.0%} (median of pairs)")
            print(f"  two actors / one actor: {gain:.2f} times (median of pairs)")


if __name__ == "__main__":
    main()
