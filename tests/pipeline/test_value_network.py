"""Labels of the value network by hand, who is held out, and that it learns."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from games import TERMINAL, make_game
from pipeline.config import ValueNetworkConfig
from pipeline.learners import value_network
from pipeline.learners.common import calibration, held_out_rows
from pipeline.learners.mlp_training import fresh_mlp
from pipeline.learners.value_network import fit, initial
from pipeline.oracles import answers
from pipeline.policies.afterstates import AfterstatePolicy
from pipeline.policies.base import Decisions, Exploring
from pipeline.policies.mlp import MLP
from pipeline.policies.scripted import UniformRandom
from pipeline.selfplay import play_games
from pipeline.streams import game_keys
from pipeline.traces import Window

THREE = {"width": 4, "height": 4, "k": 3}


def settings_of(**changes) -> ValueNetworkConfig:
    defaults: dict[str, Any] = {
        "targets": "monte_carlo",
        "discount": 0.5,
        "hidden": [8],
        "learning_rate": 1e-2,
        "weight_decay": 0.0,
        "batch": 16,
        "epochs": 1,
        "held_out": 0.0,
        "window_generations": 1,
        "window_rows": 10**6,
        "device": "jit",
    }
    return ValueNetworkConfig(**{**defaults, **changes})


class Following:
    """Plays each of some games action by action as it is told."""

    def __init__(self, games, keys):
        self.games = dict(zip(keys.tolist(), games, strict=True))

    def act(self, game, states, legal, rng):
        actions = [
            self.games[int(key)][ply] for key, ply in zip(rng._keys, states["ply"], strict=True)
        ]
        nothing = np.full(len(states), np.nan, np.float32)
        return Decisions(
            np.array(actions, np.int32), nothing, nothing, np.zeros(len(states), np.bool_)
        )


def window_of(game, games) -> Window:
    """The window of games that are told action by action (a forced one counts too)."""
    keys = game_keys(1, "selfplay", 1, np.arange(len(games)))
    seatings = np.zeros((len(games), game.num_players), int)
    _, traces = play_games(game, [Following(games, keys)], seatings, keys)
    return Window(traces, np.ones(len(traces), np.int32), traces.game.astype(np.int64))


def random_window(game, games: int, seed: int = 1) -> Window:
    keys = game_keys(seed, "selfplay", 1, np.arange(games))
    seatings = np.zeros((games, game.num_players), int)
    _, traces = play_games(game, [UniformRandom()], seatings, keys)
    return Window(traces, np.ones(len(traces), np.int32), traces.game.astype(np.int64) + 2**32)


@pytest.fixture
def rows_given(monkeypatch):
    """Fits without training: the rows that the training would have been given."""
    given_rows = []

    def note(network, rows, held_out, options, seed, device, curve):
        given_rows.append((rows, held_out))
        curve.train.append(0.0)
        return network

    monkeypatch.setattr(value_network, "train", note)

    def rows_of(game, window, previous, config):
        given_rows.clear()
        fit(game, window, previous, config, 1)
        return list(given_rows)

    return rows_of


# Two games of sumto12, with steps of 1 to 3. In the first player 1 wins with a choice (2 from 10),
# in the second player 0 wins with the last step that is forced and so no row.
SUMS = [[3, 4, 7, 8, 10, 12], [3, 6, 9, 11, 12]]
STEPS = [np.diff([0, *sums]) - 1 for sums in SUMS]
# V of afterstates by their sum, as some network might have it.
VALUES = np.array([0, 0.1, 0.3, -0.2, 0.5, -0.4, 0.2, 0.05, 0.75, -0.6, 0.4, -0.3, 9.0])


@pytest.fixture
def teacher() -> AfterstatePolicy:
    return AfterstatePolicy(MLP([VALUES[:, None]], [np.zeros(1)], "linear"))


def by_sum(rows) -> list[tuple[int, float]]:
    return list(zip(rows.inputs.argmax(1).tolist(), rows.targets.tolist(), strict=True))


def test_monte_carlo_labels_by_hand(sumto12, teacher, rows_given):
    window = window_of(sumto12, STEPS)
    [(rows, held_out)] = rows_given(sumto12, window, teacher, settings_of(discount=0.5))
    assert by_sum(rows) == [
        # The winner's last step is worth 1, the loser's -1; before that half as much per own step.
        (3, -0.25), (4, 0.25), (7, -0.5), (8, 0.5), (10, -1.0), (12, 1.0),
        # The forced step is no decision: 9 is the winner's last one.
        (3, 0.5), (6, -0.5), (9, 1.0), (11, -1.0),
    ]  # fmt: skip
    assert len(held_out.targets) == 0
    assert (rows.inputs.sum(1) == 1).all() and rows.inputs.shape == (10, 13)


def test_one_step_labels_by_hand(sumto12, teacher, rows_given):
    window = window_of(sumto12, STEPS)
    config = settings_of(targets="one_step", discount=0.5)
    [(rows, _)] = rows_given(sumto12, window, teacher, config)

    def loses(total):  # what the best reply of the opponent leaves, by V
        return -0.5 * max(VALUES[total + 1 : total + 4])

    expected = [
        (3, loses(3)), (4, loses(4)), (7, loses(7)), (8, loses(8)),
        (10, -0.5),  # the opponent's best reply is the step to 12, worth 1 by the rules
        (12, 1.0),  # the end
        (3, loses(3)), (6, loses(6)),
        (9, -0.5),  # the opponent could have won with a step of 3, and did not
        (11, -1.0),  # only the forced last step follows, which the winner is paid for
    ]  # fmt: skip
    assert [total for total, _ in by_sum(rows)] == [total for total, _ in expected]
    assert rows.targets == pytest.approx([label for _, label in expected])
    # By hand for one of them: after 4 the opponent goes to 5, 6 or 7, worth -0.4, 0.2 and 0.05.
    assert rows.targets[1] == pytest.approx(-0.5 * 0.2)


def test_one_step_labels_where_the_opponent_is_part_of_the_world(sumto12, teacher, rows_given):
    """What follows is the player's own next decision; the opponent's step is as it was played."""
    window = window_of(sumto12, STEPS)
    config = settings_of(targets="one_step", discount=0.5, opponent="environment")
    [(rows, _)] = rows_given(sumto12, window, teacher, config)

    def gains(total):  # what the best own step leaves, by V
        return 0.5 * max(VALUES[total + 1 : total + 4])

    expected = [
        (3, gains(4)), (4, gains(7)), (7, gains(8)),
        (8, 0.5),  # from 10 the step to 12 wins by the rules
        (10, -1.0), (12, 1.0),  # no own decision follows
        (3, gains(6)),
        (6, 0.5),  # from 9 a step of 3 wins
        (9, 1.0), (11, -1.0),
    ]  # fmt: skip
    assert [total for total, _ in by_sum(rows)] == [total for total, _ in expected]
    assert rows.targets == pytest.approx([label for _, label in expected])


def test_labels_of_every_sweep_are_those_of_the_network_so_far(sumto12, monkeypatch):
    window = window_of(sumto12, STEPS)
    seen, networks = [], []

    def constant(network, rows, held_out, options, seed, device, curve):
        seen.append(rows.targets.copy())
        curve.train.append(0.0)
        weights = np.full((13, 1), 0.1 * (len(seen) + 1))
        networks.append(MLP([weights], [np.zeros(1)], "linear"))
        return networks[-1]

    monkeypatch.setattr(value_network, "train", constant)
    config = settings_of(targets="one_step", discount=1.0, sweeps=3)
    previous = AfterstatePolicy(MLP([np.full((13, 1), 0.1)], [np.zeros(1)], "linear"))
    policy, _ = fit(sumto12, window, previous, config, 1)
    assert [float(labels[0]) for labels in seen] == pytest.approx([-0.1, -0.2, -0.3])
    assert policy.value is networks[-1]


def plain_backups(game, window, teacher, discount) -> list[float]:
    """One-step labels row by row: r + discount * the best that the next decision can do."""
    traces, labels = window.traces, []
    for row in range(len(traces)):
        player = traces.player[row]
        later = [
            next_row
            for next_row in range(row + 1, len(traces))
            if window.game_id[next_row] == window.game_id[row]
            and (game.zero_sum or traces.player[next_row] == player)
        ]
        so_far = game.returns_of(traces.state[[row]])[0, player]
        if not later:
            labels.append(float(traces.return_[row]))
            continue
        state = traces.state[[later[0]]]
        mover = state["player"][0]
        best = -np.inf
        for action in np.flatnonzero(game.legal_of(state)[0]):
            after = game.after(state, [action])
            if after["player"][0] == TERMINAL:
                paid = game.returns_of(after) - game.returns_of(state)
                best = max(best, paid[0, mover])
            else:
                best = max(best, teacher.value(game.observations_of(after, [mover]))[0, 0])
        reward = game.returns_of(state)[0, player] - so_far
        labels.append(reward + discount * (best if mover == player else -best))
    return labels


@pytest.mark.parametrize("name", ["sumto12", "connect three", "dice"])
def test_one_step_labels_are_their_definition(name, sumto12, dice, rows_given):
    game = {"sumto12": sumto12, "dice": dice}.get(name) or make_game("k_in_a_row", **THREE)
    window = random_window(game, 40)
    teacher = AfterstatePolicy(fresh_mlp(game.observation_size, [8], 1, "tanh", 5))
    config = settings_of(targets="one_step", discount=0.9, symmetries=False)
    [(rows, _)] = rows_given(game, window, teacher, config)
    assert rows.targets == pytest.approx(plain_backups(game, window, teacher, 0.9), abs=1e-5)


@settings(max_examples=25)
@given(st.integers(0, 2**31), st.sampled_from([0.5, 0.99, 1.0]), st.booleans())
def test_one_step_labels_of_zero_sum_games_stay_within_what_a_game_pays(seed, discount, sums):
    """A bug of ours added the opponent's winning move to the loss that it is: -2."""
    if sums:
        game = make_game("sumto", target=6 + seed % 20, max_step=2 + seed % 4)
    else:
        game = make_game("k_in_a_row", **THREE)
    window = random_window(game, 20, seed)
    # A network whose output is -1 or 1: the worst that tanh can say.
    network = fresh_mlp(game.observation_size, [8], 1, "tanh", seed)
    teacher = AfterstatePolicy(
        MLP([weight * 100 for weight in network.weights], network.biases, "tanh")
    )
    afterstates = game.after(window.traces.state, window.traces.action)
    labels = value_network._greedy_backups(game, window, afterstates, teacher, discount)
    assert np.abs(labels).max() <= 1
    over = afterstates["player"] == TERMINAL
    assert labels[over].tolist() == window.traces.return_[over].tolist()


