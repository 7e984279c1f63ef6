"""Labels and weights that stand beside the data: one entry per row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from ftprl.data.files import shown
from ftprl.errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa


def vector_of(name: str, value: Any) -> pa.Array:
    """A list, array or series as an Arrow array."""
    import numpy as np
    import pyarrow as pa

    try:
        if isinstance(value, pa.Array):
            return value
        if len(getattr(value, "shape", ())) > 1:
            raise TypeError(f"{type(value).__name__} of shape {tuple(value.shape)}")
        if hasattr(value, "__arrow_c_stream__") or isinstance(value, pa.ChunkedArray):
            chunked = value if isinstance(value, pa.ChunkedArray) else pa.chunked_array(value)
            return chunked.combine_chunks() if chunked.num_chunks != 1 else chunked.chunk(0)
        if isinstance(value, str | bytes) or not np.ndim(value) == 1:
            raise TypeError(f"{type(value).__name__} of shape {np.shape(value)}")
        return pa.array(value, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        what = shown(" ".join(str(error).split()))[:120]
        raise InvalidInput(f"{name}= needs one number or text per row, got {what}; pass a list or an array.") from None


@final
class RowVectors:
    """A vector for all rows of the data, dealt out part by part; its length has to be that of the data."""

    def __init__(self, name: str, value: Any) -> None:
        self.name = name
        self.cells = vector_of(name, value)

    def part(self, start: int, count: int) -> pa.Array:
        """The entries of rows [start, start + count)."""
        if start + count > len(self.cells):
            raise self.mismatch(f"at least {start + count}")
        return self.cells.slice(start, count)

    def check_length(self, rows: int) -> None:
        """Refuse a vector of another length, once the number of rows is known."""
        if rows != len(self.cells):
            raise self.mismatch(str(rows))

    def mismatch(self, rows: str) -> InvalidInput:
        """The error of a vector with another length."""
        return InvalidInput(
            f"{self.name}= needs one entry per row, got {len(self.cells)} for {rows} rows; match the lengths."
        )
