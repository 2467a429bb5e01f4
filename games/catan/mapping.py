"""From low-level actions to primitive ones: where to build, what to trade, whom to rob.

A simple rule scores the candidates of each choice. Where it leaves more than one, what follows is
imagined, and learned values judge (Pfeiffer 2004): a place, by the value of the game; cards, by the
value of the behaviour that wants them.
"""

import numpy as np
from numba import njit

from games.catan.behaviours import (
    BANK_TRADE_ACTION,
    BUILD_CITY_ACTION,
    BUILD_ROAD_ACTION,
    BUILD_SETTLEMENT_ACTION,
    BUY_CARD_ACTION,
    END_TURN_ACTION,
    EXPAND,
    HINDER,
    LONG_ROAD,
    OFFER_TRADE_ACTION,
    PLAY_KNIGHT_ACTION,
    PLAY_MONOPOLY_ACTION,
    PLAY_PLENTY_ACTION,
    PLAY_ROADS_ACTION,
    PORT,
    find_target,
    leader_of,
    needs,
)
from games.catan.board import CORNER_BIT, EDGE_BITS, EDGE_CORNERS, EDGES, PIPS, TILE_BITS, TILES
from games.catan.features import expected_hand, income_of, spot_value
from games.catan.longest_road import count_bits, longest_through
from games.catan.low_actions import can_ask_for, offer_serves, roads_cut, settles, trade_serves
from games.catan.places import best_target, corner_score, edge_towards, roads_away
from games.catan.rules import apply, hand_size, has_won, trade_with
from games.catan.state import (
    ACCEPT,
    ACCEPTED,
    ANSWER,
    BANK_TRADE,
    BEFORE_ROLL,
    BUILD_CITY,
    BUILD_ROAD,
    BUILD_SETTLEMENT,
    BUY_CARD,
    CANCEL,
    CHOOSE,
    COMPOSE,
    DECLINE,
    DISCARD,
    DROP,
    END_TURN,
    FIRST_ROAD,
    FIRST_SETTLEMENT,
    FREE_ROADS,
    GIVE,
    MAIN,
    MONOPOLY,
    MOVE_ROBBER,
    PARTNER,
    PLAY_KNIGHT,
    PLAY_MONOPOLY,
    PLAY_PLENTY,
    PLAY_ROADS,
    PROPOSE,
    ROBBER,
    ROLL,
    STEAL,
    STEAL_FROM,
    TAKE,
    TAKE_CARD,
    WANT,
    rivals_of,
)
from games.game import BY_GAME, BY_GOAL, BY_SCORE, WIN

MOST_PLACES = 4  # that the rule leaves to be judged
MOST = 20  # candidates of any choice: the trades with the bank, and the offers of a card for a card


@njit(cache=True, _nrt=False)
def _add(found, i, action, score, most):
    """Adds a candidate if it is among the `most` best so far."""
    count = found.count[i]
    at = count
    if count == most:
        at = 0
        for k in range(1, count):
            if found.scores[i, k] < found.scores[i, at]:
                at = k
        if found.scores[i, at] >= score:
            return
    else:
        found.count[i] += 1
    found.actions[i, at] = action
    found.scores[i, at] = score


@njit(cache=True, _nrt=False)
def _roads(rules, state, me, legal, behaviour, income, away, queue, found, i):
    if behaviour in (LONG_ROAD, HINDER):
        # Those alone that lengthen the road, or get in the leader's way, as much as any.
        rivals = rivals_of(state, me)
        low, high = state["roads"][me, 0], state["roads"][me, 1]
        best = 0.0
        for edge in range(EDGES):
            if not legal[BUILD_ROAD + edge]:
                continue
            if behaviour == LONG_ROAD:
                score = np.float64(longest_through(low, high, rivals, edge))
            else:
                ends = state["reach"][leader_of(rules, state, me)]
                score = np.float64(count_bits(EDGE_BITS[edge] & ends))
            if score > best:
                best = score
                found.count[i] = 0
            if score == best:
                _add(found, i, BUILD_ROAD + edge, score, MOST_PLACES)
        return
    # Towards each of the best targets.
    taken = np.uint64(0)
    for _ in range(3):
        income_of(state, me, False, income)
        roads_away(state, me, state["reach"][me], away, queue)
        # What can be built on now needs no road.
        but_for = taken | state["reach"][me]
        corner, score = best_target(state, me, away, income, behaviour == PORT, but_for)
        if corner < 0:
            break
        taken |= CORNER_BIT[corner]
        edge = edge_towards(state, me, corner, away, queue)
        if edge < 0 or not legal[BUILD_ROAD + edge]:
            continue
        twice = False
        for k in range(found.count[i]):
            twice |= found.actions[i, k] == BUILD_ROAD + edge
        if not twice:
            _add(found, i, BUILD_ROAD + edge, score, MOST_PLACES)
    if found.count[i] == 0:
        for edge in range(EDGES):
            if legal[BUILD_ROAD + edge]:
                _add(found, i, BUILD_ROAD + edge, 0.0, MOST_PLACES)


