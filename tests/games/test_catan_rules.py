"""The rules of Catan, one situation each. The numbers are those of docs/games/catan.md, "Rules".

Sources: the rule book of the base game; FAQ = catan.com/faqs/92 and /93; almanac = the rule book's
second part. Where a program is named it once got that situation wrong or decides it as we do: CT =
bcollazo/catanatron, CS = thyer/CS340winter2016, ST = SaitoTech/saito-lite-rust, JS =
jdmonin/JSettlers2 (numbers of issues).
"""

import numpy as np
import pytest
from catan_situation import Situation

from games import CHANCE, make_game
from games.catan.board import (
    CORNER_NEIGHBOURS,
    CORNER_XY,
    EDGE_CORNERS,
    PORT_CORNERS,
    TILE_CORNERS,
    TILE_NEIGHBOURS,
)


def rich(seat=0, **params):
    """A player with two of everything and a road 12-8-13, whose settlement stands at 12."""
    s = Situation(**params).settlement(seat, 12).road(seat, 12, 8, 13).turn(seat)
    return s.hand(seat, wood=2, brick=2, sheep=2, wheat=2, ore=3)


# ---- components and set-up


def test_1_components():
    # Rule book; CS #230, #694 had other numbers.
    for seed in range(20):
        state = make_game("catan").initial_states([seed])[0]
        assert np.bincount(state["resource"]).tolist() == [4, 3, 4, 4, 3, 1]
        numbers = [0, 2, 3, 3, 4, 4, 5, 5, 6, 6, 8, 8, 9, 9, 10, 10, 11, 11, 12]
        assert sorted(state["number"]) == numbers
        assert state["number"][state["resource"] == 5] == 0
        assert sorted(state["port"]) == [0, 1, 2, 3, 4, 5, 5, 5, 5]
        assert state["bank"].tolist() == [19] * 5
        assert state["deck"].tolist() == [14, 5, 2, 2, 2]
        assert state["pieces"].tolist() == [[15, 5, 4]] * 4


def test_1_the_island_has_19_tiles_54_corners_and_72_edges():
    assert (len(TILE_CORNERS), len(CORNER_XY), len(EDGE_CORNERS)) == (19, 54, 72)
    # Euler: corners - edges + tiles = 1. 42 sides are shared, 30 look at the sea.
    assert 54 - 72 + 19 == 1
    assert TILE_NEIGHBOURS.sum() // 2 == 42
    lengths = np.abs(np.diff(CORNER_XY[EDGE_CORNERS], axis=1)).reshape(-1, 2)
    assert {tuple(pair) for pair in lengths.tolist()} == {(1, 1), (0, 2)}
    assert (CORNER_NEIGHBOURS >= 0).sum() == 2 * 72
    assert len(np.unique(PORT_CORNERS)) == 18


def test_2_set_up_goes_forth_and_back_and_seat_0_begins():
    s = Situation(players=4)
    s.state = s.game.initial_states([3])
    seats = []
    while s.one["turn"] < 0:
        seats.append(s.decides())
        s.act(next(iter(s.legal())))  # a settlement
        s.act(next(iter(s.legal())))  # its road
    assert seats == [0, 1, 2, 3, 3, 2, 1, 0]
    assert s.one["turn_player"] == 0


def test_3_the_first_road_touches_the_settlement_just_placed():
    # CS #257, #449.
    s = Situation(players=2)
    s.state = s.game.initial_states([0])
    s.act("settlement 12", "road 8-12", "settlement 30", "road 24-30", "settlement 40")
    assert set(s.legal()) == {"road 35-40", "road 40-44", "road 40-45"}
    s.act("road 40-44", "settlement 3")
    assert set(s.legal()) == {"road 0-3", "road 3-7"}


def test_4_the_second_settlement_pays_a_card_per_tile():
    # CS #680. Corner 29 lies at wood 11, the desert and ore 3.
    s = Situation(players=2)
    s.state = s.game.initial_states([0])
    s.act("settlement 12", "road 8-12")
    assert s.hand_of(0) == {}
    s.act("settlement 4", "road 0-4", "settlement 29", "road 29-35")
    assert s.hand_of(1) == {"wood": 1, "ore": 1}
    assert (s.in_bank("wood"), s.in_bank("ore"), s.in_bank("sheep")) == (18, 18, 19)


