"""What a linear model is, as one frozen object: all that decides its numbers besides the data."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, final

import numpy as np

from ftprl import check
from ftprl.errors import InvalidInput
from ftprl.linear.bounds import Bound, parse_bounds
from ftprl.losses import LARGEST_LABEL, LOSSES, ScalarLoss, check_loss, quantile, scalar_loss
from ftprl.options.checks import check_value

LIMIT = LARGEST_LABEL  # options obey it too
LARGEST_DIM = 2**32
MOST_SCALES = 16
MOST_CLASSES = 10_000
# Fields that are written only where they are on.
_OPTIONAL = ("coin", "dense", "retired_row", "dropped_experts", "classes", "bounds", "calibrate")
_OFF: tuple[Any, ...] = (False, 0, (), [], "none")
DROPPABLE = ("columns", "coin", "drift")  # experts, in the order in which the mixture does without them
MOST_COLUMN_CLASSES = 256  # with more, the columns would take too much memory and time
AUTO = (0.02, 0.057, 0.16, 0.45, 1.28, 3.6, 10.0, 29.0)  # measured: docs/scales.md
BETA = 0.3  # with several scales


@final
@dataclass(frozen=True, slots=True)
class Spec:
    """The loss, the size of the table and the constants of the scheme.

    With M the largest |value| of a coordinate and G its sum of squared gradients, `scale` is h and `beta` is beta in
    Q = M (beta M + sqrt G) / h, and x = clip(-sgn(z)(|z| - l1 M)_+ / (Q + l2 M²), lower, upper): penalties are on
    weights times the unit of their feature, so that they mean the same whatever it is measured in.

    Several scales are learned side by side and mixed (docs/scales.md): a tuple of 2 to 16, or "auto". Newton experts,
    which combine their scores, are mixed with them. `coin` adds a coin-betting expert, and `dense` a Newton expert that
    sees columns of frequent features; neither goes with penalties or bounds. `bounds` are ranges of weights by the
    names of their features (docs/bounds.md), such as {"price*": (0, None)}; with them there is no Newton expert.
    `retired` are scales that were there at first and dropped after `retired_row` rows, and `dropped_experts` the names
    of other experts that were. `beta` is 1 for one scale and 0.3 for several unless it is given. `classes` is how many
    classes there may be with a loss of classes (docs/classes.md), otherwise 0. `calibrate` is "platt" or "isotonic" for
    probabilities that are calibrated while rows are learned (docs/calibration.md); with the log loss.

    >>> Spec(loss="squared", dim=100).scale
    0.1
    >>> len(Spec(scale="auto").scales)
    8
    """

    loss: str = "logistic"
    dim: int = 2**22
    scale: float | tuple[float, ...] | str = 0.1
    beta: float = None  # type: ignore[assignment]  # a number once it is settled
    l1: float = 0.0
    l2: float = 0.0
    lower: float = -math.inf
    upper: float = math.inf
    intercept: bool = True
    seed: int = 0
    float64: bool = False
    tau: float = 0.5
    coin: bool = False
    dense: bool = False
    retired: tuple[float, ...] = ()
    retired_row: int = 0
    dropped_experts: tuple[str, ...] = ()
    classes: int = 0
    bounds: tuple[Bound, ...] = ()
    calibrate: str = "none"

    def __post_init__(self) -> None:
        def settle(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        check_loss(self.loss)
        settle("dim", check.dimension("dim=", self.dim))
        if self.dim > LARGEST_DIM:
            raise InvalidInput(f"dim= needs at most 2**32 cells, got {self.dim}; hash into fewer.")
        settle("scale", _scale(self.scale))
        if self.beta is None:
            settle("beta", BETA if self.several else 1.0)
        for name in ("beta", "l1", "l2"):
            settle(name, _option(f"{name}=", check.positive(f"{name}=", getattr(self, name), zero=True)))
        settle("lower", _bound("lower=", self.lower))
        settle("upper", _bound("upper=", self.upper))
        if not self.lower <= self.upper or self.lower == math.inf or self.upper == -math.inf:
            raise InvalidInput(
                f"lower= needs to be at most upper=, with a number between, got lower={self.lower!r} and"
                f" upper={self.upper!r}; swap them or drop one.",
                option=("lower", "upper"),
            )
        settle("bounds", parse_bounds(self.bounds))
        for name in ("intercept", "float64", "coin", "dense"):
            settle(name, _flag(f"{name}=", getattr(self, name)))
        check_value("seed", self.seed)
        check_value("calibrate", self.calibrate)
        settle("seed", int(self.seed))
        settle("classes", _classes(self.classes, self.scalar_loss()))
        _check_calibrate(self.calibrate, self.loss)
        settle("tau", check.number("tau=", self.tau))
        quantile(self.tau)
        for name in ("coin", "dense"):
            if getattr(self, name) and not self.may_add(name):
                classes = f"at most {MOST_COLUMN_CLASSES} classes" if name == "dense" else "no loss of several classes"
                raise InvalidInput(
                    f"{name}= needs several scales, no penalty, no bound and {classes},"
                    f" got loss={self.loss}, scale={self.scale!r:.40}, l1={self.l1}, l2={self.l2}, lower={self.lower},"
                    f" upper={self.upper}, bounds={self.bounds!r:.40}; drop it.",
                    option=name,
                )
        settle("dropped_experts", _dropped(self.dropped_experts))
        settle("retired", _retired(self.retired, self.scales))
        if self.retired and not self.several:
            raise InvalidInput(f"retired= needs several scales that stayed, got {self.retired!r} with one; drop it.")
        if self.retired_row and not self.retired:
            raise InvalidInput(f"retired_row= needs scales that left, got {self.retired_row!r} and none; drop it.")

    @property
    def scales(self) -> tuple[float, ...]:
        """The scales, one or several."""
        return self.scale if isinstance(self.scale, tuple) else (float(self.scale),)

    @property
    def several(self) -> bool:
        """Whether there is more than one scale."""
        return isinstance(self.scale, tuple)

    @property
    def stacked(self) -> bool:
        """Whether the mixture has Newton experts, whose scores would break bounds of single weights."""
        return self.several and not self.bounds

    def may_add(self, name: str) -> bool:
        """Whether `coin` or `dense` can be on: their weights know no penalty and no bound."""
        mixed = self.stacked if name == "dense" else self.several
        fits = self.classes <= (MOST_COLUMN_CLASSES if name == "dense" else 0)
        return mixed and self.l1 == 0.0 and self.l2 == 0.0 and not self.bounded and fits

    @property
    def bounded(self) -> bool:
        """Whether a bound is finite."""
        return math.isfinite(self.lower) or math.isfinite(self.upper) or bool(self.bounds)

    def scalar_loss(self) -> ScalarLoss:
        """The loss of a score."""
        return scalar_loss(self.loss, self.tau)

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain data; an infinite bound is None, since JSON has no infinity."""
        values = asdict(self)
        if not self.several:
            del values["retired"]
        for name in ("lower", "upper"):
            values[name] = _or_none(values[name])
        values["bounds"] = [[name, _or_none(lower), _or_none(upper)] for name, lower, upper in self.bounds]
        return {name: value for name, value in values.items() if name not in _OPTIONAL or value not in _OFF}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Spec:
        """The spec that `to_dict` wrote; a field that is not there has its default."""
        known = {field.name for field in fields(cls)}
        for name in values:
            if name not in known:
                raise InvalidInput(f"Spec has no field {name!r}; it has {', '.join(sorted(known))}.")
        return cls(
            **{name: value for name, value in values.items() if not (name in ("lower", "upper") and value is None)}
        )


