"""Agents beside exact play, by hand and on the 4,000 positions of Connect Four."""

import numpy as np
import pytest

from games import ILLEGAL, Solution, make_game
from pipeline.config import to_config
from pipeline.evaluate import table
from pipeline.oracles import answers, has_oracle, kept_results, strongly_right
from pipeline.policies.store import PolicySource
from pipeline.train import train
from pipeline.work import MatchTask, Setting, SolutionTask

FOUR = make_game("k_in_a_row")
THREE = make_game("k_in_a_row", width=4, height=4, k=3)


def solution_of(scores, plies):
    states = np.zeros(len(scores), THREE.state_dtype)
    states["ply"] = plies
    nothing = np.empty(0, THREE.state_dtype)
    return Solution(
        states,
        np.array(scores, np.int16),
        nothing,
        np.empty(0, np.int32),
        np.empty(0, np.float32),
        (),
    )


def test_answers_by_hand():
    solution = solution_of(
        [
            [3, 5, -2, 0],  # wins with 0 and 1, fastest with 1
            [-1, -4, ILLEGAL, -1],  # all lost: not contested
            [0, -3, 0, -6],  # two columns draw
        ],
        [4, 4, 6],
    )
    q = np.array([[1, 1, 0, 0], [0, 2, 9, 0], [0, 0, 0, 0]])  # q of an illegal action is not read
    told = answers(solution, q)
    # Position 0: ties between 0 and 1, both keep the win, one is the fastest. 1: keeps the loss,
    # and is the soonest. 2: all four tie, two of them keep the draw.
    assert told == {
        "of": 3,
        "optimal": 0,
        "weak": pytest.approx((1 + 1 + 0.5) / 3),
        "strong": pytest.approx((0.5 + 0 + 0.5) / 3),
        "contested": 2,
        "weak_contested": pytest.approx((1 + 0.5) / 2),
        "by_ply": [
            {"ply": 4, "n": 2, "weak": 1.0, "strong": 0.25},
            {"ply": 6, "n": 1, "weak": 0.5, "strong": 0.5},
        ],
    }
    best = answers(solution, solution.scores.astype(float))
    assert best["optimal"] == 3 and best["weak"] == best["strong"] == 1
    certain = solution._replace(states=solution.states[1:2], scores=solution.scores[1:2])
    assert answers(certain, q[1:2])["weak_contested"] is None


def test_a_player_without_an_opinion_is_right_as_often_as_a_random_one():
    # Of the 4,000 positions a uniformly random player answers 69.2% weakly and 27.0% strongly
    # right, and 37.9% of the 1,984 contested ones: counted from the file's scores when it was made.
    told = answers(FOUR.solution(), np.zeros((4000, 7)))
    assert (told["of"], told["contested"]) == (4000, 1984)
    assert told["weak"] == pytest.approx(0.692, abs=5e-4)
    assert told["strong"] == pytest.approx(0.270, abs=5e-4)
    assert told["weak_contested"] == pytest.approx(0.379, abs=5e-4)
    assert sum(each["n"] for each in told["by_ply"]) == 4000
    assert [each["ply"] for each in told["by_ply"]] == list(range(4, 37))


def test_which_games_have_an_oracle(dice):
    assert has_oracle(THREE) and has_oracle(make_game("sumto"))
    assert not has_oracle(FOUR) and not has_oracle(dice)


def test_decisions_that_keep_the_result_are_counted():
    # By the scores of the data: the first column that keeps the result, then one that does not.
    solution = FOUR.solution()
    rows = np.flatnonzero(solution.states["ply"] == 24)
    scores = solution.scores[rows]
    keeps = (np.sign(scores) == np.sign(scores.max(axis=1))[:, None]) & (scores != ILLEGAL)
    breaks = ~keeps & (scores != ILLEGAL)
    matters = breaks.any(axis=1)
    assert 0 < matters.sum() < len(rows) == 66
    states = solution.states[np.concatenate([rows, rows[matters]])]
    actions = np.concatenate([keeps.argmax(axis=1), breaks[matters].argmax(axis=1)])
    assert kept_results(FOUR, states, actions.astype(np.int32)) == {
        "decisions": 66 + matters.sum(),
        "kept": 66,
        "contested": 2 * matters.sum(),
        "kept_contested": matters.sum(),
    }
    none = kept_results(FOUR, states[:0], actions[:0])
    assert none == {"decisions": 0, "kept": 0, "contested": 0, "kept_contested": 0}


def match(policy, opponent, game=THREE, opening_plies=2, count=60):
    setting = Setting("unused", game.name, dict(game.params), 1, "test")
    return MatchTask(
        setting,
        "evaluation",
        1,
        0,
        PolicySource(policy),
        PolicySource(opponent),
        0,
        count,
        opening_plies,
        oracle=True,
    ).run()


def test_a_match_counts_the_decisions_of_the_policy_alone():
    results, perfect = match("perfect", "random")
    assert perfect["kept"] == perfect["decisions"] > perfect["contested"] > 0
    assert perfect["kept_contested"] == perfect["contested"]
    # Two players decide at about every other ply each, after the opening.
    assert perfect["decisions"] < results.decisions.sum()
    _, random = match("random", "perfect")
    assert 0 < random["kept_contested"] < random["contested"]
    assert match("random", "random", FOUR)[1] is None


def test_a_solution_is_asked_through_the_policy_of_a_run(compose, tmp_path):
    overrides = [
        "game=connect_three", f"root={tmp_path}", "run=run", "cluster=serial", "tracking=none",
        "generations=1", "selfplay.games=40", "learner.hidden=[4]", "evaluation.games=20",
        "evaluation.baselines=[random,perfect]",
    ]  # fmt: skip
    record = train(to_config(compose(*overrides)))
    solution = record["solution"]
    assert solution["of"] == 1000 and solution["contested"] == 500
    assert 0 < solution["strong"] <= solution["weak"] < 1
    assert "values" not in solution and "sign_accuracy" not in solution
    rows = {row["opponent"]: row for row in record["evaluation"]}
    assert set(rows) == {"random", "perfect", "predecessor"}
    for row in rows.values():
        oracle = row["oracle"]
        assert 0 < oracle["kept_contested"] <= oracle["contested"] <= oracle["decisions"]
    assert "result kept" in table(record["evaluation"])

    setting = Setting(str(tmp_path), THREE.name, dict(THREE.params), 1, "test")
    assert SolutionTask(setting, PolicySource("random")).run() == {"of": 1000}  # has no values


def test_strongly_right_is_the_best_score():
    scores = np.array([[1, 3, 3], [ILLEGAL, -2, -1]], np.int16)
    assert strongly_right(scores).tolist() == [[False, True, True], [False, False, True]]
