"""The rules of Risk on a graph as kernels. Rule numbers R1-R12 are those of docs/games/risk.md.

State fields beyond the header:

    turn       turns that have ended, of either player
    quiet      turns that have ended without a conquest since the last one
    board      index of the board in the rules
    phase      PLACE, MOVE, AMOUNT, ATTACK or MOVE_IN
    source     AMOUNT, MOVE_IN: the node that armies leave; else -1
    target     the node that they go to; else -1
    conquered  bit p: player p conquered in its last turn and has not been paid for it yet
    owned      bit n: node n is player 0's; all others are player 1's
    armies     on each node, at least 1; 0 beyond the board
    history    digests of the last positions at the start of a turn, at index turn % HISTORY

A turn is at most five choices: a node for the reinforcements, a move, its amount, an attack, the
amount that moves in. A move or a conquest at first sends one army, so that every state between two
choices is a position like any other; the amount then says how many go in all. A choice among one is
no choice: `settle` makes it, and passes the turn where nothing can be done.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from games.game import HEADER, TERMINAL

MAX_NODES = 64
HISTORY = 16

STATE = np.dtype(
    [
        *HEADER,
        ("turn", np.int32),
        ("quiet", np.int32),
        ("board", np.int32),
        ("phase", np.int8),
        ("source", np.int8),
        ("target", np.int8),
        ("conquered", np.uint8),
        ("owned", np.uint64),
        ("armies", np.int32, MAX_NODES),
        ("history", np.uint32, HISTORY),
    ]
)

PLACE, MOVE, AMOUNT, ATTACK, MOVE_IN = 0, 1, 2, 3, 4
PHASES = ("place", "move", "amount", "attack", "move in")
NODES_THEN_ARMIES = 1  # `Rules.adjudicate`
CONQUEST_BONUS = 2  # armies at the start of the turn after a conquest

_TRIES = 1000  # of a start that is drawn

_NONE, _ONE = np.uint64(0), np.uint64(1)
_LOW = np.uint64(0xFFFFFFFF)


class Rules(NamedTuple):
    """N nodes on each of M boards; action numbers a of A."""

    nodes: int
    everything: np.uint64  # bits 0..N-1
    adjacent: np.ndarray  # uint64 [M, N]: neighbours of each node
    beside: np.ndarray  # int8 [M, N, D]: the same as numbers in rising order; -1 behind the last
    continents: np.ndarray  # uint64 [M, C]: nodes of each continent; 0 where a board has fewer
    bonus: np.ndarray  # int32 [M, C]
    base: np.ndarray  # int32 [65]: reinforcement by the number of nodes held
    starts: np.ndarray  # int32 [M, 2, N]: owner and armies; armies 0: drawn by the seed
    mean_armies: int  # per node, of a start that is drawn
    connected: int  # 1: a move may go any way through own nodes; 0: to a neighbour
    max_turns: int
    quiet_turns: int
    adjudicate: int  # 0, or NODES_THEN_ARMIES: who wins when turns run out
    amounts: np.ndarray  # int32 [K, 2]: (n, 0) = n armies, (a, b) = a/b of all that can go
    pairs: np.ndarray  # int16 [A, 2]: source and target of a move or an attack
    ids: np.ndarray  # int16 [2, N, N]: the action that moves, attacks from u to v; -1: none
    no_move: int
    first_amount: int
    no_attack: int
    first_move_in: int


@njit(cache=True)
def bit(node):
    return _ONE << np.uint64(node)


@njit(cache=True)
def has(nodes, node):
    return (nodes >> np.uint64(node)) & _ONE != _NONE


@njit(cache=True)
def count(nodes):
    """How many bits are set. Source: H. Warren, "Hacker's Delight" (2003), figure 5-2."""
    nodes = nodes - ((nodes >> np.uint64(1)) & np.uint64(0x5555555555555555))
    two = np.uint64(0x3333333333333333)
    nodes = (nodes & two) + ((nodes >> np.uint64(2)) & two)
    nodes = (nodes + (nodes >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    nodes = nodes + (nodes >> np.uint64(8))
    nodes = nodes + (nodes >> np.uint64(16))
    nodes = nodes + (nodes >> np.uint64(32))
    return np.int64(nodes & np.uint64(0x7F))


@njit(cache=True)
def nodes_of(rules, owned, player):
    """The nodes of a player, as bits."""
    return owned if player == 0 else owned ^ rules.everything


@njit(cache=True)
def scramble(z):
    """A bijection of 32-bit numbers (held in uint64, where no product overflows) that scatters
    neighbouring inputs. Source: A. Appleby, the finalizer of MurmurHash3 (public domain)."""
    z = z ^ (z >> np.uint64(16))
    z = (z * np.uint64(0x85EBCA6B)) & _LOW
    z = z ^ (z >> np.uint64(13))
    z = (z * np.uint64(0xC2B2AE35)) & _LOW
    return z ^ (z >> np.uint64(16))


@njit(cache=True)
def continent_income(rules, board, mine):
    """Armies a turn for the continents that lie wholly in `mine`."""
    total = 0
    for each in range(rules.continents.shape[1]):
        nodes = rules.continents[board, each]
        if nodes & mine == nodes:
            total += rules.bonus[board, each]
    return total


@njit(cache=True)
def income(rules, board, mine, conquered):
    """Reinforcements at the start of a turn (R3). `conquered`: in the player's last turn."""
    total = rules.base[count(mine)] + continent_income(rules, board, mine)
    return total + CONQUEST_BONUS if conquered else total


