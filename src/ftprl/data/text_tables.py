"""CSV and TSV files: the kinds of their columns and the rule for their labels are settled by the first rows."""

from __future__ import annotations

from collections.abc import Mapping

from ftprl.data import tables
from ftprl.data.chunks import Started
from ftprl.data.files import Stream, lasts
from ftprl.data.interactions import checked
from ftprl.data.labels import LabelRule
from ftprl.data.options import ReadingOptions, column_name, column_names
from ftprl.data.text import TextSource
from ftprl.data.text_settings import TextSettings, settings_of
from ftprl.errors import InvalidInput


def open_files(files: tuple[str, ...], options: ReadingOptions) -> TextSource:
    """CSV or TSV files as a source."""
    assert options.format is not None
    named = named_columns(options)
    kinds = named.kinds()
    if kinds and options.columns is not None:
        other = next(iter(kinds.values()))
        raise InvalidInput(f"columns= has the kind of each column, got {other}= as well; keep one.", option=other)
    dialect = tables.dialect(options.format, options.sep, options.quote, options.header)
    settings = settings_of(options, LabelRule("number"))._replace(dialect=dialect)
    stream = Stream(files[0])
    try:
        settings, data = _settle(stream, settings, named, options.columns)
    except BaseException:
        stream.close()
        raise
    started: Started = (stream, data)
    if lasts(files[0]):
        stream.close()
        started = None
    return TextSource(files, settings, started)


def named_columns(options: ReadingOptions) -> tables.NamedColumns:
    """The columns whose kind the options name."""
    return tables.NamedColumns(
        label=None if options.label is None else column_name(options.label),
        weight=None if options.weight is None else _weight_column(options.weight),
        ignore=column_names(options.ignore),
        categorical=column_names(options.categorical),
        numeric=column_names(options.numeric),
        text=column_names(options.text),
    )


def _weight_column(weight: object) -> str:
    if not isinstance(weight, str | int | float):
        raise InvalidInput(f"weight= needs the name of a column, got {type(weight).__name__}; name one of the table.")
    return column_name(weight)


def _settle(
    stream: Stream, settings: TextSettings, named: tables.NamedColumns, columns: Mapping[str, str] | None
) -> tuple[TextSettings, bytes]:
    """The settings with the kinds of the columns and the rule for the labels, and the bytes read for that."""
    dialect = settings.dialect
    assert dialect is not None
    header = tables.read_header(stream, dialect, settings.block_size, settings.max_row)
    known = None if columns is None else tables.check_kinds(columns)
    label = named.label if known is None else next((name for name, kind in known.items() if kind == "label"), None)
    at = header.names.index(label) if label in header.names else len(header.names)
    sample = tables.sample(stream, dialect, header, settings.block_size, at)
    kinds = known if known is not None else tables.decide(header.names, named, sample.counts, stream.name)
    rule = tables.label_rule(kinds, settings.loss, settings.positive, sample.labels)
    checked(settings.interactions, kinds)
    return settings._replace(columns=kinds, labels=rule), sample.data
