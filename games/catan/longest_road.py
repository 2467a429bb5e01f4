"""Sets of corners and edges as bits, and the longest road.

A road is a chain of own edges, none used twice, that passes through no corner with a rival's
building but may end there (rule book, "Longest Road"; JSettlers counts the same). At most 15
edges, three at a corner, so all chains are walked.
"""

import numpy as np
from numba import njit

from games.catan.board import CORNER_EDGES, CORNER_NEIGHBOURS, EDGE_CORNERS, EDGES

_ONE = np.uint64(1)
_ODD, _PAIRS, _NIBBLES = (
    np.uint64(0x5555555555555555),
    np.uint64(0x3333333333333333),
    np.uint64(0x0F0F0F0F0F0F0F0F),
)
# Powers of two differ modulo 67, so the remainder of a lone bit says which it is.
_PLACE = np.zeros(67, np.int8)
for _place in range(64):
    _PLACE[(1 << _place) % 67] = _place


@njit(cache=True, _nrt=False)
def count_bits(x):
    """How many bits of a uint64 are set. (Source: H. Warren, "Hacker's Delight", 5-1.)"""
    x -= (x >> np.uint64(1)) & _ODD
    x = (x & _PAIRS) + ((x >> np.uint64(2)) & _PAIRS)
    x = (x + (x >> np.uint64(4))) & _NIBBLES
    x += x >> np.uint64(8)
    x += x >> np.uint64(16)
    x += x >> np.uint64(32)
    return np.int64(x & np.uint64(127))


@njit(cache=True, _nrt=False)
def lowest_bit(x):
    """The place of the lowest set bit of a uint64 that is not 0."""
    return np.int64(_PLACE[np.int64((x ^ (x & (x - _ONE))) % np.uint64(67))])


@njit(cache=True, _nrt=False)
def has_corner(corners, corner):
    return (corners >> np.uint64(corner)) & _ONE != 0


@njit(cache=True, _nrt=False)
def has_edge(low, high, edge):
    """Is the edge in the set of edges (low, high)?"""
    return ((low if edge < 64 else high) >> np.uint64(edge & 63)) & _ONE != 0


@njit(cache=True, _nrt=False)
def _onward(low, high, blocked, corner):
    """The most edges that a chain standing at `corner` can still take from (low, high)."""
    best = 0
    if has_corner(blocked, corner):
        return best
    for k in range(3):
        edge = CORNER_EDGES[corner, k]
        if edge >= 0 and has_edge(low, high, edge):
            bit = _ONE << np.uint64(edge & 63)
            there = CORNER_NEIGHBOURS[corner, k]
            if edge < 64:
                best = max(best, 1 + _onward(low & ~bit, high, blocked, there))
            else:
                best = max(best, 1 + _onward(low, high & ~bit, blocked, there))
    return best


@njit(cache=True, _nrt=False)
def _both_ways(low, high, blocked, corner, other):
    """The most edges of a chain that goes on from `corner` and, at its other end, from `other`."""
    best = _onward(low, high, blocked, other)
    if has_corner(blocked, corner):
        return best
    for k in range(3):
        edge = CORNER_EDGES[corner, k]
        if edge >= 0 and has_edge(low, high, edge):
            bit = _ONE << np.uint64(edge & 63)
            there = CORNER_NEIGHBOURS[corner, k]
            if edge < 64:
                best = max(best, 1 + _both_ways(low & ~bit, high, blocked, there, other))
            else:
                best = max(best, 1 + _both_ways(low, high & ~bit, blocked, there, other))
    return best


@njit(cache=True, _nrt=False)
def longest_through(low, high, blocked, edge):
    """The length of the longest road in (low, high) that uses `edge`.

    Args:
        low, high: uint64, a player's roads.
        blocked: uint64, the corners with a building of a rival.
    """
    bit = _ONE << np.uint64(edge & 63)
    if edge < 64:
        low &= ~bit
    else:
        high &= ~bit
    return 1 + _both_ways(low, high, blocked, EDGE_CORNERS[edge, 0], EDGE_CORNERS[edge, 1])


@njit(cache=True, _nrt=False)
def longest_road(low, high, blocked):
    """The length of the longest road in (low, high); arguments as in `longest_through`."""
    best = 0
    for edge in range(EDGES):
        if has_edge(low, high, edge):
            best = max(best, longest_through(low, high, blocked, edge))
    return best
