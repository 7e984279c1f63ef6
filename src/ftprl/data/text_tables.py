"""CSV and TSV files: the kinds of their columns and the rule for their labels are settled by the first rows."""

from __future__ import annotations

from collections.abc import Callable

from ftprl.data import ngrams, separators, tables
from ftprl.data.columns import known_plan, settle
from ftprl.data.files import Stream, lasts
from ftprl.data.interactions import checked
from ftprl.data.labels import LabelRule, needs_values
from ftprl.data.options import ReadingOptions
from ftprl.data.text import TextSource
from ftprl.data.text_settings import TextSettings, settings_of
from ftprl.errors import InvalidInput


def open_files(files: tuple[str, ...], options: ReadingOptions) -> TextSource:
    """CSV or TSV files as a source."""
    assert options.format is not None
    named = tables.named_columns(options)
    kinds = named.kinds()
    if kinds and options.columns is not None:
        other = next(iter(kinds.values()))
        raise InvalidInput(f"columns= has the kind of each column, got {other}= as well; keep one.", option=other)
    dialect = tables.dialect(options.format, options.sep, options.quote, options.header)
    settings = settings_of(options, LabelRule("number"))._replace(dialect=dialect)
    return settled_source(files, lambda stream: _settle(stream, settings, named, options))


def settled_source(files: tuple[str, ...], settle_by: Callable[[Stream], tuple[TextSettings, bytes]]) -> TextSource:
    """A source whose settings follow from the first rows of its first file: `settle_by` returns them and what it read.

    A file that can be read again is closed; of a pipe the reading goes on behind these rows.
    """
    stream = Stream(files[0])
    try:
        settings, data = settle_by(stream)
    except BaseException:
        stream.close()
        raise
    if lasts(files[0]):
        stream.close()
        return TextSource(files, settings, None)
    return TextSource(files, settings, (stream, data))


def _settle(
    stream: Stream, settings: TextSettings, named: tables.NamedColumns, options: ReadingOptions
) -> tuple[TextSettings, bytes]:
    """The settings with the kinds of the columns and the rule for the labels, and the bytes read for that."""
    dialect = settings.dialect
    assert dialect is not None
    size = settings.block_size
    data = b""
    if options.sep is None and options.format == "csv":
        dialect, data = separators.recognised(dialect, stream, size)
    known = None if options.columns is None else tables.check_kinds(options.columns)
    if known is None:
        header = tables.read_header(stream, dialect, size, settings.max_row, data)
    else:
        plan = known_plan(known, options.order, options.sampled, options.missing)
        header, dialect = separators.header_of(stream, settings._replace(dialect=dialect, plan=plan), data)
    label = named.label if known is None else next((name for name, kind in known.items() if kind == "label"), None)
    at = header.names.index(label) if label in header.names else len(header.names)
    keep = [header.names.index(name) for name in named.bucket if name in header.names]
    sample = tables.Sample(header.data, [], [])
    if known is None or (at < len(header.names) and needs_values(settings.loss, settings.positive)):
        sample = tables.sample(stream, dialect, header, size, at, keep)
    if known is None:
        kinds = tables.decide(header.names, named, sample.columns, stream.name, dialect)
        plan = settle(kinds, dict(zip(header.names, sample.columns, strict=True)), named.bucket, options.missing)
    rule = tables.label_rule(plan.kinds, settings.loss, settings.positive, sample.labels)
    checked(settings.interactions, plan.kinds)
    ngrams.checked(settings.grams, plan.kinds)
    return settings._replace(dialect=dialect, plan=plan, labels=rule), sample.data
