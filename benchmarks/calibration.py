"""What calibration and uncertainty bring on the real streams of two classes (docs/calibration.md).

The first table has log loss and expected calibration error (20 bins of equal width) of progressive predictions, and of
the last fifth of the rows by a model of the first four fifths, without and with calibration. The second has the loss of
that last fifth by decile of uncertainty. The third repeats the experiment of McMahan et al. 2013: labels are drawn by a
model of all rows, a second model learns the first four fifths of them, and its error on the last fifth is how far its
log-odds are from those of the first.

    python benchmarks/calibration.py FOLDER [--only bank,sms] [--scale 0.5]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ftprl.data import Batch
from ftprl.linear import Model
from ftprl.training.passes import rows_of
from ftprl.training.setup import new_model

Vector = NDArray[np.float64]
KINDS = ("none", "platt", "isotonic")
STREAMS: dict[str, tuple[str, dict[str, Any]]] = {
    "criteo": ("criteo80k.vw.gz", {}),
    "a9a": ("a9a.libsvm.gz", {}),
    "rcv1": ("rcv1_small.vw.gz", {}),
    "elec": ("elec.csv.gz", {"label": "class"}),
    "bank": ("bank.csv.gz", {"label": "y"}),
    "sms": ("sms.tsv.gz", {"label": "1", "positive": "spam", "text": ["2"], "header": False}),
}


def log_loss(scores: Vector, y: Vector) -> float:
    """The mean log loss of log-odds."""
    return float(np.logaddexp(0.0, -y * scores).mean())


def calibration_error(scores: Vector, y: Vector, bins: int = 20) -> float:
    """The mean over the rows of |rate of positives - mean probability| of their bin."""
    p = 1.0 / (1.0 + np.exp(-scores))
    at = np.minimum((p * bins).astype(int), bins - 1)
    counts, rates = np.bincount(at, minlength=bins), np.bincount(at, y > 0, bins)
    return float(np.abs(rates - np.bincount(at, p, bins)).sum() / counts.sum())


def opened(path: str, options: dict[str, Any]) -> tuple[Model, list[Batch]]:
    """An empty model, and the rows in batches."""
    model, source = new_model(path, options, False)
    return model, list(source.batches())


def split(batches: list[Batch]) -> tuple[list[Batch], list[Batch]]:
    """The first four fifths of the rows, and the last."""
    rows = sum(map(len, batches))
    end, first, last, at = rows - rows // 5, list[Batch](), list[Batch](), 0
    for batch in batches:
        cut = min(max(end - at, 0), len(batch))
        first += [batch[:cut]] if cut else []
        last += [rows_of(batch, np.arange(cut, len(batch)))] if cut < len(batch) else []
        at += len(batch)
    return first, last


def progressive(model: Model, batches: list[Batch]) -> tuple[Vector, Vector]:
    """Scores before each row was learned, and labels."""
    scores = []
    for batch in batches:
        own = np.empty(len(batch))
        model.engine.learn(batch, scores=own)
        scores.append(own)
    return np.concatenate(scores), np.concatenate([batch.y for batch in batches])


def print_calibration(name: str, path: str, options: dict[str, Any]) -> None:
    """One line: progressive and last fifth, loss and calibration error for each kind."""
    numbers = []
    for kind in KINDS:
        model, batches = opened(path, {**options, "calibrate": kind})
        scores, y = progressive(model, batches)
        model, batches = opened(path, {**options, "calibrate": kind})
        first, last = split(batches)
        progressive(model, first)
        held = np.concatenate([model.engine.score(batch) for batch in last])
        own = np.concatenate([batch.y for batch in last])
        numbers.append([log_loss(scores, y), calibration_error(scores, y), log_loss(held, own)])
        numbers[-1].append(calibration_error(held, own))
    columns = [" ".join(f"{row[k]:.4f}" for row in numbers) for k in range(4)]
    print(f"{name:8} {' | '.join(columns)}", flush=True)


def deciles(values: Vector, by: Vector) -> list[float]:
    """The mean of values in each tenth of the rows in the order of `by`."""
    return [float(part.mean()) for part in np.array_split(values[np.argsort(by, kind="stable")], 10)]


def correlation(a: Vector, b: Vector) -> float:
    """Spearman's, of ranks in the order of the rows."""
    ranks = [np.argsort(np.argsort(x, kind="stable"), kind="stable").astype(float) for x in (a, b)]
    return float(np.corrcoef(*ranks)[0, 1])


def print_uncertainty(name: str, path: str, options: dict[str, Any]) -> None:
    """The loss of the last fifth by decile of uncertainty."""
    model, batches = opened(path, options)
    first, last = split(batches)
    progressive(model, first)
    scores = np.concatenate([model.engine.score(batch) for batch in last])
    u = np.concatenate([model.uncertainty(batch) for batch in last])
    y = np.concatenate([batch.y for batch in last])
    print(f"{name:8} {' '.join(f'{x:.3f}' for x in deciles(np.logaddexp(0.0, -y * scores), u))}", flush=True)


def print_known_truth(name: str, path: str, options: dict[str, Any]) -> None:
    """The error of the log-odds where the truth is known, by decile of uncertainty."""
    teacher, batches = opened(path, options)
    progressive(teacher, batches)
    rng, student = np.random.default_rng(0), opened(path, options)[0]
    drawn = []
    for batch in batches:
        p = teacher.predict(batch)
        drawn.append(batch.replaced(y=np.where(rng.random(len(p)) < p, 1.0, -1.0)))
    first, last = split(drawn)
    progressive(student, first)
    errors, u = np.empty(0), np.empty(0)
    for batch in last:
        errors = np.append(errors, np.abs(teacher.engine.score(batch) - student.engine.score(batch)))
        u = np.append(u, student.uncertainty(batch))
    line = " ".join(f"{x:.2f}" for x in deciles(errors, u))
    print(f"{name:8} {line}  rank correlation {correlation(errors, u):.2f}", flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="streams, with commas between")
    parser.add_argument("--scale", type=float, help="one learning-rate scale instead of eight")
    args = parser.parse_args()
    own = {} if args.scale is None else {"scale": args.scale}
    for what, show in (
        ("log loss, error; last fifth: log loss, error (none platt isotonic)", print_calibration),
        ("log loss of the last fifth by decile of uncertainty", print_uncertainty),
        ("error of log-odds by decile of uncertainty", print_known_truth),
    ):
        print(what)
        for name in [n for n in args.only.split(",") if n] or STREAMS:
            file, options = STREAMS[name]
            show(name, str(args.folder / file), {**options, **own})


if __name__ == "__main__":
    main()
