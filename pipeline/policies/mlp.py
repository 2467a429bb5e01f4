"""A multilayer perceptron in NumPy: what a learned value needs to play, without importing torch.

For networks of this size one thread of NumPy is as fast as torch, and an actor that does not import
torch takes half the memory and starts seconds sooner.
"""

from collections.abc import Sequence

import numpy as np

_CHUNK = 2048  # rows at a time, so that a hidden layer stays in the processor's cache

OUTPUTS = ("linear", "tanh")


class MLP:
    """Linear layers with ReLU between them.

    Args:
        weights: float32 [inputs, outputs] of each layer.
        biases: float32 [outputs] of each layer.
        output: "linear", or "tanh" to keep values in (-1, 1).
    """

    def __init__(self, weights: Sequence[np.ndarray], biases: Sequence[np.ndarray], output: str):
        if output not in OUTPUTS:
            raise ValueError(f"the output of a network is one of {OUTPUTS}, got {output!r}")
        self.weights = [np.ascontiguousarray(weight, np.float32) for weight in weights]
        self.biases = [np.ascontiguousarray(bias, np.float32) for bias in biases]
        self.output = output

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        """float32 [N, F] -> float32 [N, outputs].

        BLAS may round the last bits of a row differently in batches of different sizes.
        """
        out = np.empty((len(observations), len(self.biases[-1])), np.float32)
        for start in range(0, len(observations), _CHUNK):
            out[start : start + _CHUNK] = self._forward(observations[start : start + _CHUNK])
        return out

    def _forward(self, x: np.ndarray) -> np.ndarray:
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = x @ weight
            x += bias
            np.maximum(x, 0.0, out=x)
        x = x @ self.weights[-1] + self.biases[-1]
        return np.tanh(x) if self.output == "tanh" else x

    def to_parts(self) -> tuple[dict, dict[str, np.ndarray]]:
        arrays = {f"weight_{i}": weight for i, weight in enumerate(self.weights)}
        arrays |= {f"bias_{i}": bias for i, bias in enumerate(self.biases)}
        return {"network": "mlp", "layers": len(self.weights), "output": self.output}, arrays

    @classmethod
    def from_parts(cls, spec: dict, arrays: dict[str, np.ndarray]) -> "MLP":
        layers = range(spec["layers"])
        return cls(
            [arrays[f"weight_{i}"] for i in layers],
            [arrays[f"bias_{i}"] for i in layers],
            spec["output"],
        )
