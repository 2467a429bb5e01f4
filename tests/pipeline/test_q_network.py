"""Labels of the Q network by hand and by their definition, shaping, and that it learns."""

from typing import Any

import numpy as np
import pytest
from test_value_network import SUMS, THREE, by_sum, random_window, window_of

from games import make_game
from pipeline.config import QNetworkConfig, to_config
from pipeline.errors import ConfigError
from pipeline.learners import q_network
from pipeline.learners.common import successors
from pipeline.learners.mlp_training import fresh_mlp
from pipeline.learners.q_network import fit, initial, shaping_rewards
from pipeline.policies.mlp import MLP
from pipeline.policies.q_network import QNetworkPolicy
from pipeline.policies.scripted import UniformRandom
from pipeline.selfplay import play_games
from pipeline.streams import game_keys

STEPS = [np.diff([0, *sums]) - 1 for sums in SUMS]


def settings_of(**changes) -> QNetworkConfig:
    defaults: dict[str, Any] = {
        "targets": "q_learning",
        "discount": [0.5],
        "hidden": [8],
        "learning_rate": [1e-2],
        "batch": 16,
        "epochs": 1,
        "held_out": 0.0,
        "window_generations": 1,
        "window_rows": 10**6,
        "symmetries": False,
        "device": "jit",
    }
    return QNetworkConfig(**{**defaults, **changes})


@pytest.fixture
def rows_given(monkeypatch):
    """Fits without training: the rows that the training would have been given, of every sweep."""
    given = []

    def note(network, rows, held_out, options, seed, device, curve):
        given.append((rows, options))
        curve.train.append(0.0)
        return network

    monkeypatch.setattr(q_network, "train", note)

    def rows_of(game, window, previous, config):
        given.clear()
        fit(game, window, previous, config, 1)
        return list(given)

    return rows_of


@pytest.fixture
def teacher() -> QNetworkPolicy:
    """Some Q of sumto12: of each sum, and of the steps 1, 2 and 3 from it."""
    return QNetworkPolicy(MLP([Q], [np.zeros(3)], "linear"))


Q = np.random.default_rng(3).integers(-9, 10, (13, 3)) / 10
Q[11, 1:] = 5.0  # illegal there, and so never anybody's value
Q[10, 2] = 5.0


def test_monte_carlo_labels_by_hand(sumto12, teacher, rows_given):
    window = window_of(sumto12, STEPS)
    config = settings_of(targets="monte_carlo")
    [(rows, _)] = rows_given(sumto12, window, teacher, config)
    # The sum that was stepped from, and what the step brought: the winner's last one 1, the
    # loser's -1, before that half as much per own step. The forced step from 11 is no decision.
    assert by_sum(rows) == [
        (0, -0.25), (3, 0.25), (4, -0.5), (7, 0.5), (8, -1.0), (10, 1.0),
        (0, 0.5), (3, -0.5), (6, 1.0), (9, -1.0),
    ]  # fmt: skip
    assert rows.outputs.tolist() == [2, 0, 2, 0, 1, 1, 2, 2, 2, 1]  # the steps that were played


def test_q_learning_labels_by_hand(sumto12, teacher, rows_given):
    window = window_of(sumto12, STEPS)
    [(rows, _)] = rows_given(sumto12, window, teacher, settings_of())

    def loses(total):  # what the opponent's best legal step is worth, by Q
        return -0.5 * max(Q[total, : 12 - total])

    expected = [loses(3), loses(4), loses(7), loses(8), loses(10), 1.0]
    expected += [loses(3), loses(6), loses(9), -1.0]  # only the forced step to 12 follows the last
    assert rows.targets == pytest.approx(expected)


def plain_lambda_returns(game, window, teacher, discount, trace_decay) -> list[float]:
    """The labels from their definition, row by row from the end."""
    traces, labels = window.traces, [0.0] * len(window)
    q = teacher.action_values(game, traces.state, game.legal_of(traces.state))
    for row in range(len(traces) - 1, -1, -1):
        player = traces.player[row]
        later = [
            next_row
            for next_row in range(row + 1, len(traces))
            if window.game_id[next_row] == window.game_id[row]
            and (game.zero_sum or traces.player[next_row] == player)
        ]
        if not later:
            labels[row] = float(traces.return_[row])
            continue
        at = later[0]
        paid = game.returns_of(traces.state[[row, at]])[:, player]
        sign = 1.0 if traces.player[at] == player else -1.0
        onward = q[at].max()
        if q[at, traces.action[at]] == onward:  # the trace is cut where another action was played
            onward += trace_decay * (labels[at] - onward)
        labels[row] = float(paid[1] - paid[0] + discount * sign * onward)
    return labels


