"""Random numbers that belong to a game, not to a process.

Every number is a pure function of (key of the game, ply, how many were drawn at that ply), so a
game is the same whichever actor plays it, beside whichever other games, however often it is
retried. Source of the mixing function: D. Stafford's variant 13 of the MurmurHash3 finalizer, as
used by SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
"""

import hashlib

import numpy as np
from numba import njit

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_TO_UNIT = 2.0**-53


@njit(cache=True)
def mix(z):
    """A bijection of uint64 that scatters neighbouring inputs."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(cache=True)
def _fill(keys, plies, first, out):
    draws = np.uint64(1 << 20)  # more numbers than any policy draws for one decision
    for i in range(len(keys)):
        for j in range(out.shape[1]):
            counter = np.uint64(plies[i]) * draws + np.uint64(first + j + 1)
            z = mix(keys[i] + counter * _GOLDEN)
            out[i, j] = np.float64(z >> np.uint64(11)) * _TO_UNIT


@njit(cache=True)
def _keys(words, indices, out):
    base = np.uint64(0)
    for word in words:
        base = mix(base + word + _GOLDEN)
    for i in range(len(indices)):
        out[i] = mix(base + (indices[i] + np.uint64(1)) * _GOLDEN)


def game_keys(seed: int, purpose: str, generation: int, indices) -> np.ndarray:
    """uint64 [N]: one key per game index, distinct for each seed, purpose and generation."""
    name = hashlib.blake2b(purpose.encode(), digest_size=8).digest()
    words = [seed, int.from_bytes(name, "little"), generation]
    indices = np.asarray(indices, np.uint64)
    out = np.empty(len(indices), np.uint64)
    _keys(np.array([word % 2**64 for word in words], np.uint64), indices, out)
    return out


class Streams:
    """One stream of uniform numbers per row of a batch.

    Args:
        keys: uint64 [B], from `game_keys`.
        plies: int32 [B], the ply each row is at.
    """

    def __init__(self, keys: np.ndarray, plies: np.ndarray, drawn: int = 0):
        self._keys = keys
        self._plies = plies
        self._drawn = drawn

    def uniform(self, columns: int = 1) -> np.ndarray:
        """float64 [B, columns] in [0, 1); the next call gives the numbers after these."""
        out = np.empty((len(self._keys), columns), np.float64)
        _fill(self._keys, self._plies, self._drawn, out)
        self._drawn += columns
        return out

    def rows(self, rows: np.ndarray) -> "Streams":
        """The streams of some rows, from where these stand."""
        return Streams(self._keys[rows], self._plies[rows], self._drawn)
