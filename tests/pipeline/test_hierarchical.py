"""Hierarchical policies and their learner, on Catan: memory, exploration, labels, a small run."""

import io
import itertools
import re
from contextlib import redirect_stdout
from dataclasses import replace

import numpy as np
import pytest

from games import make_game
from games.game import MARKS
from pipeline.goals import goal_rewards
from pipeline.learners import hierarchical as learner
from pipeline.policies.hierarchical import MOST_STEPS, ExploringHierarchy, HierarchicalPolicy
from pipeline.policies.scripted import UniformRandom, baseline_names
from pipeline.policies.store import load_policy
from pipeline.run import Run
from pipeline.selfplay import play_games
from pipeline.session import Seat, Session
from pipeline.streams import game_keys
from pipeline.traces import from_parquet, to_parquet
from pipeline.train import train
from pipeline.work import FitTask

CATAN = make_game("catan", turn_limit=80)


def untrained(approach):
    return HierarchicalPolicy.untrained(CATAN.hierarchy, approach)


def played(policy, games=12, **more):
    keys = game_keys(3, "hierarchical", 0, np.arange(games))
    return play_games(CATAN, [policy], np.zeros((games, 4), int), keys, **more)


def steps_of(traces):
    """Rows of each player's steps in each game, in order of play."""
    for game in np.unique(traces.game):
        for player in range(4):
            mine = (traces.game == game) & (traces.player == player) & (traces.low_action >= 0)
            yield np.flatnonzero(mine)


@pytest.fixture(scope="module")
def random_games():
    return {each: played(untrained(each)) for each in ("feudal", "module", "heuristic")}


@pytest.mark.parametrize("approach", ["feudal", "module", "heuristic"])
def test_a_game_does_not_depend_on_its_batch(approach, random_games):
    results, traces = random_games[approach]
    other, _ = played(untrained(approach), batch=5, record=False)
    assert (results.hashes == other.hashes).all()
    assert len(traces) > 1000


def test_only_steps_have_low_level_actions_and_those_are_of_the_behaviour(random_games):
    for _, traces in random_games.values():
        step = np.empty(len(traces), np.bool_)
        CATAN.hierarchy.is_step(CATAN.rules, traces.state, step)
        assert ((traces.low_action >= 0) == step).all()
        assert (traces.behaviour >= 0).all()
        assert CATAN.hierarchy.allowed[traces.behaviour[step], traces.low_action[step]].all()
        assert np.isnan(traces.goal_reward[~step]).all()


def test_module_keeps_a_behaviour_until_it_ends(random_games):
    _, traces = random_games["module"]
    changes = kept = 0
    for rows in steps_of(traces):
        since = 1
        for before, now in itertools.pairwise(rows):
            possible = np.empty((1, 7), np.bool_)
            CATAN.hierarchy.possible(CATAN.rules, traces.state[[now]], possible)
            old = traces.behaviour[before]
            ended = traces.goal_reward[before] == 1 or not possible[0, old] or since == MOST_STEPS
            if ended:
                since = 0
            else:
                assert traces.behaviour[now] == old
                kept += 1
            changes += traces.behaviour[now] != old
            since += 1
    assert changes > 50 and kept > 500


def test_feudal_chooses_at_every_step(random_games):
    _, traces = random_games["feudal"]
    same = [
        traces.behaviour[a] == traces.behaviour[b]
        for rows in steps_of(traces)
        for a, b in itertools.pairwise(rows)
    ]
    # One of three to seven possible behaviours, each equally likely.
    assert 1 / 7 < np.mean(same) < 1 / 3 + 0.05


def test_heuristic_follows_the_rule(random_games):
    _, traces = random_games["heuristic"]
    step = np.flatnonzero(traces.low_action >= 0)
    rule = np.empty(len(step), np.int8)
    CATAN.hierarchy.heuristic(CATAN.rules, traces.state.take(step), rule)
    assert (traces.behaviour[step] == rule).all()


