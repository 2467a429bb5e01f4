"""What a player may know, summed up in high-level numbers; docs/games/catan.md lists all of them.

The proposal behind them: features in the spirit of Pfeiffer (2004), who summarised "important facts
about the current board situation". Everything is from the seat's own view, rivals in turn order
after it. Numbers are in the units of the table: cards, points, roads, cards per roll, turns.

Rivals' hands are known as far as everybody at the table can count (`known` of the state): a card
that nobody saw change hands counts by the mix of all cards that the viewer cannot place.
"""

import numpy as np
from numba import njit

from games.catan.board import (
    ANY,
    CORNER_BIT,
    CORNER_EDGES,
    CORNER_NEIGHBOURS,
    CORNER_TILES,
    DESERT,
    PIPS,
    PORT_CORNERS,
    PORTS,
    RESOURCES,
    TILE_BITS,
    TILES,
)
from games.catan.longest_road import count_bits, has_edge, lowest_bit
from games.catan.rules import hand_size
from games.catan.state import (
    ACCEPTED,
    ANSWER,
    CARD,
    CHOOSE,
    CITY,
    COMPOSE,
    COSTS,
    COUNTERED,
    DEAL,
    KNIGHT,
    MONOPOLY,
    OVER,
    PIECES,
    PLENTY,
    ROAD,
    ROADS,
    SEATS,
    SETTLEMENT,
    STEAL_CARD,
    SUPPLY,
    VICTORY,
    rivals_of,
)

_ONE = np.uint64(1)
MOST_TURNS = 20.0  # what an estimate of turns says at most

# Cards for a road, a settlement, a city, a development card and two roads.
_TARGETS = np.vstack([COSTS, 2 * COSTS[:1]]).astype(np.float64)


@njit(cache=True, _nrt=False)
def expected_hand(state, viewer, rival, resource):
    """How many cards of a resource a rival holds, as the viewer may expect it."""
    hidden = 0
    total = 0  # of the cards that the viewer cannot place
    of_kind = 0
    for r in range(5):
        hidden += state["hands"][rival, r] - state["known"][rival, r]
        elsewhere = SUPPLY - state["bank"][r] - state["hands"][viewer, r]
        for seat in range(SEATS):
            if seat != viewer:
                elsewhere -= state["known"][seat, r]
        total += elsewhere
        if r == resource:
            of_kind = elsewhere
    known = np.float64(state["known"][rival, resource])
    return known + hidden * of_kind / total if hidden > 0 else known


@njit(cache=True, _nrt=False)
def income_of(state, seat, with_robber, income):
    """Writes the cards of each resource per roll, the bank's shortage left out; returns the sum."""
    for r in range(5):
        income[r] = 0.0
    settlements, cities = state["settlements"][seat], state["cities"][seat]
    both = settlements | cities
    total = 0
    for tile in range(TILES):
        around = TILE_BITS[tile]
        pips = np.int64(PIPS[state["number"][tile]])
        if both & around != 0 and pips > 0 and not (with_robber and state["robber"] == tile):
            pips *= count_bits(settlements & around) + 2 * count_bits(cities & around)
            income[state["resource"][tile]] += pips / 36.0
            total += pips
    return total / 36.0


@njit(cache=True, _nrt=False)
def turns_to(state, seat, hand, income, target):
    """`turns_to_pay` for a row of `_TARGETS`."""
    return turns_to_pay(state, seat, hand, income, _TARGETS[target])


