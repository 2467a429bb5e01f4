"""Learner `model_trees`: Q(s, a) by one bag of model trees per action or type of action, grown anew
each generation. docs/learners/model_trees.md.

Fitted SARSA: every decision of the replay window, new or old, is labelled by the newest Q and by
what was played after it; then all trees are grown from scratch. That is one sweep.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from games import Game
from games.game import Symmetry
from pipeline import m5
from pipeline.config import ModelTreesConfig
from pipeline.learners.common import (
    Helpers,
    Sides,
    calibration,
    successors,
    usable_cpus,
)
from pipeline.learners.trees import GrowTask, finds_bins, grow_task
from pipeline.m5.binning import SAMPLE_ROWS, check_table, frozen, parallel
from pipeline.policies.action_trees import POLICIES, TreesPolicy
from pipeline.policies.tree_inputs import TreeInputs
from pipeline.streams import game_keys
from pipeline.targets import one_step_targets, retrace_targets
from pipeline.traces import Window

_CHUNK = 1 << 14  # rows whose observations are held at once
_DIVERGED = 1.5  # growth of the residual that noise between sweeps does not explain


def initial(game: Game, config: ModelTreesConfig, seed: int) -> TreesPolicy:
    """A policy without trees: every action is worth 0."""
    return POLICIES[config.trees].untaught(game)


def fit(
    game: Game,
    window: Window,
    previous: TreesPolicy,
    config: ModelTreesConfig,
    seed: int,
    helpers: Helpers | None = None,
) -> tuple[TreesPolicy, dict[str, Any]]:
    """Labels the window and grows all trees, at most `config.sweeps` times.

    Sweeps go on while the Bellman residual on the games held out is less than two sweeps before
    (not one: where two sides take turns, news of one side's values comes and goes with every other
    sweep). The trees with the least residual are kept.

    Args:
        window: rows of the newest generations.
        previous: its Q labels the rows first, its bins code them. Without trees, in the first
            generation, rows are first labelled by their returns.
        seed: decides which rows of a game each tree sees.
        helpers: other processes that grow trees too. They change the time and nothing else.

    Returns:
        (policy, report). docs/architecture.md names the report's fields; `tables` is not one of
        them: it has the columns of trees.parquet, a row per bag.

    Raises:
        ValueError: the game shows a player a number that is not finite.
    """
    threads = config.threads or usable_cpus()
    labels = _Labels(game, window, config, threads)
    sides = Sides.of(window.game_id, config.held_out)
    trees = _Growing(game, window, previous, sides.teaching, config, seed, threads, helpers)
    before = labels.read(previous)
    first = targets = labels.returns if previous.empty else labels.of(before)
    curve = _Curve([], [], [], [])
    for _ in range(config.sweeps):
        policy = trees.grow(targets)
        reading = labels.read(policy)
        following = labels.of(reading)
        residual = float(np.sqrt(np.mean((following - reading.taken)[sides.judging] ** 2)))
        errors = (reading.taken - targets) ** 2
        curve.train.append(float(errors[sides.rows].mean()))
        if sides.held_out.any():
            curve.held_out.append(float(errors[sides.held_out].mean()))
        curve.clipped.append(reading.clipped)
        if not curve.residual or residual < min(curve.residual):
            best = _Sweep(
                policy, reading, errors, residual, float(np.abs(following - first).mean())
            )
        curve.residual.append(residual)
        if len(curve.residual) > 2 and residual >= 0.99 * curve.residual[-3]:
            break
        targets = following
    return best.policy, _report(window, before, best, curve, labels, sides, trees)


class _Curve(NamedTuple):
    """Numbers of every sweep."""

    train: list[float]
    held_out: list[float]
    residual: list[float]
    clipped: list[float]


class _Reading(NamedTuple):
    """What a Q says of every decision of the window."""

    taken: np.ndarray
    """float64 [N], Q(s, a) of the action played"""
    value: np.ndarray
    """float64 [N], V(s) of the policy that the labels are for"""
    ratio: np.ndarray
    """float64 [N], min(1, pi(a | s) / mu(a | s)) of the action played"""
    clipped: float
    """share of the trees asked that had to be clipped"""


class _Sweep(NamedTuple):
    policy: TreesPolicy
    reading: _Reading
    errors: np.ndarray
    """float64 [N], squared, to the labels that the trees were grown from"""
    residual: float
    label_drift: float
    """mean absolute change of the labels since the first ones of the generation"""


class _Labels:
    """What the decisions of a window are worth, by their returns or by some Q."""

    def __init__(self, game: Game, window: Window, config: ModelTreesConfig, threads: int):
        self.game, self.window, self.config, self.threads = game, window, config, threads
        self.successors = successors(game, window, own=config.opponent == "environment")
        nothing, ones = np.zeros(len(window)), np.ones(len(window))
        self.returns = retrace_targets(
            self.successors.reward,
            self.successors.row,
            self.successors.sign,
            nothing,
            nothing,
            ones,
            config.discount,
            1.0,
        )
        self.low, self.high = float(self.returns.min()), float(self.returns.max())

    def read(self, policy: TreesPolicy) -> _Reading:
        """What the policy's Q says, within the range of the returns that were seen."""
        traces, size = self.window.traces, len(self.window)
        taken, value, ratio = np.empty((3, size))
        # A script does not know how likely its action was; 1 cuts most.
        played = np.nan_to_num(traces.probability.astype(np.float64), nan=1.0)

        def read_some(part: slice) -> np.ndarray:
            states = traces.state[part]
            legal = self.game.legal_of(states)
            q, counts = policy.measured_action_values(self.game, states, legal)
            _follow(
                q,
                legal,
                traces.action[part],
                played[part],
                self.config.epsilon,
                self.low,
                self.high,
                taken[part],
                value[part],
                ratio[part],
            )
            return counts

        parts = [slice(start, start + _CHUNK) for start in range(0, size, _CHUNK)]
        asked, clipped = np.sum(parallel(read_some, parts, self.threads), axis=0)
        return _Reading(taken, value, ratio, float(clipped / max(asked, 1)))

    def of(self, reading: _Reading) -> np.ndarray:
        """float32 [N]: the labels by a Q, within the range of the returns that were seen."""
        config, following = self.config, self.successors
        if config.targets == "sarsa":
            last = following.row < 0
            next_values = np.where(last, 0.0, following.sign * reading.taken[following.row])
            labels = one_step_targets(following.reward, next_values, last, config.discount)
        else:
            labels = retrace_targets(
                following.reward,
                following.row,
                following.sign,
                reading.taken,
                reading.value,
                reading.ratio,
                config.discount,
                config.trace_decay,
            )
        return np.clip(labels, self.low, self.high)


