"""`selfplay trees`: reads a policy of model trees. docs/learners/trees_pages.md.

selfplay trees summary mine                        sizes, errors, most used features
selfplay trees show mine --action "column 3"       the trees of an action as text
selfplay trees explain mine --position 57          why this move, and not the next best one
selfplay trees explain mine --game 17 --ply 4      the same at a position of a recorded game
selfplay trees pages mine --out trees              index.html and a picture per action

In a run of learner=hierarchical a choice is a behaviour, "expand", or a low-level action of one,
"expand: build road".
"""

import argparse
from pathlib import Path

import numpy as np

from games import Game
from pipeline import traces
from pipeline.behaviour_reader import BehaviourReader
from pipeline.config import make_game_from
from pipeline.errors import UserError
from pipeline.m5.explain import importance, number, routed, tree_to_text
from pipeline.policies.action_trees import TreesPolicy
from pipeline.run import Run
from pipeline.storage import reason
from pipeline.tree_pages import generation_pages, read_policy
from pipeline.tree_reader import Reader, TreeReader

_MAX_FEATURES = 10
_MAX_OF_GROUP = 5  # where choices are read in groups


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="selfplay trees",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("verb", choices=["summary", "show", "explain", "pages"])
    parser.add_argument("run", help="name of the run")
    parser.add_argument("--root", default="runs", help="where the runs are (default: runs)")
    parser.add_argument("--generation", type=int, help="whose policy (default: newest)")
    parser.add_argument(
        "--action", help="show: the action, or type, in words; pooled: the shared trees"
    )
    parser.add_argument("--position", help="explain: a position in the game's text form")
    parser.add_argument("--game", type=int, help="explain: number of a recorded game")
    parser.add_argument("--ply", type=int, default=0, help="explain: a decision in it (default: 0)")
    parser.add_argument("--of", type=int, help="explain: generation that played the game")
    parser.add_argument("--out", help="pages: the folder to write to")
    options = parser.parse_args(arguments)
    if options.verb == "pages" and not options.out:
        parser.error("pages needs --out FOLDER")
    if options.verb == "explain" and (options.position is None) == (options.game is None):
        parser.error("explain needs either --position TEXT or --game NUMBER")
    run = Run.open(options.root, options.run)
    if options.verb == "explain" and run.config.learner.name == "hierarchical":
        print(_behaviour(run, options))
        return
    generation = _generation(run, options.generation)
    reader = _reader(run, generation)
    if options.verb == "summary":
        print(summary(run, reader, generation))
    elif options.verb == "show":
        print(show(reader, options.action))
    elif options.verb == "pages":
        print(write_pages(run, generation, Path(options.out)))
    else:
        assert isinstance(reader, TreeReader)
        if options.position is not None:
            state = _position(reader.game, options.position)
        else:
            played = generation if options.of is None else options.of
            state, _ = recorded(run, reader.game, played, options.game, options.ply)
        print(reader.move_to_text(state))


def _generation(run: Run, asked: int | None) -> int:
    done = run.complete()
    if not done:
        raise UserError(f"run {run.name} has no complete generation yet")
    return done[-1] if asked is None else asked


def _reader(run: Run, generation: int) -> Reader:
    reader = read_policy(run, make_game_from(run.config.game), generation)
    if isinstance(reader, TreeReader) and not isinstance(reader.policy, TreesPolicy):
        raise UserError(
            f"run {run.name} learns with {run.config.learner.name}, which grows no trees; name a "
            "run of learner=model_trees or learner=hierarchical"
        )
    if reader.empty:
        raise UserError(
            f"the policy of generation {generation} of run {run.name} has no trees yet; name a "
            "later generation"
        )
    return reader


def summary(run: Run, reader: Reader, generation: int) -> str:
    """A line per bag, and the features that its trees use most."""
    facts = {row["action"]: row for row in run.table(generation, "trees")}
    wide = max(8, *map(len, reader.bags))
    lines = [
        f"{'trees of':<{wide}} {'rows':>9} {'games':>8} {'trees':>5} {'leaves':>6} {'depth':>5} "
        f"{'RMSE games':>10} {'rows':>6}"
    ]
    for place, text in enumerate(reader.bags):
        bag, row = reader.trees_of(place), facts.get(place, {})
        leaves = f"{np.mean([tree.num_leaves for tree in bag]):.1f}" if bag else "-"
        depth = str(max(int(tree.depths().max()) for tree in bag)) if bag else "-"
        errors = [number(row[key]) if row.get(key) is not None else "-" for key in _ERRORS]
        lines.append(
            f"{text:<{wide}} {row.get('rows', 0):>9,} {row.get('games', 0):>8,} {len(bag):>5} "
            f"{leaves:>6} {depth:>5} {errors[0]:>10} {errors[1]:>6}"
            f"{'  pooled' if bag and reader.source(place) < 0 else ''}"
        )
    most = _MAX_FEATURES if len(reader.groups) == 1 else _MAX_OF_GROUP
    for name, group in reader.groups.items():
        rows = {each: float(facts.get(each, {}).get("rows") or 1) for each in group}
        lines += ["", *_most_used(reader, name, rows, most)]
    lines += ["", "shares of the targets' variance; rows routed by a test on the feature"]
    return "\n".join(lines)


