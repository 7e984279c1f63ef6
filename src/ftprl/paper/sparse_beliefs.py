"""Confidence-weighted learning and AROW on sparse rows, with many constants side by side, O(nnz) per row."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ftprl.paper.sparse_box import Rows

Vector = NDArray[np.float64]
# (margins, variances of the score, constants) -> (step of the mean, decrease of an entry's variance per v²), the
# latter as a share of var² (AROW) or as an addition to 1/var (confidence-weighted).
Rule = Callable[[Vector, Vector, Vector], tuple[Vector, Vector]]


def mistakes(rows: Rows, constants: Vector, rule: Rule, by_precision: bool) -> Vector:
    """Return, for each constant, the number of rows that were predicted wrongly."""
    shape = (rows.dim, len(constants))
    mean, variance = np.zeros(shape), np.ones(shape)
    wrong = np.zeros(len(constants))
    for at, v, y in rows:
        m, s = mean[at], variance[at]
        margin = y * (v @ m)
        wrong += margin <= 0
        spread = s * v[:, None]
        alpha, gain = rule(margin, v @ spread, constants)
        mean[at] = m + alpha * y * spread
        variance[at] = s / (1.0 + gain * spread * v[:, None]) if by_precision else s - gain * spread * spread
    return wrong


def arow(margin: Vector, V: Vector, r: Vector) -> tuple[Vector, Vector]:
    """Return the update of AROW: rows with a margin below 1 have beta = 1/(V + r)."""
    beta = np.where(margin < 1.0, 1.0 / (V + r), 0.0)
    return (1.0 - np.minimum(margin, 1.0)) * beta, beta


def confidence(margin: Vector, V: Vector, phi: Vector) -> tuple[Vector, Vector]:
    """Return the update of the variance rule, the root of M + alpha V = phi V / (1 + 2 alpha phi V)."""
    b = 1.0 + 2.0 * phi * margin
    missing = phi * V - margin
    root = np.sqrt(np.maximum(b * b + 8.0 * phi * missing, 0.0))
    # (root - b) / (4 phi V), rewritten without cancellation for b > 0
    above, below = np.where(b > 0, 2.0 * missing, root - b), np.where(b > 0, V * (root + b), 4.0 * phi * V)
    alpha = np.maximum(np.divide(above, below, out=np.zeros_like(V), where=V >= 1e-100), 0.0)
    return alpha, 2.0 * alpha * phi


def least_errors(rows: Rows) -> dict[str, float]:
    """Return both classifiers' shares of errors at the best of a wide grid."""
    doubts = 2.0 ** np.arange(-5.0, 9.0)
    phis = 2.0 ** np.arange(-5.0, 2.0)
    return {
        "AROW": float(mistakes(rows, doubts, arow, False).min()) / len(rows),
        "confidence-weighted": float(mistakes(rows, phis, confidence, True).min()) / len(rows),
    }
