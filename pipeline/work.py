"""The tasks of the loop. Each is a small record with `run()`: a pure function of what it names.

A task may be run by any process, twice, or by one that is believed lost: it reads and writes the
run directory alone, and leaves the same bytes there.
"""

import importlib
import inspect
import json
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from games import Game
from pipeline import oracles, traces
from pipeline.config import LEARNERS
from pipeline.errors import RunError
from pipeline.league import Pool, match_seats, selfplay_seatings, table_seats
from pipeline.learners.common import Helpers
from pipeline.policies.base import Exploring, LearnedPolicy, Policy
from pipeline.policies.hierarchical import ExploringHierarchy, HierarchicalPolicy
from pipeline.policies.store import PolicySource, cached_game, cached_policy, save_policy
from pipeline.selfplay import Results, play_games
from pipeline.storage import Storage
from pipeline.streams import game_keys


@dataclass(frozen=True)
class Setting:
    """Where a task belongs: the storage, the game, the seed."""

    root: str
    game_name: str
    game_params: dict[str, Any]
    seed: int
    code: str  # version of the code, for the metadata

    @property
    def storage(self) -> Storage:
        return Storage(self.root)

    @property
    def game(self) -> Game:
        return cached_game(self.game_name, self.game_params)


@dataclass(frozen=True)
class ShardDone:
    """What the loop needs to know of a shard."""

    path: str
    sha256: str
    bytes: int
    summary: dict[str, Any]  # of `traces.summarise`
    seconds: float  # of play and writing; 0 if it was there already


@dataclass(frozen=True)
class ShardTask:
    """Plays the games first..first+count-1 of a generation and writes them as one shard."""

    setting: Setting
    path: str
    generation: int
    shard: int
    first: int
    count: int
    pool: Pool
    epsilon: tuple[float, ...]  # by ply
    temperature: tuple[float, ...]
    high_epsilon: tuple[float, ...]  # empty where no policy has behaviours
    batch: int

    def keys(self) -> np.ndarray:
        indices = np.arange(self.first, self.first + self.count)
        return game_keys(self.setting.seed, "selfplay", self.generation, indices)

    def metadata(self) -> dict:
        """What decides the content of the shard; a shard that says otherwise is another's."""
        return {
            "game": self.setting.game_name,
            "params": self.setting.game_params,
            "seed": self.setting.seed,
            "generation": self.generation,
            "shard": self.shard,
            "first_game": self.first,
            "games": self.count,
            "policies": [source.name for source in self.pool.sources],
            "digests": [source.digest for source in self.pool.sources],
            "weights": list(self.pool.weights),
            "explorers": self.pool.explorers,
            "epsilon": list(self.epsilon),
            "temperature": list(self.temperature),
            **({"high_epsilon": list(self.high_epsilon)} if self.high_epsilon else {}),
        }

    def run(self) -> ShardDone:
        start = time.perf_counter()
        game = self.setting.game
        policies = [
            self._exploring(cached_policy(self.setting.root, source, game), first=index == 0)
            for index, source in enumerate(self.pool.sources)
        ]
        seatings = selfplay_seatings(
            self.pool,
            game.num_players,
            self.setting.seed,
            self.generation,
            np.arange(self.first, self.first + self.count),
        )
        results, played = play_games(game, policies, seatings, self.keys(), batch=self.batch)
        assert played is not None
        summary = traces.summarise(game, results, played)
        played.game[:] += self.first
        metadata = {**self.metadata(), "summary": summary, "code": self.setting.code}
        data = traces.to_parquet(game, metadata, played)
        self.setting.storage.write(self.path, data)
        seconds = time.perf_counter() - start
        return ShardDone(self.path, traces.fingerprint(data), len(data), summary, seconds)

    def _exploring(self, policy: Policy, first: bool) -> Policy:
        if not (first or self.pool.explorers == "all"):
            return policy
        if isinstance(policy, HierarchicalPolicy):
            return ExploringHierarchy.of(policy, self.high_epsilon, self.epsilon, self.temperature)
        if not isinstance(policy, LearnedPolicy):
            return policy
        return Exploring(policy, np.array(self.epsilon), np.array(self.temperature))

    def verified(self) -> ShardDone | None:
        """The shard if it is on disk, whole and this very one; None if there is none.

        Raises:
            ShardError: there is one, but damaged or another's.
        """
        storage, game = self.setting.storage, self.setting.game
        if not storage.exists(self.path):
            return None
        where = storage.where(self.path)
        data = storage.read(self.path)
        shard = traces.from_parquet(game, data, where)
        expected = json.loads(json.dumps(self.metadata()))
        wrong = [key for key, value in expected.items() if shard.metadata.get(key) != value]
        if wrong:
            raise traces.ShardError(
                f"{where} belongs to something else: its {', '.join(wrong)} differs from this "
                "run's; it is played again",
                self.path,
            )
        traces.check(game, shard, self.keys(), where)
        summary = shard.metadata["summary"]
        return ShardDone(self.path, traces.fingerprint(data), len(data), summary, 0.0)


