"""Positions, actions and events of Catan in words."""

import re

import numpy as np

from games.catan.board import (
    ANY,
    DESERT,
    EDGE_CORNERS,
    RESOURCES,
    TILE_CORNERS,
    ports_from_text,
    ports_to_text,
    tiles_from_text,
    tiles_to_text,
)
from games.catan.drawing import draw_map, owners, road_owners
from games.catan.rules import chance_probabilities, has_won, legal_actions, step
from games.catan.state import (
    ACCEPT,
    ACTIONS,
    ANSWER,
    BANK_TRADE,
    BEFORE_ROLL,
    BUILD_CITY,
    BUILD_ROAD,
    BUILD_SETTLEMENT,
    BUY_CARD,
    CANCEL,
    CARD_NAMES,
    CHOOSE,
    CITY,
    COMPOSE,
    COUNTER,
    COUNTERED,
    DEAL,
    DECK,
    DECLINE,
    DICE,
    DISCARD,
    DROP,
    END_TURN,
    FIRST_ROAD,
    GIVE,
    KNIGHT,
    OUTCOMES,
    OVER,
    PARTNER,
    PHASE_NAMES,
    PIECES,
    PLAY_KNIGHT,
    PLAY_MONOPOLY,
    PLAY_PLENTY,
    PLAY_ROADS,
    PROPOSE,
    ROAD,
    ROBBER,
    ROLL,
    SETTLEMENT,
    STATE,
    STEAL,
    STEAL_CARD,
    SUPPLY,
    TAKE_CARD,
    VICTORY,
    WANT,
    derive,
)
from games.game import CHANCE, TERMINAL

_AFTER = ("next player", "second next player", "third next player")
_ANSWERS = ("not asked", "accepted", "declined", "counter-offer")


def _action_texts() -> list[str]:
    texts = {
        END_TURN: "end the turn",
        ROLL: "roll",
        BUY_CARD: "buy a development card",
        PLAY_KNIGHT: "play knight",
        PLAY_ROADS: "play road building",
        PLAY_PLENTY: "play year of plenty",
        PROPOSE: "make the offer",
        CANCEL: "stop",
        ACCEPT: "accept",
        DECLINE: "decline",
        COUNTER: "make a counter-offer",
    }
    for resource, name in enumerate(RESOURCES):
        texts[PLAY_MONOPOLY + resource] = f"play monopoly on {name}"
        texts[TAKE_CARD + resource] = f"take {name}"
        texts[DROP + resource] = f"discard {name}"
        texts[GIVE + resource] = f"offer {name}"
        texts[WANT + resource] = f"ask for {name}"
        for k in range(4):
            wanted = RESOURCES[k + (k >= resource)]
            texts[BANK_TRADE + 4 * resource + k] = f"trade {name} for {wanted} with the bank"
    for k, name in enumerate(_AFTER):
        texts[PARTNER + k] = f"trade with the {name}"
        texts[STEAL + k] = f"steal from the {name}"
    texts |= {ROBBER + tile: f"robber to t{tile}" for tile in range(19)}
    texts |= {BUILD_SETTLEMENT + corner: f"settlement {corner}" for corner in range(54)}
    texts |= {BUILD_CITY + corner: f"city {corner}" for corner in range(54)}
    texts |= {BUILD_ROAD + e: f"road {a}-{b}" for e, (a, b) in enumerate(EDGE_CORNERS.tolist())}
    return [texts[action] for action in range(ACTIONS)]


ACTION_TEXTS = _action_texts()


def action_to_text(rules, action: int) -> str:
    return ACTION_TEXTS[action]


def outcome_to_text(rules, state, outcome: int) -> str:
    """What chance drew in a state where it decides: the roll, the stolen or the dealt card."""
    if state["phase"] == DICE:
        return f"rolls {outcome + 2}"
    if state["phase"] == DEAL:
        return f"draws {CARD_NAMES[outcome]}"
    return f"steals {RESOURCES[outcome]} from player {state['victim']}"


