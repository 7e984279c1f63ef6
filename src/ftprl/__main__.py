"""Run the command line: `python -m ftprl` equals `ftprl`."""

from __future__ import annotations

from ftprl.cli import command

if __name__ == "__main__":
    command()
