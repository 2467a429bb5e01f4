"""What learners measure alike: on games that did not teach, and against what games paid."""

import numpy as np

from pipeline.streams import mix

CALIBRATION_BINS = 10


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
