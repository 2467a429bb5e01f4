"""check_game passes every game, and fails every game that breaks one sentence of the contract."""

import dataclasses
from typing import NamedTuple

import numpy as np
import pytest

from games import CHANCE, GAMES, ILLEGAL, TERMINAL, Game, Solver, Symmetry, View, make_game
from games.check import check_game
from games.game import HEADER, ActionTypes

SETTINGS = [
    *((name, {}) for name in GAMES if name != "catan"),
    ("catan", {"turn_limit": 40, "board": "beginner"}),
    ("sumto", {"target": 200, "max_step": 7}),
    ("sumto", {"target": 13, "max_step": 12}),
    ("sumto", {"target": 2, "max_step": 1}),
    ("sumto", {"target": 40, "max_step": 1}),
    ("k_in_a_row", {"width": 4, "height": 4, "k": 3}),
    ("k_in_a_row", {"width": 9, "height": 1, "k": 3}),
    ("k_in_a_row", {"width": 1, "height": 9, "k": 3}),
    ("k_in_a_row", {"width": 1, "height": 2, "k": 2}),
    ("k_in_a_row", {"width": 31, "height": 1, "k": 31}),
    ("k_in_a_row", {"width": 32, "height": 1, "k": 2}),
    ("k_in_a_row", {"width": 16, "height": 3, "k": 4}),
    ("k_in_a_row", {"width": 2, "height": 31, "k": 31}),
    ("k_in_a_row", {"width": 8, "height": 7, "k": 5}),
    ("k_in_a_row", {"width": 6, "height": 5, "k": 6}),
    ("risk", {"amounts": "1-9,all", "adjudicate": "nodes_then_armies", "max_turns": 20}),
    ("catan", {"players": 2, "points_to_win": 15, "discard_limit": 9, "turn_limit": 60}),
    ("catan", {"players": 3, "trading": "bank", "observation": "raw", "turn_limit": 40}),
    ("catan", {"counter_offers": True, "friendly_robber": True, "turn_limit": 20}),
]


@pytest.mark.parametrize(("name", "params"), SETTINGS)
def test_every_game_keeps_the_contract(name, params):
    check_game(make_game(name, **params), games=12 if name == "catan" else 200)


# ---- a game of chance for three players, in plain NumPy

DICE = np.dtype([*HEADER, ("turn", np.int8), ("roller", np.int8), ("points", np.int8, 3)])
ODDS = np.array([0.5, 0.3, 0.2], np.float32)


class DiceRules(NamedTuple):
    rounds: int


def dice_init(rules, states, seeds):
    """In turn each player takes one point, or rolls for 0, 1 or 2. The seed says who begins."""
    for name in DICE.names:
        states[name] = 0
    states["player"] = seeds % 3


def dice_legal(rules, states, mask):
    mask[:] = (states["player"] >= 0)[:, None]


def dice_chance(rules, states, out):
    out[:] = np.where((states["player"] == CHANCE)[:, None], ODDS, 0)


def dice_step(rules, states, actions):
    for i in range(len(states)):
        state, action = states[i], actions[i]
        if state["player"] == TERMINAL:
            continue
        state["ply"] += 1
        if state["player"] != CHANCE:
            state["roller"] = state["player"]
            if action == 1:
                state["player"] = CHANCE
                continue
            action = 1
        who = state["roller"]
        state["points"][who] += action
        state["turn"] += 1
        state["player"] = TERMINAL if state["turn"] == 3 * rules.rounds else (who + 1) % 3


def dice_observe(rules, states, players, out):
    points = states["points"]
    out[:, 0] = points[np.arange(len(states)), players]
    out[:, 1] = points.sum(axis=1)
    out[:, 2] = states["turn"]


def dice_returns(rules, states, out):
    points = states["points"] == states["points"].max(axis=1, keepdims=True)
    out[:] = np.where((states["player"] == TERMINAL)[:, None], np.where(points, 1, -1), 0)


def dice_text(rules, state):
    fields = [*state.item()[:4], *state["points"]]
    return " ".join(str(int(field)) for field in fields)


