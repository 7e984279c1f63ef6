"""Files of columns: Parquet, Arrow IPC (Feather) and ORC, each in parts that are read one by one."""

from __future__ import annotations

import binascii
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, final

from ftprl.data.files import STDIN, is_uri, shown
from ftprl.errors import BadFormat, InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
_BATCH_BYTES = 1 << 26  # of Parquet: more take memory; in less the dictionaries of columns are read too often
_ENTRY_BYTES, _CELL_BYTES = 4, 16  # of a cell with a dictionary, and about those of another


class ColumnFile(Protocol):
    """A file of columns; `part` is what its parts are called."""

    part: str

    @property
    def schema(self) -> pa.Schema:
        """The columns of the file."""

    @property
    def groups(self) -> int:
        """How many parts the file has."""

    def batches(self, group: int, columns: Sequence[str], *, threads: bool) -> Iterator[pa.RecordBatch]:
        """The rows of a part: of these columns, named as `nested.flat_fields` names them."""

    def close(self) -> None:
        """Close the file."""


@final
class ParquetColumns:
    """A Parquet file; categories that it has as dictionaries are read as such."""

    part = "row group"

    def __init__(self, raw: Any, categories: Sequence[str] = ()) -> None:
        import pyarrow.parquet as pq

        with _system_memory():
            file = pq.ParquetFile(raw, pre_buffer=False)
            self.schema = _with_categories(file.schema_arrow, file.metadata.metadata)
            texts = _texts(file.schema_arrow, categories)
            self._texts = frozenset(texts)
            if texts:
                file = pq.ParquetFile(raw, metadata=file.metadata, read_dictionary=texts, pre_buffer=False)
            self._file = file
        self.groups = int(self._file.num_row_groups)

    def batches(self, group: int, columns: Sequence[str], *, threads: bool) -> Iterator[pa.RecordBatch]:
        """The rows of a row group."""
        width = sum(_ENTRY_BYTES if name in self._texts else _CELL_BYTES for name in columns)
        rows = max(4096, _BATCH_BYTES // max(1, width))
        yield from self._file.iter_batches(rows, row_groups=[group], columns=list(columns), use_threads=threads)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


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


@contextmanager
def _system_memory() -> Iterator[None]:
    """Readers that are made take memory from the system.

    pyarrow's own allocator keeps memory apart for each thread: what the thread that reads allocates and another frees
    is not used again soon, and clearing new pages took a third of all time.
    """
    import pyarrow as pa

    before = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(before)


def _texts(schema: pa.Schema, columns: Sequence[str]) -> list[str]:
    """Return those of some columns that are text.

    Which of them the file has as dictionaries is not looked up: damaged numbers there would end the process.
    """
    from pyarrow import types

    fields = [schema.field(name) for name in columns if name in schema.names]
    return [field.name for field in fields if types.is_string(field.type) or types.is_binary(field.type)]


@final
class ArrowColumns:
    """An Arrow IPC file, also called Feather."""

    part = "record batch"

    def __init__(self, raw: Any, categories: Sequence[str] = ()) -> None:
        import pyarrow as pa

        del categories  # a column has the type that was written
        self._raw, self._file = raw, pa.ipc.open_file(raw)
        self.schema = self._file.schema
        self.groups = int(self._file.num_record_batches)
        self._chosen: tuple[str, ...] | None = None

    def batches(self, group: int, columns: Sequence[str], *, threads: bool) -> Iterator[pa.RecordBatch]:
        """The rows of a record batch."""
        import pyarrow as pa

        top = tuple(dict.fromkeys(_top(self.schema, columns)))
        if top != self._chosen:
            fields = [self.schema.get_field_index(name) for name in top]
            options = pa.ipc.IpcReadOptions(included_fields=fields, use_threads=threads)
            self._file, self._chosen = pa.ipc.open_file(self._raw, options=options), top
        yield self._file.get_batch(group)

    def close(self) -> None:
        """Close the file."""
        self._raw.close()


@final
class OrcColumns:
    """An ORC file."""

    part = "stripe"

    def __init__(self, raw: Any, categories: Sequence[str] = ()) -> None:
        from pyarrow import orc

        del categories  # a column has the type that was written
        self._raw, self._file = raw, orc.ORCFile(raw)
        self.schema = self._file.schema
        self.groups = int(self._file.nstripes)

    def batches(self, group: int, columns: Sequence[str], *, threads: bool) -> Iterator[pa.RecordBatch]:
        """The rows of a stripe."""
        del threads
        yield self._file.read_stripe(group, columns=list(dict.fromkeys(_top(self.schema, columns))))

    def close(self) -> None:
        """Close the file."""
        self._raw.close()


def _top(schema: pa.Schema, columns: Sequence[str]) -> Iterator[str]:
    """The columns of a schema that have the columns within them."""
    for name in columns:
        top = name
        while top not in schema.names:
            top = top.rpartition(".")[0]
        yield top


_READERS: dict[str, tuple[str, Callable[[Any, Sequence[str]], ColumnFile]]] = {
    "parquet": ("a Parquet file", ParquetColumns),
    "arrow": ("an Arrow IPC file", ArrowColumns),
    "orc": ("an ORC file", OrcColumns),
}


def open_column_file(file: str, format: str, categories: Sequence[str] = ()) -> ColumnFile:
    """A file of columns."""
    noun, reader = _READERS[format]
    if file == STDIN:
        raise InvalidInput(f"data needs the path of {noun}, got standard input; save it to a file first.")
    raw = _opened(file)
    try:
        return careful(file, noun, lambda: reader(raw, categories))
    except BaseException:
        raw.close()
        raise


def _opened(file: str) -> Any:
    import pyarrow as pa

    if is_uri(file):
        from ftprl.data import uris

        return uris.open_file(file)
    try:
        return pa.OSFile(file)
    except OSError as error:
        what = error.strerror or " ".join(str(error).split())[:80]
        raise InvalidInput(f"{shown(file)}: {what}; check the path and its permissions.") from None


def careful(file: str, noun: str, step: Callable[[], T], where: str = "") -> T:
    """What a step of pyarrow gives; its errors become one line that names the file."""
    import pyarrow as pa

    try:
        return step()
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        what = shown(" ".join(str(error).split()))[:160]
        raise BadFormat(f"{shown(file)}: {where}expected {noun}, got other bytes ({what}); check the file.") from None


def read_part(
    file: str, format: str, opened: ColumnFile, group: int, columns: Sequence[str], *, threads: bool
) -> Iterator[pa.RecordBatch]:
    """The rows of a part of a file."""
    where, noun = f"{opened.part} {group}: ", _READERS[format][0]
    batches = careful(file, noun, lambda: iter(opened.batches(group, columns, threads=threads)), where)
    while (batch := careful(file, noun, lambda: next(batches, None), where)) is not None:
        yield batch
