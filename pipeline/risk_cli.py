"""`selfplay risk`: boards, simulated games and searches of Risk. docs/games/risk.md.

selfplay risk boards                                   the boards that come with the game
selfplay risk convert map.txt --out mine.json          any format that is read, in the canonical one
selfplay risk draw classic_42 --out map.svg            a board with its start
selfplay risk simulate passive front rta_star --games 200 board=generated nodes=20
selfplay risk simulate mine/20 pacifist board_seed=2   a trained policy on boards it has not seen
selfplay risk solve islands_12 base=classic            fewest turns against a passive opponent

simulate: every pair of the players named, both seats of every start. A player is a baseline
(random, passive, pacifist, aggressive, aggressive_armies, greedy, front, greedy_armies, minimax), a
search that takes its opponent for passive (a_star, rta_star), or RUN or RUN/GENERATION.
solve: turns to the win L, expansions T and the performance f * L + T. key=value sets a parameter of
the game (`selfplay train --cfg job game=risk` prints them).
"""

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from games import TERMINAL, Game
from games.risk import boards, search, state_to_svg
from games.risk.agents import passive_choice
from games.risk.rules import adjudged
from pipeline.config import make_game_from
from pipeline.errors import ConfigError, UserError
from pipeline.policies.base import Decisions, Policy
from pipeline.policies.scripted import baseline, baseline_names
from pipeline.policies.store import fits, load_policy
from pipeline.ratings import wilson
from pipeline.run import Run
from pipeline.storage import reason
from pipeline.streams import Streams, game_keys

_SEARCHES = ("a_star", "rta_star")
_MAX_GAMES = 1_000_000  # of a pair; they are all held in memory


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="selfplay risk",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("verb", choices=["boards", "convert", "draw", "simulate", "solve"])
    parser.add_argument("words", nargs="*", help="a board, a file, or players; key=value")
    parser.add_argument("--games", type=int, default=200, help="simulate: per pair (default: 200)")
    parser.add_argument("--starts", type=int, default=10, help="solve: how many (default: 10)")
    parser.add_argument("--seed", type=int, default=1, help="decides starts and choices")
    parser.add_argument("--exact", action="store_true", help="solve: every number of armies moves")
    parser.add_argument("--root", default="runs", help="where the runs are (default: runs)")
    parser.add_argument("--out", help="convert, draw: the file to write (default: the screen)")
    options = parser.parse_intermixed_args(arguments)
    words = [word for word in options.words if "=" not in word]
    params = _params([word for word in options.words if "=" in word])
    if options.verb == "boards":
        print(listing())
    elif options.verb == "simulate":
        if not 2 <= options.games <= _MAX_GAMES or options.games % 2:
            raise ConfigError(
                f"--games must be even, for both seats, and in 2..{_MAX_GAMES}, got {options.games}"
            )
        params.setdefault("board", "generated")
        game = _game(params)
        if len(words) < 2:
            raise ConfigError("simulate needs two players or more, such as: passive front")
        for word in words:
            if words.count(word) > 1:
                raise ConfigError(f"simulate needs different players, got {word} twice")
        players = {word: player(word, game, options.root) for word in words}
        print(simulation(game, players, options.games, options.seed))
    else:
        if len(words) != 1:
            raise ConfigError(f"{options.verb} needs the name or file of one board")
        if options.verb == "solve":
            if not 1 <= options.starts <= _MAX_GAMES:
                raise ConfigError(f"--starts must be in 1..{_MAX_GAMES}, got {options.starts}")
            game = _game({**params, "board": words[0]})
            print(solutions(game, options.starts, options.seed, options.exact))
            return
        board = _board(words[0])
        if options.verb == "convert":
            _write(board.to_text(), options.out)
        else:
            game = _game({**params, "board": words[0]})
            state = game.initial_states([options.seed])[0]
            _write(state_to_svg(game, state), options.out)


def _params(words: list[str]) -> dict[str, Any]:
    params: dict[str, Any] = {}
    for word in words:
        key, _, value = word.partition("=")
        number = re.fullmatch(r"-?\d{1,18}", value)
        params[key.removeprefix("game.")] = int(value) if number else value
    return params


def _game(params: dict[str, Any]) -> Game:
    return make_game_from({"name": "risk", **params})


