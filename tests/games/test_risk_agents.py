"""Risk's scripted players: what each chooses in positions worked out by hand, and as a whole."""

import numpy as np
import pytest
from test_risk_rules import LINE, on, play, texts

from games import TERMINAL, make_game
from games.check import check_game
from games.risk import agents
from games.risk.boards import Continent, Start, make_board

STAR = make_board(
    "star",
    [(0, 1), (0, 2), (0, 3), (0, 4), (0, 5)],
    [Continent("a", 2, (0, 1, 2)), Continent("b", 6, (3, 4)), Continent("c", 1, (5,))],
)


def choice(game, state, name):
    actions = np.empty(len(state), np.int32)
    game.scripted[name](game.rules, state, game.legal_of(state), np.zeros(len(state)), actions)
    return game.action_to_text(game.rules, int(actions[0]))


def turn(game, state, name):
    """What a player chooses until its turn is over."""
    player, number, made = int(state["player"][0]), int(state["turn"][0]), []
    while (state["player"][0], state["turn"][0]) == (player, number):
        made.append(choice(game, state, name))
        state = play(game, state, made[-1])
    return made


def test_passive_reinforces_the_weakest_lowest_node_and_never_attacks():
    game = on(LINE, Start((0, 0, 1, 1), (9, 2, 1, 1)))
    assert turn(game, game.initial_states([0]), "passive") == ["place on 1", "no move", "no attack"]
    game = on(LINE, Start((0, 0, 1, 1), (4, 4, 1, 1)))
    assert choice(game, game.initial_states([0]), "passive") == "place on 0"


def test_pacifist_takes_the_node_that_costs_least_and_sends_one_army():
    game = on(STAR, Start((0, 1, 1, 1, 1, 1), (20, 3, 2, 2, 5, 6)))
    state = game.initial_states([0])
    # Nodes 2 and 3 cost two armies: the lower one.
    assert turn(game, state, "pacifist") == ["attack 0>2", "move in 1"]


def test_aggressive_by_armies_attacks_the_largest_army():
    game = on(STAR, Start((0, 1, 1, 1, 1, 1), (20, 3, 2, 6, 5, 6)))
    assert turn(game, game.initial_states([0]), "aggressive_armies") == ["attack 0>3", "move in 1"]


def test_aggressive_keeps_the_enemy_from_continents():
    # The original never looked at continents. b and c are the enemy's, and b pays more.
    game = on(STAR, Start((0, 1, 1, 1, 1, 1), (20, 9, 9, 2, 5, 6)))
    assert turn(game, game.initial_states([0]), "aggressive") == ["attack 0>4", "move in 1"]
    # With b broken only c is whole; then a, of which one node is missing.
    game = on(STAR, Start((0, 1, 1, 0, 1, 1), (20, 9, 9, 2, 5, 1)))
    assert "attack 0>5" in turn(game, game.initial_states([0]), "aggressive")


def test_aggressive_places_on_its_strongest_node():
    game = on(LINE, Start((0, 0, 1, 1), (3, 7, 9, 9)))
    assert choice(game, game.initial_states([0]), "aggressive") == "place on 1"
    game = on(LINE, Start((0, 0, 1, 1), (7, 7, 9, 9)))
    assert choice(game, game.initial_states([0]), "aggressive") == "place on 0"


def test_front_goes_to_the_front():
    game = on(LINE, Start((0, 0, 1, 1), (8, 3, 2, 9)))
    assert turn(game, game.initial_states([0]), "front") == [
        "place on 1",
        "move 0>1",
        "move all",
        "attack 1>2",
        "move in all",
    ]


def test_greedy_conquers_with_what_it_has_to_bring_there_first():
    # Only 1 + 5 placed + 3 moved can take node 2; the original dropped such an attack.
    game = on(LINE, Start((0, 0, 1, 1), (4, 1, 7, 1)))
    for name in ("greedy", "greedy_armies"):
        made = turn(game, game.initial_states([0]), name)
        assert "attack 1>2" in made and "move all" in made, made


def test_minimax_takes_the_win():
    game = on(LINE, Start((0, 0, 0, 1), (3, 3, 9, 4)))
    assert "attack 2>3" in turn(game, game.initial_states([0]), "minimax")


def test_minimax_does_not_leave_a_continent_open():
    # Taking node 2 with all but one army would let 7 take node 1 and the continent a.
    game = on(LINE, Start((0, 0, 1, 1), (1, 9, 3, 4)))
    state = game.initial_states([0])
    while state["player"][0] == 0 and state["turn"][0] == 0:
        state = play(game, state, choice(game, state, "minimax"))
    assert state["player"] == TERMINAL or not any(
        word in texts(game, state) for word in ("attack 2>1", "attack 3>1")
    )


@pytest.mark.parametrize("name", ["greedy", "greedy_armies", "minimax", "front"])
def test_a_plan_is_carried_out_as_it_was_found(name):
    """Asked in mid-turn, a player goes on with what it began: the end is one it valued most."""
    game = make_game("risk", board="islands_12")
    states = game.initial_states(np.arange(20))
    script = game.scripted[name]
    first = np.empty(len(states), np.int32)
    script(game.rules, states, game.legal_of(states), None, first)
    again = np.empty(len(states), np.int32)
    script(game.rules, states.copy(), game.legal_of(states), None, again)
    assert (first == again).all()


def test_the_players_keep_the_contract_on_drawn_starts():
    check_game(make_game("risk", board="ring_6", base="classic", max_turns=12), games=20)


def results(game, one, two, games=60):
    """Wins, draws and losses of `one`, both seats of each start."""
    states = game.initial_states(np.arange(games) // 2)
    seats = np.arange(games) % 2
    while (running := np.flatnonzero(states["player"] != TERMINAL)).size:
        some = states[running]
        legal = game.legal_of(some)
        actions = np.empty(len(some), np.int32)
        whose = some["player"] == seats[running]
        for name, rows in ((one, np.flatnonzero(whose)), (two, np.flatnonzero(~whose))):
            chosen = np.empty(len(rows), np.int32)
            game.scripted[name](game.rules, some[rows], legal[rows], None, chosen)
            actions[rows] = chosen
        states[running] = game.after(some, actions)
    returns = game.returns_of(states)[np.arange(games), seats]
    return [int((returns == value).sum()) for value in (1, 0, -1)]


@pytest.mark.parametrize(
    ("one", "two", "least"),
    [("greedy", "passive", 50), ("minimax", "aggressive", 8), ("minimax", "pacifist", 3)],
)
def test_the_stronger_player_wins_more(one, two, least):
    game = make_game("risk", board="generated", boards=16, board_seed=3)
    wins, _, losses = results(game, one, two)
    assert wins - losses >= least


def test_passive_against_itself_is_always_a_draw():
    game = make_game("risk", board="ring_6", base="classic")
    assert results(game, "passive", "passive", 20) == [0, 20, 0]


def test_every_player_is_a_baseline_with_a_description():
    assert set(agents.SCRIPTED) >= {"passive", "pacifist", "aggressive", "greedy", "front"}
    assert all(script.__doc__ for script in agents.SCRIPTED.values())
