"""`selfplay train`: composes the configuration with Hydra, checks it and trains."""

from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from pipeline import sweep
from pipeline.config import CONF, to_config
from pipeline.errors import UserError
from pipeline.run import new_run_name
from pipeline.train import train


def main() -> None:
    """Reads the command line and trains.

    Raises:
        UserError: the configuration or the run is wrong. Hydra would print a report of its own.
    """
    refused: list[UserError] = []

    @hydra.main(version_base="1.3", config_path=CONF, config_name="config")
    def task(composed: DictConfig) -> dict[str, Any] | None:
        try:
            return _train(composed)
        except UserError as error:
            if sweep.current_job() is not None:
                raise  # the other jobs go on
            refused.append(error)
            return None

    task()
    if refused:
        raise refused[0]


def _train(composed: DictConfig) -> dict[str, Any]:
    """Trains one run; one job of a sweep under `-m`."""
    config = to_config(OmegaConf.to_container(composed, resolve=True))  # type: ignore[arg-type]
    job = sweep.current_job()
    if job is not None:
        config.run = job.run_name(config.run)
        return train(config, job.parent)
    choices = HydraConfig.get().runtime.choices
    label = choices["game"] if choices["experiment"] == "none" else choices["experiment"]
    config.run = config.run or new_run_name(label)
    return train(config)
