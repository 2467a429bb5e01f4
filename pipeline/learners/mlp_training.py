"""Training an MLP: jitted for processors, torch for GPUs. Both take the same steps.

Small networks over small batches, as board games have them, spend most of their time between
torch's operators. One jitted loop, which reads only the non-zero inputs, is about eight times
faster at the SumTo100 network (benchmarks/bench_learner.py) and does not need torch to be
installed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numba import njit

from games import Symmetry
from pipeline.errors import ConfigError, LearningError
from pipeline.policies.mlp import MLP

LOSSES = ("mse", "mae", "huber")
# Below this share of non-zero inputs, adding rows of the first weight matrix beats multiplying it.
_SPARSE = 0.3
_BETA_1, _BETA_2, _EPSILON = 0.9, 0.999, 1e-8  # of Adam, as published
_RHO, _TINY = 0.95, 1e-7  # of Adadelta: the decay of its paper, the constant of Keras
OPTIMIZERS = ("adam", "adadelta")


class Options(NamedTuple):
    loss: str  # of LOSSES
    learning_rate: float
    weight_decay: float
    batch: int
    epochs: int
    threads: int
    optimizer: str = "adam"  # of OPTIMIZERS


@dataclass
class Curve:
    """Mean loss per row of every epoch."""

    train: list[float] = field(default_factory=list)  # while learning, so of changing networks
    held_out: list[float] = field(default_factory=list)


class Rows(NamedTuple):
    inputs: np.ndarray  # float32 [N, F]
    targets: np.ndarray  # float32 [N]
    # int64 [N]: which output of the network each target is for; the others learn nothing from it.
    # None: the first.
    outputs: np.ndarray | None = None


def with_images(rows: Rows, symmetries: Sequence[Symmetry]) -> Rows:
    """The rows, and their images under a game's symmetries."""
    inputs = [rows.inputs, *(rows.inputs[:, each.observation] for each in symmetries)]
    outputs = None
    if rows.outputs is not None:
        images = [each.action[rows.outputs] for each in symmetries]
        outputs = np.concatenate([rows.outputs, *images])
    return Rows(np.concatenate(inputs), np.concatenate([rows.targets] * len(inputs)), outputs)


def fresh_mlp(inputs: int, hidden: list[int], outputs: int, output: str, seed: int) -> MLP:
    """A network with weights and biases uniform in +-1/sqrt(inputs of the layer).

    Source: the default of torch.nn.Linear, after Y. LeCun et al., "Efficient BackProp" (1998).
    """
    rng = np.random.default_rng(seed)
    sizes = [inputs, *hidden, outputs]
    weights, biases = [], []
    for before, after in pairwise(sizes):
        bound = 1.0 / np.sqrt(before)
        weights.append(rng.uniform(-bound, bound, (before, after)).astype(np.float32))
        biases.append(rng.uniform(-bound, bound, after).astype(np.float32))
    return MLP(weights, biases, output)


def loss_of(mlp: MLP, rows: Rows, loss: str) -> float:
    """Mean loss per row."""
    which = 0 if rows.outputs is None else rows.outputs
    values = mlp(rows.inputs)[np.arange(len(rows.targets)), which]
    error = values.astype(np.float64) - rows.targets
    if loss == "mse":
        return float(np.mean(error**2))
    size = np.abs(error)
    if loss == "mae":
        return float(np.mean(size))
    return float(np.mean(np.where(size < 1, size**2 / 2, size - 0.5)))  # Huber (1964), delta 1


