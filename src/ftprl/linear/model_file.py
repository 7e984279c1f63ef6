"""The model file: a safetensors file with a canonical header and a digest of every byte.

    8 bytes   the length of the header, little-endian
    header    JSON: "__metadata__" {"content", "format", "sha256", "version"}, then the tensors by name
    tensors   one after another, without gaps

The digest is the SHA-256 of the whole file without its own 64 characters. Any tool that reads safetensors reads the
file; this module refuses one in which a single bit is not as it was written.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, BinaryIO, final

import numpy as np
from numpy.typing import NDArray

from ftprl.atomic import replacing
from ftprl.errors import BadModel

FORMAT, VERSION = "ftprl-model", "2"
LARGEST_HEADER = 1_000_000
_BLANK = "0" * 64
_HEX = re.compile(r"[0-9a-f]{64}")
_MOST = 2**48  # a number of rows or bytes beyond this is damage, and below it no product leaves an int64
_DTYPES: dict[str, np.dtype[Any]] = {"F32": np.dtype("<f4"), "F64": np.dtype("<f8"), "U32": np.dtype("<u4")}
_PART = 1 << 19  # bytes that are written at once: more would take new memory each time
_LARGE = 1 << 22  # bytes of a model from which on its digest is made by another thread
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}

Tensors = dict[str, NDArray[Any]]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Picked:
    """Some rows of a table, and of them some columns, which are brought together only while they are written."""

    take: Callable[[NDArray[np.uint32]], NDArray[Any]]  # whole rows
    rows: NDArray[np.uint32]
    columns: slice | int

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.rows), *self[:0].shape[1:])

    @property
    def dtype(self) -> np.dtype[Any]:
        return self[:0].dtype

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, some: slice) -> NDArray[Any]:
        return self.take(self.rows[some])[:, self.columns]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Joined:
    """Vectors of one type one after another as one tensor; only where two of them meet a copy is made of their ends."""

    parts: tuple[NDArray[Any], ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self),)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.parts[0].dtype

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def __getitem__(self, some: slice) -> NDArray[Any]:
        start, stop, _ = some.indices(len(self))
        slices, at = list[NDArray[Any]](), 0
        for part in self.parts:
            if start < at + len(part) and stop > at:
                slices.append(part[max(start - at, 0) : stop - at])
            at += len(part)
        return slices[0] if len(slices) == 1 else np.concatenate(slices or [self.parts[0][:0]])


Tensor = NDArray[Any] | Picked | Joined


def write(path: str | os.PathLike[str], content: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> str:
    """Write beside, sync, and rename over; returns the digest. The old file stays until the new one is whole."""
    header = _header(content, dict(sorted(tensors.items())))  # refuses before a file is opened
    with replacing(path) as out:
        return _write(out, *header, tensors)


def write_to(out: BinaryIO, content: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> str:
    """Write to a stream; returns the digest."""
    return _write(out, *_header(content, dict(sorted(tensors.items()))), tensors)


def size(content: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> int:
    """How many bytes `write` writes."""
    return len(_header(content, dict(sorted(tensors.items())))[0]) + sum(map(_nbytes, tensors.values()))


def to_bytes(content: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> bytes:
    """The bytes that `write` writes."""
    out = io.BytesIO()
    write_to(out, content, tensors)
    return out.getvalue()


def _write(out: BinaryIO, header: bytes, at: int, tensors: Mapping[str, Tensor]) -> str:
    """Write the header, whose digest goes to `at`, and the tensors."""
    arrays = dict(sorted(tensors.items()))
    digest = hashlib.sha256(header[:at] + header[at + 64 :])
    if not out.seekable():  # a pipe: what stands in front has to be known before anything is written
        for part in _bytes(arrays):
            digest.update(part)
        out.write(header[:at] + digest.hexdigest().encode() + header[at + 64 :])
        for part in _bytes(arrays):
            out.write(part)
        return digest.hexdigest()
    out.write(header)
    if sum(map(_nbytes, arrays.values())) < _LARGE:
        for part in _bytes(arrays):
            digest.update(part)
            out.write(part)
    else:
        _write_large(out, _bytes(arrays), digest.update)
    out.seek(at)
    out.write(digest.hexdigest().encode())
    return digest.hexdigest()


def _write_large(out: BinaryIO, parts: Iterator[memoryview], update: Callable[[memoryview], None]) -> None:
    """Write the parts while another thread calls `update` with each of them and the disk takes those before."""
    from queue import Queue
    from threading import Thread

    waiting = Queue[memoryview | None](8)

    def work() -> None:
        while (part := waiting.get()) is not None:
            update(part)

    thread = Thread(target=work, daemon=True)
    thread.start()
    try:
        begun, end = out.tell(), out.tell()
        for part in parts:
            waiting.put(part)
            end += out.write(part)
            if end - begun >= _LARGE:
                _start_writing(out, begun, end)
                begun = end
    finally:
        waiting.put(None)
        thread.join()


def _start_writing(out: BinaryIO, first: int, end: int) -> None:
    """Have the system write these bytes to the disk from now on, so that the sync at the end finds little to do.

    Linux does that for memory that is declared as not needed; what is being written stays in memory nevertheless.
    """
    if hasattr(os, "posix_fadvise"):
        with suppress(OSError):  # no file, or one that is kept in memory
            os.posix_fadvise(out.fileno(), first, end - first, os.POSIX_FADV_DONTNEED)


def _bytes(arrays: Mapping[str, Tensor]) -> Iterator[memoryview]:
    """The bytes of all arrays, some rows at a time, so that no copy of a table is made."""
    for a in arrays.values():
        size = max(1, _PART // (_nbytes(a) // max(1, len(a)) or 1))
        for at in range(0, len(a), size):
            part = np.ascontiguousarray(a[at : at + size], dtype=a.dtype.newbyteorder("<"))
            if part.size:
                yield part.data.cast("B")


def digest_of(content: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> str:
    """Return the digest that a file with this content and these tensors has in its header."""
    arrays = dict(sorted(tensors.items()))
    header, at = _header(content, arrays)
    digest = hashlib.sha256(header[:at] + header[at + 64 :])
    for part in _bytes(arrays):
        digest.update(part)
    return digest.hexdigest()


def digest_of_tensors(tensors: Mapping[str, Tensor]) -> str:
    """The SHA-256 of tensors by name, type, shape and bytes, whatever else a file holds."""
    arrays = dict(sorted(tensors.items()))
    digest = hashlib.sha256()
    for name, a in arrays.items():
        digest.update(_canonical([name, _NAMES[a.dtype.newbyteorder("<")], list(a.shape)]).encode())
        for part in _bytes({name: a}):
            digest.update(part)
    return digest.hexdigest()


def pack(value: object) -> NDArray[np.uint32]:
    """JSON values as a tensor: what may grow too long for the header."""
    raw = _canonical(value).encode()
    return np.frombuffer(raw + b" " * (-len(raw) % 4), dtype="<u4")


def unpack(tensor: NDArray[Any]) -> Any:
    """The JSON values that `pack` made a tensor of; refuses anything else."""
    try:
        value = json.loads(np.ascontiguousarray(tensor, "<u4").tobytes())
        if tensor.ndim == 1 and np.array_equal(pack(value), tensor):
            return value
    except (ValueError, RecursionError):
        pass
    raise BadModel("expected canonical JSON in a tensor, got something else; train it again.")


def pack_bytes(body: bytes | NDArray[np.uint8]) -> NDArray[np.uint32]:
    """Bytes as a tensor: their number, then the bytes, filled up with zeros."""
    size = len(body)
    packed = np.empty(2 + (size + 3) // 4, dtype="<u4")
    packed[-1], packed[:2] = 0, np.frombuffer(size.to_bytes(8, "little"), dtype="<u4")
    packed.view(np.uint8)[8 : 8 + size] = np.frombuffer(body, dtype=np.uint8)
    return packed


def joined_bytes(body: NDArray[np.uint8]) -> Joined:
    """The tensor that `pack_bytes` makes, without a copy of the bytes, whose memory must be aligned to words."""
    whole = len(body) // 4 * 4
    rest = bytes(body[whole:])
    head = np.frombuffer(len(body).to_bytes(8, "little"), dtype="<u4")
    tail = np.frombuffer(rest + bytes(-len(rest) % 4), dtype="<u4")
    return Joined((head, body[:whole].view("<u4"), tail))


def unpack_bytes(tensor: NDArray[Any]) -> bytes:
    """The bytes that `pack_bytes` made a tensor of; refuses anything else."""
    raw = np.ascontiguousarray(tensor, "<u4").tobytes()
    body = raw[8 : 8 + int.from_bytes(raw[:8], "little")]
    if tensor.ndim == 1 and np.array_equal(pack_bytes(body), tensor):
        return body
    raise BadModel("expected bytes in a tensor, got something else; train it again.")


def _nbytes(a: Tensor) -> int:
    return int(np.prod(a.shape, dtype=np.int64)) * a.dtype.itemsize


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=True)


def _header(content: Mapping[str, Any], arrays: Mapping[str, Tensor]) -> tuple[bytes, int]:
    """The length and the header with a blank digest, and where the digest goes."""
    entries: dict[str, Any] = {}
    at = 0
    for name, a in arrays.items():
        end = at + _nbytes(a)
        kind = _NAMES[a.dtype.newbyteorder("<")]
        entries[name] = {"dtype": kind, "shape": list(a.shape), "data_offsets": [at, end]}
        at = end
    meta = {"content": _canonical(content), "format": FORMAT, "sha256": _BLANK, "version": VERSION}
    text = "{" + f'"__metadata__":{_canonical(meta)}'
    text += "".join(f",{_canonical(name)}:{_canonical(entry)}" for name, entry in entries.items()) + "}"
    body = text.encode()
    body += b" " * (-len(body) % 8)
    if len(body) > LARGEST_HEADER:
        raise BadModel(
            f"a model's header needs at most {LARGEST_HEADER} bytes, got {len(body)}; pass fewer columns, or"
            " shorten their names and the settings."
        )
    raw = len(body).to_bytes(8, "little") + body
    return raw, raw.index(b'"sha256":"') + len(b'"sha256":"')


def check_header(content: Mapping[str, Any]) -> None:
    """Refuse a content that is too long for a header; tensors and a place in the data need little."""
    _header(content, {})


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Tensors]:
    """The content and the tensors of a file that is, to the last bit, what `write` wrote."""
    loaded = load(path)
    return loaded.content, loaded.tensors


@final
@dataclass(frozen=True, slots=True, eq=False)
class Loaded:
    """What a model file has, with its digest and its size in bytes."""

    content: dict[str, Any]
    tensors: Tensors
    sha256: str
    size: int


def load(path: str | os.PathLike[str]) -> Loaded:
    """The same with its digest; a pipe is read to its end first."""
    with open(path, "rb") as source:
        status = os.fstat(source.fileno())
        if stat.S_ISREG(status.st_mode):
            return _read(source, os.fspath(path), status.st_size)
        return parse(_piped(source, os.fspath(path)), os.fspath(path))


def _piped(source: BinaryIO, name: str) -> bytes:
    """Read a model from a pipe, which may have no end: what its header says, and a byte more if there is one."""
    start = source.read(8 + LARGEST_HEADER)
    length = int.from_bytes(start[:8], "little")
    if not 0 < length <= min(LARGEST_HEADER, len(start) - 8):
        return start  # no model
    entries, _ = _parse(name, start[8 : 8 + length])
    return start + source.read(max(0, 8 + length + _end(entries) + 1 - len(start)))


def parse(body: bytes, name: str) -> Loaded:
    """The same of bytes in memory."""
    return _read(io.BytesIO(body), name, len(body))


def _numbers(source: BinaryIO, dtype: np.dtype[Any], count: int) -> NDArray[Any]:
    """The next numbers, or as many as there are."""
    if isinstance(source, io.BytesIO):
        body = source.read(count * dtype.itemsize)
        return np.frombuffer(body, dtype, len(body) // dtype.itemsize).copy()
    return np.fromfile(source, dtype=dtype, count=count)


def _read(source: BinaryIO, name: str, size: int) -> Loaded:
    head = source.read(8)
    length = int.from_bytes(head, "little")
    if len(head) < 8 or not 0 < length <= min(LARGEST_HEADER, size - 8):
        from ftprl.data.files import LONGEST_LOOK, is_receipt

        found = "a receipt" if is_receipt(head + source.read(LONGEST_LOOK)) else f"another kind of file ({size} bytes)"
        raise BadModel(f"{name}: expected a model file, got {found}; pass one that ftprl train wrote.")
    body = source.read(length)
    entries, meta = _parse(name, body)
    end = _end(entries)
    if 8 + length + end != size:
        raise BadModel(f"{name}: expected {8 + length + end} bytes, got {size}; the file is cut or has grown.")
    at = body.find(b'"sha256":"') + len(b'"sha256":"')
    if body[at : at + 65] != meta["sha256"].encode() + b'"':
        raise BadModel(f"{name}: expected a digest in its place, got something else; the file is damaged.")
    digest = hashlib.sha256(head + body[:at] + body[at + 64 :])
    tensors: Tensors = {}
    for key, entry in entries.items():
        count = math.prod(entry["shape"])
        a = _numbers(source, _DTYPES[entry["dtype"]], count)
        if a.size != count:
            raise BadModel(f"{name}: expected {count} numbers in {key!r:.40}, got {a.size}; the file is cut.")
        digest.update(a.data.cast("B") if a.size else b"")
        tensors[key] = a.reshape(entry["shape"])
    if digest.hexdigest() != meta["sha256"]:
        raise BadModel(f"{name}: expected the digest {meta['sha256'][:12]}..., got another; the file is damaged.")
    return Loaded(_content(name, meta["content"]), tensors, meta["sha256"], size)


def _content(name: str, text: str) -> dict[str, Any]:
    """The content, when it is written as `write` writes it: what is read can then be written again."""
    try:
        content = json.loads(text)
        if isinstance(content, dict) and _canonical(content) == text:
            return content
    except (ValueError, RecursionError):
        pass
    raise BadModel(f"{name}: expected the content of a model as canonical JSON, got something else; train it again.")


def _parse(name: str, body: bytes) -> tuple[dict[str, Any], dict[str, str]]:
    """The entries and the metadata of a header; sizes are checked here, before anything is allocated."""
    try:
        header = json.loads(body)
        meta = header.pop("__metadata__")
        kind, version = meta["format"], meta["version"]
        if not (
            isinstance(meta["content"], str) and isinstance(meta["sha256"], str) and _HEX.fullmatch(meta["sha256"])
        ):
            raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise BadModel(f"{name}: expected the header of a model, got something else; the file is damaged.") from None
    if kind != FORMAT or version != VERSION:
        raise BadModel(
            f"{name}: expected {FORMAT} version {VERSION}, got {kind!r:.40} {version!r:.40}; use its own ftprl."
        )
    at = 0
    for key, entry in header.items():
        at = _check_entry(name, key, entry, at)
    return header, meta


def _end(entries: Mapping[str, Any]) -> int:
    """Return where the last tensor ends, counted from the end of the header."""
    return max((entry["data_offsets"][1] for entry in entries.values()), default=0)


def _check_entry(name: str, key: str, entry: Any, at: int) -> int:
    try:
        first, last = entry["data_offsets"]
        shape, width = entry["shape"], _DTYPES[entry["dtype"]].itemsize
        whole = type(shape) is list and len(shape) <= 3
        whole = whole and all(type(n) is int and 0 <= n <= _MOST for n in (*shape, first, last))
        bytes_needed = width
        for n in shape if whole else ():
            bytes_needed *= n
        fits = whole and first == at and last - first == bytes_needed
    except (KeyError, TypeError, ValueError):
        fits = False
    if not fits:
        raise BadModel(
            f"{name}: expected tensor {key!r:.40} to fill its place, got {entry!r:.80}; the file is damaged."
        )
    return int(last)
