"""JSON lines: one object per line; what each of its columns is for is settled by the first lines."""

from __future__ import annotations

from collections.abc import Mapping

from ftprl._core import look_at_json
from ftprl.data import frames, tables
from ftprl.data.chunks import Started
from ftprl.data.files import Stream, lasts
from ftprl.data.frame_opening import known_kinds
from ftprl.data.labels import LabelRule
from ftprl.data.options import ReadingOptions
from ftprl.data.records import MOST_NAMES
from ftprl.data.text import TextSource
from ftprl.data.text_settings import TextSettings, settings_of
from ftprl.data.text_tables import named_columns

_DISTINCT = 32
_FIRST_LOOK = 64_000


def open_files(files: tuple[str, ...], options: ReadingOptions) -> TextSource:
    """Files of JSON lines as a source."""
    options.refuse(("sep", "quote"), " is for CSV and TSV files, got JSON lines; drop it.")
    named, known = named_columns(options), known_kinds(options)
    settings = settings_of(options, LabelRule("number"))
    stream = Stream(files[0])
    try:
        settings, data = _settle(stream, settings, named, known)
    except BaseException:
        stream.close()
        raise
    started: Started = (stream, data)
    if lasts(files[0]):
        stream.close()
        started = None
    return TextSource(files, settings, started)


def _settle(
    stream: Stream, settings: TextSettings, named: tables.NamedColumns, known: Mapping[str, str] | None
) -> tuple[TextSettings, bytes]:
    """The settings with the kinds of the columns and the rule for the labels, and the bytes read for that."""
    label = named.label if known is None else next((name for name, kind in known.items() if kind == "label"), None)
    data, columns, labels = _sample(stream, settings.block_size, label or "")
    kinds = dict(known) if known is not None else _decide(columns, named, stream.name)
    rule = tables.label_rule(kinds, settings.loss, settings.positive, labels)
    return settings._replace(columns=kinds, labels=rule), data


def _sample(stream: Stream, block_size: int, label: str) -> tuple[bytes, list[tuple[str, int, int]], list[str]]:
    """The bytes of the first lines; of each column its values and numbers; the first labels."""
    data, last, wanted = b"", False, _FIRST_LOOK
    while True:
        blocks, size = [data], len(data)
        while size < wanted and not last:
            blocks.append(stream.read(min(block_size, wanted - size)))
            size += len(blocks[-1])
            last = not blocks[-1]
        data = b"".join(blocks)
        rows, columns, labels = look_at_json(data, last, tables.SAMPLE_ROWS, label.encode(), _DISTINCT)
        if rows >= tables.SAMPLE_ROWS or last or size >= tables.SAMPLE_BYTES:
            names = [(name.decode("utf-8", "backslashreplace"), present, numbers) for name, present, numbers in columns]
            return data, names, [value.decode("utf-8", "backslashreplace") for value in labels]
        wanted = min(2 * size, tables.SAMPLE_BYTES)


def _decide(columns: list[tuple[str, int, int]], named: tables.NamedColumns, file: str) -> dict[str, str]:
    """The kinds of the columns: as named, else numeric when all values are numbers, else categorical.

    Rows with more columns than a model keeps, such as counts of words, are read by the type of each value alone.
    """
    names = [name for name, _, _ in columns]
    kinds = frames.for_structures(named.kinds(), names, f"{file}: ") if names else named.kinds()
    kinds |= dict.fromkeys(named.ignore, "ignore")  # an object as a whole, whatever it has in later lines
    if len(names) > MOST_NAMES:
        return kinds
    by_values = {name: "numeric" if present == numbers else "categorical" for name, present, numbers in columns}
    return {**by_values, **kinds}
