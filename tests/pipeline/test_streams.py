"""Random numbers of games: pure functions of (key, ply, draw), alike nowhere else, and uniform."""

import hashlib
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.streams import Streams, game_keys, mix

GOLDEN = 0x9E3779B97F4A7C15
MASK = 2**64 - 1
WORDS = st.integers(0, MASK)


def plain_mix(z: int) -> int:
    """The finalizer as published: Steele, Lea, Flood (2014), figure 16, `mix64` variant 13."""
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


def plain_uniform(key: int, ply: int, draw: int) -> float:
    return (plain_mix(key + (ply * 2**20 + draw + 1) * GOLDEN & MASK) >> 11) / 2**53


def at(keys, ply=0) -> Streams:
    keys = np.asarray(keys, np.uint64)
    return Streams(keys, np.broadcast_to(np.asarray(ply, np.int32), len(keys)).copy())


def test_mix_is_the_finalizer_of_splitmix64():
    # Source: the first outputs for seed 1234567 of S. Vigna's splitmix64.c, as Rosetta Code
    # ("Pseudo-random numbers/Splitmix64") lists them.
    published = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    states = [(1234567 + (i + 1) * GOLDEN) & MASK for i in range(5)]
    assert [plain_mix(state) for state in states] == published
    assert [int(mix(np.uint64(state))) for state in states] == published


