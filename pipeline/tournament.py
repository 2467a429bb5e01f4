"""`selfplay tournament`: every player against every other, rated together.

<root>/tournaments/<name>/
  settings.json                     what all its games have in common
  games/<players>/000000.parquet    results of a part of a pairing; the number is its first game's
  ratings.json  standings.txt       the ratings; the page that is printed
  matrix.parquet  matrix.png        scores of every player against every other

A part is written whole or not at all and says who played it, so a tournament goes on from wherever
it was stopped, and with other players it plays what is missing. What a game is depends on the seed
and on who plays it: nobody's games change because others join. The standings are of all games that
lie there, also of those that the command at hand does not ask for.
"""

import io
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from math import factorial
from typing import Any

import hydra
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from omegaconf import MISSING, DictConfig

from games import Game
from pipeline import figures, league, ratings
from pipeline.backend import Backend
from pipeline.config import (
    CONF,
    ClusterConfig,
    check_opening,
    check_run_name,
    checked,
    make_game_from,
)
from pipeline.errors import ConfigError, RunError, UserError
from pipeline.policies.scripted import GENERAL, baseline_names
from pipeline.policies.store import PolicySource, cached_game
from pipeline.progress import Progress
from pipeline.run import Run, code_version, latest
from pipeline.selfplay import Results
from pipeline.storage import Storage
from pipeline.train import make_backend
from pipeline.work import MatchTask, Setting, TableTask

# Of a pairing in one task: large batches cost half as much a game as those of 200 where policies
# are slow, and what a kill loses is seconds.
_PART_GAMES = 1000
_SHOWN = 20  # players up to whom the matrix is printed
_SPEC = re.compile(r"(?P<run>[^/]+)(/(?P<which>all|\d+(-\d+){0,2}))?")
_SAVED = re.compile(r"(?P<run>.+)\.g(?P<generation>\d{4})-[0-9a-f]{8}")  # `Player.key` of a policy
_MANY = re.compile(r"(\d+)-(\d+)(?:-(\d+))?")


@dataclass
class TournamentConfig:
    name: str = MISSING
    root: str = "runs"
    players: list[Any] = MISSING
    game: dict[str, Any] | None = None
    games: int = MISSING
    opening_plies: int = MISSING
    tables: str = MISSING
    replicates: int = MISSING
    seed: int = 1
    cluster: ClusterConfig = MISSING

    def __post_init__(self) -> None:
        check_run_name(self.name, "name")
        if self.tables not in ("copies", "mixed"):
            raise ConfigError(f"tables must be one of copies, mixed, got {self.tables!r}")
        if self.games < 1 or self.opening_plies < 0 or self.seed < 0 or self.replicates < 100:
            raise ConfigError(
                "games must be at least 1, opening_plies and seed at least 0, replicates at least "
                f"100; got {self.games}, {self.opening_plies}, {self.seed}, {self.replicates}"
            )


@dataclass(frozen=True)
class Player:
    """Who takes part, and as what it appears in tables: a baseline's name, or run/generation."""

    label: str
    source: PolicySource

    @property
    def key(self) -> str:
        """For file names and random streams: a policy that was trained anew is somebody else."""
        run = self.label.split("/")[0]
        return self.label if self.source.path is None else f"{run}.{self.source.name}"


@dataclass(frozen=True)
class Match:
    """The games of one pairing: of `players[0]` in every seat against copies of `players[1]`, or of
    as many players as there are seats, in every order."""

    players: tuple[Player, ...]
    mixed: bool

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(player.key for player in self.players)

    @property
    def key(self) -> str:
        return _match_key(self.keys)

    def tasks(
        self, setting: Setting, stretches: list[tuple[int, int]], opening_plies: int
    ) -> list[Any]:
        """A task for each stretch of its games: (first, count)."""
        purpose = f"tournament {self.key} "
        sources = tuple(player.source for player in self.players)
        if self.mixed:
            return [
                TableTask(setting, purpose, sources, *each, opening_plies) for each in stretches
            ]
        policy, opponent = sources
        return [
            MatchTask(setting, purpose, 0, 0, policy, opponent, *each, opening_plies)
            for each in stretches
        ]


def _match_key(keys: Iterable[str]) -> str:
    return "+".join(keys)


@dataclass(frozen=True)
class _Part:
    """Some games of a pairing as they lie on disk, those from number `first` on."""

    keys: tuple[str, ...]  # `Player.key` of each
    first: int
    results: Results

    @property
    def end(self) -> int:
        return self.first + len(self.results.plies)


