"""What is trained, and on what: a new model or one that is resumed, and its data, opened as the options say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ftprl import data as readers
from ftprl.data.kinds import NAMED, option_entry
from ftprl.data.kinds import TABLE as KIND_TABLE
from ftprl.data.options import DIM, GRAMS, as_passed, parse_grams, parse_interactions
from ftprl.data.parts import Parts
from ftprl.errors import InvalidInput
from ftprl.linear.bounds import parse_bounds
from ftprl.linear.name_budget import BUDGET, parse_budget
from ftprl.linear.spec import Spec
from ftprl.losses import CLASS_LOSSES, LOSSES, check_tau
from ftprl.options import names
from ftprl.options.checks import check_values

# All else is imported in the functions: data that is refused needs none of it.
if TYPE_CHECKING:
    from ftprl.linear.classes import ClassTable
    from ftprl.linear.model import Model
    from ftprl.linear.names import Names

# `bits` says how many cells there are, data in memory how many columns; bounds of "*" are `lower` and `upper`.
SPEC = (*(name for name in names("model") if name not in ("classes", "bits", "admit")), "dim", "lower", "upper")
READING = names("data")
_OPEN = (*READING, "y")  # what is passed on to `ftprl.data.open`
_EVERY = "*"  # the pattern of bounds that fits every feature
_NOT_KEPT = ("on_bad_row", "max_row")  # a model may read other files with other limits
Options = Mapping[str, Any]


def model_options(arguments: Options) -> dict[str, Any]:
    """The settings of the model and its data that were passed; None is an option that was not."""
    options = {name: arguments[name] for name in SPEC if arguments.get(name) is not None}
    reading = {name: arguments[name] for name in (*READING, "y") if arguments.get(name) is not None}
    options |= {name: value for name, value in reading.items() if not (isinstance(value, tuple) and value == ())}
    if options.get("bounds"):
        options |= _parsed_bounds(options["bounds"])
    bits = arguments.get("bits")
    if bits is not None:
        check_values({"bits": bits})
        options["dim"] = 2 ** int(bits)
    return options


def _parsed_bounds(value: object) -> dict[str, Any]:
    """Return the bounds of names, and those of `*`, which all weights but the intercept have, as `lower` and `upper`.

    >>> _parsed_bounds({"price": (0, None), "*": (-1, 1)})
    {'bounds': (('price', 0.0, inf),), 'lower': -1.0, 'upper': 1.0}
    """
    bounds = parse_bounds(value)
    every = [(lower, upper) for name, lower, upper in bounds if name == _EVERY]
    options: dict[str, Any] = {"bounds": tuple(entry for entry in bounds if entry[0] != _EVERY)}
    if every:
        options["lower"], options["upper"] = max(lower for lower, _ in every), min(upper for _, upper in every)
        if not options["lower"] <= options["upper"]:
            raise InvalidInput(f"bounds= needs ranges of * that meet, got {_shown_range(options)}; drop one of them.")
    return options


def _shown_range(options: Options) -> str:
    return f"*={options['lower']:g}:{options['upper']:g}"


def _pick(options: Options, wanted: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name in wanted}


def new_model(
    data: Any,
    options: Options,
    receipt: bool,
    names: object = None,
    classes: Any = None,
) -> tuple[Model, readers.Source]:
    """A model that has learned nothing, and its data; `names` is the budget for the names of features.

    `classes` are how many there may be, or their labels.
    """
    budget = BUDGET if names is None else parse_budget(names)
    settings = {"scale": "auto", **_pick(options, SPEC)}
    _check_tau(settings)
    table = _class_table(data, options, settings, classes)
    if table is not None:
        settings["classes"] = table.most
    settings = _with_additions(settings)
    if isinstance(data, readers.Source):
        spec = _spec_for(data, options, settings)
        return _new(spec, receipt, data, budget, table), data
    spec = Spec(**settings)
    source = readers.open(
        data,
        dim=settings.get("dim"),
        seed=spec.seed,
        loss=spec.loss,
        dtype="float64" if spec.float64 else "float32",
        names="all" if spec.bounds else budget > 0,
        **_pick(options, _OPEN),
    )
    columns = source.describe().columns
    if columns is not None and "label" not in columns.values() and not _has_own_labels(data, options):
        from ftprl.data.columns import without_label

        raise without_label(list(columns), source.describe().format)
    spec = Spec(**{**settings, "dim": source.to_dict()["dim"]})  # that of data in memory is known only now
    return _new(spec, receipt, source, budget, table), source


def _new(spec: Spec, receipt: bool, source: readers.Source, budget: int, table: ClassTable | None) -> Model:
    from ftprl.linear.engine import Engine
    from ftprl.linear.model import Model

    engine = Engine(spec, receipt=receipt, classes=0 if table is None else len(table))
    return Model(engine, source.to_dict(), names=_names(source, budget, spec.dim), classes=table)


def _class_table(data: Any, options: Options, settings: Options, classes: Any) -> ClassTable | None:
    """The classes of a new model, with a loss of several classes."""
    loss = data.to_dict()["loss"] if isinstance(data, readers.Source) else settings.get("loss", "logistic")
    if loss in CLASS_LOSSES:
        from ftprl.linear.classes import table_of

        return table_of(classes, options.get("y"))
    if classes is not None:
        raise InvalidInput(
            f"classes= needs a loss of several classes, got loss={loss}; drop it, or pass loss=softmax.",
            option=("classes", "loss"),
        )
    return None


def model_of_names(options: Options, receipt: bool, classes: Any = None) -> Model:
    """A model that has learned nothing, for dicts that come one at a time; `classes` are the labels of several."""
    from ftprl.linear.classes import table_of
    from ftprl.linear.engine import Engine
    from ftprl.linear.model import Model
    from ftprl.linear.names import Names

    settings = {"scale": "auto", "dim": DIM, **_pick(options, SPEC)}
    _check_tau(settings)
    table = None if classes is None else table_of(classes)
    if table is not None:
        settings |= {"loss": "softmax", "classes": table.most}
    spec = Spec(**_with_additions(settings))
    from ftprl.data.records import plan_of_names  # only here: training on files does without

    dtype = "float64" if spec.float64 else "float32"
    reading = readers.ReadingOptions.of(
        {"dim": spec.dim, "seed": spec.seed, "loss": spec.loss, "dtype": dtype, "names": True, **_pick(options, _OPEN)}
    )
    reading.check()
    engine = Engine(spec, receipt=receipt, classes=0 if table is None else len(table))
    return Model(engine, plan_of_names(reading).to_dict(), names=Names(spec.dim), classes=table)


def _names(source: readers.Source, budget: int, dim: int) -> Names | None:
    """What keeps the names of a source's features; those that are numbers need none."""
    if not budget or source.to_dict()["format"] in readers.NUMBERED:
        return None
    from ftprl.linear.names import Names

    return Names(dim, budget)


