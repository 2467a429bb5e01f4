"""Fewest own turns to a win against a passive opponent: A*, real-time A*, greedy search.

A node of the search is the start of an own turn. Its successors are all turns (a place for the
reinforcements, a move or none, an attack or none), each followed by the turn of the opponent, who
puts its reinforcements on its weakest node (`agents.passive`). A turn costs 1. The limits that make
a game a draw (R8) are not looked at.

Sources: P. Hart, N. Nilsson, B. Raphael, "A Formal Basis for the Heuristic Determination of Minimum
Cost Paths" (1968); R. Korf, "Real-Time Heuristic Search" (1990).
"""

import heapq
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit

from games.game import TERMINAL
from games.risk.heuristics import NEVER, fewest_turns
from games.risk.rules import (
    AMOUNT,
    ATTACK,
    MOVE,
    PLACE,
    Rules,
    amount,
    bit,
    can_move,
    component,
    count,
    has,
    income,
    nodes_of,
    scramble,
)

SOLVED, UNWINNABLE, OUT_OF_BUDGET = 0, 1, 2
WEIGHTS = (1, 100, 10_000)  # f of the performance measure f * L + T
_NONE = np.uint64(0)
_NO_NODE = 255


class Turn(NamedTuple):
    """One own turn: 255 where there is no node, 0 armies where nothing moves."""

    place: int
    move_from: int
    move_to: int
    moved: int
    attack_from: int
    attack_to: int
    moved_in: int


_TURN = np.dtype(
    [
        ("place", np.uint8),
        ("move_from", np.uint8),
        ("move_to", np.uint8),
        ("attack_from", np.uint8),
        ("attack_to", np.uint8),
        ("moved", np.int32),
        ("moved_in", np.int32),
    ]
)
# A position is a row of N + 3 numbers (uint32): own nodes (low and high half of the bits), flags
# (bit 0: we conquered last turn, bit 1: the opponent did), and the armies of each node.
_HEAD = 3
_LOW = np.uint64(0xFFFFFFFF)


@dataclass(frozen=True)
class Plan:
    """What a search found. With status SOLVED and `optimal`, `turns` holds a shortest plan."""

    status: int  # SOLVED, UNWINNABLE (proved) or OUT_OF_BUDGET
    turns: tuple[Turn, ...]
    expansions: int  # positions whose successors were made: T
    generated: int  # successors made
    bound: int  # no plan has fewer turns than this; NEVER: there is none
    optimal: bool

    @property
    def length(self) -> int:
        """Own turns to the win: L."""
        return len(self.turns)

    def performance(self, weight: int) -> int:
        """weight * L + T, the less the better."""
        return weight * self.length + self.expansions


# ---- successors


@njit(cache=True)
def _nodes(row):
    return (np.uint64(row[1]) << np.uint64(32)) | np.uint64(row[0])


@njit(cache=True)
def _key(row):
    """64 bits of a position; rows of equal keys are compared in full."""
    low, high = _NONE, _NONE
    for at in range(len(row)):
        word = scramble(np.uint64(row[at]) ^ np.uint64(at * 0x9E3779B1 & 0xFFFFFFFF))
        low += word
        high += scramble(word ^ np.uint64(0x9E3779B9))
    return (scramble(high & _LOW) << np.uint64(32)) | scramble(low & _LOW)


@njit(cache=True)
def _same(a, b):
    equal = True
    for at in range(len(a)):
        equal &= a[at] == b[at]
    return equal


@njit(cache=True)
def _reply(rules, board, mine, armies, flags):
    """The passive opponent's turn, in place; returns the flags after it."""
    theirs = mine ^ rules.everything
    if theirs == _NONE:
        return flags & 1
    armies_in = income(rules, board, theirs, flags & 2 != 0)
    if armies_in > 0:
        weakest = -1
        for node in range(rules.nodes):
            if has(theirs, node) and (weakest < 0 or armies[node] < armies[weakest]):
                weakest = node
        armies[weakest] += armies_in
    return flags & 1


