"""The rules of Catan as kernels. What each rule says and where it comes from: docs/games/catan.md.

A state is in one phase (`games.catan.state`), which says what is to be decided; `player` says by
whom. Two choices that are none are taken at once: a player without a card to play before the roll
rolls, and the only possible victim is robbed.

`_nrt=False` leaves out numba's reference counting, which every access to an array in a record would
pay for (twice the time in all); a kernel that allocates does not compile with it.
"""

import numpy as np
from numba import njit

from games.catan.board import (
    ALL_CORNERS,
    AROUND_BITS,
    CORNER_BIT,
    CORNER_EDGES,
    CORNER_TILES,
    DESERT,
    EDGE_CORNERS,
    NUMBER_SUPPLY,
    ORE,
    PIPS,
    SPIRAL_NUMBERS,
    SPIRALS,
    TILE_BITS,
    TILE_NEIGHBOURS,
    TILE_SUPPLY,
    TILES,
    WHEAT,
)
from games.catan.longest_road import (
    count_bits,
    has_edge,
    longest_road,
    longest_through,
    lowest_bit,
)
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
    CARD,
    CHOOSE,
    CITY,
    COMPOSE,
    COSTS,
    COUNTER,
    COUNTERED,
    DEAL,
    DECK,
    DECLINE,
    DECLINED,
    DICE,
    DISCARD,
    DROP,
    END_TURN,
    FIRST_ROAD,
    FIRST_SETTLEMENT,
    FREE_ROADS,
    FULL_TRADE,
    GIVE,
    KNIGHT,
    LEAST_ARMY,
    LEAST_ROAD,
    MAIN,
    MONOPOLY,
    MOVE_ROBBER,
    NO_TRADE,
    NOT_ASKED,
    OUTCOMES,
    OVER,
    PARTNER,
    PIECES,
    PLAY_KNIGHT,
    PLAY_MONOPOLY,
    PLAY_PLENTY,
    PLAY_ROADS,
    PLENTY,
    PROPOSE,
    ROAD,
    ROADS,
    ROBBER,
    ROLL,
    SEATS,
    SETTLEMENT,
    STEAL,
    STEAL_CARD,
    STEAL_FROM,
    SUPPLY,
    TAKE,
    TAKE_CARD,
    VICTORY,
    WANT,
    rivals_of,
    set_rate,
)
from games.game import CHANCE, TERMINAL

_ONE = np.uint64(1)
_LOW32 = np.uint64(0xFFFFFFFF)


# ---- the start


@njit(cache=True, _nrt=False)
def _scatter(x):
    """A bijection of 32-bit numbers in uint64 that scatters neighbours; no product overflows.

    Source: C. Wellons, "Prospecting for hash functions" (2018), lowbias32.
    """
    x = ((x ^ (x >> np.uint64(16))) * np.uint64(0x7FEB352D)) & _LOW32
    x = ((x ^ (x >> np.uint64(15))) * np.uint64(0x846CA68B)) & _LOW32
    return x ^ (x >> np.uint64(16))


@njit(cache=True, _nrt=False)
def _draw(seed, counter, below):
    """The number `counter` of a seed's stream, 0 <= it < below."""
    word = _scatter(((seed & _LOW32) + np.uint64(counter) * np.uint64(0x9E3779B9)) & _LOW32)
    word = _scatter(word ^ (seed >> np.uint64(32)))
    return np.int64((word * np.uint64(below)) >> np.uint64(32))


@njit(cache=True, _nrt=False)
def _copy(target, source):
    for k in range(len(source)):
        target[k] = source[k]


@njit(cache=True, _nrt=False)
def _shuffle(values, seed, counter):
    """Shuffles `values` in place with the numbers from `counter` on."""
    for last in range(len(values) - 1, 0, -1):
        other = _draw(seed, counter + last, last + 1)
        values[last], values[other] = values[other], values[last]


@njit(cache=True, _nrt=False)
def _has_adjacent_6_8(state):
    for a in range(TILES):
        if state["number"][a] == 6 or state["number"][a] == 8:
            for b in range(a):
                if TILE_NEIGHBOURS[a, b] and (state["number"][b] == 6 or state["number"][b] == 8):
                    return True
    return False


