"""Shards: what is read is what was written, or an error names the shard and what is wrong."""

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, fields, replace
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from games import Game, make_game
from pipeline import traces
from pipeline.errors import ShardError, StorageError
from pipeline.learners.mlp_training import fresh_mlp
from pipeline.policies.afterstates import AfterstatePolicy
from pipeline.policies.base import Exploring
from pipeline.policies.scripted import UniformRandom, baseline
from pipeline.selfplay import Results, Traces, play_games
from pipeline.storage import Storage
from pipeline.streams import game_keys

FIRST = 100  # the number of the first game


@dataclass(frozen=True)
class Made:
    """A shard and what it was made of."""

    game: Game
    keys: np.ndarray
    results: Results
    metadata: dict[str, Any]
    traces: Traces
    data: bytes

    def shard(self, **columns) -> traces.Shard:
        return traces.Shard(self.metadata, replace(self.traces, **columns))


def make(game: Game, games: int = 40, generation: int = 1, first: int = FIRST) -> Made:
    """Games of a learner that explores against a random player; without chance also a script."""
    learner = AfterstatePolicy(fresh_mlp(game.observation_size, [4], 1, "tanh", 1))
    policies = [Exploring(learner, np.array([0.5, 0.2]), np.zeros(1)), UniformRandom()]
    policies += [baseline(name, game) for name in game.scripted]
    seatings = (np.arange(games)[:, None] + np.arange(game.num_players)) % len(policies)
    keys = game_keys(3, "selfplay", generation, np.arange(first, first + games))
    results, played = play_games(game, policies, seatings, keys)
    summary = traces.summarise(game, results, played)
    played.game[:] += first
    metadata = {
        "game": game.name,
        "params": dict(game.params),
        "seed": 3,
        "generation": generation,
        "shard": 2,
        "first_game": first,
        "games": games,
        "policies": ["g0000", "random", "perfect"][: len(policies)],
        "digests": [None] * len(policies),
        "weights": [0.5, 0.25, 0.25],
        "epsilon": [0.5, 0.2],
        "temperature": [0.0],
        "summary": summary,
        "code": "0.1.0+test",
    }
    data = traces.to_parquet(game, metadata, played)
    return Made(game, keys, results, metadata, played, data)


@pytest.fixture(scope="module")
def sumto(sumto12) -> Made:
    return make(sumto12)


@pytest.fixture(scope="module")
def three() -> Made:
    return make(make_game("k_in_a_row", width=4, height=4, k=3))


@pytest.fixture(scope="module")
def dices(dice) -> Made:
    return make(dice)


@pytest.fixture(params=["sumto", "three", "dices"])
def made(request, sumto, three, dices) -> Made:
    return {"sumto": sumto, "three": three, "dices": dices}[request.param]


def assert_same(left: Traces, right: Traces) -> None:
    for each in fields(Traces):
        a, b = getattr(left, each.name), getattr(right, each.name)
        assert a.dtype == b.dtype
        assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f"), each.name


# Round trip.


def test_a_shard_comes_back_as_it_was(made):
    shard = traces.from_parquet(made.game, made.data, "shard")
    assert_same(shard.traces, made.traces)
    stored = {key: shard.metadata[key] for key in made.metadata}
    assert stored == made.metadata
    assert shard.metadata["schema"] == traces.SCHEMA_VERSION


def test_the_same_rows_give_the_same_bytes(made):
    assert traces.to_parquet(made.game, made.metadata, made.traces) == made.data
    shuffled = dict(reversed(made.metadata.items()))
    assert traces.to_parquet(made.game, shuffled, made.traces) == made.data
    other = {**made.metadata, "seed": 4}
    assert traces.to_parquet(made.game, other, made.traces) != made.data


