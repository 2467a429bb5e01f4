"""Every position of a small k in a row, walked by the rules: what brute force stands on."""

import numpy as np

from games import ILLEGAL, TERMINAL


def layers(game):
    """Distinct positions ply by ply: (states, ways, parents, children).

    ways: how many action sequences lead to each state. parents, children: the edges to the layer
    after, as indices into both.
    """
    width, height = game.params["width"], game.params["height"]
    markers = sum(1 << column * (height + 1) for column in range(width))
    states, ways = game.initial_states([0]), np.ones(1)
    while True:
        parents, actions = np.nonzero(game.legal_of(states))
        if not len(parents):
            yield states, ways, parents, parents
            return
        after = game.after(states[parents], actions)
        # The mover's discs under a marker on the first empty cell of each column: one per position.
        key = after["mover"] + after["occupied"] + np.uint64(markers)
        _, first, children = np.unique(key, return_index=True, return_inverse=True)
        yield states, ways, parents, children
        states, ways = after[first], np.bincount(children, ways[parents])


def scored_layers(game):
    """Exact scores by retrograde analysis, a layer per ply: (states [N], scores int16 [N, A]).

    The scale of `games.k_in_a_row_solver`: a win whose last disc is dropped at ply p is worth
    (cells + 1 - p) // 2.
    """
    cells = game.params["width"] * game.params["height"]
    graph = list(layers(game))
    scored, best = [], None
    for ply, (states, _, parents, children) in reversed(list(enumerate(graph))):
        scores = np.full((len(states), game.num_actions), ILLEGAL, np.int16)
        over = states["player"] == TERMINAL
        if best is not None:
            rows, actions = np.nonzero(game.legal_of(states))
            assert (rows == parents).all()
            scores[rows, actions] = -best[children]
        # Whoever is to move after the end has lost to the disc before, or it is a draw.
        lost = game.returns_of(states)[:, ply % 2] < 0
        ended = np.where(lost, -((cells + 1 - (ply - 1)) // 2), 0)
        best = np.where(over, ended, scores.max(axis=1))
        scored.append((states, scores))
    return scored[::-1]
