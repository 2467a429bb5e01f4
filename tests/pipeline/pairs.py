"""Pairs of games drawn with a known mean score, for the sequential test."""

import numpy as np

from pipeline.sprt import expected_score, judge

_SCORES = np.linspace(0, 1, 5)
_SHAPE = np.array(
    [0.08, 0.24, 0.36, 0.24, 0.08]
)  # of two equal players: half of all pairs are even


def pair_shares(mean: float) -> np.ndarray:
    """float64 [5]: `_SHAPE` with another mean, moved from the lower scores to the upper ones."""
    shift = (mean - 0.5) / (_SHAPE @ (_SCORES - 0.5) ** 2)
    return _SHAPE * (1 + shift * (_SCORES - 0.5))


def errors(simulations: int, alpha: float, beta: float) -> tuple[float, float, float]:
    """(share of H1 where elo0 holds, share of H0 where elo1 holds, mean pairs of both).

    Tests of 0 against 50 points without a cap that matters; every pair is drawn by itself.
    """
    wrong, lengths = [], []
    for elo, mistake in ((0.0, "h1"), (50.0, "h0")):
        rng = np.random.default_rng([11, int(elo)])
        shares = pair_shares(expected_score(elo))
        assert abs(shares @ _SCORES - expected_score(elo)) < 1e-12
        drawn = rng.choice(_SCORES, (simulations, 800), p=shares / shares.sum())
        fresh = np.ones(drawn.shape[1], bool)
        verdicts = [judge(scores, fresh, 0.0, 50.0, alpha, beta) for scores in drawn]
        wrong.append(sum(each.decision == mistake for each in verdicts) / simulations)
        lengths += [each.pairs for each in verdicts]
        assert sum(each.decision == "undecided" for each in verdicts) <= simulations / 1000
    return wrong[0], wrong[1], float(np.mean(lengths))
