"""The columns of a table: their names, what each one is for, and how that is found from the first rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import final

from ftprl._core import first_row, look_at
from ftprl.data.files import Stream
from ftprl.data.labels import LabelRule, of_values
from ftprl.errors import BadFormat, InvalidInput

KINDS = ("ignore", "label", "weight", "categorical", "numeric", "text")  # in the order that the core counts them
SAMPLE_ROWS = 10_000
SAMPLE_BYTES = 16_000_000
_DISTINCT = 32


@final
@dataclass(frozen=True, slots=True)
class Dialect:
    """How fields are kept apart; without `quote`, quotes are letters like any other."""

    sep: str
    quote: str | None
    header: bool

    @property
    def codes(self) -> tuple[int, int]:
        return ord(self.sep), -1 if self.quote is None else ord(self.quote)


@final
@dataclass(frozen=True, slots=True)
class Wishes:
    """What the user said of the columns."""

    label: str | None
    weight: str | None
    ignore: tuple[str, ...]
    categorical: tuple[str, ...]
    numeric: tuple[str, ...]
    text: tuple[str, ...]

    def kinds(self) -> dict[str, str]:
        """Column to kind; a column is given one kind at most."""
        said: dict[str, str] = {}
        for kind in KINDS:
            value = getattr(self, kind)
            for name in (value,) if isinstance(value, str) else value or ():
                if said.setdefault(name, kind) != kind:
                    raise InvalidInput(f"column {name!r} needs one kind, got {said[name]} and {kind}; keep one.")
        return said


def dialect(format: str, sep: str | None, quote: str | None, header: bool) -> Dialect:
    """The dialect of a format, unless the user says otherwise. Tab-separated text has no quotes by default."""
    sep = ("\t" if format == "tsv" else ",") if sep is None else sep
    quote = ("" if format == "tsv" else '"') if quote is None else quote
    for name, value in (("sep", sep), ("quote", quote)):
        if len(value) > 1 or not value.isascii() or value in ("\n", "\r") or (name == "sep" and not value):
            raise InvalidInput(f"{name} needs a single ASCII character, got {value!r}; pass one such as ';'.")
    if sep == quote:
        raise InvalidInput(f"sep and quote need to differ, got {sep!r} for both; change one.")
    return Dialect(sep, quote or None, header)


def read_header(
    stream: Stream, form: Dialect, block: int, max_row: int, data: bytes = b""
) -> tuple[tuple[str, ...], bytes, int, int]:
    """The columns' names, the bytes read so far (`data` before), where the rows begin in them and at which line."""
    found, last = first_row(data, False, *form.codes), False
    while found is None and not last and len(data) <= max_row:
        block_read = stream.read(block)
        data, last = data + block_read, not block_read
        found = first_row(data, last, *form.codes) if data else None
    if not data:
        raise BadFormat(f"{stream.name}:1: expected a row of columns, got an empty file")
    fields, offset, lines = ([], len(data), 1) if found is None else found
    if len(data[:offset].removesuffix(b"\n")) > max_row:
        raise BadFormat(f"{stream.name}:1: expected a row of at most {max_row} bytes, got a longer one; raise max_row")
    if not fields:
        raise BadFormat(
            f"{stream.name}:1: expected a row of columns, got a quote that is not closed before a separator"
        )
    if not form.header:
        return tuple(str(i + 1) for i in range(len(fields))), data, 0, 1
    try:
        names = tuple(field.decode("utf-8").strip() for field in fields)
    except UnicodeDecodeError:
        raise BadFormat(f"{stream.name}:1: expected column names in UTF-8, got other bytes") from None
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise BadFormat(f"{stream.name}:1: expected each column once, got {name[:40]!r} twice")
        seen.add(name)
    return names, data, offset, 1 + lines


def sample(
    stream: Stream, form: Dialect, data: bytes, offset: int, block: int, columns: int, label: int
) -> tuple[bytes, list[tuple[int, int]], list[str]]:
    """The bytes read so far; of each column how many values there are and how many are numbers; the labels."""
    last, wanted = False, 64_000
    while True:
        seen = data[: offset + SAMPLE_BYTES]
        rows, counts, values = look_at(
            seen, offset, last and len(seen) == len(data), *form.codes, SAMPLE_ROWS, columns, _DISTINCT, label
        )
        if rows >= SAMPLE_ROWS or last or len(data) >= offset + SAMPLE_BYTES:
            return data, counts, [value.decode("utf-8", "backslashreplace") for value in values]
        pieces = [data]
        size = len(data)
        wanted = min(2 * max(size, wanted), offset + SAMPLE_BYTES)
        while size < wanted and not last:
            pieces.append(stream.read(block))
            size += len(pieces[-1])
            last = not pieces[-1]
        data = b"".join(pieces)


def decide(names: Sequence[str], wishes: Wishes, counts: Sequence[tuple[int, int]], where: str) -> dict[str, str]:
    """The kind of every column: as said, else numeric when all its values are numbers, else categorical."""
    said = wishes.kinds()
    for name, kind in said.items():
        if name not in names:
            raise InvalidInput(
                f"{where}: {kind} needs one of the columns {listed(names)}, got {name[:40]!r}; check the name."
            )
    numeric = [present > 0 and numbers == present for present, numbers in counts]
    return {
        name: said.get(name, "numeric" if is_numeric else "categorical")
        for name, is_numeric in zip(names, numeric, strict=True)
    }


def label_rule(kinds: Mapping[str, str], loss: str, positive: str | None, values: Sequence[str]) -> LabelRule:
    """How the label column is read."""
    column = next((name for name, kind in kinds.items() if kind == "label"), "")
    return of_values(loss, positive, column, values)


def arrange(
    names: Sequence[str], kinds: Mapping[str, str], optional: Collection[str], where: str
) -> list[tuple[int, bytes]]:
    """The kinds in the order of a file's columns; a column that `kinds` does not know is ignored."""
    for name, kind in kinds.items():
        if name not in names and kind not in optional:
            raise BadFormat(f"{where}:1: expected a column {name[:40]!r}, got the columns {listed(names)}")
    return [(KINDS.index(kinds.get(name, "ignore")), name.encode()) for name in names]


def check_kinds(columns: Mapping[str, str]) -> dict[str, str]:
    """`columns` as a model keeps them, checked."""
    for name, kind in columns.items():
        if not isinstance(name, str) or kind not in KINDS:
            raise InvalidInput(f"columns needs a name and one of {', '.join(KINDS)}, got {name!r}: {kind!r}; mend it.")
    for kind in ("label", "weight"):
        if list(columns.values()).count(kind) > 1:
            raise InvalidInput(f"columns needs at most one {kind}, got several; keep one.")
    return dict(columns)


def listed(names: Sequence[str]) -> str:
    """Some names, for a message."""
    return ", ".join(repr(name[:40]) for name in names[:8]) + (", ..." if len(names) > 8 else "")
