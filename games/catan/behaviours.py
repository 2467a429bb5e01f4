"""Behaviours: what a player may be after, when it is reached, and which low-level actions serve it.

Pfeiffer (2004) divides the strategy into behaviours with sub-goals of their own and does not list
them; these seven are one for every way to score and two that help (docs/games/catan.md). Each
sub-goal is an event on the board, so a reward for it needs no shaping.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from games.catan.features import income_of, turns_to_pay
from games.catan.longest_road import count_bits
from games.catan.places import best_target, roads_away
from games.catan.state import (
    CARD,
    CITY,
    COSTS,
    KNIGHT,
    LEAST_ARMY,
    LEAST_ROAD,
    ROAD,
    SETTLEMENT,
    VICTORY,
)
from games.game import MARKS

# Low-level actions.
(
    BUILD_ROAD_ACTION, BUILD_SETTLEMENT_ACTION, BUILD_CITY_ACTION, BUY_CARD_ACTION,
    PLAY_KNIGHT_ACTION, PLAY_ROADS_ACTION, PLAY_PLENTY_ACTION, PLAY_MONOPOLY_ACTION,
    BANK_TRADE_ACTION, OFFER_TRADE_ACTION, END_TURN_ACTION,
) = range(11)  # fmt: skip
LOW_ACTIONS = (
    "build road", "build settlement", "build city", "buy card", "play knight",
    "play road building", "play year of plenty", "play monopoly", "trade with the bank",
    "offer a trade", "end turn",
)  # fmt: skip


class Behaviour(NamedTuple):
    name: str
    sub_goal: str  # the event that ends it, for which alone its low level is rewarded
    low_actions: tuple[int, ...]


_CARDS = (PLAY_PLENTY_ACTION, PLAY_MONOPOLY_ACTION, BANK_TRADE_ACTION, OFFER_TRADE_ACTION)
_ANY_TURN = (*_CARDS, PLAY_KNIGHT_ACTION, END_TURN_ACTION)

EXPAND, UPGRADE, DEVELOP, ARMY, LONG_ROAD, PORT, HINDER = range(7)
BEHAVIOURS = (
    Behaviour(
        "expand",
        "one more settlement",
        (BUILD_ROAD_ACTION, BUILD_SETTLEMENT_ACTION, PLAY_ROADS_ACTION, *_ANY_TURN),
    ),
    Behaviour("upgrade", "one more city", (BUILD_CITY_ACTION, *_ANY_TURN)),
    Behaviour("develop", "one more development card", (BUY_CARD_ACTION, *_ANY_TURN)),
    Behaviour("army", "to hold Largest Army", (BUY_CARD_ACTION, *_ANY_TURN)),
    Behaviour(
        "long road",
        "to hold Longest Road",
        (BUILD_ROAD_ACTION, PLAY_ROADS_ACTION, *_ANY_TURN),
    ),
    Behaviour(
        "port",
        "a better rate at the bank",
        (BUILD_ROAD_ACTION, BUILD_SETTLEMENT_ACTION, PLAY_ROADS_ACTION, *_ANY_TURN),
    ),
    Behaviour(
        "hinder",
        "less income or a shorter road for the leading rival",
        (
            BUILD_ROAD_ACTION,
            BUILD_SETTLEMENT_ACTION,
            BUY_CARD_ACTION,
            PLAY_KNIGHT_ACTION,
            BANK_TRADE_ACTION,
            OFFER_TRADE_ACTION,
            END_TURN_ACTION,
        ),
    ),
)
_COUNT = len(BEHAVIOURS)
ALLOWED = np.array([[low in b.low_actions for low in range(len(LOW_ACTIONS))] for b in BEHAVIOURS])


@njit(cache=True, _nrt=False)
def leader_of(rules, state, me):
    """The rival with the most points that all can see, the first of them in turn order."""
    leader = -1
    for k in range(1, rules.players):
        rival = (me + k) % rules.players
        if leader < 0 or state["points"][rival] > state["points"][leader]:
            leader = rival
    return leader


@njit(cache=True, _nrt=False)
def _pips(state, seat, income):
    """Income per 36 rolls, whole."""
    return np.int64(np.round(36.0 * income_of(state, seat, True, income)))


@njit(cache=True, _nrt=False)
def _mark(rules, state, me, behaviour, income, row):
    row[:] = 0
    if behaviour == EXPAND:
        row[0] = count_bits(state["settlements"][me] | state["cities"][me])
    elif behaviour == UPGRADE:
        row[0] = count_bits(state["cities"][me])
    elif behaviour == DEVELOP:
        for card in range(5):
            row[0] += state["cards"][me, card]
    elif behaviour == ARMY:
        row[0] = state["army_holder"] == me
    elif behaviour == LONG_ROAD:
        row[0] = state["road_holder"] == me
    elif behaviour == PORT:
        for resource in range(5):
            row[0] -= state["rates"][me, resource]
    else:
        leader = leader_of(rules, state, me)
        row[0] = leader
        row[1] = _pips(state, leader, income)
        row[2] = state["road_length"][leader]


@njit(cache=True)
def mark(rules, states, players, behaviours, out):
    income = np.empty(5)
    for i in range(len(states)):
        _mark(rules, states[i], np.int64(players[i]), behaviours[i], income, out[i])


@njit(cache=True)
def reached(rules, states, players, behaviours, marks, out):
    income, now = np.empty(5), np.empty(MARKS, np.int16)
    for i in range(len(states)):
        if behaviours[i] == HINDER:
            leader = np.int64(marks[i, 0])
            less = _pips(states[i], leader, income) < marks[i, 1]
            out[i] = less or states[i]["road_length"][leader] < marks[i, 2]
        else:
            _mark(rules, states[i], np.int64(players[i]), behaviours[i], income, now)
            out[i] = now[0] > marks[i, 0]


# ---- what is still possible


@njit(cache=True, _nrt=False)
def cards_in_deck(state):
    total = 0
    for card in range(5):
        total += state["deck"][card]
    return total


@njit(cache=True, _nrt=False)
def army_needed(rules, state, me):
    """Knights still to be played to hold Largest Army."""
    most = LEAST_ARMY - 1
    for seat in range(rules.players):
        if seat != me:
            most = max(most, state["knights"][seat])
    return most + 1 - state["knights"][me]


@njit(cache=True, _nrt=False)
def road_needed(rules, state, me):
    """By how much the longest own road must grow to hold Longest Road."""
    longest = LEAST_ROAD - 1
    for seat in range(rules.players):
        if seat != me:
            longest = max(longest, state["road_length"][seat])
    return longest + 1 - state["road_length"][me]


@njit(cache=True, _nrt=False)
def find_target(state, me, behaviour, income, away, queue):
    """(corner, roads to it) that a behaviour builds towards, (-1, 0) if there is none.

    Args:
        income: five numbers, overwritten by the income without the robber.
        away, queue: int8 [54], scratch.
    """
    if state["pieces"][me, SETTLEMENT] == 0:
        return -1, 0
    income_of(state, me, False, income)
    roads_away(state, me, state["reach"][me], away, queue)
    corner, _ = best_target(state, me, away, income, behaviour == PORT, np.uint64(0))
    return corner, 0 if corner < 0 else np.int64(away[corner])


@njit(cache=True, _nrt=False)
def _possible(rules, state, me, income, away, queue, row):
    row[EXPAND] = find_target(state, me, EXPAND, income, away, queue)[0] >= 0
    row[UPGRADE] = state["pieces"][me, CITY] > 0 and state["settlements"][me] != 0
    deck = cards_in_deck(state)
    row[DEVELOP] = deck > 0
    knights = deck + state["cards"][me, KNIGHT]
    row[ARMY] = state["army_holder"] != me and knights >= army_needed(rules, state, me)
    growth = road_needed(rules, state, me)
    row[LONG_ROAD] = state["road_holder"] != me and state["pieces"][me, ROAD] >= growth
    row[PORT] = row[EXPAND] and find_target(state, me, PORT, income, away, queue)[0] >= 0
    row[HINDER] = knights > 0
    for behaviour in range(len(row)):
        if row[behaviour]:
            return
    row[UPGRADE] = True  # nothing is left to do but to end turns


@njit(cache=True)
def possible(rules, states, out):
    income, away, queue = np.empty(5), np.empty(54, np.int8), np.empty(54, np.int8)
    for i in range(len(states)):
        me = np.int64(states[i]["player"])
        _possible(rules, states[i], me, income, away, queue, out[i])


# ---- what it costs


@njit(cache=True, _nrt=False)
def needs(rules, state, me, behaviour, roads, cost):
    """Writes the cards that a behaviour is after: those of its next purchase, roads included.

    Args:
        roads: to the target of the behaviour, if it builds towards one.
        cost: five numbers.
    """
    cost[:] = 0.0
    if behaviour in (EXPAND, PORT):
        for r in range(5):
            cost[r] = COSTS[SETTLEMENT, r] + roads * COSTS[ROAD, r]
    elif behaviour == UPGRADE:
        for r in range(5):
            cost[r] = COSTS[CITY, r]
    elif behaviour == LONG_ROAD:
        count = min(max(road_needed(rules, state, me), 1), 2)
        for r in range(5):
            cost[r] = count * COSTS[ROAD, r]
    else:
        for r in range(5):
            cost[r] = COSTS[CARD, r]


# ---- the hand-written high level


@njit(cache=True, _nrt=False)
def _wins_now(rules, state, me, behaviour, hand, cost):
    """Does the next purchase of the behaviour, which can be paid, bring the last points?"""
    for r in range(5):
        if hand[r] < cost[r]:
            return False
    gain = 0
    if behaviour in (EXPAND, UPGRADE):
        gain = 1
    elif behaviour == LONG_ROAD and road_needed(rules, state, me) <= 1:
        gain = 2
    points = state["points"][me] + state["cards"][me, VICTORY]
    return gain > 0 and points + gain >= rules.points_to_win


@njit(cache=True, _nrt=False)
def _price(rules, state, me, behaviour, turns):
    """Turns for a point, with what the purchase brings beside the points; less is better."""
    points = state["points"][me]
    if behaviour == EXPAND:
        return turns / (1.6 if points < 5 else 1.2)
    if behaviour == UPGRADE:
        return turns / 1.4
    if behaviour == DEVELOP:
        return (turns + 0.5) / 0.7
    if behaviour == PORT:
        return turns / 1.1
    return turns / 2.0


@njit(cache=True, _nrt=False)
def _heuristic(rules, state, me, hand, income, cost, away, queue, row):
    """The possible behaviour with the fewest turns for a point. (Source of the idea: JSettlers'
    SOCRobotDM plans what it can build soonest.)

    What Largest Army and Longest Road need is estimated only when they are two steps away; a rival
    two points from the win is hindered if a knight is at hand.
    """
    _possible(rules, state, me, income, away, queue, row)
    leader = leader_of(rules, state, me)
    near = state["points"][leader] >= rules.points_to_win - 2
    best = -1
    least = np.inf
    for r in range(5):
        hand[r] = state["hands"][me, r]
    for behaviour in range(len(row)):
        if not row[behaviour]:
            continue
        roads = 0
        if behaviour in (EXPAND, PORT):
            roads = find_target(state, me, behaviour, income, away, queue)[1]
        # What can be settled now needs no road, though a better place may.
        now = behaviour == EXPAND and state["reach"][me] & state["open"] != 0
        needs(rules, state, me, behaviour, 0 if now else roads, cost)
        if _wins_now(rules, state, me, behaviour, hand, cost):
            return behaviour
        needs(rules, state, me, behaviour, roads, cost)
        income_of(state, me, True, income)
        for r in range(5):
            income[r] *= rules.players
        turns = turns_to_pay(state, me, hand, income, cost)
        if behaviour == LONG_ROAD:
            missing = road_needed(rules, state, me)
            if missing > 2:
                continue
        elif behaviour == ARMY:
            missing = army_needed(rules, state, me)
            held = np.int64(state["cards"][me, KNIGHT])
            if missing > 2 and held < missing - 1:
                continue
            bought = max(missing - held, 0)
            turns = max(np.float64(missing), 1.8 * bought * (turns + 0.5))
        elif behaviour == HINDER:
            if not near or state["cards"][me, KNIGHT] == 0 or state["card_played"] != 0:
                continue
            return behaviour
        price = _price(rules, state, me, behaviour, turns)
        if price < least:
            least = price
            best = behaviour
    if best >= 0:
        return best
    for behaviour in range(len(row)):
        if row[behaviour]:
            return behaviour
    return UPGRADE


@njit(cache=True)
def heuristic(rules, states, out):
    hand, income, cost = np.empty(5), np.empty(5), np.empty(5)
    away, queue = np.empty(54, np.int8), np.empty(54, np.int8)
    row = np.empty(_COUNT, np.bool_)
    for i in range(len(states)):
        me = np.int64(states[i]["player"])
        out[i] = _heuristic(rules, states[i], me, hand, income, cost, away, queue, row)
