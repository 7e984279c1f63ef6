"""From a model to its certificate: against its own weights, a box of weights chosen afterwards, or another model."""

from __future__ import annotations

import os
from typing import Any

from ftprl import check
from ftprl.errors import FtprlError, InvalidInput
from ftprl.linear import Model, Spec
from ftprl.receipt.certificate import (
    Comparison,
    StreamCertificate,
    box_certificate,
    certificate_against,
    own_certificate,
)
from ftprl.receipt.ledger import fixed_weights
from ftprl.receipt.provenance import Provenance, provenance_of
from ftprl.receipt.soundness import broken_link, not_finite


class NotProved(FtprlError):
    """The numbers of a model contradict the theorem: no certificate can be made of it."""


def certify_model(
    model: Model,
    *,
    radius: float | None = None,
    other: str | os.PathLike[str] | None = None,
    exact: Any = None,
) -> StreamCertificate:
    """How much more a model's predictions lost, at most, than fixed weights would have, over all rows it learned.

    With `radius` against every u of the box |u_i| <= radius / unit_i; with `other` against the weights of another model
    file; otherwise against the model's own. With `exact`, the data it learned, also the true regret in the box.

    >>> certify_model(load("clicks.ftprl"), radius=1.0).regret  # doctest: +SKIP
    """
    if not model.engine.receipt:
        raise InvalidInput("certify needs a model that was trained with --receipt, got one without; train it again.")
    if radius is not None and other is not None:
        raise InvalidInput(
            "certify compares with a box (--radius) or with another model (--against), got both; drop one."
        )
    if exact is not None and radius is None:
        raise InvalidInput(
            "exact needs a radius, that of the box whose best weights it finds, got none; pass one, such as --radius 1."
        )
    if radius is not None:
        check.positive("radius", radius)
    certificate = _compared(model, radius, other)
    if exact is not None and radius is not None:
        from ftprl.receipt.exact import best_fixed

        certificate = certificate.with_exact(best_fixed(model, exact, radius))
    broken = not_finite(certificate) or broken_link(certificate.to_dict())
    if broken is not None:
        raise NotProved(f"no certificate: {broken}; the model is damaged or forged, train it again.")
    return certificate


def _compared(model: Model, radius: float | None, other: str | os.PathLike[str] | None) -> StreamCertificate:
    engine, unit_values = model.engine, (provenance_of(model) or Provenance(unit_values=False)).unit_values
    if radius is not None:
        return box_certificate(engine, radius, unit_values=unit_values)
    if other is None:
        return own_certificate(engine, unit_values=unit_values)
    their = other_model(engine.spec, other)
    comparison = Comparison("model", sha256=their.file_digest)
    comparator = fixed_weights(their.weights(), their.engine.bias())
    return certificate_against(engine, comparator, comparison, unit_values=unit_values)


def other_model(spec: Spec, path: str | os.PathLike[str]) -> Model:
    """Another model to compare with; refuses one over other features."""
    other = Model.load(path)
    for name in ("dim", "seed", "intercept"):
        ours, theirs = getattr(spec, name), getattr(other.engine.spec, name)
        if theirs != ours:
            raise InvalidInput(
                f"{os.fspath(path)}: expected {name}={ours}, got {theirs}; compare models over the same features."
            )
    return other
