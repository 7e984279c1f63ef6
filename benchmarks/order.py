"""The saved model on rows that follow: rows learned in random order, in the order of the data, and guessing.

    python benchmarks/order.py [--data DIR]

Each data set is cut: the first 80 % of its rows are learned and the other 20 % predicted by the saved model. Some are
also sorted by a column before a random 20 % is held back. Guessing predicts the mean label of the learned rows.
"""

from __future__ import annotations

import argparse
import gzip
import warnings
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

import ftprl

Lines = list[bytes]


class Stream(NamedTuple):
    """A data set: its file, the options it is trained with, and the column it is sorted by."""

    file: str
    options: dict[str, Any]
    sorted_by: int | None = None


SQUARED, CSV = {"loss": "squared"}, {"label": "class"}
STREAMS = {
    "elec": Stream("elec.csv.gz", CSV),
    "bank": Stream("bank.csv.gz", {"label": "y"}),
    "bikes": Stream("bikes.csv.gz", {"label": "bikers", **SQUARED}),
    "bikes, Poisson": Stream("bikes.csv.gz", {"label": "bikers", "loss": "poisson"}),
    "criteo": Stream("criteo80k.vw.gz", {}),
    "a9a": Stream("a9a.libsvm.gz", {}),
    "rcv1": Stream("rcv1_small.vw.gz", {}),
    "diamonds": Stream("diamonds.csv.gz", {"label": "price", **SQUARED}),
    "visits": Stream("visits.csv.gz", {"label": "mdvis", "loss": "poisson"}),
    "diamonds by price": Stream("diamonds.csv.gz", {"label": "price", **SQUARED}, 6),
    "diamonds by carat": Stream("diamonds.csv.gz", {"label": "price", **SQUARED}, 0),
    "elec by price": Stream("elec.csv.gz", CSV, 1),
    "a9a by label": Stream("a9a.libsvm.gz", {}, 0),
    "criteo by label": Stream("criteo80k.vw.gz", {}, 0),
}
HEADERS = (".csv.gz",)


def _labels(lines: Lines, stream: Stream, header: bytes) -> np.ndarray:
    """The labels as numbers."""
    if stream.file.endswith(HEADERS):
        sep = b";" if header.count(b";") > 2 else b","
        names = [name.strip(b'"\r\n') for name in header.split(sep)]
        cells = [line.split(sep)[names.index(stream.options["label"].encode())].strip(b'"\r\n') for line in lines]
        return np.array([float(cell) if cell not in (b"yes", b"no") else float(cell == b"yes") for cell in cells])
    return np.array([float(line.split(None, 1)[0]) > 0 for line in lines], float)


def _sort_key(column: int, sep: bytes) -> Callable[[bytes], float]:
    return lambda line: float(line.split(sep)[column])


def _guess(seen: np.ndarray, new: np.ndarray, loss: str) -> float:
    """The loss of predicting the mean of the learned labels."""
    mean = float(seen.mean())
    if loss == "squared":
        return float(np.sqrt(np.mean((new - mean) ** 2)))
    if loss == "poisson":
        return float(np.mean(mean - new * np.log(mean)))
    return float(-np.mean(np.where(new > 0, np.log(mean), np.log1p(-mean))))


def measured(name: str, data: Path, folder: Path) -> tuple[float, dict[str, tuple[float, float, list[str]]]]:
    """The loss of guessing, and by order the loss of the saved model, the one that is printed, and the warnings."""
    stream = STREAMS[name]
    with gzip.open(data / stream.file) as file:
        lines = file.readlines()
    header = lines.pop(0) if stream.file.endswith(HEADERS) else b""
    held = np.arange(len(lines)) >= 0.8 * len(lines)
    if stream.sorted_by is not None:
        sep = b"," if header else b" "
        lines.sort(key=_sort_key(stream.sorted_by, sep))
        held = np.random.default_rng(1).random(len(lines)) < 0.2
    end = stream.file.removesuffix(".gz").split(".", 1)[1]
    files = {part: folder / f"{part}.{end}" for part in ("seen", "new")}
    for part, rows in (("seen", ~held), ("new", held)):
        files[part].write_bytes(header + b"".join(lines[i] for i in np.flatnonzero(rows)))
    y, loss = _labels(lines, stream, header), stream.options.get("loss", "logistic")
    found = {}
    for order in ("given", "random"):
        run = ftprl.train(str(files["seen"]), order=order, **stream.options)
        scores = run.model.predict(str(files["new"]))
        found[order] = (_loss(scores, y[held], loss), _shown(run, loss), [caution.kind for caution in run.cautions])
    return _guess(y[~held], y[held], loss), found


def _loss(predicted: np.ndarray, y: np.ndarray, loss: str) -> float:
    if loss == "squared":
        return float(np.sqrt(np.mean((predicted - y) ** 2)))
    if loss == "poisson":
        return float(np.mean(predicted - y * np.log(predicted)))
    p = np.clip(predicted, 1e-300, 1.0 - 2.0**-53)
    return float(-np.mean(np.where(y > 0, np.log(p), np.log1p(-p))))


def _shown(run: ftprl.Run, loss: str) -> float:
    return float(run.rmse or run.progressive_loss) if loss == "squared" else run.progressive_loss


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("names", nargs="*", default=list(STREAMS))
    args = parser.parse_args()
    warnings.simplefilter("ignore", ftprl.FtprlWarning)
    print(
        "| data | guessing | saved model, given | saved model, random | printed, given | printed, random | warnings |"
    )
    print("|---|---|---|---|---|---|---|")
    for name in args.names:
        with TemporaryDirectory() as folder:
            guess, found = measured(name, args.data, Path(folder))
        given, random = found["given"], found["random"]
        kinds = f"given: {', '.join(given[2]) or '-'}; random: {', '.join(random[2]) or '-'}"
        print(
            f"| {name} | {guess:.4g} | {given[0]:.4g} | {random[0]:.4g} | {given[1]:.4g} | {random[1]:.4g} | {kinds} |"
        )


if __name__ == "__main__":
    main()
