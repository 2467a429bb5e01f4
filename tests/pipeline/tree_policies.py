"""Policies of model trees for tests, grown on targets that are known."""

import numpy as np

from games import Game
from pipeline import m5
from pipeline.policies.action_trees import ActionTreesPolicy


def played_states(game: Game, games: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Positions where somebody decides, all different, of random games, and the game of each."""
    r = np.random.default_rng(seed)
    states = game.initial_states(np.arange(games))
    found, number = [], []
    running = np.arange(games)
    while len(running):
        found.append(states[running])
        number.append(running)
        legal = game.legal_of(states[running])
        actions = (legal * r.random(legal.shape)).argmax(1)
        states[running] = game.after(states[running], actions)
        running = running[states[running]["player"] >= 0]
    everything, owner = np.concatenate(found), np.concatenate(number)
    _, firsts = np.unique(everything.view(f"V{everything.itemsize}"), return_index=True)
    firsts = np.sort(firsts)
    return everything[firsts], owner[firsts]


def grown_policy(
    game: Game, seed: int = 0, poor: tuple[int, ...] = (), noise: float = 0.1, trees: int = 2
) -> ActionTreesPolicy:
    """Trees of a target with two pieces per action, and pooled ones for the actions in `poor`."""
    states, owner = played_states(game, 400, seed)
    X = game.observations_of(states, states["player"])
    r = np.random.default_rng(seed)
    half = X.shape[1] // 2
    options = m5.Options(trees=trees, rows_per_group=None, min_groups=5, seed=seed)
    bags: list[tuple[m5.Tree, ...]] = []
    pooled_rows, pooled_targets, pooled_groups = [], [], []
    for action in range(game.num_actions):
        slope = np.where(X[:, action % X.shape[1]] > 0, 0.5, -0.3)
        y = slope * X[:, half:].sum(1) - 0.2 * X[:, half - 1] + r.normal(0, noise, len(X))
        if action in poor:
            one_hot = np.eye(game.num_actions, dtype=np.float32)[np.full(len(X), action)]
            pooled_rows.append(np.concatenate([X, one_hot], axis=1))
            pooled_targets.append(y)
            pooled_groups.append(owner)
            bags.append(())
        else:
            bags.append(tuple(m5.grow_bag(m5.Binned.fit(X), y, None, owner, options)))
    if not poor:
        return ActionTreesPolicy(tuple(bags))
    pooled = m5.grow_bag(
        m5.Binned.fit(np.concatenate(pooled_rows)),
        np.concatenate(pooled_targets),
        None,
        np.concatenate(pooled_groups),
        options,
    )
    return ActionTreesPolicy(tuple(bags), tuple(pooled))


def lookup_policy(q: np.ndarray, limits: tuple[float, float] = (-9.0, 9.0)) -> ActionTreesPolicy:
    """Q(s, a) = q[s, a] of a game whose observation is one-hot: a formula of all features each."""
    size = len(q)
    trees = [
        m5.Tree.of(
            {
                "feature": np.array([-1]),
                "threshold": np.zeros(1),
                "right": np.zeros(1),
                "weight": np.ones(1),
                "groups": np.ones(1),
                "mean": np.zeros(1),
                "deviation": np.zeros(1),
                "error": np.zeros(1),
                "intercept": np.zeros(1),
                "term_start": np.array([0, size]),
                "term_feature": np.arange(size),
                "coefficient": column,
                "term_mean": np.zeros(size),
                "term_deviation": np.ones(size),
                "limits": np.array(limits),
                "num_features": np.array(size),
            }
        )
        for column in q.T
    ]
    return ActionTreesPolicy(tuple((tree,) for tree in trees))
