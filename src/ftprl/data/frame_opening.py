"""Opening frames and dicts: what each column is for, and what the labels become, is settled by the first rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

from ftprl.data import frames, nested, records
from ftprl.data.blocks import BlockReader
from ftprl.data.columns import ColumnPlan, known_plan, settle
from ftprl.data.frame_blocks import FrameSettings
from ftprl.data.frame_source import FrameSource
from ftprl.data.interactions import checked, parse
from ftprl.data.labels import of_values
from ftprl.data.ngrams import checked as checked_grams
from ftprl.data.ngrams import parse as parse_grams
from ftprl.data.options import DIM, FRAME, LONGEST_USUAL_ROW, RECORDS, ReadingOptions
from ftprl.data.parts import Parts, split
from ftprl.data.protocol import BESIDE, KINDS
from ftprl.data.tables import SAMPLE_ROWS, check_kinds, named_columns
from ftprl.data.vectors import RowVectors
from ftprl.errors import InvalidInput


def open_frames(data: Any, options: ReadingOptions) -> FrameSource:
    """A frame, or frames in parts, as a source."""
    named, vectors = named_columns(_without_vectors(options)), _vectors(options)
    if not isinstance(data, Parts):
        data = Parts((frames.table_of(data),), is_one_shot=False)
        for vector in vectors.values():  # of parts it is known at the end
            vector.check_length(len(data.first))
    first, own_y, _ = split(data.first)
    table = frames.table_of(first)
    plan, shapes = known_plan_of(options), dict[str, str]()
    if plan is None:
        others = () if data.is_one_shot else map(_head_of_part, islice(data, 1, None))
        fields = nested.flat_fields(table.schema)
        heads = frames.heads_of(*frames.with_types(fields, _first_cells(table), others))
        plan, shapes = settle(*frames.decide(heads, named), named.bucket, options.missing), frames.shapes_of(heads)
    label = _label_of(plan.kinds)

    def texts() -> list[str]:
        if "label" in vectors or own_y is not None:
            return frames.label_texts("y", (vectors.get("label") or RowVectors("y", own_y)).cells)
        column = nested.column_of(table, label)
        return [] if column is None else frames.label_texts(label, column)

    return _source(data, options, plan, vectors, texts, options.format or FRAME, shapes)


def _first_cells(table: Any) -> dict[str, Any]:
    return dict(nested.flat_columns(table.slice(0, SAMPLE_ROWS)))


def _head_of_part(part: Any) -> tuple[list[Any], frames.FirstCells]:
    """The columns of a part that is not the first, and what gives their first cells."""
    data, _, _ = split(part)
    if not frames.is_frame(data):
        return [], lambda _: {}
    table = frames.table_of(data)

    def cells(fields: list[Any]) -> dict[str, Any]:
        names = {field.name for field in fields}
        return {name: column for name, column in _first_cells(table).items() if name in names}

    return nested.flat_fields(table.schema), cells


def open_records(data: Parts, options: ReadingOptions) -> FrameSource:
    """Dicts as a source."""
    named, vectors = named_columns(_without_vectors(options)), _vectors(options)
    first, own_y, _ = (data.peek(SAMPLE_ROWS), None, None) if isinstance(data.first, Mapping) else split(data.first)
    sample, plan = first[:SAMPLE_ROWS], known_plan_of(options)
    if plan is None:
        kinds, samples, is_sparse = records.decide(sample, named)
        if samples and not is_sparse:  # of word counts and the like, any key may come later
            frames.for_structures(named.kinds(), list(samples), "")
            checked(parse(options.interactions), kinds)
        plan = settle(kinds, samples, named.bucket, options.missing or ("ignore" if is_sparse else None))
    label = _label_of(plan.kinds)

    def texts() -> list[str]:
        if "label" in vectors or own_y is not None:
            return frames.label_texts("y", (vectors.get("label") or RowVectors("y", own_y)).cells)
        return records.label_texts(sample, label)

    return _source(data, options, plan, vectors, texts, options.format or RECORDS)


def _source(
    data: Parts,
    options: ReadingOptions,
    plan: ColumnPlan,
    vectors: Mapping[str, RowVectors],
    label_texts: Callable[[], list[str]],
    format: str,
    shapes: Mapping[str, str] | None = None,
) -> FrameSource:
    _check_options(options)
    kinds = plan.kinds
    for kind in vectors:  # what stands beside the data replaces a column
        kinds = {name: "ignore" if own == kind else own for name, own in kinds.items()}
    label = "y" if "label" in vectors else _label_of(kinds)
    settings = settings_for_plan(options, plan._replace(kinds=kinds), label_texts, format, label)
    reader = BlockReader(data, kinds, format == RECORDS, _optional(options, format), vectors, shapes or {})
    return FrameSource(reader, settings)


def _check_options(options: ReadingOptions) -> None:
    """Refuse what is for files."""
    options.refuse(("sep", "quote"), " is for files, got data in memory; drop it.")
    for name, default in (("header", True), ("max_row", LONGEST_USUAL_ROW)):
        if getattr(options, name) != default:
            raise InvalidInput(f"{name}= is for files, got data in memory; drop it.", option=name)


def _optional(options: ReadingOptions, format: str) -> tuple[str, ...]:
    """Kinds of columns that may be missing."""
    if format == RECORDS:
        return tuple(KINDS)
    return ("ignore",) if options.labelled or options.columns is None else (*BESIDE, "ignore")


def settings_for_plan(
    options: ReadingOptions,
    plan: ColumnPlan,
    label_texts: Callable[[], list[str]],
    format: str,
    label: str | None = None,
) -> FrameSettings:
    """All that decides what a row becomes, once it is known what each column is for."""
    positive = str(options.positive).lower() if isinstance(options.positive, bool) else options.positive_label
    rule = of_values(options.loss, positive, _label_of(plan.kinds) if label is None else label, label_texts())
    return FrameSettings(
        format=format,
        dim=DIM if options.dim is None else int(options.dim),
        seed=options.seed,
        intercept=bool(options.intercept),
        dtype=options.dtype,
        loss=options.loss,
        positive=positive,
        labels=rule,
        plan=plan,
        skip_bad_rows=options.on_bad_row == "skip",
        names=options.names,
        interactions=checked(parse(options.interactions), plan.kinds if format != RECORDS else None),
        grams=checked_grams(parse_grams(options.ngrams, options.skips, options.char_ngrams), plan.kinds),
    )


def settings_of_names(options: ReadingOptions) -> FrameSettings:
    """How dicts are read of which none is known yet: by the kinds that are named, all other keys by their values."""
    named = named_columns(options)
    plan = settle(named.kinds(), {}, named.bucket, options.missing or "ignore")
    return settings_for_plan(options, plan._replace(profile=()), list, RECORDS)


def known_plan_of(options: ReadingOptions) -> ColumnPlan | None:
    """How another source reads its columns, if there is one."""
    if options.columns is None:
        return None
    kinds = named_columns(_without_vectors(options)).kinds()
    if kinds:
        other = next(iter(kinds.values()))
        raise InvalidInput(f"columns= has the kind of each column, got {other}= as well; keep one.", option=other)
    return known_plan(check_kinds(options.columns), options.order, options.sampled, options.missing)


def _label_of(kinds: Mapping[str, str]) -> str:
    return next((name for name, kind in kinds.items() if kind == "label"), "")


def _is_vector(weight: Any) -> bool:
    return weight is not None and not isinstance(weight, str | int | float)


def _without_vectors(options: ReadingOptions) -> ReadingOptions:
    return options._replace(weight=None) if _is_vector(options.weight) else options


def _vectors(options: ReadingOptions) -> dict[str, RowVectors]:
    """The labels and weights of all rows, where they are not columns."""
    vectors: dict[str, RowVectors] = {}
    if options.y is not None:
        if options.label is not None:
            raise InvalidInput(
                f"y= and label= are two ways to pass the labels, got y and label={options.label!r}; keep one.",
                option=("label",),
            )
        vectors["label"] = RowVectors("y", options.y)
    if _is_vector(options.weight):
        vectors["weight"] = RowVectors("weight", options.weight)
    return vectors
