"""Readable transcripts of one game each: the rules of a game pinned, line by line.

    python tests/golden/transcripts.py

writes every transcript anew: a game that has one is replayed with the same params, seed and
actions; a game of `games.GAMES` that has none gets a random game of its default params. Read the
difference before you keep it: it is a change of the rules, or of the words for them. Where the old
actions are no longer possible, delete the file first.

`PLAYERS` lists further transcripts, <game>-<..>.txt, of games between a game's own players.
"""

import json
import re
from pathlib import Path

import numpy as np

from games import CHANCE, GAMES, TERMINAL, make_game

FOLDER = Path(__file__).resolve().parent
_RISK = {"board": "ring_6", "max_turns": 40}
PLAYERS = {  # file stem -> params, seed, who plays in each seat
    "risk-aggressive-pacifist": (_RISK, 4, ("aggressive", "pacifist")),
    "risk-front-passive": (_RISK, 2, ("front", "passive")),
    "risk-minimax-greedy": (_RISK, 3, ("minimax", "greedy")),
}


def transcript(name, params, seed, actions=None) -> str:
    """One game as text: `actions` in turn, or random ones if None."""
    game = make_game(name, **params)
    rng = np.random.default_rng(seed)
    state = game.initial_states([seed])
    lines = [f"game: {name}", f"params: {json.dumps(dict(game.params))}", f"seed: {seed}"]
    actions = iter(actions) if actions is not None else None
    while state["player"][0] != TERMINAL:
        ply, player = int(state["ply"][0]), int(state["player"][0])
        who = "chance decides" if player == CHANCE else f"player {player} decides"
        lines += ["", f"ply {ply}: {who}", game.state_to_text(game.rules, state[0])]
        if player == CHANCE:
            weights = game.chance_of(state)[0]
            odds = [f"{outcome}: {weights[outcome]:.6f}" for outcome in np.nonzero(weights)[0]]
            lines.append(f"outcomes: {', '.join(odds)}")
        else:
            weights = game.legal_of(state)[0]
            legal = [
                f"{action} = {game.action_to_text(game.rules, int(action))}"
                for action in np.nonzero(weights)[0]
            ]
            lines.append(f"legal: {', '.join(legal)}")
        if actions is None:
            shares = np.cumsum(weights, dtype=np.float64)
            action = int((shares <= rng.random() * shares[-1]).sum())
        else:
            action = next(actions, None)
            possible = np.nonzero(weights)[0].tolist()
            assert action in possible, f"{name}: action {action} at ply {ply} is not in {possible}"
        lines.append(f"action: {action}")
        state = game.after(state, [action])
    returns = " ".join(f"{value:g}" for value in game.returns_of(state)[0])
    lines += ["", f"ply {int(state['ply'][0])}: the end", game.state_to_text(game.rules, state[0])]
    return "\n".join([*lines, f"returns: {returns}", ""])


def replay(text: str) -> str:
    """The transcript that the rules of today give for the game in `text`."""
    name = re.search(r"^game: (\w+)$", text, re.M)[1]
    params = json.loads(re.search(r"^params: (.*)$", text, re.M)[1])
    seed = int(re.search(r"^seed: (\d+)$", text, re.M)[1])
    actions = [int(action) for action in re.findall(r"^action: (\d+)$", text, re.M)]
    return transcript(name, params, seed, actions)


def played_by(name: str, params: dict, seed: int, seats: tuple[str, ...]) -> list[int]:
    """The actions of a game between a game's own players."""
    game = make_game(name, **params)
    state = game.initial_states([seed])
    actions = []
    while state["player"][0] != TERMINAL:
        chosen = np.empty(1, np.int32)
        script = game.scripted[seats[int(state["player"][0])]]
        script(game.rules, state, game.legal_of(state), np.zeros(1), chosen)
        actions.append(int(chosen[0]))
        state = game.after(state, chosen)
    return actions


def path_of(name: str) -> Path:
    return FOLDER / f"{name}.txt"


def write_all() -> None:
    for name in GAMES:
        path = path_of(name)
        text = replay(path.read_text()) if path.exists() else transcript(name, {}, seed=1)
        path.write_text(text)
    for stem, (params, seed, seats) in PLAYERS.items():
        name = stem.partition("-")[0]
        path_of(stem).write_text(
            transcript(name, params, seed, played_by(name, params, seed, seats))
        )


if __name__ == "__main__":
    write_all()
