"""Files as a stream of batches: `open` settles what is read and how, a `Source` reads it as often as wanted."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from typing import Any, final

from ftprl._core import Parser, parser
from ftprl.check import dimension
from ftprl.data import tables
from ftprl.data.batch import Batch
from ftprl.data.chunks import Parsed, Piece, Reader, Store, TextPosition, parse, pieces
from ftprl.data.files import STDIN, Stream, expand, lasts, shown, suffixes
from ftprl.data.fingerprints import check_same_files, ends_of
from ftprl.data.labels import LabelRule, of_numbers
from ftprl.data.prefetch import ahead, usual_threads
from ftprl.data.protocol import Description, Position, Source
from ftprl.errors import InvalidInput

BATCH_ROWS = 16384
BATCH_VALUES = 1 << 21
_START = TextPosition()
_FORMATS = {
    ".vw": "vw",
    ".libsvm": "libsvm",
    ".svm": "libsvm",
    ".svmlight": "libsvm",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
}


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """All that decides what a row of a file becomes."""

    format: str
    dim: int
    seed: int
    intercept: bool
    dtype: str
    loss: str
    positive: str | None
    labels: LabelRule
    form: tables.Dialect | None
    columns: dict[str, str] | None
    skip: bool
    max_row: int
    block_size: int
    reused: bool
    labelled: bool

    def parser(self) -> Parser:
        sep, quote = (0, -1) if self.form is None else self.form.codes
        return parser(
            "table" if self.form else self.format,
            dim=self.dim,
            seed=self.seed,
            intercept=self.intercept,
            wide=self.dtype == "float64",
            skip=self.skip,
            max_row=self.max_row,
            batch_rows=BATCH_ROWS,
            batch_values=BATCH_VALUES,
            labels=self.labels.kind,
            positive=self.labels.positive.encode(),
            words=[(word.encode(), y) for word, y in self.labels.words],
            separator=sep,
            quote=quote,
        )


@final
class TextSource(Source):
    """Text files as batches, in constant memory; `ftprl.data.open` makes one."""

    def __init__(self, files: tuple[str, ...], plan: Plan, begun: tuple[Stream, bytes] | None = None) -> None:
        self._files, self._plan, self._begun = files, plan, begun
        self._read_once = False
        self._bad_rows = 0  # left out by the last reading
        self._first_bad: tuple[int, int, str] | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """The files, in the order in which they are read."""
        return self._files

    @property
    def can_be_read_again(self) -> bool:
        """Whether all of it is in files; standard input and pipes can be read once."""
        return all(lasts(file) for file in self._files)

    @property
    def skips_bad_rows(self) -> bool:
        """Whether bad rows are left out rather than ending the reading."""
        return self._plan.skip

    @property
    def bad_rows(self) -> int:
        """How many rows were left out, up to where the last reading has come."""
        return self._bad_rows

    @property
    def first_bad(self) -> str | None:
        """Where the first row was left out, and why."""
        if self._first_bad is None:
            return None
        file, line, why = self._first_bad
        return f"{'<stdin>' if self._files[file] == STDIN else shown(self._files[file])}:{line}: {why}"

    @property
    def dim(self) -> int:
        """The number of cells of the table."""
        return self._plan.dim

    @property
    def intercept_slot(self) -> int | None:
        """The cell that belongs to the intercept alone: the last."""
        return self._plan.dim - 1 if self._plan.intercept else None

    @property
    def start(self) -> TextPosition:
        """The position of the first row."""
        return _START

    def position(self, saved: Mapping[str, Any]) -> TextPosition:
        """The position that `TextPosition.to_dict` saved."""
        return TextPosition.from_dict(saved)

    def fingerprint(self) -> list[tuple[int, str]] | None:
        """The size of each file and a digest of its first and last bytes; None for what cannot be read again."""
        return [ends_of(file) for file in self._files] if self.can_be_read_again else None

    def check_unchanged(self, fingerprint: Any) -> None:
        """Refuse files that are not those of a fingerprint taken before."""
        check_same_files(self._files, self.fingerprint(), fingerprint)

    def describe(self) -> Description:
        """What is read: the files, their format, what each column is for, what the labels become."""
        plan, names = self._plan, tuple(shown(file) for file in self._files)
        return Description(plan.format, names, plan.columns, str(plan.labels), plan.dim, plan.intercept)

    def to_dict(self) -> dict[str, Any]:
        """The arguments of `open` that read other files in the same way: `open(path, **source.to_dict())`."""
        plan = self._plan
        said: dict[str, Any] = {"format": plan.format, "dim": plan.dim, "seed": plan.seed, "intercept": plan.intercept}
        said |= {"dtype": plan.dtype, "loss": plan.loss, "positive": plan.positive}
        if plan.form is not None:
            quote = plan.form.quote or ""
            said |= {
                "columns": dict(plan.columns or {}),
                "sep": plan.form.sep,
                "quote": quote,
                "header": plan.form.header,
            }
        return said

    def _claim(self) -> None:
        if not self.can_be_read_again:
            if self._read_once:
                raise InvalidInput(
                    "standard input or a pipe can be read once, got a second reading; save it to a file first."
                )
            self._read_once = True

    def read(
        self, start: Position | None = None, *, threads: int | None = None
    ) -> Generator[tuple[Batch, TextPosition]]:
        """Batches from a position on, each with the position of its first row, parsed ahead by that many threads.

        The rows and their cutting are the same for any number of threads; with 0 the caller's own does everything,
        with None there are as many as the processors are good for.
        """
        if not isinstance(start, TextPosition | None):
            raise InvalidInput(
                f"start needs a position in text files, got {type(start).__name__}; pass one of its own."
            )
        self._claim()
        return self._read(start or _START, usual_threads() if threads is None else threads)

    def _read(self, start: TextPosition, threads: int) -> Generator[tuple[Batch, TextPosition]]:
        self._bad_rows, self._first_bad = start.bad, start.first_bad
        readers: list[Reader] = []
        negative, skip, rows, line = start.negative, start.skip, start.rows - start.skip, start.line

        def work(piece: Piece) -> Parsed:
            try:
                reader = readers.pop()
            except IndexError:
                reader = Reader(self._plan.parser())
            parsed = parse(reader, piece, negative)
            if parsed.problem is None:
                readers.append(reader)
            return parsed

        store = Store()
        jobs = pieces(self._files, self._plan, start, store, self._begun)
        wait = self.can_be_read_again
        done = ahead(jobs, work, threads, wait=wait) if threads else (work(piece) for piece in jobs)
        # Whatever ends it, no thread and no file stays behind, unless a thread waits for standard input.
        with closing(jobs) if wait else nullcontext(), closing(done):
            for parsed in done:
                piece = parsed.piece
                if negative not in (1.0, parsed.negative) and parsed.negative != 1.0:
                    # Parsed before its rows could know what those in front of it had settled.
                    parsed = parse(Reader(self._plan.parser()), piece, negative)
                line = line if piece.line is None else piece.line
                here = TextPosition(piece.file, piece.offset, line, 0, rows, self._bad_rows, negative, self._first_bad)
                self._bad_rows += parsed.bad
                if self._first_bad is None and parsed.first_bad is not None:
                    self._first_bad = (piece.file, line + parsed.first_bad[0], parsed.first_bad[1])
                if parsed.negative != 1.0:
                    negative = parsed.negative
                for batch in parsed.batches:
                    given = min(skip, len(batch))
                    if given < len(batch):
                        yield batch.numbered(here.rows, given), here.after(given)
                    here, skip = here.after(len(batch)), skip - given
                rows = here.rows
                if piece.opened is None:
                    store.give(piece.block)
                error = parsed.error(line)
                if error is not None:
                    raise error
                line += parsed.lines


def open(
    paths: Any,
    format: str | None = None,
    *,
    dim: int = 2**22,
    seed: int = 0,
    intercept: bool = False,
    label: str | int | None = None,
    weight: str | int | None = None,
    ignore: str | int | Sequence[str | int] = (),
    categorical: str | int | Sequence[str | int] = (),
    numeric: str | int | Sequence[str | int] = (),
    text: str | int | Sequence[str | int] = (),
    positive: str | float | None = None,
    sep: str | None = None,
    quote: str | None = None,
    header: bool = True,
    on_bad_row: str = "raise",
    max_row: int = 16_000_000,
    columns: Mapping[str, str] | None = None,
    labelled: bool = False,
    loss: str = "logistic",
    dtype: str = "float32",
    block_size: int = 1 << 22,
) -> TextSource:
    """Settle how files are read: paths, folders, patterns or '-', as VW text, libsvm, CSV or TSV (by their suffix).

    `intercept` puts a 1 into the last cell of every row, for a learner without an intercept of its own. With `columns`
    from another source, files may lack the label and the weight unless they have to be `labelled`.

    >>> open("clicks.csv.gz", label="click", ignore=["id"])  # doctest: +SKIP
    """
    files = expand(paths)
    chosen = _format(files, format)
    wishes = tables.Wishes(
        _name(label), _name(weight), _names(ignore), _names(categorical), _names(numeric), _names(text)
    )
    named = None if positive is None else _name(positive)
    _check(dim, seed, on_bad_row, dtype, max_row, block_size)
    plan = Plan(
        format=chosen,
        dim=int(dim),
        seed=int(seed),
        intercept=bool(intercept),
        dtype=dtype,
        loss=loss,
        positive=named,
        labels=LabelRule("number"),
        form=None,
        columns=None,
        skip=on_bad_row == "skip",
        max_row=int(max_row),
        block_size=int(block_size),
        reused=columns is not None,
        labelled=bool(labelled),
    )
    said = wishes.kinds()
    if chosen in ("vw", "libsvm"):
        if said or columns is not None or sep is not None or quote is not None:
            given = next(
                iter(said.values()), "columns" if columns is not None else "sep" if sep is not None else "quote"
            )
            raise InvalidInput(
                f"{given} needs a table, got the format {chosen}; drop it, or pass format (--format) csv."
            )
        return TextSource(files, replace(plan, labels=of_numbers(loss, named)))
    if said and columns is not None:
        raise InvalidInput(f"columns says what each column is for, got {next(iter(said.values()))} as well; keep one.")
    plan = replace(plan, form=tables.dialect(chosen, sep, quote, header))
    return _table(files, plan, wishes, columns)


def _table(files: tuple[str, ...], plan: Plan, wishes: tables.Wishes, columns: Mapping[str, str] | None) -> TextSource:
    """Look at the first rows, then fix the kinds of the columns and the rule of the labels."""
    assert plan.form is not None
    stream = Stream(files[0])
    try:
        names, data, at, _ = tables.read_header(stream, plan.form, plan.block_size, plan.max_row)
        fixed = None if columns is None else tables.check_kinds(columns)
        label = wishes.label if fixed is None else next((n for n, kind in fixed.items() if kind == "label"), None)
        place = names.index(label) if label in names else len(names)
        data, counts, values = tables.sample(stream, plan.form, data, at, plan.block_size, len(names), place)
        kinds = fixed if fixed is not None else tables.decide(names, wishes, counts, stream.name)
        rule = tables.label_rule(kinds, plan.loss, plan.positive, values)
    except BaseException:
        stream.close()
        raise
    if lasts(files[0]):
        stream.close()
    begun = None if lasts(files[0]) else (stream, data)
    return TextSource(files, replace(plan, columns=kinds, labels=rule), begun)


def as_named(reading: Mapping[str, Any], paths: Any, asked: Mapping[str, Any]) -> dict[str, Any]:
    """`reading` for other files: a format that is asked for, or that their suffix names, brings its own separators."""
    files = expand(paths)
    wanted = asked.get("format") or _FORMATS.get(suffixes(files[0])[0]) or reading.get("format")
    if wanted == reading.get("format") or {wanted, reading.get("format")} != {"csv", "tsv"}:
        return dict(reading)
    return {name: value for name, value in reading.items() if name not in ("sep", "quote")} | {"format": wanted}


def _format(files: Sequence[str], format: str | None) -> str:
    known = sorted(set(_FORMATS.values()))
    if format is not None:
        if format not in known:
            raise InvalidInput(f"format needs one of {', '.join(known)}, got {format!r}; pass one of them.")
        return format
    found = {file: _FORMATS.get(suffixes(file)[0], "") for file in files}
    for file, name in found.items():
        if not name:
            raise InvalidInput(
                f"{shown(file)}: the format is not clear from the name; pass format (--format) {' or '.join(known)}."
            )
    if len(set(found.values())) > 1:
        raise InvalidInput(
            f"open needs files of one format, got {', '.join(sorted(set(found.values())))}; pass format (--format)."
        )
    return found[files[0]]


def _check(dim: int, seed: int, on_bad_row: str, dtype: str, max_row: int, block_size: int) -> None:
    if not 2 <= dimension("dim", dim) <= 2**32:
        raise InvalidInput(f"dim needs a number from 2 to 2**32, got {dim}; pass the number of cells of the table.")
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**64:
        raise InvalidInput(f"seed needs a whole number from 0 to 2**64 - 1, got {seed!r}; pass one.")
    if on_bad_row not in ("raise", "skip"):
        raise InvalidInput(f"on_bad_row needs raise or skip, got {on_bad_row!r}; pass one of them.")
    if dtype not in ("float32", "float64"):
        raise InvalidInput(f"dtype needs float32 or float64, got {dtype!r}; pass one of them.")
    dimension("max_row", max_row)
    dimension("block_size", block_size)


def _name(value: str | float | None) -> str | None:
    """A column, or a label, may be given as a number."""
    return None if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _names(values: str | int | Sequence[str | int]) -> tuple[str, ...]:
    if isinstance(values, str | int):
        return (str(values),)
    return tuple(str(value) for value in values)
