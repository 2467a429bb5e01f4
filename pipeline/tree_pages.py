"""The trees of a generation for people: a picture per bag, and one page with all of them.

The page stands alone: style, script and data are inside, nothing is fetched or stored, so it may be
mailed, kept as an artifact or shown in a sandboxed frame that allows scripts alone. Its source is
in `pipeline/pages/`. Numbers in it have four significant digits.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib import resources
from typing import Any

import numpy as np

from games import Game
from pipeline import traces
from pipeline.behaviour_reader import BehaviourReader
from pipeline.m5 import Tree, compare
from pipeline.m5.draw import Shown, share_of_games, shown, tree_svg
from pipeline.m5.explain import (
    SMALL,
    Explanation,
    base_of_leaf,
    importance,
    leaf_terms,
    routed,
)
from pipeline.policies.afterstates import unique_states
from pipeline.policies.hierarchical import HierarchicalPolicy
from pipeline.policies.store import cached_game, load_policy
from pipeline.run import Run
from pipeline.tree_reader import Move, Reader, TreeReader

MAX_POSITIONS = 50
_MAX_ROWS = 2000  # that both generations are asked about, to see what has moved
_MAX_NODES = 12_000  # on a page, over all its trees
_LEAST_NODES = 31  # of a tree, however many trees there are
_MAX_TERMS = 12  # of a formula or an explanation
_MAX_FEATURES = 12  # of the list of most used ones

Table = Sequence[Mapping[str, Any]]  # rows of trees.parquet: a bag each


@dataclass(frozen=True)
class Sample:
    """Decisions of self-play, to read the trees by."""

    states: np.ndarray  # [N], all different
    chosen: np.ndarray  # int32 [N, Q], as `Reader.chosen`
    returns: np.ndarray  # float32 [N], what the player received in the end


def generation_pages(run: Run, generation: int) -> dict[str, bytes]:
    """The files of one generation by name: `index.html` and `<bag>.svg`. None without trees.

    Raises:
        UserError: the generation is not complete, or a file of it is damaged.
    """
    config = run.config
    game = cached_game(config.game_name, config.game_params)
    reader = read_policy(run, game, generation)
    if reader.empty:
        return {}
    before = read_policy(run, game, generation - 1) if generation > 0 else None
    files = {name: svg.encode() for name, svg in pictures(reader, generation).items()}
    asked = sample(run, reader, generation)
    data = page_data(reader, generation, before, asked, run.table(generation, "trees"))
    title = f"{game.name}: trees of run {run.name}, generation {generation}"
    return {"index.html": page(title, data).encode(), **files}


def read_policy(run: Run, game: Game, generation: int) -> Reader:
    """The reader of a generation's policy."""
    policy: Any = load_policy(run.storage, run.policy(generation), game)
    if isinstance(policy, HierarchicalPolicy):
        return BehaviourReader(game, policy)
    return TreeReader(game, policy)


def sample(run: Run, reader: Reader, generation: int) -> Sample:
    """Distinct decisions of a generation's first shard, `_MAX_ROWS` at most, evenly over plies."""
    game, shards = reader.game, run.manifest(generation)["shards"]
    if not shards:
        nothing = np.zeros((0, 1), np.int32)
        return Sample(np.zeros(0, game.state_dtype), nothing, np.zeros(0, np.float32))
    played = traces.read_shard(run.storage, game, shards[0]["path"], shards[0]["sha256"]).traces
    chosen = reader.chosen(played)
    asked = np.flatnonzero((chosen >= 0).any(1))
    firsts = asked[unique_states(played.state.take(asked))[0]]
    some = evenly(firsts[np.argsort(played.ply[firsts], kind="stable")], _MAX_ROWS)
    return Sample(played.state.take(some), chosen[some], played.return_[some])


def evenly(items: np.ndarray, most: int) -> np.ndarray:
    """At most so many of the items, evenly over their order."""
    if len(items) <= most:
        return items
    return items[np.linspace(0, len(items) - 1, most).astype(np.int64)]


# Pictures.


def pictures(reader: Reader, generation: int) -> dict[str, str]:
    """The first tree of every source as SVG by file name."""
    out = {}
    for source, name in file_names(reader).items():
        if source in reader.sources:
            bag = reader.trees(source)
            text = reader.bags[source] if source >= 0 else reader.shared[source]
            title = f"{reader.game.name}, {text}: tree 1 of {len(bag)}, generation {generation}"
            out[f"{name}.svg"] = tree_svg(bag[0], reader.names, title)
    return out


def file_names(reader: Reader) -> dict[int, str]:
    """The sources in letters that every file system takes; bags numbered where two would be alike.
    `pooled` is what all may share; what some share is named after them."""
    shared = {source: _plain(text) for source, text in reader.shared.items()}
    if len(shared) == 1:
        shared = dict.fromkeys(shared, "pooled")
    texts = [_plain(text) for text in reader.bags]
    taken = {*texts, *shared.values(), "", "index"}
    if len(taken) < len(texts) + len(shared) + 2:
        texts = [f"{bag}-{text}".rstrip("-") for bag, text in enumerate(texts)]
    return {**dict(enumerate(texts)), **shared}


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9+_-]+", "-", text.lower()).strip("-")[:60]


