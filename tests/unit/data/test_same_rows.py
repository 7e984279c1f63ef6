"""Equal rows in every format and kind of data give equal models, and a folder of files takes no more memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from pyarrow import csv, feather, orc

import ftprl
from ftprl._core import feature_hash

ROWS = 600
BITS = 12


def frame() -> pa.Table:
    rng = np.random.default_rng(5)
    city = rng.choice(["Rome", "Oslo", "Lima"], ROWS)
    price = rng.integers(-8, 9, ROWS) / 4
    y = np.where(price + (city == "Rome") + rng.normal(size=ROWS) > 0, 1, -1)
    return pa.table({"y": y, "city": city.tolist(), "price": price})


def write_all(rows: pa.Table, folder: Path) -> dict[str, Any]:
    """Write the rows as files and objects; return them with the options to read each."""
    pl, pd = pytest.importorskip("polars"), pytest.importorskip("pandas")
    records, label = rows.to_pylist(), {"label": "y"}
    texts = {
        "a.vw": [f"{row['y']} | city={row['city']} price:{row['price']!r}" for row in records],
        "a.jsonl": [json.dumps(row) for row in records],
        "a.tsv": ["y\tcity\tprice", *(f"{row['y']}\t{row['city']}\t{row['price']!r}" for row in records)],
    }
    cells = [(feature_hash(f"city={row['city']}") % 2**BITS, feature_hash("price") % 2**BITS) for row in records]
    texts["a.libsvm"] = [
        f"{row['y']} {slots[0]}:1 {slots[1]}:{row['price']!r}" for row, slots in zip(records, cells, strict=True)
    ]
    for name, lines in texts.items():
        (folder / name).write_text("\n".join(lines) + "\n")
    csv.write_csv(rows, folder / "a.csv")
    pq.write_table(rows, folder / "a.parquet", row_group_size=100)
    feather.write_feather(rows, str(folder / "a.feather"), chunksize=70)
    orc.write_table(rows, str(folder / "a.orc"))
    values = np.stack([np.ones(ROWS), rows["price"].to_numpy()], axis=1).ravel()
    matrix = sp.csr_matrix((values, np.ravel(cells), np.arange(0, 2 * ROWS + 1, 2)), shape=(ROWS, 2**BITS))
    without = ("a.vw", "a.libsvm")
    files = (*texts, "a.csv", "a.parquet", "a.feather", "a.orc")
    data: dict[str, Any] = {name: (folder / name, {} if name in without else label) for name in files}
    dictionary = rows.set_column(1, "city", rows["city"].dictionary_encode())
    return data | {
        "pyarrow": (rows, label),
        "dictionaries": (dictionary, label),
        "pandas": (rows.to_pandas(), label),
        "pandas categories": (rows.to_pandas().astype({"city": "category"}), label),
        "Polars": (pl.from_arrow(rows), label),
        "Polars categories": (pl.from_arrow(rows).with_columns(pl.col("city").cast(pl.Categorical)), label),
        "dicts": (records, label),
        "an iterator": (iter(rows.to_batches(max_chunksize=50)), label),
        "a CSR matrix": (matrix, {"y": rows["y"].to_numpy()}),
        "a series": (
            pd.DataFrame({"city": rows["city"], "price": rows["price"]}),
            {"y": pd.Series(rows["y"].to_numpy())},
        ),
    }


@pytest.mark.parametrize("more", [{}, {"delay": 7}])
def test_the_same_rows_give_the_same_model(tmp_path: Path, more: dict[str, Any]) -> None:
    digests = {}
    for name, (data, options) in write_all(frame(), tmp_path).items():
        run = ftprl.train(data, **options, **more, bits=BITS)
        assert run.rows == ROWS, name
        digests[name] = run.model.state_digest()
    assert len(digests) >= 18
    assert len(set(digests.values())) == 1, digests


PEAK = """
import resource, sys
import ftprl
ftprl.train(sys.argv[1], label="y", bits=10, scale=0.1)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def peak_of(folder: Path) -> int:
    """Return the peak of resident memory of a run over a folder, in MB."""
    command = [sys.executable, "-c", PEAK, str(folder)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.parametrize("write", ["parquet", "arrow"])
def test_memory_does_not_grow_with_a_folder_of_files(tmp_path: Path, write: str) -> None:
    rng = np.random.default_rng(1)
    peaks = []
    for times in (1, 8):
        folder = tmp_path / str(times)
        folder.mkdir()
        part = pa.table({"y": rng.integers(0, 2, 10_000), **{f"x{i}": rng.normal(size=10_000) for i in range(8)}})
        table = pa.concat_tables([part] * times)
        for number in range(20):
            if write == "parquet":
                pq.write_table(table, folder / f"{number}.parquet", row_group_size=10_000, compression="none")
            else:
                feather.write_feather(
                    table, str(folder / f"{number}.feather"), chunksize=10_000, compression="uncompressed"
                )
        size = sum(file.stat().st_size for file in folder.iterdir()) // 2**20
        peaks.append(peak_of(folder))
    assert size > 90  # MB: a reader that kept the data would be seen
    assert peaks[1] < peaks[0] + size / 3
