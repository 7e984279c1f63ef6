"""Numbers of a receipt beside those that were recomputed: what counts as the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from ftprl.data.files import shown

RELATIVE = 1e-9  # the replay has the core's bits where both use one C library; elsewhere its last digits may differ


@final
@dataclass(frozen=True, slots=True)
class Check:
    """One number or fact of a receipt: as it is stated, and as it was recomputed."""

    name: str
    stated: Any
    recomputed: Any
    ok: bool

    def __str__(self) -> str:
        start = f"{'confirmed' if self.ok else 'REFUSED'}  {shown(self.name)}: "
        stated = _short(self.stated)
        where = "in the model" if self.name.startswith("model.") else "from the data"
        return start + (stated if self.ok else f"{stated} in the receipt, {_short(self.recomputed)} {where}")


def checked(name: str, stated: Any, recomputed: Any) -> Check:
    """One fact that has to be the same."""
    return Check(name, stated, recomputed, same(stated, recomputed, 0.0))


def compare(name: str, stated: Any, recomputed: Any, tolerances: Mapping[str, float]) -> list[Check]:
    """Each leaf of what is stated against what was recomputed."""
    if isinstance(stated, Mapping) and isinstance(recomputed, Mapping):
        keys = sorted({*stated, *recomputed})
        return [c for k in keys for c in compare(f"{name}.{k}", stated.get(k), recomputed.get(k), tolerances)]
    if _is_list(stated) and _is_list(recomputed) and len(stated) == len(recomputed):
        return [c for i in range(len(recomputed)) for c in compare(f"{name}.{i}", stated[i], recomputed[i], tolerances)]
    return [Check(name, stated, recomputed, same(stated, recomputed, tolerances.get(name.split(".")[-1], 0.0)))]


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def same(stated: Any, recomputed: Any, slack: float) -> bool:
    """Whether two values are the same, up to the last digits of numbers."""
    if type(recomputed) is float and type(stated) in (int, float):
        return bool(abs(stated - recomputed) <= RELATIVE * abs(recomputed) + slack)
    return type(stated) is type(recomputed) and bool(stated == recomputed)


def _short(value: Any) -> str:
    text = f"{value:.12g}" if isinstance(value, float) else shown(str(value))
    return text if len(text) <= 80 else text[:77] + "..."
