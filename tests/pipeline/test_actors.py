"""Tasks on Ray: what is lost is done again elsewhere, what is wrong is said."""

import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
import ray
import yaml
from small_runs import content, small_config

from pipeline import actors
from pipeline.actors import PlayersAsHelpers, RayBackend
from pipeline.config import ClusterConfig
from pipeline.errors import ClusterError, ShardError
from pipeline.run import Run
from pipeline.train import train
from pipeline.work import FitTask

_CONF = Path(__file__).resolve().parents[2] / "conf"

# Tests are no package that a worker could import.
ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])


@dataclass(frozen=True)
class Square:
    number: int

    def run(self) -> int:
        return self.number**2


@dataclass(frozen=True)
class DiesOnce:
    """Kills its process the first `times` times."""

    folder: str
    number: int
    times: int = 1

    def run(self) -> int:
        before = len(list(Path(self.folder).glob(f"{self.number}-*")))
        if before < self.times:
            Path(self.folder, f"{self.number}-{before}").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return self.number**2


@dataclass(frozen=True)
class DiesElsewhere:
    """Kills every process but one."""

    number: int
    home: int

    def run(self) -> int:
        if os.getpid() != self.home:
            os.kill(os.getpid(), signal.SIGKILL)
        return self.number**2


@dataclass(frozen=True)
class Where:
    """The process that ran it, which it keeps busy for a while."""

    def run(self) -> int:
        time.sleep(0.05)
        return os.getpid()


@dataclass(frozen=True)
class Fails:
    def run(self) -> int:
        raise ShardError("shard 7 is damaged", "traces/7")


@pytest.fixture
def backend(ray_session):
    with RayBackend(ClusterConfig(kind="ray", actors=2)) as running:
        yield running


def test_every_task_is_done_once(backend):
    done = list(backend.play([Square(number) for number in range(20)]))
    assert sorted(done) == [(number, number**2) for number in range(20)]


def test_tasks_of_killed_actors_go_to_others(backend, tmp_path):
    tasks = [DiesOnce(str(tmp_path), n) if n % 4 == 0 else Square(n) for n in range(12)]
    done = list(backend.play(tasks))
    assert sorted(done) == [(number, number**2) for number in range(12)]
    # Three tasks die once each; a call that was queued on a dying actor may be lost with it.
    assert backend.lost_tasks >= 3
    assert sorted(backend.play([Square(3)])) == [(0, 9)]


def test_a_killed_learner_starts_again(backend, tmp_path):
    assert backend.learn(DiesOnce(str(tmp_path), 6)) == 36
    assert backend.learn(Square(4)) == 16


def test_a_task_that_always_kills_its_actor_is_named(backend, tmp_path, monkeypatch):
    monkeypatch.setattr(actors, "MAX_ATTEMPTS", 2)
    with pytest.raises(ClusterError, match="DiesOnce was lost 2 times with its actor"):
        list(backend.play([DiesOnce(str(tmp_path), 1, times=99)]))
    assert sorted(backend.play([Square(3)])) == [(0, 9)]


def test_what_a_task_raises_arrives_as_it_was(backend):
    with pytest.raises(ShardError, match="shard 7 is damaged") as caught:
        list(backend.play([Fails()]))
    assert caught.value.path == "traces/7"
    assert sorted(backend.play([Square(3)])) == [(0, 9)]


def test_helpers_and_threads_share_the_tasks(backend):
    helpers = PlayersAsHelpers(backend._actors)
    assert helpers.run_all([Square(n) for n in range(30)], 2) == [n**2 for n in range(30)]
    assert helpers.run_all([], 1) == []
    assert len(set(helpers.run_all([Where()] * 30, 1))) == 3
    assert os.getpid() not in helpers.run_all([Where()] * 4, 0)
    with pytest.raises(ShardError, match="shard 7 is damaged"):
        helpers.run_all([Square(1), Fails(), Square(2)], 1)


def test_what_lost_helpers_leave_is_done_here(backend):
    tasks = [DiesElsewhere(n, os.getpid()) for n in range(12)]
    assert PlayersAsHelpers(backend._actors).run_all(tasks, 1) == [n**2 for n in range(12)]
    assert PlayersAsHelpers(backend._actors).run_all(tasks[:2], 0) == [0, 1]
    assert sorted(backend.play([Square(3)])) == [(0, 9)]


def test_trees_are_the_same_with_helpers(ray_session, tmp_path, monkeypatch):
    learner = yaml.safe_load((_CONF / "learner" / "model_trees.yaml").read_text())
    shared = {"learner": {**learner, "min_games": 60}, "evaluation__every": 2, "generations": 2}
    train(small_config(tmp_path, "alone", **shared))
    on_ray = {"cluster__kind": "ray", "cluster__actors": 2, "cluster__helpers": True}
    given = []
    run = RayBackend._run

    def noted(self, tasks, idle):
        given.extend(tasks)
        return run(self, tasks, idle)

    monkeypatch.setattr(RayBackend, "_run", noted)
    train(small_config(tmp_path, "helped", **shared, **on_ray))
    alone, helped = (content(Run.open(str(tmp_path), name)) for name in ("alone", "helped"))
    assert helped == alone
    fits = [task for task in given if isinstance(task, FitTask)]
    assert fits and all(isinstance(task.helpers, PlayersAsHelpers) for task in fits)


def test_an_actor_that_dies_before_it_answers_is_called_again(ray_session, tmp_path, monkeypatch):
    died = tmp_path / "died"

    class DiesAtFirst(actors.SelfPlayActor):
        def ping(self) -> None:
            try:
                died.touch(exist_ok=False)
            except FileExistsError:
                return
            os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(actors, "SelfPlayActor", DiesAtFirst)
    with RayBackend(ClusterConfig(kind="ray", actors=2)) as backend:
        assert died.exists()
        assert sorted(backend.play([Square(2), Square(3)])) == [(0, 4), (1, 9)]


def test_too_many_actors_are_refused_with_the_numbers(ray_session):
    with (
        pytest.raises(ClusterError, match="not enough CPUs: 50 actors and 0 for the learner"),
        RayBackend(ClusterConfig(kind="ray", actors=50)),
    ):
        pass


def test_workers_use_one_thread(backend):
    @dataclass(frozen=True)
    class Threads:
        def run(self) -> list[int]:
            import numba
            import numpy  # noqa: F401
            from threadpoolctl import threadpool_info

            return [numba.get_num_threads(), *(pool["num_threads"] for pool in threadpool_info())]

    [(_, counts)] = backend.play([Threads()])
    assert set(counts) == {1}