def train(
    mlp: MLP, rows: Rows, held_out: Rows, options: Options, seed: int, device: str, curve: Curve
) -> MLP:
    """Epochs of gradient steps from `mlp` on; returns the network after the epoch with the least
    held-out loss, or after the last one if nothing is held out.

    Args:
        seed: decides the order of the rows.
        device: "jit", "cpu" (torch on the processor) or "cuda".
        curve: receives the losses of every epoch.

    Source: Kingma & Ba, "Adam: a method for stochastic optimization" (2015), algorithm 1; Zeiler,
    "ADADELTA: an adaptive learning rate method" (2012), algorithm 1, its step times the learning
    rate. Weight decay is added to the gradient.
    """
    stepper = _Jitted(mlp, rows, options) if device == "jit" else _Torch(mlp, rows, options, device)
    rng = np.random.default_rng(seed)
    best, kept = np.inf, mlp
    for _ in range(options.epochs):
        curve.train.append(stepper.epoch(rng.permutation(len(rows.targets))))
        now = stepper.mlp()
        if not (np.isfinite(curve.train[-1]) and all(np.isfinite(w).all() for w in now.weights)):
            raise LearningError(
                f"learning diverged in epoch {len(curve.train)} (its loss is {curve.train[-1]}); "
                f"lower learner.learning_rate ({options.learning_rate}), or choose output=tanh"
            )
        if len(held_out.targets):
            curve.held_out.append(loss_of(now, held_out, options.loss))
            if not curve.held_out[-1] < best:
                continue
            best = curve.held_out[-1]
        kept = now
    return kept


# Jitted. Parameters live in one flat vector, layer by layer: weights [inputs, outputs], then
# biases.


