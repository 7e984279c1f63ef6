"""The targets that need Python: the model loader, the readers of files, and those of forged_targets.py.

An execution is a function of a target, a seed and a number: `Model.load` may refuse a file with BadModel and
`data.open` with FtprlError, in one printable line. Anything else that gets out is a finding.
"""

from __future__ import annotations

import argparse
import bz2
import faulthandler
import gzip
import json
import random
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # also where this file is loaded by its path

import forged_targets
from forged_targets import check_message, sealed, spoil

CORPUS = Path(__file__).parent / "corpus"


def use_package(folder: str) -> None:
    """Import ftprl from a folder, also where an editable install would come first."""
    sys.meta_path[:] = [f for f in sys.meta_path if type(f).__name__ != "ScikitBuildRedirectingFinder"]
    sys.path.insert(0, folder)
    import ftprl

    assert Path(ftprl.__file__).is_relative_to(folder), f"ftprl came from {ftprl.__file__}"


# ---- mutations ----


def mutated(body: bytes, rng: random.Random, tokens: list[bytes]) -> bytes:
    """A few flips, cuts and inserts."""
    changed = bytearray(body)
    for _ in range(rng.choice((1, 1, 2, 5, 20))):
        at = rng.randrange(len(changed) + 1)
        match rng.randrange(8):
            case 0 if at < len(changed):
                changed[at] ^= 1 << rng.randrange(8)
            case 1 if at < len(changed):
                changed[at] = rng.randrange(256)
            case 2:
                changed[at:at] = rng.randbytes(rng.randrange(1, 9))
            case 3:
                del changed[at : at + rng.randrange(1, 20)]
            case 4:
                del changed[at:]
            case 5:
                changed[at:at] = rng.choice(tokens)
            case 6 if len(changed) < 10_000:  # long names, long rows
                changed[at:at] = changed[at : at + rng.randrange(1, 4)] * rng.randrange(1, 3000)
            case _:
                changed[at:at] = changed[: rng.randrange(1, 40)]
    return bytes(changed)


# ---- models ----


def model_files(folder: Path) -> list[bytes]:
    """Whole models: empty, sparse and dense, of float32 and float64, with and without a receipt."""
    import numpy as np

    from ftprl.data import Batch
    from ftprl.linear.engine import Engine
    from ftprl.linear.model import Model
    from ftprl.linear.spec import Spec

    rows = Batch.from_rows([{0: 1.0, 5: -2.0}, {3: 0.5}, dict.fromkeys(range(8), 1.0)], y=np.array([1.0, -1.0, 1.0]))
    bodies = []
    for dim, count, wide, receipt in (
        (8, 3, False, False),
        (8, 0, True, True),
        (64, 2, False, True),
        (64, 2, True, False),
    ):
        spec = Spec(dim=dim, float64=wide, l1=0.01 * count, upper=1.0 if receipt else float("inf"))
        model = Model(Engine(spec, receipt=receipt), {"format": "vw", "columns": {"ä": "label"}})
        model.engine.learn(rows[:count])
        model.save(folder / "whole")
        bodies.append((folder / "whole").read_bytes())
    return bodies


def _forged(body: bytes, rng: random.Random) -> bytes:
    """A model as someone would write it who knows how to compute the digest."""
    length = int.from_bytes(body[:8], "little")
    header, tensors = json.loads(body[8 : 8 + length]), body[8 + length :]
    meta = header["__metadata__"]
    content = json.loads(meta["content"])
    for _ in range(rng.choice((1, 1, 1, 2))):
        match rng.randrange(5):
            case 0:
                header = spoil(header, rng)
            case 1 | 2 if isinstance(meta, dict):
                content = spoil(content, rng)
                meta["content"] = json.dumps(content, sort_keys=True, separators=(",", ":"))
            case 3 if isinstance(meta, dict):
                meta["content"] = rng.choice(("", "[" * 5000, "1", "[]", "{}", "nul", '{"spec":', "9" * 5000, "\x00"))
            case _:
                tensors = mutated(tensors, rng, [bytes(4), b"\xff" * 4, b"\x00\x00\x80\x7f"])
    text = json.dumps(header, separators=(",", ":")).encode()
    if rng.random() < 0.1:
        text = mutated(text, rng, [b"{", b"}", b'"', b",", b":", b"[", b"1e5", b"null", b'"sha256":"'])
    return sealed(text + b" " * (-len(text) % 8), tensors)