def dice_from_text(rules, text):
    fields = text.split()
    if len(fields) != 7:
        raise ValueError(f"expected seven numbers, got {text!r}")
    player, ply, turn, roller, *points = map(int, fields)
    possible = (
        0 <= turn <= 3 * rules.rounds
        and (player == TERMINAL) == (turn == 3 * rules.rounds)
        and player in (CHANCE, TERMINAL, 0, 1, 2)
        and turn <= ply <= 2 * turn + (player == CHANCE)
        and roller in (0, 1, 2)
        and min(points) >= 0
        and sum(points) <= 2 * turn
    )
    if not possible:
        raise ValueError(f"expected a position that a game can reach, got {text!r}")
    return np.array([(player, ply, turn, roller, tuple(points))], DICE)


def dice_from_any_text(rules, text):
    """Any seven numbers, as a first draft of a game would have it."""
    fields = text.split()
    if len(fields) != 7:
        raise ValueError(f"expected seven numbers, got {text!r}")
    *others, a, b, c = map(int, fields)
    return np.array([(*others, (a, b, c))], DICE)


def dice_game(**changes):
    game = Game(
        name="dice",
        params={"rounds": 2},
        rules=DiceRules(2),
        num_players=3,
        num_actions=2,
        state_dtype=DICE,
        observation_names=("my points", "all points", "turn"),
        max_decisions=12,
        init=dice_init,
        legal_actions=dice_legal,
        step=dice_step,
        observe=dice_observe,
        returns=dice_returns,
        state_to_text=dice_text,
        state_from_text=dice_from_text,
        action_to_text=lambda rules, action: ("take", "roll")[action],
        state_to_json=lambda rules, state: {"points": state["points"].tolist()},
        num_outcomes=3,
        chance_probabilities=dice_chance,
    )
    return dataclasses.replace(game, **changes)


def test_a_game_of_chance_for_three_keeps_the_contract():
    check_game(dice_game(), games=60)


# ---- broken games

ROW = make_game("k_in_a_row", width=4, height=4, k=3)
SUM = make_game("sumto", target=23, max_step=4)
DICES = dice_game()


def legal_after_the_end(rules, states, mask):
    running = states.copy()
    running["player"] = 0
    ROW.legal_actions(rules, running, mask)


def no_legal_action_late(rules, states, mask):
    ROW.legal_actions(rules, states, mask)
    mask[states["ply"] == 9] = False


def legal_by_the_batch(rules, states, mask):
    ROW.legal_actions(rules, states, mask)
    if len(mask) and not mask[0, 0]:  # what is illegal in the first row is in the others
        mask[mask.sum(axis=1) > 1, 0] = False


def legal_half_written(rules, states, mask):
    fresh = np.empty_like(mask)
    ROW.legal_actions(rules, states, fresh)
    mask[fresh] = True


def step_plays_on(rules, states, actions):
    over = states["player"] == TERMINAL
    ROW.step(rules, states, actions)
    states["ply"] += over


def step_counts_twice(rules, states, actions):
    twice = (states["ply"] == 7) & (states["player"] != TERMINAL)
    ROW.step(rules, states, actions)
    states["ply"] += twice


def step_by_neighbour(rules, states, actions):
    ROW.step(rules, states, actions)
    if len(states) > 1 and states["player"][-1] == TERMINAL:
        states["mover"][0] = states["mover"][-1]


def step_at_random(rules, states, actions):
    ROW.step(rules, states, np.random.default_rng().permutation(actions))


def step_edits_actions(rules, states, actions):
    ROW.step(rules, states, actions)
    actions += 1


def step_raises(rules, states, actions):
    ROW.step(rules, states, actions)
    if (states["ply"] > 11).any():
        raise IndexError("no such column")


def unknown_player(rules, states, actions):
    ROW.step(rules, states, actions)
    states["player"][states["ply"] == 3] = 2


def init_leaves_a_field(rules, states, seeds):
    states["player"] = states["ply"] = states["mover"] = 0


def init_by_row(rules, states, seeds):
    ROW.init(rules, states, seeds)
    states["player"] = np.arange(len(states)) % 2


