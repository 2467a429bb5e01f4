"""A finished tree as flat arrays, and trees on disk."""

import json
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np

from pipeline.m5.binning import Binning, frozen
from pipeline.m5.options import Options
from pipeline.m5.regress import Regressions, Structure
from pipeline.m5.smooth import smoothed

FORMAT = 1


@dataclass(frozen=True, eq=False)
class Tree:
    """One model tree in the units of the data: M nodes in preorder, L leaves, T terms in all.

    A row goes left, to node i + 1, if x[feature] <= threshold, else to node `right`. At a leaf the
    prediction is intercept + sum of coefficient * x[term_feature], clipped to [low, high].
    """

    feature: np.ndarray  # int32 [M], -1 at a leaf
    threshold: np.ndarray  # float32 [M]
    right: np.ndarray  # int32 [M], the right child; at a leaf its number among the leaves
    weight: np.ndarray  # float64 [M], training rows by weight
    groups: np.ndarray  # int32 [M], distinct groups among them, 0 without groups
    mean: np.ndarray  # float64 [M], of the target
    deviation: np.ndarray  # float64 [M], standard deviation of the target
    error: np.ndarray  # float64 [M], root mean squared residual of the node's own model in training
    intercept: np.ndarray  # float64 [L]
    term_start: np.ndarray  # int32 [L+1], leaf l has the terms term_start[l]:term_start[l+1]
    term_feature: np.ndarray  # int32 [T]
    coefficient: np.ndarray  # float64 [T]
    term_mean: np.ndarray  # float64 [T], of the feature in the leaf's training rows
    term_deviation: np.ndarray  # float64 [T], its standard deviation there
    limits: np.ndarray  # float64 [2], least and largest target in training
    num_features: int

    @property
    def num_nodes(self) -> int:
        return len(self.feature)

    @property
    def num_leaves(self) -> int:
        return len(self.intercept)

    def children(self, node: int) -> tuple[int, int]:
        return node + 1, int(self.right[node])

    def depths(self) -> np.ndarray:
        """Tests above each node, int32 [M]."""
        depth = np.zeros(self.num_nodes, np.int32)
        for i in np.flatnonzero(self.feature >= 0):
            depth[list(self.children(int(i)))] = depth[i] + 1
        return depth

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything by name; `Tree.of(arrays)` is the same tree."""
        out = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "num_features"}
        return {**out, "num_features": np.array(self.num_features)}

    @staticmethod
    def of(arrays: dict[str, np.ndarray]) -> "Tree":
        """The tree of what `arrays` gave.

        Raises:
            ValueError: an array is missing, or they do not fit together.
        """
        names = [f.name for f in fields(Tree)]
        missing = [name for name in names if name not in arrays]
        if missing:
            raise ValueError(f"this is no tree: it lacks {', '.join(missing)}")
        kinds = {"threshold": np.float32, **dict.fromkeys(_WHOLE, np.int32)}
        parts = {
            name: frozen(arrays[name], kinds.get(name, np.float64))
            for name in names
            if name != "num_features"
        }
        tree = Tree(**parts, num_features=int(arrays["num_features"]))
        _check(tree)
        return tree


_WHOLE = ("feature", "right", "groups", "term_start", "term_feature")


def _check(tree: Tree) -> None:
    """Kernels read these arrays unchecked, so what comes from disk is checked here."""
    nodes, leaves = tree.num_nodes, tree.num_leaves
    inside = tree.feature >= 0
    own = np.arange(nodes)
    fits = (
        nodes == 2 * leaves - 1
        and all(len(part) == nodes for part in (tree.threshold, tree.right, tree.weight))
        and all(len(part) == nodes for part in (tree.groups, tree.mean, tree.deviation, tree.error))
        and inside.sum() == leaves - 1
        and (tree.feature < tree.num_features).all()
        and ((tree.right > own + 1) & (tree.right < nodes))[inside].all()
        and (np.sort(tree.right[~inside]) == np.arange(leaves)).all()
        and len(tree.term_start) == leaves + 1
        and tree.term_start[0] == 0
        and (np.diff(tree.term_start) >= 0).all()
        and all(
            len(part) == tree.term_start[-1]
            for part in (tree.term_feature, tree.coefficient, tree.term_mean, tree.term_deviation)
        )
        and ((tree.term_feature >= 0) & (tree.term_feature < tree.num_features)).all()
        and tree.limits.shape == (2,)
    )
    if not fits:
        raise ValueError("this is no tree: the sizes of its arrays do not fit together")


def assemble(
    binning: Binning,
    tests: Structure,
    fitted: Regressions,
    groups: np.ndarray,
    center: float,
    scale: float,
    limits: tuple[float, float],
    smoothing: float,
) -> Tree:
    """The tree in the data's units, of a structure and regressions in standardised ones.

    groups: distinct groups by node [M]; the target was (y - center) / scale.
    """
    leaves, intercepts, slopes = smoothed(tests, fitted, smoothing)
    nodes = _kept(tests, fitted.is_leaf)
    number = {int(node): i for i, node in enumerate(nodes)}
    leaf_number = {leaf: i for i, leaf in enumerate(leaves)}
    is_leaf = fitted.is_leaf[nodes]
    feature = np.where(is_leaf, -1, tests.feature[nodes])
    edge = np.where(is_leaf, 0, binning.edge_start[np.maximum(feature, 0)] + tests.cut[nodes])
    edges = binning.edges if len(binning.edges) else np.zeros(1, np.float32)
    right = [
        leaf_number[int(node)] if fitted.is_leaf[node] else number[int(tests.right[node])]
        for node in nodes
    ]
    n = fitted.weight[nodes]
    table = np.array(slopes)
    leaf, term = np.nonzero(table)
    coefficient = scale * table / binning.scale
    intercept = center + scale * np.array(intercepts) - coefficient @ binning.center
    arrays = {
        "feature": feature,
        "threshold": np.where(is_leaf, 0.0, edges[edge]),
        "right": right,
        "weight": n,
        "groups": groups[nodes],
        "mean": center + scale * fitted.target[nodes],
        "deviation": scale * fitted.target_deviation[nodes],
        "error": scale * np.sqrt(fitted.squares[nodes] / n),
        "intercept": intercept,
        "term_start": np.concatenate([[0], np.cumsum((table != 0.0).sum(1))]),
        "term_feature": term,
        "coefficient": coefficient[leaf, term],
        "term_mean": (fitted.means[leaves] * binning.scale + binning.center)[leaf, term],
        "term_deviation": (fitted.deviations[leaves] * binning.scale)[leaf, term],
        "limits": limits,
        "num_features": binning.num_features,
    }
    return Tree.of({name: np.asarray(part) for name, part in arrays.items()})


def _kept(tests: Structure, is_leaf: np.ndarray) -> np.ndarray:
    """The numbers of the nodes that pruning left, ascending."""
    kept, stack = [], [0]
    while stack:
        i = stack.pop()
        kept.append(i)
        if not is_leaf[i]:
            stack += [int(tests.right[i]), i + 1]
    return np.array(kept)


def bags_to_arrays(bags: Sequence[Sequence[Tree]]) -> dict[str, np.ndarray]:
    """Every field of all trees end to end, and how long each tree's part is."""
    trees = [tree.arrays() for bag in bags for tree in bag]
    arrays: dict[str, np.ndarray] = {}
    for name in trees[0] if trees else ():
        columns = [np.atleast_1d(tree[name]) for tree in trees]
        arrays[name] = np.concatenate(columns)
        arrays[f"{name}.length"] = np.array([len(column) for column in columns])
    return arrays


