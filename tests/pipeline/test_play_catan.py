"""A person at the terminal plays whole games of Catan, and reads only what their seat may see."""

import io
import re
import sys

import numpy as np
import pytest

from games import TERMINAL, make_game
from pipeline import play
from pipeline.policies.scripted import baseline
from pipeline.session import PERSON, Seat, Session
from pipeline.streams import Streams, game_keys


def a_game(seats, seed, **params):
    """(the finished session, the lines a person would have typed in it).

    The person decides as value_greedy does.
    """
    game = make_game("catan", **params)
    script = baseline("value_greedy", game)
    table = [Seat(name, None if name == PERSON else baseline(name, game)) for name in seats]
    session = Session(game, table, seed)
    lines = []
    key = game_keys(9, "a person", 0, [0])
    while session.player != TERMINAL:
        for _ in session.advance():
            pass
        if session.waiting:
            state = session.state
            streams = Streams(key, state["ply"])
            action = int(script.act(game, state, game.legal_of(state), streams).actions[0])
            lines.append(game.action_to_text(game.rules, action))
            session.play(action)
    return session, lines


def on_screen(monkeypatch, capsys, lines, *arguments) -> str:
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
    play.main(list(arguments))
    return capsys.readouterr().out


SEATS = [PERSON, "value_greedy", "weighted_random", "value_greedy"]
DEEDS = {"make the offer", "accept", "decline", "play knight", "trade with the next player"}


@pytest.fixture(scope="module")
def played():
    """(seed, session, lines) of the first game in which the person does all of `DEEDS`."""
    for seed in range(1, 40):
        session, lines = a_game(SEATS, seed)
        if set(lines) >= DEEDS:
            return seed, session, lines
    raise AssertionError(f"in no game does the person do all of {DEEDS}")


def test_a_whole_game_with_trades_is_played_from_a_script(played, monkeypatch, capsys):
    seed, session, lines = played
    out = on_screen(
        monkeypatch, capsys, [*lines, "quit"], "game=catan", "--seed", str(seed),
        "--seats", ",".join(SEATS),
    )  # fmt: skip
    assert out.count("the end: player 0 (you)") == 1
    assert "type more of it" not in out and "not legal" not in out
    winner = int(session.game.returns_of(session.state)[0].argmax())
    assert f"player {winner} has won" in out
    assert ("you win" if winner == 0 else "you lose") in out
    assert out.endswith("bye\n")


def test_the_screen_shows_what_the_seat_may_see(played, monkeypatch, capsys):
    seed, _, lines = played
    out = on_screen(
        monkeypatch, capsys, lines, "game=catan", "--seed", str(seed),
        "--seats", ",".join(SEATS),
    )  # fmt: skip
    going_on, over = out.split("the end:")[0].rsplit("\n\n", 2)[:2]
    assert "player 1 draws a card" in going_on and "steals a card from player" in going_on
    assert re.search(r"player 0 draws (knight|victory point|road building)", going_on)
    for line in going_on.splitlines():
        theft = re.match(r"  player (\d) steals (.+) from player (\d)", line)
        if theft and theft[2] != "a card":
            assert "0" in (theft[1], theft[3])
        drawn = re.match(r"  player ([1-3]) draws (.+)", line)
        assert not drawn or drawn[2].split(";")[0] == "a card"
        assert not re.match(r"  player [1-3]: (offer|ask for|roll)", line)
        assert not line.startswith(("known of", "bought in this turn: "))
        # A hand of another: five counts, what is unknown, then how many development cards.
        hand = re.match(r"player [1-3] +\d+ .*\| (.*)", line)
        assert not hand or re.fullmatch(r"\d+|none", hand[1])
    assert re.search(r"^you +\d", going_on, re.M)
    assert re.search(r"^player 1 +\d.*\|( +\d+){5}$", over, re.M)  # after the end hands are open


def test_two_people_at_one_screen_see_the_hand_of_who_decides(monkeypatch, capsys):
    seats = [PERSON, "random", PERSON]
    session, lines = a_game(seats, 5, players=3, points_to_win=4)
    out = on_screen(
        monkeypatch, capsys, lines, "game=catan", "game.players=3", "game.points_to_win=4",
        "--seed", "5", "--seats", ",".join(seats),
    )  # fmt: skip
    assert "the end:" in out
    screens = [part for part in out.split("\n\n") if re.match(r"(turn|set-up) .*of player", part)]
    for screen in screens[:-1]:
        decides = re.search(r", player (\d)$", screen.splitlines()[0])[1]
        shown = set(re.findall(r"^(player \d|you) +\d", screen, re.M))
        assert shown == {"you", "player 0", "player 1", "player 2"} - {f"player {decides}"}
    assert len(screens) > 20
    assert np.isfinite(session.game.returns_of(session.state)).all()


def test_who_only_watches_sees_all(monkeypatch, capsys):
    out = on_screen(
        monkeypatch, capsys, [], "game=catan_two", "game.points_to_win=3",
        "--seats", "random,weighted_random",
    )  # fmt: skip
    hands = re.findall(r"^player \d +\d.*\|( +\d+){5}$", out, re.M)
    assert len(hands) > 20 and "you " not in out