def test_5_distance_holds_in_set_up_and_against_own_pieces():
    s = Situation(players=2)
    s.state = s.game.initial_states([0])
    s.act("settlement 12", "road 8-12")
    taken = {"settlement 12", "settlement 7", "settlement 8", "settlement 17"}
    assert not taken & set(s.legal())
    assert len(s.legal()) == 54 - 4
    # Against one's own: corner 8 is beside the own settlement at 12, corner 13 is two away.
    assert set(rich().legal("settlement")) == {"settlement 13"}


def test_6_the_robber_starts_in_the_desert_and_6_8_may_be_kept_apart():
    # CT #359.
    touching = 0
    for seed in range(200):
        apart, free = (
            make_game("catan", adjacent_6_8=flag).initial_states([seed])[0]
            for flag in (False, True)
        )
        assert apart["resource"][apart["robber"]] == 5
        for state in (apart, free):
            red = np.isin(state["number"], (6, 8))
            beside = (TILE_NEIGHBOURS & red & red[:, None]).any()
            if state is apart:
                assert not beside
            touching += beside
    assert touching > 100  # most random islands have such a pair


# ---- the roll


def test_7_a_tile_pays_settlements_one_and_cities_two_but_not_under_the_robber():
    # CT #350, #358. Corner 12: ore 10, wheat 12, brick 6; corner 23: brick 6, wood 11, desert.
    s = Situation().settlement(0, 12).city(1, 23).before_roll(0).roll(6)
    assert (s.hand_of(0), s.hand_of(1)) == ({"brick": 1}, {"brick": 2})
    assert s.in_bank("brick") == 16
    s = Situation().settlement(0, 12).city(1, 23).robber(4).before_roll(0).roll(6)
    assert (s.hand_of(0), s.hand_of(1)) == ({}, {})
    s = Situation().settlement(0, 12).robber(4).before_roll(0).roll(12)
    assert s.hand_of(0) == {"wheat": 1}


def test_8_two_equal_tiles_at_a_corner_pay_twice():
    # CT #263, #264.
    board = "w6 w6 w9 / h12 b6 s4 b10 / h9 w11 d w3 o8 / w8 o3 h4 s5 / b5 h6 s11"
    s = Situation(board=board).settlement(0, 4).city(1, 8).before_roll(0).roll(6)
    assert (s.hand_of(0), s.hand_of(1)) == ({"wood": 2}, {"wood": 4, "brick": 2})


def test_9_a_shortage_with_several_receivers_pays_nobody():
    # FAQ. Two cities at wheat 6, corners 40 and 49; corner 23 is due two brick.
    s = Situation().city(0, 40).city(1, 49).city(2, 23).bank(wheat=3).before_roll(0).roll(6)
    assert (s.hand_of(0), s.hand_of(1), s.hand_of(2)) == ({}, {}, {"brick": 2})
    assert s.in_bank("wheat") == 3


@pytest.mark.parametrize(
    ("corners", "stock", "paid"), [([40], 1, 1), ([40, 49], 3, 3), ([40], 0, 0)]
)
def test_10_a_shortage_with_one_receiver_pays_the_rest(corners, stock, paid):
    # FAQ; catanatron, fastcatan and Charlesworth's engine pay nothing.
    s = Situation().city(0, *corners).bank(wheat=stock).before_roll(0).roll(6)
    assert s.hand_of(0).get("wheat", 0) == paid
    assert s.in_bank("wheat") == stock - paid


def test_10_enough_for_all_is_no_shortage():
    s = Situation().city(0, 40).settlement(1, 49).bank(wheat=3).before_roll(0).roll(6)
    assert (s.hand_of(0), s.hand_of(1)) == ({"wheat": 2}, {"wheat": 1})


@pytest.mark.parametrize(("cards", "dropped"), [(7, 0), (8, 4), (9, 4), (15, 7)])
def test_11_a_seven_takes_half_of_more_than_seven_cards(cards, dropped):
    s = Situation().settlement(1, 12).hand(1, ore=cards).before_roll(0).roll(7)
    for _ in range(dropped):
        assert s.decides() == 1
        s.act("discard ore")
    assert s.decides() == 0
    assert s.hand_of(1) == {"ore": cards - dropped}
    assert s.in_bank("ore") == 19 - cards + dropped  # CS #587 lost them
    assert set(s.legal()) == {f"robber to t{tile}" for tile in range(19) if tile != 9}


def test_11_counts_are_fixed_before_the_first_card_and_a_knight_never_discards():
    s = Situation().hand(1, wood=8).hand(2, ore=9).before_roll(0).roll(7)
    assert s.one["discards"].tolist() == [0, 4, 4, 0]
    s = Situation().hand(1, wood=12).cards(0, knight=1).act("play knight", "robber to t0")
    assert s.hand_of(1) == {"wood": 12}
    assert s.decides() == 0


