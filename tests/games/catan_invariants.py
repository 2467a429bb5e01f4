"""What must hold in every state of Catan, told in plain NumPy from the board and the rule book."""

import numpy as np
from numba import njit

from games import CHANCE, TERMINAL
from games.catan.board import EDGE_CORNERS, PORT_CORNERS
from games.catan.state import DECK, DISCARD, MAIN, PIECES, SUPPLY, VICTORY

_BESIDE = np.zeros((54, 54), np.float32)
_BESIDE[EDGE_CORNERS[:, 0], EDGE_CORNERS[:, 1]] = _BESIDE[
    EDGE_CORNERS[:, 1], EDGE_CORNERS[:, 0]
] = 1
_ENDS = np.zeros((72, 54), np.float32)
_ENDS[np.arange(72), EDGE_CORNERS[:, 0]] = _ENDS[np.arange(72), EDGE_CORNERS[:, 1]] = True


# int [54, 3]: the edges at a corner, -1 where there are fewer.
_AT = np.array([[*np.nonzero(ends)[0], -1][:3] for ends in _ENDS.T])


@njit
def _walk(corner, length, own, blocked):
    """Walks on from a corner along edges bool [72] that are still `own`; the most edges in all."""
    best = length
    if length > 0 and blocked[corner]:
        return best
    for edge in _AT[corner]:
        if edge >= 0 and own[edge]:
            own[edge] = False
            there = EDGE_CORNERS[edge, 0] + EDGE_CORNERS[edge, 1] - corner
            best = max(best, _walk(there, length + 1, own, blocked))
            own[edge] = True
    return best


@njit
def longest_chain(own, blocked):
    """The longest road by walking every chain from every corner.

    Args:
        own: bool [72], the edges of a player.
        blocked: bool [54], corners with a building of a rival.
    """
    best = 0
    for corner in range(54):
        best = max(best, _walk(np.int64(corner), 0, own, blocked))
    return best


@njit
def _longest_chains(roads, buildings, out):
    for i in range(len(roads)):
        for seat in range(4):
            blocked = np.zeros(54, np.bool_)
            for other in range(4):
                if other != seat:
                    blocked |= buildings[i, other]
            out[i, seat] = longest_chain(roads[i, seat].copy(), blocked)


def _bits(sets, count) -> np.ndarray:
    """bool [..., count] of uint64 [...]."""
    return (sets[..., None] >> np.arange(count, dtype=np.uint64) & np.uint64(1)).astype(bool)


_BOARD = ("settlements", "cities", "roads")


