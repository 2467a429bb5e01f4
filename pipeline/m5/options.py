"""The options of a model tree, checked once."""

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

SPLITS = ("score", "sdr")
FEATURES = ("all", "path", "subtree")
PRUNES = ("estimate", "holdout", "none")
_LARGEST = 1e12


@dataclass(frozen=True)
class Options:
    """How a tree, or a bag of trees, is grown. docs/learners/m5.md explains each one.

    Rows are counted by weight: a row of weight 2 counts as two rows.
    """

    split: str = "score"
    """`score`: split where the linear model changes; `sdr`: least remaining standard deviation."""

    features: str | None = None
    """What a node's model may use: `all`, `path` (tested on the path or below) or `subtree` (tested
    below, as in the paper). None: `all` for `score`, `path` for `sdr`."""

    min_leaf: float | None = None
    """Fewest rows of a leaf. None: 20, or n / 5000 where that is more; below 1000 rows n / 50."""

    min_groups: int = 20
    """Fewest distinct groups of a leaf; without groups it has no effect."""

    min_spread: float = 0.05
    """`sdr` leaves a node whole below this share of the root's standard deviation."""

    ridge: float = 1.0
    """Rows' worth of evidence that every slope is zero."""

    split_price: float = 2.0
    """How many parameters a split counts as: its cut is the best of very many."""

    multiplier: float = 2.0
    """m in the estimated error, rmse (n + m v) / (n - v) for v parameters."""

    prune: str = "estimate"
    """`estimate`: by estimated error; `holdout`: by the error on rows, or groups where there are
    any, that were held out of growing and fitting; `none`."""

    holdout: float = 0.25
    """Share of the groups (rows) that `prune="holdout"` holds out."""

    smoothing: float = 15.0
    """Rows' worth of evidence that the parent's model is right; 0 for none."""

    group_price: bool = True
    """Whether a parameter costs more as its feature and the error are alike within groups."""

    rows_per_group: int | None = 6
    """Most rows of one group that a tree sees, drawn at random; None for all."""

    trees: int | None = None
    """Trees in the bag, whose predictions are averaged. None: 4 with groups, 1 without."""

    bootstrap: bool = False
    """Whether each tree sees a bootstrap sample of the groups (rows)."""

    max_bins: int = 64
    """Bins of a feature with more than 255 distinct values."""

    seed: int = 0
    """Decides what is drawn at random: rows per group, bootstrap, holdout, rows of a score test."""

    def __post_init__(self):
        _one_of("split", self.split, SPLITS)
        _one_of("prune", self.prune, PRUNES)
        if self.features is not None:
            _one_of("features", self.features, FEATURES)
        _whole("min_groups", self.min_groups, 1, 1 << 31)
        _whole("max_bins", self.max_bins, 2, 255)
        _whole("seed", self.seed, 0, (1 << 63) - 1)
        _between("min_spread", self.min_spread, 0.0, 1.0)
        _between("ridge", self.ridge, 0.0, _LARGEST)
        _between("split_price", self.split_price, 0.0, _LARGEST)
        _between("multiplier", self.multiplier, 0.0, _LARGEST)
        _between("smoothing", self.smoothing, 0.0, _LARGEST)
        if not _is_number(self.holdout) or not 0.0 < self.holdout < 1.0:
            raise ValueError(f"holdout must lie between 0 and 1, got {self.holdout!r}")
        if self.min_leaf is not None:
            _between("min_leaf", self.min_leaf, 0.0, _LARGEST)
        if self.rows_per_group is not None:
            _whole("rows_per_group", self.rows_per_group, 1, 1 << 31)
        if self.trees is not None:
            _whole("trees", self.trees, 1, 1 << 20)

    def leaf_features(self) -> str:
        return self.features or ("all" if self.split == "score" else "path")

    def least_leaf(self, n: float) -> float:
        """The fewest rows of a leaf of a tree over n rows."""
        if self.min_leaf is not None:
            return max(float(self.min_leaf), 1.0)
        return max(n / 5000, min(20.0, max(4.0, n / 50)))

    def bag_size(self, grouped: bool) -> int:
        return self.trees if self.trees is not None else (4 if grouped else 1)


def _one_of(name: str, value: Any, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}, got {value!r}")


def _whole(name: str, value: Any, low: int, high: int) -> None:
    if not _is_number(value) or int(value) != value or not low <= value <= high:
        raise ValueError(f"{name} must be a whole number in {low}..{high}, got {value!r}")


def _between(name: str, value: Any, low: float, high: float) -> None:
    if not _is_number(value) or not low <= value <= high:
        raise ValueError(f"{name} must lie in [{low:g}, {high:g}], got {value!r}")


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
