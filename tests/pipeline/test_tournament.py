"""Tournaments: everybody against everybody, from wherever it was stopped."""

import dataclasses
import io
import json
import os
import shutil
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest
from omegaconf import OmegaConf
from small_runs import small_config

import games
from pipeline import tournament
from pipeline.backend import Serial
from pipeline.config import checked
from pipeline.errors import UserError
from pipeline.run import Run
from pipeline.selfplay import Results
from pipeline.tournament import Tournament, TournamentConfig
from pipeline.train import train


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A folder with the runs `one` (generations 0 to 3) and `two` (0 and 1) of SumTo20, and `far`
    of another game."""
    folder = tmp_path_factory.mktemp("runs")
    train(small_config(folder, "one", generations=3, selfplay__games=60, evaluation__every=9))
    train(small_config(folder, "two", generations=1, seed=9, evaluation__every=9))
    train(small_config(folder, "far", generations=1, game__target=30, evaluation__every=9))
    return folder


@pytest.fixture
def cup(root, compose):
    """A function: players and overrides -> a tournament."""

    def make(name: str, players: list[str], *overrides: str, where: Path = root) -> Tournament:
        composed = compose(
            f"name={name}",
            f"root={where}",
            f"players=[{','.join(players)}]",
            "games=40",
            "cluster=serial",
            "replicates=100",
            *overrides,
            name="tournament",
        )
        config = checked(TournamentConfig, OmegaConf.create(composed), "players")
        return Tournament(config)

    return make


def files(root, name: str) -> dict[str, bytes]:
    folder = root / "tournaments" / name
    return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}


def labels(each: Tournament) -> list[str]:
    return [player.label for player in each.players]


@pytest.mark.parametrize(
    ("players", "expected"),
    [
        (["random", "one"], ["random", "one/3"]),  # no gate: the champion is the newest
        (["one/0-3-2", "one/1"], ["one/0", "one/2", "one/1"]),
        (["one/all", "one/2"], ["one/0", "one/1", "one/2", "one/3"]),
        (["two/0-1", "perfect", "one/3"], ["two/0", "two/1", "perfect", "one/3"]),
    ],
)
def test_who_takes_part(cup, players, expected):
    assert labels(cup("names", players)) == expected


def test_everybody_meets_everybody_and_the_files_agree(cup, root):
    text = cup("all", ["random", "perfect", "one/all"]).play()
    found = json.loads((root / "tournaments/all/ratings.json").read_text())
    names = {each["player"] for each in found["players"]}
    assert names == {"random", "perfect", "one/0", "one/1", "one/2", "one/3"}
    assert all(each["games"] == 5 * 40 for each in found["players"])
    assert found["anchor"] == "random"
    rows = {(row["player"], row["opponent"]): row for row in found["matrix"]}
    assert len(rows) == 30
    for (player, opponent), row in rows.items():
        other = rows[opponent, player]
        assert row["n"] == 40 == row["wins"] + row["draws"] + row["losses"]
        assert (row["wins"], row["draws"]) == (other["losses"], other["draws"])
        assert row["score"] + other["score"] == 1 and row["low"] <= row["score"] <= row["high"]
    # Whoever answers every sum right loses to random now and then by the seat alone.
    assert rows["perfect", "random"]["score"] > 0.9
    table = pq.read_table(root / "tournaments/all/matrix.parquet").to_pylist()
    assert table == found["matrix"]
    png = (root / "tournaments/all/matrix.png").read_bytes()
    assert png.startswith(b"\x89PNG")
    for name in names:
        assert name in text
    assert text.startswith("\n" + (root / "tournaments/all/standings.txt").read_text().rstrip())


def test_the_same_command_again_plays_nothing(cup, root, monkeypatch, capsys):
    players = ["random", "one", "two"]
    first = cup("again", players).play()
    before = files(root, "again")
    monkeypatch.setattr(tournament, "make_backend", None)  # nobody may ask for one
    assert cup("again", players).play() == first
    assert files(root, "again") == before
    assert "0 games to play" in capsys.readouterr().out


def test_who_joins_changes_nobodys_games(cup, root, capsys):
    cup("grows", ["random", "one"]).play()
    before = files(root, "grows")
    cup("grows", ["two/0", "one", "random"]).play()
    after = files(root, "grows")
    parts = {name: data for name, data in before.items() if name.startswith("games/")}
    assert parts and all(after[name] == data for name, data in parts.items())
    assert "80 games to play" in capsys.readouterr().out
    cup("whole", ["one", "random", "two/0"]).play()
    whole = files(root, "whole")
    assert {n: d for n, d in whole.items() if n.startswith("games/")} == {
        n: d for n, d in after.items() if n.startswith("games/")
    }


def test_a_tournament_that_was_stopped_goes_on(cup, root, capsys):
    cup("stopped", ["random", "one", "two"]).play()
    whole = files(root, "stopped")
    parts = sorted(name for name in whole if name.startswith("games/"))
    (root / "tournaments/stopped" / parts[1]).unlink()
    (root / "tournaments/stopped" / parts[2]).write_bytes(whole[parts[2]][:100])
    (root / "tournaments/stopped/ratings.json").unlink()
    cup("stopped", ["random", "one", "two"]).play()
    assert files(root, "stopped") == whole
    said = capsys.readouterr()
    assert "80 games to play" in said.out and said.err.count("is damaged") == 1


def test_more_games_keep_those_that_were_played(cup, root, capsys):
    cup("longer", ["random", "one"], "games=240").play()
    first = files(root, "longer")
    cup("longer", ["random", "one"], "games=400").play()
    assert "160 games to play" in capsys.readouterr().out
    longer = files(root, "longer")
    parts = {name: data for name, data in first.items() if name.startswith("games/")}
    assert len(parts) == 1 and all(longer[name] == data for name, data in parts.items())
    cup("straight", ["random", "one"], "games=400").play()
    straight = files(root, "straight")
    for name in ("ratings.json", "matrix.parquet", "standings.txt"):
        assert longer[name] == straight[name]
    before = files(root, "longer")
    cup("longer", ["random", "one"], "games=100").play()
    assert "0 games to play" in capsys.readouterr().out
    assert files(root, "longer") == before


@pytest.mark.parametrize(
    ("there", "missing"),
    [
        ([], [(0, 300), (300, 300), (600, 100)]),
        ([(0, 4)], [(4, 300), (304, 300), (604, 96)]),
        ([(200, 200), (600, 400)], [(0, 200), (400, 200)]),
        ([(300, 400), (0, 300)], []),
        ([(900, 100)], [(0, 300), (300, 300), (600, 100)]),
    ],
)
def test_what_is_missing_lies_between_the_parts(there, missing):
    def part(first, count):
        results = Results(np.zeros((count, 2)), *np.zeros((3, count)))
        return tournament._Part(("a", "b"), first, results)

    assert tournament._missing([part(*each) for each in there], 700, 300) == missing


def test_games_of_two_files_count_once(cup, root, capsys):
    said = cup("twice", ["random", "one"], "games=240").play()
    before = files(root, "twice")
    [name] = [name for name in before if name.startswith("games/")]
    path = root / "tournaments" / "twice" / name
    # As where the folder of an older version, with smaller parts, was copied into this one.
    table = pq.read_table(path)
    facts = {**json.loads(table.schema.metadata[b"selfplay"]), "first": 200}
    later = table.slice(200).replace_schema_metadata({"selfplay": json.dumps(facts)})
    pq.write_table(later, path.with_name("000200.parquet"))
    capsys.readouterr()
    assert cup("twice", ["random", "one"], "games=240").play() == said
    assert "000200.parquet has games that another file has too" in capsys.readouterr().err


def test_the_standings_are_of_all_that_was_ever_played(cup, root, capsys):
    """Also of players that are not named any more, who keep their names and all their games."""
    cup("fewer", ["random", "one/all"]).play()
    before = files(root, "fewer")
    text = cup("fewer", ["one/3", "one/1"], "games=20").play()
    assert files(root, "fewer") == before
    assert before["standings.txt"].decode().strip() in text
    assert "0 games to play; players of earlier starts: 3" in capsys.readouterr().out
    # Whoever joins meets only those who are named with him; nobody else's score changes.
    cup("fewer", ["two/0", "one/1"]).play()
    found = json.loads((root / "tournaments/fewer/ratings.json").read_text())
    assert {each["player"]: each["games"] for each in found["players"]} == {
        "random": 4 * 40,
        "one/0": 4 * 40,
        "one/1": 5 * 40,
        "one/2": 4 * 40,
        "one/3": 4 * 40,
        "two/0": 40,
    }
    old = {(r["player"], r["opponent"]): r for r in json.loads(before["ratings.json"])["matrix"]}
    new = {(r["player"], r["opponent"]): r for r in found["matrix"]}
    assert len(new) == len(old) + 2 and all(new[pair] == row for pair, row in old.items())


def test_a_policy_that_was_trained_anew_does_not_take_the_name_of_the_old_one(cup, tmp_path):
    train(small_config(tmp_path, "mine", generations=1, evaluation__every=9))
    cup("anew", ["random", "mine/1"], where=tmp_path).play()
    old = Run.open(str(tmp_path), "mine").policy(1).name
    shutil.rmtree(tmp_path / "mine")
    train(small_config(tmp_path, "mine", generations=1, evaluation__every=9, seed=6))
    cup("anew", ["random", "mine/1"], where=tmp_path).play()
    found = json.loads((tmp_path / "tournaments/anew/ratings.json").read_text())
    games = {each["player"]: each["games"] for each in found["players"]}
    assert games == {"random": 80, "mine/1": 40, f"mine.{old}": 40}
    assert old != Run.open(str(tmp_path), "mine").policy(1).name


def test_temporary_files_of_killed_processes_are_removed(cup, root):
    """Those that are young may be of somebody who writes now."""
    cup("killed", ["random", "one"]).play()
    before = files(root, "killed")
    part = next(name for name in before if name.startswith("games/"))
    folder = (root / "tournaments/killed" / part).parent
    old, young = (folder / f".000000.parquet.{digit * 32}" for digit in "ab")
    for each in (old, young):
        each.write_bytes(b"half")
    os.utime(old, (0, time.time() - 2 * 3600))
    cup("killed", ["random", "one"]).play()
    assert not old.exists() and young.exists()
    young.unlink()
    assert files(root, "killed") == before


def test_any_order_of_results_gives_the_same(cup, root, monkeypatch):
    """As from several actors, which are done when they are done."""
    cup("inorder", ["random", "one", "two"], "games=600").play()

    class Backwards(Serial):
        players = 3

        def play(self, tasks):
            for index in reversed(range(len(tasks))):
                yield index, tasks[index].run()

    monkeypatch.setattr(tournament, "make_backend", lambda config: Backwards())
    cup("reverse", ["random", "one", "two"], "games=600").play()
    assert files(root, "inorder") == files(root, "reverse")


@pytest.mark.parametrize(
    ("players", "overrides", "sentence"),
    [
        (["random", "nobody"], ["+game.name=sumto"], "'nobody' is neither a baseline"),
        (["random", "nobody/3"], [], "there is no run 'nobody'"),
        (["random", "fats"], [], "there is no run 'fats' under"),
        (["random", "fats"], [], "the latest there: far, one, two; if it is a baseline of a game"),
        (["random", "one", "fats"], [], "nor a run under"),
        (["random", "win_or_random"], [], "say which game they play, as in game=sumto100"),
        (
            ["one", "far"],
            [],
            "run far plays sumto (target 30, max_step 4), not sumto (target 20, max_step 4); a "
            "tournament is of one game",
        ),
        (["one"], [], "2 different players are needed, got one/3"),
        (["one", "one/3"], [], "2 different players are needed, got one/3"),
        (["one/7", "random"], [], "generation 7 of run one is not complete"),
        (["one/3-1", "random"], [], "one/3-1 names no generation"),
        (["one/0-3-0", "random"], [], "one/0-3-0 names no generation"),
        (["one/x", "random"], [], "'one/x' is neither a baseline, a run, nor"),
        (["one", "random"], ["games=41"], "games must be a multiple of 2"),
        (["one", "random"], ["tables=round"], "tables must be one of copies, mixed"),
        (["one", "random"], ["name=../up"], "name must be a name of at most 100"),
        (["one", "random"], ["replicates=10"], "replicates at least 100"),
    ],
)
def test_what_cannot_be_played_is_one_sentence(cup, root, players, overrides, sentence):
    before = files(root, ".")
    with pytest.raises(UserError) as refused:
        cup("wrong", players, *overrides)
    assert sentence in str(refused.value)
    assert files(root, ".") == before


@pytest.mark.parametrize("change", ["seed=2", "opening_plies=3"])
def test_games_under_other_settings_are_refused_with_their_keys(cup, change):
    cup("fixed", ["random", "one"]).play()
    with pytest.raises(UserError, match=f"begun with other settings: {change.split('=')[0]}"):
        cup("fixed", ["random", "one"], change).play()


def test_without_random_the_first_player_named_is_the_anchor(cup, root):
    cup("anchor", ["one/1", "perfect"]).play()
    found = json.loads((root / "tournaments/anchor/ratings.json").read_text())
    assert found["anchor"] == "one/1"


def test_baselines_alone_need_only_a_game(cup, tmp_path):
    cup("base", ["random", "win_or_random", "perfect"], "game=sumto100", where=tmp_path).play()
    found = json.loads((tmp_path / "tournaments/base/ratings.json").read_text())
    assert [each["player"] for each in found["players"]] == ["perfect", "win_or_random", "random"]


# More than two players.


@pytest.fixture
def three(monkeypatch, dice):
    """The game of dice as a game that can be named, with two more players."""

    def keep(rules, states, mask, uniforms, actions):
        actions[:] = 0

    def pot(rules, states, mask, uniforms, actions):
        actions[:] = np.where(mask[:, 1], 1, 0)

    game = dataclasses.replace(dice, scripted={"keep": keep, "pot": pot})
    monkeypatch.setitem(sys.modules, "dice_of_tests", SimpleNamespace(make=lambda: game))
    monkeypatch.setitem(games.GAMES, "dice", "dice_of_tests")


def test_one_against_copies_in_a_game_of_three(cup, tmp_path, three):
    one = cup("copies", ["random", "keep", "pot"], "+game.name=dice", "games=60", where=tmp_path)
    assert len(one.matches()) == 6  # keep against copies of pot, and pot against copies of keep
    one.play()
    found = json.loads((tmp_path / "tournaments/copies/ratings.json").read_text())
    assert all(each["games"] == 4 * 60 for each in found["players"])
    assert len(found["seats"]) == 3
    assert sum(seat[0] for seat in found["seats"]) == pytest.approx(0, abs=0.2)
    assert len(found["matrix"]) == 6 and all(row["n"] == 60 for row in found["matrix"])


def test_three_different_players_at_a_table(cup, tmp_path, three):
    each = ["random", "keep", "pot", "win_or_random"]
    settings = ["+game.name=dice", "games=60", "tables=mixed"]
    one = cup("mixed", each, *settings, where=tmp_path)
    assert len(one.matches()) == 4  # three of four
    one.play()
    found = json.loads((tmp_path / "tournaments/mixed/ratings.json").read_text())
    assert all(each["games"] == 3 * 60 for each in found["players"])
    rows = {(row["player"], row["opponent"]): row for row in found["matrix"]}
    assert len(rows) == 12
    for (player, opponent), row in rows.items():
        assert row["n"] == 2 * 60  # two tables have both
        assert row["score"] + rows[opponent, player]["score"] == pytest.approx(1)
    part = next((tmp_path / "tournaments/mixed/games/keep+pot+random").iterdir())
    table = pq.read_table(io.BytesIO(part.read_bytes()))
    # Places in a row of six games with one opening: the scripted ones never draw at random.
    assert len(table) == 60 and {"return_0", "return_1", "return_2"} < set(table.column_names)
    with pytest.raises(UserError, match="games must be a multiple of 6"):
        cup("wrong", each, "+game.name=dice", "games=63", "tables=mixed", where=tmp_path)
    with pytest.raises(UserError, match="3 different players are needed"):
        cup("wrong", each[:2], *settings, where=tmp_path)


def test_the_configuration_names_its_keys():
    with pytest.raises(UserError, match="games must be at least 1"):
        TournamentConfig(
            name="a", players=["random"], games=0, opening_plies=0, tables="copies", replicates=100
        )
