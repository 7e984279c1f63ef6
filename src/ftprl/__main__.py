"""`python -m ftprl` is `ftprl`."""

from __future__ import annotations

from ftprl.cli import command

if __name__ == "__main__":
    command()
