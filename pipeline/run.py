"""The run directory: what is done, what is missing, resume. The layout is in docs/architecture.md.

A generation is complete when its manifest is there; the manifest is written last. Everything before
it can be made again from what is on disk, and comes out the same.
"""

import json
import os
import re
import subprocess
import time
from contextlib import suppress
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from filelock import FileLock, Timeout

from pipeline.config import Config, check_run_name, flatten, to_config, to_dict
from pipeline.errors import ConfigError, RunError
from pipeline.policies.store import PolicySource
from pipeline.storage import Storage

# What may change when a run goes on: none of it decides what is played or learned, but for
# evaluations, whose scores choose the opponents where these are prioritised.
FREE_TO_CHANGE = ("run", "root", "generations", "tracking.", "cluster.", "evaluation.")


class Run:
    """One run under a root. Use `Run.start` to train, `Run.open` to read."""

    def __init__(self, storage: Storage, name: str, config: Config, lock: FileLock | None = None):
        self.storage = storage
        self.name = name
        self.config = config
        self._lock = lock
        self._manifests: dict[int, dict] = {}

    @classmethod
    def open(cls, root: str, name: str) -> "Run":
        """An existing run, for reading.

        Raises:
            RunError: there is none of that name.
        """
        check_run_name(name)
        storage = Storage(root)
        try:
            stored = yaml.safe_load(storage.read(f"{name}/config.yaml"))
        except FileNotFoundError as error:
            raise RunError(
                f"there is no run {name!r} under {storage.where()}; the latest there: "
                f"{latest(storage)}"
            ) from error
        except yaml.YAMLError as error:
            raise RunError(
                f"{storage.where(name)}/config.yaml is damaged; restore it, or train a new run"
            ) from error
        try:
            return cls(storage, name, to_config(stored))
        except ConfigError as error:
            raise RunError(
                f"{storage.where(name)}/config.yaml does not fit: {error}; restore it, "
                "or train a new run"
            ) from error

    @classmethod
    def start(cls, config: Config) -> "Run":
        """The run that the configuration names, made if it is new, locked while it is open.

        Raises:
            RunError: another process trains it, or it was made with a configuration that would
                lead elsewhere.
        """
        assert config.run is not None
        storage = Storage(config.root)
        lock = _lock(storage, config.run)
        try:
            if storage.exists(f"{config.run}/config.yaml"):
                before = cls.open(config.root, config.run).config
                if before.run != config.run:  # manifests name files with the run's folder
                    raise RunError(
                        f"{storage.where(config.run)} was made as run {before.run} and does not "
                        "go on under another name; rename the folder back"
                    )
                _refuse_changes(config.run, to_dict(before), to_dict(config))
                cls(storage, config.run, config).check_length()
            elif storage.names(f"{config.run}/generations"):
                raise RunError(
                    f"{storage.where(config.run)}/config.yaml is missing; restore it, or choose "
                    "another name with run=..."
                )
            storage.write(
                f"{config.run}/config.yaml", yaml.safe_dump(to_dict(config), sort_keys=False)
            )
            run = cls(storage, config.run, config, lock)
            run._note_start()
            storage.drop_leftovers(config.run)
            run._drop_unfinished()
            return run
        except BaseException:
            if lock is not None:
                lock.release()
            raise

    def check_length(self) -> None:
        """Refuses to end before where the run already is.

        Raises:
            RunError: more generations are complete than the configuration asks for.
        """
        newest = max(self.complete(), default=0)
        if newest > self.config.generations:
            raise RunError(
                f"run {self.name} has {newest} generations already, generations="
                f"{self.config.generations} asks for fewer; ask for more, or train a new run"
            )

    def close(self) -> None:
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _note_start(self) -> None:
        path = f"{self.name}/run.json"
        starts = []
        if self.storage.exists(path):
            with suppress(ValueError, KeyError, TypeError):  # a note, on which nothing depends
                starts = [*json.loads(self.storage.read(path))["starts"]]
        starts.append({"time": time.time(), **versions()})
        self.storage.write(path, json.dumps({"name": self.name, "starts": starts}, indent=1))

    # Generations. 0 holds the policy that the run starts from; g plays with that of g - 1.

    def folder(self, generation: int) -> str:
        return f"{self.name}/generations/{generation:04d}"

    def shard_path(self, generation: int, shard: int) -> str:
        return f"{self.name}/traces/generation={generation:04d}/shard-{shard:05d}.parquet"

    def complete(self) -> list[int]:
        """The generations that are done, in order. A gap ends the list: what lies behind a missing
        generation must be made again."""
        there = set(self.storage.names(f"{self.name}/generations"))
        done: list[int] = []
        while f"{len(done):04d}" in there:
            if not self.storage.exists(f"{self.folder(len(done))}/manifest.json"):
                break
            done.append(len(done))
        return done

    def manifest(self, generation: int) -> dict:
        """What a complete generation consists of.

        Raises:
            RunError: it is not complete.
        """
        if generation not in self._manifests:
            path = f"{self.folder(generation)}/manifest.json"
            try:
                self._manifests[generation] = json.loads(self.storage.read(path))
                for key in ("policy", "champion"):
                    PolicySource(**self._manifests[generation][key])
                _ = self._manifests[generation]["shards"]
            except FileNotFoundError as error:
                raise RunError(
                    f"generation {generation} of run {self.name} is not complete; "
                    f"complete are {_span(self.complete())}"
                ) from error
            except (ValueError, KeyError, TypeError) as error:
                self._manifests.pop(generation, None)
                raise RunError(
                    f"{self.storage.where(path)} is damaged; delete it and resume the run"
                ) from error
        return self._manifests[generation]

    def policy(self, generation: int) -> PolicySource:
        return PolicySource(**self.manifest(generation)["policy"])

    def champion(self, generation: int) -> PolicySource:
        return PolicySource(**self.manifest(generation)["champion"])

    def champion_generation(self) -> int:
        """The generation that the present champion is of.

        Raises:
            RunError: no generation is complete yet.
        """
        done = self.complete()
        if not done:
            raise RunError(f"run {self.name} has no complete generation yet")
        champion = self.champion(done[-1])
        return next(each for each in reversed(done) if self.policy(each) == champion)

    def shard_of_game(self, generation: int, number: int) -> dict:
        """The entry of the manifest for the shard that holds a game.

        Raises:
            RunError: the generation is not complete or has no such game.
        """
        first = 0
        for entry in self.manifest(generation)["shards"]:
            if first <= number < first + entry["games"]:
                return entry
            first += entry["games"]
        games = f"games 0..{first - 1}, not {number}"
        if not first:
            games = "no recorded games; its policy played those of the next one"
        raise RunError(f"generation {generation} of run {self.name} has {games}")

    def missing_shards(self) -> list[str]:
        """Paths of the shards that manifests name and that are not there."""
        return [
            entry["path"]
            for generation in self.complete()
            for entry in self.manifest(generation)["shards"]
            if not self.storage.exists(entry["path"])
        ]

    def replace_shard(self, generation: int, entry: dict) -> None:
        """Writes a manifest again after one of its shards was played again."""
        manifest = self.manifest(generation)
        shards = [entry if old["path"] == entry["path"] else old for old in manifest["shards"]]
        self._write_manifest(generation, {**manifest, "shards": shards})

    def finish(self, generation: int, manifest: dict, record: dict | None = None) -> None:
        """Closes a generation: its numbers, then its manifest."""
        if record is not None:
            self.storage.append(
                f"{self.name}/metrics.jsonl", json.dumps(record, allow_nan=False) + "\n"
            )
        self._write_manifest(generation, {"generation": generation, **manifest, **versions()})

    def _write_manifest(self, generation: int, manifest: dict) -> None:
        path = f"{self.folder(generation)}/manifest.json"
        self.storage.write(path, json.dumps(manifest, indent=1))
        self._manifests[generation] = manifest

    def records(self) -> list[dict]:
        """The numbers of every complete generation, in order: the lines of metrics.jsonl."""
        done = set(self.complete())
        return [record for record in self._read_records() if record["generation"] in done]

    def table(self, generation: int, name: str) -> list[dict]:
        """The rows of a table that the learner wrote beside a policy; empty if it wrote none."""
        path = f"{self.folder(generation)}/{name}.parquet"
        if not self.storage.exists(path):
            return []
        try:
            file = pq.ParquetFile(pa.BufferReader(self.storage.read(path)))
            return file.read(use_threads=False).to_pylist()
        except pa.ArrowException as error:
            raise RunError(
                f"{self.storage.where(path)} is damaged; delete it: nothing but pages and figures "
                "needs it"
            ) from error

    def _read_records(self) -> list[dict]:
        path = f"{self.name}/metrics.jsonl"
        if not self.storage.exists(path):
            return []
        records: dict[int, dict] = {}
        for line in self.storage.read(path).decode(errors="replace").splitlines():
            try:
                record = json.loads(line)
                records[record["generation"]] = record
            except (ValueError, KeyError, TypeError):
                continue  # cut off by a crash; its generation has no manifest yet
        return [records[generation] for generation in sorted(records)]

    def _drop_unfinished(self) -> None:
        """A generation that crashed after its numbers were written will write them again, and so
        will those behind a gap."""
        done = len(self.complete())
        lost = sorted(set(range(done)) - {record["generation"] for record in self._read_records()})
        if lost:
            raise RunError(
                f"{self.storage.where(self.name)}/metrics.jsonl has no numbers of generation "
                f"{lost[0]}; restore it, or delete {self.folder(lost[0])}/manifest.json and start "
                "the same command again, which makes that generation and those after it again"
            )
        for name in self.storage.names(f"{self.name}/generations"):
            if re.fullmatch(r"[0-9]{4}", name) and int(name) >= done:
                self.storage.delete(f"{self.name}/generations/{name}/manifest.json")
        path = f"{self.name}/metrics.jsonl"
        if self.storage.exists(path):
            lines = "".join(json.dumps(record) + "\n" for record in self.records())
            if lines.encode() != self.storage.read(path):
                self.storage.write(path, lines)


