"""Redraw the figures of the gallery: `python docs/figures/gallery.py`. The same bytes for the same versions."""

from __future__ import annotations

import os
import runpy
import shutil
import sys
import tempfile
from pathlib import Path

import matplotlib

ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    """Run a copy of every example in a folder of its own, and keep the picture."""
    os.environ["SOURCE_DATE_EPOCH"] = "0"
    matplotlib.rcParams.update(
        {
            "svg.hashsalt": "ftprl",
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.alpha": 0.25,
        }
    )
    sys.argv = [sys.argv[0]]
    for example in sorted((ROOT / "examples").glob("*.py")):
        with tempfile.TemporaryDirectory() as folder:
            inside = Path(folder)
            os.chdir(inside)
            runpy.run_path(shutil.copy(example, inside), run_name="__main__")
            shutil.move(f"{example.stem}.svg", ROOT / "docs" / "figures" / "gallery" / f"{example.stem}.svg")
            os.chdir(ROOT)
        print(example.stem, file=sys.stderr)


if __name__ == "__main__":
    main()
