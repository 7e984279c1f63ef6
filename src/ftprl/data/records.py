"""Dicts and JSON lines, which are rows with names: what each name is for is settled by the first rows."""

from __future__ import annotations

import contextlib
import json
import numbers
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple, final

from ftprl._core import look_at_json
from ftprl.data.arrow_cells import DEEPEST, has_inside
from ftprl.data.columns import (
    SAMPLE_BYTES,
    SAMPLE_ROWS,
    ColumnPlan,
    NamedColumns,
    for_structures,
    known_columns,
    listed,
    named_columns,
    settle,
    warn_of_unknown,
)
from ftprl.data.files import Stream, is_receipt
from ftprl.data.frames import sample_of, text_of
from ftprl.data.kinds import FEATURES, KEEPING_VALUES, ColumnSample, kind_of_text
from ftprl.data.options import JSON_LINES, RECORDS, ReadingOptions, column_name
from ftprl.data.parts import ORIGIN
from ftprl.data.plan import Plan, check_interactions, plan_of
from ftprl.data.text import TextSource, settled_source
from ftprl.errors import BadFormat, InvalidInput

if TYPE_CHECKING:
    from ftprl._core import ColumnCounts


MOST_NAMES = 5000  # whose kinds are kept in the model
_FIRST = 100  # rows whose keys are compared with the columns of a model


def decide(sample: Sequence[Any], named: NamedColumns) -> tuple[dict[str, str], dict[str, ColumnSample], bool]:
    """The kinds of the keys in the first rows, the samples, and whether most dicts lack most of the keys.

    A key is what it is named, else numeric when all its values are numbers, else as text with these values, or
    categorical if it has lists. Rows with more names than a model keeps, such as counts of words, are read by the type
    of each value alone.
    """
    values: dict[str, list[Any]] = {}
    has_lists = set[str]()
    for row in sample:
        for name, value in flat_items(row) if isinstance(row, Mapping) else ():
            if is_list(value):
                has_lists.add(name)
                for element in _elements(value):
                    values.setdefault(name, []).append(element)
            else:
                own = values.setdefault(name, [])
                if not is_missing(value):
                    own.append(value)
    present = {name: count for name, own in values.items() if (count := sum(value != "" for value in own))}
    inside = {name[:at] for name in values for at, letter in enumerate(name) if letter == "."}
    values = {name: own for name, own in values.items() if name in present or name not in inside}  # no empty dict
    kinds = _with_fields(named.kinds(), list(values))
    if len(values) > MOST_NAMES:
        values = {name: own for name, own in values.items() if name in kinds}
    samples = {
        name: _sample(name, own, len(own) if name in has_lists else len(sample), kinds.get(name))
        for name, own in values.items()
    }
    for name, own in values.items():
        if name not in kinds:
            is_numeric = name in present and all(_is_number(value) for value in own if value != "")
            by_text = "categorical" if name in has_lists else kind_of_text(samples[name], may_be_number=False)
            kinds[name] = "numeric" if is_numeric else by_text
    ordered = {name: kinds[name] for name in dict.fromkeys((*values, *kinds)) if name in kinds}
    is_sparse = 2 * sum(present.get(name, 0) for name in values) < len(values) * len(sample)
    return ordered, samples, is_sparse


