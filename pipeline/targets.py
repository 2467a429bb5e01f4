"""Learning targets as pure functions over the rows of a replay window, each with its source."""

from typing import NamedTuple

import numpy as np
from numba import njit

from games import Game
from pipeline.selfplay import Traces


@njit(cache=True)
def _discounted(game_id, player, rewards, discount, players, out):
    later = np.zeros(players, np.float64)
    for i in range(len(game_id) - 1, -1, -1):
        if i == len(game_id) - 1 or game_id[i + 1] != game_id[i]:
            later[:] = 0.0
        who = player[i]
        later[who] = rewards[i] + discount * later[who]
        out[i] = later[who]


def monte_carlo_targets(
    game_id: np.ndarray, player: np.ndarray, rewards: np.ndarray, discount: float
) -> np.ndarray:
    """Discounted return of every decision: G_t = r_t + discount * G_t+1 over a player's own ones.

    With a single reward at the end this is discount^d times it, d being how many own decisions
    followed: the SumTo100 document's label.

    Args:
        game_id: integers [N]; the rows of a game are consecutive and in order of play.
        player: integers [N], who decided.
        rewards: float32 [N], from each decision to the player's next one.
        discount: gamma in [0, 1], per own decision.

    Returns:
        float32 [N].

    Raises:
        ValueError: `discount` lies outside [0, 1].

    Source: Sutton & Barto, Reinforcement Learning, 2nd ed. (2018), eq. 3.9.
    """
    _check_discount(discount)
    out = np.empty(len(game_id), np.float32)
    players = int(player.max(initial=0)) + 1
    _discounted(game_id, player, rewards, discount, players, out)
    return out


@njit(cache=True)
def _next_own(game_id, player, players, out):
    later = np.full(players, -1, np.int64)
    for i in range(len(game_id) - 1, -1, -1):
        if i == len(game_id) - 1 or game_id[i + 1] != game_id[i]:
            later[:] = -1
        out[i] = later[player[i]]
        later[player[i]] = i


def next_own_decision(game_id: np.ndarray, player: np.ndarray) -> np.ndarray:
    """Row of the same player's next decision in the same game, int64 [N]; -1 after the last."""
    out = np.empty(len(game_id), np.int64)
    _next_own(game_id, player, int(player.max(initial=0)) + 1, out)
    return out


def one_step_targets(
    rewards: np.ndarray, next_values: np.ndarray, last: np.ndarray, discount: float
) -> np.ndarray:
    """One-step targets r + discount * V(next), for rows old and new alike.

    Args:
        rewards: float32 [N], until the state whose value follows.
        next_values: float32 [N], V of that state from the acting player's side; not read where
            `last`.
        last: bool [N], nothing follows.
        discount: gamma in [0, 1], per step.

    Returns:
        float32 [N].

    Raises:
        ValueError: `discount` lies outside [0, 1].

    Source: Sutton & Barto, Reinforcement Learning, 2nd ed. (2018), eq. 6.1.
    """
    _check_discount(discount)
    return np.where(last, rewards, rewards + discount * next_values).astype(np.float32)


class Successors(NamedTuple):
    """Where the value of each decision goes on. N rows of a window."""

    row: np.ndarray  # int64 [N]: row of the decision that follows; -1: none, the game ends
    sign: np.ndarray  # float32 [N]: -1 where what that decision wins is lost here, else 1
    reward: np.ndarray  # float32 [N]: received until then, or until the end


def successors(game: Game, traces: Traces, game_id: np.ndarray) -> Successors:
    """The decision that each one leads to.

    In a two-player zero-sum game it is the next row of the game, whoever's it is, and what the
    opponent wins there is lost here. In any other game it is the player's own next decision, what
    the others do in between being as it was played. Chance and forced actions in between are as
    they were played.

    Args:
        game_id: integers [N]; the rows of a game are consecutive and in order of play.
    """
    player = traces.player
    if not (game.zero_sum and game.num_players == 2):
        row = next_own_decision(game_id, player)
        return Successors(row, np.ones(len(row), np.float32), traces.reward)
    row = np.where(np.append(game_id[1:] == game_id[:-1], False), np.arange(1, len(player) + 1), -1)
    at = np.flatnonzero(row >= 0)
    sign = np.ones(len(player), np.float32)
    sign[at] = np.where(player[row[at]] == player[at], 1.0, -1.0)
    reward = traces.reward.copy()
    so_far = game.returns_of(traces.state)
    reward[at] = so_far[row[at], player[at]] - so_far[at, player[at]]
    return Successors(row, sign, reward)


@njit(cache=True)
def _retrace(row, sign, reward, taken, value, ratio, discount, decay, out):
    for i in range(len(row) - 1, -1, -1):
        out[i] = reward[i]
        j = row[i]
        if j >= 0:
            out[i] += discount * sign[i] * (value[j] + decay * ratio[j] * (out[j] - taken[j]))


def retrace_targets(
    following: Successors,
    taken: np.ndarray,
    value: np.ndarray,
    ratio: np.ndarray,
    discount: float,
    trace_decay: float,
) -> np.ndarray:
    """Lambda-returns of every decision, old or new, cut where what was played has become unlikely.

    y_t = r_t + discount * sign_t * (V(s_t+1) + lambda * c_t+1 * (y_t+1 - Q(s_t+1, a_t+1)))

    Args:
        following: where each decision leads; rows are in order of play.
        taken: float [N], Q(s, a) of the action played, from the acting player's side.
        value: float [N], V(s) under the policy that is learned.
        ratio: float [N], c = min(1, pi(a | s) / mu(a | s)) of the action played.
        discount: gamma in [0, 1], per step to the successor.
        trace_decay: lambda in [0, 1]; 0 gives one-step targets.

    Returns:
        float32 [N].

    Raises:
        ValueError: `discount` or `trace_decay` lies outside [0, 1].

    Source: Munos et al., "Safe and efficient off-policy reinforcement learning" (2016), eq. 4, with
    the sign of a game in turns.
    """
    _check_discount(discount)
    if not 0.0 <= trace_decay <= 1.0:
        raise ValueError(f"trace_decay must lie in [0, 1], got {trace_decay}")
    out = np.empty(len(taken), np.float64)
    _retrace(*following, taken, value, ratio, discount, trace_decay, out)
    return out.astype(np.float32)


def _check_discount(discount: float) -> None:
    if not 0.0 <= discount <= 1.0:
        raise ValueError(f"discount must lie in [0, 1], got {discount}")