# ---- positions

_CARD_COLUMNS = ("knight", "victory", "roads", "plenty", "monopoly")
_PENDING = ("corner", "victim", "free_roads", "takes", "card_played", "offers")


def _who_decides(rules, state) -> str:
    player = int(state["player"])
    if player == CHANCE:
        return "chance"
    if player == TERMINAL:
        if has_won(rules, state):
            return f"player {state['turn_player']} has won"
        return "nobody has won by the turn limit"
    return f"player {player}"


def _row(name: str, left, right=None) -> str:
    text = f"{name:<10}" + "".join(f"{int(n):>6}" for n in left)
    if right is not None:
        text += "  |" + "".join(f"{int(n):>9}" for n in right)
    return text


def _edges(owned) -> str:
    return " ".join(f"{a}-{b}" for a, b in EDGE_CORNERS[owned].tolist()) or "none"


def _corners(owned) -> str:
    return " ".join(str(int(corner)) for corner in np.nonzero(owned)[0]) or "none"


def _deciding(rules, state) -> str:
    return f"{PHASE_NAMES[state['phase']]}, {_who_decides(rules, state)}"


def _seat_lines(rules, state) -> list[str]:
    """Points, awards, pieces and rates of every player, and where they have built."""
    settlements, cities = owners(state["settlements"]), owners(state["cities"])
    roads = road_owners(state["roads"])
    lines = []
    for seat in range(rules.players):
        awards = [
            name
            for name, holder in (("Longest Road", "road_holder"), ("Largest Army", "army_holder"))
            if state[holder] == seat
        ]
        left = state["pieces"][seat]
        lines += [
            f"player {seat}: {state['points'][seat]} points"
            + (f" with {' and '.join(awards)}" if awards else "")
            + f", {state['knights'][seat]} knights played, road of {state['road_length'][seat]}; "
            f"has left {left[ROAD]} roads, {left[SETTLEMENT]} settlements, {left[CITY]} cities; "
            f"the bank takes {' '.join(map(str, state['rates'][seat].tolist()))}",
            f"  settlements {_corners(settlements == seat)}; cities {_corners(cities == seat)}; "
            f"roads {_edges(roads == seat)}",
        ]
    return lines


def _offer_line(state, seat: int) -> str:
    return (
        f"offer of player {seat}: gives {_cards(state['give'][seat])}, "
        f"wants {_cards(state['want'][seat])}"
    )


def state_to_text(rules, state) -> str:
    """The map, then everything that is written on paper: all hands are open."""
    lines = [
        f"turn {state['turn']} of player {state['turn_player']}, rolled {state['dice']}, "
        f"ply {state['ply']}: {_deciding(rules, state)}",
        *draw_map(state),
        " " * 10 + "".join(f"{name:>6}" for name in RESOURCES) + "  |"
        + "".join(f"{name:>9}" for name in _CARD_COLUMNS),
        _row("bank", state["bank"], state["deck"]),
    ]  # fmt: skip
    for seat in range(rules.players):
        lines.append(_row(f"player {seat}", state["hands"][seat], state["cards"][seat]))
        if (state["known"][seat] != state["hands"][seat]).any():
            lines.append(_row(f"known of {seat}", state["known"][seat]))
    if state["bought"].any():
        lines.append(f"bought in this turn: {' '.join(map(str, state['bought'].tolist()))}")
    lines += _seat_lines(rules, state)
    if state["discards"].any():
        lines.append(f"still to discard: {' '.join(map(str, state['discards'].tolist()))}")
    pending = [f"{name} {state[name]}" for name in _PENDING]
    lines.append(f"robber t{state['robber']}, {', '.join(pending)}")
    for seat in range(rules.players):
        if state["give"][seat].any() or state["want"][seat].any():
            lines.append(_offer_line(state, seat))
    if state["answers"].any():
        words = [_ANSWERS[answer] for answer in state["answers"][: rules.players]]
        lines.append(f"answers: {', '.join(words)}")
    lines.append(f"board: {tiles_to_text(state['resource'], state['number'])}")
    lines.append(f"ports: {ports_to_text(state['port'])}")
    return "\n".join(lines)


