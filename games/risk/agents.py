"""Scripted players of Risk. docs/games/risk.md says what each does and where it comes from.

All are functions of the position alone, and break ties by the lowest target, then the lowest
source (R10). The last three look through whole turns, choice by choice, with the rules themselves;
asked again later in the turn they find the rest of the same plan.
"""

import numpy as np
from numba import njit

from games.game import TERMINAL
from games.risk.features import border, inward, total
from games.risk.heuristics import fewest_turns
from games.risk.rules import (
    AMOUNT,
    ATTACK,
    CONQUEST_BONUS,
    MOVE,
    PLACE,
    apply,
    bit,
    continent_income,
    count,
    has,
    index_of_all,
    index_of_one,
    legal_actions,
    nodes_of,
    result,
)

_NONE = np.uint64(0)
_BEAM = 8  # plans of a turn that `minimax` answers
_DEPTH = 6  # choices of a turn, and the state after them
_WON = 1e9


# ---- what simple players choose


@njit(cache=True)
def fewest_armies(rules, state, nodes):
    """The node of `nodes` with the fewest armies, the lowest of equals."""
    chosen = -1
    for node in range(rules.nodes):
        if has(nodes, node) and (chosen < 0 or state["armies"][node] < state["armies"][chosen]):
            chosen = node
    return chosen


@njit(cache=True)
def most_armies(rules, state, nodes):
    """The node of `nodes` with the most armies, the lowest of equals; -1 if there is none."""
    chosen = -1
    for node in range(rules.nodes):
        if has(nodes, node) and (chosen < 0 or state["armies"][node] > state["armies"][chosen]):
            chosen = node
    return chosen


@njit(cache=True)
def _weakest_attacker(rules, state, mine, target):
    """The lowest own node that can attack `target`, or -1."""
    for other in rules.beside[state["board"], target]:
        if other < 0:
            break
        if has(mine, other) and state["armies"][other] - state["armies"][target] >= 2:
            return other
    return -1


@njit(cache=True)
def _danger(rules, state, mine, target):
    """How much it hurts the enemy to lose a node's continent: fewer missing nodes weigh more, then
    the larger bonus."""
    board = state["board"]
    theirs = mine ^ rules.everything
    for each in range(rules.continents.shape[1]):
        nodes = rules.continents[board, each]
        if has(nodes, target):
            missing = count(nodes & ~theirs)
            return (64 - missing) * 4096 + rules.bonus[board, each]
    return 0


@njit(cache=True)
def _attack(rules, state, mine, kind):
    """The attack with the largest merit: 0 fewest armies, 1 most armies, 2 worst for the enemy's
    continents and then most armies."""
    best = -1
    merit = 0
    for target in range(rules.nodes):
        if has(mine, target):
            continue
        source = _weakest_attacker(rules, state, mine, target)
        if source < 0:
            continue
        armies = np.int64(state["armies"][target])
        if kind == 0:
            value = -armies
        elif kind == 1:
            value = armies
        else:
            value = (_danger(rules, state, mine, target) << 32) + armies
        if best < 0 or value > merit:
            best = rules.ids[1, source, target]
            merit = value
    return best if best >= 0 else rules.no_attack


@njit(cache=True)
def _stay(rules, state):
    """Neither moves nor attacks, and sends one army where one must go."""
    phase = state["phase"]
    if phase == MOVE:
        return rules.no_move
    if phase == ATTACK:
        return rules.no_attack
    one = index_of_one(rules)
    return rules.first_amount + one if phase == AMOUNT else rules.first_move_in + one


@njit(cache=True)
def passive_choice(rules, state):
    if state["phase"] == PLACE:
        return fewest_armies(rules, state, nodes_of(rules, state["owned"], state["player"]))
    return _stay(rules, state)


@njit(cache=True)
def _aggressive_choice(rules, state, kind):
    mine = nodes_of(rules, state["owned"], state["player"])
    if state["phase"] == PLACE:
        return most_armies(rules, state, mine)
    if state["phase"] == ATTACK:
        return _attack(rules, state, mine, kind)
    return _stay(rules, state)


@njit(cache=True)
def _forward(rules, state, mine):
    """A move of the largest army that is not on the border, a step towards the nearest border."""
    board = state["board"]
    edge = border(rules, board, mine)
    movable = _NONE
    for node in range(rules.nodes):
        if has(mine & ~edge, node) and state["armies"][node] > 1:
            movable |= bit(node)
    source = most_armies(rules, state, movable)
    if source < 0:
        return rules.no_move
    reached = edge
    while True:
        ring = inward(rules, board, mine, reached)
        if ring == _NONE:
            return rules.no_move  # a region without a border: not on a connected board
        if has(ring, source):
            for other in rules.beside[board, source]:
                if other < 0:
                    break
                if has(reached, other):
                    return np.int64(rules.ids[0, source, other])
        reached |= ring