@njit(cache=True, _nrt=False)
def turns_to_pay(state, seat, hand, income, cost):
    """Own turns until `seat` can pay a cost, if every roll pays what it pays on average.

    Surplus goes to the bank at the seat's rates, in fractions. The cards that are still missing
    fall along a concave line of pieces, so that Newton's steps from the left meet its zero.

    Args:
        hand, income, cost: five numbers each, cards, cards per turn, cards.
    """
    time = 0.0
    for _ in range(10):
        balance = 0.0
        slope = 0.0
        for r in range(5):
            spare = hand[r] + time * income[r] - cost[r]
            # Exactly at the piece's end the next piece begins.
            share = 1.0 if spare < -1e-9 else 1.0 / state["rates"][seat, r]
            balance += spare * share
            slope += income[r] * share
        if balance > -1e-6:
            return min(time, MOST_TURNS)
        if slope <= 0.0:
            return MOST_TURNS
        time -= balance / slope
        if time > MOST_TURNS:
            return MOST_TURNS
    return min(time, MOST_TURNS)


@njit(cache=True, _nrt=False)
def spot_value(state, corner):
    """Cards per roll of a settlement at the corner, the robber left out."""
    pips = 0
    for k in range(3):
        tile = CORNER_TILES[corner, k]
        if tile >= 0:
            pips += PIPS[state["number"][tile]]
    return pips / 36.0


@njit(cache=True, _nrt=False)
def best_spot(state, corners):
    """(value of the best, how many) of a set of corners; (0, 0) of none."""
    best = 0.0
    count = 0
    while corners != 0:
        best = max(best, spot_value(state, lowest_bit(corners)))
        corners &= corners - _ONE
        count += 1
    return best, count


@njit(cache=True, _nrt=False)
def one_road_on(state, corners, rivals):
    """`corners` and the corners one more road away; no road goes on from a rival's building."""
    low, high = np.uint64(0), np.uint64(0)
    for seat in range(SEATS):
        low |= state["roads"][seat, 0]
        high |= state["roads"][seat, 1]
    further = corners
    corners &= ~rivals
    while corners != 0:
        corner = lowest_bit(corners)
        corners &= corners - _ONE
        for k in range(3):
            edge = CORNER_EDGES[corner, k]
            if edge >= 0 and not has_edge(low, high, edge):
                further |= CORNER_BIT[CORNER_NEIGHBOURS[corner, k]]
    return further


@njit(cache=True, _nrt=False)
def _write_income(rules, state, me, hand, income, row, at):
    """Own income, 30 numbers; leaves the hand and the income per turn in `hand` and `income`."""
    least = 36.0
    kinds = 0
    lost = income_of(state, me, False, income)
    for r in range(5):
        row[at + r] = income[r]
    total = income_of(state, me, True, income)
    lost -= total
    for r in range(5):
        row[at + 5 + r] = income[r]
        kinds += income[r] > 0
        least = min(least, income[r])
        hand[r] = state["hands"][me, r]
        income[r] *= rules.players
    numbers = 0  # bits
    tiles = 0
    mine = state["settlements"][me] | state["cities"][me]
    for tile in range(TILES):
        if state["resource"][tile] != DESERT and mine & TILE_BITS[tile] != 0:
            tiles += 1
            if tile != state["robber"]:
                numbers |= 1 << np.int64(state["number"][tile])
    distinct = 0
    chance = 0
    for number in range(2, 13):
        if numbers >> number & 1:
            distinct += 1
            chance += PIPS[number]
    row[at + 10] = total
    row[at + 11] = kinds
    row[at + 12] = least
    row[at + 13] = distinct
    row[at + 14] = chance / 36.0
    three = False
    for r in range(5):
        row[at + 15 + r] = state["rates"][me, r]
        three |= state["rates"][me, r] == 3
    row[at + 20] = three
    for target in range(5):
        row[at + 21 + target] = turns_to(state, me, hand, income, target)
    size = hand_size(state, me)
    row[at + 26] = size
    row[at + 27] = max(size - rules.discard_limit, 0)
    row[at + 28] = tiles - distinct
    row[at + 29] = lost
    return at + 30


