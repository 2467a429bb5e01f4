"""The configuration: every wrong value is refused in one line that names its key."""

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf

from games import make_game
from pipeline import config as configuration
from pipeline.config import (
    CONF,
    LEARNERS,
    Config,
    Stage,
    check_run_name,
    checked,
    flatten,
    make_game_from,
    stage_for,
    to_config,
    to_dict,
)
from pipeline.errors import ConfigError
from pipeline.evaluate import EvaluateConfig

SECTIONS = {
    "policy": configuration.PolicyConfig,
    "opponents": configuration.OpponentsConfig,
    "selfplay": configuration.SelfplayConfig,
    "evaluation": configuration.EvaluationConfig,
    "gate": configuration.GateConfig,
    "tracking": configuration.TrackingConfig,
    "cluster": configuration.ClusterConfig,
}


def files(group: str) -> list[str]:
    return sorted(path.stem for path in (Path(CONF) / group).glob("*.yaml"))


def groups() -> list[str]:
    return sorted(path.name for path in Path(CONF).iterdir() if path.is_dir())


def read(group: str, name: str) -> dict:
    return OmegaConf.to_container(OmegaConf.load(Path(CONF) / group / f"{name}.yaml"))


def one_line(error) -> str:
    message = str(error.value)
    assert message and "\n" not in message
    return message


@pytest.fixture(scope="module")
def composed(compose) -> dict:
    """The defaults; do not change."""
    return compose()


def with_value(composed: dict, key: str, value: Any) -> dict:
    """A copy with one key set, as if a YAML file said so."""
    copy = OmegaConf.create(composed)
    OmegaConf.update(copy, key, value, merge=False, force_add=True)
    return OmegaConf.to_container(copy)


# What is there.


def test_the_defaults_are_the_documents_sumto100(composed):
    config = to_config(composed)
    assert config.game == {"name": "sumto", "target": 100, "max_step": 10}
    assert (config.game_name, config.game_params) == ("sumto", {"target": 100, "max_step": 10})
    assert config.generations == 25 and config.selfplay.games == 5000
    learner = config.learner
    assert isinstance(learner, LEARNERS["value_network"])
    assert (learner.discount, learner.hidden, learner.output) == (0.98, [512], "linear")
    assert (learner.batch, learner.epochs, learner.held_out) == (64, 5, 0.2)
    assert (learner.learning_rate, learner.weight_decay) == (1e-3, 1e-5)
    assert config.policy.epsilon == [Stage(1, [1.0]), Stage(2, [0.5, 0.5, 0.1])]


@pytest.mark.parametrize("name", files("experiment"))
def test_every_experiment_is_sound(compose, name):
    assert isinstance(to_config(compose(f"experiment={name}")), Config)


@pytest.mark.parametrize(
    ("group", "name"),
    [(group, name) for group in groups() if group != "experiment" for name in files(group)],
)
def test_every_file_of_every_group_is_sound(compose, group, name):
    needed = ["game=catan"] if name == "hierarchical" else []
    config = to_config(compose(f"{group}={name}", *needed))
    for key, value in read(group, name).items():
        section = to_dict(config)[group]
        if (group, key, value) == ("evaluation", "baselines", None):
            value = ["random", "win_or_random", "perfect"]  # all that the game has
        assert section[key] == (value if not isinstance(value, dict) else {**section[key], **value})


def test_every_group_of_the_design_is_there():
    assert groups() == sorted([*SECTIONS, "experiment", "game", "learner"])


@pytest.mark.parametrize("group", sorted(SECTIONS))
def test_every_key_is_in_a_file_of_its_group(group):
    """What no file says, nobody can override without a "+", nor read what it is for."""
    said = {key for name in files(group) for key in read(group, name)}
    assert {field.name for field in dataclasses.fields(SECTIONS[group])} == said


@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_has_a_file_with_every_key(name):
    assert {field.name for field in dataclasses.fields(LEARNERS[name])} == set(
        read("learner", name)
    )


@pytest.mark.parametrize("group", [*sorted(SECTIONS), "learner"])
def test_defaults_in_code_are_those_of_the_first_file(composed, group):
    kind = SECTIONS.get(group) or LEARNERS[composed["learner"]["name"]]
    for field in dataclasses.fields(kind):
        if field.name in composed[group] and not isinstance(
            field.default, str | None | type(dataclasses.MISSING)
        ):
            assert composed[group][field.name] == field.default


# What is refused.

