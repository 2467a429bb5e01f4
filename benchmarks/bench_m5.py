"""Model trees beside Cubist and LightGBM: time, error, memory, prediction, games learnt by heart.

    python benchmarks/bench_m5.py [part ...]

Parts: fit memory threads predict qgame many start; all of them by default (about 10 minutes).
Peers run in the same process, one after another, and are skipped where they are not installed:
`pip install cubist lightgbm`. Errors are root mean squared errors on 100,000 new rows; the noise
has standard deviation 1. Seconds are wall time, the least and the median of several runs, and CPU
time of the least, which other work on the machine changes little. Ratios are CPU times over that
of `score` with one thread, wall times with two.
"""

import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from typing import NamedTuple

import numpy as np
import psutil
from m5_data import friedman, game, qgame
from numba import njit

from pipeline.m5 import Binned, Options, grow, grow_bag, make_forest, predict, predict_row
from pipeline.m5.binning import parallel
from pipeline.m5.forest import predict_rows

DATA = {"friedman": friedman, "game": game}
# Weka 3.6.14's M5P -M 4 on the same data (reference, not rerun here): error to be matched by sdr.
WEKA = {
    ("friedman", 10_000): 1.954,
    ("friedman", 100_000): 1.331,
    ("game", 10_000): 1.100,
    ("game", 100_000): 1.018,
}


def ours(split, threads):
    def fit(X, y):
        tree = grow(
            Binned.fit(X, threads=threads), y, options=Options(split=split), threads=threads
        )
        forest = make_forest([[tree]])
        return lambda rows: predict(forest, rows)[:, 0], f"{tree.num_leaves} leaves"

    return fit


def cubist(X, y):
    from cubist import Cubist

    model = Cubist(n_rules=100).fit(X, y)
    return model.predict, "100 rules at most"


def lightgbm(threads):
    def fit(X, y):
        import lightgbm as lgb

        parameters = {
            "objective": "regression",
            "learning_rate": 0.1,
            "num_leaves": 31,
            "linear_tree": True,
            "linear_lambda": 1.0,
            "num_threads": threads,
            "verbose": -1,
        }
        model = lgb.train(parameters, lgb.Dataset(X, y), 100)
        return lambda rows: model.predict(rows, num_threads=threads), "100 linear trees"

    return fit


def installed(name):
    try:
        __import__(name)
    except ImportError:
        return False
    return True


def rmse(values, truth):
    return float(np.sqrt(np.mean((np.asarray(values).reshape(-1) - truth) ** 2)))


def timed(function, *arguments):
    start = time.perf_counter()
    result = function(*arguments)
    return time.perf_counter() - start, result


class Times(NamedTuple):
    """Seconds of several runs of the same thing."""

    least: float
    median: float
    cpu: float  # of the run that took least of it, all threads together

    def __str__(self):
        return f"{self.least:7.2f} {self.median:7.2f} {self.cpu:7.2f}"


def repeated(times, function, *arguments):
    """The `Times` of so many runs, and what the last one returned."""
    wall, cpu = [], []
    for _ in range(times):
        before = time.process_time()
        seconds, result = timed(function, *arguments)
        cpu.append(time.process_time() - before)
        wall.append(seconds)
    return Times(min(wall), float(np.median(wall)), min(cpu)), result


def warm_up():
    X, y, _ = friedman(3000, 0)
    for split in ("score", "sdr"):
        for threads in (1, 2):
            ours(split, threads)(X, y)


def part_fit():
    """Lines 1 and 2: error and time of a fit, binning included."""
    print("data      rows     threads method            least  median     CPU  ratio   error  size")
    for name, generate in DATA.items():
        X_new, y_new, truth = generate(100_000, 2)
        print(f"{name:9} noise floor {rmse(truth, y_new):.4f}")
        previous = {}
        for rows in (10_000, 100_000, 1_000_000):
            X, y, _ = generate(rows, 1)
            threads = 2 if rows == 1_000_000 else 1
            methods = {"score": (5, ours("score", threads)), "sdr": (5, ours("sdr", threads))}
            if rows <= 100_000 and installed("cubist"):
                methods["cubist"] = (1, cubist)
            if installed("lightgbm"):
                methods["lightgbm linear"] = (2, lightgbm(threads))
            base = None
            for method, (times, fit) in methods.items():
                seconds, (model, size) = repeated(times, fit, X, y)
                base = base or seconds
                ratio = seconds.cpu / base.cpu if threads == 1 else seconds.least / base.least
                note = size
                if method == "sdr" and (name, rows) in WEKA:
                    note += f", Weka's error {WEKA[name, rows]}"
                if method in previous:
                    note += f", {seconds.cpu / previous[method]:.1f} x the CPU for 10 x the rows"
                previous[method] = seconds.cpu
                print(
                    f"{name:9} {rows:<8} {threads:<7} {method:16} {seconds} {ratio:6.1f}  "
                    f"{rmse(model(X_new), y_new):.4f}  {note}",
                    flush=True,
                )
    X, y, _ = friedman(1_000_000, 1)
    methods = {"score": (3, ours("score", 1)), "sdr": (3, ours("sdr", 1))}
    if installed("lightgbm"):
        methods["lightgbm linear"] = (1, lightgbm(1))
    for method, (times, fit) in methods.items():
        seconds, _ = repeated(times, fit, X, y)
        print(f"friedman  1000000  1       {method:16} {seconds}", flush=True)


