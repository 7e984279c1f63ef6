"""The parts of a model from what its file has, each checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ftprl._core import HASH_VERSION
from ftprl.errors import BadModel, InvalidInput
from ftprl.linear import model_file
from ftprl.linear.classes import ClassTable
from ftprl.linear.content import PROVENANCE as PROVENANCE_FIELDS
from ftprl.linear.content import content_shape
from ftprl.linear.names import TENSORS, Names
from ftprl.linear.spec import Spec
from ftprl.linear.state import PROVENANCE
from ftprl.schema import fields


def check_content(content: Mapping[str, Any]) -> None:
    """Refuse a feature hash of another version and, by its name, a field that is not what it should be."""
    version = content.get("hash_version")
    if type(version) is int and version != HASH_VERSION:
        raise BadModel(f"expected feature hash {HASH_VERSION}, got {version!r:.40}; use its own ftprl.")
    if (wrong := content_shape(content)(content)) is not None:
        raise BadModel(f"expected {wrong}; train it again.")


def provenance_of(tensors: model_file.Tensors) -> tuple[dict[str, Any] | None, model_file.Tensors]:
    """The provenance of a receipt, None without one, and the tensors of the engine."""
    rest = {key: a for key, a in tensors.items() if key != PROVENANCE}
    provenance = model_file.unpack(tensors[PROVENANCE]) if PROVENANCE in tensors else None
    if provenance is not None and (wrong := fields(PROVENANCE_FIELDS)(provenance)) is not None:
        raise BadModel(f"expected {PROVENANCE}: {wrong}; train it again.")
    return provenance, rest


def classes_of(content: Mapping[str, Any], spec: Spec, known: int) -> ClassTable | None:
    """The classes of a file, which names at least those that are `known` to its tensors."""
    if not spec.classes:
        return None
    labels = [label if isinstance(label, str) else float(label) for label in content["classes"]]
    if len(set(labels)) != len(labels) or not known <= len(labels) <= spec.classes:
        raise BadModel(f"expected {known} to {spec.classes} different classes, got {labels!r:.80}; train it again.")
    return ClassTable(spec.classes, labels, declared=bool(content.get("declared_classes", False)))


def names_of(content: Mapping[str, Any], tensors: model_file.Tensors, dim: int) -> Names | None:
    """The names of the features, whose tensors are taken out of the others."""
    if "names" not in content:
        return None
    return Names.restored(content["names"], {key: tensors.pop(key) for key in TENSORS}, dim)


def check_reading(reading: Mapping[str, Any], spec: Spec) -> None:
    """Data is read for a table of the same size and hash."""
    for name in ("dim", "seed"):
        if reading.get(name, getattr(spec, name)) != getattr(spec, name):
            raise InvalidInput(f"{name} {reading[name]!r:.40} for reading and {getattr(spec, name)} for learning")