@pytest.mark.parametrize("trace_decay", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("name", ["sumto12", "connect three", "dice"])
def test_q_learning_labels_are_their_definition(name, trace_decay, sumto12, dice, rows_given):
    game = {"sumto12": sumto12, "dice": dice}.get(name) or make_game("k_in_a_row", **THREE)
    window = random_window(game, 60)
    network = fresh_mlp(game.observation_size, [8], game.num_actions, "tanh", 5)
    teacher = QNetworkPolicy(network)
    config = settings_of(discount=[0.9], trace_decay=trace_decay)
    [(rows, _)] = rows_given(game, window, teacher, config)
    expected = plain_lambda_returns(game, window, teacher, 0.9, trace_decay)
    assert rows.targets == pytest.approx(expected, abs=1e-5)


def test_labels_of_true_values_are_the_true_values(sumto12, rows_given):
    """Sums that leave a multiple of 4 to 12 are lost for whoever moves: Q(s, a) is known."""
    true = np.zeros((13, 3))
    for total in range(12):
        for step in (1, 2, 3):
            if total + step <= 12:
                true[total, step - 1] = 1.0 if (12 - total - step) % 4 == 0 else -1.0
    teacher = QNetworkPolicy(MLP([true], [np.zeros(3)], "linear"))
    window = random_window(sumto12, 50)
    for trace_decay in (0.0, 1.0):
        config = settings_of(discount=[1.0], trace_decay=trace_decay)
        [(rows, _)] = rows_given(sumto12, window, teacher, config)
        totals, actions = rows.inputs.argmax(1), rows.outputs
        assert (rows.targets == true[totals, actions]).all()


def test_discount_and_rate_are_those_of_the_generation(sumto12, teacher, rows_given):
    config = settings_of(
        targets="monte_carlo", discount=[0.9, 0.8, 0.7], learning_rate=[1e-2, 1e-3]
    )
    for generation, discount, rate in (
        (1, 0.9, 1e-2),
        (2, 0.8, 1e-3),
        (3, 0.7, 1e-3),
        (9, 0.7, 1e-3),
    ):
        window = window_of(sumto12, STEPS[:1])
        window.generation[:] = generation
        [(rows, options)] = rows_given(sumto12, window, teacher, config)
        assert rows.targets[1] == pytest.approx(discount**2)  # the winner's first of three steps
        assert options.learning_rate == rate


def test_images_go_with_their_actions(rows_given):
    game = make_game("k_in_a_row", **THREE)
    window = random_window(game, 20)
    policy = initial(game, settings_of(), 1)
    [(plain, _)] = rows_given(game, window, policy, settings_of())
    [(both, _)] = rows_given(game, window, policy, settings_of(symmetries=True))
    n = len(plain.targets)
    assert len(both.targets) == 2 * n
    assert (both.outputs[n:] == 3 - plain.outputs).all()
    cells = plain.inputs.reshape(n, 2, 4, 4)
    assert (both.inputs[n:].reshape(n, 2, 4, 4) == cells[:, :, :, ::-1]).all()
    assert (both.targets[n:] == plain.targets).all()


def test_a_fresh_network_or_the_previous_one(sumto12):
    window = random_window(sumto12, 10)
    previous = initial(sumto12, settings_of(), 1)
    for warm in (True, False):
        config = settings_of(warm_start=warm, learning_rate=[1e-9])
        policy, _ = fit(sumto12, window, previous, config, 7)
        start = previous if warm else initial(sumto12, config, 7)
        assert policy.network.weights[0] == pytest.approx(start.network.weights[0], abs=1e-6)


# Shaping.


def test_a_block_is_rewarded_where_it_is_played(rows_given):
    """X stacks column 0 until O blocks at ply 5; later X wins along the bottom, unblocked."""
    game = make_game("k_in_a_row", width=7, height=6, k=4)
    window = window_of(game, [[0, 1, 0, 2, 0, 0, 3, 1, 4, 1, 5, 0, 6]])
    assert window.traces.return_.tolist() == [1.0, -1.0] * 6 + [1.0]
    policy = initial(game, settings_of(), 1)
    plain = settings_of(targets="monte_carlo")
    bonus = settings_of(targets="monte_carlo", shaping="block", shaping_reward=0.1)
    [(rows, _)] = rows_given(game, window, policy, bonus)
    [(without, _)] = rows_given(game, window, policy, plain)
    extra = rows.targets - without.targets
    # O's own decisions before it see it discounted; nobody else sees anything of it.
    assert extra == pytest.approx([0, 0.025, 0, 0.05, 0, 0.1, *[0] * 7])


@pytest.mark.parametrize("targets", ["monte_carlo", "q_learning"])
def test_a_potential_shifts_all_actions_of_a_state_alike(targets):
    """Shaped returns are the returns minus phi(s), whatever was played (Ng et al. 1999)."""
    game = make_game("k_in_a_row", **THREE)
    window = random_window(game, 100)
    traces = window.traces
    config = settings_of(targets=targets, shaping="potential", shaping_reward=0.3)
    mask = np.empty((len(traces), 4), np.bool_)
    game.threats(game.rules, traces.state, mask)
    phi = np.where(mask.any(1), -0.3, 0.0)
    assert 0.1 < mask.any(1).mean() < 0.9
    if targets == "monte_carlo":
        shaped = q_network._returns(game, window, 0.9, config)
        plain = q_network._returns(game, window, 0.9, settings_of(targets=targets))
        assert shaped - plain == pytest.approx(-phi, abs=1e-5)
    else:  # the sum of discounted, signed rewards along the game
        following = successors(game, window)
        extra = shaping_rewards(game, traces, following, 0.9, config)
        total = np.zeros(len(traces) + 1)
        for row in range(len(traces) - 1, -1, -1):
            later = total[following.row[row]] if following.row[row] >= 0 else 0.0
            total[row] = extra[row] + 0.9 * following.sign[row] * later
        assert total[:-1] == pytest.approx(-phi, abs=1e-5)


def test_threats_are_the_opponents_wins_if_it_were_his_turn():
    """Held against the rules: the state with the other player to move, each column tried."""
    for params in (THREE, {"width": 7, "height": 6, "k": 4}, {"width": 3, "height": 2, "k": 2}):
        game = make_game("k_in_a_row", **params)
        states = random_window(game, 60).traces.state
        mask = np.empty((len(states), game.num_actions), np.bool_)
        game.threats(game.rules, states, mask)
        swapped = states.copy()
        swapped["mover"] = states["mover"] ^ states["occupied"]
        for column in range(game.num_actions):
            legal = game.legal_of(swapped)[:, column]
            after = game.after(swapped[legal], np.full(legal.sum(), column))
            wins = (game.returns_of(after) != 0).any(1)
            assert mask[legal, column].tolist() == wins.tolist()
            assert not mask[~legal, column].any()
        assert mask.any()


# What is refused.


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["learner.shaping=block"], "learner.shaping=block contradicts learner.shaping_reward=0.0"),
        (["learner.shaping_reward=0.1"], "learner.shaping=none contradicts"),
        (["learner.shaping=block", "learner.shaping_reward=5"], "must be in 0.0..1.0, got 5"),
        (["learner.targets=monte_carlo"], "contradict learner.targets=monte_carlo"),
        (["learner.discount=[]"], "learner.discount needs at least one value"),
        (["learner.discount=[0.9,1.5]"], "learner.discount must be in 0.0..1.0, got 1.5"),
        (["learner.optimizer=sgd"], "learner.optimizer must be one of adam, adadelta, got 'sgd'"),
        (
            ["game=sumto100", "learner.shaping=block", "learner.shaping_reward=0.1"],
            "needs a game that tells threats, as k_in_a_row does; sumto does not",
        ),
        (["opponents.first=perfect", "game=connect_four"], "opponents.first must be one of random"),
        (["selfplay.player=me"], "selfplay.player must be one of champion, untrained, got 'me'"),
    ],
)
def test_a_contradiction_is_one_sentence(compose, overrides, message):
    with pytest.raises(ConfigError) as told:
        to_config(compose("learner=q_network", "game=connect_three", *overrides))
    assert message in str(told.value)


# Learning.


def test_it_learns_connect_three_from_random_games():
    game = make_game("k_in_a_row", **THREE)
    config = settings_of(discount=[0.95], sweeps=10, hidden=[64], epochs=2, batch=64, held_out=0.1)
    window = random_window(game, 2000)
    policy, report = fit(game, window, initial(game, config, 1), config, 1)
    assert report["loss_held_out"] < 0.15
    keys = game_keys(9, "match", 1, np.arange(400))
    seatings = np.array([[0, 1], [1, 0]] * 200)
    results, _ = play_games(game, [policy, UniformRandom()], seatings, keys, record=False)
    mine = results.returns[np.arange(400), np.arange(400) % 2]
    assert (mine > 0).mean() > 0.9  # a random player wins 43% of these seats
