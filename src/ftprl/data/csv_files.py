"""CSV and TSV files: how fields are separated, the names of columns, and what each is for, by the first rows."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, final

from ftprl._core import first_row, look_at
from ftprl.data.columns import (
    SAMPLE_BYTES,
    SAMPLE_ROWS,
    NamedColumns,
    check_columns,
    known_columns,
    listed,
    named_columns,
    nearest,
    settle,
    warn_of_unknown,
)
from ftprl.data.files import Stream, shown
from ftprl.data.kinds import CODES, ColumnSample, kind_of_text
from ftprl.data.labels import needs_values
from ftprl.data.options import SEPARATORS, ReadingOptions
from ftprl.data.plan import Plan, plan_of
from ftprl.data.text import TextSource, settled_source
from ftprl.errors import BadFormat, InvalidInput

_DISTINCT = 32


_FITTING_ROWS, _FITTING_BYTES = 100, 64_000  # that are looked at to see which character separates columns


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
class Header(NamedTuple):
    """The names of the columns, the bytes read for them, and where in these the rows begin: the offset and the line."""

    names: tuple[str, ...]
    data: bytes
    offset: int
    line: int


@final
class Sample(NamedTuple):
    """The bytes read; what they say of each column; the first labels."""

    data: bytes
    columns: list[ColumnSample]
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
        cuts = [sep for sep in SEPARATORS if len((first_row(data, True, ord(sep), dialect.codes[1]) or [""])[0]) > 1]
        raise BadFormat(
            f"{stream.name}:1: expected a row of columns, got a quote that is not closed before a separator;"
            + (f" pass sep={cuts[0]!r}" if cuts else " close it, or pass another quote= or sep="),
            option=("quote", "sep"),
        )
    if fields == [b""]:
        raise BadFormat(f"{stream.name}:1: expected a row of columns, got an empty line; drop it, or check the path.")
    if not dialect.header:
        return Header(tuple(str(i + 1) for i in range(len(fields))), data, 0, 1)
    return Header(_column_names(fields, stream.name), data, offset, 1 + lines)


def _column_names(fields: Sequence[bytes], file: str) -> tuple[str, ...]:
    try:
        names = tuple(field.decode("utf-8").strip() for field in fields)
    except UnicodeDecodeError:
        wide = fields[0][:2] in (b"\xff\xfe", b"\xfe\xff")
        found, code = ("UTF-16", "UTF-16") if wide else (shown(b",".join(fields)[:60]), "latin1")
        raise BadFormat(
            f"{file}:1: expected column names in UTF-8, got {found}; convert it, as with iconv -f {code} -t UTF-8 FILE."
        ) from None
    seen: set[str] = set()
    for name in names:
        if name in seen:
            data = ", or pass header=False, since the first row looks like data" if looks_like_data(names) else ""
            raise BadFormat(
                f"{file}:1: expected each column once, got {name[:40]!r} twice; rename one{data}.", option="header"
            )
        seen.add(name)
    return names


def sample(
    stream: Stream, dialect: Dialect, header: Header, block_size: int, label: int, keep: Sequence[int]
) -> Sample:
    """The first rows, with the label in column number `label`; the numbers of the columns `keep` are kept."""
    data, end = header.data, header.offset + SAMPLE_BYTES
    last, wanted = False, 64_000
    while True:
        seen = data[:end]
        rows, seen_columns, labels = look_at(
            seen,
            header.offset,
            last and len(seen) == len(data),
            *dialect.codes,
            rows=SAMPLE_ROWS,
            columns=len(header.names),
            distinct=_DISTINCT,
            label=label,
            keep=list(keep),
        )
        if rows >= SAMPLE_ROWS or last or len(data) >= end:
            columns = [ColumnSample(*column) for column in seen_columns]
            return Sample(data, columns, [value.decode("utf-8", "backslashreplace") for value in labels])
        blocks, size = [data], len(data)
        wanted = min(2 * max(size, wanted), end)
        while size < wanted and not last:
            blocks.append(stream.read(block_size))
            size += len(blocks[-1])
            last = not blocks[-1]
        data = b"".join(blocks)


def decide(
    names: Sequence[str], named: NamedColumns, samples: Sequence[ColumnSample], file: str, dialect: Dialect
) -> dict[str, str]:
    """The kind of every column: as named, else what all its values in the sample are."""
    kinds, there = named.kinds(), set(names)
    for name, kind in kinds.items():
        if name not in there:
            remedy = nearest(name, names) if len(names) > 1 else f"{_remedy_of_one(names[0], dialect)}."
            if not dialect.header:
                remedy = "drop header=False if the first row has the names, or pass a number."
            elif looks_like_data(names) and len(names) > 1:
                remedy = "pass header=False and a number if the first row is data, or check the name."
            raise InvalidInput(
                f"{file}: {kind}= needs one of the columns {listed(names)}, got {name[:40]!r}; {remedy}",
                option=(kind, "sep", "header"),
            )
    for name, sample in zip(names, samples, strict=True):
        if name not in kinds:
            if dialect.sep != ",":
                _refuse_commas(name, sample, file)
            kinds[name] = kind_of_text(sample)
    return {name: kinds[name] for name in names}


def _remedy_of_one(header: str, dialect: Dialect) -> str:
    other = next((sep for sep in (";", "\t", "|", ",") if sep != dialect.sep and sep in header), None)
    return f"there is one column only: pass sep={other!r}" if other else "check sep=, since there is one column only"


def _refuse_commas(name: str, sample: ColumnSample, file: str) -> None:
    """Numbers with a decimal comma would be read as categories."""
    if sample.commas and sample.commas + sample.numbers == sample.present:
        raise BadFormat(
            f"{file}: column {shown(name)[:40]!r}: expected numbers with a decimal point, got a comma in"
            f" {shown(sample.example)!r}; replace the commas, or pass categorical= or ignore= with the column.",
            option=("categorical", "ignore"),
        )


def arrange(
    names: Sequence[str], kinds: Mapping[str, str], optional: Collection[str], file: str
) -> list[tuple[int, bytes]]:
    """The kinds in the order of a file's columns; a column that `kinds` does not know is ignored."""
    check_columns(names, kinds, optional, f"{file}:1", ", or check sep=")
    return [(CODES[kinds.get(name, "ignore")], name.encode()) for name in names]