_ERRORS = ("rmse_games", "rmse_rows")


def _most_used(reader: Reader, title: str, rows: dict[int, float], most: int) -> list[str]:
    """Importance over some bags, each weighing as many rows as it was learned from."""
    total = np.zeros((3, len(reader.names)))
    weight = 0.0
    for each, count in rows.items():
        bag = reader.trees_of(each)
        if not bag:
            continue
        used = importance(bag)
        for line, part in zip(total, (used.splits, used.slopes, routed(bag)), strict=True):
            line[: len(part)] += count * part
        weight += count
    total /= max(weight, 1e-300)
    order = np.argsort(-(total[0] + total[1]), kind="stable")[:most]
    heading = f"used by {title}"
    wide = max(len(heading), *(len(reader.names[f]) for f in order))
    lines = [f"{heading:<{wide}} {'by tests':>8} {'by slopes':>9} {'rows routed':>11}"]
    for f in order:
        if total[0, f] + total[1, f] > 0:
            lines.append(
                f"{reader.names[f]:<{wide}} {total[0, f]:>8.1%} {total[1, f]:>9.1%} "
                f"{total[2, f]:>11.1%}"
            )
    return lines


def show(reader: Reader, name: str | None) -> str:
    """The trees of one bag as text, or those that several share.

    Args:
        name: what the bag is of: an action, a type of actions, a behaviour, ..

    Raises:
        UserError: the policy has no such bag, or it has no trees.
    """
    sources = {text: reader.source(k) for k, text in enumerate(reader.bags)}
    shared = {text: source for source, text in reader.shared.items()}
    if len(shared) == 1:
        shared = dict.fromkeys(("pooled",), *shared.values())
    sources |= {text: source for text, source in shared.items() if reader.trees(source)}
    names = ", ".join(sources)
    if name is None:
        raise UserError(f"show needs --action, one of {names}")
    if name not in sources:
        raise UserError(f"show needs --action, one of {names}; got {name!r}")
    bag = reader.trees(sources[name])
    if not bag:
        raise UserError(f"{name} has no trees; `selfplay trees summary` says which have")
    trees = [
        f"tree {i} of {len(bag)}\n{tree_to_text(tree, reader.names)}"
        for i, tree in enumerate(bag, 1)
    ]
    return "\n\n".join(trees)


def _position(game: Game, text: str) -> np.ndarray:
    try:
        return game.state_from_text(game.rules, text)
    except ValueError as error:
        raise UserError(f"--position: {error}") from error


def _behaviour(run: Run, options: argparse.Namespace) -> str:
    """Explains a decision of behaviours: a recorded one by the policy that made it, unless another
    generation is named."""
    game = make_game_from(run.config.game)
    row: dict[str, int] = {}
    generation = options.generation
    if options.game is not None:
        played = _generation(run, options.generation) if options.of is None else options.of
        state, row = recorded(run, game, played, options.game, options.ply)
        if generation is None:
            generation = row["generation"]
    else:
        state = _position(game, options.position)
    reader = read_policy(run, game, _generation(run, generation))
    assert isinstance(reader, BehaviourReader)
    return reader.decision_to_text(state, row.get("behaviour"), row.get("low_action"))


def recorded(
    run: Run, game: Game, generation: int, number: int, ply: int
) -> tuple[np.ndarray, dict[str, int]]:
    """The state [1] of a recorded decision; the generation of the policy that made it and, of a
    hierarchical one, its behaviour and low-level action.

    Raises:
        UserError: no such game, or no decision at that ply.
    """
    entry = run.shard_of_game(generation, number)
    shard = traces.read_shard(run.storage, game, entry["path"], entry["sha256"])
    mine = np.flatnonzero(shard.traces.game == number)
    plies = shard.traces.ply[mine]
    if ply not in plies:
        near = [each for each in (plies[plies < ply][-1:], plies[plies > ply][:1]) if len(each)]
        raise UserError(
            f"game {number} of generation {generation} has no decision at ply {ply}; the nearest: "
            f"{', '.join(str(each[0]) for each in near) or 'none, as every action was forced'}"
        )
    at = mine[plies == ply]
    columns = (shard.traces.behaviour[at[0]], shard.traces.low_action[at[0]])
    row = {
        name: int(value)
        for name, value in zip(("behaviour", "low_action"), columns, strict=True)
        if value >= 0
    }
    who = shard.metadata["policies"][int(shard.traces.policy[at[0]])]
    if who[:1] == "g" and who[1:5].isdecimal():
        row["generation"] = int(who[1:5])
    return shard.traces.state.take(at), row


def write_pages(run: Run, generation: int, folder: Path) -> str:
    """Writes what MLflow gets of a generation's trees into a folder; says where."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in generation_pages(run, generation).items():
            (folder / name).write_bytes(data)
    except OSError as error:
        raise UserError(f"cannot write {folder}: {reason(error)}") from error
    return str(folder / "index.html")
