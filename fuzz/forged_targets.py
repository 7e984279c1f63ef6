"""Models, checkpoints and receipts with a field or a number changed and a right digest, and damaged packed files.

Whoever can compute a SHA-256 can write such a file. Each is passed to everything that reads it; only an FtprlError in
one printable line may come out, or a result.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import json
import math
import random
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

LONGEST = 1500  # characters of a message
VALUES: list[Any] = [
    None, True, False, -1, 0, 1, 3, 2**31, 2**32, 2**53 + 1, 2**63, 2**64, 10**40, 0.5, 1.5, -0.0, 1e-320, 1e30, 1e308,
    -1e308, 1e999, float("nan"), "", "x", "1", "F64", "vw", "csv", "tsv", "libsvm", "arrays", "auto", "squared",
    "\ud800", "\x1b[2J\n", "\u202e", "a" * 3000, "0" * 64, [], [0], [1, 1], [0, 2**70], [1] * 100, [[[[]]]], {},
    {"a": 1}, {"rows": 1}, {"spec": {}},
]  # fmt: skip
NUMBERS = [math.nan, math.inf, -math.inf, -1.0, 0.0, -0.0, 1e-320, 1e30, 1e150, 1e300, 0.5, 2.0**53]


def check_message(message: str) -> None:
    """One printable line, not too long."""
    assert message.isprintable(), f"a message is not printable: {message!r}"
    assert 0 < len(message) < LONGEST, f"a message has {len(message)} characters: {message[:200]!r}"


def sealed(header: bytes, tensors: bytes) -> bytes:
    """A file whose digest is right, whatever its header says."""
    key = b'"sha256":"'
    at = header.find(key) + len(key)
    raw = len(header).to_bytes(8, "little") + header
    if at >= len(key):
        digest = hashlib.sha256(raw[: 8 + at] + raw[8 + at + 64 :] + tensors).hexdigest()
        raw = raw[: 8 + at] + digest.encode() + raw[8 + at + 64 :]
    return raw + tensors


def spoil(value: Any, rng: random.Random) -> Any:
    """The same JSON with one value, somewhere, replaced, left out, doubled or taken from elsewhere in it."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        if rng.random() < 0.1:
            return {k: v for k, v in value.items() if k != key}
        if rng.random() < 0.05:
            return value | {key + "x": value[key]}
        if rng.random() < 0.1:
            return value | {key: value[rng.choice(list(value))]}
        return value | {key: spoil(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.8:
        at = rng.randrange(len(value))
        if rng.random() < 0.1:
            return value[:at] + value[at + 1 :] if rng.random() < 0.5 else [*value, value[at]]
        return [*value[:at], spoil(value[at], rng), *value[at + 1 :]]
    if isinstance(value, int) and not isinstance(value, bool) and rng.random() < 0.5:
        return rng.choice((value - 1, value + 1, value * 2, -value, value + 2**32))
    if isinstance(value, float) and rng.random() < 0.5:
        return rng.choice((value * (1 + 1e-12), -value, value * 1e3, value + 1e-9))
    return rng.choice(VALUES)


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


# ---- checkpoints and models of runs ----


def _numbers_changed(header: dict[str, Any], tensors: bytes, rng: random.Random) -> bytes:
    """Some numbers of one tensor replaced by extreme ones."""
    import numpy as np

    name = rng.choice([key for key in header if key != "__metadata__"])
    first, last = header[name]["data_offsets"]
    kind = {"F32": "<f4", "F64": "<f8", "U32": "<u4"}[header[name]["dtype"]]
    values = np.frombuffer(tensors[first:last], kind).copy()
    for _ in range(rng.choice((1, 1, 3)) if values.size else 0):
        at = rng.randrange(values.size)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            values[at] = rng.choice(NUMBERS) if kind != "<u4" else rng.choice((0, 1, 63, 64, 2**32 - 1))
    return tensors[:first] + values.tobytes() + tensors[last:]


def _provenance_changed(header: dict[str, Any], tensors: bytes, rng: random.Random) -> bytes:
    """The JSON inside a tensor spoiled; every tensor behind it moves."""
    first, last = header["provenance"]["data_offsets"]
    try:
        text = _canonical(spoil(json.loads(tensors[first:last]), rng)).encode("utf-8", "surrogatepass")
    except ValueError:  # its numbers were changed before
        return tensors
    text += b" " * (-len(text) % 4)
    header["provenance"] |= {"shape": [len(text) // 4], "data_offsets": [first, first + len(text)]}
    moved = len(text) - (last - first)
    for entry in (e for key, e in header.items() if key != "__metadata__" and e["data_offsets"][0] >= last):
        entry["data_offsets"] = [at + moved for at in entry["data_offsets"]]
    return tensors[:first] + text + tensors[last:]


def forged_model(body: bytes, rng: random.Random) -> bytes:
    """A model or a checkpoint with one or two changes and a right digest."""
    length = int.from_bytes(body[:8], "little")
    header, tensors = json.loads(body[8 : 8 + length]), body[8 + length :]
    meta = header["__metadata__"]
    content = json.loads(meta["content"])
    for _ in range(rng.choice((1, 1, 1, 2))):
        match rng.randrange(4):
            case 0:
                tensors = _numbers_changed(header, tensors, rng)
            case 1 if "provenance" in header:
                tensors = _provenance_changed(header, tensors, rng)
            case _:
                section = rng.choice(list(content))
                content[section] = spoil(content[section], rng)
    meta["content"] = _canonical(content)
    text = json.dumps(header, separators=(",", ":")).encode()
    return sealed(text + b" " * (-len(text) % 8), tensors)


class Checkpoints:
    """Forged models and checkpoints of runs, in all that reads them: inspect, predict, certify, resume, pickle."""

    name, suffix = "checkpoint", ".ftprl"

    def __init__(self, folder: Path) -> None:
        import ftprl

        self.folder = folder
        rows = "".join(f"{i % 2 * 2 - 1} {1 + i % 3} | a{i % 7} b:{i / 9:.3f}\n" for i in range(40))
        (folder / "d.vw").write_text(rows)
        table = "y,w,a,t\n" + "".join(f"{i % 2},1,{i % 5},word{i % 3} x\n" for i in range(40))
        (folder / "d.csv").write_text(table)
        self.corpus: list[tuple[bytes, str]] = []
        for data, options in (
            ("d.vw", {"scale": 0.1, "receipt": True}),
            ("d.vw", {"scale": 0.1, "float64": True, "bounds": {"*": (-1.0, 1.0)}}),
            ("d.csv", {"label": "y", "weight": "w", "text": "t", "receipt": True}),
            ("d.csv", {"label": "y", "loss": "squared", "scale": (0.1, 1.0)}),
        ):
            paths = {"checkpoint": folder / "c", "output": folder / "m"}
            ftprl.train(folder / data, bits=5, every=30, holdout=7, passes=2, **options, **paths)  # type: ignore[arg-type]
            self.corpus += [(path.read_bytes(), data) for path in paths.values()]

    def make(self, rng: random.Random) -> tuple[bytes, str]:
        body, data = rng.choice(self.corpus)
        return forged_model(body, rng), f".{data[2:]}.ftprl"

    def run(self, path: Path, rng: random.Random) -> None:
        import ftprl
        from ftprl.errors import FtprlError
        from ftprl.linear.model import Model
        from ftprl.receipt import certify_model
        from ftprl.training.summary import summary

        data = self.folder / f"d{path.suffixes[0]}"

        def resume() -> None:
            state = Model.load(path).checkpoint
            if state is not None and state["passes"] > 20:
                return  # right, but it would take long
            run = ftprl.train(data, resume=path, output=path.with_suffix(".out"))
            assert run.rows <= 2 * 2 * 40 + 2**33, "a run of 40 rows has read more"

        def keep() -> None:
            model = Model.load(path)
            assert Model.from_bytes(model.to_bytes()).to_bytes() == model.to_bytes()

        for use in (
            lambda: summary(path),
            lambda: ftprl.load(path).predict(data),
            lambda: certify_model(ftprl.load(path)),
            lambda: certify_model(ftprl.load(path), radius=1.0),
            keep,
            resume,
        ):
            try:
                use()
            except FtprlError as error:
                check_message(str(error))


# ---- receipts ----


class Receipts:
    """Forged receipts: refused by name or in one line, and never confirmed unless what they state is true."""

    name, suffix = "receipt", ".receipt"

    def __init__(self, folder: Path) -> None:
        import ftprl
        from ftprl.receipt import certify_model, make_receipt

        self.folder = folder
        (folder / "d.csv").write_text("y,a,t\n" + "".join(f"{i % 2},{i % 7},word{i % 5}\n" for i in range(9)))
        self.corpus = []
        for options, compared in (
            ({"scale": 0.1}, {"radius": 1.0}),
            ({"scale": (0.1, 1.0), "holdout": 4}, {}),
            (
                {"scale": 0.1, "bounds": {"*": (-1.0, 1.0)}, "intercept": False, "passes": 2},
                {"radius": 1.0},
            ),
        ):
            model = ftprl.train(folder / "d.csv", label="y", text="t", bits=4, receipt=True, **options).model  # type: ignore[arg-type]
            model.save(folder / f"model{len(self.corpus)}")
            self.corpus.append(make_receipt(model, certify_model(model, **compared)))

    def make(self, rng: random.Random) -> tuple[bytes, str]:
        which = rng.randrange(len(self.corpus))
        receipt = self.corpus[which]
        for _ in range(rng.choice((1, 1, 2))):
            section = rng.choice(list(receipt))
            receipt = {**receipt, section: spoil(receipt[section], rng)}
        if rng.random() < 0.95:
            text = json.dumps(
                {k: v for k, v in receipt.items() if k != "sha256"}, sort_keys=True, separators=(",", ":")
            )
            receipt = {**receipt, "sha256": hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()}
        return json.dumps(receipt, sort_keys=True).encode(), f".{which}.receipt"

    def run(self, path: Path, rng: random.Random) -> None:
        from ftprl.errors import FtprlError
        from ftprl.receipt import verify_receipt

        which = int(path.suffixes[0][1:])
        model = self.folder / f"model{which}" if rng.random() < 0.5 else None
        try:
            verdict = verify_receipt(path, self.folder / "d.csv", model=model)
        except FtprlError as error:
            check_message(str(error))
            return
        for line in str(verdict).splitlines():
            check_message(line)
        stated, made = json.loads(path.read_bytes()), self.corpus[which]
        if model is None:  # the digest of the model is compared with a model only
            stated["model"] = made["model"]
        assert not verdict.confirmed or _is_as_true(stated, made), "a false receipt is confirmed"


# Settings with which the replay gives the same numbers are as true: another quote character, a bound never reached,
# whether rows are skipped or scales dropped where there are none.
_MAY_DIFFER = ("reading", "spec", "skip", "sha256")


def _is_as_true(stated: Any, made: Any) -> bool:
    """Whether a receipt says what another says, but for how its data is read, skipping and rounding."""
    if isinstance(made, dict):
        keys = [key for key in made if key not in _MAY_DIFFER]
        if isinstance(stated, dict) and stated.get("confidence") is None and "confidence" in keys:
            keys.remove("confidence")  # a receipt without intervals claims less
        return isinstance(stated, dict) and all(key in stated and _is_as_true(stated[key], made[key]) for key in keys)
    if isinstance(made, list):
        same = isinstance(stated, list) and len(stated) == len(made)
        return same and all(_is_as_true(a, b) for a, b in zip(stated, made, strict=True))
    if isinstance(made, float) and isinstance(stated, int | float):
        return math.isclose(stated, made, rel_tol=1e-6, abs_tol=1e-6)
    return bool(stated == made)


# ---- packed files of several streams ----

_PACK: dict[str, Callable[[bytes], bytes]] = {".gz": lambda body: gzip.compress(body, mtime=0), ".bz2": bz2.compress}


class Streams:
    """gzip and bzip2 files of several streams with one bit flipped: an error, or all rows; never fewer in silence."""

    name, suffix = "streams", ""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def make(self, rng: random.Random) -> tuple[bytes, str]:
        packing = rng.choice(list(_PACK))
        parts = ["".join(_rows(rng, rng.randrange(1, 30))) for _ in range(rng.randrange(1, 6))]
        body = bytearray(b"".join(_PACK[packing](part.encode()) for part in parts))
        if rng.random() < 0.9:
            body[rng.randrange(len(body))] ^= 1 << rng.randrange(8)
        self.rows = sum(part.count("\n") for part in parts)
        return bytes(body), f".vw{packing}"

    def run(self, path: Path, rng: random.Random) -> None:
        from ftprl import data
        from ftprl.errors import FtprlError

        size = rng.choice((64, 1 << 20))
        try:
            read = sum(len(batch) for batch in data.open(path, dim=64, block_size=size).batches())
        except FtprlError as error:
            check_message(str(error))
            return
        assert read == self.rows, f"{read} of {self.rows} rows were read without an error"


def _rows(rng: random.Random, count: int) -> Iterator[str]:
    for _ in range(count):
        yield f"{rng.choice((-1, 1))} | a{rng.randrange(9)} b:{rng.random():.3f}\n"


# ---- threads ----


class Threads:
    """One engine and several threads that learn, predict, save and copy: every row is learned once, files are whole."""

    name, suffix = "threads", ".ftprl"

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def make(self, rng: random.Random) -> tuple[bytes, str]:
        return b"", ""

    def run(self, path: Path, rng: random.Random) -> None:
        from ftprl.linear import Engine, Model, Spec

        scale = rng.choice((0.1, (0.1, 1.0), "auto"))
        spec = Spec(dim=rng.choice((64, 2**12)), scale=scale, float64=rng.random() < 0.3)
        model = Model(Engine(spec, receipt=rng.random() < 0.5))
        batches = [_rows_of_all_lengths(spec.dim, rng) for _ in range(2)]
        times = rng.randrange(1, 8)

        def learn(batch: Any) -> None:
            for _ in range(times):
                model.engine.learn(batch)

        def watch() -> None:
            for number in range(times):
                model.engine.score(batches[0])
                kept = path.with_name(f"saved{number}")
                model.save(kept)
                Model.load(kept)
                model.engine.copy()

        _together([lambda: learn(batches[0]), lambda: learn(batches[1]), watch])
        expected = times * sum(len(batch) for batch in batches)
        assert model.engine.progress.rows == expected, f"{model.engine.progress.rows} of {expected} rows were learned"
        assert Model.from_bytes(model.to_bytes()).to_bytes() == model.to_bytes()


def _rows_of_all_lengths(dim: int, rng: random.Random) -> Any:
    """A batch of short and long rows: space for the longest grows on the way."""
    import numpy as np

    from ftprl.data import Batch

    numbers = np.random.default_rng(rng.randrange(2**32))
    lengths = numbers.integers(0, rng.choice((4, 60, min(dim, 500))), rng.choice((1, 50, 600)), endpoint=True)
    indices = [np.sort(numbers.choice(dim, n, replace=False)) for n in lengths]
    values = numbers.normal(size=int(lengths.sum())).astype(np.float32)
    y = numbers.choice((-1.0, 1.0), len(lengths))
    starts = np.append(0, np.cumsum(lengths))
    return Batch(starts, np.concatenate(indices).astype(np.uint32), values, y, np.ones(len(y)))


def _together(jobs: list[Callable[[], None]]) -> None:
    """Run jobs in threads of their own; the first error is raised."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(len(jobs)) as pool:
        for done in [pool.submit(job) for job in jobs]:
            done.result()


TARGETS: dict[str, Any] = {one.name: one for one in (Checkpoints, Receipts, Streams, Threads)}
