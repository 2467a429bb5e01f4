"""Our exact scores of all 4,000 positions beside those of another solver.

From ply 8 on these take a quarter of an hour on one core, the 1,011 earlier ones three hours more:
`make slow ARGS="-k 'not early_position'"` leaves those out.
"""

import numpy as np
import pytest

from games import make_game

pytestmark = pytest.mark.slow
FOUR = make_game("k_in_a_row")


def compare(rows):
    # Source of the scores: BitBully 0.0.79, games/data/README.md.
    solution = FOUR.solution()
    scores = FOUR.solver.scores(FOUR.rules, solution.states[rows])
    assert (scores == solution.scores[rows]).all()


@pytest.mark.parametrize("ply", range(16, 7, -1))
def test_scores_of_the_data_equal_ours(ply):
    # Later plies: tests/games/test_k_in_a_row_solver.py.
    compare(np.flatnonzero(FOUR.solution().states["ply"] == ply))


@pytest.mark.parametrize("part", range(21))
def test_scores_of_the_data_equal_ours_at_every_early_position(part):
    early = np.flatnonzero(FOUR.solution().states["ply"] < 8)
    assert len(early) == 1011
    compare(early[part::21])  # some minutes each, within the time that a slow test may take