def test_a_shard_without_decisions_comes_back(sumto12):
    _, nothing = play_games(
        sumto12, [UniformRandom()], np.empty((0, 2), int), game_keys(1, "", 1, [])
    )
    metadata = {"game": "sumto", "params": dict(sumto12.params), "summary": {"decisions": 0}}
    shard = traces.from_parquet(sumto12, traces.to_parquet(sumto12, metadata, nothing), "shard")
    assert len(shard.traces) == 0
    assert_same(shard.traces, nothing)


@pytest.mark.parametrize("missing", ["none", "some", "all"])
def test_nan_is_null_on_disk_and_nan_again(sumto, missing):
    size = len(sumto.traces)
    value = np.linspace(-1, 1, size, dtype=np.float32)
    holes = {"none": [], "some": [0, 5, size - 1], "all": np.arange(size)}[missing]
    value[holes] = np.nan
    data = traces.to_parquet(sumto.game, sumto.metadata, sumto.shard(value=value).traces)
    column = pq.read_table(pa.BufferReader(data)).column("value")
    assert column.null_count == len(holes)
    assert not np.isnan(column.drop_null().to_numpy()).any()
    again = traces.from_parquet(sumto.game, data, "shard").traces.value
    assert np.array_equal(again, value, equal_nan=True)


def test_values_keep_every_bit(sumto):
    size = len(sumto.traces)
    value = np.resize(np.array([-0.0, 1e-45, 3.4e38, -np.inf, np.inf], np.float32), size)
    data = traces.to_parquet(sumto.game, sumto.metadata, sumto.shard(value=value).traces)
    again = traces.from_parquet(sumto.game, data, "shard").traces.value
    assert again.tobytes() == value.tobytes()


def test_columns_are_the_documented_ones_and_duckdb_reads_them(made, tmp_path):
    path = tmp_path / "shard.parquet"
    path.write_bytes(made.data)
    described = duckdb.sql(f"describe select * from '{path}'").fetchall()
    assert [(name, kind) for name, kind, *_ in described] == [
        ("game", "INTEGER"),
        ("ply", "INTEGER"),
        ("player", "TINYINT"),
        ("policy", "TINYINT"),
        ("state", "BLOB"),
        ("action", "INTEGER"),
        ("probability", "FLOAT"),
        ("value", "FLOAT"),
        ("explored", "BOOLEAN"),
        ("reward", "FLOAT"),
        ("return", "FLOAT"),
    ]
    rows = made.traces
    counted = duckdb.sql(
        "select count(*), count(value), sum(explored::int), count(distinct game), max(ply), "
        f"sum(octet_length(state)), sum(reward), min(action) from '{path}'"
    ).fetchall()
    assert counted == [
        (
            len(rows),
            int((~np.isnan(rows.value)).sum()),
            int(rows.explored.sum()),
            len(np.unique(rows.game)),
            int(rows.ply.max()),
            len(rows) * made.game.state_dtype.itemsize,
            pytest.approx(float(rows.reward.sum())),
            int(rows.action.min()),
        )
    ]


def test_the_summary_counts(sumto):
    summary, rows = sumto.metadata["summary"], sumto.traces
    assert summary == {
        "games": 40,
        "decisions": len(rows),
        "plies": int(sumto.results.plies.sum()),
        "longest": int(sumto.results.plies.max()),
        "explored": int(rows.explored.sum()),
        "illegal": 0,
        "distinct_games": len(set(sumto.results.hashes.tolist())),
        "lengths": dict(
            sorted(Counter(map(str, sumto.results.plies)).items(), key=lambda each: int(each[0]))
        ),
        "openings": dict(
            sorted(
                Counter(
                    str(action)
                    for sum_, policy, explored, action in zip(
                        rows.state["sum"], rows.policy, rows.explored, rows.action, strict=True
                    )
                    if sum_ == 0 and policy == 0 and not explored
                ).items()
            )
        ),
    }
    assert 0 < sum(summary["openings"].values()) < 40 == sum(summary["lengths"].values())
    # The step of 3 that is not there at sum 10.
    illegal = np.where(rows.state["sum"] == 10, 2, rows.action)
    changed = traces.summarise(sumto.game, sumto.results, sumto.shard(action=illegal).traces)
    assert changed["illegal"] == (rows.state["sum"] == 10).sum() > 0


