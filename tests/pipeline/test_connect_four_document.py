"""The faults of the Connect Four document's notebook that concern learning: what is right instead.

Numbers as in docs/experiments/connect_four.md; those that concern the rules (7 to 12 and 15) are in
tests/games/test_connect_four_faults.py.
"""

from typing import Any

import numpy as np
import pytest
from test_q_network import settings_of
from test_value_network import random_window, window_of

from games import make_game
from pipeline.config import to_config
from pipeline.errors import ConfigError
from pipeline.learners import q_network
from pipeline.learners.q_network import fit, initial
from pipeline.policies.scripted import WinOrRandom
from pipeline.run import Run
from pipeline.streams import Streams, game_keys
from pipeline.traces import read_shard
from pipeline.train import train

FOUR = make_game("k_in_a_row", width=7, height=6, k=4)
# X stacks column 0 and wins with its fourth disc; O plays 1, 2, 3.
STACK = [0, 1, 0, 2, 0, 3, 0]


def document(**changes: Any):
    return settings_of(
        targets="monte_carlo", discount=[0.9], hidden=[42, 21], loss="mae", **changes
    )


@pytest.fixture
def given(monkeypatch):
    """The rows that training is given, one entry per fit."""
    rows_given = []

    def note(network, rows, held_out, options, seed, device, curve):
        rows_given.append(rows)
        curve.train.append(0.0)
        return network

    monkeypatch.setattr(q_network, "train", note)
    return rows_given


def test_fault_1_every_input_is_the_position_before_its_move(given):
    """The notebook kept references to one grid, so that all inputs were the final board."""
    window = window_of(FOUR, [STACK])
    fit(FOUR, window, initial(FOUR, document(), 1), document(), 1)
    state = FOUR.state_from_text(FOUR.rules, "")
    for ply, column in enumerate(STACK):
        assert (window.traces.state[ply] == state[0]).all()
        seen = FOUR.observations_of(state, state["player"])[0]
        assert given[0].inputs[ply].tolist() == seen.tolist()
        assert given[0].inputs[ply].sum() == ply  # so many discs lie
        state = FOUR.after(state, [column])


def test_fault_2_labels_are_in_the_order_of_play(given):
    """The notebook returned them newest first. Here the last moves are worth most."""
    fit(FOUR, window_of(FOUR, [STACK]), initial(FOUR, document(), 1), document(), 1)
    x, o = given[0].targets[0::2], given[0].targets[1::2]
    assert x == pytest.approx([0.9**3, 0.9**2, 0.9, 1.0])
    assert o == pytest.approx([-(0.9**2), -0.9, -1.0])


def test_fault_3_a_reward_before_the_end_reaches_learning_and_is_no_more_than_a_win(given, compose):
    """The notebook overwrote its 5 for a block, 173 of 173 times; had it counted, five wins."""
    game = [0, 1, 0, 2, 0, 0, 3, 1, 4, 1, 5, 0, 6]  # O blocks column 0 at ply 5
    for shaping in ({}, {"shaping": "block", "shaping_reward": 0.2}):
        config = document(**shaping)
        fit(FOUR, window_of(FOUR, [game]), initial(FOUR, config, 1), config, 1)
    assert given[1].targets[5] - given[0].targets[5] == pytest.approx(0.2)
    overrides = ["learner=q_network", "game=connect_four", "learner.shaping=block"]
    with pytest.raises(ConfigError, match=r"shaping_reward must be in 0.0..1.0, got 5.0"):
        to_config(compose(*overrides, "learner.shaping_reward=5"))


