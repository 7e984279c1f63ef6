"""A Matplotlib figure that notebooks show as a picture, also if pyplot was never imported."""

from __future__ import annotations

import io
from typing import final

from matplotlib.figure import Figure


@final
class ShownFigure(Figure):
    """A figure with a PNG representation for notebooks."""

    def _repr_png_(self) -> bytes:
        """Return the figure as PNG."""
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=100)
        return file.getvalue()
