"""Learner `value_network`: V of afterstates by a network. docs/learners/value_network.md.

Two kinds of labels:

    monte_carlo   the discounted return of the decision that led to the afterstate, as in the
                  SumTo100 document
    one_step      what the newest network says of the best reply, relabelled before every sweep;
                  actions that end the game are scored by the rules

"""

from typing import Any

import numpy as np

from games import TERMINAL, Game
from pipeline.config import ValueNetworkConfig
from pipeline.learners.mlp_training import Curve, Options, Rows, best_device, fresh_mlp, train
from pipeline.policies.afterstates import AfterstatePolicy, unique_states
from pipeline.policies.mlp import MLP
from pipeline.streams import mix
from pipeline.targets import monte_carlo_targets, next_own_decision, one_step_targets
from pipeline.traces import Window

CALIBRATION_BINS = 10


def initial(game: Game, config: ValueNetworkConfig, seed: int) -> AfterstatePolicy:
    """A policy with a fresh network, from which a run starts."""
    return AfterstatePolicy(fresh_mlp(game.observation_size, config.hidden, config.output, seed))


def fit(
    game: Game, window: Window, previous: AfterstatePolicy, config: ValueNetworkConfig, seed: int
) -> tuple[AfterstatePolicy, dict[str, Any]]:
    """Learns V from the window.

    Args:
        window: rows of the newest generations.
        previous: the policy of the generation before, whose network is the start if
            `config.warm_start`, and which labels the first sweep of one_step.
        seed: decides the order of the rows, and a fresh network's weights.

    Returns:
        (policy, report). The report has the loss of every epoch on the rows that taught and on
        those held out, and the calibration of the predictions.
    """
    traces = window.traces
    afterstates = game.after(traces.state, traces.action)
    inputs = game.observations_of(afterstates, traces.player)
    returns = monte_carlo_targets(window.game_id, traces.player, traces.reward, config.discount)
    held_out = held_out_rows(window.game_id, config.held_out)
    options = Options(
        config.loss,
        config.learning_rate,
        config.weight_decay,
        config.batch,
        config.epochs,
        config.threads,
    )
    device = best_device(config.device)
    network = _start(game, previous, config, seed)
    curve = Curve()
    policy = previous
    for sweep in range(config.sweeps):
        targets = returns
        if config.targets == "one_step":
            targets = _greedy_backups(game, window, afterstates, policy, config.discount)
        train_rows = Rows(inputs[~held_out], targets[~held_out])
        if config.symmetries:
            train_rows = _with_images(game, train_rows)
        test_rows = Rows(inputs[held_out], targets[held_out])
        network = train(network, train_rows, test_rows, options, seed + sweep, device, curve)
        policy = AfterstatePolicy(network)
    measured = held_out if held_out.any() else np.ones(len(inputs), np.bool_)
    # The last sweep's labels are the ones the policy was fitted to.
    last = slice(-config.epochs, None)
    best = int(np.argmin(curve.held_out[last])) if curve.held_out else -1
    report = {
        "curve": {"train": curve.train, "held_out": curve.held_out},
        "loss_train": curve.train[last][best],
        "loss_held_out": curve.held_out[last][best] if curve.held_out else None,
        "calibration": calibration(policy.value(inputs[measured]), returns[measured]),
    }
    return policy, report


def _start(game: Game, previous: AfterstatePolicy, config: ValueNetworkConfig, seed: int) -> MLP:
    fresh = fresh_mlp(game.observation_size, config.hidden, config.output, seed)
    if not config.warm_start:
        return fresh
    assert isinstance(previous.value, MLP)
    return previous.value


def held_out_rows(game_id: np.ndarray, share: float) -> np.ndarray:
    """bool [N]: rows of the games that only measure. Whole games, since rows of a game share their
    outcome; chosen by a hash of the game's number, so that a game stays on its side."""
    if share == 0.0:
        return np.zeros(len(game_id), np.bool_)
    games, inverse = np.unique(game_id, return_inverse=True)
    with np.errstate(over="ignore"):
        hashes = np.array([int(mix(np.uint64(game))) for game in games], np.uint64)
    chosen = hashes < np.uint64(share * 2**64)
    if chosen.all() and len(games):
        chosen[np.argmax(hashes)] = False  # something must teach
    return chosen[inverse]


def _greedy_backups(
    game: Game,
    window: Window,
    afterstates: np.ndarray,
    teacher: AfterstatePolicy,
    discount: float,
) -> np.ndarray:
    """One-step targets: what the next decision is worth under the teacher's best action there.

    In a two-player zero-sum game the next decision is the next row of the game, whoever's it is,
    and what the opponent wins there is lost here. In any other game it is the player's own next
    decision, what the others do in between being as it was played. Chance and forced actions in
    between are as they were played.
    """
    traces = window.traces
    size = len(traces)
    if game.zero_sum and game.num_players == 2:
        following = np.append(window.game_id[1:] == window.game_id[:-1], False)
        next_row = np.where(following, np.arange(size) + 1, -1)
    else:
        next_row = next_own_decision(window.game_id, traces.player)
    last = (next_row < 0) | (afterstates["player"] == TERMINAL)
    at = next_row[~last]
    rewards = traces.reward.copy()  # to the player's next decision, or the end
    next_values = np.zeros(size, np.float32)
    if len(at):
        player = traces.player[~last]
        rows = np.arange(len(at))
        # To the next decision, which may be the opponent's and come before that.
        so_far = game.returns_of(traces.state[~last])[rows, player]
        rewards[~last] = game.returns_of(traces.state[at])[rows, player] - so_far
        best = _best_values(game, traces.state[at], teacher)
        next_values[~last] = np.where(traces.player[at] == player, best, -best)
    return one_step_targets(rewards, next_values, last, discount)


def _best_values(game: Game, states: np.ndarray, teacher: AfterstatePolicy) -> np.ndarray:
    """max_a Q(s, a) float32 [N]; equal states are evaluated once."""
    firsts, inverse = unique_states(states)
    best = np.empty(len(firsts), np.float32)
    for start in range(0, len(firsts), 4096):  # every legal action is stepped: bound the memory
        some = states.take(firsts[start : start + 4096])
        best[start : start + 4096] = teacher.action_values(game, some, game.legal_of(some)).max(1)
    return best[inverse]


def calibration(predicted: np.ndarray, returns: np.ndarray) -> list[dict[str, float]]:
    """Mean prediction and mean discounted return in bins of equal width over [-1, 1]."""
    bins = np.clip(((predicted + 1) / 2 * CALIBRATION_BINS).astype(int), 0, CALIBRATION_BINS - 1)
    return [
        {
            "predicted": float(predicted[bins == each].mean()),
            "returned": float(returns[bins == each].mean()),
            "n": int((bins == each).sum()),
        }
        for each in range(CALIBRATION_BINS)
        if (bins == each).any()
    ]


def _with_images(game: Game, rows: Rows) -> Rows:
    """The rows, and their images under the game's symmetries."""
    images = [rows.inputs[:, symmetry.observation] for symmetry in game.symmetries]
    return Rows(
        np.concatenate([rows.inputs, *images]),
        np.concatenate([rows.targets] * (1 + len(images))),
    )