@njit(cache=True)
def _play(rules, board, mine, armies, flags, turn):
    """A turn and the reply to it, armies in place; returns (mine, flags)."""
    place = turn["place"]
    if place != _NO_NODE:
        armies[place] += income(rules, board, mine, flags & 1 != 0)
    if turn["moved"] > 0:
        armies[turn["move_from"]] -= turn["moved"]
        armies[turn["move_to"]] += turn["moved"]
    flags &= 2
    source = turn["attack_from"]
    if source != _NO_NODE:
        target = turn["attack_to"]
        armies[source] -= armies[target] + turn["moved_in"]
        armies[target] = turn["moved_in"]
        mine |= bit(target)
        flags |= 1
    return mine, _reply(rules, board, mine, armies, flags)


@njit(cache=True)
def _amounts(rules, most, exact, out):
    """The amounts to choose from, of at most `most`; returns how many."""
    if exact:
        for armies in range(most):
            out[armies] = armies + 1
        return most
    found = 0
    for index in range(len(rules.amounts)):
        armies = amount(rules, index, most)
        if armies > 0:
            out[found] = armies
            found += 1
    return found


@njit(cache=True)
def _turns(rules, board, mine, work, reinforcements, exact, out, choices):
    """All turns from a position with the armies `work`, into `out`; returns how many, or -1 if
    they are too many. Different turns may lead to one position."""
    found = 0
    for place in range(rules.nodes if reinforcements > 0 else 1):
        if reinforcements > 0 and not has(mine, place):
            continue
        work[place] += reinforcements
        for source in range(-1, rules.nodes):
            if source >= 0 and (not has(mine, source) or work[source] < 2):
                continue
            targets = _NONE
            if source >= 0:
                targets = rules.adjacent[board, source] & mine
                if rules.connected != 0 and targets != _NONE:
                    targets = component(rules, board, mine, source) & ~bit(source)
            for target in range(rules.nodes if source >= 0 else 1):
                if source >= 0 and not has(targets, target):
                    continue
                moves = 1
                if source >= 0:
                    moves = _amounts(rules, work[source] - 1, exact, choices[0])
                for each in range(moves):
                    moved = choices[0, each] if source >= 0 else 0
                    if source >= 0:
                        work[source] -= moved
                        work[target] += moved
                    found = _attacks(
                        rules,
                        board,
                        mine,
                        work,
                        exact,
                        place if reinforcements > 0 else _NO_NODE,
                        source if source >= 0 else _NO_NODE,
                        target if source >= 0 else _NO_NODE,
                        moved,
                        out,
                        found,
                        choices[1],
                    )
                    if source >= 0:
                        work[source] += moved
                        work[target] -= moved
                    if found < 0:
                        return -1
        work[place] -= reinforcements
    return found


@njit(cache=True)
def _attacks(rules, board, mine, armies, exact, place, source, target, moved, out, found, choices):
    """Adds the turns that begin so, without and with each attack; -1 if `out` is full."""
    if found >= len(out):
        return -1
    entry = out[found]
    entry["place"] = place
    entry["move_from"] = source
    entry["move_to"] = target
    entry["moved"] = moved
    entry["attack_from"] = _NO_NODE
    entry["attack_to"] = _NO_NODE
    entry["moved_in"] = 0
    found += 1
    for attacker in range(rules.nodes):
        if not has(mine, attacker) or armies[attacker] < 3:
            continue
        for defender in rules.beside[board, attacker]:
            if defender < 0:
                break
            left = armies[attacker] - armies[defender]
            if has(mine, defender) or left < 2:
                continue
            choice = _amounts(rules, left - 1, exact, choices)
            if bit(defender) | mine == rules.everything:
                choice = 1  # the game is won
            for each in range(choice):
                if found >= len(out):
                    return -1
                entry = out[found]
                entry["place"] = place
                entry["move_from"] = source
                entry["move_to"] = target
                entry["moved"] = moved
                entry["attack_from"] = attacker
                entry["attack_to"] = defender
                entry["moved_in"] = choices[each]
                found += 1
    return found


