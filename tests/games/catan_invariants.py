"""What must hold in every state of Catan, told in plain loops from the board and the rule book.

Nothing here but the tables of the island and the numbers of the box comes from the game's code.
"""

import numpy as np
from numba import njit

from games import CHANCE, TERMINAL
from games.catan.board import EDGE_CORNERS, PORT_CORNERS
from games.catan.state import DECK, DISCARD, MAIN, PIECES, SUPPLY, VICTORY

# int [54, 3]: the edges at a corner, -1 where there are fewer.
_AT = np.array([[*np.nonzero((corner == EDGE_CORNERS).any(1))[0], -1][:3] for corner in range(54)])

PROMISES = (
    "resource cards are conserved",
    "no hand, bank or deck is negative",
    "what is known to be held is held",
    "an empty seat has nothing",
    "development cards are held, used or in the deck; victory points are never used",
    "knights are held, played or in the deck",
    "what was bought in this turn is in the hand of the turn player",
    "a corner has one building",
    "an edge has one road",
    "the distance rule",
    "open corners have no building and no neighbour with one",
    "pieces are conserved, and no limit is passed",
    "points are what the board shows",
    "reach is the corners at the ends of own roads",
    "bank rates are those of the ports",
    "the longest road is that of brute force",
    "Longest Road is held from five on, by nobody shorter than another",
    "Longest Road is set aside in a tie only",
    "Largest Army is held from three knights on, by nobody with fewer than another",
    "the turn lies within its limit and is that of the right player",
    "the main phase belongs to the turn player, with no offer left over",
    "somebody drops cards exactly in the phase of it",
    "an offer gives and wants different cards",
    "who has the points on the own turn has won",
)
(
    CARDS, NEGATIVE, KNOWN, EMPTY, DEVELOPMENT, KNIGHTS, BOUGHT, ONE_BUILDING, ONE_ROAD, DISTANCE,
    OPEN, LIMITS, POINTS, REACH, RATES, LENGTH, ROAD_HOLDER, ASIDE, ARMY_HOLDER, TURN, MAIN_PHASE,
    DISCARDS, OFFER, WON,
) = range(len(PROMISES))  # fmt: skip


# Not cached: numba 0.68 crashes where it loads this recursion from its cache.
@njit
def _walk(corner, length, own, blocked):
    """Walks on from a corner along edges bool [72] that are still `own`; the most edges in all."""
    best = length
    if length > 0 and blocked[corner]:
        return best
    for k in range(3):
        edge = _AT[corner, k]
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


@njit(cache=True)
def _of_cards(state, players):
    deck_seen = 0
    active = state["turn_player"]
    for r in range(5):
        total = state["bank"][r]
        used = DECK[r] - state["deck"][r]
        if state["bank"][r] < 0 or state["deck"][r] < 0 or state["bought"][r] < 0:
            return NEGATIVE
        for seat in range(4):
            total += state["hands"][seat, r]
            used -= state["cards"][seat, r]
            if state["hands"][seat, r] < 0 or state["cards"][seat, r] < 0:
                return NEGATIVE
            if not 0 <= state["known"][seat, r] <= state["hands"][seat, r]:
                return KNOWN
            if seat >= players and (state["hands"][seat, r] > 0 or state["cards"][seat, r] > 0):
                return EMPTY
        if total != SUPPLY:
            return CARDS
        if used < 0 or (r == VICTORY and used != 0):
            return DEVELOPMENT
        if r == 0:
            for seat in range(4):
                deck_seen += state["knights"][seat]
            if deck_seen != used:
                return KNIGHTS
        if state["bought"][r] > state["cards"][active, r]:
            return BOUGHT
    return -1


