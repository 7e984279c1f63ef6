"""A synthetic click log: 13 counts, 26 categories from 3 to a million and a half values, and a hidden logistic model.

Values are heavy-tailed: the r-th of a column comes with a probability near 1/(r ln N). Every block of rows has its
own random numbers, so that the first rows of a long log are those of a short one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import final

import numpy as np
from numpy.typing import NDArray

from ftprl.atomic import replacing
from ftprl.data.compression import PACKERS, suffixes
from ftprl.errors import InvalidInput

COUNTS = 13
_LARGE = (1_500_000, 700_000, 350_000, 180_000, 90_000, 60_000, 30_000, 15_000, 10_000, 6_000, 3_000, 2_000, 1_500)
SIZES = (*_LARGE, 1_000, 600, 400, 300, 150, 100, 60, 27, 18, 15, 10, 4, 3)
HEADER = ("click", *(f"I{i + 1}" for i in range(COUNTS)), *(f"C{j + 1}" for j in range(len(SIZES))))
_OFFSETS = COUNTS + 1 + np.concatenate([[0], np.cumsum(SIZES)[:-1]])  # libsvm ids: 1..13, then each column's own
_BLOCK = 8192

Numbers = NDArray[np.float64]
Text = NDArray[np.uint8]
Whole = NDArray[np.uint64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Clicks:
    """Rows before they are written: `counts` -1 and `ranks` -1 mean that nothing was recorded."""

    click: NDArray[np.bool_]
    counts: NDArray[np.int64]
    ranks: NDArray[np.int64]


def generate(rows: int, seed: int, path: str | os.PathLike[str]) -> None:
    """Write `rows` rows to `path`, in the format of its suffix: .vw .csv .tsv .libsvm, and .gz or .zst behind it.

    >>> generate(1_000_000, 7, "clicks.vw.zst")  # doctest: +SKIP
    """
    if rows < 0:
        raise InvalidInput(f"rows needs a whole number of at least 0, got {rows}; pass a larger one.")
    if not 0 <= seed < 2**63:
        raise InvalidInput(f"seed needs a whole number from 0 to 2**63 - 1, got {seed}; pass one.")
    kind, packing = suffixes(os.fspath(path))
    if kind not in _WRITERS or packing not in PACKERS:
        raise InvalidInput(
            f"path needs a name that ends in .vw, .csv, .tsv or .libsvm, then perhaps .gz or .zst, got "
            f"{Path(path).name!r}; rename it."
        )
    first, write = _WRITERS[kind]
    with replacing(path) as target, PACKERS[packing](target) as out:
        out.write(first)
        for block in blocks(rows, seed):
            out.write(write(block))


def blocks(rows: int, seed: int) -> Iterator[Clicks]:
    """The rows, block by block."""
    for number, start in enumerate(range(0, rows, _BLOCK)):
        luck, counts, ranks = draw_block(number, seed, min(_BLOCK, rows - start))
        yield Clicks(luck < 1.0 / (1.0 + np.exp(-_bias(seed) - hidden_score(counts, ranks, seed))), counts, ranks)


@lru_cache
def _bias(seed: int) -> float:
    """Centres the score of a block that is never written: about one row in five is a click, whatever the seed."""
    _, counts, ranks = draw_block(2**63, seed, _BLOCK)
    return -1.7 - float(hidden_score(counts, ranks, seed).mean())


def draw_block(number: int, seed: int, rows: int) -> tuple[Numbers, NDArray[np.int64], NDArray[np.int64]]:
    """Uniform numbers that decide the labels, counts and categories (ranks) of one block of rows."""
    random = np.random.Generator(np.random.Philox(key=[seed, number]))
    uniform = random.random((_BLOCK, 1 + 2 * COUNTS + 2 * len(SIZES)))[:rows]
    u, missing = uniform[:, 1 : 1 + COUNTS], uniform[:, 1 + COUNTS : 1 + 2 * COUNTS]
    # A Pareto tail, of another weight in each column.
    shape = 0.6 + 0.1 * np.arange(COUNTS)
    counts = np.minimum((1.0 - u) ** (-1.0 / shape) - 1.0, 99_999.0).astype(np.int64)
    counts[missing < 0.04 * np.arange(COUNTS)] = -1
    u, missing = uniform[:, 1 + 2 * COUNTS : -len(SIZES)], uniform[:, -len(SIZES) :]
    sizes = np.array(SIZES, dtype=np.float64)
    ranks = np.minimum((sizes + 1.0) ** u - 1.0, sizes - 1.0).astype(np.int64)
    ranks[missing < 0.01 * (np.arange(len(SIZES)) % 7)] = -1
    return uniform[:, 0], counts, ranks


def hidden_score(counts: NDArray[np.int64], ranks: NDArray[np.int64], seed: int) -> Numbers:
    """The hidden model: one weight per count, on its logarithm, and one per category."""
    slopes = 0.25 * _weights(np.arange(COUNTS), 0, seed)
    score: Numbers = np.log1p(np.maximum(counts, 0)) @ slopes
    for j in range(len(SIZES)):
        score += np.where(ranks[:, j] < 0, 0.0, 0.3 * _weights(ranks[:, j], j + 1, seed))
    return score


def _weights(values: NDArray[np.int64], column: int, seed: int) -> Numbers:
    """A number of mean 0 and variance near 1 that depends on nothing but the arguments: the sum of four uniforms."""
    bits = _scramble(values.astype(np.uint64), column, seed)
    parts = [(bits >> np.uint64(16 * k)) & np.uint64(0xFFFF) for k in range(4)]
    total: Numbers = sum(parts[1:], parts[0]).astype(np.float64) / 65535.0
    return (total - 2.0) * 1.7320508


def _scramble(x: Whole, column: int, seed: int) -> Whole:
    """SplitMix64 of a value, a column and a seed."""
    salt = (column * 0x9E3779B97F4A7C15 + seed * 0xD1342543DE82EF95) % 2**64
    x = x + np.uint64(salt)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


# Text is made of columns of bytes, side by side; a zero byte is nothing and is squeezed out at the end.


def _decimal(values: NDArray[np.int64], width: int) -> Text:
    """Digits without leading zeros."""
    powers = 10 ** np.arange(width - 1, -1, -1, dtype=np.int64)
    digits = (values[:, None] // powers % 10 + ord("0")).astype(np.uint8)
    digits[:, :-1][values[:, None] < powers[:-1]] = 0
    return digits


def _hex(ranks: NDArray[np.int64], column: int) -> Text:
    """Eight letters that name a category and do not tell its rank; no two ranks of a column share them."""
    code = (ranks.astype(np.uint64) * np.uint64(0x9E3779B1) + np.uint64(column * 0x85EBCA77)) & np.uint64(0xFFFFFFFF)
    nibbles = (code[:, None] >> np.arange(28, -1, -4, dtype=np.uint64)) & np.uint64(15)
    return np.frombuffer(b"0123456789abcdef", dtype=np.uint8)[nibbles.astype(np.intp)]


def _text(word: str, rows: int) -> Text:
    return np.tile(np.frombuffer(word.encode(), dtype=np.uint8), (rows, 1))


def _blank(parts: list[Text], present: NDArray[np.bool_]) -> list[Text]:
    """The parts of a field, gone where there is no value."""
    return [np.where(present[:, None], part, np.uint8(0)) for part in parts]


def _joined(parts: list[Text]) -> bytes:
    page: Text = np.concatenate(parts, axis=1).ravel()
    squeezed: bytes = page[page != 0].tobytes()
    return squeezed


def _labels(block: Clicks, yes: str, no: str) -> Text:
    rows, width = len(block.click), max(len(yes), len(no))
    return np.where(block.click[:, None], _text(yes.rjust(width, "\0"), rows), _text(no.rjust(width, "\0"), rows))


def _as_table(sep: str) -> Callable[[Clicks], bytes]:
    def write(block: Clicks) -> bytes:
        rows = len(block.click)
        parts = [_labels(block, "1", "0")]
        for i in range(COUNTS):
            field = _blank([_decimal(np.maximum(block.counts[:, i], 0), 5)], block.counts[:, i] >= 0)
            parts += [_text(sep, rows), *field]
        for j in range(len(SIZES)):
            parts += [_text(sep, rows), *_blank([_hex(np.maximum(block.ranks[:, j], 0), j)], block.ranks[:, j] >= 0)]
        return _joined([*parts, _text("\n", rows)])

    return write


def _as_vw(block: Clicks) -> bytes:
    rows = len(block.click)
    parts = [_labels(block, "1", "-1"), _text(" |", rows)]
    for i in range(COUNTS):
        value = _decimal(np.maximum(block.counts[:, i], 0), 5)
        parts += _blank([_text(f" I{i + 1}:", rows), value], block.counts[:, i] > 0)
    for j in range(len(SIZES)):
        value = _hex(np.maximum(block.ranks[:, j], 0), j)
        parts += _blank([_text(f" C{j + 1}=", rows), value], block.ranks[:, j] >= 0)
    return _joined([*parts, _text("\n", rows)])


def _as_libsvm(block: Clicks) -> bytes:
    rows = len(block.click)
    parts = [_labels(block, "1", "-1")]
    for i in range(COUNTS):
        value = _decimal(np.maximum(block.counts[:, i], 0), 5)
        parts += _blank([_text(f" {i + 1}:", rows), value], block.counts[:, i] > 0)
    for j in range(len(SIZES)):
        name = _decimal(_OFFSETS[j] + np.maximum(block.ranks[:, j], 0), 7)
        parts += _blank([_text(" ", rows), name, _text(":1", rows)], block.ranks[:, j] >= 0)
    return _joined([*parts, _text("\n", rows)])


_WRITERS: dict[str, tuple[bytes, Callable[[Clicks], bytes]]] = {
    ".vw": (b"", _as_vw),
    ".libsvm": (b"", _as_libsvm),
    ".csv": (",".join(HEADER).encode() + b"\n", _as_table(",")),
    ".tsv": ("\t".join(HEADER).encode() + b"\n", _as_table("\t")),
}
