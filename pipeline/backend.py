"""Where tasks run: in this process, or on Ray (`pipeline.actors`). Both give the same results."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numba
import scipy.linalg.cython_blas  # noqa: F401  (numba's BLAS: loaded before its threads are counted)
from threadpoolctl import threadpool_limits


class Task(Protocol):
    """A pure function with its arguments; see `pipeline.work`."""

    def run(self) -> Any: ...


class Backend(AbstractContextManager, Protocol):
    """Runs tasks: players' in parallel, the learner's one at a time."""

    @property
    def players(self) -> int:
        """How many tasks run at once."""
        ...

    @property
    def lost_tasks(self) -> int:
        """How often a task was handed on because its process was lost."""
        ...

    def play(self, tasks: Sequence[Task]) -> Iterator[tuple[int, Any]]:
        """Runs independent tasks, yields (index, result) as each is done.

        Raises:
            whatever a task raises, at once.
        """
        ...

    def learn(self, task: Task) -> Any:
        """Runs one task where the learner lives."""
        ...


def one_thread() -> threadpool_limits:
    """Keeps this process's numerical libraries to one thread each: two busy processes with two
    threads each on two cores run many times slower than with one, and sums come out the same.

    Returns:
        What it changed, for `restore_original_limits`.
    """
    numba.set_num_threads(1)
    return threadpool_limits(1)


class Serial:
    """Everything in this process, one after the other."""

    players = 1
    lost_tasks = 0

    def __enter__(self) -> "Serial":
        self._limits = one_thread()
        return self

    def __exit__(self, *_: object) -> None:
        self._limits.restore_original_limits()

    def play(self, tasks: Sequence[Task]) -> Iterator[tuple[int, Any]]:
        for index, task in enumerate(tasks):
            yield index, task.run()

    def learn(self, task: Task) -> Any:
        return task.run()
