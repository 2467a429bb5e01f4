"""The sequential test: by hand, by its limits, and by how often it errs."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pairs import errors

from pipeline.sprt import Verdict, bounds, expected_score, judge, log_ratio

FIVE = np.linspace(0, 1, 5)
TEST = {"elo0": 0.0, "elo1": 50.0, "alpha": 0.05, "beta": 0.05}


@pytest.mark.parametrize(
    ("elo", "players", "score"),
    [
        (0, 2, 1 / 2),
        (400, 2, 10 / 11),  # odds of 10 to 1
        (-400, 2, 1 / 11),
        (0, 3, 1 / 3),  # equals share the first places
        (0, 6, 1 / 6),
        (400, 4, 10 / 13),  # 10 to 1 against each of three
    ],
)
def test_expected_scores(elo, players, score):
    assert expected_score(elo, players) == pytest.approx(score, rel=1e-12)


def test_bounds_are_walds():
    assert bounds(0.05, 0.05) == pytest.approx((-math.log(19), math.log(19)))
    assert bounds(0.01, 0.1) == pytest.approx((math.log(0.1 / 0.99), math.log(90)))


def test_two_scores_leave_one_distribution_for_each_mean():
    # With pairs that score 0 or 1 alone, mean s means share s: the ratio is the plain binomial one.
    wins, losses, s0, s1 = 70.0, 30.0, 0.5, 0.6
    found = log_ratio(np.array([[losses, wins]]), np.array([0.0, 1.0]), s0, s1)[0]
    expected = wins * math.log(s1 / s0) + losses * math.log((1 - s1) / (1 - s0))
    assert found == pytest.approx(expected, rel=1e-9)


def test_three_scores_by_hand():
    # n = (1, 2, 1) on (0, 1/2, 1): the mean 1/2 fits as it is. For mean s the likelihood of
    # p = (a, 1 - a - b, b) with b - a = 2 s - 1 is found here by going through all of them.
    s1 = 0.6
    a = np.linspace(1e-6, 0.3999, 2_000_001)
    b = a + 2 * s1 - 1
    best = (np.log(a) + 2 * np.log(1 - a - b) + np.log(b)).max()
    expected = best - (2 * math.log(1 / 4) + 2 * math.log(1 / 2))
    found = log_ratio(np.array([[1.0, 2.0, 1.0]]), np.array([0, 0.5, 1]), 0.5, s1)[0]
    assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("elo1", [2, 5, 10])
def test_for_close_hypotheses_it_is_the_normal_approximation(elo1):
    counts = np.array([[900.0, 2500.0, 4000.0, 2800.0, 1000.0]])
    n = counts.sum()
    mean = (counts @ FIVE)[0] / n
    variance = (counts @ FIVE**2)[0] / n - mean**2
    s0, s1 = expected_score(0), expected_score(elo1)
    # M. Van den Bergh, "A practical introduction to the GSPRT": the LLR for known variance.
    normal = n * (s1 - s0) * (2 * mean - s0 - s1) / (2 * variance)
    assert log_ratio(counts, FIVE, s0, s1)[0] == pytest.approx(normal, rel=0.02)


@given(st.lists(st.integers(0, 50), min_size=5, max_size=5), st.floats(1, 200))
def test_seen_from_the_other_side_the_ratio_changes_its_sign(counts, elo):
    one = np.array([counts], float)
    up, down = expected_score(elo), expected_score(-elo)
    mirrored = log_ratio(one[:, ::-1], FIVE, down, up)[0]
    assert log_ratio(one, FIVE, down, up)[0] == pytest.approx(-mirrored, abs=1e-6)


def test_no_pairs_say_nothing():
    assert log_ratio(np.zeros((1, 5)), FIVE, 0.5, 0.6)[0] == 0
    assert judge(np.zeros(0), np.zeros(0, bool), **TEST) == Verdict("undecided", 0, 0.0)


def test_pairs_that_all_score_alike_decide_although_their_variance_is_0():
    won = judge(np.ones(200), np.ones(200, bool), **TEST)
    even = judge(np.full(200, 0.5), np.ones(200, bool), **TEST)
    assert won.decision == "h1" and even.decision == "h0"
    # All won: under mean s the share of wins is s or more, the ratio per pair log(s1 / s0).
    s1 = expected_score(50)
    assert won.pairs == math.ceil(math.log(19) / math.log(s1 / 0.5))
    # All even: mean s1 needs 2 s1 - 1 won pairs that never came.
    assert even.pairs == pytest.approx(math.log(19) / -math.log(2 - 2 * s1), abs=1)


@given(st.integers(0, 10_000), st.integers(0, 300), st.integers(2, 4))
def test_what_was_played_ahead_does_not_matter(seed, ahead, players):
    rng = np.random.default_rng(seed)
    scores = rng.choice(np.linspace(0, 1, {2: 5, 3: 19, 4: 49}[players]), 400)
    verdict = judge(scores, np.ones(400, bool), **TEST, players=players)
    known = scores[: verdict.pairs + ahead]
    assert judge(known, np.ones(len(known), bool), **TEST, players=players) == verdict


def test_repeated_pairs_count_once():
    # Ten different pairs, all won, played forty times each: the evidence of ten.
    fresh = np.zeros(400, bool)
    fresh[:10] = True
    verdict = judge(np.ones(400), fresh, **TEST)
    ten = judge(np.ones(10), np.ones(10, bool), **TEST)
    assert verdict.decision == "undecided" and verdict.llr == pytest.approx(ten.llr, abs=1e-3)


def test_h1_waits_for_enough_different_pairs():
    fresh = np.ones(200, bool)
    soon = judge(np.ones(200), fresh, **TEST)
    later = judge(np.ones(200), fresh, **TEST, min_fresh=60)
    assert soon.pairs < 60 and later == Verdict("h1", 60, later.llr)
    assert judge(np.zeros(200), fresh, **TEST, min_fresh=60).pairs < 60  # H0 does not wait


def test_three_players_are_equal_at_a_third():
    rng = np.random.default_rng(2)
    scores = rng.multinomial(3, [1 / 3, 2 / 3], 2000)[:, 0] / 3
    assert judge(scores, np.ones(2000, bool), **TEST, players=3).decision == "h0"
    assert judge(scores + 1 / 9, np.ones(2000, bool), **TEST, players=3).decision == "h1"


def test_it_errs_as_often_as_configured():
    # 150 tests each way; 2,000 are in tests/slow/test_sprt_errors.py. Binomial, with
    # three deviations.
    for alpha, beta in ((0.05, 0.05), (0.1, 0.05)):
        promoted, refused, _ = errors(150, alpha, beta)
        assert promoted <= alpha + 3 * math.sqrt(alpha * (1 - alpha) / 150)
        assert refused <= beta + 3 * math.sqrt(beta * (1 - beta) / 150)
