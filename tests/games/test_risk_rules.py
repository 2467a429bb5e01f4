"""Risk: R1-R12 one by one, what the original program got wrong, and a plain implementation."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_risk import PlainRisk

from games import TERMINAL, make_game
from games.check import check_game
from games.risk import boards, make_rules, rules, state_to_svg
from games.risk.boards import Continent, Start, make_board

# The worked turn of docs/games/risk.md: nodes 1-4 are 0-3 here.
WORKED = make_game("risk", board="worked_4")


def at(game, text):
    return game.state_from_text(game.rules, text)


def play(game, state, *choices):
    """Makes choices by their texts."""
    for choice in choices:
        words = texts(game, state)
        assert choice in words, f"{choice} is not among {sorted(words)}"
        state = game.after(state, [words[choice]])
    return state


def texts(game, state):
    """Legal actions by their text."""
    legal = np.flatnonzero(game.legal_of(state)[0])
    return {game.action_to_text(game.rules, int(action)): int(action) for action in legal}


def armies(state, nodes):
    return state["armies"][0, :nodes].tolist()


def owner(state, nodes):
    return [0 if int(state["owned"][0]) >> node & 1 else 1 for node in range(nodes)]


def on(board, start, **options):
    """A game on a board made in a test, with its own start."""
    constants = make_rules((dataclasses.replace(board, start=start),), **options)
    return dataclasses.replace(WORKED, rules=constants, num_actions=len(constants.pairs))


LINE = make_board(
    "line", [(0, 1), (1, 2), (2, 3)], [Continent("a", 5, (0, 1)), Continent("b", 3, (2, 3))]
)


def test_the_worked_turn():
    state = WORKED.initial_states([0])
    assert owner(state, 4) == [0, 1, 0, 1] and armies(state, 4) == [4, 1, 2, 2]
    # B = 0, so there is nothing to place.
    assert set(texts(WORKED, state)) == {"no move", "move 0>2", "move 2>0"}
    state = play(WORKED, state, "no move")
    assert set(texts(WORKED, state)) == {"no attack", "attack 0>1"}
    state = play(WORKED, state, "attack 0>1")
    assert set(texts(WORKED, state)) == {"move in 1", "move in all"}  # R = 3: m in {1, 2}
    state = play(WORKED, state, "move in all")
    assert armies(state, 4) == [1, 2, 2, 2] and owner(state, 4) == [0, 0, 0, 1]
    # The opponent could do nothing: it is player 0's turn again, who places 5 + 2.
    assert (state["player"], state["turn"], state["phase"]) == (0, 2, rules.PLACE)
    state = play(WORKED, state, "place on 2")
    assert armies(state, 4) == [1, 2, 9, 2] and state["conquered"] == 0
    state = play(WORKED, state, "no move", "attack 2>3")
    assert state["player"] == TERMINAL and state["turn"] == 3
    assert armies(state, 4) == [1, 2, 6, 1]  # m = 1
    assert WORKED.returns_of(state)[0].tolist() == [1, -1]


def test_r1_player_0_begins_on_a_drawn_start_of_equal_armies_and_half_the_nodes():
    for params in ({"board": "ring_6"}, {"board": "generated", "nodes": 13, "boards": 5}):
        game = make_game("risk", **params, base="classic")
        states = game.initial_states(np.arange(200))
        assert (states["player"] == 0).all() and (states["turn"] == 0).all()
        for state in states:
            first = [int(state["owned"]) >> node & 1 == 1 for node in range(game.rules.nodes)]
            held = np.array(first)
            here = state["armies"][: game.rules.nodes]
            assert held.sum() == game.rules.nodes // 2
            assert here[held].sum() == here[~held].sum() == 3 * ((game.rules.nodes + 1) // 2)
            assert here.min() >= 1
            for part in range(len(game.rules.continents[0])):
                nodes = int(game.rules.continents[state["board"], part])
                assert nodes & int(state["owned"]) not in (nodes, 0)  # nobody holds one whole
    assert len(np.unique(states["board"])) == 5


def test_r3_no_base_classic_base_and_a_number():
    start = Start((0, 0, 1, 1), (3, 3, 3, 3))
    for base, first in (("none", 5), ("classic", 3 + 5), ("4", 4 + 5)):
        game = on(LINE, start, base=base)
        state = play(game, game.initial_states([0]), "place on 0")
        assert armies(state, 4) == [3 + first, 3, 3, 3]
    table = make_rules((boards.load("classic_42"),), base="classic").base
    assert [int(table[n]) for n in (1, 11, 12, 14, 15, 41)] == [3, 3, 4, 4, 5, 13]


def test_r3_all_reinforcements_go_on_one_own_node_and_must():
    game = on(LINE, Start((0, 0, 1, 1), (3, 3, 3, 3)))
    assert set(texts(game, game.initial_states([0]))) == {"place on 0", "place on 1"}


def test_r3_the_continent_bonus_counts_what_is_held_at_the_start_of_the_turn_of_one_player():
    # The original compared an index with a name and paid both players' continents to each.
    game = on(LINE, Start((0, 0, 1, 1), (3, 6, 3, 1)))
    state = play(game, game.initial_states([0]), "place on 1", "no move", "attack 1>2", "move in 1")
    # Player 0 took node 2: player 1's continent is broken, and it is paid nothing.
    assert (state["player"], state["turn"]) == (0, 2)
    state = play(game, state, "place on 0")  # 5 for the continent a and 2 for the conquest
    assert armies(state, 4)[0] == 3 + 7


def test_r3_a_conquest_pays_two_once_and_only_in_the_next_turn():
    start = Start((0, 1, 1, 1), (9, 1, 1, 1))
    game = on(LINE, start)
    state = play(game, game.initial_states([0]), "attack 0>1", "move in all")
    assert state["conquered"] == 1
    state = play(game, state, "place on 3", "no move")
    # Player 1 has nothing to attack with.
    assert state["player"] == 0 and set(texts(game, state)) == {"place on 0", "place on 1"}
    before = sum(armies(state, 4))
    state = play(game, state, "place on 0")
    assert sum(armies(state, 4)) == before + 5 + 2 and state["conquered"] == 0


def test_r4_a_move_goes_to_a_neighbour_or_through_own_nodes():
    start = Start((0, 0, 0, 1), (5, 1, 1, 9))
    game = on(LINE, start)
    state = play(game, game.initial_states([0]), "place on 0")
    assert set(texts(game, state)) == {"no move", "move 0>1"}
    game = on(LINE, start, connected=True)
    state = play(game, game.initial_states([0]), "place on 0")
    assert set(texts(game, state)) == {"no move", "move 0>1", "move 0>2"}
    state = play(game, state, "move 0>2", "move all")
    assert armies(state, 4) == [1, 1, 10, 9]
    assert "attack 2>3" not in texts(game, state)  # 10 - 9 is not more than 1


def test_r4_one_to_all_but_one_armies_move_and_only_once():
    game = on(LINE, Start((0, 0, 1, 1), (6, 1, 8, 8)))
    state = play(game, game.initial_states([0]), "place on 0", "move 0>1")  # 11 on node 0
    assert set(texts(game, state)) == {"move 1", "move 1/2", "move all"}
    assert armies(play(game, state, "move 1"), 4)[:2] == [10, 2]
    assert armies(play(game, state, "move 1/2"), 4)[:2] == [6, 6]
    state = play(game, state, "move all")
    assert armies(state, 4)[:2] == [1, 11]
    assert state["phase"] == rules.ATTACK and not any("move" in word for word in texts(game, state))


@pytest.mark.parametrize(("attacker", "possible"), [(2, False), (3, False), (4, True), (5, True)])
def test_r5_an_attack_needs_two_armies_more(attacker, possible):
    game = on(LINE, Start((0, 1, 0, 1), (attacker, 2, 1, 9)), base="1")
    state = game.initial_states([0])
    # The army is placed elsewhere, and no move is possible.
    state = play(game, state, "place on 2")
    assert ("attack 0>1" in texts(game, state)) == possible


def test_r5_both_lose_the_defenders_armies_and_some_move_in():
    game = on(LINE, Start((0, 1, 1, 1), (9, 3, 1, 1)))
    state = play(game, game.initial_states([0]), "attack 0>1")
    assert armies(state, 4)[:2] == [5, 1]  # 9 - 3 = 6, of which one is in already
    assert armies(play(game, state, "move in 1"), 4)[:2] == [5, 1]
    assert armies(play(game, state, "move in 1/2"), 4)[:2] == [3, 3]
    assert armies(play(game, state, "move in all"), 4)[:2] == [1, 5]


def test_r6_armies_placed_and_moved_this_turn_attack_this_turn():
    # The original listed attacks from the position before the bonus and the move.
    game = on(LINE, Start((0, 0, 1, 1), (3, 1, 7, 1)))
    state = play(game, game.initial_states([0]), "place on 0", "move 0>1", "move all")
    assert armies(state, 4) == [1, 8, 7, 1] and state["turn"] == 1  # 8 - 7: no attack, turn over
    game = on(LINE, Start((0, 0, 1, 1), (3, 1, 6, 1)))
    state = play(game, game.initial_states([0]), "place on 0", "move 0>1", "move all")
    assert "attack 1>2" in texts(game, state)


def test_r6_there_is_one_attack_in_a_turn():
    game = on(LINE, Start((0, 1, 1, 1), (99, 1, 1, 1)))
    state = play(game, game.initial_states([0]), "attack 0>1", "move in all")
    assert state["player"] == 1 and state["turn"] == 1
    assert owner(state, 4) == [0, 0, 1, 1] and armies(state, 4) == [1, 97, 1, 1]


def test_r7_the_last_node_wins_at_once_for_either_player():
    game = on(LINE, Start((0, 0, 0, 1), (1, 1, 9, 1)))
    state = play(game, game.initial_states([0]), "place on 0", "no move", "attack 2>3")
    assert state["player"] == TERMINAL and game.returns_of(state)[0].tolist() == [1, -1]
    game = on(LINE, Start((0, 1, 1, 1), (1, 9, 1, 1)))
    state = play(game, game.initial_states([0]), "place on 1", "no move", "attack 1>0")
    # The original called any end a goal of the searching player.
    assert state["player"] == TERMINAL and game.returns_of(state)[0].tolist() == [-1, 1]


STUCK = make_board("stuck", [(0, 1), (1, 2), (0, 2)], [Continent("all", 1, (0, 1, 2))])


def pass_turn(game, state):
    """Declines everything until the turn is over; places on the lowest node."""
    turn = int(state["turn"][0])
    while state["player"] != TERMINAL and state["turn"] == turn:
        words = texts(game, state)
        choice = next((c for c in ("no move", "no attack") if c in words), min(words))
        state = play(game, state, choice)
    return state


@pytest.mark.parametrize(
    ("options", "turns"), [({"max_turns": 7}, 7), ({"quiet_turns": 5}, 5), ({}, 60)]
)
def test_r8_games_end_by_turns_and_by_turns_without_conquest(options, turns):
    game = on(LINE, Start((0, 0, 1, 1), (3, 3, 3, 3)))  # both are paid every turn
    game = on(LINE, Start((0, 0, 1, 1), (3, 3, 3, 3)), **options)
    state = game.initial_states([0])
    while state["player"] != TERMINAL:
        state = pass_turn(game, state)
    assert state["turn"] == turns and game.returns_of(state)[0].tolist() == [0, 0]


def test_r8_the_third_occurrence_of_a_position_is_a_draw():
    # Nobody is paid and nobody attacks: the position comes back with every second turn.
    game = on(STUCK, Start((0, 0, 1), (3, 3, 3)))
    state = game.initial_states([0])
    state = pass_turn(game, state)
    assert state["player"] == 0 and state["turn"] == 2  # player 1 had no choice
    state = pass_turn(game, state)
    assert state["player"] == TERMINAL and state["turn"] == 4
    assert game.returns_of(state)[0].tolist() == [0, 0]


def test_r8_armies_that_differ_are_no_repetition():
    game = on(LINE, Start((0, 0, 1, 1), (3, 3, 3, 3)), max_turns=50)
    state = game.initial_states([0])
    for _ in range(20):
        state = pass_turn(game, state)
    assert state["player"] != TERMINAL


@pytest.mark.parametrize(
    ("start", "returns"),
    [
        (Start((0, 0, 0, 1), (1, 1, 1, 1)), [1, -1]),  # more nodes
        (Start((0, 1, 1, 1), (3, 3, 3, 3)), [-1, 1]),
        (Start((0, 0, 1, 1), (3, 9, 3, 3)), [1, -1]),  # as many nodes, more armies
        (Start((0, 0, 1, 1), (3, 3, 3, 3)), [0, 0]),
    ],
)
def test_r8_adjudication_gives_the_game_to_whoever_is_ahead(start, returns):
    flat = dataclasses.replace(LINE, continents=(Continent("all", 0, (0, 1, 2, 3)),))
    for adjudicate in (rules.NODES_THEN_ARMIES, 0):
        game = on(flat, start, base="2", quiet_turns=4, adjudicate=adjudicate)
        state = game.initial_states([0])
        while state["player"] != TERMINAL:
            state = pass_turn(game, state)
        assert game.returns_of(state)[0].tolist() == (returns if adjudicate else [0, 0])
        winner = {1: 0, -1: 1, 0: None}[returns[0]]
        assert game.state_to_json(game.rules, state[0])["adjudged"] == winner


def test_r8_a_repetition_is_never_adjudged():
    game = on(STUCK, Start((0, 0, 1), (3, 3, 3)), adjudicate=rules.NODES_THEN_ARMIES)
    state = game.initial_states([0])
    while state["player"] != TERMINAL:
        state = pass_turn(game, state)
    assert state["turn"] == 4 and game.returns_of(state)[0].tolist() == [0, 0]


def test_r11_armies_grow_without_harm():
    game = make_game("risk", board="worked_4", base="1000", max_turns=10_000, quiet_turns=10_000)
    state = at(game, "X999999 O999999 X999999 O999999")
    while state["player"] != TERMINAL:
        state = game.after(state, [int(np.flatnonzero(game.legal_of(state)[0])[0])])
    assert state["turn"] == 10_000 and armies(state, 4)[0] > 5_000_000


def test_amounts_are_told_in_the_words_of_the_parameter():
    game = make_game("risk", board="ring_6", amounts="1-5, 2/3, all")
    state = at(game, "X12 X1 O1 O1 O1 O1")
    state = play(game, state, "move 0>1")
    assert set(texts(game, state)) == {
        "move 1", "move 2", "move 3", "move 4", "move 5", "move 2/3", "move all",
    }  # fmt: skip
    assert armies(play(game, state, "move 2/3"), 2) == [4, 9]  # ceil(2/3 of 11) = 8
    state = at(game, "X4 X1 O1 O1 O1 O1")
    state = play(game, state, "move 0>1")
    assert set(texts(game, state)) == {"move 1", "move 2", "move 3"}  # each number once


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"board": "atlantis"}, "there is no board 'atlantis'.*classic_42"),
        ({"amounts": "1/2,all"}, "amounts of game risk must list 1 and all"),
        ({"amounts": "1,3/2,all"}, "amounts of game risk must list"),
        ({"amounts": "1,,all"}, "amounts of game risk must list"),
        ({"amounts": "1,9-2,all"}, "amounts of game risk must list"),
        ({"base": "9" * 5000}, "base of game risk must be none, classic or a number"),
        ({"base": "-1"}, "base of game risk must be none, classic or a number"),
        ({"start": "map"}, "start of game risk must be one of board, random, got 'map'"),
        ({"max_turns": 0}, r"max_turns of game risk must lie in 1\.\.10000, got 0"),
        ({"board": "generated", "nodes": 65}, r"nodes of game risk must lie in 6\.\.64"),
        ({"adjudicate": "armies"}, "adjudicate of game risk must be one of none, nodes_then"),
    ],
)
def test_wrong_parameters_are_refused_in_one_sentence(params, message):
    with pytest.raises(ValueError, match=message):
        make_game("risk", **params)


def test_a_start_in_which_nobody_can_ever_do_anything_is_refused():
    start = Start((0, 1, 0, 1), (1, 1, 1, 1))
    with pytest.raises(ValueError, match="'line': nobody can move, attack or be reinforced"):
        on(LINE, start)


# ---- against plain rules


SMALL = st.builds(
    lambda nodes, tree, more, cuts, bonuses: (nodes, tree, more, cuts, bonuses),
    st.integers(3, 7),
    st.lists(st.integers(0, 10**6), min_size=6, max_size=6),
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=6),
    st.lists(st.integers(0, 2), min_size=7, max_size=7),
    st.lists(st.integers(0, 6), min_size=3, max_size=3),
)


def small_board(parts):
    nodes, tree, more, cuts, bonuses = parts
    edges = {tuple(sorted((node, tree[node - 1] % node))) for node in range(1, nodes)}
    edges |= {tuple(sorted(pair)) for pair in more if len({*pair}) == 2 and max(pair) < nodes}
    groups = [tuple(n for n in range(nodes) if cuts[n] == part) for part in range(3)]
    continents = [
        Continent(str(at), bonus, group)
        for at, (bonus, group) in enumerate(zip(bonuses, groups, strict=True))
        if group
    ]
    return make_board("small", sorted(edges), continents)


@settings(derandomize=True, deadline=None, max_examples=120)
@given(
    SMALL,
    st.lists(st.tuples(st.integers(0, 1), st.integers(1, 9)), min_size=7, max_size=7),
    st.sampled_from(["none", "classic", "1"]),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
def test_random_games_equal_those_of_plain_rules(parts, start, base, connected, seed):
    board = small_board(parts)
    owners = [who for who, _ in start[: board.num_nodes]]
    owners[0], owners[-1] = 0, 1
    placed = Start(tuple(owners), tuple(each for _, each in start[: board.num_nodes]))
    limits = {"max_turns": 40, "quiet_turns": 12}
    plain = PlainRisk(board, placed.owner, placed.armies, base, connected, **limits)
    if plain.over:
        with pytest.raises(ValueError, match="nobody can"):
            on(board, placed, base=base, connected=connected, **limits)
        return
    game = on(board, placed, base=base, connected=connected, **limits)
    rng = np.random.default_rng(seed)
    state = game.initial_states([0])
    while True:
        assert state["player"] == (TERMINAL if plain.over else plain.player)
        assert owner(state, board.num_nodes) == plain.owner
        assert armies(state, board.num_nodes) == plain.armies
        assert state["turn"] == plain.turn and state["quiet"] == max(plain.quiet, 0)
        assert int(state["conquered"][0]) == plain.paid[0] + 2 * plain.paid[1]
        assert game.returns_of(state)[0].tolist() == plain.returns()
        legal = texts(game, state)
        assert set(legal) == plain.legal()
        if plain.over:
            break
        choice = sorted(legal)[rng.integers(len(legal))]
        state = game.after(state, [legal[choice]])
        plain.play(choice)


# ---- the contract, without the players: those that look through a turn take long on large boards


@pytest.mark.parametrize(
    "params",
    [
        {"board": "ring_6", "move_range": "connected", "base": "2", "max_turns": 30},
        {"board": "generated", "nodes": 64, "boards": 3, "base": "classic", "max_turns": 4},
        {"board": "classic_42", "amounts": "1-20,1/3,1/2,2/3,all", "max_turns": 6},
    ],
)
def test_boards_of_every_size_keep_the_contract(params):
    check_game(dataclasses.replace(make_game("risk", **params), scripted={}), games=40)


# ---- properties


def random_games(game, count, seed):
    """Yields (states, actions, after) of running random games, ply by ply."""
    rng = np.random.default_rng(seed)
    states = game.initial_states(np.arange(count))
    while len(states):
        legal = game.legal_of(states)
        actions = np.where(legal, rng.random(legal.shape), -1).argmax(1)
        after = game.after(states, actions)
        yield states, actions, after
        states = after[after["player"] != TERMINAL]


@pytest.mark.parametrize("params", [{"board": "ring_6"}, {"board": "generated", "boards": 4}])
def test_armies_add_up_at_every_choice(params):
    game = make_game("risk", **params, base="1")
    nodes = game.rules.nodes
    for states, actions, after in random_games(game, 60, seed=4):
        assert (after["armies"][:, :nodes] >= 1).all() and (after["armies"][:, nodes:] == 0).all()
        change = after["armies"].sum(1) - states["armies"].sum(1)
        taken = np.array(
            [
                bin(int(a ^ b)).count("1")
                for a, b in zip(states["owned"], after["owned"], strict=True)
            ]
        )
        for i, state in enumerate(states):
            phase = state["phase"]
            if phase == rules.ATTACK and actions[i] != game.rules.no_attack:
                target = game.rules.pairs[actions[i], 1]
                # What both lose; a forced placement may follow at once and only ever adds.
                lost = -2 * int(state["armies"][target])
                assert change[i] == lost or (after["turn"][i] > state["turn"] and change[i] > lost)
                assert taken[i] == 1
            else:
                assert taken[i] == 0 and change[i] >= 0


def test_swapping_the_players_mirrors_the_game():
    game = make_game("risk", board="generated", boards=4, base="classic")
    for states, actions, after in random_games(game, 20, seed=5):
        swapped, result = states.copy(), after.copy()
        for each in (swapped, result):
            each["owned"] ^= game.rules.everything
            each["player"] = np.where(each["player"] >= 0, 1 - each["player"], each["player"])
            each["conquered"] = (each["conquered"] >> 1) | ((each["conquered"] & 1) << 1)
            each["history"] = 0
        assert (game.legal_of(swapped) == game.legal_of(states)).all()
        moved = game.after(swapped, actions)
        moved["history"] = 0
        # The end by repetition is the history's, which was emptied.
        same = (moved["player"] == TERMINAL) == (result["player"] == TERMINAL)
        assert (moved[same] == result[same]).all() and same.mean() > 0.9
        assert (game.returns_of(moved[same])[:, ::-1] == game.returns_of(after[same])).all()
        for player in (0, 1):
            mine = game.observations_of(states, np.full(len(states), player))
            theirs = game.observations_of(swapped, np.full(len(states), 1 - player))
            assert (mine == theirs).all()


def test_armies_that_can_gather_count_half_for_each_step():
    """A line 0-1-2-3-4 of X4 X3 X1 O2 O2: on node 2 its 1 army, half of the 2 that node 1 can spare
    and a quarter of the 3 of node 0, against 2: 1 + 1 + 3/4 - 2 = 3/4. O's side: 2 + 1/2 - 1."""
    line = make_board(
        "line", [(n, n + 1) for n in range(4)], [Continent("all", 1, tuple(range(5)))]
    )
    game = on(line, None)
    state = game.state_from_text(game.rules, "X4 X3 X1 O2 O2")
    seen = game.observations_of(state, [0])[0]
    names = list(game.observation_names)
    for who, margin in (("my", 3 / 4), ("their", 3 / 2)):
        value = seen[names.index(f"{who} margin of the best attack if armies gather")]
        assert value == pytest.approx(margin / (3 + margin))


