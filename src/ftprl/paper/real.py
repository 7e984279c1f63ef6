"""Real data, where they are available, and synthetic streams that replace them."""

from __future__ import annotations

import gzip
import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ftprl import data
from ftprl.data import Batch, clicks
from ftprl.paper.sparse_box import Rows

Vector = NDArray[np.float64]

# Third-party files that are no part of the project; FTPRL_DATA may name another folder.
FOLDER = Path("../shared/data")
STREAMS: dict[str, tuple[str, dict[str, Any]]] = {
    "criteo": ("criteo80k.vw.gz", {}),
    "a9a": ("a9a.libsvm.gz", {}),
    "rcv1": ("rcv1_small.vw.gz", {}),
    "sms": ("sms.tsv.gz", {"header": False, "label": "1", "positive": "spam", "text": ["2"]}),
}
SYNTHETIC = "synthetic data"  # note of the table if there are no real data
MARKETS = {"NYSE": "nyse-o.csv.gz", "DJIA": "djia.csv.gz"}


def folder() -> Path:
    """Return the folder of real data: FTPRL_DATA, or the default."""
    return Path(os.environ.get("FTPRL_DATA") or FOLDER)


def available(name: str) -> bool:
    """Return True if a stream or a market is available."""
    return (folder() / (STREAMS[name][0] if name in STREAMS else MARKETS[name])).is_file()


def missing(names: Iterable[str], present: Iterable[str]) -> list[str]:
    """Return a sentence about streams that were not run because their data are missing, or nothing."""
    there = set(present)
    absent = [name for name in names if name not in there]
    return [f"Not run, since their files are not in {folder()} (FTPRL_DATA): {', '.join(absent)}."] if absent else []


def read_stream(name: str, limit: int) -> Rows:
    """Return the first rows of a real stream, with an intercept."""
    file, options = STREAMS[name]
    source = data.open(folder() / file, intercept=True, dtype="float64", **options)
    return collect(source.batches(), limit)


def synthetic_clicks(limit: int, seed: int = 7) -> Rows:
    """Return the first rows of a synthetic click log, with an intercept; a count k above 1 is written as 1 + ln k."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "clicks.vw"
        clicks.generate(limit, seed, path)
        rows = collect(data.open(path, intercept=True, dtype="float64").batches(), limit)
    # Counts run to 100,000: no rule of the paper makes progress on numbers of such different size.
    return replace(rows, values=1.0 + np.log(np.maximum(rows.values, 1.0)))


def collect(batches: Iterable[Batch], limit: int) -> Rows:
    """Return rows up to a limit, with their features numbered from 0 on."""
    kept = list(_until(batches, limit))
    lengths = np.concatenate([np.diff(b.indptr) for b in kept])
    cells, indices = np.unique(np.concatenate([b.indices for b in kept]), return_inverse=True)
    return Rows(
        np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
        indices.astype(np.int64),
        np.concatenate([b.values for b in kept]).astype(np.float64),
        np.sign(np.concatenate([b.y for b in kept])),
        len(cells),
    )


def _until(batches: Iterable[Batch], limit: int) -> Iterator[Batch]:
    """Yield batches until they have `limit` rows."""
    left = limit
    for batch in batches:
        yield batch[:left]
        left -= len(batch)
        if left <= 0:
            return


def read_market(name: str, days: int) -> Vector:
    """Return the price relatives of the first days of a market, one row per day."""
    with gzip.open(folder() / MARKETS[name], "rt", encoding="ascii") as lines:
        return np.array([[float(v) for v in line.split(",")] for line in islice(lines, days)])


def synthetic_market(days: int, assets: int = 12, seed: int = 7) -> Vector:
    """Return price relatives with one common movement, and two assets that swing against each other."""
    rng = np.random.default_rng(seed)
    common = rng.normal(2e-4, 0.008, size=(days, 1))
    own = rng.normal(0.0, rng.uniform(0.005, 0.02, size=assets), size=(days, assets))
    swing = 0.04 * np.where(np.arange(days) % 2, 1.0, -1.0)
    own[:, 0] += swing
    own[:, 1] -= swing
    return np.asarray(np.exp(common + own))
