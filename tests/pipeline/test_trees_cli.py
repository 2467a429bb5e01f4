"""`selfplay trees` on a run that was really trained."""

import json
import re
from pathlib import Path

import pytest
import yaml
from small_runs import small_config

from pipeline import trees_cli
from pipeline.config import make_game_from
from pipeline.errors import UserError
from pipeline.report import run_figures
from pipeline.run import Run
from pipeline.traces import read_shard
from pipeline.tracking import metrics_of
from pipeline.train import train

_LEARNER = Path(__file__).resolve().parents[2] / "conf" / "learner" / "model_trees.yaml"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """Two generations of SumTo20 by model trees in `trees`, none by a network in `network`."""
    folder = tmp_path_factory.mktemp("runs")
    learner = {**yaml.safe_load(_LEARNER.read_text()), "min_games": 60}
    train(small_config(folder, "trees", learner=learner))
    train(small_config(folder, "network", generations=1, selfplay__games=50))
    return folder


def printed(root, capsys, *words: str) -> str:
    trees_cli.main([*words, "--root", str(root)])
    return capsys.readouterr().out


def refused(root, *words: str) -> str:
    with pytest.raises(UserError) as error:
        trees_cli.main([*words, "--root", str(root)])
    return str(error.value)


def test_summary_has_a_line_per_action_and_the_most_used_features(root, capsys):
    text = printed(root, capsys, "summary", "trees")
    rows = Run.open(str(root), "trees").table(2, "trees")
    assert [row["text"] for row in rows] == ["+1", "+2", "+3", "+4"]
    for row in rows:
        line = next(line for line in text.splitlines() if line.startswith(row["text"]))
        assert f"{row['rows']:,}" in line and f"{row['leaves']:.1f}" in line
    used = re.findall(r"^(sum is \d+) +(\d+\.\d)% +(\d+\.\d)% +(\d+\.\d)%$", text, re.M)
    total = [float(tests) + float(slopes) for _, tests, slopes, _ in used]
    assert used and total == sorted(total, reverse=True)


def test_show_prints_every_tree_of_an_action(root, capsys):
    text = printed(root, capsys, "show", "trees", "--action", "+2")
    [count] = set(re.findall(r"^tree \d+ of (\d+)$", text, re.M))
    assert text.count("\ntree ") + 1 == int(count)
    assert "rows" in text and "mean" in text
    assert "one of +1, +2, +3, +4; got '+9'" in refused(root, "show", "trees", "--action", "+9")
    assert "show needs --action" in refused(root, "show", "trees")


def test_explain_a_position_and_one_of_a_recorded_game(root, capsys):
    text = printed(root, capsys, "explain", "trees", "--position", "17")
    values = re.findall(r"^([+-]\d\.\d{3}) (\+\d)", text, re.M)
    assert {action for _, action in values} == {"+1", "+2", "+3"}  # 4 would pass the target
    numbers = [float(value) for value, _ in values]
    assert numbers == sorted(numbers, reverse=True)
    assert f"{values[0][1]} over {values[1][1]}: " in text
    text = printed(root, capsys, "explain", "trees", "--game", "60", "--ply", "1")
    assert re.match(r"sum [1-4] of 20, player 1 to move, ply 1\n", text)


def test_what_cannot_be_explained_is_refused_in_a_sentence(root):
    explain = ("explain", "trees")
    assert "no position of this game" in refused(root, *explain, "--position", "99")
    assert "nobody decides" in refused(root, *explain, "--position", "20")
    assert "generation 2 of run trees has games 0..149, not 150" in refused(
        root, *explain, "--game", "150"
    )
    run = Run.open(str(root), "trees")
    entry = run.shard_of_game(2, 0)
    shard = read_shard(run.storage, make_game_from(run.config.game), entry["path"])
    last = shard.traces.ply[shard.traces.game == 0].max()
    told = refused(root, *explain, "--game", "0", "--ply", "77")
    assert told == f"game 0 of generation 2 has no decision at ply 77; the nearest: {last}"
    assert "its policy played those of the next one" in refused(
        root, *explain, "--game", "0", "--of", "0"
    )
    assert "no trees yet" in refused(root, *explain, "--position", "3", "--generation", "0")
    assert "not complete" in refused(root, *explain, "--position", "3", "--generation", "9")
    assert "grows no trees" in refused(root, "summary", "network")
    for words in (explain, ("pages", "trees"), (*explain, "--position", "3", "--game", "1")):
        with pytest.raises(SystemExit):
            trees_cli.main([*words, "--root", str(root)])


def test_pages_are_written_to_a_folder(root, capsys, tmp_path):
    out = printed(root, capsys, "pages", "trees", "--out", str(tmp_path / "new" / "pages"))
    page = Path(out.strip())
    text = page.read_text()
    [data] = re.findall(r'<script type="application/json" id=data>(.*?)</script>', text, re.S)
    read = json.loads(data)
    assert (read["generation"], read["before"]) == (2, 1) and len(read["positions"]) > 10
    pictures = {file.name for file in page.parent.iterdir()} - {"index.html"}
    assert pictures and all(name.endswith(".svg") for name in pictures)


def test_a_damaged_table_is_refused_by_name(root, tmp_path):
    run = Run.open(str(root), "trees")
    assert run.table(0, "trees") == [] and len(run.table(1, "trees")) == 4
    path = root / "trees" / "generations" / "0001" / "trees.parquet"
    whole = path.read_bytes()
    try:
        path.write_bytes(whole[:-20])
        with pytest.raises(UserError, match=r"0001/trees\.parquet is damaged"):
            run.table(1, "trees")
    finally:
        path.write_bytes(whole)


def test_the_figure_of_trees_is_among_the_figures_of_a_run(root):
    runs = [Run.open(str(root), name) for name in ("trees", "network")]
    drawn = [run_figures(run, make_game_from(run.config.game), run.records()) for run in runs]
    for name in ("trees", "fitted"):
        assert name in drawn[0] and name not in drawn[1]


def test_sizes_and_errors_of_trees_are_metrics(root):
    runs = [Run.open(str(root), name) for name in ("trees", "network")]
    metrics, of_network = (metrics_of(run.records()[-1]) for run in runs)
    table = runs[0].table(2, "trees")
    assert metrics["trees/leaves"] == sum(row["leaves"] for row in table) / len(table)
    assert metrics["trees/depth"] == max(row["depth"] for row in table)
    names = {"leaves", "depth", "pooled", "gap", "residual", "drift", "label_drift"}
    names |= {"clipped", "sweeps"}
    learner = runs[0].records()[-1]["learner"]
    own = {key: value for key, value in metrics.items() if key.startswith("trees/")}
    assert own == {f"trees/{name}": learner[name] for name in names}
    assert not any(key.startswith("trees/") for key in of_network)