# Held-out games.


def ids(games: int, rows: int = 3, generation: int = 1) -> np.ndarray:
    return np.repeat((generation << 32) + np.arange(games, dtype=np.int64), rows)


@given(st.lists(st.integers(1, 5), max_size=30), st.sampled_from([0.0, 0.1, 0.5, 0.9]))
def test_games_are_held_out_whole(lengths, share):
    game_id = np.repeat(ids(len(lengths), 1), lengths)
    held_out = held_out_rows(game_id, share)
    assert held_out.dtype == np.bool_ and len(held_out) == len(game_id)
    for game in np.unique(game_id):
        assert len(set(held_out[game_id == game].tolist())) == 1
    if share == 0.0:
        assert not held_out.any()


@pytest.mark.parametrize("share", [0.1, 0.2, 0.5, 0.9])
def test_about_the_asked_share_of_games_is_held_out(share):
    held_out = held_out_rows(ids(2000, rows=1), share)
    assert abs(held_out.mean() - share) < 5 * np.sqrt(share * (1 - share) / 2000)
    # Not the first ones, say: the share is the same in the first and in the second half.
    assert abs(held_out[:1000].mean() - held_out[1000:].mean()) < 0.15


def test_the_choice_is_by_game_and_not_by_its_rows():
    short, long = held_out_rows(ids(200, 1), 0.2), held_out_rows(ids(200, 7), 0.2)
    assert long[::7].tolist() == short.tolist()
    assert held_out_rows(ids(200, 1)[::-1], 0.2)[::-1].tolist() == short.tolist()


