"""Sweeps: `selfplay train -m key=a,b`: one run per job, one MLflow parent, a table of the jobs."""

import time
from dataclasses import dataclass, field
from typing import Any

from hydra import compose
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.utils import JobReturn, JobStatus
from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf

from pipeline.config import Config, to_config
from pipeline.errors import ConfigError
from pipeline.ratings import wilson
from pipeline.storage import Storage


@dataclass
class Job:
    """The job that is running now."""

    sweep: str
    number: int
    parent: str | None  # MLflow run

    def run_name(self, configured: str | None) -> str:
        return f"{configured or self.sweep}-{self.number:02d}"


@dataclass
class _Sweep:
    name: str
    total: int
    config: Config
    parent: str | None
    rows: list[dict[str, Any]] = field(default_factory=list)


_sweep: _Sweep | None = None
_job: Job | None = None


def current_job() -> Job | None:
    """The job of a sweep that this call of the task belongs to, or None."""
    return _job


class SweepCallback(Callback):
    """Hydra calls this around a sweep and each of its jobs. Configured in conf/config.yaml."""

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Checks the configuration of every job before the first one starts."""
        from pipeline import tracking

        global _sweep
        parsed = OverridesParser.create().parse_overrides(list(config.hydra.overrides.task))
        jobs = [job for batch in BasicSweeper.split_arguments(parsed, None) for job in batch]
        configs = []
        for overrides in jobs:
            composed = compose(config.hydra.job.config_name, overrides=overrides)
            try:
                configs.append(to_config(OmegaConf.to_container(composed, resolve=True)))  # type: ignore[arg-type]
            except ConfigError as error:
                raise ConfigError(f"job {' '.join(overrides)}: {error}") from error
        name = f"sweep-{time.strftime('%Y%m%d-%H%M%S')}"
        parent = tracking.parent_run(configs[0].root, configs[0], name)
        _sweep = _Sweep(name, len(jobs), configs[0], parent)

    def on_job_start(self, config: DictConfig, **kwargs: Any) -> None:
        global _job
        if _sweep is not None:
            _job = Job(_sweep.name, int(config.hydra.job.num), _sweep.parent)
            words = " ".join(config.hydra.overrides.task)
            print(f"\njob {_job.number + 1} of {_sweep.total}: {words}", flush=True)

    def on_job_end(self, config: DictConfig, job_return: JobReturn, **kwargs: Any) -> None:
        global _sweep, _job
        if _sweep is None or _job is None:
            return
        row = {"job": _job.number, "overrides": " ".join(config.hydra.overrides.task)}
        row["run"] = _job.run_name(config.run)
        if job_return.status == JobStatus.COMPLETED:
            row |= strength(job_return.return_value)
        _sweep.rows.append(row)
        _job = None
        if len(_sweep.rows) == _sweep.total:
            _finish(_sweep)
            _sweep = None


def strength(record: dict[str, Any]) -> dict[str, Any]:
    """How strong a run ended: its score over all games against baselines, with the interval."""
    baselines = [row for row in record["evaluation"] if row["opponent"] == row["policy"]]
    n = sum(row["distinct_games"] for row in baselines)
    mean = sum(row["score"] for row in baselines) / max(len(baselines), 1)
    interval = wilson(mean * n, n)
    solution = record["solution"] or {}
    solved = f"{solution['optimal']}/{solution['of']}" if "optimal" in solution else ""
    return {
        "strength": mean,
        "low": interval.low,
        "high": interval.high,
        "n": n,
        "solved": solved,
        "optimal": solution.get("optimal", 0),
    }


def table(rows: list[dict[str, Any]]) -> str:
    """The jobs of a sweep from the strongest down, as Markdown; failed jobs last."""
    ranked = sorted(rows, key=lambda row: (-row.get("strength", -1), -row.get("optimal", 0)))
    lines = [
        "| rank | run | overrides | strength | 95% interval | distinct games | solved |",
        "|---|---|---|---|---|---|---|",
    ]
    for rank, row in enumerate(ranked, 1):
        if "strength" in row:
            figures = (
                f"{row['strength']:.3f} | {row['low']:.3f} to {row['high']:.3f} | {row['n']:,} | "
                f"{row['solved']}"
            )
        else:
            figures = "failed | | |"
        lines.append(f"| {rank} | {row['run']} | {row['overrides']} | {figures} |")
    lines.append("")
    lines.append("strength: mean score against the baselines, a draw counting half a win")
    return "\n".join(lines)


def _finish(done: _Sweep) -> None:
    from pipeline import tracking

    text = table(done.rows)
    Storage(done.config.root).write(f"sweeps/{done.name}.md", text + "\n")
    print(f"\n{text}", flush=True)
    if done.parent is not None:
        best = max((row["strength"] for row in done.rows if "strength" in row), default=None)
        numbers = {} if best is None else {"sweep/best": best}
        tracking.close_parent(done.config.root, done.config, done.parent, text, numbers)
