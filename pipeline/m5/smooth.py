"""Smoothing: a leaf's model is drawn towards the models above it."""

import numpy as np

from pipeline.m5.regress import Regressions, Structure


def smoothed(
    tests: Structure, fitted: Regressions, smoothing: float
) -> tuple[list[int], list[float], list[np.ndarray]]:
    """The leaves in order, and their intercepts and slopes [F] with all smoothing folded in.

    On the way from a leaf to the root a prediction becomes (n p + k q) / (n + k), with n the rows
    of the node just left and q the prediction of the node entered. All models are linear, so this
    is done once to the coefficients.

    Source: Quinlan, Learning with continuous classes (1992), who takes k = 15.
    """
    leaves, intercepts, slopes = [], [], []
    stack: list[tuple[int, list[int]]] = [(0, [])]
    while stack:
        i, above = stack.pop()
        if not fitted.is_leaf[i]:
            stack += [(int(tests.right[i]), [*above, i]), (i + 1, [*above, i])]
            continue
        intercept, slope = float(fitted.intercept[i]), fitted.slopes[i].copy()
        left = i
        for node in reversed(above) if smoothing > 0.0 else ():
            n = fitted.weight[left]
            intercept = (n * intercept + smoothing * fitted.intercept[node]) / (n + smoothing)
            slope = (n * slope + smoothing * fitted.slopes[node]) / (n + smoothing)
            left = node
        leaves.append(i)
        intercepts.append(intercept)
        slopes.append(slope)
    return leaves, intercepts, slopes
