"""`ftprl certify`: the regret of a model and its bounds."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ftprl.cli import startup


def certify(
    model: Annotated[Path, typer.Argument(help="Model trained with --receipt")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write the receipt to, for ftprl verify")
    ] = None,
    radius: Annotated[
        float | None,
        typer.Option(
            help="Compare with the best weights of at most R / unit of the feature (its size); try 0.05", metavar="R"
        ),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(help="Compare with the weights of another model of the same features", metavar="MODEL2"),
    ] = None,
    exact: Annotated[
        list[str] | None,
        typer.Option(help="Training data, to also find the best fixed weights in the box", metavar="DATA"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON instead of a table")] = False,
) -> None:
    """Bound the regret of a model: how much more loss it had than fixed weights would have had.

    The fixed weights are its own final ones, the best in a box (--radius), or those of another model (--against).

    ftprl train clicks.vw.gz -o clicks.ftprl --receipt

    ftprl certify clicks.ftprl --radius 1 -o clicks.receipt
    """
    from ftprl import receipt
    from ftprl.atomic import check_apart, check_target
    from ftprl.data.files import STDIN, expand, shown
    from ftprl.linear import Model
    from ftprl.runlog.events import line

    startup.loaded()
    check_target("--output", output)
    files = expand(exact) if exact else ()
    read: dict[str, Any] = {f"the data file {path}": 0 if path == STDIN else path for path in files}
    check_apart({"--output": output}, {"the model": model, "the other model": against, **read})
    learned = Model.load(model)
    try:
        certificate = receipt.certify_model(learned, radius=radius, other=against, exact=exact or None)
    except receipt.NotProved as error:  # not bad input: a model whose numbers contradict the theorem
        print(f"ftprl: {shown(str(model))}: {error}", file=sys.stderr)
        raise typer.Exit(1) from None
    if output is not None:
        receipt.write_receipt(output, receipt.make_receipt(learned, certificate))
    print(line(certificate.to_dict()) if as_json else certificate)