def test_guided_explores_around_the_rule_and_then_goes_without():
    from pipeline.policies.hierarchical import ExploringHierarchy

    policy = HierarchicalPolicy.untrained(CATAN.hierarchy, "guided")
    while_learning = ExploringHierarchy.of(policy, [0.2], [0.1], [0.0])
    _, traces = played(while_learning)
    step = np.flatnonzero(traces.low_action >= 0)
    rule = np.empty(len(step), np.int8)
    states = traces.state.take(step)
    CATAN.hierarchy.heuristic(CATAN.rules, states, rule)
    possible = np.empty((len(step), len(CATAN.hierarchy.behaviours)), np.bool_)
    CATAN.hierarchy.possible(CATAN.rules, states, possible)
    assert possible[np.arange(len(step)), rule].all()
    # Any possible behaviour in 20% of the steps, among them the rule's own.
    expected = 0.2 * (1 - 1 / possible.sum(1)).mean()
    apart = (traces.behaviour[step] != rule).mean()
    assert apart == pytest.approx(expected, abs=4 * np.sqrt(expected / len(step)))
    _, traces = played(policy)  # in a match, before anything is learned: any behaviour
    step = np.flatnonzero(traces.low_action >= 0)
    rule = np.empty(len(step), np.int8)
    CATAN.hierarchy.heuristic(CATAN.rules, traces.state.take(step), rule)
    assert (traces.behaviour[step] != rule).mean() > 0.5


def test_random_low_level_actions_are_equally_likely(random_games):
    _, traces = random_games["feudal"]
    step = np.flatnonzero(traces.low_action >= 0)
    states = traces.state.take(step)
    legal = np.empty((len(step), 11), np.bool_)
    CATAN.hierarchy.low_legal(
        CATAN.rules, states, CATAN.legal_of(states), traces.behaviour[step], legal
    )
    assert np.allclose(traces.probability[step], 1 / legal.sum(1))


def test_sub_goals_are_compared_step_by_step(random_games):
    # The same from plain loops: `mark` at a step, `reached` at the next one of that player.
    _, traces = random_games["module"]
    seen = 0
    for rows in steps_of(traces):
        for at, following in itertools.pairwise(rows):
            marks, out = np.empty((1, MARKS), np.int16), np.empty(1, np.bool_)
            players = traces.player[[at]].astype(np.int32)
            mine = traces.behaviour[[at]]
            CATAN.hierarchy.mark(CATAN.rules, traces.state[[at]], players, mine, marks)
            CATAN.hierarchy.reached(
                CATAN.rules, traces.state[[following]], players, mine, marks, out
            )
            assert traces.goal_reward[at] == out[0]
            seen += out[0]
    assert seen > 20


def test_the_last_step_of_a_game_is_rewarded_too():
    # Ten points by a city: the winner makes no further step.
    game = make_game("catan", points_to_win=4)
    keys = game_keys(3, "hierarchical", 0, np.arange(30))
    policy = HierarchicalPolicy.untrained(game.hierarchy, "heuristic")
    _, traces = play_games(game, [policy], np.zeros((30, 4), int), keys)
    last = np.flatnonzero(np.append(np.diff(traces.game) != 0, True))
    built = [row for row in last if 135 <= traces.action[row] < 189 and traces.behaviour[row] == 1]
    assert built and (traces.goal_reward[built] == 1).all()


def test_what_is_decided_after_the_last_step_counts():
    # Road building is the last step; the free roads, which are no steps, bring Longest Road and the
    # win. Whoever holds it at the end reached what "long road" is after.
    game = make_game("catan", points_to_win=4)
    keys = game_keys(3, "hierarchical", 0, np.arange(300))
    policy = HierarchicalPolicy.untrained(game.hierarchy, "feudal")
    results, traces = play_games(game, [policy], np.zeros((300, 4), int), keys)
    steps = np.flatnonzero(traces.low_action >= 0)
    last = steps[np.append(np.diff(traces.game[steps]) != 0, True)]
    roads = game.hierarchy.low_actions.index("play road building")
    behaviour = game.hierarchy.behaviours.index("long road")
    of_roads = last[(traces.low_action[last] == roads) & (traces.behaviour[last] == behaviour)]
    won = results.returns[traces.game[of_roads], traces.player[of_roads]] == 1
    assert won.any()
    assert (traces.goal_reward[of_roads[won]] == 1).all()