def test_12_everybody_discards_what_they_choose_before_the_robber_moves():
    # CT #361, #362 had chosen at random. The roller discards too, first.
    s = Situation().hand(2, wood=4, ore=4).hand(3, sheep=8).before_roll(2).roll(7)
    assert s.decides() == 2
    assert set(s.legal()) == {"discard wood", "discard ore"}
    s.act("discard wood", "discard ore", "discard wood", "discard wood")
    assert s.hand_of(2) == {"wood": 1, "ore": 3}
    assert s.decides() == 3
    s.act(*["discard sheep"] * 4)
    assert s.decides() == 2
    assert s.legal("robber")


def test_11_the_limit_is_an_option():
    s = Situation(discard_limit=9).hand(1, wood=9).before_roll(0).roll(7)
    assert s.decides() == 0


def test_13_a_roll_that_pays_nobody_is_a_roll():
    # CS #666 rolled again.
    s = Situation().before_roll(0).roll(2)
    assert s.one["dice"] == 2
    assert set(s.legal()) == {"end the turn"}


def test_13_the_dice_have_the_chances_of_two_dice():
    chances = Situation().before_roll(0).act("roll").chances()
    ways = {2: 1, 3: 2, 4: 3, 5: 4, 6: 5, 7: 6, 8: 5, 9: 4, 10: 3, 11: 2, 12: 1}
    assert chances == pytest.approx({number - 2: n / 36 for number, n in ways.items()})


# ---- the robber


def test_14_the_robber_must_go_to_another_tile_the_desert_included():
    # ST #2003.
    s = Situation().robber(4).before_roll(0).roll(7)
    assert set(s.legal()) == {f"robber to t{tile}" for tile in range(19) if tile != 4}


def test_15_a_victim_needs_a_building_there_and_a_card():
    # Corners 8 and 23 lie at brick 6, tile 4.
    s = Situation().settlement(1, 8).city(2, 23).hand(3, ore=2).before_roll(0).roll(7)
    s.act("robber to t4")
    assert (s.decides(), s.hand_of(3)) == (0, {"ore": 2})
    s = Situation().settlement(1, 8).city(2, 23).hand(2, ore=2).before_roll(0).roll(7)
    s.act("robber to t4").stolen("ore")
    assert (s.hand_of(0), s.hand_of(2)) == ({"ore": 1}, {"ore": 1})


def test_15_the_thief_chooses_among_several_victims():
    s = Situation().settlement(1, 8).city(3, 23).hand(1, ore=1).hand(3, wood=1)
    s.before_roll(0).roll(7).act("robber to t4")
    assert set(s.legal()) == {"steal from the next player", "steal from the third next player"}
    s.act("steal from the third next player").stolen("wood")
    assert (s.hand_of(0), s.hand_of(1), s.hand_of(3)) == ({"wood": 1}, {"ore": 1}, {})


def test_16_every_card_of_the_victim_is_equally_likely_and_nobody_robs_themselves():
    s = Situation().settlement(1, 8).settlement(0, 23).hand(1, wood=3, ore=1).hand(0, ore=5)
    s.before_roll(0).roll(7).act("robber to t4")
    assert s.decides() == CHANCE
    assert s.chances() == {0: 0.75, 4: 0.25}


def test_17_the_robber_moves_once_for_a_seven_or_a_knight():
    # CS #360.
    s = Situation().before_roll(0).roll(7).act("robber to t0")
    assert not s.legal("robber")
    s = Situation().cards(0, knight=2).act("play knight", "robber to t0")
    assert not s.legal("robber")
    assert not s.legal("play")


def test_17_the_friendly_robber_spares_rivals_with_fewer_than_three_points():
    s = Situation(friendly_robber=True).settlement(1, 8, 40).city(2, 23, 31).settlement(0, 37)
    s.before_roll(0).roll(7)
    near = {0, 1, 4, 13, 14, 17}  # around corners 8 and 40 of player 1, who has two points
    assert set(s.legal()) == {f"robber to t{t}" for t in range(19) if t not in near | {9}}


def test_17_a_friendly_robber_with_no_tile_left_goes_anywhere():
    # Six settlements of three rivals with two points each touch every tile but the desert.
    s = Situation(friendly_robber=True).settlement(1, 8, 14).settlement(2, 22, 31)
    s.settlement(3, 39, 45).before_roll(0).roll(7)
    assert set(s.legal()) == {f"robber to t{t}" for t in range(19) if t != 9}