# The page.


def page(title: str, data: Mapping[str, Any]) -> str:
    """The page around its data."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    parts = {
        "title": escape(title),
        "style": _source("trees.css"),
        "script": _source("trees.js"),
        "data": text,
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], _source("trees.html"))


@cache
def _source(name: str) -> str:
    return (resources.files("pipeline") / "pages" / name).read_text(encoding="utf-8")


def page_data(
    reader: Reader,
    generation: int,
    before: Reader | None = None,
    asked: Sample | None = None,
    measured: Table = (),
) -> dict[str, Any]:
    """What the page shows, as plain JSON; docs/learners/trees_pages.md says what is where.

    Args:
        before: the policy of the generation before; None or one without trees: nothing to compare.
        asked: positions to read the trees by.
        measured: rows of trees.parquet.
    """
    if before is not None and before.empty:
        before = None
    facts = {int(row["action"]): row for row in measured}
    sources = reader.sources
    nodes = _MAX_NODES // max(1, sum(len(reader.trees(each)) for each in sources))
    mask = reader.asked(asked.states) if before is not None and asked is not None else None
    entries = {
        each: _Entry(reader, each, before, asked, mask, max(_LEAST_NODES, nodes))
        for each in sources
    }
    return {
        "generation": generation,
        "before": generation - 1 if before is not None else None,
        "features": list(reader.names),
        "kinds": [
            {
                "name": name,
                "bag": sources.index(reader.source(bag)) if reader.trees_of(bag) else None,
                "pooled": reader.source(bag) < 0,
                **_numbers(facts.get(bag, {})),
            }
            for bag, name in enumerate(reader.bags)
        ],
        "actions": [
            [name, int(bag)] for name, bag in zip(reader.choices, reader.bag_of, strict=True)
        ],
        "bags": [entries[each].data for each in sources],
        "positions": _positions(reader, asked, entries) if asked is not None else [],
    }


def _numbers(row: Mapping[str, Any]) -> dict[str, Any]:
    keys = ("rows", "games", "rmse_rows", "rmse_games")
    numbers = {key: short(row[key]) for key in keys if row.get(key) is not None}
    return {key: value for key, value in numbers.items() if value is not None}


class _Entry:
    """One bag of trees on the page, and where the nodes of its trees are there."""

    def __init__(
        self,
        reader: Reader,
        source: int,
        before: Reader | None,
        asked: Sample | None,
        mask: np.ndarray | None,
        limit: int,
    ):
        trees = reader.trees(source)
        parts = [shown(tree, limit, limit) for tree in trees]
        # By tree: node -> its place on the page.
        self.places = [{int(node): k for k, node in enumerate(part.node)} for part in parts]
        entries = [_tree(tree, part) for tree, part in zip(trees, parts, strict=True)]
        used = importance(trees)
        shares = routed(trees)
        order = np.argsort(-used.total, kind="stable")[:_MAX_FEATURES]
        self.data: dict[str, Any] = {
            "trees": entries,
            "leaves": short(float(np.mean([tree.num_leaves for tree in trees]))),
            "depth": max(int(tree.depths().max()) for tree in trees),
            "used": [
                [int(f), *(short(part[f]) for part in (used.splits, used.slopes, shares))]
                for f in order
                if used.total[f] > 0
            ],
        }
        if before is not None:
            self._compare(reader, source, before, asked, mask, trees, parts, entries)

    def _compare(
        self,
        reader: Reader,
        source: int,
        before: Reader,
        asked: Sample | None,
        mask: np.ndarray | None,
        trees: Sequence[Tree],
        parts: Sequence[Shown],
        entries: Sequence[dict[str, Any]],
    ) -> None:
        """Says what changed since the generation before, at the bag, its tests and its leaves."""
        old = before.trees(source)
        self.data["changes"] = compare.changes(trees, old)._asdict()
        for entry, part, status in zip(
            entries, parts, compare.status_of_tests(trees, old), strict=True
        ):
            entry["status"] = status[part.node].tolist()
        if source < 0 or asked is None or mask is None:
            return
        at, choices = np.nonzero(mask & (reader.bag_of == source))
        if not len(at):
            return
        states = asked.states.take(at)
        shift = reader.values(states, choices) - before.values(states, choices)
        rows = reader.rows(states, choices)
        overall = []
        for tree, part, entry in zip(trees, parts, entries, strict=True):
            by_leaf, mean = compare.leaf_shift(tree, rows, shift)
            overall.append(mean)
            for place, leaf in entry["leaf"].items():
                leaf["shift"] = short(by_leaf[tree.right[part.node[int(place)]]])
        self.data["changes"]["shift"] = short(float(np.mean(overall)))
        self.data["changes"]["rows"] = len(states)


def _tree(tree: Tree, part: Shown) -> dict[str, Any]:
    """A tree's shown nodes as lists, its leaves by their place."""
    nodes = part.node
    right = [0] * len(nodes)
    for k in range(1, len(nodes)):
        right[part.parent[k]] = k  # the last child in preorder
    leaves = {}
    for k, node in enumerate(nodes):
        if tree.feature[node] < 0:
            leaves[str(k)] = _leaf(tree, int(tree.right[node]))
    return {
        "leaves": tree.num_leaves,
        "limits": [short(value) for value in tree.limits],
        "grouped": bool(tree.groups[0]),
        "feature": [int(f) for f in tree.feature[nodes]],
        "threshold": [short(value, 7) for value in tree.threshold[nodes]],
        "right": right,
        "folded": part.folded.tolist(),
        "rows": [short(value) for value in tree.weight[nodes]],
        "games": tree.groups[nodes].tolist(),
        "share": [short(value, 3) for value in share_of_games(tree, nodes)],
        "mean": [short(value) for value in tree.mean[nodes]],
        "deviation": [short(value, 3) for value in tree.deviation[nodes]],
        "error": [short(value) for value in tree.error[nodes]],
        "leaf": leaves,
    }