@njit(cache=True, nogil=True)
def _follow(q, legal, actions, played, epsilon, low, high, taken, value, ratio):
    """Of the policy that takes the best action of q [n, A], ties shared, and any legal one with
    probability epsilon: V, and its probability of the action played over that of who played."""
    for i in range(len(q)):
        count, ties = 0, 0
        best, total = -np.inf, 0.0
        for action in range(q.shape[1]):
            if legal[i, action]:
                worth = min(max(q[i, action], low), high)
                count += 1
                total += worth
                if worth > best:
                    best, ties = worth, 1
                elif worth == best:
                    ties += 1
        taken[i] = min(max(q[i, actions[i]], low), high)
        value[i] = (1.0 - epsilon) * best + epsilon * total / count
        chance = epsilon / count
        if taken[i] == best:
            chance += (1.0 - epsilon) / ties
        ratio[i] = chance / played[i] if chance < played[i] else 1.0


@dataclass(frozen=True)
class _Origin:
    """Where a bag's trees come from: its own rows, or the trees of its image."""

    source: int
    symmetry: Symmetry | None  # that takes the bag to `source`; None: itself


def _origins(bags: int, symmetries: Sequence[Symmetry]) -> list[_Origin]:
    """[K]. A bag whose image has a lower number shares the image's rows and trees."""
    out: list[_Origin] = []
    for bag in range(bags):
        images = [(int(symmetry.action[bag]), symmetry) for symmetry in symmetries]
        lower = [
            _Origin(image, symmetry)
            for image, symmetry in images
            if image < bag and out[image].source == image
        ]
        out.append(lower[0] if lower else _Origin(bag, None))
    return out


