"""The losses of one row: values, slopes, slopes after a step, and what a Newton step takes; docs/labels.md."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oracles.labels_twin import Labels

LEAST_CURVE = 2.0**-13
KINKED = ("absolute", "quantile", "huber")
PINBALL = ("absolute", "quantile")
MARGIN = ("hinge", "squared_hinge")
LOG_LINK = ("poisson", "gamma")
_HEX = """
    0x1.5555555555555p-1 0x1.9999999999944p-2 0x1.2492492499d46p-2 0x1.c71c71bedea97p-3
    0x1.745d19937b1fcp-3 0x1.3b13515f6f9efp-3 0x1.111abdc8abe16p-3 0x1.e0a2d581ab68fp-4
    0x1.bc37f0140c19ep-4 0x1.32e0d25c9c761p-4 0x1.401d3e65cdc48p-3
"""
_ATANH = [float.fromhex(a) for a in _HEX.split()]


def cut(a: float, low: float, high: float) -> float:
    return min(max(a, low), high)


def softplus(v: float) -> float:
    """Return the log loss of the score -v; log(1 + e) is 2 atanh(s) with s = e / (2 + e)."""
    e = math.exp(-abs(v))
    s = e / (2.0 + e)
    w, q = s * s, _ATANH[-1]
    for a in _ATANH[-2::-1]:
        q = q * w + a
    return max(v, 0.0) + s * (2.0 + w * q)


def chance(v: float) -> float:
    """Return the probability of the label at a score that speaks for it by v."""
    e = math.exp(-abs(v))
    return (e if v < 0.0 else 1.0) / (1.0 + e)


def sides(loss: str, tau: float) -> tuple[float, float]:
    """Return the slopes of a pinball loss below and above the label."""
    return (1.0, 1.0) if loss == "absolute" else (tau, 1.0 - tau)


def value(loss: str, s: float, y: float, tau: float) -> float:
    """Return the loss of a score."""
    d = s - y
    match loss:
        case "logistic":
            return softplus(-y * s)
        case "squared":
            return 0.5 * (d * d)
        case "absolute":
            return abs(d)
        case "quantile":
            return (tau if -d > 0 else tau - 1.0) * -d
        case "huber":
            return 0.5 * (d * d) if abs(d) <= 1.0 else abs(d) - 0.5
        case "poisson":
            return math.exp(s) - y * s
        case "gamma":
            return y * math.exp(-s) + s
        case "hinge":
            return max(1.0 - y * s, 0.0)
        case _:
            return 0.5 * max(1.0 - y * s, 0.0) ** 2


def least(loss: str, y: float) -> float:
    """Return the least loss that any score of a label has."""
    if loss == "poisson":
        return y - y * math.log(y) if y > 0.0 else 0.0
    return 1.0 + math.log(y) if loss == "gamma" else 0.0


def slope(loss: str, s: float, y: float, tau: float) -> float:
    """Return the slope of a loss at a score."""
    match loss:
        case "logistic":
            return -y * chance(-y * s)
        case "squared":
            return s - y
        case "huber":
            return cut(s - y, -1.0, 1.0)
        case "absolute" | "quantile":
            up, down = sides(loss, tau)
            return -up if s < y else down if s > y else 0.0
        case "hinge":
            return -y if y * s < 1.0 else 0.0
        case _:
            raise ValueError(loss)


def implicit(labels: Labels, s: float, y: float, A: float) -> float:
    """Return the slope of a row of weight 1 after a step that moves the score by A times it."""
    U, loss = labels.U, labels.loss
    match loss:
        case "logistic":
            return slope(loss, s, y, 0.5)  # explicit
        case "squared":
            return (s - y) / (1.0 + A)
        case "squared_hinge":
            return -y * max(1.0 - y * s, 0.0) / (1.0 + A)
        case "absolute" | "quantile":
            up, down = sides(loss, labels.tau)
            return cut((s - y) / A, -up, down) if A > 0 else slope(loss, s, y, labels.tau)
        case "huber":
            return cut((s - y) / (1.0 + A), -1.0, 1.0)
        case "hinge":
            gap = max(1.0 - y * s, 0.0)
            return -y * min(2.0 * gap / A, 1.0) if A > 0 else -y * (gap > 0)
        case "poisson":
            return ((math.exp(s) - y) / U) / (1.0 + A * max(math.exp(s), y) / U)
        case _:
            t = y * math.exp(-s)
            return (1.0 - t) / (1.0 + A * max(1.0, t))


def newton_slope(labels: Labels, f: float, y: float, mean: float) -> tuple[float, float]:
    """Return slope and curvature of the loss at f, in units of the labels; `mean` is the mean loss of steps so far."""
    U, loss = labels.U, labels.loss
    match loss:
        case "logistic" | "hinge":
            p = chance(f)
            return slope("logistic", f, y, 0.5), max(p * (1.0 - p), LEAST_CURVE)
        case "squared":
            return (f - y) / U, 1.0
        case "absolute" | "quantile":
            shape = 1.0 if loss == "absolute" else labels.tau * (1.0 - labels.tau)
            return slope(loss, f, y, labels.tau), 0.125 * shape * U / max(mean, 2.0**-10 * U)
        case "huber":
            b = (U / labels.psi) * (1.0 if mean <= 1.0 else 0.125 / mean)
            return slope("huber", f, y, labels.tau) / labels.psi, b
        case "poisson":
            return (math.exp(f) - y) / U, max(math.exp(f), y) / U
        case "gamma":
            t = y * math.exp(-f)
            return 1.0 - t, max(1.0, t)
        case _:
            gap = max(1.0 - y * f, 0.0)
            return -y * gap, 1.0 if gap > 0 else 0.0
