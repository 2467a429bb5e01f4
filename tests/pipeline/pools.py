"""Results of players whose strengths are known, drawn from the models as published."""

import itertools
import math

import numpy as np

from pipeline.ratings import ELO, Outcome, fit


def davidson(elo: float, draws: float) -> tuple[float, float, float]:
    """Probabilities of win, draw and loss for who is `elo` points stronger, first-player term
    included: R. Davidson, Journal of the American Statistical Association 65 (1970), equation 2.7:
    pi_i, nu sqrt(pi_i pi_j) and pi_j over their sum."""
    win, loss = 10 ** (elo / 400), 1.0
    draw = draws * math.sqrt(win * loss)
    total = win + draw + loss
    return win / total, draw / total, loss / total


def round_robin(
    strengths: dict[str, float], first: float, draws: float, games: int, seed: int
) -> list[Outcome]:
    """`games` games of every pair in each order of seats; strengths and first in Elo."""
    rng = np.random.default_rng(seed)
    found = []
    for seats in itertools.permutations(strengths, 2):
        chances = davidson(strengths[seats[0]] - strengths[seats[1]] + first, draws)
        counts = rng.multinomial(games, chances)
        for places, count in zip(((0, 1), (0, 0), (1, 0)), counts, strict=True):
            if count:
                found.append(Outcome(seats, places, int(count), float(count)))
    return found


def luce_order(strengths: np.ndarray, rng: np.random.Generator) -> tuple[int, ...]:
    """Places of a race without ties: the next one is drawn by strength (Plackett 1975). Draws of
    an exponential clock for each, the first to ring being first, have that distribution."""
    rings = rng.exponential(1 / np.exp(strengths))
    return tuple(int((rings < each).sum()) for each in rings)


def coverage(simulations: int, replicates: int) -> tuple[float, float, int]:
    """How often the 95% intervals hold the truth: (ratings, first-player term, ratings in all).

    Six players around the anchor, 20 games of each pair in each order, strengths of deviation 150,
    a first-player term of 40 and draws of 20% between equals, all drawn anew each time.
    """
    held = first_held = ratings = 0
    for simulation in range(simulations):
        rng = np.random.default_rng([7, simulation])
        strengths = {"random": 0.0}
        strengths |= {f"g{i}": float(each) for i, each in enumerate(rng.normal(100, 150, 6))}
        pool = round_robin(strengths, 40.0, 0.5, 20, simulation)
        rated = fit(pool, replicates=replicates, seed=simulation)
        for each in rated["players"]:
            if each["player"] != "random":
                ratings += 1
                held += each["low"] <= strengths[each["player"]] <= each["high"]
        _, low, high = rated["first_player"]
        first_held += low <= 40.0 <= high
    return held / ratings, first_held / simulations, ratings


def log_likelihood(pool: list[Outcome], strength, seat, draws: float) -> float:
    """Of two-player results, written out: strengths and seats as natural logarithms."""
    total = 0.0
    for (one, other), places, _, games in pool:
        gap = strength[one] - strength[other] + seat
        chances = davidson(gap * ELO, draws)
        total += games * math.log(chances[1 + (places[0] > places[1]) - (places[0] < places[1])])
    return total
