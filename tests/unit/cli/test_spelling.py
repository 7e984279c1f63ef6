"""Messages with options spelled as on the command line."""

import pytest

from ftprl.cli.spelling import as_typed

CASES: list[tuple[str, tuple[str, ...], str]] = [
    ("label= needs a column, got none; pass one.", (), "--label needs a column, got none; pass one."),
    ("l1 needs a number, got 'x'; pass one.", (), "--l1 needs a number, got 'x'; pass one."),
    ("on_bad_row= needs raise or skip", (), "--on-bad-row needs raise or skip"),
    ("row needs 3 fields, got 2 fields", (), "--row needs 3 fields, got 2 fields"),
    ("header= needs True or False, got 3", (), "--no-header needs True or False, got 3"),
    ("a.vw:3: the row is longer, pass max_row=.", ("max_row",), "a.vw:3: the row is longer, pass --max-row."),
    ("a.vw:3: got 'label=x' in 'label=x:y'", (), "a.vw:3: got 'label=x' in 'label=x:y'"),
    ("every= is it, got every=5 without; pass checkpoint= as well", ("every", "checkpoint"),
     "--every is it, got --every 5 without; pass --checkpoint as well"),
    ("other needs a number", ("other",), "other needs a number"),
]  # fmt: skip


@pytest.mark.parametrize(("message", "options", "wanted"), CASES)
def test_options_as_they_are_typed(message: str, options: tuple[str, ...], wanted: str) -> None:
    assert as_typed(message, options) == wanted
