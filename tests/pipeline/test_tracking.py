"""What reaches MLflow: every number once, whatever happens to the server meanwhile."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import pytest
from small_runs import small_config

from pipeline import tracking
from pipeline.errors import ConfigError, RunError
from pipeline.run import Run
from pipeline.storage import Storage
from pipeline.train import train

pytestmark = pytest.mark.filterwarnings("ignore")  # of mlflow and its libraries


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Server:
    """A real MLflow server that can be killed and started again on its data."""

    def __init__(self, folder, port: int):
        self.uri = f"http://127.0.0.1:{port}"
        self._command = [sys.executable, "-m", "mlflow", "server", "--workers", "1"]
        self._command += ["--host", "127.0.0.1", "--port", str(port)]
        self._command += ["--backend-store-uri", f"sqlite:///{folder}/server.db"]
        self._command += ["--artifacts-destination", f"{folder}/artifacts"]
        self._process: subprocess.Popen | None = None

    def start(self) -> None:
        environment = {**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
        self._process = subprocess.Popen(
            self._command,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        for _ in range(600):
            try:
                urllib.request.urlopen(f"{self.uri}/health", timeout=1).close()
                return
            except OSError:
                time.sleep(0.2)
        raise RuntimeError("the MLflow server did not come up")

    def kill(self) -> None:
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None


@pytest.fixture
def server(tmp_path):
    one = Server(tmp_path, free_port())
    yield one
    one.kill()


def history(uri: str, run_id: str, key: str) -> list[tuple[int, float]]:
    import mlflow

    client = mlflow.MlflowClient(tracking_uri=uri)
    return [(point.step, point.value) for point in client.get_metric_history(run_id, key)]


def run_id_of(root, name: str, uri: str) -> str:
    import json

    return json.loads((root / name / "tracking.json").read_text())[uri]


def assert_every_number_is_there_once(uri: str, run: Run, run_id: str) -> None:
    expected: dict[str, list[tuple[int, float]]] = {}
    for record in run.records():
        for key, value in tracking.metrics_of(record).items():
            expected.setdefault(key, []).append((record["generation"], value))
    for key, points in expected.items():
        assert sorted(history(uri, run_id, key)) == points, key


def test_a_run_on_sqlite_is_complete_and_continues_as_one_run(tmp_path, capfd):
    import mlflow

    config = {"tracking__enabled": True}
    train(small_config(tmp_path, "run", generations=2, **config))
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    run_id = run_id_of(tmp_path, "run", uri)
    train(small_config(tmp_path, "run", generations=3, **config))
    assert run_id_of(tmp_path, "run", uri) == run_id
    run = Run.open(str(tmp_path), "run")
    assert [record["generation"] for record in run.records()] == [0, 1, 2, 3]
    assert_every_number_is_there_once(uri, run, run_id)

    client = mlflow.MlflowClient(tracking_uri=uri)
    logged = client.get_run(run_id)
    assert logged.info.status == "FINISHED"
    assert logged.data.params["game.target"] == "20"
    assert logged.data.params["learner.hidden"] == "[16]"
    files = {file.path for file in client.list_artifacts(run_id)}
    assert {"config.yaml", "report.html", "figures", "policies"} <= files
    policies = {file.path for file in client.list_artifacts(run_id, "policies")}
    assert policies == {f"policies/{generation:04d}" for generation in range(4)}
    figures = {file.path for file in client.list_artifacts(run_id, "figures")}
    assert {"figures/values.gif", "figures/loss.png", "figures/win_rates.png"} <= figures
    images = [file.path for file in client.list_artifacts(run_id, "images")]
    steps = sorted(image.split("step+")[1][0] for image in images if image.endswith(".png"))
    assert steps == ["0", "1", "2", "3"]
    assert "report.html" in capfd.readouterr().out


def test_the_champion_is_registered_and_plays_positions_in_text_form(tmp_path, capfd):
    import mlflow

    train(small_config(tmp_path, "run", generations=2, tracking__enabled=True))
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/mlflow.db")
    client = mlflow.MlflowClient()
    version = client.get_model_version_by_alias("selfplay-sumto", "champion")
    run = Run.open(str(tmp_path), "run")
    assert version.tags["sha256"] == run.champion(2).digest
    assert version.tags["generation"] == "2"
    model = mlflow.pyfunc.load_model("models:/selfplay-sumto@champion")
    answers = model.predict(["17", "16", "19", "sum 20 of 20, player 1 has won, ply 6"])
    # From 17 and 16 a step to 20 wins at once (+3, +4); from 19 there is one action; 20 is the end,
    # player 0's loss.
    assert answers["action_text"].tolist() == ["+3", "+4", "+1", ""]
    assert answers["value"].tolist() == [1.0, 1.0, 1.0, -1.0]
    import pandas as pd

    again = model.predict(pd.DataFrame({"state": ["17"]}))
    assert again["action_text"].tolist() == ["+3"]


def test_a_server_that_is_killed_and_comes_back_misses_nothing(tmp_path, server, capfd):
    server.start()
    config = small_config(
        tmp_path,
        "run",
        generations=6,
        tracking__enabled=True,
        tracking__uri=server.uri,
        tracking__patience=120.0,
    )
    run = Run.start(config)
    from pipeline.train import Loop, make_backend

    with run, tracking.Tracker(run) as tracker, make_backend(config.cluster) as backend:
        loop = Loop(run, backend)
        loop.begin()
        tracker.wake()
        for generation in range(1, 7):
            if generation == 3:
                server.kill()
            loop.generation(generation)
            tracker.wake()
            if generation == 5:
                server.start()
        tracker.finish()
    run_id = run_id_of(tmp_path, "run", server.uri)
    assert_every_number_is_there_once(server.uri, run, run_id)


def test_a_server_that_never_answers_stops_nothing_and_can_be_sent_to_later(
    tmp_path, server, capfd
):
    config = small_config(
        tmp_path,
        "run",
        generations=2,
        tracking__enabled=True,
        tracking__uri=server.uri,
        tracking__patience=0.0,
    )
    train(config)
    assert "selfplay runs sync run" in capfd.readouterr().err
    server.start()
    run = Run.open(str(tmp_path), "run")
    tracking.sync(run)
    assert_every_number_is_there_once(server.uri, run, run_id_of(tmp_path, "run", server.uri))


def test_a_root_in_the_cloud_needs_a_tracking_uri():
    storage = Storage("mock://somewhere/runs")
    with pytest.raises(ConfigError, match=r"tracking\.uri must be set"):
        tracking.tracking_uri(storage, None)
    assert tracking.tracking_uri(storage, "http://there") == "http://there"


def test_about_forty_numbers_a_generation_none_a_prefix_of_another_folder(tmp_path):
    train(small_config(tmp_path, "run"))
    keys = set(tracking.metrics_of(Run.open(str(tmp_path), "run").records()[-1]))
    assert {"eval/random", "eval/random_lo", "loss/held_out", "play/illegal"} <= keys
    assert len(keys) <= 44
    assert not any(other.startswith(f"{key}/") for key in keys for other in keys)


def test_a_parent_is_one_for_every_store_and_a_server_that_is_away_costs_a_warning(
    tmp_path, capsys
):
    config = small_config(tmp_path, "small", tracking__enabled=True)
    ids = {}
    for uri in (None, f"sqlite:///{tmp_path}/other.db", None):
        config.tracking.uri = uri
        parent = tracking.parent_run(config.root, config, "paper", "tournaments/paper/mlflow.json")
        assert parent is not None and ids.setdefault(uri, parent) == parent
    assert len(set(ids.values())) == 2
    capsys.readouterr()
    config.tracking.uri = f"http://127.0.0.1:{free_port()}"
    assert (
        tracking.parent_run(config.root, config, "paper", "tournaments/paper/mlflow.json") is None
    )
    tracking.close_parent(config.root, config, ids[None], "| table |", {"best": 1.0})
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith(f"warning: MLflow at {config.tracking.uri} is away")
    assert second.startswith(f"warning: MLflow at {config.tracking.uri} is away")
    file = tmp_path / "tournaments" / "paper" / "mlflow.json"
    file.write_text(file.read_text()[:-4])
    with pytest.raises(RunError, match=r"mlflow\.json is damaged; restore it, or delete it"):
        tracking.parent_run(config.root, config, "paper", "tournaments/paper/mlflow.json")