@njit(cache=True, _nrt=False)
def _first_road(state, me, legal, income, away, queue, found, i):
    """From the corner just settled: towards the best corner that is two roads away."""
    for edge in range(EDGES):
        if not legal[BUILD_ROAD + edge]:
            continue
        ahead = EDGE_CORNERS[edge, 0]
        if ahead == state["corner"]:
            ahead = EDGE_CORNERS[edge, 1]
        roads_away(state, me, CORNER_BIT[ahead], away, queue)
        away[state["corner"]] = 0
        best = -1.0
        for corner in range(54):
            if 1 <= away[corner] <= 2 and state["open"] & CORNER_BIT[corner] != 0:
                score = corner_score(state, me, corner, income) - 0.07 * away[corner]
                best = max(best, score)
        _add(found, i, BUILD_ROAD + edge, best, MOST_PLACES)


@njit(cache=True, _nrt=False)
def _settlements(state, me, legal, behaviour, income, found, i):
    for corner in range(54):
        if legal[BUILD_SETTLEMENT + corner] and settles(state, me, behaviour, corner):
            score = corner_score(state, me, corner, income)
            if behaviour == HINDER:
                score += roads_cut(state, me, corner)
            _add(found, i, BUILD_SETTLEMENT + corner, score, MOST_PLACES)


@njit(cache=True, _nrt=False)
def _robber(rules, state, me, legal, found, i):
    """Where it costs the rivals most, those ahead before others, and oneself nothing."""
    for tile in range(TILES):
        if not legal[ROBBER + tile]:
            continue
        pips = np.int64(PIPS[state["number"][tile]])
        score = 0.0
        for seat in range(rules.players):
            around = TILE_BITS[tile]
            count = count_bits(state["settlements"][seat] & around)
            count += 2 * count_bits(state["cities"][seat] & around)
            if seat == me:
                score -= 2.0 * count * pips
            else:
                score += count * pips * (1.0 + 0.2 * state["points"][seat])
                if count > 0 and hand_size(state, seat) > 0:
                    score += 2.0
        _add(found, i, ROBBER + tile, score, MOST_PLACES)


@njit(cache=True, _nrt=False)
def _exchange(state, me, give, want):
    state["hands"][me, give] -= 1
    state["hands"][me, want] += 1


