"""One row that is to be explained, in any form: a line of text, a dict, a frame or an array."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ftprl.data import Batch
from ftprl.data.files import shown
from ftprl.data.formats import has_open_columns
from ftprl.data.kinds import BESIDE
from ftprl.data.options import SEPARATORS, ReadingOptions
from ftprl.data.parts import ORIGIN
from ftprl.data.records import missing_keys, unknown_keys
from ftprl.errors import BadFormat, InvalidInput

if TYPE_CHECKING:
    from ftprl.linear.model import Model
    from ftprl.linear.spec import Spec


def read_row(model: Model, row: Any) -> tuple[Batch, tuple[str, ...]]:
    """A row as a model reads it, and the keys of a dict that are no columns of the model."""
    if isinstance(row, str | bytes):
        row = _of_text(model, row)
    if isinstance(row, list | tuple) and len(row) != 1:
        raise InvalidInput(f"row needs to be one row, got {len(row)}; pass one.")
    left_out = _left_out(model, row) if isinstance(row, Mapping) else ()
    if isinstance(row, Mapping):  # an explanation may leave columns out
        row = {**dict.fromkeys(missing_keys([row], model.reading.get("columns") or {})), **row}
    batch = row if isinstance(row, Batch) else _first(model, [row] if isinstance(row, Mapping) else row)
    if len(batch) != 1:
        raise InvalidInput(f"row needs to be one row, got {len(batch)}; pass one.")
    return batch, left_out


def _left_out(model: Model, row: Mapping[Any, Any]) -> tuple[str, ...]:
    """The keys of a dict that are no columns of a model, unless it reads whatever comes."""
    columns = model.reading.get("columns")
    if columns is None or has_open_columns(model.reading):
        return ()
    return tuple(unknown_keys(row, columns))


def _of_text(model: Model, row: str | bytes) -> Any:
    """The row of a line: of its format, or a dict of its fields."""
    text = row.decode("utf-8", "surrogateescape") if isinstance(row, bytes) else row
    if model.reading.get("format") in ("vw", "libsvm"):
        return read_lines(model.reading, model.spec, [text], names="all")
    return _of_fields(model, text)


def read_lines(
    reading: Mapping[str, Any], spec: Spec, lines: Sequence[str | bytes], *, names: bool | str = False
) -> Batch:
    """Rows of VW text or libsvm, a line each, as a model of this format reads them; labels do not matter."""
    from ftprl.data.text import batch_of_lines

    kept = {name: value for name, value in reading.items() if name in ReadingOptions._fields}
    own = {"dim": spec.dim, "seed": spec.seed, "loss": spec.loss if spec.classes else "squared", "positive": None}
    try:
        return batch_of_lines(lines, ReadingOptions(**{**kept, **own, "names": names}))
    except BadFormat as wrong:
        if len(lines) > 1:
            raise
        raise BadFormat(str(wrong).replace(f"{ORIGIN}:1: ", "row: "), option=wrong.options) from None


def _first(model: Model, data: Any, **more: Any) -> Batch:
    try:
        batches = [batch for batch, _ in model.open(data, names="all", **more).read(threads=0, digest=False)]
    except BadFormat as wrong:
        what = str(wrong).replace(f"{ORIGIN}: row 0: ", "row: ")
        raise BadFormat(what.replace(", or pass on_bad_row=skip", ""), option=wrong.options) from None
    rows = sum(len(batch) for batch in batches)
    if rows != 1:
        raise InvalidInput(f"row needs to be one row, got {rows}; pass one.")
    return batches[0]


def _of_fields(model: Model, text: str) -> dict[str, Any]:
    """A JSON object, or the fields of a line with the names of the model's columns."""
    if text.lstrip().startswith("{"):
        try:
            return dict(json.loads(text))
        except ValueError as wrong:
            raise InvalidInput(f"row needs a JSON object, got {shown(text)[:80]!r} ({wrong}); fix it.") from None
    format = model.reading.get("format")
    known = model.reading.get("columns") or {}
    # In the order of the data, which `columns` of a model file does not keep.
    columns = {name: known[name] for name in model.reading.get("order") or ()}
    if known and not columns:
        raise InvalidInput(
            f"row needs a JSON object, since the model does not know the order of its columns,"
            f" got {shown(text)[:80]!r}."
        )
    sep = model.reading.get("sep") or ("\t" if format == "tsv" else ",")
    quote = model.reading.get("quote") or ("" if format == "tsv" else '"')
    used = [name for name, kind in columns.items() if kind not in (*BESIDE, "ignore")]
    unlabelled = [name for name, kind in columns.items() if kind not in BESIDE]
    for other in dict.fromkeys((sep, *SEPARATORS)):  # that of the training data, or one that fits
        fields = _split(text, other, quote)
        for names in (used, unlabelled, list(columns)):
            if len(names) == len(fields) and names and (other == sep or len(fields) > 1):
                return {name: field for name, field in zip(names, fields, strict=True) if name in used}
    found = max(len(_split(text, other, quote)) for other in (sep, *SEPARATORS))
    some = ", ".join(shown(name) for name in used[:8]) + (", ..." if len(used) > 8 else "")
    raise InvalidInput(
        f"row needs {len(used)} field{'s' * (len(used) != 1)} ({some}) or all {len(columns)} columns, got {found};"
        " write a JSON object to name them."
    )


def _split(text: str, sep: str, quote: str) -> list[str]:
    """The fields of a line; none where the separator is the quote character."""
    quoting: dict[str, Any] = {"quotechar": quote} if quote else {"quoting": csv.QUOTE_NONE}
    return [] if sep == quote else next(csv.reader([text], delimiter=sep, **quoting), [])
