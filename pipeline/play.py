"""`selfplay play`: people in the terminal against each other, baselines and what runs have learned.

selfplay play --run mine                                   you against the champion of a run
selfplay play --run mine/7 --seats mine/7,me               against generation 7, which begins
selfplay play game=connect_four game.width=8 --seats me,win_or_random
selfplay play --load saved.json                            goes on with a saved game

A seat is `me`, a baseline (random, win_or_random, .. or one of the game's own), a run (its
champion) or run/generation. Without --seats you begin, and the run, or `random`, has all others.
In the game ? lists the commands. More: docs/playing.md.
"""

import argparse
import operator
import os
import re
import shlex
import shutil
import textwrap
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from games import CHANCE, ONLOOKER, TERMINAL, Game
from pipeline.config import CONF, make_game_from
from pipeline.errors import ConfigError, SessionError, UserError
from pipeline.policies.base import LearnedPolicy
from pipeline.policies.scripted import baseline_names
from pipeline.policies.store import PolicySource, load_policy
from pipeline.run import Run
from pipeline.session import PERSON, Seat, Session, read_saved
from pipeline.storage import Storage

_OPTIONS = ("run", "seats", "seed", "position", "load", "root")
_SHOWN = 40  # entries of a list before it is cut short

_HELP = """\
an action     in words ("column 3"), as much of them as fits one action alone ("c 3", "3"),
              or by number ("#3")
legal         the legal actions; `legal WORDS`: those that fit, with their numbers
values        what each legal action is worth to whoever decides, best first; `values all`
hint          the best action
undo, redo    back to the last decision of a person, and forward again; chance stays as it was
new, swap     another game; `swap`: with everybody one seat on
save FILE     keeps the game; `load FILE`: goes on with one
quit          or Ctrl-D"""


def main(arguments: list[str]) -> None:
    """Plays until the person has had enough.

    Raises:
        UserError: there is no such game, run, policy or saved game, or they do not fit together.
    """
    parser = argparse.ArgumentParser(
        prog="selfplay play",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "game", nargs="*", help="game=connect_four, game.k=5: a game and its parameters (conf/game)"
    )
    parser.add_argument("--run", help="RUN or RUN/GENERATION: whom to play, and who gives advice")
    parser.add_argument("--seats", help="who plays whom, in turn order, as in me,random")
    parser.add_argument("--seed", type=int, default=1, help="of chance and policies (default: 1)")
    parser.add_argument("--position", help="a text of the game's page to start from, as in 33241")
    parser.add_argument("--load", metavar="FILE", help="goes on with a saved game")
    parser.add_argument("--root", default="runs", help="where the runs are (default: runs)")
    options = parser.parse_args(arguments)
    roster = Roster(options.root, options.run)
    if options.load:
        given = [*options.game, *(["--seats"] if options.seats else [])]
        if given or options.position:
            raise ConfigError(
                "--load brings its own game, seats and position; leave out "
                f"{', '.join(given or ['--position'])}"
            )
        session = roster.load(options.load)
    else:
        names = [name.strip() for name in options.seats.split(",")] if options.seats else None
        game = roster.game(options.game, names or [])
        seats = roster.seats(game, names or roster.usual(game))
        session = Session(game, seats, options.seed, start=options.position)
    Terminal(roster, session).run()