def test_lengths_keep_two_digits(sumto):
    plies = np.array([0, 7, 10, 99, 100, 109, 119, 1000, 1099, 98765], np.int32)
    results = replace(sumto.results, plies=plies)
    assert traces.summarise(sumto.game, results, sumto.traces)["lengths"] == {
        "0": 1,
        "7": 1,
        "10": 1,
        "99": 1,
        "100": 2,
        "110": 1,
        "1000": 2,
        "98000": 1,
    }


def test_entropy_is_in_bits():
    """Of a fair coin 1 bit, of four equal sides 2; 1/2, 1/4, 1/4 are 1.5 (Shannon, 1948)."""
    assert traces.entropy({"3": 7, "5": 7}) == 1.0
    assert traces.entropy({"0": 1, "1": 1, "2": 1, "3": 1}) == 2.0
    assert traces.entropy({"0": 2, "1": 1, "2": 1, "9": 0}) == 1.5
    assert str(traces.entropy({"4": 9})) == "0.0"
    assert traces.entropy({}) is None


# Damage.


def flips(data: bytes, positions: int):
    """Copies of data with one bit changed: every bit of some bytes all over it."""
    for position in np.random.default_rng(1).choice(len(data), positions, replace=False):
        for bit in range(8):
            changed = bytearray(data)
            changed[position] ^= 1 << bit
            yield bytes(changed)


@pytest.fixture(scope="module", params=["sumto", "three"])
def flipped(request, sumto, three):
    """What is read of the flipped copies that are not refused, and how many are."""
    made = {"sumto": sumto, "three": three}[request.param]
    read, refused = [], 0
    for data in flips(made.data, 200):
        try:
            read.append(traces.from_parquet(made.game, data, "shard"))
        except ShardError as error:
            assert str(error).startswith("shard ") and error.path == "shard"
            refused += 1
    return made, read, refused


def test_a_flipped_bit_is_refused_or_changes_no_row(flipped):
    made, read, refused = flipped
    assert refused > 800
    for shard in read:
        assert_same(shard.traces, made.traces)


def test_a_flipped_bit_is_refused_or_changes_nothing_that_a_shard_says_of_itself(flipped):
    made, read, _ = flipped
    expected = traces.from_parquet(made.game, made.data, "shard").metadata
    assert [shard.metadata for shard in read if shard.metadata != expected][:3] == []


def test_with_its_sha256_every_flipped_bit_is_refused(sumto, tmp_path):
    storage = Storage(str(tmp_path))
    sha256 = traces.fingerprint(sumto.data)
    storage.write("good", sumto.data)
    assert_same(traces.read_shard(storage, sumto.game, "good", sha256).traces, sumto.traces)
    for data in flips(sumto.data, 20):
        storage.write("bad", data)
        with pytest.raises(ShardError, match="bad is not what its manifest names") as caught:
            traces.read_shard(storage, sumto.game, "bad", sha256)
        assert caught.value.path == "bad"


def test_a_cut_off_shard_is_refused(sumto):
    size = len(sumto.data)
    for kept in [0, 1, 3, 4, 7, 8, 12, *range(50, size, 97), size - 8, size - 1]:
        with pytest.raises(ShardError, match=r"shard is damaged .*delete it and resume the run"):
            traces.from_parquet(sumto.game, sumto.data[:kept], "shard")


@pytest.mark.parametrize(
    "data",
    [b"\0" * 5000, b"PAR1", b"PAR1" * 2, b"PAR1\0\0\0\0PAR1", b"PAR1\xff\xff\xff\x7fPAR1", b"text"],
)
def test_what_is_no_shard_is_refused(sumto12, data):
    with pytest.raises(ShardError, match="shard is damaged"):
        traces.from_parquet(sumto12, data, "shard")


