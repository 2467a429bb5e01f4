"""The loop: the same run whatever it runs on, from wherever it goes on."""

from collections import Counter

import numpy as np
import pytest
from small_runs import content, small_config

from games import make_game
from pipeline import traces
from pipeline.errors import RunError
from pipeline.run import Run
from pipeline.train import train

MIXED = {"opponents__weights": {"self": 0.6, "past": 0.2, "random": 0.2}}
TESTED = {
    "opponents__past_by": "prioritised",
    "gate__rule": "sprt",
    "gate__pairs": 80,
    "gate__elo1": 100.0,
}


def run_of(root, name="run", **overrides) -> Run:
    train(small_config(root, name, **overrides))
    return Run.open(str(root), name)


def test_a_run_in_one_go_equals_a_run_that_was_continued(tmp_path):
    whole = run_of(tmp_path, "whole", generations=3, **MIXED)
    run_of(tmp_path, "parts", generations=1, **MIXED)
    parts = run_of(tmp_path, "parts", generations=3, **MIXED)
    assert len(content(whole)) == 4
    assert content(parts)[:1] + content(parts)[2:] == content(whole)[:1] + content(whole)[2:]
    # Generation 1 was the last one of its first start; everything but that is the same too.
    assert content(parts)[1]["shards"] == content(whole)[1]["shards"]


def test_lengths_and_openings_are_those_of_all_shards_also_of_found_ones(tmp_path):
    whole = run_of(tmp_path, "whole", **MIXED)
    broken = run_of(tmp_path, "broken", **MIXED)
    break_off(broken, 2)
    broken.storage.delete(broken.shard_path(2, 0))
    broken = run_of(tmp_path, "broken", **MIXED)
    play, again = (run.records()[2]["selfplay"] for run in (whole, broken))
    assert again["shards_found"] == 2
    for key in ("lengths", "openings", "opening_entropy"):
        assert play[key] == again[key]
    plies = sum(int(length) * games for length, games in play["lengths"].items())
    assert plies == play["plies"] and sum(play["lengths"].values()) == play["games"] == 150
    chosen = {}
    for entry in whole.manifest(2)["shards"]:
        rows = traces.read_shard(
            whole.storage, make_game(**whole.config.game), entry["path"]
        ).traces
        first = (rows.state["sum"] == 0) & (rows.policy == 0) & ~rows.explored
        for action in rows.action[first]:
            chosen[str(action)] = chosen.get(str(action), 0) + 1
    assert play["openings"] == chosen
    assert 0 < play["opening_entropy"] <= np.log2(len(chosen)) or len(chosen) == 1


@pytest.mark.parametrize("actors", [1, 2, 3])
def test_traces_and_policies_are_the_same_with_any_number_of_actors(tmp_path, ray_session, actors):
    options = {**MIXED, **TESTED}
    serial = run_of(tmp_path, "serial", **options)
    parallel = run_of(tmp_path, "parallel", cluster__kind="ray", cluster__actors=actors, **options)
    assert content(parallel) == content(serial)


def test_another_seed_gives_another_run(tmp_path):
    first, second = run_of(tmp_path, "first"), run_of(tmp_path, "second", seed=6)
    assert content(first)[1]["shards"] != content(second)[1]["shards"]


def break_off(run: Run, generation: int) -> None:
    """Leaves the run as a crash in that generation after self-play would."""
    for file in ("manifest.json", "policy/policy.json"):
        run.storage.delete(f"{run.folder(generation)}/{file}")


def flip(data: bytes, position: int) -> bytes:
    return data[:position] + bytes([data[position] ^ 8]) + data[position + 1 :]


