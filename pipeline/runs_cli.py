"""`selfplay runs`: what runs there are and how they stand.

selfplay runs list             all runs under the root
selfplay runs show mine        one run: what is done, what is missing, its latest numbers
selfplay runs report mine      writes report.html into the run's folder again
selfplay runs sync mine        sends to MLflow whatever it lacks
"""

import argparse

from filelock import FileLock, Timeout

from pipeline import league, ratings
from pipeline.config import make_game_from
from pipeline.errors import UserError
from pipeline.evaluate import table
from pipeline.run import Run, run_names
from pipeline.storage import Storage


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="selfplay runs",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("verb", choices=["list", "show", "report", "sync"])
    parser.add_argument("run", nargs="?", help="name of the run")
    parser.add_argument("--root", default="runs", help="where the runs are (default: runs)")
    options = parser.parse_args(arguments)
    if options.verb == "list":
        print(listing(options.root))
        return
    if not options.run:
        parser.error(f"{options.verb} needs the name of a run; see: selfplay runs list")
    run = Run.open(options.root, options.run)
    if options.verb == "show":
        print(show(run))
    elif options.verb == "report":
        from pipeline import report

        run.storage.write(f"{run.name}/report.html", report.build(run))
        print(f"{run.storage.where(run.name)}/report.html")
    else:
        from pipeline import tracking

        tracking.sync(run)


def listing(root: str) -> str:
    """One line per run."""
    storage = Storage(root)
    lines = [f"{'run':<40} {'game':<12} {'learner':<15} {'generations':>11}  state"]
    for name in run_names(storage):
        try:
            run = Run.open(root, name)
            done = max(run.complete(), default=0)
            generations = f"{done}/{run.config.generations}"
            lines.append(
                f"{name:<40} {run.config.game_name:<12} {run.config.learner.name:<15} "
                f"{generations:>11}  {_state(run)}"
            )
        except UserError as error:
            lines.append(f"{name:<40} unreadable: {error}")
    if len(lines) == 1:
        return f"no runs under {storage.where()}; start one with: selfplay train"
    return "\n".join(lines)


def _state(run: Run) -> str:
    done = run.complete()
    if _locked(run):
        return "training now"
    if done and done[-1] >= run.config.generations:
        return "finished"
    return "stopped; the same command goes on"


def _locked(run: Run) -> bool:
    if run.storage.local is None:
        return False
    path = run.storage.local / run.name / ".lock"
    if not path.exists():
        return False
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return True
    lock.release()
    return False


def show(run: Run) -> str:
    """What is done, what is missing, and the latest numbers."""
    config, done = run.config, run.complete()
    newest = max(done, default=0)
    lines = [
        f"run {run.name}: {_state(run)}",
        f"  in {run.storage.where(run.name)}",
        f"  {make_game_from(config.game).title}, {config.learner.name}, seed {config.seed}",
        f"  generations complete: {newest} of {config.generations}",
    ]
    if not done:
        lines.append("  missing: everything, the first policy included")
    elif newest < config.generations:
        playing = newest + 1
        have = run.storage.names(f"{run.name}/traces/generation={playing:04d}")
        per = config.selfplay.games_per_shard
        shards = -(-config.selfplay.games // per)
        parts = [f"{shards - len(have)} of {shards} shards"] if len(have) < shards else []
        parts += ["the policy", "the evaluation"]
        lines.append(f"  missing in generation {playing}: {', '.join(parts)}")
    for path in run.missing_shards():
        lines.append(
            f"  missing shard: {run.storage.where(path)} (the same command plays it again)"
        )
    records = run.records()
    if records and records[-1].get("gate"):
        gate = records[-1]["gate"]
        lines.append(f"  gate of generation {newest}: {league.gate_words(gate)}, {gate['reason']}")
    evaluated = [record for record in records if record["evaluation"]]
    if evaluated:
        lines += [
            "",
            f"generation {evaluated[-1]['generation']}:",
            table(evaluated[-1]["evaluation"]),
        ]
        if evaluated[-1].get("ratings"):
            lines += ["", ratings.table(evaluated[-1]["ratings"])]
    return "\n".join(lines)
