"""What logging costs a run: SumTo100 as in the document with tracking on and off, in turns.

The loop's own time is compared (from the first generation to the last, as metrics.jsonl has it),
and the whole command, which also starts Ray and waits until everything is sent.
"""

import statistics
import subprocess
import sys
import tempfile
import time

from pipeline.run import Run

ROUNDS = 3


def once(root: str, name: str, tracking: str) -> tuple[float, float]:
    """Seconds of (the loop, the whole command)."""
    command = [sys.executable, "-c", "from pipeline.cli import main; main()", "train"]
    command += ["experiment=sumto100", f"root={root}", f"run={name}", f"tracking={tracking}"]
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    whole = time.perf_counter() - start
    records = Run.open(root, name).records()
    return sum(sum(record["seconds"].values()) for record in records), whole


def main() -> None:
    loops: dict[str, list[float]] = {"local": [], "none": []}
    wholes: dict[str, list[float]] = {"local": [], "none": []}
    with tempfile.TemporaryDirectory() as root:
        for turn in range(ROUNDS):
            for tracking in loops:
                loop, whole = once(root, f"{tracking}-{turn}", tracking)
                loops[tracking].append(loop)
                wholes[tracking].append(whole)
    for what, times in (("the loop", loops), ("the whole command", wholes)):
        on, off = statistics.median(times["local"]), statistics.median(times["none"])
        print(f"{what}: {on:.1f} s with tracking, {off:.1f} s without: {on / off - 1:+.1%}")


if __name__ == "__main__":
    main()