@njit(cache=True)
def _front_choice(rules, state):
    mine = nodes_of(rules, state["owned"], state["player"])
    phase = state["phase"]
    if phase == PLACE:
        return most_armies(rules, state, border(rules, state["board"], mine))
    if phase == MOVE:
        return _forward(rules, state, mine)
    if phase == ATTACK:
        return _attack(rules, state, mine, 0)
    everything = index_of_all(rules, state["armies"][state["source"]])
    return (rules.first_amount if phase == AMOUNT else rules.first_move_in) + everything


# One kernel for the simple players and one for those that look through turns: each compiles all
# that it calls, which takes seconds.


@njit(cache=True)
def _choose(rules, states, kind, actions):
    for i in range(len(states)):
        state = states[i]
        if kind == 2:
            actions[i] = _front_choice(rules, state)
        elif kind >= 3:
            actions[i] = _aggressive_choice(rules, state, kind - 2)
        elif kind == 1 and state["phase"] == ATTACK:
            actions[i] = _attack(rules, state, nodes_of(rules, state["owned"], state["player"]), 0)
        else:
            actions[i] = passive_choice(rules, state)


def passive(rules, states, mask, uniforms, actions):
    """Reinforces its weakest node and never attacks."""
    _choose(rules, states, 0, actions)


def pacifist(rules, states, mask, uniforms, actions):
    """Reinforces its weakest node and attacks the weakest enemy."""
    _choose(rules, states, 1, actions)


def front(rules, states, mask, uniforms, actions):
    """Reinforces its strongest border node, brings the rear forward, attacks the weakest enemy and
    moves in with all it can."""
    _choose(rules, states, 2, actions)


def aggressive_armies(rules, states, mask, uniforms, actions):
    """Reinforces its strongest node and attacks the largest army."""
    _choose(rules, states, 3, actions)


def aggressive(rules, states, mask, uniforms, actions):
    """Reinforces its strongest node and attacks where it keeps the enemy from a continent."""
    _choose(rules, states, 4, actions)


# ---- players that look through a turn


@njit(cache=True)
def _walk(rules, board, mine, state):
    """Steps that all own armies together are away from the border."""
    steps = 0
    distance = 0
    reached = border(rules, board, mine)
    ring = reached
    while ring != _NONE:
        steps += distance * total(rules, state, ring)
        ring = inward(rules, board, mine, reached)
        reached |= ring
        distance += 1
    return steps


@njit(cache=True)
def _best_margin(rules, state, mine):
    """The largest lead of an own army over an enemy beside it."""
    best = -(1 << 30)
    armies = state["armies"]
    for node in range(rules.nodes):
        if has(mine, node):
            for other in rules.beside[state["board"], node]:
                if other < 0:
                    break
                if not has(mine, other):
                    best = max(best, armies[node] - armies[other])
    return best


@njit(cache=True)
def _merit(rules, state, player, by_armies):
    """How good the end of a turn is for whoever only fears running out of turns.

    In this order: turns still needed by the bound (enemy nodes, or `fewest_turns`); enemy nodes;
    the best attack of the next turn; how near the border the armies stand.
    """
    ended = result(rules, state)
    if ended != 0:
        return _WON if (ended > 0) == (player == 0) else -_WON
    board = state["board"]
    mine = nodes_of(rules, state["owned"], player)
    enemies = count(mine ^ rules.everything)
    turns = enemies
    if by_armies:
        turns = fewest_turns(
            rules,
            board,
            mine,
            state["armies"],
            (state["conquered"] >> player) & 1 != 0,
            (state["conquered"] >> (1 - player)) & 1 != 0,
        )
    value = -1e6 * min(turns, 100) - 1e4 * enemies
    if state["player"] == TERMINAL:
        value -= 1e8  # a draw
    value += min(max(_best_margin(rules, state, mine), -400), 400) * 10.0
    return value - min(_walk(rules, board, mine, state), 9000) * 1e-3


@njit(cache=True)
def _evaluate(rules, state, player):
    """A linear evaluation for `minimax`, in armies: a point of income is worth three."""
    ended = result(rules, state)
    if ended != 0:
        return _WON if (ended > 0) == (player == 0) else -_WON
    board = state["board"]
    mine = nodes_of(rules, state["owned"], player)
    theirs = mine ^ rules.everything
    value = 0.0
    for side in range(2):
        nodes = mine if side == 0 else theirs
        who = player if side == 0 else 1 - player
        armies = total(rules, state, nodes)
        regular = rules.base[count(nodes)] + continent_income(rules, board, nodes)
        worth = armies + 3.0 * regular + 1.5 * count(nodes)
        worth += CONQUEST_BONUS * ((state["conquered"] >> who) & 1)
        worth -= 0.1 * _walk(rules, board, nodes, state)
        value += worth if side == 0 else -worth
    return value + 0.05 * min(max(_best_margin(rules, state, mine), -40), 40)


