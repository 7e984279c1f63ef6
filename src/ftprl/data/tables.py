"""The columns of a table: their names, what each one is for, and how that is inferred from the first rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, final

from ftprl._core import first_row, look_at
from ftprl.data.files import Stream
from ftprl.data.labels import LabelRule, of_values
from ftprl.data.protocol import KINDS
from ftprl.errors import BadFormat, InvalidInput

SAMPLE_ROWS = 10_000
SAMPLE_BYTES = 16_000_000
_DISTINCT = 32


@final
class Dialect(NamedTuple):
    """How fields are separated and quoted; without `quote` a quotation mark is a character like any other."""

    sep: str
    quote: str | None
    header: bool

    @property
    def codes(self) -> tuple[int, int]:
        """The separator and the quote as the core takes them: bytes, -1 for no quote."""
        return ord(self.sep), -1 if self.quote is None else ord(self.quote)


@final
class NamedColumns(NamedTuple):
    """The columns whose kind the user named."""

    label: str | None
    weight: str | None
    ignore: tuple[str, ...]
    categorical: tuple[str, ...]
    numeric: tuple[str, ...]
    text: tuple[str, ...]

    def kinds(self) -> dict[str, str]:
        """Column to kind; a column has one kind at most."""
        kinds: dict[str, str] = {}
        for kind in KINDS:
            value = getattr(self, kind)
            for name in (value,) if isinstance(value, str) else value or ():
                if kinds.setdefault(name, kind) != kind:
                    raise InvalidInput(
                        f"column {name!r} needs one kind, got {kinds[name]}= and {kind}=; keep one.",
                        option=(kinds[name], kind),
                    )
        return kinds


@final
class Header(NamedTuple):
    """The names of the columns, the bytes read for them, and where in these the rows begin: the offset and the line."""

    names: tuple[str, ...]
    data: bytes
    offset: int
    line: int


@final
class Sample(NamedTuple):
    """The bytes read; of each column how many values it has and how many of them are numbers; the first labels."""

    data: bytes
    counts: list[tuple[int, int]]
    labels: list[str]


def dialect(format: str, sep: str | None, quote: str | None, header: bool) -> Dialect:
    """The dialect of a format, unless options are given. Tab-separated text has no quotes by default."""
    sep = ("\t" if format == "tsv" else ",") if sep is None else sep
    quote = ("" if format == "tsv" else '"') if quote is None else quote
    for name, value, example in (("sep", sep, "';'"), ("quote", quote, "'\"', or '' for none")):
        if len(value) > 1 or not value.isascii() or value in ("\n", "\r") or (name == "sep" and not value):
            raise InvalidInput(f"{name}= needs a single ASCII character, got {value!r}; pass one, such as {example}.")
    if sep == quote:
        raise InvalidInput(
            f"sep= and quote= need to differ, got {sep!r} for both; change one.", option=("sep", "quote")
        )
    return Dialect(sep, quote or None, header)


def read_header(stream: Stream, dialect: Dialect, block_size: int, max_row: int, data: bytes = b"") -> Header:
    """The first row of a file, of which `data` has been read already."""
    row, last = first_row(data, False, *dialect.codes), False
    while row is None and not last and len(data) <= max_row:
        block = stream.read(block_size)
        data, last = data + block, not block
        row = first_row(data, last, *dialect.codes) if data else None
    if not data:
        raise BadFormat(f"{stream.name}:1: expected a row of columns, got an empty file; check the path.")
    fields, offset, lines = ([], len(data), 1) if row is None else row
    if len(data[:offset].removesuffix(b"\n")) > max_row:
        raise BadFormat(
            f"{stream.name}:1: expected a row of at most {max_row} bytes, got a longer one; raise max_row=",
            option="max_row",
        )
    if not fields:
        raise BadFormat(
            f"{stream.name}:1: expected a row of columns, got a quote that is not closed before a separator;"
            " close it, or pass another quote=",
            option="quote",
        )
    if not dialect.header:
        return Header(tuple(str(i + 1) for i in range(len(fields))), data, 0, 1)
    return Header(_column_names(fields, stream.name), data, offset, 1 + lines)


def _column_names(fields: Sequence[bytes], file: str) -> tuple[str, ...]:
    try:
        names = tuple(field.decode("utf-8").strip() for field in fields)
    except UnicodeDecodeError:
        raise BadFormat(f"{file}:1: expected column names in UTF-8, got other bytes; convert the file.") from None
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise BadFormat(f"{file}:1: expected each column once, got {name[:40]!r} twice; rename one.")
        seen.add(name)
    return names


def sample(stream: Stream, dialect: Dialect, header: Header, block_size: int, label: int) -> Sample:
    """The first rows, with the label in column number `label`."""
    data, end = header.data, header.offset + SAMPLE_BYTES
    last, wanted = False, 64_000
    while True:
        seen = data[:end]
        rows, counts, labels = look_at(
            seen,
            header.offset,
            last and len(seen) == len(data),
            *dialect.codes,
            rows=SAMPLE_ROWS,
            columns=len(header.names),
            distinct=_DISTINCT,
            label=label,
        )
        if rows >= SAMPLE_ROWS or last or len(data) >= end:
            return Sample(data, counts, [value.decode("utf-8", "backslashreplace") for value in labels])
        blocks, size = [data], len(data)
        wanted = min(2 * max(size, wanted), end)
        while size < wanted and not last:
            blocks.append(stream.read(block_size))
            size += len(blocks[-1])
            last = not blocks[-1]
        data = b"".join(blocks)


def decide(names: Sequence[str], named: NamedColumns, counts: Sequence[tuple[int, int]], file: str) -> dict[str, str]:
    """The kind of every column: as named, else numeric when all its values are numbers, else categorical."""
    kinds = named.kinds()
    for name, kind in kinds.items():
        if name not in names:
            remedy = "check the name" if len(names) > 1 else "check sep=, since there is one column only"
            raise InvalidInput(
                f"{file}: {kind}= needs one of the columns {listed(names)}, got {name[:40]!r}; {remedy}.",
                option=(kind, "sep"),
            )
    numeric = [present > 0 and numbers == present for present, numbers in counts]
    return {
        name: kinds.get(name, "numeric" if is_numeric else "categorical")
        for name, is_numeric in zip(names, numeric, strict=True)
    }


def label_rule(kinds: Mapping[str, str], loss: str, positive: str | None, values: Sequence[str]) -> LabelRule:
    """How the label column is read."""
    column = next((name for name, kind in kinds.items() if kind == "label"), "")
    return of_values(loss, positive, column, values)


def arrange(
    names: Sequence[str], kinds: Mapping[str, str], optional: Collection[str], file: str
) -> list[tuple[int, bytes]]:
    """The kinds in the order of a file's columns; a column that `kinds` does not know is ignored."""
    for name, kind in kinds.items():
        if name not in names and kind not in optional:
            raise BadFormat(
                f"{file}:1: expected a column {name[:40]!r}, got the columns {listed(names)}; add it, or check sep=",
                option="sep",
            )
    return [(KINDS.index(kinds.get(name, "ignore")), name.encode()) for name in names]


def check_kinds(columns: Mapping[str, str]) -> dict[str, str]:
    """`columns` as a model keeps them, checked."""
    for name, kind in columns.items():
        if not isinstance(name, str) or kind not in KINDS:
            raise InvalidInput(
                f"columns= needs a name and one of {', '.join(KINDS)}, got {name!r}: {kind!r}; correct it."
            )
    for kind in ("label", "weight"):
        if list(columns.values()).count(kind) > 1:
            raise InvalidInput(f"columns= needs at most one {kind}, got several; keep one.")
    return dict(columns)


def listed(names: Sequence[str]) -> str:
    """Some names, for a message."""
    return ", ".join(repr(name[:40]) for name in names[:8]) + (", ..." if len(names) > 8 else "")
