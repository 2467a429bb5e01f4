"""The run directory: what is done, what is refused, and that no number is lost or counted twice."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest
import yaml
from small_runs import small_config

from pipeline.config import ConfigError, to_dict
from pipeline.errors import RunError, UserError
from pipeline.policies.store import PolicySource
from pipeline.run import Run, code_version, new_run_name, run_names, versions
from pipeline.storage import Storage

START = """
import sys
import yaml
from pipeline.config import to_config
from pipeline.errors import UserError
from pipeline.run import Run
try:
    run = Run.start(to_config(yaml.safe_load(sys.argv[1])))
except UserError as error:
    print(f"refused: {error}", flush=True)
else:
    print("started", flush=True)
    sys.stdin.read()
"""


def source(generation: int) -> dict:
    return PolicySource(f"g{generation:04d}", f"run/generations/{generation:04d}/policy").to_json()


def finish(run: Run, generation: int, note: str = "") -> None:
    """A generation with its numbers."""
    run.storage.write(f"{run.folder(generation)}/policy/policy.json", "{}")
    manifest = {"policy": source(generation), "champion": source(generation), "shards": []}
    run.finish(generation, manifest, {"generation": generation, "note": note})


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch):
    """Hundreds of small files are written here; test_storage.py is about their safety."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)


@pytest.fixture
def config(tmp_path):
    return small_config(tmp_path, "run", generations=9)


@pytest.fixture
def started(config):
    """A run with the generations 0 to 3."""
    with Run.start(config) as run:
        for generation in range(4):
            finish(run, generation)
        yield run


def again(config) -> Run:
    """The run, started anew and let go, as after a crash."""
    with Run.start(config) as run:
        return run


# Generations.


def test_a_new_run_has_nothing_done(config, tmp_path):
    with Run.start(config) as run:
        assert run.complete() == [] and run.records() == []
    assert yaml.safe_load((tmp_path / "run" / "config.yaml").read_text()) == to_dict(config)
    assert Run.open(str(tmp_path), "run").config == config


def test_a_generation_is_complete_with_its_manifest(started):
    assert started.complete() == [0, 1, 2, 3]
    started.storage.write(f"{started.folder(4)}/policy/policy.json", "{}")
    started.storage.write(started.shard_path(4, 0), b"x")
    assert started.complete() == [0, 1, 2, 3]
    finish(started, 4)
    assert started.complete() == [0, 1, 2, 3, 4]


def test_what_lies_behind_a_gap_is_not_done(started):
    finish(started, 5)
    assert started.complete() == [0, 1, 2, 3]
    started.storage.delete(f"{started.folder(1)}/manifest.json")
    assert started.complete() == [0]
    started.storage.delete(f"{started.folder(0)}/manifest.json")
    assert started.complete() == []


def test_a_run_without_its_first_generation_has_nothing_done(config):
    with Run.start(config) as run:
        finish(run, 1)
        assert run.complete() == []


@pytest.mark.parametrize("name", ["0001.bak", "0002-old/x", "notes", "copy of 0003", "+1", "²"])
def test_other_names_among_the_generations_hide_nothing(started, name):
    started.storage.write(f"run/generations/{name}", "x")
    assert started.complete() == [0, 1, 2, 3]


def test_paths_sort_as_generations_and_shards_do(started):
    assert started.folder(7) == "run/generations/0007"
    assert started.shard_path(7, 12) == "run/traces/generation=0007/shard-00012.parquet"


def test_a_manifest_tells_what_a_generation_consists_of(started, tmp_path):
    for run in (started, Run.open(str(tmp_path), "run")):
        manifest = run.manifest(2)
        assert manifest["generation"] == 2 and manifest["shards"] == []
        assert {key: manifest[key] for key in versions()} == versions()
        assert run.policy(2) == run.champion(2) == PolicySource(**source(2))


def test_a_manifest_that_is_not_there_is_told(started):
    with pytest.raises(RunError) as caught:
        started.manifest(7)
    assert str(caught.value) == "generation 7 of run run is not complete; complete are 0..3"
    with pytest.raises(RunError, match="complete are none"):
        Run(started.storage, "other", started.config).manifest(0)


def test_the_champion_is_known_by_its_generation(config):
    """Promoted in generations 0 and 2, kept in 3."""
    with Run.start(config) as run:
        with pytest.raises(RunError, match="run run has no complete generation yet"):
            run.champion_generation()
        for generation, champion in enumerate((0, 0, 2, 2)):
            manifest = {"policy": source(generation), "champion": source(champion), "shards": []}
            run.finish(generation, manifest, {"generation": generation})
            assert run.champion_generation() == champion


