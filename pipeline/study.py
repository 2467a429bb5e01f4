"""The experiments of Pfeiffer (2004): all approaches trained, then everybody against everybody.

`selfplay train experiment=catan_paper` trains a run for each approach, plays a tournament of their
champions, baselines and an expert (a scripted player, in place of the paper's person), and draws
the paper's Figures 2 and 3 from its games. Every part goes on from where it was stopped.

<root>/tournaments/<name>/   as of any tournament, and
  paper.md  figure2.png  figure3.png
"""

from copy import deepcopy
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from pipeline import figures, tracking
from pipeline.config import Config
from pipeline.ratings import wilson
from pipeline.tournament import Played, Tournament, TournamentConfig
from pipeline.train import train

_RANDOM_LOW = "heuristic_random"  # the baseline with the rule above and chance below


def play(config: Config) -> str:
    """Trains, plays and draws what is missing; returns the report, which is also written.

    Args:
        config: with a `study`; its `run` is the name of the whole, None: `catan_paper-<seed>`.
    """
    study = config.study
    assert study is not None
    name = config.run or f"catan_paper-{config.seed}"
    runs = {approach: f"{name}-{approach}" for approach in study.approaches}
    competition = TournamentConfig(
        name=name,
        root=config.root,
        players=[*study.players, study.expert],
        game=dict(config.game),
        games=study.games,
        opening_plies=0,
        tables="copies",
        replicates=1000,
        seed=config.seed,
        cluster=config.cluster,
    )
    # What is wrong is refused before anything is trained.
    Tournament(competition).check_settings()
    parent = tracking.parent_run(config.root, config, name, f"tournaments/{name}/mlflow.json")
    for approach, run in runs.items():
        own = deepcopy(config)
        own.run, own.study, own.learner.approach = run, None, approach
        train(own, parent)
    tournament = Tournament(
        replace(competition, game=None, players=[*runs.values(), *competition.players])
    )
    print(tournament.play(), flush=True)
    approaches = {run: approach for approach, run in runs.items()}
    names = {
        player.label: approaches.get(player.label.split("/")[0], player.label)
        for player in tournament.players
    }
    played = [_named(match, names) for match in tournament.played() if _known(match, names)]
    points = float(config.game.get("points_to_win", 10))
    wins, together = figure2(played), figure3(played, study.expert, points)
    order = [*study.approaches, *study.players, study.expert]
    rivals = tournament.game.num_players - 1
    files = {
        "figure2.png": figures.paper_wins(wins, order, ("heuristic", _RANDOM_LOW), rivals),
        "figure3.png": figures.paper_points(together, order, study.expert, points, rivals),
    }
    text = report(wins, together, order, study.expert, rivals)
    files["paper.md"] = text.encode()
    for file, data in files.items():
        tournament.storage.write(f"{tournament.folder}/{file}", data)
    if parent is not None:
        numbers = {f"wins/{a}_against_{b}": won.share for (a, b), won in wins.items()}
        tracking.close_parent(config.root, config, parent, text, numbers, files)
    return f"{text}\n\n  {tournament.storage.where(tournament.folder)}: {', '.join(files)}"


def _known(match: Played, names: dict[str, str]) -> bool:
    return all(label in names for label in match.labels)


def _named(match: Played, names: dict[str, str]) -> Played:
    return replace(match, labels=tuple(names[label] for label in match.labels))


class Won(NamedTuple):
    """Games that one player won against copies of another in all other seats."""

    games: int
    share: float
    low: float  # of the 95% interval (Wilson)
    high: float


class Points(NamedTuple):
    """Points of the copies in games against one expert: the least, the mean and the most of a game,
    averaged over games, with half of their 95% intervals."""

    games: int
    points: tuple[float, float, float]
    margins: tuple[float, float, float]
    wins: float  # share of games that a copy won


