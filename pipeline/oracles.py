"""Agents beside exact play: of what they choose, how much is right.

A choice is weakly right if it keeps the result of the position (win, draw or loss), strongly right
if its exact score is the best. A position is contested if its legal actions differ in their result;
elsewhere every choice is weakly right. Scores are those of `games.game.Solver`.
"""

import numpy as np

from games import ILLEGAL, Game, Solution
from games.game import contested, weakly_right
from pipeline.policies.afterstates import unique_states

COUNTS = ("decisions", "kept", "contested", "kept_contested")


def strongly_right(scores: np.ndarray) -> np.ndarray:
    """bool [N, A]: actions with the best score; scores int16 [N, A]."""
    return scores == scores.max(axis=1, keepdims=True)


def answers(solution: Solution, q: np.ndarray) -> dict:
    """How right a policy is that is greedy on q (float [N, A]; illegal entries are not read).

    Of actions that tie for best it plays each equally often, so that it is right in the share of
    them that is right: the exact expectation, without drawing.

    Returns:
        `of`, `optimal`, `weak`, `strong`, `contested`, `weak_contested`, `by_ply`, as in
        docs/architecture.md, metrics.jsonl.
    """
    scores = solution.scores
    q = np.where(scores != ILLEGAL, q, -np.inf)
    chosen = q == q.max(axis=1, keepdims=True)
    ties = chosen.sum(axis=1)
    weak = (chosen & weakly_right(scores)).sum(axis=1) / ties
    strong = (chosen & strongly_right(scores)).sum(axis=1) / ties
    matters = contested(scores)
    plies = solution.states["ply"]
    return {
        "of": len(scores),
        "optimal": int((strong == 1).sum()),
        "weak": float(weak.mean()),
        "strong": float(strong.mean()),
        "contested": int(matters.sum()),
        "weak_contested": float(weak[matters].mean()) if matters.any() else None,
        "by_ply": [
            {
                "ply": int(ply),
                "n": int((plies == ply).sum()),
                "weak": float(weak[plies == ply].mean()),
                "strong": float(strong[plies == ply].mean()),
            }
            for ply in np.unique(plies)
        ],
    }


def has_oracle(game: Game) -> bool:
    """Is exact play cheap from the start on?"""
    if game.solver is None:
        return False
    return bool(game.solver.solvable(game.rules, game.initial_states([0])).all())


def kept_results(game: Game, states: np.ndarray, actions: np.ndarray) -> dict[str, int]:
    """Counts over decisions: `states` [N], `actions` int32 [N] chosen in them.

    Returns:
        `decisions`; `kept`, those that kept the result; `contested`, decisions where that was not
        certain; `kept_contested`, how many of these kept it.
    """
    if game.solver is None:
        raise ValueError(f"game {game.name} has no solver to compare decisions with")
    if not len(states):
        return dict.fromkeys(COUNTS, 0)
    firsts, inverse = unique_states(states)
    scores = game.solver.scores(game.rules, states.take(firsts))
    kept = weakly_right(scores)[inverse, actions]
    matters = contested(scores)[inverse]
    return {
        "decisions": len(states),
        "kept": int(kept.sum()),
        "contested": int(matters.sum()),
        "kept_contested": int((kept & matters).sum()),
    }