def test_a_game_is_in_the_shard_that_counts_it(config):
    with Run.start(config) as run:
        finish(run, 0)
        shards = [{"path": name, "games": games} for name, games in (("a", 3), ("b", 1), ("c", 2))]
        manifest = {"policy": source(1), "champion": source(1), "shards": shards}
        run.finish(1, manifest, {"generation": 1})
        found = "".join(run.shard_of_game(1, number)["path"] for number in range(6))
        assert found == "aaabcc"
        for number in (-1, 6):
            with pytest.raises(RunError, match=rf"of run run has games 0\.\.5, not {number}$"):
                run.shard_of_game(1, number)
        with pytest.raises(RunError, match="generation 0 of run run has no recorded games"):
            run.shard_of_game(0, 0)


@pytest.mark.parametrize("data", [b"", b"{", b'{"policy": {"na', b"\xff\xfe\0", b"[]", b"{}", b"5"])
def test_a_damaged_manifest_is_told(started, tmp_path, data):
    started.storage.write("run/generations/0002/manifest.json", data)
    run = Run.open(str(tmp_path), "run")
    with pytest.raises(
        RunError, match=r"generations/0002/manifest\.json is damaged; delete it and"
    ):
        run.policy(2)


def test_a_manifest_without_shards_is_told(started, tmp_path):
    whole = {"policy": source(2), "champion": source(2)}
    started.storage.write("run/generations/0002/manifest.json", json.dumps(whole))
    with pytest.raises(RunError, match="is damaged; delete it"):
        Run.open(str(tmp_path), "run").manifest(2)


# Numbers.


def lines(run: Run) -> list[str]:
    return run.storage.read("run/metrics.jsonl").decode().splitlines()


def generations(run: Run) -> list[int]:
    return [record["generation"] for record in run.records()]


def test_numbers_come_in_order_and_are_what_was_written(started):
    assert generations(started) == [0, 1, 2, 3]
    assert [json.loads(line) for line in lines(started)] == started.records()


def test_numbers_of_an_unfinished_generation_are_not_shown_and_dropped_on_start(started, config):
    started.storage.append("run/metrics.jsonl", json.dumps({"generation": 4, "note": "old"}) + "\n")
    assert generations(started) == [0, 1, 2, 3]
    started.close()
    run = again(config)
    assert len(lines(run)) == 4
    finish(run, 4, "new")
    assert run.records()[4]["note"] == "new" and len(lines(run)) == 5


@pytest.mark.parametrize(
    "torn", ['{"generation": 4, "no', "{", "5", '{"other": 1}', "\0\0\0", "null"]
)
def test_a_torn_last_line_is_passed_over_and_dropped_on_start(started, config, torn):
    started.storage.append("run/metrics.jsonl", torn)
    assert generations(started) == [0, 1, 2, 3]
    started.close()
    run = again(config)
    finish(run, 4)
    assert [json.loads(line)["generation"] for line in lines(run)] == [0, 1, 2, 3, 4]


def test_a_torn_byte_sequence_is_passed_over(started, config):
    data = started.storage.read("run/metrics.jsonl")
    started.storage.write("run/metrics.jsonl", data + '{"generation": 4, "note": "ü'.encode()[:-1])
    assert generations(started) == [0, 1, 2, 3]
    started.close()
    assert len(lines(again(config))) == 4


def test_good_numbers_are_left_as_they_are(started, config, tmp_path):
    before = (tmp_path / "run" / "metrics.jsonl").stat()
    started.close()
    again(config)
    after = (tmp_path / "run" / "metrics.jsonl").stat()
    assert (after.st_mtime_ns, after.st_ino) == (before.st_mtime_ns, before.st_ino)


def test_numbers_written_twice_count_once(started):
    started.storage.append(
        "run/metrics.jsonl", json.dumps({"generation": 2, "note": "newer"}) + "\n"
    )
    assert generations(started) == [0, 1, 2, 3]
    assert started.records()[2]["note"] == "newer"


def test_every_complete_generation_has_its_numbers_after_a_gap_is_filled(started, config):
    """Generation 1 is lost and made again; a crash comes before 2 and 3 are."""
    started.storage.delete(f"{started.folder(1)}/manifest.json")
    started.close()
    with Run.start(config) as run:
        assert run.complete() == [0]
        finish(run, 1)
    run = again(config)
    assert generations(run) == run.complete()