def test_reading_starts_no_thread(sumto, tmp_path):
    """A thread of pyarrow's pool that is alive when the process ends can abort it, which was seen
    once in some tens of runs of `selfplay traces show`."""
    if not os.path.isdir("/proc/self/task"):
        pytest.skip("threads are counted by Linux")
    (tmp_path / "shard").write_bytes(sumto.data)
    code = (
        "import os, pathlib, sys; from games import make_game; from pipeline import traces;"
        "from pipeline.storage import Storage; game = make_game('sumto', target=12, max_step=3);"
        "before = os.listdir('/proc/self/task');"
        "shard = traces.read_shard(Storage(sys.argv[1]), game, 'shard');"
        "assert len(shard.traces); assert os.listdir('/proc/self/task') == before"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, timeout=60)


def test_a_missing_shard_is_named(sumto12, tmp_path):
    with pytest.raises(
        ShardError, match=r"traces/no\.parquet is missing; resume the run"
    ) as caught:
        traces.read_shard(Storage(str(tmp_path)), sumto12, "traces/no.parquet")
    assert caught.value.path == "traces/no.parquet"


def test_a_damaged_shard_in_a_storage_is_named_by_its_path(sumto, tmp_path):
    storage = Storage(str(tmp_path))
    storage.write("traces/bad.parquet", sumto.data[:-9])
    with pytest.raises(ShardError, match=r"traces/bad.parquet is damaged") as caught:
        traces.read_shard(storage, sumto.game, "traces/bad.parquet")
    assert caught.value.path == "traces/bad.parquet"


# Somebody else's.


def rewritten(made: Made, facts: dict | None = None, table: pa.Table | None = None) -> bytes:
    """The shard with other metadata or columns, as a whole and sound file."""
    read = pq.read_table(pa.BufferReader(made.data))
    stored = json.loads(read.schema.metadata[b"selfplay"]) if facts is None else facts
    table = (table or read).replace_schema_metadata({b"selfplay": json.dumps(stored).encode()})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return sink.getvalue().to_pybytes()


def facts_of(made: Made, **changes) -> dict:
    stored = json.loads(pq.read_schema(pa.BufferReader(made.data)).metadata[b"selfplay"])
    return {**stored, **changes}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema": 2}, r"trace schema version 2, this program reads 1; .*\(0\.1\.0\+test\)"),
        ({"schema": 0}, "trace schema version 0, this program reads 1"),
        ({"schema": "1"}, "trace schema version 1, this program reads 1"),
        ({"game": "chess"}, r"holds chess \{.*\}, expected sumto"),
        ({"params": {"target": 13, "max_step": 3}}, r"'target': 13.*expected sumto .*'target': 12"),
        ({"params": {}}, r"holds sumto \{\}, expected sumto"),
        ({"state_dtype": [["player", "<i4"]]}, "was written with other state fields of game sumto"),
        ({"summary": {"decisions": 7}}, r"has \d+ rows, its metadata says 7|is damaged"),
    ],
)
def test_a_foreign_shard_is_refused(sumto, changes, message):
    with pytest.raises(ShardError, match=message):
        traces.from_parquet(sumto.game, rewritten(sumto, facts_of(sumto, **changes)), "shard")


@pytest.mark.parametrize("key", ["schema", "game", "params", "state_dtype", "summary"])
def test_a_shard_that_does_not_say_what_it_is_is_refused(sumto, key):
    facts = facts_of(sumto)
    del facts[key]
    with pytest.raises(ShardError, match="shard is damaged"):
        traces.from_parquet(sumto.game, rewritten(sumto, facts), "shard")


