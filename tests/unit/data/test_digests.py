"""Digests of rows: independent of how rows are cut, and different if a row has changed."""

import gzip
import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ftprl
from ftprl import data
from ftprl._core import feature_hash, text_fingerprint, use_instruction_set
from ftprl.errors import InvalidInput

MASK = 2**64 - 1
R = 0xBB67AE8584CAA73B


def mix(x: int) -> int:
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 & MASK
    x ^= x >> 27
    x = x * 0x94D049BB133111EB & MASK
    return x ^ x >> 31


KEYS = [mix((i + 0x6A09E667F3BCC908) & MASK) >> 32 for i in range(256)]


def expected(text: bytes, offset: int) -> int:
    """Return the digest by the definition in src/core/readers/fingerprint.hpp, byte by byte."""
    total, inverse = 0, pow(R, -1, 2**64)
    for at, byte in enumerate(text, offset):
        block, word = at // 1024, at % 1024 // 4
        total += (byte << 8 * (at % 4)) * KEYS[word] * pow(inverse, block, 2**64)
    return total & MASK


@pytest.mark.parametrize("name", ["portable", "sse2", "avx2"])
def test_fingerprints_of_parts_add_up(name: str) -> None:
    if not use_instruction_set(name):
        pytest.skip("this processor has no such instructions")
    rng = np.random.default_rng(1)
    try:
        for size in (0, 1, 3, 5, 64, 1023, 1024, 1025, 4000):
            text = rng.bytes(size)
            for offset in (0, 1, 6, 1020, 1024, 10**12 + 5):
                whole = text_fingerprint(b"ab" + text, 2, 2 + size, offset)
                assert whole == expected(text, offset)
                cuts = [0, *sorted(rng.integers(0, size + 1, 3).tolist()), size]
                parts = [text_fingerprint(text, a, b, offset + a) for a, b in pairwise(cuts)]
                assert sum(parts) & MASK == whole
    finally:
        use_instruction_set("")


def test_the_hash_is_that_of_features() -> None:
    assert mix(mix(0x6A09E667F3BCC908) ^ 0) == feature_hash(b"")


def files(folder: Path, kind: str) -> tuple[list[Path], dict[str, Any]]:
    """Write two files of one kind."""
    paths = [folder / f"{name}.{kind}" for name in "ab"]
    for k, path in enumerate(paths):
        if kind == "csv":
            text = b"y,name\n" + b"".join(b"%d,v%d\n" % (i % 2, i + k) for i in range(3000))
        else:
            text = b"".join(b"%d | a%d b\n" % (i % 2, i + k) for i in range(3000))
        path.write_bytes(gzip.compress(text, mtime=0) if kind.endswith("gz") else text)
    return paths, {"label": "y"} if kind == "csv" else {}


@pytest.mark.parametrize("kind", ["vw", "vw.gz", "csv"])
def test_the_digest_depends_on_the_rows_alone(tmp_path: Path, kind: str) -> None:
    paths, options = files(tmp_path, kind)
    digests, by_place = set(), {}
    for block_size in (700, 5000, 1 << 22):
        for threads in (0, 2):
            source = data.open(paths, block_size=block_size, **options)
            for _, position in source.read(threads=threads):
                place = position.file, position.offset  # type: ignore[attr-defined]
                saved = json.loads(json.dumps(position.to_dict()))["digest"][:2]
                assert by_place.setdefault(place, saved) == saved
                if threads == 0:
                    source.check_before(position)
            digests.add(tuple(source.digest()))
    assert len(digests) == 1
    source = data.open(paths, block_size=5000, **options)
    for _, position in list(source.read())[::2]:
        list(source.read(source.position(position.after(3).to_dict())))
        assert tuple(source.digest()) in digests


@pytest.mark.parametrize("kind", ["vw", "vw.gz", "csv"])
def test_a_reading_without_a_digest_has_the_same_rows(tmp_path: Path, kind: str) -> None:
    paths, options = files(tmp_path, kind)
    for threads in (0, 2):
        source = data.open(paths, block_size=5000, **options)
        whole = [(b.indices.tobytes(), p.rows) for b, p in source.read(threads=threads)]
        assert source.digest() is not None
        assert [(b.indices.tobytes(), p.rows) for b, p in source.read(threads=threads, digest=False)] == whole
        assert source.digest() is None
        list(source.read(threads=threads))
        assert source.digest() is not None


def changed_in_the_middle(path: Path) -> None:
    """Change bytes in the middle of a file, which leaves its size and its ends unchanged."""
    text = bytearray(path.read_bytes())
    at = text.index(b"| a1500") + 3
    text[at] = text[at] + 1
    path.write_bytes(text)


@pytest.mark.parametrize("changed", [0, 1])
def test_text_that_has_changed_before_a_position(tmp_path: Path, changed: int) -> None:
    paths, _ = files(tmp_path, "vw")
    source = data.open(paths, block_size=5000)
    *_, (_, last) = source.read()
    before = source.digest()
    source.check_before(last)
    changed_in_the_middle(paths[changed])
    with pytest.raises(InvalidInput, match=r"expected .*b\.vw and the files before it as they were, got other rows"):
        source.check_before(last)
    list(source.read())
    assert source.digest() != before


def run_until(listened: str, then: Callable[[], None], *args: Any, **options: Any) -> Any:
    """Run until the first event of a kind, and then call a function."""
    done = False

    def listener(event: dict[str, Any]) -> None:
        nonlocal done
        if event["event"] == listened and not done:
            done = True
            then()

    return ftprl.train(*args, listener=listener, **options)


def test_a_file_that_changes_between_passes(tmp_path: Path) -> None:
    (path, _), _ = files(tmp_path, "vw")
    run = ftprl.train(path, passes=3, bits=10)
    assert run.best_pass is not None
    assert run.rows == 3000 * (3 + run.best_pass)
    with pytest.raises(
        InvalidInput, match=r"^passes= needs data that stays as it is, got other data in pass 2 than in"
    ):
        run_until("pass", lambda: changed_in_the_middle(path), path, passes=2, bits=10)


def test_a_run_is_not_resumed_with_other_data(tmp_path: Path) -> None:
    (path, _), _ = files(tmp_path, "vw")
    path.write_bytes(path.read_bytes() * 30)  # longer than what a fingerprint of its ends sees

    def stop() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_until("checkpoint", stop, path, bits=10, checkpoint=tmp_path / "part", every=60_000)
    ftprl.train(path, resume=tmp_path / "part")
    text = path.read_bytes()
    middle = len(text) // 2
    at = text.index(b"| a", middle) + 3
    path.write_bytes(text[:at] + bytes([text[at] ^ 1]) + text[at + 1 :])
    with pytest.raises(InvalidInput, match=r"resume= needs the data of the checkpoint, expected .*, got other"):
        ftprl.train(path, resume=tmp_path / "part")


def test_a_position_of_an_older_version(tmp_path: Path) -> None:
    (path, _), _ = files(tmp_path, "vw")
    source = data.open(path)
    saved = source.start.to_dict()
    del saved["offset"]
    with pytest.raises(InvalidInput, match="a position needs counts of at least 0"):
        source.position(saved)
    with pytest.raises(InvalidInput, match="a digest needs 3 numbers from 0 to"):
        source.position({**source.start.to_dict(), "digest": [1, -1]})