@njit(cache=True, _nrt=False)
def _write_hand(state, me, row, at):
    """Own hand, 16 numbers."""
    surplus = 0
    for r in range(5):
        row[at + r] = state["hands"][me, r]
        surplus += state["hands"][me, r] // state["rates"][me, r]
    for what in range(4):
        missing = 0
        for r in range(5):
            missing += max(COSTS[what, r] - state["hands"][me, r], 0)
        row[at + 5 + what] = missing
    row[at + 9] = surplus
    mine = state["turn_player"] == me
    bought = 0
    for k in range(5):
        if mine:
            bought += state["bought"][k]
    for k, card in enumerate((KNIGHT, MONOPOLY, PLENTY, ROADS)):
        row[at + 10 + k] = state["cards"][me, card] - (state["bought"][card] if mine else 0)
    row[at + 14] = state["cards"][me, VICTORY]
    row[at + 15] = bought
    return at + 16


@njit(cache=True, _nrt=False)
def _write_board(rules, state, me, row, at):
    """Own board, 22 numbers."""
    points = state["points"][me]
    row[at] = points + state["cards"][me, VICTORY]
    row[at + 1] = points
    pieces = state["pieces"][me]
    row[at + 2] = PIECES[SETTLEMENT] - pieces[SETTLEMENT]
    row[at + 3] = PIECES[CITY] - pieces[CITY]
    row[at + 4] = PIECES[ROAD] - pieces[ROAD]
    row[at + 5] = pieces[SETTLEMENT]
    row[at + 6] = pieces[CITY]
    row[at + 7] = pieces[ROAD]
    longest = 0
    most = 0
    for seat in range(rules.players):
        if seat != me:
            longest = max(longest, state["road_length"][seat])
            most = max(most, state["knights"][seat])
    row[at + 8] = state["road_length"][me]
    row[at + 9] = state["road_length"][me] - longest
    row[at + 10] = state["road_holder"] == me
    row[at + 11] = state["knights"][me]
    row[at + 12] = state["knights"][me] - most
    row[at + 13] = state["army_holder"] == me
    rivals = rivals_of(state, me)
    corners = state["reach"][me]
    ports = 0
    for away in range(3):
        if away > 0:
            corners = one_road_on(state, corners, rivals)
        best, count = best_spot(state, corners & state["open"])
        row[at + 14 + away] = count
        row[at + 17 + away] = best
    for port in range(PORTS):
        for k in range(2):
            if corners & state["open"] & CORNER_BIT[PORT_CORNERS[port, k]] != 0:
                kind = state["port"][port]
                if kind == ANY:
                    for r in range(5):
                        ports |= state["rates"][me, r] > 3
                else:
                    ports |= state["rates"][me, kind] > 2
    row[at + 20] = best_spot(state, state["settlements"][me])[0]
    row[at + 21] = ports
    return at + 22


@njit(cache=True, _nrt=False)
def _write_rivals(rules, state, me, hand, income, row, at):
    """8 numbers for each rival in turn order, then 9 about all of them; overwrites `hand` and
    `income`."""
    leader = 0
    longest = 0
    most = 0
    close = 0
    for k in range(1, rules.players):
        rival = (me + k) % rules.players
        points = state["points"][rival]
        total = income_of(state, rival, True, income)
        cards = 0
        for r in range(5):
            income[r] *= rules.players
            hand[r] = expected_hand(state, me, rival, r)
            cards += state["cards"][rival, r]
        soonest = turns_to(state, rival, hand, income, CARD)
        if state["pieces"][rival, CITY] > 0 and state["settlements"][rival] != 0:
            soonest = min(soonest, turns_to(state, rival, hand, income, CITY))
        if state["pieces"][rival, SETTLEMENT] > 0 and state["reach"][rival] & state["open"] != 0:
            soonest = min(soonest, turns_to(state, rival, hand, income, SETTLEMENT))
        row[at] = points
        row[at + 1] = hand_size(state, rival)
        row[at + 2] = cards
        row[at + 3] = state["knights"][rival]
        row[at + 4] = state["road_length"][rival]
        row[at + 5] = total
        row[at + 6] = count_bits(state["settlements"][rival] | state["cities"][rival])
        row[at + 7] = soonest
        at += 8
        leader = max(leader, points)
        longest = max(longest, state["road_length"][rival])
        most = max(most, state["knights"][rival])
        close += points >= rules.points_to_win - 2
    row[at] = leader - state["points"][me]
    row[at + 1] = longest
    row[at + 2] = most
    row[at + 3] = close
    for r in range(5):
        row[at + 4 + r] = SUPPLY - state["bank"][r] - state["hands"][me, r]
    return at + 9