@njit(cache=True)
def component(rules, board, nodes, start):
    """The nodes that can be reached from `start` through `nodes`, as bits, `start` included."""
    reached = bit(start)
    waiting = reached
    while waiting != _NONE:
        found = _NONE
        for node in range(rules.nodes):
            if has(waiting, node):
                found |= rules.adjacent[board, node]
        waiting = found & nodes & ~reached
        reached |= waiting
    return reached


@njit(cache=True)
def amount(rules, index, most):
    """How many armies the amount of that index sends, of at most `most` (R4, R5).

    A fraction is rounded up. 0: it is not to be had, being more than `most` or the same as the
    amount of a lower index.
    """
    armies = _amount(rules, index, most)
    for lower in range(index):
        if _amount(rules, lower, most) == armies:
            return 0
    return armies


@njit(cache=True)
def _amount(rules, index, most):
    part = rules.amounts[index, 0]
    parts = rules.amounts[index, 1]
    if parts == 0:
        return part if part <= most else 0
    return (part * most + parts - 1) // parts


@njit(cache=True)
def index_of_all(rules, most):
    """The index of the amount that sends everything that can go."""
    for index in range(len(rules.amounts)):
        if amount(rules, index, most) == most:
            return index
    return -1  # never: "all" is among the amounts


@njit(cache=True)
def index_of_one(rules):
    """The index of the amount that sends a single army."""
    for index in range(len(rules.amounts)):
        if rules.amounts[index, 0] == 1 and rules.amounts[index, 1] == 0:
            return index
    return -1  # never: 1 is among the amounts


@njit(cache=True)
def can_move(rules, state, mine):
    board = state["board"]
    armies = state["armies"]
    beside_movable = _NONE
    for node in range(rules.nodes):
        # A neighbour of one's own is enough: who can reach any own node can reach such a one.
        if has(mine, node) and armies[node] > 1:
            beside_movable |= rules.adjacent[board, node]
    return beside_movable & mine != _NONE


@njit(cache=True)
def can_attack(rules, state, mine):
    board = state["board"]
    armies = state["armies"]
    for node in range(rules.nodes):
        if not has(mine, node) or armies[node] < 3:
            continue
        for at in range(rules.beside.shape[2]):
            other = rules.beside[board, node, at]
            if other < 0:
                break
            if not has(mine, other) and armies[node] - armies[other] >= 2:
                return True
    return False


@njit(cache=True)
def _digest(rules, state):
    """32 bits of everything that a repetition means (R8); never 0, which marks an empty place."""
    owned = state["owned"]
    armies = state["armies"]
    digest = scramble(owned & _LOW) + scramble(_LOW ^ (owned >> np.uint64(32)))
    for node in range(rules.nodes):  # each by itself, not in a chain: many at a time
        digest += scramble(np.uint64((np.int64(armies[node]) * MAX_NODES + node) & 0xFFFFFFFF))
    flags = np.uint64(2 * state["conquered"] + state["player"])
    return max(scramble((digest + flags) & _LOW), _ONE)


@njit(cache=True)
def begin_turn(rules, state):
    """Notes the position at the start of a turn; tells whether it is there for the third time."""
    digest = np.uint32(_digest(rules, state))
    seen = 1
    history = state["history"]
    for index in range(HISTORY):
        seen += 1 if history[index] == digest else 0
    history[state["turn"] % HISTORY] = digest
    return seen >= 3


@njit(cache=True)
def _end_turn(rules, state):
    """Hands the turn over, or ends the game by R8."""
    player = state["player"]
    state["phase"] = PLACE
    state["source"] = -1
    state["target"] = -1
    state["turn"] += 1
    # The bit was cleared when the turn began, so it stands for a conquest of this turn.
    if not (state["conquered"] >> player) & 1:
        state["quiet"] += 1
    if state["turn"] >= rules.max_turns or state["quiet"] >= rules.quiet_turns:
        state["player"] = TERMINAL
        return
    state["player"] = 1 - player
    if begin_turn(rules, state):
        state["player"] = TERMINAL