@njit(cache=True, _nrt=False)
def _lay_numbers(rules, state, seed, attempt):
    """Lays the 18 numbers on the tiles that are no desert."""
    if rules.spiral:
        start = _draw(seed, 50 + attempt, 6)
        laid = 0
        for k in range(TILES):
            tile = SPIRALS[start, k]
            state["number"][tile] = 0
            if state["resource"][tile] != DESERT:
                state["number"][tile] = SPIRAL_NUMBERS[laid]
                laid += 1
        return
    # The supply is shuffled in place on all tiles, then the zero goes to the desert.
    _copy(state["number"], NUMBER_SUPPLY)
    state["number"][18] = 0
    _shuffle(state["number"][:18], seed, 100 + 32 * attempt)
    for tile in range(18, 0, -1):
        if state["resource"][tile] == DESERT:
            break
        state["number"][tile] = state["number"][tile - 1]
        state["number"][tile - 1] = 0


@njit(cache=True, _nrt=False)
def init(rules, states, seeds):
    for i in range(len(states)):
        state, seed = states[i], np.uint64(seeds[i])
        _copy(state["resource"], rules.resource)
        _copy(state["number"], rules.number)
        if rules.random_board:
            _copy(state["resource"], TILE_SUPPLY)
            _shuffle(state["resource"], seed, 0)
            attempt = 0
            _lay_numbers(rules, state, seed, attempt)
            while not rules.adjacent_6_8 and not rules.spiral and _has_adjacent_6_8(state):
                attempt += 1
                _lay_numbers(rules, state, seed, attempt)
        _copy(state["port"], rules.port)
        if rules.random_ports:
            _shuffle(state["port"], seed, 30)
        for tile in range(TILES - 1, -1, -1):
            if state["resource"][tile] == DESERT:
                state["robber"] = tile

        state["settlements"][:] = np.uint64(0)
        state["cities"][:] = np.uint64(0)
        state["roads"][:] = np.uint64(0)
        state["reach"][:] = np.uint64(0)
        state["open"] = ALL_CORNERS
        state["turn"] = -2 * rules.players
        state["turn_player"] = 0
        state["player"] = 0
        state["ply"] = 0
        state["phase"] = FIRST_SETTLEMENT
        state["dice"] = 0
        state["corner"] = -1
        state["victim"] = -1
        state["free_roads"] = 0
        state["takes"] = 0
        state["card_played"] = 0
        state["offers"] = 0
        state["road_holder"] = -1
        state["army_holder"] = -1
        state["discards"][:] = 0
        state["bank"][:] = SUPPLY
        state["hands"][:] = 0
        state["known"][:] = 0
        state["cards"][:] = 0
        state["bought"][:] = 0
        _copy(state["deck"], DECK)
        state["knights"][:] = 0
        state["points"][:] = 0
        state["road_length"][:] = 0
        state["rates"][:] = 4
        for seat in range(SEATS):
            _copy(state["pieces"][seat], PIECES)
        _clear_offers(state)


# ---- cards


@njit(cache=True, _nrt=False)
def hand_size(state, seat):
    total = 0
    for resource in range(5):
        total += state["hands"][seat, resource]
    return total


@njit(cache=True, _nrt=False)
def _gain(state, seat, resource, count):
    """Everybody sees `seat` receive cards, whose origin the caller takes care of."""
    state["hands"][seat, resource] += count
    state["known"][seat, resource] += count


@njit(cache=True, _nrt=False)
def _lose(state, seat, resource, count):
    """Everybody sees `seat` part with cards. What is not known to be held was a hidden card."""
    state["hands"][seat, resource] -= count
    state["known"][seat, resource] = max(state["known"][seat, resource] - count, 0)


@njit(cache=True, _nrt=False)
def _pay_bank(state, seat, resource, count):
    _lose(state, seat, resource, count)
    state["bank"][resource] += count


@njit(cache=True, _nrt=False)
def _receive(state, seat, resource, count):
    _gain(state, seat, resource, count)
    state["bank"][resource] -= count


@njit(cache=True, _nrt=False)
def _pay(state, seat, what):
    for resource in range(5):
        if COSTS[what, resource] > 0:
            _pay_bank(state, seat, resource, COSTS[what, resource])


@njit(cache=True, _nrt=False)
def _steal(state, thief, victim, resource):
    """A card changes hands face down.

    What is known of the victim falls by one of every resource, since it may have been any, unless
    all that they hold is known to be of one kind.
    """
    kinds = 0
    hidden = 0
    for r in range(5):
        kinds += state["known"][victim, r] > 0
        hidden += state["hands"][victim, r] - state["known"][victim, r]
    certain = kinds == 1 and hidden == 0
    state["hands"][victim, resource] -= 1
    state["hands"][thief, resource] += 1
    if certain:
        state["known"][thief, resource] += 1
    for r in range(5):
        if state["known"][victim, r] > 0:
            state["known"][victim, r] -= 1


# ---- buildings and awards


