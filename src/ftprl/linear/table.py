"""The table of cells, one per feature: what is in them, and the weights that follow from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from ftprl import check
from ftprl._core import Hold, state_lock
from ftprl.errors import InvalidInput
from ftprl.linear.bounds import CellBounds, too_many_ranges
from ftprl.linear.core_learner import core_learner
from ftprl.linear.mixture import Cells, leader_of
from ftprl.linear.spec import Spec
from ftprl.losses import LOSSES
from ftprl.options.checks import check_together

Vector = NDArray[np.float64]
P = ParamSpec("P")
T = TypeVar("T")
Table = TypeVar("Table", bound="CellTable")
_SMALL_PAGE = 4096  # bytes of memory that one cell takes up at least


def reads(method: Callable[Concatenate[Table, P], T]) -> Callable[Concatenate[Table, P], T]:
    """The same method, which sees one state of the table: no thread can learn meanwhile."""

    @wraps(method)
    def locked(self: Table, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with self._reading:
            return method(self, *args, **kwargs)

    return locked


class CellTable:
    """One cell per feature, with the numbers of every scale, and the intercept.

    Several threads may use one table: what reads it runs beside other readers and waits while a batch is learned;
    `unchanged` keeps it so for several reads. What is called a view is memory that learning writes to.
    """

    def __init__(self, spec: Spec, *, receipt: bool = False, classes: int = 0) -> None:
        check.instance("spec", spec, Spec)
        if receipt and LOSSES[spec.loss].one_vs_rest:
            raise InvalidInput(
                "receipt= needs a loss that is convex in the weights, got loss=ovr; drop it, or pass loss=softmax.",
                option=("receipt", "loss"),
            )
        check_together({"receipt": receipt, "calibrate": spec.calibrate})
        self._spec = spec
        self._receipt = receipt
        self._core = core_learner(spec, receipt, classes)
        self._bounds = CellBounds(spec.bounds, spec.dim, spec.lower, spec.upper) if spec.bounds else None
        self._reading, self._changing = state_lock()

    def unchanged(self) -> Hold:
        """A context manager: while it is entered no thread can learn; all can predict.

        >>> from ftprl.linear import Engine
        >>> engine = Engine(Spec(dim=4))
        >>> with engine.unchanged():
        ...     state = engine.progress.rows, engine.bias()
        """
        return self._reading

    @property
    def spec(self) -> Spec:
        """The settings; once scales have been dropped, those that are left, with the others in `spec.retired`."""
        return self._spec

    @property
    def receipt(self) -> bool:
        """Whether the sums of a receipt are kept."""
        return self._receipt

    @property
    def classes(self) -> int:
        """How many classes are known; 0 with a loss of one score."""
        return self._core.outputs if self._spec.classes else 0

    def know_classes(self, classes: int) -> None:
        """Make so many classes known, at least those that are; a new one starts as all that were not seen yet."""
        if not self.classes <= classes <= self._spec.classes:
            raise InvalidInput(
                f"classes needs {self.classes} to {self._spec.classes}, got {classes!r}; pass a number in that range."
            )
        with self._changing:
            self._core.know_classes(classes)

    @property
    def cells(self) -> Cells:
        """A copy of the whole table, one row per cell; `parts` gives it by name, `take` copies some cells only."""
        return self.take(np.arange(self._spec.dim, dtype=np.uint32))

    @property
    def parts(self) -> dict[str, Cells]:
        """A copy of the cells by name: z, R = sqrt(G) and S = g_{1:t}, one column per scale, and the feature's unit.

        With several scales also `count`, the rows that had the feature, and S with a receipt only.
        """
        return self.parts_at(np.arange(self._spec.dim, dtype=np.uint32))

    @reads
    def parts_at(self, slots: NDArray[np.integer[Any]]) -> dict[str, Cells]:
        """The same of some cells, a copy; S is float64 with a receipt."""
        cells = self.take(slots)
        parts = {name: cells[:, columns] for name, columns in _columns(self._core.columns).items()}
        rounded = parts.pop("rounded_S", None)
        if self._receipt:
            return {**parts, "S": self.take_gradients(slots)}
        return parts if rounded is None else {**parts, "S": rounded}

    @property
    def columns(self) -> int:
        """Of classes, that a cell has: those known and one for all that may come; 1 with a loss of one score."""
        return self.classes + (self.classes_to_come > 0) if self._spec.classes else 1

    @property
    def classes_to_come(self) -> int:
        """How many classes there may be that no row had and nobody has named: the last column stands for them."""
        return self._spec.classes - self.classes if self._spec.classes else 0

    @property
    def copies(self) -> Vector:
        """How many classes each column stands for."""
        many = np.ones(self.columns)
        if self.classes_to_come:
            many[-1] = self.classes_to_come
        return many

    @property
    def _gradient_width(self) -> int:
        return self.columns * len(self._spec.scales)

    @property
    def counts_rows(self) -> bool:
        """Whether cells count the rows that had their feature."""
        return "count" in self._core.columns

    @reads
    def take(self, slots: NDArray[np.integer[Any]]) -> Cells:
        """A copy of some cells, a row each."""
        some = self._checked(slots)
        shape = (len(some), self._core.width)
        out: Cells = np.empty(shape, np.float64) if self._spec.float64 else np.empty(shape, np.float32)
        self._core.take(some, out)
        return out

    def put(self, slots: NDArray[np.integer[Any]], cells: Cells) -> None:
        """Overwrite some cells with rows as `take` gives them; each slot once."""
        some = self._checked(slots)
        rows: Any = np.ascontiguousarray(cells, self._kind)
        width = self._core.width
        if rows.shape != (len(some), width):
            raise InvalidInput(f"cells need the shape ({len(some)}, {width}), got {rows.shape}; pass one row per slot.")
        with self._changing:
            self._core.put(some, rows)

    @reads
    def take_gradients(self, slots: NDArray[np.integer[Any]]) -> Vector:
        """S = g_{1:t} of some cells, one row each and one column per scale; with a receipt only.

        With several classes the scales of each column of `columns`, one after the other.
        """
        some = self._checked(slots)
        out = np.empty((len(some), self._gradient_width))
        self._core.take_gradients(some, out)
        return out

    def put_gradients(self, slots: NDArray[np.integer[Any]], gradients: Vector) -> None:
        """Overwrite S of some cells that `put` has filled."""
        some, rows = self._checked(slots), np.ascontiguousarray(gradients, np.float64)
        if rows.shape != (len(some), self._gradient_width):
            raise InvalidInput(
                f"gradients need one row per slot and {self._gradient_width} columns, got {rows.shape}; pass those."
            )
        with self._changing:
            self._core.put_gradients(some, rows)

    @reads
    def touched(self) -> NDArray[np.uint32]:
        """Which cells have been touched."""
        slots = np.empty(self._spec.dim, dtype=np.uint32)  # takes up memory only where something is written
        return slots[: self._core.touched(slots)]

    @reads
    def class_weights_at(self, slots: NDArray[np.integer[Any]]) -> Vector:
        """The weights of some cells in every column of `columns` and every scale, of a model with several classes."""
        spec, parts = self._spec, self.parts_at(slots)
        h, shape = np.array(spec.scales), (len(parts["unit"]), self.columns, len(spec.scales))
        z, R = (parts[name].astype(np.float64).reshape(shape) for name in "zR")
        s = parts["unit"].astype(np.float64)[:, None, None]
        held = s * (spec.beta * s + R) + (h * spec.l2) * (s * s)
        pull = np.copysign(np.maximum(np.abs(z) - spec.l1 * s, 0.0), -z) * h
        x = np.divide(pull, held, out=np.zeros(shape), where=held > 0)
        return np.asarray(np.clip(x, spec.lower, spec.upper))

    def expect_cells(self, count: int) -> None:
        """Prepare an empty table for so many cells: few cells of a large one are spread over small pages of memory."""
        size = self._kind().itemsize * self._core.width * self._spec.dim
        if count * _SMALL_PAGE * 4 < size:
            self._core.use_small_pages()

    @property
    def saved_columns(self) -> dict[str, slice | int]:
        """The columns of `cells` that a model file holds, by the names of its tensors."""
        return _columns(self._core.saved_columns)

    @property
    def saved_arrays(self) -> dict[str, Vector]:
        """Views of the arrays that a model file holds besides the cells, by the names of its tensors."""
        return self._core.saved_arrays

    @property
    @reads
    def intercept(self) -> Vector:
        """A copy of z, R, S = g_{1:t} and kappa of the intercept: one row each, one column per scale.

        With several classes one such array per class.
        """
        out = np.empty((self._core.outputs, 4, len(self._spec.scales)))
        self._core.intercept(out)
        return out if self._spec.classes else np.asarray(out[0])

    @property
    @reads
    def intercept_columns(self) -> Vector:
        """The same, one array per column of classes, as `columns` counts them; S with a receipt only."""
        if not self._spec.classes:
            return self.intercept[np.newaxis]
        K, saved = len(self._spec.scales), self._core.saved_arrays["intercept"]
        out = np.zeros((self.columns, 4, K))
        out[:, : len(saved)] = saved.reshape(len(saved), self.columns, K).transpose(1, 0, 2)
        out[:, 3] = 1.0
        return out

    @property
    def state(self) -> dict[str, Vector]:
        """Views of the state of the mixture, by name (docs/model-file.md); with one scale: w, totals and sums."""
        return {name: array[0] for name, array in self._core.mixture.items()}

    @property
    @reads
    def leader(self) -> int:
        """The number of the leading scale, the one with the smallest total loss."""
        return leader_of(self.state, len(self._spec.scales))

    @reads
    def weights(self, scale: int | None = None) -> Vector:
        """The point x played in each cell, by the scale of this number; by the leading one if none is named.

        With several classes one row per class.
        """
        k = self._number(scale)
        out = np.empty((self._core.outputs, self._spec.dim))
        self._core.weights(out, k)
        return out if self._spec.classes else np.asarray(out[0])

    @reads
    def weights_at(self, slots: NDArray[np.integer[Any]], scale: int | None = None) -> Vector:
        """The same of some cells; takes memory for these alone, however large the table is."""
        some = self._checked(slots)
        few = CellTable(replace(self._spec, dim=max(1, len(some))), classes=self.classes)
        few.put(np.arange(len(some)), self.take(some))
        if self._bounds is not None:
            few.put_bounds(np.arange(len(some)), np.column_stack(self.limits_at(some)))
        return few.weights(self._number(scale))[..., : len(some)]

    @reads
    def bias(self, scale: int | None = None) -> float:
        """The weight of the intercept, as in `weights`; 0 without one."""
        return self._bias(self.intercept, self._number(scale))

    @reads
    def biases(self, scale: int | None = None) -> Vector:
        """The same for each class that is known."""
        k = self._number(scale)
        return np.array([self._bias(own, k) for own in self.intercept])

    def _bias(self, intercept: Vector, k: int) -> float:
        z, R, _, kappa = intercept[:, k].tolist()
        strength = self._spec.beta + R  # h Q, whose unit is 1
        own = 0.0 - z * self._spec.scales[k] / strength if self._spec.intercept and strength > 0 else 0.0
        return float(own * kappa)

    def _number(self, scale: int | None) -> int:
        if scale is None:
            return self.leader
        count = len(self._spec.scales)
        if isinstance(scale, bool) or not isinstance(scale, int | np.integer) or not 0 <= scale < count:
            raise InvalidInput(
                f"scale needs a number from 0 to {count - 1}, got {scale!r}; leave it out for the leading."
            )
        return int(scale)

    def _checked(self, slots: NDArray[np.integer[Any]]) -> NDArray[np.uint32]:
        """Slots of this table, or none: a copy, which nobody changes once it was checked."""
        some = np.array(slots)
        whole = some.ndim == 1 and (some.dtype.kind in "iu" or some.size == 0)
        if not whole or (some.size and not 0 <= int(some.min()) <= int(some.max()) < self._spec.dim):
            raise InvalidInput(
                f"slots need a list of whole numbers from 0 to {self._spec.dim - 1}, got {slots!r:.80}; pass those."
            )
        return np.ascontiguousarray(some, np.uint32)

    @property
    def _kind(self) -> type[np.float32] | type[np.float64]:
        return np.float64 if self._spec.float64 else np.float32

    @property
    def bounds(self) -> CellBounds | None:
        """Which cells have bounds of their own; None where no weight can have them."""
        return self._bounds

    def put_bounds(self, cells: NDArray[np.integer[Any]], ends: Vector) -> None:
        """Set the bounds of some cells: a lower and an upper end each."""
        some = self._checked(cells)
        assert self._bounds is not None
        with self._changing:
            self._bounds.load(some, ends)
            self._put_bounds(some, ends)

    def _put_bounds(self, cells: NDArray[np.uint32], ends: Vector) -> None:
        if len(cells) and not self._core.put_boxes(cells, np.ascontiguousarray(ends)):
            raise too_many_ranges()

    @reads
    def limits_at(self, slots: NDArray[np.integer[Any]]) -> tuple[Vector, Vector]:
        """Between which numbers the weights of some cells have to be."""
        some = self._checked(slots)
        ends = np.tile([self._spec.lower, self._spec.upper], (len(some), 1))
        if self._bounds is not None:
            self._core.take_boxes(some, ends)
        return ends[:, 0], ends[:, 1]


def _columns(ranges: Mapping[str, tuple[int, int]]) -> dict[str, slice | int]:
    """From the first number and how many there are to what indexes an array; a single one is no list."""
    return {name: slice(first, first + count) if count else first for name, (first, count) in ranges.items()}
