"""`ftprl certify`: the regret of a model and its bounds."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ftprl.cli import signals
from ftprl.cli.output import repeat
from ftprl.cli.parameters import argument, command, flag, option
from ftprl.errors import InvalidInput
from ftprl.terminal import fitted

if TYPE_CHECKING:
    from ftprl.receipt import StreamCertificate


@command
@argument("model", "Model trained with --receipt", type=Path)
@option("--output", "-o", help="File to write the receipt to, for ftprl verify", type=Path)
@option(
    "--radius",
    help="Compare with the best weights in the box |weight| <= R / unit of the feature; try 0.05",
    type=float,
    metavar="R",
)
@option("--against", help="Compare with the weights of another model of the same features", type=Path, metavar="MODEL2")
@option(
    "--exact",
    help="Training data, from which to also compute the best fixed weights of several lengths, or in the box of"
    " --radius",
    multiple=True,
    metavar="DATA",
)
@option(
    "--norm",
    help="Norm that measures the length of a weight vector: 2 (Euclidean), 1 (sum) or inf (largest)",
    metavar="1|2|inf",
    default="2",
    show_default=True,
)
@option("--picture", help="File for a plot of the floor: .png, .svg or .pdf", type=Path, metavar="FILE")
@flag("--json", "as_json", help="Print one line of JSON instead of a table")
def certify(
    model: Path,
    output: Path | None,
    radius: float | None,
    against: Path | None,
    exact: tuple[str, ...],
    norm: str,
    picture: Path | None,
    as_json: bool,
) -> int:
    """Bound how much better other learning rates or weights could be.

    Answers four questions: is the model better than guessing, would another learning rate or other fixed weights have
    been better, and what loss to expect of new rows?

    The floor is a lower bound on the loss of all fixed weights up to a given length. The details compare with the
    model's own final weights, the best ones in a box (--radius), or those of another model (--against).

    ftprl train clicks.vw.gz -o clicks.ftprl --receipt

    ftprl certify clicks.ftprl --radius 1 -o clicks.receipt
    """
    from ftprl import receipt
    from ftprl.atomic import check_apart, check_target
    from ftprl.data.files import STDIN, expand, shown
    from ftprl.linear import Model
    from ftprl.runlog.events import line

    signals.work_begins()
    check_target("--output", output)
    check_target("--picture", picture)
    if picture is not None and picture.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InvalidInput(f"--picture needs a name ending in .png, .svg or .pdf, got {picture.name!r}; rename it.")
    files = expand(exact) if exact else ()
    read: dict[str, Any] = {f"the data file {path}": 0 if path == STDIN else path for path in files}
    check_apart({"--output": output, "--picture": picture}, {"the model": model, "the other model": against, **read})
    if output is not None:
        _check_no_other_file(output)
    learned = Model.load(model)
    try:
        certificate = receipt.certify_model(learned, radius=radius, other=against, exact=list(exact) or None, norm=norm)
    except receipt.NotProved as error:  # not bad input, but a model whose numbers contradict the theorem
        print(f"ftprl: {shown(str(model))}: {error}", file=sys.stderr)
        return 1
    if output is not None:
        receipt.write_receipt(output, receipt.make_receipt(learned, certificate))
    if picture is not None:
        _draw(certificate, picture)
    print(line(certificate.to_dict()) if as_json else fitted(str(certificate)))
    repeat(learned.cautions)
    return 0


def _check_no_other_file(output: Path) -> None:
    """Raise InvalidInput if the output exists and is not a receipt, such as the data."""
    if output.is_file():
        with output.open("rb") as file:
            first = file.read(1)
        if first not in (b"", b"{"):
            raise InvalidInput(
                f"--output needs a new file or a receipt to replace, got {str(output)!r}, which is another; rename it."
            )


def _draw(certificate: StreamCertificate, path: Path) -> None:
    """Write a plot of the floor."""
    import io

    from ftprl.atomic import replacing

    picture = io.BytesIO()
    certificate.plot().savefig(picture, format=path.suffix[1:].lower(), dpi=150)
    with replacing(path) as out:
        out.write(picture.getvalue())