@njit(cache=True, _nrt=False)
def _award_road(state):
    """Gives Longest Road to whom it belongs, or sets it aside.

    Rule book: five or more; who holds it keeps it in a tie; when it is nobody's, or the holder has
    fallen behind, a tie leaves it with nobody.
    """
    best = 0
    for seat in range(SEATS):
        best = max(best, state["road_length"][seat])
    holder = state["road_holder"]
    if best < LEAST_ROAD:
        new = -1
    elif holder >= 0 and state["road_length"][holder] == best:
        new = holder
    else:
        new = -1
        for seat in range(SEATS):
            if state["road_length"][seat] == best:
                new = seat if new == -1 else -2
        new = max(new, -1)
    if new != holder:
        if holder >= 0:
            state["points"][holder] -= 2
        if new >= 0:
            state["points"][new] += 2
        state["road_holder"] = new


@njit(cache=True, _nrt=False)
def _place_settlement(state, seat, corner):
    bit = CORNER_BIT[corner]
    state["settlements"][seat] |= bit
    state["open"] &= ~AROUND_BITS[corner]
    state["pieces"][seat, SETTLEMENT] -= 1
    state["points"][seat] += 1
    set_rate(state, seat, corner)
    for other in range(SEATS):  # a road of a rival may be cut
        if other != seat and state["reach"][other] & bit != 0:
            length = longest_road(
                state["roads"][other, 0], state["roads"][other, 1], rivals_of(state, other)
            )
            if length != state["road_length"][other]:
                state["road_length"][other] = length
                _award_road(state)


@njit(cache=True, _nrt=False)
def _place_road(state, seat, edge):
    state["roads"][seat, edge >> 6] |= _ONE << np.uint64(edge & 63)
    a, b = EDGE_CORNERS[edge, 0], EDGE_CORNERS[edge, 1]
    state["reach"][seat] |= CORNER_BIT[a] | CORNER_BIT[b]
    state["pieces"][seat, ROAD] -= 1
    length = longest_through(
        state["roads"][seat, 0], state["roads"][seat, 1], rivals_of(state, seat), edge
    )
    if length > state["road_length"][seat]:
        state["road_length"][seat] = length
        _award_road(state)


@njit(cache=True, _nrt=False)
def _occupied(state, word):
    """The edges with a road, word 0 or 1."""
    taken = np.uint64(0)
    for seat in range(SEATS):
        taken |= state["roads"][seat, word]
    return taken


@njit(cache=True, _nrt=False)
def _can_build_road(state, seat):
    """Is there a piece and an edge for a road?"""
    if state["pieces"][seat, ROAD] == 0:
        return False
    low, high = _occupied(state, 0), _occupied(state, 1)
    corners = state["reach"][seat] & ~rivals_of(state, seat)
    while corners != 0:
        corner = lowest_bit(corners)
        corners &= corners - _ONE
        for k in range(3):
            edge = CORNER_EDGES[corner, k]
            if edge >= 0 and not has_edge(low, high, edge):
                return True
    return False


@njit(cache=True, _nrt=False)
def _allow_roads(state, seat, row):
    """Edges without a road at the end of an own road, unless a rival's building stands there."""
    if state["pieces"][seat, ROAD] == 0:
        return
    low, high = _occupied(state, 0), _occupied(state, 1)
    corners = state["reach"][seat] & ~rivals_of(state, seat)
    while corners != 0:
        corner = lowest_bit(corners)
        corners &= corners - _ONE
        for k in range(3):
            edge = CORNER_EDGES[corner, k]
            if edge >= 0 and not has_edge(low, high, edge):
                row[BUILD_ROAD + edge] = True


# ---- what is legal


@njit(cache=True, _nrt=False)
def _allow_cards(state, seat, row):
    """Development cards: one in a turn, none bought in this turn. Returns whether any is."""
    if state["card_played"] != 0:
        return False
    cards, bought = state["cards"][seat], state["bought"]
    found = False
    if cards[KNIGHT] > bought[KNIGHT]:
        row[PLAY_KNIGHT] = True
        found = True
    if cards[ROADS] > bought[ROADS] and _can_build_road(state, seat):
        row[PLAY_ROADS] = True
        found = True
    if cards[PLENTY] > bought[PLENTY]:
        for resource in range(5):
            if state["bank"][resource] > 0:
                row[PLAY_PLENTY] = True
                found = True
    if cards[MONOPOLY] > bought[MONOPOLY]:
        for resource in range(5):
            row[PLAY_MONOPOLY + resource] = True
        found = True
    return found


