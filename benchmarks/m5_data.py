"""Reference data for model trees, with the noiseless truth beside the target.

friedman  Friedman's (1991) five-feature function among 95 features of noise
game      features as a board game has them: small counts that drift with the stage of the game,
          flags, ratios; eight regimes, each linear
qgame     rows of games: every row of a game shares the game's outcome and its board; the truth is
          the probability of winning
"""

from math import erf

import numpy as np


def friedman(n, seed):
    """X float32 [n, 100], y float32 [n] with noise of standard deviation 1, truth [n]."""
    r = np.random.default_rng(seed)
    X = r.random((n, 100), dtype=np.float32)
    f = (
        10 * np.sin(np.pi * X[:, 0] * X[:, 1])
        + 20 * (X[:, 2] - 0.5) ** 2
        + 10 * X[:, 3]
        + 5 * X[:, 4]
    )
    return X, (f + r.normal(size=n)).astype("f4"), f


def game(n, seed):
    """X float32 [n, 100], y float32 [n] with noise of standard deviation 1, truth [n].

    60 whole numbers 0..20 driven by the stage t, 20 flags, 15 whole numbers 0..5, 5 ratios;
    12 of them matter.
    """
    r = np.random.default_rng(seed)
    c = np.random.default_rng(7)  # the same function for every seed
    t = r.random(n, dtype=np.float32)
    X = np.empty((n, 100), np.float32)
    a = c.uniform(0.05, 0.5, 60)
    b = c.uniform(-0.3, 0.5, 60) * (c.random(60) < 0.5)
    for j in range(60):
        X[:, j] = r.binomial(20, np.clip(a[j] + b[j] * t, 0.02, 0.98))
    q = c.uniform(0.1, 0.6, 20)
    for j in range(20):
        X[:, 60 + j] = r.random(n) < q[j]
    for j in range(15):
        X[:, 80 + j] = r.integers(0, 6, n)
    for j in range(5):
        X[:, 95 + j] = np.round(r.random(n), 3)
    Z = X[:, [3, 11, 17, 24, 31, 38, 45, 52, 61, 70, 84, 96]].astype(float)
    sd = np.array([2] * 8 + [0.45, 0.45, 1.7, 0.29])
    m = np.array([6] * 8 + [0.4, 0.4, 2.5, 0.5])
    W = c.normal(0, 1, (8, 12)) * (c.random((8, 12)) < 0.5)
    J = c.normal(0, 4, 8)
    k = [np.round(20 * np.clip(a[i] + b[i] * 0.5, 0.02, 0.98)) for i in (3, 11)]
    g = (
        (Z[:, 0] > k[0]) * 4
        + (Z[:, 1] > k[1]) * 2
        + np.where(Z[:, 0] > k[0], Z[:, 8] > 0.5, Z[:, 10] > 2.5)
    )
    g = g.astype(int)
    f = ((Z - m) / sd * W[g]).sum(1) + J[g]
    return X, (f + r.normal(size=n)).astype("f4"), f


def qgame(games, seed, turns=60):
    """X float32 [games * turns, 100], outcome float32, truth float32; game id = row // turns.

    A lead walks at random by a standard normal step a turn; who leads at the end wins. 12 features
    are noisy views of lead and turn, 40 are fresh noise, 48 are constants of the game's board.
    """
    r = np.random.default_rng(seed)
    st = np.cumsum(r.normal(0, 1, (games, turns + 1)), 1)
    win = (st[:, -1] > 0).astype("f4")
    t = np.arange(turns)
    s = st[:, :turns]
    V = 0.5 * (1 + np.vectorize(erf)(s / np.sqrt(turns - t) / np.sqrt(2)))
    X = np.zeros((games, turns, 100), np.float32)
    X[:, :, 0] = np.clip(np.round(2 + t / 8 + s / 4 + r.normal(0, 0.5, (games, turns))), 0, 20)
    X[:, :, 1] = np.clip(np.round(2 + t / 8 - s / 4 + r.normal(0, 0.5, (games, turns))), 0, 20)
    X[:, :, 2] = t // 3
    for j in range(3, 9):
        noise = r.normal(0, 3, (games, turns))
        X[:, :, j] = np.clip(np.round(10 + s * (0.5 + 0.1 * j) + noise), 0, 20)
    X[:, :, 9] = s > 3
    X[:, :, 10] = s < -3
    X[:, :, 11] = np.clip(np.round(5 + s / 3 + r.normal(0, 1, (games, turns))), 0, 20)
    X[:, :, 12:32] = r.integers(0, 21, (games, turns, 20))
    X[:, :, 32:52] = r.integers(0, 2, (games, turns, 20))
    X[:, :, 52:] = np.repeat(r.integers(0, 21, (games, 1, 48)), turns, 1)
    return X.reshape(-1, 100), np.repeat(win, turns), V.reshape(-1).astype("f4")
