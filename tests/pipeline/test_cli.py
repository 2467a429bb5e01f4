"""The command line as a person meets it: real processes, real files."""

import socket
import subprocess
import sys

import pytest
from hydra.core.global_hydra import GlobalHydra

from pipeline import cli

SMALL = [
    "game.target=20",
    "game.max_step=4",
    "learner.hidden=[16]",
    "selfplay.games=100",
    "selfplay.games_per_shard=50",
    "evaluation.games=20",
    "generations=2",
    "cluster=serial",
    "tracking=none",
]


def selfplay(folder, *arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-c", "from pipeline.cli import main; main()", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a run named `one`, as a newcomer would have made it."""
    folder = tmp_path_factory.mktemp("work")
    done = selfplay(folder, "train", "run=one", *SMALL)
    assert done.returncode == 0, done.stderr
    return folder


def test_training_prints_a_line_per_generation_and_writes_only_under_the_root(folder):
    again = selfplay(folder, "train", "run=two", *SMALL)
    assert again.stdout.splitlines()[0].startswith("run two starts: sumto")
    lines = [line for line in again.stdout.splitlines() if line.startswith("generation ")]
    assert [line.split()[1] for line in lines] == ["0/2", "1/2", "2/2"]
    assert "win_or_random" in lines[0] and lines[0].endswith(" s")
    assert "Traceback" not in again.stderr
    assert [path.name for path in folder.iterdir()] == ["runs"]


def test_the_same_command_again_has_nothing_left_to_do(folder):
    again = selfplay(folder, "train", "run=one", *SMALL)
    assert again.returncode == 0
    assert "continues after generation 2" in again.stdout
    assert "all its generations are done" in again.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["learner.lrr=3"], "there is no key 'learner.lrr' in the configuration"),
        (["+learner.lrr=3"], "learner.lrr: Key 'lrr' not in 'ValueNetworkConfig'"),
        (["learner.epochs=abc"], "learner.epochs: Value 'abc' of type 'str'"),
        (["learner.epochs=0"], "learner.epochs must be in 1..1000000, got 0"),
        (["learner.sweeps=3"], "learner.sweeps=3 contradicts learner.targets=monte_carlo"),
        (["game=chess"], "game must be one of catan"),
        (["game=3"], "Config group override must be a string or a list"),
        (["experiment=none_such"], "experiment must be one of"),
        (["+game.tarjet=4"], "game sumto has no parameter 'tarjet'"),
        (["game.target=2"], "target of game sumto must be larger than max_step (10)"),
        (["run=../away"], "run must be a name of at most 100 letters"),
        (["run=2026_1130"], "run=2026_1130 is read as '20261130'"),
        (["run=sweeps"], "run must not be one of sweeps, mlartifacts"),
        (["root="], "root must name a folder or a URI"),
        (["cluster=serial", "cluster.actors=3"], "cluster.actors=3 contradicts cluster.kind"),
        (["evaluation.games=7"], "evaluation.games must be a multiple of the 2 seats"),
        (["selfplay.games=[1"], "cannot read the overrides"),
        (["opponents.weights={self: 1, random: 1}"], "each one with +opponents.weights.NAME=..."),
    ],
)
def test_a_wrong_configuration_is_one_sentence_before_anything_starts(
    tmp_path, arguments, sentence
):
    done = selfplay(tmp_path, "train", "tracking=none", *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    assert line.startswith("error: ") and sentence in line
    assert list(tmp_path.iterdir()) == []


def test_the_name_alone_continues_a_run_as_it_was_started(folder):
    assert selfplay(folder, "train", "run=named", *SMALL).returncode == 0
    more = selfplay(folder, "train", "run=named", "generations=3")
    assert more.returncode == 0, more.stderr
    assert "continues after generation 2: sumto (target 20, max_step 4)" in more.stdout
    assert "generation   3/3" in more.stdout
    # What is asked for is asked for, even where it is the default.
    refused = selfplay(folder, "train", "run=named", "game=sumto100")
    assert refused.returncode == 2 and "game.target 20 -> 100" in refused.stderr


@pytest.mark.parametrize("change", ["~game.target", "policy.epsilon.0.by_ply=[0.3]"])
def test_a_run_goes_on_with_no_other_configuration_however_it_is_written(folder, change):
    refused = selfplay(folder, "train", "run=one", "tracking=none", "cluster=serial", change)
    assert refused.returncode == 2 and "Traceback" not in refused.stderr
    assert change.lstrip("~").split(".")[1] in refused.stderr


def test_fewer_generations_than_there_are_is_refused(folder):
    done = selfplay(folder, "train", "run=one", "generations=1")
    assert done.returncode == 2
    assert "run one has 2 generations already, generations=1 asks for fewer" in done.stderr
    assert "2/2" in selfplay(folder, "runs", "list").stdout


def test_a_changed_configuration_is_refused(folder):
    done = selfplay(folder, "train", "run=one", *SMALL, "seed=7")
    assert done.returncode == 2
    assert "seed 1 -> 7" in done.stderr


@pytest.mark.parametrize(
    "verb", ["train", "evaluate", "play", "tournament", "traces", "trees", "runs", "ui"]
)
def test_every_verb_explains_itself(tmp_path, verb):
    done = selfplay(tmp_path, verb, "--help")
    assert done.returncode == 0
    assert f"selfplay {verb}" in done.stdout


def test_traces_are_summed_up_checked_shown_and_exported(folder):
    summary = selfplay(folder, "traces", "summary", "one").stdout.splitlines()
    assert len(summary) == 4 and summary[1].split()[:3] == ["1", "2", "100"]
    assert "4 shards" in selfplay(folder, "traces", "check", "one").stdout
    game = selfplay(folder, "traces", "show", "one", "--generation", "2", "--game", "51").stdout
    assert game.startswith("generation 2, game 51\n\nsum 0 of 20, player 0 to move, ply 0")
    assert "sum 20 of 20, player" in game and game.rstrip().splitlines()[-1].startswith("returns:")
    out = selfplay(folder, "traces", "export", "one", "--out", "all.parquet")
    assert "decisions of 2 generations" in out.stdout
    import duckdb

    rows = duckdb.sql(
        f'select generation, count(distinct game), min(state_sum), max("return") '
        f"from '{folder}/all.parquet' group by 1 order by 1"
    ).fetchall()
    assert rows == [(1, 100, 0, 1.0), (2, 100, 0, 1.0)]
    assert (
        "error: --out must end in"
        in selfplay(folder, "traces", "export", "one", "--out", "a.txt").stderr
    )


def test_check_names_every_bad_shard(folder):
    done = selfplay(folder, "train", "run=damaged", *SMALL)
    assert done.returncode == 0
    shards = folder / "runs" / "damaged" / "traces"
    (shards / "generation=0001" / "shard-00000.parquet").write_bytes(b"nonsense")
    (shards / "generation=0002" / "shard-00001.parquet").unlink()
    done = selfplay(folder, "traces", "check", "damaged")
    assert done.returncode == 2
    assert "2 of 4 shards are bad" in done.stderr
    assert "generation=0001/shard-00000" in done.stderr
    assert "generation=0002/shard-00001" in done.stderr
    assert "missing shard" in selfplay(folder, "runs", "show", "damaged").stdout


def test_runs_are_listed_and_shown(folder):
    listing = selfplay(folder, "runs", "list").stdout
    assert any(line.split()[0] == "one" and "finished" in line for line in listing.splitlines())
    shown = selfplay(folder, "runs", "show", "one").stdout
    assert "generations complete: 2 of 2" in shown and "win_or_random" in shown
    assert "random = 0, 400 points are odds of 10 to 1." in shown
    missing = selfplay(folder, "runs", "show", "nowhere")
    assert missing.returncode == 2 and "there is no run 'nowhere'" in missing.stderr
    assert selfplay(folder, "runs", "report", "one").stdout.strip().endswith("report.html")


def test_evaluate_plays_baselines_generations_and_other_runs(folder):
    command = ["evaluate", "run=one", "games=40", "cluster=serial"]
    done = selfplay(folder, *command, "against=[random,1,two/2,two:1,two]")
    assert done.returncode == 0, done.stderr
    first, head, *lines = done.stdout.splitlines()
    assert first.startswith("one/2 (g0002-")  # no gate: the champion is the newest
    rows = [line.split() for line in lines[:5]]
    names = ["random", "one/1", "two/2", "two/1", "two/2"]
    assert [(row[0], row[1]) for row in rows] == [(name, "40") for name in names]
    for row in rows:
        assert sum(int(count) for count in row[3:6]) == 40
    assert head.endswith("result kept")
    assert lines[5].startswith("result kept: of the decisions in which not every action keeps")


def test_evaluate_takes_one_name_for_a_list_and_a_generation_as_elsewhere(folder):
    done = selfplay(folder, "evaluate", "run=one/1", "against=one", "games=40", "cluster=serial")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("one/1 (g0001-") and "\none/2 " in done.stdout


def test_a_tournament_of_runs_and_baselines(folder):
    command = ["tournament", "name=cup", "players=[random,one,two/0-2-2]", "cluster=serial"]
    done = selfplay(folder, *command, "games=20")
    assert done.returncode == 0, done.stderr
    assert "4 players, 6 pairings of 20 games, 120 games to play" in done.stdout
    assert "95% interval" in done.stdout and "score of the row against the column" in done.stdout
    again = selfplay(folder, *command, "games=20")
    assert "0 games to play" in again.stdout
    assert again.stdout.splitlines()[2:] == done.stdout.splitlines()[2:]


@pytest.fixture
def refusal(folder, monkeypatch, capsys):
    """A function: arguments of a command that is refused, run in this process -> its sentence."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")

    def refusal(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["selfplay", *arguments])
        GlobalHydra.instance().clear()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        assert ended.value.code == 2 and said.out == ""
        [line] = said.err.splitlines()
        return line

    return refusal


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("evaluate", "run is missing; give it a value, as in run=..."),
        (
            "evaluate one",
            "cannot read 'one': selfplay evaluate takes key=value; did you mean run=one?",
        ),
        ("evaluate --run one", "did you mean run=one?"),
        ("evaluate --root there run=one", "there is no option --root: selfplay evaluate takes"),
        ("tournament cup players=random", "did you mean name=cup?"),
        ("train one", "did you mean run=one?"),
        (
            "train --seed=3",
            "there is no option --seed=3: selfplay train takes key=value; write seed=3",
        ),
        ("play run=one", "did you mean --run one?"),
        ("traces show run=one", "selfplay traces takes no key=value; write one"),
        ("runs list root=runs", "selfplay runs takes no key=value; write --root runs"),
        ("evaluate run=one/x", "expected a run, or a run and its generation as in mine/7"),
        ("evaluate run=one/1 generation=2", "got 'one/1' and generation=2"),
        ("evaluate run=one/9", "generation 9 of run one is not complete; complete are 0..2"),
        ("evaluate run=one against=nobody", "against: 'nobody' is neither a baseline (random,"),
        ("evaluate run=one against=nobody", "there is no run 'nobody' under"),
        ("evaluate run=one against=random,perfect", "as in 'against=[random,perfect]'"),
        ("tournament name=cup players=[random,fats]", "there is no run 'fats' under"),
        ("tournament name=cup players=random", "none of them is a run, so say which game"),
        ("tournament name=cup", "players is missing"),
        ("traces show one --generation 2 --game 17000", "has games 0..99, not 17000"),
        (
            "traces export one --out none/a.csv",
            "cannot write none/a.csv: No such file or directory",
        ),
        ("traces export one --out none/a.parquet", "none/a.parquet: No such file or directory"),
    ],
)
def test_what_is_written_wrongly_is_told_with_what_was_meant(refusal, command, sentence):
    line = refusal(*command.split())
    assert line.startswith("error: ") and sentence in line


def test_a_port_that_is_taken_is_told_before_the_server_starts(refusal, tmp_path):
    (tmp_path / "mlflow.db").touch()
    where = ["ui", "--root", str(tmp_path)]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = refusal(*where, "--port", str(port))
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use; choose another" in line
    assert "--port must be in 1..65535, got 70000" in refusal(*where, "--port", "70000")
    assert "cannot listen on no.such.host:5" in refusal(*where, "--host", "no.such.host")


@pytest.mark.filterwarnings("ignore")  # of mlflow's libraries
def test_a_sweep_is_a_run_per_job_under_one_parent_with_a_ranked_table(tmp_path):
    small = [each for each in SMALL if each != "tracking=none"]
    done = selfplay(tmp_path, "train", "-m", "learner.epochs=1,4", *small)
    assert done.returncode == 0, done.stderr
    table = [line for line in done.stdout.splitlines() if line.startswith("| ")]
    assert len(table) == 3  # a header and a line per job
    strengths = [float(line.split("|")[4]) for line in table[1:]]
    assert strengths == sorted(strengths, reverse=True)
    import mlflow

    client = mlflow.MlflowClient(tracking_uri=f"sqlite:///{tmp_path}/runs/mlflow.db")
    found = client.search_runs(["1"])
    parents = [run for run in found if "sweep" in run.data.tags]
    jobs = [run for run in found if "mlflow.parentRunId" in run.data.tags]
    assert len(parents) == 1 and len(jobs) == 2
    assert {job.data.tags["mlflow.parentRunId"] for job in jobs} == {parents[0].info.run_id}
    assert all(run.info.status == "FINISHED" for run in found)
    assert "jobs.md" in {file.path for file in client.list_artifacts(parents[0].info.run_id)}


def test_a_sweep_with_one_wrong_job_starts_none(tmp_path):
    done = selfplay(tmp_path, "train", "-m", "learner.epochs=1,0", *SMALL)
    assert done.returncode == 2
    assert "learner.epochs=0" in done.stderr and "must be in 1..1000000" in done.stderr
    assert not (tmp_path / "runs").exists()


def test_a_study_is_no_job_of_a_sweep(tmp_path):
    done = selfplay(tmp_path, "train", "-m", "experiment=catan_paper", "seed=1,2")
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert "a study is many runs already and no job of a sweep; leave -m out" in line
    assert list(tmp_path.iterdir()) == []
