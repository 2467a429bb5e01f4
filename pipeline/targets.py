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


def _check_discount(discount: float) -> None:
    if not 0.0 <= discount <= 1.0:
        raise ValueError(f"discount must lie in [0, 1], got {discount}")
