"""JSON lines: one object per line; what each of its columns is for is settled by the first lines."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, final

from ftprl._core import look_at_json
from ftprl.data import frames, interactions, records, tables
from ftprl.data.columns import ColumnPlan, ColumnSample, kind_of_text, settle
from ftprl.data.files import Stream, is_receipt
from ftprl.data.options import JSON_LINES, ReadingOptions
from ftprl.data.plan import Plan, plan_of
from ftprl.data.tables import known_columns, named_columns
from ftprl.data.text import TextSource, settled_source
from ftprl.errors import BadFormat, InvalidInput

if TYPE_CHECKING:
    from ftprl._core import ColumnCounts

_DISTINCT = 32
_FIRST_LOOK = 64_000


def open_files(files: tuple[str, ...], options: ReadingOptions) -> TextSource:
    """Open files of JSON lines as a source."""
    why = " is for CSV and TSV files, got JSON lines; drop it."
    options.refuse(("sep", "quote"), why)
    if not options.header:
        raise InvalidInput(f"header=False{why}", option="header")
    named, plan = named_columns(options), plan_of(options, JSON_LINES)
    known = known_columns(options, named)
    return settled_source(files, lambda stream: _settle(stream, plan, named, known, options.missing))


def _settle(
    stream: Stream, plan: Plan, named: tables.NamedColumns, known: ColumnPlan | None, missing: str | None
) -> tuple[Plan, bytes]:
    """Return the plan with the kinds of the columns and the rule for the labels, and the bytes read for that."""
    kept = {} if known is None else known.kinds
    label = named.label if known is None else next((name for name, kind in kept.items() if kind == "label"), None)
    data, rows, columns, labels = _sample(stream, plan.block_size, label or "", list(named.bucket))
    if not plan.skip_bad_rows:
        _check_first_line(stream, data)
    if kept and any(_rows(data)) and not (plan.reads_other_columns and missing == "ignore"):
        is_open = plan.reads_other_columns
        records.check_keys(_rows(data), kept, is_open=is_open, where=f"{stream.name}:1", null="null")
    if known is None:
        kinds, is_sparse = _decide(columns, named, stream.name, rows)
        samples = {column.name: column.sample for column in columns}
        known = settle(kinds, samples, named.bucket, missing or ("ignore" if is_sparse else None))
        if columns and not is_sparse:  # of word counts and the like, any key may come later
            interactions.checked(plan.interactions, known.kinds)
    return plan.with_columns(known, lambda: labels), data


def _check_first_line(stream: Stream, data: bytes) -> None:
    """Refuse a file that is one JSON value, such as an array of all rows, rather than one object per line."""
    text = data.lstrip()
    first, _, rest = text.partition(b"\n")
    if first.startswith(b"["):
        found, program = "an array", ".[]"
    elif first.startswith(b"{") and rest and not first.rstrip().endswith(b"}"):
        found, program = "an object of several lines", "."
    else:
        return
    if is_receipt(text):
        found, remedy = "a receipt", "pass the data"
    else:
        remedy = (
            f"convert it, as with jq -c '{program}' FILE > rows.jsonl, or load it in Python and pass the list of dicts"
        )
    line = data[: len(data) - len(text)].count(b"\n") + 1
    raise BadFormat(f"{stream.name}:{line}: expected one JSON object per line, got {found}; {remedy}.")


def _rows(data: bytes) -> Iterator[dict[str, Any]]:
    """The objects of the first lines; others are reported when they are read."""
    for line in data.split(b"\n")[: tables.SAMPLE_ROWS]:
        with contextlib.suppress(ValueError, RecursionError):
            row = json.loads(line)
            if isinstance(row, dict):
                yield row


@final
class _JsonColumn(NamedTuple):
    """A column of the first lines: how many of its values are numbers, whether a line may have several, the rest."""

    name: str
    numbers: int
    has_several: bool
    sample: ColumnSample


def _sample(
    stream: Stream, block_size: int, label: str, keep: Sequence[str]
) -> tuple[bytes, int, list[_JsonColumn], list[str]]:
    """The bytes of the first lines, how many these are, their columns, and the first labels."""
    data, last, wanted = b"", False, _FIRST_LOOK
    names = [name.encode("utf-8", "surrogatepass") for name in keep]
    while True:
        blocks, size = [data], len(data)
        while size < wanted and not last:
            blocks.append(stream.read(min(block_size, wanted - size)))
            size += len(blocks[-1])
            last = not blocks[-1]
        data = b"".join(blocks)
        rows, columns, labels = look_at_json(data, last, tables.SAMPLE_ROWS, label.encode(), _DISTINCT, names)
        if rows >= tables.SAMPLE_ROWS or last or size >= tables.SAMPLE_BYTES:
            texts = [value.decode("utf-8", "backslashreplace") for value in labels]
            return data, rows, _without_empty_objects([_column(rows, *column) for column in columns]), texts
        # As many bytes as the rows so far make likely, so that lines are not looked at many times.
        likely = size * tables.SAMPLE_ROWS // rows * 17 // 16 if rows else 2 * size
        wanted = min(max(2 * size, likely), tables.SAMPLE_BYTES)


def _column(rows: int, name: bytes, numbers: int, has_several: bool, counts: ColumnCounts) -> _JsonColumn:
    sample = ColumnSample(*counts)
    missing = 0 if has_several else rows - sample.cells  # lines that have no such key, or null
    sample = sample._replace(cells=sample.cells + missing, empty=sample.empty + missing, absent=sample.absent + missing)
    return _JsonColumn(name.decode("utf-8", "backslashreplace"), numbers, has_several, sample)


def _without_empty_objects(columns: list[_JsonColumn]) -> list[_JsonColumn]:
    """The columns but for objects that are null in some lines."""
    inside = {column.name[:at] for column in columns for at, c in enumerate(column.name) if c == "."}
    return [column for column in columns if column.name not in inside or column.sample.present]


def _decide(
    columns: list[_JsonColumn], named: tables.NamedColumns, file: str, rows: int
) -> tuple[dict[str, str], bool]:
    """The kinds of the columns, and whether most lines lack most of them.

    A column is what it is named, else numeric when all values are numbers, else as text with these values. Rows with
    more columns than a model keeps, such as counts of words, are read by the type of each value alone.
    """
    names = [column.name for column in columns]
    kinds = frames.for_structures(named.kinds(), names, f"{file}: ") if names else named.kinds()
    kinds |= dict.fromkeys(named.ignore, "ignore")  # an object as a whole, whatever it has in later lines
    is_sparse = 2 * sum(column.sample.cells - column.sample.empty for column in columns) < rows * len(columns)
    if len(names) > records.MOST_NAMES:
        return kinds, is_sparse
    by_values = {column.name: _kind(column) for column in columns}
    return {**by_values, **kinds}, is_sparse


def _kind(column: _JsonColumn) -> str:
    if column.sample.present and column.numbers == column.sample.cells - column.sample.empty:
        return "numeric"
    return "categorical" if column.has_several else kind_of_text(column.sample, may_be_number=False)
