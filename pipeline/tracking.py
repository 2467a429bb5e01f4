"""What MLflow shows of a run. The only module that imports mlflow.

Numbers reach the run directory first; a process of its own, at low priority, brings them to MLflow.
So training neither waits for a tracking server nor dies of one: what a server that is away has
missed is sent when it is back, at the end, on resume, or by `selfplay runs sync`.

    driver   Tracker                 starts the process, wakes it after every generation
    process  python -m pipeline.tracking ROOT RUN   reads the run directory, sends what is new
"""

import io
import json
import os
import select
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from pipeline import replay
from pipeline.config import flatten, make_game_from, to_dict
from pipeline.errors import ConfigError, RunError, UserError
from pipeline.policies.store import PolicySource, load_policy
from pipeline.run import Run, code_version
from pipeline.storage import Storage
from pipeline.streams import Streams, game_keys
from pipeline.tree_pages import generation_pages

_RETRY_PAUSE = 2.0  # seconds between attempts to reach a server that is away
_QUIET = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_LOGGING_LEVEL": "ERROR",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}

# Of a learner's report, where it grows trees (docs/learners/model_trees.md).
_OF_TREES = (
    "leaves",
    "depth",
    "pooled",
    "gap",
    "residual",
    "drift",
    "label_drift",
    "clipped",
    "sweeps",
)
# Kinds of policies that people can read: the folder of their pages, and what makes the pages of a
# generation, file by name.
_PAGES = {
    kind: ("trees", generation_pages) for kind in ("action_trees", "type_trees", "hierarchical")
}


class Tracker:
    """The driver's side: keeps the process that sends, and tells it when there is something new."""

    def __init__(self, run: Run, parent: str | None = None):
        self._run = run
        self._parent = parent
        self._process: subprocess.Popen | None = None

    def __enter__(self) -> "Tracker":
        config = self._run.config.tracking
        if config.enabled:
            tracking_uri(self._run.storage, config.uri)  # a contradiction is told at once
            self._process = subprocess.Popen(
                [sys.executable, "-m", "pipeline.tracking", self._run.storage.root, self._run.name]
                + ([self._parent] if self._parent else []),
                stdin=subprocess.PIPE,
                text=True,
                env={**os.environ, **_QUIET},
                start_new_session=True,  # an interrupt is for the driver, which passes it on
            )
        return self

    def wake(self) -> None:
        """There is a new generation."""
        self._say("new")

    def finish(self) -> None:
        """Waits until everything is sent, or the server has been away for too long."""
        self._say("finish")
        self._wait()

    def __exit__(self, kind: type | None, *_: object) -> None:
        if kind is not None:
            self._say("killed" if issubclass(kind, KeyboardInterrupt) else "failed")
        self._wait()

    def _say(self, word: str) -> None:
        if self._process is None or self._process.stdin is None:
            return
        try:
            self._process.stdin.write(word + "\n")
            self._process.stdin.flush()
        except (OSError, ValueError):
            self._lost()

    def _wait(self) -> None:
        if self._process is not None:
            assert self._process.stdin is not None
            with suppress(OSError):
                self._process.stdin.close()
            if self._process.wait() != 0:
                self._lost()
            self._process = None

    def _lost(self) -> None:
        print(
            f"warning: tracking has stopped; the numbers are in {self._run.storage.where()}, send "
            f"them with: selfplay runs sync {self._run.name} --root {self._run.storage.root}",
            file=sys.stderr,
        )
        self._process = None


def tracking_uri(storage: Storage, uri: str | None) -> str:
    """The configured URI, or SQLite under a local root.

    Raises:
        ConfigError: none is configured and the root is not a local folder.
    """
    if uri is not None:
        return uri
    if storage.local is None:
        raise ConfigError(
            f"tracking.uri must be set when the root is not a local folder ({storage.root}); name "
            "an MLflow server, or choose tracking=none"
        )
    return f"sqlite:///{storage.local}/mlflow.db"


# The process.


