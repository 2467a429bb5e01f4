"""The study of a paper: its figures' numbers and its verdicts; as a whole: test_study_killed.py."""

import numpy as np
import pytest

from pipeline import study
from pipeline.selfplay import Results
from pipeline.study import Won
from pipeline.tournament import Played


def played(labels, returns):
    returns = np.array(returns, np.float32)
    n = len(returns)
    none = np.zeros(n, np.int32)
    return Played(labels, False, Results(returns, none, none, none.astype(np.uint64)))


def test_wins_are_those_of_the_one_in_its_rotating_seat():
    # The one sits in seats 0, 1, 2, 3; it wins the games in seats 0 and 2; nobody wins the last.
    returns = [[1, 0.5, 0.5, 0.5], [1, 0.5, 0.5, 0.5], [0.5, 0.5, 1, 0.5], [0.9, 0.9, 0.9, 0.9]]
    won = study.figure2([played(("a", "b"), returns)])["a", "b"]
    assert won.games == 4 and won.share == 0.5
    assert (round(won.low, 3), round(won.high, 3)) == (0.15, 0.85)  # Wilson, 2 of 4


def test_points_are_those_of_the_copies_against_the_expert():
    returns = [[1, 0.2, 0.4, 0.6], [0.3, 0.5, 1, 0.6]]
    found = study.figure3(
        [played(("expert", "b"), returns), played(("b", "expert"), returns)], "expert", 10.0
    )
    assert list(found) == ["b"]
    # Copies have 2, 4, 6 and 3, 6, 10 points.
    assert found["b"].points == pytest.approx((2.5, (4 + 19 / 3) / 2, 8.0), abs=1e-6)
    assert found["b"].wins == 0.5


@pytest.mark.parametrize(
    ("ahead", "behind", "verdict"),
    [
        ((0.5, 0.45, 0.55), (0.1, 0.08, 0.12), "confirmed"),
        ((0.1, 0.08, 0.12), (0.5, 0.45, 0.55), "refuted"),
        ((0.5, 0.45, 0.55), (0.26, 0.24, 0.28), "not settled"),
        ((0.26, 0.24, 0.28), (0.1, 0.08, 0.12), "not settled"),
    ],
)
def test_a_claim_holds_where_both_directions_are_on_its_side(ahead, behind, verdict):
    wins = {("module", "feudal"): Won(100, *ahead), ("feudal", "module"): Won(100, *behind)}
    [line] = study.claims(wins)
    assert line.startswith(f"module is better than feudal: {verdict}")
