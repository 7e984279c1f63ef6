"""Tables as a source of batches: record batches of files or of memory, and dicts, with the features of a CSV file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

from ftprl._core import RecordParser
from ftprl.data import arrow_cells, frames
from ftprl.data.batch import Batch
from ftprl.data.files import shown
from ftprl.data.jobs import CoreParser, PlannedSource, RemoteJob
from ftprl.data.parts import ORIGIN
from ftprl.data.plan import BATCH_ROWS, Plan
from ftprl.data.source import Place
from ftprl.errors import BadFormat, FtprlError

if TYPE_CHECKING:
    import pyarrow as pa

    from ftprl.data.memory import RowVectors


_MOST_LAYOUTS = 64  # that are remembered


@final
@dataclass(frozen=True, slots=True, eq=False)
class TableRows:
    """Rows `at` to `stop` of a block: of a record batch, or of dicts and the columns beside them.

    The first row of the block is number `first` of the data or, in a file, of part number `part` of file number `file`.
    """

    columns: list[tuple[int, bytes]]  # kinds and names of those of the batch
    batch: pa.RecordBatch
    first: int
    at: int
    stop: int
    records: list[Any] | None = None
    file: int = 0
    part: int = 0
    origin: str = ORIGIN
    part_name: str = ""  # such as "row group 3: "
    error: FtprlError | None = None

    @property
    def offset(self) -> int:
        """The number of the first row."""
        return self.first + self.at

    @property
    def line(self) -> int:
        """The number of the first row of the block, from which the core counts."""
        return self.first

    def where(self, row: int) -> str:
        """Return where a row is, for messages."""
        return f"{self.origin}: {self.part_name}row {row}"

    def cut(self, start: Place, rows: int = BATCH_ROWS) -> Iterator[TableRows]:
        """Yield these rows from a place on, cut where a reading from the first row would cut them."""
        before = start.offset if (self.file, self.part) == (start.file, start.part) else 0
        for at in range(self.at, self.stop, rows):
            stop = min(at + rows, self.stop)
            if self.first + stop > before:
                yield replace(self, at=max(at, before - self.first), stop=stop)


@final
class TableParser(CoreParser):
    """A parser of the core and the block it reads."""

    core: RecordParser

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan.parser())
        self._batch: pa.RecordBatch | None = None

    def _feed(self, job: TableRows) -> Iterator[None]:
        core, at = self.core, job.at
        if self._batch is not job.batch:
            core.set_batch(job.columns, *job.batch.__arrow_c_array__())
            self._batch = job.batch
        while at < job.stop:
            try:
                at = core.read(at, job.stop) if job.records is None else core.read_records(job.records, at, job.stop)
            except UnicodeEncodeError as error:
                raise BadFormat(
                    f"{job.origin}: rows {job.first + at} to {job.first + job.stop - 1}: expected names and values in"
                    f" Unicode, got {error.object!r:.60}; replace it."
                ) from None
            yield


def block_of(
    columns: list[tuple[str, str, Any]],
    first: int,
    rows: int,
    vectors: Mapping[str, RowVectors] | None = None,
    shift: Mapping[str, int] | None = None,
    **more: Any,
) -> Iterable[TableRows]:
    """Return the block of some columns and of the vectors beside them; no block of no rows."""
    import pyarrow as pa

    if rows == 0:
        return ()
    for kind, vector in (vectors or {}).items():
        cells = vector.part(first - (shift or {})[kind], rows)
        columns.append((kind, vector.name, arrow_cells.readable(vector.name, cells, kind)))
    if not columns:
        columns.append(("ignore", "", pa.nulls(rows)))  # a batch without columns has no rows
    batch = pa.RecordBatch.from_arrays([cells for *_, cells in columns], [str(i) for i in range(len(columns))])
    return (TableRows(arrow_cells.codes(columns), batch, first, 0, rows, **more),)


def optional_kinds(plan: Plan) -> tuple[str, ...]:
    """Return the kinds of columns that a table may lack."""
    return plan.optional_kinds or ("ignore",)


class TableReader(ABC):
    """Where the rows of tables come from, block by block."""

    files: tuple[str, ...] = ()  # what has parts, for workers
    can_be_read_again = True
    suits_threads = True  # whether other threads may read the blocks
    suits_workers = True  # whether other processes may

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def parser(self) -> TableParser:
        """Return a parser of the blocks."""
        return TableParser(self.plan)

    @abstractmethod
    def blocks(self, file: int = 0, part: int = 0, *, threads: bool = False) -> Iterator[TableRows]:
        """Yield all blocks from a part of a file on."""

    def parts(self, file: int) -> int:
        """Return how many parts a file has, each of which any process can read by itself."""
        return 1

    def blocks_of_part(self, file: int, part: int) -> Iterator[TableRows]:
        """Yield the blocks of one part."""
        return self.blocks(file, part)

    def remote_jobs(self, start: Place) -> Generator[RemoteJob]:
        """Yield the parts of all files from a place on; a file without parts is a job too, which checks its columns."""
        begin = replace(start, digest=None, end=None, first_bad=None)
        for file in range(start.file, len(self.files)):
            first = start.part if file == start.file else 0
            for part in range(first, max(first + 1, self.parts(file))):
                yield RemoteJob(file, f"{shown(self.files[file])}, part {part}", begin, (part,))

    def jobs_of(self, remote: RemoteJob) -> Generator[TableRows]:
        """Yield the rows of a job."""
        for part in remote.jobs or ():
            for block in self.blocks_of_part(remote.file, part):
                yield from block.cut(remote.start)

    def without_rows(self, job: TableRows) -> TableRows:
        """Return where the rows of a job are, without them."""
        return replace(job, batch=None, columns=[])

    def again(self, job: TableRows) -> TableRows:
        """Return a job with its rows, which are read again."""
        block = next(one for one in self.blocks_of_part(job.file, job.part) if one.first == job.first)
        return replace(block, at=job.at, stop=job.stop)


@final
class TableSource(PlannedSource):
    """Tables or dicts as batches; `ftprl.data.open` makes one."""

    def __init__(self, reader: TableReader, files: tuple[str, ...] = ()) -> None:
        super().__init__(reader.plan, files)
        self.reader: TableReader = reader
        self.suits_threads, self.suits_workers = reader.suits_threads, reader.suits_workers

    @property
    def can_be_read_again(self) -> bool:
        """Whether the data stays in memory or in files; an iterator can be read once."""
        return self.reader.can_be_read_again

    def jobs(self, start: Place, threads: int) -> Generator[TableRows]:
        """Yield the rows from a place on."""
        return self._rows(start, threads, BATCH_ROWS)

    def _rows(self, start: Place, threads: int, rows: int) -> Generator[TableRows]:
        for block in self.reader.blocks(start.file, start.part, threads=threads > 0):
            yield from block.cut(start, rows)

    def parser(self) -> TableParser:
        """Return a parser of the blocks."""
        return self.reader.parser()

    def locate(self, position: Any) -> str:
        """Return the number of the row behind a position, counted from 0, found by reading row by row."""
        own = self._own(position)
        if not self.can_be_read_again:
            return f"{ORIGIN}: row {own.offset + own.skip}"
        parser, skip = self.parser(), own.skip
        with closing(self._rows(own, 0, 1)) as rows:
            for row in rows:
                skip -= len(parser.parse(row, own.negative).batches)
                if skip < 0:
                    return row.where(row.offset)
        return f"{ORIGIN}: row {own.rows}"


@final
class FrameBatches:
    """Turns frames in memory into batches by a plan that knows their columns, as often as it is asked.

    Parsers are used again, and so is what a schema says of the columns: most calls come with the same one.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._parsers: list[TableParser] = []  # that nobody uses now
        self._layouts: dict[pa.Schema, frames.Layout | None] = {}
        self._listed = set[str]()  # columns that are not known, of which the caller was warned

    def batches_of(self, frame: Any) -> list[Batch]:
        """Return the rows of a frame: one batch, unless they have very many features.

        >>> import pyarrow as pa
        >>> from ftprl.data import open
        >>> table = pa.table({"city": ["Ulm", "Bonn"], "y": [1, 0]})
        >>> [batch] = FrameBatches(open(table, label="y").settings).batches_of(table)
        >>> len(batch)
        2
        """
        table = frames.arrow_table(frame)
        schema = table.schema.remove_metadata()  # what pandas adds does not matter here
        try:
            layout = self._layouts[schema]
        except KeyError:
            if len(self._layouts) >= _MOST_LAYOUTS:
                self._layouts.clear()
            self._listed.update(frames.check_unknown(schema, self.plan, self._listed))
            layout = self._layouts[schema] = frames.layout_of(schema, self.plan.kinds or {})
        parser = self._parsers.pop() if self._parsers else TableParser(self.plan)
        batches, first = list[Batch](), 0
        for cells in table.to_batches():
            if layout is None:
                columns = frames.arranged(cells, self.plan, optional_kinds(self.plan))
                blocks = block_of(columns, first, cells.num_rows)
            else:
                blocks = (TableRows(layout.codes, layout.select(cells), first, 0, cells.num_rows),)
            for block in blocks:
                parsed = parser.parse(block)
                if (error := parsed.error(first)) is not None:
                    raise error
                batches += parsed.batches
            first += cells.num_rows
        self._parsers.append(parser)
        return batches
