"""Predictions of any system: a text file with one number per line, read block by block."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal, Protocol, final

import numpy as np
from numpy.typing import NDArray

from ftprl.data.files import Stream, shown
from ftprl.errors import BadFormat, InvalidInput
from ftprl.losses import ScalarLoss

Vector = NDArray[np.float64]
Meaning = Literal["probability", "score", "mean"]
MEANINGS: tuple[Meaning, ...] = ("probability", "score", "mean")
_BLOCK = 1 << 20
_NEAREST = 1e-15  # a probability counts as no nearer to 0 and 1 than this


class Predictor(Protocol):
    """Scores of all rows in their order; NaN for a row without a prediction."""

    @property
    def name(self) -> str:
        """Return the name of the system in a table."""

    def scores(self) -> Iterator[Vector]:
        """Yield the scores block by block."""


def usual_meaning(loss: ScalarLoss) -> Meaning:
    """Return the meaning of the numbers that `ftprl predict` writes for a loss.

    It is a probability for log loss, a score for the hinge losses, otherwise a mean.

    >>> from ftprl.losses import SCALAR_LOSSES
    >>> usual_meaning(SCALAR_LOSSES["logistic"]), usual_meaning(SCALAR_LOSSES["squared"])
    ('probability', 'mean')
    """
    return "probability" if loss.is_probabilistic else "score" if loss.binary else "mean"


def check_meaning(meaning: str | None, loss: ScalarLoss) -> Meaning:
    """Return the meaning of predictions; raise InvalidInput if the loss does not allow it."""
    allowed = [m for m in MEANINGS if m == "score" or m == usual_meaning(loss)]
    chosen = usual_meaning(loss) if meaning is None else meaning
    for known in MEANINGS:
        if chosen == known and known in allowed:
            return known
    raise InvalidInput(
        f"predictions_are= needs {' or '.join(allowed)} with loss={loss.name}, got {chosen!r}; pass one of them.",
        option=("predictions_are", "loss"),
    )


@final
class PredictionFile:
    """A file with one prediction per line, of `ftprl predict`, scikit-learn (`numpy.savetxt`) or Vowpal Wabbit
    (`-p`).

    Text after a space is a tag and is ignored. An empty line means that its row has no prediction.
    """

    def __init__(self, path: str, loss: ScalarLoss, meaning: Meaning) -> None:
        self.path, self._loss, self._meaning = path, loss, meaning

    @property
    def name(self) -> str:
        """Return the path."""
        return shown(self.path)

    def scores(self) -> Iterator[Vector]:
        """Yield the scores of the rows; NaN for an empty line."""
        line, rest = 1, b""
        stream = Stream(self.path)
        try:
            while True:
                block = stream.read(_BLOCK, line)
                text, rest = _whole_lines(rest + block, is_last=not block)
                if text:
                    values = self._values(text, line)
                    yield self._as_scores(values, line)
                    line += len(values)
                if not block:
                    return
        finally:
            stream.close()

    def _values(self, text: bytes, line: int) -> Vector:
        """Return the numbers of whole lines."""
        cells = text.split(b"\n")
        try:
            values = np.array(cells, dtype="S").astype(np.float64) if all(cells) else None
        except ValueError:
            values = None
        return self._one_by_one(cells, line) if values is None or np.isnan(values).any() else values

    def _one_by_one(self, cells: list[bytes], line: int) -> Vector:
        """Return the numbers of lines that have tags or are empty; raise BadFormat at the first that is no number."""
        values = np.full(len(cells), np.nan)
        for i, cell in enumerate(cells):
            for word in cell.split(None, 1)[:1]:
                values[i] = _number(word)
                if values[i] != values[i]:
                    raise BadFormat(
                        f"{self.name}:{line + i}: expected a number, got {shown(cell)[:40]!r};"
                        " write one prediction per line, an empty line for none."
                    )
        return values

    def _as_scores(self, values: Vector, line: int) -> Vector:
        """Return predictions as scores of the loss."""
        if self._meaning == "score" or (self._meaning == "mean" and self._loss.link == "identity"):
            fits, scores, what = np.isfinite(values), values, "a finite number"
        elif self._meaning == "probability":
            fits, what = (values >= 0.0) & (values <= 1.0), "a probability from 0 to 1"
            p = np.clip(np.where(fits, values, 0.5), _NEAREST, 1.0 - _NEAREST)
            scores = np.log(p) - np.log1p(-p)
        else:
            fits, what = (values > 0.0) & np.isfinite(values), "a mean above 0"
            scores = np.log(np.where(fits, values, 1.0))
        missing = values != values
        if not (fits | missing).all():
            row = int(np.argmin(fits | missing))
            raise BadFormat(
                f"{self.name}:{line + row}: expected {what}, got {values[row]:g};"
                " fix it, or pass the kind of the numbers with predictions_are=",
                option="predictions_are",
            )
        return np.where(missing, math.nan, scores)


def _number(word: bytes) -> float:
    """Return a number, or NaN for other text."""
    try:
        return float(word)
    except ValueError:
        return math.nan


def _whole_lines(text: bytes, *, is_last: bool) -> tuple[bytes, bytes]:
    r"""Return the whole lines of a text without the last line feed, and the remaining bytes.

    >>> _whole_lines(b"0.1\n0.2\n0.", is_last=False)
    (b'0.1\n0.2', b'0.')
    """
    if is_last:
        return text.removesuffix(b"\n"), b""
    end = text.rfind(b"\n")
    return (text[:end], text[end + 1 :]) if end >= 0 else (b"", text)