class Sender:
    """Brings one run's directory to MLflow, from wherever MLflow stands."""

    def __init__(self, run: Run, parent: str | None = None):
        self._run = run
        self._parent = parent
        self._game = make_game_from(run.config.game)
        self._solution = self._game.solution() if self._game.solution else None
        self._uri = tracking_uri(run.storage, run.config.tracking.uri)
        self._client: Any = None
        self._id = ""
        self._sent = -1  # newest generation that MLflow has

    def sync(self) -> None:
        """Sends every generation that MLflow lacks.

        Raises:
            mlflow.exceptions.MlflowException or OSError: the server is away. Call again.
        """
        try:
            if self._client is None:
                self._connect()
            for record in self._run.records():
                if record["generation"] > self._sent:
                    self._send(record)
                    self._sent = record["generation"]
        except BaseException:
            self._client = None  # ask the server anew how far it got
            raise

    def summarise(self, final: bool) -> None:
        """Sends the figures and the report of the whole run, and registers the champion."""
        from pipeline import figures, report

        records = self._run.records()
        if not records:
            return
        if self._client is None:
            self._connect()
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            pngs = report.run_figures(self._run, self._game, records)
            page = report.build(self._run, pngs)
            self._run.storage.write(f"{self._run.name}/report.html", page)
            (folder / "report.html").write_text(page, encoding="utf-8")
            (folder / "config.yaml").write_bytes(
                self._run.storage.read(f"{self._run.name}/config.yaml")
            )
            (folder / "figures").mkdir()
            for stem, png in pngs.items():
                (folder / "figures" / f"{stem}.png").write_bytes(png)
            frames = [self._frame(record["generation"]) for record in records]
            pictures = [frame for frame in frames if frame is not None]
            if final and len(pictures) > 1:
                (folder / "figures" / "values.gif").write_bytes(figures.animation(pictures))
            self._client.log_artifacts(self._id, str(folder))
        self._register(records[-1]["generation"])

    def end(self, status: str) -> None:
        """Closes the run in MLflow: FINISHED, FAILED or KILLED."""
        self._client.set_terminated(self._id, status)

    def links(self) -> str:
        """Where to look, in words."""
        page = f"/#/experiments/{self._experiment}/runs/{self._id}?workflowType=machine_learning"
        if self._uri.startswith("http"):
            return f"  MLflow: {self._uri.rstrip('/')}{page}"
        root = self._run.storage.local
        here = root == Path("runs").resolve() and Path("Makefile").exists()
        show = "make ui" if here else f"selfplay ui --root {root}"
        return f"  MLflow: {show}   then http://127.0.0.1:5000{page}"

    def _connect(self) -> None:
        import mlflow

        with _initialised(self._uri):
            mlflow.set_tracking_uri(self._uri)
            client = mlflow.MlflowClient()
            self._experiment = experiment_id(client, self._run.storage, self._run.config)
        path = f"{self._run.name}/tracking.json"
        storage = self._run.storage
        known = _known(storage, path)
        if self._uri in known and _there(client, known[self._uri]):
            self._id = known[self._uri]
            client.update_run(self._id, status="RUNNING")
            history = client.get_metric_history(self._id, "generation")
            self._sent = max((int(point.value) for point in history), default=-1)
        else:
            self._id = self._create(client)
            storage.write(path, json.dumps({**known, self._uri: self._id}, indent=1))
            self._sent = -1
        self._client = client

    def _create(self, client: Any) -> str:
        from mlflow.entities import Param

        tags = {"code": code_version(), "game": self._run.config.game_name}
        if self._parent:
            tags["mlflow.parentRunId"] = self._parent
        run = client.create_run(self._experiment, run_name=self._run.name, tags=tags)
        settings = flatten(to_dict(self._run.config))
        client.log_batch(
            run.info.run_id,
            params=[Param(key, _short(value)) for key, value in settings.items()],
        )
        return run.info.run_id

    def _send(self, record: dict) -> None:
        """A generation's policy, pages and picture, then, in one request, its numbers: what the
        server has numbers of, it has whole."""
        from mlflow.entities import Metric
        from PIL import Image

        from pipeline import figures

        generation = record["generation"]
        with tempfile.TemporaryDirectory() as name:
            for file in ("policy.json", "arrays.npz"):
                data = self._run.storage.read(f"{self._run.folder(generation)}/policy/{file}")
                (Path(name) / file).write_bytes(data)
            self._client.log_artifacts(self._id, name, f"policies/{generation:04d}")
            kind = json.loads((Path(name) / "policy.json").read_text())["kind"]
        self._send_pages(kind, generation)
        self._send_game(generation)
        picture = figures.value_bars(self._solution, record, self._game.title)
        if picture is not None:
            path = f"{self._run.folder(generation)}/values.png"
            self._run.storage.write(path, picture)
            with Image.open(io.BytesIO(picture)) as image:
                self._client.log_image(
                    self._id, image.convert("RGB"), key="values", step=generation
                )
        stamp = int(record["time"] * 1000)
        self._client.log_batch(
            self._id,
            metrics=[
                Metric(key, value, stamp, generation) for key, value in metrics_of(record).items()
            ],
        )

    def _send_pages(self, kind: str, generation: int) -> None:
        """What makes a policy readable, if it is of a kind that can be read. Numbers do not wait
        for it: where a file that it reads is damaged, there is a warning instead."""
        if kind not in _PAGES:
            return
        where, pages = _PAGES[kind]
        try:
            files = pages(self._run, generation)
        except UserError as error:
            print(f"warning: no pages of generation {generation}: {error}", file=sys.stderr)
            return
        if files:
            with tempfile.TemporaryDirectory() as name:
                for file, data in files.items():
                    (Path(name) / file).write_bytes(data)
                self._client.log_artifacts(self._id, name, f"{where}/{generation:04d}")

    def _send_game(self, generation: int) -> None:
        """The first game of a generation, as a transcript and its end as a picture, of games that
        draw pictures. Numbers do not wait for it either."""
        if self._game.state_to_svg is None or generation == 0:
            return
        try:
            game, shard = replay.found(self._run, generation, 0)
            files = {
                "transcript.txt": replay.transcript(game, shard, 0, brief=True),
                "end.svg": replay.picture(game, shard, 0),
            }
        except UserError as error:
            print(f"warning: no game of generation {generation}: {error}", file=sys.stderr)
            return
        for file, text in files.items():
            self._client.log_text(self._id, text, f"games/{generation:04d}/{file}")

    def _frame(self, generation: int) -> bytes | None:
        path = f"{self._run.folder(generation)}/values.png"
        return self._run.storage.read(path) if self._run.storage.exists(path) else None

    def _register(self, generation: int) -> None:
        """The champion as a model version with the alias `champion`."""
        import mlflow
        from mlflow.models import ModelSignature
        from mlflow.types.schema import ColSpec, Schema

        champion = self._run.champion(generation)
        name = f"selfplay-{self._run.config.game_name}"
        assert champion.path is not None and champion.digest is not None
        with tempfile.TemporaryDirectory() as folder:
            policy, script = Path(folder) / "policy", Path(folder) / "champion.py"
            policy.mkdir()
            for file in ("policy.json", "arrays.npz"):
                (policy / file).write_bytes(self._run.storage.read(f"{champion.path}/{file}"))
            script.write_text(
                "from mlflow.models import set_model\n\n"
                "from pipeline.tracking import champion_model\n\n"
                "set_model(champion_model())\n"
            )
            # MLflow warns that `predict` has no type hints and tells each step on stderr.
            with redirect_stderr(io.StringIO()), mlflow.start_run(run_id=self._id):
                info = mlflow.pyfunc.log_model(
                    name="champion",
                    python_model=str(script),
                    artifacts={"policy": str(policy)},
                    signature=ModelSignature(Schema([ColSpec("string")])),
                    pip_requirements=[f"selfplay=={code_version().split('+')[0]}"],
                    registered_model_name=name,
                )
        version = str(info.registered_model_version)
        tags = {
            "run": self._run.name,
            "generation": str(generation),
            "policy": champion.name,
            "sha256": champion.digest,
        }
        for key, value in tags.items():
            self._client.set_model_version_tag(name, version, key, value)
        self._client.set_registered_model_alias(name, "champion", version)
        self._client.update_run(self._id, status="RUNNING")  # start_run has closed it


