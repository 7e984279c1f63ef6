"""What a model keeps for its receipt besides its cells: which data it read and how, and its certificates on the way."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, final

from ftprl.errors import BadModel, InvalidInput
from ftprl.linear.model import Model
from ftprl.linear.spec import Spec

_SEGMENT = ("bad_rows", "batches", "files", "holdout", "passes", "retire", "rows", "skip")
_MOST = 100_000  # entries of a list that a model may carry
_OFTEN = 2**12  # rows up to which every power of two is a milestone


def is_milestone(rows: int) -> bool:
    """Whether a certificate is recorded after so many rows of a run: powers of two, beyond 4096 powers of 16.

    >>> [rows for rows in (1, 2, 3, 2**12, 2**14, 2**16) if is_milestone(rows)]
    [1, 2, 4096, 65536]
    """
    return rows & (rows - 1) == 0 and (rows <= _OFTEN or rows.bit_length() % 4 == 1)


@final
@dataclass(frozen=True, slots=True)
class Provenance:
    """The runs that made a model, one after another, and the certificates recorded on the way.

    A run has its `files` (`bytes` and `sha256` of each) or, of what cannot be read again, the digest of its `batches`;
    the `passes`, `holdout`, `retire` and `skip` it was asked for, the `rows` it read in all passes and those it left
    out. A milestone is the certificate against the model's own weights after `read` rows of all runs. `unit_values` is
    whether every |value| was 0 or 1, where that matters.
    """

    runs: tuple[Mapping[str, Any], ...] = ()
    milestones: tuple[Mapping[str, Any], ...] = ()
    unit_values: bool = True

    @property
    def rows_read(self) -> int:
        """Rows read in the runs that are over."""
        return sum(int(run["rows"]) for run in self.runs)

    def with_milestone(self, read: int, brief: Mapping[str, Any]) -> Provenance:
        """With one more certificate on the way."""
        return replace(self, milestones=(*self.milestones, {"read": read, **brief}))

    def with_run(self, run: Mapping[str, Any]) -> Provenance:
        """With one more run."""
        return replace(self, runs=(*self.runs, dict(run)))

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "stream": [dict(run) for run in self.runs],
            "trail": [dict(entry) for entry in self.milestones],
            "unit_values": self.unit_values,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Provenance:
        """What `to_dict` wrote; refuses what it did not."""
        if not isinstance(values, Mapping) or set(values) != {"stream", "trail", "unit_values"}:
            raise InvalidInput("a record without its stream and trail")
        stream, trail, unit = values["stream"], values["trail"], values["unit_values"]
        whole = isinstance(stream, list) and isinstance(trail, list) and isinstance(unit, bool)
        if not whole or len(stream) > _MOST or len(trail) > _MOST:
            raise InvalidInput("a record of another shape")
        for run in stream:
            _check_run(run)
        for entry in trail:
            if not isinstance(entry, Mapping) or not _counts(entry.get("read")):
                raise InvalidInput("a trail without its rows")
        return cls(tuple(stream), tuple(trail), unit)


def _counts(value: object, least: int = 0) -> bool:
    return type(value) is int and value >= least


def _check_run(run: Any) -> None:
    """A run as a receipt describes it."""
    if not isinstance(run, Mapping) or set(run) != set(_SEGMENT):
        raise InvalidInput("a run of other fields")
    sound = _counts(run["passes"], 1) and _counts(run["rows"]) and _counts(run["bad_rows"])
    sound = sound and (run["holdout"] is None or _counts(run["holdout"], 2))
    sound = sound and all(type(run[name]) is bool for name in ("retire", "skip"))
    entries = run["files"] if run["batches"] is None else [run["batches"]]
    size = "bytes" if run["batches"] is None else "rows"
    sound = sound and isinstance(entries, list) and (run["batches"] is None) == (run["files"] is not None)
    for entry in entries if sound else ():
        sound = sound and isinstance(entry, Mapping) and set(entry) == {size, "sha256"} and _counts(entry[size])
        sound = sound and isinstance(entry["sha256"], str) and len(entry["sha256"]) == 64
    if not sound:
        raise InvalidInput("a run that no training makes")


def needs_unit_values(spec: Spec) -> bool:
    """Whether it matters for a certificate that every |value| is 1: only there can the closed form be a bound."""
    bounded = math.isfinite(spec.lower) and math.isfinite(spec.upper)
    return bounded and not spec.intercept and spec.beta == spec.l1 == spec.l2 == 0.0


def provenance_of(model: Model) -> Provenance | None:
    """The provenance stored in a model; None for a model without a receipt."""
    if model.provenance is None:
        return None
    try:
        return Provenance.from_dict(model.provenance)
    except InvalidInput as error:
        raise BadModel(f"expected a model with a whole receipt, got {error}; train it again.") from None
