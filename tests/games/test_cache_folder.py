"""numba does not notice that a kernel in another file has changed; the name of the folder does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import games

KERNEL = "from numba import njit\n\n@njit(cache=True)\ndef inner(x):\n    return x + {}\n"
CALLER = (
    "from numba import njit\nfrom games.inner import inner\n\n"
    "@njit(cache=True)\ndef outer(x):\n    return 10 * inner(x)\n"
)
PROGRAM = (
    "import numba, games\nfrom games.outer import outer\n"
    "print(numba.config.CACHE_DIR, outer(1), sum(outer.stats.cache_hits.values()))"
)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A copy of games/__init__.py over a game of two kernels in two files."""
    folder = tmp_path / "games"
    folder.mkdir()
    (tmp_path / "pipeline").mkdir()
    (tmp_path / "pipeline" / "draw.py").write_text(KERNEL.format(0))
    (folder / "__init__.py").write_text(Path(games.__file__).read_text())
    (folder / "game.py").write_text(
        "CHANCE = ILLEGAL = ONLOOKER = TERMINAL = None\n"
        "Game = Solution = Solver = Symmetry = View = None\n"
    )
    (folder / "inner.py").write_text(KERNEL.format(1))
    (folder / "outer.py").write_text(CALLER)
    monkeypatch.setenv("SELFPLAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    return folder


def run(package):
    """(cache folder, outer(1), whether it came from the cache) in a new process."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=package.parent,
        env={**os.environ, "PYTHONPATH": str(package.parent)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    folder, answer, hits = done.stdout.split()
    return Path(folder), int(answer), int(hits)


def test_a_changed_kernel_is_compiled_anew_for_its_callers_in_other_files(package):
    before, answer, hits = run(package)
    assert (answer, hits) == (10 * (1 + 1), 0)
    assert before.parent == package.parent / "cache"
    assert run(package) == (before, 10 * (1 + 1), 1)
    (package / "inner.py").write_text(KERNEL.format(2))
    after, answer, hits = run(package)
    assert (answer, hits) == (10 * (1 + 2), 0)
    assert after != before


def test_the_name_follows_the_sources_that_kernels_depend_on_and_nothing_else(package, monkeypatch):
    monkeypatch.setattr(games, "__file__", str(package / "__init__.py"))
    names = [games._cache_folder()]

    def changed():
        names.append(games._cache_folder())
        return names[-1] not in names[:-1]

    assert not changed()
    (package.parent / "pipeline" / "page.py").write_text("no_kernel = 1\n")
    assert not changed()
    # A game's kernels have the tables of its other modules compiled in.
    (package / "table.py").write_text("no_kernel = 1\n")
    assert changed()
    (package / "inner.py").write_text(KERNEL.format(3))
    assert changed()
    (package / "outer.py").rename(package / "renamed.py")
    assert changed()
    (package.parent / "pipeline" / "draw.py").write_text(KERNEL.format(4))
    assert changed()
    monkeypatch.setenv("NUMBA_BOUNDSCHECK", "1")
    assert changed()


@pytest.mark.skipif(os.name != "posix", reason="the other folder is named after a POSIX user")
def test_a_home_that_cannot_be_written_moves_the_folder_to_the_temporary_ones(
    package, tmp_path, monkeypatch
):
    monkeypatch.setattr(games, "__file__", str(package / "__init__.py"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(games.tempfile, "tempdir", str(tmp_path / "temporary"))
    usual = games._cache_folder()
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SELFPLAY_CACHE", str(tmp_path / "file"))
    other = games._cache_folder()
    assert other.name == usual.name and other.is_dir()
    assert other.is_relative_to(tmp_path / "temporary")
    # One that others can write to is not trusted: numba runs what it finds in its cache.
    (tmp_path / "temporary" / other.parent.name).chmod(0o777)
    assert games._cache_folder().parent == tmp_path / "temporary"