@njit(cache=True, _nrt=False)
def _has_card_to_play(state, seat):
    """As `_allow_cards`, when nothing was bought yet in this turn."""
    cards = state["cards"][seat]
    if cards[KNIGHT] > 0 or cards[MONOPOLY] > 0:
        return True
    if cards[PLENTY] > 0:
        for resource in range(5):
            if state["bank"][resource] > 0:
                return True
    return cards[ROADS] > 0 and _can_build_road(state, seat)


@njit(cache=True, _nrt=False)
def _allow_main(rules, state, seat, row):
    row[END_TURN] = True
    hand = state["hands"][seat]
    wood, brick, sheep, wheat, ore = hand[0] > 0, hand[1] > 0, hand[2] > 0, hand[3] > 0, hand[4] > 0
    if wood and brick:
        _allow_roads(state, seat, row)
        if sheep and wheat and state["pieces"][seat, SETTLEMENT] > 0:
            corners = state["reach"][seat] & state["open"]
            while corners != 0:
                row[BUILD_SETTLEMENT + lowest_bit(corners)] = True
                corners &= corners - _ONE
    if hand[WHEAT] >= 2 and hand[ORE] >= 3 and state["pieces"][seat, CITY] > 0:
        corners = state["settlements"][seat]
        while corners != 0:
            row[BUILD_CITY + lowest_bit(corners)] = True
            corners &= corners - _ONE
    if sheep and wheat and ore:
        for card in range(5):
            if state["deck"][card] > 0:
                row[BUY_CARD] = True
    _allow_cards(state, seat, row)
    if rules.trading == NO_TRADE:
        return
    may_offer = rules.trading == FULL_TRADE and state["offers"] < rules.offers_per_turn
    for resource in range(5):
        if hand[resource] >= state["rates"][seat, resource]:
            for k in range(4):
                if state["bank"][k + (k >= resource)] > 0:
                    row[BANK_TRADE + 4 * resource + k] = True
        if may_offer and hand[resource] > 0:
            row[GIVE + resource] = True


@njit(cache=True, _nrt=False)
def _is_open_to_robber(rules, state, tile):
    """The friendly robber stays away from tiles of rivals with fewer than three points."""
    if not rules.friendly_robber:
        return True
    for seat in range(rules.players):
        buildings = state["settlements"][seat] | state["cities"][seat]
        spared = seat != state["turn_player"] and state["points"][seat] < 3
        if spared and buildings & TILE_BITS[tile] != 0:
            return False
    return True


@njit(cache=True, _nrt=False)
def _allow_robber(rules, state, row):
    found = False
    for tile in range(TILES):
        if tile != state["robber"] and _is_open_to_robber(rules, state, tile):
            row[ROBBER + tile] = True
            found = True
    if not found:
        for tile in range(TILES):
            row[ROBBER + tile] = tile != state["robber"]


@njit(cache=True, _nrt=False)
def _can_rob(state, seat):
    """Has a rival of the turn player a building at the robber, and a card?"""
    if seat == state["turn_player"]:
        return False
    buildings = state["settlements"][seat] | state["cities"][seat]
    return buildings & TILE_BITS[state["robber"]] != 0 and hand_size(state, seat) > 0


@njit(cache=True, _nrt=False)
def _allow_compose(rules, state, seat, row):
    """First what is given, then what is wanted, resources in order, so that an offer has one way.

    Nothing is asked for that is given, and nothing that the others cannot hold by what the bank
    and the own hand tell.
    """
    give, want = state["give"][seat], state["want"][seat]
    given = 0
    wanted = 0
    last_given = 0
    last_wanted = 0
    for resource in range(5):
        if give[resource] > 0:
            given += give[resource]
            last_given = resource
        if want[resource] > 0:
            wanted += want[resource]
            last_wanted = resource
    hand = state["hands"][seat]
    row[CANCEL] = True
    row[PROPOSE] = given > 0 and wanted > 0
    for resource in range(5):
        if wanted == 0 and given < rules.offer_cards and resource >= last_given:
            row[GIVE + resource] = hand[resource] > give[resource]
        if given > 0 and wanted < rules.offer_cards and resource >= last_wanted:
            elsewhere = SUPPLY - state["bank"][resource] - hand[resource]
            row[WANT + resource] = give[resource] == 0 and elsewhere > want[resource]


@njit(cache=True, _nrt=False)
def _holds(state, seat, cards):
    """Does `seat` hold the cards, int8 [5]?"""
    missing = False
    for resource in range(5):
        missing |= state["hands"][seat, resource] < cards[resource]
    return not missing