def _known(storage: Storage, path: str) -> dict[str, str]:
    """MLflow's ids of a run, by tracking URI.

    Raises:
        RunError: the file is damaged; another id would show the run twice.
    """
    if not storage.exists(path):
        return {}
    try:
        return dict(json.loads(storage.read(path)))
    except (ValueError, TypeError) as error:
        raise RunError(
            f"{storage.where(path)} is damaged; restore it, or delete it to send the run anew"
        ) from error


def _there(client: Any, run_id: str) -> bool:
    """False if MLflow knows no such run any more, as with a fresh database."""
    from mlflow.exceptions import MlflowException

    try:
        client.get_run(run_id)
    except MlflowException as error:
        if error.error_code != "RESOURCE_DOES_NOT_EXIST":
            raise
        return False
    return True


@contextmanager
def _alone(run: Run, timeout: float = -1) -> Iterator[None]:
    """One process sends a run: two would each send what the other has not sent yet.

    Raises:
        RunError: another one sends it, for longer than `timeout` seconds.
    """
    if run.storage.local is None:
        yield
        return
    try:
        with FileLock(run.storage.local / run.name / ".tracking.lock", timeout=timeout):
            yield
    except Timeout as error:
        raise RunError(
            f"the numbers of run {run.name} are being sent by another process; wait for it"
        ) from error


