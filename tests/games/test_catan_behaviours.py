"""Behaviours of Catan, their sub-goals and their mapping to primitive actions.

The situations and right values follow from the rules and from what each behaviour says it is after
(docs/games/catan.md); Pfeiffer (2004) lists none.
"""

import numpy as np
import pytest
from catan_situation import Situation

from games import make_game
from games.catan.behaviours import ALLOWED, BEHAVIOURS, LOW_ACTIONS
from games.game import BY_GAME, BY_GOAL, BY_SCORE, MARKS, Candidates

HIERARCHY = make_game("catan").hierarchy
NAMES = [behaviour.name for behaviour in BEHAVIOURS]


def numbered(name):
    return np.array([NAMES.index(name)], np.int8)


def mark(s, seat, name):
    out = np.empty((1, MARKS), np.int16)
    HIERARCHY.mark(s.game.rules, s.state, np.array([seat], np.int32), numbered(name), out)
    return out


def reached(s, seat, name, marks):
    out = np.empty(1, np.bool_)
    HIERARCHY.reached(s.game.rules, s.state, np.array([seat], np.int32), numbered(name), marks, out)
    return bool(out[0])


def possible(s):
    out = np.empty((1, len(NAMES)), np.bool_)
    HIERARCHY.possible(s.game.rules, s.state, out)
    return {NAMES[h] for h in np.flatnonzero(out[0])}


def rule(s):
    out = np.empty(1, np.int8)
    HIERARCHY.heuristic(s.game.rules, s.state, out)
    return NAMES[out[0]]


def low_actions(s, name):
    out = np.empty((1, len(LOW_ACTIONS)), np.bool_)
    HIERARCHY.low_legal(s.game.rules, s.state, s.game.legal_of(s.state), numbered(name), out)
    return {LOW_ACTIONS[low] for low in np.flatnonzero(out[0])}


def found(s, name, low=None):
    """Candidates of the position as {words: score}, what judges them, and what would follow."""
    most = HIERARCHY.max_candidates
    out = Candidates(
        np.empty(1, np.int32),
        np.empty((1, most), np.int32),
        np.empty((1, most), np.float32),
        np.empty(1, np.int8),
        np.empty((1, most), s.state.dtype),
    )
    number = np.array([-1 if low is None else LOW_ACTIONS.index(low)], np.int8)
    legal = s.game.legal_of(s.state)
    HIERARCHY.candidates(s.game.rules, s.state, legal, numbered(name), number, out)
    count = out.count[0]
    assert count >= 1 and legal[0, out.actions[0, :count]].all()
    words = [s.game.action_to_text(s.game.rules, int(a)) for a in out.actions[0, :count]]
    return dict(zip(words, out.scores[0].tolist(), strict=False)), out.judged[0], out.states[0]


def best(s, name, low=None):
    scores, _, _ = found(s, name, low)
    return max(scores, key=scores.get)


def test_seven_behaviours_share_eleven_low_level_actions_in_54_pairs():
    # The proposal's table: 9 + 7 + 7 + 7 + 8 + 9 + 7.
    assert len(BEHAVIOURS) == 7 and len(LOW_ACTIONS) == 11
    assert ALLOWED.sum(1).tolist() == [9, 7, 7, 7, 8, 9, 7] and ALLOWED.sum() == 54
    assert ALLOWED[:, LOW_ACTIONS.index("end turn")].all()


# ---- sub-goals


def test_expand_is_reached_by_a_settlement_and_not_by_a_road_or_a_city():
    s = Situation().settlement(0, 12).road(0, 12, 8, 13)
    s.hand(0, wood=2, brick=2, sheep=1, wheat=3, ore=3)
    before = mark(s, 0, "expand")
    s.act(*list(s.legal("road"))[:1])
    assert not reached(s, 0, "expand", before)
    s.act(*list(s.legal("city"))[:1])
    assert not reached(s, 0, "expand", before)
    s.act("settlement 13")
    assert reached(s, 0, "expand", before)


