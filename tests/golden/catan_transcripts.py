"""Three games of Catan, a line for every event: a monopoly, a road that is cut, a shortage.

    python tests/golden/catan_transcripts.py

writes tests/golden/catan/*.txt anew: the games are replayed from their seeds and actions, or, where
a file is missing, looked for among games of scripted players until what it is about happens. Read
the difference before you keep it.
"""

import json
import re
from pathlib import Path

import numpy as np

from games import CHANCE, TERMINAL, make_game
from games.catan.words import transcript

FOLDER = Path(__file__).resolve().parent / "catan"


WANTED = {
    "monopoly": r"play monopoly on \w+ and gets ([3-9]|\d\d) ",  # three cards or more
    "road_cut": r"; player \d takes Longest Road; the road of player \d is cut from",
    "shortage": r"; the bank is short of",
}


def _play(game, script, seed):
    rng = np.random.default_rng(seed)
    state = game.initial_states([seed])
    start, actions = state[0].copy(), []
    while state["player"][0] != TERMINAL:
        if state["player"][0] == CHANCE:
            shares = np.cumsum(game.chance_of(state)[0], dtype=np.float64)
            action = np.array([(shares <= rng.random() * shares[-1]).sum()], np.int32)
        else:
            action = np.zeros(1, np.int32)
            game.scripted[script](game.rules, state, game.legal_of(state), rng.random(1), action)
        state = game.after(state, action)
        actions.append(int(action[0]))
    return start, actions


def find(name) -> tuple[dict, int, list[int]]:
    """(params, seed, actions) of a game in which it happens."""
    script = "weighted_random" if name == "shortage" else "value_greedy"
    params = {"players": 4, "trading": "full" if name == "monopoly" else "bank"}
    game = make_game("catan", **params)
    for seed in range(10_000):
        start, actions = _play(game, script, seed)
        if len(actions) < 800 and re.search(WANTED[name], transcript(game.rules, start, actions)):
            return params, seed, actions
    raise AssertionError(f"no game with a {name}")


def text_of(params, seed, actions) -> str:
    game = make_game("catan", **params)
    start = game.initial_states([seed])
    state = start.copy()
    for action in actions:
        legal, chances = game.legal_of(state)[0], game.chance_of(state)[0]
        possible = chances > 0 if state["player"][0] == CHANCE else legal
        assert possible[action], f"action {action} at ply {state['ply'][0]} is not possible"
        state = game.after(state, [action])
    assert state["player"][0] == TERMINAL
    returns = " ".join(f"{value:g}" for value in game.returns_of(state)[0])
    return "\n".join(
        [
            f"params: {json.dumps(params)}",
            f"seed: {seed}",
            f"actions: {' '.join(map(str, actions))}",
            transcript(game.rules, start[0], actions),
            f"returns: {returns}",
            "",
        ]
    )


def replay(text: str) -> str:
    params = json.loads(re.search(r"^params: (.*)$", text, re.M)[1])
    seed = int(re.search(r"^seed: (\d+)$", text, re.M)[1])
    actions = [int(a) for a in re.search(r"^actions: (.*)$", text, re.M)[1].split()]
    return text_of(params, seed, actions)


def write_all() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name in WANTED:
        path = FOLDER / f"{name}.txt"
        path.write_text(replay(path.read_text()) if path.exists() else text_of(*find(name)))


if __name__ == "__main__":
    write_all()
