"""What a player may know, entry by entry: tiles, corners, edges, hands; for networks.

Everything is from the seat's own view, seats in turn order from it on; all numbers lie in about
0 to 1. As in `games.catan.features`, a rival's hand is what everybody at the table can count.
"""

import numpy as np
from numba import njit

from games.catan.board import (
    CORNER_PORT,
    CORNERS,
    EDGE_CORNERS,
    EDGES,
    PIPS,
    RESOURCES,
    TILES,
)
from games.catan.features import expected_hand, offer_seat
from games.catan.longest_road import has_corner, has_edge
from games.catan.rules import hand_size
from games.catan.state import BEFORE_ROLL, CARD_NAMES, DICE, PHASE_NAMES

_PHASES = len(PHASE_NAMES)


@njit(cache=True, _nrt=False)
def _write_tables(state, me, row, at):
    """Tiles, corners' ports, the bank and the own hand."""
    for tile in range(TILES):
        for kind in range(6):
            row[at + kind] = state["resource"][tile] == kind
        row[at + 6] = PIPS[state["number"][tile]] / 5.0
        row[at + 7] = state["robber"] == tile
        at += 8
    for corner in range(CORNERS):
        port = CORNER_PORT[corner]
        if port >= 0:  # the others have no entries
            for kind in range(6):
                row[at + kind] = state["port"][port] == kind
            at += 6
    for r in range(5):
        row[at + r] = state["bank"][r] / 19.0
        row[at + 5 + r] = state["hands"][me, r] / 10.0
        row[at + 10 + r] = state["cards"][me, r] / 5.0
        row[at + 15 + r] = state["bought"][r] / 5.0 if state["turn_player"] == me else 0.0
        row[at + 20 + r] = state["rates"][me, r] / 4.0
    return at + 25


@njit(cache=True, _nrt=False)
def _write_seat(rules, state, me, seat, row, at):
    """The pieces and what all can see of a seat."""
    settlements, cities = state["settlements"][seat], state["cities"][seat]
    phase = state["phase"]
    for corner in range(CORNERS):
        row[at + corner] = has_corner(settlements, corner)
        row[at + CORNERS + corner] = has_corner(cities, corner)
    at += 2 * CORNERS
    for edge in range(EDGES):
        row[at + edge] = has_edge(state["roads"][seat, 0], state["roads"][seat, 1], edge)
    at += EDGES
    cards = 0
    for r in range(5):
        cards += state["cards"][seat, r]
        held = state["hands"][seat, r] if seat == me else expected_hand(state, me, seat, r)
        row[at + r] = held / 10.0
    row[at + 5] = hand_size(state, seat) / 20.0
    row[at + 6] = cards / 5.0
    row[at + 7] = state["knights"][seat] / 5.0
    row[at + 8] = state["army_holder"] == seat
    row[at + 9] = state["road_length"][seat] / 10.0
    row[at + 10] = state["road_holder"] == seat
    row[at + 11] = state["points"][seat] / 10.0
    row[at + 12] = state["discards"][seat] / 5.0
    row[at + 13] = state["turn_player"] == seat
    row[at + 14] = state["player"] == seat and (seat == me or phase != BEFORE_ROLL)
    row[at + 15] = state["victim"] == seat
    for answer in range(1, 4):
        row[at + 15 + answer] = state["answers"][seat] == answer
    return at + 19


@njit(cache=True, _nrt=False)
def _write_turn(rules, state, me, row, at):
    """The phase, and the offer on the table as changes of the own hand."""
    shown = state["phase"]
    if shown == BEFORE_ROLL and state["turn_player"] != me:
        shown = DICE  # only who holds a card can think about it
    for phase in range(_PHASES):
        row[at + phase] = shown == phase
    at += _PHASES
    row[at] = state["dice"] / 12.0
    row[at + 1] = state["card_played"]
    row[at + 2] = state["offers"] / 10.0
    row[at + 3] = state["free_roads"] / 2.0
    row[at + 4] = state["takes"] / 2.0
    row[at + 5] = max(state["turn"], 0) / 100.0
    deck = 0
    for card in range(5):
        deck += state["deck"][card]
    row[at + 6] = deck / 25.0
    at += 7
    offer, sign = offer_seat(state, me)
    for r in range(5):
        change = 0
        if offer >= 0:
            change = sign * (state["want"][offer, r] - state["give"][offer, r])
        row[at + r] = change / 4.0
    return at + 5


@njit(cache=True, _nrt=False)
def observe(rules, states, players, out):
    for i in range(len(states)):
        state, row, me = states[i], out[i], np.int64(players[i])
        at = _write_tables(state, me, row, 0)
        for k in range(rules.players):
            at = _write_seat(rules, state, me, (me + k) % rules.players, row, at)
        _write_turn(rules, state, me, row, at)


def raw_names(players: int) -> tuple[str, ...]:
    """The names of the entries in a game of so many, in their order."""
    kinds = (*RESOURCES, "desert")
    names = [
        f"t{tile} {what}"
        for tile in range(TILES)
        for what in (*(f"is {kind}" for kind in kinds), "pips", "robber")
    ]
    names += [
        f"corner {corner} port {kind}"
        for corner in range(CORNERS)
        if CORNER_PORT[corner] >= 0
        for kind in (*RESOURCES, "any")
    ]
    names += [f"bank {name}" for name in RESOURCES]
    names += [f"hand {name}" for name in RESOURCES]
    names += [f"development card {name}" for name in CARD_NAMES]
    names += [f"bought {name}" for name in CARD_NAMES]
    names += [f"bank rate {name}" for name in RESOURCES]
    for k in range(players):
        who = "mine" if k == 0 else f"rival {k}"
        names += [f"{who}: settlement {corner}" for corner in range(CORNERS)]
        names += [f"{who}: city {corner}" for corner in range(CORNERS)]
        names += [f"{who}: road {a}-{b}" for a, b in EDGE_CORNERS.tolist()]
        names += [f"{who}: expected {name}" for name in RESOURCES]
        names += [
            f"{who}: {fact}"
            for fact in (
                "cards", "development cards", "knights", "Largest Army", "road length",
                "Longest Road", "points", "to discard", "in turn", "decides", "is robbed",
                "accepted", "declined", "counter-offer",
            )
        ]  # fmt: skip
    names += [f"phase {name}" for name in PHASE_NAMES]
    names += ["dice", "card played", "offers", "free roads", "takes", "turn", "deck"]
    names += [f"{name} by the offer" for name in RESOURCES]
    return tuple(names)