DAMAGE = {
    "truncated": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
    "page bit": lambda data: flip(data, 60),
    "footer bit": lambda data: flip(data, len(data) - 40),
    "not parquet": lambda data: b"PAR1 nonsense PAR1",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_shard_is_refused_by_name_and_played_again(tmp_path, capsys, damage):
    whole = content(run_of(tmp_path, "whole"))
    run = run_of(tmp_path, "run")
    path = run.shard_path(2, 1)
    run.storage.write(path, DAMAGE[damage](run.storage.read(path)))
    break_off(run, 2)
    assert content(run_of(tmp_path, "run")) == whole
    said = capsys.readouterr().err
    assert "shard-00001.parquet" in said and said.count("warning:") == 1


def test_a_foreign_shard_is_refused_by_name_and_played_again(tmp_path, capsys):
    whole = content(run_of(tmp_path, "whole"))
    other = run_of(tmp_path, "other", seed=99)
    run = run_of(tmp_path, "run")
    run.storage.write(run.shard_path(2, 0), other.storage.read(other.shard_path(2, 0)))
    break_off(run, 2)
    assert content(run_of(tmp_path, "run")) == whole
    assert "belongs to something else" in capsys.readouterr().err


def test_a_missing_shard_alone_is_played_again(tmp_path):
    whole = content(run_of(tmp_path, "whole"))
    run = run_of(tmp_path, "run")
    break_off(run, 2)
    run.storage.delete(run.shard_path(2, 2))
    kept = (tmp_path / run.shard_path(2, 0)).stat().st_mtime_ns
    assert content(run_of(tmp_path, "run")) == whole
    assert (tmp_path / run.shard_path(2, 0)).stat().st_mtime_ns == kept


@pytest.mark.parametrize("damage", ["truncated", "page bit"])
def test_a_shard_damaged_long_after_its_generation_is_played_again(tmp_path, capsys, damage):
    options = {"generations": 3, "learner__window_generations": 3, **MIXED}
    whole = content(run_of(tmp_path, "whole", **options))
    run = run_of(tmp_path, "run", **options)
    path = run.shard_path(1, 2)
    run.storage.write(path, DAMAGE[damage](run.storage.read(path)))
    break_off(run, 3)
    assert content(run_of(tmp_path, "run", **options)) == whole
    assert "generation=0001/shard-00002.parquet" in capsys.readouterr().err


def test_a_shard_that_other_code_wrote_is_replaced_in_its_manifest(tmp_path, monkeypatch):
    options = {"generations": 3, "learner__window_generations": 3}
    whole = content(run_of(tmp_path, "whole", **options))
    run = run_of(tmp_path, "run", **options)
    path = run.shard_path(1, 2)
    run.storage.write(path, b"")
    break_off(run, 3)
    monkeypatch.setattr("pipeline.train.code_version", lambda: "newer")
    again = content(run_of(tmp_path, "run", **options))
    assert [each["policy"] for each in again] == [each["policy"] for each in whole]
    manifest = Run.open(str(tmp_path), "run").manifest(1)
    [entry] = [each for each in manifest["shards"] if each["path"] == path]
    assert entry["sha256"] == traces.fingerprint(run.storage.read(path))


def test_every_shard_replays_by_the_rules(tmp_path):
    run = run_of(tmp_path, **MIXED)
    game = make_game("sumto", target=20, max_step=4)
    for entry in run.manifest(2)["shards"]:
        shard = traces.read_shard(run.storage, game, entry["path"], entry["sha256"])
        from pipeline.replay import keys_of

        traces.check(game, shard, keys_of(shard), entry["path"])


def test_nothing_is_counted_twice(tmp_path):
    run = run_of(tmp_path)
    record = run.records()[2]
    assert record["selfplay"]["games"] == 150
    assert record["selfplay"]["illegal"] == 0
    games = np.concatenate(
        [
            traces.read_shard(
                run.storage, make_game("sumto", target=20, max_step=4), entry["path"]
            ).traces.game
            for entry in run.manifest(2)["shards"]
        ]
    )
    assert sorted(set(games.tolist())) == list(range(150))


def test_a_changed_configuration_is_refused_with_its_keys(tmp_path):
    run_of(tmp_path)
    with pytest.raises(RunError, match=r"learner\.epochs 5 -> 7; seed 5 -> 8"):
        run_of(tmp_path, seed=8, learner__epochs=7)


@pytest.mark.parametrize("rule", ["recency", "prioritised"])
def test_opponents_by_weight_are_the_same_when_a_run_goes_on(tmp_path, rule):
    # With every=2 the parts have one evaluation more, in generation 3, that must decide nothing.
    options = {**MIXED, **TESTED, "opponents__past_by": rule, "evaluation__every": 2}
    whole = run_of(tmp_path, "whole", generations=5, **options)
    run_of(tmp_path, "parts", generations=3, **options)
    parts = run_of(tmp_path, "parts", generations=5, **options)
    for one, other in zip(content(whole), content(parts), strict=True):
        assert (one["shards"], one["gate"]) == (other["shards"], other["gate"])
    path = parts.shard_path(2, 1)
    data = parts.storage.read(path)
    parts.storage.delete(path)
    again = run_of(tmp_path, "parts", generations=5, **options)
    assert again.storage.read(path) == data


LEARNS_FAST = {
    "learner__targets": "one_step",
    "learner__sweeps": 4,
    "learner__output": "tanh",
    "learner__held_out": 0.1,
}


def test_the_threshold_gate_promotes_who_wins_and_no_equal(tmp_path):
    gate = {"gate__rule": "threshold", "gate__threshold": 0.75, "gate__games": 40}
    run = run_of(tmp_path, generations=8, **gate, **LEARNS_FAST)
    assert run.champion(1) == run.policy(1)  # it beats the untrained network
    # Two perfect players win half the games against each other: the champion stays.
    assert run.champion(8) == run.champion(7) != run.policy(8)


def test_the_sequential_gate_promotes_who_wins_and_no_equal(tmp_path):
    # Only 16 openings of two plies: too few pairs to tell 50 points, enough to tell 200.
    gate = {"gate__rule": "sprt", "gate__min_distinct": 10, "gate__elo1": 200.0}
    run = run_of(tmp_path, generations=8, **gate, **LEARNS_FAST)
    gates = [record["gate"] for record in run.records()[1:]]
    # The learned policy beats the untrained one long before the cap; two perfect players share
    # every pair, so that elo0 is accepted.
    assert gates[0]["decision"] == "promoted" and gates[0]["llr"] >= gates[0]["upper"]
    assert gates[7]["decision"] == "kept" and gates[7]["llr"] <= gates[7]["lower"]
    assert run.champion(1) == run.policy(1) and run.champion(8) == run.champion(7)
    assert all(gate["games"] == 2 * gate["pairs"] < 800 for gate in gates)


def test_a_gate_of_too_few_different_games_keeps_the_champion(tmp_path):
    # No random opening: two greedy networks play one game from each seat, over and over.
    gate = {"gate__rule": "threshold", "gate__opening_plies": 0, "gate__threshold": 0.0}
    free = run_of(tmp_path, "free", **gate, gate__games=40, generations=1)
    bound = run_of(tmp_path, "bound", **gate, gate__games=40, gate__min_distinct=20, generations=1)
    assert free.champion(1) == free.policy(1)
    assert bound.champion(1) == bound.policy(0)
    assert "distinct games, needed 20" in bound.records()[1]["gate"]["reason"]


def test_ratings_are_of_all_evaluation_matches_so_far_and_of_no_gate(tmp_path):
    run = run_of(tmp_path, generations=4, gate__rule="sprt", evaluation__every=2, **LEARNS_FAST)
    records = run.records()
    assert [record["ratings"] is not None for record in records] == [True, False, True, False, True]
    games: Counter[str] = Counter()
    for record in records:
        for row in record["evaluation"]:
            games[record["policy"]] += row["n"]
            games[row["policy"]] += row["n"]
        if record["ratings"]:
            rated = {each["player"]: each for each in record["ratings"]["players"]}
            assert {name: each["games"] for name, each in rated.items()} == games
            assert rated["random"]["rating"] == 0.0
    best = records[-1]["ratings"]["players"][0]
    assert best["player"] in ("perfect", *(f"{run.policy(g).name}" for g in (2, 3, 4)))
    assert rated[records[0]["policy"]]["high"] < rated[records[-1]["policy"]]["low"]


def test_sumto_is_learned_perfectly_from_a_fixed_seed(tmp_path):
    # 20 - s divisible by 5 are the sums that win: 0 excluded, 16 of the sums 0..19 can reach one.
    run = run_of(tmp_path, generations=8, **LEARNS_FAST)
    assert run.records()[-1]["solution"]["optimal"] == 16


def test_resuming_a_finished_run_plays_a_missing_shard_again(tmp_path):
    config = small_config(tmp_path, "run")
    train(config)
    run = Run.open(str(tmp_path), "run")
    before = content(run)
    path = run.shard_path(1, 1)
    data = run.storage.read(path)
    run.storage.delete(path)
    train(config)
    assert run.storage.read(path) == data and content(run) == before


def test_games_without_a_choice_have_nothing_to_teach(tmp_path):
    """With steps of 1 alone every action is forced."""
    config = small_config(tmp_path, "run", game__max_step=1, evaluation__games=2)
    with pytest.raises(RunError, match=r"hold no decision: every choice was forced"):
        train(config)