@njit(cache=True)
def _children(rules, board, row, exact, use_bound):
    """The positions that a turn and the reply lead to, each once, without those from which no
    number of turns is enough.

    Returns (rows uint32 [n, N + 3], turns [n], keys uint64 [n], bounds int32 [n], turns looked at).
    """
    nodes = rules.nodes
    mine = _nodes(row)
    flags = np.int64(row[2])
    before = row[_HEAD:].astype(np.int32)
    reinforcements = income(rules, board, mine, flags & 1 != 0)
    own = reinforcements
    for node in range(nodes):
        if has(mine, node):
            own += before[node]
    choices = np.empty((2, max(own, len(rules.amounts))), np.int32)
    turns = np.empty(4096, _TURN)
    found = _turns(rules, board, mine, before.copy(), reinforcements, exact, turns, choices)
    while found < 0:
        turns = np.empty(4 * len(turns), _TURN)
        found = _turns(rules, board, mine, before.copy(), reinforcements, exact, turns, choices)

    slots = 4
    while slots < 2 * found:
        slots *= 2
    table = np.full(slots, -1, np.int32)
    mask = np.uint64(slots - 1)
    rows = np.empty((found, nodes + _HEAD), np.uint32)
    keys = np.empty(found, np.uint64)
    bounds = np.zeros(found, np.int32)
    armies = np.empty(nodes, np.int32)
    kept = 0
    for each in range(found):
        armies[:] = before
        after, their_flags = _play(rules, board, mine, armies, flags, turns[each])
        child = rows[kept]
        child[0] = after & _LOW
        child[1] = after >> np.uint64(32)
        child[2] = their_flags
        for node in range(nodes):
            child[_HEAD + node] = armies[node]
        key = _key(child)
        slot = key & mask
        while table[slot] >= 0:
            if keys[table[slot]] == key and _same(rows[table[slot]], child):
                break
            slot = (slot + np.uint64(1)) & mask
        if table[slot] >= 0:
            continue
        if use_bound:
            bound = fewest_turns(
                rules, board, after, armies, their_flags & 1 != 0, their_flags & 2 != 0
            )
            if bound >= NEVER:
                continue
            bounds[kept] = bound
        table[slot] = kept
        keys[kept] = key
        turns[kept] = turns[each]
        kept += 1
    return rows[:kept], turns[:kept], keys[:kept], bounds[:kept], found


# ---- A*


@njit(cache=True)
def _insert(rows, keys, bounds, depth, count, known, known_keys, known_turns, table, queue):
    """Enters positions that are reached in `depth` turns.

    Args:
        count: how many positions are known; known, known_keys, known_turns, table: those, their
            keys, the fewest turns to each, and an open-addressed table of their numbers.
        queue: int64 [n], receives what is to be queued; 0 where a position was reached as early.

    Returns:
        (numbers int64 [n] of the positions, how many are known now).
    """
    mask = np.uint64(len(table) - 1)
    numbers = np.empty(len(rows), np.int64)
    for each in range(len(rows)):
        slot = keys[each] & mask
        while table[slot] >= 0:
            number = table[slot]
            if known_keys[number] == keys[each] and _same(known[number], rows[each]):
                break
            slot = (slot + np.uint64(1)) & mask
        number = table[slot]
        queue[each] = 0
        numbers[each] = number
        if number >= 0 and known_turns[number] <= depth:
            continue
        if number < 0:
            number = count
            count += 1
            table[slot] = number
            numbers[each] = number
            known[number] = rows[each]
            known_keys[number] = keys[each]
        known_turns[number] = depth
        queue[each] = _place_of(depth + bounds[each], depth)
    return numbers, count


_DEEPEST = 1 << 23


@njit(cache=True)
def _place_of(total, depth):
    """The place in the queue: least f first, then deepest first; at least 1."""
    return (np.int64(total) << 24) + _DEEPEST - depth


