"""Tasks on Ray actors. The only module that imports ray.

The queue is our own: a task whose actor fails goes to another actor at once, and the failed actor
is set aside until it answers again. Ray's own retries would wait for the lost node and may run
calls in another order; its ActorPool loses the item of a failed call. A cut-off actor may finish
its task anyway: harmless, since tasks are pure and leave the same bytes.
"""

import collections
import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

# Read by Ray when it is imported or started. Workers would run at nice 15 and starve beside
# anything.
os.environ.setdefault("RAY_worker_niceness", "0")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")

import ray

from pipeline.backend import Task, one_thread
from pipeline.config import ClusterConfig
from pipeline.errors import ClusterError
from pipeline.work import FitTask

_log = logging.getLogger(__name__)

# An actor that dies this often under the same task is not at fault: the task is (out of memory,
# ..).
MAX_ATTEMPTS = 8
_PER_CPU = 4  # actors that a Ray of our own may start per CPU
_PING_PAUSE = 1.0  # seconds between calls to an actor that is set aside


class Actor:
    """Runs tasks in a process of its own, one thread each."""

    def __init__(self) -> None:
        for library in ("OMP", "OPENBLAS", "MKL"):  # for what is loaded later
            os.environ[f"{library}_NUM_THREADS"] = "1"
        one_thread()

    def ping(self) -> int:
        return os.getpid()

    def run(self, task: Task) -> Any:
        return task.run()


class SelfPlayActor(Actor):
    """Plays; named so that `ps` and `ray list actors` tell it from the learner."""


class LearnerActor(Actor):
    """Learns."""


_ActorFailure = (
    ray.exceptions.RayActorError,  # died or unavailable
    ray.exceptions.NodeDiedError,
    ray.exceptions.ObjectLostError,  # the result went down with its node
    ray.exceptions.OutOfMemoryError,
    ray.exceptions.WorkerCrashedError,
)


class PlayersAsHelpers:
    """The self-play actors, which rest while the learner works."""

    def __init__(self, actors: Sequence[Any]):
        self._actors = list(actors)

    def run_all(self, tasks: Sequence[Task], threads: int) -> list[Any]:
        """See `pipeline.learners.common.Helpers`. A task whose actor is lost is done by somebody
        else, in the end by this process; that actor is asked no more."""
        waiting = collections.deque(range(len(tasks)))
        done: dict[int, Any] = {}

        def here(task: Task) -> Any:
            return task.run()

        def work(run: Callable[[Task], Any]) -> None:
            while waiting:
                try:
                    index = waiting.popleft()
                except IndexError:  # somebody else was faster
                    return
                try:
                    done[index] = run(tasks[index])
                except _ActorFailure:
                    waiting.appendleft(index)
                    return
                except ray.exceptions.RayTaskError as error:
                    raise (error.cause or error) from None

        there = [
            lambda task, actor=actor: ray.get(actor.run.remote(task)) for actor in self._actors
        ]
        workers = [here] * threads + there
        with ThreadPoolExecutor(len(workers)) as pool:
            list(pool.map(work, workers))
        work(here)
        return [done[index] for index in range(len(tasks))]


