"""`selfplay play`, driven over the standard input as a person would."""

import dataclasses
import io
import json
import re
import subprocess
import sys

import numpy as np
import pytest
from small_runs import small_config

from games import Game, make_game
from games.game import ILLEGAL, Solver
from pipeline import play
from pipeline.errors import UserError
from pipeline.policies.store import load_policy
from pipeline.run import Run
from pipeline.session import Seat, Session
from pipeline.train import train

SUMTO12 = ["game=sumto100", "game.target=12", "game.max_step=3"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A root with the run `small`: SumTo20, two generations."""
    root = tmp_path_factory.mktemp("runs")
    train(small_config(root, "small"))
    return str(root)


@pytest.fixture
def typed(monkeypatch, capsys):
    """A function: lines typed, arguments -> what is printed."""

    def typed(lines, *arguments: str) -> str:
        text = "".join(f"{line}\n" for line in lines)
        monkeypatch.setattr(sys, "stdin", io.StringIO(text))
        play.main(list(arguments))
        return capsys.readouterr().out

    return typed


class Person(io.StringIO):
    """A standard input that reads what is on the screen before it answers."""

    def __init__(self, capsys, answer):
        super().__init__()
        self.capsys, self.answer, self.screen = capsys, answer, ""

    def readline(self, *_):
        self.screen += self.capsys.readouterr().out
        return f"{self.answer(self.screen)}\n"


def test_a_person_who_knows_how_beats_the_perfect_player_who_begins(monkeypatch, capsys):
    """The distance of SumTo12 is a multiple of 4 at the start, so whoever begins can only lose."""

    def answer(screen):
        if "you win" in screen:
            return "quit"
        total = int(re.findall(r"sum (\d+) of 12, player 1 to move", screen)[-1])
        return f"+{(12 - total) % 4}"

    person = Person(capsys, answer)
    monkeypatch.setattr(sys, "stdin", person)
    play.main([*SUMTO12, "--seats", "perfect,me"])
    assert "the end: player 0 (perfect) -1, player 1 (you) +1\nyou win\n" in person.screen
    assert person.screen.count("player 1 (you): +") == 0  # own actions are not repeated
    assert capsys.readouterr().out == "bye\n"


def test_a_whole_game_between_two_people(typed):
    out = typed(
        ["3", "+2", "1", "2", "what", "3", "1"], *SUMTO12, "--seats", "me,me", "--seed", "4"
    )
    assert out.startswith("sumto (target 12, max_step 3), seed 4, game 0; ? for help\n")
    assert "player 0 (me), player 1 (me)" in out
    sums = re.findall(r"^sum (\d+) of 12, player (\d) (to move|has won)", out, re.M)
    assert [int(total) for total, _, _ in sums] == [0, 3, 5, 6, 8, 12]
    assert "  player 1 (me): +1 (the only action)\n" in out  # from 11
    assert sums[-1][1:] == ("1", "has won")
    assert "there is no action 'what'" in out
    assert "the end: player 0 (me) -1, player 1 (me) +1\n" in out and "you win" not in out
    assert "game over> the game is over; undo, new, swap, save, load or quit\n" in out
    assert out.endswith("game over> \nbye\n")  # the end of the input


def test_only_policies_may_play_too(typed):
    out = typed([], *SUMTO12, "--seats", "random,perfect")
    assert "the end: player 0 (random) -1, player 1 (perfect) +1" in out
    shown = re.findall(r"^sum (\d+) of 12", out, re.M)
    assert len(shown) == len(re.findall(r"^  player \d \(\w+\): \+", out, re.M)) > 4


def test_undo_and_redo_at_the_prompt(typed):
    lines = ["undo", "3", "2", "undo", "undo", "redo", "redo", "redo", "undo", "6", "redo"]
    out = typed(lines, "game=connect_three", "game.width=7", "--seats", "me,me")
    assert out.count("there is nothing to take back") == 1
    assert out.count("nothing was taken back") == 2
    boards = re.findall(r"player \d> *\n((?:[.XO ]+\n){4})", out)
    last_rows = [board.splitlines()[-1] for board in boards]
    assert last_rows[:3] == [". . . X . . .", ". . O X . . .", ". . . X . . ."]
    assert ". . . X . . O" in out


def test_commands_that_explain(typed):
    out = typed(["?", "legal", "legal 0", "legal x"], *SUMTO12, "--position", "10")
    assert "undo, redo" in out
    assert "2 legal actions\n  +1, +2\n" in out
    assert "no legal action is like '0'" in out and "no legal action is like 'x'" in out
    four = typed(["legal", "legal c", "legal 3"], "game=connect_four", "--position", "444444")
    assert "6 legal actions\n  column (6): 0, 1, 2, 3, 5, 6\n" in four
    assert "#0 column 0, #1 column 1" in four and "> " + "  #3 column 3\n" in four


# Whom one can play.


def test_a_run_is_played_by_its_name_alone(runs, typed):
    champion = Run.open(runs, "small").champion(2)
    [number] = re.findall(r"g(\d+)-", champion.name)
    out = typed(["1", "quit"], "--run", "small", "--root", runs)
    assert "sumto (target 20, max_step 4)" in out
    assert f"player 0 (you), player 1 (small/{int(number)})" in out
    assert re.search(rf"player 1 \(small/{int(number)}\): \+\d", out)
    out = typed([], "--seats", "small/1,small/0", "--root", runs)
    assert "the end: player 0 (small/1)" in out


def test_values_are_those_of_the_policy_best_first_and_the_hint_is_the_best(runs, typed):
    out = typed(["values", "hint"], "--run", "small/1", "--root", runs, "--position", "11")
    game = make_game("sumto", target=20, max_step=4)
    run = Run.open(runs, "small")
    state = game.state_from_text(game.rules, "11")
    policy = load_policy(run.storage, run.policy(1), game)
    [q] = policy.action_values(game, state, game.legal_of(state))
    assert len(set(q)) == 4
    rows = re.findall(r"^  (\+\d) +(wins|loses) \([+-]\d\) +([+-]\d\.\d{3})$", out, re.M)
    # Exact scores come first: from 11 the step to 15 wins, since multiples of 5 do.
    assert rows[0] == ("+4", "wins", f"{q[3]:+.3f}")
    assert [word for _, word, _ in rows] == ["wins", "loses", "loses", "loses"]
    assert {(action, value) for action, _, value in rows} == {
        (f"+{a + 1}", f"{q[a]:+.3f}") for a in range(4)
    }
    assert f"> {'':2}+4  (exact: wins" in out


def test_the_run_gives_advice_on_games_of_others(runs, typed):
    out = typed(["values"], "--run", "small", "--seats", "me,random", "--root", runs)
    assert re.search(r"^player 0>   action +exact +small/\d$", out, re.M)
    out = typed(["values", "hint"], "game=risk")
    assert out.count("nobody here knows values") == 2


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "which game? Name one, as in game=connect_four, or a run"),
        (["--seats", "me,random"], "which game?"),
        (["--run", "nobody"], "there is no run 'nobody' under"),
        (["run=small"], "cannot read 'run=small'; expected game=... or game.<parameter>=..., and"),
        (["run=small"], "did you mean --run small?"),
        (["learner.epochs=3"], "cannot read 'learner.epochs=3'; expected game="),
        (["game=sumto100", "game.target=0"], "target of game sumto must be larger"),
        (["game=sumto100", "--seats", "me"], "sumto has 2 seats, got 1: me"),
        (["game=sumto100", "--seats", "me,"], "run must be a name of at most 100"),
        (["game=sumto100", "--seats", "me,../x"], "run must be a name of at most 100"),
        (
            ["game=sumto100", "--seats", "me,perfekt"],
            "'perfekt' is neither 'me' nor a baseline (random, win_or_random, perfect)",
        ),
        (["game=sumto100", "--seats", "me,small"], "run small plays sumto (target 20, max_step 4)"),
        (["--seats", "me,small/3"], "generation 3 of run small is not complete"),
        (["--seats", "me,small/x"], "expected a run or run/generation, as in mine/7"),
        (["game=sumto100", "--position", "101"], "'101' is no position of this game"),
        (["--load", "nowhere.json"], "cannot load nowhere.json: No such file"),
        (["--load", "a.json", "game=sumto100"], "leave out game=sumto100"),
    ],
)
def test_what_cannot_be_played_is_one_sentence(runs, typed, arguments, sentence):
    with pytest.raises(UserError, match=re.escape(sentence)) as caught:
        typed([], *arguments, "--root", runs)
    assert "\n" not in str(caught.value)


# Exact scores.


def brute_force(rules, states) -> np.ndarray:
    """Exact scores of SumTo: 100 - plies to the win, or plies - 100 to the loss, by search."""
    out = np.full((len(states), rules.max_step), ILLEGAL, np.int16)
    for i, total in enumerate(states["sum"]):
        best = {rules.target: -100}  # for whoever is to move there
        for each in range(rules.target - 1, int(total) - 1, -1):
            steps = [each + step for step in range(1, rules.max_step + 1) if each + step in best]
            scores = [-best[after] - np.sign(-best[after]) for after in steps]
            best[each] = max(scores)
        out[i, : len(scores)] = scores
    return out


@pytest.fixture
def solved(sumto12) -> Game:
    solvable = lambda rules, states: states["sum"] >= 5  # noqa: E731
    return dataclasses.replace(sumto12, solver=Solver(brute_force, solvable))


def at(game: Game, text: str, capsys, monkeypatch, lines) -> str:
    seats = [Seat("me"), Seat("me")]
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
    play.Terminal(play.Roster("runs", None), Session(game, seats, start=text)).run()
    return capsys.readouterr().out


def test_exact_scores_are_shown_where_the_game_can_solve_the_position(solved, capsys, monkeypatch):
    """From 9 the target is 3 away: +3 wins at once; after +1 or +2 the other wins at once."""
    out = at(solved, "9", capsys, monkeypatch, ["values", "hint"])
    rows = re.findall(r"^  (\+\d) +(\w+) \(([+-]\d+)\)$", out, re.M)
    assert rows == [("+3", "wins", "+99"), ("+1", "loses", "-98"), ("+2", "loses", "-98")]
    assert "  +3  (exact: wins (+99))" in out
    lost = at(solved, "8", capsys, monkeypatch, ["hint"])  # any step leads to a loss in two plies
    assert "  +1 or +2 or +3  (exact: loses (-98))" in lost
    early = at(solved, "4", capsys, monkeypatch, ["values"])
    assert "nobody here knows values" in early


def test_a_hint_among_equals_is_what_the_next_column_likes_best(runs, typed):
    """From 10 of SumTo20 every step loses alike (multiples of 5 lose for whoever moves there), so
    the run's own values decide, as they do in the order of `values`."""
    out = typed(["values", "hint"], "--run", "small/1", "--root", runs, "--position", "10")
    rows = re.findall(r"^  (\+\d) +(\w+ \([+-]\d+\)) +([+-]\d\.\d{3})$", out, re.M)
    assert len(rows) == 4 and len({exact for _, exact, _ in rows}) == 1
    first, exact, value = rows[0]
    assert float(value) == max(float(each) for _, _, each in rows)
    assert f"  {first}  (exact: {exact}, small/1: {value})" in out


# Words for actions.

TABLE = play.Actions(
    [
        *(f"settlement {corner}" for corner in range(54)),
        *(f"road {edge}" for edge in range(72)),
        "end turn",
        "end turn early",
        "discard wood",
        "discard wool",
        "+1",
        "-1",
        "legal",
    ]
)
ALL = np.arange(len(TABLE.texts))


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("settlement 7", "settlement 7"),
        ("SETTLEMENT  7", "settlement 7"),
        ("s 7", "settlement 7"),
        ("r7", "road 7"),
        ("end turn", "end turn"),
        ("early", "end turn early"),
        ("d wool", "discard wool"),
        ("+1", "+1"),
        ("-1", "-1"),
        ("#60", "road 6"),
        ("# 60", "road 6"),
        ("71", "road 71"),  # there is no settlement 71
        ("100", "road 46"),  # no text has 100: the number of the action
    ],
)
def test_an_action_is_found_by_text_number_or_what_fits_it_alone(text, action):
    assert TABLE.texts[TABLE.choose(text, ALL)] == action


