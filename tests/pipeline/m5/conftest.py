"""Small data that the tests of model trees share."""

import numpy as np
import pytest


@pytest.fixture
def pieces():
    """Two linear pieces of whole-number features without noise, 2000 rows: X [2000, 4], y."""
    r = np.random.default_rng(0)
    X = r.integers(0, 20, (2000, 4)).astype(np.float32)
    return X, np.where(X[:, 0] <= 9, 2 * X[:, 1] + 1, 3 - X[:, 2]).astype(np.float64)


@pytest.fixture
def noisy():
    """Four linear pieces with noise, features of four kinds, 3000 rows: X [3000, 6], y."""
    r = np.random.default_rng(1)
    X = np.column_stack(
        [
            r.integers(0, 12, 3000),
            r.integers(0, 2, 3000),
            r.integers(0, 200, 3000) / 7,
            r.integers(0, 100, 3000) * 1e5,
            r.integers(0, 100, 3000) * 1e-5,
            r.integers(0, 30, 3000),
        ]
    ).astype(np.float32)
    slope = np.where(X[:, 1] > 0, 3.0, -1.0) * np.where(X[:, 0] > 5, 1.0, 0.2)
    return X, slope * X[:, 2] + 1e-5 * X[:, 3] + 1e5 * X[:, 4] + r.normal(0, 2, 3000)
