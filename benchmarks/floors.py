"""The floor of real streams beside the best fixed weights that scikit-learn finds at the same length.

    python benchmarks/floors.py DATA

prints a table in Markdown.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, hstack, vstack

import ftprl
from ftprl.runlog.floor import below

STREAMS: dict[str, dict[str, Any]] = {
    "criteo80k": {"file": "criteo80k.vw.gz"},
    "a9a": {"file": "a9a.libsvm.gz"},
    "bank": {"file": "bank.csv.gz", "label": "y", "sep": ";"},
    "sms": {"file": "sms.tsv.gz", "label": "1", "text": "2", "header": False, "positive": "spam"},
    "rcv1_small": {"file": "rcv1_small.vw.gz"},
}
STRENGTHS = (1e-4, 3e-4, 1e-3, 2e-3, 3e-3, 1e-2, 3e-2, 1e-1, 1.0)
FAR = 5.0  # the floors from the beaten length to this one are summed up below the table


class Row(NamedTuple):
    """One strength of the penalty: the length of scikit-learn's weights, their loss, and the floor there.

    `free` has the same for an intercept without penalty, as scikit-learn fits it by default. Such weights are not the
    best of their length, in which the intercept counts.
    """

    stream: str
    rows: int
    run: float
    beaten: float
    C: float
    length: float
    best: float
    floor: float
    free: tuple[float, float, float]

    @property
    def below(self) -> float:
        """How far the floor is below the best fixed weights, as a share of their loss."""
        return 1.0 - self.floor / self.best

    @property
    def free_below(self) -> float:
        """The same for the weights with an intercept without penalty."""
        return 1.0 - self.free[2] / self.free[1]


def measured(name: str, folder: Path) -> list[Row]:
    """Train, then fit the same rows with features divided by the model's units."""
    options = dict(STREAMS[name])
    path = folder / options.pop("file")
    run = ftprl.train(path, receipt=True, order="given", **options)
    certificate, engine = run.certificate, run.model.engine
    slots = engine.touched()
    unit = np.zeros(engine.spec.dim)
    unit[slots] = engine.parts_at(slots)["unit"]
    place = np.zeros(engine.spec.dim, np.int64)
    place[slots] = np.arange(len(slots))
    source = ftprl.data.open(path, **ftprl.data.settings_for(run.model.reading, path))
    parts, labels = [], []
    for batch in source.batches():
        scaled = batch.values.astype(float) / np.where(unit[batch.indices] > 0, unit[batch.indices], 1.0)
        parts.append(csr_matrix((scaled, place[batch.indices], batch.indptr), shape=(len(batch), len(slots))))
        labels.append(batch.y)
    X, y = vstack(parts, format="csr"), np.concatenate(labels)
    rows, run_loss = len(y), certificate.loss / certificate.weight
    beaten = certificate.beaten_length or 0.0
    measured_rows = []
    for C in STRENGTHS:
        length, loss = fitted(X, y, C)
        free_length, free_loss = fitted(X, y, C, free=True)
        free = free_length, free_loss, certificate.floor(free_length)
        measured_rows.append(Row(name, rows, run_loss, beaten, C, length, loss, certificate.floor(length), free))
    return measured_rows


def fitted(X: Any, y: Any, C: float, *, free: bool = False) -> tuple[float, float]:
    """The length of scikit-learn's weights, the intercept included, and their loss per row.

    The intercept is the weight of one more column of ones: with the same penalty on all of them, no weights of this
    length are better. With `free` it has no penalty, and they are not the best.
    """
    from sklearn.linear_model import LogisticRegression

    X = X if free else hstack([X, np.ones((X.shape[0], 1))], format="csr")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LogisticRegression(C=C, solver="lbfgs", max_iter=3000, tol=1e-7, fit_intercept=free).fit(X, y)
    intercept = float(model.intercept_[0]) if free else 0.0
    scores = X @ model.coef_[0] + intercept
    return float(np.hypot(np.linalg.norm(model.coef_[0]), intercept)), float(np.logaddexp(0.0, -y * scores).mean())


def table(rows: list[Row]) -> str:
    """As Markdown, one line per stream and penalty."""
    head = (
        "| stream | rows | loss of the run | beaten length | C | length | best fixed loss | floor | floor below it |"
        " free intercept: length | loss | floor below it |"
    )
    lines = [head, "|---" * 12 + "|"]
    for r in rows:
        first = (r.stream, f"{r.rows:,}", f"{r.run:.4f}", below(r.beaten)) if STRENGTHS[0] == r.C else ("",) * 4
        own = f"{r.C:g}", f"{r.length:.2f}", f"{r.best:.4f}", f"{r.floor:.4f}", f"{100 * r.below:.1f} %"
        cells = (*first, *own, f"{r.free[0]:.2f}", f"{r.free[1]:.4f}", f"{100 * r.free_below:.1f} %")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--streams", nargs="*", default=list(STREAMS))
    options = parser.parse_args()
    rows = [row for name in options.streams for row in measured(name, options.folder)]
    print(table(rows))
    worst = [row for row in rows if row.below < 0.0 or row.free_below < 0.0]
    for name in options.streams:
        near = [row.below for row in rows if row.stream == name and row.beaten <= row.length <= FAR]
        if near:
            low, high = 100 * min(near), 100 * max(near)
            print(f"{name}: {low:.1f} to {high:.1f} % below the best from the beaten length to {FAR:g}")
    print("never above the best fixed weights" if not worst else f"ABOVE: {worst}")


if __name__ == "__main__":
    main()