class Models:
    """`Model.load`; a file that loads must also predict and be saved again."""

    name, suffix = "model", ".model"

    def __init__(self, folder: Path) -> None:
        self.folder, self.corpus = folder, model_files(folder)
        self.extra = [path.read_bytes() for path in sorted((CORPUS / "model").glob("*"))]

    def make(self, rng: random.Random) -> tuple[bytes, str]:
        body = rng.choice(self.corpus)
        if rng.random() < 0.6:
            return _forged(body, rng), ""
        tokens = [b"\0" * 8, b'"shape":', b"[", b"{", b"0", b"\xff" * 8]
        return mutated(rng.choice([*self.corpus, *self.extra]), rng, tokens), ""

    def run(self, path: Path, rng: random.Random) -> None:
        from ftprl.data import Batch
        from ftprl.errors import BadModel
        from ftprl.linear.model import Model

        whole = path.read_bytes()
        try:
            model = Model.load(path)
        except BadModel as error:
            check_message(str(error))
            return
        if model.engine.spec.dim > 2**20:
            return  # right, but a pass over its cells would take long
        model.predict(Batch.from_rows([{0: 1.0}]))
        again = path.with_suffix(".again")
        model.save(again)
        if whole not in self.corpus:  # what is not what `save` writes: it must still be a model when it is saved
            Model.load(again)
        else:
            assert again.read_bytes() == whole, "a model that is loaded and saved has other bytes"


# ---- files ----


def _zstd(body: bytes) -> bytes:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as out:
        out.write(body)
    return bytes(sink.getvalue().to_pybytes())


_PACK: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": lambda body: gzip.compress(body, mtime=0),
    ".bz2": bz2.compress,
    ".zst": _zstd,
}
SUFFIXES = {
    "vw": [".vw"],
    "libsvm": [".libsvm"],
    "table": [".csv", ".tsv"],
    "jsonl": [".jsonl"],
}
_TOKENS = [
    b"|",
    b":",
    b" ",
    b",",
    b'"',
    b"\n",
    b"\r\n",
    b"\t",
    b"1",
    b"nan",
    b"1e400",
    b"\xef\xbb\xbf",
    b"\xff",
    b"\0",
    b"# ",
]


_MAGIC = [b"\x1f\x8b\x08", b"BZh9", b"\x28\xb5\x2f\xfd", b"\x50\x2a\x4d\x18\x02\0\0\0ab"]