@dataclass(frozen=True)
class MatchTask:
    """Plays some games of a match: `policy` in each seat in turn, `opponent` in the others."""

    setting: Setting
    purpose: str  # of the random streams, so that gate and evaluation share no game
    generation: int
    match: int  # which match of the generation
    policy: PolicySource
    opponent: PolicySource
    first: int
    count: int
    opening_plies: int
    oracle: bool = False  # compare the policy's decisions with exact play, where that is cheap

    def run(self) -> tuple[Results, dict[str, int] | None]:
        """How the games ended, and `oracles.kept_results` of the policy's own decisions or None."""
        game = self.setting.game
        sources = (self.policy, self.opponent)
        policies = [cached_policy(self.setting.root, source, game) for source in sources]
        seatings, sets = match_seats(self.first, self.count, game.num_players)
        keys = game_keys(self.setting.seed, f"{self.purpose}{self.match}", self.generation, sets)
        results, played = play_games(
            game,
            policies,
            seatings,
            keys,
            opening_plies=self.opening_plies,
            record=self.oracle and oracles.has_oracle(game),
        )
        if played is None:
            return results, None
        own = np.flatnonzero(played.policy == 0)
        return results, oracles.kept_results(game, played.state.take(own), played.action[own])


@dataclass(frozen=True)
class SolutionTask:
    """Asks a policy for the answers to the game's solved positions."""

    setting: Setting
    policy: PolicySource

    def run(self) -> dict | None:
        """`oracles.answers`, and V of the solved afterstates; None if nothing is solved."""
        game = self.setting.game
        if game.solution is None:
            return None
        solved = game.solution()
        policy = cached_policy(self.setting.root, self.policy, game)
        legal = game.legal_of(solved.states)
        answers: dict[str, Any] = {"of": len(solved.states)}
        if isinstance(policy, LearnedPolicy):
            q = policy.action_values(game, solved.states, legal)
            answers |= oracles.answers(solved, q)
        if len(solved.afterstates) and hasattr(policy, "values_of"):
            values = policy.values_of(game, solved.afterstates, solved.players)
            answers["sign_accuracy"] = float((np.sign(values) == np.sign(solved.values)).mean())
            answers["values"] = [round(float(value), 5) for value in values]
        return answers


@dataclass(frozen=True)
class FitTask:
    """Learns a policy from the replay window and saves it."""

    setting: Setting
    path: str  # the folder of the new policy
    generation: int
    learner: dict[str, Any]  # the configuration of the learner
    shards: tuple[tuple[int, str, str], ...]  # (generation, path, SHA-256), oldest first
    previous: PolicySource | None  # None: make the policy that a run starts from
    helpers: Helpers | None = None  # the backend's, for learners that can use them

    def run(self) -> tuple[PolicySource, dict]:
        """The saved policy and the learner's report (docs/architecture.md, metrics.jsonl).

        What the report has under `tables`, columns by name, is written beside the policy.
        """
        start = time.perf_counter()
        name = self.learner["name"]
        learner = importlib.import_module(f"pipeline.learners.{name}")
        config = LEARNERS[name](**self.learner)
        game, storage = self.setting.game, self.setting.storage
        keys = game_keys(self.setting.seed, "learner", self.generation, [0])
        seed = int(keys[0] >> np.uint64(1))
        if self.previous is None:
            policy, report = learner.initial(game, config, seed), {}
        else:
            window = traces.read_window(storage, game, self.shards, config.window_rows)
            if not len(window):
                raise RunError(
                    "the games of the replay window hold no decision: every choice was forced, so "
                    "there is nothing to learn; choose rules that leave a choice"
                )
            previous = cached_policy(self.setting.root, self.previous, game)
            helped = "helpers" in inspect.signature(learner.fit).parameters
            more = {"helpers": self.helpers} if helped else {}
            policy, report = learner.fit(game, window, previous, config, seed, **more)
            report["rows"] = len(window)
            report["duplicate_states"] = traces.duplicate_share(window)
            for name, columns in report.pop("tables", {}).items():
                where = f"{self.path.rpartition('/')[0]}/{name}.parquet"
                storage.write(where, traces.table_bytes(columns))
        source = save_policy(storage, self.path, policy, game, self.generation)
        report["seconds"] = time.perf_counter() - start
        return source, report


@dataclass(frozen=True)
class TableTask:
    """Plays some games in which every seat is another policy's, in every order of seats."""

    setting: Setting
    purpose: str
    policies: tuple[PolicySource, ...]  # as many as the game has seats
    first: int
    count: int
    opening_plies: int

    def run(self) -> tuple[Results, None]:
        game = self.setting.game
        policies = [cached_policy(self.setting.root, source, game) for source in self.policies]
        seatings, sets = table_seats(self.first, self.count, game.num_players)
        keys = game_keys(self.setting.seed, self.purpose, 0, sets)
        results, _ = play_games(
            game, policies, seatings, keys, opening_plies=self.opening_plies, record=False
        )
        return results, None
