"""Helpers of several experiments: fitted exponents, the loss of a learner, gradients of very different kinds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ftprl.adversaries import LossFunction
from ftprl.bounds import Certificate
from ftprl.game import play
from ftprl.learner import Learner

Vector = NDArray[np.float64]
ROOT2 = math.sqrt(2.0)
ROUNDING = 1e-7  # relative error of a solver and of the order of sums


def slope(x: ArrayLike, y: ArrayLike) -> float:
    """Return the exponent s of y ~ x^s by least squares in the logarithms.

    >>> round(slope([1, 10, 100], [2, 20, 200]), 9)
    1.0
    """
    return float(np.polyfit(np.log(np.asarray(x, dtype=float)), np.log(np.asarray(y, dtype=float)), 1)[0])


def total_loss(learner: Learner[Any], losses: Iterable[LossFunction]) -> float:
    """Return a learner's total loss without keeping a ledger, for long runs."""
    state, own_loss = learner.init(None), 0.0
    for f in losses:
        value, g = f(state.x)
        own_loss += value
        state = learner.advance(state, g, None)
    return own_loss


def certificate(learner: Learner[Any], gs: Vector, full: bool = False) -> Certificate:
    """Return the certificate after rows of gradients, shape (T, n); `full` adds the outer products and programs."""
    return play(learner, gs, full=full).certificate(program=full)


def kinds(n: int, T: int, seed: int) -> Iterator[tuple[str, Vector]]:
    """Yield (name, gradients) of four kinds: normal, sparse, of very different sizes, and nearly all in one
    direction.

    >>> [name for name, gs in kinds(3, 5, seed=0)]
    ['normal', 'sparse', 'sizes over four decades', 'one direction']
    """
    rng = np.random.default_rng(seed)
    yield "normal", rng.normal(size=(T, n))
    yield "sparse", np.where(rng.random((T, n)) < 0.2, rng.normal(size=(T, n)), 0.0)
    yield "sizes over four decades", rng.normal(size=(T, n)) * 10.0 ** rng.uniform(-2, 2, size=n)
    yield "one direction", np.outer(rng.normal(size=T), rng.normal(size=n)) + 0.05 * rng.normal(size=(T, n))
