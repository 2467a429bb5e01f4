"""Learner `hierarchical`: behaviours and their low-level actions by model trees.
docs/learners/hierarchical.md.

After every generation all trees are grown from scratch over all stored steps of play, old and new,
labelled anew by the newest Q (Pfeiffer 2004: "SARSA-like updates"). The two levels are trained
independently from the same traces: the high level by what the game pays, a behaviour's low level by
whether its sub-goal is reached.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from games import Game
from games.game import Hierarchy
from pipeline import m5
from pipeline.config import HierarchicalConfig
from pipeline.learners.common import Sides, calibration, usable_cpus
from pipeline.learners.trees import finds_bins, grow_task
from pipeline.m5.binning import SAMPLE_ROWS, check_table, parallel
from pipeline.policies.hierarchical import Bag, HierarchicalPolicy
from pipeline.streams import game_keys
from pipeline.targets import next_own_decision, retrace_targets
from pipeline.traces import Window

_CHUNK = 1 << 13  # steps whose observations are held at once


def initial(game: Game, config: HierarchicalConfig, seed: int) -> HierarchicalPolicy:
    """A policy without trees: its low level is random, its high level random or the game's rule."""
    return HierarchicalPolicy.untrained(_hierarchy(game), config.approach, config.judge)


def fit(
    game: Game,
    window: Window,
    previous: HierarchicalPolicy,
    config: HierarchicalConfig,
    seed: int,
) -> tuple[HierarchicalPolicy, dict[str, Any]]:
    """Labels the steps of the window and grows all trees, `config.sweeps` times.

    Args:
        window: rows of the newest generations.
        previous: its Q labels the rows first, its bins code them. Without trees, in the first
            generation, rows are first labelled by what followed.
        seed: decides which rows of a game each tree sees.

    Returns:
        (policy, report). docs/architecture.md names the report's fields; `tables` is not one of
        them: it has the columns of trees.parquet, a row per bag of trees.

    Raises:
        ValueError: the game shows a player a number that is not finite.
    """
    threads = config.threads or usable_cpus()
    steps = Steps.of(game, window, config, threads)
    sides = Sides.of(steps.game_id, config.held_out)
    growing = _Growing(game, steps, previous, sides, config, seed, threads)
    before = steps.read(previous)
    labels = steps.outcomes() if previous.empty else steps.labels(before)
    curve: dict[str, list[float]] = {"train": [], "held_out": [], "residual": []}
    for _ in range(config.sweeps):
        policy = growing.grow(labels)
        reading = steps.read(policy)
        grown_from, labels = labels, steps.labels(reading)
        errors = (reading.high_taken - grown_from.high) ** 2
        curve["train"].append(float(errors[sides.rows].mean()))
        if sides.held_out.any():
            curve["held_out"].append(float(errors[sides.held_out].mean()))
        residual = (labels.high - reading.high_taken)[sides.judging]
        curve["residual"].append(float(np.sqrt(np.mean(residual**2))))
    report = _report(game, steps, before, reading, grown_from, labels, sides, growing, policy)
    return policy, {"curve": curve, **report}


class Labels(NamedTuple):
    """What the steps are worth to each level, float32 [n] each."""

    high: np.ndarray
    low: np.ndarray


class Reading(NamedTuple):
    """What a policy's Q says of every step, float64 [n] each."""

    high_taken: np.ndarray
    """Q(s, h) of the behaviour in force"""
    high_value: np.ndarray
    """what the step is worth before the behaviour is chosen; where it is kept, the same"""
    high_ratio: np.ndarray
    """min(1, pi / mu) of the behaviour in force"""
    low_taken: np.ndarray
    """Q_h(s, l) of the low-level action played"""
    low_value: np.ndarray
    """V_h(s) under the behaviour in force"""
    low_ratio: np.ndarray
    carried: np.ndarray
    """V_h(s'): of the step that follows under this step's behaviour, where another one is in force
    there"""


