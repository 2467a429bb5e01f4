"""One game between people and policies: where it stands, how it came there, the way back.

A session knows no terminal and no web page; both drive it. Chance and the policies draw from the
streams of the game's key, so a session whose seats are all policies is the game that
`selfplay.play_games` plays with that key, and what is taken back and played again meets the same
chance.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from games import CHANCE, TERMINAL, Game
from pipeline.errors import SessionError
from pipeline.policies.base import Policy, RememberingPolicy
from pipeline.selfplay import IllegalAction, draw_outcomes
from pipeline.streams import Streams, game_keys

FORMAT = 1
PERSON = "me"  # the name of a seat that no policy holds


@dataclass(frozen=True)
class Seat:
    """Who plays one player."""

    name: str  # PERSON, a baseline, or a run's policy such as "mine/7"
    policy: Policy | None = None  # None: a person


@dataclass(frozen=True)
class Ply:
    """One choice that was made."""

    player: int  # 0..P-1 or CHANCE
    action: int  # the outcome at chance
    asked: bool  # a person decided, among two or more actions


class Session:
    """A game with its history.

    Args:
        game: what is played.
        seats: one per player.
        seed, number: decide chance and the draws of the policies; `number` counts games of a seed.
        start: text of the position to start from (`Game.state_from_text`); None: the beginning.

    Raises:
        SessionError: not one seat per player, or the text is no position.
    """

    def __init__(
        self,
        game: Game,
        seats: Sequence[Seat],
        seed: int = 1,
        number: int = 0,
        start: str | None = None,
    ):
        if len(seats) != game.num_players:
            raise SessionError(
                f"{game.name} has {game.num_players} seats, got {len(seats)}: "
                f"{', '.join(seat.name for seat in seats)}"
            )
        self.game, self.seats = game, tuple(seats)
        self.seed, self.number, self.start = seed, number, start
        self._key = game_keys(seed, "play", number, [0])
        if start is None:
            first = game.initial_states(self._key)
        else:
            try:
                first = game.state_from_text(game.rules, start)
            except ValueError as error:
                raise SessionError(str(error)) from error
        self._line: list[Ply] = []  # what was played; beyond `_at`, what was taken back
        self._states = [first]  # [1] each; entry i is the position before ply i of the line
        # What the seats remember there, by `_remembered`; None: not asked for yet.
        self._memories: list[list[np.ndarray | None] | None] = [None]
        self._at = 0

    @property
    def state(self) -> np.ndarray:
        """The position, an array of one state."""
        return self._states[self._at]

    @property
    def player(self) -> int:
        """Who decides now: 0..P-1, CHANCE or TERMINAL."""
        return int(self.state["player"][0])

    @property
    def played(self) -> tuple[Ply, ...]:
        """Every choice that led here, from the start."""
        return tuple(self._line[: self._at])

    @property
    def waiting(self) -> bool:
        """A person has to decide."""
        return self.player >= 0 and self._is_person(self.player) and len(self.legal()) > 1

    def _is_person(self, player: int) -> bool:
        return self.seats[player].policy is None

    def legal(self) -> np.ndarray:
        """The legal actions, int64 [n]; none at chance and after the end."""
        return np.flatnonzero(self.game.legal_of(self.state)[0])

    def play(self, action: int) -> None:
        """Plays a person's decision. What had been taken back is forgotten.

        Raises:
            SessionError: no person has to decide, or the action is not legal.
        """
        if not self.waiting:
            raise SessionError("nobody is asked here; the game goes on by itself or is over")
        if action not in self.legal():
            raise SessionError(f"action {action} is not legal here")
        self._add(Ply(self.player, int(action), asked=True))

    def advance(self) -> Iterator[Ply]:
        """Plays chance, forced actions and policies until a person has to decide or the game is
        over; yields each choice right after it was played.

        Raises:
            IllegalAction: a policy chose what the rules forbid.
        """
        while self.player != TERMINAL and not self.waiting:
            ply = Ply(self.player, self._choice(), asked=False)
            self._add(ply)
            yield ply

    def _choice(self) -> int:
        game, state, player = self.game, self.state, self.player
        streams = Streams(self._key, state["ply"])
        if player == CHANCE:
            outcome = np.zeros(1, np.int32)
            draw_outcomes(game.chance_of(state), streams.uniform(), np.zeros(1, np.int64), outcome)
            return int(outcome[0])
        legal = game.legal_of(state)
        if legal.sum() == 1:
            return int(legal.argmax())
        policy = self.seats[player].policy
        assert policy is not None
        if isinstance(policy, RememberingPolicy):
            memory = self._remembered(self._at)[player]
            assert memory is not None
            action = int(policy.act_on(game, state, legal, memory.copy(), streams).actions[0])
        else:
            action = int(policy.act(game, state, legal, streams).actions[0])
        if not (0 <= action < game.num_actions and legal[0, action]):
            raise IllegalAction(
                f"{self.seats[player].name} chose action {action}, which is illegal in\n"
                f"{game.state_to_text(game.rules, state[0])}"
            )
        return action

    def _remembered(self, at: int) -> list[np.ndarray | None]:
        """What the policy of each seat remembers before ply `at` of the line: what it would have
        done is asked again from where that was last known, so a game that was loaded, or taken
        back, goes on as it would have."""
        known = at
        while known > 0 and self._memories[known] is None:
            known -= 1
        if self._memories[known] is None:
            self._memories[known] = [
                seat.policy.fresh_memory((1,))
                if isinstance(seat.policy, RememberingPolicy)
                else None
                for seat in self.seats
            ]
        for each in range(known, at):
            before = self._memories[each]
            assert before is not None
            after, state, player = list(before), self._states[each], self._line[each].player
            policy = self.seats[player].policy if player >= 0 else None
            legal = self.game.legal_of(state)
            if isinstance(policy, RememberingPolicy) and legal.sum() > 1:
                memory = before[player]
                assert memory is not None
                after[player] = memory = memory.copy()
                policy.act_on(self.game, state, legal, memory, Streams(self._key, state["ply"]))
            self._memories[each + 1] = after
        found = self._memories[at]
        assert found is not None
        return found

    def _add(self, ply: Ply) -> None:
        after = self.game.after(self.state, [ply.action])
        del self._line[self._at :], self._states[self._at + 1 :], self._memories[self._at + 1 :]
        self._line.append(ply)
        self._states.append(after)
        self._memories.append(None)
        self._at += 1

    def undo(self) -> bool:
        """Goes back to the last decision of a person; False if there was none."""
        for at in range(self._at - 1, -1, -1):
            if self._line[at].asked:
                self._at = at
                return True
        return False

    def redo(self) -> bool:
        """Goes forward again, to where a person was asked next; False if nothing was taken back."""
        if self._at == len(self._line):
            return False
        self._at += 1
        while self._at < len(self._line) and not self._line[self._at].asked:
            self._at += 1
        return True

    def words(self, at: int) -> str:
        """The choice number `at` of the line, an action or an outcome of chance, in words."""
        game, ply = self.game, self._line[at]
        if ply.player == CHANCE:
            return game.outcome_in_words(self._states[at][0], ply.action)
        return game.action_to_text(game.rules, ply.action)

    def seen(self, at: int, seat: int) -> str | None:
        """The choice number `at` as `seat` (or ONLOOKER) sees it, in a line: "" where it sees
        nothing of it, None in a game that hides nothing."""
        view, states = self.game.view, self._states
        if view is None:
            return None
        action = self._line[at].action
        return view.event_to_text(self.game.rules, states[at][0], action, states[at + 1][0], seat)

    # Files.

    def to_json(self) -> dict[str, Any]:
        """The game so far: what `from_json` goes on with."""
        return {
            "format": FORMAT,
            "game": self.game.name,
            "params": dict(self.game.params),
            "seats": [seat.name for seat in self.seats],
            "seed": self.seed,
            "number": self.number,
            "start": self.start,
            "plies": [
                {"player": ply.player, "action": ply.action, "text": self.words(at)}
                for at, ply in enumerate(self.played)
            ],
        }

    def to_text(self) -> str:
        """`to_json` as JSON for people too, a line per ply."""
        stored = self.to_json()
        plies = stored.pop("plies")
        lines = [f" {json.dumps(key)}: {json.dumps(value)}," for key, value in stored.items()]
        body = ",\n".join(f"  {json.dumps(ply)}" for ply in plies)
        return "\n".join(["{", *lines, f' "plies": [\n{body}\n ]', "}", ""])

    @classmethod
    def from_json(cls, stored: dict[str, Any], game: Game, seats: Sequence[Seat]) -> "Session":
        """Plays a stored game again, ply by ply, by the rules.

        Args:
            stored: from `to_json`, as `read_saved` has checked it.
            game, seats: those that `stored` names.

        Raises:
            SessionError: some ply is not what the rules allow.
        """
        session = cls(game, seats, stored["seed"], stored["number"], stored["start"])
        for index, ply in enumerate(stored["plies"]):
            action, player = ply["action"], session.player
            if player == CHANCE:
                possible = np.flatnonzero(game.chance_of(session.state)[0] > 0)
            else:
                possible = session.legal()
            if ply["player"] != player or action not in possible:
                raise SessionError(f"ply {index} of the saved game is not what the rules allow")
            session._add(Ply(player, action, asked=session.waiting))
            if ply["text"] != session.words(index):
                raise SessionError(
                    f"ply {index} of the saved game says {ply['text']!r}, and action {action} is "
                    f"{session.words(index)!r}"
                )
        return session


# field of a saved game -> its type; those of a ply
_FIELDS = {
    "format": int,
    "game": str,
    "params": dict,
    "seats": list,
    "seed": int,
    "number": int,
    "start": str | None,
    "plies": list,
}
_PLY = {"player": int, "action": int, "text": str}


def read_saved(text: str | bytes) -> dict[str, Any]:
    """A saved game's JSON, its fields and types checked.

    Raises:
        SessionError: this is no saved game, or one of another format.
    """
    try:
        stored = json.loads(text)
    except (ValueError, RecursionError) as error:  # of JSON and UTF-8; of brackets nested deeply
        raise SessionError(f"it is no saved game: {error}") from error
    if not isinstance(stored, dict) or "format" not in stored:
        raise SessionError("it is no saved game: expected a JSON object with a format")
    if stored["format"] != FORMAT:
        raise SessionError(
            f"it is a saved game of format {stored['format']!r}; this program reads {FORMAT}"
        )
    _check_fields(stored, _FIELDS, "")
    for index, ply in enumerate(stored["plies"]):
        _check_fields(ply, _PLY, f"plies[{index}].")
    if not all(isinstance(name, str) for name in stored["seats"]):
        raise SessionError("it is damaged: seats must be a list of names")
    if not 0 <= stored["number"] < 2**63:
        raise SessionError(f"it is damaged: number must be in 0..2^63-1, got {stored['number']}")
    return stored


def _check_fields(part: Any, expected: dict[str, Any], where: str) -> None:
    for name, kind in expected.items():
        if not isinstance(part, dict) or not isinstance(part.get(name, ...), kind):
            words = getattr(kind, "__name__", str(kind))
            raise SessionError(f"it is damaged: {where}{name} must be of type {words}")
