"""Who plays whom: by weight, in every seat, and counted right."""

import json
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config import GateConfig, to_config
from pipeline.league import (
    Opponent,
    Pool,
    difficulty_weights,
    evaluation_opponents,
    gate_record,
    gate_words,
    match_outcomes,
    match_seats,
    opponent_pool,
    pair_scores,
    rated_outcomes,
    recency_weights,
    recorded_scores,
    sample_past,
    selfplay_seatings,
    summarise_match,
    table_seats,
)
from pipeline.policies.store import PolicySource
from pipeline.ratings import wilson
from pipeline.run import Run
from pipeline.selfplay import Results
from pipeline.storage import Storage

RANDOM = PolicySource("random")


def policy(generation: int) -> PolicySource:
    return PolicySource(f"g{generation:04d}", f"run/generations/{generation:04d}/policy", "0" * 64)


@pytest.fixture
def run_with(compose, tmp_path):
    """A function: champions of the generations 0, 1, .. and overrides -> a run that has them."""

    def make(champions, *overrides) -> Run:
        config = to_config(compose("tracking=none", "cluster=serial", *overrides))
        run = Run(Storage(str(tmp_path)), "run", config)
        for generation, champion in enumerate(champions):
            manifest = {
                "policy": policy(generation).to_json(),
                "champion": policy(champion).to_json(),
                "shards": [],
            }
            run.finish(generation, manifest)
        return run

    return make


# The opponents of self-play.


def test_against_itself_alone(run_with):
    pool = opponent_pool(run_with([0, 1, 2]), 3)
    assert pool == Pool((policy(2),), (1.0,))


def test_the_untrained_against_the_champion_after_a_first_opponent(run_with):
    run = run_with([0, 1, 2], "selfplay.player=untrained", "opponents.first=win_or_random")
    first = opponent_pool(run, 1)
    assert first.sources == (policy(0), PolicySource("win_or_random"))
    assert first.weights == (0.0, 1.0)
    later = opponent_pool(run, 3)
    assert later == Pool((policy(0), policy(2)), (0.0, 1.0), explorers="player")


def test_weights_are_shared_out_over_the_past(run_with):
    run = run_with(range(6), "opponents=mixed")
    pool = opponent_pool(run, 6)
    past = sample_past(1, 6, 4)
    assert len(past) == 4
    expected = {policy(5): 0.7, **{policy(each): 0.05 for each in past}, RANDOM: 0.1}
    assert dict(zip(pool.sources, pool.weights, strict=True)) == pytest.approx(expected)
    assert pool.sources[0] == policy(5)


def test_without_a_past_its_weight_is_the_champions(run_with):
    pool = opponent_pool(run_with([0], "opponents=mixed"), 1)
    assert dict(zip(pool.sources, pool.weights, strict=True)) == pytest.approx(
        {policy(0): 0.9, RANDOM: 0.1}
    )


def test_a_champion_from_the_past_is_one_entry_with_both_weights(run_with):
    # The gate has kept generation 1, which is one of the four past ones: 0, 1, 2, 3.
    pool = opponent_pool(run_with([0, 1, 1, 1, 1], "opponents=mixed"), 5)
    expected = {policy(1): 0.75, RANDOM: 0.1, **{policy(each): 0.05 for each in (0, 2, 3)}}
    assert dict(zip(pool.sources, pool.weights, strict=True)) == pytest.approx(expected)
    assert pool.sources[0] == policy(1)


def test_weights_need_not_sum_to_1_and_0_is_nobody(run_with):
    run = run_with(
        [0, 1], "+opponents.weights={random: 3, perfect: 6, past: 0}", "opponents.weights.self=0"
    )
    pool = opponent_pool(run, 2)
    perfect = PolicySource("perfect")
    assert dict(zip(pool.sources, pool.weights, strict=True)) == pytest.approx(
        {policy(1): 0.0, RANDOM: 1 / 3, perfect: 2 / 3}
    )
    assert pool.sources[0] == policy(1)


