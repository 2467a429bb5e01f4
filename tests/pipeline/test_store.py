"""Saved policies: what is loaded is what was saved, or an error that says what is wrong."""

import io
import json
import os
import pickle

import numpy as np
import pytest

from games import make_game
from games.risk import boards
from pipeline.errors import PolicyError
from pipeline.learners.mlp_training import fresh_mlp
from pipeline.policies.action_trees import ActionTreesPolicy, TypeTreesPolicy
from pipeline.policies.afterstates import AfterstatePolicy
from pipeline.policies.q_network import QNetworkPolicy
from pipeline.policies.scripted import (
    Scripted,
    UniformRandom,
    WinOrRandom,
    baseline,
    baseline_names,
    default_baselines,
)
from pipeline.policies.store import (
    PolicySource,
    cached_game,
    cached_policy,
    fits,
    load_policy,
    save_policy,
)
from pipeline.storage import Storage

UNTAUGHT = ActionTreesPolicy(())


def policy_of(seed: int, hidden=(8, 4), output="tanh") -> AfterstatePolicy:
    return AfterstatePolicy(fresh_mlp(13, list(hidden), 1, output, seed))


@pytest.fixture
def storage(tmp_path) -> Storage:
    return Storage(str(tmp_path))


@pytest.fixture
def saved(storage, sumto12) -> PolicySource:
    return save_policy(storage, "run/policy", policy_of(1), sumto12, 7)


def without_digest(source: PolicySource) -> PolicySource:
    """As somebody names a folder who does not know what is in it."""
    return PolicySource(source.name, source.path)


@pytest.mark.parametrize("hidden", [(), (8,), (8, 4)])
@pytest.mark.parametrize("output", ["linear", "tanh"])
def test_a_policy_comes_back_bit_for_bit(storage, sumto12, hidden, output):
    policy = policy_of(3, hidden, output)
    source = save_policy(storage, "p", policy, sumto12, 2)
    again = load_policy(storage, source, sumto12)
    assert isinstance(again, AfterstatePolicy)
    assert again.value.output == output
    for name in ("weights", "biases"):
        left, right = getattr(policy.value, name), getattr(again.value, name)
        assert [each.tobytes() for each in left] == [each.tobytes() for each in right]
        assert [each.shape for each in left] == [each.shape for each in right]


def test_a_source_names_generation_and_content(storage, sumto12, saved):
    assert saved.name == f"g0007-{saved.digest[:8]}"
    assert saved.path == "run/policy" and len(saved.digest) == 64
    assert storage.names("run/policy") == ["arrays.npz", "policy.json"]
    assert PolicySource(**json.loads(json.dumps(saved.to_json()))) == saved


def test_equal_policies_have_equal_bytes_and_others_another_digest(storage, sumto12, saved):
    again = save_policy(storage, "other", policy_of(1), sumto12, 7)
    assert again.digest == saved.digest
    for file in storage.names("other"):
        assert storage.read(f"other/{file}") == storage.read(f"run/policy/{file}")
    digests = {
        save_policy(storage, "x", policy, game, 7).digest
        for policy, game in (
            (policy_of(1), sumto12),
            (policy_of(2), sumto12),
            (policy_of(1, output="linear"), sumto12),
            (policy_of(1), make_game("sumto", target=12, max_step=4)),
        )
    }
    assert len(digests) == 4


@pytest.mark.parametrize("file", ["policy.json", "arrays.npz"])
def test_a_changed_file_is_not_the_policy_that_was_saved(storage, sumto12, saved, file):
    path = f"run/policy/{file}"
    data = storage.read(path)
    for position in range(0, len(data), 37):
        changed = bytearray(data)
        changed[position] ^= 1
        storage.write(path, bytes(changed))
        with pytest.raises(PolicyError, match=r"run/policy is not the one .*SHA-256 differs"):
            load_policy(storage, saved, sumto12)
    storage.write(path, data)
    load_policy(storage, saved, sumto12)


def test_another_policy_under_the_same_name_is_not_played(storage, sumto12, saved):
    save_policy(storage, "run/policy", policy_of(2), sumto12, 7)
    with pytest.raises(PolicyError, match="SHA-256 differs"):
        load_policy(storage, saved, sumto12)