def looks_like_data(names: Sequence[str]) -> bool:
    """Return whether a first row has values rather than names: an empty field or a number.

    >>> looks_like_data(["1", "red"]), looks_like_data(["size", "colour"])
    (True, False)
    """
    return any(not name or re.fullmatch(r"[-+]?[0-9.]+(e[-+]?[0-9]+)?", name, re.IGNORECASE) for name in names)


# ---- which character separates the columns ----
def recognised(dialect: Dialect, stream: Stream, block_size: int) -> tuple[Dialect, bytes]:
    """The dialect of a CSV file, and the bytes read to see it.

    A comma, unless the header has none outside quotes. Then another separator is taken if it is the only one that
    cuts the header and each of the first rows into the same number of fields, two or more: a file of one column has
    no feature beside its label.
    """
    data = block = stream.read(block_size)
    while block and len(data) < _FITTING_BYTES:
        block = stream.read(block_size)
        data += block
    is_all = not block
    row = first_row(data, is_all, *dialect.codes) if data else None
    if row is None or len(row[0]) > 1:
        return dialect, data
    others = [sep for sep in SEPARATORS if sep not in (dialect.sep, dialect.quote)]
    fitting = [sep for sep in others if _fits(dialect._replace(sep=sep), data, is_all)]
    return (dialect._replace(sep=fitting[0]) if len(fitting) == 1 else dialect), data


