"""Chunks of text as batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, final

from ftprl._core import Parser, Window, text_fingerprint
from ftprl.data.batch import Batch, RowNames
from ftprl.data.chunks import Chunk
from ftprl.data.files import ErrorWithoutLine, shown, unreadable
from ftprl.errors import BadFormat, FtprlError

Problem = tuple[int, str, str, str]  # line, what is wrong, remedy, option of the remedy


@final
class ParsedChunk(NamedTuple):
    """The rows of a chunk as batches.

    Lines are counted from 0 at the begin of the chunk: it has `lines` of them, the first bad row is at `first_bad`,
    the one that ended the parsing at `problem`. `negative` is the label that counts as -1 in these rows, 1 when none
    occurred. `fingerprint` is that of its text. `left_out` counts bad rows by the number of good rows before them;
    `records` has the text of every row, good or bad, where it is kept.
    """

    chunk: Chunk
    batches: Sequence[Batch]
    lines: int
    bad: int
    first_bad: tuple[int, str] | None
    problem: Problem | None
    negative: float
    fingerprint: int
    left_out: Mapping[int, int]
    records: Sequence[bytes]

    def error(self, line: int) -> FtprlError | None:
        """What ended the reading in this chunk or behind it, given the line of its first row."""
        if self.problem is not None:
            at, what, remedy, option = self.problem
            return BadFormat(
                f"{self.chunk.origin}:{line + at}: {with_remedy(what, remedy, option)}",
                option=(option, "on_bad_row", "loss"),
            )
        error = self.chunk.error
        return error.at(line + self.lines) if isinstance(error, ErrorWithoutLine) else error


def with_remedy(what: str, remedy: str, option: str) -> str:
    """What is wrong with a row, and what to do: a remedy with an option, another kind of column, or the row itself."""
    if remedy:
        return f"{what}; {remedy} {option}="
    if "; rescale the" in what:
        return what
    other = f" pass {option}= with the column," if option else ""
    if what.startswith("expected a number as the label") and " in column " in what:
        other = " pass loss=softmax for classes,"
    return f"{what}; fix the row,{other} or pass on_bad_row=skip"


@final
class ChunkParser:
    """A parser of the core, and the window through which it reads files."""

    def __init__(self, parser: Parser, *, wants_fingerprint: bool = False, keeps_records: bool = False) -> None:
        self._parser, self._window, self._wants_fingerprint = parser, Window(), wants_fingerprint
        parser.keeps_records = keeps_records
        self._last_start = (0, 0)  # of the last chunk

    def join(self, other: ChunkParser) -> None:
        """Stop recording names together with another parser of the same text."""
        self._parser.join_names(other._parser)

    def parse(self, chunk: Chunk, negative: float = 1.0) -> ParsedChunk:
        """The rows of a chunk, up to the first bad one unless those are left out."""
        parser, taking, bad_before = self._parser, Taking(self._parser, chunk.origin), self._parser.bad
        if chunk.columns is not None:
            parser.set_columns(list(chunk.columns), chunk.separator)
        if (chunk.file, chunk.offset) < self._last_start:  # threads may take a parser in another order than chunks
            parser.forget_names()
        self._last_start = (chunk.file, chunk.offset)
        parser.line, parser.negative = 1, negative  # a parser's first line is 1: 0 is no line
        try:
            for _ in self._feed(chunk):
                taking.take()
                if parser.problem is not None:
                    break
        except (OSError, EOFError) as error:
            chunk = chunk._replace(error=unreadable(chunk.origin, error))
            taking.take()
        bad = parser.bad - bad_before
        first_bad, problem = (_from_line_0(parser.first_bad) if bad else None), _from_line_0(parser.problem)
        return ParsedChunk(
            chunk=chunk,
            batches=taking.batches,
            lines=self.lines,
            bad=bad,
            first_bad=None if first_bad is None else first_bad[:2],
            problem=problem,
            negative=parser.negative,
            fingerprint=self._fingerprint(chunk),
            left_out=taking.left_out,
            records=taking.records,
        )

    @property
    def lines(self) -> int:
        """How many lines of the chunk were parsed."""
        return self._parser.line - 1

    def row_lines(self, chunk: Chunk, negative: float, count: int) -> Iterator[int]:
        """The lines at which the first `count` rows of a chunk begin, from 0; the parser stops at each row."""
        parser = self._parser
        if chunk.columns is not None:
            parser.set_columns(list(chunk.columns), chunk.separator)
        parser.line, parser.negative = 1, negative
        for _ in self._feed(chunk):
            if parser.rows:
                parser.take()
                yield parser.row_line - 1
                count -= 1
            if parser.problem is not None or count == 0:
                return

    def _fingerprint(self, chunk: Chunk) -> int:
        if not self._wants_fingerprint:
            return 0
        if chunk.shared_file is not None:
            return self._window.fingerprint
        return text_fingerprint(chunk.block, chunk.start, chunk.end, chunk.offset)

    def _feed(self, chunk: Chunk) -> Iterator[None]:
        """Parse the chunk, with a stop whenever a batch is full and at the end."""
        if chunk.shared_file is not None:
            part = (chunk.shared_file.descriptor, chunk.start, chunk.end, chunk.offset)
            self._window.open(*part, self._wants_fingerprint)
            while self._window.feed(self._parser):
                yield
            yield
            return
        at, text = chunk.start, memoryview(chunk.block)[: chunk.end]
        while at < chunk.end:
            at = self._parser.feed(text, at, True)
            yield


def _from_line_0(problem: tuple[int, bytes, str, str] | None) -> Problem | None:
    return None if problem is None else (problem[0] - 1, shown(problem[1]), problem[2], problem[3])


@final
class LeftOut:
    """Where the rows are that a reading has left out: their count, by how many good rows come before them."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}

    def add(self, first_row: int, counts: Mapping[int, int]) -> None:
        """Add those of a chunk that begins behind `first_row` good rows; drop what nobody took of earlier ones."""
        kept = {row: count for row, count in self._counts.items() if row >= first_row}
        for row, count in counts.items():
            kept[first_row + row] = kept.get(first_row + row, 0) + count
        self._counts = kept

    def take(self) -> dict[int, int]:
        """The rows left out since the last call."""
        counts, self._counts = self._counts, {}
        return counts


