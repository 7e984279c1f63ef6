"""The test for heavy-tailed losses: independent of batches, and equal to a second computation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftprl.confidence.layout import TAIL_NUMBERS
from ftprl.confidence.tail import LossTail
from ftprl.losses import SCALAR_LOSSES
from ftprl.receipt.audit_tail import AuditedTail


@given(
    seed=st.integers(0, 99),
    rows=st.integers(0, 9000),
    power=st.sampled_from([0.0, 0.2, 0.4, 0.6, 1.0, 3.0]),
    parts=st.integers(1, 9),
)
def test_neither_batches_nor_a_checkpoint_matter_and_the_audit_agrees(
    seed: int, rows: int, power: float, parts: int
) -> None:
    sizes = np.random.default_rng(seed).pareto(1.0, rows) ** power
    whole, cut, audited = LossTail(), LossTail(), AuditedTail(SCALAR_LOSSES["squared"])
    whole.add(sizes)
    for part in np.array_split(sizes, parts):
        again = LossTail()
        again.restore(cut.numbers)
        cut = again
        cut.add(part)
        audited.add(part, part)
    assert cut.numbers == whole.numbers
    assert len(whole.numbers) == TAIL_NUMBERS
    assert whole.is_heavy == audited.is_heavy


@pytest.mark.parametrize(
    ("draw", "rows", "is_heavy"),
    [
        (lambda rng, n: rng.normal(size=n) ** 2, 3000, True),  # too few rows to tell
        (lambda rng, n: rng.normal(size=n) ** 2, 4000, False),
        (lambda rng, n: rng.uniform(size=n), 4000, False),
        (lambda rng, n: np.zeros(n), 4000, False),
        (lambda rng, n: np.where(np.arange(n) == n - 9, 1.0, 0.0), 4000, True),
        (lambda rng, n: np.where(np.arange(n) == n - 9, 1e4, rng.normal(size=n) ** 2), 4000, True),
        (lambda rng, n: np.where(np.arange(n) < 900, 1e4, rng.normal(size=n) ** 2), 9000, False),  # long ago
    ],
)
def test_what_counts_as_heavy(draw: object, rows: int, is_heavy: bool) -> None:
    tail = LossTail()
    tail.add(draw(np.random.default_rng(0), rows))  # type: ignore[operator]
    assert tail.is_heavy == is_heavy
