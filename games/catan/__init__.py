"""Settlers of Catan, the base game for two to four players. Rules, actions and features:
docs/games/catan.md.

    board.py          the island as tables           rules.py      the kernels
    state.py          record, phases, actions        features.py   high-level observation
    longest_road.py   sets of corners, chains        raw.py        entry-by-entry observation
    words.py          positions and events as text   players.py    scripted players
    drawing.py        map and SVG                   places.py      where to build
    behaviours.py     behaviours, sub-goals         mapping.py     low-level to primitive actions
"""

import numpy as np

from games.catan import drawing, features, raw, rules, words
from games.catan.board import BEGINNER, FIXED_PORTS, ports_from_text, tiles_from_text
from games.catan.hierarchy import HIERARCHY
from games.catan.players import value_greedy, weighted_random
from games.catan.state import ACTIONS, BANK_ONLY, FULL_TRADE, NO_TRADE, OUTCOMES, STATE, Rules
from games.game import Game, View

_TRADING = {"none": NO_TRADE, "bank": BANK_ONLY, "full": FULL_TRADE}
_HAND = 95  # cards of resources in the game: no hand is larger


def _within(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise ValueError(f"{name} of game catan must lie in {least}..{most}, got {value}")


def _one_of(name: str, value: str, choices) -> None:
    if value not in choices:
        raise ValueError(f"{name} of game catan must be one of {', '.join(choices)}, got {value!r}")


def _most_choices(rules: Rules) -> int:
    """More choices than any game has: what a hand of all cards could lead to in every turn."""
    side = rules.offer_cards
    answer = 1 + rules.counter_offers * (2 * side + 2)
    offer = 2 * side + 2 + (rules.players - 1) * answer
    # A turn: roll, discards, robber and theft twice, a card, the hand spent card by card with a
    # draw for every development card.
    turn = 10 + _HAND // 2 + 2 * _HAND + rules.offers_per_turn * (offer + side)
    return 4 * rules.players + rules.turn_limit * turn


def make(
    players: int = 4,
    points_to_win: int = 10,
    turn_limit: int = 1000,
    discard_limit: int = 7,
    friendly_robber: bool = False,
    board: str = "random",
    numbers: str = "random",
    adjacent_6_8: bool = False,
    ports: str = "shuffled",
    trading: str = "full",
    offer_cards: int = 2,
    offers_per_turn: int = 2,
    counter_offers: bool = False,
    observation: str = "features",
) -> Game:
    """The base game.

    Args:
        players: 2 to 4.
        points_to_win: 3 to 20.
        turn_limit: turns, all players' counted, after which nobody wins.
        discard_limit: cards that a seven leaves alone.
        friendly_robber: keeps the robber from tiles of rivals with fewer than three points.
        board: "random" (by the seed), "beginner" (the island of the rule book) or 19 tiles as
            `games.catan.board.tiles_from_text` reads them.
        numbers: on a random board "random" or "spiral", the order of the rule book.
        adjacent_6_8: whether a random board with random numbers may have a 6 or 8 beside another.
        ports: "shuffled" (by the seed), "fixed" (as printed on the frame) or nine ports as
            `games.catan.board.ports_from_text` reads them.
        trading: "none", "bank" or "full", which is with the bank and between players.
        offer_cards: cards on either side of an offer, at most.
        offers_per_turn: offers that a player may begin in a turn.
        counter_offers: whether who is asked may answer with an offer of their own.
        observation: "features" or "raw".

    Raises:
        ValueError: a parameter is out of its range.
    """
    for name, value, least, most in (
        ("players", players, 2, 4),
        ("points_to_win", points_to_win, 3, 20),
        ("turn_limit", turn_limit, 1, 10_000),
        ("discard_limit", discard_limit, 1, _HAND),
        ("offer_cards", offer_cards, 1, 10),
        ("offers_per_turn", offers_per_turn, 1, 100),
    ):
        _within(name, value, least, most)
    _one_of("trading", trading, _TRADING)
    _one_of("numbers", numbers, ("random", "spiral"))
    _one_of("observation", observation, ("features", "raw"))
    tiles, tokens = tiles_from_text(BEGINNER if board in ("random", "beginner") else board)
    frame = FIXED_PORTS if ports in ("shuffled", "fixed") else ports_from_text(ports)
    params = dict(
        players=players,
        points_to_win=points_to_win,
        turn_limit=turn_limit,
        discard_limit=discard_limit,
        friendly_robber=friendly_robber,
        board=board,
        numbers=numbers,
        adjacent_6_8=adjacent_6_8,
        ports=ports,
        trading=trading,
        offer_cards=offer_cards,
        offers_per_turn=offers_per_turn,
        counter_offers=counter_offers,
        observation=observation,
    )
    numbers_of_rules = Rules(
        players=players,
        points_to_win=points_to_win,
        turn_limit=turn_limit,
        discard_limit=discard_limit,
        friendly_robber=friendly_robber,
        trading=_TRADING[trading],
        offer_cards=offer_cards,
        offers_per_turn=offers_per_turn,
        counter_offers=counter_offers,
        random_board=board == "random",
        spiral=numbers == "spiral",
        random_ports=ports == "shuffled",
        adjacent_6_8=adjacent_6_8,
        resource=tiles,
        number=tokens,
        port=frame.astype(np.int8),
    )
    by_features = observation == "features"
    return Game(
        name="catan",
        params=params,
        rules=numbers_of_rules,
        num_players=players,
        num_actions=ACTIONS,
        state_dtype=STATE,
        observation_names=features.feature_names(players)
        if by_features
        else raw.raw_names(players),
        max_decisions=_most_choices(numbers_of_rules),
        init=rules.init,
        legal_actions=rules.legal_actions,
        step=rules.step,
        observe=features.observe if by_features else raw.observe,
        returns=rules.returns,
        state_to_text=words.state_to_text,
        state_from_text=words.state_from_text,
        action_to_text=words.action_to_text,
        outcome_to_text=words.outcome_to_text,
        state_to_json=words.state_to_json,
        view=View(words.view_to_text, words.event_to_text),
        state_to_svg=drawing.state_to_svg,
        num_outcomes=OUTCOMES,
        chance_probabilities=rules.chance_probabilities,
        hierarchy=HIERARCHY,
        scripted={
            "weighted_random": weighted_random,
            "value_greedy": value_greedy,
        },
    )
