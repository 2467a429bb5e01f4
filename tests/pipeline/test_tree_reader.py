"""Why a move: the parts add up to what the policy predicts, for own and for pooled trees."""

import re

import numpy as np
import pytest
from tree_policies import grown_policy, played_states

from games import make_game
from pipeline.errors import UserError
from pipeline.policies.action_trees import ActionTreesPolicy
from pipeline.tree_reader import TreeReader


@pytest.fixture(scope="module")
def three():
    return make_game("k_in_a_row", width=4, height=4, k=3)


@pytest.fixture(scope="module")
def reader(three):
    """Columns 1 and 2 share the pooled trees."""
    return TreeReader(three, grown_policy(three, poor=(1, 2)))


@pytest.fixture(scope="module")
def states(three):
    return played_states(three, 30, seed=7)[0]


def whole(explanation) -> float:
    return explanation.base + explanation.contributions.sum() + explanation.clipping


def test_parts_of_every_action_add_up_to_its_value(reader, states):
    legal = reader.game.legal_of(states)
    q = reader.policy.action_values(reader.game, states, legal)
    assert [reader.shares(action) for action in range(4)] == [False, True, True, False]
    for action in range(4):
        values = reader.values(states, action)
        some = legal[:, action]
        assert values[some] == pytest.approx(q[some, action], abs=1e-6)  # float32
        for i in np.flatnonzero(some)[:40]:
            found = reader.explain(states[i : i + 1], action)
            assert found.value == pytest.approx(values[i], abs=1e-12)
            assert whole(found) == pytest.approx(values[i], abs=1e-12)
            assert len(found.contributions) == len(reader.names) == 32 + 4


def test_a_move_is_the_greedy_one_and_its_difference_adds_up(reader, states):
    legal = reader.game.legal_of(states)
    q = reader.policy.action_values(reader.game, states, legal)
    for i in range(len(states)):
        move = reader.move(states[i : i + 1])
        actions = [action for action, _ in move.values]
        assert sorted(actions) == np.flatnonzero(legal[i]).tolist()
        assert [value for _, value in move.values] == sorted(q[i, actions], reverse=True)
        assert move.best.value == pytest.approx(q[i].max(), abs=1e-6)
        if len(actions) == 1:
            assert move.second is None and move.difference is None
        else:
            apart = move.best.value - move.second.value
            assert move.difference.value == pytest.approx(apart, abs=1e-12)
            assert whole(move.difference) == pytest.approx(apart, abs=1e-12)


def test_the_contribution_of_an_action_is_named_and_only_in_pooled_trees(reader, states):
    assert reader.names[-4:] == tuple(f"action is column {column}" for column in range(4))
    assert not reader.explain(states[:1], 0).contributions[32:].any()


def test_a_move_in_words_has_values_reasons_and_the_difference(reader, three):
    text = reader.move_to_text(three.state_from_text(three.rules, "01"))
    move = reader.move(three.state_from_text(three.rules, "01"))
    first, second = (reader.action(action) for action, _ in move.values[:2])
    shown = re.findall(r"^([+-]\d\.\d{3}) (column \d)( \(pooled trees\))?$", text, re.M)
    assert [words for _, words, _ in shown] == [reader.action(a) for a, _ in move.values]
    assert [bool(pooled) for *_, pooled in shown] == [reader.shares(a) for a, _ in move.values]
    assert f"{first}: {move.best.value:+.4g}" in text
    assert f"{first} over {second}: {move.difference.value:+.4g}" in text
    assert text.count("because") == len(move.best.paths) + len(move.second.paths)


def test_nobody_to_explain_for(reader, three):
    with pytest.raises(UserError, match="nobody decides"):
        reader.move(three.state_from_text(three.rules, "01010"))
    fresh = TreeReader(three, ActionTreesPolicy(((),) * 4))
    assert fresh.empty and not reader.empty
    with pytest.raises(UserError, match="no trees yet"):
        fresh.move(three.state_from_text(three.rules, ""))
    assert fresh.explain(three.state_from_text(three.rules, ""), 0).value == 0
