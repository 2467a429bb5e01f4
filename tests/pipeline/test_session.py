"""Sessions: the game that self-play would play, the way back and forward, saved games."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from games import CHANCE, TERMINAL, make_game
from pipeline.errors import SessionError
from pipeline.policies.base import uniform_decisions
from pipeline.policies.scripted import UniformRandom, WinOrRandom, baseline
from pipeline.selfplay import IllegalAction, play_games
from pipeline.session import Ply, Seat, Session, read_saved
from pipeline.streams import game_keys

RANDOM = Seat("random", UniformRandom())
ME = Seat("me")
FOUR = make_game("k_in_a_row")


def session_of(game, *seats, **more) -> Session:
    session = Session(game, seats, **more)
    list(session.advance())
    return session


def replayed(session: Session) -> np.ndarray:
    """The position that the line leads to by the rules alone."""
    state = session.game.initial_states(game_keys(session.seed, "play", session.number, [0]))
    for ply in session.played:
        assert state["player"][0] == ply.player
        state = session.game.after(state, [ply.action])
    return state


def assert_sound(session: Session) -> None:
    assert replayed(session).tobytes() == session.state.tobytes()
    assert session.waiting or session.player == TERMINAL


@pytest.mark.parametrize("number", range(5))
def test_a_session_of_policies_is_the_game_that_the_driver_plays(dice, number):
    policies = [UniformRandom(), WinOrRandom()]
    keys = game_keys(7, "play", number, [0])
    seatings = np.array([[0, 1, 0]])
    results, traces = play_games(dice, policies, seatings, keys)
    seats = [Seat(str(who), policies[who]) for who in seatings[0]]
    session = session_of(dice, *seats, seed=7, number=number)
    assert_sound(session)
    decided = [(int(a), int(b)) for a, b in zip(traces.player, traces.action, strict=True)]
    positions = iter(traces.ply)
    at = next(positions, None)
    mine = []
    for index, ply in enumerate(session.played):
        if index == at:
            mine.append((ply.player, ply.action))
            at = next(positions, None)
    assert mine == decided
    assert len(session.played) == results.plies[0]
    assert session.game.returns_of(session.state).tolist() == results.returns.tolist()


@settings(max_examples=60)
@given(st.lists(st.sampled_from(["play", "play", "play", "undo", "redo"]), max_size=40), st.data())
def test_whatever_is_played_taken_back_and_played_again_the_rules_lead_there(dice, steps, data):
    session = session_of(dice, ME, RANDOM, ME)
    for step in steps:
        line, state = session.played, session.state.copy()
        if step == "play" and session.waiting:
            action = data.draw(st.sampled_from(session.legal().tolist()))
            session.play(action)
            assert session.played[: len(line) + 1] == (
                *line,
                Ply(int(state["player"][0]), action, asked=True),
            )
            list(session.advance())
        elif step == "undo" and session.undo():
            back = len(session.played)
            assert line[:back] == session.played and line[back].asked
            assert not any(ply.asked for ply in line[back + 1 :])  # the last of the person's
            assert session.waiting and session.player in (0, 2)
            assert session.redo() and session.played == line
            assert session.state.tobytes() == state.tobytes()
            session.undo()
        elif step == "redo" and session.redo():
            assert session.played[: len(line)] == line
        assert_sound(session)


def test_chance_and_policies_do_the_same_again(dice):
    session = session_of(dice, ME, RANDOM, RANDOM, seed=3)
    lines = []
    for _ in range(2):
        while session.player != TERMINAL:
            session.play(int(session.legal()[0]))
            list(session.advance())
        lines.append(session.played)
        while session.undo():
            pass
        assert not any(ply.asked for ply in session.played)
    assert lines[0] == lines[1] and any(ply.player == CHANCE for ply in lines[0])


def test_another_action_forgets_what_was_taken_back():
    session = session_of(FOUR, ME, ME)
    for column in (3, 3, 2):
        session.play(column)
    session.undo()
    session.undo()
    session.play(6)
    assert [ply.action for ply in session.played] == [3, 6]
    assert not session.redo()
    assert not session_of(FOUR, ME, ME).undo()


def test_a_person_with_one_action_is_not_asked(dice):
    """In the game of dice, whoever draws a 3 must keep it."""
    drawn = []
    for number in range(3):
        session = session_of(dice, ME, ME, ME, number=number)
        while session.player != TERMINAL:
            session.play(int(session.legal()[-1]))
            list(session.advance())
        for outcome, answer in zip(session.played[::2], session.played[1::2], strict=True):
            assert outcome.player == CHANCE and answer.asked == (outcome.action < 2)
            drawn.append(outcome.action)
    assert 2 in drawn


def test_what_is_not_legal_is_refused_and_changes_nothing():
    session = session_of(FOUR, ME, RANDOM, start="000000")
    before = session.state.copy()
    for action in (0, 7, -1):
        with pytest.raises(SessionError, match="is not legal here"):
            session.play(action)
    assert session.played == () and session.state.tobytes() == before.tobytes()
    over = session_of(FOUR, RANDOM, RANDOM)
    with pytest.raises(SessionError, match="nobody is asked here"):
        over.play(0)


def test_a_policy_that_breaks_the_rules_is_named():
    class Zero:
        def act(self, game, states, legal, rng):
            return uniform_decisions(np.eye(1, 7, dtype=bool).repeat(len(states), 0), rng, False)

    with pytest.raises(IllegalAction, match=r"zero chose action 0, which is illegal in\n"):
        session_of(FOUR, Seat("zero", Zero()), RANDOM, start="000000")


def test_seats_and_start_must_fit_the_game(sumto12):
    with pytest.raises(SessionError, match="sumto has 2 seats, got 3: me, random, random"):
        Session(sumto12, [ME, RANDOM, RANDOM])
    with pytest.raises(SessionError, match="'99' is no position of this game"):
        Session(sumto12, [ME, RANDOM], start="99")
    assert Session(sumto12, [ME, RANDOM], start="8").state["sum"][0] == 8


def test_a_saved_game_goes_on_as_the_one_that_was_not_saved(dice):
    def play_on(session):
        while session.player != TERMINAL:
            session.play(int(session.legal()[0]))
            list(session.advance())
        return session.played

    seats = (ME, RANDOM, RANDOM)
    session = session_of(dice, *seats, seed=11, number=4)
    for _ in range(2):
        session.play(int(session.legal()[-1]))
        list(session.advance())
    stored = read_saved(session.to_text())
    assert stored == session.to_json()
    again = Session.from_json(stored, dice, seats)
    assert again.played == session.played and again.waiting
    assert again.undo() and again.redo() and again.played == session.played
    assert play_on(again) == play_on(session)


def test_a_saved_game_that_began_elsewhere(sumto12):
    session = session_of(sumto12, Seat("perfect", baseline("perfect", sumto12)), ME, start="5")
    again = Session.from_json(read_saved(session.to_text()), sumto12, session.seats)
    assert again.state["sum"][0] == 8 and again.start == "5"  # the perfect player leaves 4


SAVED = {
    "format": 1,
    "game": "sumto",
    "params": {"target": 12, "max_step": 3},
    "seats": ["me", "me"],
    "seed": 1,
    "number": 0,
    "start": None,
    "plies": [{"player": 0, "action": 2, "text": "+3"}, {"player": 1, "action": 0, "text": "+1"}],
}


def ply(**changes) -> dict:
    return {"plies": [SAVED["plies"][0], {**SAVED["plies"][1], **changes}]}


def test_a_saved_game_of_brackets_alone_is_refused():
    """JSON's reader gives up on nesting with an error of its own."""
    with pytest.raises(SessionError, match="it is no saved game"):
        read_saved("[" * 200_000)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"format": 2}, "of format 2; this program reads 1"),
        ({"seed": "1"}, "seed must be of type int"),
        ({"number": -1}, "number must be in 0"),
        ({"plies": 3}, "plies must be of type list"),
        ({"plies": [7]}, r"plies\[0\].player must be of type int"),
        ({"seats": [1, 2]}, "seats must be a list of names"),
        ({"start": "x"}, "'x' is no position"),
        (ply(player=0), "ply 1 of the saved game is not what the rules allow"),
        (ply(action=3), "ply 1 of the saved game is not what the rules allow"),
        (ply(text="+2"), r"ply 1 of the saved game says '\+2', and action 0 is '\+1'"),
    ],
)
def test_a_damaged_saved_game_is_refused(sumto12, changes, sentence):
    with pytest.raises(SessionError, match=sentence):
        Session.from_json(read_saved(json.dumps(SAVED | changes)), sumto12, [ME, ME])


def test_the_undamaged_one_is_read(sumto12):
    session = Session.from_json(read_saved(json.dumps(SAVED)), sumto12, [ME, ME])
    assert session.state["sum"][0] == 4


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", b"\xff\xfe", '{"seed": 1}'])
def test_what_is_no_saved_game_is_refused(text):
    with pytest.raises(SessionError, match="it is no saved game"):
        read_saved(text)
