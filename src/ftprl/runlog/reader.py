"""What a file of events says of a run: the points of its curves, where it stands, what happened on the way.

Everything is optional: a run may have just begun, have been killed, or have been written by another version.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, final

from ftprl.runlog.events import Event, plain

Status = Literal["waiting", "running", "finished", "failed"]
Receipt = Mapping[str, float]

_HUGE = 1e100  # no number of a run is larger, or smaller than its inverse; axes can be drawn for these


def number(value: Any) -> float | None:
    """A number of a sensible size, or None for everything else that may stand in a file.

    >>> number(3), number("3"), number(True), number(float("inf"))
    (3.0, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not abs(value) <= _HUGE:
        return None
    return float(value) if abs(value) >= 1.0 / _HUGE else 0.0


def numbers(value: Any) -> dict[str, float]:
    """The entries of a mapping that are numbers; those of a mapping within it as `outer.inner`."""
    found: dict[str, float] = {}
    for key, entry in value.items() if isinstance(value, Mapping) else ():
        inner = entry.items() if isinstance(entry, Mapping) else ()
        for name, one in ((str(key), entry), *((f"{key}.{k}", v) for k, v in inner)):
            if (size := number(one)) is not None:
                found[name] = size
    return found


@final
@dataclass(frozen=True, slots=True)
class Point:
    """One progress event: where, when, and what it said. `stretch` counts how often the run was taken up again."""

    rows: int
    seconds: float
    stretch: int
    turn: int  # the pass over the data
    loss: float | None
    since: float | None
    holdout: float | None
    weights: Mapping[str, float] = field(default_factory=dict)
    receipt: Receipt = field(default_factory=dict)


@final
@dataclass(frozen=True, slots=True)
class Told:
    """A run as its events tell it."""

    status: Status
    settings: Event  # the event that began it, or took it up again last
    points: Sequence[Point]
    passes: Sequence[Point]  # the same numbers at the end of each pass
    ends: Sequence[Point]  # where it ended, with the last receipt
    others: Sequence[Event]  # all that is not progress, as it was told
    rows: int
    seconds: float
    message: str | None  # what went wrong
    calibration: Sequence[tuple[float, float, float]]  # rows, sum of predictions, positives
    coordinates: Sequence[Receipt]
    digests: Sequence[Mapping[str, Any]]  # of the files: name, bytes, sha256
    receipt: Receipt  # the last one
    keeps_receipt: bool | None  # whether the run said that it keeps one
    coordinates_by: str  # what their groups were made by: "rows" or "gradients"

    @property
    def loss(self) -> str:
        """The name of the loss."""
        spec = self.settings.get("spec")
        return str(spec.get("loss", "")) if isinstance(spec, Mapping) else ""

    @property
    def progressive(self) -> float | None:
        """The mean loss of the first pass, each row before it was learned."""
        first = [p.loss for p in (*self.points, *self.passes) if p.turn == 1 and p.loss is not None]
        return first[-1] if first else None

    @property
    def speed(self) -> float | None:
        """Rows a second over the whole run, as far as the clock can tell."""
        return self.rows / self.seconds if self.rows and self.seconds > 0.0 else None


def tell(events: Iterable[Event]) -> Told:
    """Read a run from its events; of several runs in one file the last."""
    kept: list[Event] = []
    for event in events:
        if event["event"] == "start":
            kept = []
        kept.append(plain(event))
    stretches = _stretches(kept)
    points = _points(stretches, "progress")
    shapes = [event for _, event, _ in stretches if event["event"] != "progress"]
    ends = [_rows(event) for _, event, _ in stretches]
    return Told(
        status=_status(kept),
        settings=next((e for e in reversed(kept) if e["event"] in ("start", "resume") and "spec" in e), {}),
        points=points,
        passes=_points(stretches, "pass"),
        ends=_points(stretches, "end"),
        others=shapes,
        rows=ends[-1] if ends else 0,
        seconds=max((seconds for _, _, seconds in stretches), default=0.0),
        message=_message(kept),
        calibration=_bins(_last(kept, "calibration", list)),
        coordinates=[found for group in _last(kept, "coordinates", list) or () if (found := numbers(group))],
        receipt=numbers(_last(kept, "receipt", Mapping)),
        keeps_receipt=_last(kept, "receipt", bool),
        digests=[entry for entry in _last(kept, "digests", list) or () if isinstance(entry, Mapping)],
        coordinates_by=str(_last(kept, "coordinates_by", str) or "rows"),
    )


def _status(events: Sequence[Event]) -> Status:
    kind = events[-1]["event"] if events else ""
    ends: dict[str, Status] = {"": "waiting", "end": "finished", "error": "failed"}
    return ends.get(kind, "running")


def _message(events: Sequence[Event]) -> str | None:
    return str(events[-1].get("message", "")) if events and events[-1]["event"] == "error" else None


def _stretches(events: Sequence[Event]) -> list[tuple[int, Event, float]]:
    """Each event with the number of its stretch and the seconds since the first began.

    What a killed run told behind its last checkpoint was learned again after it: it is left out.
    """
    found: list[tuple[int, Event, float]] = []
    stretch, before, latest = 0, 0.0, 0.0
    for event in events:
        if event["event"] == "resume":
            found = [entry for entry in found if _rows(entry[1]) <= _rows(event)]
            stretch, before = stretch + 1, latest
        latest = max(latest, before + (number(event.get("seconds")) or 0.0))
        found.append((stretch, event, latest))
    return found


def _rows(event: Event) -> int:
    return max(0, int(number(event.get("rows")) or 0.0))


def _points(stretches: Sequence[tuple[int, Event, float]], kind: str) -> list[Point]:
    found: list[Point] = []
    for stretch, event, seconds in stretches:
        rows = _rows(event)
        if event["event"] != kind or rows <= (found[-1].rows if found else 0):
            continue
        losses = {name: number(event.get(name)) for name in ("loss", "since", "holdout")}
        turn = max(1, int(number(event.get("pass")) or 1.0))
        found.append(
            Point(
                rows, seconds, stretch, turn, **losses, weights=_weights(event), receipt=numbers(event.get("receipt"))
            )
        )
    return found


def _weights(event: Event) -> dict[str, float]:
    mixture = event.get("mixture")
    if not isinstance(mixture, Mapping):
        return {}
    pairs = zip(_list(mixture.get("names")), _list(mixture.get("weights")), strict=False)
    return {str(name): min(1.0, max(0.0, number(weight) or 0.0)) for name, weight in pairs}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _last(events: Sequence[Event], key: str, kind: type) -> Any:
    return next((event[key] for event in reversed(events) if isinstance(event.get(key), kind)), None)


def _bins(value: Any) -> list[tuple[float, float, float]]:
    rows = [[number(entry) for entry in _list(one)] for one in _list(value)]
    found = [(r[0], r[1], r[2]) for r in rows if len(r) == 3 and None not in r]
    return [(n, p, y) for n, p, y in found if n is not None and p is not None and y is not None and n > 0]