# ---- building


def test_18_costs_go_to_the_bank_and_nothing_is_built_before_the_roll():
    # CS #585.
    s = rich().act("road 9-13")
    assert s.hand_of(0) == {"wood": 1, "brick": 1, "sheep": 2, "wheat": 2, "ore": 3}
    assert (s.in_bank("wood"), s.in_bank("brick")) == (18, 18)
    s.act("settlement 13")
    assert s.hand_of(0) == {"sheep": 1, "wheat": 1, "ore": 3}
    s.act("buy a development card").dealt("knight")
    assert s.hand_of(0) == {"ore": 2}
    s = rich().act("city 12")
    assert s.hand_of(0) == {"wood": 2, "brick": 2, "sheep": 2}
    assert set(rich().cards(0, knight=1).before_roll(0).legal()) == {"roll", "play knight"}


def test_19_pieces_are_limited_and_a_city_gives_its_settlement_back():
    s = Situation().settlement(0, 12, 1, 2, 27, 33 + 18).road(0, 12, 8, 13).turn(0)
    s.hand(0, wood=1, brick=1, sheep=1, wheat=3, ore=3)
    assert s.one["pieces"][0].tolist() == [13, 0, 4]
    assert not s.legal("settlement")
    s.act("city 12")
    assert s.one["pieces"][0].tolist() == [13, 1, 3]
    assert set(s.legal("settlement")) == {"settlement 13"}
    s = Situation().settlement(0, 12).city(0, 1, 2, 27, 51).hand(0, wheat=2, ore=3)
    assert not s.legal("city")
    s = Situation().road(0, 0, 3, 7, 11, 16, 21, 27, 33, 38, 43, 47, 51, 48, 52, 49, 53)
    assert s.one["pieces"][0, 0] == 0
    assert not s.hand(0, wood=2, brick=2).legal("road")


def test_20_a_city_needs_an_own_settlement_also_one_of_this_turn():
    s = rich().hand(0, wheat=1).settlement(1, 40)
    assert set(s.legal("city")) == {"city 12"}
    s.act("settlement 13")
    assert set(s.legal("city")) == {"city 12", "city 13"}


def test_21_a_settlement_needs_an_own_road_and_free_neighbours():
    s = rich().road(1, 40, 44)
    assert set(s.legal("settlement")) == {"settlement 13"}
    s = rich().settlement(1, 18)  # beside 13
    assert not s.legal("settlement")


def test_22_a_road_starts_at_an_own_road_and_not_through_a_rivals_building():
    # FAQ; CT #376; CS #28, #50, #545; ST #447.
    assert set(rich().legal("road")) == {
        "road 7-12", "road 12-17", "road 4-8", "road 9-13", "road 13-18",
    }  # fmt: skip
    assert set(rich().settlement(1, 13).legal("road")) == {"road 7-12", "road 12-17", "road 4-8"}
    # Another own road reaches the corner from the other side, so the edge is open after all.
    s = rich().settlement(1, 13).road(0, 5, 9)
    assert "road 9-13" in s.legal("road")


def test_23_no_road_on_a_taken_edge():
    # CS #222, #285, #557. Edges at sea do not exist.
    s = rich().road(1, 13, 9).road(2, 12, 7)
    assert set(s.legal("road")) == {"road 12-17", "road 4-8", "road 13-18"}
    s.act("road 4-8")
    assert "road 4-8" not in s.legal("road")


@pytest.mark.parametrize("corner", [10, 15])
def test_24_a_port_serves_either_corner_from_the_turn_it_is_built(corner):
    s = Situation().road(0, 10, 15).hand(0, wood=1, brick=1, sheep=1, wheat=1, ore=2)
    assert not s.legal("trade")
    s.act(f"settlement {corner}")
    assert set(s.legal("trade ore")) == {
        f"trade ore for {name} with the bank" for name in ("wood", "brick", "sheep", "wheat")
    }
    s = Situation().city(0, corner, 0).hand(0, ore=2)  # 0 has a 3:1 port
    assert s.one["rates"][0].tolist() == [3, 3, 3, 3, 2]


# ---- trade with the bank


