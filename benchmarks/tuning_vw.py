"""Vowpal Wabbit's side of benchmarks/tuning.py: its settings, and its predictions of every row before it is learned."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from vowpalwabbit import __version__ as vw_version
from vowpalwabbit import pyvw

from ftprl.data import Batch

Vector = NDArray[np.float64]
BITS = 22
RATES: tuple[float, ...] = (0.02, 0.05, 0.1, 0.2, 1, 2)
ALPHAS: tuple[float, ...] = (0.005, 0.02, 0.05, 0.1, 0.2, 0.5)
# What Vowpal Wabbit learns for a loss. It has no Huber loss: with a delta far below the unit of the label, that of the
# median is nearest.
OPTIONS = {
    "logistic": "--loss_function logistic",
    "hinge": "--loss_function hinge",
    "squared": "--loss_function squared",
    "absolute": "--loss_function quantile --quantile_tau 0.5",
    "huber": "--loss_function quantile --quantile_tau 0.5",
    "quantile": "--loss_function quantile --quantile_tau 0.9",
    "poisson": "--loss_function poisson --link poisson",
}
Losses = Callable[[Vector], Vector]  # from predictions to the loss of each row


def settings(rates: Iterable[float], alphas: Iterable[float]) -> tuple[str, ...]:
    """A grid: the default, learning rates, coin betting, and FTRL with two values of beta for each alpha."""
    ftrl = (f"--ftrl --ftrl_alpha {alpha} --ftrl_beta {beta}" for alpha in alphas for beta in (0.1, 1))
    return ("", *(f"-l {rate}" for rate in rates), "--coin", *ftrl)


CLASSES = settings(RATES, ALPHAS)  # 20 settings
UNITS = settings((*RATES, 5, 10, 50), (*ALPHAS, 2, 10, 100))  # 29, for labels that may be in any unit


def lines(batches: Iterable[Batch]) -> Iterator[str]:
    """VW text with the cell of a feature as its name: whole numbers are taken as they are, not hashed."""
    for batch in batches:
        bounds, cells, values = batch.indptr.tolist(), batch.indices.tolist(), batch.values.tolist()
        for r, y in enumerate(batch.y.tolist()):
            row = range(bounds[r], bounds[r + 1])
            features = (str(cells[p]) if values[p] == 1 else f"{cells[p]}:{values[p]:.9g}" for p in row)
            yield f"{y:.12g} | {' '.join(features)}\n"


def mean_loss(path: Path, loss: str, losses: Losses, options: str) -> float:
    """The mean loss of one pass; log loss as Vowpal Wabbit reports it, which may be below that of its predictions."""
    if loss != "logistic":
        return float(np.mean(losses(predictions(path, options))))
    vw = pyvw.Workspace(f"-d {path} {options} -b {BITS} --quiet")
    mean = float(vw.get_sum_loss() / vw.get_weighted_examples())
    vw.finish()
    return mean


def predictions(path: Path, options: str) -> Vector:
    """One pass over a file: the prediction of each row before it is learned."""
    out = path.with_suffix(".predictions")
    pyvw.Workspace(f"-d {path} {options} -b {BITS} --quiet -p {out}").finish()
    return np.loadtxt(out, ndmin=1)


def best(batches: Iterable[Batch], loss: str, losses: Losses, cache: Path) -> dict[str, float]:
    """The mean loss of every setting, from the cache when the same rows were there before."""
    grid = CLASSES if loss in ("logistic", "hinge") else UNITS
    with tempfile.TemporaryDirectory() as folder:
        path, digest = (
            Path(folder, "rows.vw"),
            hashlib.sha256(f"{vw_version} {loss} {grid}{' reported' * (loss == 'logistic')}".encode()),
        )
        with path.open("w") as out:
            for line in lines(batches):
                digest.update(line.encode())
                out.write(line)
        known = cache / f"vw-{digest.hexdigest()[:16]}.json"
        if not known.exists():
            means = {s: mean_loss(path, loss, losses, f"{OPTIONS[loss]} {s}") for s in grid}
            known.write_text(json.dumps(means, indent=1))
        stored: dict[str, float] = json.loads(known.read_text())
    return {setting: mean for setting, mean in stored.items() if np.isfinite(mean)}