@njit(cache=True, _nrt=False)
def _cards(rules, state, me, legal, behaviour, hand, cost, low, found, i):
    """Trades, Year of Plenty, Monopoly, discards: what the behaviour misses and can spare."""
    phase = state["phase"]
    for r in range(5):
        hand[r] = state["hands"][me, r]
    if phase == DISCARD:
        for r in range(5):
            if legal[DROP + r]:
                _add(found, i, DROP + r, hand[r] - cost[r], MOST)
    elif phase == TAKE:
        for r in range(5):
            if legal[TAKE_CARD + r]:
                _add(found, i, TAKE_CARD + r, cost[r] - hand[r], MOST)
    elif phase == COMPOSE:
        for want in range(5):
            if not legal[WANT + want]:
                continue
            for give in range(5):
                serves = state["give"][me, give] > 0 and hand[want] < cost[want]
                if serves and can_ask_for(rules, state, me, want):
                    _add(found, i, WANT + want, cost[want] - hand[want], MOST)
                    break
    elif low == PLAY_MONOPOLY_ACTION:
        for r in range(5):
            if legal[PLAY_MONOPOLY + r]:
                total = 0.0
                for seat in range(rules.players):
                    if seat != me:
                        total += expected_hand(state, me, seat, r)
                _add(found, i, PLAY_MONOPOLY + r, total + max(cost[r] - hand[r], 0.0), MOST)
    else:
        for give in range(5):
            for want in range(5):
                if give == want:
                    continue
                score = hand[give] - cost[give] + cost[want] - hand[want]
                trade = BANK_TRADE + 4 * give + want - (want > give)
                if low == BANK_TRADE_ACTION:
                    if legal[trade] and trade_serves(state, me, hand, cost, give, want):
                        _add(found, i, trade, score - state["rates"][me, give], MOST)
                elif legal[GIVE + give] and offer_serves(rules, state, me, hand, cost, give, want):
                    # The same action again for another card wanted: there is room for all of them.
                    k = found.count[i]
                    _add(found, i, GIVE + give, score, MOST)
                    found.states[i, k] = state
                    _exchange(found.states[i, k], me, give, want)


@njit(cache=True, _nrt=False)
def _answer(rules, state, me, legal, hand, cost, found, i):
    """Accepting scores what it brings the behaviour; nothing is given to who is about to win."""
    _add(found, i, DECLINE, 0.0, MOST)
    offerer = state["turn_player"]
    if not legal[ACCEPT] or state["points"][offerer] >= rules.points_to_win - 2:
        return
    score = -0.5
    for r in range(5):
        get = np.int64(state["give"][offerer, r]) - np.int64(state["want"][offerer, r])
        spare = state["hands"][me, r] - cost[r]
        score += min(spare + get, 1.0) - min(spare, 1.0)
    _add(found, i, ACCEPT, score, MOST)


@njit(cache=True, _nrt=False)
def _people(rules, state, me, legal, first, found, i):
    """Whom to rob: the one ahead, then the one with more cards. Whom to trade with: the reverse."""
    for k in range(rules.players - 1):
        if legal[first + k]:
            seat = (me + 1 + k) % rules.players
            score = state["points"][seat] + 0.05 * hand_size(state, seat)
            if first == PARTNER:
                score = rules.points_to_win - 2.5 - score
            _add(found, i, first + k, score, MOST)
    if first == PARTNER:
        _add(found, i, CANCEL, 0.0, MOST)


@njit(cache=True, _nrt=False)
def _only(action, found, i):
    found.count[i] = 1
    found.actions[i, 0] = action
    found.scores[i, 0] = 0.0


@njit(cache=True, _nrt=False)
def _first_of(legal, found, i):
    for action in range(len(legal)):
        if legal[action]:
            _only(action, found, i)
            return


@njit(cache=True, _nrt=False)
def _find(rules, state, me, legal, behaviour, low, hand, cost, income, away, queue, found, i):
    """The candidates of one decision; returns what judges them."""
    found.count[i] = 0
    phase = state["phase"]
    roads = 0
    if behaviour in (EXPAND, PORT):
        roads = find_target(state, me, behaviour, income, away, queue)[1]
    needs(rules, state, me, behaviour, roads, cost)
    income_of(state, me, False, income)
    if phase == FIRST_SETTLEMENT:
        _settlements(state, me, legal, EXPAND, income, found, i)
    elif phase == FIRST_ROAD:
        _first_road(state, me, legal, income, away, queue, found, i)
    elif phase == MOVE_ROBBER:
        _robber(rules, state, me, legal, found, i)
        return BY_GAME
    elif phase == STEAL_FROM:
        _people(rules, state, me, legal, STEAL, found, i)
    elif phase == CHOOSE:
        _people(rules, state, me, legal, PARTNER, found, i)
    elif phase == ANSWER:
        _answer(rules, state, me, legal, hand, cost, found, i)
        return BY_GOAL
    elif phase == COMPOSE and legal[PROPOSE]:
        _only(PROPOSE, found, i)
    elif phase in (DISCARD, TAKE, COMPOSE):
        _cards(rules, state, me, legal, behaviour, hand, cost, low, found, i)
        if found.count[i] > 0:
            return BY_GOAL
        if phase == COMPOSE:
            _only(CANCEL, found, i)
    elif phase == FREE_ROADS or low == BUILD_ROAD_ACTION:
        _roads(rules, state, me, legal, behaviour, income, away, queue, found, i)
        return BY_GAME
    elif low == BUILD_SETTLEMENT_ACTION:
        _settlements(state, me, legal, behaviour, income, found, i)
        return BY_GAME
    elif low == BUILD_CITY_ACTION:
        for corner in range(54):
            if legal[BUILD_CITY + corner]:
                _add(found, i, BUILD_CITY + corner, spot_value(state, corner), MOST_PLACES)
        return BY_GAME
    elif low == BUY_CARD_ACTION:
        _only(BUY_CARD, found, i)
    elif low == PLAY_KNIGHT_ACTION:
        _only(PLAY_KNIGHT, found, i)
    elif low == PLAY_ROADS_ACTION:
        _only(PLAY_ROADS, found, i)
    elif low == PLAY_PLENTY_ACTION:
        _only(PLAY_PLENTY, found, i)
    elif low == END_TURN_ACTION:
        _only(ROLL if phase == BEFORE_ROLL else END_TURN, found, i)
    else:
        _cards(rules, state, me, legal, behaviour, hand, cost, low, found, i)
        return BY_GOAL
    return BY_SCORE


