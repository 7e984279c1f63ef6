"""What the admission of rare features saves and costs: cells, bytes of the model file, and progressive loss.

python benchmarks/admission.py DATA [DATA ...] [--rules none,1,...]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from ftprl.training import train

RULES = "none,1,2,5,20"


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser()
    parser.add_argument("data", nargs="+")
    parser.add_argument("--rules", default=RULES)
    options = parser.parse_args()
    print("| data | rule | log loss | baseline | cells | counts, MB | model file, MB |\n|---|---|---|---|---|---|---|")
    for path in options.data:
        for rule in options.rules.split(","):
            with tempfile.TemporaryDirectory() as folder:
                out = Path(folder, "model")
                run = train(path, output=out, admit=None if rule == "none" else int(rule))
                size = out.stat().st_size / 1e6
            counts = 0.0 if run.model.admission is None else run.model.admission.nbytes / 1e6
            numbers = (
                f"{run.progressive_loss:.4f} | {run.baseline:.4f} | {run.model.occupied} | {counts:.2f} | {size:.1f}"
            )
            print(f"| {Path(path).name} | {rule} | {numbers} |", flush=True)


if __name__ == "__main__":
    main()