def _or_none(end: float) -> float | None:
    return end if math.isfinite(end) else None


def _scale(value: object) -> float | tuple[float, ...]:
    """One scale, or several as a tuple."""
    if isinstance(value, str):
        if value != "auto":
            raise InvalidInput(f"scale= needs a number, several, or 'auto', got {value!r}; pass one.")
        return AUTO
    if not isinstance(value, tuple | list | np.ndarray) or np.ndim(value) == 0:
        return _option("scale=", check.positive("scale=", value))  # type: ignore[arg-type]
    scales = tuple(_option("scale=", check.positive("scale=", h)) for h in value)
    if len(scales) == 1:
        return scales[0]
    rising = all(a < b for a, b in itertools.pairwise(scales))
    if not 2 <= len(scales) <= MOST_SCALES or not rising:
        shown = ", ".join(f"{h:g}" for h in scales[:MOST_SCALES]) + (", ..." if len(scales) > MOST_SCALES else "")
        raise InvalidInput(
            f"scale= needs up to {MOST_SCALES} numbers in increasing order, got {shown or 'none'};"
            f" {'sort them' if len(scales) <= MOST_SCALES else 'pass fewer'}."
        )
    return scales


def _classes(value: object, loss: ScalarLoss) -> int:
    if not loss.has_classes:
        if value == 0 and not isinstance(value, bool):
            return 0
        raise InvalidInput(
            f"classes= needs a loss of several classes, got loss={loss.name}; drop it, or pass loss=softmax.",
            option=("classes", "loss"),
        )
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 2 <= value <= MOST_CLASSES:
        raise InvalidInput(f"classes= needs a whole number from 2 to {MOST_CLASSES}, got {value!r}; pass one.")
    return int(value)


