"""Recorded games played again by the rules: as text and as a picture."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from games import CHANCE, TERMINAL, Game
from pipeline import traces
from pipeline.config import make_game_from
from pipeline.errors import UserError
from pipeline.run import Run
from pipeline.selfplay import draw_outcomes
from pipeline.streams import Streams, game_keys


def shards_of(run: Run, game: Game, generation: int) -> Iterator[tuple[str, traces.Shard]]:
    """(path, shard) of a generation in turn.

    Raises:
        ShardError: one is damaged or not the one that the manifest names.
    """
    for entry in run.manifest(generation)["shards"]:
        path = entry["path"]
        yield path, traces.read_shard(run.storage, game, path, entry["sha256"])


def keys_of(shard: traces.Shard) -> np.ndarray:
    """uint64 [G]: the keys of the games of a shard."""
    facts = shard.metadata
    indices = np.arange(facts["first_game"], facts["first_game"] + facts["games"])
    return game_keys(facts["seed"], "selfplay", facts["generation"], indices)


def found(run: Run, generation: int, number: int) -> tuple[Game, traces.Shard]:
    """The shard that has a game, checked by a replay of all its games.

    Raises:
        RunError: there is no such game.
        ShardError: the shard is damaged.
    """
    game = make_game_from(run.config.game)
    entry = run.shard_of_game(generation, number)
    shard = traces.read_shard(run.storage, game, entry["path"], entry["sha256"])
    traces.check(game, shard, keys_of(shard), run.storage.where(entry["path"]))
    return game, shard


class Choice(NamedTuple):
    """A choice of a recorded game: of a policy, of chance, or a player's only action."""

    before: np.ndarray  # the state, [1]
    action: int  # at chance the outcome
    after: np.ndarray
    how: str  # "by g0003-1a2b3c4d, exploring", "the only action"; "" at chance


def choices(game: Game, shard: traces.Shard, number: int) -> Iterator[Choice]:
    """All choices of one game of a shard that has been checked, from its start to its end."""
    facts, rows = shard.metadata, shard.traces
    key = keys_of(shard)[number - facts["first_game"]]
    row = iter(np.flatnonzero(rows.game == number))
    state = game.initial_states([key])
    while state["player"][0] != TERMINAL:
        how = ""
        if state["player"][0] == CHANCE:
            action = np.zeros(1, np.int32)
            uniforms = Streams(np.array([key]), state["ply"]).uniform()
            draw_outcomes(game.chance_of(state), uniforms, np.zeros(1, np.int64), action)
        else:
            legal = np.flatnonzero(game.legal_of(state)[0])
            if len(legal) == 1:
                action = legal.astype(np.int32)
                how = "the only action"
            else:
                at = next(row)
                action = rows.action[at : at + 1]
                how = f"by {facts['policies'][rows.policy[at]]}"
                if rows.explored[at]:
                    how += ", exploring"
                if not np.isnan(rows.probability[at]):
                    how += f", with probability {rows.probability[at]:.3f}"
                if not np.isnan(rows.value[at]):
                    how += f", value {rows.value[at]:+.3f}"
        after = game.after(state, action)
        yield Choice(state, int(action[0]), after, how)
        state = after


def _line(game: Game, choice: Choice) -> str:
    """A choice in a line without how it came about."""
    before = choice.before[0]
    if game.view is not None:
        return game.view.event_to_text(game.rules, before, choice.action, choice.after[0], None)
    if before["player"] == CHANCE:
        return f"chance: {game.outcome_in_words(before, choice.action)}"
    return f"player {before['player']}: {game.action_to_text(game.rules, choice.action)}"


def transcript(game: Game, shard: traces.Shard, number: int, brief: bool = False) -> str:
    """One game of a checked shard as text: every position, or, if brief, the start, a line for
    every choice and the end."""
    lines = [f"generation {shard.metadata['generation']}, game {number}"]
    state = None
    for choice in choices(game, shard, number):
        before, state = choice.before[0], choice.after
        if not brief:
            lines += ["", game.state_to_text(game.rules, before)]
            if before["player"] == CHANCE:
                lines.append(f"  chance: {game.outcome_in_words(before, choice.action)}")
            else:
                text = game.action_to_text(game.rules, choice.action)
                lines.append(f"  player {before['player']}: {text}  ({choice.how})")
            continue
        if before["ply"] == 0:
            lines += ["", game.state_to_text(game.rules, before), ""]
        lines.append(f"{before['ply']:>5}  {_line(game, choice)}")
    assert state is not None  # no game is over at its start
    lines += ["", game.state_to_text(game.rules, state[0])]
    ends = ", ".join(f"player {p} {value:+g}" for p, value in enumerate(game.returns_of(state)[0]))
    return "\n".join([*lines, f"returns: {ends}"])


def picture(game: Game, shard: traces.Shard, number: int) -> str:
    """The last position of one game of a checked shard as SVG.

    Raises:
        UserError: the game draws no pictures.
    """
    if game.state_to_svg is None:
        raise UserError(f"game {game.name} draws no pictures of positions; leave --svg out")
    for choice in choices(game, shard, number):
        end = choice.after
    return game.state_to_svg(game.rules, end[0])
