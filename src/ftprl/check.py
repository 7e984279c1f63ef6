"""Input validation of the public API: each function returns a clean value or raises InvalidInput with one line."""

from __future__ import annotations

import math
import sys

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ftprl.errors import InvalidInput

Vector = NDArray[np.float64]


def frozen(a: Vector) -> Vector:
    """Make `a` read-only, so that the arrays of a frozen object cannot be changed either."""
    a.flags.writeable = False
    return a


def _is_masked(value: object) -> bool:
    """Return True for a masked array; numpy.ma is slow to import, and unless it is imported there are none."""
    module = sys.modules.get("numpy.ma")
    return module is not None and isinstance(value, module.MaskedArray)


def array(name: str, value: ArrayLike) -> Vector:
    """Return `value` as a new float64 array."""
    try:
        raw = np.asarray(value)
        if value is None or raw.dtype.kind not in "biufO" or _is_masked(value):
            raise TypeError
        return np.array(raw, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        shown = repr(value)
        shown = shown if len(shown) <= 60 else shown[:57] + "..."
        raise InvalidInput(
            f"{name} needs numbers, got {' '.join(shown.split())}; pass a list or array of floats."
        ) from None


def finite(name: str, a: Vector) -> Vector:
    """Return `a`; raise InvalidInput at the first NaN or infinity, with its position."""
    if not np.isfinite(a).all():
        where = np.argwhere(~np.isfinite(a))[0]
        at = "[" + ",".join(str(int(i)) for i in where) + "]" if a.ndim else ""
        raise InvalidInput(
            f"{name} needs finite numbers, got {name.rstrip('=')}{at}={a[tuple(where)]}; drop or clip it first."
        )
    return a


def vector(name: str, value: ArrayLike, dim: int | None = None) -> Vector:
    """Return `value` as a finite vector, of length `dim` unless `dim` is None.

    >>> vector("g", [1, 2])
    array([1., 2.])
    """
    a = array(name, value)
    if a.ndim != 1 or (dim is not None and a.shape[0] != dim):
        want = "a vector" if dim is None else f"a vector of length {dim}"
        raise InvalidInput(f"{name} needs {want}, got shape {a.shape}; reshape it or change the dimension.")
    return finite(name, a)


def matrix(name: str, value: ArrayLike, columns: int | None = None) -> Vector:
    """Return `value` as a finite matrix, with `columns` columns unless `columns` is None."""
    a = array(name, value)
    if a.ndim != 2 or (columns is not None and a.shape[1] != columns):
        want = "a matrix" if columns is None else f"a matrix with {columns} columns"
        raise InvalidInput(f"{name} needs {want}, got shape {a.shape}; pass a list of rows.")
    return finite(name, a)


def number(name: str, value: float) -> float:
    """Return `value` as a finite float."""
    a = array(name, value)
    if a.ndim:
        raise InvalidInput(f"{name} needs a single number, got shape {a.shape}; pass a float.")
    return float(finite(name, a))


def instance(name: str, value: object, kind: type) -> None:
    """Raise InvalidInput unless `value` is an instance of `kind`."""
    if not isinstance(value, kind):
        shown = " ".join(repr(value).split())[:60]
        raise InvalidInput(f"{name} needs a {kind.__name__}, got {shown}; pass one.")


def positive(name: str, value: float, *, zero: bool = False) -> float:
    """Return `value` as a finite float above 0, or at least 0 with `zero`.

    >>> positive("rate", 0.1)
    0.1
    """
    v = number(name, value)
    if v < 0 or (v == 0 and not zero):
        rule = "of at least 0" if zero else "above 0"
        raise InvalidInput(f"{name} needs a finite number {rule}, got {v!r}; pass one.")
    return v


def dimension(name: str, value: int) -> int:
    """Return `value` as a whole number of at least 1.

    >>> dimension("dim", 0)
    Traceback (most recent call last):
    ftprl.errors.InvalidInput: dim needs a whole number of at least 1, got 0; pass a larger one.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InvalidInput(f"{name} needs a whole number of at least 1, got {value!r}; pass a larger one.")
    return int(value)


_REFINE_DIM = 128  # extended precision is slow


def invertible(name: str, value: ArrayLike) -> tuple[Vector, Vector]:
    """Return a square invertible matrix and its inverse, both read-only."""
    A = matrix(name, value)
    if A.shape[0] != A.shape[1]:
        raise InvalidInput(f"{name} needs a square matrix, got shape {A.shape}; pass an invertible n x n one.")
    condition = float(np.linalg.cond(A)) if A.size else math.inf
    if not condition < 1e14:
        raise InvalidInput(
            f"{name} needs an invertible matrix, got one of condition {condition:.3g}; drop dependent rows."
        )
    return frozen(A), frozen(_refined_inverse(A))


def _refined_inverse(A: Vector) -> Vector:
    """Return the inverse, refined for moderate sizes by one Newton step in extended precision.

    The error of a plain inverse is the condition number times the rounding, and sets are checked by A but measured by
    its inverse.
    """
    X = np.asarray(np.linalg.inv(A), dtype=np.float64)
    if len(A) > _REFINE_DIM:
        return X
    long, there = A.astype(np.longdouble), X.astype(np.longdouble)
    better = np.asarray(there + there @ (np.eye(len(A), dtype=np.longdouble) - long @ there), dtype=np.float64)
    return better if np.isfinite(better).all() else X
