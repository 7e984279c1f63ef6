"""The receipt of a run under way: what it sees of the rows, what it tells, what the model keeps of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ftprl._core import has_units
from ftprl.data import Batch, Source
from ftprl.data.files import shown
from ftprl.linear.model import Model
from ftprl.receipt.certificate import SparseCertificate, so_far
from ftprl.receipt.digest import BatchDigest, FileDigests
from ftprl.receipt.provenance import Provenance, asks_for_units, is_told, provenance_of

_FULL_SCAN = 2**13  # rows from which on a receipt goes through the whole table


@final
class Keeper:
    """Beside a `Trainer` whose engine keeps a receipt; `record` is what the model keeps of it."""

    def __init__(self, model: Model, source: Source) -> None:
        self._model, self._source = model, source
        self.record = provenance_of(model) or Provenance(unit_values=asks_for_units(model.engine.spec))
        # Cells that may be touched. While few are, going through all of a large table would take long.
        self._seen = np.zeros(model.engine.spec.dim, np.bool_)
        if model.engine.progress.rows:
            self._seen[model.engine.touched()] = True
        self._slots: NDArray[np.intp] | None = None
        self._digests: FileDigests | BatchDigest | None = None

    def start(self) -> None:
        """Begin with the digests."""
        self._digests = FileDigests(self._source.files) if self._source.can_be_read_again else BatchDigest()

    def see(self, batch: Batch, rows: int) -> None:
        """Some rows that are about to be learned, the first of them number `rows` of this run."""
        if rows < _FULL_SCAN:
            self._seen[batch.indices] = True
            self._slots = None
        if isinstance(self._digests, BatchDigest):
            self._digests.update(batch)
        if self.record.unit_values and not has_units(batch.values):
            self.record = replace(self.record, unit_values=False)

    def tell(self, rows: int) -> dict[str, Any]:
        """The receipt after so many rows of this run, where one is told."""
        if not is_told(rows):
            return {}
        if rows >= _FULL_SCAN:
            self._slots = None
        elif self._slots is None:
            self._slots = np.flatnonzero(self._seen)
        told = self._told(so_far(self._model.engine, self._slots))
        self.record = self.record.told(self.record.read + rows, told["receipt"])
        return told

    def _told(self, receipt: SparseCertificate) -> dict[str, Any]:
        bins = self._model.engine.calibration
        return {"receipt": receipt.brief()} | ({} if bins is None else {"calibration": bins.tolist()})

    def finish(self, *, passes: int, holdout: int | None, retire: bool, rows: int, bad_rows: int) -> None:
        """Remember which data this run read, and how."""
        assert self._digests is not None
        again, found = isinstance(self._digests, FileDigests), self._digests.result()
        run = {
            "files": found if again else None,
            "batches": None if again else found,
            "passes": passes,
            "holdout": holdout,
            "retire": retire,
            "skip": self._source.skips_bad_rows,
            "rows": rows,
            "bad_rows": bad_rows,
        }
        self.record = self.record.ran(run)
        self._model.provenance = self.record.to_dict()

    def close(self) -> None:
        """Leave no thread behind."""
        if isinstance(self._digests, FileDigests):
            self._digests.close()

    def tell_all(self) -> dict[str, Any]:
        """What the last event tells."""
        receipt, run = so_far(self._model.engine, grouped=True), self.record.stream[-1]
        digests = run["files"] if run["files"] is not None else [run["batches"]]
        names = [shown(file) for file in self._source.files]
        return {
            **self._told(receipt),
            "coordinates": [dict(group) for group in receipt.coordinates],
            "coordinates_by": receipt.coordinates_by,
            "digests": [{"file": name, **entry} for name, entry in zip(names, digests, strict=True)],
        }
