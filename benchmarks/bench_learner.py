"""Training the SumTo100 network: the jitted loop beside torch, one thread each, taking turns.

A step is one batch of 64 through 101-512-1 (one input of 101 is 1) or 84-128-64-1 (20 of 84 are 1),
forward, backward and Adam. Cost grows linearly with batch, with each layer's width times the next,
and for the first layer with the number of non-zero inputs.
"""

import statistics
import time

import numpy as np

from pipeline.backend import one_thread
from pipeline.learners.mlp_training import Curve, Options, Rows, fresh_mlp, train

STEPS, BATCH, ROUNDS = 300, 64, 5


def microseconds(device: str, mlp, rows: Rows) -> float:
    """Of one step."""
    options = Options("mse", 1e-3, 1e-5, BATCH, 1, 1)
    nobody = Rows(rows.inputs[:0], rows.targets[:0])
    start = time.perf_counter()
    train(mlp, rows, nobody, options, 0, device, Curve())
    return (time.perf_counter() - start) / STEPS * 1e6


def main() -> None:
    one_thread()
    rng = np.random.default_rng(0)
    for inputs, hidden, ones in ((101, [512], 1), (84, [128, 64], 20)):
        x = np.zeros((STEPS * BATCH, inputs), np.float32)
        for _ in range(ones):
            x[np.arange(len(x)), rng.integers(0, inputs, len(x))] = 1
        rows = Rows(x, rng.uniform(-1, 1, len(x)).astype(np.float32))
        mlp = fresh_mlp(inputs, hidden, "linear", 1)
        times: dict[str, list[float]] = {"jit": [], "cpu": []}
        for turn in range(ROUNDS + 1):
            for device, values in times.items():
                spent = microseconds(device, mlp, rows)
                if turn:
                    values.append(spent)
        jit, torch = (statistics.median(values) for values in times.values())
        shape = "-".join(str(width) for width in (inputs, *hidden, 1))
        print(f"{shape}: jitted {jit:.0f} us a step, torch {torch:.0f} us, {torch / jit:.1f} times")


if __name__ == "__main__":
    main()
