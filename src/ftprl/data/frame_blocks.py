"""Blocks of data frames and dicts: a position in them, the settings of their parser, and the rows they become."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, final

from ftprl._core import RecordParser, parser
from ftprl.data.batch import Batch
from ftprl.data.blocks import Block
from ftprl.data.columns import ColumnPlan
from ftprl.data.digests import RowDigest, whole_numbers
from ftprl.data.files import shown
from ftprl.data.interactions import Interactions, as_bytes, as_lists
from ftprl.data.labels import LabelRule
from ftprl.data.ngrams import NO_GRAMS, Grams
from ftprl.data.options import RECORDS
from ftprl.data.parsing import Taking, with_remedy
from ftprl.data.protocol import KINDS
from ftprl.data.text_settings import BATCH_ROWS, BATCH_VALUES
from ftprl.errors import InvalidInput

Job = tuple[Block, int, int]  # a block, and which of its rows


@final
@dataclass(frozen=True, slots=True)
class FramePosition:
    """A place between two rows: `skip` good rows behind row number `record` of the data.

    In files, `record` is counted from the begin of part number `group` of file number `file`. `rows` rows come before
    it; `bad` rows were left out before `record`, the first as `first_bad` says; `negative` is the label that counts as
    -1 in the rows before, 1 when there was none. `digest` is that of the rows before `record`, None where a reading
    made none, and `end` that of all rows up to the end of those that were read together with it.
    """

    file: int = 0
    group: int = 0
    record: int = 0
    skip: int = 0
    rows: int = 0
    bad: int = 0
    negative: float = 1.0
    first_bad: str | None = None
    digest: RowDigest | None = None
    end: RowDigest | None = None

    def after(self, rows: int) -> FramePosition:
        """The position that many rows further on."""
        return replace(self, skip=self.skip + rows, rows=self.rows + rows)

    def without_digest(self) -> FramePosition:
        """The same position for a reading that makes no digest."""
        return replace(self, digest=None, end=None)

    def to_dict(self) -> dict[str, Any]:
        """The position as JSON values."""
        values = {name: getattr(self, name) for name in (*_COUNTS, "negative", "first_bad")}
        digests = {name: getattr(self, name) for name in ("digest", "end")}
        return {**values, **{name: None if value is None else value.to_list() for name, value in digests.items()}}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> FramePosition:
        """The position that `to_dict` saved."""
        counts = {name: saved.get(name) for name in _COUNTS}
        good = all(type(count) is int and count >= 0 for count in counts.values())
        first = saved.get("first_bad")
        if not good or saved.get("negative") not in (-1.0, 0.0, 1.0) or not isinstance(first, str | None):
            raise InvalidInput(f"a position needs counts of at least 0, got {saved!r:.200}; start anew.")
        kept = {name: saved.get(name) for name in ("digest", "end")}
        digests = {name: None if one is None else RowDigest(*whole_numbers(one, 3)) for name, one in kept.items()}
        return cls(**counts, **digests, negative=float(saved["negative"]), first_bad=first)  # type: ignore[arg-type]


_COUNTS = ("file", "group", "record", "skip", "rows", "bad")


@final
@dataclass(frozen=True, slots=True)
class FrameSettings:
    """All that decides what a row becomes."""

    format: str
    dim: int
    seed: int
    intercept: bool
    dtype: str
    loss: str
    positive: str | None
    labels: LabelRule
    plan: ColumnPlan
    skip_bad_rows: bool
    batch_rows: int = BATCH_ROWS
    names: bool | str = False  # "all": none may be missed
    interactions: Interactions = ()
    grams: Grams = NO_GRAMS

    def parser(self) -> RecordParser:
        """A parser of the core with these settings."""
        made = parser(
            "records",
            dim=self.dim,
            seed=self.seed,
            intercept=self.intercept,
            wide=self.dtype == "float64",
            skip=self.skip_bad_rows,
            max_row=1,
            batch_rows=self.batch_rows,
            batch_values=BATCH_VALUES,
            labels=self.labels.kind,
            positive=self.labels.positive.encode(),
            words=[(word.encode(), y) for word, y in self.labels.words],
            separator=0,
            quote=-1,
            names=bool(self.names),
            all_names=self.names == "all",
            interactions=as_bytes(self.interactions),
            grams=self.grams.rules(self.plan.kinds),
        )
        assert isinstance(made, RecordParser)
        made.set_rules(*self.plan.core_rules)
        kinds = self.plan.kinds
        names = [(KINDS.index(kind), name.encode("utf-8", "backslashreplace")) for name, kind in kinds.items()]
        made.set_names(names, self.format == RECORDS)
        return made

    def to_dict(self) -> dict[str, Any]:
        """The options of `ftprl.data.open` that read other data in the same way."""
        return {
            "format": self.format,
            "dim": self.dim,
            "seed": self.seed,
            "intercept": self.intercept,
            "dtype": self.dtype,
            "loss": self.loss,
            "positive": self.positive,
            **self.plan.to_dict(),
            **as_lists(self.interactions),
            **self.grams.to_dict(),
        }


@final
@dataclass(frozen=True, slots=True)
class ParsedBlock:
    """Some rows as batches; rows are numbered within the block."""

    job: Job
    batches: list[Batch]
    bad: int
    first_bad: str | None
    problem: tuple[str, str] | None  # where and what is wrong, option of the remedy
    negative: float
    left_out: Mapping[int, int]


@final
class BlockParser:
    """A parser of the core and the block it reads."""

    def __init__(self, settings: FrameSettings) -> None:
        self._parser = settings.parser()
        self._block: Block | None = None
        self._last_start = (0, 0, 0)  # the first row of the last job

    def join(self, other: BlockParser) -> None:
        """Stop recording names together with another parser of the same data."""
        self._parser.join_names(other._parser)

    def parse(self, job: Job, negative: float) -> ParsedBlock:
        """The rows of a job, up to the first bad one unless those are left out."""
        block, at, stop = job
        start = (block.file, block.group, block.first + at)
        if start < self._last_start:  # threads may take a parser in another order than jobs
            self._parser.forget_names()
        self._last_start = start
        core, bad_before = self._bound(block), self._parser.bad
        core.negative, taking = negative, Taking(core, block.origin)
        while at < stop and core.problem is None:
            at = core.read(at, stop) if block.records is None else core.read_records(block.records, at, stop)
            taking.take()
        bad, first, problem = core.bad - bad_before, core.first_bad, core.problem
        first_bad = None if first is None or not bad else f"{block.where(first[0] - 1)}: {shown(first[1])}"
        wrong: tuple[str, str] | None = None
        if problem is not None:
            what = with_remedy(shown(problem[1]), *problem[2:])
            wrong = f"{block.where(problem[0] - 1)}: {what}", problem[3]
        return ParsedBlock(job, taking.batches, bad, first_bad, wrong, core.negative, taking.left_out)

    def _bound(self, block: Block) -> RecordParser:
        if self._block is not block:
            self._parser.set_batch(block.columns, *block.batch.__arrow_c_array__())
            self._block = block
        return self._parser


def jobs_of(block: Block, start: FramePosition, rows: int = BATCH_ROWS) -> Iterator[Job]:
    """The rows of a block from a position on, cut where a reading from the first row would cut them."""
    record = start.record if (block.file, block.group) == (start.file, start.group) else 0
    for at in range(0, block.rows, rows):
        stop = min(at + rows, block.rows)
        if block.first + stop > record:
            yield block, max(at, record - block.first), stop
