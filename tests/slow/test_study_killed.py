"""kill -9 anywhere in the study of the paper: training, tournament, report come out the same."""

import random
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "pipeline"))
sys.path.insert(0, str(Path(__file__).parent))
from small_runs import content
from test_kill import descendants, finish, start

from pipeline.run import Run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

# Approaches of both kinds: one that keeps behaviours, one whose high level is the rule.
SETTINGS = [
    "experiment=catan_paper",
    "study.approaches=[module,heuristic]",
    "study.players=[heuristic_random,weighted_random]",
    "study.games=200",
    "seed=3",
    "generations=3",
    "game.turn_limit=80",
    "game.points_to_win=6",
    "learner.min_games=20",
    "learner.min_leaf_games=5",
    "selfplay.games=160",
    "selfplay.games_per_shard=20",
    "evaluation.games=20",
    "tracking=none",
]
VICTIMS = ("ray::SelfPlayActor", "driver", "ray::LearnerActor", "driver")


def made(root: Path) -> tuple[list, list, str]:
    runs = [content(Run.open(str(root), f"study-{name}")) for name in ("module", "heuristic")]
    return (*runs, (root / "tournaments" / "study" / "paper.md").read_text())


def test_the_study_survives(tmp_path):
    finish(start(tmp_path / "whole", "study", "cluster=serial", settings=SETTINGS))
    chance = random.Random("study")
    ray = ("cluster=local", "cluster.actors=2")
    process = start(tmp_path / "killed", "study", *ray, settings=SETTINGS)
    killed: list[str] = []
    while len(killed) < 12:
        time.sleep(chance.uniform(0.5, 4.0))
        if process.poll() is not None:
            break
        if not descendants(process, "ray::SelfPlayActor"):  # it is still starting
            continue
        victim = VICTIMS[len(killed) % len(VICTIMS)]
        if victim == "driver":
            process.kill()
            process.communicate()
            process = start(tmp_path / "killed", "study", *ray, settings=SETTINGS)
            killed.append(victim)
        elif found := descendants(process, victim):
            chance.choice(found).kill()
            killed.append(victim)
    finish(process)
    assert set(killed) == set(VICTIMS)
    assert made(tmp_path / "killed") == made(tmp_path / "whole")
