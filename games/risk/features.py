"""What a player sees of a position: features of fixed length that mean the same on every board.

All are seen from one side, and come in pairs, mine and theirs. Shares lie in 0..1, counts of armies
enter as logarithms since they grow without bound. Most of the ideas (border, hinterland, distance
to the frontier, continents held and at risk) are those of M. Wolf, "An Intelligent Artificial
Player for the Game of Risk" (TU Darmstadt, 2005).
"""

import numpy as np
from numba import njit

from games.game import TERMINAL
from games.risk.rules import (
    CONQUEST_BONUS,
    PHASES,
    bit,
    component,
    continent_income,
    count,
    has,
    nodes_of,
)

_SIDE = (
    "node share",
    "log armies",
    "army share",
    "log reinforcements",
    "log continent income",
    "has conquered",
    "largest stack's share of armies",
    "share of nodes on the border",
    "share of armies on the border",
    "mean distance of armies to the border",
    "share of nodes under attack",
    "share of nodes under attack after reinforcements",
    "conquest threatens",
    "cheapest loss",
    "margin of the best attack",
    "continent income at risk",
    "progress on continents",
    "nearness of defeat",
    "largest region's share of nodes",
    "log border armies against the neighbours",
    "margin of the best attack if armies gather",
)
_SHARED = ("army balance", "turns gone", "quiet turns gone", "log nodes of the board")
NAMES = (
    *(f"{who} {each}" for who in ("my", "their") for each in _SIDE),
    *(f"{who} {phase}" for who in ("my", "their") for phase in PHASES),
    *_SHARED,
)
_PER_SIDE = len(_SIDE)
_FIRST_PHASE = 2 * _PER_SIDE
_FIRST_SHARED = _FIRST_PHASE + 2 * len(PHASES)
_NUM_PHASES = len(PHASES)
_NONE = np.uint64(0)


@njit(cache=True)
def border(rules, board, mine):
    """The nodes of `mine` beside others, as bits."""
    found = _NONE
    for node in range(rules.nodes):
        if has(mine, node) and rules.adjacent[board, node] & ~mine != _NONE:
            found |= bit(node)
    return found


@njit(cache=True)
def inward(rules, board, mine, reached):
    """The nodes of `mine` beside `reached` and not in it: the next ring of a search, as bits."""
    found = _NONE
    for node in range(rules.nodes):
        if has(reached, node):
            found |= rules.adjacent[board, node]
    return found & mine & ~reached


@njit(cache=True)
def total(rules, state, nodes):
    """Armies on these nodes."""
    armies = state["armies"]
    found = 0
    for node in range(rules.nodes):
        if has(nodes, node):
            found += armies[node]
    return found


@njit(cache=True)
def _largest_region(rules, board, mine):
    largest = 0
    left = mine
    for node in range(rules.nodes):
        if has(left, node):
            region = component(rules, board, mine, node)
            largest = max(largest, count(region))
            left &= ~region
    return largest


@njit(cache=True)
def _ring(rules, state, mine, nodes):
    """`total` of `nodes` and what is `inward` of them, in one pass."""
    board = state["board"]
    armies = state["armies"]
    found = _NONE
    there = 0
    for node in range(rules.nodes):
        if has(nodes, node):
            there += armies[node]
            found |= rules.adjacent[board, node]
    return there, found & mine & ~nodes


@njit(cache=True)
def _gathered(rules, state, mine, node):
    """Armies that can come together on a node of `mine`, half as many for each step they go."""
    reached = bit(node)
    ring = rules.adjacent[state["board"], node] & mine
    worth = 1.0
    found = np.float64(state["armies"][node])
    while ring != _NONE:
        reached |= ring
        armies, further = _ring(rules, state, mine, ring)
        worth /= 2.0
        found += worth * (armies - count(ring))
        ring = further & ~reached
    return found