def _missing(parts: Sequence[_Part], games: int, size: int) -> list[tuple[int, int]]:
    """Of the games 0..games - 1 those that no part has, in stretches of at most `size`: (first,
    count). Parts do not overlap."""
    out = []
    at = 0
    for first, end in [*sorted((part.first, part.end) for part in parts), (games, games)]:
        for start in range(at, min(first, games), size):
            out.append((start, min(size, min(first, games) - start)))
        at = max(at, end)
    return out


@dataclass(frozen=True)
class Played:
    """All games of one pairing that there are."""

    labels: tuple[str, ...]
    mixed: bool
    results: Results


def main() -> None:
    """Reads the command line, plays what is missing and prints the standings.

    Raises:
        UserError: the configuration is wrong, or there is no such run, generation or baseline.
    """
    refused: list[UserError] = []

    @hydra.main(version_base="1.3", config_path=CONF, config_name="tournament")
    def task(composed: DictConfig) -> None:
        try:
            config = checked(TournamentConfig, composed, "players")
            print(Tournament(config).play())
        except UserError as error:
            refused.append(error)

    task()
    if refused:
        raise refused[0]


class Tournament:
    """One tournament: its players, its matches and where their results lie.

    Raises:
        UserError: no such run, generation or baseline; players of different games; or the
            tournament of that name was begun with other settings.
    """

    def __init__(self, config: TournamentConfig):
        self.config = config
        self.storage = Storage(config.root)
        section, self.players = _players(config)
        name = section.pop("name")
        self.game: Game = cached_game(name, section)
        self.setting = Setting(self.storage.root, name, section, config.seed, code_version())
        self.folder = f"tournaments/{config.name}"
        self._mixed = config.tables == "mixed" and self.game.num_players > 2
        seats = self.game.num_players
        needed = seats if self._mixed else 2
        if len(self.players) < needed:
            raise ConfigError(
                f"players: {needed} different players are needed, got "
                f"{', '.join(player.label for player in self.players)}"
            )
        self._set = factorial(seats) if self._mixed else seats
        if config.games % self._set:
            raise ConfigError(
                f"games must be a multiple of {self._set}, so that every seating is played equally "
                f"often, got {config.games}"
            )

    def matches(self) -> list[Match]:
        """Every pairing. With more than two seats, one against copies is another match than the
        other way round."""
        players = sorted(self.players, key=lambda player: player.key)
        if self._mixed:
            return [Match(each, True) for each in combinations(players, self.game.num_players)]
        pairs = list(combinations(players, 2))
        if self.game.num_players > 2:
            pairs += [(other, one) for one, other in pairs]
        return [Match(pair, False) for pair in pairs]

    def play(self) -> str:
        """Plays what is missing, writes ratings and matrix, and returns them in words."""
        check_opening("opening_plies", self.config.opening_plies, self.game)
        self.check_settings()
        self.storage.drop_leftovers(self.folder)
        matches = self.matches()
        size = max(self._set, _PART_GAMES - _PART_GAMES % self._set)
        games, plies = self.config.games, self.config.opening_plies
        there = self._stored()
        missing = [
            (match, task)
            for match in matches
            for task in match.tasks(
                self.setting,
                _missing([part for part in there if part.keys == match.keys], games, size),
                plies,
            )
        ]
        named = {player.key for player in self.players}
        others = {key for part in there for key in part.keys} - named
        total = sum(task.count for _, task in missing)
        print(
            f"tournament {self.config.name}: {self.game.title}, {len(self.players)} players, "
            f"{len(matches)} pairings of {games:,} games, {total:,} games to play"
            + f"; players of earlier starts: {len(others)}" * bool(others)
            + f"\n  in {self.storage.where(self.folder)}",
            flush=True,
        )
        if missing:
            with make_backend(self.config.cluster) as backend:
                self._play_missing(backend, missing, there)
        return self._close(there)

    def check_settings(self) -> None:
        """All games of a tournament have these in common; what differs would not compare.

        Raises:
            RunError: the tournament of that name was begun with others.
        """
        settings = {
            "game": self.setting.game_name,
            "params": self.setting.game_params,
            "seed": self.config.seed,
            "opening_plies": self.config.opening_plies,
            "tables": "mixed" if self._mixed else "copies",
        }
        path = f"{self.folder}/settings.json"
        if self.storage.exists(path):
            try:
                before = json.loads(self.storage.read(path))
            except ValueError as error:
                raise RunError(
                    f"{self.storage.where(path)} is damaged; restore it, or delete "
                    f"{self.storage.where(self.folder)} to play the tournament anew"
                ) from error
            changed = [
                f"{key} {json.dumps(before.get(key))} -> {json.dumps(value)}"
                for key, value in settings.items()
                if before.get(key) != value
            ]
            if changed:
                raise RunError(
                    f"tournament {self.config.name} was begun with other settings: "
                    f"{'; '.join(changed)}. Restore them, or choose another name with name=... "
                    "(of a study, run=...)"
                )
        else:
            self.storage.write(path, json.dumps(settings, indent=1))

    # Parts.

    def _path(self, match: str, first: int) -> str:
        return f"{self.folder}/games/{match}/{first:06d}.parquet"

    def _stored(self) -> list["_Part"]:
        """The parts from earlier starts."""
        found: list[_Part] = []
        for match in self.storage.names(f"{self.folder}/games"):
            end = 0
            for name in sorted(self.storage.names(f"{self.folder}/games/{match}")):
                path = f"{self.folder}/games/{match}/{name}"
                part = self._read(match, path)
                if part is None:
                    continue
                if part.first < end:
                    print(
                        f"warning: {self.storage.where(path)} has games that another file has too; "
                        "it counts for nothing; delete one of them",
                        file=sys.stderr,
                    )
                    continue
                end = part.end
                found.append(part)
        return found

    def _read(self, match: str, path: str) -> "_Part | None":
        """A part; None if it is damaged."""
        try:
            file = pq.ParquetFile(pa.BufferReader(self.storage.read(path)))
            table = file.read(use_threads=False)
            facts = json.loads(table.schema.metadata[b"selfplay"])
            keys, first = tuple(facts["players"]), int(facts["first"])
            if (_match_key(keys), self._path(match, first)) != (match, path):
                raise ValueError("it says that it is another part")
            returns = np.stack([table[f"return_{seat}"] for seat in range(self.game.num_players)])
            columns = [np.array(table[name]) for name in league.RESULTS[1:]]
        except (pa.ArrowException, OSError, KeyError, ValueError, TypeError) as error:
            print(
                f"warning: {self.storage.where(path)} is damaged "
                f"({(str(error).splitlines() or [''])[0]}); it counts for nothing, and is played "
                "again if its players are named",
                file=sys.stderr,
            )
            return None
        return _Part(keys, first, Results(returns.T, *columns))

    def _write(self, match: Match, task: Any, results: Results) -> "_Part":
        digests = tuple(player.source.digest for player in match.players)
        facts = {"players": match.keys, "digests": digests, "first": task.first}
        columns = {f"return_{seat}": column for seat, column in enumerate(results.returns.T)}
        columns |= {name: getattr(results, name) for name in league.RESULTS[1:]}
        table = pa.table({name: pa.array(values) for name, values in columns.items()})
        sink = io.BytesIO()
        pq.write_table(
            table.replace_schema_metadata({"selfplay": json.dumps(facts)}),
            sink,
            compression="zstd",
        )
        self.storage.write(self._path(match.key, task.first), sink.getvalue())
        return _Part(match.keys, task.first, results)

    def _play_missing(
        self,
        backend: Backend,
        missing: Sequence[tuple[Match, Any]],
        there: list[_Part],
    ) -> None:
        progress = Progress("tournament", sum(task.count for _, task in missing), "games")
        for which, (results, _) in backend.play([task for _, task in missing]):
            match, task = missing[which]
            there.append(self._write(match, task, results))
            progress.add(task.count)
        progress.clear()

    # The end.

    def _labels(self, keys: Iterable[str]) -> dict[str, str]:
        """What tables call the players of these keys. Of several who would be called alike, only
        the one that the command names is: the others were trained under that name before."""
        labels = {player.key: player.label for player in self.players}
        others = {key: _label_of(key) for key in keys if key not in labels}
        taken = Counter([*labels.values(), *others.values()])
        return labels | {key: o if taken[o] == 1 else key for key, o in others.items()}

    def played(self) -> list[Played]:
        """All games that lie there, by pairing."""
        return self._played(self._stored())

    def _played(self, parts: list[_Part]) -> list[Played]:
        labels = self._labels({key for part in parts for key in part.keys})
        games: dict[tuple[str, ...], list[Results]] = {}
        for part in sorted(parts, key=lambda part: (part.keys, part.first)):
            games.setdefault(tuple(labels[key] for key in part.keys), []).append(part.results)
        return [Played(names, self._mixed, _joined(each)) for names, each in games.items()]

    def _close(self, parts: list[_Part]) -> str:
        matches = self._played(parts)
        labels = {label for match in matches for label in match.labels}
        outcomes = [outcome for match in matches for outcome in match_outcomes(match)]
        anchor = ratings.ANCHOR if ratings.ANCHOR in labels else self.players[0].label
        rated = ratings.fit(outcomes, anchor, self.config.replicates, self.config.seed)
        assert rated is not None
        order = [each["player"] for each in rated["players"]]
        rows = score_rows(self.game, matches)
        rows.sort(key=lambda row: (order.index(row["player"]), order.index(row["opponent"])))
        scores = np.full((len(order), len(order)), np.nan)
        for row in rows:
            scores[order.index(row["player"]), order.index(row["opponent"])] = row["score"]
        files = {
            "ratings.json": json.dumps({**rated, "matrix": rows}, indent=1).encode(),
            "matrix.parquet": _parquet(rows),
            "matrix.png": figures.score_matrix(
                order,
                scores,
                f"{self.game.title}: score of the row against the column",
                even=1 / self.game.num_players,
            ),
        }
        text = f"\n{ratings.table(rated)}\n"
        if len(order) <= _SHOWN:
            text += f"\n{matrix_table(order, scores)}\n"
        where = self.storage.where(self.folder)
        files["standings.txt"] = text.lstrip("\n").encode()
        for name, data in files.items():
            self.storage.write(f"{self.folder}/{name}", data)
        return f"{text}\n  {where}: ratings.json, standings.txt, matrix.parquet, matrix.png"


