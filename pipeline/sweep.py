"""Sweeps: `selfplay train -m key=a,b`: one run per job, one MLflow parent, a table of the jobs."""

import time
from dataclasses import dataclass, field
from typing import Any

from hydra import compose, initialize_config_dir
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf

from pipeline.config import CONF, Config, to_config
from pipeline.errors import ConfigError
from pipeline.ratings import wilson
from pipeline.storage import Storage


@dataclass
class Sweep:
    """The jobs of one command, as far as they are done."""

    name: str
    jobs: list[list[str]]  # overrides of each
    config: Config  # of the first job: where the table goes
    parent: str | None  # MLflow run
    rows: list[dict[str, Any]] = field(default_factory=list)

    def run_name(self, configured: str | None, number: int) -> str:
        return f"{configured or self.name}-{number:02d}"

    def add(self, run: str, overrides: str, record: dict[str, Any] | None) -> None:
        """Notes a finished job; `record` is its last generation's numbers, None if it failed."""
        row: dict[str, Any] = {"run": run, "overrides": overrides}
        self.rows.append(row if record is None else row | strength(record))

    def finish(self) -> str:
        """Files the table of the jobs under the root and in MLflow, and returns it."""
        from pipeline import tracking

        text = table(self.rows)
        Storage(self.config.root).write(f"sweeps/{self.name}.md", text + "\n")
        if self.parent is not None:
            scores = [row["strength"] for row in self.rows if "strength" in row]
            numbers = {"sweep/best": max(scores)} if scores else {}
            tracking.close_parent(self.config.root, self.config, self.parent, text, numbers)
        return text


def begin(overrides: list[str]) -> Sweep:
    """Checks the configuration of every job before the first one starts.

    Args:
        overrides: those of the command line, with their choices, as in seed=1,2,3.

    Raises:
        ConfigError: names the job and what is wrong with it.
    """
    from pipeline import tracking

    parsed = OverridesParser.create().parse_overrides(overrides)
    jobs = [list(job) for batch in BasicSweeper.split_arguments(parsed, None) for job in batch]
    configs = []
    with initialize_config_dir(CONF, version_base="1.3"):
        for job in jobs:
            try:
                composed = OmegaConf.to_container(compose("config", overrides=job), resolve=True)
                config = to_config(composed)  # type: ignore[arg-type]
                if config.study is not None:
                    raise ConfigError(
                        "a study is many runs already and no job of a sweep; leave -m out and "
                        "start it once for each value, as in seed=1 and then seed=2"
                    )
                configs.append(config)
            except ConfigError as error:
                raise ConfigError(f"job {' '.join(job)}: {error}") from error
    name = f"sweep-{time.strftime('%Y%m%d-%H%M%S')}"
    return Sweep(name, jobs, configs[0], tracking.parent_run(configs[0].root, configs[0], name))


def strength(record: dict[str, Any]) -> dict[str, Any]:
    """How strong a run ended: its mean score against the baselines, with the interval."""
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
