"""Invariants of Catan on every step of random games, with all options on and off."""

import numpy as np
import pytest
from catan_invariants import check_states, longest_chain, play, random_actions
from catan_situation import Situation, edge_between
from hypothesis import given, settings
from hypothesis import strategies as st

from games import make_game
from games.catan.board import CORNER_EDGES, EDGE_CORNERS
from games.catan.longest_road import longest_road
from games.catan.state import PHASE_NAMES, VICTORY

OPTIONS = [
    {"turn_limit": 250},
    {
        "trading": "full",
        "counter_offers": True,
        "offer_cards": 3,
        "offers_per_turn": 3,
        "turn_limit": 120,
    },
    {
        "trading": "bank",
        "friendly_robber": True,
        "adjacent_6_8": True,
        "numbers": "spiral",
        "turn_limit": 250,
    },
    {"players": 3, "trading": "none", "points_to_win": 8, "discard_limit": 5, "turn_limit": 250},
    {"players": 2, "trading": "bank", "points_to_win": 15, "discard_limit": 9, "turn_limit": 150},
    {"players": 3, "board": "beginner", "ports": "fixed", "counter_offers": True, "turn_limit": 60},
    {
        "players": 2,
        "counter_offers": True,
        "friendly_robber": True,
        "offer_cards": 1,
        "turn_limit": 120,
    },
]


@pytest.mark.parametrize("options", OPTIONS)
def test_invariants_of_random_games(options):
    # 500 games over all options; 100,000 of them: tests/slow/test_catan_games.py.
    game = make_game("catan", **options)
    final = play(game, 72, seed=2)
    assert len(final) == 72
    returns = game.returns_of(final)
    points = final["points"] + final["cards"][:, :, VICTORY]
    goal = game.params["points_to_win"]
    for state, paid, total in zip(final, returns, points, strict=True):
        won = total[state["turn_player"]] >= goal
        assert won or state["turn"] == game.params["turn_limit"] - 1
        expected = np.minimum(total[: game.num_players], goal - 1) / goal
        if won:
            expected[state["turn_player"]] = 1
        assert paid == pytest.approx(expected)


@pytest.mark.parametrize(
    ("field", "at", "value", "promise"),
    [
        ("bank", [0], 15, "resource cards are conserved"),
        ("deck", [1], -1, "no hand, bank or deck is negative"),
        ("known", (0, 4), 3, "what is known to be held is held"),
        ("cards", (3, 2), 1, "an empty seat has nothing"),
        ("deck", [1], 4, "development cards are held, used or in the deck"),
        ("knights", [1], 2, "knights are held, played or in the deck"),
        ("bought", [0], 2, "what was bought in this turn is in the hand"),
        ("cities", [1], 1 << 12, "a corner has one building"),
        ("roads", (1, 0), 1 << edge_between(8, 12), "an edge has one road"),
        ("settlements", [1], 1 << 17, "the distance rule"),  # beside 12
        ("open", [], 0, "open corners"),
        ("pieces", (0, 0), 13, "pieces are conserved"),
        ("points", [0], 2, "points are what the board shows"),
        ("reach", [0], 1 << 12, "reach is the corners"),
        ("rates", (1, 3), 2, "bank rates are those of the ports"),
        ("road_length", [0], 3, "the longest road is that of brute force"),
        ("turn", [], 10, "the turn lies within its limit"),
        ("player", [], 1, "the main phase belongs to the turn player"),
        ("answers", [1], 1, "with no offer left over"),
        ("discards", [2], 1, "somebody drops cards exactly in the phase"),
        ("want", (1, 4), 1, "an offer gives and wants different cards"),
        ("cards", (0, 1), 9, "development cards are held"),
    ],
)
def test_the_invariants_see_what_is_wrong(field, at, value, promise):
    s = Situation(players=3).settlement(0, 12).road(0, 12, 8).hand(0, wood=2, ore=2)
    s.settlement(1, 40).cards(0, knight=1).knights(1, 1).turn(0, number=9)
    s.deck(knight=12, victory=5, roads=2, plenty=2, monopoly=2)
    check_states(s.game, s.state)
    s.one["give"][1, 4] = promise.startswith("an offer")
    s.state[field][(0, *at)] = value
    with pytest.raises(AssertionError, match=promise):
        check_states(s.game, s.state)


