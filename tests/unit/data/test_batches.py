"""Files of batches: however many threads read them, their rows are the same, and what fails is reported."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ftprl import data
from ftprl._core import BlockReader, text_fingerprint
from ftprl.data import Batch
from ftprl.data.batches import write_batches
from ftprl.errors import BadFormat

BLOCKS, ROWS = 12, 50


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of some blocks."""
    made = []
    for block in range(BLOCKS):
        indices = np.arange(3 * ROWS, dtype=np.uint32) + block
        y = np.where(np.arange(ROWS) % 3 == block % 3, 1.0, -1.0)
        made.append(Batch(np.arange(0, 3 * ROWS + 1, 3), indices, np.ones(3 * ROWS, np.float32), y, np.ones(ROWS)))
    write_batches(tmp_path / "d.batches", data.open(made, dim=512))
    return tmp_path / "d.batches"


def parts_of(batch: Batch) -> list[Any]:
    arrays = (batch.indptr, batch.indices, batch.values, batch.y, batch.weight)
    return [batch.first_row, batch.tags, *(array.tolist() for array in arrays)]


def read(path: Path, start: int = 0, **options: Any) -> list[list[Any]]:
    source = data.open(path)
    return [parts_of(batch) for batch, _ in source.read(source.position({"rows": start}), **options)]


