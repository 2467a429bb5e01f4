"""Traces on disk: one Parquet file per shard, one row per decision. Schema: docs/traces.md.

A shard's metadata says which game, rules, policies, seed and games it holds, so that it can be read
alone, recognised as somebody else's, and replayed from its actions.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, fields

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from games import CHANCE, TERMINAL, Game
from pipeline.errors import ShardError, StorageError
from pipeline.policies.afterstates import unique_states
from pipeline.selfplay import Results, Traces, credit, draw_outcomes
from pipeline.storage import Storage
from pipeline.streams import Streams

SCHEMA_VERSION = 1

# Of hierarchical policies: columns of games with behaviours only, and what stands for null.
_OF_BEHAVIOURS: dict[str, tuple[float, type]] = {
    "behaviour": (-1, np.int8),
    "low_action": (-1, np.int8),
    "goal_reward": (np.nan, np.float32),
}

_NAMES = {"return_": "return"}  # the column of a field whose name is a Python keyword
_KEY = b"selfplay"


def schema(state_bytes: int, behaviours: bool = False) -> pa.Schema:
    """The columns of a shard whose game has states of `state_bytes` bytes, and maybe behaviours."""
    of_behaviours = [
        pa.field("behaviour", pa.int8()),
        pa.field("low_action", pa.int8()),
        pa.field("goal_reward", pa.float32()),
    ]
    return pa.schema(
        [
            pa.field("game", pa.int32(), False),
            pa.field("ply", pa.int32(), False),
            pa.field("player", pa.int8(), False),
            pa.field("policy", pa.int8(), False),
            pa.field("state", pa.binary(state_bytes), False),
            pa.field("action", pa.int32(), False),
            pa.field("probability", pa.float32()),
            pa.field("value", pa.float32()),
            pa.field("explored", pa.bool_(), False),
            *(of_behaviours if behaviours else ()),
            pa.field("reward", pa.float32(), False),
            pa.field("return", pa.float32(), False),
        ]
    )


@dataclass(frozen=True)
class Shard:
    """A shard as it was read: what it says of itself, and its rows."""

    metadata: dict
    traces: Traces


def summarise(game: Game, results: Results, traces: Traces) -> dict:
    """The counts of a shard that a generation adds up. Actions are held against the rules again.

    `lengths` counts games by plies, rounded down to two digits (1,234 as 1,200) so that it stays
    small. `openings` counts the actions of those first decisions that the player (policy 0, mostly
    the champion) made without exploring. The keys of both are numbers as text, as JSON has them.
    """
    legal = game.legal_of(traces.state)[np.arange(len(traces)), traces.action]
    unit = 10 ** np.searchsorted(10 ** np.arange(2, 10), results.plies, side="right")
    first = np.diff(traces.game, prepend=-1) != 0
    chosen = first & (traces.policy == 0) & ~traces.explored
    return {
        "games": len(results.plies),
        "decisions": len(traces),
        "plies": int(results.plies.sum()),
        "longest": int(results.plies.max(initial=0)),
        "explored": int(np.count_nonzero(traces.explored)),
        "illegal": int(np.count_nonzero(~legal)),
        "distinct_games": len(np.unique(results.hashes)),
        "lengths": _tally(results.plies // unit * unit),
        "openings": _tally(traces.action[chosen]),
    }


def _tally(values: np.ndarray) -> dict[str, int]:
    """How often each of some integers occurs, smallest first."""
    numbers, counts = np.unique(values, return_counts=True)
    return {str(number): int(count) for number, count in zip(numbers, counts, strict=True)}


def entropy(tally: dict[str, int]) -> float | None:
    """Of the shares of a tally, in bits; None where nothing was counted."""
    counts = np.array(list(tally.values()), float)
    if not counts.sum():
        return None
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log2(shares)).sum()) + 0.0  # no minus before a zero


def to_parquet(game: Game, metadata: dict, traces: Traces) -> bytes:
    """The bytes of a shard; the same rows and metadata give the same bytes.

    Args:
        metadata: plain JSON; see `pipeline.work.ShardTask.metadata`.
    """
    state_bytes = game.state_dtype.itemsize
    table_schema = schema(state_bytes, game.hierarchy is not None)
    columns = []
    for entry, name in zip(table_schema, _fields(game), strict=True):
        values = getattr(traces, name)
        if name == "state":
            data = pa.py_buffer(np.ascontiguousarray(values).view(np.uint8))
            column = pa.FixedSizeBinaryArray.from_buffers(entry.type, len(values), [None, data])
        elif entry.nullable:
            missing = values < 0 if values.dtype.kind == "i" else np.isnan(values)
            if missing.all():
                column = pa.nulls(len(values), entry.type)
            else:
                column = pa.array(values, entry.type, mask=missing if missing.any() else None)
        else:
            column = pa.array(values, entry.type)
        columns.append(column)
    facts = {"schema": SCHEMA_VERSION, "state_dtype": _describe(game.state_dtype), **metadata}
    facts["digest"] = _digest(facts)
    table = pa.table(columns, table_schema.with_metadata({_KEY: _dump(facts)}))
    sink = pa.BufferOutputStream()
    # Page checksums, because most bit flips inside a page otherwise come back as wrong numbers.
    # Statistics of states would put their bytes into the footer; nobody filters on the rest.
    pq.write_table(
        table,
        sink,
        compression="zstd",
        compression_level=1,
        use_dictionary=["player", "policy", "action", *_OF_BEHAVIOURS],
        column_encoding={"ply": "DELTA_BINARY_PACKED"},
        write_statistics=False,
        write_page_checksum=True,
        store_schema=True,
    )
    return sink.getvalue().to_pybytes()


def _fields(game: Game) -> list[str]:
    """The fields of `Traces` that a shard of the game has, in its order."""
    names = [each.name for each in fields(Traces)]
    return [name for name in names if game.hierarchy is not None or name not in _OF_BEHAVIOURS]


def table_bytes(columns: dict[str, np.ndarray]) -> bytes:
    """A Parquet file of arrays of equal length."""
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink, compression="zstd")
    return sink.getvalue().to_pybytes()


def _digest(facts: dict) -> str:
    """Of all facts but itself: the footer of a Parquet file has no checksum."""
    return fingerprint(_dump({key: value for key, value in facts.items() if key != "digest"}))


def _dump(facts: dict) -> bytes:
    return json.dumps(facts, sort_keys=True).encode()


def _describe(dtype: np.dtype) -> list:
    return json.loads(json.dumps(dtype.descr))  # as it comes back from a file: lists, no tuples


def from_parquet(game: Game, data: bytes, path: str) -> Shard:
    """Reads a shard, every page against its checksum.

    Raises:
        ShardError: damaged, of another schema version or of another game; `path` names it.
    """
    try:
        file = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
        stored = json.loads((file.schema_arrow.metadata or {})[_KEY])
        if stored["schema"] != SCHEMA_VERSION:
            raise ShardError(
                f"{path} has trace schema version {stored['schema']}, this program reads "
                f"{SCHEMA_VERSION}; read it with the version that wrote it ({stored['code']})",
                path,
            )
        if stored["game"] != game.name or stored["params"] != dict(game.params):
            raise ShardError(
                f"{path} holds {stored['game']} {stored['params']}, expected {game.name} "
                f"{dict(game.params)}",
                path,
            )
        if stored["state_dtype"] != _describe(game.state_dtype):
            raise ShardError(
                f"{path} was written with other state fields of game {game.name} than this "
                f"program has; read it with the version that wrote it ({stored['code']})",
                path,
            )
        if not file.schema_arrow.equals(
            schema(game.state_dtype.itemsize, game.hierarchy is not None)
        ):
            raise ShardError(f"{path} has other columns than docs/traces.md", path)
        # By this thread alone: pyarrow's own ones may bring the process down when it ends.
        table = file.read(use_threads=False)
        if stored["digest"] != _digest(stored):
            raise ShardError(
                f"{path} is damaged (its metadata has changed); delete it and resume the run, "
                "which plays it again",
                path,
            )
        # The footer has no checksum: what it says must at least fit what was read.
        if table.num_rows != stored["summary"]["decisions"]:
            raise ShardError(
                f"{path} has {table.num_rows} rows, its metadata says "
                f"{stored['summary']['decisions']}; delete it and resume",
                path,
            )
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise ShardError(
            f"{path} is damaged ({type(error).__name__}: {first}); delete it and resume the run, "
            "which plays it again",
            path,
        ) from error
    columns = {}
    for absent, (null, kind) in _OF_BEHAVIOURS.items():
        columns[absent] = np.full(table.num_rows, null, kind)
    for field_name in _fields(game):
        name = _NAMES.get(field_name, field_name)
        column = table.column(name).combine_chunks()
        if name in _OF_BEHAVIOURS:
            column = column.fill_null(_OF_BEHAVIOURS[name][0])
        if name == "state":
            raw = np.frombuffer(column.buffers()[1], np.uint8) if len(column) else np.empty(0, "u1")
            size = game.state_dtype.itemsize
            raw = raw[column.offset * size : (column.offset + len(column)) * size]
            columns[field_name] = raw.view(game.state_dtype)
        else:
            columns[field_name] = column.to_numpy(zero_copy_only=False)  # NaN where null
    return Shard(stored, Traces(**columns))


def fingerprint(data: bytes) -> str:
    """The SHA-256 by which a manifest knows a file."""
    return hashlib.sha256(data).hexdigest()


def read_shard(storage: Storage, game: Game, path: str, sha256: str | None = None) -> Shard:
    """Reads a shard and refuses it by name if it is not what the manifest says.

    Raises:
        ShardError: missing, damaged, foreign, or other than `sha256`.
    """
    try:
        data = storage.read(path)
    except FileNotFoundError as error:
        raise ShardError(
            f"{storage.where(path)} is missing; resume the run, which plays it again", path
        ) from error
    if sha256 is not None and fingerprint(data) != sha256:
        raise ShardError(
            f"{storage.where(path)} is not what its manifest names (SHA-256 differs); delete it "
            "and resume the run, which plays it again",
            path,
        )
    try:
        return from_parquet(game, data, storage.where(path))
    except ShardError as error:
        raise ShardError(str(error), path) from error


def check(game: Game, shard: Shard, keys: np.ndarray, where: str) -> None:
    """Replays every game from the metadata and actions alone and compares everything stored.

    Args:
        keys: uint64 [G], the stream key of each game of the shard.

    Raises:
        ShardError: some row is not what the rules say.
    """
    traces, first = shard.traces, shard.metadata["first_game"]
    local = traces.game - first
    if len(traces) and (local.min() < 0 or local.max() >= len(keys)):
        raise ShardError(f"{where} holds games outside {first}..{first + len(keys) - 1}", where)
    if (np.diff(local) < 0).any():
        bad = int(np.argmax(np.diff(local) < 0)) + 1
        _fail(where, int(traces.game[bad]), "comes before its turn")
    states = game.initial_states(keys)
    # The next row of each game; rows are sorted by game.
    row = np.searchsorted(local, np.arange(len(keys)))
    end = np.searchsorted(local, np.arange(len(keys)), side="right")
    so_far = np.zeros((len(traces), game.num_players), np.float32)
    running = np.arange(len(keys))
    while len(running):
        some = states.take(running)
        legal = game.legal_of(some)
        actions = np.zeros(len(running), np.int32)
        choices = legal.sum(1)
        actions[choices == 1] = legal[choices == 1].argmax(1)
        chance = np.flatnonzero(some["player"] == CHANCE)
        if len(chance):
            uniforms = Streams(keys[running[chance]], some["ply"][chance]).uniform()
            draw_outcomes(game.chance_of(some[chance]), uniforms, chance, actions)
        asked = np.flatnonzero(choices > 1)
        rows = row[running[asked]]
        missing = rows >= end[running[asked]]
        if missing.any():
            _fail(where, first + int(running[asked][missing][0]), "has too few decisions")
        actions[asked] = traces.action[rows]
        inside = (actions[asked] >= 0) & (actions[asked] < game.num_actions)
        good = inside & (traces.state.take(rows) == some.take(asked))
        good &= traces.ply[rows] == some["ply"][asked]
        good &= traces.player[rows] == some["player"][asked]
        good[good] = legal[asked[good], actions[asked[good]]]
        if not good.all():
            bad = int(np.argmin(good))
            _fail(
                where,
                first + int(running[asked[bad]]),
                f"is not what its actions lead to at ply {some['ply'][asked[bad]]}",
            )
        so_far[rows] = game.returns_of(some[asked])
        row[running[asked]] += 1
        game.step(game.rules, some, actions)
        states[running] = some
        running = running[some["player"] != TERMINAL]
    if (row != end).any():
        _fail(where, first + int(np.argmax(row != end)), "goes on after its end")
    final = game.returns_of(states)
    reward, return_ = np.empty((2, len(traces)), np.float32)
    credit(local, traces.player, so_far, final, reward, return_)
    for name, expected, stored in (
        ("rewards", reward, traces.reward),
        ("returns", return_, traces.return_),
    ):
        if not np.array_equal(expected, stored):
            bad = int(np.argmax(expected != stored))
            _fail(where, int(traces.game[bad]), f"has other {name} than its end pays")


def _fail(where: str, game_id: int, what: str) -> None:
    raise ShardError(f"{where}: game {game_id} {what}; delete the shard and resume the run", where)


@dataclass(frozen=True)
class Window:
    """What a learner reads: the rows of some generations, oldest first."""

    traces: Traces
    generation: np.ndarray  # int32 [N]
    # int64 [N], one number per game over all generations; rows of a game are consecutive.
    game_id: np.ndarray

    def __len__(self) -> int:
        return len(self.traces)


def read_window(
    storage: Storage, game: Game, shards: Iterable[tuple[int, str, str]], max_rows: int
) -> Window:
    """Reads shards, newest generations first, until `max_rows` rows, and puts them in order.

    Args:
        shards: (generation, path, SHA-256) of each, oldest first.
        max_rows: an upper bound on the rows kept, and so on the memory; a shard that would pass it
            ends the reading, unless it is the first.

    Raises:
        ShardError: some shard is not what its manifest says.
    """
    parts: list[tuple[int, Traces]] = []
    rows = 0
    for generation, path, sha256 in reversed(list(shards)):
        traces = read_shard(storage, game, path, sha256).traces
        if parts and rows + len(traces) > max_rows:
            break
        rows += len(traces)
        parts.append((generation, traces))
    parts.reverse()
    if not parts:
        raise StorageError("the replay window is empty: there is no shard to learn from")
    columns = {
        each.name: np.concatenate([getattr(traces, each.name) for _, traces in parts])
        for each in fields(Traces)
    }
    generations = np.concatenate([np.full(len(traces), gen, np.int32) for gen, traces in parts])
    game_id = generations.astype(np.int64) << 32 | columns["game"]
    return Window(Traces(**columns), generations, game_id)


def duplicate_share(window: Window) -> float:
    """Share of rows whose state, its ply apart, stood in the window before: 0 = all different."""
    if not len(window):
        return 0.0
    states = window.traces.state.copy()
    states["ply"] = 0
    firsts, _ = unique_states(states)
    return 1.0 - len(firsts) / len(states)
