"""The notebook of the documentation runs, and its saved output is reproduced."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nbclient", reason="needs nbclient; pip install 'ftprl[test]'")
pytest.importorskip("ipykernel", reason="needs ipykernel; pip install 'ftprl[test]'")

NOTEBOOK = Path(__file__).parents[3] / "docs" / "notebook.ipynb"
# In a separate process, because the libraries of Jupyter warn about each other.
EXECUTE = """
import sys
import nbclient, nbformat
notebook = nbformat.read(sys.argv[1], 4)
nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
nbformat.write(notebook, sys.argv[2])
"""


def _texts(notebook: dict[str, Any]) -> list[str]:
    """Return the printed text of the cells, and their results as text."""
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", ())]
    kinds = {output["output_type"] for output in outputs}
    assert kinds <= {"execute_result", "stream"}, kinds
    parts = [output.get("text") or output["data"]["text/plain"] for output in outputs]
    return ["".join(part) for part in parts]


def test_the_notebook_runs_and_shows_what_is_saved(tmp_path: Path) -> None:
    executed = tmp_path / "executed.ipynb"
    done = subprocess.run(
        [sys.executable, "-c", EXECUTE, str(NOTEBOOK), str(executed)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    saved = json.loads(NOTEBOOK.read_text())
    assert _texts(json.loads(executed.read_text())) == _texts(saved)
    shown = [output.get("data", {}) for cell in saved["cells"] for output in cell.get("outputs", ())]
    assert sum("text/html" in data for data in shown) == 4  # a frame, a run, a certificate, a model
    assert sum("image/png" in data for data in shown) == 1