@njit(cache=True, _nrt=False)
def _allow_partners(rules, state, seat, row):
    row[CANCEL] = True
    for k in range(rules.players - 1):
        partner = (seat + 1 + k) % rules.players
        answer = state["answers"][partner]
        if answer == ACCEPTED:
            row[PARTNER + k] = _holds(state, partner, state["want"][seat])
        elif answer == COUNTERED:
            row[PARTNER + k] = _holds(state, seat, state["want"][partner])


@njit(cache=True, _nrt=False)
def legal_actions(rules, states, mask):
    for i in range(len(states)):
        state, row = states[i], mask[i]
        row[:] = False
        seat = state["player"]
        if seat < 0:
            continue
        phase = state["phase"]
        if phase == MAIN:
            _allow_main(rules, state, seat, row)
        elif phase == BEFORE_ROLL:
            row[ROLL] = True
            _allow_cards(state, seat, row)
        elif phase == FIRST_SETTLEMENT:
            corners = state["open"]
            while corners != 0:
                row[BUILD_SETTLEMENT + lowest_bit(corners)] = True
                corners &= corners - _ONE
        elif phase == FIRST_ROAD:
            for k in range(3):
                edge = CORNER_EDGES[state["corner"], k]
                # The neighbours of a settlement are empty, so that its edges are too.
                if edge >= 0:
                    row[BUILD_ROAD + edge] = True
        elif phase == DISCARD:
            for resource in range(5):
                row[DROP + resource] = state["hands"][seat, resource] > 0
        elif phase == MOVE_ROBBER:
            _allow_robber(rules, state, row)
        elif phase == STEAL_FROM:
            for k in range(rules.players - 1):
                row[STEAL + k] = _can_rob(state, (seat + 1 + k) % rules.players)
        elif phase == FREE_ROADS:
            _allow_roads(state, seat, row)
            row[CANCEL] = state["free_roads"] == 1
        elif phase == TAKE:
            for resource in range(5):
                row[TAKE_CARD + resource] = state["bank"][resource] > 0
        elif phase == COMPOSE:
            _allow_compose(rules, state, seat, row)
        elif phase == ANSWER:
            row[ACCEPT] = _holds(state, seat, state["want"][state["turn_player"]])
            row[DECLINE] = True
            row[COUNTER] = rules.counter_offers and hand_size(state, seat) > 0
        elif phase == CHOOSE:
            _allow_partners(rules, state, seat, row)


@njit(cache=True, _nrt=False)
def chance_probabilities(rules, states, out):
    """Dice: the sum less two. A stolen card: its resource. A card from the deck: its kind."""
    for i in range(len(states)):
        state = states[i]
        row = out[i]
        row[:] = 0.0
        if state["player"] != CHANCE:
            continue
        phase = state["phase"]
        if phase == DICE:
            for outcome in range(OUTCOMES):
                row[outcome] = PIPS[outcome + 2] / 36.0
        else:
            total = 0
            for k in range(5):
                total += state["deck"][k] if phase == DEAL else state["hands"][state["victim"], k]
            for k in range(5):
                count = state["deck"][k] if phase == DEAL else state["hands"][state["victim"], k]
                row[k] = count / total


# ---- what follows


@njit(cache=True, _nrt=False)
def _resume(state):
    """Goes on after a card or the robber: to the roll if it is still due."""
    seat = state["turn_player"]
    state["player"] = seat
    state["phase"] = MAIN
    if state["dice"] == 0:
        state["player"] = CHANCE
        state["phase"] = DICE


@njit(cache=True, _nrt=False)
def _begin_turn(rules, state, seat):
    state["turn_player"] = seat
    state["player"] = seat
    state["dice"] = 0
    state["card_played"] = 0
    state["offers"] = 0
    state["bought"][:] = 0
    state["phase"] = BEFORE_ROLL
    if not _has_card_to_play(state, seat):
        state["player"] = CHANCE
        state["phase"] = DICE


@njit(cache=True, _nrt=False)
def _end_turn(rules, state):
    if state["turn"] + 1 >= rules.turn_limit:
        state["phase"] = OVER
        state["player"] = TERMINAL
        return
    state["turn"] += 1
    seat = state["turn_player"] + 1
    _begin_turn(rules, state, 0 if seat == rules.players else seat)


@njit(cache=True, _nrt=False)
def _end_first_turn(rules, state):
    """Set-up goes 0 .. P-1 and back; who places last begins the game."""
    players = rules.players
    state["corner"] = -1
    state["turn"] += 1
    if state["turn"] == 0:
        _begin_turn(rules, state, 0)
        return
    placed = state["turn"] + 2 * players
    seat = placed if placed < players else 2 * players - 1 - placed
    state["turn_player"] = seat
    state["player"] = seat
    state["phase"] = FIRST_SETTLEMENT


