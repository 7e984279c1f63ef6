"""Passes of the estimators against the batch optimum: loss on a fifth of the rows, which took no part in the training.

One, three and ten passes and `passes="auto"` of FTPRLClassifier and FTPRLRegressor, beside LogisticRegression and Ridge
of scikit-learn with the best of five strengths of regularisation, chosen by the same test rows and so in their favour.
Rows are shuffled; log loss, or the root mean squared error in the unit of the labels. All see the same sparse
matrix: rows are read once, and the cells that occur are its columns. scikit-learn's columns are scaled to at most 1.

    python benchmarks/estimator_passes.py --data DIR [--only a9a,bank]
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from ftprl import FTPRLClassifier, FTPRLRegressor, data

SETS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "sms": ("sms.tsv.gz", "logistic", {"header": False, "label": "1", "positive": "spam", "text": ["2"]}),
    "rcv1": ("rcv1_small.vw.gz", "logistic", {}),
    "a9a": ("a9a.libsvm.gz", "logistic", {}),
    "bank": ("bank.csv.gz", "logistic", {"label": "y", "sep": ";"}),
    "elec": ("elec.csv.gz", "logistic", {"label": "class"}),
    "criteo": ("criteo80k.vw.gz", "logistic", {}),
    "bikes": ("bikes.csv.gz", "squared", {"label": "bikers", "categorical": ["season", "hr", "weekday"]}),
    "diamonds": ("diamonds.csv.gz", "squared", {"label": "price"}),
    "visits": ("visits.csv.gz", "squared", {"label": "mdvis"}),
}
PASSES: tuple[int | str, ...] = (1, 3, 10, "auto")
STRENGTHS = (0.01, 0.1, 1.0, 10.0, 100.0)


def matrix(path: Path, loss: str, options: dict[str, Any]) -> tuple[Any, Any]:
    """The rows of a file, shuffled."""
    batches = list(data.open(path, loss=loss, **options).batches())
    indices = np.concatenate([batch.indices for batch in batches])
    values, y = (np.concatenate([getattr(batch, name) for batch in batches]) for name in ("values", "y"))
    indptr = np.concatenate(([0], np.cumsum(np.concatenate([np.diff(batch.indptr) for batch in batches]))))
    cells, columns = np.unique(indices, return_inverse=True)
    order = np.random.default_rng(0).permutation(len(y))
    return csr_matrix((values, columns, indptr), shape=(len(y), len(cells)))[order], y[order]


def loss_of(model: Any, X: Any, y: Any) -> float:
    """Log loss, or the root mean squared error."""
    if hasattr(model, "predict_proba"):
        return float(log_loss(y, model.predict_proba(X)))
    return float(np.sqrt(np.mean((model.predict(X) - y) ** 2)))


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", default=",".join(SETS))
    arguments = parser.parse_args()
    print(
        "| set | rows | one pass | 3 | 10 | auto | auto's passes | batch optimum |\n|---|---|---|---|---|---|---|---|"
    )
    warnings.simplefilter("ignore")  # of solvers that stop early
    for name in arguments.only.split(","):
        file, loss, options = SETS[name]
        X, y = matrix(arguments.data / file, loss, options)
        train, test = slice(0, len(y) * 4 // 5), slice(len(y) * 4 // 5, None)
        own = FTPRLClassifier if loss == "logistic" else FTPRLRegressor
        fitted = [own(passes=passes).fit(X[train], y[train]) for passes in PASSES]
        batch = [
            make_pipeline(
                MaxAbsScaler(), LogisticRegression(C=s, max_iter=300) if loss == "logistic" else Ridge(alpha=1.0 / s)
            ).fit(X[train], y[train])
            for s in STRENGTHS
        ]
        losses = [loss_of(model, X[test], y[test]) for model in fitted]
        cells = [name, f"{len(y):,}", *(f"{value:.4g}" for value in losses), str(fitted[-1].n_iter_)]
        best = min(loss_of(model, X[test], y[test]) for model in batch)
        print(f"| {' | '.join(cells)} | {best:.4g} |", flush=True)


if __name__ == "__main__":
    main()