def flat_items(row: Mapping[Any, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """The keys and values of a dict, with those of dicts within it under the name `outer.inner`."""
    for key, value in row.items():
        name = before + (key if isinstance(key, str) else column_name(key))
        if isinstance(value, dict):
            yield from flat_items(value, f"{name}.")
        else:
            yield name, value


def unknown_keys(row: Mapping[Any, Any], columns: Mapping[str, str], before: str = "", depth: int = 1) -> Iterator[str]:
    """The keys that are neither columns nor within one: a map, or a dict that is left out."""
    for key, value in row.items() if depth <= DEEPEST else ():
        name = before + (key if isinstance(key, str) else column_name(key))
        is_column, has_columns = name in columns, has_inside(columns, name)
        if isinstance(value, dict):
            if has_columns or not is_column:
                yield from unknown_keys(value, columns, f"{name}.", depth + 1)
        elif not is_column and not (has_columns and is_list(value)):
            yield name
        elif not is_column:
            pairs = [element for element in value if isinstance(element, dict)]
            named = {f"{name}.{pair.get('name', pair.get('key'))}": pair for pair in pairs}
            yield from (one for one in named if one not in columns)
            if len(pairs) < len(value):
                yield name


def missing_keys(rows: Iterable[Any], columns: Mapping[str, str]) -> list[str]:
    """The columns of features that none of these rows has, not even as a missing value or within a dict or a list."""
    missing = [name for name, kind in columns.items() if kind in FEATURES]
    for row in rows if missing else ():
        if isinstance(row, Mapping):
            keys = {str(key) for key in row}
            missing = [name for name in missing if name not in keys and not _is_near(name, keys)]
        if not missing:
            break
    return missing


def _is_near(name: str, keys: Set[str]) -> bool:
    """Whether one of some keys is an object that a column may be in, or is within the column."""
    outer = (name[:at] for at, letter in enumerate(name) if letter == ".")
    return any(one in keys for one in outer) or any(key.startswith(f"{name}.") for key in keys)


def check_keys(
    rows: Iterable[Any], columns: Mapping[str, str], *, is_open: bool, where: str = ORIGIN, null: str = "None"
) -> None:
    """Refuse dicts that lack a column of the model in every row, and warn of other keys in the first ones.

    Rows of a model of dicts and JSON lines may have any keys, and need at least one that it knows. `null` is how a
    missing value is written.
    """
    rest = iter(rows)
    first = list(islice(rest, _FIRST))
    missing = missing_keys(chain(first, rest), columns)
    features = [name for name, kind in columns.items() if kind in FEATURES]
    first = [row for row in first if isinstance(row, Mapping)]
    unknown = list(dict.fromkeys(key for row in first for key in unknown_keys(row, columns)))
    keys = list(dict.fromkeys(name for row in first for name, _ in flat_items(row)))
    if missing and (not is_open or (unknown and len(missing) == len(features))):
        raise BadFormat(
            f"{where}: expected a key {missing[0][:40]!r}, got the keys {listed(keys)}; add it, with {null} where it is"
            " missing."
        )
    warn_of_unknown(unknown, "keys", is_open=is_open)


def is_list(value: Any) -> bool:
    """Whether a value of a dict is several ones."""
    return isinstance(value, list | tuple) or (type(value).__name__ == "ndarray" and value.ndim > 0)


def _elements(values: Any) -> Iterator[Any]:
    """The elements of a list that are there; of those with a name, the values."""
    for element in values:
        value = element.get("value") if isinstance(element, dict) else element
        if not (isinstance(value, dict) or is_list(value) or is_missing(value)):  # the parser refuses the former
            yield value


def _with_fields(kinds: Mapping[str, str], names: Sequence[str]) -> dict[str, str]:
    """The kinds that were named; those of a dict hold for all that it has."""
    passed = dict[str, str]()
    for name, kind in kinds.items():
        fields = [] if name in names else [other for other in names if other.startswith(f"{name}.")]
        passed |= dict.fromkeys(fields, kind)
        if not fields or kind == "ignore":  # a dict that is left out may have other keys in later rows
            passed[name] = kind
    return {**passed, **{name: kind for name, kind in kinds.items() if name in names}}


def _sample(name: str, values: Sequence[Any], rows: int, kind: str | None) -> ColumnSample:
    import pyarrow as pa

    cells = [text_of(value).encode("utf-8", "backslashreplace") for value in values]
    texts = pa.chunked_array([pa.array(cells, pa.binary())])
    sample = sample_of(name, texts, kind if kind in KEEPING_VALUES else "text")
    missing = rows - len(values)
    return sample._replace(cells=rows, empty=sample.empty + missing, absent=sample.absent + missing)


def is_missing(value: Any) -> bool:
    """Whether a value of a dict is none: None, NaN, NaT, and NA of pandas."""
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Number) and not isinstance(value, bool) and type(value).__name__ != "bool"


def label_texts(sample: Sequence[Any], label: str) -> list[str]:
    """The distinct labels of the first rows."""
    values = (value for row in sample if isinstance(row, Mapping) for value in _values_of(row, label))
    return list(dict.fromkeys(text_of(value) for value in values if not is_missing(value)))[:32]


def _values_of(row: Mapping[Any, Any], name: str) -> Iterator[Any]:
    value = row.get(name)
    if value is None and "." in name:
        value = next((own for path, own in flat_items(row) if path == name), None)
    return _elements(value if is_list(value) else [value])


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
    stream: Stream, plan: Plan, named: NamedColumns, known: ColumnPlan | None, missing: str | None
) -> tuple[Plan, bytes]:
    """Return the plan with the kinds of the columns and the rule for the labels, and the bytes read for that."""
    kept = {} if known is None else known.kinds
    label = named.label if known is None else next((name for name, kind in kept.items() if kind == "label"), None)
    data, rows, columns, labels = _sample_lines(stream, plan.block_size, label or "", named.kept)
    if not plan.skip_bad_rows:
        _check_first_line(stream, data)
    if kept and any(_objects_of(data)) and not (plan.reads_other_columns and missing == "ignore"):
        is_open = plan.reads_other_columns
        check_keys(_objects_of(data), kept, is_open=is_open, where=f"{stream.name}:1", null="null")
    if known is None:
        kinds, is_sparse = _decide_by_lines(columns, named, stream.name, rows)
        samples = {column.name: column.sample for column in columns}
        known = settle(kinds, samples, named.counts, missing or ("ignore" if is_sparse else None))
        if columns and not is_sparse:  # of word counts and the like, any key may come later
            check_interactions(plan.interactions, known.kinds)
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


