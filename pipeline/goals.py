"""Rewards of the low level: whether a behaviour's sub-goal has been reached."""

import numpy as np

from games import Game
from games.game import MARKS
from pipeline.targets import next_own_decision


def goal_rewards(
    game: Game,
    game_id: np.ndarray,
    state: np.ndarray,
    player: np.ndarray,
    behaviour: np.ndarray,
    low_action: np.ndarray,
    ends: np.ndarray,
) -> np.ndarray:
    """float32 [N]: 1 where the sub-goal of a step's behaviour is reached before the player's next
    step or the end, else 0; NaN where a decision is no step.

    Args:
        game_id: integers [N], index into `ends`; rows of a game are consecutive and in order of
            play.
        behaviour, low_action: int8 [N], as in docs/traces.md.
        ends: [G], the states that the games ended in.
    """
    out = np.full(len(state), np.nan, np.float32)
    at = np.flatnonzero(low_action >= 0)
    if not len(at):
        return out
    hierarchy = game.hierarchy
    assert hierarchy is not None
    before, players, behaviours = state.take(at), player[at].astype(np.int32), behaviour[at]
    following = next_own_decision(game_id[at], players)
    after = before.take(np.maximum(following, 0))
    last = np.flatnonzero(following < 0)
    after[last] = ends.take(game_id[at[last]])
    marks, reached = np.empty((len(at), MARKS), np.int16), np.empty(len(at), np.bool_)
    hierarchy.mark(game.rules, before, players, behaviours, marks)
    hierarchy.reached(game.rules, after, players, behaviours, marks, reached)
    out[at] = reached
    return out
