"""Laws of the readers: they equal their naive twins, block sizes do not matter, and no bytes crash them."""

from __future__ import annotations

import gzip
import re
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ftprl import data
from ftprl._core import use_instruction_set, words
from ftprl.errors import BadFormat, FtprlError
from oracles.batches import keys, rows_of, same
from oracles.readers_twin import Row, Twin, read_csv, read_lines

SLOW = settings(deadline=None, max_examples=150)
NUMBERS = st.one_of(
    st.integers(-3, 3).map(str),
    st.floats(allow_nan=False, allow_infinity=False, width=32).map(repr),
    st.floats(-1e300, 1e300).map(repr),
    st.sampled_from(
        ["1e-320", "1e-400", "1e400", "+1", ".5", "5.", "0.1000000000000000055", "-0", "123456789012345678"]
    ),
)
BROKEN = st.sampled_from(["abc", "", "nan", "-inf", "1e", "0x1", "1_0", "--1", "+-1", "1:2", "é", "1e9999"])
NAMES = st.text("ab1=é'", min_size=1, max_size=12)
BLANKS = st.sampled_from([" ", "  ", "\t", " \t"])


def rare(common: st.SearchStrategy[str], other: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Mostly one value, sometimes the other."""
    return st.integers(0, 30).flatmap(lambda k: other if k == 0 else common)


@st.composite
def vw_lines(draw: st.DrawFn) -> str:
    label = draw(
        rare(
            st.sampled_from(["1", "-1", "", "1 2.5", "-1 0", "1.0"]), st.sampled_from(["0", "2", "x", "1 -1", "1 1 1"])
        )
    )
    head = label + draw(BLANKS) if label else draw(st.sampled_from(["", " "]))
    head += draw(st.sampled_from(["", "", "'tag ", "'tag", "tag", "'"]))
    text = head
    for _ in range(draw(st.integers(1, 3))):
        text += "|" + draw(
            rare(st.sampled_from(["", "", "a", "ns", "ns:2", "b:.5", "é"]), st.sampled_from([":", "a:x"]))
        )
        for _ in range(draw(st.integers(0, 6))):
            name = draw(st.one_of(NAMES, NAMES, st.just("")))
            value = ":" + draw(rare(NUMBERS, BROKEN)) if draw(st.booleans()) else ""
            text += draw(BLANKS) + name + value
    return text


@st.composite
def libsvm_lines(draw: st.DrawFn) -> str:
    parts = [draw(rare(st.sampled_from(["1", "-1", "+1", "-1.0"]), st.sampled_from(["x", "", "1,2", "3"])))]
    for _ in range(draw(st.integers(0, 7))):
        name = draw(
            rare(st.integers(0, 98).map(str), st.sampled_from(["99", "100", "-1", "", "qid", "x", "4294967296" * 3]))
        )
        parts.append(f"{name}:{draw(rare(NUMBERS, BROKEN))}")
    return draw(BLANKS).join(parts) + draw(st.sampled_from(["", "", " ", "# a comment: 1", " #"]))


def files(lines: st.SearchStrategy[str]) -> st.SearchStrategy[bytes]:
    ends = st.sampled_from(["\n", "\n", "\r\n", "\n\n"])
    body = st.lists(st.tuples(st.one_of(lines, lines, lines, st.sampled_from(["", "  ", "#"])), ends), max_size=8)
    return st.tuples(body, st.booleans()).map(
        lambda p: "".join(a + b for a, b in p[0]).encode()[: -1 if p[1] and p[0] else None]
    )


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def write(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


def read(source: data.Source, threads: int = 0) -> tuple[list[Row], str]:
    """Return the rows, and the error of the first bad one."""
    actual: list[data.Batch] = []
    message = ""
    try:
        for batch, _ in source.read(threads=threads):
            actual.append(batch)
    except FtprlError as error:
        message = str(error)
    return rows_of(actual), message


def assert_like_twin(path: Path, content: bytes, kind: str, options: dict[str, Any]) -> None:
    def twin() -> Any:
        return getattr(Twin(**options), kind)

    rows, bad, before = read_lines(content, twin())
    source = data.open(path, on_bad_row="skip", **options)
    same(rows_of(source.batches()), rows)
    assert source.bad_rows == len(bad)
    if bad:
        assert source.first_bad is not None
        assert source.first_bad.startswith(f"{path}:{bad[0]}: expected ")
    actual, message = read(data.open(path, **options))
    same(actual, rows[:before])
    assert bool(message) == bool(bad)
    assert message.startswith(f"{path}:{bad[0]}: expected " if bad else "")
    assert message.isprintable()


OPTIONS = st.fixed_dictionaries(
    {
        "dim": st.sampled_from([2**22, 64, 97, 2**32]),
        "seed": st.sampled_from([0, 7, 2**64 - 1]),
        "intercept": st.booleans(),
        "dtype": st.sampled_from(["float32", "float64"]),
    }
)


@SLOW
@given(content=files(vw_lines()), options=OPTIONS)
def test_vw_equals_its_twin(folder: Path, content: bytes, options: dict[str, Any]) -> None:
    assert_like_twin(write(folder, "a.vw", content), content, "vw", options)


@SLOW
@given(content=files(libsvm_lines()), options=OPTIONS)
def test_libsvm_equals_its_twin(folder: Path, content: bytes, options: dict[str, Any]) -> None:
    options["dim"] = min(options["dim"], 100)
    assert_like_twin(write(folder, "a.libsvm", content), content, "libsvm", options)


CELLS = st.one_of(
    st.sampled_from(
        ["", "NA", "3", " 2.5 ", "x", "y y", "-1e3", "null", "Ünï cOdE x x", "a_b,1", 'say "hi"', "two\nlines", "é"]
    ),
    st.text("ab ,;\"'\n1.", max_size=6),
)
COLUMNS = [("label", "label"), ("w", "weight"), ("c", "categorical"), ("n", "numeric"), ("t", "text"), ("i", "ignore")]


def cell(text: str, sep: str, quoted: bool) -> str:
    if quoted or any(c in text for c in f'{sep}"\n\r'):
        return '"' + text.replace('"', '""') + '"'
    return text


@st.composite
def tables(draw: st.DrawFn) -> tuple[str, str]:
    sep = draw(st.sampled_from([",", ";", "\t", "|"]))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    text = sep.join(name for name, _ in COLUMNS) + end
    for _ in range(draw(st.integers(0, 7))):
        label = draw(rare(st.sampled_from(["1", "0", " 1 ", ""]), st.sampled_from(["2", "x"])))
        weight = draw(rare(st.sampled_from(["1", "0.5"]), st.sampled_from(["-1", ""])))
        number = draw(rare(st.one_of(NUMBERS, st.sampled_from(["", "NaN", " 1 "])), BROKEN.filter(bool)))
        fields = [label, weight, draw(CELLS), number, draw(CELLS), draw(CELLS)]
        fields = fields[: draw(st.sampled_from([6, 6, 6, 6, 6, 6, 6, 5]))]
        text += sep.join(cell(f, sep, draw(st.integers(0, 9)) == 0) for f in fields)
        text += end + draw(st.sampled_from(["", "", "", end]))
    return sep, text


@SLOW
@given(table=tables(), options=OPTIONS)
def test_tables_equal_their_twin(folder: Path, table: tuple[str, str], options: dict[str, Any]) -> None:
    sep, text = table
    path = write(folder, "a.csv", text.encode())
    _, _, body = text.partition("\n")
    readings: tuple[tuple[dict[str, Any], Twin], ...] = (
        ({"positive": "1"}, Twin(**options, positive=b"1")),
        ({"loss": "squared"}, Twin(**options, binary=False)),
    )
    for wish, twin in readings:
        rows, bad = read_csv(body, sep, partial(twin.fields, columns=COLUMNS))
        source = data.open(path, sep=sep, columns=dict(COLUMNS), on_bad_row="skip", **wish, **options)
        same(rows_of(source.batches()), rows)
        assert source.bad_rows == bad


@SLOW
@given(
    content=st.one_of(files(vw_lines()), st.binary(max_size=200)),
    block_size=st.integers(1, 40),
    name=st.sampled_from(["b.vw", "b.libsvm", "b.csv", "b.tsv", "b.vw.gz", "b.csv.gz"]),
    skip=st.booleans(),
    max_row=st.sampled_from([5, 30, 1000]),
)
def test_blocks_do_not_matter(
    folder: Path, content: bytes, block_size: int, name: str, skip: bool, max_row: int
) -> None:
    path = write(folder, name, content)

    def cut(size: int, threads: int) -> tuple[list[Any], str, int, str | None]:
        try:
            options = {"on_bad_row": "skip" if skip else "raise", "max_row": max_row}
            source = data.open(path, block_size=size, **options)
        except FtprlError as error:
            return [], str(error), 0, None
        rows, message = read(source, threads)
        return (
            [keys(row) for row in rows],
            message.replace(" (is a quote not closed?)", ""),
            source.bad_rows,
            source.first_bad,
        )

    assert cut(block_size, 0) == cut(1 << 20, 0) == cut(block_size, 2)


@pytest.mark.parametrize("name", ["e.vw", "e.libsvm", "e.csv"])
def test_instruction_sets_read_alike(folder: Path, name: str) -> None:
    data.clicks.generate(3000, 3, folder / name)
    options = {"label": "click"} if name == "e.csv" else {}

    def rows() -> list[Any]:
        return [keys(row) for row in rows_of(data.open(folder / name, **options).batches())]

    expected = rows()
    assert len(expected) == 3000
    try:
        for kernel in ("portable", "sse2", "avx2"):
            if use_instruction_set(kernel):
                assert rows() == expected
    finally:
        use_instruction_set("")


@SLOW
@given(lines=st.lists(vw_lines(), max_size=5), others=st.lists(libsvm_lines(), max_size=5))
def test_the_quick_path_is_the_careful_one(folder: Path, lines: list[str], others: list[str]) -> None:
    # The end of a file takes the careful path; a row followed by more bytes takes the fast path.
    def read_rows(name: str, text: str) -> tuple[list[Any], int]:
        source = data.open(write(folder, name, text.encode()), on_bad_row="skip", loss="squared")
        return [keys(row) for row in rows_of(source.batches())], source.bad_rows

    for name, rows in (("f.vw", lines), ("f.libsvm", others)):
        alone = [read_rows(name, row) for row in rows]
        together = read_rows(name, "\n".join(rows) + "\n" * 30)
        assert together == ([row for part, _ in alone for row in part], sum(bad for _, bad in alone))


SOUP = st.lists(st.sampled_from([*b" \t|:'\n\r#\",;.eE+-019aN\x00\xff\xc3\xa9"]), max_size=120).map(bytes)


@settings(deadline=None, max_examples=400)
@given(
    content=st.one_of(SOUP, SOUP, st.binary(max_size=300)),
    name=st.sampled_from(["c.vw", "c.libsvm", "c.csv", "c.tsv", "c.vw.gz", "c.vw.bz2", "c.vw.zst"]),
    skip=st.booleans(),
    header=st.booleans(),
)
def test_no_bytes_make_it_fall_over(folder: Path, content: bytes, name: str, skip: bool, header: bool) -> None:
    path = folder / name
    path.write_bytes(content)
    message, header = "", header or name not in ("c.csv", "c.tsv")  # only a table may lack one
    try:
        _, message = read(data.open(path, on_bad_row="skip" if skip else "raise", header=header, dim=1000))
    except BadFormat as error:
        message = str(error)
    assert message.startswith(f"{path}:" if message else "")
    assert message.isprintable()
    assert len(message) < 300 + len(str(path))


@SLOW
@given(content=files(vw_lines()), start=st.integers(0, 12))
def test_a_later_start_is_the_same_stream(folder: Path, content: bytes, start: int) -> None:
    path = write(folder, "d.vw", content)
    source = data.open([path, path], on_bad_row="skip")
    whole = rows_of(source.batches())
    assume(whole)
    again = list(source.batches(start))
    assert [b.first_row for b in again][:1] in ([], [start])
    late = [row for batch in again for row in rows_of([replace(batch, first_row=0)])]
    same(late, whole[start:])


@SLOW
@given(text=st.text(max_size=40))
def test_words_equal_those_of_python(text: str) -> None:
    # Characters that map to one lower-case character; Python's mappings to two, or by context, are left out.
    assume("\u03a3" not in text and "\u0130" not in text)
    assert [word.decode() for word in words(text.encode())] == re.findall(r"\w+", text.lower())


@SLOW
@given(content=st.binary(max_size=60))
def test_words_of_any_bytes(content: bytes) -> None:
    for word in words(content):
        assert word.decode().isprintable()
