"""What MLflow gets of a run that learns with model trees."""

import json
import sys
from pathlib import Path

import pytest
import yaml

from pipeline import tracking
from pipeline.run import Run
from pipeline.train import train

sys.path.insert(0, str(Path(__file__).parents[1] / "pipeline"))
from small_runs import small_config

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # of mlflow and its libraries
]
_LEARNER = Path(__file__).resolve().parents[2] / "conf" / "learner" / "model_trees.yaml"


def test_mlflow_gets_the_pages_of_every_generation_that_has_trees(tmp_path, capsys):
    import mlflow

    train(small_config(tmp_path, "trees", learner=yaml.safe_load(_LEARNER.read_text())))
    run = Run.open(str(tmp_path), "trees")
    # A damaged file costs the pages that read it, not the numbers.
    shard = tmp_path / run.manifest(1)["shards"][0]["path"]
    shard.write_bytes(shard.read_bytes()[:-20])
    tracking.Sender(run).sync()
    assert "no pages of generation 1" in capsys.readouterr().err
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    run_id = json.loads((tmp_path / "trees" / "tracking.json").read_text())[uri]
    client = mlflow.MlflowClient(tracking_uri=uri)
    # Generation 0 has no trees.
    assert [file.path for file in client.list_artifacts(run_id, "trees")] == ["trees/0002"]
    files = {file.path for file in client.list_artifacts(run_id, "trees/0002")}
    assert "trees/0002/index.html" in files and any(name.endswith(".svg") for name in files)
    history = client.get_metric_history(run_id, "generation")
    assert sorted(point.step for point in history) == [0, 1, 2]
