"""check_game: random play that asserts the whole contract of `games/game.py`.

Run it first when you write a game. A failure names the game, says what the contract demands and,
where there is one, shows the position in which that did not hold.
"""

import json
from collections.abc import Callable

import numpy as np

from games.game import CHANCE, HEADER, ILLEGAL, ONLOOKER, TERMINAL, Game, Solution, Symmetry

_GUARD = 64  # bytes behind every array that a kernel writes, which must stay as they were
_ROUNDING = 1e-5
_SLIPS = 60  # texts of positions with a slip in them that are read
_SOLVED = 50  # positions that a solver is asked for


def check_game(game: Game, games: int = 200, seed: int = 0, largest_return: float = 1.0) -> None:
    """Plays random games and asserts everything that the contract demands.

    What it cannot see: whether the rules are the right ones, whether `make` refuses parameters that
    make no game, whether an observation shows more than its player may know, and a symmetry whose
    image of the start is another start.

    Args:
        game: any game, with or without chance, for any number of players.
        games: how many are played by random players, and again by each scripted player; by those
            that are not among the game's baselines, which may be slow, one in a hundred.
        seed: decides the games; the same seed plays the same ones.
        largest_return: no player may ever have received more than this, or less than minus this.

    Raises:
        AssertionError: the contract is broken.
    """
    watch = _Watch(game)
    _check_constants(watch)
    rng = np.random.default_rng(seed)
    seeds = rng.integers(0, 2**64, games, np.uint64)
    seeds[:2] = 0, 2**64 - 1
    _check_starts(watch, seeds, rng)
    _check_empty_batch(watch)
    met = []
    for script in (None, *game.scripted):
        slow = script is not None and script not in (game.baselines or game.scripted)
        some = seeds[: max(1, games // 100)] if slow else seeds
        states, actions, facts = _play(watch, some, rng, script, largest_return)
        met.append(states)
        _check_independence(watch, states, actions, facts, rng)
        _check_words(watch, states, rng)
        if game.view is not None:
            _check_view(watch, states, actions, facts["step"], rng)
    if game.action_types is not None:
        _check_action_types(watch)
    for index, symmetry in enumerate(game.symmetries):
        _check_symmetry(watch, index, symmetry, seeds, rng)
    if game.solver is not None:
        _check_solver(watch, np.concatenate(met), rng)
    if game.solution is not None:
        _check_solution(watch, game.solution(), largest_return)
    _check_slips(watch, np.concatenate(met), rng, largest_return)


class _Watch:
    """Calls the kernels of a game and asserts how they treat memory."""

    def __init__(self, game: Game):
        self.game = game
        words = ", ".join(f"{key}={value}" for key, value in game.params.items())
        self._name = f"game {game.name} ({words})"

    def demand(self, holds, what: str) -> None:
        if not holds:
            raise AssertionError(f"{self._name}: {what}")

    def demand_rows(self, holds: np.ndarray, what: str, states: np.ndarray) -> None:
        """Demands that `holds` bool [B] be all True; shows the first position where it is not."""
        if holds.all():
            return
        state = states[np.argmin(holds)]
        try:
            position = self.game.state_to_text(self.game.rules, state)
        except Exception as error:
            position = f"{state} (state_to_text raised {error!r})"
        raise AssertionError(f"{self._name}: {what}; it did not at\n{position}")

    def run(self, name: str, kernel: Callable, inputs, shape, dtype, start=None) -> np.ndarray:
        """What `kernel(rules, *inputs, out)` writes into `out`, run twice in unlike memory.

        `start`: what `out` holds before, for a kernel that changes it in place.
        """
        results = []
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        for fill in (0x00, 0xFF):
            memory = np.full(size + _GUARD, fill, np.uint8)
            out = memory[:size].view(dtype).reshape(shape)
            if start is not None:
                out[:] = start
            given = [array.copy() for array in inputs]
            try:
                kernel(self.game.rules, *given, out)
            except Exception as error:
                self.demand(False, f"{name} must never raise, and raised {error!r}")
            self.demand((memory[size:] == fill).all(), f"{name} must not write past its array")
            self.demand(
                all(_same(*pair).all() for pair in zip(inputs, given, strict=True)),
                f"{name} must leave the arrays that it only reads as they are",
            )
            results.append(out)
        self.demand(
            _same(*results).all(),
            f"{name} must be deterministic and write every entry, whatever the memory held before",
        )
        return results[0]

    def init(self, seeds: np.ndarray) -> np.ndarray:
        game = self.game
        return self.run(
            "init",
            lambda rules, seeds, states: game.init(rules, states, seeds),
            [seeds],
            len(seeds),
            game.state_dtype,
        )

    def step(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        game = self.game
        return self.run(
            "step",
            lambda rules, actions, states: game.step(rules, states, actions),
            [actions],
            len(states),
            game.state_dtype,
            start=states,
        )

    def read(self, states: np.ndarray) -> dict[str, np.ndarray]:
        """What each kernel says about the states; arrays of B rows under the kernel's name."""
        game, rows = self.game, len(states)
        seen = np.empty((rows, game.num_players, game.observation_size), np.float32)
        for player in range(game.num_players):
            seen[:, player] = self.run(
                "observe",
                game.observe,
                [states, np.full(rows, player, np.int32)],
                (rows, game.observation_size),
                np.float32,
            )
        shapes = {
            "legal_actions": (game.num_actions, np.bool_),
            "chance_probabilities": (game.num_outcomes, np.float32),
            "returns": (game.num_players, np.float32),
        }
        facts = {"observe": seen}
        for name, (columns, dtype) in shapes.items():
            kernel = getattr(game, name)
            facts[name] = self.run(name, kernel, [states], (rows, columns), dtype)
        return facts


def _same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """bool [B]: the rows that are equal in every bit."""
    rows = len(a)
    if a.size == 0:
        return np.ones(rows, np.bool_)
    a, b = (np.ascontiguousarray(x).reshape(rows, -1).view(np.uint8) for x in (a, b))
    return (a == b).all(axis=1)


def _check_constants(watch: _Watch) -> None:
    game, dtype = watch.game, watch.game.state_dtype
    header = [(name, np.dtype(kind)) for name, kind in HEADER]
    watch.demand(
        dtype.names is not None
        and [(name, dtype[name]) for name in dtype.names[: len(header)]] == header,
        f"state_dtype must begin with HEADER, {HEADER}; it is {dtype}",
    )
    watch.demand(not dtype.hasobject, "state_dtype must hold numbers only, no Python objects")
    watch.demand(
        dtype.itemsize == sum(dtype[name].itemsize for name in dtype.names),
        "state_dtype must have no padding: its bytes go into traces, and equal states must have "
        "equal bytes",
    )
    for name, least in (
        ("num_players", 1),
        ("num_actions", 1),
        ("max_decisions", 1),
        ("num_outcomes", 0),
    ):
        value = getattr(game, name)
        watch.demand(
            isinstance(value, int) and value >= least,
            f"{name} must be an int of at least {least}, got {value!r}",
        )
    watch.demand(hasattr(game.rules, "_fields"), "rules must be a NamedTuple")
    names = game.observation_names
    watch.demand(
        len(names) > 0
        and all(isinstance(name, str) and name for name in names)
        and len(set(names)) == len(names),
        "observation_names must name every feature, each by another name",
    )
    watch.demand(not game.zero_sum or game.num_players == 2, "zero_sum is for games of two players")
    watch.demand(
        set(game.baselines or ()) <= set(game.scripted), "baselines must be scripted players"
    )
    watch.demand(
        game.solver is None or (game.zero_sum and game.num_outcomes == 0),
        "a solver is for zero_sum games without chance",
    )
    try:
        json.dumps(dict(game.params))
    except TypeError as error:
        watch.demand(False, f"params must be plain values that JSON can hold: {error}")
    words = [game.action_to_text(game.rules, action) for action in range(game.num_actions)]
    watch.demand(
        all(isinstance(word, str) and word for word in words) and len(set(words)) == len(words),
        "action_to_text must give every action a text of its own",
    )


def _check_starts(watch: _Watch, seeds: np.ndarray, rng: np.random.Generator) -> None:
    states = watch.init(seeds)
    what = "init must depend on the seed of the row and on nothing else"
    order = rng.permutation(len(seeds))
    watch.demand_rows(_same(watch.init(seeds[order]), states[order]), what, states[order])
    for i in range(min(len(seeds), 8)):
        watch.demand_rows(_same(watch.init(seeds[i : i + 1]), states[i : i + 1]), what, states[i:])
    watch.demand_rows(states["ply"] == 0, "ply must be 0 at the start", states)
    paid = watch.read(states)["returns"]
    watch.demand_rows(
        (paid == 0).all(axis=1), "returns must be 0 at the start: nobody has received any", states
    )


def _check_empty_batch(watch: _Watch) -> None:
    states = watch.init(np.empty(0, np.uint64))
    watch.read(states)
    watch.step(states, np.empty(0, np.int32))


def _play(watch, seeds, rng, script, largest_return):
    """Plays every game to its end and asserts what must hold at each ply.

    Returns a sample of what was met: states [N], the action chosen in each, and the facts that
    the kernels told about each.
    """
    game = watch.game
    states = watch.init(seeds)
    share = np.linspace(0.0, 1.0, len(states))  # of the decisions that the script makes
    sample = []
    for ply in range(game.max_decisions + 1):
        if not len(states):
            break
        facts = watch.read(states)
        _check_position(watch, states, ply, facts, largest_return)
        over = states["player"] == TERMINAL
        actions = _random_actions(game, states, facts, rng)
        if script is not None:
            _let_script_decide(watch, script, states, facts["legal_actions"], share, actions, rng)
        after = watch.step(states, actions)
        facts["step"] = after
        watch.demand_rows(
            ~over | _same(states, after), "step must leave finished rows alone", states
        )
        watch.demand_rows(
            over | (after["ply"] == ply + 1), "step must raise ply by one, chance included", states
        )
        kept = np.concatenate([np.nonzero(over)[0][:8], np.nonzero(~over)[0][:8]])
        sample.append((states[kept], actions[kept], {k: v[kept] for k, v in facts.items()}))
        states, share = after[~over], share[~over]
    watch.demand_rows(
        np.zeros(len(states), np.bool_),
        f"a game must be over after max_decisions ({game.max_decisions}) choices",
        states,
    )
    return (
        np.concatenate([states for states, _, _ in sample]),
        np.concatenate([actions for _, actions, _ in sample]),
        {k: np.concatenate([facts[k] for _, _, facts in sample]) for k in sample[0][2]},
    )


def _check_position(watch, states, ply, facts, largest_return) -> None:
    game = watch.game
    player = states["player"]
    by_chance = player == CHANCE
    deciding = (player >= 0) & (player < game.num_players)
    watch.demand_rows(
        deciding | by_chance | (player == TERMINAL),
        f"player must be 0..{game.num_players - 1}, CHANCE or TERMINAL",
        states,
    )
    watch.demand_rows(states["ply"] == ply, "ply must count the choices made so far", states)

    legal = facts["legal_actions"]
    watch.demand_rows(
        deciding | ~legal.any(axis=1),
        "legal_actions must be all False where chance decides and after the end",
        states,
    )
    watch.demand_rows(
        ~deciding | legal.any(axis=1),
        "legal_actions must leave a player at least one action before the end",
        states,
    )

    chance = facts["chance_probabilities"]
    watch.demand_rows(
        ~by_chance | (game.num_outcomes > 0), "a game with chance needs num_outcomes", states
    )
    watch.demand_rows(
        (chance >= 0).all(axis=1), "chance_probabilities must not be negative", states
    )
    watch.demand_rows(
        ~by_chance | (np.abs(chance.sum(axis=1, dtype=np.float64) - 1) < _ROUNDING),
        "chance_probabilities must sum to 1 where chance decides",
        states,
    )
    watch.demand_rows(
        by_chance | (chance == 0).all(axis=1),
        "chance_probabilities must be 0 where chance does not decide",
        states,
    )

    watch.demand_rows(
        np.isfinite(facts["observe"]).all(axis=(1, 2)),
        "observe must write finite numbers, for every player, whoever's turn it is",
        states,
    )

    paid = facts["returns"]
    watch.demand_rows(np.isfinite(paid).all(axis=1), "returns must be finite", states)
    watch.demand_rows(
        (np.abs(paid) <= largest_return).all(axis=1),
        f"returns must lie within -{largest_return}..{largest_return}",
        states,
    )
    if game.zero_sum:
        watch.demand_rows(
            np.abs(paid.sum(axis=1, dtype=np.float64)) < _ROUNDING,
            "returns must sum to 0 in a game declared zero_sum",
            states,
        )


def _random_actions(game, states, facts, rng) -> np.ndarray:
    """A legal action, an outcome drawn by its probability, or any number where all is over."""
    rows = len(states)
    legal, chance = facts["legal_actions"], facts["chance_probabilities"]
    anything = rng.integers(0, game.num_actions, rows)
    chosen = np.where(legal, rng.random(legal.shape), -1.0).argmax(axis=1)
    chances = np.cumsum(chance, axis=1, dtype=np.float64)
    below = chances <= rng.random((rows, 1)) * chances[:, -1:]
    outcome = below.sum(axis=1)
    player = states["player"]
    actions = np.where(player >= 0, chosen, np.where(player == CHANCE, outcome, anything))
    return actions.astype(np.int32)


def _let_script_decide(watch, script, states, legal, share, actions, rng) -> None:
    """Asks a scripted player at every decision and does what it says in a share of them."""
    rows = np.nonzero(states["player"] >= 0)[0]
    uniforms = rng.random(len(rows))
    uniforms[:1], uniforms[1:2] = 0.0, np.nextafter(1.0, 0.0)

    def ask(some):
        inputs = [states[rows][some], legal[rows][some], uniforms[some]]
        name = f"scripted player {script}"
        return watch.run(name, watch.game.scripted[script], inputs, len(some), np.int32)

    chosen = ask(np.arange(len(rows)))
    inside = (chosen >= 0) & (chosen < watch.game.num_actions)
    watch.demand_rows(
        inside & legal[rows, np.where(inside, chosen, 0)],
        f"scripted player {script} must choose a legal action",
        states[rows],
    )
    order = rng.permutation(len(rows))
    watch.demand_rows(
        _same(ask(order), chosen[order]),
        f"scripted player {script} must decide each row by that row alone",
        states[rows][order],
    )
    scripted = rng.random(len(rows)) < share[rows]
    actions[rows[scripted]] = chosen[scripted]


def _check_independence(watch, states, actions, facts, rng) -> None:
    """A row tells the same alone, in another order and beside rows of other games and plies."""
    count = len(states)
    batches = [rng.permutation(count)[: count // part] for part in (1, 2, 2, 4, 4, 8, 8)]
    for rows in (*batches, *batches[0][:16, None]):
        some = states[rows]
        now = {**watch.read(some), "step": watch.step(some, actions[rows])}
        for name, told in facts.items():
            watch.demand_rows(
                _same(now[name], told[rows]),
                f"{name} must treat each row by that row alone: the same row beside other rows "
                "must give the same result",
                some,
            )


def _check_words(watch, states, rng) -> None:
    game = watch.game
    over = np.nonzero(states["player"] == TERMINAL)[0]
    rows = np.concatenate([over[:100], rng.permutation(len(states))[:200]])
    for i in rows:
        state = states[i].copy()
        text = game.state_to_text(game.rules, state)
        watch.demand(isinstance(text, str) and text, "state_to_text must give a text")
        try:
            again = game.state_from_text(game.rules, text)
        except ValueError as error:
            watch.demand(
                False, f"state_from_text must read what state_to_text wrote; it refused: {error}"
            )
        watch.demand(
            isinstance(again, np.ndarray)
            and again.shape == (1,)
            and again.dtype == game.state_dtype,
            "state_from_text must give an array of one state",
        )
        watch.demand_rows(
            _same(again, states[i : i + 1]),
            "state_from_text must read back, bit for bit, the state that state_to_text wrote",
            states[i:],
        )
        if state["player"] == CHANCE:
            possible = np.nonzero(game.chance_of(state[None])[0])[0]
            words = [game.outcome_in_words(state, int(outcome)) for outcome in possible]
            watch.demand(
                all(isinstance(word, str) and word for word in words)
                and len(set(words)) == len(words),
                "outcome_to_text must give every possible outcome a text of its own",
            )
        if game.state_to_svg is not None:
            picture = game.state_to_svg(game.rules, state)
            watch.demand(
                isinstance(picture, str) and picture.startswith("<svg"),
                "state_to_svg must give a text that begins with <svg",
            )
        shown = game.state_to_json(game.rules, state)
        watch.demand(isinstance(shown, dict), "state_to_json must give a dict")
        try:
            json.dumps(shown, allow_nan=False)
        except (TypeError, ValueError) as error:
            watch.demand(False, f"state_to_json must give what JSON can hold: {error}")
        watch.demand_rows(
            _same(state[None], states[i : i + 1]),
            "the words for a state must not change it",
            states[i:],
        )
    for nonsense in ("?", "no such position"):
        try:
            game.state_from_text(game.rules, nonsense)
        except ValueError as error:
            watch.demand(str(error), "state_from_text must say what it expected")
        except Exception as error:
            watch.demand(
                False, f"state_from_text must refuse with ValueError; {nonsense!r} raised {error!r}"
            )
        else:
            watch.demand(False, f"state_from_text must refuse {nonsense!r} with ValueError")


def _check_view(watch, states, actions, after, rng) -> None:
    """That every seat is told something of every position and of its own choices. Whether that is
    too much only tests of the game can tell."""
    game = watch.game
    for i in rng.permutation(len(states))[:200]:
        before, then = states[i].copy(), after[i].copy()
        over = before["player"] == TERMINAL
        for seat in (ONLOOKER, *range(game.num_players)):
            text = game.view.state_to_text(game.rules, before, seat)
            watch.demand(
                isinstance(text, str) and text, "view.state_to_text must give every seat a text"
            )
            if over:
                continue
            text = game.view.event_to_text(game.rules, before, int(actions[i]), then, seat)
            watch.demand(
                isinstance(text, str) and (text or seat == ONLOOKER or seat != before["player"]),
                "view.event_to_text must give a text, which is not empty for who has chosen",
            )
        watch.demand_rows(
            _same(before[None], states[i : i + 1]) & _same(then[None], after[i : i + 1]),
            "the words for a state must not change it",
            states[i:],
        )


def _slip(text: str, rng: np.random.Generator) -> str:
    """The text of a position with a character lost, doubled or put for another, or a line lost."""
    at = int(rng.integers(len(text)))
    kind = rng.integers(4)
    if kind == 0:
        return text[:at] + text[at + 1 :]
    if kind == 1:
        return text[: at + 1] + text[at:]
    if kind == 2:
        return text[:at] + text[rng.integers(len(text))] + text[at + 1 :]
    lines = text.splitlines()
    del lines[rng.integers(len(lines))]
    return "\n".join(lines)


def _check_slips(watch, states, rng, largest_return) -> None:
    """Reads texts that are almost those of positions. What is not refused must be a position: it is
    written and read again, and played to its end."""
    game = watch.game
    what = "state_from_text must refuse with ValueError what is no position"
    accepted = []
    for i in rng.integers(0, len(states), _SLIPS):
        text = _slip(game.state_to_text(game.rules, states[i].copy()), rng)
        try:
            state = game.state_from_text(game.rules, text)
        except ValueError:
            continue
        except Exception as error:
            watch.demand(False, f"{what}; it raised {error!r} for\n{text}")
        try:
            words = game.state_to_text(game.rules, state[0].copy())
            again = game.state_from_text(game.rules, words)
            read_back = _same(again, state).all()
        except Exception:
            read_back = False
        watch.demand(
            read_back, f"{what}; it took one that does not come back from its text:\n{text}"
        )
        accepted.append(state)
    if not accepted:
        return
    try:
        _play_on(watch, np.concatenate(accepted), rng, largest_return)
    except AssertionError as error:
        raise AssertionError(f"{error}\nThat position was read from a text: {what}") from error


def _play_on(watch, states, rng, largest_return) -> None:
    """Plays from positions in the middle of games and asserts what must hold there."""
    game = watch.game
    while len(states):
        watch.demand_rows(
            (states["ply"] >= 0) & (states["ply"] <= game.max_decisions),
            f"a game must be over after max_decisions ({game.max_decisions}) choices",
            states,
        )
        facts = watch.read(states)
        _check_position(watch, states, states["ply"], facts, largest_return)
        after = watch.step(states, _random_actions(game, states, facts, rng))
        states = after[states["player"] != TERMINAL]


def _check_action_types(watch) -> None:
    game = watch.game
    names, of = game.action_types
    watch.demand(
        isinstance(of, np.ndarray)
        and of.dtype == np.int8
        and of.shape == (game.num_actions,)
        and np.array_equal(np.unique(of), np.arange(len(names))),
        f"action_types.of must be int8 ({game.num_actions},) and name each of the "
        f"{len(names)} types",
    )
    for index, symmetry in enumerate(game.symmetries):
        watch.demand(
            np.array_equal(of[symmetry.action], of),
            f"an action and its image under symmetries[{index}] must be of one type",
        )


def _check_symmetry(watch, index: int, symmetry: Symmetry, seeds, rng) -> None:
    """Plays games and their images side by side, where the start is its own image."""
    game = watch.game
    name = f"symmetries[{index}]"
    for words, map_, size in (
        ("observation", symmetry.observation, game.observation_size),
        ("action", symmetry.action, game.num_actions),
    ):
        watch.demand(
            np.array_equal(np.sort(map_), np.arange(size)),
            f"{name}.{words} must be a permutation of 0..{size - 1}",
        )

    states = watch.init(seeds)
    views = watch.read(states)["observe"]
    states = states[(views[:, :, symmetry.observation] == views).all(axis=(1, 2))]
    images = states.copy()
    while len(states):
        facts, image = watch.read(states), watch.read(images)
        watch.demand_rows(
            states["player"] == images["player"], f"{name} must keep whose turn it is", states
        )
        watch.demand_rows(
            (image["observe"] == facts["observe"][:, :, symmetry.observation]).all(axis=(1, 2)),
            f"feature f of the image under {name} must be feature {name}.observation[f]",
            states,
        )
        watch.demand_rows(
            (image["legal_actions"][:, symmetry.action] == facts["legal_actions"]).all(axis=1),
            f"action a must be legal just where {name}.action[a] is legal in the image",
            states,
        )
        for kept in ("returns", "chance_probabilities"):
            watch.demand_rows(
                (image[kept] == facts[kept]).all(axis=1), f"{name} must keep {kept}", states
            )
        going_on = states["player"] != TERMINAL
        actions = _random_actions(game, states, facts, rng)
        mapped = np.where(
            states["player"] >= 0, symmetry.action[actions % game.num_actions], actions
        )
        states = watch.step(states, actions)[going_on]
        images = watch.step(images, mapped.astype(np.int32))[going_on]


def _ask_solver(watch, name: str, states: np.ndarray) -> np.ndarray:
    """What `solver.scores` or `solver.solvable` says, asked twice."""
    game = watch.game
    told = []
    for _ in range(2):
        given = states.copy()
        try:
            told.append(getattr(game.solver, name)(game.rules, given))
        except Exception as error:
            watch.demand(False, f"solver.{name} must never raise, and raised {error!r}")
        watch.demand(_same(given, states).all(), f"solver.{name} must leave the states as they are")
    kind, columns = (np.int16, (game.num_actions,)) if name == "scores" else (np.bool_, ())
    shape = (len(states), *columns)
    watch.demand(
        isinstance(told[0], np.ndarray) and told[0].dtype == kind and told[0].shape == shape,
        f"solver.{name} must give {np.dtype(kind)} {shape}",
    )
    watch.demand(_same(*told).all(), f"solver.{name} must be deterministic")
    return told[0]


def _check_solver(watch, states: np.ndarray, rng: np.random.Generator) -> None:
    """Compares the scores of positions with those of the positions one action later."""
    _ask_solver(watch, "scores", states[:0])
    solvable = _ask_solver(watch, "solvable", states)
    states = states[rng.permutation(np.flatnonzero(solvable))[:_SOLVED]]
    watch.demand(len(states) > 0, "solver.solvable must allow some positions; solver may be None")
    told = _ask_solver(watch, "scores", states)
    order = rng.permutation(len(states))
    watch.demand_rows(
        _same(_ask_solver(watch, "scores", states[order]), told[order]),
        "solver.scores must score each row by that row alone",
        states[order],
    )
    legal = watch.read(states)["legal_actions"]
    watch.demand_rows(
        ((told != ILLEGAL) == legal).all(axis=1),
        "solver.scores must be ILLEGAL where an action is not legal and nowhere else",
        states,
    )

    rows, actions = np.nonzero(legal)
    after = watch.step(states[rows], actions.astype(np.int32))
    movers, scores = states["player"][rows], told[rows, actions].astype(np.int64)
    # A score as the position one action later has it: what was paid, or its best score.
    over = after["player"] == TERMINAL
    paid = watch.read(after)["returns"][np.arange(len(rows)), movers]
    best = _ask_solver(watch, "scores", after).max(axis=1).astype(np.int64)
    later = np.where(over, paid, np.where(after["player"] == movers, best, -best))
    watch.demand_rows(
        np.sign(scores) == np.sign(later),
        "the sign of solver.scores must be that of the best score after the action, seen from the "
        "mover's side, or of what the rules pay if the action ends the game",
        states[rows],
    )
    # Sooner wins and later losses are larger, so actions come in the order of what follows them.
    for row in range(len(states)):
        some = (rows == row) & ~over
        if some.any():
            ahead = np.sign(scores[some][:, None] - scores[some])
            watch.demand_rows(
                (ahead == np.sign(later[some][:, None] - later[some])).all(axis=1),
                "solver.scores must order actions as the best scores after them do",
                states[row:],
            )
        ends = (rows == row) & over & (scores > 0)
        watch.demand_rows(
            np.array([not ends.any() or (scores[ends] == told[row].max()).all()]),
            "solver.scores must be largest where an action wins at once",
            states[row:],
        )


def _check_solution(watch, solution: Solution, largest_return: float) -> None:
    game = watch.game
    states, scores = solution.states, solution.scores
    afterstates, players, values = solution.afterstates, solution.players, solution.values
    for name, array, dtype, shape in (
        ("states", states, game.state_dtype, (len(states),)),
        ("scores", scores, np.dtype(np.int16), (len(states), game.num_actions)),
        ("afterstates", afterstates, game.state_dtype, (len(afterstates),)),
        ("players", players, np.dtype(np.int32), (len(afterstates),)),
        ("values", values, np.dtype(np.float32), (len(afterstates),)),
    ):
        watch.demand(
            array.dtype == dtype and array.shape == shape,
            f"solution.{name} must be {dtype} {shape}, got {array.dtype} {array.shape}",
        )
    labels = solution.labels
    watch.demand(
        len(labels) == len(afterstates) and len(set(labels)) == len(labels),
        "solution.labels must name every afterstate, each by another name",
    )
    watch.demand(len(states) > 0, "solution.states must not be empty; solution may be None")
    watch.demand_rows(
        (states["player"] >= 0) & (states["player"] < game.num_players),
        "solution.states must be decisions of a player",
        states,
    )
    legal = watch.read(states)["legal_actions"]
    watch.demand_rows(
        ((scores != ILLEGAL) == legal).all(axis=1),
        "solution.scores must be ILLEGAL where an action is not legal and nowhere else",
        states,
    )
    if game.solver is not None:
        known = np.flatnonzero(_ask_solver(watch, "solvable", states))[:_SOLVED]
        watch.demand_rows(
            _same(_ask_solver(watch, "scores", states[known]), scores[known]),
            "solution.scores must be those of the solver",
            states[known],
        )
    if not len(afterstates):
        return
    watch.demand_rows(
        (players >= 0) & (players < game.num_players),
        "solution.players must be players",
        afterstates,
    )
    watch.demand_rows(
        np.abs(values) <= largest_return,
        f"solution.values must lie within -{largest_return}..{largest_return}",
        afterstates,
    )
    facts = watch.read(afterstates)
    rows = np.arange(len(afterstates))
    watch.demand_rows(
        (afterstates["player"] != TERMINAL) | (values == facts["returns"][rows, players]),
        "solution.values must be what the rules pay where the game is over",
        afterstates,
    )

    # A position is known by what the player who has just moved sees of it.
    known: dict[bytes, float] = {}
    for view, value in zip(facts["observe"][rows, players], values, strict=True):
        watch.demand(
            known.setdefault(view.tobytes(), float(value)) == value,
            "solution.values must be equal for afterstates that look equal to the player",
        )
    found, best = _best_by_value(watch, states, states["player"], known)
    watch.demand_rows(
        ~found | (best >= (scores == scores.max(axis=1, keepdims=True))).all(axis=1),
        "solution.scores must be largest only where the afterstate has the best value",
        states,
    )
    if game.zero_sum:
        running = afterstates["player"] >= 0
        movers = afterstates["player"][running]
        found, best = _best_by_value(watch, afterstates[running], movers, known, largest=True)
        expected = np.where(movers == players[running], best, -best)
        watch.demand_rows(
            ~found | (expected == values[running]),
            "solution.values must be the best that the next player can reach",
            afterstates[running],
        )


def _best_by_value(watch, states, movers, known, largest=False):
    """Steps every legal action and looks the results up in `known`.

    Returns (found, best): found bool [N], whether all were known; best bool [N, A], the actions of
    the largest value, or float [N], that value itself.
    """
    game = watch.game
    legal = watch.read(states)["legal_actions"]
    rows, actions = np.nonzero(legal)
    after = watch.step(states[rows], actions.astype(np.int32))
    views = watch.read(after)["observe"][np.arange(len(rows)), movers[rows]]
    q = np.full((len(states), game.num_actions), -np.inf)
    q[rows, actions] = [known.get(view.tobytes(), np.nan) for view in views]
    top = q.max(axis=1)
    return ~np.isnan(q).any(axis=1), top if largest else legal & (q == top[:, None])
