"""`selfplay evaluate`: matches of a run's policy against baselines, generations and other runs."""

from dataclasses import dataclass, field, replace
from typing import Any

import hydra
from omegaconf import MISSING, DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from pipeline.config import CONF, ClusterConfig, check_opening, sentence
from pipeline.errors import ConfigError, UserError
from pipeline.league import Opponent
from pipeline.policies.scripted import baseline_names
from pipeline.policies.store import PolicySource
from pipeline.run import Run
from pipeline.train import Loop, make_backend


@dataclass
class EvaluateConfig:
    run: str = MISSING
    root: str = "runs"
    generation: int | None = None
    against: list[Any] = field(default_factory=list)
    games: int = MISSING
    opening_plies: int = MISSING
    seed: int = 1
    cluster: ClusterConfig = MISSING

    def __post_init__(self) -> None:
        if self.games < 1 or self.opening_plies < 0 or self.seed < 0 or not self.against:
            raise ConfigError(
                "games must be at least 1, opening_plies and seed at least 0, and against must "
                f"name somebody; got {self.games}, {self.opening_plies}, {self.seed}, "
                f"{self.against}"
            )


def main() -> None:
    """Reads the command line, plays the matches and prints a table.

    Raises:
        UserError: the configuration is wrong, or there is no such run, generation or opponent.
    """
    refused: list[UserError] = []

    @hydra.main(version_base="1.3", config_path=CONF, config_name="evaluate")
    def task(composed: DictConfig) -> None:
        try:
            print(table(evaluate(_checked(composed))))
        except UserError as error:
            refused.append(error)

    task()
    if refused:
        raise refused[0]


def _checked(composed: DictConfig) -> EvaluateConfig:
    schema = OmegaConf.structured(EvaluateConfig)
    try:
        config = OmegaConf.to_object(OmegaConf.merge(schema, composed))
    except OmegaConfBaseException as error:
        raise ConfigError(sentence(error)) from error
    assert isinstance(config, EvaluateConfig)
    return config


def evaluate(config: EvaluateConfig) -> list[dict]:
    """One row of `league.summarise_match` per opponent.

    Raises:
        UserError: no such run, generation or opponent.
    """
    run = Run.open(config.root, config.run)
    newest = max(run.complete(), default=0)
    generation = newest if config.generation is None else config.generation
    source = run.policy(generation)
    with make_backend(config.cluster) as backend:
        loop = Loop(run, backend)
        players = loop.game.num_players
        if config.games % players:
            raise ConfigError(
                f"games must be a multiple of the {players} seats of {loop.game.name}, "
                f"got {config.games}"
            )
        check_opening("opening_plies", config.opening_plies, loop.game)
        opponents = [_opponent(run, str(each), loop) for each in config.against]
        loop.setting = replace(loop.setting, seed=config.seed)
        print(f"{source.name} of run {run.name}")
        return loop.matches(
            "evaluate", generation, source, opponents, config.games, config.opening_plies
        )


def _opponent(run: Run, name: str, loop: Loop) -> Opponent:
    if name in baseline_names(loop.game):
        return Opponent(name, PolicySource(name))
    other, _, number = name.rpartition(":")
    if not number.isdecimal():
        raise ConfigError(
            f"against: {name!r} is neither a baseline ({', '.join(baseline_names(loop.game))}) nor "
            "a generation such as 12 or other-run:12"
        )
    theirs = Run.open(run.storage.root, other) if other else run
    if theirs.config.game != run.config.game:
        raise ConfigError(f"against: run {other} plays {theirs.config.game}, not {run.config.game}")
    return Opponent(name, theirs.policy(int(number)))


def _kept(oracle: dict[str, int]) -> str:
    """Of the contested decisions, how many kept the result of the position."""
    if not oracle["contested"]:
        return "no contested decision"
    share = oracle["kept_contested"] / oracle["contested"]
    return f"{share:.1%} ({oracle['kept_contested']:,}/{oracle['contested']:,})"


def table(rows: list[dict]) -> str:
    """Wins, draws and losses with n and interval, for a terminal."""
    kept = any("oracle" in row for row in rows)
    lines = [
        f"{'against':<20} {'games':>7} {'distinct':>8} {'wins':>7} {'draws':>6} {'losses':>7} "
        f"{'score':>6}  95% interval   plies" + "   result kept (contested decisions)" * kept
    ]
    for row in rows:
        lines.append(
            f"{row['opponent']:<20} {row['n']:>7,} {row['distinct_games']:>8,} {row['wins']:>7,} "
            f"{row['draws']:>6,} {row['losses']:>7,} {row['score']:>6.1%}  "
            f"{row['low']:.1%} to {row['high']:.1%}  {row['mean_plies']:>5.1f}"
            + (f"   {_kept(row['oracle'])}" if "oracle" in row else "")
        )
    return "\n".join(lines)
