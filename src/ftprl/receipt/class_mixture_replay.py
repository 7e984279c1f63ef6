"""The twin of the mixture of several classes: from scores to one prediction, and to slopes and new weights."""

from __future__ import annotations

import math
from typing import final

import numpy as np
from numpy.typing import NDArray

from ftprl.linear.mixture import WINDOW, move
from ftprl.linear.spec import Spec
from ftprl.receipt.expert_replay import RIDGE, Additions, ColumnsReplay, in_fours
from ftprl.receipt.mixture_replay import CURVE, CUT, HEAVY, LEAST_CHANCE, Mixing, added

Vector = NDArray[np.float64]
_FACTORIALS = [1.0 / math.factorial(n) for n in range(13, 2, -1)]
_LN2_HIGH, _LN2_LOW = float.fromhex("0x1.62e42feep-1"), float.fromhex("0x1.a39ef35793c76p-33")
_LOG2E, _FARTHEST, _SHIFT = 1.4426950408889634, -700.0, 1.5 * 2.0**52


def in_order(terms: Vector) -> Vector:
    """The sum along the first axis, one after the other."""
    return np.asarray(np.add.accumulate(terms, axis=0)[-1])


def exp_below(x: Vector) -> Vector:
    """e^x of numbers of at most 0, by the polynomial that docs/classes.md names; e^-700 below that."""
    t = np.maximum(x, _FARTHEST)
    whole = (t * _LOG2E + _SHIFT) - _SHIFT
    r = (t - whole * _LN2_HIGH) - whole * _LN2_LOW
    p = np.full_like(r, _FACTORIALS[0])
    for term in (*_FACTORIALS[1:], 0.5, 1.0, 1.0):
        p = p * r + term
    return np.asarray(np.ldexp(p, whole.astype(np.int64)))


def softmax(numbers: Vector, copies: Vector) -> tuple[Vector, Vector]:
    """Logarithms and values of the softmax over all classes, of every scale."""
    logs = numbers - numbers.max(axis=0)
    chances = exp_below(logs)
    total = in_order(copies[:, None] * chances)
    return logs - np.array([math.log(a) for a in total.tolist()]), chances / total


@final
class ClassMixing:
    """The state of the mixture of several classes, and what a row does to it."""

    def __init__(self, spec: Spec, columns: int) -> None:
        self.spec, self.K = spec, len(spec.scales)
        self._mixing = Mixing(spec, Additions(None, None))
        self.dense = ColumnsReplay(columns) if spec.dense else None

    @property
    def state(self) -> dict[str, Vector]:
        return self._mixing.state

    def grow(self, add: int) -> None:
        """So many more columns of classes, each a copy of the last one."""
        if self.dense is not None:
            self.dense.u = np.concatenate([self.dense.u, np.repeat(self.dense.u[..., -1:], add, axis=-1)], axis=-1)
            self.dense.P = np.concatenate([self.dense.P, np.repeat(self.dense.P[..., -1:], add, axis=-1)], axis=-1)

    def keep(self, spec: Spec, first: int) -> None:
        """Four neighbouring scales, from number `first` on."""
        fewer = self._mixing.fewer(spec)
        move(self._mixing.state, fewer.state, first, self.K, WINDOW)
        self.spec, self.K, self._mixing = spec, WINDOW, fewer

    # ---- a row ----

    def read(self, at: NDArray[np.int32], v: Vector, scores: Vector, copies: Vector) -> None:
        """A row before its label is known: what every expert gives each class."""
        self._copies = copies
        inputs = None if self.dense is None else self.dense.read(at, v)
        self._inputs = inputs if self.dense is not None and self.dense.started else None
        self._logs, self._chances = softmax(scores, copies)
        self._seen = np.maximum(self._logs, -CUT)
        if self.spec.stacked:
            f = in_order((self.state["u"] * self._seen).T)
            if self.dense is not None and self._inputs is not None:
                n = len(self._inputs)
                f = f + [in_fours(u * self._inputs) for u in self.dense.u[:n].T]
            logs, self._stack = (a[:, 0] for a in softmax(f[:, None], copies))
            self._logs = np.column_stack([self._logs, logs])
            self._chances = np.column_stack([self._chances, self._stack])
        self._mixed = in_order((self.state["w"] * self._chances).T)

    def predicted(self, known: int) -> float:
        """The most probable of the first classes, the first of equals; NaN before there is one."""
        return float(np.argmax(self._mixed[:known])) if known else math.nan

    def learn(self, y: int, weight: float, t: int) -> tuple[float, Vector]:
        """The loss of row t, and the weighted slopes of every column and scale."""
        mixing, state = self._mixing, self.state
        losses = (-self._logs[y]).tolist()
        if weight > state["facts"][0]:
            mixing.admit(weight)
            self._mixed = in_order((state["w"] * self._chances).T)
        chance = float(self._mixed[y])
        direct = self.spec.share != 0.0 and chance >= LEAST_CHANCE
        loss = -math.log(chance) if direct else mixing.mixed(losses)
        state["seen"] += [weight * a for a in losses]
        state["totals"] += [weight * a for a in losses]
        if mixing.n > 1:
            mixing.share(losses, weight, t, self._chances[y].tolist() if chance >= LEAST_CHANCE else None)
        if self.spec.stacked:
            self._newton(y, min(weight, HEAVY))
        mixing.blocks.add([weight * a for a in losses[: self.K]], t)
        slopes = self._chances[:, : self.K].copy()
        slopes[y] -= 1.0
        return loss, slopes * weight

    def _newton(self, y: int, weight: float) -> None:
        P, u, v = self.state["P"], self.state["u"], self._seen
        p = self._copies * self._stack
        mean = in_order(p[:, None] * v)
        for own, chance in zip(v - mean, p.tolist(), strict=True):
            Pd, b = in_order(P * own[:, None]), weight * max(chance, CURVE)
            P -= b / (1.0 + b * max(added((own * Pd).tolist()), 0.0)) * np.outer(Pd, Pd)
        u -= weight * in_order(P * (mean - v[y])[:, None])
        if not (np.diag(P) > 0).all():
            P[...] = np.eye(len(P)) / RIDGE
        if self.dense is not None and self._inputs is not None:
            for column, chance in enumerate(self._stack.tolist()):
                self._newton_of_columns(column, chance, column == y, weight)

    def _newton_of_columns(self, column: int, p: float, is_label: bool, weight: float) -> None:
        assert self.dense is not None
        assert self._inputs is not None
        d = self._inputs
        n = len(d)
        u, P = self.dense.u[:n, column], self.dense.P[:n, :n, column]
        Pd, b = in_order(P * d[:, None]), weight * max(p * (1.0 - p), CURVE)
        whole = 1.0 + b * max(in_fours(Pd * d), 0.0)
        u -= (weight * (p - 1.0 if is_label else p) / whole) * Pd
        P -= (b / whole) * np.outer(Pd, Pd)
        if not (np.diag(P) > 0).all():
            P[...] = np.eye(n) / RIDGE

    def review_columns(self, at: NDArray[np.int32], v: Vector, t: int, units: Vector, seen: Vector) -> None:
        """Choose the dense columns anew after row t, if t is a power of two."""
        if self.dense is not None:
            nothing = {"u": np.zeros((0, 1)), "P": np.zeros((0, 0, 1))}
            self.dense.review(at, v, t, units, seen, nothing)