def test_goal_rewards_of_no_steps_are_missing():
    _, traces = played(UniformRandom(), games=2)
    assert (traces.behaviour == -1).all() and np.isnan(traces.goal_reward).all()
    none = np.full(len(traces), -1, np.int8)
    columns = (traces.game, traces.state, traces.player, none, none, traces.state[:2])
    assert np.isnan(goal_rewards(CATAN, *columns)).all()


def test_shards_keep_behaviours(random_games):
    _results, traces = random_games["module"]
    metadata = {
        "game": CATAN.name,
        "params": dict(CATAN.params),
        "code": "test",
        "summary": {"decisions": len(traces)},
    }
    back = from_parquet(CATAN, to_parquet(CATAN, metadata, traces), "shard").traces
    for name in ("behaviour", "low_action"):
        assert (getattr(back, name) == getattr(traces, name)).all()
    assert np.array_equal(back.goal_reward, traces.goal_reward, equal_nan=True)


def test_a_session_is_the_game_that_self_play_plays():
    # `module` remembers: the session must do so too, when taken back or loaded as well.
    policy = untrained("module")
    keys = game_keys(7, "play", 0, [0])
    results, traces = play_games(CATAN, [policy], np.zeros((1, 4), int), keys)
    session = Session(CATAN, [Seat("m", policy)] * 4, seed=7)
    for _ply in session.advance():
        if len(session.played) == 150:
            break
    loaded = Session.from_json(session.to_json(), CATAN, session.seats)
    for each in (session, loaded):
        list(each.advance())
        assert len(each.played) == results.plies[0]
        actions = [each.played[ply].action for ply in traces.ply]
        assert actions == traces.action.tolist()


def test_baselines_of_games_with_behaviours():
    assert {"heuristic_random", "random_behaviours"} <= set(baseline_names(CATAN))
    assert "heuristic_random" not in baseline_names(make_game("k_in_a_row"))


# ---- learning


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A run of two generations of 40 short games, and the learner's input of the second."""
    from small_runs import small_config

    config = catan_config(small_config, tmp_path_factory.mktemp("runs"))
    train(config)
    return Run.open(config.root, config.run)


def catan_config(small_config, root, name="small", **more):
    from pathlib import Path

    import yaml

    conf = Path(__file__).resolve().parents[2] / "conf"
    trees = yaml.safe_load((conf / "learner" / "hierarchical.yaml").read_text())
    rules = yaml.safe_load((conf / "game" / "catan.yaml").read_text())
    config = small_config(
        root,
        name,
        learner=trees
        | {"approach": "module", "min_games": 10, "min_leaf_games": 5, "threads": 2}
        | more,
        game=rules | {"turn_limit": 60, "points_to_win": 5},
        selfplay__games=40,
        selfplay__games_per_shard=20,
        evaluation__baselines=["random"],
        evaluation__games=8,
    )
    return config


def fitted(run, threads):
    from pipeline.train import Loop, make_backend

    loop = Loop(run, make_backend(run.config.cluster))
    window = tuple(
        (g, entry["path"], entry["sha256"]) for g in (1, 2) for entry in run.manifest(g)["shards"]
    )
    task: FitTask = loop._fit_task(2, window, run.policy(1))
    return replace(
        task, path=f"{run.name}/again-{threads}", learner=task.learner | {"threads": threads}
    )


def test_trees_do_not_depend_on_threads(small):
    for threads in (1, 2):
        source, report = fitted(small, threads).run()
        assert source.digest == small.policy(2).digest
        assert report["reached"]["upgrade"] > 0


def test_a_run_that_was_continued_is_the_run_in_one_go(small, tmp_path):
    from small_runs import content, small_config

    for generations in (1, 2):
        config = catan_config(small_config, tmp_path)
        config.generations = generations
        train(config)
    again = Run.open(config.root, config.run)
    assert content(again) == content(small)


def test_a_run_has_its_report(small):
    from pipeline import report

    figures = report.run_figures(small, make_game(**small.config.game), small.records())
    assert {"fitted", "trees"} <= set(figures)
    curve = small.records()[2]["learner"]["curve"]
    assert {name: len(values) for name, values in curve.items()} == {
        "train": 1,
        "held_out": 1,
        "residual": 1,
    }
    assert "hierarchical" in report.build(small)