def test_25_four_equal_cards_for_another_that_the_bank_holds():
    # CS #486.
    s = Situation().hand(0, wood=8).bank(ore=0)
    assert set(s.legal("trade")) == {
        f"trade wood for {name} with the bank" for name in ("brick", "sheep", "wheat")
    }
    s.act("trade wood for wheat with the bank")
    assert (s.hand_of(0), s.in_bank("wood"), s.in_bank("wheat")) == (
        {"wood": 4, "wheat": 1}, 15, 18,
    )  # fmt: skip
    s.act("trade wood for brick with the bank")
    assert s.hand_of(0) == {"wheat": 1, "brick": 1}
    assert not Situation().hand(0, wood=3, ore=3).legal("trade")


def test_26_every_resource_has_its_best_rate():
    # CT #65. 3:1 port at corner 0, ore port at 10.
    s = Situation().settlement(0, 0, 10).hand(0, ore=4, wood=3)
    s.act("trade ore for wheat with the bank")
    assert s.hand_of(0) == {"ore": 2, "wood": 3, "wheat": 1}
    s.act("trade wood for wheat with the bank")
    assert s.hand_of(0) == {"ore": 2, "wheat": 2}


# ---- trade between players


def offer(**params):
    """Player 1 offers wood for ore; 2 holds an ore, 0 and 3 do not."""
    s = Situation(trading="full", **params).hand(1, wood=2).hand(2, ore=1).hand(3, sheep=1).turn(1)
    return s.act("offer wood", "ask for ore", "make the offer")


def test_27_only_the_turn_player_offers_and_only_after_the_roll():
    s = Situation(trading="full").hand(0, wood=2).hand(1, ore=2)
    assert set(s.legal("offer")) == {"offer wood"}
    assert not s.before_roll(0).legal("offer")
    assert not Situation(trading="bank").hand(0, wood=2).legal("offer")
    assert not Situation(trading="none").hand(0, wood=9).legal("trade")


def test_28_no_gifts_and_nothing_for_the_same():
    # Almanac.
    s = Situation(trading="full").hand(0, wood=2, ore=1).hand(1, ore=2, wood=1).act("offer wood")
    assert "make the offer" not in s.legal()
    assert set(s.legal("ask")) == {"ask for ore"}
    s.act("ask for ore")
    assert "make the offer" in s.legal()
    assert "ask for wood" not in s.legal()


def test_29_both_sides_hold_what_they_give():
    # catanatron lets hands fall below zero.
    s = Situation(trading="full", offer_cards=3).hand(0, wood=1).hand(1, ore=1)
    s.act("offer wood")
    assert "offer wood" not in s.legal()
    s.act("ask for ore")
    assert "ask for ore" not in s.legal()  # nobody can have two
    s = offer()
    assert (s.decides(), set(s.legal())) == (2, {"accept", "decline"})
    s.act("accept")
    assert (s.decides(), set(s.legal())) == (3, {"decline"})


def test_30_everybody_else_is_asked_and_the_offerer_picks_or_withdraws():
    s = offer().hand(3, ore=1).act("accept", "accept")
    assert (s.decides(), set(s.legal())) == (0, {"decline"})
    s.act("decline")
    assert s.decides() == 1  # never asked about the own offer
    assert set(s.legal()) == {
        "stop", "trade with the next player", "trade with the second next player",
    }  # fmt: skip
    picked = Situation(trading="full")
    picked.state = s.state.copy()
    picked.act("trade with the second next player")
    hands = [picked.hand_of(seat) for seat in (1, 2, 3)]
    assert hands == [{"wood": 1, "ore": 1}, {"ore": 1}, {"sheep": 1, "wood": 1}]
    s.act("stop")
    assert s.hand_of(1) == {"wood": 2}
    assert s.one["offers"] == 1


def test_30_offers_are_bounded_also_those_that_are_given_up():
    s = Situation(trading="full", offers_per_turn=2).hand(0, wood=1).hand(1, ore=1)
    s.act("offer wood", "stop", "offer wood", "ask for ore", "make the offer")
    s.act("decline", "decline", "decline")
    assert set(s.legal()) == {"end the turn"}


def test_30_a_counter_offer_is_between_the_two():
    s = offer(counter_offers=True).act("make a counter-offer")
    assert (s.decides(), set(s.legal())) == (2, {"stop", "offer ore"})
    s.act("offer ore", "ask for wood", "ask for wood", "make the offer")
    s.act("make a counter-offer", "stop")  # player 3 thinks better of it, player 0 has no cards
    assert (s.decides(), set(s.legal())) == (0, {"decline"})
    s.act("decline")
    assert (s.decides(), set(s.legal())) == (1, {"stop", "trade with the next player"})
    s.act("trade with the next player")
    assert (s.hand_of(1), s.hand_of(2)) == ({"ore": 1}, {"wood": 2})


