"""The page of trees: its numbers are the policy's, it stands alone, it works in a browser."""

import dataclasses
import itertools
import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from test_report import NASTY, Page
from tree_policies import grown_policy, played_states

from games import make_game
from pipeline import tree_pages
from pipeline.m5.explain import base_of_leaf
from pipeline.policies.action_trees import ActionTreesPolicy
from pipeline.tree_pages import Sample, page, page_data
from pipeline.tree_reader import TreeReader


@pytest.fixture(scope="module")
def three():
    return make_game("k_in_a_row", width=4, height=4, k=3)


@pytest.fixture(scope="module")
def reader(three):
    """Columns 1 and 2 share the pooled trees."""
    return TreeReader(three, grown_policy(three, poor=(1, 2)))


@pytest.fixture(scope="module")
def asked(three):
    states = played_states(three, 60, seed=7)[0]
    actions = three.legal_of(states).argmax(1).astype(np.int32)
    return Sample(states, actions[:, None], np.ones(len(states), np.float32))


@pytest.fixture(scope="module")
def data(reader, three, asked):
    rows = [
        {"action": 0, "rows": 9, "games": 3, "rmse_games": 0.25, "rmse_rows": float("nan")},
        {"action": 3, "rows": 7, "games": 2, "rmse_games": 0.5, "rmse_rows": 0.125},
    ]
    before = TreeReader(three, grown_policy(three, seed=1, poor=(2,)))
    return page_data(reader, 4, before, asked, rows)


def test_nodes_of_the_page_are_those_of_the_trees(data, reader):
    for action in range(4):
        bag = data["bags"][data["kinds"][action]["bag"]]
        trees = reader.bag(action)
        assert len(bag["trees"]) == len(trees) == 2
        for entry, tree in zip(bag["trees"], trees, strict=True):
            assert entry["feature"] == tree.feature.tolist()  # small enough to be whole
            assert entry["games"] == tree.groups.tolist()
            assert entry["mean"] == pytest.approx(tree.mean, rel=1e-3)
            assert entry["threshold"] == pytest.approx(tree.threshold, rel=1e-6)
            inside = tree.feature >= 0
            assert np.array(entry["right"])[inside].tolist() == tree.right[inside].tolist()
            assert sorted(map(int, entry["leaf"])) == np.flatnonzero(~inside).tolist()
            for k, leaf in entry["leaf"].items():
                number = int(tree.right[int(k)])
                assert leaf["base"] == pytest.approx(base_of_leaf(tree, number), rel=1e-3, abs=1e-9)
                effects = [abs(term[1]) for term in leaf["terms"]]
                assert effects == sorted(effects, reverse=True)
                size = tree.term_start[number + 1] - tree.term_start[number]
                assert len(leaf["terms"]) + len(leaf["rest"]) == size
    assert data["kinds"][1]["bag"] == data["kinds"][2]["bag"]
    assert [about["pooled"] for about in data["kinds"]] == [False, True, True, False]
    measured = data["kinds"][0]
    assert (measured["rows"], measured["rmse_games"]) == (9, 0.25)
    assert "rmse_rows" not in measured and "rows" not in data["kinds"][1]


def test_what_is_shown_of_a_position_adds_up_to_the_prediction(data, reader, asked):
    assert len(data["positions"]) == tree_pages.MAX_POSITIONS
    texts = {reader.game.state_to_text(reader.game.rules, state): state for state in asked.states}
    for entry in data["positions"]:
        state = np.array([texts[entry["text"]]], reader.game.state_dtype)
        for reason in entry["reasons"]:
            exact = reader.values(state, reason["action"])[0]
            assert reason["value"] == round(10_000 * exact)
            shown = sum(amount for _, amount in reason["parts"])
            whole = reason["base"] + shown + reason["rest"] + reason["clipping"]
            assert whole == reason["value"]
            contributions = reader.explain(state, reason["action"]).contributions
            for feature, amount in reason["parts"]:
                assert amount == round(10_000 * contributions[feature])
        assert entry["values"][0][0] == entry["reasons"][0]["action"]
        if "difference" in entry:
            apart = entry["reasons"][0]["value"] - entry["reasons"][1]["value"]
            assert abs(entry["difference"]["value"] - apart) <= 1  # each is rounded by itself


