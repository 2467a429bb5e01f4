"""Model trees (M5): trees whose leaves are linear models. docs/learners/m5.md has the formulas."""

import pipeline as pipeline  # points numba at the cache folder of these sources
from pipeline.m5.binning import Binned, Binning
from pipeline.m5.build import grow, grow_bag
from pipeline.m5.forest import (
    Forest,
    clipped_trees,
    make_forest,
    predict,
    predict_row,
    predict_rows,
)
from pipeline.m5.options import Options
from pipeline.m5.tree import (
    Tree,
    bags_from_arrays,
    bags_to_arrays,
    load_trees,
    save_trees,
)

__all__ = [
    "Binned",
    "Binning",
    "Forest",
    "Options",
    "Tree",
    "bags_from_arrays",
    "bags_to_arrays",
    "clipped_trees",
    "grow",
    "grow_bag",
    "load_trees",
    "make_forest",
    "predict",
    "predict_row",
    "predict_rows",
    "save_trees",
]