@pytest.mark.parametrize("file", ["policy.json", "arrays.npz"])
def test_a_missing_file_is_named(storage, sumto12, saved, file):
    storage.delete(f"run/policy/{file}")
    with pytest.raises(PolicyError, match=r"there is no policy in .*run/policy"):
        load_policy(storage, saved, sumto12)


@pytest.mark.parametrize(
    "other",
    [{"target": 13, "max_step": 3}, {"target": 12, "max_step": 4}],
)
def test_a_policy_of_another_game_is_refused(storage, saved, other):
    with pytest.raises(PolicyError, match=r"plays sumto \{.*'target': 12.*\}, expected sumto"):
        load_policy(storage, saved, make_game("sumto", **other))
    with pytest.raises(PolicyError, match="expected k_in_a_row"):
        load_policy(storage, saved, make_game("k_in_a_row"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"kind": "oracle"},
            "is of kind 'oracle', format 1; this program reads .*afterstate_value",
        ),
        ({"format": 2}, "format 2; this program reads .*q_network.*, format 1"),
        ({"kind": ["afterstate_value"]}, "is damaged"),
        ({"output": "relu"}, "is damaged"),
        ({"layers": 4}, "is damaged"),
        ({"layers": "3"}, "is damaged"),
    ],
)
def test_a_policy_that_calls_itself_something_else_is_refused(
    storage, sumto12, saved, change, message
):
    facts = json.loads(storage.read("run/policy/policy.json"))
    storage.write("run/policy/policy.json", json.dumps({**facts, **change}))
    with pytest.raises(PolicyError, match=message):
        load_policy(storage, without_digest(saved), sumto12)


def test_a_policy_is_not_played_where_a_file_of_its_game_has_changed(storage, tmp_path):
    board = boards.load("ring_6")
    path = tmp_path / "mine.json"
    path.write_text(board.to_text())
    game = make_game("risk", board=str(path))
    source = save_policy(storage, "run/policy", UNTAUGHT, game, 0)
    path.write_text(board.to_text() + "\n")  # worded otherwise
    load_policy(storage, source, make_game("risk", board=str(path)))
    path.write_text(board.to_text().replace("[0, 1], ", "[0, 1], [0, 3], "))
    with pytest.raises(
        PolicyError, match=r"was learned before a file changed .* put the file back"
    ):
        load_policy(storage, source, make_game("risk", board=str(path)))


def test_what_values_actions_by_number_fits_only_where_the_numbers_mean_the_same():
    learned = make_game("risk", board="generated", nodes=12, boards=8)
    by_state = AfterstatePolicy(fresh_mlp(learned.observation_size, [4], 1, "tanh", 1))
    by_number = QNetworkPolicy(
        fresh_mlp(learned.observation_size, [4], learned.num_actions, "tanh", 1)
    )
    for params, same in (
        ({"nodes": 12, "boards": 8, "max_turns": 9}, True),
        ({"nodes": 12, "boards": 2}, False),
        ({"nodes": 8, "boards": 8}, False),
        ({"nodes": 12, "boards": 8, "amounts": "1,all"}, False),
        ({"nodes": 12, "boards": 8, "amounts": "1,1/3,all"}, False),  # as many
    ):
        game = make_game("risk", board="generated", **params)
        assert fits(by_number, learned, game) == fits(UNTAUGHT, learned, game) == same
        assert fits(by_state, learned, game) and fits(TypeTreesPolicy(((),) * 7), learned, game)


@pytest.mark.parametrize("key", ["format", "kind", "game", "params", "layers", "output"])
def test_a_policy_that_does_not_say_what_it_is_is_refused(storage, sumto12, saved, key):
    facts = json.loads(storage.read("run/policy/policy.json"))
    del facts[key]
    storage.write("run/policy/policy.json", json.dumps(facts))
    with pytest.raises(PolicyError, match="is damaged"):
        load_policy(storage, without_digest(saved), sumto12)


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"null", b'"text"', b"\xff\xfe"])
def test_a_description_that_is_none_is_refused(storage, sumto12, saved, text):
    storage.write("run/policy/policy.json", text)
    with pytest.raises(PolicyError, match="is damaged"):
        load_policy(storage, without_digest(saved), sumto12)