def figure2(played: list[Played]) -> dict[tuple[str, str], Won]:
    """Share of games won by the first against copies of the second. Nobody wins at a turn limit."""
    out = {}
    for match in played:
        returns = match.results.returns
        at = np.arange(len(returns))
        share = float((returns[at, at % returns.shape[1]] == 1.0).mean())
        interval = wilson(share * len(returns), len(returns))
        won = Won(len(returns), share, interval.low, interval.high)
        out[match.labels[0], match.labels[1]] = won
    return out


def figure3(played: list[Played], expert: str, points_to_win: float) -> dict[str, Points]:
    """Points of every player's copies against the expert, as the paper draws them."""
    out = {}
    for match in played:
        if match.labels[0] != expert:
            continue
        returns = match.results.returns
        at = np.arange(len(returns))
        copies = np.ones(returns.shape, bool)
        copies[at, at % returns.shape[1]] = False
        theirs = np.sort(returns[copies].reshape(len(returns), -1), axis=1) * points_to_win
        three = np.stack([theirs[:, 0], theirs.mean(1), theirs[:, -1]], 1)
        margins = 1.96 * three.std(0, ddof=1) / np.sqrt(len(three))
        won = float((theirs[:, -1] >= points_to_win).mean())
        out[match.labels[1]] = Points(
            len(returns), tuple(three.mean(0).tolist()), tuple(margins.tolist()), won
        )
    return out


def report(
    wins: dict[tuple[str, str], Won],
    together: dict[str, Points],
    order: list[str],
    expert: str,
    rivals: int,
) -> str:
    """Both figures as Markdown tables, and each claim of the paper beside what was found.

    Args:
        rivals: how many sit at the table beside the one.
    """
    games = max((won.games for won in wins.values()), default=0)
    many = figures.in_words(rivals)
    lines = [
        f"Share of games won by one (row) against {many} of another (column), {games:,} games "
        f"each, 95% intervals; equals win {1 / (rivals + 1):.0%}.",
        "",
        "| | " + " | ".join(order) + " |",
        "|---|" + "---|" * len(order),
    ]
    for one in order:
        cells = [
            f"{100 * won.share:.1f} ({100 * won.low:.1f}-{100 * won.high:.1f})" if won else ""
            for won in (wins.get((one, other)) for other in order)
        ]
        lines.append(f"| {one} | " + " | ".join(cells) + " |")
    lines += [
        "",
        f"Points of {many} of a kind against one {expert}: worst, mean and best of a game.",
        "",
        f"| | worst | mean | best | games won by one of the {many} |",
        "|---|---|---|---|---|",
    ]
    for name in order:
        if name in together:
            found = together[name]
            cells = [
                f"{mean:.2f} ± {margin:.2f}"
                for mean, margin in zip(found.points, found.margins, strict=True)
            ]
            lines.append(f"| {name} | " + " | ".join(cells) + f" | {100 * found.wins:.1f}% |")
    lines += ["", "What the paper claims:", ""]
    lines += [f"- {line}" for line in claims(wins, rivals)]
    return "\n".join(lines)


def claims(wins: dict[tuple[str, str], Won], rivals: int) -> list[str]:
    """Each ordering that Pfeiffer (2004) reports, and whether it holds here in both directions: the
    better one wins more than an equal share against `rivals` of the other, and the other less."""
    out = []
    equal = 1 / (rivals + 1)
    for worse, better in (
        ("feudal", "module"),
        ("module", "guided"),
        ("guided", "heuristic"),
        (_RANDOM_LOW, "heuristic"),
        ("feudal", "heuristic"),
        ("module", "heuristic"),
        ("feudal", _RANDOM_LOW),
    ):
        ahead, behind = wins.get((better, worse)), wins.get((worse, better))
        if ahead is None or behind is None:
            continue
        if ahead.low > equal and behind.high < equal:
            verdict = "confirmed"
        elif ahead.high < equal and behind.low > equal:
            verdict = "refuted: the other way round"
        else:
            verdict = "not settled"
        out.append(
            f"{better} is better than {worse}: {verdict} ({100 * ahead.share:.1f}% against "
            f"{figures.in_words(rivals)}, {100 * behind.share:.1f}% the other way round)"
        )
    return out
