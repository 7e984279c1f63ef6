"""Labels, predictions and groups of rows, joined in blocks of any length."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ftprl.data import Batch
from ftprl.errors import InvalidInput
from ftprl.evaluation.blocks import joined


class Parts:
    """Scores 0, 1, 2, ... in parts of given lengths."""

    def __init__(self, lengths: list[int], name: str = "p.txt") -> None:
        self.lengths, self.name = lengths, name

    def scores(self) -> Iterator[np.ndarray]:
        start = 0
        for length in self.lengths:
            yield np.arange(start, start + length, dtype=np.float64)
            start += length


def batches(lengths: list[int]) -> Iterator[Batch]:
    start = 0
    for length in lengths:
        yield Batch.from_rows([()] * length, y=np.arange(start, start + length))
        start += length


LENGTHS = st.lists(st.integers(0, 5), max_size=8)


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(st.integers(1, 6), max_size=5), cuts=st.lists(st.integers(1, 7), max_size=9))
def test_rows_meet_their_predictions(rows: list[int], cuts: list[int]) -> None:
    total = sum(rows)
    lengths = []
    for cut in [*cuts, total]:
        lengths.append(min(cut, total - sum(lengths)))
    groups = (np.array([str(int(x)) for x in part], dtype=object) for part in Parts(lengths).scores())
    blocks = list(joined(batches(rows), [Parts(lengths), Parts([total])], groups, "g"))
    assert sum(len(block.y) for block in blocks) == total
    for block in blocks:
        np.testing.assert_array_equal(block.scores, np.column_stack([block.y, block.y]))
        assert block.groups is not None
        assert block.groups.tolist() == [str(int(y)) for y in block.y]
        assert block.first == block.y[0] + 1
        assert block.usable().all()


@pytest.mark.parametrize("lengths", [[3], [10, 1], [], [4, 4]])
def test_another_number_of_predictions_is_refused(lengths: list[int]) -> None:
    message = rf"p\.txt: expected a value for each of the 10 rows of the data, got {sum(lengths)};"
    with pytest.raises(InvalidInput, match=message):
        list(joined(batches([4, 6]), [Parts([10], "q"), Parts(lengths)]))


def test_rows_without_label_weight_or_prediction_are_not_usable() -> None:
    batch = Batch.from_rows([()] * 4, y=[1.0, np.nan, 1.0, 1.0], weight=[1.0, 1.0, 0.0, 1.0])

    class Gap:
        name = "p"

        def scores(self) -> Iterator[np.ndarray]:
            yield np.array([1.0, 1.0, 1.0, np.nan])

    (block,) = joined([batch], [Gap()])
    assert block.usable().tolist() == [True, False, False, False]