@dataclass(frozen=True)
class Roster:
    """Who can sit down: baselines, and the policies of the runs under a root."""

    root: str
    run: str | None  # whose champion, or which generation (RUN/7), is asked for by name

    def game(self, overrides: Sequence[str], names: Sequence[str]) -> Game:
        """The game: of the overrides, else of the run, else of the first seat that is a run's.

        Raises:
            UserError: nothing says which, or a run is of another game.
        """
        if overrides:
            return make_game_from(_composed(overrides))
        storage = Storage(self.root)
        for name in [self.run] if self.run else names:
            run = name.partition("/")[0]
            if name == self.run or (run and storage.exists(f"{run}/config.yaml")):
                return make_game_from(Run.open(self.root, run).config.game)
        raise ConfigError(
            "which game? Name one, as in game=connect_four, or a run, as in --run mine"
        )

    def usual(self, game: Game) -> list[str]:
        """The seats if nobody says: a person first, the run or the random player in the others."""
        return [PERSON] + [self.run or "random"] * (game.num_players - 1)

    def seats(self, game: Game, names: Sequence[str]) -> list[Seat]:
        """One seat per name; a run's champion is named by its generation.

        Raises:
            UserError: a name is nobody's, or the run is of another game.
        """
        return [Seat(name) if name == PERSON else self.seat(game, name) for name in names]

    def seat(self, game: Game, name: str) -> Seat:
        """The seat of a policy; see `seats`."""
        if name in baseline_names(game):
            return Seat(name, load_policy(Storage(self.root), PolicySource(name), game))
        run_name, slash, number = name.partition("/")
        try:
            run = Run.open(self.root, run_name)
        except UserError as error:
            raise ConfigError(
                f"seat {name!r} is neither {PERSON!r} nor a baseline "
                f"({', '.join(baseline_names(game))}), and {error}"
            ) from error
        theirs = make_game_from(run.config.game)
        if (theirs.name, theirs.params) != (game.name, game.params):
            raise ConfigError(
                f"seat {name!r}: run {run.name} plays {theirs.title}, not {game.title}"
            )
        if slash and not number.isdecimal():
            raise ConfigError(f"seat {name!r}: expected a run or run/generation, as in mine/7")
        generation = int(number) if slash else run.champion_generation()
        policy = load_policy(run.storage, run.policy(generation), game)
        return Seat(f"{run.name}/{generation}", policy)

    def advisers(self, session: Session) -> dict[str, LearnedPolicy]:
        """Whom to ask for values: the run's policy if it fits the game, and those at the table."""
        seats = list(session.seats)
        if self.run is not None:
            with suppress(ConfigError):  # a game was loaded that is not the run's
                seats.insert(0, self.seat(session.game, self.run))
        return {seat.name: seat.policy for seat in seats if isinstance(seat.policy, LearnedPolicy)}

    def load(self, file: str) -> Session:
        """A saved game, with its seats.

        Raises:
            UserError: there is no such file, it is damaged, or a policy in it is gone.
        """
        try:
            stored = read_saved(Path(file).expanduser().read_bytes())
            game = make_game_from({**stored["params"], "name": stored["game"]})
            return Session.from_json(stored, game, self.seats(game, stored["seats"]))
        except OSError as error:
            raise SessionError(f"cannot load {file}: {error.strerror}") from error
        except UserError as error:
            raise SessionError(f"cannot load {file}: {error}") from error


def _composed(overrides: Sequence[str]) -> dict:
    """The section `game` of the configuration."""
    import hydra  # half a second, and a run's game is known without it
    from omegaconf import OmegaConf

    for each in overrides:
        if not re.match(r"[~+]*game[.=]", each):
            key, equals, value = each.partition("=")
            option = f"; did you mean --{key} {value}?" if equals and key in _OPTIONS else ""
            raise ConfigError(
                f"cannot read {each!r}; expected game=... or game.<parameter>=..., and options"
                f"{option}"
            )
    with hydra.initialize_config_dir(config_dir=CONF, version_base="1.3"):
        composed = hydra.compose("config", overrides=list(overrides))
    return OmegaConf.to_container(composed["game"], resolve=True)  # type: ignore[return-value]


# Words of actions.