@njit(cache=True, _nrt=False)
def _first_settlement(rules, state, seat, corner):
    _place_settlement(state, seat, corner)
    state["corner"] = corner
    state["phase"] = FIRST_ROAD
    if state["turn"] >= -rules.players:  # the second one pays
        for k in range(3):
            tile = CORNER_TILES[corner, k]
            if tile >= 0:
                resource = state["resource"][tile]
                if resource != DESERT and state["bank"][resource] > 0:
                    _receive(state, seat, resource, 1)


@njit(cache=True, _nrt=False)
def _dues(state, tiles, resource):
    """What each seat is due of `resource` from the tiles (bits), 16 bits a seat."""
    dues = 0
    while tiles != 0:
        tile = lowest_bit(tiles)
        tiles &= tiles - _ONE
        if state["resource"][tile] != resource:
            continue
        around = TILE_BITS[tile]
        for seat in range(SEATS):  # all four without a branch: one vector
            dues += count_bits(state["settlements"][seat] & around) << (16 * seat)
            dues += count_bits(state["cities"][seat] & around) << (16 * seat + 1)
    return dues


@njit(cache=True, _nrt=False)
def _produce(rules, state, number):
    """Pays everybody. Where the bank has too few of a resource nobody gets any, unless all of
    them are due to one player, who gets what there is (official FAQ)."""
    built = np.uint64(0)
    for seat in range(SEATS):
        built |= state["settlements"][seat] | state["cities"][seat]
    left = np.uint64(0)
    for tile in range(TILES):
        left |= np.uint64(state["number"][tile] == number) << np.uint64(tile)
    left &= ~(_ONE << np.uint64(state["robber"]))
    tiles = np.uint64(0)
    while left != 0:
        tile = lowest_bit(left)
        left &= left - _ONE
        if built & TILE_BITS[tile] != 0:
            tiles |= _ONE << np.uint64(tile)
    left = tiles
    done = 0  # bits of the resources that are paid
    while left != 0:
        resource = np.int64(state["resource"][lowest_bit(left)])
        left &= left - _ONE
        if done >> resource & 1:
            continue
        done |= 1 << resource
        dues = _dues(state, tiles, resource)
        if dues == 0:
            continue
        total = 0
        receivers = 0
        for seat in range(SEATS):
            due = dues >> (16 * seat) & 0xFFFF
            total += due
            receivers += due > 0
        stock = np.int64(state["bank"][resource])
        if total > stock and receivers > 1:
            continue
        state["bank"][resource] -= min(total, stock)
        for seat in range(SEATS):
            due = min(dues >> (16 * seat) & 0xFFFF, stock)
            state["hands"][seat, resource] += due
            state["known"][seat, resource] += due


@njit(cache=True, _nrt=False)
def _roll(rules, state, number):
    state["dice"] = number
    state["phase"] = MAIN
    state["player"] = state["turn_player"]
    if number != 7:
        _produce(rules, state, number)
        return
    for seat in range(rules.players):
        size = hand_size(state, seat)
        if size > rules.discard_limit:
            state["discards"][seat] = size // 2
    _next_discard(rules, state)


@njit(cache=True, _nrt=False)
def _next_discard(rules, state):
    """Asks the next player who still has to drop cards, from the turn player on; else the robber
    moves."""
    for k in range(rules.players):
        seat = (state["turn_player"] + k) % rules.players
        if state["discards"][seat] > 0:
            state["phase"] = DISCARD
            state["player"] = seat
            return
    state["phase"] = MOVE_ROBBER
    state["player"] = state["turn_player"]


@njit(cache=True, _nrt=False)
def _move_robber(rules, state, tile):
    state["robber"] = tile
    victims = 0
    for seat in range(rules.players):
        if _can_rob(state, seat):
            victims += 1
            state["victim"] = seat
    if victims == 1:
        state["phase"] = STEAL_CARD
        state["player"] = CHANCE
        return
    state["victim"] = -1
    if victims == 0:
        _resume(state)
    else:
        state["phase"] = STEAL_FROM


@njit(cache=True, _nrt=False)
def _play_card(state, seat, card):
    state["cards"][seat, card] -= 1
    state["card_played"] = 1


@njit(cache=True, _nrt=False)
def _play_knight(state, seat):
    _play_card(state, seat, KNIGHT)
    state["knights"][seat] += 1
    holder = state["army_holder"]
    least = LEAST_ARMY if holder < 0 else state["knights"][holder] + 1
    if holder != seat and state["knights"][seat] >= least:
        if holder >= 0:
            state["points"][holder] -= 2
        state["army_holder"] = seat
        state["points"][seat] += 2
    state["phase"] = MOVE_ROBBER


