"""What n-grams gain on text: progressive loss, error rate, cells and seconds, of the SMS Spam Collection.

python benchmarks/ngrams.py [--data DIR]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import ftprl

CASES: tuple[dict[str, Any], ...] = (
    {},
    {"ngrams": 2},
    {"ngrams": 3},
    {"ngrams": 2, "skips": 1},
    {"ngrams": 2, "skips": 2},
    {"char_ngrams": 3},
    {"char_ngrams": "3-5"},
    {"ngrams": 2, "char_ngrams": "3-5"},
)


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=Path(__file__).parent.parent.parent / "shared" / "data")
    path = parser.parse_args().data / "sms.tsv.gz"
    options = {"header": False, "label": "1", "positive": "spam", "text": "2"}
    labels = np.array([line.startswith("spam") for line in _lines(path)])
    print("| options | log loss | errors, % | cells | seconds |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            predictions = Path(folder, "p")
            start = time.perf_counter()
            run = ftprl.train(path, predictions=predictions, **options, **case)
            seconds = time.perf_counter() - start
            wrong = 100 * np.mean((np.loadtxt(predictions) > 0.5) != labels)
            shown = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in case.items()) or "words alone"
            print(f"| {shown} | {run.progressive_loss:.4f} | {wrong:.2f} | {run.model.occupied} | {seconds:.2f} |")


def _lines(path: Path) -> list[str]:
    import gzip

    return gzip.decompress(path.read_bytes()).decode().splitlines()


if __name__ == "__main__":
    main()
