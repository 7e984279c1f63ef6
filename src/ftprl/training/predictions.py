"""The file of `predictions=`: what was predicted for each row before it was learned, one line per row.

The file is there when the run is complete, and never in part. A run with checkpoints keeps the text so far in a hidden
file beside it, `.NAME.unfinished`, of which a checkpoint knows how many bytes it had; a resumed run cuts it there.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, final

from ftprl.atomic import beside, replacing
from ftprl.data import Batch, Source
from ftprl.data.compression import ERRORS, check_packing, compression_of, decompressed, packed
from ftprl.data.files import STDOUT
from ftprl.errors import InvalidInput
from ftprl.linear.model import Model, Vector
from ftprl.training.predict import AlignedLines, shown_predictions

if TYPE_CHECKING:
    from ftprl.training.run_settings import RunSettings
    from ftprl.training.run_state import RunState

_BLOCK = 1 << 20


@final
class _Abandoned(Exception):
    """The run ended before the file was complete."""


@final
class Predictions:
    """The progressive predictions of a run, in the order of its rows, from row number `rows` on.

    `complete` puts the file in its place, `close` without that leaves nothing there. `kept` says that a checkpoint may
    refer to the file; `saved` is what `save` returned for the checkpoint that is resumed.
    """

    def __init__(
        self, path: str, model: Model, source: Source, rows: int, *, kept: bool, saved: Mapping[str, Any] | None
    ) -> None:
        self._model, self._source, self._lines = model, source, AlignedLines(rows)
        self._path, self._stack, self._is_saved = path, ExitStack(), saved is not None
        self._bytes, self._crc = (0, 0) if saved is None else (int(saved["bytes"]), int(saved["crc32"]))
        check_packing("predictions=", path)
        is_special = path == STDOUT or (os.path.exists(path) and not os.path.isfile(path))
        self._unfinished = beside(path, "unfinished") if kept and not is_special else None
        if self._unfinished is not None and saved is not None:
            self._check_unfinished(self._unfinished)
        self._out: Any = None

    @classmethod
    def of(
        cls, options: RunSettings, model: Model, source: Source, rows: int, checkpoint: Mapping[str, Any] | None
    ) -> Predictions | None:
        """Return those of a run, if they were asked for."""
        if options.predictions is None:
            return None
        saved = None if checkpoint is None else checkpoint["predictions"]
        kept = options.checkpoint is not None or saved is not None
        return cls(options.predictions, model, source, rows, kept=kept, saved=saved)

    def open(self) -> None:
        """Open the file, if it is not open."""
        if self._out is not None:
            return
        if self._path == STDOUT:
            self._out = stdout()
        elif self._unfinished is None:
            target = self._stack.enter_context(replacing(self._path))
            self._out = self._stack.enter_context(packed(target, self._path))
        else:
            mode = "r+b" if self._is_saved else "w+b"
            self._out = self._stack.enter_context(self._unfinished.open(mode))
            self._out.truncate(self._bytes)
            self._out.seek(self._bytes)

    def add(self, batch: Batch, scores: Vector) -> None:
        """Write the predictions of some rows, and empty lines for those that were left out before them."""
        self._lines.leave_out(self._source.take_left_out())
        self._write(self._lines.lines(batch.first_row, shown_predictions(self._model, scores), batch.tags))

    def end(self, rows: int) -> None:
        """Write empty lines for the rows that were left out at the end of the data, behind `rows` others."""
        self._lines.leave_out(self._source.take_left_out())
        self._write(self._lines.up_to(rows) + self._lines.end())

    def _write(self, text: bytes) -> None:
        with self._named():
            self._out.write(text)
            if self._path == STDOUT:
                self._out.flush()
        self._bytes, self._crc = self._bytes + len(text), zlib.crc32(text, self._crc)

    @contextmanager
    def _named(self) -> Iterator[None]:
        """What writing raises names the file: a run has several."""
        try:
            yield
        except OSError as error:
            if error.filename is not None or self._path == STDOUT:
                raise
            raise OSError(error.errno, error.strerror, self._path) from None

    def save(self, state: RunState) -> dict[str, int]:
        """See all lines up to the row of the state written to the disk; returns what a checkpoint has to know."""
        if state.passes_done == 0:
            self._write(self._lines.up_to(state.rows))
        if self._unfinished is not None:
            with self._named():
                self._out.flush()
                os.fsync(self._out.fileno())
            self._is_saved = True
        return {"bytes": self._bytes, "crc32": self._crc}

    def complete(self) -> None:
        """Put the file in its place."""
        with self._named():
            self._out.flush()
        if self._unfinished is not None:
            with (
                self._unfinished.open("rb") as written,
                replacing(self._path) as target,
                packed(target, self._path) as out,
            ):
                shutil.copyfileobj(written, out, _BLOCK)
        self._stack.close()
        if self._unfinished is not None:
            self._unfinished.unlink()

    def close(self) -> None:
        """Close what is open; what was not completed is removed, unless a checkpoint needs it."""
        with suppress(_Abandoned, OSError):
            self._stack.__exit__(_Abandoned, _Abandoned(), None)
        if self._unfinished is not None and not self._is_saved:
            self._unfinished.unlink(missing_ok=True)

    def _check_unfinished(self, unfinished: Path) -> None:
        """Refuse a file that has not what the checkpoint knows of; a run that was complete has it in its place."""
        if unfinished.exists():
            with unfinished.open("rb") as file:
                written = _crc_of(file, self._bytes)
        else:
            written = self._restored(unfinished)
        if written != (self._bytes, self._crc):
            raise InvalidInput(
                f"predictions= needs the first {self._bytes} bytes of the run that is resumed, got other or fewer in"
                f" {os.fspath(unfinished)!r}; name the same file as before, or start anew.",
                option="predictions",
            )

    def _restored(self, unfinished: Path) -> tuple[int, int]:
        """Put back the text of a complete file from its place; returns what of it could be read."""
        if not os.path.isfile(self._path):
            return 0, 0
        with open(self._path, "rb") as file:
            compression = compression_of(file.read(4))
            file.seek(0)
            try:
                content: Any = decompressed(file, compression) if compression else file
                written = _crc_of(content, self._bytes, copy := bytearray())
            except ERRORS:
                return 0, 0
        if written == (self._bytes, self._crc):
            unfinished.write_bytes(copy)
        return written


def stdout() -> BinaryIO:
    """Standard output with a buffer: without one, a write to a full disk may stop half way and say nothing."""
    sys.stdout.flush()
    raw: Any = sys.stdout.buffer
    return open(raw.fileno(), "wb", closefd=False) if isinstance(raw, io.RawIOBase) else raw


def _crc_of(file: Any, most: int, copy: bytearray | None = None) -> tuple[int, int]:
    """How many bytes a file has, `most` at most, and their CRC-32."""
    count = crc = 0
    while count < most and (block := file.read(min(_BLOCK, most - count))):
        count, crc = count + len(block), zlib.crc32(block, crc)
        if copy is not None:
            copy += block
    return count, crc
