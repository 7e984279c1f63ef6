"""How many numbers a run keeps of its confidence sequences and of its residuals, as in src/core/learn."""

from __future__ import annotations

MONITOR_NUMBERS = 75
LARGEST, OCTAVES_OF_TAIL = 64, 3  # largest losses kept per octave of rows, and number of octaves
TAIL_NUMBERS = 1 + LARGEST * OCTAVES_OF_TAIL
# The residual state: sums over all rows, by name, and two kinds of bins.
RESIDUAL_HEAD = ("rows", "weight", "absolute", "label", "label_squares", "width", "first", "last", "top", "near_zero")
PREDICTION_BINS, BINS_PER_OCTAVE, OCTAVES = 128, 16, 20
RESIDUAL_BINS = BINS_PER_OCTAVE * OCTAVES
RESIDUAL_NUMBERS = len(RESIDUAL_HEAD) + 4 * PREDICTION_BINS + 2 * RESIDUAL_BINS