REFUSED = [
    # (key, value, what the message must say beside the key)
    ("seed", -1, "0..9223372036854775807, got -1"),
    ("seed", 2**63, "got 9223372036854775808"),
    ("generations", 0, "1..9999, got 0"),
    ("generations", 10_000, "1..9999, got 10000"),
    ("run", "a/b", "got 'a/b'"),
    ("opponents.past", 0, "1..100, got 0"),
    ("opponents.past", 101, "got 101"),
    ("opponents.weights.self", -0.1, "got -0.1"),
    ("opponents.weights.self", 0.0, "positive sum"),
    ("opponents.weights.nobody", 1.0, "one of self, past, random, win_or_random, perfect"),
    ("selfplay.games", 0, "got 0"),
    ("selfplay.games", 2**31, "got 2147483648"),
    ("selfplay.games_per_shard", 0, "got 0"),
    ("selfplay.games_per_shard", 10**6 + 1, "got 1000001"),
    ("selfplay.batch", 0, "got 0"),
    ("selfplay.batch", 2**20 + 1, "got 1048577"),
    ("evaluation.games", 0, "got 0"),
    ("evaluation.games", 10**7 + 2, "got 10000002"),
    ("evaluation.games", 3, "multiple of the 2 seats of sumto"),
    ("evaluation.every", 0, "at least 1, got 0"),
    ("evaluation.opening_plies", -1, "got -1"),
    ("evaluation.ancestors", -1, "got -1"),
    ("evaluation.ancestors", 101, "got 101"),
    ("evaluation.baselines", ["nobody"], "one of random, win_or_random, perfect, got 'nobody'"),
    ("evaluation.baselines", ["random", "random"], "names one twice"),
    ("gate.rule", "never", "one of always, threshold, sprt, got 'never'"),
    ("gate.elo1", 0.0, "larger than gate.elo0, got elo0=0.0 elo1=0.0"),
    ("gate.elo0", -2001.0, "got -2001.0"),
    ("gate.alpha", 0.5, "got 0.5"),
    ("gate.beta", 0.0, "got 0.0"),
    ("gate.pairs", 0, "got 0"),
    ("gate.min_distinct", -1, "got -1"),
    ("opponents.past_by", "age", "one of uniform, recency, prioritised, got 'age'"),
    ("opponents.half_life", 0.0, "got 0.0"),
    ("opponents.power", -1.0, "got -1.0"),
    ("gate.threshold", 1.01, "0.0..1.0, got 1.01"),
    ("gate.threshold", -0.01, "got -0.01"),
    ("gate.games", 0, "got 0"),
    ("gate.opening_plies", 100, "must be less than 100, which sumto"),
    ("evaluation.opening_plies", 100, "nobody would decide anything"),
    ("gate.opening_plies", -1, "got -1"),
    ("tracking.register_every", 0, "got 0"),
    ("tracking.patience", -1.0, "got -1.0"),
    ("cluster.kind", "slurm", "one of ray, serial, got 'slurm'"),
    ("cluster.actors", 0, "got 0"),
    ("cluster.actors", 100_001, "got 100001"),
    ("cluster.learner_cpus", -1, "got -1"),
    ("cluster.patience", 0.5, "got 0.5"),
    ("learner.name", "nothing", "q_network, model_trees, hierarchical, got 'nothing'"),
    ("learner.targets", "td", "one of monte_carlo, one_step, got 'td'"),
    ("learner.output", "relu", "one of linear, tanh"),
    ("learner.loss", "l2", "one of mse, mae, huber"),
    ("learner.device", "tpu", "one of auto, jit, cpu, cuda"),
    ("learner.discount", 1.01, "0.0..1.0"),
    ("learner.discount", -0.01, "0.0..1.0"),
    ("learner.sweeps", 0, "1..1000"),
    ("learner.sweeps", 1001, "1..1000"),
    ("learner.hidden", [8, 0], "1..65536, got 0"),
    ("learner.hidden", [65537], "got 65537"),
    ("learner.learning_rate", 0.0, "got 0.0"),
    ("learner.learning_rate", 101.0, "got 101.0"),
    ("learner.weight_decay", -1e-9, "got -1e-09"),
    ("learner.weight_decay", 101.0, "got 101.0"),
    ("learner.batch", 0, "got 0"),
    ("learner.batch", 2**24 + 1, "got 16777217"),
    ("learner.epochs", 0, "got 0"),
    ("learner.epochs", 10**6 + 1, "got 1000001"),
    ("learner.held_out", 0.91, "0.0..0.9, got 0.91"),
    ("learner.held_out", -0.1, "got -0.1"),
    ("learner.window_generations", 0, "at least 1"),
    ("learner.window_rows", 0, "at least 1"),
    ("learner.threads", 0, "got 0"),
    ("learner.threads", 1025, "got 1025"),
    # Contradictions.
    ("learner.sweeps", 2, "contradicts learner.targets=monte_carlo"),
    ("policy.epsilon", [], "the first 1, got from_generation []"),
    ("policy.epsilon", [{"from_generation": 2, "by_ply": [1.0]}], "got from_generation [2]"),
    ("policy.epsilon", [{"from_generation": 1, "by_ply": []}], "at least one value"),
    ("policy.epsilon", [{"from_generation": 1, "by_ply": [0.5, 1.1]}], "0.0..1.0, got 1.1"),
    ("policy.temperature", [{"from_generation": 1, "by_ply": [-1.0]}], "at least 0.0, got -1.0"),
    (
        "policy.temperature",
        [{"from_generation": each, "by_ply": [1.0]} for each in (1, 5, 5)],
        "rising from_generation, the first 1, got from_generation [1, 5, 5]",
    ),
    # Wrong types.
    ("seed", "abc", "could not be converted to Integer"),
    ("seed", 1.5, "could not be converted to Integer"),
    ("seed", None, "None"),
    ("root", None, "None"),
    ("generations", [1], "could not be converted to Integer"),
    ("selfplay.games", 1000.5, "could not be converted to Integer"),
    ("selfplay.games", "many", "could not be converted to Integer"),
    ("selfplay.games", {"a": 1}, ""),
    ("evaluation.baselines", "random", "a list is expected, in brackets"),
    ("evaluation.predecessor", "perhaps", "not a valid bool"),
    ("opponents.weights", None, "not Optional"),
    ("opponents.weights.self", "much", "could not be converted to Float"),
    ("tracking.enabled", "perhaps", "not a valid bool"),
    ("learner.hidden", 5, "a list is expected, in brackets"),
    ("learner.hidden", ["wide"], "could not be converted to Integer"),
    ("learner.name", None, "got None"),
    ("learner.name", ["value_network"], "one of value_network"),
    ("policy.epsilon", 0.5, "a list is expected, in brackets"),
    ("policy.epsilon", [0.5], "float"),
    ("policy.epsilon", [{"from_generation": 1}], "by_ply is missing"),
    ("policy.epsilon", [{"from_generation": "one", "by_ply": [1.0]}], "converted to Integer"),
    ("policy.temperature", [{"from_generation": 1, "by_ply": ["hot"]}], "converted to Float"),
    # Not finite.
    ("learner.discount", float("nan"), "got nan"),
    ("learner.learning_rate", float("inf"), "got inf"),
    ("learner.held_out", float("nan"), "got nan"),
    ("gate.threshold", float("nan"), "got nan"),
    ("opponents.weights.self", float("nan"), "got nan"),
    ("opponents.weights.self", float("inf"), "got inf"),
    ("policy.epsilon", [{"from_generation": 1, "by_ply": [float("nan")]}], "got nan"),
    ("tracking.patience", float("nan"), "got nan"),
    ("cluster.patience", float("inf"), "got inf"),
    # Unknown keys.
    ("generation", 3, "generation"),
    ("learner.hiden", [3], "did you mean hidden?"),
    ("selfplay.gamse", 3, "did you mean games?"),
    ("cluster.colour", "red", "'ClusterConfig'"),
    ("policy.epsilon", [{"from_generation": 1, "by_ply": [1.0], "note": 1}], "note"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("key", "value", "words"), REFUSED, ids=[f"{key}={value}" for key, value, _ in REFUSED]
)
def test_what_is_refused_is_named_in_one_line(composed, key, value, words):
    with pytest.raises(ConfigError) as caught:
        to_config(with_value(composed, key, value))
    message = one_line(caught)
    # At least the section: of a list of stages OmegaConf may not say which one.
    assert re.search(rf"\b{re.escape(key)}|{re.escape(key.rsplit('.', 1)[0])}\b", message)
    assert words in message


def test_only_a_gate_that_plays_needs_every_seating_equally_often(composed):
    gate = {"rule": "threshold", "threshold": 0.5, "games": 5, "opening_plies": 2}
    with pytest.raises(ConfigError, match=r"gate\.games must be a multiple of the 2 seats"):
        to_config({**composed, "gate": gate})
    # The 400 games that nobody asked for are no obstacle to a game of three seats.
    game = {"name": "catan", "players": 3}
    more = {"game": game, "evaluation": composed["evaluation"] | {"games": 9}}
    assert to_config({**composed, **more}).gate.rule == "always"


ENDS = [
    ("seed", 0),
    ("seed", 2**63 - 1),
    ("generations", 1),
    ("generations", 9999),
    ("opponents.past", 1),
    ("opponents.past", 100),
    ("selfplay.games", 1),
    ("selfplay.batch", 1),
    ("selfplay.batch", 2**20),
    ("evaluation.games", 2),
    ("evaluation.opening_plies", 0),
    ("evaluation.ancestors", 0),
    ("evaluation.ancestors", 100),
    ("evaluation.baselines", []),
    ("gate.threshold", 0.0),
    ("gate.threshold", 1.0),
    ("gate.alpha", 0.49),
    ("gate.min_distinct", 0),
    ("opponents.power", 0.0),
    ("tracking.patience", 0.0),
    ("tracking.uri", "http://127.0.0.1:5000"),
    ("cluster.actors", None),
    ("cluster.actors", 1),
    ("cluster.patience", 1.0),
    ("learner.discount", 0.0),
    ("learner.discount", 1.0),
    ("learner.discount", 1),
    ("learner.hidden", []),
    ("learner.hidden", [1, 65536]),
    ("learner.held_out", 0.0),
    ("learner.held_out", 0.9),
    ("learner.weight_decay", 0.0),
    ("policy.epsilon", [{"from_generation": 1, "by_ply": [0.0, 1.0]}]),
    ("policy.temperature", [{"from_generation": 1, "by_ply": [1e9]}]),
]


@pytest.mark.parametrize(("key", "value"), ENDS, ids=[f"{key}={value}" for key, value in ENDS])
def test_the_ends_of_the_ranges_are_allowed(composed, key, value):
    config = to_dict(to_config(with_value(composed, key, value)))
    assert {**config, **flatten(config)}[key] == value


@pytest.mark.parametrize(
    ("game", "message"),
    [
        ({}, "game.name is missing; choose a game"),
        ({"name": "chess"}, "no game named 'chess'"),
        ({"name": None}, "no game named None"),
        ({"name": ["sumto"]}, "no game named"),
        ({"name": "sumto", "size": 3}, "no parameter 'size'"),
        ({"name": "sumto", "target": "100"}, "parameter target of game sumto must be of type int"),
        ({"name": "sumto", "target": 100.0}, "must be of type int"),
        ({"name": "sumto", "max_step": 0}, "max_step of game sumto must lie in"),
        ({"name": "k_in_a_row", "k": 99}, "k of game k_in_a_row must lie in 2..7"),
    ],
)
def test_games_that_are_refused(composed, game, message):
    with pytest.raises(ConfigError) as caught:
        to_config({**composed, "game": game})
    assert message in one_line(caught)


def test_a_game_is_kept_in_its_own_words_and_whole(composed):
    game = {"name": "risk", "base": 3}  # as Hydra reads game.base=3
    config = to_config({**composed, "game": game})
    assert config.game_params == dict(make_game("risk", base="3").params)
    assert to_config(to_dict(config)) == config


def test_baselines_are_those_of_the_game(composed):
    four = {"name": "k_in_a_row"}
    to_config({**composed, "game": four})
    with pytest.raises(
        ConfigError, match=r"one of random, win_or_random, block_or_random, .*, got 'perfect'"
    ):
        to_config({**with_value(composed, "evaluation.baselines", ["perfect"]), "game": four})
    with pytest.raises(ConfigError, match=r"opponents\.weights must be one of .*got 'perfect'"):
        to_config({**with_value(composed, "opponents.weights.perfect", 1.0), "game": four})


def test_a_serial_cluster_has_one_actor(compose):
    with pytest.raises(ConfigError) as caught:
        to_config(compose("cluster=serial", "cluster.actors=2"))
    assert "cluster.actors=2 contradicts cluster.kind=serial" in one_line(caught)
    assert to_config(compose("cluster=serial", "cluster.actors=1")).cluster.actors == 1


@pytest.mark.parametrize("key", ["generations", "game", "learner", "selfplay", "gate", "cluster"])
def test_a_missing_key_is_named(composed, key):
    with pytest.raises(ConfigError) as caught:
        to_config({name: value for name, value in composed.items() if name != key})
    assert key in one_line(caught)


@pytest.mark.parametrize("key", ["selfplay.games", "learner.discount", "gate.rule"])
def test_a_key_without_a_value_is_named(composed, key):
    with pytest.raises(ConfigError) as caught:
        to_config(with_value(composed, key, "???"))
    assert one_line(caught) == f"{key} is missing; give it a value, as in {key}=..."


@pytest.mark.parametrize("section", ["learner", "policy", "cluster", "game"])
@pytest.mark.parametrize("value", [None, 5, "text", [1]])
def test_a_section_of_another_form_is_refused(composed, section, value):
    with pytest.raises(ConfigError) as caught:
        to_config({**composed, section: value})
    assert section in one_line(caught)


@pytest.mark.parametrize(
    "override",
    ["+generation=3", "+learner.momentum=0.9", "+selfplay.actors=2", "+game.depth=2", "+gate.x=1"],
)
def test_an_unknown_key_with_a_plus_is_refused(compose, override):
    with pytest.raises(ConfigError) as caught:
        to_config(compose(override))
    assert override[1:].split("=")[0].split(".")[-1] in one_line(caught)


# Names of runs.


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "a/b", "/a", "a/", "../a", "a\\b", "a b", " a", "a\n", "a\0", "-a", "_a", ".a",
     "a:b", "a*", "~", "$HOME", "ä", "²", "a" * 101, "a%2f", "s3://a"],
)  # fmt: skip
def test_names_that_are_no_plain_folder_are_refused(name):
    with pytest.raises(ConfigError) as caught:
        check_run_name(name)
    assert repr(name) in one_line(caught)


