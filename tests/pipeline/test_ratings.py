"""The Wilson interval against published numbers, exact arithmetic and simulation."""

import math
from decimal import Decimal, getcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.ratings import Interval, wilson


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
