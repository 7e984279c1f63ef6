"""Forged model files and receipts: a changed field with a valid digest."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ftprl.receipt.document import digest

_KEY = b'"sha256":"'


def forge_model(body: bytes, change: Callable[[dict[str, Any]], None]) -> bytes:
    """Return the model with its content changed."""
    length = int.from_bytes(body[:8], "little")
    header = json.loads(body[8 : 8 + length])
    content = json.loads(header["__metadata__"]["content"])
    change(content)
    header["__metadata__"]["content"] = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return sealed(header, body[8 + length :])


def forge_tensor(body: bytes, name: str, change: Callable[[np.ndarray], Any]) -> bytes:
    """Return the model with a tensor changed in place; its shape stays."""
    length = int.from_bytes(body[:8], "little")
    header, tensors = json.loads(body[8 : 8 + length]), bytearray(body[8 + length :])
    first, last = header[name]["data_offsets"]
    kind = {"F32": "<f4", "F64": "<f8", "U32": "<u4"}[header[name]["dtype"]]
    values = np.frombuffer(tensors[first:last], kind).reshape(header[name]["shape"]).copy()
    change(values)
    tensors[first:last] = values.tobytes()
    return sealed(header, bytes(tensors))


def forge_header(body: bytes, change: Callable[[dict[str, Any]], None]) -> bytes:
    """Return the model with its header changed."""
    length = int.from_bytes(body[:8], "little")
    header = json.loads(body[8 : 8 + length])
    change(header)
    return sealed(header, body[8 + length :])


def sealed(header: dict[str, Any], tensors: bytes) -> bytes:
    """Return a model file with this header and a valid digest."""
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    raw = len(text).to_bytes(8, "little") + text
    at = raw.find(_KEY) + len(_KEY)
    seal = hashlib.sha256(raw[:at] + raw[at + 64 :] + tensors).hexdigest().encode()
    return raw[:at] + seal + raw[at + 64 :] + tensors


def forge_receipt(path: Path, receipt: dict[str, Any]) -> None:
    """Return a receipt with a valid digest."""
    receipt = {**receipt, "sha256": "0" * 64}
    with contextlib.suppress(ValueError):  # NaN has no canonical form
        receipt["sha256"] = digest(receipt)
    path.write_text(json.dumps(receipt))


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Return the path to every value, list and mapping inside a JSON value; of a long list only two entries."""
    if path:
        yield path
    entries = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for key, one in entries:
        yield from leaves(one, (*path, key))


def replaced(value: Any, path: tuple[str | int, ...], new: Any) -> Any:
    """Return a copy of a JSON value with the value at a path replaced."""
    made = copy.deepcopy(value)
    at = made
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = new
    return made
