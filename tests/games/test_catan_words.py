"""Catan in words: positions read back and refused, actions, events, pictures."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from catan_invariants import random_actions
from catan_situation import Situation

from games import CHANCE, ONLOOKER, make_game
from games.catan.drawing import numbering_svg, state_to_svg
from games.catan.state import ACTIONS
from games.catan.words import transcript


def text_of(s):
    return s.game.state_to_text(s.game.rules, s.one)


def test_the_map_shows_pieces_robber_ports_and_numbers():
    s = Situation().settlement(0, 12).city(1, 23).road(0, 12, 8).robber(4)
    lines = text_of(s).splitlines()
    assert any("s0" in line for line in lines) and any("C1" in line for line in lines)
    assert any("t4 ROBBER" in line for line in lines)
    assert any(" r0 " in line for line in lines)
    assert sum(line.count("3:1") for line in lines) == 4
    assert "wheat 12" in text_of(s) and "desert" in text_of(s)


def test_the_map_may_be_left_out_and_must_not_contradict():
    s = Situation().settlement(0, 12).road(0, 12, 8).hand(0, ore=2)
    read = s.game.state_from_text
    lines = text_of(s).splitlines()
    short = "\n".join(line for line in lines if line[0] != " " or "  settlements" in line)
    assert len(short.splitlines()) < len(lines) - 20
    assert read(s.game.rules, short)[0] == s.one
    moved = text_of(s).replace("  settlements 12", "  settlements 13")
    with pytest.raises(ValueError, match="contradicts the rest of the position"):
        read(s.game.rules, moved)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("roads 8-12", "roads 8-14", "there is no edge 8-14"),
        ("settlements 12", "settlements 54", "corners are 0..53"),
        ("ports: *", "ports: x", "are no ports; expected nine"),
        ("board: o10", "board: o7", "'o7' is no tile"),
        ("bank  ", "bonk  ", "the line of bank is missing"),
        ("robber t9", "robber t19", "nowhere"),
        ("ply 0", "ply 99999999999", "a number is larger than any"),
        ("of player 0, rolled", "of player 7, rolled", r"the players are 0\.\.3"),
        ("turn 8", "turn 1000", r"turns are -8\.\.999"),
        ("bank          19", "bank          20", "there are 19 cards of each resource"),
        ("|       14 ", "|       15 ", "the deck has 14, 5, 2, 2, 2 cards of each kind"),
        ("settlements 12", "settlements 8 12", "two buildings are neighbours"),
        ("settlements 12; cities none", "settlements 12; cities 12", "a corner has two buildings"),
        ("settlements 12", "settlements 0 2 8 11 15 25", "a player has 5 settlements"),
        ("corner -1", "corner 12", "a first road is due exactly where a corner is pending"),
        ("victim -1", "victim 1", "a card is stolen exactly where there is a victim"),
        ("free_roads 0", "free_roads 3", "what is pending is out of its range"),
        ("rolled 6", "rolled 1", r"a roll is 2\.\.12"),
        ("main, player 0", "main, player 1", "main, player 1 has nothing to decide"),
        ("main, player 0", "dice, player 0", "dice, player 0 has nothing to decide"),
        ("main, player 0", "main, chance", "main, chance has nothing to decide"),
        ("main, player 0", "over, player 0", "over, player 0 has nothing to decide"),
    ],
)
def test_what_is_no_position_is_refused_with_what_was_expected(old, new, message):
    s = Situation().settlement(0, 12).road(0, 12, 8)
    assert old in text_of(s)
    with pytest.raises(ValueError, match=message):
        s.game.state_from_text(s.game.rules, text_of(s).replace(old, new))


def test_a_damaged_text_is_refused_or_a_position_with_something_to_decide():
    game = make_game("catan", counter_offers=True)
    rng = np.random.default_rng(0)
    states = game.initial_states(np.arange(8))
    for _ in range(250):
        states = game.after(states, random_actions(game, states, game.legal_of(states), rng))
    read = 0
    for _ in range(400):
        text = game.state_to_text(game.rules, states[rng.integers(8)])
        numbers = list(re.finditer(r"\d+", text))
        one = numbers[rng.integers(len(numbers))]
        other = rng.choice(["0", "1", "7", "99", "300", "99999999999", "-1"])
        try:
            state = game.state_from_text(
                game.rules, text[: one.start()] + other + text[one.end() :]
            )
        except ValueError:
            continue
        read += 1
        if state["player"][0] >= 0:
            assert game.legal_of(state).any()
        if state["player"][0] == CHANCE:
            assert game.chance_of(state).sum() == pytest.approx(1)
    assert 0 < read < 300


def test_every_action_has_an_id_and_a_text():
    game = make_game("catan")
    words = [game.action_to_text(game.rules, action) for action in range(ACTIONS)]
    assert len(set(words)) == game.num_actions == 261
    for action, text in {
        0: "end the turn", 2: "buy a development card", 10: "play monopoly on ore",
        21: "trade wood for brick with the bank", 40: "trade ore for wheat with the bank",
        56: "trade with the next player", 61: "steal from the third next player",
        62: "robber to t0", 81: "settlement 0", 188: "city 53", 189: "road 0-3", 260: "road 50-53",
    }.items():  # fmt: skip
        assert words[action] == text


def test_events_say_what_happened():
    s = Situation().settlement(0, 12).city(1, 23).before_roll(0).roll(6)
    assert s.events[-1] == "player 0 rolls 6; player 0 gets 1 brick; player 1 gets 2 brick"
    s = Situation().city(0, 40).city(1, 49).bank(wheat=3).before_roll(0).roll(6)
    assert s.events[-1] == "player 0 rolls 6; the bank is short of wheat"
    s = Situation().settlement(1, 8).hand(1, ore=1).before_roll(0).roll(7)
    s.act("robber to t4").stolen("ore")
    assert s.events[-2:] == ["player 0: robber to t4", "player 0 steals ore from player 1"]
    s = Situation().hand(0, sheep=1, wheat=1, ore=1).act("buy a development card").dealt("roads")
    assert s.events[-1] == "player 0 draws road building"
    s = Situation().cards(0, monopoly=1).hand(1, ore=2).act("play monopoly on ore")
    assert s.events[-1] == "player 0: play monopoly on ore and gets 2 ore"


def seen(s, seat):
    """The lines of all events as a seat sees them."""
    return [s.game.view.event_to_text(s.game.rules, *event, seat) for event in s.happened]


def test_a_theft_is_told_in_full_to_thief_and_victim_only():
    s = Situation().settlement(1, 8).hand(1, ore=1).before_roll(0).roll(7)
    s.act("robber to t4").stolen("ore")
    full, less = ("player 0 steals ore from player 1", "player 0 steals a card from player 1")
    assert [seen(s, seat)[-1] for seat in (0, 1, 2, ONLOOKER)] == [full, full, less, less]


def test_a_drawn_card_is_told_to_its_owner_only():
    s = Situation().hand(0, sheep=1, wheat=1, ore=1).act("buy a development card").dealt("victory")
    assert [seen(s, seat)[-1] for seat in (0, 1, ONLOOKER)] == [
        "player 0 draws victory point", "player 0 draws a card", "player 0 draws a card"
    ]  # fmt: skip


def test_an_offer_is_told_when_it_is_made_and_not_while_it_is_put_together():
    s = Situation(trading="full").hand(0, wood=1).hand(1, ore=1)
    s.act("offer wood", "ask for ore", "make the offer", "accept")
    assert seen(s, 1) == ["", "", "player 0 offers 1 wood for 1 ore", "player 1: accept"]
    assert seen(s, 0)[:2] == ["player 0: offer wood", "player 0: ask for ore"]


def test_who_could_have_played_a_card_before_the_roll_is_not_told():
    # Only a player with a card to play is asked before the roll.
    s = Situation().cards(0, knight=1).before_roll(0)
    words = [s.game.view.state_to_text(s.game.rules, s.one, seat) for seat in (0, 1)]
    assert words[0].startswith("turn 8 of player 0: before the roll, player 0\n")
    assert words[1].startswith("turn 8 of player 0: dice, chance\n")
    s.act("roll")
    assert (seen(s, 0), seen(s, 1)) == (["player 0: roll"], [""])


def test_a_view_shows_own_cards_and_of_others_what_can_be_counted():
    s = Situation().hand(0, wood=2).hand(1, ore=1).hidden(1, wood=1).cards(1, victory=2)
    s.cards(0, knight=1, victory=1)
    words = [s.game.view.state_to_text(s.game.rules, s.one, seat) for seat in (0, 1, 2)]
    rows = [[" ".join(line.split()) for line in text.splitlines()] for text in words]
    mine, theirs = "you 2 0 0 0 0 | 1 knight, 1 victory point", "you 1 0 0 0 1 | 2 victory point"
    assert mine in rows[0] and "player 1 0 0 0 0 1 1 | 2" in rows[0]
    assert theirs in rows[1] and "player 0 2 0 0 0 0 | 2" in rows[1]
    assert "player 0 2 0 0 0 0 | 2" in rows[2]
    assert "bank 16 19 19 19 18 | 21 in the deck" in rows[2]


def test_json_names_owners_hands_and_the_winner():
    s = Situation().settlement(0, 12).city(1, 23).road(0, 12, 8).hand(1, ore=2)
    shown = s.game.state_to_json(s.game.rules, s.one)
    assert (shown["settlements"][12], shown["cities"][23], shown["roads"].count(0)) == (0, 1, 1)
    assert shown["players"][1]["hand"] == [0, 0, 0, 0, 2]
    assert shown["tiles"][0] == {"resource": "ore", "number": 10}
    assert shown["tiles"][9] == {"resource": "desert", "number": None}
    assert (shown["winner"], len(shown["players"])) == (None, 4)


def test_pictures_are_well_formed_and_show_every_piece():
    s = Situation().settlement(0, 12, 40).city(1, 23).road(0, 12, 8, 13)
    root = ElementTree.fromstring(state_to_svg(s.game.rules, s.one))
    kinds = [child.tag.split("}")[1] for child in root]
    assert kinds.count("polygon") == 19 + 3  # tiles and buildings
    assert kinds.count("line") == 2 * 9 + 2 * 2  # jetties, and two lines a road
    ElementTree.fromstring(numbering_svg())


def test_a_transcript_has_a_line_for_every_event():
    game = make_game("catan", turn_limit=30)
    rng = np.random.default_rng(4)
    states = game.initial_states([1])
    start, actions = states[0].copy(), []
    while states["player"][0] != -2:
        actions.append(int(random_actions(game, states, game.legal_of(states), rng)[0]))
        states = game.after(states, actions[-1:])
    lines = transcript(game.rules, start, actions).splitlines()
    assert sum(line.startswith("  ") for line in lines) == len(actions)
    assert "nobody has won by the turn limit" in lines[-1]
