"""Folders such as `day=3/country=NO` whose names are columns of the files in them, as Hive and Spark write them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

if TYPE_CHECKING:
    import pyarrow as pa

_MISSING = "__HIVE_DEFAULT_PARTITION__"
_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})")


def keys_of(file: str) -> dict[str, str | None]:
    """The keys and values in the folders of a path; None is a missing value.

    >>> keys_of("clicks/day=3/country=a%20b/part-0.parquet")
    {'day': '3', 'country': 'a b'}
    """
    folders = [folder for folder in file.replace("\\", "/").split("/")[:-1] if "=" in folder.strip("=")]
    pairs = [folder.split("=", 1) for folder in folders]
    return {unquote(key): None if value == _MISSING else unquote(value) for key, value in pairs if key}


def is_whole(value: str | None) -> bool:
    """Whether a value is missing or a whole number, spelled as usual."""
    return value is None or _WHOLE.fullmatch(value) is not None


def fields_of(files: Sequence[str]) -> list[pa.Field]:
    """The keys as columns: of whole numbers if all their values are, otherwise of text."""
    import pyarrow as pa

    values: dict[str, bool] = {}
    for file in files:
        for key, value in keys_of(file).items():
            values[key] = values.get(key, True) and is_whole(value)
    return [pa.field(key, pa.int64() if are_whole else pa.string()) for key, are_whole in values.items()]


def cells_of(value: str | None, kind: str, rows: int) -> pa.Array:
    """The column of a key in a file: the same value in each row."""
    import numpy as np
    import pyarrow as pa

    scalar: Any = int(value) if value is not None and kind == "numeric" and is_whole(value) else value
    entry = pa.array([scalar])
    if kind != "categorical":
        return pa.repeat(entry[0], rows)
    return pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), entry.cast(pa.string()))