class Files:
    """`data.open` and all its batches, of files changed before or after they were packed."""

    name, suffix = "files", ""

    def __init__(self, folder: Path) -> None:
        self.corpus = {kind: [p.read_bytes() for p in sorted((CORPUS / kind).glob("*"))] for kind in SUFFIXES}

    def make(self, rng: random.Random) -> tuple[bytes, str]:
        kind, packing = rng.choice(list(SUFFIXES)), rng.choice(list(_PACK))
        body = rng.choice(self.corpus[kind])
        if rng.random() < 0.6:
            body = mutated(body, rng, _TOKENS)
        if rng.random() < 0.05:
            body = body.replace(b"\r", b"").replace(b"\n", b"\r")  # lines of old systems
        cut = rng.choice((0, rng.randrange(len(body) + 1)))  # one compressed stream, or two
        body = (_PACK[packing](body[:cut]) if cut else b"") + _PACK[packing](body[cut:])
        if packing and rng.random() < 0.7:
            body = mutated(
                body,
                rng,
                [body[:40], bytes(4), *_MAGIC, _PACK[packing](b"1 |a b\n")],
            )
        return body, rng.choice(SUFFIXES[kind]) + packing

    def run(self, path: Path, rng: random.Random) -> None:
        from ftprl import data
        from ftprl.errors import FtprlError

        options: dict[str, Any] = {
            "dim": rng.choice((2, 64, 97, 2**22, 2**32)),
            "intercept": rng.random() < 0.5,
            "dtype": rng.choice(("float32", "float64")),
            "on_bad_row": rng.choice(("raise", "skip")),
            "max_row": rng.choice((8, 100, 16_000_000)),
            "loss": rng.choice(("logistic", "squared")),
        }
        if path.suffixes[0] in (".csv", ".tsv"):
            options["header"] = rng.random() < 0.7
            options |= rng.choice(({}, {"sep": ";"}, {"quote": "'"}, {"text": "1"}, {"label": "1"}, {"label": "label"}))
        one, other = [
            _reading(data, FtprlError, path, options | {"block_size": size}) for size in (1 << 20, rng.randrange(1, 64))
        ]
        if "broken" in (one[1], other[1]):
            return  # a smaller block may give rows, or find a bad one, before the packing breaks
        assert one == other, f"blocks matter: {one} and {other}"


def _reading(
    data: Any, error: type[Exception], path: Path, options: dict[str, Any]
) -> tuple[list[bytes], str, list[int] | None]:
    """The rows as bytes, the error and the digest of the text; where compressed data breaks is not compared."""
    rows: list[bytes] = []
    try:
        source = data.open(path, **options)
        for batch in source.batches():
            for r in range(len(batch)):
                own = batch[r : r + 1]
                rows.append(b"".join(a.tobytes() for a in (own.indices, own.values, own.y, own.weight)))
        if source.first_bad:
            check_message(source.first_bad)
    except error as wrong:
        message = str(wrong)
        check_message(message)
        if "got a broken file" in message or "a window of at most" in message:
            return [], "broken", None
        return rows, message.replace(" (is a quote not closed?)", ""), None
    return rows, "", source.digest()


# ---- files of columns ----


