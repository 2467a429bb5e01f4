"""Labels by hand, and against their definitions in plain Python."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from games import make_game
from pipeline.policies.base import Decisions
from pipeline.selfplay import play_games
from pipeline.streams import game_keys
from pipeline.targets import monte_carlo_targets, next_own_decision, one_step_targets


def floats(values) -> np.ndarray:
    return np.array(values, np.float32)


class Playing:
    """Leads to the given sums, one after the other."""

    def __init__(self, sums):
        self.following = dict(zip([0, *sums], sums, strict=False))

    def act(self, game, states, legal, rng):
        steps = [self.following[total] - total for total in states["sum"].tolist()]
        nothing = np.full(len(states), np.nan, np.float32)
        return Decisions(
            np.array(steps, np.int32) - 1, nothing, nothing, np.zeros(len(states), np.bool_)
        )


def test_the_example_of_the_sumto100_document():
    """The second player wins; the first one's last step reached 97 (-1) and, three of its own
    steps before, 73 (-gamma^3). "When a game ends with a win for the agent, the corresponding
    states get similarly discounted positive values." The sums between are ours.
    """
    sums = [9, 18, 27, 36, 45, 54, 63, 64, 73, 75, 80, 81, 86, 91, 97, 100]
    game = make_game("sumto")
    _, traces = play_games(
        game, [Playing(sums)], np.zeros((1, 2), int), game_keys(1, "selfplay", 1, [0])
    )
    gamma = 0.98
    labels = monte_carlo_targets(traces.game, traces.player, traces.reward, gamma)
    reached = dict(zip((traces.state["sum"] + traces.action + 1).tolist(), labels, strict=True))
    assert list(reached) == sums
    assert reached[97] == -1
    assert reached[73] == pytest.approx(-(gamma**3))
    expected = {100: 1, 91: gamma, 81: gamma**2, 75: gamma**3, 97: -1, 86: -gamma, 80: -(gamma**2)}
    for total, value in expected.items():
        assert reached[total] == pytest.approx(value)


def test_discounted_returns_by_hand():
    # One game, players 0 1 0 1 0; rewards in between as well as at the end.
    game_id, player = np.zeros(5, int), np.array([0, 1, 0, 1, 0])
    rewards = floats([1, 2, 3, 4, 5])
    labels = monte_carlo_targets(game_id, player, rewards, 0.5)
    assert labels.tolist() == [1 + 0.5 * (3 + 0.5 * 5), 2 + 0.5 * 4, 3 + 0.5 * 5, 4, 5]
    assert labels.dtype == np.float32


def test_games_share_nothing():
    game_id = np.array([7, 7, 3, 3, 3])
    player = np.array([0, 0, 0, 1, 0])
    labels = monte_carlo_targets(game_id, player, floats([1, 1, 1, 1, 1]), 1.0)
    assert labels.tolist() == [2, 1, 2, 1, 1]


@pytest.mark.parametrize("discount", [0.0, 1.0])
def test_the_ends_of_the_discount(discount):
    game_id, player = np.zeros(3, int), np.array([1, 1, 1])
    labels = monte_carlo_targets(game_id, player, floats([1, 2, 4]), discount)
    assert labels.tolist() == ([7, 6, 4] if discount else [1, 2, 4])


@pytest.mark.parametrize("discount", [-0.01, 1.01, float("nan")])
def test_a_discount_outside_of_0_to_1_is_refused(discount):
    nothing = np.zeros(0, np.float32)
    ids = np.zeros(0, np.int64)
    with pytest.raises(ValueError, match=r"discount must lie in \[0, 1\], got"):
        monte_carlo_targets(ids, ids, nothing, discount)
    with pytest.raises(ValueError, match=r"discount must lie in \[0, 1\], got"):
        one_step_targets(nothing, nothing, nothing > 0, discount)


def test_no_rows():
    ids, nothing = np.zeros(0, np.int64), np.zeros(0, np.float32)
    assert len(monte_carlo_targets(ids, ids, nothing, 0.9)) == 0
    assert len(next_own_decision(ids, ids)) == 0
    assert len(one_step_targets(nothing, nothing, nothing > 0, 0.9)) == 0


@st.composite
def rows(draw):
    """game_id, player and rewards of some games, rows of a game in a row."""
    lengths = draw(st.lists(st.integers(1, 7), max_size=5))
    game_id = np.repeat(np.arange(len(lengths), dtype=np.int64) * 3 - 4, lengths)
    size = len(game_id)
    player = np.array(draw(st.lists(st.integers(0, 3), min_size=size, max_size=size)), np.int8)
    values = st.sampled_from([-1.0, 0.0, 0.0, 0.25, 1.0])
    rewards = floats(draw(st.lists(values, min_size=size, max_size=size)))
    return game_id, player, rewards


@given(rows(), st.sampled_from([0.0, 0.5, 0.9, 1.0]))
def test_discounted_returns_are_their_definition(case, discount):
    game_id, player, rewards = case
    labels = monte_carlo_targets(game_id, player, rewards, discount)
    for row in range(len(game_id)):
        own = [
            float(rewards[later])
            for later in range(row, len(game_id))
            if game_id[later] == game_id[row] and player[later] == player[row]
        ]
        expected = sum(reward * discount**k for k, reward in enumerate(own))
        assert labels[row] == pytest.approx(expected, abs=1e-6)


@given(rows())
def test_the_next_own_decision_is_the_first_later_one_of_the_same_player_and_game(case):
    game_id, player, _ = case
    found = next_own_decision(game_id, player)
    for row in range(len(game_id)):
        own = [
            later
            for later in range(row + 1, len(game_id))
            if game_id[later] == game_id[row] and player[later] == player[row]
        ]
        assert found[row] == (own[0] if own else -1)


def test_one_step_targets_by_hand():
    labels = one_step_targets(
        floats([0, 0.5, 1, -1]),
        floats([1, -0.5, np.nan, 0.25]),
        np.array([False, False, True, False]),
        0.5,
    )
    assert labels.tolist() == [0.5, 0.25, 1.0, -0.875]
    assert labels.dtype == np.float32


@given(rows(), st.sampled_from([0.0, 0.5, 0.9, 1.0]))
def test_one_step_targets_of_true_values_are_the_discounted_returns(case, discount):
    """Bellman: G_t = r_t + discount * G of the next own decision."""
    game_id, player, rewards = case
    returns = monte_carlo_targets(game_id, player, rewards, discount)
    following = next_own_decision(game_id, player)
    labels = one_step_targets(rewards, returns[following], following < 0, discount)
    assert labels == pytest.approx(returns, abs=1e-6)
