"""The exact solver of k in a row, and how strong and fast the scripted players are.

One core. CPU time, so that a shared machine does not count. The scores are compared with those of
the data while the time is taken. `--games N` is the number of games of a pairing (the exact player
of a large board plays a tenth of them), `--board W H K` the board of the ladder.
"""

import argparse
import itertools
import time

import numpy as np

from games import ILLEGAL, make_game
from games.game import contested, weakly_right
from games.k_in_a_row_solver import search_memory
from pipeline.backend import one_thread
from pipeline.league import match_seats, summarise_match
from pipeline.oracles import strongly_right
from pipeline.policies.scripted import baseline, baseline_names
from pipeline.selfplay import play_games
from pipeline.streams import Streams, game_keys

BOARDS = [
    (3, 3, 3), (4, 4, 3), (4, 4, 4), (5, 4, 4), (4, 5, 4), (5, 5, 4), (6, 4, 4), (7, 4, 4),
    (6, 5, 4), (5, 6, 4), (5, 5, 5), (6, 5, 3), (7, 6, 3), (8, 7, 3),
]  # fmt: skip


def solve(game, states: np.ndarray) -> tuple[np.ndarray, float, int]:
    """(scores, CPU seconds, positions searched), beginning with an empty table."""
    memory = search_memory(game.rules)
    memory.table[:] = 0
    before, start = int(memory.nodes[0]), time.process_time()
    scores = game.solver.scores(game.rules, states)
    return scores, time.process_time() - start, int(memory.nodes[0]) - before


def by_ply() -> None:
    game = make_game("k_in_a_row")
    solution = game.solution()
    print("standard Connect Four: all columns of the positions of the data, one core")
    for ply in (24, 22, 20, 18, 16, 15, 14, 13, 12, 11, 10):
        rows = np.flatnonzero(solution.states["ply"] == ply)[:60]
        scores, seconds, nodes = solve(game, solution.states[rows])
        assert (scores == solution.scores[rows]).all()
        print(
            f"ply {ply:>2}: {1e3 * seconds / len(rows):>8.2f} ms a position, "
            f"{nodes / len(rows):>10,.0f} searched, {nodes / seconds / 1e6:.1f} M/s"
        )


def starts() -> None:
    print("all columns of the empty board")
    for width, height, k in BOARDS:
        game = make_game("k_in_a_row", width=width, height=height, k=k)
        scores, seconds, nodes = solve(game, game.initial_states([0]))
        columns = " ".join(str(score) for score in scores[0] if score != ILLEGAL)
        print(
            f"{width} x {height}, k = {k}: {1e3 * seconds:>8.1f} ms, {nodes:>10,} searched; "
            f"{columns}"
        )


def without_learning(draws: int = 60) -> None:
    game = make_game("k_in_a_row")
    solution = game.solution()
    legal = game.legal_of(solution.states)
    rows = np.arange(len(legal))
    matters = contested(solution.scores)
    right = {"weak": weakly_right(solution.scores), "strong": strongly_right(solution.scores)}
    print(f"the {len(rows):,} positions, each answered {draws} times")
    for name in ("random", "win_or_random", *game.baselines, "alpha_beta_6"):
        share = np.zeros(legal.shape)
        for draw in range(draws):
            rng = Streams(game_keys(1, "benchmark", draw, rows), solution.states["ply"])
            chosen = baseline(name, game).act(game, solution.states, legal, rng).actions
            share[rows, chosen] += 1 / draws
        weak, strong = ((share * right[kind]).sum(axis=1) for kind in ("weak", "strong"))
        print(
            f"{name:<16} weak {weak.mean():.1%}, contested {weak[matters].mean():.1%}, strong "
            f"{strong.mean():.1%}"
        )


def ladder(board: tuple[int, int, int], games: int) -> None:
    width, height, k = board
    game = make_game("k_in_a_row", width=width, height=height, k=k)
    print(f"{game.title}: score of the first against the second, both seats, 2 random plies")
    for first, second in itertools.combinations(baseline_names(game), 2):
        slow = "perfect_from" in second
        count = games // 10 if slow else games
        policies = [baseline(first, game), baseline(second, game)]
        seatings, sets = match_seats(0, count, 2)
        keys = game_keys(1, "benchmark", 0, sets)
        start = time.process_time()
        results, _ = play_games(game, policies, seatings, keys, opening_plies=2, record=False)
        seconds = time.process_time() - start
        row = summarise_match(game, first, second, results)
        print(
            f"{first:<16} {second:<16} {row['score']:>6.1%} ({row['low']:.1%} to "
            f"{row['high']:.1%}), n = {count:,}, {row['wins']}/{row['draws']}/{row['losses']}, "
            f"{count / seconds:,.0f} games/s"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--games", type=int, default=1000)
    parser.add_argument("--board", type=int, nargs=3, default=(7, 6, 4))
    options = parser.parse_args()
    one_thread()
    small = make_game("k_in_a_row", width=3, height=3, k=3)
    solve(small, small.initial_states([0]))  # compiles
    by_ply()
    starts()
    without_learning()
    ladder(tuple(options.board), options.games)


if __name__ == "__main__":
    main()