def _own_cards(state, seat: int) -> str:
    """The development cards of a player as they see them."""
    held = [f"{n} {name}" for n, name in zip(state["cards"][seat], CARD_NAMES, strict=True) if n]
    text = ", ".join(held) or "none"
    if state["turn_player"] == seat and state["bought"].any():
        new = [f"{n} {name}" for n, name in zip(state["bought"], CARD_NAMES, strict=True) if n]
        text += f" (bought in this turn: {', '.join(new)})"
    return text


def view_to_text(rules, state, seat: int) -> str:
    """A position as `seat` sees it, ONLOOKER for what all see. Of a rival's hand the cards that
    everybody can count, and how many others; of development cards and the deck how many."""
    deciding = _deciding(rules, state)
    if state["phase"] == BEFORE_ROLL and state["turn_player"] != seat:
        deciding = f"{PHASE_NAMES[DICE]}, chance"  # only who holds a card to play is asked
    rolled = f", rolled {state['dice']}" if state["dice"] else ""
    when = f"turn {state['turn']}" if state["turn"] >= 0 else "set-up"
    lines = [
        f"{when} of player {state['turn_player']}{rolled}: {deciding}",
        *draw_map(state),
        " " * 10 + "".join(f"{name:>6}" for name in RESOURCES) + " unknown | development cards",
        _row("bank", state["bank"]) + f"         | {state['deck'].sum()} in the deck",
    ]
    for player in range(rules.players):
        hand, known = state["hands"][player], state["known"][player]
        if player == seat:
            lines.append(f"{_row('you', hand)}         | {_own_cards(state, seat)}")
        else:
            hidden = int(hand.sum() - known.sum())
            count = int(state["cards"][player].sum())
            lines.append(f"{_row(f'player {player}', known)}{hidden or '':>8} | {count or 'none'}")
    lines += _seat_lines(rules, state)
    for player in np.flatnonzero(state["discards"]):
        lines.append(f"player {player} has to discard {state['discards'][player]}")
    for name, thing in (("free_roads", "roads"), ("takes", "cards")):
        if state[name]:
            lines.append(f"free {thing} left: {state[name]}")
    if state["phase"] in (COMPOSE, ANSWER, CHOOSE):
        for player in range(rules.players):
            composing = state["phase"] == COMPOSE and state["player"] == player
            made = player == state["turn_player"] or state["answers"][player] == COUNTERED
            if player == seat if composing else made:
                lines.append(_offer_line(state, player))
        for player in np.flatnonzero(state["answers"]):
            lines.append(f"player {player}: {_ANSWERS[state['answers'][player]]}")
    return "\n".join(lines)


def _cards(counts) -> str:
    """Such as "2 wood and 1 ore"; "nothing"."""
    words = [f"{n} {name}" for n, name in zip(counts, RESOURCES, strict=True) if n > 0]
    return " and ".join(words) or "nothing"


def _counts(text: str) -> list[int]:
    """What `_cards` wrote."""
    found = dict((name, int(n)) for n, name in re.findall(r"(\d+) (\w+)", text))
    return [found.get(name, 0) for name in RESOURCES]


def state_from_text(rules, text: str) -> np.ndarray:
    """Reads what `state_to_text` wrote. The map and every line may be left out that only repeats
    what others say, and must not contradict them.

    Raises:
        ValueError: some line is missing, is no line of a position, or contradicts another, or no
            game comes to such a position.
    """
    try:
        return _read(rules, text)
    except OverflowError as error:
        raise ValueError(
            "this is no position of catan: a number is larger than any of the game"
        ) from error


