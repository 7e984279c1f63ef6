"""From a model to its certificate: against its own weights, a box of weights chosen afterwards, or another model."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ftprl import check
from ftprl.data.files import shown
from ftprl.errors import FtprlError, InvalidInput
from ftprl.linear import Model, Spec
from ftprl.linear.spec import LIMIT
from ftprl.receipt.caveats import Comparison
from ftprl.receipt.cell_groups import CellGroups
from ftprl.receipt.certificate import (
    StreamCertificate,
    box_certificate,
    certificate_against,
    own_certificate,
)
from ftprl.receipt.ledger import coordinate_blocks, fixed_weights
from ftprl.receipt.soundness import broken_link, cut_gradients, not_finite
from ftprl.runlog.floor import NORMS, Norm

# What of the reading decides which cell a feature is in, its value, and what a label means.
_MEANING = (
    *("loss", "positive", "columns", "sampled", "missing", "other_columns"),
    *("interactions", "ngrams", "skips", "char_ngrams"),
)


class NotProved(FtprlError):
    """The numbers of a model contradict the theorem: no certificate can be made of it."""


def certify_model(
    model: Model,
    *,
    radius: float | None = None,
    other: str | os.PathLike[str] | None = None,
    exact: Any = None,
    norm: str | float = "2",
) -> StreamCertificate:
    """How much more a model's predictions lost, at most, than fixed weights would have, over all rows it learned.

    With `radius` against every u of the box |u_i| <= radius / unit_i; with `other` against the weights of another model
    file; otherwise against the model's own. Whatever they are compared with, `floor(length)` is about all fixed weights
    of a length, measured by `norm`: 1, 2 or inf. With `exact`, the data it learned, also the best fixed weights of some
    lengths, or, with `radius`, of the box, and the true regret.

    >>> certify_model(load("clicks.ftprl"), radius=1.0).regret  # doctest: +SKIP
    """
    if model.is_compact:
        raise InvalidInput("certify needs a model with its receipt, got a compact one; pass the model it was made of.")
    if not model.receipt:
        raise InvalidInput("certify needs a model that was trained with --receipt, got one without; train it again.")
    if radius is not None and other is not None:
        raise InvalidInput(
            "certify compares with a box (--radius) or with another model (--against), got both; drop one."
        )
    if other is not None and model.spec.classes:
        raise InvalidInput(
            f"certify --against does not support several classes yet, got loss={model.spec.loss}; drop it."
        )
    named = norm_of(norm)
    if exact is not None and radius is None and named != "2":
        raise InvalidInput(f"exact needs --norm 2, or a box (--radius), got --norm {named}; drop one.")
    if radius is not None and check.positive("radius", radius) > LIMIT:
        raise InvalidInput(f"radius needs at most 1e30, got {radius!r}; pass a smaller one.")
    certificate = _compared(model, radius, other).with_norm(named).with_latest(model)
    if exact is not None:
        certificate = _with_best(certificate, model, exact, radius)
    units = [float(block.unit.max(initial=0.0)) for block in coordinate_blocks(model.engine)]
    if (cut := cut_gradients(model.engine, max(units, default=0.0))) is not None:
        raise NotProved(f"no certificate: {cut}.")
    broken = not_finite(certificate) or broken_link(certificate.to_dict())
    if broken is not None:
        raise NotProved(f"no certificate: {broken}; the model is damaged or forged, train it again.")
    return certificate


def norm_of(norm: object) -> Norm:
    """The name of a norm of lengths: 1, 2 or inf, as a number or as text.

    >>> norm_of(2), norm_of(float("inf"))
    ('2', 'inf')
    """
    text = f"{norm:g}" if isinstance(norm, int | float) and not isinstance(norm, bool) else norm
    known = next((name for name in NORMS if name == text), None)
    if known is None:
        raise InvalidInput(f"norm needs 1, 2 or inf, got {norm!r}; pass one.", option="norm")
    return known


def _with_best(certificate: StreamCertificate, model: Model, data: Any, radius: float | None) -> StreamCertificate:
    """With the best fixed weights of the box, or of some lengths."""
    if radius is None:
        from ftprl.receipt.exact_lengths import best_lengths

        return certificate.with_points(best_lengths(model, data, certificate.curve))
    from ftprl.receipt.exact import best_fixed

    return certificate.with_exact(best_fixed(model, data, radius))


def _compared(model: Model, radius: float | None, other: str | os.PathLike[str] | None) -> StreamCertificate:
    engine, cells = model.engine, CellGroups.of_model(model)
    if radius is not None:
        return box_certificate(engine, radius, cells=cells)
    if other is None:
        return own_certificate(engine, cells=cells)
    their = other_model(engine.spec, model.reading, other)
    comparison = Comparison("model", sha256=their.file_digest)
    comparator = fixed_weights(their.weights(), their.bias())
    return certificate_against(engine, comparator, comparison, cells=cells)


def other_model(spec: Spec, reading: Mapping[str, Any], path: str | os.PathLike[str]) -> Model:
    """Load another model to compare with; refuse one whose weights are of other features or for other labels."""
    other = Model.load(path)
    pairs = {name: (getattr(spec, name), getattr(other.spec, name)) for name in ("dim", "seed", "intercept")}
    pairs |= {name: (reading.get(name), other.reading.get(name)) for name in _MEANING}
    for name, (ours, theirs) in pairs.items():
        if theirs != ours:
            ours, theirs = (shown(repr(value))[:80] for value in (ours, theirs))
            raise InvalidInput(
                f"{os.fspath(path)}: expected {name}={ours}, got {theirs}; compare models that read the data in the"
                " same way."
            )
    return other
