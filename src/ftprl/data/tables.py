"""The columns of a table: their names, what each one is for, and how that is inferred from the first rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, final

from ftprl._core import first_row, look_at
from ftprl.data.columns import NAMED, ColumnSample, bucket_entry, kind_of_text
from ftprl.data.files import Stream, shown
from ftprl.data.labels import LabelRule, of_values
from ftprl.data.options import ReadingOptions, column_name, column_names
from ftprl.data.protocol import BESIDE, KINDS
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
    boolean: tuple[str, ...]
    date: tuple[str, ...]
    bucket: Mapping[str, int]  # and how many buckets

    def kinds(self) -> dict[str, str]:
        """Column to kind; a column has one kind at most."""
        kinds: dict[str, str] = {}
        for kind in NAMED:
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
    kinds = named.kinds()
    for name, kind in kinds.items():
        if name not in names:
            remedy = nearest(name, names) if len(names) > 1 else f"{_remedy_of_one(names[0], dialect)}."
            raise InvalidInput(
                f"{file}: {kind}= needs one of the columns {listed(names)}, got {name[:40]!r}; {remedy}",
                option=(kind, "sep"),
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
    for kind in BESIDE:
        if list(columns.values()).count(kind) > 1:
            raise InvalidInput(f"columns= needs at most one {kind}, got several; keep one.")
    return dict(columns)


def nearest(name: str, names: Sequence[str]) -> str:
    """What to do about a column that does not exist.

    >>> nearest("prise", ["carat", "price"]), nearest("x", ["carat", "price"])
    ("did you mean 'price'?", 'check the name.')
    >>> nearest("Y", ["carat", "y"])
    "did you mean 'y'?"
    """
    import difflib

    known = [one[:100] for one in names[:1000]]
    near = [one for one in known if one.lower() == name[:100].lower()] or difflib.get_close_matches(
        name[:100], known, 1
    )
    return f"did you mean {near[0][:40]!r}?" if near else "check the name."


def listed(names: Sequence[str]) -> str:
    """Some names, for a message: the first ones and, since it is often the label, the last."""
    first = ", ".join(repr(name[:40]) for name in names[: 8 if len(names) <= 8 else 7]) or "(none)"
    return first if len(names) <= 8 else f"{first}, ..., {names[-1][:40]!r}"


def without_label(names: Sequence[str], format: str) -> InvalidInput:
    """The error of a table for which no label is named."""
    header = ", or header=False if the first row is data" if format in ("csv", "tsv") else ""
    return InvalidInput(
        f"label= needs the name of a column, got none; pass one of {listed(names)}{header}.",
        option=("label", "header"),
    )


def named_columns(options: ReadingOptions) -> NamedColumns:
    """The columns whose kind the options name."""
    return NamedColumns(
        label=None if options.label is None else column_name(options.label),
        weight=None if options.weight is None else _weight_column(options.weight),
        ignore=column_names(options.ignore),
        categorical=column_names(options.categorical),
        numeric=column_names(options.numeric),
        text=column_names(options.text),
        boolean=column_names(options.boolean),
        date=column_names(options.date),
        bucket=dict(bucket_entry(entry) for entry in column_names(options.bucket)),
    )


def _weight_column(weight: object) -> str:
    if not isinstance(weight, str | int | float):
        raise InvalidInput(f"weight= needs the name of a column, got {type(weight).__name__}; name one of the table.")
    return column_name(weight)
