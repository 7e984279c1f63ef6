"""The rows of rows.py in formats that are made of its CSV file or its VW text."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from benchmarks.peers import rows as data

BITS = 22
FIRST_NAMESPACE = 13  # features of a row in the first of two namespaces


def write(path: Path, rows: int, seed: int) -> None:
    """Write the rows in the format that the name says, unless they are there."""
    suffix = "".join(path.suffixes)
    if suffix not in FORMS:
        data.write(path, rows, seed)
    elif not path.exists():
        base, make = FORMS[suffix]
        source, part = path.with_name(path.name.removesuffix(suffix) + base), path.with_name(f"{path.name}.part")
        data.write(source, rows, seed)
        make(source, part)
        part.rename(path)


def parquet(source: Path, out: Path) -> None:
    """As pyarrow writes it by default: dictionaries, Snappy, one row group for a million rows."""
    import pyarrow.csv
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.csv.read_csv(source), out)


def json_lines(source: Path, out: Path) -> None:
    """One object a line."""
    _objects(source, out, "click", {"0": "0", "1": "1"})


def vw_json(source: Path, out: Path) -> None:
    """One example a line, as `vw --json` reads it."""
    _objects(source, out, "_label", {"0": "-1", "1": "1"})


def _objects(source: Path, out: Path, label: str, labels: dict[str, str]) -> None:
    with source.open() as lines, out.open("w") as file:
        _, *names = next(lines).rstrip("\n").split(",")
        keys = [json.dumps(name) for name in names]
        for line in lines:
            click, *values = line.rstrip("\n").split(",")
            pairs = (f'{key}: "{value}"' for key, value in zip(keys, values, strict=True))
            file.write(f'{{"{label}": {labels[click]}, {", ".join(pairs)}}}\n')


def two_namespaces(source: Path, out: Path) -> None:
    """13 categories in the namespace a and 26 in b: 338 products a row."""
    with source.open() as lines, out.open("w") as file:
        for line in lines:
            label, names = line.rstrip("\n").split(" |")
            words = names.split()
            first, second = words[:FIRST_NAMESPACE], words[FIRST_NAMESPACE:]
            file.write(f"{label} |a {' '.join(first)} |b {' '.join(second)}\n")


FORMS: dict[str, tuple[str, Callable[[Path, Path], None]]] = {
    ".parquet": (".csv", parquet),
    ".jsonl": (".csv", json_lines),
    ".vwjson": (".csv", vw_json),
    ".two.vw": (".vw", two_namespaces),
}