@njit(cache=True)
def _next_action(mask, after):
    for action in range(after, len(mask)):
        if mask[action]:
            return action
    return -1


@njit(cache=True)
def _search(rules, states, masks, cursors, kind, player, values, actions, ends, moves):
    """Goes through the turn that begins in states[0] and keeps the best ends of it.

    Args:
        states, masks, cursors: [_DEPTH], working memory; states[0] is the position.
        kind: 0 merit by enemy nodes, 1 merit by `fewest_turns`, 2 evaluation.
        player: from whose side ends are valued; the worst ends are kept for another's turn.
        values, actions, ends: the best ends, best first; the first choice that led to each.
        moves: whether moves are looked at.

    Returns:
        how many ends are kept.
    """
    mover = states[0]["player"]
    turn = states[0]["turn"]
    sign = 1.0 if mover == player else -1.0
    kept = 0
    depth = 0
    first = -1
    legal_actions(rules, states[:1], masks[:1])
    cursors[0] = 0
    while depth >= 0:
        action = _next_action(masks[depth], cursors[depth])
        if states[depth]["phase"] == MOVE and not moves:
            action = rules.no_move if cursors[depth] == 0 else -1
        if action < 0:
            depth -= 1
            continue
        cursors[depth] = action + 1
        if depth == 0:
            first = action
        states[depth + 1] = states[depth]
        apply(rules, states[depth + 1], action)
        after = states[depth + 1]
        if after["player"] == mover and after["turn"] == turn:
            depth += 1
            legal_actions(rules, states[depth : depth + 1], masks[depth : depth + 1])
            cursors[depth] = 0
            continue
        value = (
            _evaluate(rules, after, player)
            if kind == 2
            else _merit(rules, after, player, kind == 1)
        )
        value *= sign
        at = kept
        while at > 0 and values[at - 1] < value:
            at -= 1
        if at < len(values):
            kept = min(kept + 1, len(values))
            for later in range(kept - 1, at, -1):
                values[later] = values[later - 1]
                actions[later] = actions[later - 1]
                ends[later] = ends[later - 1]
            values[at] = value
            actions[at] = first
            ends[at] = after
    return kept


@njit(cache=True)
def _look_through(rules, states, kind, beam, actions):
    """Takes the best of `beam` plans; with more than one, by the best reply to each."""
    work = np.empty(_DEPTH + 1, states.dtype)
    masks = np.empty((_DEPTH + 1, len(rules.pairs)), np.bool_)
    cursors = np.empty(_DEPTH + 1, np.int64)
    values, firsts = np.empty(beam + 1), np.empty(beam + 1, np.int64)
    ends = np.empty(beam + 1, states.dtype)  # the last place is for the reply
    for i in range(len(states)):
        work[0] = states[i]
        player = states[i]["player"]
        kept = _search(
            rules,
            work,
            masks,
            cursors,
            kind,
            player,
            values[:beam],
            firsts[:beam],
            ends[:beam],
            True,
        )
        best = -np.inf
        for plan in range(kept):
            value = values[plan]
            if beam > 1 and ends[plan]["player"] == 1 - player:
                work[0] = ends[plan]
                _search(
                    rules,
                    work,
                    masks,
                    cursors,
                    kind,
                    player,
                    values[beam:],
                    firsts[beam:],
                    ends[beam:],
                    False,
                )
                value = -values[beam]
            if value > best:
                best = value
                actions[i] = firsts[plan]


def greedy(rules, states, mask, uniforms, actions):
    """The turn after which the enemy has the fewest nodes."""
    _look_through(rules, states, 0, 1, actions)


def greedy_armies(rules, states, mask, uniforms, actions):
    """The turn after which the bound on the turns still needed is the least."""
    _look_through(rules, states, 1, 1, actions)


def minimax(rules, states, mask, uniforms, actions):
    """The turn whose best reply (placing and attacking) leaves the best evaluation."""
    _look_through(rules, states, 2, _BEAM, actions)


SCRIPTED = {
    "passive": passive,
    "pacifist": pacifist,
    "aggressive": aggressive,
    "aggressive_armies": aggressive_armies,
    "greedy": greedy,
    "front": front,
    "greedy_armies": greedy_armies,
    "minimax": minimax,
}