@pytest.mark.parametrize(
    "name", ["a", "7", "A.b_c-d", "a..b", "sumto100-20250101-120000", "a" * 100]
)
def test_plain_names_are_allowed(name):
    check_run_name(name)


@given(st.text(max_size=8))
def test_an_allowed_name_is_one_folder_below_the_root(name):
    try:
        check_run_name(name)
    except ConfigError:
        return
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name)
    assert (Path("/nowhere") / name).resolve() == Path(f"/nowhere/{name}")


# Parts.


def test_a_stage_holds_until_the_next_one():
    stages = [Stage(1, [1.0]), Stage(2, [0.5]), Stage(10, [0.1])]
    values = [stage_for(stages, generation)[0] for generation in (1, 2, 3, 9, 10, 9999)]
    assert values == [1.0, 0.5, 0.5, 0.5, 0.1, 0.1]


def test_a_configuration_survives_yaml(composed):
    config = to_config(composed)
    again = to_config(yaml.safe_load(yaml.safe_dump(to_dict(config))))
    assert again == config


def test_flatten_by_hand():
    nested = {"a": 1, "b": {"c": [1, {"d": 2}], "e": {"f": None}}, "g": {}}
    assert flatten(nested) == {"a": 1, "b.c": [1, {"d": 2}], "b.e.f": None, "g": {}}
    assert flatten({}) == {}


