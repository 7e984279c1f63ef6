"""What ends the work of a cluster on a run, which can go on from its last checkpoint."""

from __future__ import annotations

from typing import final

from ftprl.errors import FtprlError


@final
class ClusterFault(FtprlError):
    """A server, or rows on a machine, were lost."""
