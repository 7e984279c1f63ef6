"""The same rows through ftprl and its peers: whole processes, from text to a saved model, in turn.

    python -m benchmarks.peers [--rows 1000000] [--repeats 3] [--long] [--only ftprl ...] [--work DIR]
                               [--json PATH] [--chart PATH]

Every row has 39 categories (see rows.py); every table has 2^22 cells. Seconds are wall-clock and include starting up;
each repeat runs all jobs, beginning with another. Python may keep compiled modules, as it does for a user. The peak is
the largest resident memory. A peer that is not installed is left out and said so. `ratio` is how many times as long as
the ftprl job on the same format. River takes minutes: it reads the first rows only, and its seconds are scaled up.
`--long` adds VW text and libsvm on 4 times the rows and ftprl on 8 times.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from benchmarks.peers import forms
from benchmarks.peers import rows as data
from benchmarks.peers.forms import BITS
from benchmarks.peers.jobs import first_rows
from benchmarks.peers.table import Line, forms_verdicts, picture, shown, verdicts

HERE = Path(__file__).parent
RIVER_ROWS = 20_000
PART = 0.2  # of the rows for interactions: there are ten times as many features
PACKAGES = ("ftprl", "vowpalwabbit", "datatable", "scikit-learn", "river", "numpy", "pyarrow", "polars")


@dataclass(frozen=True)
class Job:
    """A command over the file of one format; `loss` finds the progressive loss in what it printed."""

    name: str
    suffix: str
    needs: str
    own: str
    command: Callable[[Path, Path], list[str]]
    loss: Callable[[str, str], float | None] = lambda out, err: None
    share: float = 1.0  # of the rows, for jobs that take long


def eight(data: Path, model: Path) -> list[str]:
    """`ftprl train`, as a user would call it: eight scales, of which four may retire."""
    label = ["--label", "click"] if data.suffix in (".csv", ".parquet", ".jsonl") else []
    return [
        *command(),
        "train",
        str(data),
        "-o",
        str(model),
        "--bits",
        str(BITS),
        "-q",
        "--json",
        "--order",
        "given",
        *label,
    ]


def ftprl(data: Path, model: Path) -> list[str]:
    """The same with a single scale: what the peers learn."""
    return [*eight(data, model), "--scale", "0.1"]


def with_options(run: Callable[[Path, Path], list[str]], *options: str) -> Callable[[Path, Path], list[str]]:
    """The same command with more options."""
    return lambda data, model: [*run(data, model), *options]


def command() -> list[str]:
    """The installed command, next to this Python."""
    beside = Path(sys.executable).parent / "ftprl"
    return [str(beside)] if beside.exists() else [sys.executable, "-c", "from ftprl.cli import main; main()"]


def predict(data: Path, model: Path) -> list[str]:
    """Needs the model that `ftprl train` left."""
    learned = model.with_name(model.name.replace("predict", "train"))
    return [*command(), "predict", str(learned), str(data), "-o", str(model)]


def wabbit(data: Path, model: Path) -> list[str]:
    """Vowpal Wabbit's own driver behind its Python module; no cache without -c."""
    options = ["--ftrl", "--loss_function", "logistic", "-b", str(BITS), "-d", str(data), "-f", str(model)]
    return [sys.executable, "-m", "vowpalwabbit", *options]


def peer(name: str) -> Callable[[Path, Path], list[str]]:
    return lambda data, model: [sys.executable, "-m", "benchmarks.peers.jobs", name, str(data), str(model), str(BITS)]


def loss_of_json(out: str, err: str) -> float | None:
    return float(json.loads(out)["progressive_loss"])


def loss_of_training(out: str, err: str) -> float | None:
    """The loss, behind the seconds that the training alone took."""
    return float(out.split()[1])


def loss_of_wabbit(out: str, err: str) -> float | None:
    match = re.search(r"average loss = ([0-9.]+)", out + err)
    return float(match[1]) if match else None


