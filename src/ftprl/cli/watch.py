"""`ftprl watch`: the live report of a run."""

from __future__ import annotations

from pathlib import Path

from ftprl.cli import signals
from ftprl.cli.parameters import argument, command, option


@command
@argument("run", "Events of a run, as train --events writes them; the file may come later", type=Path)
@option("--port", help="Port to serve on; 0 takes a free one", type=int, default=0, show_default=True)
def watch(run: Path, port: int) -> None:
    """Serve the report of a run in a browser while it is running.

    The page is updated as the run goes on, can be reached from this machine only, and is served until Ctrl-C.

    ftprl watch run.jsonl
    """
    from ftprl.report import Watch

    signals.work_begins()
    server = Watch(run, port)
    print(server.url, flush=True)
    server.run()