def test_lost_numbers_of_a_complete_generation_are_told(started, config):
    lines = started.storage.read("run/metrics.jsonl").splitlines(keepends=True)
    started.storage.write("run/metrics.jsonl", b"".join(lines[:1] + lines[2:]))
    started.close()
    with pytest.raises(RunError, match=r"metrics\.jsonl has no numbers of generation 1; restore"):
        again(config)
    started.storage.delete(f"{started.folder(1)}/manifest.json")
    assert again(config).complete() == [0]


def test_a_run_whose_configuration_is_lost_does_not_start_over(started, config):
    started.storage.delete("run/config.yaml")
    started.close()
    with pytest.raises(RunError, match=r"config\.yaml is missing; restore it"):
        again(config)


def test_a_renamed_run_does_not_go_on(started, config, tmp_path):
    started.close()
    (tmp_path / "run").rename(tmp_path / "new")
    config.run = "new"
    with pytest.raises(RunError, match="was made as run run and does not go on under another"):
        again(config)


def test_reading_the_numbers_looks_each_generation_up_once(config, monkeypatch):
    """In a bucket every look-up is a request."""
    with Run.start(config) as run:
        for generation in range(30):
            finish(run, generation)
        looked_up = []
        exists = Storage.exists
        monkeypatch.setattr(
            Storage, "exists", lambda self, path: (looked_up.append(path), exists(self, path))[1]
        )
        assert len(run.records()) == 30
        assert len(looked_up) < 100


# Starting.


def test_starts_are_noted(started, config):
    started.close()
    again(config)
    noted = json.loads(started.storage.read("run/run.json"))
    assert noted["name"] == "run" and len(noted["starts"]) == 2
    for start in noted["starts"]:
        assert abs(start["time"] - time.time()) < 600
        assert start["code"] == code_version() and re.match(r"\d+\.", start["pyarrow"])


@pytest.mark.parametrize("data", [b"", b'{"name": "run", "sta', b"[]", b'{"starts": 5}'])
def test_a_damaged_list_of_starts_does_not_stop_a_run(started, config, data):
    started.storage.write("run/run.json", data)
    started.close()
    again(config)
    assert len(json.loads(started.storage.read("run/run.json"))["starts"]) == 1


ALLOWED = {
    "generations": 20,
    "evaluation__games": 40,
    "evaluation__baselines": ["random"],
    "tracking__experiment": "other",
    "tracking__enabled": True,
    "cluster__kind": "ray",
    "cluster__patience": 7.0,
}


@pytest.mark.parametrize("key", ALLOWED)
def test_what_decides_nothing_may_change(started, tmp_path, key):
    started.close()
    changed = small_config(tmp_path, "run", **{"generations": 9, key: ALLOWED[key]})
    assert again(changed).complete() == [0, 1, 2, 3]
    assert Run.open(str(tmp_path), "run").config == changed


REFUSED = {
    "seed": (6, "seed 5 -> 6"),
    "game__target": (21, "game.target 20 -> 21"),
    "learner__epochs": (7, "learner.epochs 5 -> 7"),
    "learner__hidden": ([16, 8], "learner.hidden [16] -> [16, 8]"),
    "learner__warm_start": (False, "learner.warm_start true -> false"),
    "learner__window_generations": (2, "learner.window_generations 1 -> 2"),
    "selfplay__games": (151, "selfplay.games 150 -> 151"),
    "selfplay__games_per_shard": (30, "selfplay.games_per_shard 50 -> 30"),
    "opponents__weights": (
        {"self": 0.5, "random": 0.5},
        "opponents.weights.random null -> 0.5; opponents.weights.self 1.0 -> 0.5",
    ),
    "policy__temperature": ([{"from_generation": 1, "by_ply": [0.5]}], "policy.temperature "),
    "gate__rule": ("threshold", 'gate.rule "always" -> "threshold"'),
}


@pytest.mark.parametrize("key", REFUSED)
def test_what_would_lead_elsewhere_is_refused_with_its_keys(started, config, tmp_path, key):
    started.close()
    value, words = REFUSED[key]
    with pytest.raises(RunError) as caught:
        Run.start(small_config(tmp_path, "run", **{"generations": 9, key: value}))
    message = str(caught.value)
    assert message.startswith("run run was started with another configuration")
    assert f": {words}" in message and "\n" not in message
    # Nothing has changed, and the lock is free.
    assert Run.open(str(tmp_path), "run").config == config
    assert again(config).complete() == [0, 1, 2, 3]