@dataclass(frozen=True)
class Steps:
    """The steps of behaviours in a window, n of them, and what follows each."""

    game: Game
    config: HierarchicalConfig
    threads: int
    row: np.ndarray  # int64 [n], of the window
    state: np.ndarray  # [n]
    player: np.ndarray  # int32 [n]
    behaviour: np.ndarray  # int8 [n]
    low_action: np.ndarray  # int8 [n]
    probability: np.ndarray  # float64 [n], of the low-level action
    game_id: np.ndarray  # int64 [n]
    generation: np.ndarray  # int32 [n]
    next: np.ndarray  # int64 [n], the same player's next step, -1 at the end
    reward: np.ndarray  # float32 [n], of the game until then
    returns: np.ndarray  # float32 [n], of the game from here to the end
    possible: np.ndarray  # bool [n, H]
    legal: np.ndarray  # bool [n, L], low-level actions of the behaviour in force
    reached: np.ndarray  # bool [n], the sub-goal, before the next step
    kept: np.ndarray  # bool [n], the behaviour was in force before and did not end

    def __len__(self) -> int:
        return len(self.row)

    @property
    def ended(self) -> np.ndarray:
        """bool [n]: the low level's episode ends here: reached, impossible from now, or the end."""
        gone = np.ones(len(self), np.bool_)
        there = np.flatnonzero(self.next >= 0)
        gone[there] = ~self.possible[self.next[there], self.behaviour[there]]
        return gone | self.reached

    @property
    def switched(self) -> np.ndarray:
        """bool [n]: another behaviour is in force at the next step, though this one goes on."""
        out = np.zeros(len(self), np.bool_)
        there = np.flatnonzero(~self.ended)
        out[there] = self.behaviour[self.next[there]] != self.behaviour[there]
        return out

    @staticmethod
    def of(game: Game, window: Window, config: HierarchicalConfig, threads: int) -> "Steps":
        traces, hierarchy = window.traces, _hierarchy(game)
        row = np.flatnonzero(traces.low_action >= 0)
        if not len(row):
            raise ValueError(
                "the window has no step of a behaviour; hierarchical players make them"
            )
        state = traces.state.take(row)
        player = traces.player[row].astype(np.int32)
        behaviour, game_id = traces.behaviour[row], window.game_id[row]
        following = next_own_decision(game_id, player)
        last = following < 0
        returns = traces.return_[row]
        possible = np.empty((len(row), len(hierarchy.behaviours)), np.bool_)
        legal = np.empty((len(row), len(hierarchy.low_actions)), np.bool_)
        reached = traces.goal_reward[row] > 0

        def look(part: slice) -> None:
            some, mine = state[part], behaviour[part]
            hierarchy.possible(game.rules, some, possible[part])
            hierarchy.low_legal(game.rules, some, game.legal_of(some), mine, legal[part])

        parallel(look, _parts(len(row)), threads)
        kept = np.zeros(len(row), np.bool_)
        if config.approach == "module":
            on = np.flatnonzero(~last & ~reached)
            onward = following[on]
            same = behaviour[onward] == behaviour[on]
            kept[onward] = same & possible[onward, behaviour[on]]
        reward = returns - np.where(last, 0.0, returns[following]).astype(np.float32)
        return Steps(
            game=game,
            config=config,
            threads=threads,
            row=row,
            state=state,
            player=player,
            behaviour=behaviour,
            low_action=traces.low_action[row],
            probability=traces.probability[row].astype(np.float64),
            game_id=game_id,
            generation=window.generation[row],
            next=following,
            reward=reward,
            returns=returns,
            possible=possible,
            legal=legal,
            reached=reached,
            kept=kept,
        )

    def observed(self, rows: Any) -> np.ndarray:
        """float32 [n, F]: what the players of some steps see."""
        return self.game.observations_of(self.state[rows], self.player[rows])

    def read(self, policy: HierarchicalPolicy) -> Reading:
        """What the policy's Q says of every step."""
        reading = Reading(*np.zeros((7, len(self))))
        switched, hierarchy = self.switched, _hierarchy(self.game)
        free = self.config.approach in ("feudal", "module")

        def read_some(part: slice) -> None:
            x, mine = self.observed(part), self.behaviour[part]
            everyone = self.possible[part].copy()
            own = np.zeros_like(everyone)
            own[np.arange(len(mine)), mine] = True
            high = policy.high_values(x, everyone if free else own)
            low = policy.low_values(x, mine, self.legal[part])
            _follow(
                high,
                everyone if free else own,
                mine,
                np.ones(len(mine)),
                self.config.epsilon,
                reading.high_taken[part],
                reading.high_value[part],
                reading.high_ratio[part],
            )
            _follow(
                low,
                self.legal[part],
                self.low_action[part],
                self.probability[part],
                self.config.epsilon,
                reading.low_taken[part],
                reading.low_value[part],
                reading.low_ratio[part],
            )
            some = np.flatnonzero(switched[part]) + part.start
            if len(some):
                there, own_h = self.next[some], self.behaviour[some]
                states = self.state.take(there)
                legal = np.empty((len(some), self.legal.shape[1]), np.bool_)
                mask = self.game.legal_of(states)
                hierarchy.low_legal(self.game.rules, states, mask, own_h, legal)
                q = policy.low_values(self.observed(there), own_h, legal)
                reading.carried[some] = np.where(legal, q, -np.inf).max(1)

        parallel(read_some, _parts(len(self)), self.threads)
        reading.high_value[self.kept] = reading.high_taken[self.kept]
        reading.high_ratio[self.kept] = 1.0
        return reading

    def outcomes(self) -> Labels:
        """What followed: the game's return, and the discounted reward of the sub-goal as far as the
        behaviour was in force."""
        nothing, ones = np.zeros(len(self)), np.ones(len(self))
        blank = Reading(nothing, nothing, ones, nothing, nothing, ones, nothing)
        return self._labels(blank, 1.0)

    def labels(self, reading: Reading) -> Labels:
        """The lambda-returns of both levels by a Q."""
        return self._labels(reading, self.config.trace_decay)

    def _labels(self, reading: Reading, trace_decay: float) -> Labels:
        discount, n = self.config.discount, len(self)
        high = retrace_targets(
            self.reward,
            self.next,
            np.ones(n),
            reading.high_taken,
            reading.high_value,
            reading.high_ratio,
            1.0,
            trace_decay,
        )
        switched = self.switched
        reward = self.reached + np.where(switched, discount * reading.carried, 0.0)
        low = retrace_targets(
            reward,
            np.where(self.ended | switched, -1, self.next),
            np.ones(n),
            reading.low_taken,
            reading.low_value,
            reading.low_ratio,
            discount,
            trace_decay,
        )
        low_end, high_end = float(self.returns.min()), float(self.returns.max())
        return Labels(np.clip(high, low_end, high_end), np.clip(low, 0.0, 1.0))