@njit(cache=True, _nrt=False)
def _play_monopoly(rules, state, seat, resource):
    _play_card(state, seat, MONOPOLY)
    for other in range(rules.players):
        count = state["hands"][other, resource]
        if other != seat and count > 0:
            _lose(state, other, resource, count)
            _gain(state, seat, resource, count)
    _resume(state)


@njit(cache=True, _nrt=False)
def _free_road(state, seat, edge):
    _place_road(state, seat, edge)
    state["free_roads"] -= 1
    if state["free_roads"] == 0 or not _can_build_road(state, seat):
        state["free_roads"] = 0
        _resume(state)


@njit(cache=True, _nrt=False)
def _take(state, seat, resource):
    _receive(state, seat, resource, 1)
    state["takes"] -= 1
    left = 0
    for r in range(5):
        left += state["bank"][r]
    if state["takes"] == 0 or left == 0:
        state["takes"] = 0
        _resume(state)


# ---- trading between players


@njit(cache=True, _nrt=False)
def _clear_offers(state):
    state["give"][:] = 0
    state["want"][:] = 0
    state["answers"][:] = NOT_ASKED


@njit(cache=True, _nrt=False)
def _ask_next(rules, state, seat):
    """Asks the player after `seat`; after the last one the offerer chooses, if there is whom.

    Those who cannot accept are asked too: who looks one step ahead must not see their hands.
    """
    offerer = state["turn_player"]
    seat = (seat + 1) % rules.players
    if seat != offerer:
        state["phase"] = ANSWER
        state["player"] = seat
        return
    state["player"] = offerer
    state["phase"] = MAIN
    for other in range(rules.players):
        if state["answers"][other] == ACCEPTED or state["answers"][other] == COUNTERED:
            state["phase"] = CHOOSE
    if state["phase"] == MAIN:
        _clear_offers(state)


@njit(cache=True, _nrt=False)
def _compose(rules, state, seat, action):
    if GIVE <= action < GIVE + 5:
        state["give"][seat, action - GIVE] += 1
        return
    if WANT <= action < WANT + 5:
        state["want"][seat, action - WANT] += 1
        return
    by_offerer = seat == state["turn_player"]
    if action == CANCEL:
        if by_offerer:
            _clear_offers(state)
            state["phase"] = MAIN
            return
        state["give"][seat, :] = 0
        state["want"][seat, :] = 0
        state["answers"][seat] = DECLINED
    elif not by_offerer:
        state["answers"][seat] = COUNTERED
    _ask_next(rules, state, seat)


@njit(cache=True, _nrt=False)
def _answer(rules, state, seat, action):
    if action == COUNTER:
        state["phase"] = COMPOSE
        return
    state["answers"][seat] = ACCEPTED if action == ACCEPT else DECLINED
    _ask_next(rules, state, seat)


@njit(cache=True, _nrt=False)
def trade_with(state, seat, partner):
    """Carries out the offer, or the partner's counter-offer if that was the answer."""
    giver, taker = seat, partner
    if state["answers"][partner] == COUNTERED:
        giver, taker = partner, seat
    for resource in range(5):
        given, wanted = state["give"][giver, resource], state["want"][giver, resource]
        if given > 0:
            _lose(state, giver, resource, given)
            _gain(state, taker, resource, given)
        if wanted > 0:
            _lose(state, taker, resource, wanted)
            _gain(state, giver, resource, wanted)


# ---- one action


