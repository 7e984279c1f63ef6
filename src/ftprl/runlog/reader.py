"""A run as described by its events: the points of its curves, its status, and what happened during it.

Every field is optional: a run may have just started, may have been killed, or may be of another version.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, final

from ftprl.confidence import ResidualSummary
from ftprl.runlog.events import Event, json_values
from ftprl.runlog.floor import FloorCurve

Status = Literal["waiting", "running", "finished", "failed", "interrupted"]
Receipt = Mapping[str, float]

T = TypeVar("T")
MOST_SHOWN = 1000  # points of a curve, or events in a table
_HUGE = 1e100  # larger numbers count as missing, numbers below its inverse as 0


def number(value: Any) -> float | None:
    """Return a number of a sensible size as a float, and None for any other value in a file.

    >>> number(3), number("3"), number(True), number(float("inf"))
    (3.0, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not abs(value) <= _HUGE:
        return None
    return float(value) if abs(value) >= 1.0 / _HUGE else 0.0


def numbers(value: Any) -> dict[str, float]:
    """Return the numeric entries of a mapping; entries of nested mappings are named `outer.inner`.

    >>> numbers({"loss": 0.5, "name": "x", "floor": {"mean": 2}})
    {'loss': 0.5, 'floor.mean': 2.0}
    """
    result: dict[str, float] = {}
    for key, entry in value.items() if isinstance(value, Mapping) else ():
        inner = entry.items() if isinstance(entry, Mapping) else ()
        for name, one in ((str(key), entry), *((f"{key}.{k}", v) for k, v in inner)):
            if (size := number(one)) is not None:
                result[name] = size
    return result


@final
@dataclass(frozen=True, slots=True)
class Point:
    """The numbers of one event. Losses are means; `since` is the mean over rows since the last progress event.

    `session` counts how often the run had been resumed. The baseline is the loss of predicting each row from the labels
    before it alone; the improvement is how much better the model is, in percent.
    """

    rows: int
    seconds: float
    session: int
    pass_number: int
    loss: float | None
    baseline: float | None
    improvement: float | None
    since: float | None
    holdout: float | None
    holdout_baseline: float | None
    holdout_improvement: float | None
    weights: Mapping[str, float] = field(default_factory=dict)
    receipt: Receipt = field(default_factory=dict)


_LOSSES = ("loss", "baseline", "improvement", "since", "holdout", "holdout_baseline", "holdout_improvement")


@final
@dataclass(frozen=True, slots=True)
class RunLog:
    """A run as described by its events."""

    status: Status
    settings: Event  # the last event that started or resumed it
    points: Sequence[Point]  # the progress events
    passes: Sequence[Point]  # the numbers at the end of each pass
    ends: Sequence[Point]  # the numbers at the end of the run, with the last receipt
    other_events: Sequence[Event]  # all but progress, unchanged
    rows: int
    seconds: float
    error: str | None
    calibration: Sequence[tuple[float, float, float]]  # rows, sum of predictions, positives
    coordinates: Sequence[Receipt]
    digests: Sequence[Mapping[str, Any]]  # one per file: name, bytes, sha256
    receipt: Receipt  # the last one
    keeps_receipt: bool | None  # None when it was not logged
    coordinates_by: str  # how coordinates are grouped: "rows" or "gradients"
    floor: FloorCurve | None  # the last one
    rates: Receipt  # the best learning-rate scale beside the mixture; empty when not known
    confidence: Mapping[str, Any]  # expectations for future rows; empty if not logged
    residuals: ResidualSummary | None  # of a regression run

    @classmethod
    def from_events(cls, events: Iterable[Event]) -> RunLog:
        """Return the run that events describe; if a file has several runs, the last one.

        >>> RunLog.from_events([{"event": "start", "rows": 0}, {"event": "progress", "rows": 8, "loss": 0.5}]).rows
        8
        """
        kept: list[Event] = []
        for event in events:
            if event["event"] == "start":
                kept = []
            kept.append(json_values(event))
        timed = _timed(kept)
        rows = [_rows(entry.event) for entry in timed]
        return cls(
            status=_status(kept),
            settings=next((e for e in reversed(kept) if e["event"] in ("start", "resume") and "spec" in e), {}),
            points=_points(timed, "progress"),
            passes=_points(timed, "pass"),
            ends=_points(timed, "end"),
            other_events=[entry.event for entry in timed if entry.event["event"] != "progress"],
            rows=rows[-1] if rows else 0,
            seconds=max((entry.seconds for entry in timed), default=0.0),
            error=_error(kept),
            calibration=_bins(_last(kept, "calibration", list)),
            coordinates=[group for entry in _last(kept, "coordinates", list) or () if (group := numbers(entry))],
            receipt=numbers(_last(kept, "receipt", Mapping)),
            keeps_receipt=_last(kept, "receipt", bool),
            digests=[entry for entry in _last(kept, "digests", list) or () if isinstance(entry, Mapping)],
            coordinates_by=str(_last(kept, "coordinates_by", str) or "rows"),
            floor=FloorCurve.from_dict(_last(kept, "floor", Mapping)),
            rates=numbers(_last(kept, "rates", Mapping)),
            confidence=_last(kept, "confidence", Mapping) or {},
            residuals=ResidualSummary.from_dict(_last(kept, "residuals", Mapping) or {}),
        )

    @property
    def end(self) -> Event:
        """Return the event of the run's end, or an empty one until then."""
        return next((event for event in reversed(self.other_events) if event["event"] == "end"), {})

    @property
    def loss(self) -> str:
        """Return the name of the loss."""
        spec = self.settings.get("spec")
        return str(spec.get("loss", "")) if isinstance(spec, Mapping) else ""

    @property
    def first_pass(self) -> Point | None:
        """Return the last point of the first pass with a loss: the progressive loss and its baseline."""
        first = [p for p in (*self.points, *self.passes) if p.pass_number == 1 and p.loss is not None]
        return first[-1] if first else None

    @property
    def has_later_passes(self) -> bool:
        """Return True if rows were learned again in later passes."""
        return any(point.pass_number > 1 for point in (*self.points, *self.passes))

    @property
    def progressive(self) -> float | None:
        """Return the mean progressive loss of the first pass."""
        return None if self.first_pass is None else self.first_pass.loss

    @property
    def held_out(self) -> Point | None:
        """Return the last point with a loss of held-out rows."""
        return next((p for p in reversed((*self.points, *self.passes)) if p.holdout is not None), None)

    @property
    def speed(self) -> float | None:
        """Return rows per second over the whole run."""
        return self.rows / self.seconds if self.rows and self.seconds > 0.0 else None


def _status(events: Sequence[Event]) -> Status:
    """Return the status that the last event implies."""
    kind = events[-1]["event"] if events else ""
    ends: dict[str, Status] = {"": "waiting", "end": "finished", "error": "failed", "interrupted": "interrupted"}
    return ends.get(kind, "running")


def _error(events: Sequence[Event]) -> str | None:
    """Return the message of a run that stopped, else None."""
    stopped = bool(events) and events[-1]["event"] in ("error", "interrupted")
    return str(events[-1].get("message", "")) if stopped else None


@dataclass(frozen=True, slots=True)
class _Timed:
    """An event with the number of times the run had been resumed and the seconds since its first start."""

    session: int
    event: Event
    seconds: float


def _timed(events: Sequence[Event]) -> list[_Timed]:
    """Return events on one clock, without those after the last checkpoint of a killed run, whose rows were learned
    again.
    """
    timed: list[_Timed] = []
    session, before, latest = 0, 0.0, 0.0
    for event in events:
        if event["event"] == "resume":
            timed = [entry for entry in timed if _rows(entry.event) <= _rows(event)]
            session, before = session + 1, latest
        latest = max(latest, before + (number(event.get("seconds")) or 0.0))
        timed.append(_Timed(session, event, latest))
    return timed


def _rows(event: Event) -> int:
    """Return the number of rows of an event."""
    return max(0, int(number(event.get("rows")) or 0.0))


def _points(timed: Sequence[_Timed], kind: str) -> list[Point]:
    """Return the points of events of one kind, at rising numbers of rows, and at most as many as a figure shows."""
    entries: list[_Timed] = []
    for entry in timed:
        if entry.event["event"] == kind and _rows(entry.event) > (_rows(entries[-1].event) if entries else 0):
            entries.append(entry)
    return [_point(entry, _rows(entry.event)) for entry in some(entries)]


def some(entries: Sequence[T]) -> list[T]:
    """Return all entries or, if there are more than `MOST_SHOWN`, the first ones and others at equal distances.

    >>> len(some(range(10**6))), some(range(10**6))[-1]
    (1000, 999999)
    """
    half, count = MOST_SHOWN // 2, len(entries)
    if count <= MOST_SHOWN:
        return list(entries)
    return [*entries[:half], *(entries[half + (count - half) * k // half - 1] for k in range(1, half + 1))]


def _point(entry: _Timed, rows: int) -> Point:
    """Return the numbers of one event."""
    event = entry.event
    return Point(
        rows,
        entry.seconds,
        entry.session,
        max(1, int(number(event.get("pass")) or 1.0)),
        **{name: number(event.get(name)) for name in _LOSSES},
        weights=_weights(event),
        receipt=numbers(event.get("receipt")),
    )


def _weights(event: Event) -> dict[str, float]:
    """Return the weights of the experts in the mixture."""
    mixture = event.get("mixture")
    if not isinstance(mixture, Mapping):
        return {}
    pairs = zip(_list(mixture.get("names")), _list(mixture.get("weights")), strict=False)
    return {str(name): min(1.0, max(0.0, number(weight) or 0.0)) for name, weight in pairs}


def _list(value: Any) -> list[Any]:
    """Return the value if it is a list, else an empty list."""
    return value if isinstance(value, list) else []


def _last(events: Sequence[Event], key: str, kind: type) -> Any:
    """Return the last value of this key and type in the events, or None."""
    return next((event[key] for event in reversed(events) if isinstance(event.get(key), kind)), None)


def _bins(value: Any) -> list[tuple[float, float, float]]:
    """Return the calibration bins that are complete and have rows."""
    rows = [[number(entry) for entry in _list(one)] for one in _list(value)]
    bins = [(r[0], r[1], r[2]) for r in rows if len(r) == 3 and None not in r]
    return [(n, p, y) for n, p, y in bins if n is not None and p is not None and y is not None and n > 0]
