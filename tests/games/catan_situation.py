"""Concrete situations of Catan for tests, in a few readable lines:

    s = Situation().settlement(0, 12).city(1, 23).hand(0, wood=1).before_roll(0)
    s.roll(6)
    assert s.hand_of(1) == {"brick": 2}

The island is that of the rule book for beginners with its ports (docs/games/catan.md shows the
numbers of corners and tiles), unless parameters of the game say otherwise. Nothing stands on it;
it is the turn of player 0, who has rolled. Cards given to a hand come from the bank.
"""

from itertools import pairwise

import numpy as np

from games import CHANCE, TERMINAL, make_game
from games.catan.board import EDGE_CORNERS, RESOURCES
from games.catan.state import BEFORE_ROLL, MAIN, VICTORY, derive
from games.catan.words import event_to_text

_CARDS = ("knight", "victory", "roads", "plenty", "monopoly")


def edge_between(a: int, b: int) -> int:
    return int(np.nonzero((sorted((a, b)) == EDGE_CORNERS).all(axis=1))[0][0])


class Situation:
    def __init__(self, **params):
        self.game = make_game("catan", **{"board": "beginner", "ports": "fixed", **params})
        self.state = self.game.initial_states([0])
        self.events: list[str] = []
        self.happened: list[tuple] = []  # (state before, action, state after) of each event
        self.turn(0)

    @property
    def one(self) -> np.void:
        return self.state[0]

    def _set(self, **fields) -> "Situation":
        for name, value in fields.items():
            self.one[name] = value
        derive(self.one)
        return self

    # ---- making a situation; every method returns it

    def settlement(self, seat: int, *corners: int) -> "Situation":
        self.one["settlements"][seat] |= np.uint64(sum(1 << corner for corner in corners))
        return self._set()

    def city(self, seat: int, *corners: int) -> "Situation":
        self.one["cities"][seat] |= np.uint64(sum(1 << corner for corner in corners))
        return self._set()

    def road(self, seat: int, *path: int) -> "Situation":
        """A road along the corners of `path`."""
        for a, b in pairwise(path):
            edge = edge_between(a, b)
            self.one["roads"][seat, edge // 64] |= np.uint64(1 << edge % 64)
        return self._set()

    def hand(self, seat: int, **cards: int) -> "Situation":
        """Resource cards, which everybody saw arrive."""
        for name, count in cards.items():
            resource = RESOURCES.index(name)
            self.one["hands"][seat, resource] += count
            self.one["known"][seat, resource] += count
            self.one["bank"][resource] -= count
        return self

    def hidden(self, seat: int, **cards: int) -> "Situation":
        """Resource cards of thefts, which nobody else saw."""
        known = self.one["known"].copy()
        self.hand(seat, **cards)
        self.one["known"] = known
        return self

    def bank(self, **cards: int) -> "Situation":
        """Leaves so many cards in the bank; the others are nowhere."""
        for name, count in cards.items():
            self.one["bank"][RESOURCES.index(name)] = count
        return self

    def cards(self, seat: int, **cards: int) -> "Situation":
        """Development cards bought in an earlier turn: knight, victory, roads, plenty, monopoly."""
        for name, count in cards.items():
            self.one["cards"][seat, _CARDS.index(name)] += count
            self.one["deck"][_CARDS.index(name)] -= count
        return self

    def deck(self, **cards: int) -> "Situation":
        self.one["deck"] = [cards.get(name, 0) for name in _CARDS]
        return self

    def knights(self, seat: int, count: int) -> "Situation":
        """Knights already played."""
        self.one["knights"][seat] = count
        return self

    def holds(self, road: int = -1, army: int = -1) -> "Situation":
        return self._set(road_holder=road, army_holder=army)

    def robber(self, tile: int) -> "Situation":
        return self._set(robber=tile)

    def turn(self, seat: int, number: int = 8) -> "Situation":
        """The turn of a player who has rolled; `number` is that of player 0 in this round."""
        return self._set(turn=number + seat, turn_player=seat, player=seat, phase=MAIN, dice=6)

    def before_roll(self, seat: int) -> "Situation":
        return self.turn(seat)._set(phase=BEFORE_ROLL, dice=0)

    # ---- playing on

    def act(self, *texts: str) -> "Situation":
        """Actions by their words, each of which must be legal."""
        for text in texts:
            legal = self.legal()
            assert text in legal, f"{text!r} is not legal, only {sorted(legal)}"
            self._step(legal[text])
        return self

    def _step(self, action: int) -> None:
        before = self.one.copy()
        self.state = self.game.after(self.state, [action])
        self.happened.append((before, action, self.one.copy()))
        self.events.append(event_to_text(self.game.rules, before, action, self.one))

    def draw(self, outcome: int) -> "Situation":
        assert self.one["player"] == CHANCE
        assert self.chances().get(outcome, 0) > 0, f"outcome {outcome} has no chance"
        self._step(outcome)
        return self

    def roll(self, number: int) -> "Situation":
        if "roll" in self.legal():
            self.act("roll")
        return self.draw(number - 2)

    def stolen(self, resource: str) -> "Situation":
        return self.draw(RESOURCES.index(resource))

    def dealt(self, card: str) -> "Situation":
        return self.draw(_CARDS.index(card))

    # ---- looking

    def legal(self, kind: str = "") -> dict[str, int]:
        """Legal actions by their words, those that begin with `kind`."""
        ids = np.nonzero(self.game.legal_of(self.state)[0])[0]
        words = {self.game.action_to_text(self.game.rules, int(i)): int(i) for i in ids}
        return {word: i for word, i in words.items() if word.startswith(kind)}

    def chances(self) -> dict[int, float]:
        row = self.game.chance_of(self.state)[0]
        return {int(i): float(row[i]) for i in np.nonzero(row)[0]}

    def hand_of(self, seat: int) -> dict[str, int]:
        hand = self.one["hands"][seat]
        return {name: int(n) for name, n in zip(RESOURCES, hand, strict=True) if n}

    def in_bank(self, resource: str) -> int:
        return int(self.one["bank"][RESOURCES.index(resource)])

    def decides(self) -> int:
        return int(self.one["player"])

    def points(self, seat: int) -> int:
        """Those of victory point cards too."""
        return int(self.one["points"][seat] + self.one["cards"][seat, VICTORY])

    def road_length(self, seat: int) -> int:
        return int(self.one["road_length"][seat])

    def winner(self) -> int | None:
        """Who has won, None while the game goes on."""
        if self.decides() != TERMINAL:
            return None
        returns = self.game.returns_of(self.state)[0]
        return int(returns.argmax()) if returns.max() == 1 else -1