@given(st.integers(0, 2**63 - 1), st.integers(0, 60), st.integers(0, 20))
def test_a_sample_of_the_past(seed, generation, count):
    past = sample_past(seed, generation, count)
    assert past == sorted(set(past)) == sample_past(seed, generation, count)
    assert all(type(each) is int and 0 <= each < generation - 1 for each in past)
    assert len(past) == min(count, max(0, generation - 1))


def test_every_past_generation_is_drawn_equally_often():
    counts = Counter(each for seed in range(6000) for each in sample_past(seed, 9, 3))
    assert set(counts) == set(range(8))
    # 3 of 8 each time: binomial with p = 3/8.
    deviation = math.sqrt(6000 * 3 / 8 * 5 / 8)
    assert all(abs(count - 2250) < 5 * deviation for count in counts.values())


POOL = Pool((policy(9), policy(3), policy(4), RANDOM), (0.5, 0.2, 0.05, 0.25))


@pytest.mark.parametrize("players", [1, 2, 3, 4])
def test_the_champion_sits_in_each_seat_in_turn_and_one_opponent_in_all_others(players):
    games = np.arange(1000, 1000 + 600)
    seatings = selfplay_seatings(POOL, players, 1, 2, games)
    assert seatings.shape == (600, players) and seatings.dtype == np.int8
    for number, seating in zip(games, seatings, strict=True):
        assert seating[number % players] == 0
        assert len(set(np.delete(seating, number % players))) <= 1


def test_opponents_come_by_weight():
    games = np.arange(40_000)
    seatings = selfplay_seatings(POOL, 2, 1, 2, games)
    opponents = seatings[games, 1 - games % 2]
    counts = np.bincount(opponents, minlength=4)
    expected = np.array(POOL.weights) * len(games)
    # Chi-square of 3 degrees of freedom: 30.7 is exceeded once in a million.
    assert ((counts - expected) ** 2 / expected).sum() < 30.7
    # And the seat of the champion tells nothing about who it is.
    first = np.bincount(opponents[::2], minlength=4)
    assert ((first - expected / 2) ** 2 / (expected / 2)).sum() < 30.7


def test_an_opponent_of_weight_0_never_plays():
    pool = Pool((policy(9), RANDOM), (0.0, 1.0))
    seatings = selfplay_seatings(pool, 3, 5, 1, np.arange(30_000))
    assert (seatings.sum(1) == 2).all()


def test_rounding_of_the_weights_seats_nobody_from_outside_the_pool():
    pool = Pool((policy(9), policy(1), RANDOM), (0.0, 0.4, 0.3))  # as if a third were missing
    seatings = selfplay_seatings(pool, 2, 5, 1, np.arange(5000))
    assert seatings.max() == 2 and seatings.min() == 0


def test_a_seating_depends_on_its_game_alone():
    all_games = selfplay_seatings(POOL, 2, 1, 2, np.arange(500))
    some = np.array([499, 7, 8])
    assert (selfplay_seatings(POOL, 2, 1, 2, some) == all_games[some]).all()
    for other in ((2, 2), (1, 3)):
        assert (selfplay_seatings(POOL, 2, *other, np.arange(500)) != all_games).any()


# Evaluation.


def test_whom_a_policy_is_measured_against(run_with):
    run = run_with(range(8))
    names = ["random", "win_or_random", "perfect"]  # all that SumTo has
    baselines = [Opponent(name, PolicySource(name)) for name in names]
    past = sample_past(1, 7, 2)
    assert evaluation_opponents(run, 7) == [
        *baselines,
        Opponent("predecessor", policy(6)),
        *(Opponent("ancestor", policy(each)) for each in past),
    ]
    assert len(past) == 2 and max(past) < 6
    assert evaluation_opponents(run, 0) == baselines
    assert evaluation_opponents(run, 1) == [*baselines, Opponent("predecessor", policy(0))]


def test_opponents_may_be_left_out(run_with):
    run = run_with(
        range(4),
        "evaluation.predecessor=false",
        "evaluation.ancestors=0",
        "evaluation.baselines=[perfect]",
    )
    assert evaluation_opponents(run, 3) == [Opponent("perfect", PolicySource("perfect"))]


