"""The claim of docs/ratings.md on its intervals, in 500 simulations."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "pipeline"))

from pools import coverage

pytestmark = pytest.mark.slow


def test_95_percent_intervals_hold_the_truth_in_92_to_98_percent(capsys):
    held, first, ratings = coverage(500, replicates=1000)
    with capsys.disabled():
        print(f"\ncoverage: ratings {held:.1%} of {ratings:,}, first player {first:.1%} of 500")
    assert 0.92 <= held <= 0.98
    assert 0.92 <= first <= 0.98
