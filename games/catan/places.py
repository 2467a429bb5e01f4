"""Where to build: distances in roads, and what a corner or an edge promises."""

import numpy as np
from numba import njit

from games.catan.board import (
    ANY,
    CORNER_BIT,
    CORNER_EDGES,
    CORNER_NEIGHBOURS,
    CORNER_PORT,
    CORNER_TILES,
    DESERT,
    PIPS,
)
from games.catan.longest_road import has_edge, lowest_bit
from games.catan.state import SEATS, rivals_of

_ONE = np.uint64(1)
FAR = 99  # more roads than anybody builds
MOST_ROADS = 3  # to a target: beyond it a rival is there first

# What a corner is worth, in cards per roll: a new kind of resource; a 3:1 port for one who has
# none; a 2:1 port by what it takes of the income; a road on the way; a rival's road ending there.
_NEW_KIND, _ANY_PORT, _OWN_PORT, _ROAD_COST, _THREAT = 0.05, 0.04, 0.4, 0.07, 0.03


@njit(cache=True, _nrt=False)
def roads_away(state, seat, start, away, queue):
    """Writes how many roads each corner is from the corners `start`, along edges without a road.

    No way leads through a rival's building; `FAR` where none is.

    Args:
        start: uint64, a set of corners.
        away: int8 [54].
        queue: int8 [54], scratch.
    """
    low, high = np.uint64(0), np.uint64(0)
    for other in range(SEATS):
        low |= state["roads"][other, 0]
        high |= state["roads"][other, 1]
    rivals = rivals_of(state, seat)
    away[:] = FAR
    filled = 0
    while start != 0:
        corner = lowest_bit(start)
        start &= start - _ONE
        away[corner] = 0
        queue[filled] = corner
        filled += 1
    at = 0
    while at < filled:
        corner = np.int64(queue[at])
        at += 1
        if rivals >> np.uint64(corner) & _ONE:
            continue
        for k in range(3):
            edge = CORNER_EDGES[corner, k]
            if edge >= 0 and not has_edge(low, high, edge):
                there = CORNER_NEIGHBOURS[corner, k]
                if away[there] == FAR:
                    away[there] = away[corner] + 1
                    queue[filled] = there
                    filled += 1


@njit(cache=True, _nrt=False)
def better_port(state, seat, corner):
    """Would a building at the corner make some rate of the bank better?"""
    port = CORNER_PORT[corner]
    if port < 0:
        return False
    kind = state["port"][port]
    if kind != ANY:
        return state["rates"][seat, kind] > 2
    best = 0
    for resource in range(5):
        best = max(best, state["rates"][seat, resource])
    return best > 3


@njit(cache=True, _nrt=False)
def corner_score(state, seat, corner, income):
    """What a settlement of the seat would be worth at the corner, in cards per roll or so.

    Args:
        income: five numbers, what the seat has per roll.
    """
    score = 0.0
    kinds = 0  # bits
    for k in range(3):
        tile = CORNER_TILES[corner, k]
        if tile >= 0 and state["resource"][tile] != DESERT:
            score += PIPS[state["number"][tile]] / 36.0
            resource = np.int64(state["resource"][tile])
            if income[resource] == 0.0 and not kinds >> resource & 1:
                score += _NEW_KIND
            kinds |= 1 << resource
    if better_port(state, seat, corner):
        kind = state["port"][CORNER_PORT[corner]]
        score += _ANY_PORT if kind == ANY else _OWN_PORT * income[kind]
    return score


@njit(cache=True, _nrt=False)
def target_score(state, seat, corner, away, income):
    """`corner_score` of a corner so many roads away, less what the way costs and risks."""
    score = corner_score(state, seat, corner, income) - _ROAD_COST * away
    for other in range(SEATS):
        if other != seat and state["reach"][other] & CORNER_BIT[corner] != 0:
            score -= _THREAT
    return score


@njit(cache=True, _nrt=False)
def best_target(state, seat, away, income, ports_only, but_for):
    """(corner, score) of the best open corner at most `MOST_ROADS` away, (-1, 0) if none.

    Args:
        away: int8 [54], of `roads_away` from the seat's own roads.
        ports_only: whether only corners that make a rate of the bank better count.
        but_for: uint64, corners that do not count.
    """
    best = -1
    score = 0.0
    most = min(MOST_ROADS, np.int64(state["pieces"][seat, 0]))
    corners = state["open"] & ~but_for
    while corners != 0:
        corner = lowest_bit(corners)
        corners &= corners - _ONE
        if away[corner] > most or (ports_only and not better_port(state, seat, corner)):
            continue
        this = target_score(state, seat, corner, away[corner], income)
        if best < 0 or this > score:
            best = corner
            score = this
    return best, score


@njit(cache=True, _nrt=False)
def edge_towards(state, seat, corner, away, queue):
    """The edge at the end of an own road that begins a shortest way to the corner, or -1.

    Args:
        away: int8 [54], overwritten.
        queue: int8 [54], scratch.
    """
    low, high = np.uint64(0), np.uint64(0)
    for other in range(SEATS):
        low |= state["roads"][other, 0]
        high |= state["roads"][other, 1]
    roads_away(state, seat, CORNER_BIT[corner], away, queue)
    rivals = rivals_of(state, seat)
    best = -1
    least = FAR
    ends = state["reach"][seat] & ~rivals
    while ends != 0:
        end = lowest_bit(ends)
        ends &= ends - _ONE
        for k in range(3):
            edge = CORNER_EDGES[end, k]
            if edge >= 0 and not has_edge(low, high, edge):
                there = CORNER_NEIGHBOURS[end, k]
                if away[there] < least and rivals >> np.uint64(there) & _ONE == 0:
                    least = away[there]
                    best = edge
    return best
