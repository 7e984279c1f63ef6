"""What a model keeps for its receipt besides its cells: which data it read and how, and its certificates on the way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, final

from ftprl.errors import BadModel, InvalidInput
from ftprl.linear.content import MOST_FILES, MOST_PASSES, MOST_RUNS, PROVENANCE
from ftprl.linear.model import Model
from ftprl.schema import check_shape, fields

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
    the `passes`, `holdout` and `skip` it was asked for, the `rows` it read in all passes and those it left
    out. A milestone is the certificate against the model's own weights after `read` rows of the first run.
    """

    runs: tuple[Mapping[str, Any], ...] = ()
    milestones: tuple[Mapping[str, Any], ...] = ()

    @property
    def rows_read(self) -> int:
        """Rows read in the runs that are over."""
        return sum(int(run["rows"]) for run in self.runs)

    def with_milestone(self, read: int, brief: Mapping[str, Any]) -> Provenance:
        """With one more certificate on the way; only those of the first run are kept, which is what `verify` needs.

        A model that learns a little every day would otherwise grow by its milestones every day.
        """
        if self.runs:
            return self
        return replace(self, milestones=(*self.milestones, {"read": read, **brief}))

    def with_run(self, run: Mapping[str, Any]) -> Provenance:
        """With one more run."""
        return replace(self, runs=(*self.runs, dict(run)))

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "runs": [dict(run) for run in self.runs],
            "milestones": [dict(entry) for entry in self.milestones],
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Provenance:
        """What `to_dict` wrote; refuses what it did not."""
        check_shape(values, fields(PROVENANCE))
        for run in values["runs"]:
            if (run["files"] is None) == (run["batches"] is None) or run["rows"] % run["passes"]:
                raise InvalidInput("a run that no training makes")
        return cls(tuple(values["runs"]), tuple(values["milestones"]))

    def check_limits(self, *, files: int, passes: int) -> None:
        """Refuse, before anything is learned, a run that would not fit into a receipt after it."""
        if len(self.runs) >= MOST_RUNS:
            raise InvalidInput(f"a receipt needs at most {MOST_RUNS} runs, got one more; train a new model.")
        if files > MOST_FILES:
            raise InvalidInput(f"a receipt needs at most {MOST_FILES} files in a run, got {files}; join some.")
        if passes > MOST_PASSES:
            raise InvalidInput(f"a receipt needs at most {MOST_PASSES} passes, got {passes}; use fewer.")


def provenance_of(model: Model) -> Provenance | None:
    """The provenance stored in a model; None for a model without a receipt."""
    if model.provenance is None:
        return None
    try:
        return Provenance.from_dict(model.provenance)
    except InvalidInput as error:
        raise BadModel(f"expected a model with a whole receipt, got {error}; train it again.") from None