@final
class Taking:
    """What a parser of the core has read so far: batches, where rows were left out, and the text if it is kept."""

    def __init__(self, parser: Parser, origin: str) -> None:
        self._parser, self._origin, self._rows, self._bad = parser, origin, 0, parser.bad
        self.batches: list[Batch] = []
        self.records: list[bytes] = []
        self.left_out = Counter[int]()  # bad rows, by how many good rows come before them

    def take(self) -> None:
        """Take what was read since the last call."""
        if self._parser.bad != self._bad:
            self._bad = self._parser.bad
            self.left_out.update(self._rows + rows for rows in self._parser.take_left_out())
        if self._parser.rows:
            self.batches.append(taken(self._parser, self._origin))
            self._rows += len(self.batches[-1])
        if self._parser.keeps_records:
            self.records += self._parser.take_records()


def taken(parser: Parser, origin: str) -> Batch:
    """The rows that a parser holds."""
    indptr, indices, values, y, weight, tags_by_row = parser.take()
    tags: list[str] | None = None
    if tags_by_row:
        tags = [""] * len(y)
        for row, tag in tags_by_row:
            tags[row] = tag.decode("utf-8", "backslashreplace")
    new = parser.take_names()
    names = None if new is None else RowNames(new, 0, len(y))
    tagged = None if tags is None else tuple(tags)
    texts = {code: text.decode("utf-8", "backslashreplace") for code, text in parser.take_label_texts()}
    return Batch.trusted(indptr, indices, values, y, weight, 0, origin, tagged, True, names, texts)
