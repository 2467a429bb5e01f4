"""The batched driver: plays many games in lockstep and records every decision. Knows no Ray.

A plain Python loop over the batch kernels of a game. Each turn of the loop moves every running game
by one ply; a slot whose game has ended takes the next game at once. A player with a single legal
action is not asked. What happens in a game depends on its own key, the policies in its seats and
nothing else.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from games import CHANCE, TERMINAL, Game
from pipeline.goals import goal_rewards
from pipeline.policies.base import (
    Decisions,
    Policy,
    RememberingPolicy,
    first_legal,
    uniform_decisions,
)
from pipeline.streams import Streams, mix


@dataclass(frozen=True)
class Results:
    """How games ended. G games, in the order they were asked for."""

    returns: np.ndarray  # float32 [G, P]
    plies: np.ndarray  # int32 [G], chance and forced actions included
    decisions: np.ndarray  # int32 [G], in which a policy was asked
    hashes: np.ndarray  # uint64 [G], of the start and all actions; equal games have equal ones


@dataclass(frozen=True)
class Traces:
    """Every decision of some games, N rows sorted by game and ply. Columns as in docs/traces.md."""

    game: np.ndarray  # int32, index among the games asked for
    ply: np.ndarray  # int32
    player: np.ndarray  # int8, who decided
    policy: np.ndarray  # int8, index among the policies
    state: np.ndarray  # the game's state_dtype, before the action
    action: np.ndarray  # int32
    probability: np.ndarray  # float32, with which it was chosen; NaN = unknown
    value: np.ndarray  # float32, V(state) for the player as the policy saw it; NaN = none
    explored: np.ndarray  # bool, drawn uniformly by epsilon
    behaviour: np.ndarray  # int8, in force; -1 = the policy has none
    low_action: np.ndarray  # int8, of the behaviour; -1 = no step of one
    goal_reward: np.ndarray  # float32, of the step's sub-goal; NaN = no step
    reward: np.ndarray  # float32, received from this decision to the player's next one
    return_: np.ndarray  # float32, undiscounted sum of the rewards from here to the end

    def __len__(self) -> int:
        return len(self.game)


class IllegalAction(RuntimeError):
    """A policy chose what the rules forbid."""


@njit(cache=True)
def _sort_out(players, legal, actions, deciding, chance):
    """Who must be asked: rows with a choice, rows of chance. Plays the rows without a choice."""
    asked = 0
    drawn = 0
    for i in range(len(players)):
        if players[i] == CHANCE:
            chance[drawn] = i
            drawn += 1
            continue
        first = first_legal(legal[i], 0)
        if first_legal(legal[i], first + 1) == legal.shape[1]:
            actions[i] = first
        else:
            deciding[asked] = i
            asked += 1
    return asked, drawn


@njit(cache=True)
def draw_outcomes(probabilities, uniforms, rows, actions):
    for i in range(len(rows)):
        left = uniforms[i, 0]
        for outcome in range(probabilities.shape[1]):
            if probabilities[i, outcome] > 0.0:
                actions[rows[i]] = outcome
                left -= probabilities[i, outcome]
                if left < 0.0:
                    break


@njit(cache=True)
def _hash_starts(raw, out):
    for i in range(len(raw)):
        out[i] = 0
        for byte in raw[i]:
            out[i] = mix(out[i] + np.uint64(byte) + np.uint64(0x9E3779B97F4A7C15))


def _start_hashes(states):
    """uint64 [B], of the positions that games start from."""
    out = np.empty(len(states), np.uint64)
    _hash_starts(states.view(np.uint8).reshape(len(states), states.dtype.itemsize), out)
    return out


@njit(cache=True)
def _advance(players, actions, hashes, ended):
    """Adds the actions just played to the hashes; lists the rows that have ended."""
    count = 0
    for i in range(len(players)):
        hashes[i] = mix(hashes[i] + np.uint64(actions[i]) + np.uint64(0x9E3779B97F4A7C15))
        if players[i] == TERMINAL:
            ended[count] = i
            count += 1
    return count


@njit(cache=True)
def credit(game, player, so_far, final, reward, return_):
    """Rewards between a player's own decisions; rows are sorted by game and ply."""
    later = np.zeros(final.shape[1], np.float32)
    for i in range(len(game) - 1, -1, -1):
        if i == len(game) - 1 or game[i + 1] != game[i]:
            later[:] = final[game[i]]
        who = player[i]
        reward[i] = later[who] - so_far[i, who]
        return_[i] = final[game[i], who] - so_far[i, who]
        later[who] = so_far[i, who]


@njit(cache=True)
def _first_illegal(legal, actions):
    for i in range(len(actions)):
        if not 0 <= actions[i] < legal.shape[1] or not legal[i, actions[i]]:
            return i
    return -1


