"""The readers: MB/s and rows/s for each format, on a synthetic click log of 13 counts and 26 categories a row.

Times are processor seconds of one thread, the best of several, so that other programs count little. MB are those of
the text, also where the file is compressed. The last lines are peers on the same files: pyarrow makes columns of
a CSV file (categories as dictionaries), not yet hashed rows; scikit-learn reads libsvm into a CSR matrix.

    python benchmarks/micro/readers.py [--rows 200000] [--repeat 5] [--json PATH]
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
from sklearn.datasets import load_svmlight_file

from ftprl import data
from ftprl.data import clicks

FILES = ("clicks.vw", "clicks.vw.gz", "clicks.vw.zst", "clicks.libsvm", "clicks.csv", "clicks.csv.gz", "clicks.tsv")


def best(work: Callable[[], Any], repeat: int) -> float:
    """Processor seconds of the quickest run."""
    times = []
    for _ in range(repeat):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def read(path: Path) -> int:
    options: dict[str, Any] = {} if ".vw" in path.name or ".libsvm" in path.name else {"label": "click"}
    return sum(len(batch.y) for batch in data.open(path, **options).batches())


def arrow(path: Path) -> None:
    kinds = {name: pa.dictionary(pa.int32(), pa.string()) for name in clicks.HEADER if name.startswith("C")}
    options = pa_csv.ConvertOptions(column_types=kinds)
    with pa_csv.open_csv(path, pa_csv.ReadOptions(use_threads=False), convert_options=options) as reader:
        for _ in reader:
            pass


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rows", type=int, default=200_000)
    arguments.add_argument("--repeat", type=int, default=5)
    arguments.add_argument("--json", type=Path)
    options = arguments.parse_args()
    pa.set_cpu_count(1)
    table = []
    with tempfile.TemporaryDirectory() as folder:
        for name in FILES:
            clicks.generate(options.rows, 1, Path(folder) / name)

        def add(what: str, name: str, work: Callable[[], Any]) -> None:
            size = (Path(folder) / name.removesuffix(".gz").removesuffix(".zst")).stat().st_size / 1e6
            seconds = best(work, options.repeat)
            table.append({"reader": what, "MB": size, "MB_s": size / seconds, "rows_s": options.rows / seconds})

        for name in FILES:
            path = Path(folder) / name
            assert read(path) == options.rows
            add(f"ftprl {name.removeprefix('clicks.')}", name, lambda path=path: read(path))
        add("pyarrow csv, columns only", "clicks.csv", lambda: arrow(Path(folder) / "clicks.csv"))
        with (Path(folder) / "clicks.libsvm").open("rb") as file:
            add("scikit-learn libsvm", "clicks.libsvm", lambda: (file.seek(0), load_svmlight_file(file)))

    print(f"{'reader':<28}{'text, MB':>10}{'MB/s':>8}{'rows/s':>12}")
    for row in table:
        print(f"{row['reader']:<28}{row['MB']:>10.1f}{row['MB_s']:>8.0f}{row['rows_s']:>12,.0f}")
    if options.json:
        options.json.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
