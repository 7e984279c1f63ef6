"""`ftprl export`: a model for other programs."""

from __future__ import annotations

import sys
from pathlib import Path

from ftprl.cli.parameters import argument, command, flag, option
from ftprl.errors import InvalidInput


@command
@argument("model", "Model file", type=Path)
@option("--python", help="File for a scorer in plain Python, without dependencies", type=Path)
@option("--onnx", help="File for an ONNX model; needs the package onnx", type=Path)
@flag("--quiet", "-q", help="Print no summary")
def export(model: Path, python: Path | None, onnx: Path | None, quiet: bool) -> None:
    """Export a model as a Python file or as ONNX.

    ftprl export clicks.ftprl --python scorer.py

    ftprl export clicks.ftprl --onnx clicks.onnx
    """
    if python is None and onnx is None:
        raise InvalidInput("export needs --python FILE or --onnx FILE, got neither; name one of them.")
    from ftprl.atomic import check_apart, check_target
    from ftprl.export import write_onnx, write_python
    from ftprl.linear.model import Model

    targets = {"--python": python, "--onnx": onnx}
    for name, path in targets.items():
        check_target(name, path)
    for name, path, other in (("--python", python, ".onnx"), ("--onnx", onnx, ".py")):
        if path is not None and path.suffix.lower() == other:
            raise InvalidInput(f"{name} needs a name that does not end in {other}, got {str(path)!r}; rename it.")
    check_apart(targets, {"the model": model})
    loaded = Model.load(model)
    if python is not None:
        write_python(loaded, python)
    if onnx is not None:
        write_onnx(loaded, onnx)
    if not quiet:
        written = " and ".join(str(path) for path in targets.values() if path is not None)
        print(f"wrote {written}", file=sys.stderr)