def run_names(storage: Storage) -> list[str]:
    """The runs under a root, oldest name first."""
    return [name for name in storage.names() if storage.exists(f"{name}/config.yaml")]


def latest(storage: Storage) -> str:
    """The last names of runs under a root, for a message."""
    return ", ".join(run_names(storage)[-5:]) or "none"


def new_run_name(label: str) -> str:
    """A name for a run that was given none: what is trained, and when."""
    return f"{label}-{time.strftime('%Y%m%d-%H%M%S')}"


def _span(generations: list[int]) -> str:
    return f"{generations[0]}..{generations[-1]}" if generations else "none"


def _lock(storage: Storage, name: str) -> FileLock | None:
    """One process trains a run. The system frees the lock of a process that died."""
    folder = storage.local
    if folder is None:
        return None
    path = Path(folder) / name / ".lock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path)
        lock.acquire(timeout=0)
    except Timeout as error:
        raise RunError(
            f"run {name} is being trained by another process; wait for it, or choose another name "
            "with run=..."
        ) from error
    except OSError as error:
        raise RunError(f"cannot write under {folder}: {error.strerror}") from error
    return lock


def _refuse_changes(name: str, before: dict[str, Any], now: dict[str, Any]) -> None:
    old, new = flatten(before), flatten(now)
    free: tuple[str, ...] = FREE_TO_CHANGE
    if old["opponents.past_by"] == "prioritised":
        free = tuple(key for key in free if key != "evaluation.")
    changed = [
        f"{key} {_shown(old.get(key))} -> {_shown(new.get(key))}"
        for key in sorted(old.keys() | new.keys())
        if old.get(key) != new.get(key) and not key.startswith(free)
    ]
    if changed:
        raise RunError(
            f"run {name} was started with another configuration and would go wrong with this one: "
            f"{'; '.join(changed)}. Restore these keys, or choose another name with run=..."
        )


def _shown(value: Any) -> str:
    return json.dumps(value)


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """Of the code and of what decides the bytes of a shard."""
    return {"code": code_version(), "pyarrow": pa.__version__}


@lru_cache(maxsize=1)
def code_version() -> str:
    """The package's version, with the commit where this is a checkout."""
    version = metadata.version("selfplay")
    here = Path(__file__).resolve().parent.parent
    if (here / ".git").exists():
        environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
        asked = subprocess.run(
            ["git", "-C", str(here), "rev-parse", "--short=12", "HEAD"],
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )
        if asked.returncode == 0:
            return f"{version}+{asked.stdout.strip()}"
    return version
