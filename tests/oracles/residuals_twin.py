"""The bins of the residuals of a run, computed from all rows at once."""

from __future__ import annotations

import math

import numpy as np

PREDICTION_BINS, RESIDUAL_BINS, PER_OCTAVE = 128, 320, 16


def width_of(scores: list[float]) -> float:
    """Return the smallest power of two such that 128 of them cover all scores."""
    exponent = -800
    while math.floor(max(scores) / 2.0**exponent) - math.floor(min(scores) / 2.0**exponent) >= PREDICTION_BINS:
        exponent += 1
    return 2.0**exponent


def key_of(size: float) -> int:
    """Return the number of the bin of a positive residual, with 16 bins of equal width per octave."""
    fraction, exponent = math.frexp(size)
    return (exponent - 1 + 1023) * PER_OCTAVE + math.floor((2.0 * fraction - 1.0) * PER_OCTAVE)


def binned(scores: list[float], predictions: list[float], y: list[float], weights: list[float]) -> dict[str, object]:
    """Return the monitor's numbers."""
    rows = list(zip(scores, predictions, y, weights, strict=True))
    width = width_of(scores)
    numbers = [math.floor(score / width) for score in scores]
    table = np.zeros((max(numbers) - min(numbers) + 1, 4))
    below, above, near_zero = np.zeros(RESIDUAL_BINS), np.zeros(RESIDUAL_BINS), 0.0
    top = max((key_of(abs(label - p)) for _, p, label, _ in rows if label != p), default=0)
    for number, (_, p, label, w) in zip(numbers, rows, strict=True):
        r = label - p
        table[number - min(numbers)] += [w, w * p, w * r, w * r * r]
        number = RESIDUAL_BINS if r == 0.0 else top - key_of(abs(r))
        if number >= RESIDUAL_BINS:
            near_zero += w
        else:
            (below if r < 0 else above)[number] += w
    return {
        "width": width,
        "first": min(numbers),
        "top": top,
        "near_zero": near_zero,
        "table": table,
        "below": below,
        "above": above,
    }