@njit(cache=True, nogil=True)
def _follow(q, legal, actions, played, epsilon, taken, value, ratio):
    """Of the policy that takes the best choice of q [n, A], ties shared, and any legal one with
    probability epsilon: V, and its probability of the choice made over that of who made it."""
    for i in range(len(q)):
        count, ties = 0, 0
        best, total = -np.inf, 0.0
        for action in range(q.shape[1]):
            if legal[i, action]:
                count += 1
                total += q[i, action]
                if q[i, action] > best:
                    best, ties = q[i, action], 1
                elif q[i, action] == best:
                    ties += 1
        taken[i] = q[i, actions[i]]
        value[i] = (1.0 - epsilon) * best + epsilon * total / count
        chance = epsilon / count
        if q[i, actions[i]] == best:
            chance += (1.0 - epsilon) / ties
        ratio[i] = min(chance / played[i], 1.0)


def _parts(n: int) -> list[slice]:
    return [slice(start, min(start + _CHUNK, n)) for start in range(0, n, _CHUNK)]


class _Job(NamedTuple):
    """One tree to grow."""

    behaviour: int
    low_action: int  # _HIGH: of the high level; _POOLED: all low-level actions together
    member: int
    at: np.ndarray  # int64, of the steps
    seed: int


_HIGH, _POOLED = -2, -1


