"""The memory of a table made ready while the rest of the program is loaded, which takes as long.

Nothing is checked or refused here: what cannot be foreseen comes about without it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ftprl._core import prefault

_LONGEST_HEADER = 1_000_000
_LARGEST_TABLE = 2**32
_LONG = 1 << 22  # bytes; fewer rows are learned before the memory is ready


def expect_new(
    data: Sequence[str], bits: int | None, dim: int | None, scale: str | None, float64: bool, receipt: bool
) -> None:
    """The table that these options ask for."""
    if not _is_long(data):
        return
    cells = dim if dim is not None else 1 << min(max(22 if bits is None else bits, 0), 40)
    scales = 8 if scale in (None, "auto") else 1 + str(scale).count(",")
    _expect(cells, scales, float64, receipt)


def expect_saved(data: Sequence[str], model: Path) -> None:
    """The table of a model file, as its header says."""
    with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
        if not _is_long(data) or not os.path.isfile(model):
            return
        with open(model, "rb") as file:
            header = json.loads(file.read(min(int.from_bytes(file.read(8), "little"), _LONGEST_HEADER)))
        content = json.loads(header["__metadata__"]["content"])
        spec, receipt = content["spec"], content["receipt"]
        scales = len(spec["scale"]) if isinstance(spec["scale"], list) else 1
        _expect(spec["dim"], scales, spec["float64"], receipt)


def _expect(dim: int, scales: int, float64: bool, receipt: bool) -> None:
    if 0 < dim <= _LARGEST_TABLE:
        prefault(dim, scales=scales, float64=float64, receipt=receipt)


def _is_long(data: Sequence[str]) -> bool:
    """Whether a file that is named has many rows; folders, patterns and standard input are not looked into."""
    with suppress(OSError):
        return any(os.path.isfile(path) and os.path.getsize(path) >= _LONG for path in data)
    return False
