"""From a model to its certificate: against its own weights, a box named afterwards, or another model."""

from __future__ import annotations

import os
from typing import Any

from ftprl import check
from ftprl.errors import InvalidInput
from ftprl.linear import Model, model_file
from ftprl.receipt.certificate import Comparison, SparseCertificate, against_box, against_own
from ftprl.receipt.certificate import certify as against
from ftprl.receipt.ledger import Comparator, Kept, given_weights
from ftprl.receipt.provenance import Provenance, provenance_of


def certify(
    model: Model,
    *,
    radius: float | None = None,
    other: str | os.PathLike[str] | None = None,
    exact: Any = None,
) -> SparseCertificate:
    """The certificate of all rows that a model learned.

    With `radius` against every u of the box |u_i| <= radius / unit_i; with `other` against the weights of another model
    file; otherwise against the model's own. With `exact`, the data it learned, also the true regret in the box.

    >>> certify(load("clicks.ftprl"), radius=1.0).regret  # doctest: +SKIP
    """
    if not model.engine.receipt:
        raise InvalidInput("certify needs a model that kept a receipt, got one without; train it with --receipt.")
    if radius is not None and other is not None:
        raise InvalidInput("certify compares with a box or with another model, got both; drop one.")
    if radius is not None:
        check.positive("radius", radius)
    found = compared(model.engine, provenance_of(model) or Provenance(unit_values=False), radius, other)
    if exact is None:
        return found
    if radius is None:
        raise InvalidInput("exact looks for the best weights of a box, got no radius; name one, such as --radius 1.")
    from ftprl.receipt.exact import best_fixed

    return found.with_exact(best_fixed(model, exact, radius))


def compared(
    engine: Kept, record: Provenance, radius: float | None, other: str | os.PathLike[str] | None
) -> SparseCertificate:
    """The certificate of an engine, or of its twin."""
    if radius is not None:
        return against_box(engine, radius, facts=record.facts)
    if other is None:
        return against_own(engine, facts=record.facts)
    comparator, comparison = weights_of(engine, other)
    return against(engine, comparator, comparison, facts=record.facts)


def weights_of(engine: Kept, path: str | os.PathLike[str]) -> tuple[Comparator, Comparison]:
    """Another model as a comparator; refuses one over other features."""
    other, spec = Model.load(path), engine.spec
    theirs = other.engine.spec
    for name in ("dim", "seed", "intercept"):
        if getattr(theirs, name) != getattr(spec, name):
            raise InvalidInput(
                f"{os.fspath(path)}: expected {name}={getattr(spec, name)}, got {getattr(theirs, name)};"
                " compare models over the same features."
            )
    comparator = given_weights(other.weights(), other.engine.bias())
    return comparator, Comparison("model", sha256=model_file.digest_of(path))