# The only divisions by a count that may be 0 are guarded: with no node left there is no border.
@njit(cache=True, error_model="numpy")
def _describe(rules, state, mine, player, theirs_next, out):
    """The features of one side. theirs_next: reinforcements of the opponent's next turn."""
    board = state["board"]
    armies = state["armies"]
    held = count(mine)
    own = total(rules, state, mine)
    everybody = 0
    for node in range(rules.nodes):
        everybody += armies[node]
    conquered = (state["conquered"] >> player) & 1
    from_continents = continent_income(rules, board, mine)
    reinforcements = rules.base[held] + from_continents + CONQUEST_BONUS * conquered
    out[0] = held / rules.nodes
    out[1] = np.log1p(own) / 4.0
    out[2] = own / everybody
    out[3] = np.log1p(reinforcements) / 2.0
    out[4] = np.log1p(from_continents) / 2.0
    out[5] = conquered
    out[6:21] = 0.0
    if held == 0:
        return
    edge = border(rules, board, mine)
    on_edge = 0
    near = 0
    largest = 0
    attacked = 0
    reachable = 0
    cheapest = -1
    margin = -1000000
    gathered = -1000000.0
    at_risk = _NONE
    for node in range(rules.nodes):
        if not has(mine, node):
            continue
        largest = max(largest, armies[node])
        if not has(edge, node):
            continue
        on_edge += armies[node]
        strongest = 0
        weakest = 1 << 30
        for at in range(rules.beside.shape[2]):
            other = rules.beside[board, node, at]
            if other < 0:
                break
            if not has(mine, other):
                strongest = max(strongest, armies[other])
                weakest = min(weakest, armies[other])
                near += armies[other]
                margin = max(margin, armies[node] - armies[other])
        # At the most everybody else stands one step away.
        if armies[node] + (own - armies[node] - held + 1) / 2.0 - weakest > gathered:
            gathered = max(gathered, _gathered(rules, state, mine, node) - weakest)
        if strongest - armies[node] >= 2:
            attacked += 1
        if strongest + theirs_next - armies[node] >= 2:
            reachable += 1
            at_risk |= bit(node)
            if cheapest < 0 or armies[node] < cheapest:
                cheapest = armies[node]
    out[6] = largest / own
    out[7] = count(edge) / held
    out[8] = on_edge / own
    ring = edge
    reached = edge
    distance = 0
    walked = 0.0
    while ring != _NONE:
        there, further = _ring(rules, state, mine, ring)
        walked += distance * there
        ring = further & ~reached
        reached |= ring
        distance += 1
    out[9] = walked / own / 4.0
    out[10] = attacked / held
    out[11] = reachable / held
    out[12] = 1.0 if reachable > 0 else 0.0
    out[13] = np.log1p(cheapest) / 3.0 if cheapest >= 0 else 1.0
    out[14] = margin / (3.0 + abs(margin)) if edge != _NONE else 0.0
    risk = 0
    progress = 0.0
    for each in range(rules.continents.shape[1]):
        nodes = rules.continents[board, each]
        if nodes == _NONE:
            continue
        if nodes & mine == nodes and nodes & at_risk != _NONE:
            risk += rules.bonus[board, each]
        share = count(nodes & mine) / count(nodes)
        progress += rules.bonus[board, each] * share * share
    out[15] = np.log1p(risk) / 2.0
    out[16] = np.log1p(progress) / 2.0
    out[17] = 1.0 / held
    out[18] = _largest_region(rules, board, mine) / held
    out[19] = np.log((1.0 + on_edge) / (1.0 + near)) / 2.0
    out[20] = gathered / (3.0 + abs(gathered)) if edge != _NONE else 0.0


@njit(cache=True)
def observe(rules, states, players, out):
    for i in range(len(states)):
        state = states[i]
        board = state["board"]
        player = players[i]
        mine = nodes_of(rules, state["owned"], player)
        theirs = mine ^ rules.everything
        mine_next = (
            rules.base[count(mine)]
            + continent_income(rules, board, mine)
            + CONQUEST_BONUS * ((state["conquered"] >> player) & 1)
        )
        theirs_next = (
            rules.base[count(theirs)]
            + continent_income(rules, board, theirs)
            + CONQUEST_BONUS * ((state["conquered"] >> (1 - player)) & 1)
        )
        row = out[i]
        _describe(rules, state, mine, player, theirs_next, row[:_PER_SIDE])
        _describe(rules, state, theirs, 1 - player, mine_next, row[_PER_SIDE:_FIRST_PHASE])
        row[_FIRST_PHASE:_FIRST_SHARED] = 0.0
        if state["player"] != TERMINAL:
            whose = 0 if state["player"] == player else _NUM_PHASES
            row[_FIRST_PHASE + whose + state["phase"]] = 1.0
        ours = total(rules, state, mine)
        balance = ours - total(rules, state, theirs)
        row[_FIRST_SHARED] = balance / (rules.nodes + abs(balance))
        row[_FIRST_SHARED + 1] = state["turn"] / rules.max_turns
        row[_FIRST_SHARED + 2] = state["quiet"] / rules.quiet_turns
        row[_FIRST_SHARED + 3] = np.log(rules.nodes) / 4.0
