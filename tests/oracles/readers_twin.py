"""The text readers in pure Python: one row at a time, dictionaries, no blocks."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from oracles import columns_twin
from oracles.hash_twin import feature_hash

NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


class Bad(Exception):
    """A row that does not conform to its format."""


@dataclass
class Row:
    features: dict[int, float]
    y: float = math.nan
    weight: float = 1.0
    tag: str = ""


@dataclass
class Twin:
    """The options of `open`, and the labels seen so far."""

    dim: int = 2**22
    seed: int = 0
    intercept: bool = True
    dtype: str = "float32"
    binary: bool = True
    positive: bytes | None = None
    missing: str = "indicator"
    sampled: Mapping[str, Sequence[float]] = field(default_factory=dict)
    negative: float | None = field(default=None, init=False)

    def slot(self, name: bytes, namespace: bytes = b"") -> int:
        seed = feature_hash(namespace, self.seed) if namespace else self.seed
        h = feature_hash(name, seed)
        slot = h % self.dim if self.dim & (self.dim - 1) == 0 else h * self.dim >> 64
        return slot - 1 if self.intercept and slot == self.dim - 1 else slot

    def label(self, text: bytes) -> float:
        if not text:
            return math.nan
        y = number(text)
        if self.positive is not None:
            return 1.0 if y == number(self.positive) else -1.0
        if not self.binary or y == 1:
            return y
        if y not in (0, -1) or (self.negative is not None and y != self.negative):
            raise Bad
        self.negative = y
        return -1.0

    def row(self, pairs: Sequence[tuple[int, float]], y: float, weight: float, tag: str = "") -> Row:
        sums: dict[int, float] = {}
        for slot, value in pairs:
            sums[slot] = sums[slot] + value if slot in sums else value
        if any(not abs(value) <= 1e30 for value in sums.values()) or abs(y) > 1e30 or weight > 1e30:
            raise Bad
        rounded = {slot: float(np.dtype(self.dtype).type(value)) for slot, value in sums.items()}
        features = {slot: value for slot, value in rounded.items() if value != 0}
        if self.intercept:
            features[self.dim - 1] = 1.0
        return Row(features, y, weight, tag)

    def vw(self, line: bytes) -> Row:
        head, bar, rest = line.partition(b"|")
        if not bar:
            raise Bad
        words = re.split(rb"[ \t]+", head)
        tag = words.pop() if words[-1] else b""  # it touches the bar
        words = [word for word in words if word]
        if not tag and words and words[-1].startswith(b"'"):
            tag = words.pop()
        if len(words) > 2 or any(word.startswith(b"'") for word in words):
            raise Bad
        y = self.label(words[0]) if words else math.nan
        weight = number(words[1]) if len(words) == 2 else 1.0
        if weight < 0:
            raise Bad
        pairs = [pair for part in rest.split(b"|") for pair in self._namespace(part)]
        tag = tag[1:] if tag.startswith(b"'") else tag
        return self.row(pairs, y, weight, tag.decode("utf-8", "backslashreplace"))

    def _namespace(self, part: bytes) -> Iterator[tuple[int, float]]:
        first, *tokens = re.split(rb"[ \t]", part)
        namespace, colon, factor = first.partition(b":")
        if first and not namespace:
            raise Bad
        scale = number(factor) if colon else 1.0
        unnamed = 0
        for token in tokens:
            if not token:
                continue
            name, colon, value = token.partition(b":")
            v = number(value) if colon else 1.0
            if not name:
                name, unnamed = b"%d" % unnamed, unnamed + 1
            yield self.slot(name, namespace), v * scale

    def libsvm(self, line: bytes) -> Row | None:
        tokens = re.split(rb"[ \t]+", line.partition(b"#")[0].strip(b" \t"))
        if tokens == [b""]:
            return None
        y = math.nan if b":" in tokens[0] else self.label(tokens.pop(0))
        pairs = []
        for token in tokens:
            name, colon, value = token.partition(b":")
            if not colon:
                raise Bad
            if name == b"qid":
                continue
            if not re.fullmatch(rb"[0-9]+", name) or int(name) >= self.dim - self.intercept:
                raise Bad
            pairs.append((int(name), number(value)))
        return self.row(pairs, y, 1.0)

    def fields(self, fields: Sequence[bytes], columns: Sequence[tuple[str, str]]) -> Row:
        if len(fields) != len(columns):
            raise Bad
        y, weight = math.nan, 1.0
        pairs: list[tuple[int, float]] = []
        for text, (name, kind) in zip(fields, columns, strict=True):
            plain = text.strip(b" \t")
            if kind == "label":
                is_class = self.positive is not None and plain not in (b"", self.positive) and not is_number(plain)
                y = -1.0 if is_class else self.label(plain)
            elif kind == "weight":
                weight = number(plain)
                if weight < 0:
                    raise Bad
            elif kind != "ignore":
                try:
                    made = columns_twin.features(name, kind, text.decode(), self.sampled.get(name, ()), self.missing)
                except columns_twin.Misfit:
                    raise Bad from None
                pairs += [(self.slot(feature.encode()), value) for feature, value in made]
        return self.row(pairs, y, weight)


def is_number(text: bytes) -> bool:
    return NUMBER.fullmatch(text) is not None and math.isfinite(float(text))


def number(text: bytes) -> float:
    if not is_number(text):
        raise Bad
    return float(text)


def read_lines(data: bytes, parse: Callable[[bytes], Row | None]) -> tuple[list[Row], list[int], int]:
    """Return the good rows, the lines of the bad ones, and how many rows precede the first bad one."""
    rows: list[Row] = []
    bad: list[int] = []
    before = 0
    for i, line in enumerate(data.split(b"\n")):
        line = line.rstrip(b" \t\r").lstrip(b" \t")
        try:
            row = parse(line) if line else None
            rows += [] if row is None else [row]
        except Bad:
            before = before if bad else len(rows)
            bad.append(i + 1)
    return rows, bad, before if bad else len(rows)


def read_csv(text: str, sep: str, parse: Callable[[Sequence[bytes]], Row]) -> tuple[list[Row], int]:
    """Return the good rows and the number of bad ones, by Python's own csv reader."""
    rows, bad = [], 0
    for fields in csv.reader(io.StringIO(text, newline=""), delimiter=sep):
        if fields in ([], [""]):
            continue
        try:
            rows.append(parse([field.encode() for field in fields]))
        except Bad:
            bad += 1
    return rows, bad