class Actions:
    """Finds actions by what a person types.

    Args:
        texts: of every action of the game, in order.
    """

    def __init__(self, texts: Sequence[str]):
        self.texts = tuple(texts)
        self._words = [_words(text) for text in texts]

    def fitting(self, typed: str) -> list[int]:
        """The actions that a text means: those whose words it gives in full, else those that have
        all its words in this order, else those that have words which begin like them. A number is
        a whole word, so that 1 does not mean 10."""
        wanted = _words(typed)
        if not wanted:
            return []
        exact = [i for i, text in enumerate(self.texts) if text.casefold() == typed.casefold()]
        if exact:
            return exact
        for fits in (operator.eq, _has_words, _has_beginnings):
            found = [i for i, words in enumerate(self._words) if fits(words, wanted)]
            if found:
                return found
        return []

    def choose(self, typed: str, legal: np.ndarray) -> int:
        """The one legal action (of int64 [n]) that a person means.

        Raises:
            SessionError: none, one that is illegal, or several.
        """
        number = re.fullmatch(r"#\s*(\d{1,9})", typed)
        found = [int(number[1])] if number else []
        if not typed.startswith("#"):  # which stands before numbers alone
            found = self.fitting(typed)
        if not found and re.fullmatch(r"\d{1,9}", typed):
            found = [int(typed)]
        found = [action for action in found if action < len(self.texts)]
        possible = [action for action in found if action in legal]
        if len(possible) == 1:
            return possible[0]
        if possible:
            several = ", ".join(f"{self.texts[action]} (#{action})" for action in possible[:8])
            more = f" and {len(possible) - 8} more" if len(possible) > 8 else ""
            raise SessionError(
                f"{typed!r} may mean {several}{more}; type more of it, or the number"
            )
        if len(found) == 1:
            raise SessionError(f"{self.texts[found[0]]!r} is not legal here; `legal` lists what is")
        if found:
            raise SessionError(f"nothing like {typed!r} is legal here; `legal` lists what is")
        raise SessionError(f"there is no action {typed!r}; `legal` lists what is legal, ? explains")

    def listing(self, actions: np.ndarray, width: int) -> str:
        """Actions by their first word, a paragraph each; long ones are cut short."""
        groups: dict[str, list[str]] = {}
        for action in actions:
            first, _, rest = self.texts[action].partition(" ")
            groups.setdefault(first if rest else "", []).append(rest or first)
        lines = []
        for first, rests in groups.items():
            shown = ", ".join(rests[:_SHOWN])
            if len(rests) > _SHOWN:
                shown += f", and {len(rests) - _SHOWN} more: legal {first}".rstrip()
            if first:
                shown = (
                    f"{first} {shown}" if len(rests) == 1 else f"{first} ({len(rests)}): {shown}"
                )
            lines.append(_wrapped(shown, width))
        return "\n".join(lines)


def _words(text: str) -> list[str]:
    # A minus in front of a number is its sign, but not within a word: "3-4" is 3 and 4.
    return re.findall(r"[^\W\d_]+|(?<!\S)-\d+|\d+", text.casefold())


def _has_words(words: list[str], wanted: list[str]) -> bool:
    rest = iter(words)
    return all(each in rest for each in wanted)


def _has_beginnings(words: list[str], wanted: list[str]) -> bool:
    rest = iter(words)
    return all(
        any(word == each if each[-1].isdecimal() else word.startswith(each) for word in rest)
        for each in wanted
    )


def _wrapped(text: str, width: int) -> str:
    return textwrap.fill(text, width, initial_indent="  ", subsequent_indent="    ")


# The terminal.


