"""Learning targets as pure functions over the rows of a replay window, each with its source."""

import numpy as np
from numba import njit


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


@njit(cache=True)
def _retrace(rewards, next_row, sign, taken, value, ratio, discount, trace_decay, out):
    for i in range(len(rewards) - 1, -1, -1):
        j = next_row[i]
        out[i] = rewards[i]
        if j >= 0:
            later = trace_decay * ratio[j] * (out[j] - taken[j])
            out[i] += discount * sign[i] * (value[j] + later)


def retrace_targets(
    rewards: np.ndarray,
    next_row: np.ndarray,
    sign: np.ndarray,
    taken: np.ndarray,
    value: np.ndarray,
    ratio: np.ndarray,
    discount: float,
    trace_decay: float,
) -> np.ndarray:
    """Lambda-returns of decisions old and new, cut where the action played has become unlikely.

    With j the decision that follows i:

        y_i = r_i + discount * sign_i * (V(s_j) + lambda c_j (y_j - Q(s_j, a_j)))

    which is the sum of the paper's temporal differences in one pass from the end. With sign = -1
    from a player to the opponent it is the same for the two sides of a zero-sum game, both of whom
    follow the policy that V and c are of.

    Args:
        rewards: float32 [N], of the acting player until the decision that follows, or the end.
        next_row: int64 [N], the row of that decision, greater than the own one; -1: the end.
        sign: float [N], 1 where the same player decides there, -1 where the opponent does.
        taken: float [N], Q(s, a) of the action played.
        value: float [N], V(s) = sum over legal a of pi(a | s) Q(s, a).
        ratio: float [N], c = min(1, pi(a | s) / mu(a | s)) of the action played by mu.
        discount: gamma in [0, 1], per decision.
        trace_decay: lambda in [0, 1]; 0 is expected SARSA, 1 with all c = 1 whole returns.

    Returns:
        float32 [N].

    Raises:
        ValueError: `discount` or `trace_decay` lies outside [0, 1].

    Source: Munos et al., "Safe and efficient off-policy reinforcement learning" (2016), eq. 4.
    """
    _check_discount(discount)
    if not 0.0 <= trace_decay <= 1.0:
        raise ValueError(f"trace_decay must lie in [0, 1], got {trace_decay}")
    out = np.empty(len(rewards), np.float64)
    columns = [np.asarray(each, np.float64) for each in (rewards, sign, taken, value, ratio)]
    rewards, sign, taken, value, ratio = columns
    _retrace(rewards, next_row, sign, taken, value, ratio, discount, trace_decay, out)
    return out.astype(np.float32)


def _check_discount(discount: float) -> None:
    if not 0.0 <= discount <= 1.0:
        raise ValueError(f"discount must lie in [0, 1], got {discount}")
