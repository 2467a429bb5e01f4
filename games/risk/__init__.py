"""Risk on a graph: two players, deterministic battles. docs/games/risk.md.

boards.py     boards as data: files, checks, generated ones
rules.py      the state and the rules, as kernels
features.py   what a player sees of a position
agents.py     scripted players
search.py     fewest turns against a passive opponent: A*, real-time A*, greedy
words.py      text, JSON and pictures
"""

import hashlib
import re
from functools import lru_cache

import numpy as np

from games.game import ActionTypes, Game
from games.risk import agents, boards, features, rules
from games.risk.boards import Board, shipped
from games.risk.rules import MAX_NODES, NODES_THEN_ARMIES, STATE, Rules
from games.risk.words import Words, start_of

_MAX_TURNS = 10_000
_MAX_BOARDS = 10_000
_MAX_MEAN_ARMIES = 1000
_MAX_AMOUNTS = 1000


def make(
    board: str = "worked_4",
    nodes: int = 12,
    boards: int = 64,
    board_seed: int = 1,
    start: str = "board",
    mean_armies: int = 3,
    base: str = "none",
    move_range: str = "adjacent",
    amounts: str = "1,1/2,all",
    max_turns: int = 200,
    quiet_turns: int = 60,
    adjudicate: str = "none",
) -> Game:
    """Risk on one board, or on many generated ones of one size.

    Args:
        board: a shipped board, the path of a file, or "generated".
        nodes, boards, board_seed: how large generated boards are, how many there are, and which
            ones; each game is played on one of them.
        start: "board" = the board's own start where it has one; "random" = drawn for every game.
        mean_armies: armies per node of a start that is drawn.
        base: reinforcement of every turn: "none", "classic" (a third of the nodes held, at least
            3), or a number.
        move_range: how far a move may go: "adjacent", or "connected" through own nodes.
        amounts: what a move and a conquest may send, divided by commas: numbers, ranges such as
            2-9, fractions of what can go, "all"; 1 and all must be among them.
        max_turns, quiet_turns: turns of either player, and those since a conquest, until a draw.
        adjudicate: "none", or "nodes_then_armies": who wins where turns run out.

    Raises:
        ValueError: a parameter is out of range, or the board is none.
    """
    _one_of("start", start, ("board", "random"))
    _one_of("move_range", move_range, ("adjacent", "connected"))
    _one_of("adjudicate", adjudicate, ("none", "nodes_then_armies"))
    _within("max_turns", max_turns, 1, _MAX_TURNS)
    _within("quiet_turns", quiet_turns, 1, _MAX_TURNS)
    _within("mean_armies", mean_armies, 1, _MAX_MEAN_ARMIES)
    _within("boards", boards, 1, _MAX_BOARDS)
    chosen = _boards(board, nodes, boards, board_seed)
    constants = make_rules(
        chosen,
        start=start,
        mean_armies=mean_armies,
        base=base,
        connected=move_range == "connected",
        amounts=amounts,
        max_turns=max_turns,
        quiet_turns=quiet_turns,
        adjudicate=NODES_THEN_ARMIES if adjudicate == "nodes_then_armies" else 0,
    )
    words = Words(chosen)
    return Game(
        name="risk",
        params={
            "board": board,
            "nodes": nodes,
            "boards": boards,
            "board_seed": board_seed,
            "start": start,
            "mean_armies": mean_armies,
            "base": base,
            "move_range": move_range,
            "amounts": amounts,
            "max_turns": max_turns,
            "quiet_turns": quiet_turns,
            "adjudicate": adjudicate,
        },
        rules=constants,
        num_players=2,
        num_actions=len(constants.pairs),
        state_dtype=STATE,
        observation_names=features.NAMES,
        max_decisions=5 * max_turns,
        init=rules.init,
        legal_actions=rules.legal_actions,
        step=rules.step,
        observe=features.observe,
        returns=rules.returns,
        state_to_text=words.state_to_text,
        state_from_text=words.state_from_text,
        action_to_text=words.action_to_text,
        state_to_json=words.state_to_json,
        state_to_svg=words.state_to_svg,
        scripted=agents.SCRIPTED,
        action_types=_action_types(constants),
        zero_sum=True,
        files=_files(chosen) if board not in ("generated", *shipped()) else None,
    )


def _files(chosen: tuple[Board, ...]) -> str:
    """`Game.files`: the boards as they are, however a file words them."""
    return hashlib.sha256("".join(each.to_text() for each in chosen).encode()).hexdigest()


def _action_types(constants: Rules) -> ActionTypes:
    """The phases, and what leaves a phase out."""
    names = ("place", "no move", "move", "amount", "no attack", "attack", "move in")
    firsts = (
        0,
        constants.no_move,
        constants.no_move + 1,
        constants.first_amount,
        constants.no_attack,
        constants.no_attack + 1,
        constants.first_move_in,
        len(constants.pairs),
    )
    return ActionTypes(names, np.repeat(np.arange(len(names), dtype=np.int8), np.diff(firsts)))


