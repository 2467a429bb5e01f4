"""A whole self-play generation (Ray actors, recording, Parquet) against the driver alone.

Both play the same Connect Four shards with the same policy, in turns. The driver alone runs in this
process on one core; a generation on one actor also runs on one core, so their ratio is what actors
and traces cost. Two actors against one is what a second core brings. What a decision costs beside
its policy is constant: recording, Parquet, checks and Ray together some hundreds of nanoseconds.
Policies: a value network of 32 hidden units (the cheapest that learns), take a win, random.
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
from pipeline.learners.mlp_training import fresh_mlp
from pipeline.policies.afterstates import AfterstatePolicy
from pipeline.policies.store import PolicySource, load_policy, save_policy
from pipeline.selfplay import play_games
from pipeline.storage import Storage
from pipeline.streams import game_keys
from pipeline.work import Setting, ShardTask

SHARDS, GAMES = 8, 5_000
ROUNDS = 5


def sources(root: str) -> list[PolicySource]:
    """A small value network, saved as a run would, and two baselines."""
    game = make_game("k_in_a_row")
    network = AfterstatePolicy(fresh_mlp(game.observation_size, [32], "tanh", 1))
    saved = save_policy(Storage(root), "network", network, game, 0)
    return [saved, PolicySource("win_or_random"), PolicySource("random")]


def tasks(root: str, policy: PolicySource, generation: int) -> list[ShardTask]:
    setting = Setting(root, "k_in_a_row", {"width": 7, "height": 6, "k": 4}, 1, "benchmark")
    return [
        ShardTask(
            setting=setting,
            path=f"generation={generation}/shard-{shard:05d}.parquet",
            generation=generation,
            shard=shard,
            first=shard * GAMES,
            count=GAMES,
            pool=Pool((policy,), (1.0,)),
            epsilon=(0.0,),
            temperature=(0.0,),
            batch=1024,
        )
        for shard in range(SHARDS)
    ]


def driver_alone(root: str, source: PolicySource) -> float:
    """Decisions per second without recording, on one core."""
    game = make_game("k_in_a_row")
    policy = load_policy(Storage(root), source, game)
    decisions = 0
    start = time.perf_counter()
    for shard in range(SHARDS):
        keys = game_keys(1, "selfplay", 1, np.arange(shard * GAMES, (shard + 1) * GAMES))
        seatings = np.zeros((GAMES, 2), np.int8)
        results, _ = play_games(game, [policy], seatings, keys, record=False)
        decisions += int(results.decisions.sum())
    return decisions / (time.perf_counter() - start)


def generation(backend: RayBackend, root: str, policy: PolicySource, number: int) -> float:
    """Decisions per second from the first task sent to the last shard on disk."""
    start = time.perf_counter()
    decisions = 0
    for _, done in backend.play(tasks(root, policy, number)):
        decisions += done.summary["decisions"]
    return decisions / (time.perf_counter() - start)


def main() -> None:
    one_thread()
    with tempfile.TemporaryDirectory() as root:
        for policy in sources(root):
            speeds: dict[str, list[float]] = {"driver": [], "one actor": [], "two actors": []}
            with RayBackend(ClusterConfig(kind="ray", actors=2)) as backend:
                everyone = backend._idle[:]
                number = 0
                for turn in range(ROUNDS + 1):
                    alone = driver_alone(root, policy)
                    backend._idle[:] = everyone[:1]
                    one = generation(backend, root, policy, number)
                    backend._idle[:] = everyone[:]
                    two = generation(backend, root, policy, number + 1)
                    number += 2
                    if turn:  # the first turn warms caches
                        for name, speed in zip(speeds, (alone, one, two), strict=True):
                            speeds[name].append(speed)
            print(f"policy {policy.name}:")
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
