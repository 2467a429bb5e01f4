"""The win-rate table of docs/games/catan.md: one scripted player against three of another.

    python benchmarks/catan_players.py [games]

The one sits in every seat equally often; every game has an island of its own. A game that
the turn limit ends has no winner.
"""

import itertools
import sys
import time

import numpy as np

from games import make_game
from pipeline.backend import one_thread
from pipeline.policies.scripted import baseline
from pipeline.ratings import wilson
from pipeline.selfplay import play_games
from pipeline.streams import game_keys

PLAYERS = ("random", "weighted_random", "value_greedy")


def main() -> None:
    one_thread()
    games = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    if games % 4:
        raise SystemExit(f"games must be a multiple of the 4 seats, got {games}")
    for trading in ("bank", "full"):
        game = make_game("catan", trading=trading)
        print(f"\ntrading={trading}\n")
        print("| one | three | won | 95% interval | by seat | no winner | plies | games/s |")
        print("|---|---|---|---|---|---|---|---|")
        for one, three in itertools.product(PLAYERS, PLAYERS):
            if one == three:
                continue
            policies = [baseline(one, game), baseline(three, game)]
            seats = np.arange(games) % 4
            seatings = np.ones((games, 4), np.int8)
            seatings[np.arange(games), seats] = 0
            keys = game_keys(1, "catan players", 0, np.arange(games))
            start = time.process_time()
            results, _ = play_games(game, policies, seatings, keys, record=False)
            spent = time.process_time() - start
            returns = results.returns
            won = returns[np.arange(games), seats] == 1
            low, high = wilson(won.sum(), games)
            by_seat = " ".join(f"{won[seats == seat].mean():.0%}" for seat in range(4))
            nobody = (returns.max(axis=1) < 1).sum()
            print(
                f"| {one} | {three} | {won.mean():.1%} | {low:.1%} to {high:.1%} | {by_seat} | "
                f"{nobody} | {results.plies.mean():,.0f} | {games / spent:,.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
