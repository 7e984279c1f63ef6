"""The rows that a model's runs learned, read again from the data: passes, held-out rows and skipped rows included."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ftprl import data as readers
from ftprl.data import Batch, Source
from ftprl.data.files import expand, lasts, shown
from ftprl.data.source import BatchDigest
from ftprl.errors import InvalidInput
from ftprl.linear.spec import LIMIT, Spec
from ftprl.receipt.digest import digest_of_file
from ftprl.receipt.row_order import KeyedRows, ReplayedOrder

Run = Mapping[str, Any]
Rows = NDArray[np.bool_]


@final
class Part(NamedTuple):
    """Rows that are learned one after the other.

    Those that waited have a stage: "compared" with the `checked` rows, which are predicted before the "third" quarter,
    and the "last" quarter, which is "drawn" from all rows if there were more than may wait.
    """

    batch: Batch
    stage: str
    checked: Batch | None


@final
class LearnedData:
    """The files that were learned, assigned to the runs that read them."""

    def __init__(
        self, data: Any, runs: Sequence[Run], reading: Mapping[str, Any], spec: Spec, *, names: bool = False
    ) -> None:
        self.spec, self.runs, self.reading = spec, runs, reading
        self._names: bool | str = "all" if spec.bounds else names
        data = readers.as_data(data) if not _are_sources(data) else data
        if readers.are_paths(data):
            self.files = self._dealt(list(expand(data)))
            inputs: Sequence[Any] = self.files
        else:
            inputs = list(data) if _are_sources(data) else [data]
            if len(inputs) != len(runs) or any(run["files"] is not None for run in runs):
                raise InvalidInput(
                    f"data needs the {len(runs)} runs that were learned, got {len(inputs)} in memory; pass them all."
                )
            self.files = [["<memory>"] for _ in inputs]
        self.sources: list[Source] = [self._open(own, run, reading) for own, run in zip(inputs, runs, strict=True)]

    def _dealt(self, files: list[str]) -> list[list[str]]:
        """The files of each run."""
        runs = self.runs
        wanted = sum(1 if run["files"] is None else len(run["files"]) for run in runs)
        if len(files) != wanted:
            raise InvalidInput(
                f"data needs the {wanted} file{'s'[: wanted > 1]} that were learned, in their order, got {len(files)};"
                " pass them all."
            )
        if not all(lasts(file) for file in files):
            raise InvalidInput("data needs files that can be read again, got standard input or a pipe; save it first.")
        dealt: list[list[str]] = []
        for run in runs:
            count = 1 if run["files"] is None else len(run["files"])
            dealt.append(files[:count])
            del files[:count]
        return dealt

    def _open(self, data: Any, run: Run, reading: Mapping[str, Any]) -> Source:
        if isinstance(data, Source):
            return data
        settings = readers.settings_for(reading, data)
        return readers.open(
            data, labelled=True, on_bad_row="skip" if run["skip"] else "raise", names=self._names, **settings
        )

    def check_digests(self) -> None:
        """Refuse files other than those that were learned."""
        for number, run in enumerate(self.runs):
            if run["files"] is None:
                digest = BatchDigest()
                for batch, _ in self.sources[number].read(threads=0):
                    digest.update(batch)
                self._compare(self.files[number][0], digest.result(), run["batches"])
                continue
            for file, entry in zip(self.files[number], run["files"], strict=True):
                self._compare(file, digest_of_file(file), entry)

    def _compare(self, file: str, digest: Mapping[str, Any], learned: Mapping[str, Any]) -> None:
        if dict(digest) != dict(learned):
            raise InvalidInput(
                f"{shown(file)}: expected the data that was learned, of SHA-256 {learned['sha256'][:12]}..., got"
                f" {digest['sha256'][:12]}...; pass the same files, in their order."
            )

    def in_order(
        self, number: int, before: int, arrive: Callable[[Batch, Rows], tuple[Batch, Rows]] | None = None
    ) -> Iterator[Part]:
        """Yield the rows of one pass of run `number` as they are learned, held-out rows with weight 0.

        `before` is the number of rows that earlier runs met for the first time. `arrive` gets the rows in the order of
        the data and which of them cannot be learned; it returns the rows and which are left out.
        """
        run = self.runs[number]
        asked, order = run["order"], None
        if asked["order"] == "random":
            order = ReplayedOrder(asked["order_seed"], asked["waiting"], float64=self.spec.float64)

        def part(rows: KeyedRows, stage: str = "", checked: KeyedRows | None = None) -> Part:
            weight = rows.batch.weight.copy()
            if run["holdout"] is not None:
                weight[(rows.numbers + before + 1) % run["holdout"] == 0] = 0.0
            batch = None if checked is None or not len(checked) else checked.batch
            return Part(rows.batch.replaced(weight=weight), stage, batch)

        for batch, _ in self.sources[number].read(threads=0):
            unfit = ~_fits(batch, self.spec) if run["skip"] else np.zeros(len(batch), np.bool_)
            batch, left_out = (batch, unfit) if arrive is None else arrive(batch, unfit)
            rows = KeyedRows.of(batch.replaced(weight=np.where(unfit, 0.0, batch.weight)))
            yield part(rows if order is None else order.add(rows.where(~left_out)))
        if order is not None:
            due, last = order.finish()
            yield part(due)
            ends = (0, last.compared_at, last.check_at, last.last_at, len(last.rows))
            stages = ("", "compared", "third", "drawn" if last.has_overflowed else "last")
            for stage, start, end in zip(stages, ends, ends[1:], strict=False):
                yield part(last.rows.between(start, end), stage, last.checked if stage == "third" else None)


def _are_sources(data: Any) -> bool:
    return isinstance(data, list | tuple) and all(isinstance(one, Source) for one in data)


def _fits(batch: Batch, spec: Spec) -> NDArray[np.bool_]:
    """Which rows a learner takes: values, labels, weights and their products within their domains."""
    sizes = np.abs(batch.values)
    largest = np.maximum.reduceat(np.append(sizes, 0.0), batch.indptr[:-1]) if len(batch) else np.empty(0)
    largest = np.where(np.diff(batch.indptr) > 0, largest, 0.0)
    labels = np.ones(len(batch), np.bool_) if spec.classes else spec.scalar_loss().accepts(batch.y)
    fits = (largest <= LIMIT) & labels & (batch.weight >= 0) & (batch.weight <= LIMIT)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(fits & ~(batch.weight * largest > float(np.float32(LIMIT))))
