"""A recorded game as a transcript and a picture, on the command line and in MLflow."""

from xml.etree import ElementTree

import pytest
from small_runs import small_config

from games import make_game
from pipeline import replay, traces_cli, tracking
from pipeline.errors import UserError
from pipeline.run import Run
from pipeline.train import train

pytestmark = pytest.mark.filterwarnings("ignore")  # of mlflow and its libraries

ISLANDS = make_game("catan", points_to_win=3, turn_limit=60, trading="bank")
CATAN = {
    "game": {"name": "catan", **ISLANDS.params},
    "generations": 1,
    "selfplay__games": 6,
    "selfplay__games_per_shard": 3,
    "evaluation__games": 4,
    "evaluation__predecessor": False,
    "evaluation__baselines": [],
}


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """(root, run): one generation of short games of Catan."""
    root = tmp_path_factory.mktemp("runs")
    train(small_config(root, "islands", **CATAN))
    return root, Run.open(str(root), "islands")


def test_a_brief_game_is_its_start_a_line_for_every_choice_and_its_end(played, tmp_path, capsys):
    root, run = played
    file = tmp_path / "end.svg"
    traces_cli.main(
        ["show", "islands", "--root", str(root), "--game", "4", "--brief", "--svg", str(file)]
    )
    lines = capsys.readouterr().out.splitlines()
    game, shard = replay.found(run, 1, 4)
    plies = [int(line.split()[0]) for line in lines if line[:5].strip().isdigit()]
    every = list(replay.choices(game, shard, 4))
    assert [ply for ply in plies] == list(range(len(every)))
    assert lines[0] == "generation 1, game 4"
    assert sum(line.startswith("turn ") for line in lines) == 2  # the start and the end
    assert any("player 0 rolls" in line for line in lines)
    assert lines[-1].startswith("returns: player 0 +")
    assert ElementTree.fromstring(file.read_text()).tag.endswith("svg")


def test_a_game_without_pictures_says_so(tmp_path):
    train(small_config(tmp_path, "sums", generations=1))
    with pytest.raises(UserError, match="game sumto draws no pictures"):
        traces_cli.main(["show", "sums", "--root", str(tmp_path), "--svg", "end.svg"])
    text = replay.transcript(*replay.found(Run.open(str(tmp_path), "sums"), 1, 0), 0, brief=True)
    assert "\n    0  player 0: +" in text


def test_mlflow_has_the_first_game_of_every_generation(played):
    import mlflow

    root, run = played
    tracking.sync(run)
    client = mlflow.MlflowClient(tracking_uri=f"sqlite:///{root}/mlflow.db")
    [found] = client.search_runs([client.get_experiment_by_name("selfplay").experiment_id])
    files = {file.path for file in client.list_artifacts(found.info.run_id, "games/0001")}
    assert files == {"games/0001/end.svg", "games/0001/transcript.txt"}


def test_a_damaged_shard_costs_the_game_and_not_the_numbers(tmp_path, capfd):
    train(small_config(tmp_path, "islands", **CATAN))
    run = Run.open(str(tmp_path), "islands")
    path = tmp_path / run.manifest(1)["shards"][0]["path"]
    path.write_bytes(path.read_bytes()[:-9])
    tracking.sync(run)
    assert "warning: no game of generation 1" in capfd.readouterr().err