def _players(config: TournamentConfig) -> tuple[dict[str, Any], list[Player]]:
    """(section `game` of a configuration, the players without repetition in the order named).

    Raises:
        UserError: no such run, generation or baseline, or players of different games.
    """
    specs = [str(each) for each in config.players]
    storage = Storage(config.root)
    section = config.game
    runs: dict[str, Run] = {}
    for spec in specs:
        found = _SPEC.fullmatch(spec)
        if not found:
            raise ConfigError(
                f"players: {spec!r} is neither a baseline, a run, nor a run with generations as in "
                "mine/7, mine/2-10, mine/0-50-10, mine/all"
            )
        name = found["run"]
        general = found["which"] is None and name in GENERAL
        there = found["which"] or storage.exists(f"{name}/config.yaml")
        if name in runs or general or not there:
            continue
        runs[name] = Run.open(config.root, name)
        theirs = runs[name].config.game
        section = theirs if section is None else section
        one, other = make_game_from(theirs), make_game_from(section)
        if (one.name, one.params) != (other.name, other.params):
            raise ConfigError(
                f"players: run {name} plays {one.title}, not {other.title}; a tournament is of one "
                "game"
            )
    if section is None:
        unknown = [spec for spec in specs if spec not in GENERAL]
        if unknown:
            raise ConfigError(
                f"players: there is no run {unknown[0]!r} under {storage.where()}; the latest "
                f"there: {latest(storage)}; if it is a baseline of a game, name the game, as in "
                "game=sumto100"
            )
        raise ConfigError(
            "players: none of them is a run, so say which game they play, as in game=sumto100"
        )
    game = make_game_from(section)
    players: dict[str, Player] = {}
    for spec in specs:
        found = _SPEC.fullmatch(spec)
        assert found is not None
        if found["which"] is None and spec in baseline_names(game):
            chosen = [Player(spec, PolicySource(spec))]
        elif found["run"] in runs:
            chosen = _of_run(runs[found["run"]], found["which"])
        else:
            raise ConfigError(
                f"players: {spec!r} is neither a baseline ({', '.join(baseline_names(game))}) nor "
                f"a run under {storage.where()}; the latest there: {latest(storage)}"
            )
        players |= {player.key: player for player in chosen}
    return dict(section), list(players.values())