@pytest.mark.parametrize("facts", [[], "text", 5, None, {"schema": 1}])
def test_metadata_of_another_form_is_refused(sumto, facts):
    read = pq.read_table(pa.BufferReader(sumto.data))
    data = rewritten(sumto, [] if facts is None else facts, read)
    with pytest.raises(ShardError, match="shard is damaged"):
        traces.from_parquet(sumto.game, data, "shard")


def test_a_parquet_file_of_something_else_is_refused(sumto12, tmp_path):
    path = tmp_path / "other.parquet"
    pq.write_table(pa.table({"x": [1, 2, 3]}), path)
    with pytest.raises(ShardError, match="is damaged"):
        traces.from_parquet(sumto12, path.read_bytes(), "shard")


@pytest.mark.parametrize("change", ["extra", "missing", "renamed", "another type", "another order"])
def test_other_columns_are_refused(sumto, change):
    table = pq.read_table(pa.BufferReader(sumto.data))
    if change == "extra":
        table = table.append_column("note", pa.array(["x"] * len(table)))
    elif change == "missing":
        table = table.drop_columns(["explored"])
    elif change == "renamed":
        table = table.rename_columns([*table.column_names[:-1], "returns"])
    elif change == "another type":
        wide = table.column("ply").cast(pa.int64())
        table = table.set_column(1, pa.field("ply", pa.int64(), False), wide)
    else:
        table = table.select(table.column_names[::-1])
    with pytest.raises(ShardError, match=r"other columns than docs/traces\.md"):
        traces.from_parquet(sumto.game, rewritten(sumto, table=table), "shard")


# Replay.


def test_a_good_shard_passes(made):
    traces.check(made.game, made.shard(), made.keys, "shard")


def assert_noticed(made: Made, shard: traces.Shard, keys=None) -> None:
    with pytest.raises(ShardError, match=r"^shard[: ]") as caught:
        traces.check(made.game, shard, made.keys if keys is None else keys, "shard")
    assert caught.value.path == "shard"


def some_rows(made: Made) -> list[int]:
    size = len(made.traces)
    return sorted({0, size - 1, *np.random.default_rng(4).integers(0, size, 25).tolist()})


def changed(values: np.ndarray, row: int, value) -> np.ndarray:
    copy = values.copy()
    copy[row] = value
    return copy


def test_every_changed_action_of_sumto_is_noticed(sumto):
    # Here no other action leads to the same sums and the same end.
    actions = sumto.traces.action
    for row in range(len(actions)):
        for action in range(3):
            if action != actions[row]:
                assert_noticed(sumto, sumto.shard(action=changed(actions, row, action)))


def test_a_changed_action_is_noticed_at_the_next_decision(made):
    rows = made.traces
    legal = made.game.legal_of(rows.state)
    followed = np.flatnonzero(rows.game[1:] == rows.game[:-1])
    for row in np.random.default_rng(4).choice(followed, 25, replace=False):
        for action in np.flatnonzero(legal[row]):
            if action != rows.action[row]:
                assert_noticed(made, made.shard(action=changed(rows.action, row, action)))


def test_an_action_that_does_not_exist_is_noticed(made):
    for action in (-1, made.game.num_actions, 2**31 - 1):
        assert_noticed(made, made.shard(action=changed(made.traces.action, 3, action)))


def test_every_changed_byte_of_a_state_is_noticed(made):
    size = made.game.state_dtype.itemsize
    for row in some_rows(made)[::4]:
        for byte in range(size):
            states = made.traces.state.copy()
            states.view(np.uint8).reshape(-1, size)[row, byte] ^= 1
            assert_noticed(made, made.shard(state=states))


@pytest.mark.parametrize("name", ["ply", "player", "return_", "reward", "game"])
def test_a_changed_number_is_noticed(made, name):
    values = getattr(made.traces, name)
    for row in some_rows(made):
        other = (values[row] + 1) % made.game.num_players if name == "player" else values[row] + 1
        assert_noticed(made, made.shard(**{name: changed(values, row, other)}))


