"""Learner `q_network`: Q(s, .) by a network with one output per action. docs/learners/q_network.md.

Two kinds of labels, each for the action that was played and for no other:

    monte_carlo   the discounted return of the decision, as in the Connect Four document
    q_learning    lambda-returns that bootstrap from the newest network's best action, relabelled
                  before every sweep; the policy of the sweep before is the target network
"""

from typing import Any

import numpy as np

from games import Game
from pipeline.config import QNetworkConfig
from pipeline.learners.common import Successors, calibration, held_out_rows, successors
from pipeline.learners.mlp_training import (
    Curve,
    Options,
    Rows,
    best_device,
    fresh_mlp,
    train,
    with_images,
)
from pipeline.policies.afterstates import unique_states
from pipeline.policies.mlp import MLP
from pipeline.policies.q_network import QNetworkPolicy
from pipeline.selfplay import Traces
from pipeline.targets import monte_carlo_targets, retrace_targets
from pipeline.traces import Window


def initial(game: Game, config: QNetworkConfig, seed: int) -> QNetworkPolicy:
    """A policy with a fresh network, from which a run starts."""
    return QNetworkPolicy(_fresh(game, config, seed))


def fit(
    game: Game, window: Window, previous: QNetworkPolicy, config: QNetworkConfig, seed: int
) -> tuple[QNetworkPolicy, dict[str, Any]]:
    """Learns Q from the window.

    Args:
        window: rows of the newest generations.
        previous: the policy of the generation before, whose network is the start if
            `config.warm_start`, and which labels the first sweep of q_learning.
        seed: decides the order of the rows, and a fresh network's weights.

    Returns:
        (policy, report). The report has the loss of every epoch on the rows that taught and on
        those held out, the calibration of the predictions, and `residual`, the mean distance of the
        last labels from the Q that they correct.
    """
    traces = window.traces
    generation = int(window.generation.max())
    discount = _of_generation(config.discount, generation)
    inputs = game.observations_of(traces.state, traces.player)
    actions = traces.action.astype(np.int64)
    held_out = held_out_rows(window.game_id, config.held_out)
    options = Options(
        config.loss,
        _of_generation(config.learning_rate, generation),
        config.weight_decay,
        config.batch,
        config.epochs,
        config.threads,
        config.optimizer,
    )
    device = best_device(config.device)
    network = previous.network if config.warm_start else _fresh(game, config, seed)
    curve = Curve()
    policy = previous
    residual = None
    following = _shaped(game, traces, successors(game, window), discount, config)
    # Only the targets change from sweep to sweep.
    symmetries = game.symmetries if config.symmetries else ()
    rows = with_images(
        Rows(inputs[~held_out], np.zeros(np.count_nonzero(~held_out)), actions[~held_out]),
        symmetries,
    )
    test_rows = Rows(inputs[held_out], np.zeros(0), actions[held_out])
    for sweep in range(config.sweeps):
        if config.targets == "q_learning":
            targets, residual = _backups(
                game, traces, following, policy, discount, config.trace_decay
            )
        else:
            targets = _returns(game, window, discount, config)
        rows = rows._replace(targets=np.tile(targets[~held_out], 1 + len(symmetries)))
        test_rows = test_rows._replace(targets=targets[held_out])
        network = train(network, rows, test_rows, options, seed + sweep, device, curve)
        policy = QNetworkPolicy(network)
    measured = np.flatnonzero(held_out) if held_out.any() else np.arange(len(inputs))
    predicted = network(inputs[measured])[np.arange(len(measured)), actions[measured]]
    returns = monte_carlo_targets(window.game_id, traces.player, traces.reward, discount)
    # The last sweep's labels are the ones the policy was fitted to.
    last = slice(-config.epochs, None)
    best = int(np.argmin(curve.held_out[last])) if curve.held_out else -1
    report = {
        "curve": {"train": curve.train, "held_out": curve.held_out},
        "loss_train": curve.train[last][best],
        "loss_held_out": curve.held_out[last][best] if curve.held_out else None,
        "calibration": calibration(predicted, returns[measured]),
        "residual": residual,
    }
    return policy, report


def _fresh(game: Game, config: QNetworkConfig, seed: int) -> MLP:
    return fresh_mlp(game.observation_size, config.hidden, game.num_actions, config.output, seed)


def _of_generation(values: list[float], generation: int) -> float:
    return values[min(generation, len(values)) - 1]


def _returns(game: Game, window: Window, discount: float, config: QNetworkConfig) -> np.ndarray:
    """Discounted returns float32 [N] over a player's own decisions, with the reward for a block."""
    traces = window.traces
    own = successors(game, window, own=True)
    rewards = _shaped(game, traces, own, discount, config).reward
    return monte_carlo_targets(window.game_id, traces.player, rewards, discount)


def _shaped(
    game: Game, traces: Traces, following: Successors, discount: float, config: QNetworkConfig
) -> Successors:
    extra = shaping_rewards(game, traces, following, discount, config)
    return following._replace(reward=following.reward + extra)


def shaping_rewards(
    game: Game, traces: Traces, following: Successors, discount: float, config: QNetworkConfig
) -> np.ndarray:
    """float32 [N], what is added to the rewards of decisions; zeros unless `config.shaping`.

    block: `config.shaping_reward` for an action by which the opponent would have won at once. It
    changes what is best: an agent may let threats arise so as to block them.
    potential: discount * sign * phi(s') - phi(s), where phi(s) is minus `shaping_reward` if the
    opponent threatens to win at once and 0 if not; 0 after the end. It leaves every ranking of
    actions as it was.

    Source: Ng, Harada & Russell, "Policy invariance under reward transformations" (1999), theorem
    1.
    """
    if config.shaping == "none":
        return np.zeros(len(traces), np.float32)
    threatened = np.empty((len(traces), game.num_actions), np.bool_)
    assert game.threats is not None  # pipeline.config refuses shaping without
    game.threats(game.rules, traces.state, threatened)
    size = np.float32(config.shaping_reward)
    if config.shaping == "block":
        return np.where(threatened[np.arange(len(traces)), traces.action], size, np.float32(0))
    potential = np.where(threatened.any(1), -size, np.float32(0))
    later = np.where(following.row >= 0, potential[following.row], 0.0)
    return (discount * following.sign * later - potential).astype(np.float32)


def _backups(
    game: Game,
    traces: Traces,
    following: Successors,
    teacher: QNetworkPolicy,
    discount: float,
    trace_decay: float,
) -> tuple[np.ndarray, float]:
    """Q-learning's labels float32 [N] under the teacher, and their mean distance from its Q.

    The policy that is learned is the greedy one, so a trace is cut where another action was played.
    """
    firsts, inverse = unique_states(traces.state)
    states = traces.state.take(firsts)
    q = teacher.action_values(game, states, game.legal_of(states))
    value = q.max(1)[inverse]
    taken = q[inverse, traces.action]
    ratio = (taken == value).astype(np.float32)
    labels = retrace_targets(
        following.reward,
        following.row,
        following.sign,
        taken,
        value,
        ratio,
        discount,
        trace_decay,
    )
    return labels, float(np.abs(labels - taken).mean())