# ---- development cards


def test_31_a_card_is_not_played_in_the_turn_it_is_bought_but_an_older_one_is():
    # CT #292; PyPI 3.2.1 wrong; CS #140.
    s = Situation().hand(0, sheep=2, wheat=2, ore=2).act("buy a development card").dealt("knight")
    assert not s.legal("play")
    s = Situation().hand(0, sheep=1, wheat=1, ore=1).cards(0, knight=1)
    s.act("buy a development card").dealt("knight").act("play knight", "robber to t0")
    assert s.one["cards"][0, 0] == 1
    s = Situation(points_to_win=3).settlement(0, 12, 40).hand(0, sheep=1, wheat=1, ore=1)
    assert s.act("buy a development card").dealt("victory").winner() == 0


def test_32_one_card_in_a_turn_before_or_after_the_roll():
    # FAQ; the reporter of JS #112 withdrew.
    s = Situation().settlement(0, 12).road(0, 12, 8)
    s.cards(0, knight=2, roads=1, plenty=1, monopoly=1)
    plays = {"play knight", "play road building", "play year of plenty"}
    plays |= {f"play monopoly on {name}" for name in ("wood", "brick", "sheep", "wheat", "ore")}
    assert set(s.legal("play")) == plays
    assert set(s.before_roll(0).legal()) == plays | {"roll"}
    s.act("play knight", "robber to t0").roll(8)
    assert not s.legal("play")


def test_33_a_knight_and_then_a_seven_moves_the_robber_twice():
    s = Situation().cards(0, knight=1).before_roll(0).act("play knight", "robber to t0").roll(7)
    s.act("robber to t1")
    assert s.one["robber"] == 1


def test_34_monopoly_takes_all_of_a_kind_from_all_rivals():
    s = Situation().cards(0, monopoly=2).hand(1, ore=2, wood=1).hand(2, ore=3).hand(0, ore=1)
    s.act("play monopoly on ore")
    assert [s.hand_of(seat) for seat in range(3)] == [{"ore": 6}, {"wood": 1}, {}]
    assert s.in_bank("ore") == 13
    s = Situation().cards(0, monopoly=1).act("play monopoly on ore")  # possibly nothing
    assert s.hand_of(0) == {}


def test_35_year_of_plenty_takes_what_the_bank_has():
    s = Situation().cards(0, plenty=1).bank(wood=1, brick=0, sheep=0, wheat=0, ore=0)
    s.act("play year of plenty", "take wood")
    assert (s.hand_of(0), s.legal("take")) == ({"wood": 1}, {})
    s = Situation().cards(0, plenty=1).bank(wood=1).act("play year of plenty", "take wood")
    assert "take wood" not in s.legal()  # two of a kind need two in the bank
    s.act("take ore")
    assert s.hand_of(0) == {"wood": 1, "ore": 1}
    s = Situation().cards(0, plenty=1).bank(wood=0, brick=0, sheep=0, wheat=0, ore=0)
    assert not s.legal("play")


def test_36_road_building_is_free_and_counts_at_once():
    # CT #205; CS #244, #339, #691. A road of three grows to five.
    s = Situation().settlement(0, 12).road(0, 12, 8, 13, 18).cards(0, roads=1)
    s.act("play road building")
    assert "road 19-24" not in s.legal()
    s.act("road 18-24", "road 19-24")  # the second begins where the first ended
    assert (s.road_length(0), s.one["road_holder"], s.points(0)) == (5, 0, 3)
    assert s.one["pieces"][0, 0] == 10
    assert not s.legal("road")


def test_36_one_piece_is_one_road_and_no_edge_is_no_card():
    s = Situation().road(0, 0, 3, 7, 11, 16, 21, 27, 33, 38, 43, 47, 51, 48, 52, 49)
    assert s.one["pieces"][0, 0] == 1
    s.cards(0, roads=2).act("play road building", "road 49-53")
    assert (s.decides(), s.legal("road")) == (0, {})
    assert not s.turn(0)._set(card_played=0).legal("play")  # no piece is left
    # JSettlers checks the pieces only: a road between two rivals' settlements has no way on.
    s = Situation().road(0, 12, 8).settlement(1, 12).city(2, 8).cards(0, roads=1)
    assert not s.legal("play")


def test_36_one_may_stop_after_the_first_free_road():
    # catanatron goes on while there is an edge.
    s = Situation().settlement(0, 12).road(0, 12, 8).cards(0, roads=1).act("play road building")
    assert "stop" not in s.legal()
    s.act("road 8-13", "stop")
    assert s.one["free_roads"] == 0
    assert set(s.legal()) == {"end the turn"}


