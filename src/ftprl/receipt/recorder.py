"""Beside a training run: digests of its data, certificates on the way, and what the model keeps of both."""

from __future__ import annotations

from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from ftprl.data import Batch, Source
from ftprl.data.source import BatchDigest
from ftprl.errors import BadModel
from ftprl.linear.model import Model
from ftprl.receipt.certificate import StreamCertificate, running_certificate
from ftprl.receipt.digest import FileDigests
from ftprl.receipt.provenance import Provenance, provenance_of
from ftprl.receipt.soundness import not_finite

_FULL_SCAN = 2**13  # rows from which on a certificate goes through the whole table


class RunAsked(Protocol):
    """What a run was asked for, as far as a receipt keeps it."""

    @property
    def passes(self) -> int: ...
    @property
    def holdout(self) -> int | None: ...
    @property
    def order_of_rows(self) -> dict[str, Any]: ...


@final
class ReceiptRecorder:
    """Records the receipt of a run whose engine keeps one; `provenance` is what the model keeps of it."""

    def __init__(self, model: Model, source: Source) -> None:
        self._model, self._source = model, source
        self.provenance = provenance_of(model) or Provenance()
        # Cells that may be touched. While few are, going through all of a large table would take long.
        self._seen = np.zeros(model.spec.dim, np.bool_)
        if model.progress.rows:
            self._seen[model.touched()] = True
        self._slots: NDArray[np.intp] | None = None
        self._digests: FileDigests | BatchDigest | None = None

    def start(self, passes: int = 1) -> None:
        """Start to hash the data; refuses a run that a receipt has no room for."""
        source = self._source
        self.provenance.check_limits(files=len(source.files), passes=passes)
        self._digests = FileDigests(source.files) if source.files and source.can_be_read_again else BatchDigest()
        if isinstance(self._digests, BatchDigest) and source.can_be_read_again:
            for batch, _ in source.read():  # all rows, once: a run may begin in the middle, and have several passes
                self._digests.update(batch)

    def observe(self, batch: Batch, rows: int) -> None:
        """Take note of rows that are about to be learned; `rows` of this run came before them."""
        if rows < _FULL_SCAN:
            self._seen[batch.indices] = True
            self._slots = None
        if isinstance(self._digests, BatchDigest) and not self._source.can_be_read_again:
            self._digests.update(batch)

    def milestone(self, rows: int) -> dict[str, Any]:
        """What a progress event after `rows` rows of this run reports, at a milestone."""
        if rows >= _FULL_SCAN:
            self._slots = None
        elif self._slots is None:
            self._slots = np.flatnonzero(self._seen)
        report = self._report(running_certificate(self._model.engine, self._slots))
        self.provenance = self.provenance.with_milestone(self.provenance.rows_read + rows, report["receipt"])
        return report

    def _report(self, certificate: StreamCertificate) -> dict[str, Any]:
        if (broken := not_finite(certificate)) is not None:
            raise BadModel(f"expected a model as learning makes it, got one of which {broken}; train it again.")
        bins = self._model.engine.calibration
        # The weight of the rows themselves: with Poisson loss the receipt divides each row by the mean of the labels.
        rates = None if certificate.rates is None else {**certificate.rates, "weight": certificate.baseline["weight"]}
        proved = {"floor": certificate.curve.to_dict(), "rates": rates}
        return {"receipt": certificate.brief(), **proved} | ({} if bins is None else {"calibration": bins.tolist()})

    def finish(self, asked: RunAsked, *, rows: int, bad_rows: int) -> None:
        """Remember which data this run read, how, and in what order it learned the rows."""
        assert self._digests is not None
        of_files, digests = isinstance(self._digests, FileDigests), self._digests.result()
        run = {
            "files": digests if of_files else None,
            "batches": None if of_files else digests,
            "passes": asked.passes,
            "holdout": asked.holdout,
            "skip": self._source.skips_bad_rows,
            "rows": rows,
            "bad_rows": bad_rows,
            "order": asked.order_of_rows,
        }
        self.provenance = self.provenance.with_run(run)
        self._model.provenance = self.provenance.to_dict()

    def close(self) -> None:
        """Leave no thread behind."""
        if isinstance(self._digests, FileDigests):
            self._digests.close()

    def summary(self) -> dict[str, Any]:
        """What the last event of a run reports."""
        certificate, run = running_certificate(self._model.engine, grouped=True), self.provenance.runs[-1]
        digests = run["files"] if run["files"] is not None else [run["batches"]]
        names = self._source.describe().files
        return {
            **self._report(certificate),
            "coordinates": [dict(group) for group in certificate.coordinates],
            "coordinates_by": certificate.coordinates_by,
            "digests": [{"file": name, **entry} for name, entry in zip(names, digests, strict=True)],
        }