def bags_from_arrays(
    sizes: Sequence[int], arrays: Mapping[str, np.ndarray]
) -> list[tuple[Tree, ...]]:
    """What `bags_to_arrays` packed. sizes: trees of each bag; arrays may hold others too."""
    pieces = {
        name: np.split(arrays[name], np.cumsum(arrays[f"{name}.length"])[:-1])
        for name in arrays
        if f"{name}.length" in arrays
    }
    trees = []
    for each in range(sum(sizes)):
        part = {name: columns[each] for name, columns in pieces.items()}
        trees.append(Tree.of({**part, "num_features": part["num_features"][0]}))
    ends = np.cumsum(sizes).tolist()
    return [tuple(trees[end - size : end]) for size, end in zip(sizes, ends, strict=True)]


def save_trees(
    folder: str | Path,
    bags: dict[str, Sequence[Tree]],
    feature_names: Sequence[str],
    options: Options,
) -> None:
    """Writes named bags of trees as `trees.npz` (plain arrays) and `trees.json`."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {
        f"{b}/{t}/{name}": array
        for b, bag in enumerate(bags.values())
        for t, tree in enumerate(bag)
        for name, array in tree.arrays().items()
    }
    # Arrays are named by number: an npz is a zip, in which names of people's choice are paths.
    np.savez(folder / "trees.npz", **arrays)  # type: ignore[arg-type]
    about = {
        "format": FORMAT,
        "bags": {name: len(bag) for name, bag in bags.items()},
        "features": list(feature_names),
        "options": asdict(options),
    }
    (folder / "trees.json").write_text(json.dumps(about, indent=1, default=np.generic.item) + "\n")


def load_trees(folder: str | Path) -> tuple[dict[str, list[Tree]], list[str], Options]:
    """What `save_trees` wrote: bags of trees, feature names and options.

    Raises:
        ValueError: the folder holds another format, or arrays that are no trees.
    """
    folder = Path(folder)
    try:
        about = json.loads((folder / "trees.json").read_text())
    except ValueError as error:  # not JSON, or not even text
        raise ValueError(_damaged(folder / "trees.json", error)) from error
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        found = about.get("format") if isinstance(about, dict) else None
        raise ValueError(f"{folder}/trees.json has format {found!r}, this version reads {FORMAT}")
    try:
        # np.load leaves a file open that it opened and that is no archive.
        with open(folder / "trees.npz", "rb") as file, np.load(file) as archive:
            arrays = {key: archive[key] for key in archive.files}
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(_damaged(folder / "trees.npz", error)) from error
    bags: dict[str, list[Tree]] = {}
    for b, (name, count) in enumerate(about["bags"].items()):
        bags[name] = []
        for t in range(count):
            prefix = f"{b}/{t}/"
            parts = {
                key.removeprefix(prefix): array
                for key, array in arrays.items()
                if key.startswith(prefix)
            }
            bags[name].append(Tree.of(parts))
    return bags, about["features"], Options(**about["options"])


def _damaged(file: Path, error: Exception) -> str:
    return f"{file} is damaged ({error}); save the trees again"