def _read(rules, text: str) -> np.ndarray:
    lines = [line.rstrip() for line in text.strip("\n").splitlines()]
    whole = "\n".join(lines)
    state = np.zeros(1, STATE)
    one = state[0]

    def find(pattern: str, what: str) -> re.Match:
        found = re.search(f"^{pattern}$", whole, re.M)
        if found is None:
            raise ValueError(
                f"this is no position of catan: the line of {what} is missing; expected a text as "
                "state_to_text writes it"
            )
        return found

    phases = "|".join(PHASE_NAMES)
    first = find(
        rf"turn (-?\d+) of player (\d), rolled (\d+), ply (\d+): ({phases}), (.*)", "the turn"
    )
    one["turn"], one["turn_player"], one["dice"], one["ply"] = map(int, first.groups()[:4])
    one["phase"] = PHASE_NAMES.index(first[5])
    decider = re.fullmatch(r"player (\d)", first[6])
    if decider is not None:
        one["player"] = int(decider[1])
    else:
        one["player"] = CHANCE if first[6] == "chance" else TERMINAL
    five = r"((?:\s+\d+){5})"
    for name in ("bank", *(f"player {seat}" for seat in range(rules.players))):
        row = find(rf"{name}{five}  \|{five}", name)
        left, right = (list(map(int, part.split())) for part in row.groups())
        if name == "bank":
            one["bank"], one["deck"] = left, right
        else:
            seat = int(name[-1])
            one["hands"][seat], one["cards"][seat] = left, right
            known = re.search(rf"^known of {seat}{five}$", whole, re.M)
            one["known"][seat] = left if known is None else list(map(int, known[1].split()))
    bought = re.search(rf"^bought in this turn:{five}$", whole, re.M)
    if bought:
        one["bought"] = list(map(int, bought[1].split()))
    one["road_holder"] = one["army_holder"] = -1
    for seat in range(rules.players):
        row = find(rf"player {seat}: (.*), (\d+) knights played, road of .*", f"points of {seat}")
        one["knights"][seat] = int(row[2])
        for name, holder in (("Longest Road", "road_holder"), ("Largest Army", "army_holder")):
            if name in row[1]:
                one[holder] = seat
        pieces = re.search(
            rf"^{re.escape(row[0])}\n  settlements (.*); cities (.*); roads (.*)$", whole, re.M
        )
        if pieces is None:
            raise ValueError(
                f"this is no position of catan: below the line of the points of player {seat} one "
                "with their settlements, cities and roads was expected"
            )
        for name, words in (("settlements", pieces[1]), ("cities", pieces[2])):
            corners = [int(word) for word in re.findall(r"\d+", words)]
            if any(corner >= 54 for corner in corners):
                raise ValueError(f"corners are 0..53, got {words!r}")
            one[name][seat] = sum(1 << corner for corner in set(corners))
        bits = 0
        for a, b in re.findall(r"(\d+)-(\d+)", pieces[3]):
            edge = np.nonzero(((int(a), int(b)) == EDGE_CORNERS).all(axis=1))[0]
            if not len(edge):
                raise ValueError(
                    f"there is no edge {a}-{b}; an edge joins two neighbouring corners"
                )
            bits |= 1 << int(edge[0])
        one["roads"][seat] = bits & (2**64 - 1), bits >> 64
    discards = re.search(r"^still to discard:((?: \d+){4})$", whole, re.M)
    if discards:
        one["discards"] = list(map(int, discards[1].split()))
    row = find(
        r"robber t(\d+), " + ", ".join(rf"{name} (-?\d+)" for name in _PENDING), "the robber"
    )
    one["robber"] = int(row[1])
    for name, value in zip(_PENDING, row.groups()[1:], strict=True):
        one[name] = int(value)
    for seat, give, want in re.findall(
        r"^offer of player (\d): gives (.*), wants (.*)$", whole, re.M
    ):
        if int(seat) >= rules.players:
            raise ValueError(f"there is no player {seat}, whose offer is told")
        one["give"][int(seat)], one["want"][int(seat)] = _counts(give), _counts(want)
    answers = re.search(r"^answers: (.*)$", whole, re.M)
    if answers:
        for seat, word in enumerate(answers[1].split(", ")[: rules.players]):
            if word not in _ANSWERS:
                raise ValueError(f"an answer is one of {', '.join(_ANSWERS)}, got {word!r}")
            one["answers"][seat] = _ANSWERS.index(word)
    one["resource"], one["number"] = tiles_from_text(find(r"board: (.*)", "the board")[1])
    one["port"] = ports_from_text(find(r"ports: (.*)", "the ports")[1])
    if one["robber"] > 18 or not -1 <= one["victim"] < rules.players:
        raise ValueError(f"the robber or their victim is nowhere: {row[0]!r}")
    _check_possible(rules, one)
    derive(one)
    expected = state_to_text(rules, one).splitlines()
    for line in lines:
        if line not in expected:
            raise ValueError(f"{line!r} contradicts the rest of the position")
    _check_decision(rules, state)
    return state


