"""Parquet, Arrow IPC (Feather) and ORC files as a source of batches, in constant memory, each read part by part."""

from __future__ import annotations

import binascii
import contextlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, final
from urllib.parse import unquote

import numpy as np

from ftprl.data import arrow_cells, frames
from ftprl.data.columns import (
    SAMPLE_ROWS,
    ColumnHead,
    NamedColumns,
    check_columns,
    known_columns,
    named_columns,
    settle,
)
from ftprl.data.files import STDIN, is_uri, shown
from ftprl.data.jobs import check_here
from ftprl.data.kinds import ColumnSample
from ftprl.data.options import ReadingOptions
from ftprl.data.plan import Plan, plan_of
from ftprl.data.sizes import ColumnChunk, column_chunks, page_sizes, pieces, row_bytes
from ftprl.data.tables import TableReader, TableRows, TableSource, block_of, optional_kinds
from ftprl.errors import BadFormat, InvalidInput, OutOfMemory

if TYPE_CHECKING:
    import pyarrow as pa


T = TypeVar("T")
BATCH_BYTES = 1 << 26  # of Parquet: more take memory; in less the dictionaries of columns are read too often
_PAGE_ROWS = 16  # a page has as many bytes as so many of the longest rows, at most
PIECE_BYTES = 1 << 24  # of rows that are converted together, and of a sample of texts


_ENTRY_BYTES, _CELL_BYTES = 4, 16  # of a cell with a dictionary, and about those of another


_NOUNS = {
    "parquet": ("row group", "a Parquet file"),
    "arrow": ("record batch", "an Arrow IPC file"),
    "orc": ("stripe", "an ORC file"),
}


