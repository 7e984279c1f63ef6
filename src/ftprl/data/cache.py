"""`train --cache`: the rows of the data, parsed and hashed, in an Arrow IPC file of one record batch per batch.

The file is private to `--cache`. It is used if it was made with the same options from files with the same bytes: all of
them are read and compared by their fingerprints, which takes a small part of the time of parsing. Otherwise, and if it
is cut off, it is written anew; a run that finds other rows than were written ends with an error. The last record batch
has no rows; its metadata says how the data was read.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, final

import numpy as np

from ftprl._core import HASH_VERSION, NewNames, text_fingerprint
from ftprl.atomic import replacing
from ftprl.data.batch import Batch, RowNames
from ftprl.data.compression import suffixes
from ftprl.data.files import shown
from ftprl.data.jobs import JobParser, JobSource, Parsed
from ftprl.data.source import Description, Place, RowDigest, Source, check_same_rows
from ftprl.errors import BadFormat, InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

_BLOCK = 1 << 22
_VERSION = 1
_DIGEST, _FOOTER = b"digest", b"footer"  # keys of the metadata of record batches


def cached(source: Source, path: str, threads: int | None = None, *, names: bool | str = False) -> Source:
    """Return the rows of a source, read from the cache `path`, which is written first unless it has the same data.

    `names` says whether the names of features are kept.
    """
    if suffixes(path) != (".batches", ""):
        raise InvalidInput(f"cache= needs a name that ends in .batches, got {path!r}; rename it.", option="cache")
    made_from = _made_from(source, names) if source.can_be_read_again else None
    earlier = None if made_from is None else _opened(path, source, made_from)
    if earlier is not None:
        return earlier
    _write(path, source, made_from, threads)
    if made_from is not None and _made_from(source, names) != made_from:
        os.unlink(path)
        raise InvalidInput(
            "cache= needs data that stays as it is, got files that changed while they were read; train again."
        )
    return CachedSource(path, source)


def _made_from(source: Source, names: bool | str) -> dict[str, Any]:
    """Return what the data is recognised by: its options, the fingerprint of each file, and what of it is kept."""
    files = [_fingerprint(file) for file in source.files] if source.files else source.fingerprint()
    made_from = {
        "version": [_VERSION, HASH_VERSION],
        "reading": source.to_dict(),
        "files": files,
        "skip": source.skips_bad_rows,
        "names": names,
    }
    return dict(json.loads(json.dumps(made_from)))  # as it is read back


def _fingerprint(file: str) -> list[int]:
    """Return the size of a file and the fingerprint of its bytes."""
    size = total = 0
    with open(file, "rb", buffering=0) as raw:
        while block := raw.read(_BLOCK):
            total = (total + text_fingerprint(block, 0, len(block), size)) % 2**64
            size += len(block)
    return [size, total]


def _opened(path: str, source: Source, made_from: Mapping[str, Any]) -> CachedSource | None:
    """Return the cache of an earlier run, if it is whole and was made from the same data."""
    import pyarrow as pa

    try:
        earlier = CachedSource(path, source)
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return earlier if earlier.made_from == made_from else None


def _write(path: str, source: Source, made_from: Any, threads: int | None) -> None:
    """Write all rows of a source."""
    import pyarrow as pa

    schema = _schema(source.to_dict()["dtype"])
    rows, left_out, texts = list[int](), Counter[int](), dict[float, str]()
    with replacing(path) as out, pa.ipc.new_file(pa.PythonFile(out, mode="w"), schema) as writer:
        with closing(source.read(threads=threads, digest=False)) as reading:
            for batch, _ in reading:
                rows.append(len(batch))
                texts |= batch.label_texts
                names = None if batch.names is None else batch.names.new.pack(batch.names.first, batch.names.last)
                digest = str(_digest(batch, names)).encode()
                writer.write_batch(_record_batch(batch, names, schema), custom_metadata={_DIGEST: digest})
                left_out.update(source.take_left_out())
        left_out.update(source.take_left_out())
        footer = {
            "made_from": made_from,
            "rows": rows,
            "left_out": sorted(left_out.items()),
            "first_bad": source.first_bad,
            "label_texts": sorted(texts.items()),
        }
        nothing = pa.RecordBatch.from_pylist([], schema)
        writer.write_batch(nothing, custom_metadata={_FOOTER: json.dumps(footer).encode()})


def _schema(dtype: str) -> pa.Schema:
    import pyarrow as pa

    value = pa.float64() if dtype == "float64" else pa.float32()
    entries = pa.large_list(pa.struct([("index", pa.uint32()), ("value", value)]))
    columns = {"entries": entries, "y": pa.float64(), "weight": pa.float64(), "tag": pa.string()}
    return pa.schema({**columns, "names": pa.large_binary()})


def _record_batch(batch: Batch, names: bytes | None, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch as a record batch; packed names stand in its first row."""
    import pyarrow as pa

    fields = list(schema.field("entries").type.value_type)
    entries = pa.StructArray.from_arrays([pa.array(batch.indices), pa.array(batch.values)], fields=fields)
    tags = pa.nulls(len(batch), pa.string()) if batch.tags is None else pa.array(batch.tags, pa.string())
    columns = [
        pa.LargeListArray.from_arrays(pa.array(batch.indptr), entries),
        pa.array(batch.y),
        pa.array(batch.weight),
        tags,
        pa.array([names, *[None] * (len(batch) - 1)], pa.large_binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _digest(batch: Batch, names: bytes | None) -> int:
    """Return a number by which damaged rows are recognised."""
    tags = json.dumps(batch.tags).encode()
    return (
        RowDigest().plus(batch).fingerprint
        + text_fingerprint(tags, 0, len(tags), 0)
        + text_fingerprint(names or b"", 0, len(names or b""), 0)
    )


@final
@dataclass(frozen=True, slots=True)
class CachedRows:
    """Record batch number `part` of a cache as a job: rows `offset` to `end` of the data."""

    part: int
    offset: int
    end: int
    left_out: Mapping[int, int]  # rows, by the number of good rows of the job before them
    file: int = 0
    line: int = 1
    origin: str = ""
    error: None = None


@final
class CacheParser(JobParser):
    """What reads record batches of a cache, with a file of its own."""

    def __init__(self, path: str, dtype: str, label_texts: Mapping[float, str]) -> None:
        self._path, self._dtype, self._label_texts = path, dtype, label_texts
        self._opened: pa.RecordBatchFileReader | None = None

    def parse(self, job: CachedRows, negative: float = 1.0) -> Parsed:
        """Return the rows of a job, if they are what was written."""
        import pyarrow as pa

        left_out: dict[str, Any] = {"bad": sum(job.left_out.values()), "left_out": job.left_out}
        if job.end == job.offset:  # no row could be read
            return Parsed(job, [], **left_out)
        try:
            if self._opened is None:
                self._opened = pa.ipc.open_file(pa.OSFile(self._path))
            batch = self._batch(self._opened.get_batch_with_custom_metadata(job.part), job.offset, job.end)
        except (pa.ArrowException, OSError, ValueError, TypeError, KeyError, AttributeError):
            raise BadFormat(
                f"{shown(self._path)}: rows {job.offset} to {job.end - 1}: expected them as they were written, got"
                " others; delete the file and train again."
            ) from None
        return Parsed(job, [batch], **left_out)

    def _batch(self, stored: tuple[pa.RecordBatch, Mapping[bytes, bytes]], first: int, end: int) -> Batch:
        """Return the rows of a record batch, if they are what was written; its memory belongs to nobody else."""
        cells, metadata = stored
        if cells.schema != _schema(self._dtype) or len(cells) != end - first:
            raise ValueError("other columns or rows")
        cells.validate(full=True)
        entries = cells.column("entries")
        start, stop = entries.offsets[0].as_py(), entries.offsets[-1].as_py()
        index, value = (entries.values.field(name).slice(start, stop - start) for name in ("index", "value"))
        y, weight = cells.column("y").to_numpy(), cells.column("weight").to_numpy()
        indptr = np.ascontiguousarray(entries.offsets.to_numpy() - start)
        tag = cells.column("tag")
        tags = None if tag.null_count else tuple(tag.to_pylist())
        batch = Batch(indptr, index.to_numpy(), value.to_numpy(), y, weight, first, shown(self._path), tags)
        packed = cells.column("names")[0].as_py()
        if int(metadata[_DIGEST]) != _digest(batch, packed):
            raise ValueError("other bytes")
        names = None if packed is None else RowNames(NewNames.unpack(packed), 0, len(batch))
        return batch.replaced(is_private=True, names=names, label_texts=self._label_texts)


@final
class CachedSource(JobSource):
    """The rows of a cache; what is shown of them is that of the data they were parsed from."""

    suits_workers = False
    can_be_read_again = True

    def __init__(self, path: str, source: Source) -> None:
        super().__init__(source.files)
        footer = _footer(path)
        self.made_from = footer["made_from"]
        self._path, self._parsed = path, source
        self._first_bad, self._dtype = footer["first_bad"], source.to_dict()["dtype"]
        self._starts = [0, *accumulate(footer["rows"])]
        self._label_texts = {float(code): str(text) for code, text in footer["label_texts"]}
        self._left_out = [(int(row), int(count)) for row, count in footer["left_out"]]

    @property
    def start(self) -> Place:
        """The position of the first row; the cache was compared with its data as a whole."""
        return Place()

    def jobs(self, start: Place, threads: int) -> Generator[CachedRows]:
        """Yield the record batches from a place on."""
        last = max(0, len(self._starts) - 2)
        for part in range(start.part, last + 1):
            first, end = self._starts[part], self._starts[min(part + 1, len(self._starts) - 1)]
            own = {row - first: n for row, n in self._left_out if first <= row < end or (row == end and part == last)}
            yield CachedRows(part, first, end, own)

    def parser(self) -> CacheParser:
        """Return what reads the record batches."""
        return CacheParser(self._path, self._dtype, self._label_texts)

    @property
    def skips_bad_rows(self) -> bool:
        """Whether rows that cannot be parsed were left out and counted."""
        return self._parsed.skips_bad_rows

    @property
    def first_bad(self) -> str | None:
        """Where the first row was left out, and why."""
        return self._first_bad if self.bad_rows else None

    def fingerprint(self) -> dict[str, Any]:
        """Return the number of rows and the SHA-256 of what the cache was made from."""
        text = json.dumps(self.made_from, sort_keys=True).encode()
        return {"rows": self._starts[-1], "sha256": hashlib.sha256(text).hexdigest()}

    def check_unchanged(self, fingerprint: Any) -> None:
        """Refuse another cache than that of a fingerprint taken before."""
        check_same_rows(fingerprint, self.fingerprint())

    def digest(self) -> list[int]:
        """Return a number of what the cache was made from, and how many rows it has."""
        text = json.dumps(self.made_from, sort_keys=True).encode()
        return [text_fingerprint(text, 0, len(text), 0), self._starts[-1]]

    def describe(self) -> Description:
        """Return what is read: the files, what each column is for, what the labels become."""
        return self._parsed.describe()

    def to_dict(self) -> dict[str, Any]:
        """Return the options of `ftprl.data.open` that read other files in the same way."""
        return self._parsed.to_dict()


def _footer(path: str) -> dict[str, Any]:
    """Return what the last record batch of a cache says of the whole, checked."""
    import pyarrow as pa

    with pa.OSFile(path) as raw:
        opened = pa.ipc.open_file(raw)
        last = opened.num_record_batches - 1
        footer = json.loads(opened.get_batch_with_custom_metadata(last)[1][_FOOTER])
    rows = footer["rows"]
    if len(rows) != last or not all(type(count) is int and count > 0 for count in rows):
        raise ValueError("other record batches")
    return dict(footer)