def column_bodies() -> list[tuple[bytes, str]]:
    """Arrow IPC, Parquet and ORC files, each with a column of a type that has offsets, entries or bits of its own."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import orc

    words = [f"word{i % 7}" for i in range(40)]
    pairs = [[(word, 1.5), ("b", 2.0)] for word in words]
    types = (pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.dictionary(pa.int8(), pa.string()))
    columns = [pa.array(words, type) for type in types]
    columns += [pa.array([[word, "b"] for word in words], type(pa.string())) for type in (pa.list_, pa.large_list)]
    columns += [pa.array([[1.0, 2.0]] * 40, type) for type in (pa.list_view(pa.float64()), pa.list_(pa.float64(), 2))]
    columns += [pa.array(pairs, pa.map_(pa.string(), pa.float64())), pa.array([{"p": word} for word in words])]
    columns += [pa.RunEndEncodedArray.from_arrays(pa.array([20, 40], pa.int32()), pa.array(["a", "b"]))]
    columns += [pa.array([i if i % 3 else None for i in range(40)], type) for type in (pa.float64(), pa.date32())]
    bodies = []
    for cells in columns:
        table = pa.table({"y": [0, 1] * 20, "a": cells})
        for suffix in (".arrow", ".parquet", ".orc"):
            sink = pa.BufferOutputStream()
            try:
                if suffix == ".arrow":
                    with pa.ipc.new_file(sink, table.schema) as out:
                        out.write_table(table, max_chunksize=25)
                else:
                    (pq if suffix == ".parquet" else orc).write_table(table, sink)
            except pa.ArrowException:
                continue  # the format has no such type
            bodies.append((sink.getvalue().to_pybytes(), suffix))
    return bodies


class Columns:
    """`data.open` and all batches of a damaged file of columns, all cells of a column as text, and a prediction."""

    name, suffix = "columns", ""

    def __init__(self, folder: Path) -> None:
        self.corpus = column_bodies()

    def make(self, rng: random.Random) -> tuple[bytes, str]:
        body, suffix = rng.choice(self.corpus)
        if rng.random() < 0.2:
            return mutated(body, rng, [bytes(8), b"\xff" * 8, body[:8]]), suffix
        changed = bytearray(body)
        for _ in range(rng.choice((1, 1, 1, 3))):
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
        return bytes(changed), suffix

    def run(self, path: Path, rng: random.Random) -> None:
        import pyarrow as pa

        import ftprl
        from ftprl import data
        from ftprl.data.values import column_values
        from ftprl.errors import FtprlError

        pa.set_memory_pool(pa.system_memory_pool())
        options = rng.choice(({}, {}, {"text": "a"}, {"categorical": "a"}, {"numeric": "a"}, {"on_bad_row": "skip"}))

        def predict() -> None:
            ftprl.train(path, label="y", bits=6, order="given", **options).model.predict(path)

        def as_text() -> None:
            source = data.open(path, label="y", **(options if "on_bad_row" not in options else {}))
            assert all(isinstance(text, str) for texts in column_values(source, path, "a") for text in texts)

        for use in (lambda: list(data.open(path, label="y", dim=64, **options).batches()), predict, as_text):
            try:
                use()
            except FtprlError as error:
                check_message(str(error))


# ---- the loop ----

TARGETS: dict[str, Callable[[Path], Any]] = {
    "model": Models,
    "files": Files,
    "columns": Columns,
    **forged_targets.TARGETS,
}


def execute(target: Any, folder: Path, number: int, seed: int, crashes: Path | None) -> None:
    """One execution; an input that finds something is kept."""
    rng = random.Random(f"{seed}:{number}")
    body, suffix = target.make(rng)
    path = folder / f"input{suffix or target.suffix}"
    path.write_bytes(body)
    kept = None if crashes is None else crashes / f"{target.name}-{seed}-{number}{suffix or target.suffix}"
    if kept is not None:
        kept.write_bytes(body)  # before the run: a sanitizer ends the process
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", RuntimeWarning)  # a user would see it among the lines of a command
            target.run(path, rng)
    except Exception:
        if kept is not None:
            print(f"input kept as {kept}", file=sys.stderr)
        raise
    if kept is not None:
        kept.unlink()


def numbers(first: int, seconds: float, most: int | None) -> Iterator[int]:
    """first, first + 1, ... until the time or the number of executions is over."""
    end, number = time.monotonic() + seconds, first
    while time.monotonic() < end and (most is None or number < first + most):
        yield number
        number += 1


def main() -> None:
    parser = argparse.ArgumentParser(description="Run one Python target.")
    parser.add_argument("target", choices=sorted(TARGETS))
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the number of the first execution")
    parser.add_argument("--executions", type=int, help="stop after so many")
    parser.add_argument("--crashes", type=Path, help="where inputs that find something are kept")
    parser.add_argument("--package", help="the folder to import ftprl from")
    options = parser.parse_args()
    faulthandler.enable()
    faulthandler.dump_traceback_later(options.seconds + 120, exit=True)
    if options.package:
        use_package(options.package)
    start, done = time.monotonic(), 0
    with tempfile.TemporaryDirectory() as name:
        target = TARGETS[options.target](Path(name))
        for number in numbers(options.first, options.seconds, options.executions):
            execute(target, Path(name), number, options.seed, options.crashes)
            done += 1
    print(json.dumps({"target": options.target, "executions": done, "seconds": round(time.monotonic() - start, 2)}))


if __name__ == "__main__":
    main()
