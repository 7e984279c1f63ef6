"""Long contents of a file give short messages."""

from pathlib import Path

import pytest

from ftprl import data
from ftprl.errors import BadFormat, FtprlError

LONG = "x" * 100_000


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (f"{LONG},{LONG}\n1,2\n", {}),
        (f"a,b\n1,{LONG}\n2,{LONG}y\n", {"label": "b"}),
        (f"a,{LONG}\n1,2\n3,4\n5,6\n", {"label": LONG}),
        ("a,b\n1,2\n", {"label": LONG}),
        (f"a,b\n1,{LONG}\n", {"label": "a", "numeric": "b"}),
        (f"{LONG},a\nx,1\n", {"label": "a", "numeric": LONG}),
    ],
    ids=["a column twice", "labels", "a label column", "no such column", "no number", "the column of no number"],
)
def test_a_message_stays_short(tmp_path: Path, text: str, options: dict[str, str]) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(FtprlError, match=rf"(?s)^.{{1,{500 + len(str(path))}}}\Z"):
        list(data.open(path, **options).batches())


def test_a_later_file_without_a_long_column(tmp_path: Path) -> None:
    for name, column in (("a.csv", LONG), ("b.csv", "other")):
        (tmp_path / name).write_text(f"{column},b\n1,2\n")
    with pytest.raises(BadFormat, match=r"(?s)^.{1,600}\Z"):
        list(data.open([tmp_path / "a.csv", tmp_path / "b.csv"]).batches())
