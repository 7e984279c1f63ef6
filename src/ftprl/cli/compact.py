"""`ftprl compact`: a smaller file of a model that predicts the same."""

from __future__ import annotations

import os
from pathlib import Path

from ftprl.cli.parameters import argument, command, flag, option


@command
@argument("model", "Model or checkpoint", type=Path)
@option("--output", "-o", help="File to write the smaller model to", type=Path, required=True)
@flag("--quiet", "-q", help="Print errors only")
def compact(model: Path, output: Path, quiet: bool) -> None:
    """Write a smaller model that predicts the same.

    Weights that are 0 and the receipt are left out; predictions do not change by a bit.

    How much smaller it is depends on --l1. It cannot be trained further or certified: keep the model for that.
    """
    from ftprl.atomic import check_apart, check_target
    from ftprl.linear import Model

    check_target("--output", output)
    check_apart({"--output": output}, {"the model": model})
    learned = Model.load(model)
    small = learned.compact()
    small.save(output)
    if not quiet:
        cells = f"{small.occupied} of {learned.occupied} cells"
        size = f"{os.path.getsize(output)} of {learned.file_size} bytes"
        print(f"wrote {output}: {cells}, {size}; it predicts the same and cannot be trained further")
