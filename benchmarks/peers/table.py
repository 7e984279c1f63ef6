"""What was measured: the lines of the table, the verdicts on what was asked for, the picture."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MB = 1e6


@dataclass
class Line:
    """One job: its runs, or why there are none. `times` scales the seconds of a job that read fewer rows."""

    job: str
    rows: int
    own: str | None  # the ftprl job on the same format
    seconds: list[float] = field(default_factory=list)
    peak: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    loss: float | None = None
    times: float = 1.0
    note: str = ""
    inside: list[float] = field(default_factory=list)  # seconds of the training alone, where they were reported

    @property
    def median(self) -> float | None:
        return self.times * statistics.median(self.seconds) if self.seconds else None

    @property
    def processor(self) -> float | None:
        return self.times * statistics.median(self.cpu) if self.cpu else None

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "median": self.median, "processor": self.processor}


Lines = Mapping[tuple[str, int], Line]


def ratio(lines: Lines, line: Line, what: str = "median") -> float | None:
    """How many times as long as the ftprl job on the same format and rows; `what` may be processor seconds."""
    own = lines.get((line.own or "", line.rows))
    if own is None or not own.seconds or not line.seconds:
        return None
    return float(getattr(line, what) / getattr(own, what))


def number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def shown(lines: Lines) -> str:
    """The table as text; the second ratio is that of processor seconds."""
    head = f"{'job':<34}{'rows':>10}{'seconds':>10}{'range':>18}{'ratio':>8}"
    head += f"{'cpu s':>8}{'ratio':>7}{'peak MB':>9}{'loss':>9}  note"
    text = [head]
    for line in lines.values():
        start = f"{line.job:<34}{line.rows:>10}"
        if line.median is None:
            text.append(f"{start}{'-':>10}{'-':>18}{'-':>8}{'-':>8}{'-':>7}{'-':>9}{'-':>9}  {line.note}")
            continue
        span = f"{line.times * min(line.seconds):.2f}-{line.times * max(line.seconds):.2f}"
        text.append(
            f"{start}{line.median:>10.2f}{span:>18}{number(ratio(lines, line), '.1f'):>8}{line.processor:>8.2f}"
            f"{number(ratio(lines, line, 'processor'), '.1f'):>7}{statistics.median(line.peak) / MB:>9.0f}"
            f"{number(line.loss, '.4f'):>9}  {line.note}"
        )
    return "\n".join(text)


@dataclass(frozen=True)
class Verdict:
    """One thing asked for, what was measured, and whether that is enough; None when it was not measured."""

    asked: str
    measured: str
    met: bool | None

    def __str__(self) -> str:
        word = "not measured" if self.met is None else "met" if self.met else "MISSED"
        return f"{word:<13} {self.asked}: {self.measured}"


def verdicts(lines: Lines, floor: float, bits: int, sizes: Sequence[int]) -> list[Verdict]:
    """What is asked of ftprl, judged by the medians."""

    def against(job: str, rows: int, least: float, asked: str) -> Verdict:
        line = lines.get((job, rows))
        speedup = None if line is None else ratio(lines, line)
        measured = "-" if speedup is None else f"{speedup:.2f}x at {rows} rows"
        return Verdict(asked, measured, None if speedup is None else speedup >= least)

    base = sizes[0]
    learn_svm = "scikit-learn SGD, libsvm"
    judged = [
        against("Vowpal Wabbit --ftrl, VW text", base, 3.5, "VW text to saved model >= 3.5x as fast as vw --ftrl"),
        *(
            against(learn_svm, rows, 40.0, "libsvm >= 40x as fast as scikit-learn load + fit")
            for rows in sizes
            if (learn_svm, rows) in lines
        ),
        against("datatable Ftrl, CSV", base, 1.0, "CSV at least as fast as datatable"),
        Verdict("kernel >= 0.5 of the floor", f"{floor:.2f}", floor >= 0.5),
    ]
    for rows in sizes[1:]:
        if rows >= 4 * base:
            judged.append(against("Vowpal Wabbit --ftrl, VW text", rows, 6.0, "the same >= 6x on four times the rows"))
            break
    wabbit = lines.get(("Vowpal Wabbit --ftrl, VW text", base))
    several = lines.get(("ftprl, eight scales, VW text", base))
    if wabbit and several and wabbit.median and several.median:
        times = wabbit.median / several.median
        judged.append(
            Verdict("eight scales at least as fast as vw --ftrl", f"{times:.2f}x at {base} rows", times >= 1.0)
        )
    one, all_scales = (lines.get((job, sizes[-1])) for job in ("ftprl train, VW text", "ftprl, eight scales, VW text"))
    if len(sizes) > 1 and one and all_scales and one.median and all_scales.median:
        part = one.median / all_scales.median
        asked = "eight scales, four retired, >= 0.5 of the speed of one"
        judged.append(Verdict(asked, f"{part:.2f} at {sizes[-1]} rows", part >= 0.5))
    train, predict = (lines.get((job, base)) for job in ("ftprl train, VW text", "ftprl predict, VW text"))
    if train and predict and train.median and predict.median:
        measured = f"{predict.median:.2f} against {train.median:.2f} s at {base} rows"
        judged.append(Verdict("predict at least as fast as train", measured, predict.median <= train.median))
    table = 16 * 2**bits
    peaks = {rows: max(line.peak) for (job, rows), line in lines.items() if job == "ftprl train, VW text" and line.peak}
    if peaks:
        measured = ", ".join(f"{peak / MB:.0f} MB at {rows} rows" for rows, peak in peaks.items())
        limit, most = table + 250 * MB, max(peaks.values())
        judged.append(
            Verdict(f"peak memory <= table + 250 MB = {limit / MB:.0f} MB", measured, max(peaks.values()) <= limit)
        )
    long = lines.get(("ftprl train, VW text", sizes[-1]))
    short = lines.get(("ftprl train, VW text", base))
    if len(sizes) > 1 and long and short and long.median and short.median:
        by, more = long.median / short.median, sizes[-1] / base
        most = 8.5 / 8 * more
        judged.append(Verdict(f"time grows <= {most:.1f}x with {more:g}x the rows", f"{by:.2f}x", by <= most))
        same = max(long.peak) <= 1.05 * max(short.peak)
        judged.append(Verdict("peak memory within 5% at both", f"{max(long.peak) / max(short.peak):.3f}x", same))
    return judged


def forms_verdicts(lines: Lines, rows: int, part: int) -> list[Verdict]:
    """What is asked of formats other than text, of names and of interactions, which read `part` rows."""

    def times(slow: str, fast: str, count: int, least: float, asked: str) -> Verdict:
        one, other = lines.get((slow, count)), lines.get((fast, count))
        if one is None or other is None or not one.median or not other.median:
            return Verdict(asked, "-", None)
        speedup = one.median / other.median
        return Verdict(asked, f"{speedup:.2f}x at {count} rows", speedup >= least)

    def names(job: str) -> Verdict:
        judged = times(job, f"{job}, no names", rows, 0.0, f"names cost at most 10 %, {job}")
        return (
            judged
            if judged.met is None
            else Verdict(judged.asked, judged.measured, float(judged.measured.split("x")[0]) <= 1.1)
        )

    csv, parquet = "ftprl train, CSV", "ftprl train, Parquet"
    judged = [
        names(csv),
        names("ftprl, eight scales, CSV"),
        times("datatable Ftrl, CSV", parquet, rows, 2.0, "Parquet >= 2x as fast as datatable from CSV"),
        times(csv, parquet, rows, 1.5, "Parquet >= 1.5x as fast as CSV"),
        times("Vowpal Wabbit --json", "ftprl train, JSON lines", rows, 5.0, "JSON lines >= 5x as fast as vw --json"),
        times("Vowpal Wabbit -q", "ftprl train, interactions", part, 4.0, "interactions >= 4x as fast as vw -q"),
    ]
    frame, file = (lines.get((f"ftprl in Python, {what}", rows)) for what in ("Polars frame", "Parquet"))
    if frame and file and frame.inside and file.inside:
        speedup = statistics.median(file.inside) / statistics.median(frame.inside)
        judged.append(
            Verdict("a Polars frame at least as fast as Parquet", f"{speedup:.2f}x at {rows} rows", speedup >= 1.0)
        )
    return judged


def picture(lines: Lines, path: Path) -> None:
    """Seconds of each job that ran over the first number of rows."""
    from benchmarks.bars import Bar, bars

    rows = next(iter(lines.values())).rows
    drawn = [line for line in lines.values() if line.rows == rows and line.median is not None]
    items = []
    for line in drawn:
        times = ratio(lines, line)
        factor = f"   {times:.1f}x" if times is not None and line.job != line.own else ""
        name = line.job + (" (scaled up)" if line.times != 1.0 else "")
        colour = 0 if line.job.startswith("ftprl") else 1
        items.append(Bar(name, line.median or 0.0, colour, f"{line.median:.2f} s{factor}"))
    title = f"{rows:,} rows of 39 categories: text to saved model"
    xlabel = "seconds, on a logarithmic scale; the factor is to ftprl on the same format"
    bars(title, xlabel, items).savefig(path, dpi=150)
