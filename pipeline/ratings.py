"""Pure formulas that say how strong a policy is, each with its source.

`wilson` is about one match. `fit` rates all players of a pool at once, from the orders in which
their games finished; docs/ratings.md explains how to read what it gives.
"""

import math
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numba import njit

ELO = 400 / math.log(10)  # Elo points per unit of log-strength
ANCHOR = "random"  # whose rating is 0
REPLICATES = 1000  # of the bootstrap
_VIRTUAL = 0.5  # games that each player is given beside its own, every seat winning equally often
_RIDGE = 1e-6  # what no game tells (a seat in which only one player sat) stays 0


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


class Outcome(NamedTuple):
    """Games with the same players in the same seats that finished in the same order."""

    seats: tuple[str, ...]  # [P], who sat where; a player may sit in several seats
    places: tuple[int, ...]  # [P], of each seat: 0 is the first, equal numbers are a tie
    games: int
    distinct: float  # games that count: equal games prove nothing new


def fit(
    outcomes: Iterable[Outcome],
    anchor: str = ANCHOR,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> dict[str, Any] | None:
    """Rates every player of a pool from the orders in which all games finished.

    Each player has a strength exp(r), each seat a factor exp(c), and a tie among t has a factor
    d_t. From those who are not placed yet, the set T comes next with probability proportional to
    d_|T| times the geometric mean of exp(r + c) over T. For two players without draws that is the
    model of Bradley and Terry (1952), with draws that of Davidson (1970) with the order effect of
    Davidson and Beaver (1977); for more players without ties that of Plackett (1975) and Luce
    (1959); the whole is the Davidson-Luce model (Firth, Kosmidis, Turner, arXiv:1909.07123, 2019).
    Davidson's ties rather than half wins: they have a likelihood, so that a draw between equals
    and one between unequals are worth what they say, and the bootstrap sees how much draws vary.
    Players who share the last place, but not the first, are taken as unordered: where one player
    wins and nobody orders the rest, the losers did not draw.

    Each player is given half a game more, spread over its seatings as its own games are, in which
    every seat wins equally often, so that someone unbeaten has a finite rating. Between two players
    that makes half a win and half a loss: Jeffreys' prior of a proportion.

    The interval is the 95% percentile interval of the Bayesian bootstrap over games within each
    seating (D. Rubin, "The Bayesian bootstrap", Annals of Statistics 9, 1981): the games of a
    seating get weights from a Dirichlet distribution, whose parameters are the counts of its
    outcomes with the virtual games, made a little smaller for the unbiased variance. Redrawing
    games with replacement would say that someone unbeaten is rated without error, since whatever is
    redrawn is a win. A seating should have ten games or more: within one or two there is nothing to
    redraw. Games are treated as independent: with paired openings that makes intervals rather too
    wide than too narrow.

    Each replicate is fitted by Newton's method, from the estimate on, by a jitted loop of
    O(iterations * (seatings + players^3 / 6)), with about 6 iterations; docs/ratings.md has times.

    Args:
        outcomes: all of the same number of seats P.
        anchor: whose rating is 0; if it did not play, the first player named is the anchor.
        replicates: of the bootstrap.
        seed: of the bootstrap.

    Returns:
        None without outcomes or opponents, else plain JSON, in Elo (400 points = odds of 10 to 1):
        `anchor`; `players`, best first: `player`, `rating`, `low`, `high`, `games`;
        `first_player`: [advantage of the first seat over the mean of the others, low, high];
        `seats` [P, 3]: each seat's against the mean of all, with low and high; `draw`: how likely
        equal players, without seats' advantages, are to share the first place; `replicates`.
        Players to whom no chain of games leads from the anchor have rating, low and high None and
        come last: no number relates them to the others.
    """
    merged: dict[tuple, list[float]] = {}
    for outcome in outcomes:
        total = merged.setdefault((outcome.seats, outcome.places), [0, 0.0])
        total[0] += outcome.games
        total[1] += outcome.distinct
    pool = [
        Outcome(seats, places, int(games), distinct)
        for (seats, places), (games, distinct) in merged.items()
    ]
    pool = [each for each in pool if each.distinct > 0]
    if not pool or len(pool[0].seats) < 2:  # who plays alone finishes first
        return None
    games = _games_of(pool)
    if anchor not in games:
        anchor = next(iter(games))
    linked = _linked(pool, anchor)
    design = _Design([each for each in pool if each.seats[0] in linked], anchor)
    weights, cells = _with_virtual_games(design.outcomes)
    estimate = design.solve(weights[None], np.zeros((1, design.size)))[0]
    draws = _redrawn(weights, cells, replicates, seed)
    redrawn = design.solve(draws, np.repeat(estimate[None], replicates, 0))
    ends = np.quantile(redrawn, (0.025, 0.975), axis=0)

    rated = {}
    for name in linked:
        at = design.players.get(name)  # None: the anchor
        rated[name] = (
            (0.0, 0.0, 0.0) if at is None else _triple(estimate[at], ends[0, at], ends[1, at])
        )
    ordered = sorted(linked, key=lambda name: -rated[name][0])
    unlinked = [name for name in games if name not in linked]
    players = [
        dict(zip(("player", "rating", "low", "high", "games"), row, strict=True))
        for row in (
            *((name, *rated[name], games[name]) for name in ordered),
            *((name, None, None, None, games[name]) for name in unlinked),
        )
    ]
    seats, seats_redrawn = design.seats_of(estimate[None])[0], design.seats_of(redrawn)
    seat_ends = np.quantile(seats_redrawn, (0.025, 0.975), axis=0)
    scale = len(seats) / max(len(seats) - 1, 1)  # from the mean of all to the mean of the others
    first = scale * np.array([seats[0], seat_ends[0, 0], seat_ends[1, 0]])
    return {
        "anchor": anchor,
        "players": players,
        "first_player": list(_triple(*first)),
        "seats": [list(_triple(*each)) for each in zip(seats, *seat_ends, strict=True)],
        "draw": round(design.draw(estimate), 4),
        "replicates": replicates,
    }


def _triple(estimate: float, low: float, high: float) -> tuple[float, float, float]:
    """Log-strengths as Elo, to a tenth of a point."""
    value, bottom, top = (round(float(ELO * each), 1) + 0.0 for each in (estimate, low, high))
    return value, bottom, top


def _games_of(pool: Sequence[Outcome]) -> dict[str, int]:
    """Games of each player, in the order of their first one."""
    games: dict[str, int] = {}
    for outcome in pool:
        for name in dict.fromkeys(outcome.seats):
            games[name] = games.get(name, 0) + outcome.games
    return games


def _linked(pool: Sequence[Outcome], anchor: str) -> list[str]:
    """The players to whom a chain of games leads from the anchor, the anchor first."""
    neighbours: dict[str, dict[str, None]] = {}
    for seats in dict.fromkeys(outcome.seats for outcome in pool):
        for name in seats:
            neighbours.setdefault(name, {}).update(dict.fromkeys(seats))
    found = {anchor: None}
    waiting = [anchor]
    while waiting:
        fresh = [name for name in neighbours[waiting.pop()] if name not in found]
        found |= dict.fromkeys(fresh)
        waiting += fresh
    return list(found)


def _with_virtual_games(pool: Sequence[Outcome]) -> tuple[np.ndarray, np.ndarray]:
    """Weights of the outcomes with the virtual games in them.

    Args:
        pool: outcomes, among them for each seating those in which one seat alone is first and
            nobody else is ordered.

    Returns:
        (weights float64 [O], number of the seating of each outcome int64 [O])
    """
    seatings = {seats: cell for cell, seats in enumerate(dict.fromkeys(o.seats for o in pool))}
    cells = np.array([seatings[outcome.seats] for outcome in pool])
    weights = np.array([outcome.distinct for outcome in pool])
    games = np.bincount(cells, weights)
    of_player: dict[str, float] = {}
    for seats, cell in seatings.items():
        for name in set(seats):
            of_player[name] = of_player.get(name, 0.0) + games[cell]
    for at, (seats, places, *_) in enumerate(pool):
        if places == _winner(places.index(0), len(places)):
            share = sum(games[cells[at]] / of_player[name] for name in sorted(set(seats)))
            weights[at] += _VIRTUAL * share / len(seats)
    return weights, cells


def _winner(seat: int, seats: int) -> tuple[int, ...]:
    """Places where one seat is first and nobody orders the rest."""
    return tuple(int(each != seat) for each in range(seats))


def _redrawn(weights: np.ndarray, cells: np.ndarray, replicates: int, seed: int) -> np.ndarray:
    """float64 [R, O]: weights of the Bayesian bootstrap; each seating keeps its number of games."""
    rng = np.random.default_rng(seed)
    games = np.bincount(cells, weights)
    # A share from Dirichlet's distribution with parameters that sum to A varies by p (1 - p) /
    # (A + 1). With A = n - 2 that is the unbiased estimate of its variance; n would be too little
    # where a seating has few games. Of one or two games nothing is known of their variance.
    factor = np.maximum(games - 2, games / 3) / games
    drawn = rng.standard_gamma(weights * factor[cells], (replicates, len(weights)))
    totals = np.zeros((replicates, len(games)))
    np.add.at(totals.T, cells, drawn.T)
    drawn *= (games / np.maximum(totals, 1e-300))[:, cells]
    return drawn


class _Design:
    """The choices that a pool's outcomes consist of, as arrays for the kernel.

    A choice: who of those not placed yet comes next, one or several in a tie. Its alternatives are
    all sets of a size that was seen. Parameters: players without the anchor, seats without the
    last, sizes of ties.
    """

    def __init__(self, pool: Sequence[Outcome], anchor: str):
        self.num_seats = seats = len(pool[0].seats)
        there = {(each.seats, each.places) for each in pool}
        virtual = [
            Outcome(each, _winner(seat, seats), 0, 0.0)
            for each in dict.fromkeys(outcome.seats for outcome in pool)
            for seat in range(seats)
        ]
        self.outcomes = [*pool, *(v for v in virtual if (v.seats, v.places) not in there)]
        stages = [_stages(outcome.places) for outcome in self.outcomes]
        sizes = sorted({len(chosen) for each in stages for _, chosen in each} - {1})
        names = dict.fromkeys(name for outcome in pool for name in outcome.seats)
        others = [name for name in names if name != anchor]
        self.players = {name: at for at, name in enumerate(others)}
        self._seat = len(others)
        self.ties = {size: self._seat + seats - 1 + at for at, size in enumerate(sizes)}
        self.size = self._seat + seats - 1 + len(sizes)

        choices: dict[tuple, int] = {}  # (who sat where, seats not placed yet) -> its first row
        rows: list[tuple[int, ...]] = []
        self._outcome, self._row = [], []
        firsts, locals_, starts, matrices = [0], [], [0], []
        for at, (outcome, steps) in enumerate(zip(self.outcomes, stages, strict=True)):
            for left, chosen in steps:
                key = outcome.seats, left
                if key not in choices:
                    choices[key] = len(rows)
                    sets = _alternatives(left, {1, *sizes}, whole=len(left) == seats)
                    rows += sets
                    firsts.append(len(rows))
                    features = [self._features(outcome.seats, each) for each in sets]
                    parameters = sorted({index for each in features for index in each})
                    locals_ += parameters
                    starts.append(len(locals_))
                    matrices += [each.get(index, 0.0) for each in features for index in parameters]
                self._outcome.append(at)
                self._row.append(rows.index(chosen, choices[key]))
        self._arrays = (
            np.array(firsts),
            np.array(starts),
            np.array(locals_, np.int64),
            np.array(matrices, np.float64),
        )
        self._rows = len(rows)

    def _features(self, seats: tuple[str, ...], chosen: tuple[int, ...]) -> dict[int, float]:
        """What an alternative adds to its log-probability, by parameter."""
        found: dict[int, float] = {}
        for seat in chosen:
            for index in (self.players.get(seats[seat]), self._seat + seat):
                if index is not None and (index < self._seat or seat < self.num_seats - 1):
                    found[index] = found.get(index, 0.0) + 1 / len(chosen)
        if len(chosen) > 1:
            found[self.ties[len(chosen)]] = 1.0
        return found

    def solve(self, weights: np.ndarray, start: np.ndarray) -> np.ndarray:
        """Maximum likelihood of each replicate.

        Args:
            weights: float64 [R, O], of the outcomes.
            start: float64 [R, K], changed in place.

        Returns:
            float64 [R, K], log-strengths.
        """
        counts = np.zeros((self._rows, len(weights)))
        np.add.at(counts, self._row, weights.T[self._outcome])
        _newton(np.ascontiguousarray(counts.T), *self._arrays, _RIDGE, start)
        return start

    def seats_of(self, parameters: np.ndarray) -> np.ndarray:
        """float64 [R, P]: each seat's log-factor against the mean of all."""
        seats = np.zeros((len(parameters), self.num_seats))
        seats[:, :-1] = parameters[:, self._seat : self._seat + self.num_seats - 1]
        return seats - seats.mean(1, keepdims=True)

    def draw(self, parameters: np.ndarray) -> float:
        """Probability that equals share the first place."""
        ties = sum(
            math.exp(parameters[at]) * math.comb(self.num_seats, size)
            for size, at in self.ties.items()
        )
        return ties / (ties + self.num_seats)


def _stages(places: tuple[int, ...]) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """A finish as choices: (seats not placed yet, those of them that come next)."""
    left = tuple(range(len(places)))
    found: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    for place in sorted(set(places)):
        chosen = tuple(seat for seat in left if places[seat] == place)
        if len(left) == 1 or (found and chosen == left):
            break
        found.append((left, chosen))
        left = tuple(seat for seat in left if places[seat] != place)
    return found


def _alternatives(left: tuple[int, ...], sizes: set[int], whole: bool) -> list[tuple[int, ...]]:
    """Sets that may come next. All at once only where nobody is placed yet: later that is no tie
    but an end of the order."""
    return [
        each
        for size in sorted(sizes)
        if size < len(left) or (whole and size == len(left))
        for each in combinations(left, size)
    ]


@njit(cache=True, error_model="numpy")
def _slopes(counts, firsts, starts, parameters, matrix, ridge, beta, gradient, hessian):
    """Log-likelihood; its gradient, and minus its second derivatives (lower triangle)."""
    size = len(beta)
    total = 0.0
    for i in range(size):
        gradient[i] = -ridge * beta[i]
        total -= 0.5 * ridge * beta[i] * beta[i]
        for j in range(i + 1):
            hessian[i, j] = 0.0
        hessian[i, i] = ridge
    width = 0
    height = 0
    for c in range(len(firsts) - 1):
        width = max(width, starts[c + 1] - starts[c])
        height = max(height, firsts[c + 1] - firsts[c])
    mean = np.empty(width)
    share = np.empty(height)
    at = 0
    for c in range(len(firsts) - 1):
        first, rows = firsts[c], firsts[c + 1] - firsts[c]
        local, columns = starts[c], starts[c + 1] - starts[c]
        here = at
        at += rows * columns
        games = 0.0
        for r in range(rows):
            games += counts[first + r]
        if games == 0.0:
            continue
        largest = -np.inf
        for r in range(rows):
            share[r] = 0.0
            for k in range(columns):
                share[r] += matrix[here + r * columns + k] * beta[parameters[local + k]]
            total += counts[first + r] * share[r]
            largest = max(largest, share[r])
        norm = 0.0
        for r in range(rows):
            share[r] = math.exp(share[r] - largest)
            norm += share[r]
        total -= games * (largest + math.log(norm))
        for k in range(columns):
            mean[k] = 0.0
        for r in range(rows):
            share[r] /= norm
            for k in range(columns):
                mean[k] += share[r] * matrix[here + r * columns + k]
        for r in range(rows):
            for k in range(columns):
                value = matrix[here + r * columns + k]
                gradient[parameters[local + k]] += counts[first + r] * (value - mean[k])
                for j in range(k + 1):  # parameters rise with k
                    other = matrix[here + r * columns + j]
                    hessian[parameters[local + k], parameters[local + j]] += (
                        games * share[r] * (value - mean[k]) * (other - mean[j])
                    )
    return total


@njit(cache=True, error_model="numpy")
def _solve(matrix, vector):
    """Solves in place by Cholesky's decomposition of a lower triangle."""
    size = len(vector)
    for i in range(size):
        for j in range(i + 1):
            total = matrix[i, j]
            for k in range(j):
                total -= matrix[i, k] * matrix[j, k]
            if i == j:
                matrix[i, i] = math.sqrt(max(total, 1e-12))
            else:
                matrix[i, j] = total / matrix[j, j]
        for k in range(i):
            vector[i] -= matrix[i, k] * vector[k]
        vector[i] /= matrix[i, i]
    for i in range(size - 1, -1, -1):
        vector[i] /= matrix[i, i]
        for k in range(i):
            vector[k] -= matrix[i, k] * vector[i]


@njit(cache=True, error_model="numpy")
def _newton(counts, firsts, starts, parameters, matrix, ridge, betas):
    """Newton's method for each replicate; a step that loses likelihood is halved."""
    size = betas.shape[1]
    step = np.empty(size)
    before = np.empty(size)
    hessian = np.empty((size, size))
    for r in range(len(betas)):
        beta = betas[r]
        reached = -np.inf
        for _ in range(200):
            value = _slopes(
                counts[r], firsts, starts, parameters, matrix, ridge, beta, step, hessian
            )
            if value < reached - 1e-9 * (1.0 + abs(reached)):
                for i in range(size):
                    beta[i] = 0.5 * (beta[i] + before[i])
                continue
            reached = value
            _solve(hessian, step)
            largest = 0.0
            for i in range(size):
                before[i] = beta[i]
                beta[i] += step[i]
                largest = max(largest, abs(step[i]))
            if largest < 1e-4:  # the error after this step is about its square
                break


def table(ratings: dict[str, Any]) -> str:
    """The ratings for a terminal, best first."""
    width = max(len("player"), *(len(each["player"]) for each in ratings["players"]))
    lines = [f"{'player':<{width}} {'Elo':>7}  {'95% interval':<18} {'games':>9}"]
    for each in ratings["players"]:
        if each["rating"] is None:
            words = f"{'-':>7}  {'not linked':<18}"
        else:
            interval = (
                "anchor"
                if each["player"] == ratings["anchor"]
                else f"{each['low']:+.0f} to {each['high']:+.0f}"
            )
            words = f"{each['rating']:>+7.0f}  {interval:<18}"
        lines.append(f"{each['player']:<{width}} {words} {each['games']:>9,}")
    return "\n".join([*lines, "", notes(ratings)])


def notes(ratings: dict[str, Any]) -> str:
    """What goes with the table, in words."""
    first, low, high = ratings["first_player"]
    text = (
        f"{ratings['anchor']} = 0, 400 points are odds of 10 to 1. First player: {first:+.0f} "
        f"({low:+.0f} to {high:+.0f}). Draws between equals: {ratings['draw']:.0%}."
    )
    unlinked = [each["player"] for each in ratings["players"] if each["rating"] is None]
    if unlinked:
        text += (
            f" Not rated, because no chain of games links them to {ratings['anchor']}: "
            f"{', '.join(unlinked)}."
        )
    return text