@njit(cache=True, _nrt=False)
def _write_game(rules, state, me, row, at):
    """The game, 18 numbers."""
    deck = 0
    for r in range(5):
        row[at + r] = state["bank"][r]
        deck += state["deck"][r]
    row[at + 5] = deck
    row[at + 6] = max(state["turn"], 0) / rules.players
    row[at + 7] = state["dice"] > 0
    row[at + 8] = state["card_played"]
    row[at + 9] = state["offers"]
    leader = -1
    ahead = 0
    for k in range(1, rules.players):
        rival = (me + k) % rules.players
        if leader < 0 or state["points"][rival] > state["points"][leader]:
            leader = rival
            ahead = k
    row[at + 10] = ahead
    mine = state["settlements"][me] | state["cities"][me]
    theirs_s, theirs_c = state["settlements"][leader], state["cities"][leader]
    best = 0
    total = 0
    of_kind = 0  # pips of each resource on the board, 8 bits each
    for tile in range(TILES):
        pips = np.int64(PIPS[state["number"][tile]])
        if state["resource"][tile] != DESERT:
            total += pips
            of_kind += pips << (8 * np.int64(state["resource"][tile]))
        around = TILE_BITS[tile]
        if (theirs_s | theirs_c) & around != 0 and mine & around == 0:
            count = count_bits(theirs_s & around) + 2 * count_bits(theirs_c & around)
            best = max(best, count * pips)
    row[at + 11] = best / 36.0
    for r in range(5):
        row[at + 12 + r] = (of_kind >> (8 * r) & 255) / max(total, 1)
    row[at + 17] = mine & TILE_BITS[state["robber"]] != 0
    return at + 18


@njit(cache=True, _nrt=False)
def offer_seat(state, me):
    """(seat of the offer that `me` has a part in, +1 if it is their own or -1), or (-1, 0).

    What another composes is not on the table yet.
    """
    phase = state["phase"]
    offerer = state["turn_player"]
    if phase == COMPOSE and state["player"] == me:
        return me, 1
    if phase != ANSWER and phase != CHOOSE and phase != COMPOSE:
        return -1, 0
    if offerer == me:
        return me, 1
    if phase == COMPOSE and state["player"] == offerer:
        return -1, 0
    if state["answers"][me] == COUNTERED:
        return me, 1
    return offerer, -1


@njit(cache=True, _nrt=False)
def _write_pending(rules, state, me, row, at):
    """What is being decided, 14 numbers."""
    offer, sign = offer_seat(state, me)
    accepted = 0
    for seat in range(rules.players):
        accepted += seat != me and state["answers"][seat] == ACCEPTED
    for r in range(5):
        change = 0
        if offer >= 0:
            change = sign * (state["want"][offer, r] - state["give"][offer, r])
        row[at + r] = change
    row[at + 5] = offer >= 0
    row[at + 6] = state["answers"][me] == ACCEPTED
    row[at + 7] = accepted
    row[at + 8] = state["discards"][me]
    mine = state["turn_player"] == me
    row[at + 9] = state["free_roads"] if mine else 0
    row[at + 10] = state["takes"] if mine else 0
    row[at + 11] = mine and state["phase"] == DEAL
    robbing = state["phase"] == STEAL_CARD
    row[at + 12] = robbing * (mine - np.int64(state["victim"] == me))
    row[at + 13] = mine and state["phase"] != OVER
    return at + 14


