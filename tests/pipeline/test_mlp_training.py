"""The jitted training takes the steps that torch takes and that the formulas say."""

import json
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

from games import Symmetry
from pipeline.errors import ConfigError, LearningError
from pipeline.learners import mlp_training
from pipeline.learners.mlp_training import (
    LOSSES,
    OPTIMIZERS,
    Curve,
    Options,
    Rows,
    best_device,
    fresh_mlp,
    loss_of,
    train,
    with_images,
)
from pipeline.policies.mlp import MLP

FEATURES = 12
NONE = Rows(np.empty((0, FEATURES), np.float32), np.empty(0, np.float32))


def options(**changes) -> Options:
    defaults = {
        "loss": "mse",
        "learning_rate": 1e-2,
        "weight_decay": 0.0,
        "batch": 16,
        "epochs": 3,
        "threads": 1,
    }
    return Options(**{**defaults, **changes})


def rows_of(kind: str, count: int, seed: int = 0) -> Rows:
    """Inputs of a kind with targets in [-1, 1] that depend on them."""
    rng = np.random.default_rng(seed)
    if kind == "one-hot":
        inputs = np.eye(FEATURES)[rng.integers(0, FEATURES, count)]
    elif kind == "sparse":
        inputs = rng.normal(size=(count, FEATURES)) * (rng.random((count, FEATURES)) < 0.15)
    else:
        inputs = rng.normal(size=(count, FEATURES))
    targets = np.tanh(inputs @ rng.normal(size=FEATURES) + rng.normal(size=count) * 0.1)
    return Rows(inputs.astype(np.float32), targets.astype(np.float32))


def with_outputs(rows: Rows, outputs: int) -> Rows:
    """Each target for one of several outputs, 0 among those that none is for."""
    which = np.random.default_rng(9).integers(1, outputs, len(rows.targets))
    return rows._replace(outputs=which)


def trained(device: str, mlp: MLP, rows: Rows, held_out: Rows, choice: Options):
    curve = Curve()
    return train(mlp, rows, held_out, choice, 7, device, curve), curve


CASES = [
    # Every loss, output, kind of input and depth, and batches that do and do not divide the rows.
    ("one-hot", [], "mse", "linear", 16),
    ("one-hot", [8], "mse", "linear", 16),
    ("one-hot", [8], "huber", "tanh", 50),
    ("one-hot", [8, 6], "mae", "tanh", 7),
    ("sparse", [], "huber", "linear", 50),
    ("sparse", [8], "mse", "tanh", 16),
    ("sparse", [8, 6], "mae", "linear", 1000),
    ("sparse", [3, 40], "mse", "linear", 16),
    ("dense", [], "mae", "linear", 16),
    ("dense", [8], "mse", "linear", 1),
    ("dense", [8], "mae", "linear", 50),
    ("dense", [8, 6], "huber", "tanh", 16),
    ("dense", [6, 8, 5], "mse", "tanh", 13),
    ("dense", [], "mse", "tanh", 100),
]


@pytest.mark.parametrize(("kind", "hidden", "loss", "output", "batch"), CASES)
@pytest.mark.parametrize("decay", [0.0, 1e-2])
def test_jitted_equals_torch(kind, hidden, loss, output, batch, decay):
    rows, held_out = rows_of(kind, 100), rows_of(kind, 40, seed=1)
    mlp = fresh_mlp(FEATURES, hidden, 1, output, 3)
    choice = options(loss=loss, batch=batch, weight_decay=decay)
    jitted, ours = trained("jit", mlp, rows, held_out, choice)
    torched, theirs = trained("cpu", mlp, rows, held_out, choice)
    assert ours.train == pytest.approx(theirs.train, rel=1e-4)
    assert ours.held_out == pytest.approx(theirs.held_out, rel=1e-4)
    assert len(ours.train) == len(ours.held_out) == 3
    assert jitted(held_out.inputs) == pytest.approx(torched(held_out.inputs), abs=2e-4)
    for left, right in zip(jitted.weights, torched.weights, strict=True):
        assert left == pytest.approx(right, abs=2e-3)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize(
    ("kind", "hidden", "loss", "output", "batch"),
    [
        ("dense", [8], "mae", "linear", 16),
        ("sparse", [6, 5], "mse", "tanh", 7),
        ("one-hot", [], "huber", "linear", 50),
    ],
)
def test_jitted_equals_torch_for_every_optimizer_and_several_outputs(
    kind, hidden, loss, output, batch, optimizer
):
    rows = with_outputs(rows_of(kind, 100), 4)
    held_out = with_outputs(rows_of(kind, 40, seed=1), 4)
    mlp = fresh_mlp(FEATURES, hidden, 4, output, 3)
    rate = 1.0 if optimizer == "adadelta" else 1e-2
    choice = options(loss=loss, batch=batch, optimizer=optimizer, learning_rate=rate)
    jitted, ours = trained("jit", mlp, rows, held_out, choice)
    torched, theirs = trained("cpu", mlp, rows, held_out, choice)
    assert ours.train == pytest.approx(theirs.train, rel=1e-4)
    assert ours.held_out == pytest.approx(theirs.held_out, rel=1e-4)
    assert jitted(held_out.inputs) == pytest.approx(torched(held_out.inputs), abs=2e-4)
    # Nobody asked for output 0: its weights are what they were, whatever was learned below it.
    assert (jitted.weights[-1][:, 0] == mlp.weights[-1][:, 0]).all()
    assert (jitted.weights[-1][:, 1:] != mlp.weights[-1][:, 1:]).any(0).all()


