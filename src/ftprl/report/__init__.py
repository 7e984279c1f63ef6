"""The report of a run, made from its events: an HTML page, a picture, or a live page."""

from __future__ import annotations

from ftprl.report.page import page, picture
from ftprl.report.serve import Watch

__all__ = ["Watch", "page", "picture"]