def test_relabelling_the_nodes_relabels_the_game():
    board = boards.generate(10, 3)
    order = np.random.default_rng(2).permutation(10)  # node n becomes order[n]
    image_board = make_board(
        "image",
        [(int(order[u]), int(order[v])) for u, v in board.edges],
        [
            Continent(c.name, c.bonus, tuple(int(order[n]) for n in c.nodes))
            for c in board.continents
        ],
    )
    game, image = on(board, None), on(image_board, None)
    renamed = np.array([relabelled(game, image, order, a) for a in range(len(game.rules.pairs))])

    def mapped(states):
        out = states.copy()
        out["armies"][:, order] = states["armies"][:, :10]
        out["owned"] = 0
        for node in range(10):
            bit = (states["owned"] >> np.uint64(node)) & np.uint64(1)
            out["owned"] |= bit << np.uint64(order[node])
        for name in ("source", "target"):
            out[name] = np.where(states[name] >= 0, order[states[name]], -1)
        out["history"] = 0
        return out

    rng = np.random.default_rng(1)
    states = game.initial_states(np.arange(50))
    for _ in range(60):
        images = mapped(states)
        legal = game.legal_of(states)
        assert (image.legal_of(images)[:, renamed] == legal).all()
        players = np.zeros(len(states), np.int32)
        seen = game.observations_of(states, players)
        assert np.allclose(image.observations_of(images, players), seen, atol=1e-5)
        actions = np.where(legal, rng.random(legal.shape), -1).argmax(1)
        after = game.after(states, actions)
        moved = image.after(images, renamed[actions])
        going_on = (after["player"] != TERMINAL) & (moved["player"] != TERMINAL)
        states, moved = after[going_on], moved[going_on]
        moved["history"] = 0
        assert (moved == mapped(states)).all()
        if not len(states):
            break