@njit(cache=True)
def _fill_table(keys, table):
    mask = np.uint64(len(table) - 1)
    for number in range(len(keys)):
        slot = keys[number] & mask
        while table[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        table[slot] = number


def _grown(array: np.ndarray, used: int, size: int) -> np.ndarray:
    """An array of at least `size` rows whose first `used` are those of this one."""
    if size <= len(array):
        return array
    larger = np.empty((max(size, 2 * len(array)), *array.shape[1:]), array.dtype)
    larger[:used] = array[:used]
    return larger


def a_star(
    rules: Rules,
    state,
    exact: bool = False,
    use_bound: bool = True,
    expansions: int = 1_000_000,
    memory: int = 3_000_000,
) -> Plan:
    """A shortest plan from a position at the start of a turn, for the player to move.

    Args:
        exact: every number of armies may move and move in; else those of `rules.amounts`.
        use_bound: whether to use `fewest_turns`; else the search is breadth first.
        expansions, memory: how many positions are expanded, and kept, before giving up.

    Raises:
        ValueError: the state is not at the start of a turn.
    """
    board = int(state["board"])
    root = _row(rules, state)
    bound = _bound(rules, board, root) if use_bound else 0
    if bound >= NEVER:
        return Plan(UNWINNABLE, (), 0, 0, NEVER, False)
    known = np.empty((1024, len(root)), np.uint32)
    keys, depths = np.empty(1024, np.uint64), np.empty(1024, np.int32)
    parents, made = np.full(1024, -1, np.int32), np.empty(1024, _TURN)
    table = np.full(4096, -1, np.int32)
    known[0], keys[0], depths[0] = root, _key(root), 0
    _fill_table(keys[:1], table)
    queue = [(_place_of(bound, 0), 0)]
    used, expanded, generated, lower = 1, 0, 0, bound
    while queue:
        place, number = heapq.heappop(queue)
        depth = _DEEPEST - (place & (2 * _DEEPEST - 1))
        if depths[number] != depth:
            continue  # reached in fewer turns since it was queued
        lower = max(lower, place >> 24)
        if _mine(known[number]) == rules.everything:
            turns = []
            while parents[number] >= 0:
                turns.append(_turn(made[number]))
                number = int(parents[number])
            return Plan(SOLVED, tuple(turns[::-1]), expanded, generated, depth, True)
        if expanded >= expansions or used >= memory:
            return Plan(OUT_OF_BUDGET, (), expanded, generated, lower, False)
        rows, turns_made, row_keys, bounds, looked_at = _children(
            rules, board, known[number], exact, use_bound
        )
        expanded += 1
        generated += looked_at
        size = used + len(rows)
        known, keys, depths = (_grown(each, used, size) for each in (known, keys, depths))
        parents, made = (_grown(each, used, size) for each in (parents, made))
        if 2 * size > len(table):
            table = np.full(1 << (4 * size - 1).bit_length(), -1, np.int32)
            _fill_table(keys[:used], table)
        places = np.empty(len(rows), np.int64)
        numbers, used = _insert(
            rows, row_keys, bounds, depth + 1, used, known, keys, depths, table, places
        )
        fresh = np.flatnonzero(places)
        parents[numbers[fresh]] = number
        made[numbers[fresh]] = turns_made[fresh]
        for item in zip(places[fresh].tolist(), numbers[fresh].tolist(), strict=True):
            heapq.heappush(queue, item)
    return Plan(UNWINNABLE, (), expanded, generated, NEVER, False)


# ---- real-time A*


@njit(cache=True)
def _leads(rules, board, rows):
    """The largest lead of an own army over an enemy beside it, int64 [n]; 0 after a win."""
    leads = np.zeros(len(rows), np.int64)
    for each in range(len(rows)):
        row = rows[each]
        mine = _nodes(row)
        best = -(1 << 30)
        for node in range(rules.nodes):
            if has(mine, node):
                for other in rules.beside[board, node]:
                    if other < 0:
                        break
                    if not has(mine, other):
                        lead = np.int64(row[_HEAD + node]) - np.int64(row[_HEAD + other])
                        best = max(best, lead)
        leads[each] = best if mine != rules.everything else 0
    return leads


def real_time_a_star(
    rules: Rules, state, exact: bool = False, depth: int = 2, limit: int = 200
) -> Plan:
    """Plays to the win, each turn chosen by a look ahead.

    A position that is left is remembered with the value of its second-best turn: what it is worth
    to whoever comes back. Turns after which no number of turns is enough are never chosen. Equal
    turns: a conquest first, then the best attack next turn, then the first one.

    Args:
        exact: as in `a_star`.
        depth: turns to look ahead, 1 or 2.
        limit: own turns before giving up.

    Raises:
        ValueError: the state is not at the start of a turn.
    """
    return _play_on(rules, state, exact, depth, limit, learns=True)


def greedy_search(rules: Rules, state, exact: bool = False, limit: int = 200) -> Plan:
    """Plays to the win, each turn the one with the best immediate heuristic value. It learns
    nothing on its way, so it may go round in circles until `limit`.

    Raises:
        ValueError: the state is not at the start of a turn.
    """
    return _play_on(rules, state, exact, 1, limit, learns=False)


def _play_on(rules: Rules, state, exact: bool, depth: int, limit: int, learns: bool) -> Plan:
    board = int(state["board"])
    row = _row(rules, state)
    learned: dict[bytes, int] = {}
    turns: list[Turn] = []
    expanded, generated = 0, 0

    def values_of(rows: np.ndarray, bounds: np.ndarray) -> np.ndarray:
        """1 + h of each position: what was learned of it, or the bound."""
        values = 1 + bounds.astype(np.int64)
        if learned:
            for each, child in enumerate(rows):
                values[each] = 1 + learned.get(child.tobytes(), bounds[each])
        return values

    while _mine(row) != rules.everything:
        if len(turns) == limit:
            return Plan(OUT_OF_BUDGET, tuple(turns), expanded, generated, 0, False)
        rows, made, _, bounds, looked_at = _children(rules, board, row, exact, True)
        expanded += 1
        generated += looked_at
        values = values_of(rows, bounds)
        enemies = np.array([rules.nodes - count(_mine(child)) for child in rows])
        best, second, chosen = NEVER, NEVER, -1
        for each in np.lexsort((-_leads(rules, board, rows), enemies, values)):
            value = int(values[each])
            if value >= second:
                break  # looking ahead only raises a value
            if depth > 1 and enemies[each]:
                further, _, _, further_bounds, looked_at = _children(
                    rules, board, rows[each], exact, True
                )
                expanded += 1
                generated += looked_at
                least = values_of(further, further_bounds).min(initial=NEVER)
                value = min(max(value, 1 + int(least)), NEVER)
            if value < best:
                best, second, chosen = value, best, each
            elif value < second:
                second = value
        if chosen < 0:  # nothing can be won from here
            status = OUT_OF_BUDGET if turns else UNWINNABLE
            return Plan(status, tuple(turns), expanded, generated, 0, False)
        if learns:
            learned[row.tobytes()] = second
        turns.append(_turn(made[chosen]))
        row = rows[chosen].copy()
    return Plan(SOLVED, tuple(turns), expanded, generated, 0, False)


# ---- between states and positions


def _mine(row: np.ndarray) -> np.uint64:
    return np.uint64(_nodes(row))  # numba gives a plain int, which would compile everything anew


def _bound(rules: Rules, board: int, row: np.ndarray) -> int:
    flags = int(row[2])
    armies = row[_HEAD:].astype(np.int32)
    return int(fewest_turns(rules, board, _mine(row), armies, flags & 1 != 0, flags & 2 != 0))


def _row(rules: Rules, state) -> np.ndarray:
    """The position of a state at the start of a turn.

    Raises:
        ValueError: the state is in the middle of a turn, or the game is over.
    """
    player = int(state["player"])
    if player == TERMINAL:
        raise ValueError("the game is over; a search begins at the start of a turn")
    mine = np.uint64(nodes_of(rules, state["owned"], player))
    paid = bool((state["conquered"] >> player) & 1)
    placed = income(rules, int(state["board"]), mine, paid) == 0
    begins = state["phase"] == PLACE or (
        placed
        and (
            state["phase"] == MOVE
            or (state["phase"] == ATTACK and not can_move(rules, state, mine))
        )
    )
    if not begins:
        raise ValueError("the turn has begun; a search begins at the start of a turn")
    row = np.empty(rules.nodes + _HEAD, np.uint32)
    row[0], row[1] = mine & _LOW, mine >> np.uint64(32)
    row[2] = int(paid) + 2 * int((state["conquered"] >> (1 - player)) & 1)
    row[_HEAD:] = state["armies"][: rules.nodes]
    return row


def _turn(row) -> Turn:
    return Turn(**{name: int(row[name]) for name in Turn._fields})


def next_action(rules: Rules, state, turn: Turn) -> int:
    """The action by which a turn goes on in a state.

    Raises:
        ValueError: the turn moves a number of armies that `rules.amounts` does not offer.
    """
    phase = int(state["phase"])
    if phase == PLACE:
        return turn.place
    if phase == MOVE:
        if turn.moved == 0:
            return rules.no_move
        return int(rules.ids[0, turn.move_from, turn.move_to])
    if phase == ATTACK:
        if turn.attack_to == _NO_NODE:
            return rules.no_attack
        return int(rules.ids[1, turn.attack_from, turn.attack_to])
    wanted = turn.moved if phase == AMOUNT else turn.moved_in
    first = rules.first_amount if phase == AMOUNT else rules.first_move_in
    most = int(state["armies"][state["source"]])
    for index in range(len(rules.amounts)):
        if amount(rules, index, most) == wanted:
            return first + index
    raise ValueError(f"{wanted} of {most} armies cannot be sent in this game; see its amounts")
