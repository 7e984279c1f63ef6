"""`ftprl certify`: the receipt of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def certify(
    model: Annotated[Path, typer.Argument(help="A model trained with --receipt.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the receipt here, for ftprl verify.")
    ] = None,
    radius: Annotated[
        float | None,
        typer.Option(help="Against every u with |u| <= R / unit: a box in normalised units.", metavar="R"),
    ] = None,
    against: Annotated[
        Path | None, typer.Option(help="Against the weights of another model over the same features.", metavar="MODEL2")
    ] = None,
    exact: Annotated[
        list[str] | None,
        typer.Option(help="The data it learned: also find the best fixed weights of the box.", metavar="DATA"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON instead of a table.")] = False,
) -> None:
    """Say how far a model's predictions were, at most, from fixed weights: its own, a box of them, or another model's.

    ftprl train clicks.vw.gz -o clicks.ftprl --receipt

    ftprl certify clicks.ftprl --radius 1 -o clicks.receipt
    """
    from ftprl import receipt
    from ftprl.atomic import check_apart, check_target
    from ftprl.linear import Model
    from ftprl.runlog.events import line

    check_target("--output", output)
    read = {f"the data file {path}": path for path in exact or () if Path(path).is_file()}
    check_apart({"--output": output}, {"the model": model, "the other model": against, **read})
    learned = Model.load(model)
    certificate = receipt.certify_model(learned, radius=radius, other=against, exact=exact or None)
    if output is not None:
        receipt.write_receipt(output, receipt.make_receipt(learned, certificate))
    print(line(certificate.to_dict()) if as_json else certificate)
