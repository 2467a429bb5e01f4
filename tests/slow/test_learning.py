"""The learning claims of docs/experiments/sumto100.md, on three seeds each."""

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from pipeline.config import CONF, to_config
from pipeline.train import train

pytestmark = pytest.mark.slow


def first_perfect(root, *overrides: str) -> tuple[int | None, dict]:
    """The first generation that answers every solved position, and the last record."""
    from pipeline.run import Run

    with initialize_config_dir(CONF, version_base="1.3"):
        composed = compose("config", overrides=[*overrides, f"root={root}", "run=run"])
    train(to_config(OmegaConf.to_container(composed, resolve=True)))
    records = Run.open(str(root), "run").records()
    perfect = [
        record["generation"]
        for record in records
        if record["solution"]["optimal"] == record["solution"]["of"]
    ]
    return (perfect[0] if perfect else None), records[-1]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_sumto100_as_in_the_document(tmp_path, seed):
    first, last = first_perfect(
        tmp_path, "experiment=sumto100", f"seed={seed}", "cluster=serial", "tracking=none"
    )
    assert last["solution"]["of"] == 91
    assert first is not None and first <= 25


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(
    ("rules", "positions"), [([], 91), (["game.target=200", "game.max_step=7"], 175)]
)
def test_sumto100_fast(tmp_path, seed, rules, positions):
    first, last = first_perfect(
        tmp_path,
        "experiment=sumto100_fast",
        f"seed={seed}",
        "cluster=serial",
        "tracking=none",
        *rules,
    )
    assert last["solution"]["of"] == positions
    assert first is not None and first <= 10
