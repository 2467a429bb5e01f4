"""Scripted players: baselines and teachers. They see what their seat may see.

`weighted_random` prefers a city to a settlement to a development card to anything else, in the
proportions of catanatron's player of that name. `value_greedy` takes the action whose result it
values most; what a position is worth to a seat is `worth`, made by hand. For trades see
`_answer`, `_partner` and `_plan_offer`; no script makes a counter-offer.
"""

import numpy as np
from numba import njit

from games.catan.board import TILE_BITS, TILES
from games.catan.features import best_spot, expected_hand, income_of, one_road_on, turns_to
from games.catan.rules import apply, hand_size, trade_with
from games.catan.state import (
    ACCEPT,
    ACCEPTED,
    ANSWER,
    BANK_TRADE,
    BUILD_CITY,
    BUILD_ROAD,
    BUILD_SETTLEMENT,
    BUY_CARD,
    CANCEL,
    CARD,
    CHOOSE,
    CITY,
    COMPOSE,
    COUNTER,
    DECLINE,
    END_TURN,
    GIVE,
    MAIN,
    PARTNER,
    PLAY_KNIGHT,
    PLAY_MONOPOLY,
    PLAY_PLENTY,
    PLAY_ROADS,
    PROPOSE,
    ROAD,
    ROBBER,
    SETTLEMENT,
    STEAL,
    VICTORY,
    WANT,
    rivals_of,
)

_ROOM = 15  # numbers of scratch that `worth` needs


@njit(cache=True, _nrt=False)
def _is_fair(state, me):
    """Does the offer on the table bring at least as many cards as it takes, none of which is the
    last of its kind?"""
    offerer = state["turn_player"]
    balance = 0
    for r in range(5):
        balance += state["give"][offerer, r] - state["want"][offerer, r]
        if state["want"][offerer, r] > 0 and state["hands"][me, r] <= state["want"][offerer, r]:
            return False
    return balance >= 0


@njit(cache=True, _nrt=False)
def _weight(state, action):
    """How often `weighted_random` takes a legal action, in proportion to the others."""
    if action >= BUILD_ROAD:
        return 1.0
    if action >= BUILD_CITY:
        return 10_000.0
    if action >= BUILD_SETTLEMENT:
        return 1_000.0
    if action == BUY_CARD:
        return 100.0
    if action == ACCEPT:
        return 1_000.0 if _is_fair(state, state["player"]) else 0.0
    if action == COUNTER:
        return 0.0
    if GIVE <= action < GIVE + 5 and state["phase"] == MAIN:
        return 0.1
    return 1.0


@njit(cache=True, _nrt=False)
def weighted_random(rules, states, mask, uniforms, actions):
    for i in range(len(states)):
        state = states[i]
        total = 0.0
        for action in range(mask.shape[1]):
            if mask[i, action]:
                total += _weight(state, action)
        left = uniforms[i] * total
        for action in range(mask.shape[1]):
            if mask[i, action]:
                weight = _weight(state, action)
                if weight > 0.0:  # rounding may leave `left` at the end
                    actions[i] = action
                left -= weight
                if left < 0.0:
                    break


# ---- what a position is worth


@njit(cache=True, _nrt=False)
def worth(rules, state, me, room):
    """What a position is worth to a seat, in points or so: more is better.

    The points; the income, most of it where it is scarce; what the hand will soon buy; the spots
    in reach; and what the rivals have. Victory point cards and hands of others are not looked at.

    Args:
        room: float64 [_ROOM], scratch.
    """
    hand, income = room[:5], room[5:10]
    points = state["points"][me] + state["cards"][me, VICTORY]
    if points >= rules.points_to_win and state["turn_player"] == me:
        return 1000.0
    value = 3.0 * points

    income_of(state, me, True, income)
    size = 0
    for r in range(5):
        value += 3.0 * income[r] + 1.2 * np.sqrt(income[r])
        income[r] *= rules.players
        hand[r] = state["hands"][me, r]
        size += state["hands"][me, r]
        value += 0.12 * (4 - state["rates"][me, r])

    rivals = rivals_of(state, me)
    spot = 0.0
    now, count = best_spot(state, state["reach"][me] & state["open"])
    if state["pieces"][me, SETTLEMENT] > 0:
        next_ = one_road_on(state, state["reach"][me], rivals)
        after = one_road_on(state, next_, rivals)
        spot = max(
            now,
            max(
                0.7 * best_spot(state, next_ & state["open"])[0],
                0.45 * best_spot(state, after & state["open"])[0],
            ),
        )
        value += 4.0 * spot + 0.1 * min(count, 3)

    if state["pieces"][me, CITY] > 0 and state["settlements"][me] != 0:
        best, _ = best_spot(state, state["settlements"][me])
        value += (3.0 + 3.0 * best) * _soon(turns_to(state, me, hand, income, CITY))
    if count > 0 and state["pieces"][me, SETTLEMENT] > 0:
        value += (3.0 + 3.0 * now) * _soon(turns_to(state, me, hand, income, SETTLEMENT))
    elif spot > 0.0:
        value += 1.2 * _soon(turns_to(state, me, hand, income, ROAD))
    value += 1.2 * _soon(turns_to(state, me, hand, income, CARD))
    value -= 0.6 * max(size - rules.discard_limit, 0)

    for card in range(5):
        if card != VICTORY:
            value += 0.8 * state["cards"][me, card]
    value += 0.35 * state["knights"][me] + 0.12 * state["road_length"][me]

    for seat in range(rules.players):
        if seat != me:
            weight = 0.4 + 0.1 * state["points"][seat]
            value -= weight * income_of(state, seat, True, income)
            value -= 0.5 * state["points"][seat]
    return value


