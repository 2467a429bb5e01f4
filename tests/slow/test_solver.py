"""Our exact scores of all 4,000 positions beside those of another solver."""

import numpy as np
import pytest

from games import make_game

pytestmark = pytest.mark.slow
FOUR = make_game("k_in_a_row")


@pytest.mark.parametrize("ply", [16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4])
def test_scores_of_the_data_equal_ours(ply):
    # BitBully 0.0.79: games/data/README.md. Later plies: tests/games/test_k_in_a_row_solver.py.
    solution = FOUR.solution()
    rows = np.flatnonzero(solution.states["ply"] == ply)
    scores = FOUR.solver.scores(FOUR.rules, solution.states[rows])
    assert (scores == solution.scores[rows]).all()
