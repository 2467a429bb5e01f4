"""The claim of docs/ratings.md on the sequential test, in 2,000 simulations each way."""

import math
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "pipeline"))

from pairs import errors

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("alpha", "beta"), [(0.05, 0.05), (0.01, 0.1)])
def test_it_errs_as_often_as_configured(capsys, alpha, beta):
    promoted, refused, pairs = errors(2000, alpha, beta)
    with capsys.disabled():
        print(f"\nalpha {alpha}: {promoted:.2%}, beta {beta}: {refused:.2%}, {pairs:.0f} pairs")
    assert promoted <= alpha + 3 * math.sqrt(alpha * (1 - alpha) / 2000)
    assert refused <= beta + 3 * math.sqrt(beta * (1 - beta) / 2000)
