"""Lower bounds on the own turns that a win takes against an opponent who only places armies.

Seen from the start of an own turn. A plan of T own turns sees T own reinforcements and T - 1 of the
opponent's. A turn conquers at most one node, and a passive opponent takes none back, so the number
of enemy nodes is a bound; `fewest_turns` also looks at armies. Derivation: docs/games/risk.md.
"""

import numpy as np
from numba import njit

from games.risk.rules import (
    CONQUEST_BONUS,
    bit,
    component,
    continent_income,
    count,
    has,
)

NEVER = 1 << 30  # no number of turns is enough
_NONE = np.uint64(0)


@njit(cache=True)
def _idle_turns(rules, board, mine, armies, first, later):
    """A bound on the turns before the first conquest.

    first, later: own reinforcements of the coming turn and of the turns after it, as long as
    nothing is conquered.
    """
    weakest = NEVER
    own = 0
    for node in range(rules.nodes):
        if not has(mine, node):
            continue
        own += armies[node]
        if rules.adjacent[board, node] & ~mine == _NONE:
            continue
        # The most that can stand here when this turn attacks: reinforcements, placed here or with
        # those that come, and one move.
        most = 0
        if rules.connected == 0:
            for other in rules.beside[board, node]:
                if other < 0:
                    break
                if has(mine, other):
                    most = max(most, armies[other] - 1)
        else:
            region = component(rules, board, mine, node) & ~bit(node)
            for other in range(rules.nodes):
                if has(region, other):
                    most = max(most, armies[other] - 1)
        most += armies[node] + first
        for other in rules.beside[board, node]:
            if other < 0:
                break
            if not has(mine, other):
                if most - armies[other] >= 2:
                    return 0
                weakest = min(weakest, armies[other])
    # Later, at best all armies but one a node stand together.
    most = own - count(mine) + 1 + first + later
    if most - weakest >= 2:
        return 1
    if later <= 0:
        return NEVER
    return 1 + (weakest + 2 - most + later - 1) // later


@njit(cache=True)
def fewest_turns(rules, board, mine, armies, conquered, their_conquest):
    """A lower bound on the own turns to a win (h2), or NEVER.

    The least T of at least enemy nodes + idle turns at which armies could suffice: each conquest
    removes as many armies of one side as of the other, and a node each is left at the end, so
    own armies + own reinforcements - theirs - their reinforcements >= nodes.

    Args:
        mine: uint64, own nodes as bits.
        armies: int32 [.., N].
        conquered, their_conquest: whether 2 armies for a conquest are still to be paid to each.
    """
    theirs = mine ^ rules.everything
    enemies = count(theirs)
    if enemies == 0:
        return 0
    if enemies == rules.nodes:
        return NEVER
    held = rules.nodes - enemies
    balance = -rules.nodes
    for node in range(rules.nodes):
        balance += armies[node] if has(mine, node) else -armies[node]
    paid = CONQUEST_BONUS if conquered else 0
    now = rules.base[held] + continent_income(rules, board, mine)
    idle = _idle_turns(rules, board, mine, armies, now + paid, now)
    if idle == NEVER:
        return NEVER
    least = enemies + idle
    # Every conquest but the last is paid for.
    balance += CONQUEST_BONUS * (enemies - 1) + paid
    turn = 0
    while True:
        turn += 1
        gained = _own_bound(rules, board, theirs, held, turn)
        if turn > 1:
            gained -= _their_bound(rules, board, theirs, enemies, turn - 1)
        balance += gained
        if turn == 2 and their_conquest:
            balance -= CONQUEST_BONUS
        if turn > rules.nodes:  # from here on every turn pays the same
            if turn < least:
                balance += gained * (least - turn)
                turn = least
            if balance >= 0:
                return turn
            return turn + (-balance + gained - 1) // gained if gained > 0 else NEVER
        if turn >= least and balance >= 0:
            return turn


@njit(cache=True)
def _own_bound(rules, board, theirs, held, turn):
    """The most that the own base and continents can pay in that turn, counted from 1."""
    most = rules.base[min(held + turn - 1, rules.nodes - 1)]
    for each in range(rules.continents.shape[1]):
        if count(rules.continents[board, each] & theirs) <= turn - 1:
            most += rules.bonus[board, each]
    return most


@njit(cache=True)
def _their_bound(rules, board, theirs, enemies, lost):
    """The least that the opponent's base and continents pay after it has lost so many nodes.

    It is not defeated yet, so it holds a node at least. A conquest breaks one continent: the
    dearest first.
    """
    least = rules.base[max(enemies - lost, 1)]
    whole = 0
    for each in range(rules.continents.shape[1]):
        nodes = rules.continents[board, each]
        if nodes != _NONE and nodes & theirs == nodes:
            bonus = rules.bonus[board, each]
            dearer = 0
            for other in range(rules.continents.shape[1]):
                nodes = rules.continents[board, other]
                if nodes != _NONE and nodes & theirs == nodes:
                    rival = rules.bonus[board, other]
                    dearer += rival > bonus or (rival == bonus and other < each)
            if dearer >= lost:
                whole += bonus
    return least + whole