def _board(name: str) -> boards.Board:
    try:
        return boards.load(name)
    except ValueError as error:
        raise ConfigError(str(error)) from error


def _write(text: str, out: str | None) -> None:
    if out is None:
        print(text, end="" if text.endswith("\n") else "\n")
        return
    try:
        Path(out).write_text(text)
    except OSError as error:
        raise UserError(f"cannot write {out}: {reason(error)}") from error


def listing() -> str:
    """The shipped boards, a line each."""
    lines = [f"{'board':<12} {'nodes':>5} {'edges':>5} {'continents':>10}  start"]
    for name in boards.shipped():
        board = boards.load(name)
        start = "its own" if board.start else "drawn by the seed"
        lines.append(
            f"{name:<12} {board.num_nodes:>5} {len(board.edges):>5} "
            f"{len(board.continents):>10}  {start}"
        )
    return "\n".join(lines)


# ---- players


@dataclass
class Searcher:
    """Plans each own turn as if the opponent were passive, and plays the first turn of the plan.

    Within a turn it goes on with what it has planned, which it knows again by the start of the
    turn; where no plan is found it plays as `passive` does.
    """

    name: str  # of _SEARCHES
    expansions: int = 200  # of A*, after which it looks ahead instead
    _plans: dict[bytes, search.Turn | None] = field(default_factory=dict)

    def act(self, game: Game, states: np.ndarray, legal: np.ndarray, rng: Streams) -> Decisions:
        actions = np.empty(len(states), np.int32)
        for row, state in enumerate(states):
            # The history holds the digest of the position that the turn began with.
            key = state["history"].tobytes() + bytes([state["player"]]) + state["turn"].tobytes()
            if key not in self._plans:
                self._plans[key] = self._plan(game, state)
            turn = self._plans[key]
            actions[row] = (
                passive_choice(game.rules, state)
                if turn is None
                else search.next_action(game.rules, state, turn)
            )
        unknown = np.full(len(states), np.nan, np.float32)
        return Decisions(actions, unknown, unknown, np.zeros(len(states), np.bool_))

    def _plan(self, game: Game, state: np.void) -> search.Turn | None:
        try:
            if self.name == "a_star":
                plan = search.a_star(game.rules, state, expansions=self.expansions)
                if plan.turns:
                    return plan.turns[0]
            plan = search.real_time_a_star(game.rules, state, limit=1)
        except ValueError:  # the first choice of the turn was none, and was made for it
            return None
        return plan.turns[0] if plan.turns else None


def player(name: str, game: Game, root: str) -> Policy:
    """A baseline, a search, or a policy of a run.

    Raises:
        UserError: there is no such player, run or generation.
    """
    if name in baseline_names(game):
        return baseline(name, game)
    if name in _SEARCHES:
        return Searcher(name)
    run_name, _, number = name.partition("/")
    if number and not number.isdecimal():
        raise ConfigError(f"a policy of a run is RUN or RUN/GENERATION, got {name!r}")
    try:
        run = Run.open(root, run_name)
    except UserError as error:
        players = ", ".join([*baseline_names(game), *_SEARCHES])
        raise ConfigError(f"{name!r} is neither a player ({players}) nor a run: {error}") from error
    if run.config.game["name"] != game.name:
        raise ConfigError(f"run {run_name} plays {run.config.game['name']}, not {game.name}")
    generation = int(number) if number else max(run.complete(), default=0)
    source = run.policy(generation) if number else run.champion(generation)
    # What is learned on some boards plays on others: the features are the same.
    learned = make_game_from(run.config.game)
    policy = load_policy(run.storage, source, learned)
    if not fits(policy, learned, game):
        raise ConfigError(
            f"{name} values actions by number, and here the numbers mean others; name a run of "
            f"learner=value_network or learner.trees=type, or simulate {learned.title}"
        )
    return policy


# ---- simulation


@dataclass(frozen=True)
class Games:
    """How games of a pair ended; G games, the first player's seat alternating from 0."""

    returns: np.ndarray  # float32 [G], the first player's
    ahead: np.ndarray  # int8 [G], 1, 0, -1: whether it was ahead at the end by nodes, then armies
    turns: np.ndarray  # int32 [G], of both players