def test_upgrade_is_reached_by_a_city():
    s = Situation().settlement(0, 12).hand(0, wheat=2, ore=3)
    before = mark(s, 0, "upgrade")
    assert not reached(s, 0, "upgrade", before)
    assert reached(s.act("city 12"), 0, "upgrade", before)


def test_develop_is_reached_by_a_bought_card_and_not_by_a_played_one():
    s = Situation().settlement(0, 12).hand(0, sheep=1, wheat=1, ore=1).cards(0, monopoly=1)
    before = mark(s, 0, "develop")
    s.act("buy a development card").dealt("knight")
    assert reached(s, 0, "develop", before)
    before = mark(s, 0, "develop")
    s.act("play monopoly on wood")
    assert not reached(s, 0, "develop", before)


def test_army_and_long_road_are_reached_by_whom_the_award_goes_to():
    s = Situation().settlement(0, 12)
    army, road = mark(s, 0, "army"), mark(s, 0, "long road")
    s.holds(road=1, army=1)
    assert not reached(s, 0, "army", army) and not reached(s, 0, "long road", road)
    s.holds(road=0, army=0)
    assert reached(s, 0, "army", army) and reached(s, 0, "long road", road)


def test_hinder_is_reached_when_the_leader_earns_less():
    # Player 1 leads with a city; the robber on one of its tiles takes what that tile gives.
    s = Situation().settlement(0, 12).city(1, 30).settlement(2, 50)
    before = mark(s, 0, "hinder")
    tiles = [t for t in range(19) if s.one["number"][t] and 30 in _corners(t)]
    s.robber(tiles[0])
    assert reached(s, 0, "hinder", before)
    others = [t for t in range(19) if s.one["number"][t] and 50 in _corners(t)]
    s.robber(int(np.flatnonzero(s.one["resource"] == 5)[0]))
    before = mark(s, 0, "hinder")
    assert not any(30 in _corners(tile) for tile in others)
    s.robber(others[0])  # player 2 does not lead
    assert not reached(s, 0, "hinder", before)


def _corners(tile):
    from games.catan.board import TILE_CORNERS

    return set(TILE_CORNERS[tile].tolist())


# ---- what is possible, and the rule


def test_what_cannot_be_reached_is_not_possible():
    s = Situation().settlement(0, 12).road(0, 12, 8).deck()
    assert {"expand", "upgrade"} <= possible(s)
    assert not {"develop", "army", "hinder"} & possible(s)  # no card is left
    s.deck(knight=3)
    assert {"develop", "army", "hinder"} <= possible(s)
    assert "army" not in possible(s.holds(army=0))
    assert "long road" not in possible(s.holds(road=0))
    s = Situation().city(0, 12, 20, 31, 40)  # all four cities are built
    assert "upgrade" not in possible(s)


def test_something_is_always_possible():
    s = Situation().deck()  # nothing on the board and no card in the deck
    assert possible(s)


def test_the_rule_wins_when_it_can():
    # Eight points of cities and one of a card: any settlement is the tenth.
    s = Situation().city(0, 1, 20, 31, 40).road(0, 1, 5, 9).cards(0, victory=1)
    s.hand(0, wood=1, brick=1, sheep=1, wheat=1)
    assert "settlement 9" in s.legal()
    assert rule(s) == "expand"


def test_the_rule_hinders_who_is_about_to_win_with_a_knight_at_hand():
    s = Situation().settlement(0, 12).city(1, 1, 20, 31, 40).cards(0, knight=1)
    assert rule(s) == "hinder"
    assert rule(Situation().settlement(0, 12).city(1, 1, 20, 31, 40)) != "hinder"


# ---- low-level actions


def test_low_level_actions_are_those_of_the_behaviour_that_the_rules_allow():
    s = Situation().settlement(0, 12).road(0, 12, 8).hand(0, wood=1, brick=1, wheat=2, ore=3)
    assert low_actions(s, "upgrade") == {"build city", "end turn"}
    assert low_actions(s, "expand") >= {"build road", "end turn"}
    assert "build city" not in low_actions(s, "expand")
    assert low_actions(Situation().before_roll(0).cards(0, knight=1), "develop") == {
        "play knight",
        "end turn",
    }