def test_any_recorded_decision_is_explained(small):
    from pipeline.trees_cli import main as trees

    shown = []
    first = small.manifest(2)["shards"][0]
    game = make_game(**small.config.game)
    from pipeline import traces

    played = traces.read_shard(small.storage, game, first["path"], first["sha256"]).traces
    step = np.flatnonzero((played.game == 3) & (played.low_action >= 0))[5]
    other = np.flatnonzero((played.game == 3) & (played.low_action < 0))[0]
    for at in (step, other):
        with redirect_stdout(io.StringIO()) as out:
            where = ["explain", small.name, "--root", small.storage.root, "--of", "2"]
            trees([*where, "--game", "3", "--ply", str(played.ply[at])])
        shown.append(out.getvalue())
    hierarchy = game.hierarchy
    low = hierarchy.low_actions[played.low_action[step]]
    behaviour = hierarchy.behaviours[played.behaviour[step]]
    assert f"{behaviour} (in force" in shown[0] and f"{low} (chosen" in shown[0]
    assert "because" in shown[0] and "base" in shown[0]
    words = game.action_to_text(game.rules, int(played.action[step]))
    assert words in shown[0].partition("candidates of the mapping")[2]
    assert "no step of a behaviour" in shown[1]
    # What a behaviour without trees counts as is said: fewer than `min_games` games had it.
    policy = load_policy(small.storage, small.policy(1), game)
    possible = np.empty((1, len(hierarchy.behaviours)), np.bool_)
    hierarchy.possible(game.rules, played.state[[step]], possible)
    for h, name in enumerate(hierarchy.behaviours):
        told = re.search(rf"^ .* {name}(?: \((.*)\))?$", shown[0], re.M)[1] or ""
        assert ("no trees: counts as 0" in told) == (possible[0, h] and not policy.high[h])
        assert ("not possible" in told) == (not possible[0, h])


def test_pages_show_both_questions_of_a_step(small):
    from pipeline.tree_pages import generation_pages, page_data, read_policy, sample

    game = make_game(**small.config.game)
    hierarchy = game.hierarchy
    reader = read_policy(small, game, 2)
    # The rows of trees.parquet are written by the learner; the page must mean the same by a number.
    assert [row["text"] for row in small.table(2, "trees")] == list(reader.choices)
    asked = sample(small, reader, 2)
    data = page_data(reader, 2, read_policy(small, game, 1), asked, small.table(2, "trees"))
    assert data["features"] == list(game.observation_names)
    assert len(data["positions"]) == 50  # two of each of 25 states
    policy = reader.policy
    for above, below in zip(data["positions"][::2], data["positions"][1::2], strict=True):
        state = game.state_from_text(game.rules, above["text"].partition("\n\nwhich behaviour")[0])
        x = game.observations_of(state, state["player"])
        everyone = np.ones((1, len(hierarchy.behaviours)), np.bool_)
        promised = policy.high_values(x, everyone)[0]
        for choice, value in above["values"]:
            behaviour = hierarchy.behaviours.index(reader.choices[choice])
            assert value == pytest.approx(promised[behaviour], rel=1e-3)
        # The low-level action that was played is one of the behaviour in force.
        behaviour = reader.choices[above["played"]]
        assert reader.choices[below["played"]].startswith(f"{behaviour}: ")
        assert below["played"] in [choice for choice, _ in below["values"]]
        for entry in (above, below):
            for reason, (_, value) in zip(entry["reasons"], entry["values"], strict=False):
                assert reason["value"] == pytest.approx(10_000 * value, abs=6)  # four digits
    poor = [choice for choice in range(len(reader.choices)) if reader.shares(choice)]
    assert poor and all(data["kinds"][choice]["pooled"] for choice in poor)
    legal = reader.asked(asked.states)
    chosen = asked.chosen
    assert legal[np.arange(len(chosen)), chosen[:, 0]].all()
    assert legal[np.arange(len(chosen)), chosen[:, 1]].all()
    files = generation_pages(small, 2)
    assert {"index.html", "expand.svg", "expand-end-turn.svg"} <= set(files)
    assert len(files) == 1 + len(reader.sources)
    assert generation_pages(small, 0) == {}


