"""The package as it is installed: a wheel in a folder of its own, started from another one."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def test_a_wheel_works_from_another_directory(tmp_path):
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path)]
    # Built from a copy of what is tracked, so that nothing is left behind in the checkout.
    source = tmp_path / "source"
    source.mkdir()
    files = subprocess.run(
        ["git", "ls-files", "-z"], cwd=REPOSITORY, check=True, capture_output=True
    ).stdout
    subprocess.run(
        ["tar", "--null", "-T-", "-cf", str(tmp_path / "source.tar")],
        cwd=REPOSITORY,
        input=files,
        check=True,
    )
    subprocess.run(["tar", "-xf", str(tmp_path / "source.tar"), "-C", str(source)], check=True)
    subprocess.run([*build, str(source)], check=True, capture_output=True)
    [wheel] = tmp_path.glob("*.whl")
    installed = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as content:
        content.extractall(installed)
    assert (installed / "pipeline" / "conf" / "experiment" / "sumto100.yaml").exists()
    assert {file.name for file in (installed / "pipeline" / "pages").iterdir()} == {
        "trees.css",
        "trees.html",
        "trees.js",
    }
    assert (installed / "games" / "data" / "connect_four_positions.csv").exists()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    command = [sys.executable, "-c", "import pipeline, sys; print(pipeline.__file__)\n"]
    command[-1] += "from pipeline.cli import main; main()"
    command += ["train", "game.target=20", "game.max_step=4", "generations=1", "run=one"]
    command += ["selfplay.games=50", "evaluation.games=4", "cluster=serial", "tracking=none"]
    done = subprocess.run(
        command,
        cwd=elsewhere,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(installed))
    assert (elsewhere / "runs" / "one" / "generations" / "0001" / "manifest.json").exists()
