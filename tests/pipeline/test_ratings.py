"""The Wilson interval against published numbers, exact arithmetic and simulation; ratings against
hand-worked pools and known strengths."""

import itertools
import json
import math
from collections import Counter
from decimal import Decimal, getcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pools import coverage, log_likelihood, luce_order, round_robin

from pipeline.ratings import ELO, Interval, Outcome, fit, notes, table, wilson


def exact(score: float, n: int, z: str = "1.959964") -> tuple[Decimal, Decimal]:
    """The roots of (p - score/n)^2 = z^2 p (1 - p) / n, which define the interval, to 40 digits."""
    getcontext().prec = 40
    z2, p, n = Decimal(z) ** 2, Decimal(score) / n, Decimal(n)
    # (1 + z2/n) x^2 - (2p + z2/n) x + p^2 = 0
    a, b, c = 1 + z2 / n, -(2 * p + z2 / n), p * p
    root = (b * b - 4 * a * c).sqrt()
    return (-b - root) / (2 * a), (-b + root) / (2 * a)


@pytest.mark.parametrize(
    ("score", "n", "low", "high"),
    [
        # R. G. Newcombe, "Two-sided confidence intervals for the single proportion", Statistics in
        # Medicine 17 (1998), table I, method 3 (score, no continuity correction).
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
        # 8 of 10 and its mirror, as commonly tabulated.
        (8, 10, 0.4902, 0.9433),
        (2, 10, 0.0567, 0.5098),
    ],
)
def test_published_intervals(score, n, low, high):
    assert wilson(score, n) == pytest.approx((low, high), abs=5e-5)


def test_a_draw_counts_half():
    # 3 wins, 5 draws, 2 losses: 5.5 of 10.
    low, high = exact(5.5, 10)
    assert wilson(3 + 5 / 2, 10) == pytest.approx((float(low), float(high)), abs=1e-12)


def test_no_games_say_nothing():
    assert wilson(0, 0) == Interval(0.0, 1.0)


@pytest.mark.parametrize("n", [1, 2, 7, 400, 10**7])
def test_all_or_nothing_ends_exactly_at_1_and_0(n):
    none, every = wilson(0, n), wilson(n, n)
    assert none.low == 0.0 and every.high == 1.0
    # 0 of n: the upper end is z^2 / (n + z^2).
    z2 = 1.959964**2
    assert none.high == pytest.approx(z2 / (n + z2), rel=1e-12)
    assert every.low == pytest.approx(n / (n + z2), rel=1e-12)


HALVES = st.integers(1, 3000).flatmap(
    lambda n: st.tuples(st.integers(0, 2 * n).map(lambda twice: twice / 2), st.just(n))
)


@given(HALVES)
def test_it_solves_the_equation_that_defines_it(case):
    score, n = case
    low, high = exact(score, n)
    found = wilson(score, n)
    assert found.low == pytest.approx(float(low), abs=1e-12)
    assert found.high == pytest.approx(float(high), abs=1e-12)
    assert 0 <= found.low <= score / n <= found.high <= 1
    mirrored = wilson(n - score, n)
    assert (1 - mirrored.high, 1 - mirrored.low) == pytest.approx(found, abs=1e-12)


@given(HALVES, st.integers(2, 50))
def test_more_games_of_the_same_score_say_more(case, factor):
    score, n = case
    few, many = wilson(score, n), wilson(score * factor, n * factor)
    assert many.high - many.low < few.high - few.low


@given(st.floats(0, 1), st.integers(1, 10**7))
def test_scores_that_rounding_made_stay_inside(share, n):
    low, high = wilson(share * n, n)  # as `summarise_match` calls it
    assert 0 <= low <= high <= 1 and not math.isnan(low)


