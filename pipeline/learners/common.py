"""What every learner needs: which games only measure, what follows a decision, calibration."""

import os
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from games import Game
from pipeline.streams import game_keys, mix
from pipeline.targets import next_own_decision
from pipeline.traces import Window

CALIBRATION_BINS = 10


def usable_cpus() -> int:
    """The CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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


class Helpers(Protocol):
    """Other processes that take work off the one that learns (`pipeline.actors`)."""

    def run_all(self, tasks: Sequence[Any], threads: int) -> list[Any]:
        """[task.run() for task in tasks], by them and by so many threads of this process."""
        ...


class Sides(NamedTuple):
    """Which rows teach and which only measure, bool [N] each."""

    teaching: np.ndarray
    held_out: np.ndarray
    """whole games"""
    rows: np.ndarray
    """single rows of the other games, so that what is learned of a game by heart shows; all rows
    where nothing is held out"""

    @property
    def judging(self) -> np.ndarray:
        return self.held_out if self.held_out.any() else self.rows

    @staticmethod
    def of(game_id: np.ndarray, share: float) -> "Sides":
        """Args: game_id integers [N]; share of the games, and of the rows of the others."""
        held_out = held_out_rows(game_id, share)
        places = game_keys(0, "measured rows", 0, np.arange(len(game_id)))
        rows = ~held_out & (places < np.uint64(share * 2**64))
        teaching = ~held_out & ~rows
        if not rows.any() or not teaching.any():
            return Sides(~held_out, held_out, ~held_out)
        return Sides(teaching, held_out, rows)


class Successors(NamedTuple):
    """For each decision the one that follows it, whose value it can be told by."""

    row: np.ndarray
    """int64 [N], -1 where nothing follows"""
    sign: np.ndarray
    """float32 [N], 1 where the same player decides there, -1 where the opponent does"""
    reward: np.ndarray
    """float32 [N], of the acting player until then, or until the end"""


def negamax(game: Game) -> bool:
    """Can a value be read from the other side by turning its sign?"""
    return game.zero_sum and game.num_players == 2


def successors(game: Game, window: Window, own: bool = False) -> Successors:
    """What follows each decision.

    In a two-player zero-sum game that is the next decision of the game, whoever's it is: what the
    opponent wins there is lost here. In any other game, and with `own`, it is the player's own next
    decision, what the others do in between being as it was played. Chance and forced actions in
    between are as they were played.
    """
    traces = window.traces
    size = len(traces)
    if own or not negamax(game):
        row = next_own_decision(window.game_id, traces.player)
        return Successors(row, np.ones(size, np.float32), traces.reward)
    same_game = np.append(window.game_id[1:] == window.game_id[:-1], False)
    row = np.where(same_game, np.arange(size) + 1, -1)
    there = np.flatnonzero(row >= 0)
    player = traces.player[there]
    at = row[there]
    # `reward` of a trace counts to the player's own next decision; the opponent's may come first.
    reward = traces.reward.copy()
    so_far = game.returns_of(traces.state.take(there))
    until = game.returns_of(traces.state.take(at))
    rows = np.arange(len(there))
    reward[there] = until[rows, player] - so_far[rows, player]
    sign = np.ones(size, np.float32)
    sign[there] = np.where(traces.player[at] == player, 1.0, -1.0)
    return Successors(row, sign, reward)


def calibration(predicted: np.ndarray, returns: np.ndarray) -> list[dict[str, float]]:
    """Mean prediction and mean discounted return in bins of equal width over [-1, 1]."""
    places = (predicted + 1) / 2 * CALIBRATION_BINS
    bins = np.clip(places, 0, CALIBRATION_BINS - 1).astype(int)
    return [
        {
            "predicted": float(predicted[bins == each].mean()),
            "returned": float(returns[bins == each].mean()),
            "n": int((bins == each).sum()),
        }
        for each in range(CALIBRATION_BINS)
        if (bins == each).any()
    ]