@njit(cache=True)
def _place(rules, state, node, armies):
    state["armies"][node] += armies
    # Paid, wherever it went: the bonus does not add up (R3).
    state["conquered"] &= 2 if state["player"] == 0 else 1
    state["phase"] = MOVE


@njit(cache=True)
def _send(state, armies):
    source = state["source"]
    target = state["target"]
    state["armies"][source] -= armies
    state["armies"][target] += armies


@njit(cache=True)
def _conquer(rules, state, source, target):
    """R5: both lose the defender's armies, one army moves in. R7: the last node wins."""
    armies = state["armies"]
    player = state["player"]
    armies[source] -= armies[target] + 1
    armies[target] = 1
    state["owned"] ^= bit(target)
    state["conquered"] |= 1 << player
    state["quiet"] = 0
    if nodes_of(rules, state["owned"], player) == rules.everything:
        state["phase"] = PLACE
        state["turn"] += 1
        state["player"] = TERMINAL
        return
    state["source"] = source
    state["target"] = target
    state["phase"] = MOVE_IN


@njit(cache=True)
def settle(rules, state):
    """Goes on to the next choice among two or more, or to the end of the game."""
    while state["player"] != TERMINAL:
        player = state["player"]
        phase = state["phase"]
        mine = nodes_of(rules, state["owned"], player)
        if phase == PLACE:
            armies = income(rules, state["board"], mine, (state["conquered"] >> player) & 1 != 0)
            if armies > 0 and count(mine) > 1:
                return
            node = 0
            while not has(mine, node):
                node += 1
            _place(rules, state, node, armies)
        elif phase == MOVE:
            if can_move(rules, state, mine):
                return
            state["phase"] = ATTACK
        elif phase == ATTACK:
            if can_attack(rules, state, mine):
                return
            _end_turn(rules, state)
        else:
            if state["armies"][state["source"]] > 1:
                return
            if phase == AMOUNT:
                state["source"] = -1
                state["target"] = -1
                state["phase"] = ATTACK
            else:
                _end_turn(rules, state)