def play_pair(game: Game, pair: Sequence[Policy], games: int, seed: int) -> Games:
    """Plays games in lockstep; games 2i and 2i + 1 have the same start and swapped seats."""
    index = np.arange(games)
    keys = game_keys(seed, "simulate", 0, index // 2)
    states = game.initial_states(keys)
    while (running := np.flatnonzero(states["player"] != TERMINAL)).size:
        some = states.take(running)
        legal = game.legal_of(some)
        actions = np.empty(len(some), np.int32)
        whose = (some["player"] + index[running]) % 2
        for who in (0, 1):
            rows = np.flatnonzero(whose == who)
            if len(rows):
                asked = some.take(rows)
                rng = Streams(keys[running[rows]], asked["ply"])
                actions[rows] = pair[who].act(game, asked, legal[rows], rng).actions
        states[running] = game.after(some, actions)
    seats = index % 2
    ahead = np.array([adjudged(game.rules, state) for state in states], np.int8)
    return Games(
        game.returns_of(states)[index, seats],
        np.where(seats == 0, ahead, -ahead).astype(np.int8),
        states["turn"].copy(),
    )


def simulation(game: Game, players: dict[str, Policy], games: int, seed: int) -> str:
    """A table with a line per pair.

    score: wins and half the draws, with its 95% Wilson interval. turns: median of all games; of
    both players. ahead: the score if draws went to whoever had more nodes, then armies (R8).
    """
    lines = [
        game.title,
        f"{'player':<18} {'against':<18} {'games':>6} {'wins':>6} {'draws':>6} {'losses':>6} "
        f"{'score':>6}  {'95% interval':<15} {'as first':>8} {'as second':>9} {'turns':>6} "
        f"{'ahead':>6}",
    ]
    for first, second in combinations(players, 2):
        played = play_pair(game, (players[first], players[second]), games, seed)
        wins, losses = int((played.returns > 0).sum()), int((played.returns < 0).sum())
        points = (1 + np.sign(played.returns)) / 2
        interval = wilson(float(points.sum()), games)
        adjudicated = np.where(played.returns == 0, played.ahead, np.sign(played.returns))
        lines.append(
            f"{first:<18} {second:<18} {games:>6,} {wins:>6,} {games - wins - losses:>6,} "
            f"{losses:>6,} {points.mean():>6.1%}  {interval.low:.1%} to {interval.high:<7.1%} "
            f"{points[::2].mean():>8.1%} {points[1::2].mean():>9.1%} "
            f"{np.median(played.turns):>6.0f} {(1 + adjudicated.mean()) / 2:>6.1%}"
        )
    return "\n".join(lines)


# ---- searches


def solutions(game: Game, starts: int, seed: int, exact: bool) -> str:
    """A table of the searches on starts of a game: L, T and f * L + T of each."""
    own = game.rules.starts[0, 1, 0] > 0
    states = game.initial_states(game_keys(seed, "solve", 0, np.arange(1 if own else starts)))
    lines = [game.title, *table_head()]
    for number, state in enumerate(states):
        try:
            plans = solve(game, state, exact)
        except ValueError as error:
            raise UserError(f"start {number} of {game.title} cannot be solved: {error}") from error
        for name, plan in plans.items():
            lines.append(table_row(f"start {number}", name, plan))
    return "\n".join(lines)


def solve(game: Game, state: np.void, exact: bool) -> dict[str, search.Plan]:
    return {
        "greedy": search.greedy_search(game.rules, state, exact),
        "RTA*": search.real_time_a_star(game.rules, state, exact),
        "A*": search.a_star(game.rules, state, exact, expansions=20_000),
    }


def table_head() -> list[str]:
    weights = " ".join(f"{f'P, f = {weight:,}':>14}" for weight in search.WEIGHTS)
    return [f"{'position':<24} {'search':<7} {'L':>4} {'T':>7} {weights}"]


def table_row(position: str, name: str, plan: search.Plan) -> str:
    if plan.status != search.SOLVED:
        words = {search.UNWINNABLE: "unwinnable", search.OUT_OF_BUDGET: "not won"}
        return f"{position:<24} {name:<7} {'-':>4} {plan.expansions:>7,} {words[plan.status]:>14}"
    weights = " ".join(f"{plan.performance(weight):>14,}" for weight in search.WEIGHTS)
    return f"{position:<24} {name:<7} {plan.length:>4} {plan.expansions:>7,} {weights}"