@pytest.mark.parametrize("p", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("n", [20, 100, 400])
def test_it_covers_the_truth_in_about_95_of_100_samples(p, n):
    wins = np.random.default_rng(1).binomial(n, p, 4000)
    intervals = {k: wilson(int(k), n) for k in np.unique(wins)}
    covered = np.mean([intervals[k].low <= p <= intervals[k].high for k in wins])
    # L. Brown, T. Cai, A. DasGupta, "Interval estimation for a binomial proportion", Statistical
    # Science 16 (2001): its coverage stays near 95%, unlike the normal interval's. The deviation
    # of an estimate from 4,000 samples is 0.35%.
    assert 0.91 < covered < 0.98


def test_a_wider_quantile_gives_a_wider_interval():
    low, high = exact(30, 40, "2.575829")
    assert wilson(30, 40, 2.575829) == pytest.approx((float(low), float(high)), abs=1e-12)
    assert wilson(30, 40, 2.575829).low < wilson(30, 40).low


# Ratings of a pool.


def elo(odds: float) -> float:
    return 400 * math.log10(odds)


def two(wins: int, draws: int, losses: int, players=("a", "random")) -> list[Outcome]:
    """The same results from both seats."""
    pool = []
    for places, games in (((0, 1), wins), ((0, 0), draws), ((1, 0), losses)):
        if games:
            pool.append(Outcome(players, places, games, float(games)))
            pool.append(Outcome(players[::-1], places[::-1], games, float(games)))
    return pool


def by_name(rated: dict) -> dict[str, dict]:
    return {each["player"]: each for each in rated["players"]}


@pytest.mark.parametrize(("wins", "losses"), [(30, 10), (5, 5), (200, 0), (0, 7)])
def test_two_players_without_draws_have_the_odds_of_their_results(wins, losses):
    # 2w wins and 2l losses in all, half a win and half a loss more (Jeffreys' prior).
    rated = fit(two(wins, 0, losses), replicates=100)
    expected = elo((2 * wins + 0.5) / (2 * losses + 0.5))
    assert by_name(rated)["a"]["rating"] == pytest.approx(expected, abs=0.06)
    assert rated["first_player"][0] == pytest.approx(0, abs=0.06)
    assert rated["draw"] == 0 and by_name(rated)["a"]["games"] == 2 * (wins + losses)


def test_draws_by_hand():
    # Davidson's likelihood for one pair: wins : draws : losses = pi : nu sqrt(pi) : 1, so that
    # pi = w/l and nu = d / sqrt(w l); equals then draw with nu / (2 + nu).
    rated = fit(two(16, 12, 4), replicates=100)
    wins, draws, losses = 32.5, 24, 8.5
    assert by_name(rated)["a"]["rating"] == pytest.approx(elo(wins / losses), abs=0.06)
    nu = draws / math.sqrt(wins * losses)
    assert rated["draw"] == pytest.approx(nu / (2 + nu), abs=1e-4)


def test_the_first_player_term_by_hand():
    # Equal players; the first seat wins 30 of 40. Without virtual games: odds 3, 190.8 Elo.
    pool = [
        Outcome(seats, places, games, float(games))
        for seats in (("a", "random"), ("random", "a"))
        for places, games in (((0, 1), 30), ((1, 0), 10))
    ]
    rated = fit(pool, replicates=400)
    assert by_name(rated)["a"]["rating"] == pytest.approx(0, abs=0.06)
    value, low, high = rated["first_player"]
    assert value == pytest.approx(elo(60.5 / 20.5), abs=0.06) and low < value < high
    assert rated["seats"][0][0] == pytest.approx(value / 2, abs=0.06)
    assert rated["seats"][1][0] == pytest.approx(-value / 2, abs=0.06)
    # The interval of a proportion of 60 in 80, as odds: the deviation is 1 / sqrt(80 * 3/16).
    assert high - low == pytest.approx(2 * 1.96 * ELO / math.sqrt(80 * 0.75 * 0.25), rel=0.15)


def test_the_estimate_is_the_top_of_the_likelihood():
    strengths = {"random": 0.0, "a": 150.0, "b": -80.0, "c": 400.0}
    pool = round_robin(strengths, 60.0, 0.6, 3000, seed=3)  # virtual games weigh nothing here
    rated = fit(pool, replicates=100)
    found = {name: each["rating"] / ELO for name, each in by_name(rated).items()}
    seat, draw = rated["first_player"][0] / ELO, rated["draw"]
    draws = 2 * draw / (1 - draw)
    top = log_likelihood(pool, found, seat, draws)
    for name in ("a", "b", "c"):
        for by in (-0.02, 0.02):
            moved = {**found, name: found[name] + by}
            assert log_likelihood(pool, moved, seat, draws) < top
    for by in (-0.02, 0.02):
        assert log_likelihood(pool, found, seat + by, draws) < top
        assert log_likelihood(pool, found, seat, draws * (1 + by)) < top
    for name, strength in strengths.items():
        assert found[name] * ELO == pytest.approx(strength, abs=15)
    assert seat * ELO == pytest.approx(60, abs=8) and draws == pytest.approx(0.6, abs=0.03)


def test_orders_of_finish_of_three_recover_strengths_and_seats():
    # Plackett-Luce with seats: nobody ties, and every order of seats is played.
    rng = np.random.default_rng(5)
    strengths, seats = {"random": 0.0, "a": 0.8, "b": -0.5}, np.array([0.3, 0.0, -0.3])
    pool = []
    for names in itertools.permutations(strengths):
        values = np.array([strengths[name] for name in names]) + seats
        counts = Counter(luce_order(values, rng) for _ in range(3000))
        pool += [Outcome(names, places, games, float(games)) for places, games in counts.items()]
    rated = fit(pool, replicates=100)
    for name, each in by_name(rated).items():
        assert each["rating"] == pytest.approx(strengths[name] * ELO, abs=12)
    for found, true in zip(rated["seats"], seats, strict=True):
        assert found[0] == pytest.approx(true * ELO, abs=8)
    # The first seat against the mean of the other two: 0.3 + 0.15.
    assert rated["first_player"][0] == pytest.approx(0.45 * ELO, abs=10)
    assert rated["draw"] == 0


def test_one_winner_of_three_and_losers_whom_nobody_ordered():
    # a wins 60 of 120 from each seat against copies of random: alpha / (alpha + 2) = 1/2.
    pool = []
    for seat in range(3):
        names = tuple("a" if each == seat else "random" for each in range(3))
        pool.append(Outcome(names, tuple(int(e != seat) for e in range(3)), 60, 60.0))
        for winner in {0, 1, 2} - {seat}:
            pool.append(Outcome(names, tuple(int(e != winner) for e in range(3)), 30, 30.0))
    rated = fit(pool, replicates=100)
    assert by_name(rated)["a"]["rating"] == pytest.approx(elo(2), abs=2)
    # The losers share the last place: that is no tie, and no draw.
    assert rated["draw"] == 0


def test_ties_of_three_by_hand():
    # Three equal players: 70 games with a winner, 20 in which two share the first place, 10 in
    # which all do. The Davidson-Luce model with alpha = 1 fits these shares exactly.
    pool = []
    for names in itertools.permutations(("a", "b", "random")):
        for seat in range(3):
            ends = {tuple(int(e != seat) for e in range(3)): 70}
            ends[tuple(2 * int(e == seat) for e in range(3))] = 20
            pool += [Outcome(names, places, n, float(n)) for places, n in ends.items()]
        pool.append(Outcome(names, (0, 0, 0), 30, 30.0))
    rated = fit(pool, replicates=100)
    assert all(abs(each["rating"]) < 0.06 for each in rated["players"])
    # Half a virtual game for each of three players, 1.5 in all, beside 6 x 300.
    assert rated["draw"] == pytest.approx(540 / 1801.5, abs=1e-3)


def test_an_unbeaten_player_is_finite_with_an_open_upper_end():
    rated = by_name(fit(two(200, 0, 0), replicates=2000))["a"]
    assert rated["rating"] == pytest.approx(elo(400.5 / 0.5), abs=0.06)
    # The two orders of seats decide two numbers, so the rating is the mean of their log-odds, each
    # of a share of losses from Beta(1/4, 200.25).
    shares = np.random.default_rng(1).beta(0.25, 200.25, (2, 100_000))
    low, middle, high = np.quantile(-np.log(shares).mean(0) * ELO, (0.025, 0.5, 0.975))
    assert rated["low"] == pytest.approx(low, rel=0.05)
    assert rated["low"] < rated["rating"] < middle < rated["high"]
    # Far out the ridge ends what half a game no longer does.
    assert rated["rating"] + 1000 < rated["high"] <= 1.05 * high


def test_players_without_a_chain_of_games_to_the_anchor_are_not_rated():
    rated = fit([*two(3, 0, 1), *two(5, 1, 2, ("b", "c")), *two(2, 0, 2, ("a", "d"))])
    names = [each["player"] for each in rated["players"]]
    assert set(names[:3]) == {"random", "a", "d"} and names[3:] == ["b", "c"]
    for each in rated["players"][3:]:
        assert each["rating"] is each["low"] is each["high"] is None and each["games"] == 16
    assert "no chain of games links them to random: b, c" in notes(rated)
    assert "not linked" in table(rated)


def test_without_the_anchor_the_first_player_named_is_0():
    rated = fit(two(30, 0, 10, ("b", "c")), replicates=100)
    assert rated["anchor"] == "b" and by_name(rated)["b"]["rating"] == 0.0
    assert by_name(rated)["c"]["rating"] == pytest.approx(-elo(60.5 / 20.5), abs=0.06)


def test_nothing_played_or_nobody_to_play_against_gives_no_ratings():
    assert fit([]) is None
    assert fit([Outcome(("random",), (0,), 20, 20.0)]) is None


def test_equal_games_prove_nothing_new():
    repeated = [each._replace(distinct=each.games / 20) for each in two(60, 0, 20)]
    few, many = by_name(fit(two(3, 0, 1)))["a"], by_name(fit(two(60, 0, 20)))["a"]
    again = by_name(fit(repeated))["a"]
    assert (again["rating"], again["low"], again["high"]) == (
        few["rating"],
        few["low"],
        few["high"],
    )
    assert again["games"] == many["games"] == 160
    assert again["high"] - again["low"] > 3 * (many["high"] - many["low"])


def test_outcomes_add_up_and_the_seed_decides_the_intervals():
    pool = round_robin({"random": 0.0, "a": 100.0, "b": 200.0}, 30.0, 0.4, 40, seed=1)
    halves = [each._replace(games=each.games, distinct=each.distinct / 2) for each in pool]
    once, twice = fit(pool, seed=4), fit([*halves, *halves], seed=4)
    for one, other in zip(once["players"], twice["players"], strict=True):
        assert {**one, "games": 2 * one["games"]} == other
    assert fit(pool, seed=4) == once != fit(pool, seed=5)
    assert json.loads(json.dumps(once)) == once


@given(st.permutations(("random", "a", "b", "c")))
def test_names_and_their_order_do_not_matter(names):
    strengths = {"random": 0.0, "a": 100.0, "b": -50.0, "c": 300.0}
    pool = round_robin(strengths, 30.0, 0.4, 30, seed=2)
    shuffled = sorted(pool, key=lambda each: [names.index(name) for name in each.seats])
    one, other = by_name(fit(pool, replicates=100)), by_name(fit(shuffled, replicates=100))
    assert {n: e["rating"] for n, e in one.items()} == pytest.approx(
        {n: e["rating"] for n, e in other.items()}, abs=0.11
    )


def test_intervals_hold_the_truth_about_95_times_in_100():
    # 40 simulations with 6 ratings each; those of one simulation depend on each other. The 500 of
    # the claim are in tests/slow/test_rating_coverage.py.
    held, first, ratings = coverage(40, replicates=200)
    assert ratings == 240 and 0.90 <= held <= 0.99 and first >= 0.85


def test_the_table_has_the_anchor_and_the_words():
    rated = fit(two(30, 10, 10), replicates=200)
    text = table(rated)
    assert text.splitlines()[1].startswith("a ") and "anchor" in text
    assert "random = 0, 400 points are odds of 10 to 1." in text
