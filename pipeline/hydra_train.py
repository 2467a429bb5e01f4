"""`selfplay train`: composes the configuration with Hydra, checks it and trains."""

from typing import Any

import hydra
from hydra._internal.utils import get_args_parser
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from pipeline import sweep
from pipeline.config import CONF, Config, to_config
from pipeline.errors import UserError
from pipeline.run import new_run_name
from pipeline.train import train


def main() -> None:
    """Reads the command line and trains: one run, or with -m one per job.

    Raises:
        UserError: the configuration or the run is wrong. (Hydra would print a report of its own.)
    """
    asked = get_args_parser().parse_args()
    jobs = sweep.begin(asked.overrides) if asked.multirun else None
    refused: list[UserError] = []

    @hydra.main(version_base="1.3", config_path=CONF, config_name="config")
    def task(composed: DictConfig) -> None:
        try:
            config = to_config(OmegaConf.to_container(composed, resolve=True))  # type: ignore
            if jobs is None:
                _train_one(config)
            else:
                _train_job(config, jobs)
        except UserError as error:
            refused.append(error)

    task()
    if jobs is not None and len(jobs.rows) == len(jobs.jobs):
        print(f"\n{jobs.finish()}", flush=True)
    if refused:
        others = f" (and {len(refused) - 1} more jobs failed)" if len(refused) > 1 else ""
        raise UserError(f"{refused[0]}{others}") from refused[0]


def _train_one(config: Config) -> None:
    choices = HydraConfig.get().runtime.choices
    label = choices["game"] if choices["experiment"] == "none" else choices["experiment"]
    config.run = config.run or new_run_name(label)
    train(config)


def _train_job(config: Config, jobs: sweep.Sweep) -> None:
    """Trains one job; the others go on if it fails, and the table says so."""
    hydra_config = HydraConfig.get()
    words = " ".join(hydra_config.overrides.task)
    number = int(hydra_config.job.num)
    config.run = jobs.run_name(config.run, number)
    print(f"\njob {number + 1} of {len(jobs.jobs)}: {words}", flush=True)
    record: dict[str, Any] | None = None
    try:
        record = train(config, jobs.parent)
    finally:
        jobs.add(config.run, words, record)