@njit(cache=True)
def _spread(state, buildings, roads, on_board):
    """Writes who has what: buildings int [4, 54] (2 = a city, 3 = both), roads bool [4, 72],
    on_board int [4, 3] roads, settlements, cities."""
    one = np.uint64(1)
    for seat in range(4):
        on_board[seat, :] = 0
        for corner in range(54):
            settlement = state["settlements"][seat] >> np.uint64(corner) & one
            city = state["cities"][seat] >> np.uint64(corner) & one
            buildings[seat, corner] = settlement + np.uint64(2) * city
            on_board[seat, 1] += np.int64(settlement)
            on_board[seat, 2] += np.int64(city)
        for edge in range(72):
            word = state["roads"][seat, edge // 64]
            roads[seat, edge] = word >> np.uint64(edge % 64) & one != 0
            on_board[seat, 0] += roads[seat, edge]


@njit(cache=True)
def _of_board(state, buildings, roads, on_board):
    one = np.uint64(1)
    built = np.zeros(54, np.int64)
    for corner in range(54):
        for seat in range(4):
            built[corner] += (buildings[seat, corner] & 1) + (buildings[seat, corner] >> 1)
        if built[corner] > 1:
            return ONE_BUILDING
    near = np.zeros(54, np.bool_)
    for edge in range(72):
        a, b = EDGE_CORNERS[edge]
        owners = 0
        for seat in range(4):
            owners += roads[seat, edge]
        if owners > 1:
            return ONE_ROAD
        if built[a] > 0 and built[b] > 0:
            return DISTANCE
        near[a] |= built[b] > 0
        near[b] |= built[a] > 0
    for corner in range(54):
        free = built[corner] == 0 and not near[corner]
        if (state["open"] >> np.uint64(corner) & one != 0) != free:
            return OPEN
    for seat in range(4):
        points = on_board[seat, 1] + 2 * on_board[seat, 2]
        points += 2 * (state["road_holder"] == seat) + 2 * (state["army_holder"] == seat)
        if state["points"][seat] != points:
            return POINTS
        for kind in range(3):
            left = state["pieces"][seat, kind]
            if left < 0 or on_board[seat, kind] + left != PIECES[kind]:
                return LIMITS
        reach = np.zeros(54, np.bool_)
        for edge in range(72):
            if roads[seat, edge]:
                reach[EDGE_CORNERS[edge, 0]] = reach[EDGE_CORNERS[edge, 1]] = True
        for corner in range(54):
            if (state["reach"][seat] >> np.uint64(corner) & one != 0) != reach[corner]:
                return REACH
        rates = np.full(5, 4)
        for port in range(9):
            a, b = PORT_CORNERS[port]
            if buildings[seat, a] > 0 or buildings[seat, b] > 0:
                kind = state["port"][port]
                for r in range(5):
                    if kind == r:
                        rates[r] = 2
                    elif kind == 5:
                        rates[r] = min(rates[r], 3)
        for r in range(5):
            if state["rates"][seat, r] != rates[r]:
                return RATES
    return -1


@njit
def _measure(buildings, roads, lengths):
    """Writes the length of the longest road of each seat, int [4]."""
    for seat in range(4):
        blocked = np.zeros(54, np.bool_)
        for other in range(4):
            if other != seat:
                blocked |= buildings[other] > 0
        lengths[seat] = longest_chain(roads[seat].copy(), blocked)


@njit(cache=True)
def _of_awards(state, lengths):
    longest, most, holders = lengths.max(), 0, 0
    for seat in range(4):
        if state["road_length"][seat] != lengths[seat]:
            return LENGTH
        holders += lengths[seat] == longest
        most = max(most, state["knights"][seat])
    holder = state["road_holder"]
    if holder >= 0 and (longest < 5 or lengths[holder] != longest):
        return ROAD_HOLDER
    if holder < 0 and longest >= 5 and holders == 1:
        return ASIDE
    holder = state["army_holder"]
    if (holder >= 0) != (most >= 3) or (holder >= 0 and state["knights"][holder] != most):
        return ARMY_HOLDER
    return -1


@njit(cache=True)
def _of_turn(state, players, points_to_win, turn_limit):
    turn, active = np.int64(state["turn"]), np.int64(state["turn_player"])
    if not -2 * players <= turn < turn_limit:
        return TURN
    # Set-up goes forth and back: turns -2P..-1.
    if active != (turn % players if turn >= 0 else min(turn + 2 * players, -1 - turn)):
        return TURN
    drops = 0
    offers = False
    for seat in range(4):
        drops += state["discards"][seat]
        offers |= state["answers"][seat] != 0
        for r in range(5):
            give, want = state["give"][seat, r], state["want"][seat, r]
            offers |= give != 0 or want != 0
            if give > 0 and want > 0:
                return OFFER
    over = state["player"] == TERMINAL
    if state["phase"] == MAIN and not over and (state["player"] != active or offers):
        return MAIN_PHASE
    if (drops > 0) != (state["phase"] == DISCARD):
        return DISCARDS
    points = state["points"][active] + state["cards"][active, VICTORY]
    if not over and turn >= 0 and points >= points_to_win:
        return WON
    return -1


@njit(cache=True)
def _same_board(one, other):
    """Are the pieces the same, and all that `_of_board` compares with them?"""
    if one["open"] != other["open"] or one["road_holder"] != other["road_holder"]:
        return False
    if one["army_holder"] != other["army_holder"]:
        return False
    for seat in range(4):
        if (
            one["settlements"][seat] != other["settlements"][seat]
            or one["cities"][seat] != other["cities"][seat]
            or one["roads"][seat, 0] != other["roads"][seat, 0]
            or one["roads"][seat, 1] != other["roads"][seat, 1]
            or one["reach"][seat] != other["reach"][seat]
            or one["points"][seat] != other["points"][seat]
        ):
            return False
        for kind in range(3):
            if one["pieces"][seat, kind] != other["pieces"][seat, kind]:
                return False
        for r in range(5):
            if one["rates"][seat, r] != other["rates"][seat, r]:
                return False
    return True


@njit
def _first_broken(states, before, lengths, players, points_to_win, turn_limit):
    """(row, promise) of the first state that breaks one, else (-1, -1); see `check_states`."""
    buildings = np.empty((4, 54), np.int64)
    roads = np.empty((4, 72), np.bool_)
    on_board = np.empty((4, 3), np.int64)
    for i in range(len(states)):
        state = states[i]
        broken = _of_cards(state, players)
        if broken < 0 and not (len(before) > 0 and _same_board(state, before[i])):
            _spread(state, buildings, roads, on_board)
            broken = _of_board(state, buildings, roads, on_board)
            _measure(buildings, roads, lengths[i])
        if broken < 0:
            broken = _of_awards(state, lengths[i])
        if broken < 0:
            broken = _of_turn(state, players, points_to_win, turn_limit)
        if broken >= 0:
            return i, broken
    return -1, -1


def check_states(game, states, before=None) -> np.ndarray:
    """Asserts every invariant of some states.

    Args:
        before: (states, lengths) one step earlier, row by row: where the board is still the same,
            it is not looked at again.

    Returns the lengths of the longest roads, int [B, 4].
    """
    earlier, lengths = before or (states[:0], np.empty((len(states), 4), np.int64))
    params = game.params
    row, broken = _first_broken(
        states, earlier, lengths, game.num_players, params["points_to_win"], params["turn_limit"]
    )
    assert row < 0, f"{PROMISES[broken]}\n{game.state_to_text(game.rules, states[row])}"
    return lengths


@njit(cache=True)
def _choose(players, legal, chances, uniforms, actions):
    """A legal action of each row, an outcome drawn by its probability, else 0."""
    for i in range(len(players)):
        actions[i] = 0
        if players[i] == TERMINAL:
            continue
        weights = 0.0
        columns = chances.shape[1] if players[i] == CHANCE else legal.shape[1]
        for column in range(columns):
            weights += chances[i, column] if players[i] == CHANCE else legal[i, column]
        left = uniforms[i] * weights
        for column in range(columns):
            weight = chances[i, column] if players[i] == CHANCE else legal[i, column]
            if weight > 0:
                actions[i] = column
                left -= weight
                if left < 0:
                    break


def random_actions(game, states, legal, rng) -> np.ndarray:
    """A legal action of each row, an outcome drawn by its probability, else 0; int32 [B]."""
    actions = np.empty(len(states), np.int32)
    _choose(states["player"], legal, game.chance_of(states), rng.random(len(states)), actions)
    return actions


def play(game, games, seed, every=1, watch=None) -> np.ndarray:
    """Plays random games to the end; checks every state whose ply is a multiple of `every`, and
    the last ones. `watch(game, states, legal, rng)` sees every step. Returns the last states."""
    rng = np.random.default_rng(seed)
    states = game.initial_states(rng.integers(0, 2**63, games))
    final, before = [], None
    for ply in range(game.max_decisions + 1):
        legal = game.legal_of(states)
        over = states["player"] == TERMINAL
        assert (legal.any(1) == (states["player"] >= 0)).all(), "only a player has actions, always"
        if watch is not None:
            watch(game, states, legal, rng)
        if ply % every == 0:
            lengths = check_states(game, states, before)
            before = (states, lengths) if every == 1 else None
        elif over.any():
            check_states(game, states[over])
        if over.any():
            final.append(states[over])
            stay = np.flatnonzero(~over)
            states, legal = states.take(stay), legal[stay]
            if before is not None:
                before = (states, before[1][stay])
        if not len(states):
            break
        states = game.after(states, random_actions(game, states, legal, rng))
    return np.concatenate(final)
