"""The generation loop: self-play, learn, gate, evaluate; once per generation.

    generation g plays with the champion of g - 1, and learns the policy of g

Everything a generation makes is on disk before the next one starts, so a run goes on from any
point: what is there is verified and kept, what is missing or damaged is made again and comes out
the same.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline import league, ratings, traces
from pipeline.backend import Backend, Serial
from pipeline.config import ClusterConfig, Config, make_game_from, stage_for, to_dict
from pipeline.errors import RunError, ShardError
from pipeline.policies.store import PolicySource
from pipeline.progress import Progress
from pipeline.run import Run, code_version
from pipeline.selfplay import Results
from pipeline.streams import game_keys
from pipeline.tracking import Tracker
from pipeline.work import FitTask, MatchTask, Setting, ShardDone, ShardTask, SolutionTask

_MATCH_GAMES = 200  # of a match in one task
_GATE_PAIRS = 25  # of a sequential test in one task
_REPLICATES = 200  # of the bootstrap of the ratings, after every evaluation


def train(config: Config, parent: str | None = None) -> dict[str, Any]:
    """Trains the run that the configuration names, from where it stands, to its last generation.

    Args:
        parent: MLflow run under which a job of a sweep is filed.

    Returns:
        The numbers of the last generation.
    """
    with Run.start(config) as run, Tracker(run, parent) as tracker:
        done = run.complete()
        print(_opening(run, done), flush=True)
        missing = run.missing_shards()
        if missing or len(done) <= config.generations:
            with make_backend(config.cluster) as backend:
                loop = Loop(run, backend)
                for path in missing:
                    where = run.storage.where(path)
                    print(f"warning: {where} is missing; it is played again", file=sys.stderr)
                    loop.replay(path, len(done), [])
                if not done:
                    record = loop.begin()
                    tracker.wake()
                    print(_line(record, config.generations), flush=True)
                for generation in range(max(1, len(done)), config.generations + 1):
                    record = loop.generation(generation)
                    tracker.wake()
                    print(_line(record, config.generations), flush=True)
        if config.tracking.enabled:
            print("  sending the rest to MLflow", flush=True)
        tracker.finish()
        records = run.records()
        if not records:
            raise RunError(f"{run.storage.where(run.name)}/metrics.jsonl is missing; restore it")
        return records[-1]


def make_backend(config: ClusterConfig) -> Backend:
    """The backend that the configuration asks for; enter it to start it."""
    if config.kind == "serial":
        return Serial()
    from pipeline.actors import RayBackend

    return RayBackend(config)


@dataclass
class Loop:
    """One run on one backend."""

    run: Run
    backend: Backend

    def __post_init__(self) -> None:
        config = self.run.config
        self.config = config
        self.game = make_game_from(config.game)
        self.setting = Setting(
            self.run.storage.root, config.game_name, config.game_params, config.seed, code_version()
        )

    def begin(self) -> dict:
        """Generation 0: the policy that the run starts from, measured but not trained. Returns its
        numbers."""
        source, report = self.backend.learn(self._fit_task(0, (), None))
        record = self._record(0, source, source, report, {"learner": report["seconds"]}, [])
        self.run.finish(0, _manifest(source, source, []), record)
        return record

    def generation(self, generation: int) -> dict:
        """Self-play, learn, gate, evaluate. Returns the numbers of the generation."""
        seconds: dict[str, float] = {}
        lost = self.backend.lost_tasks
        shards = _timed(seconds, "selfplay", lambda: self.shards(generation))
        source, report = _timed(seconds, "learner", lambda: self.learn(generation, shards))
        for sentence in report.get("warnings", ()):
            print(f"warning: generation {generation}: {sentence}", file=sys.stderr, flush=True)
        champion, gate = _timed(seconds, "gate", lambda: self.gate(generation, source))
        record = self._record(generation, source, champion, report, seconds, shards)
        record["gate"] = gate
        record["lost_tasks"] = self.backend.lost_tasks - lost
        self.run.finish(generation, _manifest(source, champion, shards), record)
        return record

    def shards(self, generation: int) -> list[ShardDone]:
        """The shards of a generation: those on disk, verified, and the missing ones, played."""
        tasks = self._shard_tasks(generation)
        there: list[ShardDone | None] = []
        for task in tasks:
            try:
                there.append(task.verified())
            except ShardError as error:
                print(f"warning: {error}", file=sys.stderr, flush=True)
                self.run.storage.delete(task.path)
                there.append(None)
        missing = [index for index, shard in enumerate(there) if shard is None]
        total = sum(tasks[index].count for index in missing)
        progress = Progress(f"generation {generation}: self-play", total, "games")
        for which, shard in self.backend.play([tasks[index] for index in missing]):
            there[missing[which]] = shard
            progress.add(tasks[missing[which]].count)
        progress.clear()
        return [shard for shard in there if shard is not None]

    def _shard_tasks(self, generation: int) -> list[ShardTask]:
        config = self.config
        pool = league.opponent_pool(self.run, generation)
        size = config.selfplay.games_per_shard
        high_epsilon: tuple[float, ...] = ()
        if config.learner.name == "hierarchical":
            high_epsilon = tuple(stage_for(config.policy.high_epsilon, generation))
        return [
            ShardTask(
                setting=self.setting,
                path=self.run.shard_path(generation, shard),
                generation=generation,
                shard=shard,
                first=first,
                count=min(size, config.selfplay.games - first),
                pool=pool,
                epsilon=tuple(stage_for(config.policy.epsilon, generation)),
                temperature=tuple(stage_for(config.policy.temperature, generation)),
                high_epsilon=high_epsilon,
                batch=config.selfplay.batch,
            )
            for shard, first in enumerate(range(0, config.selfplay.games, size))
        ]

    def learn(self, generation: int, shards: list[ShardDone]) -> tuple[PolicySource, dict]:
        """Fits the next policy to the replay window; a shard that is refused is played again."""
        refused: set[str] = set()
        while True:
            window: list[tuple[int, str, str]] = []
            oldest = max(1, generation + 1 - self.config.learner.window_generations)
            for each in range(oldest, generation):
                entries = self.run.manifest(each)["shards"]
                window += [(each, entry["path"], entry["sha256"]) for entry in entries]
            window += [(generation, shard.path, shard.sha256) for shard in shards]
            previous = self.run.policy(generation - 1)
            progress = Progress(f"generation {generation}: learning", 0, "")
            try:
                return self.backend.learn(self._fit_task(generation, tuple(window), previous))
            except ShardError as error:
                if not error.path or error.path in refused:
                    raise
                print(f"warning: {error}", file=sys.stderr, flush=True)
                refused.add(error.path)
                self.replay(error.path, generation, shards)
            finally:
                progress.clear()

    def replay(self, path: str, newest: int, shards: list[ShardDone]) -> None:
        """Plays one shard of any generation again. Its games are the same; its bytes too, unless
        another version of the code wrote the first one, so its manifest gets the new SHA-256."""
        generation = int(path.split("generation=")[1][:4])
        tasks = [task for task in self._shard_tasks(generation) if task.path == path]
        for _, done in self.backend.play(tasks):
            if generation < newest:
                self.run.replace_shard(generation, _shard_entry(done))
            else:
                shards[[shard.path for shard in shards].index(path)] = done

    def _fit_task(self, generation: int, window: tuple, previous: PolicySource | None) -> FitTask:
        return FitTask(
            setting=self.setting,
            path=f"{self.run.folder(generation)}/policy",
            generation=generation,
            learner=to_dict(self.config)["learner"],
            shards=window,
            previous=previous,
        )

    def gate(self, generation: int, source: PolicySource) -> tuple[PolicySource, dict | None]:
        """The champion from this generation on, and the match that decided it, if one did."""
        gate, champion = self.config.gate, self.run.champion(generation - 1)
        if gate.rule == "always":
            return source, None
        players = self.game.num_players
        most, size = gate.games, _MATCH_GAMES
        ahead = most
        if gate.rule == "sprt":
            # It plays ahead, a part for every actor; what comes behind the pair that decides is
            # not looked at, so how far that is does not matter.
            most, size = gate.pairs * players, _GATE_PAIRS * players
            ahead = size * self.backend.players
        parts: list[Results] = []
        for first in range(0, most, ahead):
            tasks = self._match_tasks(
                "gate",
                generation,
                source,
                [league.Opponent("champion", champion)],
                range(first, min(first + ahead, most)),
                gate.opening_plies,
                size,
            )
            played = self._play_matches(f"generation {generation}: gate", tasks)
            parts += [results for results, _ in played]
            if gate.rule == "sprt" and league.judge(gate, _joined(parts)).decision != "undecided":
                break
        results = _joined(parts)
        record = league.gate_record(gate, self.game, champion.name, results)
        return (source if record["decision"] == "promoted" else champion), record

    def matches(
        self,
        purpose: str,
        generation: int,
        source: PolicySource,
        opponents: list[league.Opponent],
        games: int,
        opening_plies: int,
    ) -> list[dict]:
        """Plays `games` games against each opponent and sums them up, in order."""
        tasks = self._match_tasks(
            purpose, generation, source, opponents, range(games), opening_plies, _MATCH_GAMES
        )
        parts = self._play_matches(f"generation {generation}: {purpose}", tasks)
        rows = []
        for match, opponent in enumerate(opponents):
            own = [part for task, part in zip(tasks, parts, strict=True) if task.match == match]
            results = _joined([results for results, _ in own])
            counts = [count for _, count in own if count is not None]
            oracle = (
                {key: sum(each[key] for each in counts) for key in counts[0]} if counts else None
            )
            row = league.summarise_match(
                self.game, opponent.label, opponent.source.name, results, oracle=oracle
            )
            rows.append(row)
        return rows

    def _match_tasks(
        self,
        purpose: str,
        generation: int,
        source: PolicySource,
        opponents: list[league.Opponent],
        games: range,
        opening_plies: int,
        size: int,
    ) -> list[MatchTask]:
        """Some games of a match against each opponent, in parts of about `size` games."""
        size = size - size % self.game.num_players or self.game.num_players
        return [
            MatchTask(
                setting=self.setting,
                purpose=purpose,
                generation=generation,
                match=match,
                policy=source,
                opponent=opponent.source,
                first=first,
                count=min(size, games.stop - first),
                opening_plies=opening_plies,
                oracle=purpose != "gate",
            )
            for match, opponent in enumerate(opponents)
            for first in range(games.start, games.stop, size)
        ]

    def _play_matches(
        self, what: str, tasks: list[MatchTask]
    ) -> list[tuple[Results, dict[str, int] | None]]:
        """What each task found, in order."""
        progress = Progress(what, sum(task.count for task in tasks), "games")
        parts: dict[int, tuple[Results, dict[str, int] | None]] = {}
        for index, part in self.backend.play(tasks):
            parts[index] = part
            progress.add(tasks[index].count)
        progress.clear()
        return [parts[index] for index in range(len(tasks))]

    def _record(
        self,
        generation: int,
        source: PolicySource,
        champion: PolicySource,
        report: dict,
        seconds: dict[str, float],
        shards: list[ShardDone],
    ) -> dict:
        """Every number of a generation: a line of metrics.jsonl (docs/architecture.md)."""
        config = self.config.evaluation
        evaluated = generation % config.every == 0 or generation == self.config.generations
        rows: list[dict] = []
        solution = None
        start = time.perf_counter()
        if evaluated:
            opponents = league.evaluation_opponents(self.run, generation)
            rows = self.matches(
                "evaluation", generation, source, opponents, config.games, config.opening_plies
            )
            [(_, solution)] = self.backend.play([SolutionTask(self.setting, source)])
        rated = self._ratings(generation, source, rows) if rows else None
        seconds["evaluation"] = time.perf_counter() - start
        return {
            "generation": generation,
            "time": time.time(),
            "policy": source.name,
            "champion": champion.name,
            "selfplay": _sum_up(shards, seconds.get("selfplay", 0.0)),
            "learner": report,
            "evaluation": rows,
            "solution": solution,
            "ratings": rated,
            "seconds": {name: round(value, 4) for name, value in seconds.items()},
        }

    def _ratings(self, generation: int, source: PolicySource, rows: list[dict]) -> dict | None:
        """All players of the run so far, rated from all its evaluation matches so far."""
        newest = {"policy": source.name, "evaluation": rows}
        outcomes = league.rated_outcomes([*self.run.records(), newest])
        key = game_keys(self.config.seed, "ratings", generation, [0])[0]
        return ratings.fit(outcomes, replicates=_REPLICATES, seed=int(key))


def _joined(parts: list[Results]) -> Results:
    """Results of games that follow each other as one."""
    return Results(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in league.RESULTS)
    )


def _timed(seconds: dict[str, float], name: str, work: Callable[[], Any]) -> Any:
    start = time.perf_counter()
    result = work()
    seconds[name] = time.perf_counter() - start
    return result


def _manifest(source: PolicySource, champion: PolicySource, shards: list[ShardDone]) -> dict:
    return {
        "policy": source.to_json(),
        "champion": champion.to_json(),
        "schema": traces.SCHEMA_VERSION,
        "shards": [_shard_entry(shard) for shard in shards],
    }


def _shard_entry(shard: ShardDone) -> dict:
    return {"path": shard.path, "sha256": shard.sha256, "bytes": shard.bytes, **shard.summary}


def _sum_up(shards: list[ShardDone], seconds: float) -> dict | None:
    """The self-play of a generation in numbers. Rates count what was played in this process."""
    if not shards:
        return None
    total: dict[str, Any] = {
        key: sum(shard.summary[key] for shard in shards)
        for key in ("games", "decisions", "plies", "explored", "distinct_games", "illegal")
    }
    # Shards written before these were counted lack them.
    for key in ("lengths", "openings"):
        tallies = [shard.summary.get(key, {}) for shard in shards]
        numbers = sorted({number for tally in tallies for number in tally}, key=int)
        total[key] = {number: sum(tally.get(number, 0) for tally in tallies) for number in numbers}
    total["opening_entropy"] = traces.entropy(total["openings"])
    played = [shard.summary for shard in shards if shard.seconds > 0]
    return {
        **total,
        "longest": max(shard.summary["longest"] for shard in shards),
        "bytes": sum(shard.bytes for shard in shards),
        "games_per_second": sum(each["games"] for each in played) / max(seconds, 1e-9),
        "decisions_per_second": sum(each["decisions"] for each in played) / max(seconds, 1e-9),
        "shards_found": len(shards) - len(played),
    }


def _opening(run: Run, done: list[int]) -> str:
    config = run.config
    start = f"continues after generation {done[-1]}" if done else "starts"
    lines = [
        f"run {run.name} {start}: {make_game_from(config.game).title}, {config.learner.name}, "
        f"{config.generations} x {config.selfplay.games:,} games, seed {config.seed}",
        f"  in {run.storage.where(run.name)}",
    ]
    if len(done) > config.generations:
        lines.append("  all its generations are done; ask for more with generations=...")
    elif config.cluster.kind == "ray":
        lines.append("  starting Ray and, the first time, compiling: up to a minute")
    return "\n".join(lines)


def _line(record: dict, generations: int) -> str:
    """One generation in one line."""
    play, learner = record["selfplay"], record["learner"]
    parts = [f"generation {record['generation']:>3}/{generations}"]
    held_out = learner.get("loss_held_out")
    loss = learner.get("loss_train") if held_out is None else held_out
    if loss is not None:
        parts.append(f"loss {loss:.3g}")
    for row in record["evaluation"]:
        if row["opponent"] != "ancestor":
            parts.append(f"{row['opponent']} {row['score']:.0%}")
    solution = record["solution"]
    if solution and "optimal" in solution:
        parts.append(f"solved {solution['optimal']}/{solution['of']}")
        # Where the best answer is the only one that keeps the result, both say the same.
        if solution["weak_contested"] is not None and solution["weak"] != solution["strong"]:
            parts.append(f"kept {solution['weak_contested']:.0%}")
    if record.get("gate"):
        parts.append(f"gate {league.gate_words(record['gate'])}")
    if play and play["games_per_second"]:
        parts.append(f"{play['games_per_second']:,.0f} games/s")
    parts.append(f"{sum(record['seconds'].values()):.1f} s")
    return "  ".join(parts)
