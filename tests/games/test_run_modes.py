"""The kernels say the same without the JIT and with bounds checks."""

import os
import subprocess
import sys
from pathlib import Path

import play_digest

HERE = Path(__file__).resolve().parent


def run(*arguments, **environment):
    """The lines that play_digest.py prints in a process of its own, where a warning is an error."""
    done = subprocess.run(
        [sys.executable, "-W", "error", str(HERE / "play_digest.py"), *arguments],
        env={**os.environ, "PYTHONPATH": str(HERE.parents[1]), **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1]


def test_without_the_jit():
    assert run(NUMBA_DISABLE_JIT="1") == [play_digest.digest(), "jit off"]


def test_with_bounds_checks():
    # The last line proves that no kernel came from the cache of a run without checks.
    assert run(NUMBA_BOUNDSCHECK="1") == [play_digest.digest(), "jit on", "bounds checked"]