@pytest.mark.parametrize(
    ("lengths", "holders", "promise"),
    [
        ((4, 0), {"road": 0}, "Longest Road is held from five on"),
        ((5, 6), {"road": 0}, "by nobody shorter than another"),
        ((5, 4), {}, "Longest Road is set aside in a tie only"),
        ((0, 0), {"army": 1}, "Largest Army is held from three knights on"),
    ],
)
def test_the_invariants_see_an_award_in_wrong_hands(lengths, holders, promise):
    paths = (12, 8, 13, 18, 24, 30), (27, 33, 38, 43, 47, 51, 48)
    s = Situation()
    for seat, (length, path) in enumerate(zip(lengths, paths, strict=True)):
        s.road(seat, *path[: length + 1])
    with pytest.raises(AssertionError, match=promise):
        check_states(s.game, s.holds(**holders).state)


def test_no_legal_action_breaks_an_invariant():
    # What the mask forbids the driver refuses: tests/pipeline/test_selfplay.py.
    game = make_game("catan", counter_offers=True)
    seen = set()

    def watch(game, states, legal, rng):
        for state, row in zip(states, legal, strict=True):
            if state["player"] < 0 or rng.random() > 0.1:
                continue
            actions = np.nonzero(row)[0]
            seen.update(actions.tolist())
            after = game.after(np.repeat(state[None], len(actions), 0), actions)
            check_states(game, after)
            assert (after != state).all()

    play(game, 8, seed=5, every=10**9, watch=watch)
    assert len(seen) > 200  # nearly every action of the table was tried


def test_a_row_is_independent_and_a_game_replays_from_its_actions():
    game = make_game("catan", counter_offers=True)
    rng = np.random.default_rng(7)
    states = game.initial_states(np.arange(8))
    history = []
    for _ in range(400):
        actions = random_actions(game, states, game.legal_of(states), rng)
        history.append(actions)
        states = game.after(states, actions)
    for row in range(8):
        alone = game.initial_states([row])
        for actions in history:
            alone = game.after(alone, actions[row : row + 1])
        assert alone[0] == states[row]


# ---- what a player may know


def shuffle_hidden(state, viewer, rng):
    """A state that differs from `state` only in what the viewer cannot know."""
    other = state.copy()
    rivals = [seat for seat in range(4) if seat != viewer]
    # Development cards: all that are in rivals' hands and in the deck are dealt anew.
    pool = np.repeat(np.arange(5), state["deck"] + state["cards"][rivals].sum(0))
    rng.shuffle(pool)
    for seat in rivals:
        count, pool = pool[: state["cards"][seat].sum()], pool[state["cards"][seat].sum() :]
        other["cards"][seat] = np.bincount(count, minlength=5)
    other["deck"] = np.bincount(pool, minlength=5)
    # Resource cards that nobody saw change hands.
    hidden = state["hands"] - state["known"]
    pool = np.repeat(np.arange(5), hidden[rivals].sum(0))
    rng.shuffle(pool)
    for seat in rivals:
        count, pool = pool[: hidden[seat].sum()], pool[hidden[seat].sum() :]
        other["hands"][seat] = state["known"][seat] + np.bincount(count, minlength=5)
    if state["turn_player"] != viewer:
        bought = int(state["bought"].sum())
        held = np.repeat(np.arange(5), other["cards"][state["turn_player"]])
        other["bought"] = np.bincount(rng.permutation(held)[:bought], minlength=5)
    return other


@pytest.mark.parametrize("observation", ["features", "raw"])
def test_what_is_hidden_from_a_player_changes_nothing_they_observe(observation):
    game = make_game("catan", observation=observation)
    rng = np.random.default_rng(3)
    states = game.initial_states(np.arange(24))
    changed = 0
    for ply in range(800):
        if ply % 16 == 0:
            for viewer in range(4):
                others = np.array([shuffle_hidden(state, viewer, rng) for state in states])
                changed += (others != states).sum()
                seats = np.full(len(states), viewer)
                seen, again = (game.observations_of(x, seats) for x in (states, others))
                assert (seen == again).all(), np.array(game.observation_names)[
                    (seen != again).any(0)
                ]
                for state, other in zip(states[:2], others, strict=False):
                    words = [game.view.state_to_text(game.rules, x, viewer) for x in (state, other)]
                    assert words[0] == words[1]
        states = game.after(states, random_actions(game, states, game.legal_of(states), rng))
    assert changed > 500