def test_two_steps_of_adadelta_are_the_papers():
    """Zeiler (2012), algorithm 1, by hand for one weight, its gradient 2 w - 2 (mse, input 1)."""
    rows = Rows(np.ones((1, 1), np.float32), np.ones(1, np.float32))
    mlp = MLP([np.array([[0.5]])], [np.array([0.0])], "linear")
    choice = options(optimizer="adadelta", learning_rate=0.5, epochs=2, batch=1)
    nothing = Rows(np.empty((0, 1), np.float32), np.empty(0, np.float32))
    network, _ = trained("jit", mlp, rows, nothing, choice)
    w, b, squares, moved = 0.5, 0.0, 0.0, 0.0
    for _ in range(2):  # weight and bias have the same gradient, so the same step
        g = 2 * (w + b - 1)
        squares = 0.95 * squares + 0.05 * g * g
        step = np.sqrt(moved + 1e-7) / np.sqrt(squares + 1e-7) * g
        moved = 0.95 * moved + 0.05 * step * step
        w, b = w - 0.5 * step, b - 0.5 * step
    assert network.weights[0][0, 0] == pytest.approx(w, abs=1e-7)
    assert network.biases[0][0] == pytest.approx(b, abs=1e-7)


def test_images_move_inputs_and_outputs_together():
    swap = Symmetry(np.array([2, 1, 0]), np.array([1, 0]))
    rows = Rows(np.array([[1, 2, 3]], np.float32), np.array([0.5], np.float32), np.array([1]))
    both = with_images(rows, [swap])
    assert both.inputs.tolist() == [[1, 2, 3], [3, 2, 1]]
    assert both.targets.tolist() == [0.5, 0.5]
    assert both.outputs is not None
    assert both.outputs.tolist() == [1, 0]
    assert with_images(rows._replace(outputs=None), [swap]).outputs is None


# The formulas, in float64.


def plain_gradients(mlp: MLP, rows: Rows, loss: str):
    """Gradient of the mean loss by central differences; also the mean loss."""
    parameters = [p.astype(np.float64) for p in (*mlp.weights, *mlp.biases)]
    layers = len(mlp.weights)

    def mean_loss() -> float:
        x = rows.inputs.astype(np.float64)
        for layer in range(layers):
            x = x @ parameters[layer] + parameters[layers + layer]
            if layer < layers - 1:
                x = np.maximum(x, 0)
        values = np.tanh(x[:, 0]) if mlp.output == "tanh" else x[:, 0]
        error = values - rows.targets
        size = np.abs(error)
        huber = np.where(size < 1, error**2 / 2, size - 0.5)
        return float({"mse": error**2, "mae": size, "huber": huber}[loss].mean())

    gradients = []
    for parameter in parameters:
        gradient = np.empty_like(parameter)
        for at in np.ndindex(*parameter.shape):
            kept, moved = parameter[at], []
            for step in (1e-5, -1e-5):
                parameter[at] = kept + step
                moved.append(mean_loss())
            parameter[at] = kept
            gradient[at] = (moved[0] - moved[1]) / 2e-5
        gradients.append(gradient)
    return gradients, mean_loss()


