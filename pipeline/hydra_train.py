"""`selfplay train`: composes the configuration with Hydra, checks it and trains."""

import os
import tempfile
from typing import Any

import hydra
from hydra._internal.utils import get_args_parser
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, OmegaConf

from pipeline import study, sweep
from pipeline.config import CONF, Config, to_config, to_dict
from pipeline.errors import ConfigError, UserError
from pipeline.run import Run, new_run_name
from pipeline.storage import Storage
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

    # Hydra keeps notes of a sweep in a folder; what matters of them is in the runs.
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SELFPLAY_SWEEP"] = folder
        task()
    if jobs is not None and len(jobs.rows) == len(jobs.jobs):
        print(f"\n{jobs.finish()}", flush=True)
    if refused:
        others = f" (and {len(refused) - 1} more jobs failed)" if len(refused) > 1 else ""
        raise UserError(f"{refused[0]}{others}") from refused[0]


def _train_one(config: Config) -> None:
    if config.study is not None:
        print(study.play(config))
        return
    choices = HydraConfig.get().runtime.choices
    label = choices["game"] if choices["experiment"] == "none" else choices["experiment"]
    if config.run is None:
        config.run = new_run_name(label)
    else:
        _check_written(config.run, HydraConfig.get().overrides.task)
        config = _as_stored(config, HydraConfig.get().overrides.task)
    train(config)


def _check_written(name: str, overrides: list[str]) -> None:
    """Hydra reads 2026_1130 as a number: two names would mean one run."""
    for each in overrides:
        key, _, written = each.partition("=")
        if key == "run" and written.strip("'\"") != name:
            raise ConfigError(
                f"run={written} is read as {name!r}; choose a name that begins with a letter"
            )


def _as_stored(config: Config, overrides: list[str]) -> Config:
    """The configuration to go on with: of an existing run, its own, changed by what was asked for.

    A preset asks for everything it composes; any other override for its key or its group.
    """
    assert config.run is not None
    if not Storage(config.root).exists(f"{config.run}/config.yaml"):
        return config
    asked = [each.key_or_group for each in OverridesParser.create().parse_overrides(overrides)]
    if "experiment" in asked:
        return config
    merged, composed = to_dict(Run.open(config.root, config.run).config), to_dict(config)
    for key in ["root", "run", *asked]:
        *path, last = key.split(".")
        into, source = merged, composed
        for part in path:
            if not isinstance(source.get(part), dict):  # an entry of a list: the whole list
                last = part
                break
            into, source = into.setdefault(part, {}), source[part]
        if last in source:
            into[last] = source[last]
        else:  # as in ~game.target
            into.pop(last, None)
    return to_config(merged)


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