def _check_possible(rules, one) -> None:
    """Refuses what no game comes to: seats, cards and pieces that there are not.

    Raises:
        ValueError: such a thing, in a sentence.
    """

    def demand(holds, what: str) -> None:
        if not holds:
            raise ValueError(f"this is no position of catan: {what}")

    built = np.stack([owners(one["settlements"]) >= 0, owners(one["cities"]) >= 0])
    count = [[int(bits).bit_count() for bits in one[name]] for name in ("settlements", "cities")]
    roads = [int(low).bit_count() + int(high).bit_count() for low, high in one["roads"]]
    demand(
        max(one["player"], one["turn_player"]) < rules.players,
        f"the players are 0..{rules.players - 1}",
    )
    demand(
        -2 * rules.players <= one["turn"] < rules.turn_limit,
        f"turns are {-2 * rules.players}..{rules.turn_limit - 1}, set-up before 0",
    )
    demand(
        (one["bank"] + one["hands"].sum(0) <= SUPPLY).all(),
        f"there are {SUPPLY} cards of each resource",
    )
    demand((one["known"] <= one["hands"]).all(), "more cards are known of a hand than it has")
    used = one["cards"].sum(0) + one["deck"]
    used[KNIGHT] += one["knights"].sum()
    demand((used <= DECK).all(), f"the deck has {', '.join(map(str, DECK))} cards of each kind")
    demand(
        (one["bought"] <= one["cards"][one["turn_player"]]).all(),
        "the turn player has bought more cards than they hold",
    )
    demand(
        sum(map(sum, count)) == built.sum() and not built.all(axis=0).any(),
        "a corner has two buildings",
    )
    demand(not built.any(0)[EDGE_CORNERS].all(1).any(), "two buildings are neighbours")
    demand(sum(roads) == (road_owners(one["roads"]) >= 0).sum(), "an edge has two roads")
    for pieces, name, most in zip(
        (roads, *count), ("roads", "settlements", "cities"), PIECES, strict=True
    ):
        demand(max(pieces) <= most, f"a player has {most} {name}")
    demand(
        -1 <= one["corner"] < 54
        and 0 <= one["free_roads"] <= 2
        and 0 <= one["takes"] <= 2
        and 0 <= one["card_played"] <= 1
        and one["offers"] >= 0,
        "what is pending is out of its range",
    )
    demand(
        (one["corner"] >= 0) == (one["phase"] == FIRST_ROAD),
        "a first road is due exactly where a corner is pending",
    )
    demand(
        (one["victim"] >= 0) == (one["phase"] == STEAL_CARD),
        "a card is stolen exactly where there is a victim",
    )
    demand(
        one["discards"].any() == (one["phase"] == DISCARD),
        "somebody discards exactly in that phase",
    )
    demand(one["dice"] == 0 or 2 <= one["dice"] <= 12, "a roll is 2..12")