def test_fault_4_only_the_value_of_the_move_that_was_played_is_taught():
    """The notebook's target was its own prediction plus the reward, and its own numbers for the
    moves not played: it drifted without bound."""
    window = window_of(FOUR, [STACK] * 50)
    config = document(epochs=20, learning_rate=[1e-2], optimizer="adam")
    previous = initial(FOUR, config, 1)
    policy, _ = fit(FOUR, window, previous, config, 1)
    unplayed = [4, 5, 6]
    after, before = policy.network.weights[-1], previous.network.weights[-1]
    assert (after[:, unplayed] == before[:, unplayed]).all()
    # The label is the return and not prediction plus return: teaching it again changes nothing.
    for _ in range(5):
        policy, _ = fit(FOUR, window, policy, config, 1)
    q = policy.action_values(FOUR, window.traces.state[:7], np.ones((7, 7), np.bool_))
    taught = q[np.arange(7), STACK]
    assert taught == pytest.approx([0.729, -0.81, 0.81, -0.9, 0.9, -1.0, 1.0], abs=0.15)


def test_fault_5_whoever_moves_sees_mine_and_theirs():
    """The notebook trained the network as one player and let it play as the other."""
    states = random_window(FOUR, 30).traces.state
    mover = FOUR.observations_of(states, states["player"]).reshape(-1, 2, 42)
    other = FOUR.observations_of(states, 1 - states["player"]).reshape(-1, 2, 42)
    assert (mover == other[:, ::-1]).all()
    cells = [FOUR.state_to_json(FOUR.rules, state)["cells"] for state in states]
    owners = np.array([[-1 if c is None else c for row in board for c in row] for board in cells])
    assert (mover[:, 0] == (owners == states["player"][:, None])).all()
    assert (mover[:, 1] == (owners == 1 - states["player"][:, None])).all()


def test_fault_6_every_generation_sees_the_opponents_discs(given):
    """The notebook filled both planes of its third agent with the same player."""
    for generation in (1, 2, 3):
        window = random_window(FOUR, 30, seed=generation)
        window.generation[:] = generation
        fit(FOUR, window, initial(FOUR, document(), 1), document(), 1)
        mine, theirs = given[-1].inputs.reshape(-1, 2, 42).sum(2).T
        ply = window.traces.ply
        assert mine.tolist() == (ply // 2).tolist()
        assert theirs.tolist() == ((ply + 1) // 2).tolist()


def test_fault_13_the_opponent_looks_for_a_win_in_every_column():
    """Its indentation lost, the notebook's random opponent looked at column 0 alone."""
    for column in range(7):
        other = (column + 1) % 7
        text = "".join(str(c) for c in [column, other, column, other, column, (column + 3) % 7])
        states = np.repeat(FOUR.state_from_text(FOUR.rules, text), 50)
        keys = game_keys(1, "test", 1, np.arange(50))
        decisions = WinOrRandom().act(
            FOUR, states, FOUR.legal_of(states), Streams(keys, states["ply"])
        )
        assert (decisions.actions == column).all()


def test_fault_14_both_seats_teach_and_the_previous_agent_plays_its_best(compose, tmp_path):
    """The notebook learned from the first seat alone. A whole run of its schedule, in small."""
    config = to_config(
        compose(
            "experiment=connect_four_q",
            "cluster=serial",
            "tracking=none",
            f"root={tmp_path}",
            "run=document",
            "selfplay.games=60",
            "selfplay.games_per_shard=60",
            "learner.epochs=2",
            "evaluation.games=4",
        )
    )
    train(config)
    with Run.start(config) as run:
        for generation in (1, 2, 3):
            [entry] = run.manifest(generation)["shards"]
            shard = read_shard(run.storage, FOUR, entry["path"], entry["sha256"])
            names = shard.metadata["policies"]
            previous = "win_or_random" if generation == 1 else run.policy(generation - 1).name
            assert names == [run.policy(0).name, previous]
            traces = shard.traces
            assert set(zip(traces.player, traces.policy, strict=True)) == {
                (player, policy) for player in (0, 1) for policy in (0, 1)
            }
            epsilon = [1.0, 0.9, 0.8][generation - 1]
            assert traces.explored[traces.policy == 0].mean() == pytest.approx(epsilon, abs=0.05)
            assert not traces.explored[traces.policy == 1].any()
            assert run.records()[generation]["learner"]["rows"] == len(traces)
