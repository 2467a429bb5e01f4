"""What both learners of model trees do alike: a tree from some rows of a window, and its bins."""

from dataclasses import dataclass

import numpy as np

from pipeline import m5
from pipeline.config import TreesConfig
from pipeline.m5.binning import frozen


@dataclass(frozen=True)
class GrowTask:
    """Grows one tree, in whatever process. The fields are the arguments of `m5.grow`."""

    binned: m5.Binned
    targets: np.ndarray
    weight: np.ndarray
    games: np.ndarray
    options: m5.Options
    threads: int

    def run(self) -> m5.Tree:
        return m5.grow(
            self.binned, self.targets, self.weight, self.games, self.options, self.threads
        )


def grow_task(
    config: TreesConfig,
    binning: m5.Binning,
    codes: np.ndarray,
    targets: np.ndarray,
    game_id: np.ndarray,
    generation: np.ndarray,
    seed: int,
    threads: int,
) -> GrowTask:
    """A tree from n rows in which every game counts once, and the more the newer it is.

    Args:
        codes: uint8 [n, F], by the binning.
        targets: float32 [n].
        game_id, generation: integers [n].
        seed: decides which rows of a game the tree sees.
    """
    games = np.unique(game_id, return_inverse=True)[1]
    # From the newest of these rows on, which weighs something however old all of them are.
    weight = 0.5 ** ((generation.max() - generation) / config.half_life)
    weight /= np.bincount(games)[games]  # a game counts once, however many rows it has
    # As many rows as rows of equal weight would say as much.
    weight *= weight.sum() / (weight * weight).sum()
    options = m5.Options(
        split=config.split,
        min_leaf=config.min_leaf,
        min_groups=config.min_leaf_games,
        ridge=config.ridge,
        split_price=config.split_price,
        multiplier=config.multiplier,
        prune=config.prune,
        smoothing=config.smoothing,
        group_price=config.group_price,
        rows_per_group=config.rows_per_game,
        trees=1,
        seed=seed,
    )
    binned = m5.Binned(binning, frozen(codes, np.uint8))
    return GrowTask(binned, targets, weight, games, options, threads)


def finds_bins(newest: int) -> bool:
    """Are bins found anew in this generation? In 1, 2, 4, 8, ..: later play shows values that the
    first, random games did not."""
    return newest & (newest - 1) == 0