class _Recorder:
    """Decisions in the order they were made, as records: putting a row in its place later moves one
    record instead of an entry in every column."""

    def __init__(self, game: Game, games: int):
        self._rows = 0
        self._ends = np.empty(games, game.state_dtype)
        self._records = np.empty(
            games * min(game.max_decisions, 24) + 1,
            [
                ("state", game.state_dtype),
                ("turn", np.int32),  # how many decisions the game had before
                ("game", np.int32),
                ("action", np.int32),
                ("probability", np.float32),
                ("value", np.float32),
                ("policy", np.int8),
                ("explored", np.bool_),
                ("behaviour", np.int8),
                ("low_action", np.int8),
            ],
        )

    def add(self, states: np.ndarray, **columns: Any) -> None:
        end = self._rows + len(states)
        while end > len(self._records):
            more = np.empty(2 * len(self._records), self._records.dtype)
            _plain(more)[: self._rows] = _plain(self._records)[: self._rows]
            self._records = more
        for name, values in columns.items():
            self._records[name][self._rows : end] = values
        _plain(self._records["state"])[self._rows : end] = _plain(states)
        self._rows = end

    def end(self, games: np.ndarray, states: np.ndarray) -> None:
        """Notes the states that some games ended in."""
        _plain(self._ends)[games] = _plain(states)

    def sorted(self, game: Game, results: Results) -> Traces:
        records = self._records[: self._rows]
        # The place of a row is known without sorting: games before it, decisions before it.
        starts = np.cumsum(results.decisions) - results.decisions
        order = np.empty(self._rows, np.int64)
        order[starts[records["game"]] + records["turn"]] = np.arange(self._rows)
        records = records.take(order)  # twenty times as fast as records[order]
        columns = {name: records[name].copy() for name in records.dtype.names[2:]}
        columns["state"] = _plain(records["state"]).copy().view(game.state_dtype)
        player = columns["state"]["player"].astype(np.int8)
        reward, return_ = np.empty((2, self._rows), np.float32)
        so_far = game.returns_of(columns["state"])
        credit(columns["game"], player, so_far, results.returns, reward, return_)
        goal_reward = goal_rewards(
            game,
            columns["game"],
            columns["state"],
            player,
            columns["behaviour"],
            columns["low_action"],
            self._ends,
        )
        return Traces(
            goal_reward=goal_reward,
            ply=columns["state"]["ply"].copy(),
            player=player,
            reward=reward,
            return_=return_,
            **columns,
        )