NO_NAMES = ("--names", "0")
VW, SVM, CSV = "ftprl train, VW text", "ftprl train, libsvm", "ftprl train, CSV"
PARQUET, JSON, TWO = "ftprl train, Parquet", "ftprl train, JSON lines", "ftprl train, interactions"
EIGHT = "ftprl, eight scales, VW text"
JOBS = (
    Job(VW, ".vw", "ftprl", VW, ftprl, loss_of_json),
    Job("ftprl predict, VW text", ".vw", "ftprl", VW, predict),
    Job(EIGHT, ".vw", "ftprl", VW, eight, loss_of_json),
    Job("Vowpal Wabbit --ftrl, VW text", ".vw", "vowpalwabbit", VW, wabbit, loss_of_wabbit),
    Job(SVM, ".libsvm", "ftprl", SVM, ftprl, loss_of_json),
    Job("scikit-learn SGD, libsvm", ".libsvm", "sklearn", SVM, peer("scikit-learn")),
    Job(CSV, ".csv", "ftprl", CSV, ftprl, loss_of_json),
    Job("datatable Ftrl, CSV", ".csv", "datatable", CSV, peer("datatable")),
    Job("River FTRLProximal, CSV", ".csv", "river", CSV, peer("river")),
    Job("ftprl train, CSV, no names", ".csv", "ftprl", CSV, with_options(ftprl, *NO_NAMES), loss_of_json),
    Job("ftprl, eight scales, CSV", ".csv", "ftprl", CSV, eight, loss_of_json),
    Job("ftprl, eight scales, CSV, no names", ".csv", "ftprl", CSV, with_options(eight, *NO_NAMES), loss_of_json),
    Job(PARQUET, ".parquet", "pyarrow", CSV, ftprl, loss_of_json),
    Job("ftprl in Python, Parquet", ".parquet", "pyarrow", CSV, peer("parquet"), loss_of_training),
    Job("ftprl in Python, Polars frame", ".parquet", "polars", CSV, peer("polars"), loss_of_training),
    Job(JSON, ".jsonl", "ftprl", JSON, ftprl, loss_of_json),
    Job("Vowpal Wabbit --json", ".vwjson", "vowpalwabbit", JSON, with_options(wabbit, "--json"), loss_of_wabbit),
    Job(TWO, ".two.vw", "ftprl", TWO, with_options(ftprl, "--interactions", "a:b"), loss_of_json, PART),
    Job(
        "ftprl train, interactions, no names",
        ".two.vw",
        "ftprl",
        TWO,
        with_options(ftprl, "--interactions", "a:b", *NO_NAMES),
        loss_of_json,
        PART,
    ),
    Job("Vowpal Wabbit -q", ".two.vw", "vowpalwabbit", TWO, with_options(wabbit, "-q", "ab"), loss_of_wabbit, PART),
)


def launch(job: Job, source: Path, work: Path, line: Line) -> None:
    """One run of a job, added to its line; one that fails is not run again."""
    model = work / re.sub(r"\W+", "-", f"model {job.name} {line.rows}")
    out, err = work / "stdout", work / "stderr"
    start = [sys.executable, "-I", "-S", str(HERE / "launch.py"), str(out), str(err)]
    measured = subprocess.run([*start, *job.command(source, model)], capture_output=True, text=True, check=True).stdout
    code, wall, cpu, peak = map(float, measured.split())
    if code:
        last = (err.read_text(errors="replace").strip().splitlines() or ["no message"])[-1]
        line.note = f"failed with code {code:.0f}: {last:.60}"
        return
    line.seconds.append(wall)
    line.cpu.append(cpu)
    line.peak.append(peak)
    if job.loss is loss_of_training:
        line.inside.append(float(out.read_text().split()[0]))
    line.loss = job.loss(out.read_text(errors="replace"), err.read_text(errors="replace"))


def source_of(job: Job, rows: int, work: Path, seed: int) -> tuple[Path, float]:
    """The file a job reads, made if it is not there, and by how much its seconds are to be scaled."""
    path = work / f"rows-{rows}-{seed}{job.suffix}"
    forms.write(path, rows, seed)
    if job.needs != "river" or rows <= RIVER_ROWS:
        return path, 1.0
    prefix = work / f"prefix-{RIVER_ROWS}-{seed}.csv"
    first_rows(str(path), str(prefix), RIVER_ROWS)
    return prefix, rows / RIVER_ROWS