class Terminal:
    """Reads commands from the standard input and prints what happens."""

    def __init__(self, roster: Roster, session: Session):
        self.roster = roster
        self._open = True
        self._sit_down(session)

    def _sit_down(self, session: Session) -> None:
        game = session.game
        self.session = session
        self.advisers = self.roster.advisers(session)
        self.actions = Actions(
            [game.action_to_text(game.rules, action) for action in range(game.num_actions)]
        )

    def run(self) -> None:
        """Until `quit`, the end of the input or an interrupt."""
        with suppress(ImportError):
            import readline  # noqa: F401  (lines can be edited and called back)
        try:
            self._begin()
            while self._open:
                typed = input(self._prompt()).strip()
                if typed:
                    self._obey(typed)
        except (EOFError, KeyboardInterrupt):
            print()
        print("bye")

    def _prompt(self) -> str:
        return f"player {self.session.player}> " if self.session.waiting else "game over> "

    def _obey(self, typed: str) -> None:
        name, _, rest = typed.partition(" ")
        command = _COMMANDS.get(name.casefold())
        try:
            # An action that is called like a command is meant when it can be played.
            if command is None or self._is_legal_text(typed):
                self._play(typed)
            else:
                command(self, rest.strip())
        except UserError as error:
            print(error)

    def _is_legal_text(self, typed: str) -> bool:
        texts = self.actions.texts
        return any(texts[action].casefold() == typed.casefold() for action in self.session.legal())

    # What happens at the table.

    def _begin(self) -> None:
        session = self.session
        print(f"{session.game.title}, seed {session.seed}, game {session.number}; ? for help")
        print(", ".join(self._who(player) for player in range(session.game.num_players)))
        for at in range(len(session.played)):
            self._tell(at)
        self._go_on()

    def _play(self, typed: str) -> None:
        if not self.session.waiting:
            raise SessionError("the game is over; undo, new, swap, save, load or quit")
        self.session.play(self.actions.choose(typed, self.session.legal()))
        self._go_on()

    def _go_on(self) -> None:
        """Chance and policies play; then the position."""
        watching = all(seat.policy is not None for seat in self.session.seats)
        for _ in self.session.advance():
            self._tell(len(self.session.played) - 1)
            if watching:
                self._show()
        if not watching or not self.session.played:
            self._show()
        if self.session.player == TERMINAL:
            print(self._result())

    def _tell(self, at: int) -> None:
        """One choice of the game in a line, as those at the screen may see it."""
        session, ply = self.session, self.session.played[at]
        people = self._people()
        if people:
            seen = session.seen(at, people[0] if len(people) == 1 else ONLOOKER)
            if seen is not None:
                if seen:
                    print(f"  {seen}")
                return
        who = "chance" if ply.player == CHANCE else self._who(ply.player)
        forced = ply.player != CHANCE and not ply.asked and session.seats[ply.player].policy is None
        print(f"  {who}: {session.words(at)}{' (the only action)' * forced}")

    def _show(self) -> None:
        """The position, as who decides may see it; all of it after the end or without people."""
        game, state, people = self.session.game, self.session.state[0], self._people()
        if game.view is not None and people and self.session.player != TERMINAL:
            seat = people[0] if len(people) == 1 else self.session.player
            text = game.view.state_to_text(game.rules, state, seat)
        else:
            text = game.state_to_text(game.rules, state)
        print(f"\n{text}\n")

    def _people(self) -> list[int]:
        return [i for i, seat in enumerate(self.session.seats) if seat.policy is None]

    def _who(self, player: int) -> str:
        seat = self.session.seats[player]
        return f"player {player} ({'you' if self._alone(player) else seat.name})"

    def _alone(self, player: int) -> bool:
        """Is this the only person at the table?"""
        return self._people() == [player]

    def _result(self) -> str:
        session = self.session
        paid = session.game.returns_of(session.state)[0]
        ends = ", ".join(f"{self._who(i)} {value:+g}" for i, value in enumerate(paid))
        best = np.flatnonzero(paid == paid.max())
        lines = [f"the end: {ends}"]
        for player in range(len(paid)):
            if self._alone(player):
                won, shared = player in best, len(best) > 1
                lines.append("a draw" if won and shared else "you win" if won else "you lose")
        return "\n".join(lines)

    # Commands. Each takes what was typed behind its name.

    def _help(self, _: str) -> None:
        print(_HELP)

    def _legal(self, typed: str) -> None:
        legal = self.session.legal()
        if typed:
            found = [action for action in self.actions.fitting(typed) if action in legal]
            words = [f"#{action} {self.actions.texts[action]}" for action in found]
            print(_wrapped(", ".join(words) or f"no legal action is like {typed!r}", _width()))
        else:
            print(f"{len(legal)} legal action{'s' * (len(legal) != 1)}")
            print(self.actions.listing(legal, _width()))

    def _values(self, typed: str) -> None:
        legal = self._choices()
        columns = self._opinions(legal)
        if not columns:
            raise SessionError(_NO_OPINION)
        order = _best_first(columns)
        rows = order if typed == "all" else order[:_SHOWN]
        texts = [self.actions.texts[action] for action in legal]
        longest = max(len("action"), *(len(texts[row]) for row in rows))
        head = [f"  {'action':<{longest}}", *(f"{name:>12}" for name in columns)]
        print("  ".join(head))
        for row in rows:
            cells = [
                f"{_cell(name, column[row]):>{max(12, len(name))}}"
                for name, column in columns.items()
            ]
            print("  ".join([f"  {texts[row]:<{longest}}", *cells]))
        if len(rows) < len(legal):
            print(f"  and {len(legal) - len(rows)} more: values all")

    def _hint(self, _: str) -> None:
        legal = self._choices()
        columns = self._opinions(legal)
        if not columns:
            raise SessionError(_NO_OPINION)
        first = _best_first(columns)[0]
        best = np.logical_and.reduce([column == column[first] for column in columns.values()])
        texts = [self.actions.texts[action] for action in legal[best]]
        shown = " or ".join(texts[:5]) + (" or .." if len(texts) > 5 else "")
        why = ", ".join(f"{name}: {_cell(name, column[first])}" for name, column in columns.items())
        print(f"  {shown}  ({why})")

    def _choices(self) -> np.ndarray:
        legal = self.session.legal()
        if not len(legal):
            raise SessionError("nobody has to decide here; the game is over")
        return legal

    def _opinions(self, legal: np.ndarray) -> dict[str, np.ndarray]:
        """What is known of the legal actions, each float64 [n], larger = better for whoever
        decides: exact scores if there are any, then the values of every adviser."""
        game, state = self.session.game, self.session.state
        columns = {}
        if game.solver is not None and game.solver.solvable(game.rules, state)[0]:
            scores = game.solver.scores(game.rules, state)
            columns[_EXACT] = scores[0, legal].astype(float)
        mask = game.legal_of(state)
        for name, policy in self.advisers.items():
            columns[name] = policy.action_values(game, state, mask)[0, legal].astype(float)
        return columns

    def _undo(self, _: str) -> None:
        if not self.session.undo():
            raise SessionError("there is nothing to take back")
        self._show()

    def _redo(self, _: str) -> None:
        before = len(self.session.played)
        if not self.session.redo():
            raise SessionError("nothing was taken back")
        for at in range(before, len(self.session.played)):
            self._tell(at)
        self._go_on()

    def _new(self, _: str) -> None:
        self._start(self.session.seats)

    def _swap(self, _: str) -> None:
        seats = self.session.seats
        self._start((*seats[1:], seats[0]))

    def _start(self, seats: Sequence[Seat]) -> None:
        old = self.session
        self._sit_down(Session(old.game, seats, old.seed, old.number + 1, old.start))
        self._begin()

    def _save(self, typed: str) -> None:
        path = _named(typed, "save")
        try:
            if path.exists():
                read_saved(path.read_bytes())
        except SessionError as error:
            raise SessionError(f"{path} is there and {error}; choose another name") from error
        except OSError as error:
            raise SessionError(f"cannot write {path}: {error.strerror}") from error
        part = path.with_name(f".{path.name}.part")  # what was there before stays until all is told
        try:
            part.write_text(self.session.to_text(), encoding="utf-8")
            os.replace(part, path)
        except OSError as error:
            raise SessionError(f"cannot write {path}: {error.strerror}") from error
        command = f"selfplay play --load {shlex.quote(str(path))}"
        if self.roster.run is not None:
            command += f" --run {shlex.quote(self.roster.run)}"
        if self.roster.root != "runs":
            command += f" --root {shlex.quote(self.roster.root)}"
        print(f"  saved; go on with: {command}")

    def _load(self, typed: str) -> None:
        self._sit_down(self.roster.load(str(_named(typed, "load"))))
        self._begin()

    def _quit(self, _: str) -> None:
        self._open = False