def test_a_return_that_is_no_number_is_noticed(made):
    returns = changed(made.traces.return_, 2, np.nan)
    assert_noticed(made, made.shard(return_=returns))


def picked(made: Made, rows) -> traces.Shard:
    columns = {each.name: getattr(made.traces, each.name)[rows] for each in fields(Traces)}
    return made.shard(**columns)


def test_a_missing_row_is_noticed(made):
    for row in some_rows(made):
        assert_noticed(made, picked(made, np.delete(np.arange(len(made.traces)), row)))


def test_an_extra_row_is_noticed(made):
    for row in some_rows(made):
        assert_noticed(made, picked(made, np.insert(np.arange(len(made.traces)), row, row)))


def test_exchanged_rows_are_noticed(made):
    for row in some_rows(made)[:-1]:
        order = np.arange(len(made.traces))
        order[row], order[row + 1] = row + 1, row
        assert_noticed(made, picked(made, order))


def test_games_in_another_order_are_noticed(sumto):
    """A reader may rely on the order of rows."""
    order = np.argsort(-sumto.traces.game, kind="stable")
    assert_noticed(sumto, picked(sumto, order))


def test_a_missing_game_is_noticed(made):
    for number in (FIRST, FIRST + 17, FIRST + 39):
        assert_noticed(made, picked(made, made.traces.game != number))


def test_games_from_elsewhere_are_noticed(made):
    for shift in (-FIRST, -1, 1, 10**6):
        assert_noticed(made, made.shard(game=made.traces.game + np.int32(shift)))


def test_a_shard_without_rows_lacks_decisions(sumto):
    assert_noticed(sumto, picked(sumto, np.zeros(len(sumto.traces), np.bool_)))


def test_other_chance_is_noticed(dices):
    keys = game_keys(4, "selfplay", 1, np.arange(FIRST, FIRST + 40))
    assert_noticed(dices, dices.shard(), keys)
    for number in (0, 39):
        one = dices.keys.copy()
        one[number] += np.uint64(1)
        assert_noticed(dices, dices.shard(), one)


def test_the_message_names_the_game_and_what_is_wrong(sumto):
    mine = np.flatnonzero(sumto.traces.game == FIRST + 5)
    messages = {
        "is not what its actions lead to at ply": sumto.shard(
            ply=changed(sumto.traces.ply, mine[0], 9)
        ),
        "has too few decisions": picked(sumto, np.delete(np.arange(len(sumto.traces)), mine)),
        "has other returns than its end pays": sumto.shard(
            return_=changed(sumto.traces.return_, mine[0], 0.5)
        ),
    }
    for message, shard in messages.items():
        with pytest.raises(ShardError, match=f"^shard: game {FIRST + 5} {message}"):
            traces.check(sumto.game, shard, sumto.keys, "shard")
    extra = np.insert(np.arange(len(sumto.traces)), mine[-1] + 1, mine[-1])
    with pytest.raises(ShardError, match=f"game {FIRST + 5} goes on after its end"):
        traces.check(sumto.game, picked(sumto, extra), sumto.keys, "shard")


# The replay window.


@pytest.fixture
def stored(sumto12, tmp_path):
    """Three generations of two shards of 20 games each, as a manifest lists them."""
    storage = Storage(str(tmp_path))
    shards = []
    for generation in (1, 2, 3):
        for shard in (0, 1):
            one = make(sumto12, games=20, generation=generation, first=20 * shard)
            path = f"traces/{generation}-{shard}"
            storage.write(path, one.data)
            shards.append(((generation, path, traces.fingerprint(one.data)), one.traces))
    return storage, [entry for entry, _ in shards], [rows for _, rows in shards]


