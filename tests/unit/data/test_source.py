"""Sources: paths, compression, standard input, broken files, resumption, and the arguments of open."""

import bz2
import contextlib
import gc
import gzip
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ftprl import data
from ftprl.errors import BadFormat, FtprlError, InvalidInput
from oracles.batches import keys, rows_of

TEXT = b"1 | a\n-1 | b\n" * 3


PACKERS: dict[str, Any] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".zst": lambda content: pa.Codec("zstd").compress(content, asbytes=True),
    "": bytes,
}


@pytest.mark.parametrize("suffix", PACKERS)
def test_compression(tmp_path: Path, suffix: str) -> None:
    pack = PACKERS[suffix]
    path = tmp_path / f"a.vw{suffix}"
    path.write_bytes(pack(TEXT) + pack(TEXT))  # several members are one text
    assert len(rows_of(data.open(path).batches())) == 12


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".zst"])
def test_a_file_cut_short(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.vw{suffix}"
    lines = b"".join(b"1 | f%d\n" % (i * i) for i in range(300_000))
    packed = PACKERS[suffix](lines)
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(
        BadFormat, match=rf"a\.vw\{suffix}:\d+: expected whole \w+ data, got a broken file \(.*\)"
    ) as caught:
        rows_of(data.open(path).batches())
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".zst"])
def test_a_suffix_that_lies(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.vw{suffix}"
    for content in (TEXT, b""):
        path.write_bytes(content)
        with pytest.raises(BadFormat, match=rf"a\.vw\{suffix}:1: expected \w+ data, got other bytes"):
            rows_of(data.open(path).batches())


def test_gzip_with_garbage_behind(tmp_path: Path) -> None:
    path = tmp_path / "a.vw.gz"
    path.write_bytes(gzip.compress(TEXT) + b"garbage")
    batches = data.open(path).batches()
    assert len(next(batches).y) == 6
    with pytest.raises(BadFormat, match=r"a\.vw\.gz:7: expected whole gzip data"):
        next(batches)
    path.write_bytes(gzip.compress(TEXT) + bytes(512))
    assert len(rows_of(data.open(path).batches())) == 6


@pytest.mark.parametrize("suffix", [".gz", ".bz2"])
def test_a_damaged_stream_behind_a_whole_one(tmp_path: Path, suffix: str) -> None:
    """A bit flipped anywhere in a later stream is an error, never the end of the text."""
    pack, path = PACKERS[suffix], tmp_path / f"a.vw{suffix}"
    first, second = pack(TEXT), pack(b"1 | c\n" * 50)
    whole = 0
    for at in range(8 * len(first), 8 * len(first + second)):
        damaged = bytearray(first + second)
        damaged[at // 8] ^= 1 << at % 8
        path.write_bytes(damaged)
        with contextlib.suppress(BadFormat):
            assert len(rows_of(data.open(path).batches())) == 56
            whole += 1
    assert whole < 8 * 10  # some bits say nothing: the time in the head of gzip, the bits that fill the last byte
    path.write_bytes(first + bytes(99) + second)  # zeros between streams, as some tools write them
    assert len(rows_of(data.open(path).batches())) == 56


def zstd_frame(content: bytes, window_log: int = 20) -> bytes:
    """Return a zstd frame with one uncompressed block and a window of any size."""
    block = (len(content) << 3 | 1).to_bytes(3, "little")
    return b"\x28\xb5\x2f\xfd" + bytes([0, (window_log - 10) << 3]) + block + content


def test_zstd_with_frames_to_skip(tmp_path: Path) -> None:
    path = tmp_path / "a.vw.zst"
    skipped = b"\x5d\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"hello"
    path.write_bytes(skipped + zstd_frame(TEXT) + skipped + zstd_frame(TEXT) + skipped)
    assert len(rows_of(data.open(path).batches())) == 12


def test_zstd_with_a_long_window(tmp_path: Path) -> None:
    path = tmp_path / "a.vw.zst"
    path.write_bytes(zstd_frame(TEXT, 27))
    assert len(rows_of(data.open(path).batches())) == 6
    path.write_bytes(zstd_frame(TEXT, 31))
    with pytest.raises(
        BadFormat, match=r"a\.vw\.zst:1: expected zstd data with a window of at most 128 MiB, got a long"
    ):
        rows_of(data.open(path).batches())


@pytest.mark.parametrize("block_size", [1, 7, 1 << 22])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_lines_that_end_in_a_carriage_return_alone(tmp_path: Path, pack: Any, block_size: int) -> None:
    text = b"".join(b"1 %d | a%d\r" % (i, i) for i in range(5)) + b"-1 9 | b"
    (tmp_path / "a.vw").write_bytes(pack(text))
    (tmp_path / "b.vw").write_bytes(text.replace(b"\r", b"\n"))
    source = data.open(tmp_path / "a.vw", block_size=block_size)
    read = list(source.read())
    assert [keys(row) for row in rows_of(batch for batch, _ in read)] == [
        keys(row) for row in rows_of(data.open(tmp_path / "b.vw").batches())
    ]
    (again, _), *_ = source.read(read[-1][1].after(1)) if len(read[-1][0]) > 1 else [read[-1]]
    assert again.weight[-1] == 9
    (tmp_path / "a.csv").write_bytes(pack(b"y,a\r1,x\r0,z\r"))
    assert len(rows_of(data.open(tmp_path / "a.csv", label="y", block_size=block_size).batches())) == 2


def test_carriage_returns_within_lines_stay(tmp_path: Path) -> None:
    (tmp_path / "a.vw").write_bytes(b"1 | a\rb\n-1 | c\n")
    for block_size in (3, 1 << 22):
        assert len(rows_of(data.open(tmp_path / "a.vw", block_size=block_size).batches())) == 2


def test_a_small_file_that_unpacks_to_much(tmp_path: Path) -> None:
    path = tmp_path / "a.vw.gz"
    path.write_bytes(gzip.compress(b"1 | " + b"a " * 50_000_000))
    with pytest.raises(BadFormat, match=r"a\.vw\.gz:1: expected a row of at most 16000000 bytes, got a longer one"):
        rows_of(data.open(path).batches())


def test_a_mark_of_byte_order_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("\ufeffy,a\n1,2\n".encode())
    for block_size in (1, 2, 1 << 20):
        source = data.open(path, label="y", block_size=block_size)
        assert len(rows_of(source.batches())) == 1


def test_several_files_a_folder_and_a_pattern(tmp_path: Path) -> None:
    for name in ("b.vw", "a.vw", "c.vw.gz", ".hidden"):
        (tmp_path / name).write_bytes(PACKERS[".gz"](TEXT) if name.endswith(".gz") else TEXT)
    for paths in (tmp_path, str(tmp_path / "*.vw*"), [tmp_path / "a.vw", tmp_path / "b.vw", tmp_path / "c.vw.gz"]):
        batches = list(data.open(paths).batches())
        assert [Path(batch.origin).name for batch in batches] == ["a.vw", "b.vw", "c.vw.gz"]
        assert [batch.first_row for batch in batches] == [0, 6, 12]


def test_a_source_can_be_read_again(tmp_path: Path) -> None:
    (tmp_path / "a.vw").write_bytes(TEXT + b"bad\n")
    source = data.open(tmp_path / "a.vw", on_bad_row="skip")
    assert [len(rows_of(source.batches())) for _ in range(2)] == [6, 6]
    assert source.bad_rows == 1


def test_batches_have_at_most_16384_rows(tmp_path: Path) -> None:
    (tmp_path / "a.vw").write_bytes(TEXT * 8000)
    for block_size in (1000, 1 << 20):
        sizes = [len(batch.y) for batch in data.open(tmp_path / "a.vw", block_size=block_size).batches()]
        assert sum(sizes) == 48_000
        assert max(sizes) <= 16_384
    assert sizes == [16_384, 16_384, 48_000 - 32_768]


def test_wide_rows_make_smaller_batches(tmp_path: Path) -> None:
    row = "1 | " + " ".join(f"f{i}" for i in range(100_000)) + "\n"
    (tmp_path / "a.vw").write_text(row * 50)
    sizes = [len(batch.y) for batch in data.open(tmp_path / "a.vw", block_size=1 << 26).batches()]
    assert sizes[0] == 22  # of about 98,800 cells each
    assert sum(sizes) == 50


@pytest.mark.parametrize("name", ["a.vw", "a.vw.gz", "a.csv"])
def test_going_on_from_any_place(tmp_path: Path, name: str) -> None:
    """Each batch has its position; reading from there, or from a later row, gives the remaining rows."""
    if name == "a.csv":
        text = b"\xef\xbb\xbfy,w,name\n" + b"".join(
            b'%d,%d,"v\n%d"\n' % (i % 2, i, i) if i % 7 else b"x\n" for i in range(3000)
        )
        options: dict[str, Any] = {"label": "y", "weight": "w"}
    else:
        text = b"".join(b"%d %d | a%d\n" % (i % 2, i, i) if i % 7 else b"x\n" for i in range(3000))
        options = {}
    path = tmp_path / name
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    source = data.open([path, path], block_size=5000, on_bad_row="skip", **options)
    whole = [(batch.weight.tolist(), place) for batch, place in source.read()]
    bad, first = source.bad_rows, source.first_bad
    assert bad == 2 * 429
    rows = [w for weights, _ in whole for w in weights]
    assert len(rows) == 2 * 2571
    for weights, place in whole[:: max(1, len(whole) // 6)]:
        for step in (0, len(weights) // 2, len(weights)):
            here = source.position(json.loads(json.dumps(place.after(step).to_dict())))
            again = list(source.read(here))
            assert [w for batch, _ in again for w in batch.weight.tolist()] == rows[place.rows + step :]
            assert [batch.first_row for batch, _ in again][:1] == [place.rows + step]
            assert (source.bad_rows, source.first_bad) == (bad, first)


def test_a_place_behind_the_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.vw.gz"
    path.write_bytes(gzip.compress(TEXT))
    source = data.open(path)
    with pytest.raises(BadFormat, match="expected at least 9999 bytes of text, got"):
        list(source.read(source.position({**source.start.to_dict(), "offset": 9999, "line": 50})))
    with pytest.raises(InvalidInput, match="a position needs counts of at least 0"):
        source.position({**source.start.to_dict(), "offset": -1})


def test_threads_agree_on_what_counts_as_negative(tmp_path: Path) -> None:
    """A far row follows the labels of the first rows, even if another thread parsed it."""
    path = tmp_path / "a.vw"
    path.write_bytes(b"1 | a\n0 | a\n" * 400 + b"1 | a\n-1 | a\n" * 400)
    for threads in (0, 1, 3):
        source = data.open(path, block_size=100)
        with pytest.raises(BadFormat, match=r"a\.vw:802: expected the label 1 or 0, as in the rows before, got '-1'"):
            list(source.read(threads=threads))
        skipping = data.open(path, block_size=100, on_bad_row="skip")
        assert sum(len(batch) for batch, _ in skipping.read(threads=threads)) == 1200
        assert skipping.bad_rows == 400


def test_leaving_early_closes_the_files(tmp_path: Path) -> None:
    (tmp_path / "a.vw").write_bytes(TEXT * 4000)
    before = threading.active_count()
    reading = data.open(tmp_path / "a.vw", block_size=1000).read(threads=2)
    next(iter(reading))
    reading.close()
    gc.collect()  # an open file would warn, and warnings are errors
    assert threading.active_count() == before


def test_starting_later(tmp_path: Path) -> None:
    (tmp_path / "a.vw").write_bytes(b"".join(b"1 %d | a\n" % i for i in range(20_000)))
    source = data.open([tmp_path / "a.vw"] * 2)
    batches = list(source.batches(start_row=25_000))
    assert batches[0].first_row == 25_000
    assert batches[0].weight[0] == 5000
    assert batches[0].indptr[0] == 0
    assert sum(len(batch.y) for batch in batches) == 15_000
    assert list(source.batches(start_row=40_000)) == []
    with pytest.raises(InvalidInput, match="start_row needs a number of at least 0, got -1"):
        source.batches(-1)


def piped(content: bytes, code: str) -> subprocess.CompletedProcess[bytes]:
    script = f"from ftprl import data\nfrom ftprl.errors import FtprlError\n{code}"
    return subprocess.run([sys.executable, "-c", script], input=content, capture_output=True, check=False)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress])
def test_standard_input(pack: Any) -> None:
    run = piped(pack(TEXT), "print(sum(len(b.y) for b in data.open('-', format='vw').batches()))")
    assert run.stdout == b"6\n", run.stderr
    table = b"y,a\n" + b"1,2\n0,x\n" * 9000
    run = piped(pack(table), "print(sum(len(b.y) for b in data.open('-', format='csv', label='y').batches()))")
    assert run.stdout == b"18000\n", run.stderr


def test_standard_input_is_read_once_and_named() -> None:
    code = "s = data.open('-', format='vw')\nlist(s.batches())\ntry: s.batches()\nexcept FtprlError as e: print(e)"
    assert b"standard input or a pipe can be read once" in piped(TEXT, code).stdout
    code = "try: list(data.open('-', format='vw').batches())\nexcept FtprlError as e: print(e)"
    assert piped(b"1 | a\nx\n", code).stdout.startswith(b"<stdin>:2: expected '|'")


def test_a_file_that_goes_away(tmp_path: Path) -> None:
    for name in ("a.vw", "b.vw"):
        (tmp_path / name).write_bytes(TEXT)
    source = data.open(tmp_path)
    (tmp_path / "b.vw").unlink()
    batches = source.batches()
    assert len(next(batches).y) == 6
    with pytest.raises(InvalidInput, match=r"b\.vw: No such file or directory; check the path and its permissions"):
        next(batches)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "a.vw").write_bytes(TEXT)
    source = data.open(tmp_path / "a.vw")
    (tmp_path / "a.vw").unlink()
    (tmp_path / "a.vw").mkdir()
    with pytest.raises(InvalidInput, match=r"a\.vw: Is a directory"):
        list(source.batches())


def test_a_row_that_is_too_long(tmp_path: Path) -> None:
    path = tmp_path / "a.vw"
    path.write_bytes(b"1 | a\n1 | " + b"b" * 96 + b"\n")
    assert len(rows_of(data.open(path, max_row=100).batches())) == 2
    for block_size in (7, 1 << 20):
        with pytest.raises(BadFormat, match=r"a\.vw:2: expected a row of at most 99 bytes, got a longer one"):
            list(data.open(path, max_row=99, block_size=block_size, on_bad_row="skip").batches())


@pytest.mark.parametrize(
    ("paths", "options", "message"),
    [
        ("none.vw", {}, "none.vw: no such file; check the path."),
        ("*.nothing", {}, "*.nothing: no such file"),
        ([], {}, "data needs at least one row or path, got an empty list; pass rows, a frame or paths."),
        ("", {}, "data needs the path of a file, got an empty text; pass one, or '-' for standard input."),
        ("empty", {}, "empty: expected files in the folder, got none"),
        (["-", "a.vw"], {}, "data needs '-' alone, got it among 2 files"),
        (
            "-",
            {},
            "-: the format cannot be inferred from the name; pass one of arrow, csv, jsonl, libsvm, orc,",
        ),
        ("a.data", {}, "a.data: the format cannot be inferred from the name"),
        (["a.vw", "a.csv"], {}, "data needs files of one format, got csv, vw; open them one by one, or pass format=."),
        (
            "a.vw",
            {"format": "json"},
            "format= needs one of arrow, csv, jsonl, libsvm, orc, parquet, tsv, vw, got 'json'",
        ),
        ("a.vw", {"label": "y"}, "label= needs a table, got the format vw"),
        ("a.vw", {"sep": ";"}, "sep= needs a table, got the format vw"),
        ("a.vw", {"positive": "spam"}, "positive= needs a number for this format, got 'spam'"),
        ("a.vw", {"dim": 1}, "dim= needs a number from 2 to 2**32, got 1"),
        ("a.vw", {"dim": 2**33}, "dim= needs a number from 2 to 2**32"),
        ("a.vw", {"dim": 2.5}, "dim= needs a whole number"),
        ("a.vw", {"seed": -1}, "seed= needs a whole number from 0 to 2**64 - 1, got -1"),
        ("a.vw", {"on_bad_row": "ignore"}, "on_bad_row= needs raise or skip, got 'ignore'"),
        ("a.vw", {"dtype": "int8"}, "dtype= needs float32 or float64, got 'int8'"),
        ("a.vw", {"loss": "cubic"}, "loss= needs a known name, got 'cubic'; use one of logistic, "),
    ],
)
def test_bad_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, paths: Any, options: dict[str, Any], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    for name in ("a.vw", "a.csv", "a.data"):
        (tmp_path / name).write_bytes(TEXT)
    with pytest.raises(FtprlError) as caught:
        data.open(paths, **options)
    assert message in str(caught.value)
    assert str(caught.value).isprintable()


def test_describe(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("y,a,b\nyes,1,x\nno,2,z\n")
    result = data.open(tmp_path / "a.csv", label="y").describe()
    assert "labels       'yes' is positive (+1), 'no' is negative (-1)" in str(result)
    assert "numeric      a" in str(result)
    assert result.to_dict()["columns"] == {"y": "label", "a": "numeric", "b": "categorical"}


def test_to_dict_reads_alike(tmp_path: Path) -> None:
    (tmp_path / "a.vw").write_bytes(TEXT)
    source = data.open(tmp_path / "a.vw", dim=1000, seed=3, intercept=False)
    again = data.open(tmp_path / "a.vw", **source.to_dict())
    assert again.to_dict() == source.to_dict()
    assert rows_of(again.batches()) == rows_of(source.batches())


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.vw"
    with path.open("wb") as file:
        for _ in range(200):
            file.write(b"1 | some names that are read and forgotten\n" * 12_000)
    code = (
        "import resource\nn = 0\n"
        f"for b in data.open({os.fspath(path)!r}).batches():\n"
        "    n += len(b.y)\n"
        "    if n <= 8192 * 10: early = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "print(n, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - early)"
    )
    run = piped(b"", code)
    rows, growth = (int(word) for word in run.stdout.split())
    assert rows == 2_400_000
    assert growth < 16_000 * (1 if sys.platform != "darwin" else 1024)  # of 100 MB


@pytest.mark.parametrize("name", ["a.vw", "a.vw.gz", "a.csv"])
def test_the_line_of_a_row(tmp_path: Path, name: str) -> None:
    """The line of every row is found, also after bad and empty lines and rows of several lines."""
    lines, text, at = [], b"y,w,name\n" if name == "a.csv" else b"", 2 if name == "a.csv" else 1
    for i in range(1000):
        if i % 7 == 0:
            text, at = text + b"\n", at + 1
        if i % 5 == 0:
            text, at = text + b"bad\n", at + 1
        lines.append(at)
        text += b'%d,%d,"v\n%d"\n' % (i % 2, i, i) if name == "a.csv" else b"%d %d | a%d\n" % (i % 2, i, i)
        at += 2 if name == "a.csv" else 1
    path = tmp_path / name
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    options: dict[str, Any] = {"label": "y", "weight": "w"} if name == "a.csv" else {}
    source = data.open([path, path], block_size=3000, on_bad_row="skip", **options)
    for batch, position in list(source.read())[::3]:
        for step in range(0, len(batch), 17):
            row = int(batch.weight[step])
            assert source.locate(position.after(step)) == f"{path}:{lines[row]}"


def test_a_program_may_end_before_a_reading(tmp_path: Path) -> None:
    """Parsing threads that outlive the interpreter would end the process with a signal."""
    path = tmp_path / "a.csv"
    rows = b"".join(b"%d,c%d,0.%d,u%d\n" % (i % 2, i % 500, i, i * 7) for i in range(5000))
    path.write_bytes(b"y,a,b,c\n" + 100 * rows)
    code = f"from ftprl import data\nrows = data.open({str(path)!r}, label='y').read(threads=2)\nnext(rows)"
    for _ in range(3):
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert (run.returncode, run.stderr) == (0, "")
