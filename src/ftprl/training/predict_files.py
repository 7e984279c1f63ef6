"""Predictions of many files by the workers of a cluster: each file is read, scored and written by one of them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, final

from ftprl.atomic import replacing
from ftprl.data.compression import packed
from ftprl.data.files import shown
from ftprl.data.jobs import Workers
from ftprl.errors import InvalidInput
from ftprl.linear.model import Model
from ftprl.training.predict import Lines


@final
class FileJob(NamedTuple):
    """A file of data, and the file for its predictions."""

    file: str
    output: str


@final
class FileResult(NamedTuple):
    """What became of a file: how many rows have a line, how many of them were left out, and the first of those."""

    output: str
    rows: int
    bad_rows: int
    first_bad: str | None


@final
class PredictWork:
    """Predicts all rows of a file; the model travels as the bytes of its file."""

    def __init__(self, model: bytes, reading: Mapping[str, Any], columns: Mapping[str, bool]) -> None:
        self._model, self._reading, self._columns = model, dict(reading), dict(columns)

    def __call__(self, job: FileJob, /) -> Iterator[FileResult]:
        """One result, once the file of predictions is whole."""
        model = Model.from_bytes(self._model)
        lines = Lines(model, model.open(job.file, **self._reading), **self._columns)
        rows = 0
        with replacing(job.output) as target, packed(target, job.output) as out:
            for text in lines:
                out.write(text)
                rows += text.count(b"\n")
        yield FileResult(job.output, rows, lines.bad_rows, lines.first_bad)

    def size(self, result: FileResult, /) -> tuple[int, int]:
        """The rows of a file; its predictions are not moved."""
        return result.rows, 0

    def describe(self, job: FileJob, /) -> str:
        """The file of a job."""
        return shown(job.file)


def predict_files(
    model: Model,
    files: Sequence[str],
    folder: str | os.PathLike[str],
    workers: Workers,
    *,
    raw: bool = False,
    probabilities: bool = False,
    uncertainty: bool = False,
    **reading: Any,
) -> Iterator[FileResult]:
    """Write the predictions of each file to one of the same name in a folder, in the order of the files."""
    columns = {"raw": raw, "probabilities": probabilities, "uncertainty": uncertainty}
    jobs = [FileJob(file, target) for file, target in zip(files, _targets(files, Path(folder)), strict=True)]
    Path(folder).mkdir(parents=True, exist_ok=True)
    yield from workers.results(iter(jobs), PredictWork(model.to_bytes(), reading, columns))


def _targets(files: Sequence[str], folder: Path) -> list[str]:
    """The file of the predictions of each file; two files of one name would write to the same one."""
    by_name: dict[str, str] = {}
    for file in files:
        name = os.path.basename(file) + ".txt"
        if name in by_name:
            raise InvalidInput(
                f"--output needs files of different names for a folder, got {shown(by_name[name])} and {shown(file)};"
                " predict them into two folders."
            )
        by_name[name] = file
    return [str(folder / name) for name in by_name]