def _check_decision(rules, state) -> None:
    """Refuses a position in which whoever decides has nothing to decide.

    Raises:
        ValueError: the phase is not that of the player.
    """
    one = state[0]
    by_chance = one["phase"] in (DICE, STEAL_CARD, DEAL)
    legal = np.empty((1, ACTIONS), np.bool_)
    legal_actions(rules, state, legal)
    chances = np.zeros((1, OUTCOMES), np.float32)
    pile = {STEAL_CARD: one["hands"][one["victim"]], DEAL: one["deck"]}.get(int(one["phase"]))
    if by_chance and (pile is None or pile.any()):
        chance_probabilities(rules, state, chances)
    at_turn = one["phase"] in (ANSWER, COMPOSE, DISCARD) or one["player"] == one["turn_player"]
    possible = {
        CHANCE: by_chance and abs(chances.sum() - 1) < 1e-3,
        TERMINAL: one["phase"] == OVER,
    }.get(int(one["player"]), legal.any() and at_turn and not by_chance)
    if not possible:
        raise ValueError(
            f"this is no position of catan: {_deciding(rules, one)} has nothing to decide"
        )


def state_to_json(rules, state) -> dict:
    """Everything of a position in plain values; the table of fields is docs/games/catan.md."""
    settlements, cities = owners(state["settlements"]), owners(state["cities"])
    over = state["player"] == TERMINAL
    return {
        "player": int(state["player"]),
        "ply": int(state["ply"]),
        "phase": PHASE_NAMES[state["phase"]],
        "turn": int(state["turn"]),
        "turn_player": int(state["turn_player"]),
        "winner": int(state["turn_player"]) if over and has_won(rules, state) else None,
        "dice": int(state["dice"]),
        "tiles": [
            {
                "resource": "desert" if resource == DESERT else RESOURCES[resource],
                "number": int(number) or None,
            }
            for resource, number in zip(state["resource"], state["number"], strict=True)
        ],
        "ports": ["any" if port == ANY else RESOURCES[port] for port in state["port"]],
        "robber": int(state["robber"]),
        "settlements": settlements.tolist(),
        "cities": cities.tolist(),
        "roads": road_owners(state["roads"]).tolist(),
        "bank": state["bank"].tolist(),
        "deck": state["deck"].tolist(),
        "players": [
            {
                "points": int(state["points"][seat]),
                "hidden_points": int(state["cards"][seat, VICTORY]),
                "hand": state["hands"][seat].tolist(),
                "known": state["known"][seat].tolist(),
                "cards": state["cards"][seat].tolist(),
                "knights": int(state["knights"][seat]),
                "road_length": int(state["road_length"][seat]),
                "longest_road": bool(state["road_holder"] == seat),
                "largest_army": bool(state["army_holder"] == seat),
                "pieces": state["pieces"][seat].tolist(),
                "rates": state["rates"][seat].tolist(),
                "discards": int(state["discards"][seat]),
                "gives": state["give"][seat].tolist(),
                "wants": state["want"][seat].tolist(),
                "answer": _ANSWERS[state["answers"][seat]],
            }
            for seat in range(rules.players)
        ],
        "bought": state["bought"].tolist(),
        "free_roads": int(state["free_roads"]),
        "takes": int(state["takes"]),
        "card_played": bool(state["card_played"]),
        "offers": int(state["offers"]),
        "victim": int(state["victim"]) if state["victim"] >= 0 else None,
        "corner": int(state["corner"]) if state["corner"] >= 0 else None,
    }


# ---- events


def _shortages(rules, state, number: int) -> list[str]:
    """Resources of which a roll makes more due than the bank has."""
    due = np.zeros(5, int)
    settlements, cities = owners(state["settlements"]), owners(state["cities"])
    for tile in np.nonzero(state["number"] == number)[0]:
        if tile != state["robber"]:
            around = TILE_CORNERS[tile]
            pieces = (settlements[around] >= 0).sum() + 2 * (cities[around] >= 0).sum()
            due[state["resource"][tile]] += pieces
    return [RESOURCES[r] for r in np.nonzero(due > state["bank"])[0]]