def peak_growth(function, *arguments):
    """MiB by which the process grew at most while the function ran, and its result."""
    process = psutil.Process()
    before, peak, done = process.memory_info().rss, [0], threading.Event()

    def watch():
        while not done.wait(0.002):
            peak[0] = max(peak[0], process.memory_info().rss)

    watcher = threading.Thread(target=watch)
    watcher.start()
    result = function(*arguments)
    done.set()
    watcher.join()
    return (peak[0] - before) / 2**20, result


def part_memory():
    """Line 2: peak memory of a fit of 1,000,000 x 100 beyond the process with its data."""
    X, y, _ = friedman(1_000_000, 1)
    print(f"data {X.nbytes / 2**20:.0f} MiB; goal: at most 250 MiB more")
    methods = {"score": ours("score", 2), "sdr": ours("sdr", 2)}
    if installed("lightgbm"):
        methods["lightgbm linear"] = lightgbm(2)
    for method, fit in methods.items():
        print(f"{method:16} + {peak_growth(fit, X, y)[0]:.0f} MiB", flush=True)


def part_threads():
    """Line 7: the same bits for any number of threads."""
    X, y, _ = friedman(100_000, 1)
    for split in ("score", "sdr"):
        trees = [
            grow(Binned.fit(X, threads=t), y, options=Options(split=split), threads=t).arrays()
            for t in (1, 2, 3)
        ]
        same = all(np.array_equal(trees[0][k], tree[k]) for tree in trees[1:] for k in trees[0])
        print(f"{split}: trees of 1, 2 and 3 threads are {'the same' if same else 'DIFFERENT'}")


@njit
def _each_row(forest, X):
    total = 0.0
    for i in range(len(X)):
        total += predict_row(forest, X[i], 0)
    return total


def part_predict():
    """Line 3: rows a second on one thread, rows in the cache as self-play has just written them."""
    for name, generate in DATA.items():
        X, y, _ = generate(100_000, 1)
        tree = grow(Binned.fit(X), y)
        forest = make_forest([[tree]])
        batches = [X[start : start + 256] for start in range(0, 2048, 256)] * 40
        out = np.empty((256, 1))
        predict_rows(forest, batches[0], out)
        seconds = min(
            timed(lambda b=batches, f=forest, o=out: [predict_rows(f, x, o) for x in b])[0]
            for _ in range(20)
        )
        _each_row(forest, X[:9])
        one_by_one = min(timed(_each_row, forest, X[:2048])[0] for _ in range(20))
        cold = min(timed(_each_row, forest, X)[0] for _ in range(5))
        speeds = {
            "batches of 256 (goal 10)": 256 * len(batches) / seconds,
            "in one jitted loop (goal 0.4)": 2048 / one_by_one,
            "the same from main memory": len(X) / cold,
        }
        text = ", ".join(f"{what} {speed / 1e6:.1f}" for what, speed in speeds.items())
        print(f"{name:9} {tree.num_leaves} leaves, M rows/s: {text}")
    many = make_forest([[tree]] * 50)
    seconds = min(timed(predict, many, X[:4096])[0] for _ in range(5))
    print(f"50 actions' trees at once: {4096 * 50 / seconds / 1e6:.1f} M values/s")


CLASSIC = {
    "split": "sdr",
    "features": "subtree",
    "split_price": 1.0,
    "multiplier": 1.0,
    "min_leaf": 4,
}
UNCURED = {"rows_per_group": None, "group_price": False, "min_groups": 1, "trees": 1}
REMEDIES = {
    "classic M5": {**UNCURED, **CLASSIC},
    "score without any cure": UNCURED,
    "sdr without any cure": {**UNCURED, "split": "sdr"},
    "pruned on held-out games, not priced": {**UNCURED, "prune": "holdout"},
    "one tree, all rows, priced": {"rows_per_group": None, "trees": 1},
    "sdr, one tree, all rows, priced": {"split": "sdr", "rows_per_group": None, "trees": 1},
    "defaults": {},
    "sdr, else defaults": {"split": "sdr"},
}
TURNS = 60