@final
class ColumnFile:
    """An open file of columns, whose parts are read one by one; `part` is what these are called.

    Texts of Parquet in `texts` (None: all) are read as dictionaries: repeated ones are in memory once, but so are all
    others of a row group, which must not be many bytes. A row of more than `max_row` bytes is refused.
    """

    def __init__(self, file: str, format: str, texts: Sequence[str] | None = (), *, max_row: int | None = None) -> None:
        self._file_name, self._format, self._max_row = file, format, max_row
        self.part, self._noun = _NOUNS[format]
        if file == STDIN:
            raise InvalidInput(f"data needs the path of {self._noun}, got standard input; save it to a file first.")
        self._raw = _opened(file)
        self._texts: Sequence[str] = ()
        try:
            self._careful(lambda: self._open(texts))
            self._careful(
                lambda: [field.name for field in arrow_cells.flat_fields(self.schema)]
            )  # some may be no UTF-8
        except BaseException:
            self._raw.close()
            raise

    def _open(self, texts: Sequence[str] | None) -> None:
        import pyarrow as pa

        if self._format == "parquet":
            import pyarrow.parquet as pq

            file = pq.ParquetFile(self._raw, pre_buffer=False)
            self.schema = _with_categories(file.schema_arrow, file.metadata.metadata)
            self._file, self.groups = file, int(file.num_row_groups)
            own = _texts(file.schema_arrow, file.schema_arrow.names if texts is None else texts)
            large = self._large_columns() if own else set()
            self._texts = [name for name in own if name not in large]
            if self._texts:
                file = pq.ParquetFile(
                    self._raw, metadata=file.metadata, read_dictionary=list(self._texts), pre_buffer=False
                )
            self._file = file
        elif self._format == "arrow":
            self._file = pa.ipc.open_file(self._raw)
            self.schema, self.groups = self._file.schema, int(self._file.num_record_batches)
        else:
            from pyarrow import orc

            self._file = orc.ORCFile(self._raw)
            self.schema, self.groups = self._file.schema, int(self._file.nstripes)

    def batches(self, group: int, columns: Sequence[str], *, threads: bool = False) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a part: of these columns, named as `nested.flat_fields` names them.

        Batches are cut where their texts, of dictionaries too, have many bytes: other cells are converted as a whole.
        """
        where, start = f"{self.part} {group}: ", 0
        size, rows = self._careful(lambda: self._size_of(group, columns), where)
        if self._max_row is not None and size > self._max_row * max(1, rows):
            raise self._too_long(where, f"{size} bytes in {rows} row{'s'[: rows != 1]}")
        if (page := self._careful(lambda: self._large_page(group, columns), where)) is not None:
            raise self._too_long(where, f"a page of {page} bytes")
        batches = self._careful(lambda: iter(self._batches(group, columns, threads)), where)

        def checked() -> pa.RecordBatch | None:
            batch = next(batches, None)
            if batch is not None:
                arrow_cells.check_cells(batch)
            return batch

        while (batch := self._careful(checked, where)) is not None:
            for piece, sizes in pieces(batch, PIECE_BYTES, self._max_row):
                if self._max_row is not None and sizes is not None and (sizes > self._max_row).any():
                    good = int(np.argmax(sizes > self._max_row))
                    if good:
                        yield piece.slice(0, good)
                    raise self._too_long(f"{where}row {start + good}: ", f"one of {sizes[good]}")
                yield piece
                start += len(piece)

    def _too_long(self, where: str, found: str) -> BadFormat:
        what = f"expected a row of at most {self._max_row} bytes, got {found}; raise max_row="
        return BadFormat(f"{shown(self._file_name)}: {where}{what}.", option="max_row")

    def _size_of(self, group: int, columns: Sequence[str]) -> tuple[int, int]:
        """Return the bytes of these columns in a part and its rows, as far as is known before it is decompressed."""
        if self._format != "parquet":
            return 0, 0
        about = self._file.metadata.row_group(group)
        if about.total_byte_size <= min(BATCH_BYTES, (self._max_row or BATCH_BYTES) * max(1, about.num_rows)):
            return int(about.total_byte_size), int(about.num_rows)
        return sum(chunk.uncompressed for chunk in self._chunks(group, columns)), int(about.num_rows)

    @cached_property
    def _all_chunks(self) -> list[list[ColumnChunk]]:
        return column_chunks(self._raw)

    def _chunks(self, group: int, columns: Sequence[str]) -> Iterator[ColumnChunk]:
        """Yield the columns of a row group that have these names, and the fields within them."""
        names = set(columns)
        for chunk in self._all_chunks[group]:
            if any(".".join(chunk.path[:at]) in names for at in range(1, len(chunk.path) + 1)):
                yield chunk

    def _large_columns(self) -> set[str]:
        """Return the columns of Parquet that have more bytes in a row group than should be in memory together."""
        about = [self._file.metadata.row_group(group).total_byte_size for group in range(self.groups)]
        groups = [self._all_chunks[group] for group, size in enumerate(about) if size > BATCH_BYTES]
        return {".".join(chunk.path) for chunks in groups for chunk in chunks if chunk.uncompressed > BATCH_BYTES}

    def _large_page(self, group: int, columns: Sequence[str]) -> int | None:
        """Return the bytes of a page of Parquet that must have a row that is too long, if writers end pages soon.

        They do so at about 1 MB, but look at the size only after every thousand rows or so.
        """
        if self._format != "parquet" or self._max_row is None:
            return None
        about, most = self._file.metadata.row_group(group), max(BATCH_BYTES, _PAGE_ROWS * self._max_row)
        if about.total_byte_size <= most:
            return None
        for chunk in self._chunks(group, columns):
            sizes = page_sizes(self._raw, chunk) if chunk.uncompressed > most else ()
            if (size := max(sizes, default=0)) > most:
                return size
        return None

    def _batches(self, group: int, columns: Sequence[str], threads: bool) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        if self._format == "parquet":
            width = sum(_ENTRY_BYTES if name in self._texts else _CELL_BYTES for name in columns)
            size, count = self._size_of(group, columns)
            usual, fitting = max(4096, BATCH_BYTES // max(1, width)), BATCH_BYTES * count // max(1, size)
            rows = max(1, min(usual, fitting))
            yield from self._file.iter_batches(rows, row_groups=[group], columns=list(columns), use_threads=threads)
            return
        top = list(dict.fromkeys(_top(self.schema, columns)))
        if self._format == "orc":
            yield self._file.read_stripe(group, columns=top)
            return
        fields = [self.schema.get_field_index(name) for name in top]
        options = pa.ipc.IpcReadOptions(included_fields=fields, use_threads=threads)
        yield pa.ipc.open_file(self._raw, options=options).get_batch(group)

    def _careful(self, step: Callable[[], T], where: str = "") -> T:
        """Return what a step of pyarrow gives; its errors become one line that names the file."""
        import pyarrow as pa

        try:
            return step()
        except MemoryError as error:
            what = shown(" ".join(str(error).split()))[:160]
            raise OutOfMemory(
                f"{shown(self._file_name)}: {where}expected parts that fit into memory, got one that does not ({what});"
                " check the file, or write it with smaller parts."
            ) from None
        except (pa.ArrowException, OSError, ValueError, KeyError) as error:
            what = shown(" ".join(str(error).split()))[:160]
            raise BadFormat(
                f"{shown(self._file_name)}: {where}expected {self._noun}, got other bytes ({what}); check the file."
            ) from None

    def close(self) -> None:
        """Close the file."""
        self._raw.close()


def _with_categories(schema: pa.Schema, metadata: Any) -> pa.Schema:
    """A schema in which columns of numbers that were categories when they were written are so again.

    pyarrow reads dictionaries of text as such, and those of numbers as numbers; a frame of these rows has categories.
    """
    import pyarrow as pa
    from pyarrow import types

    kept = (metadata or {}).get(b"ARROW:schema")
    if kept is None:
        return schema
    try:
        written = pa.ipc.read_schema(pa.py_buffer(binascii.a2b_base64(kept)))
    except (pa.ArrowException, ValueError, OSError):
        return schema
    for at, field in enumerate(schema):
        own = written.field(at) if at < len(written) else field
        is_category = own.name == field.name and types.is_dictionary(own.type)
        if is_category and own.type.value_type == field.type:  # which is not the dictionary itself
            schema = schema.set(at, field.with_type(own.type))
    return schema


def _texts(schema: pa.Schema, columns: Sequence[str]) -> list[str]:
    """Return those of some columns that are text.

    Which of them the file has as dictionaries is not looked up: damaged numbers there would end the process.
    """
    from pyarrow import types

    names = set(schema.names)
    fields = [schema.field(name) for name in columns if name in names]
    return [field.name for field in fields if types.is_string(field.type) or types.is_binary(field.type)]


def _top(schema: pa.Schema, columns: Sequence[str]) -> Iterator[str]:
    """The columns of a schema that have the columns within them."""
    names = set(schema.names)
    for name in columns:
        top = name
        while top not in names:
            top = top.rpartition(".")[0]
        yield top


def _opened(file: str) -> Any:
    import pyarrow as pa

    if is_uri(file):
        from ftprl.data import files

        return files.open_file(file)
    try:
        return pa.OSFile(file)
    except OSError as error:
        what = error.strerror or " ".join(str(error).split())[:80]
        raise InvalidInput(f"{shown(file)}: {what}; check the path and its permissions.") from None


# ---- rows ----
@final
class FileTables(TableReader):
    """The rows of files of columns, part by part; only columns that are used are read."""

    def __init__(self, files: tuple[str, ...], plan: Plan, shapes: Mapping[str, str] | None = None) -> None:
        super().__init__(plan)
        self.files, self._shapes = files, shapes

    def blocks(self, file: int = 0, part: int = 0, *, threads: bool = False) -> Iterator[TableRows]:
        """Yield the blocks of all files from a part of one on."""
        for number in range(file, len(self.files)):
            yield from self._blocks_of(number, part if number == file else 0, threads=threads)

    def blocks_of_part(self, file: int, part: int) -> Iterator[TableRows]:
        """Yield the blocks of one part of a file, which a worker may not have."""
        check_here(self.files[file])
        yield from self._blocks_of(file, part, part + 1)

    def parts(self, file: int) -> int:
        """Return how many parts a file has."""
        with closing(ColumnFile(self.files[file], self.plan.format)) as opened:
            return opened.groups

    def _blocks_of(
        self, number: int, first: int, stop: int | None = None, *, threads: bool = False
    ) -> Iterator[TableRows]:
        file, name, kinds = self.files[number], shown(self.files[number]), self.plan.kinds or {}
        other = "numeric" if self.plan.is_open else "ignore"
        texts = [name for name, kind in kinds.items() if kind != "ignore"]
        with closing(ColumnFile(file, self.plan.format, texts, max_row=self.plan.max_row)) as opened:
            keys = {key: one for key, one in keys_of(file).items() if key not in opened.schema.names}
            flat_schema(opened, name)  # refuses columns that occur twice
            names = arrow_cells.fitted_names(opened.schema, kinds)
            check_columns([*(one for one, _ in names), *keys], kinds, optional_kinds(self.plan), name)
            columns = list(dict.fromkeys(column for one, column in names if kinds.get(one, other) != "ignore"))
            for group in range(first, opened.groups if stop is None else stop):
                start, origin = 0, f"{name}: {opened.part} {group}"
                for batch in opened.batches(group, columns, threads=threads):
                    cells = self._arranged(batch, keys, origin)
                    part_of: dict[str, Any] = {"file": number, "part": group, "origin": name}
                    part_of["part_name"] = f"{opened.part} {group}: "
                    yield from block_of(cells, start, batch.num_rows, **part_of)
                    start += batch.num_rows

    def _arranged(
        self, batch: pa.RecordBatch, keys: Mapping[str, str | None], origin: str
    ) -> list[tuple[str, str, Any]]:
        kinds = self.plan.kinds or {}
        try:
            columns = frames.arranged(batch, self.plan, tuple(kinds.values()), origin=origin, shapes=self._shapes)
        except InvalidInput as error:
            raise InvalidInput(f"{origin}: {error}", option=error.options) from None
        for key, value in keys.items():
            kind = kinds.get(key, "ignore")
            if kind != "ignore":
                columns.append((kind, key, cells_of(value, kind, batch.num_rows)))
        return columns


def flat_schema(opened: ColumnFile, name: str) -> list[pa.Field]:
    """The columns of a file, those of structures in their place, each once."""
    fields = arrow_cells.flat_fields(opened.schema)
    arrow_cells.check_names([field.name for field in fields], name)
    return fields


# ---- what `ftprl.data.open` asks for ----
def open_files(files: tuple[str, ...], options: ReadingOptions) -> TableSource:
    """Parquet, Arrow IPC or ORC files as a source."""
    assert options.format is not None
    why = f"got the format {options.format}; drop it."
    options.refuse(("sep", "quote"), f" is for CSV and TSV files, {why}")
    if not options.header:
        raise InvalidInput(f"header=False is for CSV and TSV files, {why}", option="header")
    named, plan = named_columns(options), plan_of(options, options.format)
    columns, name, shapes = known_columns(options, named), shown(files[0]), dict[str, str]()
    try:
        if columns is None:
            heads = _heads(files, options, named)
            shapes = frames.shapes_of(heads)
            columns = settle(*frames.decide(heads, named), named.counts, options.missing)
    except InvalidInput as error:
        raise InvalidInput(f"{name}: {error}", option=error.options) from None
    if plan.has_known_columns:
        with closing(ColumnFile(files[0], options.format)) as opened:
            names = [one for one, _ in arrow_cells.fitted_names(opened.schema, columns.kinds)]
            check_columns([*names, *keys_of(files[0])], columns.kinds, optional_kinds(plan), name)
            frames.check_unknown(opened.schema, plan._replace(columns=columns))
    label = {one: kind for one, kind in columns.kinds.items() if kind == "label"}
    only_label = plan._replace(columns=columns._replace(kinds=label), has_known_columns=True, needs_label=False)
    plan = plan.with_columns(columns, lambda: _label_texts(FileTables(files, only_label)) if label else [])
    return TableSource(FileTables(files, plan, shapes), files)


def _heads(files: tuple[str, ...], options: ReadingOptions, named: NamedColumns) -> list[ColumnHead]:
    """What is known of the columns by the first file."""
    with closing(_with_texts(files[0], options)) as opened:
        fields = flat_schema(opened, shown(files[0]))
        first = _first_rows(opened, fields, named.by_option["ignore"])
        keys = [key for key in fields_of(files) if key.name not in opened.schema.names]
        heads = frames.heads_of(*frames.with_types(fields, first, _other_heads(files[1:], options)))
        return heads + [_head_of_folders(key, files) for key in keys]


def _with_texts(file: str, options: ReadingOptions) -> ColumnFile:
    assert options.format is not None
    return ColumnFile(file, options.format, None, max_row=int(options.max_row))


def _other_heads(files: Sequence[str], options: ReadingOptions) -> Iterator[tuple[list[pa.Field], frames.FirstCells]]:
    """The columns of other files, and what reads the first cells of some of them."""
    for file in files:
        with closing(_with_texts(file, options)) as opened:
            fields = flat_schema(opened, shown(file))

            def cells(chosen: list[pa.Field], opened: ColumnFile = opened) -> dict[str, Any]:
                return _first_rows(opened, chosen, ())

            yield fields, cells


def _head_of_folders(key: pa.Field, files: Sequence[str]) -> ColumnHead:
    """What is known of a column whose values are names of folders: those of all files."""
    import pyarrow as pa

    cells = pa.chunked_array([pa.array([keys_of(file).get(key.name) for file in files], pa.string())])
    head = frames.heads_of([key], {key.name: cells})[0]

    def sample(kind: str, most: int | None) -> ColumnSample:
        assert head.sample is not None
        return head.sample(kind, most)._replace(is_of_folders=True)

    return head._replace(sample=sample)


def _first_rows(opened: ColumnFile, fields: Sequence[pa.Field], ignore: Sequence[str]) -> dict[str, pa.ChunkedArray]:
    """The first cells of the columns that are not ignored."""
    import pyarrow as pa

    left_out = [field.name for field in fields if any(f"{field.name}.".startswith(f"{name}.") for name in ignore)]
    columns = [field.name for field in fields if field.name not in left_out]
    batches, size = list[pa.RecordBatch](), 0
    groups = range(opened.groups if columns else 0)
    parts = (batch for group in groups for batch in opened.batches(group, columns))
    with contextlib.suppress(BadFormat):  # what is damaged is reported when it is read
        for batch in parts:
            batches.append(batch)
            size += int(row_bytes(batch).sum())
            if sum(len(one) for one in batches) >= SAMPLE_ROWS or size >= PIECE_BYTES:
                break
    return dict(arrow_cells.flat_columns(pa.Table.from_batches(batches).slice(0, SAMPLE_ROWS))) if batches else {}


def _label_texts(reader: FileTables) -> list[str]:
    """Return the distinct labels of the first rows, given a reader of nothing but the labels."""
    values: list[Any] = []
    with closing(reader.blocks()) as blocks:  # type: ignore[type-var]
        for block in blocks:
            if block.columns[0][1]:
                values += block.batch.column(0).slice(0, SAMPLE_ROWS - len(values)).to_pylist()
            if len(values) == SAMPLE_ROWS:
                break
    return frames.distinct_texts(list(dict.fromkeys(values)))


_MISSING = "__HIVE_DEFAULT_PARTITION__"
_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})")


def keys_of(file: str) -> dict[str, str | None]:
    """The keys and values in the folders of a path; None is a missing value.

    >>> keys_of("clicks/day=3/country=a%20b/part-0.parquet")
    {'day': '3', 'country': 'a b'}
    """
    folders = [folder for folder in file.replace("\\", "/").split("/")[:-1] if "=" in folder.strip("=")]
    pairs = [folder.split("=", 1) for folder in folders]
    return {unquote(key): None if value == _MISSING else unquote(value) for key, value in pairs if key}


def is_whole(value: str | None) -> bool:
    """Whether a value is missing or a whole number, spelled as usual."""
    return value is None or _WHOLE.fullmatch(value) is not None


def fields_of(files: Sequence[str]) -> list[pa.Field]:
    """The keys as columns: of whole numbers if all their values are, otherwise of text."""
    import pyarrow as pa

    values: dict[str, bool] = {}
    for file in files:
        for key, value in keys_of(file).items():
            values[key] = values.get(key, True) and is_whole(value)
    return [pa.field(key, pa.int64() if are_whole else pa.string()) for key, are_whole in values.items()]


def cells_of(value: str | None, kind: str, rows: int) -> pa.Array:
    """The column of a key in a file: the same value in each row."""
    import numpy as np
    import pyarrow as pa

    scalar: Any = int(value) if value is not None and kind == "numeric" and is_whole(value) else value
    entry = pa.array([scalar])
    if kind != "categorical":
        return pa.repeat(entry[0], rows)
    return pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), entry.cast(pa.string()))