_COMMANDS = {
    "?": Terminal._help,
    "help": Terminal._help,
    "legal": Terminal._legal,
    "values": Terminal._values,
    "hint": Terminal._hint,
    "undo": Terminal._undo,
    "redo": Terminal._redo,
    "new": Terminal._new,
    "swap": Terminal._swap,
    "save": Terminal._save,
    "load": Terminal._load,
    "quit": Terminal._quit,
    "exit": Terminal._quit,
}
_EXACT = "exact"
_NO_OPINION = (
    "nobody here knows values; start with --run to ask one of its policies, but not one of "
    "learner=hierarchical, which values behaviours: `selfplay trees explain` gives its reasons"
)


def _best_first(columns: dict[str, np.ndarray]) -> np.ndarray:
    """int64 [n], the order of actions by the first of `_opinions`, equals by the next."""
    return np.lexsort([-column for column in reversed(columns.values())])


def _cell(name: str, value: float) -> str:
    if name != _EXACT:
        return f"{value:+.3f}"
    return f"{'wins' if value > 0 else 'loses' if value < 0 else 'draws'} ({value:+.0f})"


def _named(typed: str, command: str) -> Path:
    if not typed:
        raise SessionError(f"{command} needs the name of a file, as in {command} game.json")
    return Path(typed).expanduser()


def _width() -> int:
    return shutil.get_terminal_size().columns
