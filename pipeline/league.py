"""Who plays whom: the opponents of self-play, evaluation matches, the gate."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np

from games import Game
from pipeline import sprt
from pipeline.config import GateConfig
from pipeline.policies.store import PolicySource
from pipeline.ratings import Outcome, wilson
from pipeline.run import Run
from pipeline.selfplay import Results
from pipeline.streams import Streams, game_keys

RESULTS = ("returns", "plies", "decisions", "hashes")  # arrays of `selfplay.Results`


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
            chosen = draw_past(run, generation, champion)
            sources = [run.policy(each) for each in chosen] or [champion]
        else:
            sources = [PolicySource(name)]
        for source in sources:
            pool[source] = pool.get(source, 0.0) + weight / total / len(sources)
    return Pool(tuple(pool), tuple(pool.values()), "player" if untrained else "all")


def draw_past(run: Run, generation: int, champion: PolicySource) -> list[int]:
    """The past generations that sit against the champion in a generation.

    `uniform`: different ones, each equally likely. `recency` and `prioritised`: one for each of
    `opponents.past` places, by weight, so that the same one may come several times.
    """
    config = run.config.opponents
    if config.past_by == "uniform":
        return sample_past(run.config.seed, generation, config.past)
    past = list(range(generation - 1))
    if not past:
        return []
    if config.past_by == "recency":
        weights = recency_weights(past, generation, config.half_life)
    else:
        names = [run.policy(each).name for each in past]
        scores = recorded_scores(run, generation, champion.name)
        weights = difficulty_weights([scores.get(name, 0.5) for name in names], config.power)
    keys = game_keys(run.config.seed, f"past {config.past_by}", generation, range(config.past))
    draws = Streams(keys, np.zeros(len(keys), np.int32)).uniform()[:, 0]
    chosen = np.searchsorted(np.cumsum(weights) / weights.sum(), draws, side="right")
    return sorted(past[min(int(each), len(past) - 1)] for each in chosen)


def recency_weights(past: Sequence[int], generation: int, half_life: float) -> np.ndarray:
    """float64 [N]: 1 for the generation before last, half of it `half_life` generations earlier."""
    return 0.5 ** ((generation - 2 - np.array(past)) / half_life)


def difficulty_weights(scores: Sequence[float], power: float) -> np.ndarray:
    """float64 [N]: (1 - score)^power of the champion against each; evenly if it beats them all.

    Prioritised fictitious self-play with f_hard: O. Vinyals et al., "Grandmaster level in StarCraft
    II using multi-agent reinforcement learning", Nature 575 (2019), Methods.
    """
    weights = (1 - np.array(scores)) ** power
    return weights if weights.sum() > 0 else np.ones(len(weights))


def recorded_scores(run: Run, generation: int, name: str) -> dict[str, float]:
    """Score of a policy against whom it met in the evaluations before a generation, by name.

    Evaluations that are due by `evaluation.every` count, the extra one of a run's last generation
    does not: where a run once ended must not decide how it goes on.
    """
    games: dict[str, float] = {}
    won: dict[str, float] = {}
    for record in run.records():
        if record["generation"] >= generation:
            break
        if record["generation"] % run.config.evaluation.every:
            continue
        for row in record["evaluation"]:
            met = [(row["policy"], row["score"])] if record["policy"] == name else []
            # Seen from the other side, one against copies is another match, but for two players.
            if row["policy"] == name and len(row["by_seat"]) == 2:
                met.append((record["policy"], 1 - row["score"]))
            for other, score in met:
                games[other] = games.get(other, 0) + row["n"]
                won[other] = won.get(other, 0.0) + score * row["n"]
    return {other: won[other] / games[other] for other in games}


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


def summarise_match(
    game: Game,
    label: str,
    name: str,
    results: Results,
    first: int = 0,
    oracle: dict[str, int] | None = None,
) -> dict:
    """Wins, draws, losses of the policy, with the interval of its score.

    A win is a return above everybody else's, a draw one that equals the best, a loss less. Games
    are those of `match_seats`. Equal games count once in `distinct_games`, and the interval takes
    as many games as are distinct: two deterministic players repeat themselves. `oracle`, of
    `oracles.kept_results`, goes into the row as it is.
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
    order = {} if game.num_players == 2 else {"orders": finishes(results.returns, seats)}
    row = {
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
        "results_by_seat": [
            [
                int((mine > best)[seats == s].sum()),
                int((mine == best)[seats == s].sum()),
                int((mine < best)[seats == s].sum()),
            ]
            for s in range(game.num_players)
        ],
        **order,
    }
    return row if oracle is None else row | {"oracle": oracle}


def places_of(returns: np.ndarray) -> np.ndarray:
    """int64 [G, P]: how many players received more. Args: returns float32 [G, P]."""
    return (returns[:, None, :] > returns[:, :, None]).sum(2)


def finishes(returns: np.ndarray, seats: np.ndarray) -> list[list]:
    """How games of one against copies ended: [seat of the one, places of all seats, games]."""
    rows, counts = np.unique(
        np.concatenate([seats[:, None], places_of(returns)], 1), axis=0, return_counts=True
    )
    return [
        [int(row[0]), row[1:].tolist(), int(count)] for row, count in zip(rows, counts, strict=True)
    ]


