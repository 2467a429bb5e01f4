"""The library as a scikit-learn estimator. Nothing else here needs scikit-learn."""

from dataclasses import fields
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from pipeline.m5.binning import Binned, check_table
from pipeline.m5.build import check_rows, grow_bag
from pipeline.m5.forest import make_forest, predict
from pipeline.m5.options import Options
from pipeline.m5.tree import load_trees, save_trees


class M5Regressor(RegressorMixin, BaseEstimator):
    """A model tree, or a bag of them, that predicts one number from float32 features.

    The parameters are those of `Options`, and `threads`, which changes the time and nothing else.

    After `fit`: `trees_` (list of `Tree`), `forest_` (for kernels), `n_features_in_`, and
    `feature_names_in_` where X had names.
    """

    def __init__(
        self,
        split="score",
        features=None,
        min_leaf=None,
        min_groups=20,
        min_spread=0.05,
        ridge=1.0,
        split_price=2.0,
        multiplier=2.0,
        prune="estimate",
        holdout=0.25,
        smoothing=15.0,
        group_price=True,
        rows_per_group=6,
        trees=None,
        bootstrap=False,
        max_bins=64,
        seed=0,
        threads=1,
    ):
        self.split = split
        self.features = features
        self.min_leaf = min_leaf
        self.min_groups = min_groups
        self.min_spread = min_spread
        self.ridge = ridge
        self.split_price = split_price
        self.multiplier = multiplier
        self.prune = prune
        self.holdout = holdout
        self.smoothing = smoothing
        self.group_price = group_price
        self.rows_per_group = rows_per_group
        self.trees = trees
        self.bootstrap = bootstrap
        self.max_bins = max_bins
        self.seed = seed
        self.threads = threads

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> "M5Regressor":
        """Grows the trees.

        Args:
            X: [N, F], finite numbers that float32 can hold.
            y: [N], finite.
            sample_weight: [N] or None: a row of weight 2 counts as two rows.
            groups: [N] or None: rows with the same entry are not independent, such as rows of one
                game; pruning, bootstrap, prices and the size of leaves then go by group.

        Raises:
            ValueError: an option is out of its range, shapes do not fit, or a number is not finite.
        """
        options = self._options()
        X = self._table(X, y=y, y_numeric=True)
        y = column_or_1d(y, warn=True)
        y, weight, groups = check_rows(len(X), y, sample_weight, groups)
        if not weight.all():  # rows without weight would still shape the bins
            some = weight != 0.0
            X, y, weight = X[some], y[some], weight[some]
            groups = None if groups is None else groups[some]
        binned = Binned.fit(X, options.max_bins, self.threads)
        self.trees_ = grow_bag(binned, y, weight, groups, options, self.threads)
        self.forest_ = make_forest([self.trees_])
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The predictions for X [N, F], float64 [N].

        Raises:
            ValueError: X has other columns than in `fit`, or a number that is not finite.
        """
        check_is_fitted(self)
        X = self._table(X, reset=False)
        return predict(self.forest_, X, self.threads)[:, 0]

    def save(self, folder: str | Path) -> None:
        """Writes the fitted trees as plain arrays and JSON; `M5Regressor.load` reads them."""
        check_is_fitted(self)
        save_trees(folder, {"all": self.trees_}, self.names(), self._options())

    @staticmethod
    def load(folder: str | Path) -> "M5Regressor":
        """A fitted estimator that predicts what the saved one did."""
        bags, names, options = load_trees(folder)
        model = M5Regressor(**{f.name: getattr(options, f.name) for f in fields(Options)})
        model.trees_ = bags["all"]
        model.forest_ = make_forest([model.trees_])
        model.n_features_in_ = len(names)
        if names != [str(column) for column in range(len(names))]:
            model.feature_names_in_ = np.array(names, object)
        return model

    def names(self) -> list[str]:
        """The features' names; their numbers where X had none."""
        given = getattr(self, "feature_names_in_", range(self.n_features_in_))
        return [str(name) for name in given]

    def _options(self) -> Options:
        whole = isinstance(self.threads, Integral) and not isinstance(self.threads, bool)
        if not whole or self.threads < 1:
            raise ValueError(f"threads must be a whole number from 1 on, got {self.threads!r}")
        return Options(**{f.name: getattr(self, f.name) for f in fields(Options)})

    def _table(self, X, **checks):
        """X as float32 [N, F]: scikit-learn's checks of its shape, ours that all is finite."""
        names = getattr(X, "columns", None)
        X = validate_data(self, X, dtype="numeric", ensure_all_finite=False, **checks)
        X = X[0] if isinstance(X, tuple) else X
        return check_table(X, None if names is None else [str(name) for name in names])