def test_a_rival_whose_hand_is_hidden_is_told_from_one_whose_hand_is_known():
    # Two players: whatever the bank and I do not have, my rival holds, also after thefts.
    game = make_game("catan", players=2, observation="raw", trading="bank")
    names = list(game.observation_names)
    columns = [names.index(f"rival 1: expected {name}") for name in
               ("wood", "brick", "sheep", "wheat", "ore")]  # fmt: skip
    rng = np.random.default_rng(2)
    states = game.initial_states(np.arange(10))
    for _ in range(400):
        seen = game.observations_of(states, np.zeros(10, int))[:, columns]
        np.testing.assert_allclose(seen * 10, states["hands"][:, 1], atol=1e-5)
        states = game.after(states, random_actions(game, states, game.legal_of(states), rng))


# ---- the longest road


def bits(edges):
    both = sum(1 << edge for edge in edges)
    return np.uint64(both & (2**64 - 1)), np.uint64(both >> 64)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.integers(0, 10**6), min_size=1, max_size=15),
    st.integers(0, 71),
    st.sets(st.integers(0, 53), max_size=6),
)
def test_the_longest_road_is_that_of_brute_force(choices, first, blocked):
    # Roads grow edge by edge, as in play, now and then from a second start.
    edges = {first}
    for choice in choices[1:]:
        corners = EDGE_CORNERS[sorted(edges)].reshape(-1)
        near = {int(e) for c in corners for e in CORNER_EDGES[c] if e >= 0} - edges
        near = sorted(near) if choice % 7 else sorted(set(range(72)) - edges)
        edges.add(near[choice % len(near)])
    low, high = bits(edges)
    walls = np.uint64(sum(1 << corner for corner in blocked))
    own = np.isin(np.arange(72), list(edges))
    assert longest_road(low, high, walls) == longest_chain(
        own, np.isin(np.arange(54), list(blocked))
    )


# ---- the start


def test_islands_are_as_likely_as_each_other():
    # 4,000 islands: each tile is the desert, and each token a 12, 4,000 / 19 = 210.5 times on
    # average, with a standard deviation of 14.1; five of those are passed in 1 of 90,000 islands.
    states = make_game("catan", adjacent_6_8=True).initial_states(np.arange(4000))
    deserts = np.bincount((states["resource"] == 5).argmax(1), minlength=19)
    twelves = np.bincount((states["number"] == 12).argmax(1), minlength=19)
    ports = np.bincount((states["port"] == 0).argmax(1), minlength=9)
    assert np.abs(deserts - 4000 / 19).max() < 5 * 14.1
    assert np.abs(twelves - 4000 / 19).max() < 5 * 14.1
    assert np.abs(ports - 4000 / 9).max() < 5 * np.sqrt(4000 * 8 / 81)
    assert len(np.unique(states["resource"], axis=0)) > 3990


def test_the_spiral_lays_the_tokens_in_the_order_of_the_rule_book():
    state = make_game("catan", numbers="spiral").initial_states([4])[0]
    ring = [0, 3, 7, 12, 16, 17, 18, 15, 11, 6, 2, 1]
    laid = [int(state["number"][tile]) for tile in ring if state["number"][tile]]
    tokens = [5, 2, 6, 3, 8, 10, 9, 12, 11, 4, 8, 10]
    turned = [laid[k:] + laid[:k] for k in range(len(laid))]
    assert tokens[: len(laid)] in turned


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"players": 5}, "players of game catan must lie in 2..4, got 5"),
        ({"points_to_win": 2}, "points_to_win of game catan must lie in 3..20"),
        ({"trading": "some"}, "trading of game catan must be one of none, bank, full"),
        ({"board": "w1"}, "is no board; expected 19 tiles"),
        ({"board": "w7 " * 18 + "d"}, "'w7' is no tile"),
        ({"ports": "w w"}, "are no ports; expected nine"),
        ({"observation": "pixels"}, "must be one of features, raw"),
    ],
)
def test_a_wrong_parameter_is_one_sentence(params, message):
    with pytest.raises(ValueError, match=message):
        make_game("catan", **params)


def test_random_players_meet_every_phase():
    game = make_game("catan", counter_offers=True)
    seen = set()
    play(
        game, 4, seed=9, every=10**9,
        watch=lambda game, states, legal, rng: seen.update(states["phase"].tolist()),
    )  # fmt: skip
    assert seen == set(range(len(PHASE_NAMES)))
