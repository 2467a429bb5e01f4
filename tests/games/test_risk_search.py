"""A*, real-time A* and greedy search of Risk against breadth-first search and stored optima."""

import json
from pathlib import Path

import numpy as np
import pytest
from risk_oracle import fewest_turns, game_on, random_board

from games import TERMINAL, make_game
from games.risk import boards, search
from games.risk.boards import Continent, Start, make_board
from games.risk.heuristics import NEVER
from games.risk.heuristics import fewest_turns as bound_of

DATA = Path(__file__).resolve().parents[1] / "data" / "risk"
OPTIMA = json.loads((DATA / "optima.json").read_text())


def instance(name):
    """The game and the start of a stored board."""
    board = boards.load(str(DATA / f"{name}.json"))
    game = game_on(board, base=OPTIMA[name]["base"])
    return game, game.initial_states([0])


def played(game, state, plan):
    """Own turns and return of a plan, carried out by the rules against `passive`."""
    own, begun = -1, None
    me = int(state["player"][0])
    while state["player"][0] != TERMINAL:
        if state["player"][0] == me:
            if state["turn"][0] != begun:
                own, begun = own + 1, int(state["turn"][0])
            action = search.next_action(game.rules, state[0], plan.turns[own])
        else:
            actions = np.empty(1, np.int32)
            game.scripted["passive"](game.rules, state, game.legal_of(state), None, actions)
            action = int(actions[0])
        state = game.after(state, [action])
    return own + 1, game.returns_of(state)[0, me]


def solvable_boards(seeds, nodes=6, most_positions=4000):
    """Random boards whose start leaves player 0 a choice, with breadth-first search's answer."""
    for seed in seeds:
        board = random_board(seed, nodes)
        try:
            game = game_on(board, base=("none", "classic", "1")[seed % 3])
            state = game.initial_states([0])
            search.a_star(game.rules, state[0], expansions=0)
        except ValueError:  # nobody can ever move, or the first choice was none
            continue
        if state["player"][0] == 0 and state["turn"][0] == 0:
            found = fewest_turns(game, state, most_positions)
            if found != -1:
                yield game, state, found


def check_against_breadth_first(seeds, most_positions):
    """Compares on every board that breadth-first search can do; returns (winnable, unwinnable)."""
    counts = [0, 0]
    for game, state, best in solvable_boards(seeds, most_positions=most_positions):
        plan = search.a_star(game.rules, state[0], expansions=20_000)
        if best is None:
            assert plan.status == search.UNWINNABLE and plan.bound == NEVER
        else:
            assert plan.status == search.SOLVED and plan.optimal
            assert plan.length == best and played(game, state, plan) == (best, 1.0)
            root = bound_of(game.rules, 0, state["owned"][0], state["armies"][0], False, False)
            assert root <= best  # admissible
        counts[best is None] += 1
    return counts


def test_a_star_equals_breadth_first_search_over_the_rules():
    # 300 boards and more: tests/slow/test_risk_search_slow.py.
    winnable, unwinnable = check_against_breadth_first(range(50), 1000)
    assert winnable >= 10 and unwinnable >= 1


@pytest.mark.parametrize("name", OPTIMA)
def test_the_searches_on_the_stored_boards(name):
    if name.startswith("classic"):
        pytest.skip("seconds long: tests/slow/test_risk_search_slow.py")
    game, state = instance(name)
    best = OPTIMA[name]["own_turns"]
    plan = search.a_star(game.rules, state[0])
    if best is None:
        assert plan.status == search.UNWINNABLE
        return
    assert plan.status == search.SOLVED and plan.length == plan.bound == best
    assert played(game, state, plan) == (best, 1.0)
    for other in (search.real_time_a_star, search.greedy_search):
        found = other(game.rules, state[0])
        if found.status == search.SOLVED:
            assert found.length >= best and played(game, state, found) == (found.length, 1.0)


def test_real_time_a_star_wins_nine_tenths_of_the_winnable_boards():
    won = total = 0
    for name, facts in OPTIMA.items():
        if facts["own_turns"] is not None and not name.startswith("classic"):
            game, state = instance(name)
            won += search.real_time_a_star(game.rules, state[0]).status == search.SOLVED
            total += 1
    assert total >= 25 and won >= 0.9 * total


def test_the_worked_turn_is_solved_in_two_turns():
    # docs/games/risk.md: as many own turns as enemy nodes.
    game = make_game("risk", board="worked_4")
    state = game.initial_states([0])
    for exact in (False, True):
        plan = search.a_star(game.rules, state[0], exact=exact)
        assert (plan.length, plan.expansions) == (2, 2)
        assert [plan.performance(f) for f in search.WEIGHTS] == [4, 202, 20_002]


