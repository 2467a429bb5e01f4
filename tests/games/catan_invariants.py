"""What must hold in every state of Catan, told by plain Python from the board and the rule book."""

from itertools import product

import numpy as np

from games import CHANCE, TERMINAL
from games.catan.board import CORNER_NEIGHBOURS, EDGE_CORNERS, PORT_CORNERS
from games.catan.drawing import owners, road_owners
from games.catan.state import DECK, DISCARD, MAIN, PIECES, SUPPLY, VICTORY


def longest_chain(edges, blocked) -> int:
    """The longest road by walking every chain from every corner.

    Args:
        edges: pairs of corners.
        blocked: corners with a building of a rival.
    """
    at = {}
    for a, b in edges:
        at.setdefault(a, []).append(b)
        at.setdefault(b, []).append(a)

    def walk(corner, used):
        best = len(used)
        if used and corner in blocked:
            return best
        for there in at[corner]:
            edge = frozenset((corner, there))
            if edge not in used:
                best = max(best, walk(there, used | {edge}))
        return best

    return max((walk(corner, frozenset()) for corner in at), default=0)


def check_state(game, state) -> None:
    """Asserts every invariant of one state, a record."""
    players = game.num_players
    hands, bank = state["hands"].astype(int), state["bank"].astype(int)
    assert (hands >= 0).all() and (bank >= 0).all()
    assert (hands.sum(0) + bank == SUPPLY).all(), "resource cards are conserved"
    known = state["known"].astype(int)
    assert (known >= 0).all() and (known <= hands).all(), "what is known to be held is held"
    if players == 2:
        assert (hands.sum(1)[2:] == 0).all()

    cards, deck = state["cards"].astype(int), state["deck"].astype(int)
    assert (cards >= 0).all() and (deck >= 0).all() and (state["bought"] >= 0).all()
    used = DECK - deck - cards.sum(0)
    assert (used >= 0).all() and used[0] == state["knights"].sum() and used[VICTORY] == 0
    if state["player"] != TERMINAL:
        assert (state["bought"] <= cards[state["turn_player"]]).all()

    settlements, cities = owners(state["settlements"]), owners(state["cities"])
    roads = road_owners(state["roads"])
    built = np.where(settlements >= 0, settlements, cities)
    assert not ((settlements >= 0) & (cities >= 0)).any()
    for sets in (state["settlements"], state["cities"]):
        assert sum(bin(int(x)).count("1") for x in sets) == (owners(sets) >= 0).sum()
    both = [int(low) | int(high) << 64 for low, high in state["roads"]]
    assert sum(bin(x).count("1") for x in both) == (roads >= 0).sum(), "an edge has one road"
    for corner in np.nonzero(built >= 0)[0]:
        around = CORNER_NEIGHBOURS[corner]
        assert (built[around[around >= 0]] < 0).all(), "the distance rule"
    for seat in range(4):
        count = [(roads == seat).sum(), (settlements == seat).sum(), (cities == seat).sum()]
        assert (np.array(count) + state["pieces"][seat] == PIECES).all(), "pieces are conserved"
        assert (state["pieces"][seat] >= 0).all()
        points = count[1] + 2 * count[2]
        points += 2 * (state["road_holder"] == seat) + 2 * (state["army_holder"] == seat)
        assert state["points"][seat] == points, "points are what the board shows"
        edges = [tuple(pair) for pair in EDGE_CORNERS[roads == seat].tolist()]
        ends = {corner for edge in edges for corner in edge}
        assert int(state["reach"][seat]) == sum(1 << corner for corner in ends)
        blocked = set(np.nonzero((built >= 0) & (built != seat))[0].tolist())
        assert state["road_length"][seat] == longest_chain(edges, blocked)
        rates = np.full(5, 4)
        for port, kind in enumerate(state["port"]):
            if (built[PORT_CORNERS[port]] == seat).any():
                if kind == 5:
                    rates = np.minimum(rates, 3)
                else:
                    rates[kind] = 2
        assert (state["rates"][seat] == rates).all()
    free = [
        c for c in range(54)
        if built[c] < 0 and (built[[n for n in CORNER_NEIGHBOURS[c] if n >= 0]] < 0).all()
    ]  # fmt: skip
    assert int(state["open"]) == sum(1 << corner for corner in free)

    lengths, holder = state["road_length"].astype(int), state["road_holder"]
    longest = np.nonzero(lengths == lengths.max())[0]
    if lengths.max() < 5:
        assert holder == -1
    elif holder >= 0:
        assert holder in longest
    else:
        assert len(longest) > 1, "Longest Road is set aside in a tie only"
    knights, holder = state["knights"].astype(int), state["army_holder"]
    assert (holder == -1) == (knights.max() < 3)
    assert holder == -1 or knights[holder] == knights.max()

    turn, active = int(state["turn"]), int(state["turn_player"])
    assert -2 * players <= turn < game.params["turn_limit"]
    assert active == (turn % players if turn >= 0 else min(turn + 2 * players, -1 - turn))
    if state["player"] >= 0 and state["phase"] == MAIN:
        assert state["player"] == active
        assert not state["give"].any() and not state["want"].any() and not state["answers"].any()
    assert (state["discards"].sum() > 0) == (state["phase"] == DISCARD)
    for seat, (give, want) in product(range(4), zip(state["give"], state["want"], strict=True)):
        assert seat >= 0 and not ((give > 0) & (want > 0)).any()
    if state["player"] != TERMINAL and turn >= 0:
        total = state["points"][active] + cards[active, VICTORY]
        assert total < game.params["points_to_win"], "who has the points in their turn has won"


def random_actions(game, states, legal, rng) -> np.ndarray:
    """A legal action of each row, an outcome drawn by its probability, else 0; int32 [B]."""
    chosen = np.where(legal, rng.random(legal.shape), -1).argmax(1)
    shares = np.cumsum(game.chance_of(states), axis=1, dtype=np.float64)
    drawn = (shares <= rng.random((len(states), 1)) * shares[:, -1:]).sum(1)
    players = states["player"]
    actions = np.where(players >= 0, chosen, np.where(players == CHANCE, drawn, 0))
    return actions.astype(np.int32)