@pytest.mark.parametrize("more", [300, 1000])
def test_a_game_stays_on_its_side_when_the_window_grows(more):
    """Else a network that was warm-started has learned from what it is measured with."""
    before = held_out_rows(ids(200, 1), 0.2)
    game_id = np.concatenate([ids(200, 1), ids(more, 1, generation=2)])
    assert held_out_rows(game_id, 0.2)[:200].tolist() == before.tolist()


@pytest.mark.parametrize("share", [0.5, 0.6, 0.9])
@pytest.mark.parametrize("games", [1, 2, 3, 5])
def test_some_game_is_always_left_to_learn_from(games, share):
    assert not held_out_rows(ids(games), share).all()


def test_held_out_rows_only_measure(sumto12, teacher, rows_given):
    window = random_window(sumto12, 100)
    [(rows, held_out)] = rows_given(sumto12, window, teacher, settings_of(held_out=0.2))
    aside = held_out_rows(window.game_id, 0.2)
    afterstates = window.traces.state["sum"] + window.traces.action + 1
    assert rows.inputs.argmax(1).tolist() == afterstates[~aside].tolist()
    assert held_out.inputs.argmax(1).tolist() == afterstates[aside].tolist()
    assert len(rows.targets) + len(held_out.targets) == len(window)


# Symmetries.