@pytest.mark.parametrize("kept", [0, 1, 3, 4, 60, 0.5, 0.9, -1])
def test_truncated_arrays_are_refused(storage, sumto12, saved, kept):
    data = storage.read("run/policy/arrays.npz")
    size = int(kept * len(data)) if isinstance(kept, float) else kept
    storage.write("run/policy/arrays.npz", data[:size])
    with pytest.raises(PolicyError, match="is damaged"):
        load_policy(storage, without_digest(saved), sumto12)


def test_flipped_bits_of_arrays_are_refused_or_change_nothing(storage, sumto12, saved):
    """Without the digest: what a reader of a copied folder may meet."""
    good = load_policy(storage, saved, sumto12)
    data = storage.read("run/policy/arrays.npz")
    refused = 0
    for position in np.random.default_rng(1).choice(len(data), 120, replace=False):
        changed = bytearray(data)
        changed[position] ^= 1 << int(position) % 8
        storage.write("run/policy/arrays.npz", bytes(changed))
        try:
            policy = load_policy(storage, without_digest(saved), sumto12)
        except PolicyError:
            refused += 1
            continue
        for left, right in zip(policy.value.weights, good.value.weights, strict=True):
            assert left.tobytes() == right.tobytes()
    assert refused > 60


class Payload:
    """Touches a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


@pytest.mark.parametrize("form", ["an array of objects", "a bare pickle"])
def test_a_pickle_is_never_opened(storage, sumto12, saved, tmp_path, form):
    trap = str(tmp_path / "trap")
    buffer = io.BytesIO()
    if form == "a bare pickle":
        buffer.write(pickle.dumps(Payload(trap)))
    else:
        objects = np.empty((13, 8), object)
        objects[:] = Payload(trap)
        with np.load(io.BytesIO(storage.read("run/policy/arrays.npz"))) as arrays:
            np.savez(buffer, allow_pickle=True, **{**arrays, "weight_0": objects})
    storage.write("run/policy/arrays.npz", buffer.getvalue())
    with pytest.raises(PolicyError, match="is damaged"):
        load_policy(storage, without_digest(saved), sumto12)
    assert not os.path.exists(trap)


def test_baselines_are_known_by_name(storage, sumto12):
    assert baseline_names(sumto12) == ["random", "win_or_random", "perfect"]
    assert default_baselines(sumto12) == baseline_names(sumto12)
    four = make_game("k_in_a_row")
    assert baseline_names(four) == ["random", "win_or_random", *four.scripted]
    # What is slow is played against only where it is named.
    assert default_baselines(four) == [
        "random", "win_or_random", "block_or_random", "alpha_beta_2", "alpha_beta_4",
    ]  # fmt: skip
    for name, kind in (
        ("random", UniformRandom),
        ("win_or_random", WinOrRandom),
        ("perfect", Scripted),
    ):
        assert isinstance(load_policy(storage, PolicySource(name), sumto12), kind)
    with pytest.raises(ValueError, match="no baseline 'oracle' for game sumto; the baselines are"):
        baseline("oracle", sumto12)
    with pytest.raises(ValueError, match="no baseline 'perfect' for game k_in_a_row"):
        baseline("perfect", make_game("k_in_a_row"))


def test_a_policy_is_read_once_per_process(storage, sumto12, saved):
    root = storage.root
    first = cached_policy(root, saved, sumto12)
    storage.delete("run/policy/arrays.npz")
    assert cached_policy(root, saved, sumto12) is first
    # Another content is another policy: the digest is part of the name.
    other = save_policy(storage, "run/policy", policy_of(2), sumto12, 7)
    assert cached_policy(root, other, sumto12) is not first


def test_a_game_is_built_once_per_process():
    game = cached_game("sumto", {"target": 12, "max_step": 3})
    assert cached_game("sumto", {"max_step": 3, "target": 12}) is game
    assert game.params == {"target": 12, "max_step": 3}