@njit(cache=True, _nrt=False)
def _main(rules, state, seat, action):
    """An action of the phases MAIN and BEFORE_ROLL."""
    if action == END_TURN:
        _end_turn(rules, state)
    elif action == ROLL:
        state["player"] = CHANCE
        state["phase"] = DICE
    elif action == BUY_CARD:
        _pay(state, seat, CARD)
        state["player"] = CHANCE
        state["phase"] = DEAL
    elif action == PLAY_KNIGHT:
        _play_knight(state, seat)
    elif action == PLAY_ROADS:
        _play_card(state, seat, ROADS)
        state["free_roads"] = 2
        state["phase"] = FREE_ROADS
    elif action == PLAY_PLENTY:
        _play_card(state, seat, PLENTY)
        state["takes"] = 2
        state["phase"] = TAKE
    elif action < PLAY_MONOPOLY + 5:
        _play_monopoly(rules, state, seat, action - PLAY_MONOPOLY)
    elif action < BANK_TRADE + 20:
        given, k = divmod(action - BANK_TRADE, 4)
        _pay_bank(state, seat, given, state["rates"][seat, given])
        _receive(state, seat, k + (k >= given), 1)
    elif action < GIVE + 5:
        state["offers"] += 1
        state["give"][seat, action - GIVE] = 1
        state["phase"] = COMPOSE
    elif action < BUILD_CITY:
        _pay(state, seat, SETTLEMENT)
        _place_settlement(state, seat, action - BUILD_SETTLEMENT)
    elif action < BUILD_ROAD:
        _pay(state, seat, CITY)
        bit = CORNER_BIT[action - BUILD_CITY]
        state["settlements"][seat] &= ~bit
        state["cities"][seat] |= bit
        state["pieces"][seat, SETTLEMENT] += 1
        state["pieces"][seat, CITY] -= 1
        state["points"][seat] += 1
    else:
        _pay(state, seat, ROAD)
        _place_road(state, seat, action - BUILD_ROAD)


@njit(cache=True, _nrt=False)
def _by_chance(rules, state, outcome):
    seat = state["turn_player"]
    if state["phase"] == DICE:
        _roll(rules, state, outcome + 2)
    elif state["phase"] == DEAL:
        state["deck"][outcome] -= 1
        state["cards"][seat, outcome] += 1
        state["bought"][outcome] += 1
        _resume(state)
    else:
        _steal(state, seat, state["victim"], outcome)
        state["victim"] = -1
        _resume(state)


@njit(cache=True, _nrt=False)
def has_won(rules, state):
    """Has the turn player the points to win? Nobody wins in another's turn."""
    seat = state["turn_player"]
    return (
        state["turn"] >= 0
        and state["points"][seat] + state["cards"][seat, VICTORY] >= rules.points_to_win
    )


@njit(cache=True, _nrt=False)
def apply(rules, state, action):
    """One action, or one outcome of chance, in a state that is not over."""
    state["ply"] += 1
    seat = state["player"]
    phase = state["phase"]
    if phase in (MAIN, BEFORE_ROLL):
        _main(rules, state, seat, action)
    elif seat == CHANCE:
        _by_chance(rules, state, action)
    elif phase == FIRST_SETTLEMENT:
        _first_settlement(rules, state, seat, action - BUILD_SETTLEMENT)
    elif phase == FIRST_ROAD:
        _place_road(state, seat, action - BUILD_ROAD)
        _end_first_turn(rules, state)
    elif phase == DISCARD:
        _pay_bank(state, seat, action - DROP, 1)
        state["discards"][seat] -= 1
        if state["discards"][seat] == 0:
            _next_discard(rules, state)
    elif phase == MOVE_ROBBER:
        _move_robber(rules, state, action - ROBBER)
    elif phase == STEAL_FROM:
        state["victim"] = (seat + 1 + action - STEAL) % rules.players
        state["phase"] = STEAL_CARD
        state["player"] = CHANCE
    elif phase == FREE_ROADS:
        if action == CANCEL:
            state["free_roads"] = 0
            _resume(state)
        else:
            _free_road(state, seat, action - BUILD_ROAD)
    elif phase == TAKE:
        _take(state, seat, action - TAKE_CARD)
    elif phase == COMPOSE:
        _compose(rules, state, seat, action)
    elif phase == ANSWER:
        _answer(rules, state, seat, action)
    else:  # CHOOSE
        if action != CANCEL:
            trade_with(state, seat, (seat + 1 + action - PARTNER) % rules.players)
        _clear_offers(state)
        state["phase"] = MAIN
    if state["player"] != TERMINAL and has_won(rules, state):
        state["phase"] = OVER
        state["player"] = TERMINAL


@njit(cache=True, _nrt=False)
def step(rules, states, actions):
    for i in range(len(states)):
        if states[i]["player"] != TERMINAL:
            apply(rules, states[i], np.int64(actions[i]))


@njit(cache=True, _nrt=False)
def returns(rules, states, out):
    """The winner 1, others their points as a share of those that win; at the turn limit nobody
    wins and all get that share (Pfeiffer 2004). Points here count the victory point cards."""
    for i in range(len(states)):
        state = states[i]
        out[i, :] = 0.0
        if state["player"] != TERMINAL:
            continue
        for seat in range(rules.players):
            points = state["points"][seat] + state["cards"][seat, VICTORY]
            # A rival who reached the points outside of their turn has not won.
            out[i, seat] = min(points, rules.points_to_win - 1) / rules.points_to_win
        if has_won(rules, state):
            out[i, state["turn_player"]] = 1.0