class _Jitted:
    def __init__(self, mlp: MLP, rows: Rows, options: Options):
        self._like = mlp
        self._sizes = np.array([*(len(w) for w in mlp.weights), len(mlp.biases[-1])])
        self._parameters = _flatten(mlp)
        self._moments = np.zeros((2, len(self._parameters)), np.float32)
        self._steps = 0
        self._rows, self._options = rows, options
        self._outputs = rows.outputs
        if self._outputs is None:
            self._outputs = np.zeros(len(rows.targets), np.int64)
        filled = rows.inputs != 0
        self._sparse = bool(filled.mean() < _SPARSE) if filled.size else False
        if self._sparse:
            self._starts = np.concatenate([[0], np.cumsum(filled.sum(1))])
            self._columns = np.nonzero(filled)[1]
        else:
            self._starts = self._columns = np.zeros(0, np.int64)

    def epoch(self, order: np.ndarray) -> float:
        options = self._options
        total = _epoch(
            self._rows.inputs,
            self._rows.targets,
            self._outputs,
            self._sparse,
            self._starts,
            self._columns,
            order,
            options.batch,
            self._sizes,
            self._parameters,
            self._moments,
            self._steps,
            LOSSES.index(options.loss),
            self._like.output == "tanh",
            options.optimizer == "adadelta",
            options.learning_rate,
            options.weight_decay,
        )
        self._steps += -(-len(order) // options.batch)
        return total / max(len(order), 1)

    def mlp(self) -> MLP:
        weights, biases = [], []
        at = 0
        for before, after in pairwise(self._sizes):
            weights.append(self._parameters[at : at + before * after].reshape(before, after).copy())
            at += before * after
            biases.append(self._parameters[at : at + after].copy())
            at += after
        return MLP(weights, biases, self._like.output)


def _flatten(mlp: MLP) -> np.ndarray:
    parts: list[np.ndarray] = []
    for weight, bias in zip(mlp.weights, mlp.biases, strict=True):
        parts += [weight.ravel(), bias]
    return np.concatenate(parts)


# Division by zero is checked in Python's way otherwise, which keeps the loop from being vectorised.
@njit(cache=True, fastmath=True, error_model="numpy")
def _adam(parameters, gradient, moments, step, rate, decay):
    """One step of Adam over all parameters."""
    one = np.float32(1.0)
    b1, b2 = np.float32(_BETA_1), np.float32(_BETA_2)
    pace = np.float32(rate / (1.0 - _BETA_1**step))
    scale = np.float32(1.0 / np.sqrt(1.0 - _BETA_2**step))
    fade, tiny = np.float32(decay), np.float32(_EPSILON)
    first, second = moments[0], moments[1]
    for i in range(len(parameters)):
        g = gradient[i] + fade * parameters[i]
        first[i] = b1 * first[i] + (one - b1) * g
        second[i] = b2 * second[i] + (one - b2) * g * g
        parameters[i] -= pace * first[i] / (np.sqrt(second[i]) * scale + tiny)


@njit(cache=True, fastmath=True, error_model="numpy")
def _adadelta(parameters, gradient, moments, rate, decay):
    """One step of Adadelta over all parameters."""
    one, rho = np.float32(1.0), np.float32(_RHO)
    pace, fade, tiny = np.float32(rate), np.float32(decay), np.float32(_TINY)
    squares, steps = moments[0], moments[1]
    for i in range(len(parameters)):
        g = gradient[i] + fade * parameters[i]
        squares[i] = rho * squares[i] + (one - rho) * g * g
        step = np.sqrt(steps[i] + tiny) / np.sqrt(squares[i] + tiny) * g
        steps[i] = rho * steps[i] + (one - rho) * step * step
        parameters[i] -= pace * step


@njit(cache=True)
def _blame(values, targets, which, loss, tanh, out):
    """Gradient of the batch's mean loss at the last linear layer; returns the loss, summed."""
    count = len(values)
    total = 0.0
    out[:] = 0.0
    for i in range(count):
        value = values[i, which[i]]
        if tanh:
            value = np.tanh(value)
        error = np.float64(value - targets[i])
        size = abs(error)
        if loss == 0:
            total += error * error
            slope = 2.0 * error
        elif loss == 1:
            total += size
            slope = np.sign(error)
        else:
            total += 0.5 * error * error if size < 1.0 else size - 0.5
            slope = error if size < 1.0 else np.sign(error)
        if tanh:
            slope *= 1.0 - value * value
        out[i, which[i]] = slope / count
    return total


@njit(cache=True, fastmath=True)
def _add_scaled(into, row, factor):
    for u in range(into.size):
        into[u] += factor * row[u]


@njit(cache=True)
def _epoch(
    inputs, targets, which, sparse, starts, columns, order, batch, sizes, parameters, moments,
    steps, loss, tanh, adadelta, rate, decay,
):  # fmt: skip
    """One pass over the rows in the given order; returns the summed loss."""
    layers = len(sizes) - 1
    weight_at, bias_at = np.zeros(layers, np.int64), np.zeros(layers, np.int64)
    at = 0
    widest = sizes[1]
    for k in range(layers):
        weight_at[k] = at
        bias_at[k] = at + sizes[k] * sizes[k + 1]
        at = bias_at[k] + sizes[k + 1]
        widest = max(widest, sizes[k + 1])
    gradient = np.zeros(len(parameters), np.float32)
    # Layer k's outputs start at row k * batch; blame and its successor take turns.
    outputs = np.zeros((layers, batch * widest), np.float32)
    blames = np.zeros((2, batch * widest), np.float32)
    x = np.zeros((batch, sizes[0] if not sparse else 1), np.float32)
    labels = np.zeros(batch, np.float32)
    of = np.zeros(batch, np.int64)
    total = 0.0
    for begin in range(0, len(order), batch):
        rows = order[begin : begin + batch]
        n = len(rows)
        for i in range(n):
            labels[i] = targets[rows[i]]
            of[i] = which[rows[i]]
            if not sparse:
                x[i] = inputs[rows[i]]
        # Forward.
        for k in range(layers):
            wide, high = sizes[k + 1], sizes[k]
            weight = parameters[weight_at[k] : bias_at[k]].reshape(high, wide)
            bias = parameters[bias_at[k] : bias_at[k] + wide]
            out = outputs[k, : n * wide].reshape(n, wide)
            if k == 0 and sparse:
                out[:] = 0.0
                for i in range(n):
                    for j in range(starts[rows[i]], starts[rows[i] + 1]):
                        column = columns[j]
                        _add_scaled(out[i], weight[column], inputs[rows[i], column])
            elif k == 0:
                np.dot(x[:n], weight, out)
            else:
                before = outputs[k - 1, : n * high].reshape(n, high)
                np.dot(before, weight, out)
            for i in range(n):
                for u in range(wide):
                    value = out[i, u] + bias[u]
                    out[i, u] = value if k == layers - 1 else max(value, np.float32(0.0))
        # Backward.
        ends = sizes[layers]
        blame = blames[0, : n * ends].reshape(n, ends)
        last = outputs[layers - 1, : n * ends].reshape(n, ends)
        total += _blame(last, labels[:n], of[:n], loss, tanh, blame)
        for k in range(layers - 1, -1, -1):
            wide, high = sizes[k + 1], sizes[k]
            weight = parameters[weight_at[k] : bias_at[k]].reshape(high, wide)
            into = gradient[weight_at[k] : bias_at[k]].reshape(high, wide)
            bias_into = gradient[bias_at[k] : bias_at[k] + wide]
            bias_into[:] = 0.0
            for i in range(n):
                _add_scaled(bias_into, blame[i], np.float32(1.0))
            if k == 0 and sparse:
                into[:] = 0.0
                for i in range(n):
                    for j in range(starts[rows[i]], starts[rows[i] + 1]):
                        column = columns[j]
                        _add_scaled(into[column], blame[i], inputs[rows[i], column])
            elif k == 0:
                np.dot(x[:n].T, blame, into)
            else:
                before = outputs[k - 1, : n * high].reshape(n, high)
                np.dot(before.T, blame, into)
                earlier = blames[(layers - k) % 2, : n * high].reshape(n, high)
                np.dot(blame, weight.T, earlier)
                for i in range(n):
                    for u in range(high):
                        if before[i, u] <= 0.0:
                            earlier[i, u] = 0.0
                blame = earlier
        steps += 1
        if adadelta:
            _adadelta(parameters, gradient, moments, rate, decay)
        else:
            _adam(parameters, gradient, moments, steps, rate, decay)
    return total


# torch, for GPUs.


class _Torch:
    def __init__(self, mlp: MLP, rows: Rows, options: Options, device: str):
        try:
            import torch
        except ImportError as error:
            raise ConfigError(
                f"learner.device={device} needs torch, which is not installed; install the extra "
                "selfplay[torch], or choose learner.device=jit"
            ) from error
        torch.set_num_threads(options.threads)
        self._torch, self._options = torch, options
        self._output = mlp.output
        layers: list[torch.nn.Module] = []
        for weight, bias in zip(mlp.weights, mlp.biases, strict=True):
            linear = torch.nn.Linear(*weight.shape)
            with torch.no_grad():
                linear.weight.copy_(torch.from_numpy(weight.T.copy()))
                linear.bias.copy_(torch.from_numpy(bias.copy()))
            layers += [linear, torch.nn.ReLU()]
        layers[-1] = torch.nn.Tanh() if mlp.output == "tanh" else torch.nn.Identity()
        self._network = torch.nn.Sequential(*layers).to(device)
        self._optimizer: torch.optim.Optimizer
        if options.optimizer == "adadelta":
            self._optimizer = torch.optim.Adadelta(
                self._network.parameters(),
                options.learning_rate,
                rho=_RHO,
                eps=_TINY,
                weight_decay=options.weight_decay,
            )
        else:
            self._optimizer = torch.optim.Adam(
                self._network.parameters(),
                options.learning_rate,
                betas=(_BETA_1, _BETA_2),
                eps=_EPSILON,
                weight_decay=options.weight_decay,
                fused=True,
            )
        functions = torch.nn.functional
        self._loss = {
            "mse": functions.mse_loss,
            "mae": functions.l1_loss,
            "huber": functions.smooth_l1_loss,
        }[options.loss]
        self._inputs = torch.from_numpy(rows.inputs).to(device)
        self._targets = torch.from_numpy(rows.targets).to(device)
        which = np.zeros(len(rows.targets), np.int64) if rows.outputs is None else rows.outputs
        self._which = torch.from_numpy(which).to(device)

    def epoch(self, order: np.ndarray) -> float:
        torch, batch = self._torch, self._options.batch
        rows = torch.from_numpy(order).to(self._inputs.device)
        total = torch.zeros((), device=self._inputs.device)
        for start in range(0, len(order), batch):
            some = rows[start : start + batch]
            values = self._network(self._inputs[some])
            played = values.gather(1, self._which[some, None]).squeeze(1)
            loss = self._loss(played, self._targets[some])
            self._optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self._optimizer.step()
            total += loss.detach() * len(some)
        return float(total) / max(len(order), 1)

    def mlp(self) -> MLP:
        linears = [each for each in self._network if isinstance(each, self._torch.nn.Linear)]
        return MLP(
            [each.weight.detach().cpu().numpy().T.copy() for each in linears],
            [each.bias.detach().cpu().numpy().copy() for each in linears],
            self._output,
        )


def best_device(device: str) -> str:
    """What `learner.device` means here: "auto" is CUDA where there is one, else jitted."""
    if device != "auto":
        return device
    try:
        import torch
    except ImportError:
        return "jit"
    return "cuda" if torch.cuda.is_available() else "jit"
