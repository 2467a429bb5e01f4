"""Which low-level actions make sense under a behaviour: what the rules allow and what may serve its
sub-goal, as a building where it counts or a trade for a card that is missing.
"""

import numpy as np
from numba import njit

from games.catan.behaviours import (
    ALLOWED,
    BANK_TRADE_ACTION,
    BUILD_CITY_ACTION,
    BUILD_ROAD_ACTION,
    BUILD_SETTLEMENT_ACTION,
    BUY_CARD_ACTION,
    END_TURN_ACTION,
    EXPAND,
    HINDER,
    OFFER_TRADE_ACTION,
    PLAY_KNIGHT_ACTION,
    PLAY_MONOPOLY_ACTION,
    PLAY_PLENTY_ACTION,
    PLAY_ROADS_ACTION,
    PORT,
    find_target,
    needs,
)
from games.catan.board import CORNER_BIT, EDGES
from games.catan.features import expected_hand
from games.catan.longest_road import longest_road
from games.catan.places import better_port
from games.catan.state import (
    BANK_TRADE,
    BEFORE_ROLL,
    BUILD_CITY,
    BUILD_ROAD,
    BUILD_SETTLEMENT,
    BUY_CARD,
    GIVE,
    MAIN,
    PLAY_KNIGHT,
    PLAY_MONOPOLY,
    PLAY_PLENTY,
    PLAY_ROADS,
    rivals_of,
)

_LEAST_LIKELY = 0.5  # cards that a rival must be expected to hold to be asked for one


@njit(cache=True)
def is_step(rules, states, out):
    for i in range(len(states)):
        out[i] = states[i]["phase"] == MAIN or states[i]["phase"] == BEFORE_ROLL


@njit(cache=True, _nrt=False)
def can_ask_for(rules, state, me, resource):
    """May some rival be expected to hold the card?"""
    for seat in range(rules.players):
        if seat != me and expected_hand(state, me, seat, resource) >= _LEAST_LIKELY:
            return True
    return False


@njit(cache=True, _nrt=False)
def offer_serves(rules, state, me, hand, cost, give, want):
    """Would one card that the behaviour can spare for one that it misses serve it?"""
    return (
        hand[give] > cost[give] and hand[want] < cost[want] and can_ask_for(rules, state, me, want)
    )


@njit(cache=True, _nrt=False)
def trade_serves(state, me, hand, cost, give, want):
    """Does the bank give what the behaviour misses for what it can spare?"""
    return hand[want] < cost[want] and hand[give] - cost[give] >= state["rates"][me, give]


@njit(cache=True, _nrt=False)
def settles(state, me, behaviour, corner):
    """Does a settlement at the corner serve the behaviour?"""
    if behaviour == PORT:
        return better_port(state, me, corner)
    if behaviour == HINDER:
        return roads_cut(state, me, corner) > 0
    return True


@njit(cache=True, _nrt=False)
def roads_cut(state, me, corner):
    """Roads by which a building of `me` at the corner would shorten those of all rivals."""
    cut = 0
    for seat in range(4):
        if seat != me and state["reach"][seat] & CORNER_BIT[corner] != 0:
            blocked = rivals_of(state, seat) | CORNER_BIT[corner]
            low, high = state["roads"][seat, 0], state["roads"][seat, 1]
            cut += state["road_length"][seat] - longest_road(low, high, blocked)
    return cut


@njit(cache=True, _nrt=False)
def _low_legal(rules, state, me, legal, behaviour, hand, cost, income, away, queue, row):
    row[:] = False
    if state["phase"] != MAIN and state["phase"] != BEFORE_ROLL:
        return
    row[END_TURN_ACTION] = True
    row[BUY_CARD_ACTION] = legal[BUY_CARD]
    row[PLAY_KNIGHT_ACTION] = legal[PLAY_KNIGHT]
    row[PLAY_ROADS_ACTION] = legal[PLAY_ROADS]
    row[PLAY_PLENTY_ACTION] = legal[PLAY_PLENTY]
    row[PLAY_MONOPOLY_ACTION] = legal[PLAY_MONOPOLY]
    if state["phase"] == MAIN:
        for edge in range(EDGES):
            row[BUILD_ROAD_ACTION] |= legal[BUILD_ROAD + edge]
        for corner in range(54):
            row[BUILD_CITY_ACTION] |= legal[BUILD_CITY + corner]
            if legal[BUILD_SETTLEMENT + corner] and not row[BUILD_SETTLEMENT_ACTION]:
                row[BUILD_SETTLEMENT_ACTION] = settles(state, me, behaviour, corner)
        roads = 0
        if behaviour in (EXPAND, PORT):
            roads = find_target(state, me, behaviour, income, away, queue)[1]
        needs(rules, state, me, behaviour, roads, cost)
        for r in range(5):
            hand[r] = state["hands"][me, r]
        for give in range(5):
            for want in range(5):
                if give == want:
                    continue
                trade = BANK_TRADE + 4 * give + want - (want > give)
                if legal[trade] and trade_serves(state, me, hand, cost, give, want):
                    row[BANK_TRADE_ACTION] = True
                if legal[GIVE + give] and not row[OFFER_TRADE_ACTION]:
                    row[OFFER_TRADE_ACTION] = offer_serves(rules, state, me, hand, cost, give, want)
    for low in range(len(row)):
        row[low] &= ALLOWED[behaviour, low]


@njit(cache=True)
def low_legal(rules, states, legal, behaviours, out):
    hand, cost, income = np.empty(5), np.empty(5), np.empty(5)
    away, queue = np.empty(54, np.int8), np.empty(54, np.int8)
    for i in range(len(states)):
        state, me = states[i], np.int64(states[i]["player"])
        _low_legal(
            rules, state, me, legal[i], behaviours[i], hand, cost, income, away, queue, out[i]
        )