@given(st.integers(0, 50), st.integers(0, 60), st.integers(1, 4))
def test_match_seats_are_sets_with_every_seat_once(first, count, players):
    seatings, sets = match_seats(first, count, players)
    assert seatings.shape == (count, players) and len(sets) == count
    for place in range(count):
        game = first + place
        assert sets[place] == game // players
        assert seatings[place].tolist() == [int(seat != game % players) for seat in range(players)]
    whole, all_sets = match_seats(0, first + count, players)
    assert (whole[first:] == seatings).all() and (all_sets[first:] == sets).all()


def results(returns, plies=None, hashes=None) -> Results:
    games = len(returns)
    return Results(
        np.array(returns, np.float32),
        np.full(games, 10, np.int32) if plies is None else np.array(plies, np.int32),
        np.full(games, 5, np.int32),
        np.arange(games, dtype=np.uint64) if hashes is None else np.array(hashes, np.uint64),
    )


def test_a_match_of_two_by_hand(sumto12):
    # The policy sits in seat 0, 1, 0, 1, ..: it wins games 0 and 1, loses 2, draws 3, wins 4 and 5.
    returns = [[1, -1], [-1, 1], [-1, 1], [0, 0], [1, -1], [-1, 1]]
    row = summarise_match(sumto12, "ancestor", "g0003", results(returns, [4, 5, 6, 7, 8, 9]))
    low, high = wilson(4.5, 6)
    assert row == {
        "opponent": "ancestor",
        "policy": "g0003",
        "n": 6,
        "wins": 4,
        "draws": 1,
        "losses": 1,
        "score": 0.75,
        "low": low,
        "high": high,
        "distinct_games": 6,
        "mean_plies": 6.5,
        "by_seat": [2 / 3, 2 / 3],
        "results_by_seat": [[2, 0, 1], [2, 1, 0]],
    }


def test_a_match_of_three_by_hand(dice):
    returns = [
        [3, 2, 2],  # seat 0: a win, though the others are two
        [3, 3, 1],  # seat 1: shares the best
        [1, 2, 1.5],  # seat 2: better than one, but a loss
        [-1, -2, -3],  # seat 0: returns below 0 may win
        [2, 0, 2],  # seat 1: the others share it: a loss
        [0, 0, 0],  # seat 2: a draw
    ]
    row = summarise_match(dice, "random", "random", results(returns))
    assert (row["wins"], row["draws"], row["losses"], row["n"]) == (2, 2, 2, 6)
    assert row["score"] == 0.5
    assert row["by_seat"] == [1.0, 0.0, 0.0]
    assert row["results_by_seat"] == [[2, 0, 0], [0, 1, 1], [0, 1, 1]]
    # Seat of the policy, how many received more than each seat, games.
    assert row["orders"] == [
        [0, [0, 1, 1], 1],
        [0, [0, 1, 2], 1],
        [1, [0, 0, 2], 1],
        [1, [0, 2, 0], 1],
        [2, [0, 0, 0], 1],
        [2, [2, 0, 1], 1],
    ]


def test_a_part_of_a_match_starts_in_its_own_seat(sumto12):
    row = summarise_match(sumto12, "random", "random", results([[-1, 1], [1, -1]]), first=3)
    assert (row["wins"], row["losses"]) == (2, 0)


def test_games_that_repeat_themselves_say_nothing_new(sumto12):
    # Two deterministic players: one game per seat, forty times.
    returns, hashes = [[1, -1], [-1, 1]] * 20, [77, 78] * 20
    row = summarise_match(sumto12, "perfect", "perfect", results(returns, hashes=hashes))
    assert row["n"] == row["wins"] == 40 and row["distinct_games"] == 2
    assert (row["low"], row["high"]) == wilson(2, 2)
    # The same actions from the other seat are another game.
    row = summarise_match(sumto12, "perfect", "perfect", results(returns, hashes=[77] * 40))
    assert row["distinct_games"] == 2


