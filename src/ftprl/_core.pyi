"""The compiled core of ftprl."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

HASH_VERSION: Final[int]

def feature_hash(data: bytes | str, seed: int = 0) -> int: ...
def feature_hashes(names: Sequence[str | bytes], seed: int = 0) -> NDArray[np.uint64]: ...

# ---- readers ----

class Parser:
    line: int
    @property
    def full(self) -> bool: ...
    @property
    def rows(self) -> int: ...
    @property
    def bad(self) -> int: ...
    @property
    def problem(self) -> tuple[int, bytes] | None: ...
    @property
    def first_bad(self) -> tuple[int, bytes] | None: ...
    def feed(self, data: bytes, start: int, last: bool) -> int: ...
    def take(
        self,
    ) -> tuple[
        NDArray[np.int64],
        NDArray[np.uint32],
        NDArray[np.float32] | NDArray[np.float64],
        NDArray[np.float64],
        NDArray[np.float64],
        list[tuple[int, bytes]],
    ]: ...
    def set_columns(self, columns: list[tuple[int, bytes]]) -> None: ...

def parser(
    format: str,
    *,
    dim: int,
    seed: int,
    intercept: bool,
    wide: bool,
    skip: bool,
    max_row: int,
    batch_rows: int,
    batch_values: int,
    labels: str,
    positive: bytes,
    words: list[tuple[bytes, float]],
    separator: int,
    quote: int,
) -> Parser: ...
def first_row(data: bytes, last: bool, separator: int, quote: int) -> tuple[list[bytes], int, int] | None: ...
def look_at(
    data: bytes,
    start: int,
    last: bool,
    separator: int,
    quote: int,
    rows: int,
    columns: int,
    distinct: int,
    label: int,
) -> tuple[int, list[tuple[int, int]], list[bytes]]: ...
def words(data: bytes) -> list[bytes]: ...