class Games(NamedTuple):
    """`qgame` as a learner has it, and new games to judge by."""

    X: np.ndarray
    outcome: np.ndarray
    groups: np.ndarray
    X_new: np.ndarray
    truth: np.ndarray
    binned: Binned

    @staticmethod
    def make(games=2000, seed=11):
        X, outcome, _ = qgame(games, seed)
        X_new, _, truth = qgame(1500, 12)
        return Games(X, outcome, np.arange(len(X)) // TURNS, X_new, truth, Binned.fit(X))

    def fit(self, y, **options):
        """Seconds, the bag of trees, and the error to the true value on the new games."""
        seconds, bag = timed(grow_bag, self.binned, y, None, self.groups, Options(**options))
        return seconds, bag, rmse(predict(make_forest([bag]), self.X_new), self.truth)

    def sweeps(self, count, decay, **options):
        """That error after each of so many sweeps, the labels of a sweep being lambda-returns by
        the trees of the one before; the first ones are the outcomes."""
        y, errors = self.outcome, []
        for sweep in range(count):
            _, bag, error = self.fit(y, **{**options, "seed": 1000 * sweep})
            errors.append(error)
            values = predict(make_forest([bag]), self.X)[:, 0]
            y = _lambda_returns(values, self.outcome, TURNS, decay)
        return errors


def part_qgame():
    """Line 4: outcomes as targets, and lambda-returns over sweeps; error to the true value."""
    games = Games.make()
    print(f"a constant {rmse(0.5, games.truth):.4f}; goal with defaults 0.085")
    for name, options in REMEDIES.items():
        games.fit(games.outcome, **options)
        seconds, bag, error = games.fit(games.outcome, **options)
        leaves = " + ".join(str(tree.num_leaves) for tree in bag)
        print(f"{name:36} {error:.4f}  {leaves} leaves, {seconds:.2f} s", flush=True)
    print("lambda 0.8, rebuilt by sweep; goal after 5 sweeps 0.072")
    for name, options in (("defaults", {}), ("sdr", {"split": "sdr"})):
        errors = games.sweeps(12, 0.8, **options)
        print(f"{name:10} " + " ".join(f"{error:.4f}" for error in errors), flush=True)


def _lambda_returns(values, outcome, turns, decay):
    """Undiscounted lambda-returns of games with a reward at the end only.

    Source: Sutton & Barto, Reinforcement Learning, 2nd ed. (2018), equation 12.3, backwards.
    """
    values, returns = values.reshape(-1, turns), outcome.reshape(-1, turns).astype(float).copy()
    for t in range(turns - 2, -1, -1):
        returns[:, t] = (1 - decay) * values[:, t + 1] + decay * returns[:, t + 1]
    return returns.reshape(-1)


def part_many():
    """Line 6: all trees of 50 actions over 1,000,000 rows x 125 of 1,000 games, on 2 threads."""
    X, y, _ = friedman(1_000_000, 1)
    X = np.concatenate([X, X[::-1, :25]], 1)
    r = np.random.default_rng(3)
    actions = r.choice(50, len(X), p=r.dirichlet(np.full(50, 2.0)))
    groups = np.arange(len(X)) // 1000
    seconds, binned = repeated(3, Binned.fit, X, 64, 2)
    print(f"{'seconds':42} least  median     CPU")
    print(f"{'bins, once':40} {seconds} s; goal for all 60 s")
    everything = {"rows_per_group": None, "trees": 1}
    for name, options in (
        ("defaults: 4 trees each, 6 rows a game", Options()),
        ("score, 1 tree each, all rows", Options(**everything)),
        ("sdr, 1 tree each, all rows", Options(split="sdr", **everything)),
    ):

        def bag(action, options=options):
            rows = np.flatnonzero(actions == action)
            return grow_bag(binned.keep(rows), y[rows], None, groups[rows], options)

        seconds, bags = repeated(3, parallel, bag, range(50), 2)
        leaves = sum(tree.num_leaves for trees in bags for tree in trees)
        print(f"{name:40} {seconds} s, {leaves} leaves in all", flush=True)


def part_start():
    """Line 2: seconds until a new process has fitted 3000 x 100 by both rules."""
    program = (
        "import numpy as np\nfrom pipeline.m5 import *\n"
        "r = np.random.default_rng(0); X = r.random((3000, 100), dtype=np.float32)\n"
        "for split in ('score', 'sdr'):\n"
        "    bag = grow_bag(Binned.fit(X), X[:, 0] * X[:, 1], None, np.arange(3000) // 9,\n"
        "                   Options(split=split))\n"
        "    predict(make_forest([bag]), X)\n"
    )
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "SELFPLAY_CACHE": cache}
        for state in ("empty", "filled", "filled", "filled"):
            run = [sys.executable, "-c", program]
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            seconds, _ = timed(lambda r=run, e=environment: subprocess.run(r, check=True, env=e))
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            print(f"kernel cache {state}: {seconds:.1f} s, CPU {cpu:.1f}", flush=True)


PARTS = {
    "fit": part_fit,
    "memory": part_memory,
    "threads": part_threads,
    "predict": part_predict,
    "qgame": part_qgame,
    "many": part_many,
    "start": part_start,
}

if __name__ == "__main__":
    warnings.simplefilter("ignore")  # peers' own
    chosen = sys.argv[1:] or list(PARTS)
    unknown = [part for part in chosen if part not in PARTS]
    if unknown:
        sys.exit(f"there is no part {unknown[0]!r}; the parts are {', '.join(PARTS)}")
    warm_up()
    for part in chosen:
        print(f"== {part}: {PARTS[part].__doc__}")
        PARTS[part]()