def _of_run(run: Run, which: str | None) -> list[Player]:
    """The champion of a run, or the generations that were asked for."""
    if which is None:
        which = str(run.champion_generation())
    wanted = run.complete()
    many = _MANY.fullmatch(which)
    if many:
        first, last, step = int(many[1]), int(many[2]), int(many[3] or 1)
        wanted = list(range(first, last + 1, step)) if step else []
        if not wanted:
            raise ConfigError(
                f"players: {run.name}/{which} names no generation; expected first-last or "
                "first-last-step with a step of at least 1, as in 0-50-10"
            )
    elif which != "all":
        wanted = [int(which)]
    return [Player(f"{run.name}/{each}", run.policy(each)) for each in wanted]


def _label_of(key: str) -> str:
    """What tables call the player of a key: `Player.label`."""
    found = _SAVED.fullmatch(key)
    return f"{found['run']}/{int(found['generation'])}" if found else key


def _joined(parts: Sequence[Results]) -> Results:
    return Results(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in league.RESULTS)
    )


def _seatings(match: Played) -> np.ndarray:
    """int8 [G, P], index into the match's players of who sat in each seat. Parts are whole sets of
    seatings, so it is the same where one is missing in between."""
    seats = league.table_seats if match.mixed else league.match_seats
    return seats(0, len(match.results.plies), match.results.returns.shape[1])[0]