def relabelled(game, image, order, action):
    constants = game.rules
    if action < constants.nodes:
        return order[action]
    if constants.pairs[action, 0] < 0:
        return action
    u, v = order[constants.pairs[action]]
    return image.rules.ids[int(action > constants.no_attack), u, v]


# ---- words


def test_a_position_can_be_changed_by_hand_only_as_a_whole():
    game = make_game("risk", board="ring_6", base="1")
    state = game.initial_states([3])
    text = game.state_to_text(game.rules, state[0])
    assert at(game, text) == state
    for old, new in (
        ("places 1 armies", "places 2 armies"),
        ("X places 1 armies", "X has won"),
        ("ring_6", "ring_7"),
        ("0 since", "1 since"),
        ("ply 0", "ply 5"),
        ("\n 0 O", "\n 6 O"),
        ("seen ", "seen AAAA"),
        ("nobody", "X"),
        ("bonus 2", "bonus 3"),
    ):
        assert old in text
        with pytest.raises(ValueError, match="is no position of this game; expected a mark"):
            at(game, text.replace(old, new, 1))


@pytest.mark.parametrize("text", ["X1 X1 X1 X1", "X1 O1 X1", "X0 O1 X1 O1", "A1 O1 X1 O1", ""])
def test_bad_shorthand_is_refused(text):
    with pytest.raises(ValueError, match="is no position of this game; expected a mark"):
        at(WORKED, text)