def _with_additions(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings with `coin` and `dense` on where they can be on."""
    deciding = ("scale", "l1", "l2", "lower", "upper", "bounds", *_of_classes(settings))
    spec = Spec(**_pick(settings, deciding))
    wanted = {name: spec.may_add(name) for name in ("coin", "dense")}
    return {**{name: True for name, can_be in wanted.items() if can_be}, **settings}


def _of_classes(settings: Options) -> tuple[str, ...]:
    return ("loss", "classes") if settings.get("classes") else ()


def _has_own_labels(data: Any, options: Options) -> bool:
    """Whether labels are passed beside the data: as y, or with each of its parts."""
    return "y" in options or (isinstance(data, Parts) and isinstance(data.first, tuple))


def _check_tau(settings: Options) -> None:
    if "tau" in settings:
        check_tau(settings["tau"], settings.get("loss", "logistic"))


def set_admission(model: Model, rows: int | None, *, is_new: bool) -> None:
    """Have a new model learn a feature only behind so many rows that have it; a resumed one goes on as it was."""
    if rows is None:
        return
    check_values({"admit": rows})
    from ftprl.linear.admission import Admission

    if is_new:
        model.admission = Admission(rows, model.spec.dim)
    elif model.admission is None or model.admission.after != rows:
        raise _changed("admit", rows, None if model.admission is None else model.admission.after)


def _spec_for(source: readers.Source, options: Options, settings: Options) -> Spec:
    """The spec of a model for a source, which has some of its settings already."""
    reading = source.to_dict()
    if reading["intercept"]:
        raise InvalidInput("a model has its own intercept, got a Source with another; open it without intercept=True.")
    for name in _pick(options, _OPEN):
        raise InvalidInput(
            f"{name}= belongs to ftprl.data.open when the data is a Source, got {name}={options[name]!r:.60}; drop it."
        )
    shared = {
        "dim": reading["dim"],
        "seed": reading["seed"],
        "loss": reading["loss"],
        "float64": reading["dtype"] == "float64",
    }
    for name, value in shared.items():
        if settings.get(name, value) != value:
            raise InvalidInput(
                f"{name}= needs to be what the Source was opened with, {value!r}, got {settings[name]!r}; open it anew."
            )
    return Spec(**{**shared, **settings})


def resumed_model(
    old: Model, data: Any, options: Options, receipt: bool | None, names: object = None, classes: Any = None
) -> tuple[Model, readers.Source]:
    """A model that is trained further, and its data, read as before; options may be repeated, not changed."""
    if old.is_compact:
        raise InvalidInput(
            "resume= needs a model with all it has learned, got one that was made compact; pass the model it was made"
            " of.",
            option="resume",
        )
    _check_spec(old.spec, options)
    if receipt is not None and receipt != old.receipt:
        had = "with" if old.receipt else "without"
        raise InvalidInput(
            f"receipt= holds from the first row on or not at all, got receipt={receipt} for a model {had} it; drop it.",
            option="receipt",
        )
    _check_reading(old.reading, options)
    _check_names(old.names, names)
    _check_classes(old, classes)
    if isinstance(data, readers.Source):
        for name in _vectors(options):
            raise InvalidInput(f"{name}= belongs to ftprl.data.open when the data is a Source, got both; drop it.")
        if data.to_dict() != old.reading:
            raise InvalidInput("a Source needs to read as the model's data was read; pass the paths instead.")
        return old, data
    limits = _pick(options, _NOT_KEPT) | {name: options[name] for name in _vectors(options)}
    if old.checkpoint is not None:
        limits.setdefault("on_bad_row", old.checkpoint["on_bad_row"])
    spec = old.spec  # a model that was made by hand may not say how its data is read
    kept = {"dim": spec.dim, "seed": spec.seed, "loss": spec.loss, **old.reading}
    limits["names"] = "all" if spec.bounds else old.names is not None
    readers.check_format(kept, data, options.get("format"))
    return old, readers.open(data, labelled=True, **limits, **readers.settings_for(kept, data))


def _check_names(kept: Names | None, names: object) -> None:
    """Refuse another budget for names than the model has; they are kept from the first row on or not at all."""
    if names is not None and parse_budget(names) != (0 if kept is None else kept.budget):
        raise _changed("names", names, 0 if kept is None else kept.budget)


def _check_classes(old: Model, classes: Any) -> None:
    """Refuse other classes than the model was made for."""
    if classes is None:
        return
    from ftprl.linear.classes import table_of

    most = 0 if old.class_table is None else old.class_table.most
    wanted = table_of(classes)
    if wanted.most != most or wanted.labels != (old.classes or ())[: len(wanted)]:
        raise _changed("classes", classes, most)


def _check_spec(spec: Spec, options: Options) -> None:
    """Refuse a setting of the model that differs from what it was trained with."""
    kept = {field: getattr(spec, field) for field in (*SPEC, "retired", "classes")}
    for name, value in _pick(options, SPEC).items():
        if name == "scale":  # those of today, or those it began with
            same = Spec(scale=value).scales in (spec.scales, tuple(sorted(spec.scales + spec.retired)))
        elif name in ("bounds", "lower", "upper"):  # others may not go with what the model has
            same = value == getattr(spec, name)
        elif name == "loss" and value in LOSSES:  # another one may need classes, or none
            same = value == spec.loss
        else:
            same = Spec(**{**kept, name: value}) == Spec(**kept)
        if not same and name == "dim":
            raise InvalidInput(
                f"bits= needs to be what the model was trained with, a table of {spec.dim} cells, got one of {value};"
                " drop it.",
                option="bits",
            )
        if not same and name in ("lower", "upper"):
            raise _changed("bounds", _shown_range(options), _shown_range({"lower": spec.lower, "upper": spec.upper}))
        if not same:
            raise _changed(name, value, getattr(spec, name))


def _vectors(options: Options) -> list[str]:
    """The options that have an entry for each row, and so belong to the data."""
    return [name for name in ("y", "weight") if name in options and not isinstance(options[name], str | int | float)]


def _check_reading(reading: Options, options: Options) -> None:
    """Refuse an option of reading that differs from what a model keeps."""
    columns = reading.get("columns") or {}
    for name, value in _pick(options, READING).items():
        if name in _NOT_KEPT or name in _vectors(options):
            continue
        if name in NAMED:
            wanted = [str(value)] if isinstance(value, str | int) else [str(entry) for entry in value]
            kinds = [kind.name for kind in KIND_TABLE if kind.named_by == name]
            kept = ", ".join(column for column, kind in columns.items() if kind in kinds) or None
            entries = [option_entry(name, entry) for entry in wanted]
            same = all(columns.get(column) in kinds and _has_count(reading, column, n) for column, n in entries)
        elif name in GRAMS:
            kept = reading.get(name, {})
            same = getattr(parse_grams(**{**dict.fromkeys(GRAMS), **_pick(options, GRAMS)}), name) == _pairs(kept)
        elif name == "interactions":
            kept = reading.get(name, [])
            same = [list(terms) for terms in parse_interactions(value)] == kept
        else:
            kept = reading.get(name, "ignore" if name == "missing" and columns else None)
            same = str(kept) == str(value)
        if not same:
            raise _changed(name, value, kept)


def _pairs(kept: Options) -> dict[str, Any]:
    """Sizes of n-grams as they are compared: a range is a list in a model."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in kept.items()}


def _has_count(reading: Options, column: str, count: int | None) -> bool:
    """Whether a model has so many buckets for a column; None is of a kind without a count."""
    return count is None or (reading.get("sampled") or {}).get(column, [None])[0] == count


def _changed(name: str, value: object, kept: object) -> InvalidInput:
    return InvalidInput(
        f"{name}= needs to be what the model was trained with, got {_shown(value)} instead of {_shown(kept)}; drop it."
    )


def _shown(value: object) -> str:
    """The value of an option as it could be typed.

    >>> _shown(("a:b", "c")), _shown([["a", "b"]]), _shown({"*": 2}), _shown({}), _shown("x")
    ("'a:b, c'", "'a:b'", "'2'", 'none', "'x'")
    """
    if isinstance(value, Mapping):
        value = as_passed(value)
    elif isinstance(value, list | tuple):
        value = ", ".join(":".join(one) if isinstance(one, list) else str(one) for one in value)
    return "none" if value in ("", None) else repr(value)