def match_outcomes(match: Played) -> list[ratings.Outcome]:
    """The games of a match for `ratings.fit`; of a seating, as many count as are distinct."""
    results = match.results
    seatings, places = _seatings(match), league.places_of(results.returns)
    found = []
    for seating in np.unique(seatings, axis=0):
        here = (seatings == seating).all(1)
        share = len(np.unique(results.hashes[here])) / here.sum()
        ends, counts = np.unique(places[here], axis=0, return_counts=True)
        names = tuple(match.labels[each] for each in seating)
        found += [
            ratings.Outcome(names, tuple(end.tolist()), int(n), float(n * share))
            for end, n in zip(ends, counts, strict=True)
        ]
    return found


def score_rows(game: Game, matches: list[Played]) -> list[dict[str, Any]]:
    """Every player against every other, from both sides.

    Of matches against copies the numbers of `league.summarise_match`; at mixed tables a win is a
    better place than the opponent's, and games at different tables are added up.
    """
    total: dict[tuple[str, str], np.ndarray] = {}  # wins, draws, losses, distinct games
    for match in matches:
        labels, played = match.labels, match.results
        if not match.mixed:
            row = league.summarise_match(game, labels[1], labels[1], played)
            counts = np.array([row[key] for key in ("wins", "draws", "losses", "distinct_games")])
            total[labels[0], labels[1]] = counts
            if game.num_players == 2:
                total[labels[1], labels[0]] = counts[[2, 1, 0, 3]]
            continue
        seatings = _seatings(match)
        seats = np.argsort(seatings, axis=1)  # where each player sat
        places = np.take_along_axis(league.places_of(played.returns), seats, 1)
        which = np.unique(seatings, axis=0, return_inverse=True)[1].astype(np.uint64)
        distinct = len(np.unique(np.stack([played.hashes, which], 1), axis=0))
        for one, other in permutations(range(len(labels)), 2):
            ahead = places[:, other] - places[:, one]
            wins, draws, losses = ((sign == np.sign(ahead)).sum() for sign in (1, 0, -1))
            counts = np.array([wins, draws, losses, distinct])
            pair = labels[one], labels[other]
            total[pair] = total.get(pair, np.zeros(4, np.int64)) + counts
    rows = []
    for (player, opponent), (wins, draws, losses, distinct) in total.items():
        n = int(wins + draws + losses)
        score = float(wins + draws / 2) / n
        interval = ratings.wilson(score * distinct, int(distinct))
        rows.append(
            {
                "player": player,
                "opponent": opponent,
                "n": n,
                "wins": int(wins),
                "draws": int(draws),
                "losses": int(losses),
                "score": score,
                "low": interval.low,
                "high": interval.high,
                "distinct_games": int(distinct),
            }
        )
    return rows


def matrix_table(names: Sequence[str], scores: np.ndarray) -> str:
    """Scores in percent, the row's against the column's, for a terminal."""
    width = max(map(len, names))
    lines = ["score of the row against the column, %"]
    lines.append(" " * (width + 4) + "".join(f"{column + 1:>5}" for column in range(len(names))))
    for row, name in enumerate(names):
        cells = ("-" if np.isnan(each) else f"{100 * each:.0f}" for each in scores[row])
        lines.append(f"{row + 1:>3} {name:<{width}}{''.join(f'{cell:>5}' for cell in cells)}")
    return "\n".join(lines)


def _parquet(rows: list[dict[str, Any]]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), sink)
    return sink.getvalue()
