"""`ftprl watch`: the page of a run while it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def watch(
    run: Annotated[Path, typer.Argument(help="The events of a run: what train --events writes. It may come later.")],
    port: Annotated[int, typer.Option(help="Where to serve; 0 (default) takes a free port.")] = 0,
) -> None:
    """Serve the page of a run on this machine alone, and keep it up to date until Ctrl-C.

    ftprl watch run.jsonl
    """
    from ftprl.report import Watch

    server = Watch(run, port)
    print(server.url, flush=True)
    server.run()