@given(
    st.lists(st.lists(st.integers(-2, 2), min_size=3, max_size=3), min_size=3, max_size=30),
    st.integers(0, 5),
)
def test_counts_add_up_and_are_those_of_each_game(dice, returns, first):
    row = summarise_match(dice, "random", "random", results(returns), first=first)
    outcomes = Counter()
    for place, paid in enumerate(returns):
        seat = (first + place) % 3
        best = max(paid[:seat] + paid[seat + 1 :])
        outcomes["win" if paid[seat] > best else "draw" if paid[seat] == best else "loss"] += 1
    assert row["wins"] == outcomes["win"]
    assert row["draws"] == outcomes["draw"]
    assert row["losses"] == outcomes["loss"]
    assert row["wins"] + row["draws"] + row["losses"] == row["n"] == len(returns)
    assert 0 <= row["low"] <= row["score"] <= row["high"] <= 1


# Ratings.


def test_a_match_of_two_as_outcomes(sumto12):
    returns = [[1, -1], [-1, 1], [-1, 1], [0, 0], [1, -1], [-1, 1]]
    row = summarise_match(sumto12, "predecessor", "g0002", results(returns, hashes=[1, 2] * 3))
    # Two distinct games of six: each game counts a third.
    assert match_outcomes("g0003", row) == [
        (("g0003", "g0002"), (0, 1), 2, pytest.approx(2 / 3)),
        (("g0003", "g0002"), (1, 0), 1, pytest.approx(1 / 3)),
        (("g0002", "g0003"), (1, 0), 2, pytest.approx(2 / 3)),
        (("g0002", "g0003"), (0, 0), 1, pytest.approx(1 / 3)),
    ]


def test_a_match_of_three_as_outcomes(dice):
    row = summarise_match(dice, "random", "random", results([[3, 2, 2], [3, 3, 1], [1, 2, 1.5]]))
    assert match_outcomes("g1", row) == [
        (("g1", "random", "random"), (0, 1, 1), 1, 1.0),
        (("random", "g1", "random"), (0, 0, 2), 1, 1.0),
        (("random", "random", "g1"), (2, 0, 1), 1, 1.0),
    ]


def test_rows_written_before_seats_were_told_apart_are_passed_over(sumto12):
    row = summarise_match(sumto12, "random", "random", results([[1, -1], [-1, 1]]))
    del row["results_by_seat"]
    assert rated_outcomes([{"policy": "g1", "evaluation": [row]}]) == []


@given(st.lists(st.lists(st.integers(-2, 2), min_size=2, max_size=2), min_size=2, max_size=30))
def test_outcomes_of_two_keep_every_result(sumto12, returns):
    row = summarise_match(sumto12, "random", "random", results(returns))
    outcomes = match_outcomes("g1", row)
    won = sum(
        games
        for seats, places, games, _ in outcomes
        if places[seats.index("g1")] < places[1 - seats.index("g1")]
    )
    assert won == row["wins"] and sum(each.games for each in outcomes) == row["n"]


# Opponents from the past by weight.


def evaluated(run: Run, scores: dict[int, dict[int, float]]) -> None:
    """Writes records: policy -> opponent -> score in 100 games."""
    lines = []
    for generation in run.complete():
        rows = [
            {"policy": policy(other).name, "score": score, "n": 100, "by_seat": [score, score]}
            for other, score in scores.get(generation, {}).items()
        ]
        lines.append(
            {"generation": generation, "policy": policy(generation).name, "evaluation": rows}
        )
    run.storage.write("run/metrics.jsonl", "".join(json.dumps(line) + "\n" for line in lines))


def test_recent_generations_come_more_often():
    # From generation 12 on the past is 0..10; two generations halve the weight.
    weights = recency_weights(range(11), 12, 2.0)
    assert weights[10] == 1 and weights[8] == 0.5 and weights[6] == 0.25
    assert weights[0] == pytest.approx(1 / 32)


def test_hard_opponents_come_more_often():
    weights = difficulty_weights([0.0, 0.5, 0.9, 1.0], 2.0)
    assert weights.tolist() == pytest.approx([1, 0.25, 0.01, 0])
    # Nobody is hard any more: everybody comes alike.
    assert difficulty_weights([1.0, 1.0], 2.0).tolist() == [1, 1]


