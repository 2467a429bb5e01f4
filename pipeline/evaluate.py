"""`selfplay evaluate`: matches of a run's policy against baselines, generations and other runs."""

import re
from dataclasses import dataclass, field, replace
from typing import Any

import hydra
from omegaconf import MISSING, DictConfig

from games import Game
from pipeline.config import CONF, ClusterConfig, check_opening, checked, make_game_from
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
            print(table(evaluate(checked(EvaluateConfig, composed, "against"))))
        except UserError as error:
            refused.append(error)

    task()
    if refused:
        raise refused[0]


_PLAYER = re.compile(r"(?:(?P<run>[^/:]+)[/:])?(?P<generation>\d+)")  # two/7, two:7, 7


def evaluate(config: EvaluateConfig) -> list[dict]:
    """One row of `league.summarise_match` per opponent.

    Raises:
        UserError: no such run, generation or opponent.
    """
    name, slash, number = config.run.partition("/")
    if slash and (not number.isdecimal() or config.generation is not None):
        raise ConfigError(
            f"run: expected a run, or a run and its generation as in mine/7, got {config.run!r}"
            + f" and generation={config.generation}" * (config.generation is not None)
        )
    run = Run.open(config.root, name)
    generation = int(number) if slash else config.generation
    if generation is None:
        generation = run.champion_generation()
    source = run.policy(generation)
    game = make_game_from(run.config.game)
    if config.games % game.num_players:
        raise ConfigError(
            f"games must be a multiple of the {game.num_players} seats of {game.name}, "
            f"got {config.games}"
        )
    check_opening("opening_plies", config.opening_plies, game)
    opponents = [_opponent(run, game, str(each)) for each in config.against]
    print(f"{run.name}/{generation} ({source.name})", flush=True)
    with make_backend(config.cluster) as backend:
        loop = Loop(run, backend)
        loop.setting = replace(loop.setting, seed=config.seed)
        return loop.matches(
            "evaluate", generation, source, opponents, config.games, config.opening_plies
        )


def _opponent(run: Run, game: Game, name: str) -> Opponent:
    baselines = baseline_names(game)
    if name in baselines:
        return Opponent(name, PolicySource(name))
    found = _PLAYER.fullmatch(name)
    other = found["run"] if found else name
    theirs = run
    if other is not None and other != run.name:
        try:
            theirs = Run.open(run.storage.root, other)
        except UserError as error:
            raise ConfigError(
                f"against: {name!r} is neither a baseline ({', '.join(baselines)}) nor a "
                f"generation such as 12 or other/12, and {error}"
            ) from error
        another = make_game_from(theirs.config.game)
        if (another.name, another.params) != (game.name, game.params):
            raise ConfigError(f"against: run {other} plays {another.title}, not {game.title}")
    generation = int(found["generation"]) if found else theirs.champion_generation()
    return Opponent(f"{theirs.name}/{generation}", theirs.policy(generation))


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
        f"{'score':>6}  95% interval   plies" + "   result kept" * kept
    ]
    for row in rows:
        lines.append(
            f"{row['opponent']:<20} {row['n']:>7,} {row['distinct_games']:>8,} {row['wins']:>7,} "
            f"{row['draws']:>6,} {row['losses']:>7,} {row['score']:>6.1%}  "
            f"{row['low']:.1%} to {row['high']:.1%}  {row['mean_plies']:>5.1f}"
            + (f"   {_kept(row['oracle'])}" if "oracle" in row else "")
        )
    if kept:
        lines.append(
            "result kept: of the decisions in which not every action keeps the win or the draw\n"
            "that perfect play has there, how many kept it"
        )
    return "\n".join(lines)
