"""Fewest own turns to a win against a passive opponent: A*, real-time A*, greedy search.

A node of the search is the start of an own turn. Its successors are all turns (a place for the
reinforcements, a move or none, an attack or none), each followed by the turn of the opponent, who
puts its reinforcements on its weakest node (`agents.passive`). A turn costs 1. The limits that make
a game a draw (R8) are not looked at.

Sources: P. Hart, N. Nilsson, B. Raphael, "A Formal Basis for the Heuristic Determination of Minimum
Cost Paths" (1968); R. Korf, "Real-Time Heuristic Search" (1990).
"""

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
_POSITION = np.dtype([("mine", np.uint64), ("armies", np.int32, 64), ("flags", np.int8)])
_ENTRY = np.dtype(
    [
        ("key", np.uint64),
        ("parent", np.int32),  # entry; -1: the root
        ("position", np.int32),  # index of the position once it has been expanded; else -1
        ("turns", np.int32),  # g
        ("bound", np.int32),  # h
    ]
)


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

# flags: bit 0 = we conquered last turn, bit 1 = the opponent did.


@njit(cache=True)
def _key(rules, mine, armies, flags):
    """64 bits of a position; equal keys are compared in full."""
    low = np.uint64(flags)
    high = np.uint64(flags + 77)
    for node in range(rules.nodes):
        owned = 1 if has(mine, node) else 0
        word = np.uint64(((armies[node] * 2 + owned) * 64 + node) & 0xFFFFFFFF)
        one = scramble(word)
        low += one
        high += scramble(one ^ np.uint64(0x9E3779B9))
    return (scramble(high & np.uint64(0xFFFFFFFF)) << np.uint64(32)) | scramble(
        low & np.uint64(0xFFFFFFFF)
    )


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
def _own_armies(rules, board, position):
    """Own armies after the reinforcements of the turn."""
    mine = position["mine"]
    own = income(rules, board, mine, position["flags"] & 1 != 0)
    for node in range(rules.nodes):
        if has(mine, node):
            own += position["armies"][node]
    return own


@njit(cache=True)
def _fill_successors(rules, board, position, exact, out, work, choices):
    """All turns from a position, into `out`; returns how many, or -1 if they are too many.

    Moves that only shift armies between a place and its neighbour come out twice; the search tells
    equal positions apart.
    """
    mine = position["mine"]
    flags = position["flags"]
    reinforcements = income(rules, board, mine, flags & 1 != 0)
    work[: rules.nodes] = position["armies"][: rules.nodes]
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
def _bound(rules, board, mine, armies, flags):
    return fewest_turns(rules, board, mine, armies, flags & 1 != 0, flags & 2 != 0)


@njit(cache=True)
def _successors(rules, board, position, exact, out):
    """All turns from a position, in `out` or in a larger array; returns (turns, how many)."""
    work = np.zeros(64, np.int32)
    choices = np.empty((2, max(_own_armies(rules, board, position), len(rules.amounts))), np.int32)
    while True:
        work[:] = 0
        found = _fill_successors(rules, board, position, exact, out, work, choices)
        if found >= 0:
            return out, found
        out = np.empty(2 * len(out), out.dtype)


# ---- A*

# A place in the queue is (f, deepest first) in one number; the index of the entry breaks ties.
_DEEPEST = 1 << 23


@njit(cache=True)
def _push(queue, items, size, place, item):
    at = size
    while at > 0:
        above = (at - 1) // 2
        if queue[above] < place or (queue[above] == place and items[above] < item):
            break
        queue[at] = queue[above]
        items[at] = items[above]
        at = above
    queue[at] = place
    items[at] = item


@njit(cache=True)
def _sift(queue, items, size):
    """Puts the last of `size` + 1 places where the first one was taken away."""
    place, item = queue[size], items[size]
    at = 0
    while 2 * at + 1 < size:
        below = 2 * at + 1
        other = below + 1
        if other < size and (
            queue[other] < queue[below]
            or (queue[other] == queue[below] and items[other] < items[below])
        ):
            below = other
        if place < queue[below] or (place == queue[below] and item < items[below]):
            break
        queue[at] = queue[below]
        items[at] = items[below]
        at = below
    queue[at] = place
    items[at] = item


@njit(cache=True)
def _copy(source, out):
    out["mine"] = source["mine"]
    out["armies"][:] = source["armies"]
    out["flags"] = source["flags"]