class RayBackend:
    """Self-play actors and a learner actor on a Ray cluster."""

    def __init__(self, config: ClusterConfig):
        self._config = config
        self._actors: list[Any] = []
        self._idle: list[Any] = []
        self._pings: dict[Any, Any] = {}  # ref of a ping -> the actor set aside
        self._ping_after: dict[Any, float] = {}  # actor -> when to call it next
        self._learner: Any = None
        self._idle_learner: list[Any] = []
        self._owns_ray = False
        self.lost_tasks = 0

    @property
    def players(self) -> int:
        return len(self._actors)

    def __enter__(self) -> "RayBackend":
        config = self._config
        if not ray.is_initialized():
            cpus = None
            if config.address == "local":
                most = _PER_CPU * _usable_cpus()
                if config.actors is not None and config.actors > most:
                    raise ClusterError(
                        f"not enough CPUs: {config.actors} actors on {_usable_cpus()} CPUs would "
                        f"only wait for each other; lower cluster.actors to {most} at most"
                    )
                cpus = (config.actors or _usable_cpus()) + config.learner_cpus
            start(config.address, cpus)
            self._owns_ray = True
        try:
            self._make_actors()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _make_actors(self) -> None:
        config = self._config
        total = int(ray.cluster_resources().get("CPU", 0))
        count = config.actors or max(1, total - config.learner_cpus)
        if count + config.learner_cpus > total:
            raise ClusterError(
                f"not enough CPUs: {count} actors and {config.learner_cpus} for the learner need "
                f"{count + config.learner_cpus}, the cluster has {total}; lower cluster.actors"
            )
        # Restarted where there is room, but a lost call is ours to hand on.
        options = {"max_restarts": -1, "max_task_retries": 0}
        player = ray.remote(num_cpus=1, **options)(SelfPlayActor)
        self._actors = [player.remote() for _ in range(count)]
        self._learner = ray.remote(num_cpus=config.learner_cpus, **options)(LearnerActor).remote()
        everyone = [*self._actors, self._learner]
        for actor in everyone:
            self._set_aside(actor)
        # One that dies before it answers is restarted, and called again.
        begun = time.monotonic()
        while self._ping_after and time.monotonic() < begun + config.patience:
            self._recall()
            if self._pings:
                ray.wait(list(self._pings), num_returns=len(self._pings), timeout=_PING_PAUSE)
            elif self._ping_after:
                time.sleep(_PING_PAUSE / 4)
        if self._ping_after:
            ready = len(everyone) - len(self._ping_after)
            raise ClusterError(
                f"only {ready} of {len(everyone)} actors came up within {config.patience:.0f} s; "
                f"the cluster has {total} CPUs, {ray.available_resources().get('CPU', 0):.0f} free"
            )

    def __exit__(self, *_: object) -> None:
        if self._owns_ray:
            ray.shutdown()
        else:
            for actor in [*self._actors, *([self._learner] if self._learner else [])]:
                ray.kill(actor)
        self._actors, self._idle, self._learner = [], [], None

    def play(self, tasks: Sequence[Task]) -> Iterator[tuple[int, Any]]:
        yield from self._run(tasks, self._idle)

    def learn(self, task: Task) -> Any:
        if self._config.helpers and isinstance(task, FitTask):
            task = replace(task, helpers=PlayersAsHelpers(self._actors))
        return dict(self._run([task], self._idle_learner))[0]

    def _run(self, tasks: Sequence[Task], idle: list[Any]) -> Iterator[tuple[int, Any]]:
        """Feeds tasks to `idle` actors; every actor it took is back there, or set aside, at the
        end."""
        waiting = collections.deque(range(len(tasks)))
        attempts: collections.Counter[int] = collections.Counter()
        running: dict[Any, tuple[Any, int]] = {}
        deserted_since: float | None = None
        try:
            while waiting or running:
                self._recall()
                while waiting and idle:
                    actor, index = idle.pop(), waiting.popleft()
                    running[actor.run.remote(tasks[index])] = (actor, index)
                if running:
                    deserted_since = None
                else:
                    deserted_since = deserted_since or time.monotonic()
                    if time.monotonic() - deserted_since > self._config.patience:
                        raise ClusterError(
                            f"no actor has answered for {self._config.patience:.0f} s; look at the "
                            "cluster with `ray status`, then start the same command again"
                        )
                watched = [*running, *self._pings]
                if not watched:
                    time.sleep(_PING_PAUSE / 4)
                    continue
                ready, _ = ray.wait(watched, num_returns=1, timeout=_PING_PAUSE)
                for ref in ready:
                    if ref not in running:
                        continue  # a ping: see _recall
                    actor, index = running.pop(ref)
                    try:
                        result = ray.get(ref)
                    except _ActorFailure as error:
                        attempts[index] += 1
                        self.lost_tasks += 1
                        self._set_aside(actor)
                        if attempts[index] >= MAX_ATTEMPTS:
                            raise ClusterError(
                                f"{_name(tasks[index])} was lost {attempts[index]} times with its "
                                f"actor, the last time by {_first_line(error)}; if its actors run "
                                "out of memory, lower selfplay.batch or learner.window_rows"
                            ) from error
                        _log.info("%s goes to another actor", _name(tasks[index]))
                        waiting.appendleft(index)
                        continue
                    except ray.exceptions.RayTaskError as error:
                        idle.append(actor)
                        # What the task itself raised, as it raised it.
                        raise (error.cause or error) from None
                    idle.append(actor)
                    yield index, result
        finally:
            # After an error some actors are still busy: they finish, and are asked before use.
            for actor, _ in running.values():
                self._set_aside(actor)

    def _set_aside(self, actor: Any) -> None:
        self._ping_after[actor] = time.monotonic()

    def _recall(self) -> None:
        """Calls the actors that are set aside; whoever answers is idle again."""
        now = time.monotonic()
        for actor, due in list(self._ping_after.items()):
            if due <= now and actor not in self._pings.values():
                self._pings[actor.ping.remote()] = actor
        if not self._pings:
            return
        ready, _ = ray.wait(list(self._pings), num_returns=len(self._pings), timeout=0)
        for ref in ready:
            actor = self._pings.pop(ref)
            try:
                ray.get(ref)
            except _ActorFailure:
                self._ping_after[actor] = time.monotonic() + _PING_PAUSE
                continue
            del self._ping_after[actor]
            (self._idle_learner if actor is self._learner else self._idle).append(actor)


def _name(task: Task) -> str:
    path = getattr(task, "path", None)
    return f"{type(task).__name__} {path}" if path else type(task).__name__


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _usable_cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def start(address: str, cpus: int | None) -> None:
    """Starts or joins a cluster, quietly."""
    try:
        if address == "local":
            ray.init(
                address="local",
                num_cpus=cpus,
                include_dashboard=False,
                logging_level=logging.ERROR,
                log_to_driver=False,
                object_store_memory=200 * 2**20,  # tasks and results are small; data are files
            )
        else:
            ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False)
    except Exception as error:  # a node that does not come up in time raises no narrower class
        raise ClusterError(
            f"cannot reach Ray at {address!r}: {_first_line(error)}; start one with "
            "`ray start --head`, choose cluster=local, or, if it asks for a token, set "
            "RAY_AUTH_MODE=token"
        ) from error