def _within(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise ValueError(f"{name} of game risk must lie in {low}..{high}, got {value}")


def _one_of(name: str, value: str, options: tuple[str, ...]) -> None:
    if value not in options:
        raise ValueError(f"{name} of game risk must be one of {', '.join(options)}, got {value!r}")


@lru_cache(maxsize=8)
def _generated(nodes: int, count: int, seed: int) -> tuple[Board, ...]:
    return tuple(boards.generate(nodes, seed * _MAX_BOARDS + each) for each in range(count))


def _boards(board: str, nodes: int, count: int, seed: int) -> tuple[Board, ...]:
    if board != "generated":
        return (boards.load(board),)
    _within("nodes", nodes, 6, MAX_NODES)
    _within("board_seed", seed, 0, 10**9)
    return _generated(nodes, count, seed)


def _base_table(base: str) -> np.ndarray:
    """int32 [65]: reinforcement by the number of nodes held."""
    held = np.arange(MAX_NODES + 1)
    if base == "classic":
        return np.maximum(3, held // 3).astype(np.int32)
    armies = 0 if base == "none" else int(base) if re.fullmatch(r"\d{1,4}", base) else -1
    if not 0 <= armies <= 1000:
        raise ValueError(
            f"base of game risk must be none, classic or a number in 0..1000, got {base!r}"
        )
    return np.full(MAX_NODES + 1, armies, np.int32)


def _amount_table(amounts: str) -> np.ndarray:
    """int32 [K, 2] of `Rules.amounts`."""
    table: list[tuple[int, int]] = []
    for word in amounts.replace(" ", "").split(","):
        if word == "all":
            found = [(1, 1)]
        elif match := re.fullmatch(r"(\d{1,4})-(\d{1,4})", word):
            first, last = int(match[1]), int(match[2])
            found = [(armies, 0) for armies in range(first, last + 1)] or [(0, 0)]
        elif match := re.fullmatch(r"(\d{1,4})/(\d{1,4})", word):
            found = [(int(match[1]), int(match[2]))]
        elif re.fullmatch(r"\d{1,6}", word):
            found = [(int(word), 0)]
        else:
            found = [(0, 0)]
        table += found
    possible = all(
        (part >= 1 and (parts == 0 or part < parts)) or parts == 1 for part, parts in table
    )
    distinct = len(set(table)) == len(table) <= _MAX_AMOUNTS
    if not (possible and distinct and (1, 0) in table and (1, 1) in table):
        raise ValueError(
            "amounts of game risk must list 1 and all, and may list other numbers, ranges such as "
            f"2-9 and fractions such as 1/2, each once and {_MAX_AMOUNTS} at most, got {amounts!r}"
        )
    return np.array(table, np.int32)


def make_rules(
    chosen: tuple[Board, ...],
    start: str = "board",
    mean_armies: int = 3,
    base: str = "none",
    connected: bool = False,
    amounts: str = "1,1/2,all",
    max_turns: int = 200,
    quiet_turns: int = 60,
    adjudicate: int = 0,
) -> Rules:
    """The constants of the kernels for boards of one size. Arguments: see `make`.

    Raises:
        ValueError: `base` is none of its words, or nobody can ever decide anything on the board.
    """
    size, sets = chosen[0].num_nodes, len(chosen)
    adjacent = np.zeros((sets, size), np.uint64)
    parts = max(len(each.continents) for each in chosen)
    continents = np.zeros((sets, parts), np.uint64)
    bonus = np.zeros((sets, parts), np.int32)
    starts = np.zeros((sets, 2, size), np.int32)
    edges = set()
    for at, each in enumerate(chosen):
        for u, v in each.edges:
            edges |= {(u, v), (v, u)}
            adjacent[at, u] |= rules.bit(v)
            adjacent[at, v] |= rules.bit(u)
        for number, part in enumerate(each.continents):
            bonus[at, number] = part.bonus
            for node in part.nodes:
                continents[at, number] |= rules.bit(node)
        if start == "board":
            starts[at] = start_of(each)
    degree = max(len(near) for each in chosen for near in each.neighbours())
    beside = np.full((sets, size, degree), -1, np.int8)
    for at, each in enumerate(chosen):
        for node, near in enumerate(each.neighbours()):
            beside[at, node, : len(near)] = near
    # All boards of a set share the numbers: an action is the same pair of nodes on each of them.
    attacks = sorted(edges)
    moves = [(u, v) for u in range(size) for v in range(size) if u != v] if connected else attacks
    first_amount = size + 1 + len(moves)
    table = _amount_table(amounts)
    no_attack = first_amount + len(table)
    first_move_in = no_attack + 1 + len(attacks)
    pairs = np.full((first_move_in + len(table), 2), -1, np.int16)
    ids = np.full((2, size, size), -1, np.int16)
    for kind, first, listed in ((0, size + 1, moves), (1, no_attack + 1, attacks)):
        for offset, pair in enumerate(listed):
            pairs[first + offset] = pair
            ids[kind][pair] = first + offset
    made = Rules(
        nodes=size,
        everything=np.uint64(2**size - 1),
        adjacent=adjacent,
        beside=beside,
        continents=continents,
        bonus=bonus,
        base=_base_table(base),
        starts=starts,
        mean_armies=mean_armies,
        connected=int(connected),
        max_turns=max_turns,
        quiet_turns=quiet_turns,
        adjudicate=adjudicate,
        amounts=table,
        pairs=pairs,
        ids=ids,
        no_move=size,
        first_amount=first_amount,
        no_attack=no_attack,
        first_move_in=first_move_in,
    )
    states = np.zeros(sets if sets == 1 else 0, STATE)
    rules.init(made, states, np.zeros(len(states), np.uint64))
    if (states["player"] < 0).any():
        raise ValueError(
            f"board {chosen[0].name!r}: nobody can move, attack or be reinforced from its start; "
            "give it armies that can, or base of game risk"
        )
    return made


def state_to_svg(game: Game, state, width: int = 960) -> str:
    """A picture of a position, `width` pixels wide."""
    params = game.params
    chosen = _boards(params["board"], params["nodes"], params["boards"], params["board_seed"])
    return Words(chosen).state_to_svg(game.rules, state, width)


__all__ = ["make", "make_rules", "state_to_svg"]
