"""Fewest own turns to a win against `passive`, by breadth-first search over the rules themselves.

Knows nothing of games/risk/search.py: every choice is made by the game's kernels. For small boards.
"""

import dataclasses

import numpy as np

from games import TERMINAL, make_game
from games.risk import make_rules
from games.risk.boards import Continent, Start, make_board

GAME = make_game("risk", board="worked_4")
LONG = {"max_turns": 10_000, "quiet_turns": 10_000}


def game_on(board, **options):
    constants = make_rules((board,), **{**LONG, **options})
    return dataclasses.replace(GAME, rules=constants, num_actions=len(constants.pairs))


def random_board(seed, nodes=6, most=3):
    """A board of 3 to `nodes` nodes with a start: a random tree, some more edges, 1 to 3
    continents, 1 to `most` armies on a node."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(3, nodes + 1))
    edges = {(int(rng.integers(node)), node) for node in range(1, size)}
    for _ in range(int(rng.integers(0, size))):
        u, v = sorted(rng.choice(size, 2, replace=False).tolist())
        edges.add((u, v))
    home = rng.integers(0, 3, size)
    continents = [
        Continent(str(part), int(rng.integers(0, 4)), tuple(np.flatnonzero(home == part).tolist()))
        for part in np.unique(home)
    ]
    owner = rng.integers(0, 2, size)
    owner[rng.choice(size, 2, replace=False)] = 0, 1
    armies = rng.integers(1, most + 1, size)
    start = Start(tuple(owner.tolist()), tuple(armies.tolist()))
    return make_board(f"random_{seed}", sorted(edges), continents, start)


def positions(states):
    """Bytes of what matters of states at the start of a turn."""
    return [
        state["owned"].tobytes() + state["armies"].tobytes() + bytes([state["conquered"]])
        for state in states
    ]


def fewest_turns(game, state, most_positions=100_000):
    """Own turns of player 0, who is to move; None: there is no win; -1: too many positions."""
    waiting = {int(state["turn"][0]): [state.copy()]}
    waiting[min(waiting)][0]["history"] = 0
    seen = set(positions(state))
    while waiting:
        turn = min(waiting)
        running = np.concatenate(waiting.pop(turn))
        ended = []
        while len(running):  # to the end of the own turn, choice by choice
            rows, actions = np.nonzero(game.legal_of(running))
            after = game.after(running.take(rows), actions)
            if (game.returns_of(after)[:, 0] > 0).any():
                return (turn + 2) // 2
            after = after[after["player"] != TERMINAL]
            same = (after["player"] == 0) & (after["turn"] == turn)
            ended.append(after[~same])
            running = np.unique(after[same])
        later = np.unique(np.concatenate(ended))
        while (replying := later["player"] == 1).any():
            asked = later[replying]
            actions = np.empty(len(asked), np.int32)
            GAME.scripted["passive"](
                game.rules, asked, game.legal_of(asked), np.zeros(len(asked)), actions
            )
            later = np.concatenate([later[~replying], game.after(asked, actions)])
        later = later[later["player"] == 0]
        # A position reached again is no better; without a history no game ends by repetition.
        later["history"] = 0
        later["ply"] = 0
        fresh = []
        for row, key in enumerate(positions(later)):
            if key not in seen:
                seen.add(key)
                fresh.append(row)
        if len(seen) > most_positions:
            return -1
        for number in np.unique(later[fresh]["turn"]):
            some = later[fresh]
            waiting.setdefault(int(number), []).append(some[some["turn"] == number])
    return None
