"""As tests/games/test_run_modes.py, for games whose kernels take long to compile."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "games"))

import play_digest
from test_run_modes import run

pytestmark = pytest.mark.slow


def test_without_the_jit():
    assert run("slow", NUMBA_DISABLE_JIT="1") == [play_digest.digest(play_digest.SLOW), "jit off"]


def test_with_bounds_checks():
    digest = play_digest.digest(play_digest.SLOW)
    assert run("slow", NUMBA_BOUNDSCHECK="1") == [digest, "jit on", "bounds checked"]