@pytest.mark.parametrize(
    ("text", "legal", "sentence"),
    [
        ("7", ALL, "'7' may mean settlement 7 (#7), road 7 (#61); type more of it"),
        ("road", ALL, "'road' may mean road 0 (#54), road 1 (#55)"),
        ("road", ALL, "road 7 (#61) and 64 more"),
        ("d wo", ALL, "discard wood (#128), discard wool (#129)"),
        ("road 5", ALL[:54], "'road 5' is not legal here"),
        ("road", ALL[:54], "nothing like 'road' is legal here"),
        ("end turn", ALL[-6:], "'end turn' is not legal here"),  # and `end turn early` is not meant
        ("#500", ALL, "there is no action '#500'"),
        ("city 3", ALL, "there is no action 'city 3'"),
        ("!", ALL, "there is no action '!'"),
        ("#-1", ALL, "there is no action '#-1'"),
        ("-2", ALL, "there is no action '-2'"),  # and neither road 2 nor +2
        ("road -2", ALL, "there is no action 'road -2'"),
    ],
)
def test_what_means_none_or_several_is_told(text, legal, sentence):
    with pytest.raises(UserError, match=re.escape(sentence)):
        TABLE.choose(text, legal)


def test_a_number_that_names_an_action_is_never_the_number_of_another():
    """In SumTo `3` is +3, whose number is 2, and where +3 is illegal it is not action 3 either."""
    steps = play.Actions([f"+{step}" for step in range(1, 11)])
    assert steps.choose("3", np.arange(10)) == 2
    assert steps.choose("1", np.arange(10)) == 0  # and not +10
    with pytest.raises(UserError, match=r"'\+3' is not legal here"):
        steps.choose("3", np.array([0, 1, 3]))