@njit(cache=True, _nrt=False)
def write_features(rules, state, me, hand, income, row):
    """All features of a seat into `row`; `hand` and `income` are room for five numbers each."""
    at = _write_income(rules, state, me, hand, income, row, 0)
    at = _write_hand(state, me, row, at)
    at = _write_board(rules, state, me, row, at)
    at = _write_rivals(rules, state, me, hand, income, row, at)
    at = _write_game(rules, state, me, row, at)
    _write_pending(rules, state, me, row, at)


@njit(cache=True)
def observe(rules, states, players, out):
    hand, income = np.empty(5), np.empty(5)
    for i in range(len(states)):
        write_features(rules, states[i], np.int64(players[i]), hand, income, out[i])


_TARGET_NAMES = ("road", "settlement", "city", "development card", "two roads")


def feature_names(players: int) -> tuple[str, ...]:
    """The names of the features in a game of so many, in their order."""
    income = [
        *(f"my {name} per roll without the robber" for name in RESOURCES),
        *(f"my {name} per roll" for name in RESOURCES),
        "my cards per roll",
        "my kinds of resources",
        "my rarest resource per roll",
        "my different numbers",
        "my chance of a card at a roll",
        *(f"my bank rate for {name}" for name in RESOURCES),
        "my 3:1 port",
        *(f"my turns to a {name}" for name in _TARGET_NAMES[:4]),
        "my turns to two roads",
        "my cards",
        "my cards over the discard limit",
        "my tiles beyond my different numbers",
        "my cards per roll lost to the robber",
    ]
    hand = [
        *(f"my {name}" for name in RESOURCES),
        *(f"cards I miss for a {name}" for name in _TARGET_NAMES[:4]),
        "my trades open at the bank",
        *(f"my playable {name}" for name in ("knights", "monopolies", "years of plenty")),
        "my playable road buildings",
        "my victory point cards",
        "my cards bought this turn",
    ]
    board = [
        "my points",
        "my public points",
        *(f"my {name} on the board" for name in ("settlements", "cities", "roads")),
        *(f"my {name} left" for name in ("settlements", "cities", "roads")),
        "my road length",
        "my road length ahead of the rivals",
        "I hold Longest Road",
        "my knights",
        "my knights ahead of the rivals",
        "I hold Largest Army",
        *(f"my spots {away}" for away in ("now", "within a road", "within two roads")),
        *(f"my best spot {away}" for away in ("now", "within a road", "within two roads")),
        "my best settlement to upgrade",
        "a better port within two roads",
    ]
    rivals = [
        f"{fact} of rival {rival}"
        for rival in range(1, players)
        for fact in (
            "points", "cards", "development cards", "knights", "road length", "cards per roll",
            "buildings", "turns to the next purchase",
        )
    ]  # fmt: skip
    rivals += [
        "points of the leading rival ahead of mine",
        "longest road of a rival",
        "most knights of a rival",
        "rivals two points from the win",
        *(f"{name} of all rivals" for name in RESOURCES),
    ]
    game = [
        *(f"{name} in the bank" for name in RESOURCES),
        "cards in the deck",
        "rounds",
        "rolled",
        "card played this turn",
        "offers this turn",
        "seats until the leading rival",
        "cards per roll of the leading rival on one tile without me",
        *(f"share of {name} on the board" for name in RESOURCES),
        "robber on my tile",
    ]
    pending = [
        *(f"{name} I would get by the offer" for name in RESOURCES),
        "an offer to or by me",
        "I have accepted",
        "others who have accepted",
        "cards I must discard",
        "my free roads",
        "cards I take from the bank",
        "I draw a card",
        "cards I steal",
        "my turn",
    ]
    return (*income, *hand, *board, *rivals, *game, *pending)