def test_paths_take_the_turns_that_the_position_takes(data, reader, asked):
    texts = {reader.game.state_to_text(reader.game.rules, state): state for state in asked.states}
    for entry in data["positions"]:
        state = np.array([texts[entry["text"]]], reader.game.state_dtype)
        for reason in entry["reasons"]:
            x = reader.rows(state, reason["action"])[0]
            bag = data["bags"][data["kinds"][reason["action"]]["bag"]]
            for path, tree in zip(reason["paths"], bag["trees"], strict=True):
                nodes = path["nodes"]
                assert nodes[0] == 0 and str(nodes[-1]) in tree["leaf"]
                for k, following in itertools.pairwise(nodes):
                    left = x[tree["feature"][k]] <= tree["threshold"][k]
                    assert following == (k + 1 if left else tree["right"][k])
                assert path["x"] == pytest.approx([x[tree["feature"][k]] for k in nodes[:-1]])


def test_the_same_policy_twice_has_changed_nothing(reader, asked):
    data = page_data(reader, 2, reader, asked)
    for bag in data["bags"]:
        tests = sum(f >= 0 for tree in bag["trees"] for f in tree["feature"])
        changes = bag["changes"]
        assert (changes["kept"], changes["moved"], changes["new"], changes["gone"]) == (
            tests,
            0,
            0,
            0,
        )
        assert changes.get("shift", 0) == 0
    assert tests > 0


def test_a_shift_is_the_mean_difference_of_both_generations(three, asked, reader):
    before = TreeReader(three, grown_policy(three, seed=1))
    bag = page_data(reader, 2, before, asked)["bags"][0]
    legal = three.legal_of(asked.states)[:, 0]
    states = asked.states[legal]
    shift = reader.values(states, 0) - before.values(states, 0)
    assert bag["changes"]["rows"] == len(states)
    tree = reader.policy.bags[0][0]
    X = reader.rows(states, 0)
    for k, leaf in bag["trees"][0]["leaf"].items():
        alone = tree_pages.compare.leaves_of(tree, X) == tree.right[int(k)]
        expected = shift[alone].mean() if alone.any() else None
        assert leaf["shift"] == (expected and pytest.approx(expected, rel=1e-3))


def test_before_anything_is_learned_there_is_nothing_to_compare(reader, three):
    fresh = TreeReader(three, ActionTreesPolicy(((),) * 4))
    data = page_data(reader, 1, fresh)
    assert data["before"] is None and data["positions"] == []
    assert not any("changes" in bag for bag in data["bags"])


def test_a_large_forest_is_folded(reader, asked, monkeypatch):
    monkeypatch.setattr(tree_pages, "_MAX_NODES", 1)
    monkeypatch.setattr(tree_pages, "_LEAST_NODES", 3)
    data = page_data(reader, 1, None, asked)
    folded = 0
    for action, about in enumerate(data["kinds"]):
        entries = data["bags"][about["bag"]]["trees"]
        for entry, tree in zip(entries, reader.bag(action), strict=True):
            assert len(entry["feature"]) <= 3
            hidden = sum(entry["folded"])
            assert len(entry["leaf"]) + hidden == tree.num_leaves == entry["leaves"]
            folded += hidden
    assert folded > 0
    for position in data["positions"]:  # a path ends where the tree is folded
        for reason in position["reasons"]:
            entries = data["bags"][data["kinds"][reason["action"]]["bag"]]["trees"]
            for path, tree in zip(reason["paths"], entries, strict=True):
                last = path["nodes"][-1]
                assert str(last) in tree["leaf"] or tree["folded"][last] > 0


def test_the_page_stands_alone_and_trusts_no_text(reader, three, asked):
    nasty = dataclasses.replace(three, action_to_text=lambda rules, action: f"{NASTY}{action}")
    reader = TreeReader(nasty, reader.policy)
    text = page(NASTY, page_data(reader, 4, None, asked))
    read = Page(text.replace("<noscript>", "").replace("</noscript>", ""))
    assert len(read.scripts) == 2 and not any(tag == "img" for tag, _ in read.tags)
    data = json.loads(read.scripts[0])
    assert data["kinds"][3]["name"] == f"{NASTY}3"
    for tag, attributes in read.tags:
        assert not {"src", "onclick"} & attributes.keys(), tag
    assert "http" not in text.replace("http-equiv", "")
    script = read.scripts[1]
    for word in ("innerHTML", "fetch(", "localStorage", "XMLHttpRequest", "import(", "eval"):
        assert word not in script
    pictures = tree_pages.pictures(reader, 4)
    for picture in pictures.values():
        assert ET.fromstring(picture).find(".//{http://www.w3.org/2000/svg}img") is None