@njit(cache=True)
def _rebuild(rules, board, entries, made, positions, index, out):
    """The position of an entry, into `out`, from that of its parent."""
    entry = entries[index]
    if entry["position"] >= 0:
        _copy(positions[entry["position"]], out)
        return
    before = positions[entries[entry["parent"]]["position"]]
    out["armies"][:] = before["armies"]
    out["mine"], out["flags"] = _play(
        rules, board, before["mine"], out["armies"], before["flags"], made[index]
    )


@njit(cache=True)
def _same(rules, position, mine, armies, flags):
    if position["mine"] != mine or position["flags"] != flags:
        return False
    for node in range(rules.nodes):
        if position["armies"][node] != armies[node]:
            return False
    return True


@njit(cache=True)
def _slot(rules, board, entries, made, positions, table, key, mine, armies, flags, scratch):
    """The slot of a position in the table: that of its entry, or a free one (-1)."""
    mask = np.uint64(len(table) - 1)
    slot = key & mask
    while table[slot] >= 0:
        index = table[slot]
        if entries[index]["key"] == key:
            _rebuild(rules, board, entries, made, positions, index, scratch)
            if _same(rules, scratch, mine, armies, flags):
                break
        slot = (slot + np.uint64(1)) & mask
    return slot


@njit(cache=True)
def _rehashed(entries, used, slots):
    table = np.full(slots, -1, np.int32)
    mask = np.uint64(slots - 1)
    for index in range(used):
        slot = entries[index]["key"] & mask
        while table[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        table[slot] = index
    return table


@njit(cache=True)
def _grown(array, used, size):
    """An array of at least `size` entries whose first `used` are those of this one."""
    if size <= len(array):
        return array
    larger = np.empty(max(size, 2 * len(array)), array.dtype)
    larger[:used] = array[:used]
    return larger


@njit(cache=True)
def _a_star(rules, board, roots, exact, use_bound, expansions, memory):
    """Searches from roots[0]; returns (status, entries, turns that made them, goal's entry,
    expansions, successors, bound)."""
    root = roots[0]
    entries = np.empty(1024, _ENTRY)
    made = np.empty(1024, _TURN)
    positions = np.empty(64, _POSITION)
    queue, items = np.empty(1024, np.int64), np.empty(1024, np.int32)
    table = np.full(4096, -1, np.int32)
    turns = np.empty(1 << 14, _TURN)
    work = np.zeros(64, np.int32)
    scratch = np.zeros(1, _POSITION)
    bound = _bound(rules, board, root["mine"], root["armies"], root["flags"]) if use_bound else 0
    if bound >= NEVER:
        return UNWINNABLE, entries[:0], made[:0], -1, 0, 0, NEVER
    first = entries[0]
    first["key"] = _key(rules, root["mine"], root["armies"], root["flags"])
    first["parent"] = -1
    first["position"] = -1
    first["turns"] = 0
    first["bound"] = bound
    table[first["key"] & np.uint64(len(table) - 1)] = 0
    _push(queue, items, 0, (bound << 24) + _DEEPEST, 0)
    used, stored, size, expanded, generated, lower = 1, 0, 1, 0, 0, bound

    while size > 0:
        index = items[0]
        depth = _DEEPEST - (queue[0] & ((1 << 24) - 1))
        size -= 1
        _sift(queue, items, size)
        if entries[index]["turns"] != depth:
            continue  # reached in fewer turns since it was queued
        lower = max(lower, depth + entries[index]["bound"])
        if expanded >= expansions or used >= memory:
            return OUT_OF_BUDGET, entries[:used], made[:used], -1, expanded, generated, lower
        here = entries[index]["position"]
        if here < 0:
            here = stored
            stored += 1
            positions = _grown(positions, here, stored)
            if index == 0:
                _copy(root, positions[here])
            else:
                _rebuild(rules, board, entries, made, positions, index, positions[here])
            entries[index]["position"] = here
        mine_here, flags_here = positions[here]["mine"], positions[here]["flags"]
        if mine_here == rules.everything:
            return SOLVED, entries[:used], made[:used], index, expanded, generated, depth
        expanded += 1
        turns, found = _successors(rules, board, positions[here], exact, turns)
        generated += found
        entries = _grown(entries, used, used + found)
        made = _grown(made, used, used + found)
        queue = _grown(queue, size, size + found)
        items = _grown(items, size, size + found)
        if 2 * (used + found) > len(table):
            slots = len(table)
            while slots < 4 * (used + found):
                slots *= 2
            table = _rehashed(entries, used, slots)
        for each in range(found):
            work[:] = positions[here]["armies"]
            mine, flags = _play(rules, board, mine_here, work, flags_here, turns[each])
            bound = 0
            if use_bound:
                bound = _bound(rules, board, mine, work, flags)
                if bound >= NEVER:
                    continue
            key = _key(rules, mine, work, flags)
            slot = _slot(
                rules, board, entries, made, positions, table, key, mine, work, flags, scratch[0]
            )
            at = table[slot]
            if at < 0:
                at = used
                used += 1
                table[slot] = at
                entries[at]["key"] = key
                entries[at]["position"] = -1
                entries[at]["bound"] = bound
            elif entries[at]["turns"] <= depth + 1:
                continue
            entries[at]["parent"] = index
            entries[at]["turns"] = depth + 1
            made[at] = turns[each]
            place = ((depth + 1 + entries[at]["bound"]) << 24) + _DEEPEST - depth - 1
            _push(queue, items, size, place, at)
            size += 1
    return UNWINNABLE, entries[:used], made[:used], -1, expanded, generated, NEVER


# ---- real-time A*


@njit(cache=True)
def _lead(rules, board, mine, armies):
    """The largest lead of an own army over an enemy beside it."""
    best = -(1 << 30)
    for node in range(rules.nodes):
        if has(mine, node):
            for other in rules.beside[board, node]:
                if other < 0:
                    break
                if not has(mine, other):
                    best = max(best, armies[node] - armies[other])
    return best


@njit(cache=True)
def _distinct(rules, board, position, turns, found, out, made):
    """Plays turns and keeps one of those that lead to each position; returns how many."""
    mask = np.uint64(4)
    while mask < np.uint64(2 * found):
        mask *= np.uint64(2)
    table = np.full(np.int64(mask), -1, np.int32)
    mask -= np.uint64(1)
    keys = np.empty(found, np.uint64)
    kept = 0
    for each in range(found):
        child = out[kept]
        child["armies"][:] = position["armies"]
        mine, flags = _play(
            rules, board, position["mine"], child["armies"], position["flags"], turns[each]
        )
        child["mine"] = mine
        child["flags"] = flags
        key = _key(rules, mine, child["armies"], flags)
        slot = key & mask
        while table[slot] >= 0:
            other = table[slot]
            if keys[other] == key and _same(rules, out[other], mine, child["armies"], flags):
                break
            slot = (slot + np.uint64(1)) & mask
        if table[slot] < 0:
            table[slot] = kept
            keys[kept] = key
            made[kept] = turns[each]
            kept += 1
    return kept


@njit(cache=True)
def _learned(rules, board, visited, values, count_visited, position):
    """h of a position: what was learned when it was left, or the bound."""
    for index in range(count_visited):
        if _same(
            rules, visited[index], position["mine"], position["armies"], position["flags"]
        ):
            return values[index]
    return _bound(rules, board, position["mine"], position["armies"], position["flags"])


@njit(cache=True)
def _look_ahead(rules, board, position, exact, cut, visited, values, count_visited, turns):
    """1 + the least h one turn on, not looked at further once it is no more than `cut`."""
    turns, found = _successors(rules, board, position, exact, turns)
    child = np.zeros(1, _POSITION)
    least = NEVER
    for each in range(found):
        child[0]["armies"][:] = position["armies"]
        child[0]["mine"], child[0]["flags"] = _play(
            rules, board, position["mine"], child[0]["armies"], position["flags"], turns[each]
        )
        value = _learned(rules, board, visited, values, count_visited, child[0])
        if value < NEVER:
            least = min(least, 1 + value)
            if least <= cut:
                break
    return least, found, turns


@njit(cache=True)
def _real_time(rules, board, roots, exact, depth, limit):
    """Plays from roots[0]; returns (status, turns, how many, expansions, successors)."""
    visited = np.zeros(limit + 1, _POSITION)
    values = np.zeros(limit + 1, np.int64)
    path = np.empty(limit, _TURN)
    turns, more = np.empty(1 << 14, _TURN), np.empty(1 << 14, _TURN)
    here = visited[0]
    _copy(roots[0], here)
    expanded, generated = 0, 0
    for played in range(limit + 1):
        here = visited[played]
        if here["mine"] == rules.everything:
            return SOLVED, path, played, expanded, generated
        if played == limit:
            break
        turns, found = _successors(rules, board, here, exact, turns)
        expanded += 1
        generated += found
        children, made = np.empty(found + 1, _POSITION), np.empty(found, _TURN)
        kept = _distinct(rules, board, here, turns, found, children, made)
        ranks = np.empty(kept, np.int64)
        bounds = np.empty(kept, np.int64)
        for each in range(kept):
            child = children[each]
            known = played if depth > 0 else 0
            bounds[each] = 1 + _learned(rules, board, visited, values, known, child)
            # Among equal bounds: conquests first, then whoever can attack best.
            lead = min(max(_lead(rules, board, child["mine"], child["armies"]), -10000), 10000)
            enemies = rules.nodes - count(child["mine"])
            ranks[each] = (bounds[each] * 64 + enemies) * 32768 + 10000 - lead
        best, second, chosen = NEVER, NEVER, -1
        for each in np.argsort(ranks, kind="mergesort"):
            value = bounds[each]
            if value >= second:
                break  # looking ahead only raises a value
            child = children[each]
            if depth > 1 and child["mine"] != rules.everything:
                ahead, found, more = _look_ahead(
                    rules, board, child, exact, value - 1, visited, values, played, more
                )
                expanded += 1
                generated += found
                value = min(max(value, 1 + ahead), NEVER)
            if value < best:
                second = best
                best = value
                chosen = each
            elif value < second:
                second = value
        if chosen < 0:
            return UNWINNABLE if played == 0 else OUT_OF_BUDGET, path, played, expanded, generated
        # What this position is worth to whoever comes back: the best of the other ways.
        values[played] = second
        path[played] = made[chosen]
        _copy(children[chosen], visited[played + 1])
    return OUT_OF_BUDGET, path, limit, expanded, generated


# ---- the searches


def _position(rules: Rules, state) -> np.ndarray:
    """A position of the search [1] from a state at the start of a turn.

    Raises:
        ValueError: the state is in the middle of a turn, or the game is over.
    """
    player = int(state["player"])
    if player == TERMINAL:
        raise ValueError("the game is over; a search begins at the start of a turn")
    mine = nodes_of(rules, state["owned"], player)
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
    position = np.zeros(1, _POSITION)
    position["mine"] = mine
    position["armies"] = state["armies"]
    position["flags"] = int(paid) + 2 * int((state["conquered"] >> (1 - player)) & 1)
    return position


def _turn(row) -> Turn:
    return Turn(**{name: int(row[name]) for name in Turn._fields})


def a_star(
    rules: Rules,
    state,
    exact: bool = False,
    use_bound: bool = True,
    expansions: int = 1_000_000,
    memory: int = 20_000_000,
) -> Plan:
    """A shortest plan from a position at the start of a turn, for the player to move.

    Args:
        exact: every number of armies may move and move in; else those of `rules.amounts`.
        use_bound: whether to use `fewest_turns`; else the search is breadth first.
        expansions, memory: how many positions are expanded, and kept, before giving up.

    Raises:
        ValueError: the state is not at the start of a turn.
    """
    root = _position(rules, state)
    status, entries, made, goal, expanded, generated, bound = _a_star(
        rules, int(state["board"]), root, exact, use_bound, expansions, memory
    )
    turns = []
    while goal > 0:
        turns.append(_turn(made[goal]))
        goal = entries[goal]["parent"]
    return Plan(status, tuple(turns[::-1]), expanded, generated, int(bound), status == SOLVED)


def real_time_a_star(
    rules: Rules, state, exact: bool = False, depth: int = 2, limit: int = 200
) -> Plan:
    """Plays to the win, each turn chosen by a look ahead of `depth` turns (1 or 2).

    A position that is left keeps the value of its second-best turn. Turns after which no number of
    turns is enough are never chosen. `limit`: own turns before giving up.

    Raises:
        ValueError: the state is not at the start of a turn.
    """
    root = _position(rules, state)
    status, path, played, expanded, generated = _real_time(
        rules, int(state["board"]), root, exact, depth, limit
    )
    turns = tuple(_turn(row) for row in path[:played])
    return Plan(status, turns, expanded, generated, 0, False)


def greedy_search(rules: Rules, state, exact: bool = False, limit: int = 200) -> Plan:
    """Plays to the win, each turn the one with the best immediate heuristic value: real-time A*
    that looks no further and learns nothing, so it may go round in circles until `limit`.

    Raises:
        ValueError: the state is not at the start of a turn.
    """
    return real_time_a_star(rules, state, exact, depth=0, limit=limit)


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