def test_a_window_is_all_rows_oldest_first(sumto12, stored):
    storage, entries, parts = stored
    window = traces.read_window(storage, sumto12, entries, 10**6)
    assert len(window) == sum(map(len, parts))
    for name in ("state", "action", "player", "reward", "game"):
        whole = np.concatenate([getattr(part, name) for part in parts])
        assert (getattr(window.traces, name) == whole).all()
    sizes = [len(part) for part in parts]
    assert window.generation.tolist() == np.repeat([1, 1, 2, 2, 3, 3], sizes).tolist()


def test_a_game_has_a_number_of_its_own_and_its_rows_in_a_row(sumto12, stored):
    storage, entries, _ = stored
    window = traces.read_window(storage, sumto12, entries, 10**6)
    games = list(zip(window.generation.tolist(), window.traces.game.tolist(), strict=True))
    assert len(set(window.game_id.tolist())) == len(set(games)) == 120
    changes = np.count_nonzero(np.diff(window.game_id)) + 1
    assert changes == 120
    assert window.game_id.dtype == np.int64


def test_large_generations_and_games_keep_their_numbers_apart(sumto12, stored):
    storage, entries, _ = stored
    far = [(9999, *entries[0][1:]), (9998, *entries[1][1:])]
    window = traces.read_window(storage, sumto12, far, 10**6)
    assert (window.game_id >> 32 == window.generation).all()
    assert (window.game_id & 0xFFFFFFFF == window.traces.game).all()


def test_max_rows_keeps_the_newest_shards_whole(sumto12, stored):
    storage, entries, parts = stored
    sizes = [len(part) for part in parts]
    for kept in range(1, 7):
        enough = sum(sizes[-kept:])
        for most in (enough, enough + 1):
            window = traces.read_window(storage, sumto12, entries, most)
            assert len(window) == enough <= most
            assert (
                window.traces.action.tolist()
                == np.concatenate([part.action for part in parts[-kept:]]).tolist()
            )
    # The first one is kept, however long; the second is one row too long.
    for most in (1, sizes[-1], sum(sizes[-2:]) - 1):
        assert len(traces.read_window(storage, sumto12, entries, most)) == sizes[-1]


def test_a_window_of_nothing_is_refused(sumto12, tmp_path):
    with pytest.raises(StorageError, match="the replay window is empty"):
        traces.read_window(Storage(str(tmp_path)), sumto12, [], 10)


def test_a_changed_shard_ends_the_reading_of_a_window(sumto12, stored):
    storage, entries, _ = stored
    data = bytearray(storage.read(entries[3][1]))
    data[100] ^= 4
    storage.write(entries[3][1], bytes(data))
    with pytest.raises(ShardError, match="SHA-256 differs") as caught:
        traces.read_window(storage, sumto12, entries, 10**6)
    assert caught.value.path == entries[3][1]
    traces.read_window(storage, sumto12, entries[4:], 10**6)


def test_the_share_of_duplicate_states_by_hand(sumto12):
    # Three games from 0; the sums after that: 1, 1 and 2. At other plies they are the same states.
    states = np.zeros(7, sumto12.state_dtype)
    states["sum"] = [0, 1, 0, 1, 0, 2, 2]
    states["player"] = [0, 1, 0, 1, 0, 1, 0]
    states["ply"] = [0, 1, 0, 1, 0, 1, 2]
    blank = make(sumto12, games=2).traces
    columns = {each.name: np.resize(getattr(blank, each.name), 7) for each in fields(Traces)}
    window = traces.Window(
        Traces(**{**columns, "state": states}), np.ones(7, np.int32), np.zeros(7, np.int64)
    )
    # Different: 0 (player 0), 1 (player 1), 2 (player 1), 2 (player 0).
    assert traces.duplicate_share(window) == pytest.approx(1 - 4 / 7)
    assert states["ply"].tolist() == [0, 1, 0, 1, 0, 1, 2]
    none = np.zeros(0, np.int64)
    empty = Traces(**{each.name: getattr(blank, each.name)[:0] for each in fields(Traces)})
    assert traces.duplicate_share(traces.Window(empty, none, none)) == 0.0
