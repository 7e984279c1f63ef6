"""What is trained, and on what: a new model or one that goes on, with its data read as its options say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from ftprl import data as readers
from ftprl.errors import InvalidInput
from ftprl.linear.engine import Engine
from ftprl.linear.model import Model
from ftprl.linear.spec import Spec

SPEC = tuple(field.name for field in fields(Spec))
_KEPT = ("format", "positive", "sep", "quote", "header")  # options of reading that a model keeps by their own names
READING = (*_KEPT, "label", "weight", "ignore", "categorical", "numeric", "text")
Options = Mapping[str, Any]


def settled_options(bits: int | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given: None is what a caller passes for one that was not."""
    given = {name: value for name, value in options.items() if value is not None and value != ()}
    for name in given:
        if name not in SPEC and name not in READING:
            raise InvalidInput(f"train has no option {name!r}; it has {', '.join(sorted((*SPEC, *READING)))}.")
    if bits is not None:
        if "dim" in given:
            raise InvalidInput(f"train needs bits or dim, got bits={bits} and dim={given['dim']}; keep one.")
        if isinstance(bits, bool) or not isinstance(bits, int | np.integer) or not 1 <= bits <= 32:
            raise InvalidInput(f"bits needs a whole number from 1 to 32, got {bits!r}; the table has 2**bits cells.")
        given["dim"] = 2 ** int(bits)
    return given


def new_model(data: Any, given: Options, more: Options, receipt: bool) -> tuple[Model, readers.Source]:
    """A model that knows nothing, and its data."""
    said = {"scale": "auto", **{name: value for name, value in given.items() if name in SPEC}}
    if isinstance(data, readers.Source):
        kept = data.to_dict()
        if kept["intercept"]:
            raise InvalidInput("a model has an intercept of its own, got a Source with another; open it without.")
        for name in given:
            if name in READING:
                raise InvalidInput(f"a Source says how it is read, got {name}={given[name]!r} as well; drop it.")
        shared = {"dim": kept["dim"], "seed": kept["seed"], "loss": kept["loss"], "float64": kept["dtype"] == "float64"}
        for name, value in shared.items():
            if said.get(name, value) != value:
                raise InvalidInput(f"the Source was opened with {name}={value!r}, got {said[name]!r}; open it anew.")
        return Model(Engine(Spec(**(shared | said)), receipt=receipt), kept), data
    spec = Spec(**said)
    source = readers.open(
        data,
        dim=spec.dim,
        seed=spec.seed,
        loss=spec.loss,
        dtype="float64" if spec.float64 else "float32",
        **more,
        **{name: value for name, value in given.items() if name in READING},
    )
    columns = source.describe().columns
    if columns is not None and "label" not in columns.values():
        some = ", ".join(repr(name) for name in list(columns)[:12]) + (", ..." if len(columns) > 12 else "")
        raise InvalidInput(f"label needs the name of a column, got none; pass one of {some}.")
    return Model(Engine(spec, receipt=receipt), source.to_dict()), source


def resumed_model(
    old: Model, data: Any, given: Options, more: Options, receipt: bool | None
) -> tuple[Model, readers.Source]:
    """A model that goes on, and its data, read as before; options may be said again, not changed."""
    kept = old.engine.spec
    for name, value in given.items():
        if name in SPEC and not _same(kept, name, value):
            raise InvalidInput(
                f"{name} needs to be what the model was trained with, got {value!r} instead of"
                f" {getattr(kept, name)!r}; drop it."
            )
    if receipt is not None and receipt != old.engine.receipt:
        had = "with" if old.engine.receipt else "without"
        raise InvalidInput(
            f"a receipt is kept from the first row on or not at all, got receipt={receipt} for a model {had} one;"
            " drop it."
        )
    _agree(old.reading, given)
    if isinstance(data, readers.Source):
        if data.to_dict() != old.reading:
            raise InvalidInput("a Source needs to read as the model's data was read; pass the paths instead.")
        return old, data
    return old, readers.open(data, labelled=True, **more, **readers.as_named(old.reading, data, {}))


def _same(kept: Spec, name: str, value: Any) -> bool:
    if name == "scale":  # those of today, or those it began with
        return Spec(scale=value).scales in (kept.scales, tuple(sorted(kept.scales + kept.retired)))
    return Spec(**{**_spec_of(kept), name: value}) == kept


def _spec_of(spec: Spec) -> dict[str, Any]:
    return {name: getattr(spec, name) for name in SPEC}


def _agree(reading: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Refuse an option of reading that differs from what a model keeps."""
    columns = reading.get("columns") or {}
    for name, value in given.items():
        if name in SPEC:
            continue
        if name in _KEPT:
            same = str(reading.get(name)) == str(value)
            told = reading.get(name)
        else:
            names = [str(value)] if isinstance(value, str | int) else [str(entry) for entry in value]
            told = ", ".join(column for column, kind in columns.items() if kind == name) or None
            same = all(columns.get(column) == name for column in names)
        if not same:
            raise InvalidInput(
                f"{name} needs to be what the model was trained with, got {value!r} instead of {told!r}; drop it."
            )