# ---- what follows


@njit(cache=True, _nrt=False)
def _follow(rules, state, me, action, after):
    """Writes into `after` [1] what follows the action: an offer as if it were taken up, Monopoly
    with the cards that rivals are known to hold. Returns whether the action wins."""
    after[0] = state
    then = after[0]
    phase = state["phase"]
    if phase == ANSWER:
        if action == ACCEPT:
            then["answers"][me] = ACCEPTED
            trade_with(then, state["turn_player"], me)
    elif phase == COMPOSE:
        for give in range(5):
            if state["give"][me, give] > 0:
                _exchange(then, me, give, action - WANT)
                break
    elif PLAY_MONOPOLY <= action < PLAY_MONOPOLY + 5:
        # The cards that everybody knows of: a position in which hidden ones had moved would not add
        # up for who counts cards.
        resource = action - PLAY_MONOPOLY
        for seat in range(rules.players):
            if seat != me:
                taken = then["known"][seat, resource]
                then["hands"][seat, resource] -= taken
                then["known"][seat, resource] = 0
                then["hands"][me, resource] += taken
        then["cards"][me, MONOPOLY] -= 1
    else:
        apply(rules, then, action)
        return then["turn_player"] == me and has_won(rules, then)
    return False


@njit(cache=True, _nrt=False)
def _as_own_turn(state, me):
    """Turns what follows into a position of the kind that values are learned in."""
    if state["turn_player"] != me:
        state["card_played"] = 0
        state["bought"][:] = 0
        state["dice"] = 7
    state["phase"] = MAIN
    state["player"] = me
    state["turn_player"] = me
    state["victim"] = -1
    state["discards"][:] = 0
    state["free_roads"] = 0
    state["takes"] = 0
    state["give"][:] = 0
    state["want"][:] = 0
    state["answers"][:] = 0


@njit(cache=True)
def candidates(rules, states, legal, behaviours, low, found):
    hand, cost, income = np.empty(5), np.empty(5), np.empty(5)
    away, queue = np.empty(54, np.int8), np.empty(54, np.int8)
    for i in range(len(states)):
        state, me = states[i], np.int64(states[i]["player"])
        judged = _find(
            rules, state, me, legal[i], behaviours[i], low[i], hand, cost, income, away, queue,
            found, i,
        )  # fmt: skip
        if found.count[i] == 0:
            _first_of(legal[i], found, i)
        found.judged[i] = judged if found.count[i] > 1 else BY_SCORE
        if found.judged[i] == BY_SCORE:
            continue
        for k in range(found.count[i]):
            if low[i] != OFFER_TRADE_ACTION:
                action = np.int64(found.actions[i, k])
                if _follow(rules, state, me, action, found.states[i, k : k + 1]):
                    found.scores[i, k] = WIN
            _as_own_turn(found.states[i, k], me)