def _names_of(fact: str) -> str:
    """The names of the losses of which a fact is true, for a message."""
    return " or ".join(name for name, loss in LOSSES.items() if getattr(loss, fact))


def _check_calibrate(value: object, loss: str) -> None:
    if value != "none" and not LOSSES[loss].is_probabilistic:
        raise InvalidInput(
            f"calibrate= needs loss={_names_of('is_probabilistic')}, got calibrate={value} and loss={loss}; drop it.",
            option=("calibrate", "loss"),
        )


def _retired(value: object, scales: tuple[float, ...]) -> tuple[float, ...]:
    if not isinstance(value, tuple | list | np.ndarray):
        raise InvalidInput(f"retired= needs the scales that left, got {value!r:.60}; leave it out for none.")
    left = tuple(_option("retired=", check.positive("retired=", h)) for h in value)
    rising = all(a < b for a, b in itertools.pairwise(left))
    if not rising or set(left) & set(scales) or len(left) + len(scales) > MOST_SCALES:
        raise InvalidInput(f"retired= needs other scales than those in use, got {left!r:.80}; leave it out for none.")
    return left


def _dropped(value: object) -> tuple[str, ...]:
    names = tuple(value) if isinstance(value, tuple | list) else ()
    if not isinstance(value, tuple | list) or set(names) - {*DROPPABLE} or len({*names}) != len(names):
        raise InvalidInput(
            f"dropped_experts= needs names among {', '.join(DROPPABLE)}, each once, got {value!r:.60}; leave it out."
        )
    return names


def _option(name: str, value: float) -> float:
    # sqrt(g²) is 0 for a g below 1e-162: a fraction over a smaller option alone would leave the range of a float.
    if 0.0 < value < 1.0 / LIMIT:
        raise InvalidInput(
            f"{name} needs at least 1e-30, got {value!r}; rescale the data or take 0 where it is allowed."
        )
    return _small(name, value)


def _small(name: str, value: float) -> float:
    if value > LIMIT:
        raise InvalidInput(f"{name} needs at most 1e30, got {value!r}; rescale the data.")
    return value


def _bound(name: str, value: float) -> float:
    a = check.array(name, value)
    if a.ndim or math.isnan(float(a)):
        raise InvalidInput(f"{name} needs a number or infinity, got {value!r}; leave it out for no bound.")
    return float(a) if math.isinf(float(a)) else math.copysign(_small(name, abs(float(a))), float(a))


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise InvalidInput(f"{name} needs True or False, got {value!r}; pass one.")
    return bool(value)
