"""Parquet, Arrow IPC and ORC files as a source of batches, in constant memory; a position is a row of a row group."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

from ftprl.data import frames, nested, partitions
from ftprl.data.batch import Batch
from ftprl.data.blocks import Block, block_of
from ftprl.data.column_files import ColumnFile, open_column_file, read_part
from ftprl.data.columns import ColumnHead, ColumnSample, settle
from ftprl.data.digests import RowDigest
from ftprl.data.files import shown
from ftprl.data.fingerprints import check_same_files, ends_of
from ftprl.data.frame_blocks import FramePosition, FrameSettings
from ftprl.data.frame_opening import known_plan_of, settings_for_plan
from ftprl.data.options import LONGEST_USUAL_ROW, ReadingOptions
from ftprl.data.protocol import BESIDE, Description, Position
from ftprl.data.remote import check_here
from ftprl.data.remote_columns import PartSource
from ftprl.data.tables import SAMPLE_ROWS, NamedColumns, named_columns
from ftprl.errors import BadFormat, InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa


@final
@dataclass(frozen=True, slots=True)
class FileBlocks:
    """The rows of files of columns, part by part; only columns that are used are read."""

    files: tuple[str, ...]
    format: str
    kinds: Mapping[str, str]
    optional: Sequence[str] = ()  # kinds of columns that a file may lack
    shapes: Mapping[str, str] = field(default_factory=dict)  # what a cell of each column has in the first file

    @property
    def can_be_read_again(self) -> bool:
        """True: they are files."""
        return True

    @property
    def suits_threads(self) -> bool:
        """True: a block belongs to whoever reads it."""
        return True

    def blocks(self, file: int = 0, group: int = 0, *, threads: int = 0) -> Generator[Block]:
        """The blocks of all files from a part of one on."""
        for number in range(file, len(self.files)):
            yield from self._blocks_of(number, group if number == file else 0, threads=threads > 0)

    def blocks_of_group(self, file: int, group: int) -> Generator[Block]:
        """The blocks of one part of a file."""
        yield from self._blocks_of(file, group, group + 1)

    def groups(self, number: int) -> int:
        """How many parts a file has."""
        with closing(open_column_file(self.files[number], self.format)) as opened:
            return opened.groups

    def check_here(self, number: int) -> None:
        """Raise InvalidInput if this process, perhaps on another machine, does not have a file."""
        check_here(self.files[number])

    def _blocks_of(self, number: int, first: int, stop: int | None = None, *, threads: bool = False) -> Iterator[Block]:
        file, name = self.files[number], shown(self.files[number])
        categories = [name for name, kind in self.kinds.items() if kind == "categorical"]
        with closing(open_column_file(file, self.format, categories)) as opened:
            keys = self._keys(file, opened)
            flat_schema(opened, name)  # refuses columns that occur twice
            names = nested.fitted_names(opened.schema, self.kinds)
            frames.check_columns([*(one for one, _ in names), *keys], self.kinds, self.optional, name)
            read = (column for one, column in names if self.kinds.get(one, "ignore") != "ignore")
            columns = list(dict.fromkeys(read))
            for group in range(first, opened.groups if stop is None else stop):
                start, part = 0, f"{opened.part} {group}: "
                for batch in read_part(file, self.format, opened, group, columns, threads=threads):
                    cells = self._arranged(batch, keys, f"{name}: {part.removesuffix(': ')}")
                    part_of: dict[str, Any] = {"file": number, "group": group, "origin": name, "part": part}
                    yield from block_of(cells, start, batch.num_rows, {}, {}, **part_of)
                    start += batch.num_rows

    def _keys(self, file: str, opened: ColumnFile) -> dict[str, str | None]:
        """The partition of a file; a column of the file itself comes first."""
        return {key: value for key, value in partitions.keys_of(file).items() if key not in opened.schema.names}

    def _arranged(
        self, batch: pa.RecordBatch, keys: Mapping[str, str | None], origin: str
    ) -> list[tuple[str, str, Any]]:
        try:
            columns = frames.arranged(
                batch,
                self.kinds,
                is_open=False,
                optional=tuple(self.kinds.values()),
                origin=origin,
                shapes=self.shapes,
            )
        except InvalidInput as error:
            raise InvalidInput(f"{origin}: {error}", option=error.options) from None
        for key, value in keys.items():
            kind = self.kinds.get(key, "ignore")
            if kind != "ignore":
                columns.append((kind, key, partitions.cells_of(value, kind, batch.num_rows)))
        return columns


def flat_schema(opened: ColumnFile, name: str) -> list[pa.Field]:
    """The columns of a file, those of structures in their place, each once."""
    fields = nested.flat_fields(opened.schema)
    frames.check_names([field.name for field in fields], name)
    return fields


@final
class ColumnSource(PartSource):
    """Files of columns as batches; `ftprl.data.open` makes one."""

    def __init__(self, reader: FileBlocks, settings: FrameSettings) -> None:
        super().__init__(reader, settings)
        self._files = reader.files

    @property
    def files(self) -> tuple[str, ...]:
        """The files, in the order in which they are read."""
        return self._files

    def read(
        self, start: Position | None = None, *, threads: int | None = None, digest: bool = True
    ) -> Generator[tuple[Batch, FramePosition]]:
        """Batches from a position on, each with the position of its first row; the same for any number of threads."""
        position = FramePosition(digest=RowDigest()) if start is None else self._own(start)
        if not digest:
            position = position.without_digest()
        return super().read(position, threads=threads)

    @property
    def start(self) -> FramePosition:
        """The position of the first row."""
        return FramePosition(digest=RowDigest())

    def _own(self, position: Position) -> FramePosition:
        own = super()._own(position)
        if own.file >= len(self._files):
            raise InvalidInput(f"a position in these files is needed, got {own!r:.100}; pass one of this source.")
        return own

    def fingerprint(self) -> Any:
        """The size of each file and a digest of its first and last bytes; the index of its columns is among those."""
        return [ends_of(file) for file in self._files]

    def check_unchanged(self, fingerprint: Any) -> None:
        """Refuse files that are not those of a fingerprint taken before."""
        check_same_files(self._files, self.fingerprint(), fingerprint)

    def check_before(self, position: Position) -> None:
        """Read all rows before a position again and refuse them unless they are the same."""
        own = self._own(position)
        if own.end is None:
            return  # nothing was read
        with closing(super().read(self.start)) as rows:
            for _ in rows:
                if self._reading.digest == own.end:
                    return
                if self._reading.digest is None or self._reading.digest.rows >= own.end.rows:
                    break
        raise InvalidInput(
            f"resume= needs the data of the checkpoint, expected {shown(self._files[own.file])} and the files before"
            " it as they were, got other rows; pass the same files."
        )

    def digest(self) -> list[int] | None:
        """The digest of all rows, from the first to where the last reading has come; None if that makes none."""
        return None if self._reading.digest is None else self._reading.digest.to_list()

    def describe(self) -> Description:
        """What is read: the files, what each column is for, what the labels become."""
        return super().describe()._replace(files=tuple(shown(file) for file in self._files))


# ---- what `ftprl.data.open` asks for ----


def open_files(files: tuple[str, ...], options: ReadingOptions) -> ColumnSource:
    """Parquet, Arrow IPC or ORC files as a source."""
    assert options.format is not None
    why = f"got the format {options.format}; drop it."
    options.refuse(("sep", "quote"), f" is for CSV and TSV files, {why}")
    if not options.header:
        raise InvalidInput(f"header=False is for CSV and TSV files, {why}", option="header")
    if options.max_row != LONGEST_USUAL_ROW:
        raise InvalidInput(f"max_row= is for files of text, {why}", option="max_row")
    named, plan = named_columns(options), known_plan_of(options)
    name, shapes = shown(files[0]), dict[str, str]()
    try:
        if plan is None:
            heads = _heads(files, options.format, named)
            shapes = frames.shapes_of(heads)
            plan = settle(*frames.decide(heads, named), named.bucket, options.missing)
    except InvalidInput as error:
        raise InvalidInput(f"{name}: {error}", option=error.options) from None
    kinds = plan.kinds
    optional = ("ignore",) if options.columns is None or options.labelled else (*BESIDE, "ignore")

    def label_texts() -> list[str]:
        return _label_texts(FileBlocks(files, options.format or "", kinds, ("ignore",)))

    settings = settings_for_plan(options, plan, label_texts, options.format)
    return ColumnSource(FileBlocks(files, options.format, kinds, optional, shapes), settings)


def _heads(files: tuple[str, ...], format: str, named: NamedColumns) -> list[ColumnHead]:
    """What is known of the columns by the first file."""
    with closing(open_column_file(files[0], format)) as opened:
        fields = flat_schema(opened, shown(files[0]))
        first = _first_rows(files[0], format, opened, fields, named.ignore)
        keys = [key for key in partitions.fields_of(files) if key.name not in opened.schema.names]
        heads = frames.heads_of(*frames.with_types(fields, first, _other_heads(files[1:], format)))
        return heads + [_head_of_folders(key, files) for key in keys]


def _other_heads(files: Sequence[str], format: str) -> Iterator[tuple[list[pa.Field], frames.FirstCells]]:
    """The columns of other files, and what reads the first cells of some of them."""
    for file in files:
        with closing(open_column_file(file, format)) as opened:
            fields = flat_schema(opened, shown(file))

            def cells(chosen: list[pa.Field], file: str = file, opened: ColumnFile = opened) -> dict[str, Any]:
                return _first_rows(file, format, opened, chosen, ())

            yield fields, cells


def _head_of_folders(key: pa.Field, files: Sequence[str]) -> ColumnHead:
    """What is known of a column whose values are names of folders: those of all files."""
    import pyarrow as pa

    cells = pa.chunked_array([pa.array([partitions.keys_of(file).get(key.name) for file in files], pa.string())])
    head = frames.heads_of([key], {key.name: cells})[0]

    def sample(kind: str, most: int | None) -> ColumnSample:
        assert head.sample is not None
        return head.sample(kind, most)._replace(is_of_folders=True)

    return head._replace(sample=sample)


def _first_rows(
    file: str, format: str, opened: ColumnFile, fields: Sequence[pa.Field], ignore: Sequence[str]
) -> dict[str, pa.ChunkedArray]:
    """The first cells of the columns that are not ignored."""
    import pyarrow as pa

    left_out = [field.name for field in fields if any(f"{field.name}.".startswith(f"{name}.") for name in ignore)]
    columns = [field.name for field in fields if field.name not in left_out]
    batches: list[pa.RecordBatch] = []
    groups = range(opened.groups if columns else 0)
    parts = (batch for group in groups for batch in read_part(file, format, opened, group, columns, threads=False))
    with contextlib.suppress(BadFormat):  # what is damaged is reported when it is read
        for batch in parts:
            batches.append(batch)
            if sum(len(one) for one in batches) >= SAMPLE_ROWS:
                break
    return dict(nested.flat_columns(pa.Table.from_batches(batches).slice(0, SAMPLE_ROWS))) if batches else {}


def _label_texts(reader: FileBlocks) -> list[str]:
    """The distinct labels of the first rows."""
    label = {name: kind for name, kind in reader.kinds.items() if kind == "label"}
    blocks = FileBlocks(reader.files, reader.format, label, ("label",)).blocks()
    values: list[Any] = []
    with closing(blocks):
        for block in blocks if label else ():
            values += (
                block.batch.column(0).slice(0, SAMPLE_ROWS - len(values)).to_pylist() if block.columns[0][1] else []
            )
            if len(values) == SAMPLE_ROWS:
                break
    return frames.distinct_texts(list(dict.fromkeys(values)))
