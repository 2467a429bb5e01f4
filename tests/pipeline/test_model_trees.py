"""Labels of model trees by hand and by their definition, whose rows a tree sees, that it learns."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from small_runs import content, small_config
from test_value_network import SUMS, THREE, random_window, window_of
from tree_policies import lookup_policy

from games import make_game
from pipeline import m5
from pipeline.config import ModelTreesConfig
from pipeline.learners import model_trees
from pipeline.learners.common import held_out_rows
from pipeline.learners.model_trees import fit, initial
from pipeline.oracles import answers
from pipeline.policies.base import Exploring
from pipeline.run import Run
from pipeline.selfplay import Traces, play_games
from pipeline.streams import game_keys
from pipeline.traces import Window
from pipeline.train import train

STEPS = [np.diff([0, *sums]) - 1 for sums in SUMS]
_DEFAULTS = Path(__file__).resolve().parents[2] / "conf" / "learner" / "model_trees.yaml"
Q = np.random.default_rng(3).integers(-9, 10, (13, 3)) / 10
Q[11, 1:] = Q[10, 2] = 5.0  # illegal there, and so never anybody's value


def settings_of(**changes) -> ModelTreesConfig:
    defaults: dict[str, Any] = {**yaml.safe_load(_DEFAULTS.read_text()), "threads": 1}
    return ModelTreesConfig(**{**defaults, "bag": 1, "sweeps": 1, "held_out": 0.0, **changes})


@pytest.fixture
def labels_given(monkeypatch):
    """A function that fits and gives the labels float32 [N] of every sweep."""
    given = []
    grow = model_trees._Growing.grow

    def note(self, targets):
        given.append(targets)
        return grow(self, targets)

    monkeypatch.setattr(model_trees._Growing, "grow", note)

    def labels_of(game, window, previous, config):
        given.clear()
        fit(game, window, previous, config, 1)
        return list(given)

    return labels_of


# Labels.


@pytest.mark.parametrize(
    ("opponent", "expected"),
    [
        # Half as much per decision, and of the other sign for the other side.
        ("negamax", [-1 / 32, 1 / 16, -1 / 8, 1 / 4, -1 / 2, 1, 1 / 8, -1 / 4, 1 / 2, -1]),
        # Half as much per own decision.
        ("environment", [-1 / 4, 1 / 4, -1 / 2, 1 / 2, -1, 1, 1 / 2, -1 / 2, 1, -1]),
    ],
)
def test_the_first_labels_are_returns(sumto12, labels_given, opponent, expected):
    """Whatever the trace decay; the forced step from 11 is no decision."""
    config = settings_of(discount=0.5, opponent=opponent, trace_decay=0.3)
    window = window_of(sumto12, STEPS)
    [labels] = labels_given(sumto12, window, initial(sumto12, config, 1), config)
    assert labels.tolist() == expected


def test_labels_without_a_trace_are_those_of_the_best_reply(sumto12, labels_given):
    config = settings_of(discount=0.5, trace_decay=0.0)
    window = window_of(sumto12, STEPS)
    [labels] = labels_given(sumto12, window, lookup_policy(Q), config)

    def loses(total):  # what the opponent's best legal step is worth, by Q
        return -0.5 * max(Q[total, : 12 - total])

    first = [loses(3), loses(4), loses(7), loses(8), loses(10), 1.0]
    assert labels == pytest.approx([*first, loses(3), loses(6), loses(9), -1.0])


def test_labels_of_sarsa_are_those_of_what_was_played(sumto12, labels_given):
    config = settings_of(discount=0.5, targets="sarsa")
    window = window_of(sumto12, STEPS)
    [labels] = labels_given(sumto12, window, lookup_policy(Q), config)
    # The step that was played from each sum: 3 to 4, 4 to 7, 7 to 8, 8 to 10, 10 to 12.
    first = [-0.5 * Q[at] for at in ((3, 0), (4, 2), (7, 0), (8, 1), (10, 1))]
    second = [-0.5 * Q[at] for at in ((3, 2), (6, 2), (9, 1))]
    assert labels == pytest.approx([*first, 1.0, *second, -1.0])


def plain_labels(game, window, teacher, config) -> list[float]:
    """The labels from their definition, row by row from the end."""
    traces, n = window.traces, len(window)
    legal = game.legal_of(traces.state)
    q = teacher.action_values(game, traces.state, legal).astype(float)
    raw, returns = [0.0] * n, [0.0] * n
    following = {}
    for row in range(n - 1, -1, -1):
        player = traces.player[row]
        later = [
            j
            for j in range(row + 1, min(row + 60, n))
            if window.game_id[j] == window.game_id[row]
            and (game.zero_sum or traces.player[j] == player)
        ]
        if not later:
            returns[row] = float(traces.return_[row])
            continue
        at = later[0]
        paid = game.returns_of(traces.state[[row, at]])[:, player]
        sign = 1.0 if traces.player[at] == player else -1.0
        following[row] = at, float(paid[1] - paid[0]), sign
        returns[row] = following[row][1] + config.discount * sign * returns[at]
    low, high = min(returns), max(returns)
    q = np.clip(q, low, high)
    for row in range(n - 1, -1, -1):
        if row not in following:
            raw[row] = returns[row]
            continue
        at, reward, sign = following[row]
        allowed = q[at][legal[at]]
        value = (1 - config.epsilon) * allowed.max() + config.epsilon * allowed.mean()
        taken = q[at, traces.action[at]]
        chance = config.epsilon / len(allowed)
        if taken == allowed.max():
            chance += (1 - config.epsilon) / (allowed == taken).sum()
        cut = config.trace_decay * min(1.0, chance / traces.probability[at])
        raw[row] = reward + config.discount * sign * (value + cut * (raw[at] - taken))
    return np.clip(raw, low, high).tolist()


@pytest.mark.parametrize(("trace_decay", "epsilon"), [(0.0, 0.0), (0.8, 0.0), (1.0, 0.3)])
@pytest.mark.parametrize("trees", ["action", "type"])
@pytest.mark.parametrize("name", ["sumto12", "connect three", "dice"])
def test_labels_are_their_definition(
    name, trees, trace_decay, epsilon, sumto12, dice, labels_given
):
    game = {"sumto12": sumto12, "dice": dice}.get(name) or make_game("k_in_a_row", **THREE)
    config = settings_of(
        trees=trees, discount=0.9, trace_decay=trace_decay, epsilon=epsilon, min_games=50
    )
    window = random_window(game, 120)
    teacher, _ = fit(game, window, initial(game, config, 1), config, 1)
    [labels] = labels_given(game, window, teacher, config)
    assert labels == pytest.approx(plain_labels(game, window, teacher, config), abs=1e-5)


@pytest.mark.parametrize("trace_decay", [0.0, 0.8])
def test_labels_of_true_values_are_the_true_values(sumto12, labels_given, trace_decay):
    """Sums that leave a multiple of 4 to 12 are lost for whoever moves: Q(s, a) is known."""
    true = np.zeros((13, 3))
    for total in range(12):
        for step in (1, 2, 3):
            true[total, step - 1] = 1.0 if (12 - total - step) % 4 == 0 else -1.0
    window = random_window(sumto12, 60)
    config = settings_of(trace_decay=trace_decay)
    [labels] = labels_given(sumto12, window, lookup_policy(true), config)
    totals = sumto12.observations_of(window.traces.state, window.traces.player).argmax(1)
    assert labels.tolist() == true[totals, window.traces.action].tolist()


def test_every_sweep_learns_from_the_trees_before(sumto12, monkeypatch):
    labels, policies = [], []
    grow = model_trees._Growing.grow

    def note(self, targets):
        labels.append(targets)
        policies.append(grow(self, targets))
        return policies[-1]

    monkeypatch.setattr(model_trees._Growing, "grow", note)
    window, config = random_window(sumto12, 200), settings_of(sweeps=3, min_games=50)
    _, report = fit(sumto12, window, initial(sumto12, config, 1), config, 1)
    assert report["sweeps"] == len(labels) == 3
    for k in (1, 2):
        expected = plain_labels(sumto12, window, policies[k - 1], config)
        assert labels[k] == pytest.approx(expected, abs=1e-5)


# Whose rows a tree sees, and what they weigh.


def test_a_game_weighs_once_and_half_as_much_per_half_life(sumto12, monkeypatch):
    window = random_window(sumto12, 400)
    window.generation[:] = np.where(window.game_id % 2 == 0, 4, 1)
    given = []
    grow = m5.grow

    def note(binned, y, weight, games, options, threads):
        given.append((weight, games))
        return grow(binned, y, weight, games, options, threads)

    monkeypatch.setattr(m5, "grow", note)
    config = settings_of(min_games=50, half_life=3, symmetries=False)
    fit(sumto12, window, initial(sumto12, config, 1), config, 1)
    assert len(given) == 3
    for action, (weight, games) in enumerate(given):
        by_game = np.bincount(games, weight)
        numbers = np.unique(window.game_id[window.traces.action == action])
        assert by_game * 2 ** (numbers % 2) == pytest.approx(by_game.max())


def games_of_steps(counts: dict[int, int], seed: int = 1) -> list[list[int]]:
    """Random games of sumto12 by how many: with the first action told, all others 0 or 1."""
    r = np.random.default_rng(seed)
    games = []
    for first, count in counts.items():
        for _ in range(count):
            actions, total = [first], first + 1
            while total < 12:
                actions.append(int(r.integers(0, min(12 - total, 2))))
                total += actions[-1] + 1
            games.append(actions)
    return games


@pytest.mark.parametrize("with_third", [0, 30])
def test_an_action_of_too_few_games_shares_the_pooled_trees_and_says_so(sumto12, with_third):
    window = window_of(sumto12, games_of_steps({0: 200, 1: 200, 2: with_third}))
    config = settings_of(min_games=100)
    policy, report = fit(sumto12, window, initial(sumto12, config, 1), config, 1)
    assert [len(bag) for bag in policy.bags] == [1, 1, 0] and len(policy.pooled) == 1
    assert report["pooled"] == 1
    table = report["tables"]["trees"]
    assert table["pooled"].tolist() == [False, False, True]
    assert table["games"][2] == table["rows"][2] == with_third
    assert table["text"].tolist() == [sumto12.action_to_text(sumto12.rules, a) for a in range(3)]
    states = sumto12.initial_states([1])
    q = policy.action_values(sumto12, states, sumto12.legal_of(states))
    assert np.isfinite(q).all() and (np.abs(q) <= 1).all()


def test_actions_of_enough_games_need_no_pooled_trees(sumto12):
    window = window_of(sumto12, games_of_steps({0: 200, 1: 200, 2: 200}))
    config = settings_of(min_games=100)
    policy, report = fit(sumto12, window, initial(sumto12, config, 1), config, 1)
    assert [len(bag) for bag in policy.bags] == [1, 1, 1] and not policy.pooled
    assert report["pooled"] == 0 and not report["tables"]["trees"]["pooled"].any()


def test_images_share_rows_and_trees():
    game = make_game("k_in_a_row", **THREE)
    window = random_window(game, 300)
    config = settings_of(min_games=50)
    policy, report = fit(game, window, initial(game, config, 1), config, 1)
    states = window.traces.state
    mirror = game.symmetries[0]
    seen = game.observations_of(states, window.traces.player)
    # The mirrored positions, by playing their games in the mirror.
    position = {each.tobytes(): i for i, each in enumerate(seen)}
    pairs = [
        (i, position.get(each.tobytes())) for i, each in enumerate(seen[:, mirror.observation])
    ]
    here, there = np.array([pair for pair in pairs if pair[1] is not None]).T
    assert len(here) > 300
    legal = game.legal_of(states)
    q = policy.action_values(game, states, legal)
    assert np.array_equal(q[here], q[there][:, mirror.action])
    rows = report["tables"]["trees"]["rows"]
    counts = np.bincount(window.traces.action, minlength=4)
    assert rows.tolist() == (counts + counts[mirror.action]).tolist()
    plain, _ = fit(game, window, initial(game, config, 1), replace(config, symmetries=False), 1)
    q = plain.action_values(game, states, legal)
    assert not np.array_equal(q[here], q[there][:, mirror.action])


# The same trees whatever they are grown with.


def parts_of(policy) -> tuple:
    spec, arrays = policy.to_parts()
    return spec, {name: (array.dtype, array.tobytes()) for name, array in arrays.items()}


@pytest.mark.parametrize("name", ["sumto12", "connect three"])
def test_threads_change_nothing(name, sumto12):
    game = sumto12 if name == "sumto12" else make_game("k_in_a_row", **THREE)
    window = random_window(game, 300)
    found = []
    for threads in (1, 2, 3):
        config = settings_of(bag=2, sweeps=2, held_out=0.2, min_games=210, threads=threads)
        policy, report = fit(game, window, initial(game, config, 1), config, 1)
        table = report.pop("tables")["trees"]
        columns = {column: values.tolist() for column, values in table.items()}
        found.append((parts_of(policy), report, repr(columns)))
    assert found[0] == found[1] == found[2]


def test_another_seed_draws_other_rows(sumto12):
    window, config = random_window(sumto12, 300), settings_of(rows_per_game=1, min_games=50)
    first, again, other = (
        parts_of(fit(sumto12, window, initial(sumto12, config, 1), config, seed)[0])
        for seed in (1, 1, 2)
    )
    assert first == again != other


def test_a_run_in_one_go_equals_a_run_that_was_continued(tmp_path):
    learner = {**yaml.safe_load(_DEFAULTS.read_text()), "threads": 1, "min_games": 50}

    def run_of(name, generations):
        train(small_config(tmp_path, name, learner=learner, generations=generations))
        return content(Run.open(str(tmp_path), name))

    whole = run_of("whole", 3)
    run_of("parts", 1)
    parts = run_of("parts", 3)
    assert [each["policy"] for each in parts] == [each["policy"] for each in whole]
    assert [each["shards"] for each in parts] == [each["shards"] for each in whole]
    assert [each["learner"] for each in parts] == [each["learner"] for each in whole]


# Odd windows.


def test_one_game(sumto12):
    window = window_of(sumto12, STEPS[:1])
    for share in (0.0, 0.1):
        config = settings_of(held_out=share)
        policy, report = fit(sumto12, window, initial(sumto12, config, 1), config, 1)
        assert report["pooled"] == 3 and len(policy.pooled) == 1
        assert report["loss_held_out"] is None and report["gap"] is None
        q = policy.action_values(
            sumto12, window.traces.state, sumto12.legal_of(window.traces.state)
        )
        assert (q[np.isfinite(q)] <= 1).all() and (q[np.isfinite(q)] >= -1).all()


def test_draws_only_are_worth_nothing():
    """On 3 x 2 with k = 3 no column and no diagonal wins; these games fill both rows in step."""
    game = make_game("k_in_a_row", width=3, height=2, k=3)
    orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]]
    window = window_of(game, [order + order for order in orders] * 50)
    assert not window.traces.return_.any()
    config = settings_of(min_games=20, held_out=0.1)
    policy, report = fit(game, window, initial(game, config, 1), config, 1)
    legal = game.legal_of(window.traces.state)
    q = policy.action_values(game, window.traces.state, legal)
    assert not q[legal].any() and np.isneginf(q[~legal]).all()
    assert report["residual"] == report["clipped"] == report["drift"] == 0.0
    assert report["leaves"] == 1.0 and report["depth"] == 0


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("later", [False, True])
def test_what_is_not_finite_is_refused_by_the_feature_s_name(sumto12, bad, later):
    """Also where the bins of a generation before are kept."""
    window, config = random_window(sumto12, 60), settings_of()
    previous = initial(sumto12, config, 1)
    if later:
        previous, _ = fit(sumto12, window, previous, config, 1)
        window.generation[:] = 3

    def observe(rules, states, players, out):
        sumto12.observe(rules, states, players, out)
        out[:, 5] = bad

    odd = replace(sumto12, observe=observe)
    with pytest.raises(ValueError, match=f"{sumto12.observation_names[5]}' is {bad}"):
        fit(odd, window, previous, config, 1)


@pytest.mark.parametrize("half_life", [1e-3, 0.1, 1e9])
def test_an_action_that_only_old_games_played_still_learns(sumto12, half_life):
    """Its weights, 2^-2000000 at the shortest half life, are taken from its own newest row on."""
    window = random_window(sumto12, 200)
    window.generation[:] = np.where(window.traces.action == 2, 1, 2000)
    config = settings_of(min_games=20, half_life=half_life)
    policy, _ = fit(sumto12, window, initial(sumto12, config, 1), config, 1)
    assert all(len(bag) == 1 for bag in policy.bags)
    legal = sumto12.legal_of(window.traces.state)
    assert np.isfinite(policy.action_values(sumto12, window.traces.state, legal)[legal]).all()


@pytest.mark.parametrize("actions", [[0, 2], [0]])
def test_actions_that_nobody_played_have_finite_values(sumto12, actions):
    window = random_window(sumto12, 300)
    there = np.isin(window.traces.action, actions)
    traces = Traces(**{name: column[there] for name, column in vars(window.traces).items()})
    window = Window(traces, window.generation[there], window.game_id[there])
    config = settings_of(min_games=20, sweeps=2)
    policy, report = fit(sumto12, window, initial(sumto12, config, 1), config, 1)
    assert report["pooled"] == 3 - len(actions)
    table = report["tables"]["trees"]
    assert table["rows"].tolist() == np.bincount(traces.action, minlength=3).tolist()
    legal = sumto12.legal_of(traces.state)
    q = policy.action_values(sumto12, traces.state, legal)
    assert (np.abs(q[legal]) <= 1).all()


@pytest.mark.parametrize("probability", [0.0, 1e-38, np.nan])
def test_actions_of_next_to_no_probability(sumto12, probability):
    window, config = random_window(sumto12, 200), settings_of(min_games=50, sweeps=2)
    previous, _ = fit(sumto12, window, initial(sumto12, config, 1), config, 1)
    window.traces.probability[:] = probability
    _, report = fit(sumto12, window, previous, config, 1)
    assert 0 <= report["residual"] < 2


# The report.


def test_the_report_is_of_games_and_rows_that_did_not_teach(sumto12):
    window, config = random_window(sumto12, 400), settings_of(held_out=0.2, min_games=50, sweeps=4)
    policy, report = fit(sumto12, window, initial(sumto12, config, 1), config, 1)
    away = held_out_rows(window.game_id, 0.2)
    table = report["tables"]["trees"]
    assert 0 < table["rows"].sum() < (~away).sum()
    assert report["gap"] == pytest.approx(report["loss_held_out"] - report["loss_train"])
    kept = report["curve"]["held_out"].index(report["loss_held_out"])
    assert report["loss_train"] == report["curve"]["train"][kept]
    legal = sumto12.legal_of(window.traces.state)
    q = np.clip(policy.action_values(sumto12, window.traces.state, legal), -1, 1)
    taken = q[np.arange(len(window)), window.traces.action]
    following = plain_labels(sumto12, window, policy, config)
    residual = np.sqrt(np.mean((np.array(following) - taken)[away] ** 2))
    assert report["residual"] == pytest.approx(residual, abs=1e-5)
    assert report["drift"] == pytest.approx(np.abs(taken).mean(), abs=1e-6)  # all was 0 before
    for action, bag in enumerate(policy.bags):
        assert table["leaves"][action] == np.mean([tree.num_leaves for tree in bag])
        assert table["depth"][action] == max(tree.depths().max() for tree in bag)


def test_values_that_run_away_are_told(sumto12, monkeypatch):
    """Trees that answer each sweep with more of what the labels lack, as slopes above 1 do: the
    residual grows until clipping stops it."""
    window = random_window(sumto12, 60)
    true = np.zeros((13, 3))
    for total in range(12):
        for step in (1, 2, 3):
            true[total, step - 1] = 1.0 if (12 - total - step) % 4 == 0 else -1.0
    answers = [lookup_policy(scale * true, (-1.0, 1.0)) for scale in (0.9, -0.3, -2.0)]
    sweeps = iter(answers)
    monkeypatch.setattr(model_trees._Growing, "grow", lambda self, targets: next(sweeps))
    config = settings_of(sweeps=3, trace_decay=0.0)
    policy, report = fit(sumto12, window, initial(sumto12, config, 1), config, 1)
    assert policy is answers[0]  # the least residual
    residual, clipped = report["curve"]["residual"], report["curve"]["clipped"]
    assert residual[0] < residual[1] < residual[2] and report["residual"] == residual[0]
    assert clipped == [0.0, 0.0, 1.0] and report["clipped"] == 0.0
    [sentence] = report["warnings"]
    for part in ("values diverge", "in 3 sweeps", "100% of the trees", "sweep 1", "ridge"):
        assert part in sentence


def test_the_drift_of_labels_is_between_those_of_two_generations(sumto12, labels_given):
    window, config = random_window(sumto12, 200), settings_of(min_games=50)
    first, report = fit(sumto12, window, initial(sumto12, config, 1), config, 1)
    assert report["warnings"] == []
    second, report = fit(sumto12, window, first, config, 1)
    before, after = (plain_labels(sumto12, window, each, config) for each in (first, second))
    drift = np.abs(np.array(after) - np.array(before)).mean()
    assert report["label_drift"] == pytest.approx(drift, abs=1e-5)


def test_it_learns_sumto20_perfectly():
    game = make_game("sumto", target=20, max_step=4)
    solved = game.solution()
    legal = game.legal_of(solved.states)
    config = settings_of(held_out=0.1, sweeps=8, min_games=100)
    policy = initial(game, config, 1)
    right = []
    for generation in range(1, 9):
        epsilon = [1.0] if generation == 1 else [0.5]
        players = [Exploring(policy, np.array(epsilon), np.zeros(1))]
        keys = game_keys(2, "selfplay", generation, np.arange(400))
        _, traces = play_games(game, players, np.zeros((400, 2), int), keys)
        game_id = traces.game.astype(np.int64) + (generation << 32)
        window = Window(traces, np.full(len(traces), generation, np.int32), game_id)
        policy, _ = fit(game, window, policy, config, generation)
        q = policy.action_values(game, solved.states, legal)
        right.append(answers(solved, q)["strong"])
        if right[-1] == 1:
            break
    assert right[-1] == 1, right


# Faults that were mended.


def test_the_clipped_share_is_of_all_trees_asked(sumto12, monkeypatch):
    """Rows are read in parts of different sizes; equal observations of a part are asked once."""
    q = np.zeros((13, 3))
    for total, action in ((3, 2), (7, 2), (8, 0), (10, 1), (6, 1), (9, 2)):
        q[total, action] = -0.9
    window = window_of(sumto12, STEPS)
    labels = model_trees._Labels(sumto12, window, settings_of(), 2)
    monkeypatch.setattr(model_trees, "_CHUNK", 8)
    # The sums 0 3 4 7 8 10 0 3 and 6 9: three steps from each, but two from 10; 0 and 3 once in a
    # part. Beyond 0.5 lie four of the first part's trees and two of the second's.
    clipped = labels.read(lookup_policy(q, (-0.5, 0.5))).clipped
    assert clipped == pytest.approx((4 + 2) / (17 + 6))


def test_bins_are_those_of_the_images_too():
    """Played on the left only, the right side is seen as an image, and must not be one bin."""
    game = make_game("k_in_a_row", width=4, height=4, k=4)
    rng = np.random.default_rng(1)
    games = [[*rng.permutation([0, 0, 0, 1, 1, 1, 2, 3]), *[2, 3] * 3, 0, 1] for _ in range(40)]
    whole = window_of(game, games)
    early = whole.traces.state["ply"] < 5
    traces = Traces(**{name: column[early] for name, column in vars(whole.traces).items()})
    window = Window(traces, whole.generation[early], whole.game_id[early])
    config = settings_of(symmetries=True)
    policy, _ = fit(game, window, initial(game, config, 1), config, 1)
    assert policy.binning is not None
    image = game.symmetries[0].observation
    edges = np.diff(policy.binning.edge_start)
    assert (edges == edges[image]).all() and edges.max() == 1
    seen = game.observations_of(window.traces.state, window.traces.player)
    constant = (seen == seen[:1]).all(0)
    one_sided = constant & ~constant[image]
    assert one_sided.any() and (edges[one_sided] == 1).all()