def test_the_bank_is_asked_for_what_is_missing_with_what_is_not():
    # A city takes two wheat and three ore; four wood are to spare, four ore are not.
    s = Situation().settlement(0, 12).hand(0, wood=4, wheat=2, ore=2)
    assert "trade with the bank" in low_actions(s, "upgrade")
    scores, _judged, _ = found(s, "upgrade", "trade with the bank")
    assert list(scores) == ["trade wood for ore with the bank"]
    s = Situation().settlement(0, 12).hand(0, wheat=1, ore=4)
    assert "trade with the bank" not in low_actions(s, "upgrade")


def test_offers_ask_for_missing_cards_that_somebody_may_hold():
    s = Situation(trading="full").settlement(0, 12).hand(0, wood=3, wheat=2, ore=2)
    assert "offer a trade" not in low_actions(s, "upgrade")  # nobody has an ore
    s.hand(2, ore=1)
    assert "offer a trade" in low_actions(s, "upgrade")
    scores, _judged, then = found(s, "upgrade", "offer a trade")
    assert list(scores) == ["offer wood"]
    s.act("offer wood")
    assert best(s, "upgrade") == "ask for ore"
    assert best(s.act("ask for ore"), "upgrade") == "make the offer"
    # Imagined as taken up: a wood less, an ore more.
    assert then[0]["hands"][0].tolist() == [2, 0, 0, 2, 3]


def test_an_offer_is_accepted_for_what_is_missing_and_not_by_who_helps_a_winner():
    def asked(**more):
        s = Situation(trading="full").settlement(1, 12).hand(1, wood=2, wheat=2, ore=2)
        s.hand(0, ore=1, sheep=1)
        for seat, corners in more.items():
            s.city(int(seat[1:]), *corners)
        return s

    s = asked().act("offer ore", "ask for wood", "make the offer")
    assert best(s, "upgrade") == "accept"
    s = asked().act("offer sheep", "ask for wheat", "make the offer")
    assert best(s, "upgrade") == "decline"
    s = asked(p0=(1, 20, 31, 40)).act("offer ore", "ask for wood", "make the offer")
    assert best(s, "upgrade") == "decline"


# ---- places


def test_the_road_leads_to_the_target():
    # From corner 12 the free corners two roads away are candidates; the first road must shorten
    # the way to the best of them.
    s = Situation().settlement(0, 12).road(0, 12, 8).hand(0, wood=1, brick=1)
    scores, judged, _then = found(s, "expand", "build road")
    assert judged == BY_GAME or len(scores) == 1
    from games.catan.places import roads_away

    away, queue = np.empty(54, np.int8), np.empty(54, np.int8)
    for text in scores:
        t = Situation().settlement(0, 12).road(0, 12, 8).hand(0, wood=1, brick=1).act(text)
        roads_away(t.one, 0, t.one["reach"][0], away, queue)
        open_ = [c for c in range(54) if int(t.one["open"]) >> c & 1]
        assert min(away[c] for c in open_) <= 1


def test_no_way_leads_through_a_rivals_building():
    from games.catan.places import roads_away

    s = Situation().settlement(0, 12).road(0, 12, 8)
    away, queue = np.empty(54, np.int8), np.empty(54, np.int8)
    roads_away(s.one, 0, s.one["reach"][0], away, queue)
    free = away.copy()
    s.settlement(1, 13)
    roads_away(s.one, 0, s.one["reach"][0], away, queue)
    assert free[13] == away[13] == 1
    assert (away >= free).all() and (away > free).any()


def test_the_longest_road_is_made_longer():
    s = Situation().settlement(0, 12).road(0, 12, 8, 13).hand(0, wood=1, brick=1)
    for text in found(s, "long road", "build road")[0]:
        t = Situation().settlement(0, 12).road(0, 12, 8, 13).hand(0, wood=1, brick=1)
        assert t.act(text).road_length(0) == 3