def event_to_text(rules, before, action: int, after, seat: int | None = None) -> str:
    """What an action or an outcome did, as a line of a transcript; both states are records.

    Args:
        seat: who reads it, ONLOOKER for what all see, None for everything. What it does not see at
            all is "": cards that another puts together for an offer, and that another might have
            played a card before the roll.
    """
    turn_player, phase = int(before["turn_player"]), before["phase"]
    who = f"player {before['player'] if before['player'] >= 0 else turn_player}"
    if seat is not None and seat != before["player"]:
        if action == ROLL and phase == BEFORE_ROLL:
            return ""
        if GIVE <= action < WANT + 5 or (phase == COMPOSE and action == CANCEL):
            return ""
    if before["player"] == CHANCE:
        text = f"{who} {outcome_to_text(rules, before, action)}"
        if seat is not None and phase == DEAL and seat != turn_player:
            text = f"{who} draws a card"
        if phase == STEAL_CARD and seat not in (None, turn_player, int(before["victim"])):
            text = f"{who} steals a card from player {before['victim']}"
    elif phase == COMPOSE and action == PROPOSE:
        offerer = int(before["player"])
        kind = "offers" if offerer == turn_player else "counters with"
        cards = _cards(before["give"][offerer]), _cards(before["want"][offerer])
        text = f"{who} {kind} {cards[0]} for {cards[1]}"
    elif PARTNER <= action < STEAL + 3:
        other = (int(before["player"]) + 1 + (action - PARTNER) % 3) % rules.players
        if action < STEAL:
            offer = other if before["answers"][other] == COUNTERED else turn_player
            gives, wants = _cards(before["give"][offer]), _cards(before["want"][offer])
            text = f"{who} trades with player {other}: player {offer} gives {gives} for {wants}"
        else:
            text = f"{who} chooses to steal from player {other}"
    else:
        text = f"{who}: {ACTION_TEXTS[action]}"
    gained = after["hands"].astype(int) - before["hands"]
    if phase == DICE or before["turn"] < 0:
        for other in range(rules.players):
            if (gained[other] > 0).any():
                text += f"; player {other} gets {_cards(gained[other])}"
        if phase == DICE and action != 5:
            for name in _shortages(rules, before, action + 2):
                text += f"; the bank is short of {name}"
    elif PLAY_MONOPOLY <= action < PLAY_MONOPOLY + 5 and before["player"] >= 0:
        text += f" and gets {_cards(gained[turn_player])}"
    for holder, name in (("road_holder", "Longest Road"), ("army_holder", "Largest Army")):
        if after[holder] != before[holder]:
            new = f"player {after[holder]} takes" if after[holder] >= 0 else "nobody has"
            text += f"; {new} {name}"
    for other in range(rules.players):
        if after["road_length"][other] < before["road_length"][other]:
            text += (
                f"; the road of player {other} is cut from {before['road_length'][other]} to "
                f"{after['road_length'][other]}"
            )
    if after["phase"] == OVER:
        points = (after["points"] + after["cards"][:, VICTORY])[: rules.players].tolist()
        text += f"; {_who_decides(rules, after)}, points {' '.join(map(str, points))}"
    return text


def transcript(rules, state, actions) -> str:
    """A game as text: the island, then a line for every action and outcome, from a start on.

    Args:
        state: a record, as `init` or a trace has it.
        actions: integers, those of players and the outcomes of chance in turn.
    """
    one = np.array([state], STATE)
    lines = [
        f"board: {tiles_to_text(state['resource'], state['number'])}",
        f"ports: {ports_to_text(state['port'])}",
    ]
    turn = None
    for action in actions:
        if one[0]["turn"] != turn:
            turn = one[0]["turn"]
            lines.append(f"turn {turn}" if turn >= 0 else f"set-up {turn + 2 * rules.players + 1}")
        before = one[0].copy()
        step(rules, one, np.array([action], np.int32))
        lines.append(f"  {before['ply']}: {event_to_text(rules, before, int(action), one[0])}")
    return "\n".join(lines)
