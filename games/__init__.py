"""Rules of the games: pure, batched, jitted, importing nothing of ours.

`make_game` is the one way in. Kernels are compiled once per machine into a cache folder that is
named by a hash of every source here and of those elsewhere with kernels in them: numba by itself
does not notice that a kernel in another file, or a table that it was compiled with, has changed and
goes on running the old one (docs/decisions/0003).
"""

import hashlib
import importlib
import inspect
import os
import tempfile
from pathlib import Path

import numba


def _cache_folder() -> Path:
    here = Path(__file__).resolve().parent
    digest = hashlib.sha256()
    # The pipeline has kernels too (drawing actions, trees); they are compiled into the same folder.
    for package in (here, here.parent / "pipeline"):
        for source in sorted(package.rglob("*.py")):
            text = source.read_bytes()
            # A kernel has the tables and numbers of other modules of its game compiled in.
            if package == here or b"njit" in text:
                digest.update(str(source.relative_to(here.parent)).encode() + b"\0" + text)
    # NUMBA_BOUNDSCHECK is ignored on a warm cache: such a run gets a folder of its own.
    digest.update(os.environ.get("NUMBA_BOUNDSCHECK", "0").encode())
    name = f"numba-{digest.hexdigest()[:16]}"
    base = os.environ.get("SELFPLAY_CACHE") or Path.home() / ".cache" / "selfplay"
    folder = Path(base) / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass
    # A home that cannot be written, as in a read-only container. A folder of ours in the common
    # temporary one must be ours alone: numba runs what it finds there.
    common = Path(tempfile.gettempdir()) / f"selfplay-{os.getuid()}"
    common.mkdir(mode=0o700, exist_ok=True)
    if common.stat().st_uid != os.getuid() or common.stat().st_mode & 0o077:
        return Path(tempfile.mkdtemp(prefix="selfplay-"))
    (common / name).mkdir(exist_ok=True)
    return common / name


if "NUMBA_CACHE_DIR" not in os.environ:
    numba.config.CACHE_DIR = str(_cache_folder())

from games.game import (  # noqa: E402
    CHANCE,
    ILLEGAL,
    ONLOOKER,
    TERMINAL,
    Game,
    Solution,
    Solver,
    Symmetry,
    View,
)

GAMES = {  # name -> module with a function `make(**params) -> Game`
    "catan": "games.catan",
    "k_in_a_row": "games.k_in_a_row",
    "risk": "games.risk",
    "sumto": "games.sumto",
}


def make_game(name: str, **params) -> Game:
    """Builds a game from its name and rule parameters.

    Args:
        name: a key of `GAMES`.
        params: the keyword arguments of that game's `make`; missing ones take their defaults. A
            whole number stands for the text of it where a text is due.

    Raises:
        ValueError: there is no such game or parameter, or a value is out of its range.
    """
    if not isinstance(name, str) or name not in GAMES:
        raise ValueError(f"there is no game named {name!r}; the games are {', '.join(GAMES)}")
    make = importlib.import_module(GAMES[name]).make
    known = inspect.signature(make).parameters
    for key, value in params.items():
        if key not in known:
            raise ValueError(
                f"game {name} has no parameter {key!r}; its parameters are {', '.join(known)}"
            )
        kind = type(known[key].default)
        if kind is str and type(value) is int:  # how YAML reads a text such as "3"
            value = params[key] = str(value)
        if type(value) is not kind:
            raise ValueError(
                f"parameter {key} of game {name} must be of type {kind.__name__}, got {value!r}"
            )
    return make(**params)


__all__ = [
    "CHANCE",
    "GAMES",
    "ILLEGAL",
    "ONLOOKER",
    "TERMINAL",
    "Game",
    "Solution",
    "Solver",
    "Symmetry",
    "View",
    "make_game",
]
