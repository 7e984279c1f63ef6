"""Columns in pure Python: the features of a cell of every kind as names and values, from its text."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta, timezone

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
ABSENT = {"", "na", "nan", "n/a", "#n/a", "null", "none", "?"}
TRUE, FALSE = {"true", "t", "yes", "y", "1"}, {"false", "f", "no", "n", "0"}
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
DATE = re.compile(
    r"(?P<year>[0-9]{4})(?P<dash>-?)(?P<month>[0-9]{2})(?P=dash)(?P<day>[0-9]{2})"
    r"([Tt ](?P<hour>[0-9]{2})((?P<colon>:?)(?P<minute>[0-9]{2})((?P=colon)(?P<second>[0-9]{2})([.,][0-9]+)?)?)?"
    r"(?P<zone>[Zz]|[+-][0-9]{2}(:?[0-9]{2})?)?)?"
)


class Misfit(Exception):
    """A cell that does not fit its column."""


def instant(text: str) -> datetime | None:
    """Return the moment in UTC, without fractions; unconverted without a zone, None for other text."""
    match = DATE.fullmatch(text)
    if match is None:
        return None
    numbers = {name: int(match[name] or 0) for name in ("year", "month", "day", "hour", "minute", "second")}
    zone = UTC
    if match["zone"] and match["zone"] not in "zZ":
        sign, digits = match["zone"][0], match["zone"][1:].replace(":", "").ljust(4, "0")
        hours, minutes = int(digits[:2]), int(digits[2:])
        if hours > 23 or minutes > 59:
            return None
        east = timedelta(hours=hours, minutes=minutes)
        zone = timezone(-east if sign == "-" else east)
    try:
        return datetime(**numbers, tzinfo=zone).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def seconds(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)


def circle(part: int, parts: int) -> tuple[float, float]:
    angle = 2 * math.pi * part / parts
    return round(math.sin(angle) * 1e9) / 1e9, round(math.cos(angle) * 1e9) / 1e9


def date_features(column: str, moment: datetime, origin: float, has_hour: bool) -> Iterator[tuple[str, float]]:
    day = moment.weekday()
    yield f"{column} trend", (seconds(moment) - origin) / (365.25 * 86400)
    sine, cosine = circle(day, 7)
    yield f"{column} weekday sin", sine
    yield f"{column} weekday cos", cosine
    yield f"{column} weekday={DAYS[day]}", 1.0
    if has_hour:
        sine, cosine = circle(60 * moment.hour + moment.minute, 1440)
        yield f"{column} hour sin", sine
        yield f"{column} hour cos", cosine
        yield f"{column} hour={moment.hour}", 1.0
        yield f"{column} hour of week={DAYS[day]} {moment.hour}", 1.0


def spelled(edge: float) -> str:
    return repr(float(edge)).removesuffix(".0")


def bucket_name(column: str, number: float, edges: Sequence[float]) -> str:
    below = [edge for edge in edges if edge <= number]
    above = [edge for edge in edges if edge > number]
    if not below and not above:
        return f"{column} any"
    if not below:
        return f"{column}<{spelled(above[0])}"
    return f"{column} {spelled(below[-1])}..{spelled(above[0])}" if above else f"{column}>={spelled(below[-1])}"


def features(column: str, kind: str, text: str, sampled: Sequence[float], missing: str) -> list[tuple[str, float]]:
    """Return names and values of a cell's features; kinds are those of a model."""
    plain = text.strip(" \t")
    if text == "" if kind in ("categorical", "text") else plain.lower() in ABSENT:
        return [(f"{column} is missing", 1.0)] if missing == "indicator" else []
    if kind == "categorical":
        return [(f"{column}={text}", 1.0)]
    if kind == "text":
        return [(f"{column}={word}", 1.0) for word in re.findall(r"\w+", text.lower())]
    if kind == "boolean":
        return [(f"{column}={'true' if truth(plain) else 'false'}", 1.0)]
    if kind in ("date", "timestamp"):
        moment = instant(plain)
        if moment is None:
            raise Misfit
        return list(date_features(column, moment, sampled[0], kind == "timestamp"))
    number = finite(plain)
    return [(column, number)] if kind == "numeric" else [(bucket_name(column, number, sampled[1:]), 1.0)]


def truth(text: str) -> bool:
    number = float(text) if NUMBER.fullmatch(text) and len(text) < 6 else None
    if text.lower() in TRUE or number == 1:
        return True
    if text.lower() in FALSE or number == 0:
        return False
    raise Misfit


def finite(text: str) -> float:
    if not NUMBER.fullmatch(text) or not math.isfinite(float(text)):
        raise Misfit
    return float(text)