def test_37_an_empty_deck_sells_nothing_and_used_cards_do_not_return():
    s = Situation().hand(0, sheep=2, wheat=2, ore=2).deck(plenty=1)
    s.act("buy a development card")
    assert s.chances() == {3: 1.0}
    s.dealt("plenty")
    assert not s.legal("buy")
    s.act("end the turn").turn(0).act("play year of plenty", "take ore", "take ore")
    assert s.one["deck"].sum() == 0
    s = Situation().hand(0, sheep=1, wheat=1, ore=1).deck(knight=3, monopoly=1)
    assert s.act("buy a development card").chances() == {0: 0.75, 4: 0.25}


def test_38_an_army_counts_played_knights_only():
    # JS #91: a cancelled knight had counted. Here a played one cannot be taken back.
    s = Situation().cards(0, knight=5).knights(0, 2)
    assert (s.one["knights"][0], s.one["army_holder"]) == (2, -1)
    assert set(s.act("play knight").legal()) == {f"robber to t{t}" for t in range(19) if t != 9}


# ---- awards and the end


def test_39_largest_army_at_three_and_only_more_takes_it():
    # CT #41.
    s = Situation().settlement(0, 12).cards(0, knight=1).knights(0, 2).act("play knight")
    assert (s.one["army_holder"], s.points(0)) == (0, 3)
    s = Situation().knights(1, 3).holds(army=1).cards(0, knight=2).knights(0, 2).act("play knight")
    assert (s.one["army_holder"], s.points(0), s.points(1)) == (1, 0, 2)  # a tie
    s.act("robber to t0").turn(0)._set(card_played=0).act("play knight")
    assert (s.one["army_holder"], s.points(0), s.points(1)) == (0, 2, 0)
    s = Situation(points_to_win=4).settlement(0, 12, 40).cards(0, knight=1).knights(0, 2)
    assert s.before_roll(0).act("play knight").winner() == 0  # on the spot, before the roll


def test_40_longest_road_at_five_without_forks():
    s = Situation().settlement(0, 12).road(0, 12, 8, 13, 18, 24).hand(0, wood=3, brick=3)
    assert (s.road_length(0), s.one["road_holder"]) == (4, -1)
    s.act("road 9-13")  # a fork
    assert s.road_length(0) == 4
    s.act("road 24-30")
    assert (s.road_length(0), s.one["road_holder"], s.points(0)) == (5, 0, 3)


def test_40_equal_length_does_not_take_it_and_more_does():
    s = Situation().road(1, 27, 33, 38, 43, 47, 51).holds(road=1)
    s.road(0, 12, 8, 13, 18, 24).hand(0, wood=3, brick=3).act("road 24-30")
    assert (s.road_length(0), s.one["road_holder"]) == (5, 1)
    s.act("road 30-36")
    assert (s.one["road_holder"], s.points(0), s.points(1)) == (0, 2, 0)


def test_40_a_ring_counts_whole_and_own_buildings_do_not_break_it():
    # FAQ.
    s = Situation().road(0, 8, 13, 18, 23, 17, 12, 8).settlement(0, 13).city(0, 17)
    assert s.road_length(0) == 6
    assert s.road(0, 8, 4, 0).road_length(0) == 8
    assert Situation().road(0, 12, 8, 13, 18, 24).settlement(0, 13).road_length(0) == 4


def test_41_a_rival_in_the_middle_cuts_and_one_at_an_end_does_not():
    # CT #378, #384: catanatron drops the edge at a blocked end.
    path = (12, 8, 13, 18, 24, 30, 35)
    assert Situation().road(0, *path).settlement(1, 18).road_length(0) == 3
    assert Situation().road(0, *path).settlement(1, 35).road_length(0) == 6
    assert Situation().road(0, *path).settlement(1, 12).city(2, 35).road_length(0) == 6


def cut(lengths, holder):
    """Player 3 settles at 30 in the road of the holder; the others have roads of such lengths."""
    paths = {
        0: (36, 30, 24, 18, 13, 8, 4, 0, 3),  # 30 cuts one edge off
        1: (11, 16, 21, 27, 33, 38, 43, 47),
        2: (2, 6, 10, 15, 20, 26, 32, 37),
    }
    s = Situation().road(3, 40, 35, 30).turn(3).hand(3, wood=1, brick=1, sheep=1, wheat=1)
    for seat, length in lengths.items():
        s.road(seat, *paths[seat][: length + 1])
    s.holds(road=holder)
    assert [s.road_length(seat) for seat in lengths] == list(lengths.values())
    s.act("settlement 30")
    assert s.road_length(0) == lengths[0] - 1
    return s