@pytest.mark.parametrize("kind", ["sparse", "dense"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("output", ["linear", "tanh"])
@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_the_first_step_of_adam_is_the_rate_in_the_direction_of_the_gradient(
    kind, loss, output, decay
):
    """After one step m / (1 - b1) = g and v / (1 - b2) = g^2: p moves by rate * g / (|g| + eps)."""
    rows = rows_of(kind, 25)
    mlp = fresh_mlp(FEATURES, [5], 1, output, 4)
    after, curve = trained(
        "jit", mlp, rows, NONE, options(loss=loss, batch=25, epochs=1, weight_decay=decay)
    )
    gradients, before = plain_gradients(mlp, rows, loss)
    assert curve.train == [pytest.approx(before, rel=1e-5)]
    pairs = zip((*mlp.weights, *mlp.biases), (*after.weights, *after.biases), strict=True)
    for (old, new), slope in zip(pairs, gradients, strict=True):
        g = slope + decay * old
        sure = np.abs(g) > 1e-4  # float32 cannot tell the sign of what is next to nothing
        expected = old - 1e-2 * g / (np.abs(g) + 1e-8)
        assert new[sure] == pytest.approx(expected[sure], abs=1e-5)
        still = (g == 0) & (old == new)
        assert (still | (np.abs(new - old) <= 1e-2 + 1e-6)).all()


def test_the_second_step_of_adam_by_hand():
    """One weight, one row, no bias error in the way: m, v and their corrections over two steps."""
    mlp = MLP([np.array([[0.5]])], [np.array([0.0])], "linear")
    rows = Rows(np.ones((1, 1), np.float32), np.array([2.0], np.float32))
    nothing = Rows(np.empty((0, 1), np.float32), np.empty(0, np.float32))
    after, curve = trained("jit", mlp, rows, nothing, options(batch=1, epochs=2))
    parameters = np.array([0.5, 0.0])
    m, v, losses = np.zeros(2), np.zeros(2), []
    for step in (1, 2):
        error = parameters.sum() - 2
        losses.append(error**2)
        g = np.full(2, 2 * error)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        corrected = m / (1 - 0.9**step), v / (1 - 0.999**step)
        parameters = parameters - 1e-2 * corrected[0] / (np.sqrt(corrected[1]) + 1e-8)
    found = np.array([after.weights[0][0, 0], after.biases[0][0]])
    assert found == pytest.approx(parameters, abs=1e-6)
    assert curve.train == pytest.approx(losses, rel=1e-5)


@pytest.mark.parametrize("device", ["jit", "cpu"])
def test_training_makes_the_loss_small(device):
    rows = rows_of("one-hot", 300)
    mlp = fresh_mlp(FEATURES, [32], 1, "tanh", 1)
    before = loss_of(mlp, rows, "mse")
    after, curve = trained(device, mlp, rows, NONE, options(epochs=40))
    assert loss_of(after, rows, "mse") < before / 10
    assert curve.train[-1] < curve.train[0] / 10 and curve.held_out == []


def test_the_network_of_the_best_held_out_epoch_is_kept():
    rows, held_out = rows_of("dense", 100), rows_of("dense", 30, seed=1)
    mlp = fresh_mlp(FEATURES, [8], 1, "linear", 2)
    # So fast that it gets worse again.
    choice = options(learning_rate=0.3, epochs=12)
    kept, curve = trained("jit", mlp, rows, held_out, choice)
    best = int(np.argmin(curve.held_out))
    assert best < 11
    assert loss_of(kept, held_out, "mse") == curve.held_out[best]
    until, _ = trained("jit", mlp, rows, NONE, choice._replace(epochs=best + 1))
    assert [w.tobytes() for w in kept.weights] == [w.tobytes() for w in until.weights]


def test_without_held_out_rows_the_last_epoch_is_kept():
    rows = rows_of("dense", 100)
    mlp = fresh_mlp(FEATURES, [8], 1, "linear", 2)
    kept, curve = trained("jit", mlp, rows, NONE, options(learning_rate=0.3, epochs=6))
    assert curve.held_out == [] and len(curve.train) == 6
    longer = Curve()
    again = train(mlp, rows, NONE, options(learning_rate=0.3, epochs=7), 7, "jit", longer)
    assert longer.train[:6] == curve.train
    assert again.weights[0].tobytes() != kept.weights[0].tobytes()


@pytest.mark.parametrize("device", ["jit", "cpu"])
def test_training_leaves_what_it_starts_from_as_it_is(device):
    rows = rows_of("sparse", 50)
    mlp = fresh_mlp(FEATURES, [8], 1, "linear", 2)
    before = [w.tobytes() for w in (*mlp.weights, *mlp.biases)]
    inputs = rows.inputs.tobytes()
    trained(device, mlp, rows, rows, options())
    assert [w.tobytes() for w in (*mlp.weights, *mlp.biases)] == before
    assert rows.inputs.tobytes() == inputs


def test_the_seed_decides_the_order_of_the_rows():
    rows = rows_of("sparse", 90)
    mlp = fresh_mlp(FEATURES, [8], 1, "linear", 2)
    curves = []
    for seed in (1, 1, 2):
        curve = Curve()
        train(mlp, rows, NONE, options(), seed, "jit", curve)
        curves.append(curve.train)
    assert curves[0] == curves[1] != curves[2]


@pytest.mark.parametrize("device", ["jit", "cpu"])
def test_no_rows_teach_nothing(device):
    mlp = fresh_mlp(FEATURES, [4], 1, "linear", 2)
    after, curve = trained(device, mlp, NONE, NONE, options(epochs=2))
    assert after.weights[0].tobytes() == mlp.weights[0].tobytes()
    assert curve.train == [0.0, 0.0]


@pytest.mark.parametrize("device", ["jit", "cpu"])
def test_a_loss_that_is_no_number_is_told(device):
    rows = rows_of("dense", 20)
    rows.targets[3] = np.nan
    with pytest.raises(LearningError, match=r"diverged in epoch 1 .*lower learner\.learning_rate"):
        trained(device, fresh_mlp(FEATURES, [4], 1, "linear", 2), rows, NONE, options())


def test_sparse_and_dense_inputs_take_the_same_steps(monkeypatch):
    rows = rows_of("sparse", 120)
    mlp = fresh_mlp(FEATURES, [8, 4], 1, "tanh", 2)
    sparse, fast = trained("jit", mlp, rows, NONE, options())
    monkeypatch.setattr(mlp_training, "_SPARSE", 0.0)
    dense, slow = trained("jit", mlp, rows, NONE, options())
    assert fast.train == pytest.approx(slow.train, rel=1e-5)
    assert sparse.weights[0] == pytest.approx(dense.weights[0], abs=1e-4)


# Losses and fresh networks.


def test_losses_by_hand():
    # V = x; errors -0.5, 2, 0, -3.
    mlp = MLP([np.ones((1, 1))], [np.zeros(1)], "linear")
    inputs = np.array([[0.5], [3.0], [1.0], [-1.0]], np.float32)
    rows = Rows(inputs, np.array([1, 1, 1, 2], np.float32))
    assert loss_of(mlp, rows, "mse") == (0.25 + 4 + 0 + 9) / 4
    assert loss_of(mlp, rows, "mae") == (0.5 + 2 + 0 + 3) / 4
    assert loss_of(mlp, rows, "huber") == (0.125 + 1.5 + 0 + 2.5) / 4


@pytest.mark.parametrize("hidden", [[], [50], [40, 30]])
def test_fresh_weights_are_uniform_within_1_over_the_root_of_the_inputs(hidden):
    mlp = fresh_mlp(200, hidden, 1, "tanh", 1)
    sizes = [200, *hidden, 1]
    assert [w.shape for w in mlp.weights] == list(pairwise(sizes))
    assert [b.shape for b in mlp.biases] == [(size,) for size in sizes[1:]]
    for inputs, weight, bias in zip(sizes, mlp.weights, mlp.biases, strict=False):
        bound = 1 / np.sqrt(inputs)
        for values in (weight.ravel(), bias):
            assert np.abs(values).max() <= bound
        if weight.size > 500:
            assert np.histogram(weight, 4, (-bound, bound))[0].min() > weight.size / 5
    assert fresh_mlp(200, hidden, 1, "tanh", 1).weights[0].tobytes() == mlp.weights[0].tobytes()
    assert fresh_mlp(200, hidden, 1, "tanh", 2).weights[0].tobytes() != mlp.weights[0].tobytes()


# Devices.


def test_auto_is_jit_where_there_is_no_gpu():
    import torch

    assert best_device("auto") == ("cuda" if torch.cuda.is_available() else "jit")
    for device in ("jit", "cpu", "cuda"):
        assert best_device(device) == device


def test_without_torch_auto_is_jit_and_cpu_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # importing it raises ImportError
    assert best_device("auto") == "jit"
    mlp = fresh_mlp(FEATURES, [], 1, "linear", 1)
    with pytest.raises(ConfigError, match=r"learner.device=cpu needs torch, .*selfplay\[torch\]"):
        trained("cpu", mlp, rows_of("dense", 5), NONE, options())


@pytest.fixture(scope="module")
def fresh_process():
    """What a process says that trains jitted, with a batch far larger than its rows."""
    code = """
import json, resource, sys
import numpy as np
from pipeline import league, train, work
from pipeline.learners import mlp_training, value_network
def fit(batch):
    mlp = mlp_training.fresh_mlp(4, [64], 1, "tanh", 1)
    rows = mlp_training.Rows(np.eye(4, dtype=np.float32), np.ones(4, np.float32))
    options = mlp_training.Options("mse", 0.1, 0.0, batch, 1, 1)
    mlp_training.train(mlp, rows, rows, options, 1, "jit", mlp_training.Curve())
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
small, large = fit(2), fit(2**18)
heavy = [name for name in ("torch", "ray", "mlflow") if name in sys.modules]
print(json.dumps({"heavy": heavy, "megabytes": large - small}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_the_jitted_path_does_not_import_torch(fresh_process):
    assert fresh_process["heavy"] == []


def test_a_batch_larger_than_the_rows_takes_no_memory_for_it(fresh_process):
    assert fresh_process["megabytes"] < 50