def _objects_of(data: bytes) -> Iterator[dict[str, Any]]:
    """The objects of the first lines; others are reported when they are read."""
    for line in data.split(b"\n")[:SAMPLE_ROWS]:
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


def _sample_lines(
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
        rows, columns, labels = look_at_json(data, last, SAMPLE_ROWS, label.encode(), _DISTINCT, names)
        if rows >= SAMPLE_ROWS or last or size >= SAMPLE_BYTES:
            texts = [value.decode("utf-8", "backslashreplace") for value in labels]
            return data, rows, _without_empty_objects([_json_column(rows, *column) for column in columns]), texts
        # As many bytes as the rows so far make likely, so that lines are not looked at many times.
        likely = size * SAMPLE_ROWS // rows * 17 // 16 if rows else 2 * size
        wanted = min(max(2 * size, likely), SAMPLE_BYTES)


def _json_column(rows: int, name: bytes, numbers: int, has_several: bool, counts: ColumnCounts) -> _JsonColumn:
    sample = ColumnSample(*counts)
    missing = 0 if has_several else rows - sample.cells  # lines that have no such key, or null
    sample = sample._replace(cells=sample.cells + missing, empty=sample.empty + missing, absent=sample.absent + missing)
    return _JsonColumn(name.decode("utf-8", "backslashreplace"), numbers, has_several, sample)


def _without_empty_objects(columns: list[_JsonColumn]) -> list[_JsonColumn]:
    """The columns but for objects that are null in some lines."""
    inside = {column.name[:at] for column in columns for at, c in enumerate(column.name) if c == "."}
    return [column for column in columns if column.name not in inside or column.sample.present]


def _decide_by_lines(
    columns: list[_JsonColumn], named: NamedColumns, file: str, rows: int
) -> tuple[dict[str, str], bool]:
    """The kinds of the columns, and whether most lines lack most of them.

    A column is what it is named, else numeric when all values are numbers, else as text with these values. Rows with
    more columns than a model keeps, such as counts of words, are read by the type of each value alone.
    """
    names = [column.name for column in columns]
    kinds = for_structures(named.kinds(), names, f"{file}: ") if names else named.kinds()
    kinds |= dict.fromkeys(named.by_option["ignore"], "ignore")  # an object as a whole, whatever it has in later lines
    is_sparse = 2 * sum(column.sample.cells - column.sample.empty for column in columns) < rows * len(columns)
    if len(names) > MOST_NAMES:
        return kinds, is_sparse
    by_values = {column.name: _kind_by_lines(column) for column in columns}
    return {**by_values, **kinds}, is_sparse


def _kind_by_lines(column: _JsonColumn) -> str:
    if column.sample.present and column.numbers == column.sample.cells - column.sample.empty:
        return "numeric"
    return "categorical" if column.has_several else kind_of_text(column.sample, may_be_number=False)


def plan_of_names(options: ReadingOptions) -> Plan:
    """Return the plan for dicts of which none is known yet: kinds that are named, all other keys by their values."""
    named = named_columns(options)
    columns = settle(named.kinds(), {}, named.counts, options.missing or "ignore")
    return plan_of(options, RECORDS).with_columns(columns._replace(profile=()), list)