def test_the_robber_goes_where_it_costs_the_rivals_most_and_oneself_nothing():
    s = Situation().settlement(0, 12).city(1, 30).hand(1, wood=1)._set(phase=5)
    scores, judged, _ = found(s, "expand")
    assert judged == BY_GAME
    top = int(max(scores, key=scores.get).rpartition("t")[2])
    assert 30 in _corners(top) and 12 not in _corners(top)
    pips = {2: 1, 3: 2, 4: 3, 5: 4, 6: 5, 8: 5, 9: 4, 10: 3, 11: 2, 12: 1, 0: 0}
    around = [t for t in range(19) if 30 in _corners(t) and 12 not in _corners(t)]
    numbers = s.one["number"]
    assert pips[int(numbers[top])] == max(pips[int(numbers[t])] for t in around)


def test_discards_keep_what_the_behaviour_needs():
    s = Situation().settlement(0, 12).hand(0, wood=4, wheat=2, ore=3)
    s.one["discards"][0] = 4
    s._set(phase=4)
    scores, judged, then = found(s, "upgrade")
    assert judged == BY_GOAL and max(scores, key=scores.get).endswith("wood")
    # What would follow is imagined as a position at the own turn, with a card less.
    assert then[0]["turn_player"] == 0 and then[0]["hands"][0].sum() == 8


def test_a_single_candidate_is_not_judged():
    s = Situation().settlement(0, 12).hand(0, wheat=2, ore=3)
    assert found(s, "upgrade", "build city")[1] == BY_SCORE


@pytest.mark.parametrize(
    "params", [{}, {"players": 2}, {"trading": "none"}, {"counter_offers": True}]
)
def test_every_decision_of_random_games_has_legal_candidates(params):
    game = make_game("catan", turn_limit=60, **params)
    hierarchy, rng = game.hierarchy, np.random.default_rng(1)
    states = game.initial_states(np.arange(40))
    most = hierarchy.max_candidates
    for _ in range(400):
        asked = np.flatnonzero(states["player"] >= 0)
        if not len(asked):
            break
        some = states.take(asked)
        legal = game.legal_of(some)
        size = len(some)
        step, can = np.empty(size, np.bool_), np.empty((size, 7), np.bool_)
        hierarchy.is_step(game.rules, some, step)
        hierarchy.possible(game.rules, some, can)
        assert can.any(1).all()
        behaviours = np.array([rng.choice(np.flatnonzero(row)) for row in can], np.int8)
        mask = np.empty((size, 11), np.bool_)
        hierarchy.low_legal(game.rules, some, legal, behaviours, mask)
        assert (mask.any(1) == step).all() and not (mask & ~ALLOWED[behaviours]).any()
        low = np.array([rng.choice(np.flatnonzero(r)) if r.any() else -1 for r in mask], np.int8)
        out = Candidates(
            np.empty(size, np.int32),
            np.empty((size, most), np.int32),
            np.empty((size, most), np.float32),
            np.empty(size, np.int8),
            np.empty((size, most), game.state_dtype),
        )
        before = some.copy()
        hierarchy.candidates(game.rules, some, legal, behaviours, low, out)
        assert (some == before).all()
        for i in range(size):
            assert 1 <= out.count[i] <= most
            assert legal[i, out.actions[i, : out.count[i]]].all()
            if out.judged[i]:
                then = out.states[i, : out.count[i]]
                assert (then["player"] == some["player"][i]).all()
                assert (then["hands"] >= 0).all()
        uniform = np.array([rng.choice(np.flatnonzero(row)) for row in legal])
        mapped = out.actions[np.arange(size), rng.integers(0, out.count)]
        actions = np.zeros(len(states), np.int32)
        actions[asked] = np.where(rng.random(size) < 0.5, mapped, uniform)
        chance = np.flatnonzero(states["player"] == -1)
        if len(chance):
            odds = game.chance_of(states.take(chance)).astype(float)
            odds /= odds.sum(1, keepdims=True)
            actions[chance] = [rng.choice(game.num_outcomes, p=row) for row in odds]
        game.step(game.rules, states, actions)
