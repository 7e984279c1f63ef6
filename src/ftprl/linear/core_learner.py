"""The compiled learner of given settings, and the memory it needs."""

from __future__ import annotations

from ftprl._core import Learner
from ftprl.errors import OutOfMemory
from ftprl.linear.spec import Spec


def core_learner(spec: Spec, receipt: bool, classes: int) -> Learner:
    """A learner that has seen no row; OutOfMemory says what to change where its table does not fit."""
    try:
        return _make(spec, receipt, spec.dim, classes)
    except MemoryError:
        needed = table_bytes(spec, receipt) / 1e9
        raise OutOfMemory(
            f"bits= needs memory for the whole table, {needed:.3g} GB for {spec.dim} cells, got less from the system;"
            " use fewer bits= (each halves it) or a single scale=, or raise the memory limit (ulimit -v).",
            option=("bits", "scale"),
        ) from None


def table_bytes(spec: Spec, receipt: bool) -> int:
    """How much memory the table of an engine needs at most; pages that are never touched take none.

    >>> table_bytes(Spec(dim=2**20, scale=0.1), receipt=False) == 2**20 * 16
    True
    """
    return spec.dim * _make(spec, receipt, 1).slot_bytes


def _make(spec: Spec, receipt: bool, dim: int, classes: int = 0) -> Learner:
    return Learner(
        dim,
        classes if spec.classes else 1,
        float64=spec.float64,
        receipt=receipt,
        loss=spec.loss,
        scales=spec.scales,
        beta=spec.beta,
        l1=spec.l1,
        l2=spec.l2,
        lower=spec.lower,
        upper=spec.upper,
        intercept=spec.intercept,
        tau=spec.tau,
        coin=spec.coin,
        dense=spec.dense,
        classes=spec.classes,
        boxed=bool(spec.bounds),
        calibrate=spec.calibrate,
    )