@pytest.mark.parametrize("start", [0, 1, ROWS, 7 * ROWS + 3, BLOCKS * ROWS])
def test_rows_do_not_depend_on_threads(path: Path, start: int) -> None:
    wanted = read(path, start, threads=0)
    assert sum(len(part[5]) for part in wanted) == BLOCKS * ROWS - start
    for threads in (None, 1, 2, 5):
        assert read(path, start, threads=threads) == wanted


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_a_block_that_changed_is_reported_where_it_is(path: Path, threads: int) -> None:
    """Blocks before it are read; a thread that fails neither ends the program nor is waited for."""
    source = data.open(path)
    size = sum(len(batch) for batch in source.batches())
    content = bytearray(path.read_bytes())
    content[8 + (len(content) - 8) // 3] ^= 1
    path.write_bytes(content)
    batches = list[Batch]()
    with pytest.raises(BadFormat, match="expected them as they were written, got others") as raised:
        batches.extend(batch for batch, _ in source.read(threads=threads))
    numbers = re.search(r"rows (\d+) to (\d+)", str(raised.value))
    assert numbers is not None
    rows = sum(map(len, batches))
    assert 0 < rows == int(numbers[1]) < size
    assert int(numbers[2]) == rows + ROWS - 1


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_a_file_that_became_shorter_is_reported(path: Path, threads: int) -> None:
    source = data.open(path)
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(BadFormat, match="expected them as they were written"):
        list(source.read(threads=threads))


def test_reading_may_stop_and_start_anew(path: Path) -> None:
    source = data.open(path)
    wanted = [parts_of(batch) for batch, _ in source.read(threads=0)]
    for stop in (0, 1, 3, BLOCKS):
        reading = source.read(threads=2)
        assert [parts_of(next(reading)[0]) for _ in range(stop)] == wanted[:stop]
        reading.close()
    assert [parts_of(batch) for batch, _ in source.read(threads=2)] == wanted


def test_batches_outlive_their_file(path: Path) -> None:
    kept = [batch for batch, _ in data.open(path).read(threads=1)]
    wanted = read(path, threads=0)
    path.unlink()
    assert [parts_of(batch) for batch in kept] == wanted
    for batch in kept:
        for array in (batch.indptr, batch.indices, batch.values, batch.y, batch.weight):
            assert not array.flags.writeable


@pytest.mark.parametrize("threads", [0, 1, 2])
def test_tags_and_names_come_back(tmp_path: Path, threads: int) -> None:
    text = tmp_path / "d.vw"
    text.write_text("".join(f"{(-1) ** i} 'row{i}| a{i % 30} b{i % 7}\n" for i in range(200)))
    wanted = list(data.open(text, dim=1024, block_size=500, max_row=100).batches())
    write_batches(tmp_path / "d.batches", data.open(text, dim=1024, names=True, block_size=500, max_row=100))
    actual = [batch for batch, _ in data.open(tmp_path / "d.batches", names=True).read(threads=threads)]
    assert [tag for batch in actual for tag in batch.tags or ()] == [tag for b in wanted for tag in b.tags or ()]
    assert [tag for batch in actual for tag in batch.tags or ()] == [f"row{i}" for i in range(200)]
    assert sum(len(batch.names.new) for batch in actual if batch.names is not None) >= 37


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_can_drop_a_reading(path: Path) -> None:
    """Its threads are not in the new process, which must not wait for them."""
    reading = data.open(path).read(threads=2)
    next(reading)
    child = os.fork()
    if child == 0:
        reading.close()
        os._exit(0)
    end = time.monotonic() + 60
    while (done := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < end:
        time.sleep(0.01)
    if done == (0, 0):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert done == (child, 0)
    assert len(list(reading)) == BLOCKS - 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_is_told_to_open_the_file_again(path: Path) -> None:
    """The data is as it was written: nothing is wrong with the file."""
    reading = data.open(path).read(threads=2)
    next(reading)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            next(reading)
        except RuntimeError as error:
            code = 0 if "opened by another process" in str(error) else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0) == (child, 0)
    assert len(list(reading)) == BLOCKS - 1


@pytest.mark.parametrize("threads", [0, 1])
def test_a_block_that_is_being_read_is_whole_although_the_reader_is_closed(tmp_path: Path, threads: int) -> None:
    content = np.zeros(1 << 24, np.uint8)
    content[:16] = np.array([0, 0], np.int64).view(np.uint8)  # no rows
    path = tmp_path / "block"
    path.write_bytes(content.tobytes())
    place = [0, len(content), 0, 0, 0, 0, text_fingerprint(content.tobytes(), 0, len(content), 0)]
    with open(path, "rb") as file:
        for _ in range(20):
            reader = BlockReader(file.fileno(), np.array([place] * 4, np.uint64), 0, False, False, threads)
            sizes, begun = list[int](), threading.Event()

            def take(reader: BlockReader = reader, sizes: list[int] = sizes, begun: threading.Event = begun) -> None:
                begun.set()
                sizes.append(len(reader.take()[0]))

            thread = threading.Thread(target=take)
            thread.start()
            begun.wait()
            time.sleep(0.001)  # the block takes longer
            reader.close()
            thread.join()
            assert sizes == [len(content)]
            with pytest.raises(RuntimeError, match="was closed"):
                reader.take()


@pytest.mark.parametrize("other", [b'"row0"; "row1"', b'"row0 or row1"'], ids=["no JSON", "too few"])
@pytest.mark.parametrize("threads", [0, 1])
def test_tags_that_do_not_fit_the_rows_are_refused(tmp_path: Path, threads: int, other: bytes) -> None:
    text = tmp_path / "d.vw"
    text.write_text("".join(f"1 'row{i}| a{i}\n" for i in range(5)))
    path = tmp_path / "d.batches"
    write_batches(path, data.open(text, dim=1024))
    content = path.read_bytes()
    size = int.from_bytes(content[-32:-24], "little")
    blocks, footer = content[: -32 - size], json.loads(content[-32 - size : -32])
    blocks = blocks.replace(b'"row0", "row1"', other.ljust(14))
    ((at, length, *_, _),) = footer["blocks"]
    footer["blocks"][0][-1] = text_fingerprint(blocks, at, at + length, 0)
    described = json.dumps(footer).encode()
    tail = np.array([len(described), text_fingerprint(described, 0, len(described), 0)], "<u8").tobytes()
    path.write_bytes(blocks + described + tail + content[-16:])
    with pytest.raises(BadFormat, match="rows 0 to 4: expected them as they were written"):
        list(data.open(path).read(threads=threads))