def _leaf(tree: Tree, leaf: int) -> dict[str, Any]:
    """A leaf's formula: largest effects first, small ones counted."""
    terms = leaf_terms(tree, leaf)
    least = SMALL * sum(abs(term.effect) for term in terms)
    listed = [term for term in terms if abs(term.effect) >= least][:_MAX_TERMS]
    rest = terms[len(listed) :]
    return {
        "base": short(base_of_leaf(tree, leaf)),
        "terms": [
            [term.feature, *map(short, (term.effect, term.coefficient, term.mean, term.deviation))]
            for term in listed
        ],
        "rest": [term.feature for term in rest],
        "most": short(max((abs(term.effect) for term in rest), default=0.0)),
    }


def _positions(
    reader: Reader, asked: Sample, entries: Mapping[int, _Entry]
) -> list[dict[str, Any]]:
    """What was asked at some positions: an entry per question."""
    out = []
    game = reader.game
    for k in evenly(np.arange(len(asked.states)), MAX_POSITIONS // asked.chosen.shape[1]):
        state, chosen = asked.states[k : k + 1], asked.chosen[k].tolist()
        answers = [each for each in chosen if each >= 0]
        for played, move in zip(answers, reader.moves(state, chosen), strict=True):
            text = game.state_to_text(game.rules, state[0])
            entry = {
                "text": f"{text}\n\n{move.question}" if move.question else text,
                "ply": int(state["ply"][0]),
                "player": int(state["player"][0]),
                "played": played,
                "returned": short(float(asked.returns[k])),
                "values": [[choice, short(value)] for choice, value in move.values],
                "reasons": _reasons(reader, move, entries),
            }
            if move.difference is not None:
                entry["difference"] = summed(move.difference)
            out.append(entry)
    return out


def _reasons(reader: Reader, move: Move, entries: Mapping[int, _Entry]) -> list[dict[str, Any]]:
    """Why the best and the second have their values."""
    found = [move.best] if move.second is None else [move.best, move.second]
    return [
        _reason(reader, each, choice, entries)
        for each, (choice, _) in zip(found, move.values, strict=False)
    ]


def _reason(
    reader: Reader, found: Explanation, choice: int, entries: Mapping[int, _Entry]
) -> dict[str, Any]:
    """Why a choice has its value: its parts, and by tree the way through the shown nodes."""
    paths = []
    entry = entries.get(reader.source(int(reader.bag_of[choice])))
    # No paths where no tree was asked.
    for t, steps in enumerate(found.paths):
        assert entry is not None
        tree = reader.bag(choice)[t]
        places, node, path = entry.places[t], 0, [0]
        for step in steps:
            node = tree.children(node)[0 if step.left else 1]
            if node not in places:  # folded on the page
                break
            path.append(places[node])
        paths.append({"nodes": path, "x": [short(step.value) for step in steps]})
    return {"action": choice, **summed(found), "paths": paths}


def summed(found: Explanation) -> dict[str, Any]:
    """An explanation in ten-thousandths, so that what is shown adds up to the value exactly: base,
    contributions from the largest down to 1% of all, the rest with what rounding left, clipping."""
    size = np.abs(found.contributions)
    order = np.argsort(-size, kind="stable")[:_MAX_TERMS]
    order = order[(size[order] > 0.0) & (size[order] >= SMALL * size.sum())]
    listed = [[int(f), round(10_000 * float(found.contributions[f]))] for f in order]
    value, base, clipping = (
        round(10_000 * part) for part in (found.value, found.base, found.clipping)
    )
    rest = value - base - clipping - sum(amount for _, amount in listed)
    return {
        "value": value,
        "base": base,
        "parts": [part for part in listed if part[1]],
        "rest": rest,
        "count": int(np.count_nonzero(size)) - len(listed),
        "clipping": clipping,
    }


def short(value: float, digits: int = 4) -> float | int | None:
    """A number as it goes into the page: so many significant digits, None for none."""
    value = float(value)
    if not math.isfinite(value):
        return None
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded.is_integer() else rounded