@contextmanager
def _initialised(uri: str) -> Iterator[None]:
    """One process at a time creates the tables of a fresh SQLite file; two at once would crash."""
    if uri.startswith("sqlite:///"):
        file = Path(uri.removeprefix("sqlite:///"))
        file.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(file.with_name(f".{file.name}.lock")):
            yield
    else:
        yield


def experiment_id(client: Any, storage: Storage, config: Any) -> str:
    """The MLflow experiment of the configured name, made if need be."""
    name = config.tracking.experiment
    found = client.get_experiment_by_name(name)
    if found is not None:
        return found.experiment_id
    place = None
    if config.tracking.uri is None:
        place = (Path(storage.local or ".") / "mlartifacts").as_uri()
    return client.create_experiment(name, artifact_location=place)


def _short(value: Any) -> str:
    """A parameter's value as MLflow keeps it: at most 6,000 characters."""
    text = value if isinstance(value, str) else json.dumps(value)
    return text[:6000]


def metrics_of(record: dict) -> dict[str, float]:
    """The numbers of a generation that MLflow draws as curves; about forty, all finite.

    Scores count a draw as half a win; `_lo` and `_hi` are the ends of the 95% Wilson interval.
    """
    metrics: dict[str, float | None] = {"generation": record["generation"]}
    learner = record["learner"]
    metrics["loss/train"] = learner.get("loss_train")
    metrics["loss/held_out"] = learner.get("loss_held_out")
    metrics |= {f"trees/{name}": learner.get(name) for name in _OF_TREES}
    rows = [row for row in record["evaluation"] if row["opponent"] != "ancestor"]
    for row in rows:
        key = f"eval/{row['opponent']}"
        metrics |= {key: row["score"], f"{key}_lo": row["low"], f"{key}_hi": row["high"]}
    past = [row for row in record["evaluation"] if row["opponent"] == "ancestor"]
    if past:
        games = sum(row["n"] for row in past)
        metrics["eval/ancestors"] = sum(row["score"] * row["n"] for row in past) / games
    asked = [row["oracle"] for row in record["evaluation"] if "oracle" in row]
    for name, right, of in (
        ("oracle/all_kept", "kept", "decisions"),
        ("oracle/contested_kept", "kept_contested", "contested"),
    ):
        decisions = sum(counts[of] for counts in asked)
        if decisions:
            metrics[name] = sum(counts[right] for counts in asked) / decisions
    solution = record["solution"] or {}
    metrics["solved/optimal"] = solution.get("optimal")
    metrics["solved/all_weak"] = solution.get("weak")
    metrics["solved/all_strong"] = solution.get("strong")
    metrics["solved/contested_weak"] = solution.get("weak_contested")
    metrics["solved/sign_right"] = solution.get("sign_accuracy")
    gate = record.get("gate")
    if gate:
        metrics["gate/promoted"] = gate["decision"] == "promoted"
        metrics |= {f"gate/{key}": gate.get(key) for key in ("score", "games", "llr")}
    rated = record.get("ratings")
    if rated:
        mine = [each for each in rated["players"] if each["player"] == record["policy"]]
        for each in mine:
            metrics["rating/policy"] = each["rating"]
            metrics |= {"rating/policy_lo": each["low"], "rating/policy_hi": each["high"]}
        metrics["rating/first_player"] = rated["first_player"][0]
    play = record["selfplay"]
    if play is not None:
        metrics |= {
            "play/game_length": play["plies"] / play["games"],
            "play/games_per_s": play["games_per_second"],
            "play/decisions_per_s": play["decisions_per_second"],
            "play/bytes_per_game": play["bytes"] / play["games"],
            "play/explored": play["explored"] / max(play["decisions"], 1),
            "play/opening_entropy": play.get("opening_entropy"),
            "play/duplicates": learner.get("duplicate_states"),
            "play/illegal": play["illegal"],
            "play/lost_tasks": record.get("lost_tasks"),
        }
    metrics |= {f"time/{name}": value for name, value in record["seconds"].items()}
    return {key: float(value) for key, value in metrics.items() if value is not None}


