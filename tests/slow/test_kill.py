"""kill -9 at random moments: the run goes on and ends as if nothing had happened.

Real processes: `selfplay train` on Ray; what is killed is found by its name and its parent.
"""

import random
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "pipeline"))
from small_runs import content

from pipeline.run import Run

pytestmark = pytest.mark.slow

KILLS = 10
SETTINGS = [
    "seed=3",
    "generations=12",
    "selfplay.games=12000",
    "selfplay.games_per_shard=500",
    "learner.window_generations=2",
    "learner.epochs=3",
    "opponents=mixed",
    "evaluation.games=200",
    "tracking=none",
]


TREES = [
    "seed=3",
    "generations=4",
    "learner=model_trees",
    "learner.window_generations=2",
    "selfplay.games=4000",
    "selfplay.games_per_shard=500",
    "evaluation.games=20",
    "tracking=none",
]


def start(root: Path, name: str, *more: str, settings: list[str] = SETTINGS) -> subprocess.Popen:
    command = [sys.executable, "-c", "from pipeline.cli import main; main()", "train"]
    return subprocess.Popen(
        [*command, f"root={root}", f"run={name}", *settings, *more],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> list[dict]:
    root = tmp_path_factory.mktemp("undisturbed")
    process = start(root, "run", "cluster=serial")
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    return content(Run.open(str(root), "run"))


def descendants(process: subprocess.Popen, title: str) -> list[psutil.Process]:
    """Processes of this driver's own Ray whose title starts so."""
    found = []
    for child in psutil.Process(process.pid).children(recursive=True):
        try:
            if " ".join(child.cmdline()).startswith(title):
                found.append(child)
        except psutil.Error:
            continue
    return found


def finish(process: subprocess.Popen) -> str:
    _, errors = process.communicate(timeout=1800)
    assert process.returncode == 0, errors
    return errors


@pytest.mark.parametrize("victim", ["ray::SelfPlayActor", "ray::LearnerActor"])
def test_killed_actors(tmp_path, undisturbed, victim):
    chance = random.Random(victim)
    process = start(tmp_path, "run", "cluster.actors=2")
    killed = 0
    while process.poll() is None and killed < KILLS:
        # An idle actor's title lacks the method: kill them busy or idle, as it comes.
        time.sleep(chance.uniform(0.3, 2.0))
        victims = descendants(process, victim)
        if victims:
            chance.choice(victims).kill()
            killed += 1
    finish(process)
    assert killed == KILLS
    assert content(Run.open(str(tmp_path), "run")) == undisturbed


def test_killed_driver(tmp_path, undisturbed):
    chance = random.Random("driver")
    for _ in range(KILLS):
        process = start(tmp_path, "run", "cluster.actors=2")
        before = time.monotonic()
        while not descendants(process, "ray::SelfPlayActor") and time.monotonic() < before + 120:
            time.sleep(0.1)
        time.sleep(chance.uniform(0.0, 4.0))
        process.kill()
        process.communicate()
    finish(start(tmp_path, "run", "cluster.actors=2"))
    assert content(Run.open(str(tmp_path), "run")) == undisturbed
    leftovers = [path.name for path in tmp_path.rglob(".shard*")]
    # A write that was cut off may leave a hidden temporary file, which no reader looks at.
    assert all(name.startswith(".") for name in leftovers)


@pytest.mark.timeout(900)
def test_killed_while_trees_grow(tmp_path):
    """The learner, the actors that help it and the driver, in turn; the trees are the same."""
    process = start(tmp_path, "undisturbed", "cluster=serial", settings=TREES)
    finish(process)
    chance = random.Random("trees")
    helped = ("cluster.actors=2", "cluster.helpers=true")
    killed: list[str] = []
    process = start(tmp_path, "run", *helped, settings=TREES)
    victims = ["ray::SelfPlayActor", "ray::LearnerActor", "driver"]
    while process.poll() is None and len(killed) < 6:
        time.sleep(chance.uniform(0.3, 2.0))
        # Only while somebody is at work do the titles name the method.
        if not descendants(process, "ray::LearnerActor.run"):
            continue
        victim = victims[len(killed) % 3]
        if victim == "driver":
            process.kill()
            process.communicate()
            process = start(tmp_path, "run", *helped, settings=TREES)
            killed.append(victim)
        elif found := descendants(process, victim):
            chance.choice(found).kill()
            killed.append(victim)
    finish(process)
    assert set(killed) == set(victims)
    run, undisturbed = (content(Run.open(str(tmp_path), n)) for n in ("run", "undisturbed"))
    assert run == undisturbed