def test_files_are_named_after_actions(reader, three):
    assert set(tree_pages.pictures(reader, 1)) == {"column-0.svg", "column-3.svg", "pooled.svg"}
    alike = dataclasses.replace(three, action_to_text=lambda rules, a: ("a/b", "A b", "é", "")[a])
    names = tree_pages.file_names(TreeReader(alike, reader.policy))
    assert names == {0: "0-a-b", 1: "1-a-b", 2: "2", 3: "3", -1: "pooled"}


def test_short_numbers():
    assert tree_pages.short(1234567.0) == 1235000
    assert tree_pages.short(0.123456) == 0.1235
    assert tree_pages.short(2.0) == 2 and tree_pages.short(float("nan")) is None


CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DRIVEN = """
const out = {}, click = (id) => byId(id).click();
const errors = [];
window.addEventListener("error", (event) => errors.push(event.message));
try {
  out.actions = byId("action").options.length;
  look(0);
  out.position = byId("position").value;
  click("next");
  out.next = byId("position").value;
  out.text = byId("reading").querySelector("pre").textContent;
  const way = document.querySelectorAll(".branch.path");
  out.path = [...way].map((each) => Number(each.dataset.node));
  out.chosen = Number(byId("action").value);
  out.total = byId("reading").querySelectorAll(".total")[2].textContent;
  choose(0, 1);
  out.nodes = branches().length;
  out.bars = document.querySelectorAll("#nodes .bar").length;
  click("fold");
  out.open = document.querySelectorAll("#nodes details[open]").length;
  byId("find").value = "mine";
  byId("find").dispatchEvent(new Event("input"));
  out.found = byId("found").textContent;
  out.hits = document.querySelectorAll(".hit").length;
  out.unfolded = document.querySelectorAll("#nodes details[open]").length;
  choose(1, 0);
  out.head = byId("treehead").textContent;
  out.changes = byId("changes").textContent;
  out.rows = document.querySelectorAll("#all tbody tr").length;
} catch (error) { errors.push(String(error.stack)); }
document.body.dataset.out = JSON.stringify({ ...out, errors });
"""


@pytest.mark.skipif(CHROMIUM is None, reason="needs a browser: chromium")
def test_the_page_in_a_browser(data, tmp_path):
    text = page("trees", data).replace("</body>", f"<script>{DRIVEN}</script></body>")
    (tmp_path / "index.html").write_text(text, encoding="utf-8")
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]
    command += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom"]
    shown = subprocess.run(
        [*command, (tmp_path / "index.html").as_uri()], capture_output=True, text=True, timeout=120
    )
    found = re.search(r'data-out="([^"]*)"', shown.stdout)
    assert found, shown.stderr[-2000:]
    out = json.loads(found[1].replace("&quot;", '"').replace("&amp;", "&"))
    assert out["errors"] == []
    entry = data["positions"][1]
    assert (out["actions"], out["rows"], out["position"], out["next"]) == (4, 4, "0", "1")
    assert out["text"] == entry["text"]
    assert out["chosen"] == entry["reasons"][0]["action"]
    assert out["path"] == entry["reasons"][0]["paths"][0]["nodes"]
    value = entry["reasons"][0]["value"]
    assert out["total"] == f"{'−' if value < 0 else '+'}{abs(value) / 10_000:.4f}"
    tree = data["bags"][data["kinds"][0]["bag"]]["trees"][1]
    assert out["nodes"] == len(tree["feature"])
    assert out["bars"] == sum(len(leaf["terms"]) for leaf in tree["leaf"].values())
    assert out["open"] == 0
    mine = {f for f, name in enumerate(data["features"]) if "mine" in name}
    tests = [k for k, f in enumerate(tree["feature"]) if f in mine]
    leaves = [
        k
        for k, leaf in tree["leaf"].items()
        if mine & {*leaf["rest"], *(term[0] for term in leaf["terms"])}
    ]
    assert out["hits"] == len(tests) + len(leaves) > 0
    assert out["unfolded"] == sum(f >= 0 for f in tree["feature"])  # all that lie above a hit
    assert f"{len(mine)} features found" in out["found"]
    assert out["head"] == "Trees of column 1 (pooled)"
    assert out["changes"].startswith("Since generation 3:")
