"""Who plays whom: the opponents of self-play, evaluation matches, the gate."""

from dataclasses import dataclass

import numpy as np

from games import Game
from pipeline.config import Config
from pipeline.policies.store import PolicySource
from pipeline.ratings import wilson
from pipeline.run import Run
from pipeline.selfplay import Results
from pipeline.streams import Streams, game_keys


@dataclass(frozen=True)
class Pool:
    """The policies of one generation's self-play: the player first, then its opponents."""

    sources: tuple[PolicySource, ...]
    weights: tuple[float, ...]  # of each as the opponent, summing to 1
    explorers: str = "all"  # all: every learned policy explores; player: the first alone


def opponent_pool(run: Run, generation: int) -> Pool:
    """The player of a generation and who may sit against it, by configured weight."""
    config = run.config
    champion = run.champion(generation - 1)
    untrained = config.selfplay.player == "untrained"
    pool: dict[PolicySource, float] = {run.policy(0) if untrained else champion: 0.0}
    weights = config.opponents.weights
    if generation == 1 and config.opponents.first is not None:
        weights = {config.opponents.first: 1.0}
    total = sum(weights.values())
    for name, weight in weights.items():
        if weight == 0.0:
            continue
        if name == "self":
            sources = [champion]
        elif name == "past":
            chosen = sample_past(config.seed, generation, config.opponents.past)
            sources = [run.policy(each) for each in chosen] or [champion]
        else:
            sources = [PolicySource(name)]
        for source in sources:
            pool[source] = pool.get(source, 0.0) + weight / total / len(sources)
    return Pool(tuple(pool), tuple(pool.values()), "player" if untrained else "all")


def sample_past(seed: int, generation: int, count: int) -> list[int]:
    """Up to `count` different generations before `generation - 1`, in order."""
    past = np.arange(max(0, generation - 1))
    if len(past) > count:
        draws = Streams(game_keys(seed, "past", generation, past), np.zeros(len(past), np.int32))
        past = np.sort(past[np.argsort(draws.uniform()[:, 0], kind="stable")[:count]])
    return [int(each) for each in past]


def selfplay_seatings(
    pool: Pool, players: int, seed: int, generation: int, indices: np.ndarray
) -> np.ndarray:
    """Who sits where: the player in one seat, in turn; one opponent, by weight, in all others.

    Args:
        indices: integers [G], numbers of the games in their generation.

    Returns:
        int8 [G, P], index into `pool.sources`.
    """
    keys = game_keys(seed, "opponents", generation, indices)
    draws = Streams(keys, np.zeros(len(keys), np.int32)).uniform()[:, 0]
    opponents = np.searchsorted(np.cumsum(pool.weights), draws, side="right")
    opponents = np.minimum(opponents, len(pool.weights) - 1).astype(np.int8)
    seatings = np.repeat(opponents[:, None], players, axis=1)
    seatings[np.arange(len(keys)), indices % players] = 0
    return seatings


@dataclass(frozen=True)
class Opponent:
    """Whom a policy is measured against, and as what it appears in tables."""

    label: str  # random, perfect, .., predecessor, ancestor
    source: PolicySource


def evaluation_opponents(run: Run, generation: int) -> list[Opponent]:
    """Baselines, the predecessor and some ancestors of a generation's policy."""
    config = run.config.evaluation
    opponents = [Opponent(name, PolicySource(name)) for name in config.baselines or ()]
    if config.predecessor and generation > 0:
        opponents.append(Opponent("predecessor", run.policy(generation - 1)))
    past = sample_past(run.config.seed, generation, config.ancestors) if generation else []
    opponents += [Opponent("ancestor", run.policy(each)) for each in past]
    return opponents


def match_seats(first: int, count: int, players: int) -> tuple[np.ndarray, np.ndarray]:
    """Seatings of games `first`.. of a match: the policy (0) in one seat, its opponent (1) in all
    others; `players` games in a row are one set with the same opening and every seat once.

    Returns:
        (seatings int8 [G, P], set int64 [G])
    """
    games = np.arange(first, first + count)
    seatings = np.ones((count, players), np.int8)
    seatings[np.arange(count), games % players] = 0
    return seatings, games // players


def summarise_match(game: Game, label: str, name: str, results: Results, first: int = 0) -> dict:
    """Wins, draws, losses of the policy, with the interval of its score.

    A win is a return above everybody else's, a draw one that equals the best, a loss less. Games
    are those of `match_seats`. Equal games count once in `distinct_games`, and the interval takes
    as many games as are distinct: two deterministic players repeat themselves.
    """
    seats = np.arange(first, first + len(results.plies)) % game.num_players
    at = np.arange(len(seats))
    mine = results.returns[at, seats]
    others = results.returns.copy()
    others[at, seats] = -np.inf
    best = others.max(1)
    wins, draws = int((mine > best).sum()), int((mine == best).sum())
    n = len(seats)
    distinct = len(np.unique(np.stack([results.hashes, seats.astype(np.uint64)]), axis=1).T)
    score = (wins + draws / 2) / n
    interval = wilson(score * distinct, distinct)
    return {
        "opponent": label,
        "policy": name,
        "n": n,
        "wins": wins,
        "draws": draws,
        "losses": n - wins - draws,
        "score": score,
        "low": interval.low,
        "high": interval.high,
        "distinct_games": distinct,
        "mean_plies": float(results.plies.mean()),
        "by_seat": [float((mine > best)[seats == s].mean()) for s in range(game.num_players)],
    }


def passes_gate(config: Config, row: dict | None) -> bool:
    """Does the newest policy become the champion? `row`: its match against the present one."""
    return config.gate.rule == "always" or row is None or row["score"] >= config.gate.threshold
