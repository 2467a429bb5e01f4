"""A second Ray node goes down in mid-generation: the generation completes, and is the same."""

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "pipeline"))
from small_runs import content

from pipeline.run import Run

pytestmark = pytest.mark.slow

SCRIPT = """
import sys, threading, time
sys.path.insert(0, {tests!r})
from ray.cluster_utils import Cluster
from pipeline import actors
from pipeline.train import train
from small_runs import small_config

head = {{"num_cpus": 1, "include_dashboard": False}}
cluster = Cluster(initialize_head=True, head_node_args=head)
second = cluster.add_node(num_cpus=2)
actors.start(cluster.address, None)

def lose():
    folder = {root!r} + "/run/traces/generation=0002"
    import os
    while not (os.path.isdir(folder) and len(os.listdir(folder)) >= 2):
        time.sleep(0.02)
    cluster.remove_node(second, allow_graceful=False)
    print("lost", flush=True)

thread = threading.Thread(target=lose)
thread.start()
settings = {settings!r}
train(small_config({root!r}, "run", cluster__kind="ray", cluster__address="auto",
                   cluster__actors=3, **settings))
thread.join()
print("finished", flush=True)
"""


def test_a_lost_node(tmp_path):
    settings = {
        "generations": 3,
        "game__target": 100,
        "game__max_step": 10,
        "selfplay__games": 60000,
        "selfplay__games_per_shard": 2000,
        "learner__epochs": 1,
    }
    tests = str(Path(__file__).parents[1] / "pipeline")
    script = SCRIPT.format(tests=tests, root=str(tmp_path), settings=settings)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "lost" in done.stdout and "finished" in done.stdout
    from small_runs import small_config

    from pipeline.train import train

    train(small_config(tmp_path, "serial", **settings))
    assert content(Run.open(str(tmp_path), "run")) == content(Run.open(str(tmp_path), "serial"))