class _Growing:
    """All that a window's trees are grown from but their labels, which change with every sweep."""

    def __init__(
        self,
        game: Game,
        steps: Steps,
        previous: HierarchicalPolicy,
        sides: Sides,
        config: HierarchicalConfig,
        seed: int,
        threads: int,
    ):
        self.game, self.steps, self.previous = game, steps, previous
        self.config, self.threads = config, threads
        self.binning = _binning(game, steps, previous)
        self.codes = np.empty((len(steps), game.observation_size), np.uint8)
        names = list(game.observation_names)

        def code(part: slice) -> None:
            self.codes[part] = self.binning.encode(check_table(steps.observed(part), names), 1)

        parallel(code, _parts(len(steps)), threads)
        hierarchy = _hierarchy(game)
        self.rows: dict[tuple[int, int], np.ndarray] = {}
        self.games: dict[tuple[int, int], int] = {}
        for behaviour in range(len(hierarchy.behaviours)):
            mine = sides.teaching & (steps.behaviour == behaviour)
            for low in (_HIGH, _POOLED, *np.flatnonzero(hierarchy.allowed[behaviour]).tolist()):
                at = np.flatnonzero(mine & (steps.low_action == low) if low >= 0 else mine)
                self.rows[behaviour, low] = at
                self.games[behaviour, low] = len(np.unique(steps.game_id[at]))
        self.jobs = self._jobs(seed)

    def _jobs(self, seed: int) -> list[_Job]:
        keys = sorted(self.rows)
        bag = self.config.bag
        seeds = game_keys(seed, "trees", 0, np.arange(len(keys) * bag)) >> np.uint64(1)
        poor = {behaviour for behaviour, low in keys if self.is_poor(behaviour, low)}
        jobs = [
            _Job(behaviour, low, member, self.rows[behaviour, low], int(seeds[k * bag + member]))
            for k, (behaviour, low) in enumerate(keys)
            for member in range(bag)
            if not self.is_poor(behaviour, low) and (low != _POOLED or behaviour in poor)
        ]
        return sorted(jobs, key=lambda job: -len(job.at))  # the longest first

    def is_poor(self, behaviour: int, low: int) -> bool:
        """Was it played in too few games for trees of its own?"""
        return self.games[behaviour, low] < self.config.min_games

    def grow(self, labels: Labels) -> HierarchicalPolicy:
        """All trees, from scratch."""
        inside = max(self.threads // max(len(self.jobs), 1), 1)
        grown = parallel(lambda job: self._tree(job, labels, inside), self.jobs, self.threads)
        bags: dict[tuple[int, int], list[m5.Tree]] = {}
        pairs = zip(self.jobs, grown, strict=True)
        for job, tree in sorted(pairs, key=lambda pair: pair[0].member):
            bags.setdefault((job.behaviour, job.low_action), []).append(tree)

        def bag(behaviour: int, low: int) -> Bag:
            return tuple(bags.get((behaviour, low), ()))

        hierarchy = _hierarchy(self.game)
        behaviours = range(len(hierarchy.behaviours))
        low_actions = range(len(hierarchy.low_actions))
        return HierarchicalPolicy(
            self.config.approach,
            tuple(bag(h, _HIGH) for h in behaviours),
            tuple(tuple(bag(h, low) for low in low_actions) for h in behaviours),
            tuple(bag(h, _POOLED) for h in behaviours),
            self.binning,
            self.config.judge,
        )

    def _tree(self, job: _Job, labels: Labels, threads: int) -> m5.Tree:
        steps, at = self.steps, job.at
        target = labels.high if job.low_action == _HIGH else labels.low
        return grow_task(
            self.config,
            self.binning,
            self.codes.take(at, axis=0),
            target[at],
            steps.game_id[at],
            steps.generation[at],
            job.seed,
            threads,
        ).run()


def _binning(game: Game, steps: Steps, previous: HierarchicalPolicy) -> m5.Binning:
    """The bins of the generation before, or new ones."""
    if previous.binning is not None and not finds_bins(int(steps.generation.max())):
        return previous.binning
    some = np.arange(0, len(steps), -(-len(steps) // SAMPLE_ROWS))
    return m5.Binning.fit(check_table(steps.observed(some), list(game.observation_names)))


def _hierarchy(game: Game) -> Hierarchy:
    if game.hierarchy is None:
        raise ValueError(f"game {game.name} has no behaviours; learner hierarchical needs them")
    return game.hierarchy


def _report(
    game: Game,
    steps: Steps,
    before: Reading,
    reading: Reading,
    grown_from: Labels,
    following: Labels,
    sides: Sides,
    growing: _Growing,
    policy: HierarchicalPolicy,
) -> dict[str, Any]:
    judging = sides.judging
    errors = {
        "high": (reading.high_taken - grown_from.high) ** 2,
        "low": (reading.low_taken - grown_from.low) ** 2,
    }
    table = _table(game, errors, sides, growing, policy)

    def mean(values: np.ndarray, where: np.ndarray) -> float | None:
        return float(values[where].mean()) if where.any() else None

    def level(name: str, taken: np.ndarray, was: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
        train, held_out = mean(errors[name], sides.rows), mean(errors[name], sides.held_out)
        return {
            "loss_train": train,
            "loss_held_out": held_out,
            "gap": None if train is None or held_out is None else held_out - train,
            "residual": float(np.sqrt(np.mean((labels - taken)[judging] ** 2))),
            "drift": float(np.abs(taken - was).mean()),
        }

    high = level("high", reading.high_taken, before.high_taken, following.high)
    low = level("low", reading.low_taken, before.low_taken, following.low)
    shares = np.bincount(steps.behaviour, minlength=len(policy.high)) / len(steps)
    names = _hierarchy(game).behaviours
    return {
        **high,
        "low_level": low,
        "calibration": calibration(reading.high_taken[judging], steps.returns[judging]),
        "sweeps": growing.config.sweeps,
        "leaves": float(table["leaves"].mean()),
        "depth": int(table["depth"].max()),
        "pooled": int(table["pooled"].sum()),
        "behaviours": {name: float(share) for name, share in zip(names, shares, strict=True)},
        "reached": {
            name: mean(steps.reached, steps.behaviour == h) for h, name in enumerate(names)
        },
        "warnings": _warnings(growing, policy),
        "tables": {"trees": table},
    }


def _warnings(growing: _Growing, policy: HierarchicalPolicy) -> list[str]:
    """A sentence where no behaviour was played often enough for trees."""
    if not policy.empty:
        return []
    most = max(growing.games.values())
    return [
        f"nothing is learned yet: no behaviour was played in learner.min_games="
        f"{growing.config.min_games} of the games that teach, the most frequent one in {most}; "
        "play more games or lower learner.min_games"
    ]


def _table(
    game: Game,
    errors: dict[str, np.ndarray],
    sides: Sides,
    growing: _Growing,
    policy: HierarchicalPolicy,
) -> dict[str, np.ndarray]:
    """The columns of trees.parquet: a row per behaviour, and per low-level action of each, numbered
    (`action`) and named (`text`)."""
    hierarchy, steps = _hierarchy(game), growing.steps
    columns: dict[str, list] = {}
    for behaviour, low in sorted(growing.rows):
        if low == _POOLED:
            continue
        own = policy.high[behaviour] if low == _HIGH else policy.low[behaviour][low]
        bag = own or policy.pooled[behaviour]
        mine = steps.behaviour == behaviour
        if low >= 0:
            mine = mine & (steps.low_action == low)
        name = hierarchy.behaviours[behaviour]
        facts: dict[str, Any] = {
            "action": len(columns.get("action", ())),
            "text": name if low == _HIGH else f"{name}: {hierarchy.low_actions[low]}",
            "rows": len(growing.rows[behaviour, low]),
            "games": growing.games[behaviour, low],
            "pooled": not own,
            "leaves": float(np.mean([tree.num_leaves for tree in bag])) if bag else 0.0,
            "depth": max((int(tree.depths().max()) for tree in bag), default=0),
        }
        error = errors["high" if low == _HIGH else "low"]
        for where, measured in (("rows", sides.rows), ("games", sides.held_out)):
            some = error[measured & mine]
            facts[f"rmse_{where}"] = float(np.sqrt(some.mean())) if len(some) else np.nan
        for key, value in facts.items():
            columns.setdefault(key, []).append(value)
    return {name: np.array(values) for name, values in columns.items()}
