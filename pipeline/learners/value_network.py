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
from pipeline.learners.common import calibration, held_out_rows, successors
from pipeline.learners.mlp_training import (
    Curve,
    Options,
    Rows,
    best_device,
    fresh_mlp,
    train,
    with_images,
)
from pipeline.policies.afterstates import AfterstatePolicy, unique_states
from pipeline.policies.mlp import MLP
from pipeline.targets import monte_carlo_targets, one_step_targets
from pipeline.traces import Window


def initial(game: Game, config: ValueNetworkConfig, seed: int) -> AfterstatePolicy:
    """A policy with a fresh network, from which a run starts."""
    return AfterstatePolicy(fresh_mlp(game.observation_size, config.hidden, 1, config.output, seed))


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
    own = config.opponent == "environment"
    curve = Curve()
    policy = previous
    for sweep in range(config.sweeps):
        targets = returns
        if config.targets == "one_step":
            targets = _greedy_backups(game, window, afterstates, policy, config.discount, own)
        train_rows = Rows(inputs[~held_out], targets[~held_out])
        if config.symmetries:
            train_rows = with_images(train_rows, game.symmetries)
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
        "calibration": calibration(policy.value(inputs[measured])[:, 0], returns[measured]),
    }
    return policy, report


def _start(game: Game, previous: AfterstatePolicy, config: ValueNetworkConfig, seed: int) -> MLP:
    fresh = fresh_mlp(game.observation_size, config.hidden, 1, config.output, seed)
    if not config.warm_start:
        return fresh
    assert isinstance(previous.value, MLP)
    return previous.value


def _greedy_backups(
    game: Game,
    window: Window,
    afterstates: np.ndarray,
    teacher: AfterstatePolicy,
    discount: float,
    own: bool = False,
) -> np.ndarray:
    """One-step targets: what the next decision is worth under the teacher's best action there.

    Whose decision that is, and what is paid until then: `common.successors`.
    """
    traces = window.traces
    following = successors(game, window, own)
    last = (following.row < 0) | (afterstates["player"] == TERMINAL)
    rewards = np.where(last, traces.reward, following.reward)
    next_values = np.zeros(len(traces), np.float32)
    if not last.all():
        best = _best_values(game, traces.state[following.row[~last]], teacher)
        next_values[~last] = best * following.sign[~last]
    return one_step_targets(rewards, next_values, last, discount)


def _best_values(game: Game, states: np.ndarray, teacher: AfterstatePolicy) -> np.ndarray:
    """max_a Q(s, a) float32 [N]; equal states are evaluated once."""
    firsts, inverse = unique_states(states)
    best = np.empty(len(firsts), np.float32)
    for start in range(0, len(firsts), 4096):  # every legal action is stepped: bound the memory
        some = states.take(firsts[start : start + 4096])
        best[start : start + 4096] = teacher.action_values(game, some, game.legal_of(some)).max(1)
    return best[inverse]
