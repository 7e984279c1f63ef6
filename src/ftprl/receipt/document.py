"""The receipt as a JSON file: the certificate with all that a replay needs, and a digest of itself."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ftprl._core import HASH_VERSION
from ftprl.atomic import replacing
from ftprl.data.files import is_receipt, mistaken, shown
from ftprl.errors import BadFormat, InvalidInput
from ftprl.linear import Model, Spec
from ftprl.linear.content import MOST_LABEL, PROVENANCE, READING_OF_RECEIPT, SPEC
from ftprl.linear.spec import DROPPABLE, MOST_CLASSES
from ftprl.receipt.certificate import StreamCertificate
from ftprl.receipt.provenance import Provenance, provenance_of
from ftprl.receipt.schema import CALIBRATION, CERTIFICATE
from ftprl.schema import (
    check_shape,
    class_label,
    either,
    fields,
    flag,
    listed,
    number,
    one_of,
    sha256,
    version,
    whole,
)

FORMAT, FORMAT_VERSION = "ftprl-receipt", 7
LARGEST = 256_000_000  # bytes of a receipt that is read
FIELDS = {
    "calibration": CALIBRATION,
    "certificate": CERTIFICATE,
    "format": one_of(FORMAT),
    "format_version": one_of(FORMAT_VERSION),
    "hash_version": whole(),
    "model": fields({"sha256": sha256}),
    "reading": READING_OF_RECEIPT,
    "retired": listed(number(0.0), 16),
    "sha256": sha256,
    "spec": SPEC,
    "version": version,
    **PROVENANCE,
}
# Of models with several scales: the experts that were dropped and are no scales. Of several classes: their labels, and
# whether all of them were known before the first row.
OPTIONAL = {
    "dropped_experts": listed(one_of(*DROPPABLE), len(DROPPABLE)),
    "classes": listed(either(number(), class_label(MOST_LABEL)), MOST_CLASSES),
    "declared_classes": flag,
}
Document = dict[str, Any]


class CannotBeChecked(BadFormat):
    """A receipt of another version of ftprl: neither confirmed nor refused."""


def canonical(value: object) -> str:
    """The one way to write a value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=True)


def digest(receipt: Mapping[str, Any]) -> str:
    """The SHA-256 of a receipt without its own."""
    return hashlib.sha256(canonical({k: v for k, v in receipt.items() if k != "sha256"}).encode()).hexdigest()


def first_spec(spec: Spec) -> Spec:
    """Return the settings that a run began with: all its scales and experts."""
    scales, coin = tuple(sorted((*spec.scales, *spec.retired))), spec.coin or "coin" in spec.dropped_experts
    return replace(spec, scale=scales, retired=(), retired_row=0, coin=coin, dropped_experts=())


def spec_to_dict(spec: Spec) -> dict[str, Any]:
    """The fields that decide numbers: tau only where the loss has one."""
    settings = first_spec(spec).to_dict()
    if spec.scalar_loss().tau is None:
        del settings["tau"]
    for name in ("scale", "retired"):
        if isinstance(settings.get(name), tuple):
            settings[name] = list(settings[name])
    return settings


def facts_of(model: Model) -> Document:
    """Return what the receipt of a finished model says of the model itself: all of it but the certificate."""
    record, bins = provenance_of(model) or Provenance(), model.engine.calibration
    facts: Document = {
        "spec": spec_to_dict(model.spec),
        "reading": dict(model.reading),
        "model": {"sha256": model.digest()},
        "retired": list(model.spec.retired),
        "calibration": None if bins is None else bins.tolist(),
        **record.to_dict(),
    }
    if model.spec.several:
        facts["dropped_experts"] = list(model.spec.dropped_experts)
    if model.class_table is not None:
        facts |= {"classes": list(model.class_table.labels), "declared_classes": model.class_table.declared}
    made: Document = json.loads(canonical(facts))  # lists throughout, as a reader of JSON gets them
    return made


def make_receipt(model: Model, certificate: StreamCertificate) -> Document:
    """The receipt of a finished model."""
    from ftprl.version import __version__

    if model.checkpoint is not None or (record := provenance_of(model)) is None or not record.runs:
        raise InvalidInput(
            "a receipt to verify needs a finished run of ftprl train, got a checkpoint or a model made by hand;"
            " finish the run."
        )
    receipt: Document = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "version": __version__,
        "hash_version": HASH_VERSION,
        "certificate": json.loads(canonical(certificate.to_dict())),
        **facts_of(model),
    }
    return {**receipt, "sha256": digest(receipt)}


def write_receipt(path: str | os.PathLike[str], receipt: Mapping[str, Any]) -> None:
    """Write a receipt, atomically."""
    with replacing(path) as out:
        out.write((json.dumps(receipt, sort_keys=True, indent=1, allow_nan=False) + "\n").encode())


def read_receipt(path: str | os.PathLike[str]) -> Document:
    """The receipt in a file; whether its digest is right is for `verify_receipt` to say."""
    name = os.fspath(path)
    with open(path, "rb") as file:
        body = file.read(LARGEST + 1)
    if len(body) > LARGEST:
        raise BadFormat(f"{name}: expected a receipt of at most {LARGEST} bytes, got more; check the file.")
    try:
        receipt = json.loads(body.decode(), parse_constant=_no_constant)
        if not isinstance(receipt, dict) or receipt.get("format") != FORMAT:
            raise ValueError("other JSON")
        _check_version(name, receipt)
        check_shape(receipt, fields(FIELDS, OPTIONAL))
        Provenance.from_dict({key: receipt[key] for key in PROVENANCE})
        _check_reading(receipt["reading"], receipt["spec"])
        return receipt
    except CannotBeChecked:
        raise
    except (ValueError, KeyError, TypeError, RecursionError, InvalidInput) as wrong:
        found = shown(" ".join(str(wrong).split()))[:200]
        if isinstance(wrong, UnicodeDecodeError | json.JSONDecodeError) and not is_receipt(body):
            found = mistaken(name) or ("an empty file" if not body.strip() else "another kind of file")
        raise BadFormat(
            f"{name}: expected a receipt, got {found}; pass one that ftprl certify MODEL -o RECEIPT wrote."
        ) from None


def _check_reading(reading: Mapping[str, Any], spec: Mapping[str, Any]) -> None:
    """Data is read for a table of the same size and hash, and for the same loss."""
    for name in ("dim", "seed", "loss"):
        if reading[name] != spec.get(name):
            raise ValueError(f"{name} {reading[name]} for reading and {spec.get(name)} for learning")


def _check_version(name: str, receipt: Mapping[str, Any]) -> None:
    """Another version may learn with other roundings: its receipts are neither true nor false here."""
    from ftprl.version import __version__

    ours = {"version": __version__, "format_version": FORMAT_VERSION, "hash_version": HASH_VERSION}
    for key, mine in ours.items():
        theirs = receipt.get(key)
        if type(theirs) is not type(mine):
            raise ValueError(f"no {key}")
        if theirs != mine:
            raise CannotBeChecked(
                f"{name}: cannot be checked by ftprl {__version__} (receipt format {FORMAT_VERSION}, feature hash"
                f" {HASH_VERSION}), got a receipt of ftprl {shown(str(receipt.get('version')))[:40]} with {key}"
                f" {shown(str(theirs))[:40]}; use that version."
            )


def _no_constant(text: str) -> float:
    raise ValueError(f"the number {text}")
