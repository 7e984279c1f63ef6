"""The compiled core of ftprl."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

HASH_VERSION: Final[int]

def feature_hash(data: bytes | str, seed: int = 0) -> int: ...
def feature_hashes(names: Sequence[str | bytes], seed: int = 0) -> NDArray[np.uint64]: ...

# ---- the learner ----

class RowError(ValueError):
    row: int

class Learner:
    def __init__(
        self,
        dim: int,
        outputs: int = 1,
        *,
        float64: bool,
        receipt: bool,
        loss: str,
        scales: Sequence[float],
        beta: float,
        l1: float,
        l2: float,
        lower: float,
        upper: float,
        intercept: bool,
        tau: float,
        share: float | None = None,
        capped: bool = True,
        stack: bool = True,
    ) -> None: ...
    def learn(
        self,
        indptr: NDArray[np.int64],
        indices: NDArray[np.uint32],
        values: NDArray[np.float32] | NDArray[np.float64],
        y: NDArray[np.float64],
        weight: NDArray[np.float64],
        scores: NDArray[np.float64] | None = None,
        losses: NDArray[np.float64] | None = None,
        first_row: int = 0,
    ) -> tuple[float, float, int]: ...
    def check(
        self,
        indptr: NDArray[np.int64],
        indices: NDArray[np.uint32],
        values: NDArray[np.float32] | NDArray[np.float64],
        y: NDArray[np.float64],
        weight: NDArray[np.float64],
        first_row: int = 0,
    ) -> None: ...
    def score(
        self,
        indptr: NDArray[np.int64],
        indices: NDArray[np.uint32],
        values: NDArray[np.float32] | NDArray[np.float64],
        scores: NDArray[np.float64],
        first_row: int = 0,
    ) -> None: ...
    def touch(
        self,
        indptr: NDArray[np.int64],
        indices: NDArray[np.uint32],
        values: NDArray[np.float32] | NDArray[np.float64],
    ) -> float: ...
    def weights(self, out: NDArray[np.float64], scale: int) -> None: ...
    def intercept(self, out: NDArray[np.float64]) -> None: ...
    def touched(self, out: NDArray[np.uint32]) -> int: ...
    def take(self, slots: NDArray[np.uint32], out: NDArray[np.float32] | NDArray[np.float64]) -> None: ...
    def put(self, slots: NDArray[np.uint32], cells: NDArray[np.float32] | NDArray[np.float64]) -> None: ...
    def keep_scales(self, first: int, count: int) -> None: ...
    def copy(self) -> Learner: ...
    @property
    def width(self) -> int: ...
    @property
    def columns(self) -> dict[str, tuple[int, int]]: ...
    @property
    def saved_columns(self) -> dict[str, tuple[int, int]]: ...
    @property
    def tallies(self) -> NDArray[np.float64]: ...
    @property
    def calibration(self) -> NDArray[np.float64] | None: ...
    @property
    def mixture(self) -> dict[str, NDArray[np.float64]]: ...
    @property
    def saved_arrays(self) -> dict[str, NDArray[np.float64]]: ...
    def ledger(self, out: NDArray[np.float64], leader: int, slots: NDArray[np.int64] | None = None) -> None: ...
    def groups(self, out: NDArray[np.float64], leader: int, scale: int) -> None: ...

class Baseline:
    def __init__(self, loss: str, tau: float) -> None: ...
    def learn(
        self, y: NDArray[np.float64], weight: NDArray[np.float64], others: NDArray[np.float64] | None = None
    ) -> None: ...
    def copy(self) -> Baseline: ...
    @property
    def kind(self) -> str: ...
    @property
    def total(self) -> float: ...
    @property
    def numbers(self) -> NDArray[np.float64]: ...

def use_instruction_set(name: str) -> bool: ...
def losses() -> dict[str, tuple[str, str, float, str]]: ...
def loss_at(name: str, score: float, y: float, tau: float = 0.5) -> tuple[float, float]: ...
def has_units(values: NDArray[np.float32] | NDArray[np.float64]) -> bool: ...
def prefault(dim: int, *, scales: int, float64: bool, receipt: bool) -> None: ...

# ---- readers ----

class Parser:
    line: int
    negative: float
    @property
    def full(self) -> bool: ...
    @property
    def rows(self) -> int: ...
    @property
    def bad(self) -> int: ...
    @property
    def problem(self) -> tuple[int, bytes, str, str] | None: ...
    @property
    def first_bad(self) -> tuple[int, bytes, str, str] | None: ...
    def feed(self, data: bytes | memoryview, start: int, last: bool) -> int: ...
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

class Window:
    def __init__(self, size: int = ...) -> None: ...
    def open(self, file: int, start: int, end: int, offset: int) -> None: ...
    def feed(self, parser: Parser) -> bool: ...
    @property
    def fingerprint(self) -> int: ...

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
def whole_rows(data: bytes | memoryview, start: int, separator: int, quote: int) -> int: ...
def text_fingerprint(data: bytes | bytearray | memoryview, start: int, end: int, offset: int) -> int: ...
def number_lines(values: NDArray[np.float64]) -> bytes: ...
def trim() -> None: ...
def words(data: bytes) -> list[bytes]: ...