def _image(tree: m5.Tree, symmetry: Symmetry) -> m5.Tree:
    """The tree that says of a position what `tree` says of its image."""

    def renamed(feature: np.ndarray) -> np.ndarray:
        there = symmetry.observation[np.maximum(feature, 0)]
        return frozen(np.where(feature < 0, feature, there), np.int32)

    return replace(tree, feature=renamed(tree.feature), term_feature=renamed(tree.term_feature))


class _Coded(NamedTuple):
    """Rows as trees are grown from them, those of a bag together."""

    binned: m5.Binned
    row: np.ndarray
    """int64 [M], of the window"""
    start: np.ndarray
    """int64 [K+1]: bag k has start[k]:start[k+1]"""


def _binning(
    inputs: TreeInputs,
    window: Window,
    previous: TreesPolicy,
    symmetries: Sequence[Symmetry],
) -> m5.Binning:
    """The bins of the generation before, or new ones."""
    if previous.binning is not None and not finds_bins(int(window.generation.max())):
        return previous.binning
    # Images too: what was only played on the left is coded under its image on the right.
    some = np.arange(0, len(window), -(-len(window) * (1 + len(symmetries)) // SAMPLE_ROWS))
    seen = _seen(inputs, window, some)
    images = [seen[:, symmetry.observation] for symmetry in symmetries]
    return m5.Binning.fit(np.concatenate([seen, *images]))


def _seen(inputs: TreeInputs, window: Window, rows: np.ndarray) -> np.ndarray:
    """float32 [N, F], read-only: what trees see of what was played, by rows int64 [N].

    Raises:
        ValueError: a number is not finite; the message names the feature.
    """
    traces = window.traces
    columns = (each.take(rows) for each in (traces.state, traces.player, traces.action))
    return check_table(inputs.rows(*columns), list(inputs.names))


def _code(
    inputs: TreeInputs,
    window: Window,
    rows: np.ndarray,
    symmetries: Sequence[Symmetry],
    binning: m5.Binning,
    threads: int,
) -> _Coded:
    """Codes rows bool [N] and their images, each under the bag that its trees belong to."""
    count = len(inputs.bags)
    played = inputs.bag[window.traces.action]
    own = np.array([each.source == k for k, each in enumerate(_origins(count, symmetries))])
    same = np.arange(count)
    moves = [same, *(symmetry.action for symmetry in symmetries)]
    found = [np.flatnonzero(rows & own[move[played]]) for move in moves]
    row = np.concatenate(found)
    move = np.repeat(np.arange(len(moves)), [len(each) for each in found])
    bag = np.concatenate([to[played[at]] for to, at in zip(moves, found, strict=True)])
    order = np.argsort(bag, kind="stable")
    row, move = row[order], move[order]
    codes = np.empty((len(row), len(inputs.names)), np.uint8)
    for start in range(0, len(row), _CHUNK):
        part = slice(start, start + _CHUNK)
        seen = _seen(inputs, window, row[part]).copy()
        for k, symmetry in enumerate(symmetries):
            images = move[part] == k + 1
            seen[images] = seen[images][:, symmetry.observation]
        codes[part] = binning.encode(seen, threads)
    starts = np.searchsorted(bag[order], np.arange(count + 1))
    return _Coded(m5.Binned(binning, frozen(codes, np.uint8)), row, starts)


class _Growing:
    """All that a window's trees are grown from but their targets, which change with every sweep."""

    def __init__(
        self,
        game: Game,
        window: Window,
        previous: TreesPolicy,
        teaching: np.ndarray,
        config: ModelTreesConfig,
        seed: int,
        threads: int,
        helpers: Helpers | None,
    ):
        self.game, self.window, self.config = game, window, config
        self.seed, self.threads, self.helpers = seed, threads, helpers
        self.policy = POLICIES[config.trees]
        self.inputs = inputs = self.policy.inputs(game)
        asked = teaching & inputs.asked(window.traces.state, window.traces.action)
        if asked.any():  # something must teach
            teaching = asked
        symmetries = inputs.symmetries if config.symmetries else ()
        self.origins = _origins(len(inputs.bags), symmetries)
        binning = _binning(inputs, window, previous, symmetries)
        self.binning = binning
        self.coded = _code(inputs, window, teaching, symmetries, binning, threads)
        starts = self.coded.start
        self.rows = [
            self.coded.row[starts[each.source] : starts[each.source + 1]] for each in self.origins
        ]
        self.games = [len(np.unique(window.game_id[rows])) for rows in self.rows]
        # A bag alone has nobody to share with.
        few = config.min_games if len(self.games) > 1 else 0
        self.poor = [games < few for games in self.games]
        if any(self.poor):
            coded = _code(inputs, window, teaching, (), binning, threads)
            # One-hot columns for the bag, behind the features.
            hot = np.eye(len(inputs.bags), dtype=np.float32)
            played = inputs.bag[window.traces.action[coded.row]]
            codes = np.concatenate([coded.binned.codes, hot.astype(np.uint8)[played]], axis=1)
            both = binning.beside(m5.Binning.fit(hot))
            self.pooled = coded._replace(binned=m5.Binned(both, frozen(codes, np.uint8)))

    def grow(self, targets: np.ndarray) -> TreesPolicy:
        """Trees of every bag, from float32 [N] targets of the window's rows."""
        jobs = list(self._jobs())
        jobs.sort(key=lambda job: -len(job.rows))  # the longest first
        if self.helpers is None:
            inside = max(self.threads // len(jobs), 1)
            grown = parallel(lambda job: self._task(job, targets, inside).run(), jobs, self.threads)
        else:
            # Helpers stand for the other CPUs, so unless told otherwise one thread is busy here.
            tasks = [self._task(job, targets, 1) for job in jobs]
            grown = self.helpers.run_all(tasks, self.config.threads or 1)
        bags: dict[int, list[m5.Tree]] = {}
        for job, tree in sorted(zip(jobs, grown, strict=True), key=lambda pair: pair[0].member):
            bags.setdefault(job.bag, []).append(tree)
        own: list[tuple[m5.Tree, ...]] = []
        for each in self.origins:
            bag = bags.get(each.source, [])
            if each.symmetry is not None:
                bag = [_image(tree, each.symmetry) for tree in bag]
            own.append(tuple(bag))
        return self.policy(tuple(own), tuple(bags.get(_POOLED, ())), self.binning)

    def _jobs(self) -> Iterator["_Job"]:
        """Every tree to grow."""
        count = (len(self.origins) + 1) * self.config.bag
        seeds = game_keys(self.seed, "trees", 0, np.arange(count)) >> np.uint64(1)
        for member in range(self.config.bag):
            for bag, each in enumerate(self.origins):
                if each.source == bag and not self.poor[bag]:
                    a, b = self.coded.start[bag : bag + 2]
                    codes = self.coded.binned.codes[a:b]
                    binned = m5.Binned(self.binning, codes)
                    seed = int(seeds[bag * self.config.bag + member])
                    yield _Job(bag, member, binned, self.coded.row[a:b], seed)
            if any(self.poor):
                seed = int(seeds[count - 1 - member])
                yield _Job(_POOLED, member, self.pooled.binned, self.pooled.row, seed)

    def _task(self, job: "_Job", targets: np.ndarray, threads: int) -> GrowTask:
        rows, window = job.rows, self.window
        return grow_task(
            self.config,
            job.binned.binning,
            job.binned.codes,
            targets[rows],
            window.game_id[rows],
            window.generation[rows],
            job.seed,
            threads,
        )


_POOLED = -1  # in place of a bag's number


class _Job(NamedTuple):
    """One tree to grow."""

    bag: int
    member: int
    binned: m5.Binned
    rows: np.ndarray
    """int64, of the window"""
    seed: int


def _report(
    window: Window,
    before: _Reading,
    best: _Sweep,
    curve: _Curve,
    labels: _Labels,
    sides: Sides,
    trees: _Growing,
) -> dict[str, Any]:
    judging = sides.judging
    train = float(best.errors[sides.rows].mean())
    held_out = float(best.errors[sides.held_out].mean()) if sides.held_out.any() else None
    table = _table(window, best, sides, trees)
    return {
        "curve": curve._asdict(),
        "loss_train": train,
        "loss_held_out": held_out,
        "calibration": calibration(best.reading.taken[judging], labels.returns[judging]),
        "gap": None if held_out is None else held_out - train,
        "residual": best.residual,
        "drift": float(np.abs(best.reading.taken - before.taken).mean()),
        "label_drift": best.label_drift,
        "clipped": best.reading.clipped,
        "sweeps": len(curve.train),
        "leaves": float(table["leaves"].mean()),
        "depth": int(table["depth"].max()),
        "pooled": int(table["pooled"].sum()),
        "warnings": _warnings(curve),
        "tables": {"trees": table},
    }


def _warnings(curve: _Curve) -> list[str]:
    """A sentence where values ran away from sweep to sweep. Clipping bounds them, so what shows is
    the residual, which falls or stays where fitting converges."""
    first, last, count = curve.residual[0], curve.residual[-1], len(curve.residual)
    if last <= _DIVERGED * first:
        return []
    return [
        f"values diverge: the Bellman residual grew from {first:.3g} to {last:.3g} in {count} "
        f"sweeps, and {curve.clipped[-1]:.0%} of the trees asked were clipped; the trees of sweep "
        f"{int(np.argmin(curve.residual)) + 1} were kept; raise learner.ridge or "
        "learner.trace_decay, or lower learner.sweeps"
    ]


def _table(window: Window, best: _Sweep, sides: Sides, trees: _Growing) -> dict[str, np.ndarray]:
    """The columns of trees.parquet (docs/learners/model_trees.md), a row per bag."""
    played = trees.inputs.bag[window.traces.action]
    columns: dict[str, list] = {}
    for k, bag in enumerate(best.policy.bags):
        facts = _sizes(bag or best.policy.pooled)
        for name, measured in (("rows", sides.rows), ("games", sides.held_out)):
            mine = best.errors[measured & (played == k)]
            facts[f"rmse_{name}"] = float(np.sqrt(mine.mean())) if len(mine) else np.nan
        facts = {
            "action": k,
            "text": trees.inputs.bags[k],
            "rows": len(trees.rows[k]),
            "games": trees.games[k],
            "pooled": not bag,
            **facts,
        }
        for name, value in facts.items():
            columns.setdefault(name, []).append(value)
    return {name: np.array(values) for name, values in columns.items()}


def _sizes(bag: tuple[m5.Tree, ...]) -> dict[str, Any]:
    in_leaf = np.concatenate([tree.groups[tree.feature < 0] for tree in bag])
    return {
        "leaves": float(np.mean([tree.num_leaves for tree in bag])),
        "depth": int(max(tree.depths().max() for tree in bag)),
        "terms": float(np.mean([len(tree.coefficient) for tree in bag])),
        "leaf_games_min": int(in_leaf.min()),
        "leaf_games_median": float(np.median(in_leaf)),
    }
