"""Small training runs for tests: a configuration, and what of a run must not depend on chance."""

import json
from pathlib import Path

import yaml

from pipeline.config import Config, to_config
from pipeline.run import Run

_CONF = Path(__file__).resolve().parents[2] / "conf"


def small_config(root: Path | str, name: str, **overrides) -> Config:
    """SumTo20 with steps of 1 to 4, 3 shards a generation; some tenths of a second each.

    Args:
        overrides: keys with "__" for ".", as in selfplay__games=60.
    """
    composed: dict = {
        "run": name,
        "root": str(root),
        "seed": 5,
        "generations": 2,
        "game": {"name": "sumto", "target": 20, "max_step": 4},
    }
    for group, choice in (
        ("learner", "value_network"),
        ("policy", "epsilon_greedy"),
        ("opponents", "self"),
        ("selfplay", "default"),
        ("evaluation", "default"),
        ("gate", "always"),
        ("tracking", "none"),
        ("cluster", "serial"),
    ):
        composed[group] = yaml.safe_load((_CONF / group / f"{choice}.yaml").read_text())
    network = {"learner__hidden": [16], "learner__learning_rate": 1e-2}
    settings = {
        **({} if "learner" in overrides else network),
        "selfplay__games": 150,
        "selfplay__games_per_shard": 50,
        "evaluation__games": 20,
        **overrides,
    }
    for key, value in settings.items():
        section = composed
        *path, last = key.split("__")
        for part in path:
            section = section.setdefault(part, {})
        section[last] = value
    return to_config(composed)


def content(run: Run) -> list[dict]:
    """What a run consists of, by generation: policies, shards and numbers, without times."""
    records = {record["generation"]: record for record in run.records()}
    generations = []
    for generation in run.complete():
        manifest, record = run.manifest(generation), records[generation]
        learner = {key: value for key, value in record["learner"].items() if key != "seconds"}
        generations.append(
            {
                "policy": manifest["policy"]["digest"],
                "champion": manifest["champion"]["digest"],
                "shards": [(Path(s["path"]).name, s["sha256"]) for s in manifest["shards"]],
                "learner": json.dumps(learner),
                "evaluation": json.dumps(record["evaluation"]),
                "solution": json.dumps(record["solution"]),
                "ratings": json.dumps(record["ratings"]),
                "gate": json.dumps(record.get("gate")),
            }
        )
    return generations