def test_symmetries_double_the_rows_but_not_those_held_out(rows_given):
    game = make_game("k_in_a_row", **THREE)
    window = random_window(game, 60)
    previous = initial(game, settings_of(), 1)
    config = {"held_out": 0.25, "discount": 0.9}
    [(plain, aside)] = rows_given(game, window, previous, settings_of(symmetries=False, **config))
    [(rows, held_out)] = rows_given(game, window, previous, settings_of(**config))
    size = len(plain.targets)
    assert (rows.inputs[:size] == plain.inputs).all()
    assert rows.targets.tolist() == plain.targets.tolist() * 2
    assert (held_out.inputs == aside.inputs).all()
    # Two planes of rows from the bottom up: the image has its columns the other way round.
    boards = plain.inputs.reshape(size, 2, 4, 4)
    assert (rows.inputs[size:].reshape(size, 2, 4, 4) == boards[:, :, :, ::-1]).all()


def test_a_mirrored_window_teaches_the_same(rows_given):
    game = make_game("k_in_a_row", **THREE)
    games = [[0, 1, 0, 1, 0], [1, 0, 0, 2, 2, 3, 3, 3], [3, 3, 2, 2, 1]]
    mirrored = [[3 - column for column in columns] for columns in games]
    previous = initial(game, settings_of(), 1)

    def taught(window) -> list:
        [(rows, _)] = rows_given(game, window, previous, settings_of(discount=0.9))
        return sorted(
            (*inputs, target)
            for inputs, target in zip(rows.inputs.tolist(), rows.targets.tolist(), strict=True)
        )

    left, right = (
        window_of(game, games[:1] + games[2:]),
        window_of(game, mirrored[:1] + mirrored[2:]),
    )
    assert taught(left) == taught(right)


# Reports.


def test_calibration_by_hand():
    predicted = np.array([-1.0, -0.81, -0.79, 0.0, 0.05, 0.95, 1.0, 1.7, -3.0], np.float32)
    returns = np.array([-1.0, 1.0, 0.5, 0.0, 1.0, 1.0, 0.0, 1.0, -1.0], np.float32)
    bins = calibration(predicted, returns)
    assert [each["n"] for each in bins] == [3, 1, 2, 3]  # the other six bins are empty
    expected = [
        ((-1.0 - 0.81 - 3.0) / 3, (-1 + 1 - 1) / 3),
        (-0.79, 0.5),
        (0.025, 0.5),
        ((0.95 + 1 + 1.7) / 3, 2 / 3),
    ]
    for each, (mean, returned) in zip(bins, expected, strict=True):
        assert each["predicted"] == pytest.approx(mean, abs=1e-6)
        assert each["returned"] == pytest.approx(returned, abs=1e-6)


