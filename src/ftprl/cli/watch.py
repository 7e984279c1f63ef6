"""`ftprl watch`: the live report of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ftprl.cli import startup


def watch(
    run: Annotated[
        Path, typer.Argument(help="Events of a run, as train --events writes them; the file may come later")
    ],
    port: Annotated[int, typer.Option(help="Port to serve on; 0 takes a free one")] = 0,
) -> None:
    """Serve the report of a run in a browser while it is running.

    The page is updated as the run goes on, can be reached from this machine only, and is served until Ctrl-C.

    ftprl watch run.jsonl
    """
    from ftprl.report import Watch

    startup.loaded()
    server = Watch(run, port)
    print(server.url, flush=True)
    server.run()
