"""Invariants on every step of 100,000 random games of Catan, all options on and off."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "games"))

from catan_invariants import play
from test_catan_play import OPTIONS

from games import make_game

pytestmark = pytest.mark.slow
GAMES, BATCH = 100_000, 2_000


@pytest.mark.parametrize("part", range(GAMES // BATCH))
def test_invariants(part):
    game = make_game("catan", **OPTIONS[part % len(OPTIONS)])
    assert len(play(game, BATCH, seed=1000 + part)) == BATCH
