"""Compare two builds of ftprl bit for bit, on this machine: every case of test_identity.py, learned by both.

The record of test_identity.py holds on the platform it was made on. Elsewhere a change that must not change results is
compared with a build from before it:

    python tests/golden/compare_builds.py BEFORE AFTER [--only TEXT] [--may-differ rounding ...]

BEFORE and AFTER are Python interpreters, each with its build installed. Compared are the predictions, every tensor of
the model file by name, the numbers of the run, and those of the certificates. `--may-differ` takes names of tensors and
numbers that were changed on purpose; they are counted apart. Exit code 1 when anything else differs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import test_identity as identity


def tensor_digests(model: bytes) -> dict[str, str]:
    start = 8 + int.from_bytes(model[:8], "little")
    header = json.loads(model[8:start])
    digests = {}
    for name in header.keys() - {"__metadata__"}:
        first, last = header[name]["data_offsets"]
        kind = json.dumps([header[name]["dtype"], header[name]["shape"]])
        digests[f"model.{name}"] = identity.sha256(kind.encode() + model[start + first : start + last])
    return digests


def measured(case: identity.Case, folder: Path) -> dict[str, Any]:
    """Return the results by which two builds are compared: those of the record, with all tensors."""
    results = identity.measured(case, folder)
    by_name = {
        f"{part}.{name}": number for part in ("run", "own", "box") for name, number in results.get(part, {}).items()
    }
    kept = {name: value for name, value in results.items() if isinstance(value, str) and not name.startswith("model_")}
    kept = {name: value for name, value in kept.items() if not name.endswith("_file")}
    return {**kept, **by_name, **tensor_digests((folder / "model.ftprl").read_bytes())}


def measure(only: str) -> None:
    """Print one line of JSON per case; run by the interpreter of a build."""
    with tempfile.TemporaryDirectory() as folder:
        for case in identity.CASES.values():
            if only in case.name and (case.data == "clicks" or identity.file_of(case.data, Path(folder)).is_file()):
                print(json.dumps([case.name, measured(case, Path(folder))]), flush=True)


def results_of(python: str, only: str) -> subprocess.Popen[str]:
    return subprocess.Popen([python, __file__, "--measure", "--only", only], stdout=subprocess.PIPE, text=True)


def in_turn(before: str, after: str, only: str) -> Iterator[tuple[str, Mapping[str, Any], Mapping[str, Any]]]:
    """Yield the results of both builds, one case at a time."""
    processes = [results_of(python, only) for python in (before, after)]
    outputs = [process.stdout or () for process in processes]
    for lines in zip(*outputs, strict=True):
        (name, old), (other_name, new) = map(json.loads, lines)
        assert name == other_name
        yield name, old, new
    for process in processes:
        if process.wait() != 0:
            raise SystemExit(f"a build failed: {process.args}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("builds", nargs="*", metavar="PYTHON", help="before and after")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--may-differ", nargs="*", default=[], help="last parts of names that changed on purpose")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        return measure(options.only)
    if len(options.builds) != 2:
        parser.error("two interpreters are needed, BEFORE and AFTER")
    cases, numbers, allowed, wrong = 0, 0, Counter[str](), []
    for name, old, new in in_turn(*options.builds, options.only):
        cases, numbers = cases + 1, numbers + len(old.keys() | new.keys())
        for key in sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key)):
            if key.split(".")[-1] in options.may_differ:
                allowed[key.split(".")[-1]] += 1
            else:
                wrong.append(f"{name}: {key}: {old.get(key)!r:.60}, {new.get(key)!r:.60}")
                print(wrong[-1], flush=True)
    print(f"{cases} cases, {numbers} values compared, {len(wrong)} differ; changed on purpose: {dict(allowed)}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