def test_scores_are_those_of_the_champion_from_both_sides_and_before(run_with):
    run = run_with([0, 1, 2, 2, 2])
    evaluated(run, {2: {1: 0.75, 0: 1.0}, 3: {2: 0.4, 0: 0.9}, 4: {2: 0.2}})
    name = policy(2).name
    expected = {policy(1).name: 0.75, policy(0).name: 1.0, policy(3).name: 0.6}
    assert recorded_scores(run, 4, name) == pytest.approx(expected)
    assert recorded_scores(run, 5, name) == pytest.approx(expected | {policy(4).name: 0.8})
    assert recorded_scores(run, 1, name) == {}


def test_an_evaluation_out_of_turn_does_not_count(run_with):
    run = run_with([0, 1, 2, 3], "evaluation.every=2")
    evaluated(run, {2: {0: 0.8}, 3: {0: 0.6}})  # 3 was the last one of some start
    assert recorded_scores(run, 4, policy(2).name) == {policy(0).name: 0.8}
    assert recorded_scores(run, 4, policy(3).name) == {}


@pytest.mark.parametrize("rule", ["recency", "prioritised"])
def test_the_past_is_drawn_by_weight(run_with, rule):
    run = run_with(range(7), f"opponents={rule}", "opponents.past=100")
    evaluated(run, {6: {0: 1.0, 1: 0.9, 2: 0.5, 4: 0.0}})
    pool = opponent_pool(run, 7)
    assert pool.sources[0] == policy(6) and sum(pool.weights) == pytest.approx(1)
    share = {
        source.name: weight / 0.2
        for source, weight in zip(pool.sources[1:], pool.weights[1:], strict=True)
        if source != RANDOM
    }
    if rule == "recency":
        weights = 0.5 ** ((5 - np.arange(6)) / 5.0)
    else:
        weights = np.array([0, 0.1, 0.5, 0.5, 1, 0.5]) ** 2  # 3 and 5 were never met
    expected = weights / weights.sum()
    found = np.array([share.get(policy(each).name, 0.0) for each in range(6)])
    # 100 draws: five deviations of a binomial share.
    assert (abs(found - expected) <= 5 * np.sqrt(expected * (1 - expected) / 100)).all()
    assert opponent_pool(run, 7) == pool
    # What comes later changes nothing.
    run.finish(7, {"policy": policy(7).to_json(), "champion": policy(7).to_json(), "shards": []})
    evaluated(run, {6: {0: 1.0, 1: 0.9, 2: 0.5, 4: 0.0}, 7: {6: 1.0}})
    assert opponent_pool(run, 7) == pool


@pytest.mark.parametrize("rule", ["recency", "prioritised"])
def test_without_a_past_there_is_nobody_to_draw(run_with, rule):
    pool = opponent_pool(run_with([0], f"opponents={rule}"), 1)
    assert dict(zip(pool.sources, pool.weights, strict=True)) == pytest.approx(
        {policy(0): 0.9, RANDOM: 0.1}
    )


# The gate.


