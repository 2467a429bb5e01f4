"""The sequential test of a gate: is the new policy stronger, from as few games as it takes.

A. Wald, "Sequential tests of statistical hypotheses", Annals of Mathematical Statistics 16 (1945),
p. 117-186. H0 says that the policy is `elo0` points above the champion, H1 says `elo1`; after each
pair the log-likelihood ratio of the two is compared with two bounds.

A pair is one opening played from both seats, with more than two players from every seat; its score
is a mean of P games. Games of a pair depend on each other, pairs do not, so the test counts pairs
(pentanomial: with two players a pair scores 0, 1/4, 1/2, 3/4 or 1). Nothing but the mean of these
scores is known under either hypothesis, so the likelihood ratio is the generalised one: each
hypothesis takes the distribution that fits best among those with its mean (M. Van den Bergh, "A
practical introduction to the GSPRT", 2020; A. Owen, "Empirical likelihood ratio confidence
intervals for a single functional", Biometrika 75, 1988). The customary normal approximation
N (s1 - s0) (2 mean - s0 - s1) / (2 variance) is its limit for many pairs and close hypotheses; this
one also holds where all pairs score alike and the variance is 0.
"""

import math
from typing import NamedTuple

import numpy as np

_EMPTY = 1e-3  # pairs with scores 0 and 1 where none were seen: without them no mean could be had
_STEPS = 50  # of bisection
_BLOCK = 50  # pairs that are looked at together


class Verdict(NamedTuple):
    """Where a test stands."""

    decision: str  # h1, h0, or undecided
    pairs: int  # after how many the decision fell, or all there are
    llr: float  # then


def expected_score(elo: float, players: int = 2) -> float:
    """Mean score of a player `elo` points above its opponents, who are equal to each other, over
    all seats: its share of first places, 1 / (1 + (P - 1) 10^(-elo / 400)).

    For two players without draws that is Elo's formula, for more the model of Luce (1959).
    """
    return 1 / (1 + (players - 1) * 10 ** (-elo / 400))


def bounds(alpha: float, beta: float) -> tuple[float, float]:
    """(lower, upper) bound of the log-likelihood ratio, as Wald sets them.

    Args:
        alpha: how often H1 may be accepted although H0 holds.
        beta: how often H0 may be accepted although H1 holds.
    """
    return math.log(beta / (1 - alpha)), math.log((1 - beta) / alpha)


def log_ratio(counts: np.ndarray, support: np.ndarray, s0: float, s1: float) -> np.ndarray:
    """Generalised log-likelihood ratio of mean score `s1` against `s0`.

    The distribution with mean s that fits counts n best is p_i ~ n_i / (1 + t (a_i - s)), with t
    such that its mean is s (Owen 1988); t is found by bisection.

    Args:
        counts: float64 [N, K], how many pairs had each score; N cases at once.
        support: float64 [K], rising from 0 to 1.
        s0, s1: within (0, 1).

    Returns:
        float64 [N]; 0 without pairs.
    """
    pairs = counts.sum(1)
    filled = counts.astype(float)
    filled[:, [0, -1]] = np.maximum(filled[:, [0, -1]], _EMPTY)
    shares = filled / filled.sum(1, keepdims=True)
    terms = [np.log1p(_tilt(shares, support - s)[:, None] * (support - s)) for s in (s0, s1)]
    return pairs * (shares * (terms[0] - terms[1])).sum(1)


def _tilt(shares: np.ndarray, gaps: np.ndarray) -> np.ndarray:
    """float64 [N]: t at which sum_i shares_i gaps_i / (1 + t gaps_i) = 0; it falls with t."""
    low = np.full(len(shares), -1 / gaps.max())
    high = np.full(len(shares), -1 / gaps.min())
    for _ in range(_STEPS):
        middle = (low + high) / 2
        slope = (shares * gaps / (1 + middle[:, None] * gaps)).sum(1)
        low, high = np.where(slope > 0, middle, low), np.where(slope > 0, high, middle)
    return (low + high) / 2


def judge(
    scores: np.ndarray,
    fresh: np.ndarray,
    elo0: float,
    elo1: float,
    alpha: float,
    beta: float,
    players: int = 2,
    min_fresh: int = 0,
) -> Verdict:
    """Goes through pairs in order until a bound is crossed. Pairs behind that one do not matter, so
    the verdict is the same however far ahead was played.

    Pairs that were played before prove nothing new: the counts of a prefix are scaled to the number
    of different pairs in it, as the interval of a match is.

    Args:
        scores: float64 [N], of each pair, 0 to 1.
        fresh: bool [N], False where an equal pair was played before.
        elo0, elo1, alpha, beta: the test.
        players: P.
        min_fresh: different pairs before which H1 is not accepted.
    """
    if not len(scores):
        return Verdict("undecided", 0, 0.0)
    # A first place is shared by t <= P, so scores are whole multiples of this. The support is the
    # same whatever was seen, to the last bit of the sums.
    units = players * math.lcm(*range(1, players + 1))
    support = np.arange(units + 1) / units
    s0, s1 = expected_score(elo0, players), expected_score(elo1, players)
    lower, upper = bounds(alpha, beta)
    seen = np.rint(scores * units)[:, None] == np.arange(units + 1)
    counts = np.cumsum(seen, axis=0, dtype=float)
    different = np.cumsum(fresh)
    counts *= (different / np.arange(1, len(scores) + 1))[:, None]
    for first in range(0, len(scores), _BLOCK):
        block = slice(first, first + _BLOCK)
        llr = log_ratio(counts[block], support, s0, s1)
        accepted = (llr >= upper) & (different[block] >= min_fresh)
        crossed = np.flatnonzero(accepted | (llr <= lower))
        if len(crossed):
            at = int(crossed[0])
            return Verdict("h1" if accepted[at] else "h0", first + at + 1, float(llr[at]))
    return Verdict("undecided", len(scores), float(llr[-1]))