@given(WORDS)
def test_mix_equals_plain_integers_and_can_be_undone(z):
    assert int(mix(np.uint64(z))) == plain_mix(z)

    def unshift(y, by):  # the inverse of y ^ (y >> by)
        x = y
        for _ in range(64 // by):
            x = y ^ (x >> by)
        return x

    back = unshift(plain_mix(z), 31) * pow(0x94D049BB133111EB, -1, 2**64) & MASK
    back = unshift(back, 27) * pow(0xBF58476D1CE4E5B9, -1, 2**64) & MASK
    assert unshift(back, 30) == z


@given(st.lists(st.tuples(WORDS, st.integers(0, 10**6)), min_size=1, max_size=8), st.data())
def test_a_number_depends_on_its_key_ply_and_draw_alone(rows, data):
    keys, plies = zip(*rows, strict=True)
    columns = data.draw(st.lists(st.integers(0, 5), max_size=4))
    streams = at(keys, plies)
    drawn = np.concatenate([np.empty((len(rows), 0)), *map(streams.uniform, columns)], axis=1)
    expected = [[plain_uniform(k, p, d) for d in range(sum(columns))] for k, p in rows]
    assert drawn.shape == (len(rows), sum(columns))
    assert drawn.tolist() == expected


@given(st.integers(1, 9), st.integers(0, 4), st.data())
def test_rows_continue_where_the_batch_stands(size, drawn, data):
    streams = at(game_keys(3, "test", 1, np.arange(size)), np.arange(size))
    streams.uniform(drawn)
    rows = np.array(data.draw(st.lists(st.integers(0, size - 1), max_size=12)), np.int64)
    some = streams.rows(rows)
    expected = streams.uniform(3)
    assert some.uniform(2).tolist() == expected[rows, :2].tolist()
    assert some.uniform().tolist() == expected[rows, 2:].tolist()
    # A selection does not move the streams that it came from, nor another selection.
    assert streams.rows(rows).uniform().tolist() == streams.uniform()[rows].tolist()


def test_a_mask_selects_rows_too():
    streams = at([5, 6, 7], [1, 2, 3])
    mask = np.array([True, False, True])
    assert streams.rows(mask).uniform().tolist() == at([5, 7], [1, 3]).uniform().tolist()


def test_the_largest_number_is_below_1():
    # mix undone: the key whose first number has all bits set.
    for word, number in ((MASK, 1 - 2**-53), (0, 0.0)):
        z = word
        for by, factor in ((31, 0x94D049BB133111EB), (27, 0xBF58476D1CE4E5B9), (30, 1)):
            x = z
            for _ in range(64 // by):
                x = z ^ (x >> by)
            z = x * pow(factor, -1, 2**64) & MASK
        assert at([(z - GOLDEN) & MASK]).uniform().tolist() == [[number]]


def test_keys_are_what_the_words_mix_to():
    # An independent reading of "one key per seed, purpose, generation and index".
    name = int.from_bytes(hashlib.blake2b(b"selfplay", digest_size=8).digest(), "little")
    base = 0
    for word in (7, name, 3):
        base = plain_mix(base + word + GOLDEN & MASK)
    expected = [plain_mix(base + (i + 1) * GOLDEN & MASK) for i in (0, 1, 2**31 - 2)]
    assert game_keys(7, "selfplay", 3, [0, 1, 2**31 - 2]).tolist() == expected


def test_keys_differ_by_seed_purpose_generation_and_index():
    keys = np.concatenate(
        [
            game_keys(seed, purpose, generation, np.arange(200))
            for seed in (0, 1, 2, 2**63 - 1)
            for purpose in ("selfplay", "evaluation0", "evaluation1", "gate0", "")
            for generation in range(8)
        ]
    )
    assert keys.dtype == np.uint64
    assert len(np.unique(keys)) == len(keys) == 4 * 5 * 8 * 200


def test_a_key_does_not_depend_on_the_other_indices():
    keys = game_keys(1, "selfplay", 2, np.arange(1000))
    assert game_keys(1, "selfplay", 2, [999, 5, 5]).tolist() == keys[[999, 5, 5]].tolist()
    assert game_keys(1, "selfplay", 2, []).tolist() == []


# Statistics with fixed keys: either always true or never, so there is nothing flaky about them.
# Chi-square with k - 1 degrees of freedom has mean k - 1 and deviation sqrt(2 (k - 1)); 5 of these
# are exceeded by about one sound generator in a hundred thousand.


def chi_square(counts: np.ndarray) -> float:
    """How far off the mean of the statistic, either way, in its deviations."""
    expected = counts.sum() / counts.size
    freedom = counts.size - 1
    statistic = ((counts - expected) ** 2 / expected).sum()
    return abs(statistic - freedom) / math.sqrt(2 * freedom)


def pairs(a: np.ndarray, b: np.ndarray, bins: int = 16) -> np.ndarray:
    """Counts [bins, bins] of pairs of numbers: uniform if both are, and independent."""
    return np.histogram2d(a, b, bins=bins, range=[[0, 1], [0, 1]])[0]


SMALL_KEYS = np.arange(40_000, dtype=np.uint64)  # no `game_keys`: the worst that keys could be
GAME_KEYS = game_keys(1, "selfplay", 1, np.arange(40_000))


@pytest.mark.parametrize("keys", [SMALL_KEYS, GAME_KEYS], ids=["small", "game"])
def test_numbers_are_uniform(keys):
    drawn = at(keys, 3).uniform(5)
    for column in drawn.T:
        assert chi_square(np.histogram(column, 256, (0, 1))[0]) < 5
    # Mean 1/2 and variance 1/12, within 5 deviations of the estimate.
    n = drawn.size
    assert abs(drawn.mean() - 1 / 2) < 5 * math.sqrt(1 / 12 / n)
    assert abs(drawn.var() - 1 / 12) < 5 * math.sqrt(1 / 180 / n)


@pytest.mark.parametrize("keys", [SMALL_KEYS, GAME_KEYS], ids=["small", "game"])
def test_neighbours_have_nothing_in_common(keys):
    first, second = at(keys, 4).uniform(2).T
    assert chi_square(pairs(first, second)) < 5  # draws
    assert chi_square(pairs(first[:-1], first[1:])) < 5  # games
    assert chi_square(pairs(first, at(keys, 5).uniform()[:, 0])) < 5  # plies
    other = at(game_keys(1, "selfplay", 2, np.arange(len(keys))), 4).uniform()[:, 0]
    assert chi_square(pairs(first, other)) < 5  # generations


def test_plies_of_one_game_are_uniform_and_independent():
    drawn = at(np.full(40_000, GAME_KEYS[0]), np.arange(40_000)).uniform()[:, 0]
    assert chi_square(np.histogram(drawn, 256, (0, 1))[0]) < 5
    assert chi_square(pairs(drawn[:-1], drawn[1:])) < 5


def test_each_bit_of_a_key_is_a_fair_coin():
    bits = (GAME_KEYS[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
    deviations = (bits.mean(0) - 0.5) / math.sqrt(0.25 / len(GAME_KEYS))
    assert np.abs(deviations).max() < 5


def test_the_statistics_notice_a_bad_generator():
    counter = np.arange(40_000) / 40_000
    drawn = GAME_KEYS / 2**64
    assert chi_square(np.histogram(counter, 256, (0, 1))[0]) > 5  # too even
    assert chi_square(np.histogram(drawn**1.1, 256, (0, 1))[0]) > 5
    assert chi_square(pairs(drawn, (drawn + 0.5) % 1)) > 5