@njit(cache=True, _nrt=False)
def _soon(turns):
    """How much of its worth a purchase so many turns away has now."""
    return 1.6 / (2.0 + turns)


# ---- trades


@njit(cache=True, _nrt=False)
def _answer(rules, state, me, trial, room):
    """Accepts what makes the own position better, unless the offerer is about to win."""
    offerer = state["turn_player"]
    if state["points"][offerer] >= rules.points_to_win - 2:
        return False
    before = worth(rules, state, me, room)
    trial[0] = state
    trial[0]["answers"][me] = ACCEPTED
    trade_with(trial[0], offerer, me)
    return worth(rules, trial[0], me, room) > before + 0.05


@njit(cache=True, _nrt=False)
def _partner(rules, state, me, row):
    """The one with the fewest points who is not about to win, else nobody."""
    best = CANCEL
    fewest = rules.points_to_win - 2
    for k in range(rules.players - 1):
        partner = (me + 1 + k) % rules.players
        answer = state["answers"][partner]
        if row[PARTNER + k] and answer == ACCEPTED and state["points"][partner] < fewest:
            best = PARTNER + k
            fewest = state["points"][partner]
    return best


@njit(cache=True, _nrt=False)
def _plan_offer(rules, state, me, trial, room):
    """The best offer of one card for one that some rival may hold: (given, wanted) or (-1, -1)."""
    before = worth(rules, state, me, room)
    best = 0.3
    given = -1
    wanted = -1
    for give in range(5):
        if state["hands"][me, give] == 0:
            continue
        for want in range(5):
            if want == give:
                continue
            likely = 0.0
            for seat in range(rules.players):
                if seat != me:
                    likely = max(likely, expected_hand(state, me, seat, want))
            if likely < 0.5:
                continue
            trial[0] = state
            trial[0]["hands"][me, give] -= 1
            trial[0]["hands"][me, want] += 1
            gain = worth(rules, trial[0], me, room) - before
            if gain > best:
                best = gain
                given = give
                wanted = want
    return given, wanted


@njit(cache=True, _nrt=False)
def _compose(rules, state, me, row, trial, room):
    """Makes the offer that `_plan_offer` planned: from the same hand it plans the same again."""
    if row[PROPOSE]:
        return PROPOSE
    given, wanted = _plan_offer(rules, state, me, trial, room)
    if given >= 0 and state["give"][me, given] > 0 and row[WANT + wanted]:
        return WANT + wanted
    return CANCEL


# ---- the greedy player


@njit(cache=True, _nrt=False)
def _monopoly_worth(rules, state, me, resource, trial, room):
    """What Monopoly is worth with the cards that the rivals may be expected to hold."""
    trial[0] = state
    for seat in range(rules.players):
        if seat != me:
            take = np.int8(expected_hand(state, me, seat, resource))
            trial[0]["hands"][me, resource] += take
    trial[0]["cards"][me, 4] -= 1
    return worth(rules, trial[0], me, room)


@njit(cache=True, _nrt=False)
def _theft_worth(rules, state, me):
    """A little for a card of the richest, most for one of who is ahead."""
    value = 0.0
    for seat in range(rules.players):
        if seat != me:
            buildings = state["settlements"][seat] | state["cities"][seat]
            if buildings & TILE_BITS[state["robber"]] != 0 and hand_size(state, seat) > 0:
                value = max(value, 0.3 + 0.05 * state["points"][seat])
    return value


@njit(cache=True, _nrt=False)
def _value_of(rules, state, me, action, trial, room):
    """What `action` leads to is worth, with what is still to be drawn valued on average."""
    if PLAY_MONOPOLY <= action < PLAY_MONOPOLY + 5:
        return _monopoly_worth(rules, state, me, action - PLAY_MONOPOLY, trial, room)
    trial[0] = state
    apply(rules, trial[0], action)
    value = worth(rules, trial[0], me, room)
    if action == BUY_CARD:
        value += 1.3
    elif action == PLAY_KNIGHT:
        value += 0.8
    elif action in (PLAY_ROADS, PLAY_PLENTY):
        value += 1.6
    elif ROBBER <= action < ROBBER + TILES:
        value += _theft_worth(rules, trial[0], me)
    elif STEAL <= action < STEAL + 3:
        value += 0.05 * state["points"][trial[0]["victim"]]
    return value


@njit(cache=True, _nrt=False)
def _greedy(rules, state, me, row, trial, room):
    best = -1e30
    chosen = -1
    for action in range(len(row)):
        if not row[action] or (GIVE <= action < GIVE + 5):
            continue
        value = _value_of(rules, state, me, action, trial, room)
        if value > best:
            best = value
            chosen = action
    return chosen


@njit(cache=True)
def value_greedy(rules, states, mask, uniforms, actions):
    trial = np.empty(1, states.dtype)
    room = np.empty(_ROOM)
    for i in range(len(states)):
        state, row = states[i], mask[i]
        me = np.int64(state["player"])
        phase = state["phase"]
        if phase == ANSWER:
            accepts = row[ACCEPT] and _answer(rules, state, me, trial, room)
            actions[i] = ACCEPT if accepts else DECLINE
        elif phase == CHOOSE:
            actions[i] = _partner(rules, state, me, row)
        elif phase == COMPOSE:
            actions[i] = _compose(rules, state, me, row, trial, room)
        else:
            actions[i] = _greedy(rules, state, me, row, trial, room)
            # What is built or played goes first; then an offer, before the bank and the turn's end.
            idle = actions[i] == END_TURN or BANK_TRADE <= actions[i] < BANK_TRADE + 20
            if phase == MAIN and idle and state["offers"] == 0:
                given, _ = _plan_offer(rules, state, me, trial, room)
                if given >= 0 and row[GIVE + given]:
                    actions[i] = GIVE + given
