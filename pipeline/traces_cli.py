"""`selfplay traces`: looks at the recorded games of a run. Columns: docs/traces.md.

selfplay traces summary mine                     counts per generation
selfplay traces show mine --generation 3 --game 17   one game, replayed as text
selfplay traces show mine --brief --svg end.svg  a line for every choice; the end as a picture
selfplay traces check mine                       every shard: SHA-256, checksums, replay
selfplay traces export mine --out games.parquet  readable columns for DuckDB or pandas
"""

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from games import Game
from pipeline import traces
from pipeline.config import make_game_from
from pipeline.errors import ShardError, UserError
from pipeline.progress import Progress
from pipeline.replay import found, keys_of, picture, shards_of, transcript
from pipeline.run import Run
from pipeline.storage import reason


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="selfplay traces",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("verb", choices=["summary", "show", "check", "export"])
    parser.add_argument("run", help="name of the run")
    parser.add_argument("--root", default="runs", help="where the runs are (default: runs)")
    parser.add_argument("--generation", type=int, help="only this one (default: all; show: newest)")
    parser.add_argument("--game", type=int, default=0, help="show: number of the game (default: 0)")
    parser.add_argument(
        "--brief", action="store_true", help="show: a line for every choice, no positions between"
    )
    parser.add_argument("--svg", metavar="FILE", help="show: a picture of the last position")
    parser.add_argument("--out", help="export: a .parquet or .csv file")
    options = parser.parse_args(arguments)
    run = Run.open(options.root, options.run)
    generations = _generations(run, options.generation)
    if options.verb == "summary":
        print(summary(run, generations))
    elif options.verb == "check":
        print(check(run, generations))
    elif options.verb == "show":
        print(show(run, generations[-1], options.game, options.brief, options.svg))
    else:
        if not options.out:
            parser.error("export needs --out FILE.parquet or --out FILE.csv")
        print(export(run, generations, Path(options.out)))


def _generations(run: Run, only: int | None) -> list[int]:
    done = [generation for generation in run.complete() if generation > 0]
    if not done:
        raise UserError(f"run {run.name} has no complete generation with traces yet")
    if only is None:
        return done
    if only not in done:
        raise UserError(
            f"run {run.name} has traces of generations {done[0]}..{done[-1]}, not of {only}"
        )
    return [only]


def summary(run: Run, generations: list[int]) -> str:
    """Counts per generation, from the manifests."""
    lines = [
        f"{'generation':>10} {'shards':>6} {'games':>8} {'distinct':>8} {'decisions':>10} "
        f"{'explored':>8} {'plies':>6} {'longest':>7} {'bytes/game':>10}"
    ]
    for generation in generations:
        shards = run.manifest(generation)["shards"]
        total = {key: sum(s[key] for s in shards) for key in shards[0] if key not in _NO_COUNT}
        lines.append(
            f"{generation:>10} {len(shards):>6} {total['games']:>8,} "
            f"{total['distinct_games']:>8,} {total['decisions']:>10,} "
            f"{total['explored'] / max(total['decisions'], 1):>8.1%} "
            f"{total['plies'] / total['games']:>6.1f} {max(s['longest'] for s in shards):>7,} "
            f"{total['bytes'] / total['games']:>10,.0f}"
        )
    return "\n".join([*lines, "distinct: within each shard; plies: mean per game"])


_NO_COUNT = ("path", "sha256", "lengths", "openings")


def check(run: Run, generations: list[int]) -> str:
    """Verifies every shard: the manifest's SHA-256, page checksums, and a replay by the rules.

    Raises:
        UserError: some are bad; all of them are named.
    """
    game = make_game_from(run.config.game)
    paths = [(g, entry) for g in generations for entry in run.manifest(g)["shards"]]
    progress = Progress("check", len(paths), "shards")
    bad: list[str] = []
    rows = 0
    for _, entry in paths:
        try:
            shard = traces.read_shard(run.storage, game, entry["path"], entry["sha256"])
            traces.check(game, shard, keys_of(shard), run.storage.where(entry["path"]))
            rows += len(shard.traces)
        except ShardError as error:
            bad.append(str(error))
        progress.add(1)
    progress.clear()
    if bad:
        raise UserError(f"{len(bad)} of {len(paths)} shards are bad:\n  " + "\n  ".join(bad))
    return f"{len(paths)} shards, {rows:,} decisions: all as their manifests and the rules say"


def show(run: Run, generation: int, number: int, brief: bool, svg: str | None) -> str:
    """One game replayed as text, forced actions and chance included; its end as a picture into
    the file `svg`.

    Raises:
        UserError: there is no such game, the file cannot be written, or there are no pictures.
    """
    game, shard = found(run, generation, number)
    if svg is not None:
        try:
            Path(svg).write_text(picture(game, shard, number), encoding="utf-8")
        except OSError as error:
            raise UserError(f"cannot write {svg}: {reason(error)}") from error
    return transcript(game, shard, number, brief)


def export(run: Run, generations: list[int], out: Path) -> str:
    """Writes all decisions with readable columns, one shard at a time.

    Raises:
        UserError: the file's ending is neither .parquet nor .csv, or it cannot be written.
    """
    if out.suffix not in (".parquet", ".csv"):
        raise UserError(f"--out must end in .parquet or .csv, got {out.name!r}")
    game = make_game_from(run.config.game)
    writer = None
    rows = 0
    part = out.with_name(f".{out.name}.part")  # what was there before stays until all is read
    try:
        for generation in generations:
            for _, shard in shards_of(run, game, generation):
                table = readable(run.name, game, shard)
                if writer is None:
                    make = pq.ParquetWriter if out.suffix == ".parquet" else pacsv.CSVWriter
                    writer = make(str(part), table.schema)
                writer.write_table(table)
                rows += len(table)
    except OSError as error:
        raise UserError(f"cannot write {out}: {reason(error)}") from error
    finally:
        if writer is not None:
            writer.close()
    part.replace(out)
    return f"{rows:,} decisions of {len(generations)} generations in {out}"


def readable(run_name: str, game: Game, shard: traces.Shard) -> pa.Table:
    """A shard's rows with names instead of numbers and the state's fields as columns."""
    facts, rows = shard.metadata, shard.traces
    size = len(rows)
    names = pa.array([str(name) for name in facts["policies"]])
    words = pa.array([game.action_to_text(game.rules, each) for each in range(game.num_actions)])
    columns: dict[str, pa.Array] = {
        "run": pa.array([run_name]).take(pa.array(np.zeros(size, np.int32))),
        "generation": pa.array(np.full(size, facts["generation"], np.int32)),
        "game": pa.array(rows.game),
        "ply": pa.array(rows.ply),
        "player": pa.array(rows.player),
        "policy": names.take(pa.array(rows.policy.astype(np.int32))),
    }
    for name in game.state_dtype.names or ():
        if name in ("player", "ply"):
            continue
        field = np.ascontiguousarray(rows.state[name])
        if field.ndim == 1:
            columns[f"state_{name}"] = pa.array(field)
        else:  # a CSV file has no lists: one column per entry
            flat = field.reshape(size, -1)
            for each in range(flat.shape[1]):
                columns[f"state_{name}_{each}"] = pa.array(flat[:, each].copy())
    columns |= {
        "action": pa.array(rows.action),
        "action_text": words.take(pa.array(rows.action)),
        "probability": pa.array(rows.probability, from_pandas=True),
        "value": pa.array(rows.value, from_pandas=True),
        "explored": pa.array(rows.explored),
        "reward": pa.array(rows.reward),
        "return": pa.array(rows.return_),
    }
    return pa.table(columns)
