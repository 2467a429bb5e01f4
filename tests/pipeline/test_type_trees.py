"""Trees per type of action: what they see of a candidate, Q by its definition, other boards."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from small_runs import small_config
from test_action_trees import plain_tree
from test_model_trees import settings_of
from test_value_network import THREE, random_window
from tree_policies import played_states

from games import TERMINAL, Game, make_game
from games.game import ActionTypes
from pipeline import trees_cli
from pipeline.config import ConfigError
from pipeline.learners import model_trees
from pipeline.learners.model_trees import fit, initial
from pipeline.oracles import answers
from pipeline.policies.action_trees import TypeTreesPolicy
from pipeline.policies.base import Exploring
from pipeline.policies.store import load_policy, save_policy
from pipeline.policies.tree_inputs import ByType
from pipeline.run import Run
from pipeline.selfplay import play_games
from pipeline.storage import Storage
from pipeline.streams import game_keys
from pipeline.traces import Window
from pipeline.train import train
from pipeline.tree_pages import page_data, sample
from pipeline.tree_reader import TreeReader

_LEARNER = Path(__file__).resolve().parents[2] / "conf" / "learner" / "model_trees.yaml"
RING = {"board": "ring_6", "max_turns": 30}


def by_type(**changes: Any):
    return settings_of(**{"trees": "type", "rows_per_game": None, "min_games": 20, **changes})


@pytest.fixture(scope="module")
def ring() -> Game:
    return make_game("risk", **RING)


@pytest.fixture(scope="module", params=[20, 290, 10**6], ids=["own", "both", "pooled"])
def policy(ring, request) -> TypeTreesPolicy:
    """Trees of random games; the attacks of most types come in fewer than 290 of them."""
    config = by_type(min_games=request.param, bag=2)
    found, report = fit(ring, random_window(ring, 300), initial(ring, config, 1), config, 1)
    assert isinstance(found, TypeTreesPolicy)
    assert report["pooled"] == sum(not bag for bag in found.bags)
    return found


def action(game: Game, text: str) -> int:
    words = [game.action_to_text(game.rules, a) for a in range(game.num_actions)]
    return words.index(text)


# What a tree sees.


def test_every_action_of_risk_is_of_its_type(ring):
    inputs = ByType(ring)
    for each in range(ring.num_actions):
        text = ring.action_to_text(ring.rules, each)
        kind = inputs.bags[inputs.bag[each]]
        digits = text.rstrip("0123456789>")
        expected = {"place on ": "place", "move ": "move", "attack ": "attack"}.get(digits)
        if text.startswith("move in "):
            expected = "move in"
        elif text.startswith("move ") and ">" not in text:
            expected = "amount"
        assert kind == (expected or text)


def test_a_candidate_is_seen_as_the_state_that_it_leads_to():
    """The worked turn of docs/games/risk.md: nodes 0 to 3, X4 O1 X2 O2. 0>1 costs each side 1 army,
    so X has 3 nodes with 5 armies, two on node 0 and one that moved in, and O one node with 2."""
    game = make_game("risk", board="worked_4")
    inputs = ByType(game)
    state = game.state_from_text(game.rules, "X4 O1 X2 O2")
    state = game.after(state, [action(game, "no move")])
    attack = action(game, "attack 0>1")
    assert inputs.bags[inputs.bag[attack]] == "attack" and inputs.asked(state, np.array([attack]))
    seen = dict(zip(inputs.names, inputs.rows(state, state["player"], [attack])[0], strict=True))
    assert seen["after: my node share"] == pytest.approx(3 / 4)
    assert seen["after: their node share"] == pytest.approx(1 / 4)
    assert seen["after: my army share"] == pytest.approx(5 / 7)
    assert seen["after: my has conquered"] == 1 and seen["after: their has conquered"] == 0
    # It is X's choice how many of the 2 armies of node 0 move in.
    assert seen["after: my move in"] == 1 and seen["after: my attack"] == 0
    # West (5) is X's, East (3) half: log(1 + 5) / 2, and log(1 + 5 + 3 / 4) / 2 of progress.
    assert seen["after: my log continent income"] == pytest.approx(np.log(6) / 2)
    assert seen["after: my progress on continents"] == pytest.approx(np.log(6.75) / 2)


def plain_value(policy, x, kind) -> tuple[float, int, int]:
    bag = policy.bags[kind]
    if not bag:
        bag, x = policy.pooled, np.concatenate([x, np.eye(len(policy.bags))[kind]])
    formulas = [plain_tree(tree, x) for tree in bag]
    limited = [np.clip(f, *tree.limits) for f, tree in zip(formulas, bag, strict=True)]
    clipped = sum(
        f < tree.limits[0] - 1e-6 * np.ptp(tree.limits)
        or f > tree.limits[1] + 1e-6 * np.ptp(tree.limits)
        for f, tree in zip(formulas, bag, strict=True)
    )
    return float(np.mean(limited)), len(bag), clipped


def test_q_is_what_the_trees_of_the_type_say_of_what_follows(ring, policy):
    """.. and of an action that ends the game what the rules pay."""
    states, _ = played_states(ring, 12, seed=4)
    legal = ring.legal_of(states)
    q, counts = policy.measured_action_values(ring, states, legal)
    assert (np.isneginf(q) == ~legal).all()
    asked, clipped, ended = 0, 0, 0
    for i, each in zip(*np.nonzero(legal), strict=True):
        after = ring.after(states[i : i + 1], [each])
        mover = states["player"][i]
        if after["player"][0] == TERMINAL:
            ended += 1
            assert q[i, each] == ring.returns_of(after)[0, mover]
            continue
        x = ring.observations_of(after, [mover])[0].astype(float)
        value, trees, cut = plain_value(policy, x, ring.action_types.of[each])
        assert q[i, each] == pytest.approx(value, abs=1e-5)
        asked, clipped = asked + trees, clipped + cut
    assert ended > 3 and asked > 1000
    assert counts.tolist() == [asked, clipped]


def test_batches_of_any_size_say_the_same(ring, policy, monkeypatch):
    states, _ = played_states(ring, 20, seed=4)
    legal = ring.legal_of(states)
    q = policy.action_values(ring, states, legal)
    for size in (1, 7):
        parts = [
            policy.action_values(ring, states[at : at + size], legal[at : at + size])
            for at in range(0, len(states), size)
        ]
        assert np.array_equal(np.concatenate(parts), q)
    monkeypatch.setattr("pipeline.policies.action_trees._CANDIDATES", 10)
    assert np.array_equal(policy.action_values(ring, states, legal), q)
    assert policy.action_values(ring, states[:0], legal[:0]).shape == (0, ring.num_actions)


def test_it_comes_back_bit_for_bit(ring, policy, tmp_path):
    storage = Storage(str(tmp_path))
    source = save_policy(storage, "p", policy, ring, 3)
    again = load_policy(storage, source, ring)
    assert isinstance(again, TypeTreesPolicy)
    states, _ = played_states(ring, 20, seed=4)
    legal = ring.legal_of(states)
    q = policy.action_values(ring, states, legal)
    assert again.action_values(ring, states, legal).tobytes() == q.tobytes()
    assert save_policy(storage, "q", again, ring, 3).digest == source.digest


def test_what_is_learned_on_one_board_values_another(ring, policy):
    """A ring of six nodes numbered the other way round: the same values for the images of actions;
    and a grid of twenty, whose actions are others."""
    turned = np.array([0, 5, 4, 3, 2, 1])
    states, _ = played_states(ring, 20, seed=5)
    states["history"] = 0  # digests are those of the numbers
    same = (ring.rules.bonus[0] == ring.rules.bonus[0][0]).all()
    images = states.copy()
    images["armies"][:, turned] = states["armies"][:, :6]
    images["owned"] = sum(
        ((states["owned"] >> np.uint64(n)) & np.uint64(1)) << np.uint64(turned[n]) for n in range(6)
    )
    for name in ("source", "target"):
        images[name] = np.where(states[name] >= 0, turned[states[name]], -1)
    rules = ring.rules
    parts = {int(c) for c in rules.continents[0]}
    mirrored = {sum(1 << int(turned[n]) for n in range(6) if part >> n & 1) for part in parts}
    assert parts == mirrored and same, "ring_6 is its own image"
    image_of = np.arange(ring.num_actions)
    for each in range(ring.num_actions):
        u, v = rules.pairs[each]
        if u >= 0:
            image_of[each] = rules.ids[int(each > rules.no_attack), turned[u], turned[v]]
        elif each < 6:
            image_of[each] = turned[each]
    legal, image_legal = ring.legal_of(states), ring.legal_of(images)
    assert (image_legal[:, image_of] == legal).all()
    q = policy.action_values(ring, states, legal)
    there = policy.action_values(ring, images, image_legal)[:, image_of]
    assert np.allclose(np.where(legal, q, 0), np.where(legal, there, 0), atol=1e-4)
    grid = make_game("risk", board="grid_20", max_turns=30)
    states, _ = played_states(grid, 5, seed=1)
    legal = grid.legal_of(states)
    q = policy.action_values(grid, states, legal)
    assert (np.abs(q[legal]) <= 1).all() and len(np.unique(q[legal])) > 100


# Learning.


def test_actions_that_end_the_game_do_not_teach(ring):
    window, config = random_window(ring, 100), by_type()
    _, report = fit(ring, window, initial(ring, config, 1), config, 1)
    traces = window.traces
    over = ring.after(traces.state, traces.action)["player"] == TERMINAL
    assert over.any()
    kinds = ring.action_types.of[traces.action]
    counts = np.bincount(kinds[~over], minlength=7)
    table = report["tables"]["trees"]
    assert table["rows"].tolist() == counts.tolist()
    assert table["text"].tolist() == list(ring.action_types.names)


def test_one_bag_for_all_actions_learns_sumto20_perfectly():
    """A sum is worth the same whatever step led to it: all steps are of one type."""
    game = make_game("sumto", target=20, max_step=4)
    solved = game.solution()
    legal = game.legal_of(solved.states)
    config = by_type(held_out=0.1, sweeps=8)
    policy = initial(game, config, 1)
    right = []
    for generation in range(1, 9):
        epsilon = [1.0] if generation == 1 else [0.5]
        players = [Exploring(policy, np.array(epsilon), np.zeros(1))]
        keys = game_keys(2, "selfplay", generation, np.arange(200))
        _, traces = play_games(game, players, np.zeros((200, 2), int), keys)
        game_id = traces.game.astype(np.int64) + (generation << 32)
        window = Window(traces, np.full(len(traces), generation, np.int32), game_id)
        policy, _ = fit(game, window, policy, config, generation)
        right.append(answers(solved, policy.action_values(game, solved.states, legal))["strong"])
        if right[-1] == 1:
            break
    assert len(policy.bags) == 1 and right[-1] == 1, right


def test_a_bag_that_is_the_only_one_has_its_own_trees_however_few_its_games():
    game = make_game("k_in_a_row", **THREE)
    window, config = random_window(game, 20), by_type(min_games=200)
    policy, report = fit(game, window, initial(game, config, 1), config, 1)
    assert report["pooled"] == 0 and not policy.pooled and len(policy.bags[0]) == config.bag


def test_images_teach_the_type_s_trees():
    game = make_game("k_in_a_row", **THREE)
    window, config = random_window(game, 200), by_type()
    _, report = fit(game, window, initial(game, config, 1), config, 1)
    traces = window.traces
    going_on = game.after(traces.state, traces.action)["player"] != TERMINAL
    assert report["tables"]["trees"]["rows"].tolist() == [2 * going_on.sum()]
    _, report = fit(game, window, initial(game, config, 1), replace(config, symmetries=False), 1)
    assert report["tables"]["trees"]["rows"].tolist() == [going_on.sum()]


def test_chance_right_after_an_action_is_not_foreseen(dice):
    """What a tree sees of an action is the state before chance draws: nothing is drawn there."""
    window, config = random_window(dice, 100), by_type(min_games=10)
    seen = ByType(dice).rows(window.traces.state, window.traces.player, window.traces.action)
    assert not seen[:, list(dice.observation_names).index("drawn")].any()
    policy, _ = fit(dice, window, initial(dice, config, 1), config, 1)
    legal = dice.legal_of(window.traces.state)
    assert np.isfinite(policy.action_values(dice, window.traces.state, legal)[legal]).all()


def test_threads_and_helpers_change_nothing(ring):
    class Here:
        """Helpers in this process, which run the tasks in another order."""

        def run_all(self, tasks, threads):
            return [task.run() for task in reversed(tasks)][::-1]

    window = random_window(ring, 150)
    found = []
    for threads, helpers in ((1, None), (3, None), (1, Here())):
        config = by_type(bag=2, sweeps=2, held_out=0.2, threads=threads)
        policy, report = fit(ring, window, initial(ring, config, 1), config, 1, helpers)
        del report["tables"]
        spec, arrays = policy.to_parts()
        found.append((spec, {name: part.tobytes() for name, part in arrays.items()}, report))
    assert found[0] == found[1] == found[2]


def test_types_say_what_is_shared(ring):
    """With every action a type of its own the moves have bags of their own."""
    alone = ActionTypes(
        tuple(ring.action_to_text(ring.rules, a) for a in range(ring.num_actions)),
        np.arange(ring.num_actions, dtype=np.int8),
    )
    window, config = random_window(ring, 100), by_type(min_games=10**6)
    policy, report = fit(
        replace(ring, action_types=alone), window, initial(ring, config, 1), config, 1
    )
    assert report["pooled"] == ring.num_actions == len(policy.bags)


# For people.


def test_parts_of_a_candidate_add_up_and_an_end_is_what_the_rules_pay(ring, policy):
    reader = TreeReader(ring, policy)
    states, _ = played_states(ring, 20, seed=7)
    legal = ring.legal_of(states)
    q = policy.action_values(ring, states, legal)
    assert reader.names[-1] == "action is move in" and reader.names[0] == "after: my node share"
    ended = 0
    for i in range(0, len(states), 9):
        for each in np.flatnonzero(legal[i]):
            found = reader.explain(states[i : i + 1], each)
            whole = found.base + found.contributions.sum() + found.clipping
            assert found.value == pytest.approx(q[i, each], abs=1e-5)
            assert whole == pytest.approx(found.value, abs=1e-9)
            if not found.paths:
                ended += 1
                assert not found.contributions.any()
        move = reader.move(states[i : i + 1])
        assert [value for _, value in move.values] == sorted(q[i, legal[i]], reverse=True)
        text = reader.move_to_text(states[i : i + 1])
        assert f"{reader.action(move.values[0][0])}: {move.best.value:+.4g}" in text
    assert ended


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """Two generations of Risk by trees per type."""
    folder = tmp_path_factory.mktemp("runs")
    learner = {
        **yaml.safe_load(_LEARNER.read_text()),
        **{"trees": "type", "min_games": 20, "rows_per_game": None, "sweeps": 2, "threads": 1},
    }
    train(
        small_config(
            folder,
            "types",
            learner=learner,
            game={"name": "risk", **make_game("risk", **RING).params},
            selfplay__games=60,
            selfplay__games_per_shard=30,
            evaluation__games=4,
            evaluation__baselines=["passive"],
            evaluation__opening_plies=0,
        )
    )
    return folder


def printed(root, capsys, *words: str) -> str:
    trees_cli.main([*words, "--root", str(root)])
    return capsys.readouterr().out


def test_the_command_speaks_of_types(root, capsys):
    text = printed(root, capsys, "summary", "types")
    assert [line.split("  ")[0] for line in text.splitlines()[1:8]] == [
        "place", "no move", "move", "amount", "no attack", "attack", "move in",
    ]  # fmt: skip
    assert "after: " in text
    assert printed(root, capsys, "show", "types", "--action", "attack").startswith("tree 1 of 2")
    text = printed(root, capsys, "explain", "types", "--game", "3", "--ply", "2")
    assert " over " in text and "because" in text


def test_the_page_shows_types_and_names_actions(root, capsys, tmp_path):
    run = Run.open(str(root), "types")
    game = make_game("risk", **RING)
    policies = [load_policy(run.storage, run.policy(g), game) for g in (1, 2)]
    before, reader = (TreeReader(game, each) for each in policies)
    data = page_data(reader, 2, before, sample(run, reader, 2), run.table(2, "trees"))
    assert [kind["name"] for kind in data["kinds"]] == list(game.action_types.names)
    assert data["actions"] == [
        [reader.action(a), int(game.action_types.of[a])] for a in range(game.num_actions)
    ]
    assert any(bag["changes"].get("rows", 0) > 20 for bag in data["bags"])
    assert data["positions"]
    for entry in data["positions"]:
        for reason in entry["reasons"]:
            shown = sum(amount for _, amount in reason["parts"])
            whole = reason["base"] + shown + reason["rest"] + reason["clipping"]
            assert whole == reason["value"]
    printed(root, capsys, "pages", "types", "--out", str(tmp_path))
    assert {"index.html", "attack.svg", "no-move.svg"} <= {p.name for p in tmp_path.iterdir()}


def test_a_run_keeps_its_kind_of_trees():
    assert model_trees.initial(make_game("risk", **RING), by_type(), 1).kind == "type_trees"
    with pytest.raises(
        ConfigError, match=r"learner\.trees must be one of action, type, got 'leaf'"
    ):
        settings_of(trees="leaf")