@njit(cache=True)
def _draw_start(rules, state, seed, attempt):
    """Half the nodes and equal armies to each player (R1), by the seed.

    The second player gets the odd node. Both have `mean_armies` for each node of the larger half.
    """
    nodes = rules.nodes
    stream = scramble((seed & _LOW) ^ scramble(np.uint64(attempt)))
    stream = scramble(stream ^ (seed >> np.uint64(32)))
    draws = _NONE
    armies = state["armies"]
    armies[:] = 0
    order = armies[:nodes]  # holds the shuffled nodes until the owners are known
    for node in range(nodes):
        order[node] = node
    for node in range(nodes - 1, 0, -1):
        draws += _ONE
        other = np.int64(scramble(stream ^ scramble(draws)) % np.uint64(node + 1))
        kept = order[node]
        order[node] = order[other]
        order[other] = kept
    state["owned"] = _NONE
    for index in range(nodes // 2):
        state["owned"] |= bit(order[index])
    armies[:nodes] = 1
    each = rules.mean_armies * ((nodes + 1) // 2)
    for player in range(2):
        mine = nodes_of(rules, state["owned"], player)
        held = count(mine)
        for _ in range(each - held):
            draws += _ONE
            skip = np.int64(scramble(stream ^ scramble(draws)) % np.uint64(held))
            for node in range(nodes):
                if has(mine, node):
                    if skip == 0:
                        armies[node] += 1
                        break
                    skip -= 1


@njit(cache=True)
def reset(state):
    """The start of a game but for owners and armies."""
    state["player"] = 0
    state["ply"] = 0
    state["turn"] = 0
    state["quiet"] = 0
    state["phase"] = PLACE
    state["source"] = -1
    state["target"] = -1
    state["conquered"] = 0
    state["history"][:] = 0


@njit(cache=True)
def init(rules, states, seeds):
    """The seed chooses the board and, where the board has none, the start.

    A drawn start gives nobody a whole continent and somebody a choice. On boards that cannot have
    such a start the last of many tries stays.
    """
    boards = len(rules.adjacent)
    for i in range(len(states)):
        state = states[i]
        seed = seeds[i]
        board = np.int64(scramble((seed ^ (seed >> np.uint64(32))) & _LOW) % np.uint64(boards))
        state["board"] = board
        given = rules.starts[board, 1, 0] > 0
        first = 0
        for each in range(rules.continents.shape[1]):
            if count(rules.continents[board, each]) == 1:
                first = _TRIES - 1  # somebody holds it in every try, so it is the last that stays
        for attempt in range(first, _TRIES):
            reset(state)
            if given:
                state["owned"] = _NONE
                state["armies"][:] = 0
                for node in range(rules.nodes):
                    state["armies"][node] = rules.starts[board, 1, node]
                    if rules.starts[board, 0, node] == 0:
                        state["owned"] |= bit(node)
            else:
                _draw_start(rules, state, seed, attempt)
            owned = state["owned"]
            fair = (
                continent_income(rules, board, owned) == 0
                and continent_income(rules, board, owned ^ rules.everything) == 0
            )
            begin_turn(rules, state)
            settle(rules, state)
            if given or (fair and state["player"] != TERMINAL):
                break


@njit(cache=True)
def legal_actions(rules, states, mask):
    mask[:] = False
    for i in range(len(states)):
        state = states[i]
        player = state["player"]
        if player == TERMINAL:
            continue
        phase = state["phase"]
        board = state["board"]
        armies = state["armies"]
        mine = nodes_of(rules, state["owned"], player)
        if phase == PLACE:
            for node in range(rules.nodes):
                mask[i, node] = has(mine, node)
        elif phase == MOVE:
            mask[i, rules.no_move] = True
            for node in range(rules.nodes):
                if not has(mine, node) or armies[node] == 1:
                    continue
                if rules.connected == 0:
                    for at in range(rules.beside.shape[2]):
                        other = rules.beside[board, node, at]
                        if other < 0:
                            break
                        if has(mine, other):
                            mask[i, rules.ids[0, node, other]] = True
                else:
                    region = component(rules, board, mine, node) & ~bit(node)
                    for other in range(rules.nodes):
                        if has(region, other):
                            mask[i, rules.ids[0, node, other]] = True
        elif phase == ATTACK:
            mask[i, rules.no_attack] = True
            for node in range(rules.nodes):
                if not has(mine, node) or armies[node] < 3:
                    continue
                for at in range(rules.beside.shape[2]):
                    other = rules.beside[board, node, at]
                    if other < 0:
                        break
                    if not has(mine, other) and armies[node] - armies[other] >= 2:
                        mask[i, rules.ids[1, node, other]] = True
        else:
            first = rules.first_amount if phase == AMOUNT else rules.first_move_in
            for index in range(len(rules.amounts)):
                mask[i, first + index] = amount(rules, index, armies[state["source"]]) > 0


@njit(cache=True)
def apply(rules, state, action):
    """Makes one legal choice in a running game."""
    phase = state["phase"]
    state["ply"] += 1
    if phase == PLACE:
        player = state["player"]
        mine = nodes_of(rules, state["owned"], player)
        paid = (state["conquered"] >> player) & 1 != 0
        _place(rules, state, action, income(rules, state["board"], mine, paid))
    elif phase == MOVE:
        if action == rules.no_move:
            state["phase"] = ATTACK
        else:
            state["source"] = rules.pairs[action, 0]
            state["target"] = rules.pairs[action, 1]
            _send(state, 1)
            state["phase"] = AMOUNT
    elif phase == AMOUNT:
        # One army has gone already, which is why what is left is the most that can go.
        most = state["armies"][state["source"]]
        _send(state, amount(rules, action - rules.first_amount, most) - 1)
        state["source"] = -1
        state["target"] = -1
        state["phase"] = ATTACK
    elif phase == ATTACK:
        if action == rules.no_attack:
            _end_turn(rules, state)
        else:
            _conquer(rules, state, rules.pairs[action, 0], rules.pairs[action, 1])
    else:
        most = state["armies"][state["source"]]
        _send(state, amount(rules, action - rules.first_move_in, most) - 1)
        _end_turn(rules, state)
    settle(rules, state)


@njit(cache=True)
def step(rules, states, actions):
    for i in range(len(states)):
        state = states[i]
        if state["player"] != TERMINAL:
            apply(rules, state, actions[i])


@njit(cache=True)
def adjudged(rules, state):
    """Who is ahead: 1 player 0, -1 player 1, 0 neither. More nodes, then more armies (R8)."""
    nodes = 2 * count(state["owned"]) - rules.nodes
    if nodes != 0:
        return 1 if nodes > 0 else -1
    armies = 0
    for node in range(rules.nodes):
        armies += state["armies"][node] if has(state["owned"], node) else -state["armies"][node]
    return 1 if armies > 0 else (-1 if armies < 0 else 0)


@njit(cache=True)
def result(rules, state):
    """1 if player 0 has won, -1 if player 1 has, 0 for a draw and before the end."""
    if state["player"] != TERMINAL:
        return 0
    if state["owned"] == rules.everything:
        return 1
    if state["owned"] == _NONE:
        return -1
    limit = state["turn"] >= rules.max_turns or state["quiet"] >= rules.quiet_turns
    if limit and rules.adjudicate == NODES_THEN_ARMIES:
        return adjudged(rules, state)
    return 0


@njit(cache=True)
def returns(rules, states, out):
    for i in range(len(states)):
        value = result(rules, states[i])
        out[i, 0] = value
        out[i, 1] = -value
