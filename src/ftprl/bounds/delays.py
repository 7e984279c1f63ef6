"""Delayed feedback in a certificate: how late gradients were, the measured cost, and a bound that counts it."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, final

from ftprl.bounds.certificate import Certificate


@final
@dataclass(frozen=True, slots=True)
class Delays:
    """The delays of a game's gradients, and their cost.

    A delay is the number of other gradients that arrived between a play and its own gradient. `cost` is measured: the
    sum of g·(x - y), x the point played and y the point that would have been played when g arrived. `bound` needs no
    such measurement: with e the sum of g and of the gradients of earlier plays that were missing when x was played, r +
    sum of min(½ |e|², |g| |e|) in the dual norms of Q_{1:t}; None where the learner has no such bound.
    """

    open: int  # plays that have no gradient yet
    dropped: int  # plays whose gradient will never come
    late: int  # rounds whose delay is not 0
    total: int  # the sum of the delays
    longest: int
    cost: float
    bound: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, ready for JSON."""
        return asdict(self)


def count_delays(made: Certificate, delays: Delays, share: float, noise: float) -> Certificate:
    """Return the certificate for the points that were played, from the learner's own for gradients as they arrived.

    Regret and bounds change by the measured cost. `share` replaces half the stability in the bound that needs no
    measurement, and `noise` bounds the rounding of the cost.
    """

    def plus(value: float | None, extra: float = 0.0) -> float | None:
        """Return value + measured cost + extra, or None if the bound is unknown."""
        return None if value is None else value + delays.cost + extra

    counted = made.bound + share + noise if made.bound is not None else None
    counted = counted if counted is not None and math.isfinite(counted) else None
    bound = plus(made.bound, 2 * noise)
    best = bound if bound is None or counted is None else min(bound, max(counted, plus(made.tight, noise) or -math.inf))
    return replace(
        made,
        regret=made.regret + delays.cost,
        tight=plus(made.tight, noise),
        bound=best,
        theorem=plus(made.theorem, 2 * noise),
        worst_case=plus(made.worst_case, 2 * noise),
        closed_form=plus(made.closed_form, 2 * noise),
        closed_form_strong=plus(made.closed_form_strong, 2 * noise),
        ratio=None if delays.late else made.ratio,
        proven_ratio=None if delays.late else made.proven_ratio,
        proven_regret_ratio=None if delays.late else made.proven_regret_ratio,
        caveats=(*made.caveats, *_notes(made.rounds, delays)),
        delays=replace(delays, bound=counted),
    )


def _notes(rounds: int, delays: Delays) -> list[str]:
    """Return notes for the certificate on late and missing gradients."""
    notes = []
    if delays.late:
        notes.append(
            f"{delays.late} of {rounds} gradients arrived late, {delays.longest} other gradients late at most;"
            f" regret and bounds include what that cost, {delays.cost:.6g}"
        )
    if delays.open or delays.dropped:
        notes.append(f"{delays.open + delays.dropped} plays without a gradient are not counted")
    return notes
