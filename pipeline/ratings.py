"""Pure formulas that say how strong a policy is, each with its source."""

import math
from typing import NamedTuple


class Interval(NamedTuple):
    low: float
    high: float


def wilson(score: float, n: int, z: float = 1.959964) -> Interval:
    """The Wilson score interval of a proportion.

    Args:
        score: successes among n, a draw counting as half of one; 0 <= score <= n.
        n: games.
        z: normal quantile; the default covers 95%.

    Returns:
        The interval, within [0, 1]; (0, 1) if n is 0. With draws it is somewhat too wide, since a
        draw varies less than a coin.

    Source: E. B. Wilson, "Probable inference, the law of succession, and statistical inference",
    Journal of the American Statistical Association 22 (1927), p. 209-212.
    """
    if n == 0:
        return Interval(0.0, 1.0)
    p = score / n
    scale = 1.0 + z * z / n
    centre = (p + z * z / (2 * n)) / scale
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / scale
    # Rounding could leave the ends just inside 0 and 1, where they are exact.
    low = 0.0 if score == 0 else max(0.0, centre - half)
    high = 1.0 if score == n else min(1.0, centre + half)
    return Interval(low, high)
