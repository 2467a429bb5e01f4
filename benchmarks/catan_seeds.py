"""The paper's tournament over several seeds: one table and the two figures from all of them.

    python benchmarks/catan_seeds.py NAME [NAME ..] [--root runs] [--figures FOLDER]

Each NAME is a finished `selfplay train experiment=catan_paper run=NAME seed=..`. A cell is the
share of games that one (row) wins against three of another (column), all seeds together with the
95% interval of their games, then seed by seed: seeds differ by more than the interval of games
says, for each has one training run.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from pipeline import figures, study
from pipeline.ratings import wilson
from pipeline.run import Run
from pipeline.storage import Storage
from pipeline.tournament import Played, Tournament, TournamentConfig

APPROACHES = ("feudal", "module", "guided", "heuristic")


def matches_of(root: str, name: str) -> tuple[list[Played], str, list[str], float]:
    """Matches with approaches for names, the expert, other players, and the points that win."""
    storage = Storage(root)
    runs = {f"{name}-{each}": each for each in APPROACHES if storage.exists(f"{name}-{each}")}
    config = Run.open(root, next(iter(runs))).config
    settings = TournamentConfig(
        name=name,
        root=root,
        players=[*runs, "random", "weighted_random", "heuristic_random", "value_greedy"],
        games=config.game["players"],  # nothing is played: what lies there is read
        opening_plies=0,
        tables="copies",
        replicates=100,
        seed=config.seed,
        cluster=config.cluster,
    )
    played = []
    for match in Tournament(settings).played():
        labels = tuple(runs.get(label.split("/")[0], label) for label in match.labels)
        played.append(replace(match, labels=labels))
    met = {label for match in played for label in match.labels}
    expert = "value_greedy"
    others = [each for each in sorted(met) if each not in (*APPROACHES, expert)]
    return played, expert, others, float(config.game["points_to_win"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--root", default="runs")
    parser.add_argument("--figures", type=Path, help="folder for both figures")
    options = parser.parse_args()
    seeds = [matches_of(options.root, name) for name in options.names]
    _, expert, _, points = seeds[0]
    order = [*APPROACHES, *sorted({each for seed in seeds for each in seed[2]}), expert]
    apart = [study.figure2(seed[0]) for seed in seeds]
    wins = {}
    for pair in {pair for seed in apart for pair in seed}:
        met = [seed[pair] for seed in apart if pair in seed]
        games = sum(won.games for won in met)
        share = sum(won.share * won.games for won in met) / games
        interval = wilson(share * games, games)
        wins[pair] = study.Won(games, share, interval.low, interval.high)
    print("| | " + " | ".join(order) + " |\n|---|" + "---|" * len(order))
    for one in order:
        cells = []
        for other in order:
            won = wins.get((one, other))
            if won is None:
                cells.append("")
                continue
            met = [seed[one, other] for seed in apart if (one, other) in seed]
            cell = f"{100 * won.share:.1f} ({100 * won.low:.1f}-{100 * won.high:.1f})"
            if len(met) > 1:
                cell += ": " + ", ".join(f"{100 * each.share:.1f}" for each in met)
            cells.append(cell)
        print(f"| {one} | " + " | ".join(cells) + " |")
    print(
        f"\nPoints of three of a kind against one {expert}: worst, mean, best; one of them wins\n"
    )
    together = {}
    for kind in order:
        met3 = [study.figure3(seed[0], expert, points).get(kind) for seed in seeds]
        found = [each for each in met3 if each is not None]
        if not found:
            continue
        three = np.mean([each.points for each in found], axis=0)
        margins = np.sqrt(np.sum(np.square([each.margins for each in found]), axis=0)) / len(found)
        games = sum(each.games for each in found)
        won3 = float(np.mean([each.wins for each in found]))
        together[kind] = study.Points(games, tuple(three), tuple(margins), won3)
        cells = [f"{mean:.2f} ± {margin:.2f}" for mean, margin in zip(three, margins, strict=True)]
        print(f"| {kind} | {games:,} games | " + " | ".join(cells) + f" | {100 * won3:.1f}% |")
    print("\nAll seeds together:")
    for line in study.claims(wins, 3):
        print(f"- {line}")
    for name, seed_wins in zip(options.names, apart, strict=True):
        print(f"\n{name}:")
        for line in study.claims(seed_wins, 3):
            print(f"- {line}")
    if options.figures:
        heroes, rivals = ("heuristic", "heuristic_random"), 3
        pictures = {
            "catan_figure2.png": figures.paper_wins(wins, order, heroes, rivals),
            "catan_figure3.png": figures.paper_points(together, order, expert, points, rivals),
        }
        for name, picture in pictures.items():
            (options.figures / name).write_bytes(picture)


if __name__ == "__main__":
    main()
