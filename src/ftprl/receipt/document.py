"""The receipt as a file: canonical JSON with a digest of its own, and all that a replay needs."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ftprl._core import HASH_VERSION
from ftprl.atomic import replacing
from ftprl.errors import BadFormat, InvalidInput
from ftprl.linear import Model, Spec
from ftprl.receipt.certificate import SparseCertificate
from ftprl.receipt.provenance import Provenance, provenance_of

FORMAT, FORMAT_VERSION = "ftprl-receipt", 1
LARGEST = 64_000_000  # bytes of a receipt that is read
_KEYS = (
    "calibration certificate format format_version hash_version reading retired sha256 spec stream trail unit_values"
    " version"
)
KEYS = tuple(_KEYS.split())
Document = dict[str, Any]


def canonical(value: object) -> str:
    """The one way to write a value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=True)


def digest(document: Mapping[str, Any]) -> str:
    """The SHA-256 of a receipt without its own."""
    return hashlib.sha256(canonical({k: v for k, v in document.items() if k != "sha256"}).encode()).hexdigest()


def first_spec(spec: Spec) -> Spec:
    """What a run began with: all its scales."""
    return replace(spec, scale=tuple(sorted((*spec.scales, *spec.retired))), retired=())


def spec_to_dict(spec: Spec) -> dict[str, Any]:
    """The fields that decide numbers: tau only where the loss has one."""
    plain = first_spec(spec).to_dict()
    if spec.loss != "quantile":
        del plain["tau"]
    for name in ("scale", "retired"):
        if isinstance(plain.get(name), tuple):
            plain[name] = list(plain[name])
    return plain


def document(model: Model, certificate: SparseCertificate) -> Document:
    """The receipt of a finished model."""
    from ftprl.version import __version__

    if model.run is not None or (record := provenance_of(model)) is None or not record.stream:
        raise InvalidInput(
            "a receipt to verify needs a finished run of ftprl train, got a checkpoint or a model made by hand;"
            " finish the run."
        )
    bins = model.engine.calibration
    made: Document = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "version": __version__,
        "hash_version": HASH_VERSION,
        "spec": spec_to_dict(model.engine.spec),
        "reading": dict(model.reading),
        "retired": list(model.engine.spec.retired),
        "certificate": certificate.to_dict(),
        "calibration": None if bins is None else bins.tolist(),
        **record.to_dict(),
    }
    made = json.loads(canonical(made))  # plain lists throughout, as a reader gets them
    return {**made, "sha256": digest(made)}


def write(path: str | os.PathLike[str], made: Mapping[str, Any]) -> None:
    """Write a receipt, atomically."""
    with replacing(path) as out:
        out.write((json.dumps(made, sort_keys=True, indent=1, allow_nan=False) + "\n").encode())


def read(path: str | os.PathLike[str]) -> Document:
    """The receipt in a file; whether its digest is right is for `verify` to say."""
    name = os.fspath(path)
    if os.path.getsize(path) > LARGEST:
        raise BadFormat(f"{name}: expected a receipt of at most {LARGEST} bytes, got more; check the file.")
    try:
        with open(path, "rb") as file:
            found = json.loads(file.read().decode(), parse_constant=_no_constant)
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise ValueError("no receipt")
        if set(found) != set(KEYS) or found["format_version"] != FORMAT_VERSION:
            raise ValueError(f"other fields than those of version {FORMAT_VERSION}")
        if not all(isinstance(found[key], dict) for key in ("spec", "reading", "certificate")):
            raise ValueError("a part of another shape")
        Provenance.from_dict({key: found[key] for key in ("stream", "trail", "unit_values")})
        return found
    except (ValueError, KeyError, TypeError, RecursionError, InvalidInput) as wrong:
        told = " ".join(str(wrong).split())[:120]
        raise BadFormat(f"{name}: expected a receipt of ftprl certify, got {told}; make it again.") from None


def _no_constant(text: str) -> float:
    raise ValueError(f"the number {text}")
