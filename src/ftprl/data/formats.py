"""The formats that can be read, and `open`, which finds the right one.

A new format is one new module and one line here. The module of a file format has `open_files(files, options)`, that of
a kind of object such as frames `are_frames(data)` and `open_frames(data, options)`; each opens a `Source`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple, Unpack, final

from ftprl.data.compression import suffixes
from ftprl.data.files import expand, mistaken, shown
from ftprl.data.options import (
    ARRAYS,
    FRAME,
    GRAMS,
    JSON_LINES,
    KEYWORDS,
    RECORDS,
    SEPARATORS,
    TABLES,
    OpenOptions,
    ReadingOptions,
)
from ftprl.data.parts import Parts, as_data
from ftprl.data.source import Source
from ftprl.errors import BadFormat, InvalidInput
from ftprl.options.keywords import complete, has_keywords


@final
class FileFormat(NamedTuple):
    """A format of files, known by its suffixes (those of the compression aside)."""

    name: str
    suffixes: tuple[str, ...]
    module: str


@final
class ObjectFormat(NamedTuple):
    """A kind of object in memory: its module has `are_KIND(data)` and `open_KIND(data, options)`.

    `models_of` are the formats whose models can read it: their features have the same numbers; None is for all.
    """

    noun: str
    module: str
    kind: str
    models_of: tuple[str, ...] | None


FILE_FORMATS = (
    FileFormat("arrow", (".arrow", ".feather", ".ipc"), "ftprl.data.column_files"),
    FileFormat("csv", (".csv",), "ftprl.data.csv_files"),
    FileFormat(JSON_LINES, (".jsonl", ".ndjson", ".json"), "ftprl.data.records"),
    FileFormat("libsvm", (".libsvm", ".svm", ".svmlight"), "ftprl.data.text"),
    FileFormat("orc", (".orc",), "ftprl.data.column_files"),
    FileFormat("parquet", (".parquet", ".parq", ".pq"), "ftprl.data.column_files"),
    FileFormat("tsv", (".tsv", ".tab"), "ftprl.data.csv_files"),
    FileFormat("vw", (".vw",), "ftprl.data.text"),
)
_NAMED = (*TABLES, "vw")  # formats of named features, all hashed alike
OBJECT_FORMATS = (
    ObjectFormat("Batch objects", "ftprl.data.arrays", "batches", None),
    ObjectFormat(
        "a data frame (pandas, Polars, pyarrow, or any other that Arrow reads)", "ftprl.data.memory", "frames", _NAMED
    ),
    ObjectFormat("dicts", "ftprl.data.memory", "dicts", _NAMED),
    ObjectFormat("a NumPy array or SciPy matrix", "ftprl.data.arrays", "matrices", (ARRAYS, "libsvm")),
    ObjectFormat("a Ray dataset", "ftprl.data.memory", "datasets", _NAMED),
)
_UNNAMED = (
    "dim",
    "dtype",
    "features",
    "interactions",
    *GRAMS,
    "intercept",
    "loss",
    "positive",
    "seed",
)  # settings that are not about files
BY_SUFFIX = {suffix: format for format in FILE_FORMATS for suffix in format.suffixes}
BY_NAME = {format.name: format for format in FILE_FORMATS}


@has_keywords(KEYWORDS)
def open(data: Any, **settings: Unpack[OpenOptions]) -> Source:
    """Open files, a data frame, dicts, an array, a matrix or `Batch` objects as a `Source` of batches.

    The data options of `ftprl.train` are keywords here too (docs/options.md).

    Parameters
    ----------
    data
        A path, a folder, a glob pattern, a URI that pyarrow knows (s3://, gs://, hdfs://), "-" for standard input, or a
        list of these; a data frame (pandas, Polars, pyarrow, or any other with the Arrow PyCapsule interface); dicts;
        a NumPy array; a SciPy CSR or CSC matrix; a `Batch`. Lists and iterators of these are read part by part; a part
        may be `(data, y)` or `(data, y, weight)`.
    y, weight
        For data in memory: one label and one weight per row. For tables `weight` may be the column with the weight.
    dim
        The number of cells of the weight table [default: 2**22; for arrays and matrices their number of columns].
    seed
        Seed of the hash of feature names.
    intercept
        Put a 1 into the last cell of every row, for a learner without an intercept of its own.
    columns
        The kind of each column, as another source has settled them (`Source.to_dict`). Files may then lack the label
        and the weight, unless `labelled`.
    order, sampled
        The order of these columns, and what the sample gave for some of them: the number of buckets and their edges,
        the earliest date.
    other_columns
        With `columns`: whether columns of JSON lines that are not among them are read by their values.
    loss
        The loss that the labels are for: it decides which labels are allowed.
    dtype
        "float32" or "float64", of the values.
    block_size
        Bytes read at a time.
    names
        Keep the names of features, for a model that shows them: `Batch.names`. With "all" none is missed, as bounds by
        name need it; otherwise one in some thousands may be.
    namespaces
        Name columns and keys as features of VW text: `user^age`, or `{"user": {"age": 30}}`. Other namespaces than
        these are refused, if there are any here.
    features
        For arrays and matrices: how many columns they need to have.

    Examples
    --------
    >>> open("clicks.csv.gz", label="click", ignore=["id"])  # doctest: +SKIP
    """
    passed = {name: value for name, value in settings.items() if value is not None}
    options = ReadingOptions.of(complete("open", KEYWORDS, passed))
    options.check()
    data = as_data(data)
    if not are_paths(data):
        return _open_object(data, options)
    options.refuse(("y",), " is for data in memory, got files; name the column with label=.", option="label")
    files = expand(data)
    chosen = _format_of(files, options.format)
    source: Source = import_module(chosen.module).open_files(files, options._replace(format=chosen.name))
    return source


def are_paths(data: Any) -> bool:
    """Whether data is read from files: a path, or a list of nothing but paths.

    >>> are_paths("a.vw"), are_paths(["a.vw", "b.vw"]), are_paths([1.0, 2.0])
    (True, True, False)
    """
    if isinstance(data, str | os.PathLike):
        return True
    return isinstance(data, Sequence | set | frozenset) and all(isinstance(path, str | os.PathLike) for path in data)


def settings_for(reading: Mapping[str, Any], data: Any, format: str | None = None) -> dict[str, Any]:
    """The settings with which the data of a model was read, for other data of the same kind.

    Formats with columns replace each other, and so do libsvm files and matrices.
    """
    kept = reading.get("format")
    if kept == "vw" and any(reading.get(name) for name in GRAMS):
        _check_order(reading, data, format)
    if not are_paths(data):
        return _settings_for_object(reading, _object_format(data))
    named = None if format is not None else BY_SUFFIX.get(suffixes(expand(data)[0])[0])
    wanted = format if named is None else named.name
    if kept == ARRAYS and wanted != "libsvm":
        raise InvalidInput(
            "data needs the features of the model, which has numbers for them and no names, got files;"
            " pass a matrix, Batch objects, or libsvm files."
        )
    if kept in TABLES and reading.get("columns") is not None:
        reading = {"missing": "ignore", **reading}
    if kept == "csv" and reading.get("header", True) and reading.get("sep") in (None, *SEPARATORS):
        reading = {**reading, "sep": None}  # the columns are known: the header decides
    if kept in TABLES and wanted in TABLES and wanted != kept:
        return _settings_for_table(reading, str(wanted))
    if kept in (FRAME, RECORDS):
        tables = ", ".join(known.name for known in FILE_FORMATS if known.name in TABLES)
        raise InvalidInput(
            f"data needs the columns of the model, which was trained on a {kept}, got {wanted or 'other'} files;"
            f" pass {tables} files, a data frame, or dicts.",
            option="format",
        )
    if kept == "vw" and wanted in TABLES and wanted not in ("csv", "tsv"):
        return _settings_of_features(reading, str(wanted))
    return dict(reading) | ({"format": wanted} if kept == ARRAYS else {})


def check_format(reading: Mapping[str, Any], data: Any, format: str | None) -> None:
    """Refuse files whose name, or `format`, says that they are of another format than those a model was trained on."""
    if not are_paths(data):
        return
    kept, file = reading.get("format"), expand(data)[0]
    wanted = format or getattr(BY_SUFFIX.get(suffixes(file)[0]), "name", None)
    is_table = kept in TABLES and kept in BY_NAME
    if (is_table and wanted in ("vw", "libsvm")) or (kept in ("vw", "libsvm") and wanted in ("csv", "tsv")):
        raise InvalidInput(
            f"{shown(file)}: expected {kept}, the format of the model's data, got {wanted}; pass other files, or"
            f" format={kept} if the name misleads.",
            option="format",
        )


def _settings_of_features(reading: Mapping[str, Any], format: str) -> dict[str, Any]:
    """Return the settings for named values of a model of VW text: a feature is what its name and value say."""
    own = {name: value for name, value in reading.items() if name in _UNNAMED}
    return {**own, "format": format, "columns": {}, "missing": "ignore", "namespaces": ()}


def _check_order(reading: Mapping[str, Any], data: Any, format: str | None) -> None:
    """Refuse data whose rows do not say in which order the features of a namespace come."""
    name = BY_SUFFIX.get(suffixes(expand(data)[0])[0]) if are_paths(data) and format is None else None
    if (format if name is None else name.name) != "vw":
        raise InvalidInput(
            f"data needs the features of a namespace in their order, for the n-grams of the model, got"
            f" {'other files' if are_paths(data) else 'data in memory'}; pass VW text."
        )


def _settings_for_table(reading: Mapping[str, Any], format: str) -> dict[str, Any]:
    """The same for files with columns of another format."""
    if format in ("csv", "tsv") and has_open_columns(reading) and not reading.get("columns"):
        raise InvalidInput(
            f"data needs values that are numbers or text by themselves, as the dicts had that the model learned, got"
            f" {format} files; pass jsonl or parquet files, a data frame, or dicts.",
            option="format",
        )
    both_text = format in ("csv", "tsv") and reading.get("format") in ("csv", "tsv")
    own = ("sep", "quote", "other_columns") if both_text else ("sep", "quote", "header", "other_columns")
    settings = {name: value for name, value in reading.items() if name not in own}
    more = {"other_columns": has_open_columns(reading)} if format == JSON_LINES else {}
    return settings | more | {"format": format}


def has_open_columns(reading: Mapping[str, Any]) -> bool:
    """Whether a model was trained on rows that may have any names."""
    return reading.get("format") == RECORDS or bool(reading.get("other_columns", False))


def _settings_for_object(reading: Mapping[str, Any], known: ObjectFormat) -> dict[str, Any]:
    kept = reading.get("format")
    if known.models_of is not None and kept not in (None, *known.models_of):
        if kept in (ARRAYS, "libsvm"):
            raise InvalidInput(
                f"data needs the features of the model, which has numbers for them and no names, got {known.noun};"
                " pass an array, a matrix, or Batch objects."
            )
        raise InvalidInput(
            f"data needs the features of the model, whose names are hashed by format {kept!r}, got {known.noun};"
            " pass files, or Batch objects with hashed indices."
        )
    settings = {name: value for name, value in reading.items() if name in _UNNAMED}
    if known.models_of is not _NAMED:
        return settings
    columns = reading.get("columns")
    if kept == "vw":
        return _settings_of_features(reading, RECORDS)
    if columns is None:  # a model that was made by hand may not say how its data is read
        return {**settings, "format": RECORDS}
    return {
        **settings,
        "columns": columns,
        "order": reading.get("order"),
        "sampled": reading.get("sampled"),
        "missing": reading.get("missing", "ignore"),
        "format": RECORDS if has_open_columns(reading) else FRAME,
    }


def _object_format(data: Any) -> ObjectFormat:
    for known in OBJECT_FORMATS:
        if getattr(import_module(known.module), f"are_{known.kind}")(data):
            return known
    nouns = ", ".join(known.noun for known in OBJECT_FORMATS)
    got = f"some {type(data.sample).__name__}" if isinstance(data, Parts) else type(data).__name__
    raise InvalidInput(f"data needs paths, {nouns}, or an iterator of these, got {got}; {_remedy(data)}.")


def _remedy(data: Any) -> str:
    """How the data of other libraries becomes data that is read."""
    if isinstance(data, Mapping):
        return "pass a list of dicts, or a frame of its columns such as pandas.DataFrame(data)"
    if isinstance(data, Parts) and isinstance(data.sample, list | tuple | int | float):
        return "pass a NumPy array"
    if type(data).__name__ == "LazyFrame":
        return "call .collect() on it"
    return "convert it to one of these"


def _open_object(data: Any, options: ReadingOptions) -> Source:
    known = _object_format(data)
    if options.format not in (None, ARRAYS, FRAME, RECORDS):
        raise InvalidInput(f"format= is for files, got {options.format!r} for {known.noun}; drop it.")
    if known.models_of is not _NAMED:
        options.refuse(("interactions", *GRAMS), " is for features with names, got numbers; drop it.")
        options = options._replace(format=ARRAYS)
    source: Source = getattr(import_module(known.module), f"open_{known.kind}")(data, options)
    return source


def _format_of(files: Sequence[str], format: str | None) -> FileFormat:
    names = [known.name for known in FILE_FORMATS]
    if format is not None:
        if format not in BY_NAME:
            raise InvalidInput(f"format= needs one of {', '.join(names)}, got {format!r}; pass one of them.")
        return BY_NAME[format]
    by_file = {file: BY_SUFFIX.get(suffixes(file)[0]) for file in files}
    for file, known in by_file.items():
        if known is None:
            if found := mistaken(file):
                raise BadFormat(f"{shown(file)}: expected rows of data, got {found}; pass the data.")
            raise InvalidInput(
                f"{shown(file)}: the format cannot be inferred from the name; pass one of"
                f" {', '.join(names)} with format=.",
                option="format",
            )
    distinct = sorted({known.name for known in by_file.values() if known is not None})
    if len(distinct) > 1:
        raise InvalidInput(
            f"data needs files of one format, got {', '.join(distinct)}; open them one by one, or pass format=.",
            option="format",
        )
    return BY_NAME[distinct[0]]
