"""Plays 40 fixed games on small boards and prints one digest of all that the kernels said.

Run as a script under NUMBA_DISABLE_JIT or NUMBA_BOUNDSCHECK by test_run_modes.py, and with the
argument `slow` by tests/slow/test_slow_run_modes.py.
"""

import hashlib
import sys

import numba
import numpy as np

from games import CHANCE, TERMINAL, make_game

# Game, parameters, scripted players that are asked, the ply from which the solver is: without the
# JIT a search may take minutes.
PLAYED = (
    ("sumto", {"target": 23, "max_step": 4}, ("perfect",), 0),
    ("k_in_a_row", {"width": 4, "height": 4, "k": 3}, ("block_or_random", "alpha_beta_2"), 10),
    ("k_in_a_row", {"width": 16, "height": 3, "k": 4}, ("block_or_random",), 44),  # all 64 bits
    ("k_in_a_row", {"width": 1, "height": 9, "k": 5}, ("alpha_beta_2", "perfect"), 0),
)
# Games whose kernels take half a minute to compile with bounds checks.
SLOW = (
    (
        "catan",
        {"points_to_win": 3, "turn_limit": 8, "counter_offers": True},
        ("weighted_random", "value_greedy"),
        0,
    ),
    (
        "catan",
        {"players": 2, "turn_limit": 6, "observation": "raw", "friendly_robber": True},
        ("weighted_random",),
        0,
    ),
    ("risk", {"board": "worked_4", "max_turns": 4}, (), 0),
    (
        "risk",
        {"board": "ring_6", "base": "classic", "move_range": "connected", "max_turns": 2},
        (),
        0,
    ),
)


def digest(played=PLAYED) -> str:
    said = hashlib.sha256()
    rng = np.random.default_rng(11)
    for name, params, scripts, solved_from in played:
        game = make_game(name, **params)
        states = game.initial_states(np.arange(10))
        over = False
        while not over:
            over = (states["player"] == TERMINAL).all()
            legal = game.legal_of(states)
            views = [game.observations_of(states, np.full(10, player)) for player in (0, 1)]
            chances = game.chance_of(states)
            for array in (states, legal, chances, *views, game.returns_of(states)):
                said.update(array.tobytes())
            deciding = np.flatnonzero(states["player"] >= 0)
            for script in scripts:
                chosen = np.zeros(len(deciding), np.int32)
                uniforms = rng.random(len(deciding))
                some = states.take(deciding)
                game.scripted[script](game.rules, some, legal[deciding], uniforms, chosen)
                said.update(chosen.tobytes())
            if game.solver is not None and states["ply"].max() >= solved_from:
                said.update(game.solver.scores(game.rules, states).tobytes())
            actions = np.where(legal, rng.random(legal.shape), -1).argmax(axis=1)
            by_chance = states["player"] == CHANCE
            if by_chance.any():
                drawn = np.where(chances > 0, rng.random(chances.shape), -1).argmax(axis=1)
                actions = np.where(by_chance, drawn, actions)
            states = game.after(states, actions)
    return said.hexdigest()


def bounds_are_checked() -> bool:
    """Hands `observe` an array that is too small; only for a process that checks bounds."""
    game = make_game("k_in_a_row", width=4, height=4, k=3)
    try:
        game.observe(
            game.rules,
            game.initial_states([0]),
            np.zeros(1, np.int32),
            np.zeros((1, 2), np.float32),
        )
    except IndexError:
        return True
    return False


if __name__ == "__main__":
    print(digest(SLOW if sys.argv[1:] == ["slow"] else PLAYED))
    print("jit", "off" if numba.config.DISABLE_JIT else "on")
    if numba.config.BOUNDSCHECK:
        print("bounds", "checked" if bounds_are_checked() else "not checked")
