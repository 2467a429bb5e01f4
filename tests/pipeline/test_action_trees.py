"""Q(s, a) by trees is the mean of the trees' own formulas, saved or not, in batches of any size."""

import subprocess
import sys

import numpy as np
import pytest
from test_value_network import THREE
from tree_policies import grown_policy, lookup_policy, played_states

from games import make_game
from pipeline.policies.action_trees import ActionTreesPolicy
from pipeline.policies.store import load_policy, save_policy
from pipeline.storage import Storage


@pytest.fixture(scope="module")
def three():
    return make_game("k_in_a_row", **THREE)


@pytest.fixture(scope="module", params=[(), (1,), (0, 1, 2, 3)], ids=["own", "both", "pooled"])
def policy(three, request) -> ActionTreesPolicy:
    return grown_policy(three, poor=request.param)


def plain_tree(tree, x) -> float:
    node = 0
    while tree.feature[node] >= 0:
        left = x[tree.feature[node]] <= tree.threshold[node]
        node = node + 1 if left else int(tree.right[node])
    leaf = tree.right[node]
    terms = slice(tree.term_start[leaf], tree.term_start[leaf + 1])
    formula = tree.intercept[leaf] + tree.coefficient[terms] @ x[tree.term_feature[terms]]
    return float(formula)


def plain_value(policy, x, action) -> tuple[float, int, int]:
    """Q, how many trees were asked, and how many clipped."""
    bag = policy.bags[action]
    if not bag:
        bag, x = policy.pooled, np.concatenate([x, np.eye(len(policy.bags))[action]])
    formulas = [plain_tree(tree, x) for tree in bag]
    limited = [np.clip(f, *tree.limits) for f, tree in zip(formulas, bag, strict=True)]
    clipped = sum(abs(a - b) > 1e-6 for a, b in zip(formulas, limited, strict=True))
    return float(np.mean(limited)), len(bag), clipped


def test_q_is_the_mean_of_the_trees_formulas(three, policy):
    states, _ = played_states(three, 60, seed=4)
    legal = three.legal_of(states)
    q = policy.action_values(three, states, legal)
    assert (np.isneginf(q) == ~legal).all()
    seen = three.observations_of(states, states["player"]).astype(float)
    asked, clipped = 0, 0
    for i, action in zip(*np.nonzero(legal), strict=True):
        value, trees, cut = plain_value(policy, seen[i], action)
        assert q[i, action] == pytest.approx(value, abs=1e-5)
        asked, clipped = asked + trees, clipped + cut
    again, counts = policy.measured_action_values(three, states, legal)
    assert np.array_equal(again, q)
    assert counts.tolist() == [asked, clipped]  # the states are all different


def test_batches_of_any_size_say_the_same(three, policy):
    states, _ = played_states(three, 60, seed=4)
    states = np.concatenate([states, states[::-1]])  # equal observations, evaluated once
    legal = three.legal_of(states)
    q = policy.action_values(three, states, legal)
    for size in (1, 7, 300):
        parts = [
            policy.action_values(three, states[at : at + size], legal[at : at + size])
            for at in range(0, len(states), size)
        ]
        assert np.array_equal(np.concatenate(parts), q)
    assert policy.action_values(three, states[:0], legal[:0]).shape == (0, 4)


def test_it_comes_back_bit_for_bit(three, policy, tmp_path):
    storage = Storage(str(tmp_path))
    source = save_policy(storage, "p", policy, three, 3)
    again = load_policy(storage, source, three)
    assert isinstance(again, ActionTreesPolicy)
    assert [len(bag) for bag in again.bags] == [len(bag) for bag in policy.bags]
    states, _ = played_states(three, 60, seed=4)
    legal = three.legal_of(states)
    q = policy.action_values(three, states, legal)
    assert again.action_values(three, states, legal).tobytes() == q.tobytes()
    assert save_policy(storage, "q", again, three, 3).digest == source.digest


def test_before_anything_is_learned_all_legal_actions_are_worth_0(three, tmp_path):
    policy = ActionTreesPolicy(((),) * 4)
    storage = Storage(str(tmp_path))
    policy = load_policy(storage, save_policy(storage, "p", policy, three, 0), three)
    assert policy.empty
    states, _ = played_states(three, 20)
    legal = three.legal_of(states)
    assert np.array_equal(policy.action_values(three, states, legal), np.where(legal, 0, -np.inf))


def test_values_beyond_what_was_seen_in_training_are_clipped(sumto12):
    policy = lookup_policy(np.where(np.arange(39).reshape(13, 3) == 0, 99.0, 0.5))
    states = sumto12.initial_states([1])
    q, counts = policy.measured_action_values(sumto12, states, sumto12.legal_of(states))
    assert q.tolist() == [[9.0, 0.5, 0.5]] and counts.tolist() == [3, 1]


def test_playing_with_trees_imports_no_torch():
    code = (
        "import sys, pipeline.selfplay, pipeline.policies.store, pipeline.policies.action_trees;"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=120).returncode == 0
