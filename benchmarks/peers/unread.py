"""`ftprl train` on a Parquet file as if reading took no time: all rows are parsed first, and that time is not counted.

    python -m benchmarks.peers.unread BEGAN ARGUMENT ...

BEGAN is the monotonic clock when the process was started, the arguments are those of `ftprl`. Prints the seconds from
then on, without those in which the rows were read. It is what `--floor` of shapes.py runs.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Generator
from typing import Any


def main() -> None:
    """Run the command and print its seconds."""
    began, args = float(sys.argv[1]), sys.argv[2:]
    from ftprl.cli import startup

    startup.begin(args)
    from ftprl.cli.app import run
    from ftprl.data.column_source import ColumnSource

    own, reading = ColumnSource.read, 0.0

    def read(self: ColumnSource, *arguments: Any, **options: Any) -> Generator[Any]:
        nonlocal reading
        clock = time.monotonic()
        parsed = list(own(self, *arguments, **options))
        reading += time.monotonic() - clock
        yield from parsed

    ColumnSource.read, ColumnSource.begin = read, lambda self, **options: None  # type: ignore[assignment, method-assign]
    code = run(args)
    print(time.monotonic() - began - reading, flush=True)
    os._exit(code)


if __name__ == "__main__":
    main()
