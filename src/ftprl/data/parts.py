"""Data in memory that comes in parts: lists and iterators of frames, arrays, matrices or dicts.

A part is data, or a tuple of data and its labels, or of data, labels and weights.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, final

from ftprl.data.batch import Batch
from ftprl.data.files import shown
from ftprl.errors import BadFormat, FtprlError, InvalidInput

ORIGIN = "<memory>"


@final
class Parts:
    """Several parts of data, of which the first is known; those of an iterator can be gone through once."""

    def __init__(self, parts: Iterable[Any], *, is_one_shot: bool) -> None:
        self.is_one_shot, self._parts, self._is_spent = is_one_shot, parts, False
        iterator = iter(parts)
        try:
            self.first = _careful(lambda: next(iterator), 0)
        except StopIteration:
            raise InvalidInput("data needs at least one row, got an empty iterator; pass some.") from None
        if is_one_shot:
            self._parts = chain((self.first,), iterator)
        if is_empty(self.sample):
            raise InvalidInput("data needs rows in its first part, got an empty list; leave out parts without rows.")

    @property
    def sample(self) -> Any:
        """The data of the first part, without its labels."""
        return self.first[0] if isinstance(self.first, tuple) and self.first else self.first

    def peek(self, count: int) -> list[Any]:
        """The first `count` elements; they are still to come."""
        elements: list[Any] = []
        iterator = iter(self._parts)
        while len(elements) < count:
            try:
                elements.append(_careful(lambda: next(iterator), len(elements)))
            except StopIteration:
                break
        if self.is_one_shot:
            self._parts = chain(elements, iterator)
        return elements

    def __iter__(self) -> Iterator[Any]:
        """All elements; what an iterator raises becomes an error with the number of the element."""
        if self.is_one_shot:
            if self._is_spent:
                raise InvalidInput("an iterator can be read once, got a second reading; pass a list, or make it anew.")
            self._is_spent = True
        iterator, number = iter(self._parts), 0
        while True:
            try:
                element = _careful(lambda: next(iterator), number)
            except StopIteration:
                return
            yield element
            number += 1


def _careful(step: Any, number: int) -> Any:
    """The next element; an error of the caller's iterator becomes one line that names the element."""
    try:
        return step()
    except (StopIteration, FtprlError):
        raise
    except Exception as error:
        what = shown(" ".join(f"{type(error).__name__}: {error}".split()))[:200]
        raise BadFormat(
            f"{ORIGIN}: element {number}: expected more data, got an iterator that raised {what}; fix the iterator."
        ) from error


def as_data(data: Any) -> Any:
    """Data as it is opened: iterators and lists of parts as `Parts`, anything else as it is.

    >>> as_data("a.vw"), as_data(iter(["a.vw", "b.vw"]))
    ('a.vw', ['a.vw', 'b.vw'])
    """
    if isinstance(data, io.IOBase):
        raise InvalidInput(f"data needs a path, got an open file ({type(data).__name__}); pass its name.")
    if isinstance(data, memoryview):
        raise InvalidInput("data needs an array, got a memoryview; pass numpy.asarray(data).")
    if is_stream(data):
        return Parts(_batches(data), is_one_shot=True)
    if isinstance(data, Iterator):
        parts = Parts(data, is_one_shot=True)
        if isinstance(parts.first, str | os.PathLike | Batch):
            return list(parts)  # paths, and batches, whose indices decide how large the table is
        return parts
    is_list = isinstance(data, Sequence) and not isinstance(data, str | bytes | bytearray | range)
    if is_list and len(data) and not isinstance(data[0], str | os.PathLike | Batch):
        return Parts(data, is_one_shot=False)
    return data


def is_stream(data: Any) -> bool:
    """Whether data is a stream of Arrow record batches, which can be read once."""
    return hasattr(data, "__arrow_c_stream__") and (isinstance(data, Iterator) or hasattr(data, "read_next_batch"))


def _batches(stream: Any) -> Iterator[Any]:
    import pyarrow as pa

    yield from pa.RecordBatchReader.from_stream(stream)


def is_empty(part: Any) -> bool:
    """Whether a part is a list without any row."""
    return isinstance(part, Sequence) and not isinstance(part, str | bytes | tuple) and not len(part)


def split(part: Any) -> tuple[Any, Any, Any]:
    """Data, labels and weights of a part; None for those it does not have."""
    if not isinstance(part, tuple):
        return part, None, None
    if len(part) not in (2, 3):
        raise InvalidInput(
            f"a part of data needs to be data, (data, y) or (data, y, weight), got a tuple of {len(part)}; pass one."
        )
    return part if len(part) == 3 else (*part, None)


def has_no_labels(data: Any) -> bool:
    """Whether data in memory has no labels beside it, as batches and parts `(data, y)` have.

    >>> has_no_labels([{"a": 1}]), has_no_labels(Parts([([{"a": 1}], [1])], is_one_shot=False))
    (True, False)
    """
    batches = data if isinstance(data, list) else [data]
    return not any(isinstance(one, Batch) for one in batches) and not (
        isinstance(data, Parts) and isinstance(data.first, tuple)
    )


def are_records(data: Any) -> bool:
    """Whether data is a list of dicts, or a part with one."""
    return isinstance(data, Sequence) and len(data) > 0 and isinstance(data[0], Mapping)
