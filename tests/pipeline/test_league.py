"""Who plays whom: by weight, in every seat, and counted right."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config import to_config
from pipeline.league import (
    Opponent,
    Pool,
    evaluation_opponents,
    match_seats,
    opponent_pool,
    passes_gate,
    sample_past,
    selfplay_seatings,
    summarise_match,
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


@pytest.mark.parametrize(
    ("rule", "score", "passes"),
    [
        ("always", 0.0, True),
        ("threshold", 0.55, True),
        ("threshold", 0.56, True),
        ("threshold", 0.5499, False),
        ("threshold", None, True),  # nobody to play against
    ],
)
def test_the_gate(compose, rule, score, passes):
    threshold = ["gate.threshold=0.55"] if rule == "threshold" else []
    config = to_config(compose(f"gate={rule}", *threshold))
    row = None if score is None else {"score": score}
    assert passes_gate(config, row) is passes