def test_calibration_is_measured_on_held_out_rows_if_there_are_any(sumto12):
    window = random_window(sumto12, 100)
    previous = initial(sumto12, settings_of(), 3)
    for share in (0.0, 0.25):
        _, report = fit(sumto12, window, previous, settings_of(held_out=share), 1)
        count = held_out_rows(window.game_id, share).sum() or len(window)
        assert sum(each["n"] for each in report["calibration"]) == count


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_the_report_tells_the_losses_of_the_policy_that_is_kept(sumto12, share):
    window = random_window(sumto12, 100)
    config = settings_of(targets="one_step", sweeps=3, epochs=4, held_out=share, learning_rate=0.2)
    _, report = fit(sumto12, window, initial(sumto12, config, 3), config, 1)
    curve = report["curve"]
    assert len(curve["train"]) == 12
    assert len(curve["held_out"]) == (12 if share else 0)
    if share:
        best = int(np.argmin(curve["held_out"][-4:])) - 4
        assert report["loss_held_out"] == curve["held_out"][best]
        assert report["loss_train"] == curve["train"][best]
    else:
        assert report["loss_held_out"] is None
        assert report["loss_train"] == curve["train"][-1]


# Fitting.


def parameters(policy) -> list[bytes]:
    return [each.tobytes() for each in (*policy.value.weights, *policy.value.biases)]


@pytest.mark.parametrize("targets", ["monte_carlo", "one_step"])
def test_a_fit_is_decided_by_its_seed(sumto12, targets):
    window = random_window(sumto12, 100)
    config = settings_of(targets=targets, held_out=0.1, epochs=2)
    previous = initial(sumto12, config, 3)
    before = parameters(previous)
    first, report = fit(sumto12, window, previous, config, 1)
    again, same = fit(sumto12, window, previous, config, 1)
    other, _ = fit(sumto12, window, previous, config, 2)
    assert parameters(first) == parameters(again) != parameters(other)
    assert report == same
    assert parameters(previous) == before


def test_a_warm_start_goes_on_from_the_previous_network(sumto12):
    window = random_window(sumto12, 50)
    still = {"learning_rate": 1e-9}
    previous = initial(sumto12, settings_of(), 3)
    warm, _ = fit(sumto12, window, previous, settings_of(**still), 1)
    cold, _ = fit(sumto12, window, previous, settings_of(warm_start=False, **still), 1)
    fresh = initial(sumto12, settings_of(), 1)
    for policy, start in ((warm, previous), (cold, fresh)):
        assert policy.value.weights[0] == pytest.approx(start.value.weights[0], abs=1e-6)
    assert np.abs(warm.value.weights[0] - cold.value.weights[0]).max() > 0.01


def test_the_first_policy_is_a_fresh_network_for_the_game(sumto12):
    policy = initial(sumto12, settings_of(hidden=[7, 5], output="tanh"), 3)
    assert [w.shape for w in policy.value.weights] == [(13, 7), (7, 5), (5, 1)]
    assert policy.value.output == "tanh"
    assert parameters(policy) == parameters(AfterstatePolicy(fresh_mlp(13, [7, 5], 1, "tanh", 3)))


@pytest.mark.parametrize("targets", ["monte_carlo", "one_step"])
def test_it_learns_sumto20_perfectly(targets):
    game = make_game("sumto", target=20, max_step=4)
    solved = game.solution()
    legal = game.legal_of(solved.states)
    config = settings_of(
        targets=targets,
        discount=0.95,
        hidden=[32],
        output="tanh",
        epochs=4,
        sweeps=4 if targets == "one_step" else 1,
        held_out=0.1,
    )
    policy = initial(game, config, 1)
    right = []
    for generation in range(1, 13):
        epsilon = [1.0] if generation == 1 else [0.4]
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
