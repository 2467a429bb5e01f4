"""Every game has a transcript, and the rules of today give it line by line."""

import pytest
import transcripts

from games import GAMES


@pytest.mark.parametrize("name", [*GAMES, *transcripts.PLAYERS])
def test_the_rules_give_the_transcript(name):
    path = transcripts.path_of(name)
    assert path.exists(), f"game {name} has no transcript; run: python tests/golden/transcripts.py"
    text = path.read_text()
    assert text.startswith(f"game: {name.partition('-')[0]}\n")
    assert transcripts.replay(text).split("\n") == text.split("\n")


def test_there_is_no_transcript_of_an_unknown_game():
    known = {*GAMES, *transcripts.PLAYERS}
    assert {path.stem for path in transcripts.FOLDER.glob("*.txt")} == known


@pytest.mark.parametrize("stem", transcripts.PLAYERS)
def test_a_games_own_players_still_choose_what_stands_in_their_transcript(stem):
    text = transcripts.path_of(stem).read_text()
    actions = [int(line.split()[1]) for line in text.splitlines() if line.startswith("action: ")]
    params, seed, seats = transcripts.PLAYERS[stem]
    assert transcripts.played_by(stem.partition("-")[0], params, seed, seats) == actions


@pytest.mark.parametrize(("actions", "message"), [([0, 4], "action 4 at"), ([0], "action None at")])
def test_a_game_that_no_longer_goes_so_is_named(actions, message):
    with pytest.raises(AssertionError, match=rf"sumto: {message} ply 1 is not in \[0, 1, 2, 3\]"):
        transcripts.transcript("sumto", {"target": 23, "max_step": 4}, 1, actions)