def champion_model() -> Any:
    """The pyfunc model around a saved policy; see docs/mlflow.md."""
    import mlflow
    import numpy as np
    import pandas as pd

    class ChampionModel(mlflow.pyfunc.PythonModel):
        """predict: positions in the game's text form -> the action, its text and its value."""

        def load_context(self, context: Any) -> None:
            folder = Path(context.artifacts["policy"])
            spec = json.loads((folder / "policy.json").read_text())
            self._game = make_game_from({"name": spec["game"], **spec["params"]})
            source = PolicySource("champion", folder.name)
            self._policy = load_policy(Storage(str(folder.parent)), source, self._game)

        # Without type hints, because MLflow would take its signature from them.
        def predict(self, context, model_input, params=None):
            game = self._game
            # A list of texts reaches us as a table with one column.
            texts = model_input.iloc[:, 0] if hasattr(model_input, "columns") else model_input
            states = np.concatenate(
                [np.zeros(0, game.state_dtype)]
                + [game.state_from_text(game.rules, text) for text in texts]
            )
            actions = np.full(len(states), -1)
            values = game.returns_of(states)[:, 0].astype(float)
            open_ = game.legal_of(states).any(1)
            keys = game_keys(0, "champion", 0, np.arange(int(open_.sum())))
            rng = Streams(keys, np.zeros(len(keys), np.int32))
            some = states[open_]
            decisions = self._policy.act(game, some, game.legal_of(some), rng)
            actions[open_], values[open_] = decisions.actions, decisions.values
            words = [game.action_to_text(game.rules, int(a)) if a >= 0 else "" for a in actions]
            return pd.DataFrame({"action": actions, "action_text": words, "value": values})

    return ChampionModel()


def sync(run: Run, out: Any = sys.stdout) -> None:
    """Brings a run to MLflow at once: what is missing, the figures, the report, the champion.

    Raises:
        UserError: the server cannot be reached.
    """
    import mlflow

    sender = Sender(run)
    try:
        with _alone(run, timeout=0):
            sender.sync()
            sender.summarise(final=True)
            sender.end("FINISHED")
    except (mlflow.exceptions.MlflowException, OSError) as error:
        raise UserError(f"MLflow at {sender._uri} cannot be reached: {_first(error)}") from error
    print(sender.links(), file=out)


