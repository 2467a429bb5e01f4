"""Shared by the tests of the pipeline: two small games and a composed configuration."""

from typing import NamedTuple

import hydra
import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from omegaconf import OmegaConf

from games import CHANCE, TERMINAL, Game, make_game
from games.game import HEADER
from pipeline.config import CONF

# The same examples in every run, and no failure because a machine is slow.
settings.register_profile(
    "pipeline",
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("pipeline")


@pytest.fixture(scope="session")
def sumto12() -> Game:
    """SumTo12 with steps of 1 to 3: the sums 4 and 8 win, and there are 13 positions in all."""
    return make_game("sumto", target=12, max_step=3)


@pytest.fixture(scope="session")
def compose():
    """A function: Hydra's overrides -> the composed configuration, as plain dicts."""

    def composed(*overrides: str, name: str = "config") -> dict:
        with hydra.initialize_config_dir(config_dir=CONF, version_base="1.3"):
            config = hydra.compose(name, overrides=list(overrides))
        return OmegaConf.to_container(config, resolve=True)

    return composed


# A game with all that the contract allows: three players, chance, rewards in between, forced
# decisions, a start that the seed decides, and kernels that are plain NumPy.
#
# Nine times, in turn: chance draws a number (1, 2, 3 with 1/2, 1/3, 1/6), then the player keeps it
# (action 0), adds it to the pot (1) or takes a point from the next player (2, if there is one). Who
# draws a 3 must keep it. At the end the pot goes to whoever has the fewest points, the first of
# these. A point is worth 1/16.

_DICE = np.dtype(
    [*HEADER, ("turn", np.int32), ("drawn", np.int32), ("pot", np.int32), ("points", np.int32, 3)]
)
_TURNS = 9


class _DiceRules(NamedTuple):
    worth: float


def _init(rules, states, seeds):
    states[:] = np.zeros(1, _DICE)
    states["player"] = CHANCE
    states["turn"] = seeds % 3


def _next_points(states):
    return states["points"][np.arange(len(states)), (states["turn"] + 1) % 3]


def _legal_actions(rules, states, mask):
    deciding = states["player"] >= 0
    free = deciding & (states["drawn"] < 3)
    mask[:, 0] = deciding
    mask[:, 1] = free
    mask[:, 2] = free & (_next_points(states) > 0)


def _chance_probabilities(rules, states, out):
    out[:] = np.where(states["player"][:, None] == CHANCE, [1 / 2, 1 / 3, 1 / 6], 0)


def _step(rules, states, actions):
    by_chance = states["player"] == CHANCE
    deciding = states["player"] >= 0
    states["ply"] += by_chance | deciding
    states["drawn"][by_chance] = actions[by_chance] + 1
    states["player"][by_chance] = states["turn"][by_chance]
    for row in np.flatnonzero(deciding):
        state = states[row]
        turn = state["turn"]
        if actions[row] == 0:
            state["points"][turn] += state["drawn"]
        elif actions[row] == 1:
            state["pot"] += state["drawn"]
        else:
            state["points"][turn] += 1
            state["points"][(turn + 1) % 3] -= 1
        state["drawn"] = 0
        state["turn"] = (turn + 1) % 3
        state["player"] = CHANCE
        if state["ply"] == 2 * _TURNS:
            state["player"] = TERMINAL
            state["points"][np.argmin(state["points"])] += state["pot"]
            state["pot"] = 0


def _observe(rules, states, players, out):
    rows = np.arange(len(states))
    for ahead in range(3):
        out[:, ahead] = states["points"][rows, (players + ahead) % 3] * rules.worth
    out[:, 3] = states["pot"] * rules.worth
    out[:, 4] = states["drawn"]
    out[:, 5] = states["turn"] == players


def _returns(rules, states, out):
    out[:] = states["points"] * rules.worth


def _to_text(rules, state) -> str:
    return " ".join(f"{name} {np.asarray(state[name]).tolist()}" for name in _DICE.names)


def _from_text(rules, text: str) -> np.ndarray:
    state = np.zeros(1, _DICE)
    try:
        values = text.replace("[", "").replace("]", "").replace(",", "").split()
        for name in _DICE.names:
            at = values.index(name) + 1
            state[name] = [int(v) for v in values[at : at + 3]] if name == "points" else values[at]
    except (ValueError, IndexError, OverflowError) as error:
        raise ValueError(f"{text!r} is no position; expected what state_to_text writes") from error
    player, ply, turn, drawn, pot, points = state[0].item()
    over, rolling = ply == 2 * _TURNS, ply % 2 == 0
    possible = (
        0 <= ply <= 2 * _TURNS
        and 0 <= turn < 3
        and player == (TERMINAL if over else CHANCE if rolling else turn)
        and (drawn == 0 if rolling else 1 <= drawn <= 3)
        and min(pot, *points) >= 0
        and pot + sum(points) <= 3 * (ply // 2)
        and not (over and pot)
    )
    if not possible:
        raise ValueError(f"{text!r} is no position that a game can reach")
    return state


@pytest.fixture(scope="session")
def dice() -> Game:
    """The game described above."""
    return Game(
        name="dice",
        params={},
        rules=_DiceRules(1 / 16),
        num_players=3,
        num_actions=3,
        state_dtype=_DICE,
        observation_names=("mine", "next", "second next", "pot", "drawn", "my turn"),
        max_decisions=2 * _TURNS,
        init=_init,
        legal_actions=_legal_actions,
        step=_step,
        observe=_observe,
        returns=_returns,
        state_to_text=_to_text,
        state_from_text=_from_text,
        action_to_text=lambda rules, action: ("keep", "pot", "take")[action],
        state_to_json=lambda rules, state: {
            name: np.asarray(state[name]).tolist() for name in _DICE.names
        },
        num_outcomes=3,
        chance_probabilities=_chance_probabilities,
    )