def test_hundreds_of_actions_are_listed_by_group_within_the_width():
    lines = TABLE.listing(ALL[:130], 60).splitlines()
    assert lines[0].startswith("  settlement (54): 0, 1, 2") and len(lines) < 16
    assert all(len(line) <= 60 for line in lines)
    text = " ".join(line.strip() for line in lines)
    assert "39, and 14 more: legal settlement" in text
    assert "end (2): turn, turn early" in text
    assert TABLE.listing(np.array([54]), 60) == "  road 0"


# Files.


def test_a_game_is_saved_and_gone_on_with(tmp_path, typed):
    file = tmp_path / "my game.json"
    first = typed(["2", f"save {file}", "quit"], *SUMTO12, "--seats", "me,random", "--seed", "9")
    assert f"go on with: selfplay play --load '{file}'\n" in first
    again = typed(["save"], "--load", str(file))
    assert "seed 9, game 0" in again and "save needs the name of a file" in again
    assert re.findall(r"sum \d+ .*", again)[-1] == re.findall(r"sum \d+ .*", first)[-1]
    assert "  player 0 (you): +2\n" in again
    within = typed([f"load {file}", "undo", "3"], "game=connect_four")
    assert re.findall(r"^sum (\d+) of 12", within, re.M)[1] == "0"
    saved = json.loads(file.read_text())
    saved["plies"][0]["action"] = 7
    file.write_text(json.dumps(saved))
    damaged = typed([f"load {file}", "3"], "game=connect_four", "--seats", "me,me")
    assert f"cannot load {file}: ply 0 of the saved game is not what the rules" in damaged
    assert ". . . X . . ." in damaged  # the game at hand goes on