def _first(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def parent_run(root: str, config: Any, name: str, path: str | None = None) -> str | None:
    """The MLflow run under which others are filed, of a sweep or a study; its id.

    Args:
        path: a file with its ids by tracking URI, so that it is the same one every time; None: it
            is made anew.

    Returns:
        None where tracking is off or MLflow is away, of which a warning tells.

    Raises:
        RunError: the file is damaged.
    """
    if not config.tracking.enabled:
        return None
    storage = Storage(root)
    uri = tracking_uri(storage, config.tracking.uri)
    known = _known(storage, path) if path else {}
    parent: str | None = None
    with _reaching(uri, "the runs are filed under none of their own") as client:
        with _initialised(uri):
            experiment = experiment_id(client, storage, config)
        if uri in known and _there(client, known[uri]):
            return known[uri]
        run = client.create_run(experiment, run_name=name, tags={"sweep": name})
        parent = run.info.run_id
    if path and parent:
        storage.write(path, json.dumps({**known, uri: parent}, indent=1))
    return parent


def close_parent(
    root: str,
    config: Any,
    parent: str,
    table: str,
    best: dict[str, float],
    files: Mapping[str, bytes] | None = None,
) -> None:
    """Files a sweep's table with its parent run, more files if there are any, and closes it. They
    are on disk as well, so a server that is away costs a warning."""
    uri = tracking_uri(Storage(root), config.tracking.uri)
    with _reaching(uri, "the table is on disk alone") as client:
        client.log_text(parent, table, "jobs.md")
        for key, value in best.items():
            client.log_metric(parent, key, value)
        with tempfile.TemporaryDirectory() as folder:
            for name, data in (files or {}).items():
                (Path(folder) / name).write_bytes(data)
            client.log_artifacts(parent, folder)
        client.set_terminated(parent)


@contextmanager
def _reaching(uri: str, otherwise: str) -> Iterator[Any]:
    """A client that gives up on a server soon; where that is away or has lost what is asked for, a
    warning says so and the block ends."""
    before = {name: os.environ.get(name) for name in _QUIET}
    os.environ.update(_QUIET)
    import mlflow  # how much it logs is decided here

    try:
        mlflow.set_tracking_uri(uri)
        yield mlflow.MlflowClient()
    except (mlflow.exceptions.MlflowException, OSError) as error:
        print(
            f"warning: MLflow at {uri} is away ({_first(error)}); {otherwise}",
            file=sys.stderr,
            flush=True,
        )
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _main(root: str, name: str, parent: str | None = None) -> None:
    """Sends whenever the driver says so, and once more whenever a server was away."""
    import logging

    os.nice(19)  # only what training leaves over
    run = Run.open(root, name)
    config = run.config.tracking
    import mlflow

    logging.getLogger("alembic").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="mlflow")
    away = (mlflow.exceptions.MlflowException, OSError)
    sender = Sender(run, parent)
    ending: str | None = None
    warned = behind = False
    summarised = 0
    while ending is None:
        ready, _, _ = select.select([sys.stdin], [], [], _RETRY_PAUSE if behind else None)
        if ready:
            # Whatever was said meanwhile is one sync; the last word counts.
            words = os.read(sys.stdin.fileno(), 65536).decode().split()
            ending = next((word for word in words if word != "new"), None if words else "gone")
        try:
            sender.sync()
            if sender._sent - summarised >= config.register_every and ending is None:
                sender.summarise(final=False)
                summarised = sender._sent
            behind = False
        except away as error:
            behind = True
            if not warned:
                warned = True
                print(
                    f"warning: MLflow at {sender._uri} is away ({_first(error)}); training goes on "
                    "and its numbers are kept",
                    file=sys.stderr,
                    flush=True,
                )
    status = {"finish": "FINISHED", "failed": "FAILED", "killed": "KILLED", "gone": "KILLED"}
    deadline = time.monotonic() + (config.patience if ending == "finish" else 0.0)
    while True:
        try:
            sender.sync()
            sender.summarise(final=True)
            sender.end(status[ending])
            break
        except away as error:
            if time.monotonic() > deadline:
                print(
                    f"warning: MLflow at {sender._uri} is still away ({_first(error)}); once it is "
                    f"back: selfplay runs sync {name} --root {root}",
                    file=sys.stderr,
                )
                return
            time.sleep(_RETRY_PAUSE)
    if ending == "finish":
        print(f"  report: {run.storage.where(name)}/report.html\n{sender.links()}", flush=True)


if __name__ == "__main__":
    try:
        with _alone(Run.open(*sys.argv[1:3])):
            _main(*sys.argv[1:])
    except UserError as error:
        sys.exit(f"warning: {error}")
