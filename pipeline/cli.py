"""The command `selfplay`: train, evaluate, tournament, play, traces, trees, runs, risk, ui.

`train`, `evaluate` and `tournament` take Hydra overrides (key=value); the others plain options.
"""

import os
import re
import sys
import traceback

from pipeline.errors import UserError

_VERBS = {
    "train": "an agent teaches itself a game, generation after generation",
    "evaluate": "plays a run's policy against baselines, generations and other runs",
    "play": "you against baselines and what runs have learned, in the terminal",
    "tournament": "plays any set of players against each other and rates them together",
    "traces": "summary, replay, check and export of the recorded games",
    "trees": "what model trees have learned, and why they prefer a move",
    "runs": "lists runs, says what is missing, rebuilds reports, sends numbers to MLflow",
    "risk": "boards, simulated games and searches of Risk on a graph",
    "ui": "opens the MLflow dashboard on the runs of a folder",
}

# What takes Hydra's overrides, and the key that a word without one is most likely for.
_OVERRIDDEN = {"train": "run", "evaluate": "run", "tournament": "name"}
_PLAIN = ("traces", "trees", "runs", "ui")  # what takes plain options and never key=value


def main() -> None:
    """Runs one verb. Exit code 2 and one sentence if something is the user's to put right."""
    verb, rest = (sys.argv[1] if len(sys.argv) > 1 else "--help"), sys.argv[2:]
    if verb not in _VERBS:
        print("usage: selfplay VERB ...\n\nverbs:")
        for name, words in _VERBS.items():
            print(f"  {name:<10} {words}")
        print("\n`selfplay VERB --help` explains a verb.")
        sys.exit(0 if verb in ("--help", "-h", "help") else 2)
    sys.argv = [f"selfplay {verb}", *rest]
    os.environ["HYDRA_FULL_ERROR"] = "1"  # exceptions reach us instead of Hydra's own report
    try:
        _check_form(verb, rest)
        _run(verb, rest)
    except KeyboardInterrupt:
        print("\ninterrupted; the same command with the name of its run goes on", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:  # as in `selfplay runs list | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except UserError as error:
        _refuse(str(error))
    except Exception as error:
        *_, (innermost, _) = traceback.walk_tb(error.__traceback__)  # game=3: a plain ValueError
        raisers = (type(error).__module__, innermost.f_globals.get("__name__", ""))
        if not any(name.split(".")[0] in ("hydra", "omegaconf") for name in raisers):
            raise
        _refuse(_hydra_sentence(error))


def _check_form(verb: str, rest: list[str]) -> None:
    """Refuses options where overrides are expected and the other way round, with what was meant.

    Raises:
        UserError: an argument is of the other kind.
    """
    if verb in _PLAIN:
        for each in rest:
            key, equals, value = each.partition("=")
            if equals and key in ("run", "root", "generation"):
                meant = value if key == "run" else f"--{key} {value}"
                raise UserError(
                    f"cannot read {each!r}: selfplay {verb} takes no key=value; write {meant}"
                )
    elif verb in _OVERRIDDEN:
        from hydra._internal.utils import get_args_parser

        asked, unknown = get_args_parser().parse_known_args(rest)
        first = _OVERRIDDEN[verb]
        for each in unknown:
            key, _, value = each.lstrip("-").partition("=")
            raise UserError(
                f"there is no option {each}: selfplay {verb} takes key=value; write "
                f"{key}={value or '...'}"
            )
        for each in asked.overrides:
            if "=" not in each and not each.startswith("~"):
                raise UserError(
                    f"cannot read {each!r}: selfplay {verb} takes key=value; did you mean "
                    f"{first}={each}?"
                )


def _run(verb: str, rest: list[str]) -> None:
    if verb == "train":
        from pipeline import hydra_train

        hydra_train.main()
    elif verb == "evaluate":
        from pipeline import evaluate

        evaluate.main()
    elif verb == "play":
        from pipeline import play

        play.main(rest)
    elif verb == "tournament":
        from pipeline import tournament

        tournament.main()
    elif verb == "traces":
        from pipeline import traces_cli

        traces_cli.main(rest)
    elif verb == "trees":
        from pipeline import trees_cli

        trees_cli.main(rest)
    elif verb == "runs":
        from pipeline import runs_cli

        runs_cli.main(rest)
    elif verb == "risk":
        from pipeline import risk_cli

        risk_cli.main(rest)
    else:
        from pipeline import ui

        ui.main(rest)


def _refuse(sentence: str) -> None:
    print(f"error: {sentence}", file=sys.stderr)
    sys.exit(2)


def _hydra_sentence(error: Exception) -> str:
    """Hydra's message without its advice to append unknown keys, which is refused as well."""
    text = " ".join(str(error).split())
    unknown = re.search(r"Could not override '([^']+)'", text)
    if unknown and unknown[1].startswith("opponents.weights."):
        return f"{unknown[1]} has no weight yet; give it one with +{unknown[1]}=..."
    if unknown and unknown[1] == "opponents.weights":
        return (
            "opponents.weights has entries without a weight yet; give each one with "
            "+opponents.weights.NAME=..."
        )
    if unknown:
        return (
            f"there is no key {unknown[1]!r} in the configuration; "
            "`selfplay train --cfg job` prints all keys"
        )
    choice = re.search(
        r"Could not find '([^']+)/([^']+)' Available options in '[^']+': (.*?)(?: Config search|$)",
        text,
    )
    if choice:
        return f"{choice[1]} must be one of {', '.join(choice[3].split())}, got {choice[2]!r}"
    several = re.search(r"Ambiguous value for argument '([^=]+)=(.*?)' 1\. ", text)
    if several:
        key, values = several[1], several[2]
        return f"{key} is given {values}; a list needs brackets, as in '{key}=[{values}]'" + (
            ", and a sweep over the values -m" if sys.argv[0].endswith("train") else ""
        )
    if type(error).__name__ == "OverrideParseException":
        return f"cannot read the overrides: {text.split(' See https')[0]}; expected key=value"
    return text.replace("Set the environment variable HYDRA_FULL_ERROR=1", "").strip()