def test_summary_and_trees_of_behaviours_in_words(small):
    from pipeline.errors import UserError
    from pipeline.trees_cli import main as trees

    def printed(*words):
        with redirect_stdout(io.StringIO()) as out:
            trees([words[0], small.name, "--root", small.storage.root, *words[1:]])
        return out.getvalue()

    text = printed("summary")
    for row in small.table(2, "trees"):
        assert any(
            line.startswith(row["text"]) and f"{row['rows']:,}" in line
            for line in text.splitlines()
        )
    for name in small_game_behaviours(small):
        assert f"used by low-level actions of {name}" in text
    assert printed("show", "--action", "upgrade: end turn").startswith("tree 1 of 2\n")
    with pytest.raises(UserError, match=r"one of expand, expand: build road, .*; got 'castle'"):
        printed("show", "--action", "castle")
    with pytest.raises(UserError, match="no trees yet"):
        printed("summary", "--generation", "0")


def small_game_behaviours(run):
    return make_game(**run.config.game).hierarchy.behaviours


def test_a_saved_policy_decides_as_before(small):
    from pipeline.policies.store import cached_game, load_policy

    game = cached_game(small.config.game_name, small.config.game_params)
    policy = load_policy(small.storage, small.policy(2), game)
    again = HierarchicalPolicy.from_parts(*policy.to_parts())
    keys = game_keys(1, "again", 0, np.arange(6))
    hashes = [
        play_games(game, [each], np.zeros((6, 4), int), keys, record=False)[0].hashes
        for each in (policy, again)
    ]
    assert (hashes[0] == hashes[1]).all()
    explorer = ExploringHierarchy.of(policy, [0.5], [0.5], [0.0])
    other = play_games(game, [explorer], np.zeros((6, 4), int), keys, record=False)[0].hashes
    assert (other != hashes[0]).any()


def test_labels_by_hand(small):
    """lambda = 1 and Q = 0: the high level is labelled by the return, the low level by the
    discounted reward of its sub-goal, as far as the behaviour was in force."""
    from pipeline import traces
    from pipeline.policies.store import cached_game

    game = cached_game(small.config.game_name, small.config.game_params)
    shards = [(2, e["path"], e["sha256"]) for e in small.manifest(2)["shards"]]
    window = traces.read_window(small.storage, game, shards, 10**6)
    config = small.config.learner
    steps = learner.Steps.of(game, window, config, 1)
    labels = steps.outcomes()
    assert np.allclose(labels.high, steps.returns)
    following = steps.next.tolist()
    for i in range(0, len(steps), 7):
        expected, at, factor = 0.0, i, 1.0
        while True:
            if steps.reached[at]:
                expected = factor
                break
            j = following[at]
            if j < 0 or steps.behaviour[j] != steps.behaviour[i]:
                break
            if not steps.possible[j, steps.behaviour[i]]:
                break
            at, factor = j, factor * config.discount
        assert np.isclose(labels.low[i], expected), i


def test_too_few_games_to_learn_anything_are_told(small):
    task = fitted(small, 1)
    _, report = replace(
        task, path=f"{small.name}/poor", learner=task.learner | {"min_games": 1000}
    ).run()
    [sentence] = report["warnings"]
    most = max(row["games"] for row in small.table(2, "trees"))
    assert "learner.min_games=1000" in sentence and f"the most frequent one in {most};" in sentence
    assert all(record["learner"]["warnings"] == [] for record in small.records()[1:])


def test_rewards_of_the_high_level_come_at_the_end(small):
    from pipeline import traces
    from pipeline.policies.store import cached_game

    game = cached_game(small.config.game_name, small.config.game_params)
    shards = [(1, e["path"], e["sha256"]) for e in small.manifest(1)["shards"]]
    window = traces.read_window(small.storage, game, shards, 10**6)
    steps = learner.Steps.of(game, window, small.config.learner, 1)
    assert (steps.reward[steps.next >= 0] == 0).all()
    ends = steps.reward[steps.next < 0]
    # The winner 1, others their points as a share of the five that win.
    assert set(np.round(ends * 5, 4).tolist()) <= {2.0, 3.0, 4.0, 5.0}


def test_the_learner_wants_a_game_with_behaviours(tmp_path):
    from small_runs import small_config

    from pipeline.errors import ConfigError

    with pytest.raises(ConfigError, match="needs a game with behaviours"):
        catan = catan_config(small_config, tmp_path)
        small_config(tmp_path, "x", learner=vars(catan.learner))
