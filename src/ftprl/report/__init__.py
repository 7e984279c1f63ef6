"""A run as a page, as a picture, and live: all from its events."""

from __future__ import annotations

from ftprl.report.page import page, picture
from ftprl.report.serve import Watch

__all__ = ["Watch", "page", "picture"]