@pytest.mark.parametrize(
    ("lengths", "new"),
    [
        ({0: 5, 1: 4, 2: 3}, -1),  # nobody has five any more
        ({0: 6, 1: 6, 2: 4}, 1),  # one rival is longer now
        ({0: 6, 1: 6, 2: 6}, -1),  # two rivals are: set aside
        ({0: 6, 1: 5, 2: 3}, 0),  # a tie keeps the holder
        ({0: 7, 1: 5, 2: 5}, 0),
        ({0: 6, 1: 7, 2: 6}, 1),
    ],
)
def test_42_after_a_cut_the_card_goes_on_or_is_set_aside(lengths, new):
    # Rule book; JSettlers decides the same (`SOCGame.updateLongestRoad`).
    s = cut(lengths, 0)
    assert s.one["road_holder"] == new
    assert [s.points(seat) for seat in range(3)] == [2 * (seat == new) for seat in range(3)]


def test_42_a_card_set_aside_waits_for_somebody_uniquely_longest():
    s = cut({0: 6, 1: 6, 2: 6}, 0)
    s.hand(1, wood=1, brick=1).turn(1).act("road 43-47")
    assert s.one["road_holder"] == 1
    s = cut({0: 6, 1: 6, 2: 6}, 0)
    s.road(0, 4, 0).hand(0, wood=1, brick=1).turn(0).act("road 0-3")
    assert (s.road_length(0), s.one["road_holder"]) == (7, 0)


def test_43_a_settlement_alone_moves_the_card():
    # JS #95, CS #579: a third player's settlement, and the holder is not the one who builds.
    s = cut({0: 6, 1: 6, 2: 4}, 0)
    assert s.events[-1] == (
        "player 3: settlement 30; player 1 takes Longest Road; the road of player 0 is cut from 6 "
        "to 5"
    )


def test_44_nobody_wins_in_anothers_turn():
    # JS #56 (`setCurrentPlayerNumber`). Player 1 has 8 points and becomes the longest by a cut.
    s = cut({0: 6, 1: 6, 2: 4}, 0)
    s.city(1, 11, 27, 43, 47).turn(3)
    assert (s.points(1), s.winner()) == (10, None)
    s.act("end the turn")
    assert s.winner() is None  # the turn of player 0
    s._set(phase=3, player=CHANCE).draw(0).act("end the turn")
    assert s.winner() == 1  # before rolling
    assert s.one["dice"] == 0


def test_44_the_turn_player_wins_first_even_with_fewer_points():
    s = Situation().city(1, 11, 27, 43, 47).settlement(1, 50, 53).holds(army=1)
    s.city(0, 1, 2, 29, 31).settlement(0, 12).hand(0, wheat=2, ore=3)
    s._set(cards=[[0, 0, 0, 0, 0]] * 4)
    assert (s.points(0), s.points(1)) == (9, 12)
    s.one["pieces"][0, 2] = 1
    assert s.act("city 12").winner() == 0
    assert s.game.returns_of(s.state)[0].tolist() == pytest.approx([1, 0.9, 0, 0])


def test_45_victory_point_cards_count_silently():
    s = Situation().city(0, 1, 2, 29, 31).hand(0, wood=1, brick=1, sheep=1, wheat=1)
    s.cards(0, victory=1).road(0, 12, 8)
    assert (s.one["points"][0], s.points(0)) == (8, 9)
    assert s.act("settlement 12").winner() == 0
    assert s.one["points"][0] == 9
    # Rivals see a card, not which.
    one, other = (Situation().cards(0, **{card: 1}) for card in ("victory", "knight"))
    for s in (one, other):
        s.one["deck"] = [14, 5, 2, 2, 2]
    seen = [s.game.observations_of(s.state, [1])[0] for s in (one, other)]
    assert (seen[0] == seen[1]).all()


def test_46_the_turn_limit_ends_the_game_without_a_winner():
    s = Situation(turn_limit=10).city(0, 1).cards(0, victory=1).turn(1, number=8)
    s.act("end the turn")
    assert s.winner() == -1
    assert s.game.returns_of(s.state)[0].tolist() == pytest.approx([0.3, 0, 0, 0])
    assert "nobody has won by the turn limit" in s.game.state_to_text(s.game.rules, s.one)
