"""What a peer does, in a process of its own: read the rows, learn them once, save the model.

python -m benchmarks.peers.jobs datatable|scikit-learn|river|parquet|polars DATA MODEL BITS
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable
from typing import Any


def datatable(data: str, model: str, bits: int) -> None:
    import datatable as dt
    from datatable.models import Ftrl

    frame = dt.fread(data)
    learner = Ftrl(nbins=2**bits, nepochs=1)
    learner.fit(frame[:, 1:], frame[:, 0])
    learner.model.to_jay(model)


def scikit_learn(data: str, model: str, bits: int) -> None:
    import numpy as np
    from sklearn.datasets import load_svmlight_file
    from sklearn.linear_model import SGDClassifier

    X, y = load_svmlight_file(data, n_features=2**bits)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)  # some versions refuse others
    learner = SGDClassifier(loss="log_loss", max_iter=1, tol=None)
    learner.fit(X, y)
    np.savez(model, coef=learner.coef_, intercept=learner.intercept_)


def river(data: str, model: str, bits: int) -> None:
    """Only learns, without a prediction of its own before: less than what the others do. River has no table."""
    from river import linear_model, optim, stream

    learner = linear_model.LogisticRegression(optim.FTRLProximal())
    for row, click in stream.iter_csv(data, target="click", converters={"click": int}):
        learner.learn_one({f"{name}={value}": 1 for name, value in row.items()}, click)
    with open(model, "w") as out:
        out.writelines(f"{name} {weight}\n" for name, weight in learner.weights.items())


def parquet(data: str, model: str, bits: int) -> None:
    """ftprl in Python, from the path of a Parquet file; prints the seconds of the training and the loss."""
    _train(data, model, bits)


def polars(data: str, model: str, bits: int) -> None:
    """The same from a frame in memory: reading the file into it does not count."""
    import polars as pl

    _train(pl.read_parquet(data), model, bits)


def _train(data: Any, model: str, bits: int) -> None:
    import ftprl

    began = time.perf_counter()
    run = ftprl.train(data, label="click", bits=bits, scale=0.1, output=model)
    print(time.perf_counter() - began, run.progressive_loss)


JOBS: dict[str, Callable[[str, str, int], None]] = {
    "datatable": datatable,
    "scikit-learn": scikit_learn,
    "river": river,
    "parquet": parquet,
    "polars": polars,
}


def first_rows(data: str, prefix: str, rows: int) -> None:
    """The header and the first rows of a CSV file."""
    with open(data, "rb") as source, open(prefix, "wb") as out:
        out.writelines(itertools.islice(source, rows + 1))


if __name__ == "__main__":
    name, data, model, bits = sys.argv[1:]
    JOBS[name](data, model, int(bits))
