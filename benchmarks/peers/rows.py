"""The rows every system reads: the click log of `ftprl.data.clicks`, its counts taken as categories too.

A row has 39 categories and nothing else, in every format; what was not recorded is a category of its own. VW text and
CSV name a category by text, libsvm by a number below 2^22: each column has its own range, in which frequent values are
spread, and numbers rise within a row, as scikit-learn's reader wants.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ftprl.data import clicks

FIELDS = clicks.COUNTS + len(clicks.SIZES)
LARGEST_COUNT = 19_999
SIZES = np.array([LARGEST_COUNT + 1] * clicks.COUNTS + list(clicks.SIZES)) + 1  # one more for what is missing
OFFSETS = 1 + np.concatenate([[0], np.cumsum(SIZES)[:-1]])
NAMES = clicks.HEADER[1:]
HEX = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
MIX = 2654435761  # a prime above every size, so that multiplying by it permutes a column's values

Text = NDArray[np.uint8]


def write(path: Path, rows: int, seed: int) -> None:
    """Write the rows in the format that the suffix says, unless they are there."""
    if path.exists():
        return
    part = path.with_name(f"{path.name}.part")
    with part.open("wb") as out:
        if path.suffix == ".csv":
            out.write(",".join(clicks.HEADER).encode() + b"\n")
        for block in clicks.blocks(rows, seed):
            counts = np.minimum(block.counts, LARGEST_COUNT)
            values = np.concatenate([counts, block.ranks], axis=1) + 1
            out.write(_text(path.suffix, block.click, values))
    part.rename(path)


def _text(suffix: str, click: NDArray[np.bool_], values: NDArray[np.int64]) -> bytes:
    """Columns of bytes side by side; zero bytes are left out."""
    rows = len(click)
    no = "0" if suffix == ".csv" else "-1"
    label = np.where(click[:, None], _word("1".rjust(len(no), "\0"), rows), _word(no, rows))
    parts = [label, _word(" |", rows)] if suffix == ".vw" else [label]
    mixed = values * MIX % SIZES
    for j, name in enumerate(NAMES):
        if suffix == ".libsvm":
            parts += [_word(" ", rows), _decimal(OFFSETS[j] + mixed[:, j]), _word(":1", rows)]
        else:
            before = "," if suffix == ".csv" else f" {name}="
            parts += [_word(before, rows), _letters(mixed[:, j] * MIX + j)]
    page = np.concatenate([*parts, _word("\n", rows)], axis=1).ravel()
    return bytes(page[page != 0])


def _word(word: str, rows: int) -> Text:
    return np.tile(np.frombuffer(word.encode(), dtype=np.uint8), (rows, 1))


def _decimal(values: NDArray[np.int64]) -> Text:
    powers = 10 ** np.arange(6, -1, -1)
    digits = (values[:, None] // powers % 10 + ord("0")).astype(np.uint8)
    digits[values[:, None] < powers] = 0
    return digits


def _letters(values: NDArray[np.int64]) -> Text:
    """A letter and seven hexadecimal digits: never a number."""
    code = values & 0xFFFFFFF
    digits = HEX[(code[:, None] >> np.arange(24, -1, -4)) & 15]
    return np.concatenate([np.full((len(values), 1), ord("v"), dtype=np.uint8), digits], axis=1)
