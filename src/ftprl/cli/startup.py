"""What makes a short command quick to start and to end; `watch`, which stays, runs without any of it.

Each of the four was switched off in turn, 20 interleaved runs each, on a machine of two cores that was busy with other
work. How much longer a command took without it, as the median ratio of elapsed times to the run beside it, and in
brackets the change of the lower quartile of processor time:

| switched off | `train --help` | `train`, 400 rows | `train`, 50,000 rows | the same, one scale |
|---|---|---|---|---|
| no garbage collection while importing | +6 % (+3 %) | +12 % (+6 %) | | |
| one thread for NumPy's linear algebra | +8 % (+7 %) | +6 % (+4 %) | | |
| leaving without taking the interpreter down | +11 % (+17 %) | +4 % (+13 %) | +18 % (+14 %) | +13 % (+11 %) |
| pre-faulting the table (large files only) | | | +6 % (-1 %) | +3 % (+3 %) |

Empty cells were not measured, or the trick does nothing there. In these runs garbage collection was off to the end;
now it is on again once the work begins (`loaded`), since a long run must not depend on making no cycles.

Two more are elsewhere: `ftprl.cli.declared` reads what is mostly typed without Typer, and `train` begins to parse files
before it imports the rest (`ReadsAhead.begin`). They took 18 of 149 ms from a command on 200 rows. While the rest is
imported, threads may take turns ten times as often as usual.

Nothing is checked or refused here: what cannot be foreseen is done without it.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import CodeType, FunctionType
from typing import NoReturn

from ftprl.cli import signals

_LONG_LIVED = ("watch",)
_LONGEST_HEADER = 1_000_000
_STACK_WORDS = 70_000  # words: a little more than half a megabyte, so that a whole one is allocated
_LARGEST_TABLE = 2**32
_SWITCH, _USUAL_SWITCH = 0.0005, 0.005  # seconds
LARGE_FILE = 1 << 22  # bytes; fewer rows are learned before the memory is ready


def with_large_stack(function: Callable[[], None]) -> Callable[[], None]:
    """The same function, with memory for the frames of all that it calls, allocated once.

    Python keeps frames in blocks of 16 KB, and returns a block to the system as soon as its last frame ends.
    A loop in which each call crosses the border of two blocks then asks the system for memory at every call: `predict`
    did so in one of NumPy's modules, with 1,700 page faults, which took 12 ms of processor time. Which loops are hit
    changes with every function on the way to them. A frame that says it needs a large stack gets a large block, and the
    frames above it fit in there; memory that is not used is never touched.

    >>> with_large_stack(lambda: print("called"))()
    called
    """
    code: CodeType = function.__code__.replace(co_stacksize=_STACK_WORDS)
    return FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)


def is_short(args: Sequence[str]) -> bool:
    """Whether a command ends by itself, as all do but those that serve.

    >>> is_short(["train", "a.vw"]), is_short(["watch", "run.jsonl"])
    (True, False)
    """
    return not any(args[:1] == [name] for name in _LONG_LIVED) and "--serve" not in args


def begin(args: Sequence[str]) -> None:
    """Set up a short command; call it before anything else is imported."""
    if is_short(args):
        gc.disable()
        # Threads that parse ahead wait for the one that imports at each of their steps, by default for 5 ms.
        sys.setswitchinterval(_SWITCH)
        # Parsing and learning have threads of their own; those of NumPy's linear algebra would only be in their way.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def loaded() -> None:
    """All is imported and the work begins: it may be long, so collect garbage, but not among what was imported."""
    signals.work_begins()
    if not gc.isenabled():
        sys.setswitchinterval(_USUAL_SWITCH)
        gc.freeze()
        gc.enable()


def end(args: Sequence[str], code: int) -> NoReturn:
    """Leave with an exit code, once everything is written."""
    if is_short(args):
        os._exit(code)
    sys.exit(code)


def expect_new(
    data: Sequence[str], bits: int | None, dim: int | None, scale: str | None, float64: bool, receipt: bool
) -> None:
    """Pre-fault the table of a new model, as these options ask for it."""
    if not _is_large(data):
        return
    cells = dim if dim is not None else 1 << min(max(22 if bits is None else bits, 0), 40)
    scales = 8 if scale in (None, "auto") else 1 + str(scale).count(",")
    _prefault(cells, scales, float64, receipt)


def expect_saved(data: Sequence[str], model: str | Path) -> None:
    """Pre-fault the table of a saved model, as its header describes it."""
    with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
        if not _is_large(data) or not os.path.isfile(model):
            return
        with open(model, "rb") as file:
            header = json.loads(file.read(min(int.from_bytes(file.read(8), "little"), _LONGEST_HEADER)))
        content = json.loads(header["__metadata__"]["content"])
        spec, receipt = content["spec"], content["receipt"]
        if spec.get("classes"):  # its table grows with the classes
            return
        scales = len(spec["scale"]) if isinstance(spec["scale"], list) else 1
        _prefault(spec["dim"], scales, spec["float64"], receipt)


def _prefault(dim: int, scales: int, float64: bool, receipt: bool) -> None:
    if 0 < dim <= _LARGEST_TABLE:
        from ftprl._core import prefault

        prefault(dim, scales=scales, float64=float64, receipt=receipt)


def _is_large(data: Sequence[str]) -> bool:
    """Whether one of the files has many rows; folders, patterns and standard input are not looked into."""
    with suppress(OSError):
        return any(os.path.isfile(path) and os.path.getsize(path) >= LARGE_FILE for path in data)
    return False