def play_games(
    game: Game,
    policies: Sequence[Policy],
    seatings: np.ndarray,
    keys: np.ndarray,
    batch: int = 1024,
    opening_plies: int = 0,
    record: bool = True,
) -> tuple[Results, Traces | None]:
    """Plays one game per key to its end.

    Args:
        game: what is played.
        policies: whoever may sit down.
        seatings: integers [G, P], index of the policy in each seat of each game.
        keys: uint64 [G], from `streams.game_keys`; a game's key decides its start, its chance and
            every draw of its policies. Games with equal keys have equal openings.
        batch: how many games run at once; changes the speed and, but for the rounding of a
            network's values, nothing else.
        opening_plies: before this ply all players choose evenly among their legal actions.
        record: whether to return the decisions too.

    Returns:
        (results, traces); traces is None unless recorded.

    Raises:
        IllegalAction: a policy chose an action that the legal mask forbids.
    """
    count = len(keys)
    results = Results(
        np.empty((count, game.num_players), np.float32),
        np.empty(count, np.int32),
        np.zeros(count, np.int32),
        np.empty(count, np.uint64),
    )
    recorder = _Recorder(game, count) if record else None
    seatings = np.ascontiguousarray(seatings, np.int8)
    only = int(seatings[0, 0]) if count and (seatings == seatings[0, 0]).all() else None

    slots = min(batch, count)
    index = np.arange(slots)  # which game runs in each slot
    started = slots
    states = game.initial_states(keys[:slots])
    keys_of = keys[:slots].copy()
    seats = seatings[:slots].copy()
    turns = np.zeros(slots, np.int32)
    hashes = _start_hashes(states)
    actions = np.zeros(slots, np.int32)
    legal = np.empty((slots, game.num_actions), np.bool_)
    deciding, chance, ended = np.empty((3, slots), np.int64)
    # What players remember of their games, for the policies that do.
    remembering = [each for each in policies if isinstance(each, RememberingPolicy)]
    memory = None
    if remembering:
        memory = remembering[0].fresh_memory((slots, game.num_players))
        blank = memory[0].copy()

    while slots:
        states, legal, actions = states[:slots], legal[:slots], actions[:slots]
        game.legal_actions(game.rules, states, legal)
        asked, drawn = _sort_out(states["player"], legal, actions, deciding, chance)

        if drawn:
            rows = chance[:drawn]
            uniforms = Streams(keys_of[rows], states["ply"][rows]).uniform()
            draw_outcomes(game.chance_of(states.take(rows)), uniforms, rows, actions)

        for who, rows in _by_policy(deciding[:asked], states, seats, only, opening_plies):
            # Views of all rows where it can be; `take` copies records far faster than indexing.
            some = states[rows] if isinstance(rows, slice) else states.take(rows)
            choices = legal[rows] if isinstance(rows, slice) else legal.take(rows, axis=0)
            rng = Streams(keys_of[rows], some["ply"])
            if who < 0:
                decisions = uniform_decisions(choices, rng, explored=True)
            else:
                decisions = _decide(policies[who], game, some, choices, memory, rows, rng)
            _check_legal(game, policies, who, some, choices, decisions.actions)
            actions[rows] = decisions.actions
            if recorder is not None:
                recorder.add(
                    some,
                    game=index[rows],
                    turn=turns[rows],
                    policy=who,
                    action=decisions.actions,
                    probability=decisions.probabilities,
                    value=decisions.values,
                    explored=decisions.explored,
                    behaviour=-1 if decisions.behaviours is None else decisions.behaviours,
                    low_action=-1 if decisions.low_actions is None else decisions.low_actions,
                )
            turns[rows] += 1

        game.step(game.rules, states, actions)
        over = _advance(states["player"], actions, hashes[:slots], ended)
        if over:
            rows = ended[:over]
            done = index[rows]
            last = states.take(rows)
            results.returns[done] = game.returns_of(last)
            if recorder is not None:
                recorder.end(done, last)
            results.plies[done] = states["ply"][rows]
            results.decisions[done] = turns[rows]
            results.hashes[done] = hashes[rows]
            fresh = np.arange(started, min(started + over, count))
            started += len(fresh)
            into, gone = rows[: len(fresh)], rows[len(fresh) :]
            if len(fresh):
                starts = game.initial_states(keys[fresh])
                index[into], turns[into] = fresh, 0
                _plain(states)[into] = _plain(starts)
                keys_of[into], seats[into] = keys[fresh], seatings[fresh]
                hashes[into] = _start_hashes(starts)
                if memory is not None:
                    memory[into] = blank
            if len(gone):
                stay = np.ones(slots, np.bool_)
                stay[gone] = False
                slots -= len(gone)
                kept = [index, turns, hashes, keys_of, seats, _plain(states)]
                for array in kept if memory is None else [*kept, memory]:
                    array[:slots] = array[: len(stay)][stay]
    return results, recorder.sorted(game, results) if recorder is not None else None


def _decide(policy, game, states, legal, memory, rows, rng) -> Decisions:
    """Asks a policy, with what the players remember if it is one that does."""
    if memory is None or not hasattr(policy, "act_on"):  # a Protocol would be asked slowly
        return policy.act(game, states, legal, rng)
    slots = np.arange(len(memory))[rows] if isinstance(rows, slice) else rows
    remembered = memory[slots, states["player"]]
    decisions = policy.act_on(game, states, legal, remembered, rng)
    memory[slots, states["player"]] = remembered
    return decisions


def _plain(states: np.ndarray) -> np.ndarray:
    """The same memory as records without fields, which NumPy moves whole instead of by field."""
    return states.view(np.dtype((np.void, states.dtype.itemsize)))


def _by_policy(deciding, states, seats, only, opening_plies):
    """Yields (policy, rows); policy -1 is the random opening."""
    if len(deciding) and opening_plies:
        opening = states["ply"][deciding] < opening_plies
        if opening.any():
            yield -1, deciding[opening]
            deciding = deciding[~opening]
    if not len(deciding):
        return
    if only is not None:
        # A slice where it can be: views instead of copies of every row.
        yield only, slice(0, len(states)) if len(deciding) == len(states) else deciding
        return
    whose = seats[deciding, states["player"][deciding]]
    for who in np.unique(whose):
        yield int(who), deciding[whose == who]


def _check_legal(game, policies, who, states, legal, actions) -> None:
    row = _first_illegal(legal, actions)
    if row >= 0:
        words = [
            game.action_to_text(game.rules, int(action)) for action in np.nonzero(legal[row])[0]
        ]
        raise IllegalAction(
            f"policy {type(policies[who]).__name__} chose action {actions[row]} in the position\n"
            f"{game.state_to_text(game.rules, states[row])}\nwhere only these are legal: "
            f"{', '.join(words)}"
        )