def measure(jobs: list[tuple[Job, int]], work: Path, repeats: int, seed: int) -> dict[tuple[str, int], Line]:
    """All jobs in turn, `repeats` times, each time beginning with another."""
    lines: dict[tuple[str, int], Line] = {}
    files: dict[tuple[str, int], Path] = {}
    for job, rows in jobs:
        line = lines[job.name, rows] = Line(job.name, rows, job.own)
        if find_spec(job.needs) is None:
            line.note = f"{job.needs} is not installed"
            continue
        log(f"making rows for {job.name}, {rows} rows")
        files[job.name, rows], line.times = source_of(job, rows, work, seed)
        if line.times != 1.0:
            line.note = f"{RIVER_ROWS} rows, scaled up"
    for i in range(repeats):
        turn = i * len(jobs) // repeats
        for job, rows in jobs if i == 0 else jobs[turn:] + jobs[:turn]:  # predict needs a model: train comes first
            line = lines[job.name, rows]
            if (job.name, rows) not in files or line.note.startswith("failed"):
                continue
            warm(files[job.name, rows])
            log(f"repeat {i + 1} of {repeats}: {job.name}, {rows} rows")
            launch(job, files[job.name, rows], work, line)
    return lines


def warm(path: Path) -> None:
    """Have the file in memory for everyone."""
    with path.open("rb") as file:
        while file.read(1 << 24):
            pass


def kernel_ratio() -> float:
    """The floor's time over the kernel's, as benchmarks/micro/kernel.py measures them."""
    from benchmarks.micro import kernel

    batches = list(kernel.rows(200_000, BITS).cut(2048))
    line = kernel.measure("", False, 1, batches, BITS, rounds=10)
    assert line is not None
    assert line.ratio is not None
    return line.ratio


def versions() -> dict[str, str]:
    installed = {"python": platform.python_version(), "processors": str(os.cpu_count())}
    for package in PACKAGES:
        try:
            installed[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            installed[package] = "not installed"
    return installed


@contextmanager
def folder(path: Path | None) -> Iterator[Path]:
    if path is None:
        with tempfile.TemporaryDirectory() as made:
            yield Path(made)
    else:
        path.mkdir(parents=True, exist_ok=True)
        yield path


def busy() -> str | None:
    """A warning when others use the processors: what a job then takes says more about them."""
    load, processors = os.getloadavg()[2], os.cpu_count() or 1
    if load <= 1.5 * processors:
        return None
    return f"The load was {load:.1f} on {processors} processors: trust no wall-clock second and no ratio of them."


def log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--long", action="store_true", help="also 4 and 8 times the rows")
    parser.add_argument("--only", nargs="+", default=[""], metavar="WORD", help="jobs whose names hold one of these")
    parser.add_argument("--work", type=Path, help="keep the rows and models here, and use those that are there")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--chart", type=Path)
    options = parser.parse_args()
    chosen = [job for job in JOBS if any(word.lower() in job.name.lower() for word in options.only)]
    jobs = [(job, round(job.share * options.rows)) for job in chosen]
    if options.long:
        jobs += [
            (job, 4 * options.rows) for job in chosen if job.suffix in (".vw", ".libsvm") and job.command is not predict
        ]
        jobs += [(job, 8 * options.rows) for job in chosen if job.name in (VW, EIGHT)]
    sizes = sorted({options.rows, *(rows for job, rows in jobs if job.share == 1.0)})
    floor = kernel_ratio()
    with folder(options.work) as work:
        lines = measure(jobs, work, options.repeats, options.seed)
    print(f"{data.FIELDS} categories a row, 2^{BITS} cells; medians of {options.repeats}")
    print(shown(lines))
    warning = busy()
    if warning:
        print(warning)
    judged = verdicts(lines, floor, BITS, sizes) + forms_verdicts(lines, options.rows, round(PART * options.rows))
    print("\n".join(map(str, judged)))
    if options.json:
        document = {
            "versions": versions(),
            "busy": warning,
            "lines": [line.to_dict() for line in lines.values()],
            "floor": floor,
            "verdicts": [{"asked": v.asked, "measured": v.measured, "met": v.met} for v in judged],
        }
        options.json.write_text(json.dumps(document, indent=1) + "\n")
    if options.chart:
        picture(lines, options.chart)


if __name__ == "__main__":
    main()
