"""`ShownFigure`: a figure of Matplotlib that a notebook shows as a picture, also where pyplot was never imported."""

from __future__ import annotations

import io
from typing import final

from matplotlib.figure import Figure


@final
class ShownFigure(Figure):
    """A figure as `Figure` makes it; notebooks ask it for a picture."""

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=100)
        return file.getvalue()
