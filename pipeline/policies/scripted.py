"""Policies that learn nothing: the baselines every agent is measured against.

`random` and `win_or_random` play any game; a game brings more of its own (`Game.scripted`). Where a
game has behaviours, `random_behaviours` chooses them and their low-level actions at random, and
`heuristic_random` chooses the low-level actions at random and the behaviours by the game's rule.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from games import Game
from pipeline.policies.afterstates import expand
from pipeline.policies.base import Decisions, Policy, greedy, uniform_decisions
from pipeline.policies.hierarchical import HierarchicalPolicy
from pipeline.streams import Streams

# Name -> the approach whose high level it has; nothing is learned.
_BY_BEHAVIOURS = {"random_behaviours": "feudal", "heuristic_random": "heuristic"}


class UniformRandom:
    """Every legal action equally likely."""

    def act(self, game: Game, states: np.ndarray, legal: np.ndarray, rng: Streams) -> Decisions:
        return uniform_decisions(legal, rng, explored=False)


class WinOrRandom:
    """An action that wins at once if there is one, else any legal action."""

    def act(self, game: Game, states: np.ndarray, legal: np.ndarray, rng: Streams) -> Decisions:
        after = expand(game, states, legal)
        q = np.zeros(legal.shape, np.float32)
        won = after.over.copy()
        final = after.final_returns  # [over, P]
        mine = final[np.arange(len(final)), after.movers[after.over]]
        won[after.over] = (final < mine[:, None]).sum(1) == game.num_players - 1
        q[after.rows[won], after.actions[won]] = 1.0
        return greedy(q, legal, rng)._replace(values=np.full(len(q), np.nan, np.float32))


@dataclass(frozen=True)
class Scripted:
    """One of the game's own players."""

    kernel: Callable

    def act(self, game: Game, states: np.ndarray, legal: np.ndarray, rng: Streams) -> Decisions:
        rows = len(states)
        actions = np.empty(rows, np.int32)
        self.kernel(game.rules, states, legal, rng.uniform()[:, 0], actions)
        # How likely a script was to do what it did is not known to it.
        unknown = np.full(rows, np.nan, np.float32)
        return Decisions(actions, unknown, unknown, np.zeros(rows, np.bool_))


GENERAL = ("random", "win_or_random")  # play any game


def baseline(name: str, game: Game) -> Policy:
    """The policy of that name.

    Raises:
        ValueError: neither a general baseline nor one of the game's own.
    """
    if name == "random":
        return UniformRandom()
    if name == "win_or_random":
        return WinOrRandom()
    if name in game.scripted:
        return Scripted(game.scripted[name])
    if game.hierarchy is not None and name in _BY_BEHAVIOURS:
        return HierarchicalPolicy.untrained(game.hierarchy, _BY_BEHAVIOURS[name])
    raise ValueError(
        f"there is no baseline {name!r} for game {game.name}; "
        f"the baselines are {', '.join(baseline_names(game))}"
    )


def baseline_names(game: Game) -> list[str]:
    """All that may be named."""
    own = _BY_BEHAVIOURS if game.hierarchy is not None else ()
    return [*GENERAL, *game.scripted, *own]


def default_baselines(game: Game) -> list[str]:
    """Those that evaluations play against unless told otherwise: none that is slow."""
    own = baseline_names(game)[len(GENERAL) :] if game.baselines is None else game.baselines
    return [*GENERAL, *own]