def test_evaluations_that_choose_opponents_may_not_change(tmp_path):
    options = {"opponents__past_by": "prioritised"}
    Run.start(small_config(tmp_path, "run", **options)).close()
    with pytest.raises(RunError, match=r"evaluation\.games 20 -> 30"):
        Run.start(small_config(tmp_path, "run", evaluation__games=30, **options))


def test_every_changed_key_is_listed(started, tmp_path):
    started.close()
    with pytest.raises(RunError, match=r"learner\.epochs 5 -> 7; seed 5 -> 8\. Restore these keys"):
        Run.start(small_config(tmp_path, "run", seed=8, learner__epochs=7, evaluation__games=30))


# Opening.


def test_a_run_that_is_not_there_is_told_with_those_that_are(started, tmp_path):
    with pytest.raises(RunError) as caught:
        Run.open(str(tmp_path), "walk")
    assert str(caught.value) == (f"there is no run 'walk' under {tmp_path}; the latest there: run")
    with pytest.raises(RunError, match="the latest there: none"):
        Run.open(str(tmp_path / "elsewhere"), "run")


@pytest.mark.parametrize("name", ["..", "a/b", "", "../run", "run/generations"])
def test_a_name_that_is_no_folder_opens_nothing(started, tmp_path, name):
    with pytest.raises(ConfigError, match="run must be a name of at most 100 letters"):
        Run.open(str(tmp_path), name)


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: "{",
        lambda text: "just words",
        lambda text: "[1, 2]",
        lambda text: "\0" * 100,
        lambda text: text[: len(text) // 2],
        lambda text: text[:-20],
        lambda text: text.replace("targets:", "tragets:"),
    ],
    ids=["empty", "brace", "words", "list", "zeros", "half", "cut", "unknown key"],
)
def test_a_damaged_configuration_is_told_by_its_path(started, config, tmp_path, damage):
    path = tmp_path / "run" / "config.yaml"
    path.write_text(damage(path.read_text()))
    started.close()
    for start in (lambda: Run.open(str(tmp_path), "run"), lambda: Run.start(config)):
        with pytest.raises(UserError) as caught:
            start()
        message = str(caught.value)
        assert f"{tmp_path}/run/config.yaml" in message and "\n" not in message


def test_run_names_are_the_folders_with_a_configuration(started, tmp_path):
    for name in ("b", "a"):
        Run.start(small_config(tmp_path, name)).close()
    (tmp_path / "sweeps").mkdir()
    (tmp_path / "mlflow.db").write_text("x")
    assert run_names(Storage(str(tmp_path))) == ["a", "b", "run"]


def test_a_new_name_is_allowed_and_tells_what_and_when():
    assert re.fullmatch(r"sumto100-\d{8}-\d{6}", new_run_name("sumto100"))


# One process at a time.


def start_in_another_process(config) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", START, yaml.safe_dump(to_dict(config))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_run_is_trained_by_one_process_and_free_when_that_is_killed(config):
    other = start_in_another_process(config)
    try:
        assert other.stdout.readline() == "started\n"
        with pytest.raises(RunError) as caught:
            Run.start(config)
        assert str(caught.value) == (
            "run run is being trained by another process; wait for it, or choose another name "
            "with run=..."
        )
        Run.open(config.root, "run")  # reading is free
        other.send_signal(signal.SIGKILL)
        other.wait()
        assert again(config).complete() == []
    finally:
        other.kill()
        other.communicate()


def test_a_run_in_this_process_is_refused_to_another(started, config):
    other = start_in_another_process(config)
    said, _ = other.communicate()
    assert said.startswith("refused: run run is being trained by another process")


def test_a_run_is_not_started_twice_in_one_process(started, config):
    with pytest.raises(RunError, match="is being trained by another process"):
        Run.start(config)
    started.close()
    again(config)


def test_other_runs_under_the_root_are_free(started, tmp_path):
    Run.start(small_config(tmp_path, "other")).close()


def test_a_root_that_is_a_file_is_told(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(RunError, match=f"cannot write under {tmp_path}/file: "):
        Run.start(small_config(tmp_path / "file", "run"))
