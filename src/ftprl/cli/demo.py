"""`ftprl demo`: the paper's motivating problem with three learners, and a synthetic click log learned in one pass."""

from __future__ import annotations

import os
import sys
import tempfile
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ftprl.cli import signals
from ftprl.cli.output import StatusLine
from ftprl.cli.parameters import command, flag, option
from ftprl.errors import InvalidInput
from ftprl.runlog.events import line

if TYPE_CHECKING:
    from ftprl.adversaries import Instance
    from ftprl.bounds import Certificate
    from ftprl.draw import Panel
    from ftprl.training import Run

_POINTS = 80  # number of points of each curve
_LENGTH = (
    "(A fixed linear model has the same weights for all rows, from the first one on. Its length is the L2 norm of its"
    " weights, each times the unit of its feature: longer models can fit more, up to memorising the rows.)"
)


@dataclass(frozen=True)
class Result:
    """A learner's name and certificate."""

    name: str
    certificate: Certificate


@command
@option("--dim", help="Number of features", type=int, default=1000, show_default=True)
@option("--rounds", help="Number of rounds", type=int, default=10_000, show_default=True)
@option(
    "--alpha",
    help="Exponent of the feature frequencies: feature i has probability i^-alpha",
    type=float,
    default=1.25,
    show_default=True,
)
@option("--drift", help="Bias of the signs of each feature, from 0 to 1", type=float, default=0.5, show_default=True)
@option("--seed", help="Seed of the random numbers", type=int, default=0, show_default=True)
@option(
    "--clicks",
    help="Number of rows of a synthetic click log to learn afterwards; 0 for none",
    type=int,
    default=50_000,
    show_default=True,
)
@option(
    "--output",
    "-o",
    help="File for the figure; the report is written beside it, as .html",
    type=Path,
    default="ftprl-demo.png",
    show_default=True,
)
@flag("--json", "as_json", help="Print the result as one line of JSON on stdout")
@flag("--quiet", "-q", help="Print no progress and no table")
def demo(
    dim: int,
    rounds: int,
    alpha: float,
    drift: float,
    seed: int,
    clicks: int,
    output: Path,
    as_json: bool,
    quiet: bool,
) -> None:
    """Compare three learners, then train on a synthetic click log.

    The first part plays a heavy-tailed problem and prints each learner's regret beside its proved bound. The second
    part trains a model on clicks in one pass and prints its receipt. Takes about 20 seconds.
    """
    from ftprl.adversaries import bad_class, heavy_tail
    from ftprl.atomic import check_target

    signals.work_begins()
    check_target("--output", output)
    if output.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InvalidInput(f"--output needs a name ending in .png, .svg or .pdf, got {output.name!r}; rename it.")
    for name, value in (("--seed", seed), ("--clicks", clicks)):
        if value < 0:
            raise InvalidInput(f"{name} needs a number of at least 0, got {value}; pass one.")
    instance, rare = heavy_tail(dim, rounds, alpha, drift, seed), bad_class(max(rounds // 4, 8))
    results, on_rare = _play_all(instance, quiet), _play_all(rare, quiet)
    _save(
        [*_panels(results, instance), _regrets(f"Regret with late, rare features ({rare.rounds} rounds)", on_rare)],
        output,
    )
    if not quiet:
        _print_table(results, instance)
        _print_rare(on_rare, rare, output)
    report = output.with_suffix(".html")
    run = _learn_clicks(clicks, seed, report, quiet) if clicks else None
    if not quiet:
        _print_end(run, report)
    if as_json:
        summary, summary_of_rare = (
            {r.name: {k: v for k, v in r.certificate.to_dict().items() if k != "comparator"} for r in some}
            for some in (results, on_rare)
        )
        settings = {"dim": dim, "rounds": rounds, "alpha": alpha, "drift": drift, "seed": seed}
        learned = (
            None if run is None else {**run.to_dict(), "receipt": run.certificate.to_dict(), "report": str(report)}
        )
        played = {"learners": summary, "rare_features": summary_of_rare}
        print(line({**settings, "picture": str(output), **played, "clicks": learned}))


def _play_all(instance: Instance, quiet: bool) -> list[Result]:
    """Play each learner on the instance."""
    from ftprl.baselines import GradientDescent
    from ftprl.game import Game
    from ftprl.learner import FTPRL
    from ftprl.schemes import CoordinateConstant, Diagonal

    F = instance.feasible
    players: dict[str, Any] = {
        "FTPRL, a single learning rate": FTPRL(F, CoordinateConstant()),
        "FTPRL-Diag, per-coordinate rates": FTPRL(F, Diagonal()),
        "online gradient descent": GradientDescent(F),
    }
    results, status = [], StatusLine(sys.stderr)
    for name, learner in players.items():
        if not (quiet or sys.stderr.isatty()):
            print(f"playing {name} ...", file=sys.stderr)
        game = Game(learner, history=max(instance.rounds // _POINTS, 1))
        for number, loss in enumerate(instance.losses()):
            value, g = loss(game.x)
            game.observe(g, loss=value)
            if not quiet:
                status.show(f"playing {name}: {number / instance.rounds:.0%}")
        status.clear()
        results.append(Result(name, game.certificate()))
    return results


def _panels(results: list[Result], instance: Instance) -> list[Panel]:
    """Return the regrets of the learners, and the worst-case bounds beside the best bounds in hindsight."""
    from ftprl import draw

    bounds = []
    for i, r in enumerate(results):
        history = r.certificate.history
        assert history is not None
        if r.certificate.worst_case is None:
            continue
        bounds.append(draw.Series(f"{r.name}: B_R", history.rounds, history.series["worst case B_R"], colour=i))
        best = history.series["best in hindsight"]
        bounds.append(draw.Series("best of its family in hindsight", history.rounds, best, dashed=True, colour=i))
    where = f"{instance.feasible.dim} coordinates, {instance.rounds} rounds"
    return [
        _regrets(f"Regret ({where})", results),
        draw.Panel("Worst-case bound and the best bound in hindsight", "round", "bound on the regret", bounds),
    ]


def _regrets(title: str, results: list[Result]) -> Panel:
    """Return the plot of all regrets."""
    from ftprl import draw

    series = []
    for i, r in enumerate(results):
        history = r.certificate.history
        assert history is not None
        series.append(draw.Series(r.name, history.rounds, history.series["regret"], colour=i))
    return draw.Panel(title, "round", "regret", series)


def _save(panels: list[Panel], output: Path) -> None:
    """Write the picture to a temporary file and rename it, so that an old picture stays until the new one is
    complete.
    """
    from ftprl import draw

    fig = draw.figure(panels)
    handle, name = tempfile.mkstemp(dir=output.resolve().parent, suffix=output.suffix)
    os.close(handle)
    try:
        fig.savefig(name, dpi=120)
        os.chmod(name, 0o644)
        os.replace(name, output)
    except BaseException:
        os.unlink(name)
        raise


def _print_table(results: list[Result], instance: Instance) -> None:
    """Print the table of the learners."""
    from rich.console import Console
    from rich.table import Table

    table = Table(
        title=f"A heavy-tailed stream on [-1/2, 1/2]^{instance.feasible.dim}, {instance.rounds} rounds",
        title_justify="left",
    )
    table.add_column("learner")
    for column in ("regret", "bound", "worst case B_R", "best in hindsight", "ratio", "proved"):
        table.add_column(column, justify="right")
    for r in results:
        c = r.certificate
        best = c.post_hoc.get(c.family) if c.family else None
        cells = [_cell(v, 1) for v in (c.regret, c.bound, c.worst_case, best)]
        proved = "-" if c.proven_ratio is None else f"<= {c.proven_ratio:.3f}"
        table.add_row(r.name, *cells, _cell(c.ratio, 3), proved)
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(table)
    console.print(
        "regret: total loss above that of the best fixed point. bound: its proved limit, from the points played.\n"
        "worst case B_R: the bound for the worst comparator. best in hindsight: the smallest B_R that fixed learning\n"
        "rates of the same family could have had. ratio: B_R divided by it; proved: the theorem's limit of the ratio.",
        highlight=False,
    )


def _print_rare(results: list[Result], instance: Instance, output: Path) -> None:
    """Print the problem with rare features, where per-coordinate learning rates also win in regret."""
    from rich.console import Console

    single, own, descent = (r.certificate.regret for r in results)
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(
        f"\nOne frequent feature first, {instance.feasible.dim - 1} rare ones later ({instance.rounds} rounds): a"
        " single rate that suits the first\nis too small for the others. Regret with a single learning rate"
        f" {single:.1f}, gradient descent {descent:.1f}, per-coordinate\nrates {own:.1f}:"
        f" {single / own:.1f} times less.",
        highlight=False,
    )
    console.print(f"picture: {output}", highlight=False, markup=False, soft_wrap=True)


def _learn_clicks(rows: int, seed: int, report: Path, quiet: bool) -> Run:
    """Learn a synthetic click log with a receipt, and write the report of the run."""
    from ftprl.atomic import replacing
    from ftprl.data import clicks
    from ftprl.report import page
    from ftprl.training import train

    if not quiet:
        print(f"learning a synthetic click log of {rows} rows ...", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "clicks.csv"
        clicks.generate(rows, seed=seed, path=log)
        run = train(log, label="click", bits=18, receipt=True)
    with replacing(report) as out:
        out.write(page(run.events, "synthetic click log of ftprl demo").encode())
    return run


def _print_end(run: Run | None, report: Path) -> None:
    """Print four answers about the learned click log, and what to do next."""
    if run is not None:
        from ftprl.report import sentences
        from ftprl.runlog.reader import RunLog

        print(
            f"\nA synthetic click log of {run.rows} rows, learned in one pass without tuning, each row predicted first:"
        )
        for question, answer in sentences.answers(RunLog.from_events(run.events)):
            print(f"  {question}")
            print(textwrap.fill(answer, 118, initial_indent="    ", subsequent_indent="    "))
        print(textwrap.fill(_LENGTH, 118, initial_indent="  ", subsequent_indent="  "))
        print(f"report: {report}")
    print('next: train on your own file, or play your own losses with ftprl.Game (README, "Your own problem"):')
    print("      ftprl train FILE -o MODEL --receipt --events RUN, then ftprl report RUN.")


def _cell(value: float | None, digits: int) -> str:
    """Return a number for a table, or a dash."""
    return "-" if value is None else f"{value:.{digits}f}"