def test_plain_a_star_without_the_bound_finds_the_same():
    for name in ("grid_6_2", "ring_6_1", "tree_6_1", "ring_8_0", "tree_8_0"):
        game, state = instance(name)
        if game.rules.base[0]:
            continue  # breadth first is for boards without reinforcements
        plain = search.a_star(game.rules, state[0], use_bound=False)
        best = search.a_star(game.rules, state[0])
        assert plain.length == best.length == OPTIMA[name]["own_turns"]
        assert best.expansions <= plain.expansions


def test_exact_amounts_never_take_more_turns():
    for name in ("grid_6_2", "tree_8_0", "ring_8_1"):
        game, state = instance(name)
        plan = search.a_star(game.rules, state[0], exact=True)
        assert plan.status == search.SOLVED and plan.length <= OPTIMA[name]["own_turns"]


def test_unwinnable_is_recognised_at_the_root_and_by_exhausting_all_positions():
    game, state = instance("unwinnable_at_once")
    plan = search.a_star(game.rules, state[0])
    assert (plan.status, plan.expansions) == (search.UNWINNABLE, 0)
    game, state = instance("tree_6_0")
    plan = search.a_star(game.rules, state[0])
    assert plan.status == search.UNWINNABLE and plan.expansions > 0
    assert fewest_turns(game, state) is None


def test_a_search_that_gives_up_says_how_far_it_came():
    game, state = instance("grid_12_0")  # 9 own turns, 256 expansions
    plan = search.a_star(game.rules, state[0], expansions=20)
    assert plan.status == search.OUT_OF_BUDGET and not plan.turns
    assert 6 <= plan.bound <= 9


def test_the_bound_by_hand():
    line = make_board(
        "line", [(0, 1), (1, 2), (2, 3)], [Continent("a", 0, (0, 1)), Continent("b", 0, (2, 3))]
    )

    def bound(armies, base="none", mine=0b0011, conquered=False, theirs=False):
        board = make_board("l", line.edges, line.continents, Start((0, 0, 1, 1), tuple(armies)))
        rules = game_on(board, base=base).rules
        return bound_of(rules, 0, np.uint64(mine), np.array(armies, np.int32), conquered, theirs)

    assert bound([3, 9, 1, 1]) == 2  # two nodes, armies to spare
    # 6 + 2 for the first conquest - 4 = 4, one for each node; one army less is not enough.
    assert bound([3, 3, 2, 2]) == 2
    assert bound([2, 3, 2, 2]) == NEVER
    # With an army a turn we are paid twice and they once: 5 + 2 + 2 - 1 - 4 = 4.
    assert bound([2, 3, 2, 2], base="1") == 2
    # Nobody can ever attack: 3 and 1 that moves are 4, against 3.
    assert bound([2, 3, 3, 1]) == NEVER
    # With an army a turn 5 stand there at once.
    assert bound([2, 3, 3, 1], base="1") == 2
    # The armies stand too far back for the first turn: 2 against 5, one node to go.
    assert bound([6, 1, 1, 5], base="1", mine=0b0111) == 2
    # The opponent's two armies for a conquest count from the second turn on.
    assert bound([3, 3, 2, 2], theirs=True) == NEVER
    assert bound([9, 9, 9, 1], mine=0b0111, theirs=True) == 1
    # Our own are worth as much as armies that stand there.
    assert bound([2, 2, 2, 2], conquered=True) == 2


def test_a_search_begins_at_the_start_of_a_turn():
    game = make_game("risk", board="ring_6", base="1")
    state = game.initial_states([1])
    later = game.after(state, [int(np.flatnonzero(game.legal_of(state)[0])[0])])
    assert later["turn"] == 0
    with pytest.raises(ValueError, match="a search begins at the start of a turn"):
        search.a_star(game.rules, later[0])


def test_real_time_a_star_remembers_the_second_best():
    """Walks to and fro where the bound errs, and leaves: greedy search stays there for ever."""
    game, state = instance("grid_12_0")
    assert search.greedy_search(game.rules, state[0]).status == search.OUT_OF_BUDGET
    plan = search.real_time_a_star(game.rules, state[0])
    assert plan.status == search.SOLVED and plan.length < 40


def test_searches_leave_the_position_alone_and_repeat_themselves():
    game, state = instance("grid_8_0")
    before = state.copy()
    for each in (search.a_star, search.real_time_a_star, search.greedy_search):
        assert each(game.rules, state[0]) == each(game.rules, state[0])
    assert (state == before).all()