TREES = st.recursive(
    st.integers() | st.none() | st.lists(st.integers(), max_size=2),
    lambda inner: st.dictionaries(st.text("abc", min_size=1, max_size=2), inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.text("abc", min_size=1, max_size=2), TREES, max_size=4))
def test_flatten_keeps_every_leaf_under_its_path(tree):
    flat = flatten(tree)
    for path, value in flat.items():
        section = tree
        for key in path.split("."):
            section = section[key]
        assert section == value and (not isinstance(value, dict) or not value)

    def leaves(section) -> int:
        return sum(leaves(v) if isinstance(v, dict) and v else 1 for v in section.values())

    assert len(flat) == leaves(tree)


def test_a_game_from_its_section():
    game = make_game_from({"name": "sumto", "target": 12, "max_step": 3})
    assert game.params == {"target": 12, "max_step": 3}


# `selfplay evaluate` has a configuration of its own.


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ([], "run"),
        (["run=x", "games=0"], "games must be at least 1"),
        (["run=x", "opening_plies=-1"], "opening_plies and seed at least 0"),
        (["run=x", "seed=-1"], "seed at least 0"),
        (["run=x", "against=[]"], "against must name somebody"),
        (["run=x", "games=many"], "games: Value 'many'"),
        (["run=x", "+enemies=[random]"], "enemies"),
        (["run=x", "cluster.kind=slurm"], "cluster.kind must be one of ray, serial"),
    ],
)
def test_what_evaluate_refuses(compose, overrides, message):
    with pytest.raises(ConfigError) as caught:
        checked(EvaluateConfig, OmegaConf.create(compose(*overrides, name="evaluate")), "against")
    assert message in one_line(caught)


def test_what_evaluate_takes(compose):
    composed = OmegaConf.create(compose("run=x", "against=[random,12,other/3]", name="evaluate"))
    config = checked(EvaluateConfig, composed, "against")
    assert config.against == ["random", 12, "other/3"] and config.generation is None


@pytest.mark.parametrize("one", ["perfect", "12", "other/3"])
def test_one_opponent_is_a_list_of_one(compose, one):
    composed = OmegaConf.create(compose("run=x", f"against={one}", name="evaluate"))
    [only] = checked(EvaluateConfig, composed, "against").against
    assert str(only) == one
