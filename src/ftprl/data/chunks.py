"""Files in pieces of whole rows: what can be parsed by one thread while another parses the next."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

from ftprl._core import Parser, Window, whole_rows
from ftprl.data import tables
from ftprl.data.batch import Batch
from ftprl.data.files import Opened, Stream, Unplaced, shown, unreadable
from ftprl.errors import BadFormat, FtprlError, InvalidInput

if TYPE_CHECKING:
    from ftprl.data.source import Plan

Begun = tuple[Stream, bytes] | None


@final
@dataclass(frozen=True, slots=True)
class TextPosition:
    """A place between two rows: `skip` rows behind byte `offset` of the unpacked text of file number `file`.

    `rows` rows have been given before it. `bad` rows were left out before `offset`, the first at `first_bad` (file,
    line, reason); `negative` is the label that counts as -1 in the rows before, 1 when none was met.
    """

    file: int = 0
    offset: int = 0
    line: int = 1
    skip: int = 0
    rows: int = 0
    bad: int = 0
    negative: float = 1.0
    first_bad: tuple[int, int, str] | None = None

    def after(self, rows: int) -> TextPosition:
        """The place so many rows further on, in the same piece of text."""
        return replace(self, skip=self.skip + rows, rows=self.rows + rows)

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        plain = {name: getattr(self, name) for name in ("file", "offset", "line", "skip", "rows", "bad", "negative")}
        return {**plain, "first_bad": None if self.first_bad is None else list(self.first_bad)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> TextPosition:
        """The place that `to_dict` wrote."""
        counts = {name: plain[name] for name in ("file", "offset", "line", "skip", "rows", "bad")}
        if not all(type(n) is int and n >= 0 for n in counts.values()) or plain["negative"] not in (-1.0, 0.0, 1.0):
            raise InvalidInput(f"a position needs counts of at least 0, got {plain!r:.200}; start anew.")
        first = plain["first_bad"]
        bad = None if first is None else (int(first[0]), int(first[1]), str(first[2]))
        return cls(**counts, negative=float(plain["negative"]), first_bad=bad)


@final
class Store:
    """Memory for blocks of text that is used again: new pages from the system cost more than reading a file."""

    def __init__(self) -> None:
        self._free: list[bytearray] = []

    def take(self, size: int) -> bytearray:
        """At least `size` bytes."""
        block = self._free.pop() if self._free else bytearray()
        return block if len(block) >= size else bytearray(size)

    def give(self, block: bytearray) -> None:
        """What nobody reads any more."""
        self._free.append(block)


@final
@dataclass(frozen=True, slots=True)
class Piece:
    """Whole rows of one file, `block[start:end]`, and where they stand; `error` is what ended the reading behind them.

    With `opened` the rows are still in the file, from byte `start` to `end`: whoever parses them reads them.
    `line` is known at the begin of a file or of a reading; elsewhere the rows before have to be counted first.
    """

    file: int
    origin: str
    offset: int
    line: int | None
    columns: Sequence[tuple[int, bytes]] | None
    block: bytearray
    start: int
    end: int
    error: FtprlError | Unplaced | None = None
    opened: Opened | None = None


def pieces(
    files: Sequence[str], plan: Plan, start: TextPosition, store: Store, begun: Begun = None
) -> Generator[Piece]:
    """The text of the files from a place on; a file that cannot be read ends it with the error."""
    for number in range(start.file, len(files)):
        offset, line = (start.offset, start.line) if number == start.file else (0, 1)
        try:
            yield from _pieces_of(files[number], number, plan, offset, line, store, begun)
        except (FtprlError, Unplaced) as error:
            yield Piece(number, "", 0, None, None, bytearray(), 0, 0, error)
            return


def _pieces_of(
    file: str, number: int, plan: Plan, offset: int, line: int, store: Store, begun: Begun
) -> Iterator[Piece]:
    stream, data = begun if number == 0 and begun else (Stream(file), b"")
    columns, base, at = None, 0, 0
    begin: int | None = 1
    in_place = plan.form is None
    try:
        if plan.form is not None:
            names, data, at, begin = tables.read_header(stream, plan.form, plan.block_size, plan.max_row, data)
            optional = () if not plan.reused else ("ignore",) if plan.labelled else ("label", "weight", "ignore")
            columns = tables.arrange(names, plan.columns or {}, optional, stream.name)
        if offset > at:
            data, base, at, begin = stream.from_offset(offset, data, line), offset, 0, line
        block, size, last = bytearray(data), len(data), False
        while True:
            end = size if last else _whole(plan, block, at, size)
            rest = block[end:size]  # before the block is handed on: another one may soon be read into it
            if end > at or begin is not None:
                yield Piece(number, stream.name, base + at, begin, columns, block, at, end)
                begin = None
            if last:
                return
            if len(rest) > plan.max_row:
                raise _too_long(plan, stream.name)
            base, at = base + end, 0
            if in_place and stream.can_jump():
                in_place = False
                base = yield from _in_place(stream, number, base, len(rest), plan)
                rest = bytearray()
            block = store.take(len(rest) + plan.block_size)
            block[: len(rest)] = rest
            got = stream.read_into(memoryview(block)[len(rest) : len(rest) + plan.block_size])
            size, last = len(rest) + got, got == 0
    finally:
        stream.close()


def _in_place(stream: Stream, number: int, base: int, back: int, plan: Plan) -> Generator[Piece, None, int]:
    """Pieces of a file that are not read here, from `back` bytes before what was read.

    Returns how far it came, where the stream goes on: to the end, to a last row without an end, which may still be
    written, or to a row that is longer than a block.
    """
    opened, start = stream.opened(), stream.place(back)
    shift, before = start - base, 0
    while start < (size := stream.size()) or size < before:
        if size < before:
            raise unreadable(stream.name, EOFError(f"{size} bytes instead of {before}"))
        before = size
        end = stream.row_end(start, min(size, start + plan.block_size))
        if end == start:
            break
        yield Piece(number, stream.name, start - shift, None, None, bytearray(), start, end, opened=opened)
        start = end
    stream.jump(start)
    return start - shift


def _too_long(plan: Plan, name: str) -> Unplaced:
    """A row whose end is nowhere near."""
    hint = " (is a quote not closed?)" if plan.form and plan.form.quote else ""
    told = f"expected a row of at most {plan.max_row} bytes, got a longer one{hint}; raise max_row (--max-row)"
    return Unplaced(BadFormat, name, told)


def _whole(plan: Plan, block: bytearray, at: int, size: int) -> int:
    """Where the last whole row of block[at:size] ends."""
    if plan.form is not None and plan.form.quote and block.find(plan.form.quote.encode(), at, size) >= 0:
        return whole_rows(memoryview(block)[:size], at, *plan.form.codes)
    return max(block.rfind(b"\n", at, size) + 1, at)


@final
@dataclass(frozen=True, slots=True)
class Parsed:
    """A piece as batches; `negative` is the label that was met in its rows, 1 when none was.

    Lines are counted from 0 at the begin of the piece: the rows of `lines` lines, the first bad one at `first_bad`, the
    one that ended it at `problem`.
    """

    piece: Piece
    batches: Sequence[Batch]
    lines: int
    bad: int
    first_bad: tuple[int, str] | None
    problem: tuple[int, str] | None
    negative: float

    def error(self, line: int) -> FtprlError | None:
        """What ended the reading in this piece or behind it, given the line of its first row."""
        if self.problem is not None:
            return BadFormat(f"{self.piece.origin}:{line + self.problem[0]}: {self.problem[1]}")
        wrong = self.piece.error
        return wrong.at(line + self.lines) if isinstance(wrong, Unplaced) else wrong


@final
class Reader:
    """A parser, and the window through which it reads files."""

    def __init__(self, parser: Parser) -> None:
        self.parser, self._window = parser, Window()

    def feed(self, piece: Piece) -> Iterator[None]:
        """Read the piece, with a stop whenever a batch is full and at the end."""
        if piece.opened is not None:
            self._window.open(piece.opened.file, piece.start, piece.end)
            while self._window.feed(self.parser):
                yield
            yield
            return
        at, text = piece.start, memoryview(piece.block)[: piece.end]
        while at < piece.end:
            at = self.parser.feed(text, at, True)
            yield


def parse(reader: Reader, piece: Piece, negative: float = 1.0) -> Parsed:
    """The rows of a piece, up to the first bad one unless those are left out."""
    parser, batches, before = reader.parser, [], reader.parser.bad
    if piece.columns is not None:
        parser.set_columns(list(piece.columns))
    parser.line, parser.negative = 1, negative  # a parser's first line is 1: 0 is no line
    try:
        for _ in reader.feed(piece):
            if parser.rows:
                batches.append(_taken(parser, piece.origin))
            if parser.problem is not None:
                break
    except (OSError, EOFError) as error:
        piece = replace(piece, error=unreadable(piece.origin, error))
        if parser.rows:
            batches.append(_taken(parser, piece.origin))
    bad = parser.bad - before
    first = _told(parser.first_bad) if bad else None
    return Parsed(piece, batches, parser.line - 1, bad, first, _told(parser.problem), parser.negative)


def _told(found: tuple[int, bytes] | None) -> tuple[int, str] | None:
    return None if found is None else (found[0] - 1, shown(found[1]))


def _taken(reader: Parser, origin: str) -> Batch:
    """The rows that a parser holds."""
    indptr, indices, values, y, weight, tagged = reader.take()
    tags: list[str] | None = None
    if tagged:
        tags = [""] * len(y)
        for row, tag in tagged:
            tags[row] = tag.decode("utf-8", "backslashreplace")
    return Batch.trusted(indptr, indices, values, y, weight, 0, origin, None if tags is None else tuple(tags))