def header_of(stream: Stream, plan: Plan, data: bytes = b"") -> tuple[Header, Dialect]:
    """The header of a table whose columns are known, and its dialect: each CSV file may have another separator."""
    dialect = plan.dialect
    assert dialect is not None
    header = read_header(stream, dialect, plan.block_size, plan.max_row, data)
    if not plan.recognises_separator:
        return header, dialect
    optional = plan.optional_kinds
    needed = [name for name, kind in (plan.kinds or {}).items() if kind not in optional]
    fitting = with_columns(dialect, header.data[: header.offset], needed)
    if fitting == dialect:
        return header, dialect
    return read_header(stream, fitting, plan.block_size, plan.max_row, header.data), fitting


def with_columns(dialect: Dialect, data: bytes, names: Collection[str]) -> Dialect:
    """The dialect in which the header has these columns, if another separator than that of the dialect gives them.

    For files that a model reads: their columns are known, so that the header decides.
    """
    for sep in (dialect.sep, *SEPARATORS):
        row = None if sep == dialect.quote else first_row(data, True, ord(sep), dialect.codes[1])
        if row is not None and {field.decode("utf-8", "replace").strip() for field in row[0]}.issuperset(names):
            return dialect._replace(sep=sep)
    return dialect


def _fits(dialect: Dialect, data: bytes, is_all: bool) -> bool:
    """Whether the first whole rows all have as many fields as the header, and more than one."""
    fields, at = 0, 0
    for number in range(_FITTING_ROWS):
        is_last = is_all and at + _FITTING_BYTES >= len(data)
        row = first_row(data[at : at + _FITTING_BYTES], is_last, *dialect.codes) if at < len(data) else None
        if row is None:
            break
        if number == 0:
            fields = len(row[0])
        elif row[0] != [b""] and len(row[0]) != fields:
            return False
        at += row[1]
    return fields > 1


# ---- what `ftprl.data.open` asks for ----
def open_files(files: tuple[str, ...], options: ReadingOptions) -> TextSource:
    """Open CSV or TSV files as a source."""
    assert options.format is not None
    named = named_columns(options)
    named.kinds()  # refuses a column with two kinds
    plan = plan_of(options, options.format)
    plan = plan._replace(dialect=dialect(options.format, options.sep, options.quote, options.header))
    return settled_source(files, lambda stream: _settle(stream, plan, named, options))


def _settle(stream: Stream, plan: Plan, named: NamedColumns, options: ReadingOptions) -> tuple[Plan, bytes]:
    """Return the plan with the kinds of the columns and the rule for the labels, and the bytes read for that."""
    dialect = plan.dialect
    assert dialect is not None
    size, data = plan.block_size, b""
    if options.sep is None and options.format == "csv":
        dialect, data = recognised(dialect, stream, size)
    columns = known_columns(options, named)
    if columns is None:
        header = read_header(stream, dialect, size, plan.max_row, data)
        label = named.label
    else:
        header, dialect = header_of(stream, plan._replace(dialect=dialect, columns=columns), data)
        label = next((name for name, kind in columns.kinds.items() if kind == "label"), None)
        check_columns(header.names, columns.kinds, plan.optional_kinds, f"{stream.name}:1", ", or check sep=")
        warn_of_unknown([name for name in header.names if name not in columns.kinds])
    at = header.names.index(label) if label in header.names else len(header.names)
    keep = [header.names.index(name) for name in named.kept if name in header.names]
    first = Sample(header.data, [], [])
    if columns is None or (at < len(header.names) and needs_values(plan.loss, plan.positive)):
        first = sample(stream, dialect, header, size, at, keep)
    if columns is None:
        kinds = decide(header.names, named, first.columns, stream.name, dialect)
        columns = settle(kinds, dict(zip(header.names, first.columns, strict=True)), named.counts, options.missing)
    return plan._replace(dialect=dialect).with_columns(columns, lambda: first.labels), first.data