def test_the_command_to_go_on_names_what_it_needs(tmp_path, runs, typed):
    """The root that has the policies, and the run that gives advice."""
    lines = [f"save {tmp_path}/a.json", "quit"]
    out = typed(lines, "--run", "small/1", "--root", runs, "--seats", "me,small/2")
    [command] = re.findall(r"go on with: selfplay play (.*)", out)
    assert command == f"--load {tmp_path}/a.json --run small/1 --root {runs}"
    again = typed(["values"], *command.split())
    assert "player 1 (small/2)" in again and re.search(r"exact +small/1 +small/2$", again, re.M)


def test_a_board_has_no_column_before_the_first(typed):
    out = typed(["-1", "c -1", "1"], "game=connect_four", "--seats", "me,me")
    assert "there is no action '-1'" in out and "there is no action 'c -1'" in out
    assert out.count(". X . . . . .") == 1


def test_only_saved_games_are_written_over(tmp_path, typed):
    mine, other = tmp_path / "mine.json", tmp_path / "notes.txt"
    other.write_text("keep me")
    lines = [f"save {mine}", "3", f"save {mine}", f"save {other}", f"save {tmp_path}/no/a.json"]
    out = typed(lines, *SUMTO12, "--seats", "me,me")
    assert len(json.loads(mine.read_text())["plies"]) == 1
    assert other.read_text() == "keep me" and "choose another name" in out
    assert f"cannot write {tmp_path}/no/a.json: No such file" in out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.json", "notes.txt"]


def test_another_game_has_other_chances_and_other_seats(typed):
    out = typed(["new", "swap", "swap"], *SUMTO12, "--seats", "me,random")
    assert re.findall(r"game (\d); \? for help\n(.*)", out) == [
        ("0", "player 0 (you), player 1 (random)"),
        ("1", "player 0 (you), player 1 (random)"),
        ("2", "player 0 (random), player 1 (you)"),
        ("3", "player 0 (you), player 1 (random)"),
    ]


# The end.


def test_an_interrupt_ends_politely(monkeypatch, capsys):
    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(sys, "stdin", Person(capsys, interrupt))
    play.main([*SUMTO12])
    assert capsys.readouterr().out.endswith("\nbye\n")


def test_the_command_plays_without_ray_mlflow_torch_and_hydra(runs):
    code = (
        "import sys; from pipeline.cli import main; main();"
        "sys.exit(bool({'ray', 'mlflow', 'torch', 'hydra', 'matplotlib'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", code, "play", "--run", "small", "--root", runs]
    done = subprocess.run(command, input="2\nvalues\n", capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("bye\n") and done.stderr == ""