def observe_my_turn_only(rules, states, players, out):
    ROW.observe(rules, states, players, out)
    out[players != states["player"]] = np.nan


def observe_edits_states(rules, states, players, out):
    ROW.observe(rules, states, players, out)
    states["ply"] += 1


def returns_of_the_winner(rules, states, out):
    ROW.returns(rules, states, out)
    np.maximum(out, 0, out=out)


def returns_in_hundreds(rules, states, out):
    ROW.returns(rules, states, out)
    out *= 100


def returns_from_the_start(rules, states, out):
    ROW.returns(rules, states, out)
    out += np.array([0.5, -0.5], np.float32) * (states["ply"] == 0)[:, None]


def text_without_ply(rules, text):
    state = SUM.state_from_text(rules, text)
    state["ply"] = np.minimum(state["ply"], 5)
    return state


def text_reads_anything(rules, text):
    try:
        return SUM.state_from_text(rules, text)
    except ValueError:
        return np.zeros(1, SUM.state_dtype)


def text_raises_key_error(rules, text):
    return SUM.state_from_text(rules, {"?": text}.get(text) or {"sum": text}[text[:3]])


def script_of_fours(rules, states, mask, uniforms, actions):
    actions[:] = 3  # too much near the target


def script_by_row(rules, states, mask, uniforms, actions):
    actions[:] = 0
    actions[: len(actions) // 2] = mask[: len(actions) // 2].sum(axis=1) - 1


def chance_of_nine_tenths(rules, states, out):
    dice_chance(rules, states, out)
    out *= 0.9


def chance_at_every_turn(rules, states, out):
    out[:] = ODDS


def chance_below_zero(rules, states, out):
    dice_chance(rules, states, out)
    out += np.where(out > 0, np.array([0.5, 0, -0.5], np.float32), 0)


def no_outcomes(rules, states, out):
    pass


def dice_legal_for_chance(rules, states, mask):
    mask[:] = (states["player"] != TERMINAL)[:, None]


def dice_step_at_random(rules, states, actions):
    rolled = np.random.default_rng().integers(0, 3, len(states))
    dice_step(rules, states, np.where(states["player"] == CHANCE, rolled, actions))


def first_changed(array, value):
    array = array.copy()
    array[0] = value
    return array


def solver(change):
    """The solver of ROW with `change(scores, states)` done to what it says."""
    return Solver(
        lambda rules, states: change(ROW.solver.scores(rules, states), states), ROW.solver.solvable
    )


def scores_at_random(scores, states):
    return np.random.default_rng().permutation(scores.reshape(-1)).reshape(scores.shape)


def scores_edit_states(scores, states):
    states["ply"] += 1
    return scores


def scores_by_row(scores, states):
    return np.where(scores > 0, scores + (np.arange(len(scores)) < 9)[:, None], scores).astype("i2")


def scores_raise(scores, states):
    raise KeyError("score")


def scores_of_full_columns(scores, states):
    return np.maximum(scores, -100)


def scores_of_the_other(scores, states):
    return np.where(scores == ILLEGAL, scores, -scores)


def scores_without_speed(scores, states):
    undecided = (scores == ILLEGAL) | (scores == 0)
    return np.where(undecided, scores, 10 * np.sign(scores) - np.arange(4)).astype(np.int16)


def scores_of_the_patient(scores, states):
    """Among wins a later one is larger."""
    return np.where(scores > 0, 20 - scores, scores).astype(np.int16)


GIVEN = SUM.solution()
MIRROR = ROW.symmetries[0]
SIDES = np.array([0, 0, 1, 1], np.int8)
CELLS = np.arange(ROW.observation_size)
HEADLESS = np.dtype([("ply", np.int32), ("player", np.int32), ("sum", np.int32)])
PADDED = np.dtype([*HEADER, ("a", np.int8), ("b", np.int32)], align=True)

BROKEN = [
    (ROW, {"legal_actions": legal_after_the_end}, "all False where chance decides and after"),
    (ROW, {"legal_actions": no_legal_action_late}, "leave a player at least one action"),
    (ROW, {"legal_actions": legal_by_the_batch}, "legal_actions must treat each row by that row"),
    (ROW, {"legal_actions": legal_half_written}, "legal_actions must be deterministic and write"),
    (ROW, {"step": step_plays_on}, "step must leave finished rows alone"),
    (ROW, {"step": step_counts_twice}, "step must raise ply by one"),
    (ROW, {"step": step_by_neighbour}, "step must treat each row by that row alone"),
    (ROW, {"step": step_at_random}, "step must be deterministic"),
    (ROW, {"step": step_edits_actions}, "step must leave the arrays that it only reads"),
    (ROW, {"step": step_raises}, "step must never raise, and raised IndexError"),
    (ROW, {"step": unknown_player}, r"player must be 0\.\.1, CHANCE or TERMINAL"),
    (ROW, {"init": init_leaves_a_field}, "init must be deterministic and write every entry"),
    (ROW, {"init": init_by_row}, "init must depend on the seed of the row and on nothing else"),
    (ROW, {"observe": observe_my_turn_only}, "finite numbers, for every player"),
    (ROW, {"observe": observe_edits_states}, "observe must leave the arrays that it only reads"),
    (ROW, {"observation_names": ROW.observation_names[:-1]}, "must not write past its array"),
    (ROW, {"observation_names": (*ROW.observation_names, "more")}, "observe must be determin"),
    (ROW, {"observation_names": 32 * ("cell",)}, "observation_names must name every feature"),
    (ROW, {"returns": returns_of_the_winner}, "sum to 0 in a game declared zero_sum"),
    (ROW, {"returns": returns_in_hundreds}, "returns must lie within"),
    (ROW, {"returns": returns_from_the_start}, "returns must be 0 at the start"),
    (ROW, {"max_decisions": 12}, r"over after max_decisions \(12\) choices"),
    (ROW, {"num_players": 3}, "zero_sum is for games of two players"),
    (ROW, {"rules": (4, 4, 3)}, "rules must be a NamedTuple"),
    (ROW, {"params": {"k": np.int64(3)}}, "params must be plain values"),
    (ROW, {"num_actions": 0}, "num_actions must be an int of at least 1, got 0"),
    (ROW, {"symmetries": (Symmetry(CELLS, MIRROR.action),)}, r"feature f of the image under symm"),
    (ROW, {"symmetries": (Symmetry(MIRROR.observation, np.arange(4)),)}, r"symmetries\[0\]"),
    (ROW, {"symmetries": (Symmetry(CELLS * 0, MIRROR.action),)}, "observation must be a perm"),
    (ROW, {"action_types": ActionTypes(("a", "b"), np.zeros(4, np.int8))}, "name each of the 2"),
    (ROW, {"action_types": ActionTypes(("a",), np.zeros(3, np.int8))}, r"must be int8 \(4,\)"),
    (ROW, {"action_types": ActionTypes(("a", "b"), SIDES)}, r"symmetries\[0\] must be of one type"),
    (SUM, {"state_dtype": HEADLESS}, "state_dtype must begin with HEADER"),
    (SUM, {"state_dtype": np.dtype([*HEADER, ("o", object)])}, "no Python objects"),
    (SUM, {"state_dtype": PADDED}, "state_dtype must have no padding"),
    (SUM, {"action_to_text": lambda rules, action: f"+{action % 3}"}, "a text of its own"),
    (SUM, {"state_from_text": text_without_ply}, "must read back, bit for bit"),
    (SUM, {"state_from_text": text_reads_anything}, r"must refuse '\?' with ValueError"),
    (SUM, {"state_from_text": text_raises_key_error}, "must refuse with ValueError"),
    (SUM, {"state_to_text": lambda rules, state: "lost"}, "must read what state_to_text wrote"),
    (SUM, {"state_to_json": lambda rules, state: {"sum": state["sum"]}}, "what JSON can hold"),
    (SUM, {"scripted": {"fours": script_of_fours}}, "player fours must choose a legal action"),
    (SUM, {"scripted": {"by row": script_by_row}}, "by row must decide each row by that row"),
    (SUM, {"view": View(lambda *_: "", lambda *_: "+1")}, "view.state_to_text must give every"),
    (SUM, {"view": View(lambda *_: "sum", lambda *_: "")}, "view.event_to_text must give a text"),
    (SUM, {"state_to_svg": lambda *_: "a picture"}, "state_to_svg must give a text that begins"),
    (SUM, {"baselines": ("nobody",)}, "baselines must be scripted players"),
    (ROW, {"zero_sum": False}, "a solver is for zero_sum games without chance"),
    (ROW, {"solver": solver(lambda scores, states: scores.astype(np.int32))}, "give int16"),
    (ROW, {"solver": solver(lambda scores, states: scores[:, :3])}, "must give int16"),
    (ROW, {"solver": solver(scores_at_random)}, "solver.scores must be deterministic"),
    (ROW, {"solver": solver(scores_edit_states)}, "solver.scores must leave the states as they"),
    (ROW, {"solver": solver(scores_by_row)}, "solver.scores must score each row by that row"),
    (ROW, {"solver": solver(scores_raise)}, "solver.scores must never raise, and raised KeyErr"),
    (ROW, {"solver": solver(scores_of_full_columns)}, "scores must be ILLEGAL where an action is"),
    (ROW, {"solver": solver(scores_of_the_other)}, "the sign of solver.scores must be that of"),
    (ROW, {"solver": solver(scores_without_speed)}, "solver.scores must order actions as the bes"),
    (ROW, {"solver": solver(scores_of_the_patient)}, "must (order actions|be largest where an)"),
    (
        ROW,
        {"solver": Solver(ROW.solver.scores, lambda rules, states: states["ply"] < 0)},
        "solver.solvable must allow some positions",
    ),
    (
        SUM,
        {"solution": lambda: GIVEN._replace(scores=-GIVEN.scores)},
        "must be those of the solver",
    ),
    (
        SUM,
        {"solver": None, "solution": lambda: GIVEN._replace(scores=-GIVEN.scores)},
        "must be largest only where the afterstate has the best value",
    ),
    (
        SUM,
        {"solution": lambda: GIVEN._replace(scores=first_changed(GIVEN.scores, ILLEGAL))},
        "solution.scores must be ILLEGAL where an action is not legal",
    ),
    (
        SUM,
        {"solution": lambda: GIVEN._replace(scores=GIVEN.scores.astype(np.int32))},
        "solution.scores must be int16",
    ),
    (
        SUM,
        {"solution": lambda: GIVEN._replace(values=first_changed(GIVEN.values, 0))},
        "the best that the next player can reach",
    ),
    (SUM, {"solution": lambda: GIVEN._replace(values=-GIVEN.values)}, "what the rules pay"),
    (SUM, {"solution": lambda: GIVEN._replace(labels=GIVEN.labels[1:])}, "name every afterstate"),
    (DICES, {"chance_probabilities": chance_of_nine_tenths}, "must sum to 1 where chance decides"),
    (DICES, {"chance_probabilities": chance_at_every_turn}, "be 0 where chance does not decide"),
    (DICES, {"chance_probabilities": chance_below_zero}, "must not be negative"),
    (DICES, {"chance_probabilities": no_outcomes, "num_outcomes": 0}, "needs num_outcomes"),
    (DICES, {"legal_actions": dice_legal_for_chance}, "all False where chance decides"),
    (DICES, {"step": dice_step_at_random}, "step must be deterministic"),
    (
        DICES,
        {"outcome_to_text": lambda rules, state, outcome: "a die"},
        "outcome a text of its own",
    ),
    (DICES, {"state_from_text": dice_from_any_text}, "(?s:.*)state_from_text must refuse"),
    (DICES, {"zero_sum": True}, "zero_sum is for games of two players"),
    (DICES, {"max_decisions": 8}, r"over after max_decisions \(8\) choices"),
]


@pytest.mark.parametrize(("game", "changes", "message"), BROKEN)
def test_a_broken_game_is_caught(game, changes, message):
    broken = dataclasses.replace(game, **changes)
    with pytest.raises(AssertionError, match=f"game {game.name} .*{message}"):
        check_game(broken, games=60)
