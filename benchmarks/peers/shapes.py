"""CSV and Parquet files of several shapes through ftprl, and the CSV files through datatable: whole processes, in turn.

    python -m benchmarks.peers.shapes [--only WORD ...] [--times 1] [--repeats 5] [--scales 1|8] [--prepare]
                                      [--work DIR] [--json PATH]

`--times 4` makes four times as many rows of each shape. `--work` keeps the files for the next call, and `--prepare`
only makes them. Each repeat runs all jobs of a shape, beginning with another. The table has the fastest run of each
job, with the median in parentheses, in seconds; ratios are of the fastest, with those of the medians in parentheses.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet
from benchmarks.peers import forms
from benchmarks.peers.run import NO_NAMES, Job, busy, eight, folder, ftprl, launch, log, peer, warm, with_options
from benchmarks.peers.table import Line
from numpy.random import Generator

PART = 100_000  # rows that are made at a time

Columns = dict[str, pa.Array]


def categories(count: int) -> Callable[[Generator, int], Columns]:
    """Columns of texts, of which a few are frequent and most are rare."""

    def part(random: Generator, rows: int) -> Columns:
        columns = {}
        for j in range(count):
            ranks = np.minimum(random.zipf(1.2 + 0.6 * j / count, rows), 1_000_000)
            columns[f"c{j}"] = pa.array([f"v{rank:x}" for rank in ranks.tolist()])
        return columns

    return part


def numbers(count: int) -> Callable[[Generator, int], Columns]:
    """Columns of normal numbers with four decimals."""
    return lambda random, rows: {f"x{j}": pa.array(random.normal(size=rows).round(4)) for j in range(count)}


def texts(count: int) -> Callable[[Generator, int], Columns]:
    """Columns of texts that are all distinct: letters and digits, 12 each."""

    def part(random: Generator, rows: int) -> Columns:
        columns = {}
        for j in range(count):
            digits = random.integers(0, 1 << 44, rows).tolist()
            columns[f"t{j}"] = pa.array([f"t{digit:011x}" for digit in digits])
        return columns

    return part


def mixed(random: Generator, rows: int) -> Columns:
    """Ten categories and ten numbers, a tenth of the cells empty, and a whole number of few values."""
    made = {**categories(10)(random, rows), **numbers(10)(random, rows)}
    holes = {name: pa.array(random.random(rows) < 0.1) for name in made}
    columns = {name: pa.compute.if_else(holes[name], None, cells) for name, cells in made.items()}
    return {**columns, "n": pa.array(random.integers(0, 50, rows))}


@dataclass(frozen=True)
class Shape:
    """Rows of a kind; `part` makes the columns of some of them."""

    name: str
    rows: int
    part: Callable[[Generator, int], Columns] | None  # None: the rows of rows.py


SHAPES = (
    Shape("39 categories", 1_000_000, None),
    Shape("5 categories", 1_000_000, categories(5)),
    Shape("200 categories", 100_000, categories(200)),
    Shape("20 numbers", 300_000, numbers(20)),
    Shape("10 texts, all distinct", 300_000, texts(10)),
    Shape("21 mixed columns", 300_000, mixed),
)


def write(shape: Shape, rows: int, work: Path, seed: int) -> tuple[Path, Path]:
    """The rows as CSV and as Parquet, made unless they are there."""
    if shape.part is None:
        base = work / f"rows-{rows}-{seed}"
        forms.write(base.with_suffix(".parquet"), rows, seed)
        return base.with_suffix(".csv"), base.with_suffix(".parquet")
    base = work / f"{shape.name.replace(',', '').replace(' ', '-')}-{rows}-{seed}"
    csv, parquet = base.with_suffix(".csv"), base.with_suffix(".parquet")
    if csv.exists() and parquet.exists():
        return csv, parquet
    new_csv, new_parquet = csv.with_suffix(".csv.part"), parquet.with_suffix(".parquet.part")
    table = pa.Table.from_batches(_parts(shape.part, rows, seed))
    pa.csv.write_csv(table, new_csv, pa.csv.WriteOptions(quoting_style="none"))
    pa.parquet.write_table(table, new_parquet)
    new_csv.rename(csv)
    new_parquet.rename(parquet)
    return csv, parquet


def _parts(part: Callable[[Generator, int], Columns], rows: int, seed: int) -> Iterator[pa.RecordBatch]:
    random = np.random.default_rng(seed)
    for first in range(0, rows, PART):
        count = min(PART, rows - first)
        columns = part(random, count)
        click = pa.array((random.random(count) < 0.3).astype(np.int64))
        yield pa.RecordBatch.from_pydict({"click": click, **columns})


def jobs(scales: int) -> list[Job]:
    """What is run on each shape."""
    train = with_options(ftprl if scales == 1 else eight, *NO_NAMES)
    return [
        Job("CSV", ".csv", "ftprl", "", train),
        Job("Parquet", ".parquet", "ftprl", "", train),
        Job("datatable, CSV", ".csv", "datatable", "", peer("datatable")),
    ]


def measure(shape: Shape, rows: int, chosen: Sequence[Job], work: Path, repeats: int, seed: int) -> list[Line]:
    """The lines of a shape."""
    csv, parquet = write(shape, rows, work, seed)
    lines = [Line(job.name, rows, None) for job in chosen]
    pairs = list(zip(chosen, lines, strict=True))
    for i in range(repeats):
        for job, line in pairs[i % len(pairs) :] + pairs[: i % len(pairs)]:
            if find_spec(job.needs) is None:
                line.note = f"{job.needs} is not installed"
            if not line.note:
                source = csv if job.suffix == ".csv" else parquet
                warm(source)
                launch(job, source, work, line)
    return lines


def _seconds(line: Line) -> str:
    return f"{min(line.seconds):.2f} ({statistics.median(line.seconds):.2f})" if line.seconds else line.note


def _ratio(line: Line, other: Line) -> str:
    if not line.seconds or not other.seconds:
        return "-"
    medians = statistics.median(other.seconds) / statistics.median(line.seconds)
    return f"{min(other.seconds) / min(line.seconds):.2f} ({medians:.2f})"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[""], metavar="WORD", help="shapes whose names have one of these")
    parser.add_argument("--times", type=int, default=1, help="how many times the rows of each shape [default: 1]")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scales", type=int, choices=(1, 8), default=1, help="scales of the learner [default: 1]")
    parser.add_argument("--prepare", action="store_true", help="only make the files, in --work")
    parser.add_argument("--work", type=Path, help="keep the files here, and use those that are there")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    shapes = [shape for shape in SHAPES if any(word in shape.name for word in options.only)]
    results = []
    with folder(options.work) as work:
        for shape in shapes:
            log(f"making {shape.name}")
            write(shape, options.times * shape.rows, work, options.seed)
        print(f"2^{forms.BITS} cells, --names 0, {options.scales} scale(s); fastest of {options.repeats} (median)")
        print("| rows | CSV | Parquet | datatable, CSV | Parquet against datatable | Parquet against CSV |")
        print("|---|---|---|---|---|---|")
        for shape in [] if options.prepare else shapes:
            rows = options.times * shape.rows
            csv, parquet, other = measure(shape, rows, jobs(options.scales), work, options.repeats, options.seed)
            cells = [f"{rows:,} of {shape.name}", *map(_seconds, (csv, parquet, other))]
            print("| " + " | ".join([*cells, _ratio(parquet, other), _ratio(parquet, csv)]) + " |", flush=True)
            results.append({"shape": shape.name, "lines": [line.to_dict() for line in (csv, parquet, other)]})
    warning = busy()
    if warning:
        print(warning)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
