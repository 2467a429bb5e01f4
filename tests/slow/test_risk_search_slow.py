"""Risk's searches on hundreds of boards, and on the largest ones."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "games"))

from test_risk_search import OPTIMA, check_against_breadth_first, instance, played, solvable_boards

from games.risk import search

pytestmark = pytest.mark.slow


def test_a_star_equals_breadth_first_search_on_300_boards():
    winnable, unwinnable = check_against_breadth_first(range(600), 30_000)
    assert winnable + unwinnable >= 300 and unwinnable >= 20


def test_plain_a_star_equals_a_star_up_to_8_nodes():
    compared = 0
    for game, state, best in solvable_boards(range(1000, 1100), nodes=8, most_positions=20_000):
        plain = search.a_star(game.rules, state[0], use_bound=False, expansions=3000)
        if plain.status == search.OUT_OF_BUDGET:
            continue
        plan = search.a_star(game.rules, state[0], expansions=20_000)
        assert plan.length == plain.length == (best or 0)
        compared += 1
    assert compared >= 40


@pytest.mark.parametrize("name", [name for name in OPTIMA if name.startswith("classic")])
def test_a_star_proves_the_optimum_on_the_classic_map(name):
    game, state = instance(name)
    plan = search.a_star(game.rules, state[0], exact=True, memory=6_000_000)
    assert plan.status == search.SOLVED and plan.length == OPTIMA[name]["own_turns"]
    plan = search.a_star(game.rules, state[0])
    assert plan.length == OPTIMA[name]["own_turns"]
    assert played(game, state, plan) == (plan.length, 1.0)
    plan = search.real_time_a_star(game.rules, state[0])
    assert plan.status == search.SOLVED
