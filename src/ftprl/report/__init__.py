"""Build the report of a run from its events: an HTML page, a picture, or a live page."""

from __future__ import annotations

from ftprl.report.page import page, picture
from ftprl.report.serve import Watch
from ftprl.report.several import page_of_several

__all__ = ["Watch", "page", "page_of_several", "picture"]
