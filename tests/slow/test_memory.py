"""Memory over 50 generations: driver and actors stay flat, the learner stays within its window."""

import subprocess
import sys
import time

import psutil
import pytest

pytestmark = pytest.mark.slow

GENERATIONS = 50
# Allocators keep what they once had, and caches fill; a leak of one generation's data would be
# more.
SLACK = 16 * 2**20


def test_memory_is_flat(tmp_path):
    process = subprocess.Popen(
        [
            *[sys.executable, "-c", "from pipeline.cli import main; main()", "train"],
            *["experiment=sumto100", f"root={tmp_path}", "run=run", "tracking=none"],
            *["cluster.actors=2", f"generations={GENERATIONS}", "selfplay.games=4000"],
            *["learner.epochs=1", "learner.window_generations=3", "evaluation.games=100"],
        ],
        stdout=subprocess.DEVNULL,
    )
    folder = tmp_path / "run" / "generations"
    memory: dict[tuple[str, int], list[tuple[int, int]]] = {}
    while process.poll() is None:
        time.sleep(0.2)
        done = len(list(folder.glob("*/manifest.json"))) if folder.exists() else 0
        try:
            everyone = [
                psutil.Process(process.pid),
                *psutil.Process(process.pid).children(recursive=True),
            ]
            for each in everyone:
                title = " ".join(each.cmdline())
                name = next((n for n in ("SelfPlayActor", "LearnerActor") if n in title), None)
                if each.pid == process.pid:
                    name = "driver"
                if name:
                    used = each.memory_full_info().uss
                    memory.setdefault((name, each.pid), []).append((done, used))
        except psutil.Error:
            continue  # one of them has just ended
    assert process.returncode == 0
    assert sorted(name for name, _ in memory) == [
        "LearnerActor",
        "SelfPlayActor",
        "SelfPlayActor",
        "driver",
    ]
    for (name, _), samples in memory.items():
        early = max(used for done, used in samples if 8 <= done <= 18)
        # Until the last manifest: after it Ray is shut down, which takes memory of its own.
        late = max(used for done, used in samples if GENERATIONS - 10 <= done < GENERATIONS)
        print(
            f"{name}: {early / 2**20:.0f} MB in generations 8..18, {late / 2**20:.0f} MB at the end"
        )
        assert late <= early + SLACK, (name, early, late)