@given(st.integers(0, 60), st.integers(1, 30), st.integers(2, 4))
def test_tables_are_sets_with_every_order_of_seats_once(first, count, players):
    seatings, sets = table_seats(first, count, players)
    size = math.factorial(players)
    assert (sets == np.arange(first, first + count) // size).all()
    whole, _ = table_seats(0, size, players)
    assert len({tuple(row) for row in whole}) == size
    assert (np.sort(whole, axis=1) == np.arange(players)).all()
    assert (seatings == whole[np.arange(first, first + count) % size]).all()


def test_scores_of_pairs_by_hand():
    # Sets of two: won twice; won and lost; drawn and lost; the second set again.
    returns = [[1, -1], [-1, 1], [1, -1], [1, -1], [0, 0], [1, -1], [1, -1], [1, -1], [1, -1]]
    scores, fresh = pair_scores(results(returns, hashes=[1, 2, 3, 4, 5, 6, 3, 4, 9]))
    assert scores.tolist() == [1, 0.5, 0.25, 0.5]  # the ninth game has no partner
    assert fresh.tolist() == [True, True, True, False]


def test_scores_of_sets_of_three_share_the_first_place():
    returns = [[3, 1, 1], [2, 2, 0], [1, 1, 1], [0, 1, 2], [5, 5, 6], [1, 1, 0]]
    scores, _ = pair_scores(results(returns))
    assert scores.tolist() == pytest.approx([(1 + 1 / 2 + 1 / 3) / 3, 0])


@given(st.lists(st.lists(st.integers(-2, 2), min_size=3, max_size=3), min_size=1, max_size=10))
def test_equals_of_three_score_a_third(returns):
    # Identical players: whatever happens at a table happens to each of them from each seat.
    games = [returns[at // 3] for at in range(3 * len(returns))]
    assert pair_scores(results(games))[0] == pytest.approx(1 / 3)


def gate(rule: str, **settings) -> GateConfig:
    return GateConfig(rule=rule, **settings)


def played(pairs: int, wins: float, hashes=None) -> Results:
    """Pairs of which a share is won twice and the rest shared."""
    won = int(pairs * wins)
    returns = [[1, -1], [-1, 1]] * won + [[1, -1], [1, -1]] * (pairs - won)
    return results(returns, hashes=hashes)


@pytest.mark.parametrize(
    ("threshold", "wins", "decision"),
    [
        (0.55, 0.10, "promoted"),
        (0.55, 0.09, "kept"),
        (0.5, 0.0, "promoted"),
        (0.0, 0.0, "promoted"),
    ],
)
def test_the_threshold_gate(sumto12, threshold, wins, decision):
    record = gate_record(gate("threshold", threshold=threshold), sumto12, "g1", played(100, wins))
    assert record["decision"] == decision and record["rule"] == "threshold"
    assert record["score"] == pytest.approx(0.5 + wins / 2)
    assert record["games"] == record["n"] == 200 and record["pairs"] == 100
    assert record["pair_scores"][-1] == ([1.0, int(100 * wins)] if wins else [0.5, 100])


def test_the_sequential_gate_promotes_who_is_stronger(sumto12):
    record = gate_record(gate("sprt"), sumto12, "g1", played(400, 1.0))
    assert record["decision"] == "promoted" and record["reason"] == "elo1 = 50 accepted"
    assert record["llr"] >= record["upper"] == pytest.approx(math.log(19))
    # The evidence ends where the decision fell.
    assert record["pairs"] == record["distinct_pairs"] < 50
    assert record["games"] == record["wins"] == 2 * record["pairs"]


def test_the_sequential_gate_keeps_the_champion_against_an_equal(sumto12):
    record = gate_record(gate("sprt"), sumto12, "g1", played(400, 0.0))
    assert record["decision"] == "kept" and record["llr"] <= record["lower"]
    assert record["reason"] == "elo0 = 0 accepted"


def test_the_sequential_gate_keeps_the_champion_at_the_cap(sumto12):
    record = gate_record(gate("sprt", pairs=20), sumto12, "g1", played(20, 0.5))
    assert record["decision"] == "kept" and record["reason"] == "undecided after 20 pairs"
    assert record["lower"] < record["llr"] < record["upper"] and record["pairs"] == 20


@pytest.mark.parametrize("rule", ["threshold", "sprt"])
def test_players_who_repeat_themselves_prove_nothing(sumto12, rule):
    # Both play the same two games 200 times, and the new one wins them.
    same = played(200, 1.0, hashes=[1, 2] * 200)
    record = gate_record(gate(rule, pairs=200, min_distinct=20), sumto12, "g1", same)
    assert record["decision"] == "kept"
    assert record["distinct_pairs"] == 1 and record["distinct_games"] == 2
    if rule == "threshold":
        assert record["reason"] == "only 2 distinct games, needed 20"
        assert gate_record(gate(rule), sumto12, "g1", same)["decision"] == "promoted"


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ({"decision": "kept", "llr": -2.951, "pairs": 84}, "kept (LLR -2.95, 84 pairs)"),
        ({"decision": "promoted", "score": 0.5625}, "promoted (56.2%)"),
    ],
)
def test_a_gate_in_words(record, words):
    assert gate_words(record) == words