def check_states(game, states, before=None) -> np.ndarray:
    """Asserts every invariant of some states.

    Args:
        before: (states, lengths) one step earlier, row by row: where the board is still the same,
            the lengths of the roads are not walked again.

    Returns the lengths of the longest roads, int [B, 4].
    """
    players, params = game.num_players, game.params
    rows = np.arange(len(states))
    hands, bank = states["hands"].astype(int), states["bank"].astype(int)
    known, cards, deck = (states[name].astype(int) for name in ("known", "cards", "deck"))
    active, turn = states["turn_player"].astype(int), states["turn"].astype(int)
    over = states["player"] == TERMINAL

    assert (hands >= 0).all() and (bank >= 0).all()
    assert (hands.sum(1) + bank == SUPPLY).all(), "resource cards are conserved"
    assert (known >= 0).all() and (known <= hands).all(), "what is known to be held is held"
    assert not hands[:, players:].any() and not cards[:, players:].any()
    assert (cards >= 0).all() and (deck >= 0).all() and (states["bought"] >= 0).all()
    used = DECK - deck - cards.sum(1)
    assert (used >= 0).all() and not used[:, VICTORY].any()
    assert (used[:, 0] == states["knights"].sum(1)).all(), "knights are held, played or in the deck"
    assert (states["bought"] <= cards[rows, active]).all()

    settlements, cities = _bits(states["settlements"], 54), _bits(states["cities"], 54)
    low, high = _bits(states["roads"][..., 0], 64), _bits(states["roads"][..., 1], 8)
    roads = np.concatenate([low, high], axis=2)
    buildings = settlements | cities
    built = buildings.any(1)
    assert (settlements.sum(1) + cities.sum(1) <= 1).all(), "a corner has one building"
    assert (roads.sum(1) <= 1).all(), "an edge has one road"
    near = built.astype(np.float32) @ _BESIDE > 0
    assert not (built & near).any(), "the distance rule"
    assert (_bits(states["open"], 54) == ~(built | near)).all()
    on_board = np.stack([roads.sum(2), settlements.sum(2), cities.sum(2)], axis=2)
    assert (on_board + states["pieces"] == PIECES).all(), "pieces are conserved"
    assert (states["pieces"] >= 0).all()
    points = on_board[..., 1] + 2 * on_board[..., 2]
    for holder in ("road_holder", "army_holder"):
        points += 2 * (states[holder][:, None] == np.arange(4))
    assert (states["points"] == points).all(), "points are what the board shows"
    assert (_bits(states["reach"], 54) == (roads.astype(np.float32) @ _ENDS > 0)).all()
    rates = np.full((len(states), 4, 5), 4)
    has_port = buildings[..., PORT_CORNERS].any(3)
    for port in range(9):
        rates[has_port[..., port] & (states["port"][:, port, None] == 5)] = 3
    for port in range(9):
        for resource in range(5):
            special = has_port[..., port] & (states["port"][:, port, None] == resource)
            rates[special, resource] = 2
    assert (states["rates"] == rates).all()

    if before is None:
        lengths, fresh = np.empty((len(states), 4), np.int64), np.ones(len(states), bool)
    else:
        lengths, fresh = before[1].copy(), np.zeros(len(states), bool)
        for name in _BOARD:
            changed = states[name] != before[0][name]
            fresh |= changed.reshape(len(states), -1).any(1)
    walked = np.empty((int(fresh.sum()), 4), np.int64)
    _longest_chains(roads[fresh], buildings[fresh], walked)
    lengths[fresh] = walked
    assert (states["road_length"] == lengths).all(), "the longest road is that of brute force"
    holder, longest = states["road_holder"], lengths.max(1)
    held = holder >= 0
    assert (longest[held] >= 5).all()
    assert (lengths[rows[held], holder[held]] == longest[held]).all(), "nobody is longer"
    aside = ~held & (longest >= 5)
    ties = (lengths[aside] == longest[aside, None]).sum(1)
    assert (ties > 1).all(), "Longest Road is set aside in a tie only"
    knights, holder = states["knights"].astype(int), states["army_holder"]
    held = holder >= 0
    assert (held == (knights.max(1) >= 3)).all()
    assert (knights[rows[held], holder[held]] == knights[held].max(1)).all()

    assert ((turn >= -2 * players) & (turn < params["turn_limit"])).all()
    first = np.minimum(turn + 2 * players, -1 - turn)
    assert (active == np.where(turn >= 0, turn % players, first)).all()
    main = ~over & (states["phase"] == MAIN)
    assert (states["player"][main] == active[main]).all()
    for name in ("give", "want", "answers"):
        assert not states[name][main].any(), "no offer is left over"
    assert ((states["discards"].sum(1) > 0) == (states["phase"] == DISCARD)).all()
    assert not ((states["give"] > 0) & (states["want"] > 0)).any()
    total = states["points"][rows, active] + cards[rows, active, VICTORY]
    going_on = ~over & (turn >= 0)
    assert (total[going_on] < params["points_to_win"]).all(), "who has the points has won"
    return lengths


def random_actions(game, states, legal, rng) -> np.ndarray:
    """A legal action of each row, an outcome drawn by its probability, else 0; int32 [B]."""
    chosen = np.where(legal, rng.random(legal.shape, np.float32), -1).argmax(1)
    shares = np.cumsum(game.chance_of(states), axis=1, dtype=np.float64)
    drawn = (shares <= rng.random((len(states), 1)) * shares[:, -1:]).sum(1)
    players = states["player"]
    actions = np.where(players >= 0, chosen, np.where(players == CHANCE, drawn, 0))
    return actions.astype(np.int32)


def play(game, games, seed, every=1, watch=None) -> np.ndarray:
    """Plays random games to the end; checks every state whose ply is a multiple of `every`, and
    the last ones. `watch(game, states, legal, rng)` sees every step. Returns the last states."""
    rng = np.random.default_rng(seed)
    states = game.initial_states(rng.integers(0, 2**63, games))
    final, before = [], None
    for ply in range(game.max_decisions + 1):
        legal = game.legal_of(states)
        running = states["player"] >= 0
        assert (legal.any(1) == running).all(), "a player always has an action, others never"
        if watch is not None:
            watch(game, states, legal, rng)
        over = states["player"] == TERMINAL
        if ply % every == 0:
            lengths = check_states(game, states, before)
            before = (states[~over], lengths[~over]) if every == 1 else None
        elif over.any():
            check_states(game, states[over])
        final.append(states[over])
        states, legal = states[~over], legal[~over]
        if not len(states):
            break
        states = game.after(states, random_actions(game, states, legal, rng))
    return np.concatenate(final)