def test_armies_that_no_game_comes_to_are_refused_before_they_leave_int32():
    game = make_game("risk", board="ring_6", base="1000", max_turns=10_000)
    state = at(game, "X5 O1 X1 O1 X1 O1")
    state["armies"][0, 0] = 999_999_995
    assert at(game, game.state_to_text(game.rules, state[0])) == state
    for armies in (999_999_996, 2**31 - 1):
        state["armies"][0, 0] = armies
        with pytest.raises(ValueError, match="is no position of this game"):
            at(game, game.state_to_text(game.rules, state[0]))


def test_a_position_is_over_only_where_something_has_ended_it():
    game = make_game("risk", board="ring_6", base="1", max_turns=9, quiet_turns=5)
    lines = game.state_to_text(game.rules, game.initial_states([3])[0]).splitlines()
    for head, last in (
        ("turn 0, 0 since", "a draw"),
        ("turn 9, 0 since", lines[-1]),
        ("turn 6, 5 since", lines[-1]),
    ):
        text = "\n".join([lines[0].replace("turn 0, 0 since", head), *lines[1:-1], last])
        with pytest.raises(ValueError, match="is no position of this game"):
            at(game, text)


def test_draws_by_repetition_are_read_again(tmp_path):
    # An army goes round four nodes, which takes eight turns: the first of the three occurrences
    # lies 16 turns back, where the third has taken its place in the history.
    path = tmp_path / "far east.json"
    board = make_board(
        "the far east, turn 3",  # a name of several words
        [(0, 1), (1, 2), (2, 3), (0, 3), (3, 4)],
        [Continent("all of it", 1, (0, 1, 2, 3, 4))],
        Start((0, 0, 0, 0, 1), (2, 1, 1, 1, 1)),
    )
    path.write_text(board.to_text())
    game = make_game("risk", board=str(path))
    for choices in (["move 0>1", "move 1>2", "move 2>3", "move 3>0"], ["move 0>1", "move 1>0"]):
        state = game.initial_states([0])
        for turn in range(100):
            assert at(game, game.state_to_text(game.rules, state[0])) == state
            if state["player"] == TERMINAL:
                break
            state = play(game, state, choices[turn % len(choices)])
        assert state["turn"] == 4 * len(choices)


def test_a_picture_shows_every_node_with_its_armies():
    import xml.etree.ElementTree as ET

    game = make_game("risk", board="classic_42", base="classic", start="random")
    state = game.initial_states([1])[0]
    root = ET.fromstring(state_to_svg(game, state))
    drawn = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
    numbers = sorted(int(text) for text in drawn if text.isdecimal())
    assert numbers == sorted(state["armies"][:42].tolist())
    assert "0 Alaska" in drawn and "35 Middle East" in drawn