def match_outcomes(policy: str, row: dict) -> list[Outcome]:
    """An evaluation row for `ratings.fit`; none if it was written before seats were told apart.

    Args:
        policy: name of the policy that was measured.
        row: of `summarise_match`.
    """
    share = row["distinct_games"] / row["n"]
    other = row["policy"]
    if "orders" in row:
        ended = [(seat, tuple(places), games) for seat, places, games in row["orders"]]
    else:
        ended = [
            (seat, places if seat == 0 else places[::-1], games)
            for seat, results in enumerate(row.get("results_by_seat", []))
            for places, games in zip(((0, 1), (0, 0), (1, 0)), results, strict=True)
        ]
    return [
        Outcome(
            tuple(policy if each == seat else other for each in range(len(places))),
            places,
            games,
            games * share,
        )
        for seat, places, games in ended
        if games
    ]


def rated_outcomes(records: Iterable[dict]) -> list[Outcome]:
    """All evaluation matches of some generations. The gate's games are not among them: they were
    played until they said something, so they say it too loudly."""
    return [
        outcome
        for record in records
        for row in record["evaluation"]
        for outcome in match_outcomes(record["policy"], row)
    ]


def table_seats(first: int, count: int, players: int) -> tuple[np.ndarray, np.ndarray]:
    """Seatings of games `first`.. where every seat is another player's: `players`! games in a row
    are one set with the same opening and every order of seats once.

    Returns:
        (seatings int8 [G, P], set int64 [G])
    """
    games = np.arange(first, first + count)
    orders = np.array(list(permutations(range(players))), np.int8)
    return orders[games % len(orders)], games // len(orders)


# The gate.


def pair_scores(results: Results) -> tuple[np.ndarray, np.ndarray]:
    """Scores of the sets of a match of `match_seats`, for the sequential test.

    A game scores the policy's share of the first place: 1, or 1/t among t, or 0. Over all seats
    equals score 1/P, with draws too. Games of half a set at the end are left out.

    Returns:
        (scores float64 [N], whether no equal set stands before bool [N])
    """
    players = results.returns.shape[1]
    sets = len(results.plies) // players
    returns = results.returns[: sets * players]
    first = returns == returns.max(1, keepdims=True)
    at = np.arange(len(returns))
    shares = first[at, at % players] / first.sum(1)
    fresh = np.zeros(sets, np.bool_)
    hashes = results.hashes[: sets * players].reshape(sets, players)
    fresh[np.unique(hashes, axis=0, return_index=True)[1]] = True
    return shares.reshape(sets, players).mean(1), fresh


def judge(gate: GateConfig, results: Results) -> sprt.Verdict:
    """Where the sequential test of a gate stands after the games of a match so far."""
    players = results.returns.shape[1]
    scores, fresh = pair_scores(results)
    least = -(-gate.min_distinct // players)
    return sprt.judge(
        scores, fresh, gate.elo0, gate.elo1, gate.alpha, gate.beta, players, min_fresh=least
    )


def gate_words(record: dict[str, Any]) -> str:
    """What a gate decided, in a few words."""
    if "llr" in record:
        return f"{record['decision']} (LLR {record['llr']:+.2f}, {record['pairs']} pairs)"
    return f"{record['decision']} ({record['score']:.1%})"


def gate_record(gate: GateConfig, game: Game, champion: str, results: Results) -> dict[str, Any]:
    """What a gate decided and on what evidence: `record["gate"]`, see docs/architecture.md.

    Under `sprt` the evidence ends with the pair at which a bound was crossed. A test that reaches
    its cap undecided leaves the champion where it is: H1 was not shown, and so the share of wrong
    promotions stays below alpha whatever the cap.
    """
    evidence: dict[str, Any] = {}
    if gate.rule == "sprt":
        verdict = judge(gate, results)
        used = verdict.pairs * game.num_players
        results = Results(*(getattr(results, name)[:used] for name in RESULTS))
        lower, upper = sprt.bounds(gate.alpha, gate.beta)
        evidence = {"llr": round(verdict.llr, 4), "lower": lower, "upper": upper}
    scores, fresh = pair_scores(results)
    row = summarise_match(game, "champion", champion, results)
    if gate.rule == "sprt":
        passed = verdict.decision == "h1"
        reason = {
            "h1": f"elo1 = {gate.elo1:g} accepted",
            "h0": f"elo0 = {gate.elo0:g} accepted",
            "undecided": f"undecided after {gate.pairs} pairs",
        }[verdict.decision]
    else:
        passed = row["score"] >= gate.threshold
        reason = f"score {row['score']:.3f}, needed {gate.threshold:g}"
    if passed and row["distinct_games"] < gate.min_distinct:
        passed = False
        reason = f"only {row['distinct_games']} distinct games, needed {gate.min_distinct}"
    values, counts = np.unique(scores, return_counts=True)
    return {
        "rule": gate.rule,
        "decision": "promoted" if passed else "kept",
        "reason": reason,
        "games": row["n"],
        "pairs": len(scores),
        "distinct_pairs": int(fresh.sum()),
        "pair_scores": [[float(v), int(n)] for v, n in zip(values, counts, strict=True)],
        **evidence,
        **row,
    }
