"""The state record, the phases, the actions and the rule parameters of Catan.

Counts are int8, so that a difference of two is the same number with and without the JIT. Seats are
0..P-1 in turn order; arrays over seats always have room for four. Sets of corners are uint64, a
road set is two of them (edge e is bit e % 64 of word e // 64). Fields after the first line that
follow from others and are kept for speed: `open`, `reach`, `pieces`, `rates`, `road_length`,
`points`; `derive` sets them.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from games.catan.board import (
    ALL_CORNERS,
    ANY,
    AROUND_BITS,
    CORNERS,
    EDGE_BITS,
    EDGES,
    PORT_CORNERS,
    PORTS,
    TILES,
)
from games.catan.longest_road import count_bits, has_edge, longest_road
from games.game import HEADER

SEATS = 4
ROAD, SETTLEMENT, CITY, CARD = range(4)  # what one can buy
KNIGHT, VICTORY, ROADS, PLENTY, MONOPOLY = range(5)  # development cards
CARD_NAMES = ("knight", "victory point", "road building", "year of plenty", "monopoly")

SUPPLY = 19  # cards of each resource
DECK = np.array([14, 5, 2, 2, 2])
PIECES = np.array([15, 5, 4])  # roads, settlements, cities of a player
COSTS = np.array(
    [[1, 1, 0, 0, 0], [1, 1, 1, 1, 0], [0, 0, 0, 2, 3], [0, 0, 1, 1, 1]]
)  # of ROAD, SETTLEMENT, CITY, CARD in RESOURCES
LEAST_ROAD, LEAST_ARMY = 5, 3  # of the two awards, worth two points each

# What is to be decided. The phases of chance are DICE, STEAL_CARD and DEAL.
(
    FIRST_SETTLEMENT, FIRST_ROAD, BEFORE_ROLL, DICE, DISCARD, MOVE_ROBBER, STEAL_FROM, STEAL_CARD,
    MAIN, DEAL, FREE_ROADS, TAKE, COMPOSE, ANSWER, CHOOSE, OVER,
) = range(16)  # fmt: skip
PHASE_NAMES = (
    "first settlements", "first roads", "before the roll", "dice", "discard", "move the robber",
    "choose whom to rob", "stolen card", "main", "card from the deck", "free roads",
    "take from the bank", "compose an offer", "answer an offer", "choose a partner", "over",
)  # fmt: skip

NOT_ASKED, ACCEPTED, DECLINED, COUNTERED = range(4)  # answers to an offer

STATE = np.dtype(
    [
        *HEADER,
        ("settlements", np.uint64, SEATS),
        ("cities", np.uint64, SEATS),
        ("roads", np.uint64, (SEATS, 2)),
        ("reach", np.uint64, SEATS),  # corners at the ends of own roads
        ("open", np.uint64),  # corners that no building and no neighbour of one takes
        ("turn", np.int16),  # from 0; set-up counts -2P..-1
        ("turn_player", np.int8),
        ("phase", np.int8),
        ("dice", np.int8),  # sum of this turn's roll, 0 before it
        ("robber", np.int8),  # tile
        ("corner", np.int8),  # of the settlement whose first road is due, else -1
        ("victim", np.int8),  # who is being robbed, else -1
        ("free_roads", np.int8),  # left of Road Building
        ("takes", np.int8),  # cards left of Year of Plenty
        ("card_played", np.int8),  # a development card this turn
        ("offers", np.int8),  # begun this turn
        ("road_holder", np.int8),  # of Longest Road, -1 = nobody
        ("army_holder", np.int8),
        ("discards", np.int8, SEATS),  # cards still to drop
        ("bank", np.int8, 5),
        ("hands", np.int8, (SEATS, 5)),
        # Cards that everybody knows a player to hold; the others came by thefts nobody saw.
        ("known", np.int8, (SEATS, 5)),
        ("cards", np.int8, (SEATS, 5)),  # development cards in hand
        ("bought", np.int8, 5),  # of them, by the turn player in this turn
        ("deck", np.int8, 5),
        ("knights", np.int8, SEATS),  # played
        ("points", np.int8, SEATS),  # that all can see: without victory point cards
        ("road_length", np.int8, SEATS),
        ("pieces", np.int8, (SEATS, 3)),  # left of PIECES
        ("rates", np.int8, (SEATS, 5)),  # cards of a resource that the bank takes for one
        ("give", np.int8, (SEATS, 5)),  # of an offer or a counter-offer
        ("want", np.int8, (SEATS, 5)),
        ("answers", np.int8, SEATS),
        ("resource", np.int8, TILES),
        ("number", np.int8, TILES),  # 0 on a desert
        ("port", np.int8, PORTS),  # a resource or ANY
    ]
)

# Actions: the first id of each kind.
END_TURN, ROLL, BUY_CARD, PLAY_KNIGHT, PLAY_ROADS, PLAY_PLENTY = range(6)
PLAY_MONOPOLY = 6  # + resource
TAKE_CARD = 11  # + resource
DROP = 16  # + resource
BANK_TRADE = 21  # + 4 * resource given + index of the one wanted among the other four
GIVE = 41  # + resource
WANT = 46  # + resource
PROPOSE, CANCEL, ACCEPT, DECLINE, COUNTER = range(51, 56)
PARTNER = 56  # + seats after one's own, less one
STEAL = 59  # + seats after one's own, less one
ROBBER = 62  # + tile
BUILD_SETTLEMENT = 81  # + corner
BUILD_CITY = BUILD_SETTLEMENT + CORNERS  # + corner
BUILD_ROAD = BUILD_CITY + CORNERS  # + edge
ACTIONS = BUILD_ROAD + EDGES
OUTCOMES = 11  # sums of two dice less two; else a resource or a development card

NO_TRADE, BANK_ONLY, FULL_TRADE = range(3)


class Rules(NamedTuple):
    players: int
    points_to_win: int
    turn_limit: int
    discard_limit: int  # cards that are safe from a seven
    friendly_robber: bool
    trading: int  # NO_TRADE, BANK_ONLY, FULL_TRADE
    offer_cards: int  # at most on either side of an offer
    offers_per_turn: int
    counter_offers: bool
    random_board: bool
    spiral: bool  # the numbers of a random board follow the rule book's spiral
    random_ports: bool
    adjacent_6_8: bool
    resource: np.ndarray  # int8 [19]: the board, where it is not random
    number: np.ndarray  # int8 [19]
    port: np.ndarray  # int8 [9]


@njit(cache=True, _nrt=False)
def set_rate(state, seat, corner):
    """A building of `seat` stands at `corner` now: a port there is theirs."""
    for port in range(PORTS):
        if PORT_CORNERS[port, 0] == corner or PORT_CORNERS[port, 1] == corner:
            kind = state["port"][port]
            if kind == ANY:
                for resource in range(5):
                    state["rates"][seat, resource] = min(state["rates"][seat, resource], 3)
            else:
                state["rates"][seat, kind] = 2


@njit(cache=True, _nrt=False)
def rivals_of(state, seat):
    """The corners with a building of anybody else."""
    taken = np.uint64(0)
    for other in range(SEATS):
        if other != seat:
            taken |= state["settlements"][other] | state["cities"][other]
    return taken


@njit(cache=True, _nrt=False)
def derive(state):
    """Sets what follows from the pieces on the board, the ports and the awards."""
    state["open"] = ALL_CORNERS
    for seat in range(SEATS):
        settlements, cities = state["settlements"][seat], state["cities"][seat]
        state["reach"][seat] = np.uint64(0)
        roads = 0
        for edge in range(EDGES):
            if has_edge(state["roads"][seat, 0], state["roads"][seat, 1], edge):
                state["reach"][seat] |= EDGE_BITS[edge]
                roads += 1
        for resource in range(5):
            state["rates"][seat, resource] = 4
        for corner in range(CORNERS):
            if (settlements | cities) >> np.uint64(corner) & np.uint64(1):
                state["open"] &= ~AROUND_BITS[corner]
                set_rate(state, seat, corner)
        state["pieces"][seat, ROAD] = PIECES[ROAD] - roads
        state["pieces"][seat, SETTLEMENT] = PIECES[SETTLEMENT] - count_bits(settlements)
        state["pieces"][seat, CITY] = PIECES[CITY] - count_bits(cities)
        state["road_length"][seat] = longest_road(
            state["roads"][seat, 0], state["roads"][seat, 1], rivals_of(state, seat)
        )
        points = count_bits(settlements) + 2 * count_bits(cities)
        points += 2 * (state["road_holder"] == seat) + 2 * (state["army_holder"] == seat)
        state["points"][seat] = points
