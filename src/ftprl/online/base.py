"""The base class of online models: parameters, a model created on first use, and River's conventions."""

from __future__ import annotations

import copy
import inspect
import sys
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any, ClassVar, Self

from ftprl.linear.model import Model
from ftprl.linear.one_row import RowLearner
from ftprl.options import BY_NAME, names
from ftprl.options.keywords import complete
from ftprl.options.table import DataOptions, LearningOptions, ModelOptions
from ftprl.training.setup import model_of_names, model_options

Row = Mapping[Any, Any]
_OF_DICTS = (
    *("categorical", "numeric", "text", "boolean", "date", "interactions", "ngrams", "skips", "char_ngrams"),
    "missing",
)
_NOT_TAKEN = ("classes", "admit")
_OF_MODEL = (*(name for name in names("model") if name not in _NOT_TAKEN), *_OF_DICTS)
KEYWORDS: dict[str, Any] = {**dict.fromkeys(_OF_MODEL), "receipt": False}


class OnlineOptions(DataOptions, ModelOptions, LearningOptions, total=False):
    """The parameters of an online model: the options of its data and its model."""

    receipt: bool


class OnlineModel:
    """Base class of online models, with parameters as attributes (as in River) and the model that they describe."""

    _river_kind: ClassVar[str]  # the class of river.base to register with
    _is_known_to_river: ClassVar[bool] = False

    loss: str
    receipt: bool

    def __init__(self, keywords: Mapping[str, Any], parameters: Mapping[str, Any]) -> None:
        for name, value in complete(type(self).__name__, keywords, parameters).items():
            setattr(self, name, value)
        self._own_model: Model | None = None
        self._learner: RowLearner | None = None
        self._count_as_rivers()

    @classmethod
    def _count_as_rivers(cls) -> None:
        """Register with River's base classes if River is imported, so that its pipelines and metrics accept this
        class.
        """
        base = sys.modules.get("river.base")
        if base is not None and "_is_known_to_river" not in cls.__dict__ and hasattr(base, cls._river_kind):
            getattr(base, cls._river_kind).register(cls)
            cls._is_known_to_river = True

    @property
    def model(self) -> Model:
        """Return the model, to save it, predict files, explain or certify."""
        self._learner = None  # the caller may put another engine into the model
        if self._own_model is None:
            named = {name: getattr(self, name, None) for name in _OF_MODEL}
            options = model_options(dict.fromkeys(BY_NAME) | named)
            self._own_model = model_of_names(options, self.receipt, self._several_classes)
        return self._own_model

    @property
    def _several_classes(self) -> list[Any] | None:
        """Return the labels of a classifier of more than two classes, else None."""
        return None

    def _start(self) -> RowLearner:
        """Create the object that learns and scores rows, kept until the model is asked for, to make rows fast."""
        learner = self._learner = self.model.row_learner()
        return learner

    # ---- parameters ----

    def _get_params(self) -> dict[str, Any]:
        """Return the parameters and their values."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def clone(self, new_params: Mapping[str, Any] | None = None, include_attributes: bool = False) -> Self:
        """Return a new model with these parameters, some replaced by `new_params`.

        It has learned nothing; with `include_attributes` it is a copy of what this model has learned.
        """
        twin = type(self)(**copy.deepcopy({**self._get_params(), **(new_params or {})}))
        if include_attributes:
            twin._own_model = copy.deepcopy(self._own_model)
        return twin

    def mutate(self, new_attrs: Mapping[str, Any]) -> None:
        """Raise ValueError: parameters cannot change, because everything learned depends on them."""
        for name in new_attrs:
            raise ValueError(f"{name!r} is not a mutable attribute of {type(self).__name__}; use clone.")

    def __repr__(self) -> str:
        defaults = {name: entry.default for name, entry in inspect.signature(type(self)).parameters.items()}
        changed = {name: value for name, value in self._get_params().items() if value != defaults[name]}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in changed.items())})"

    def _repr_html_(self) -> str:
        """Return the parameters, and the model if there is one, as HTML for a notebook."""
        learned = "" if self._own_model is None else self._own_model._repr_html_()
        return f"<code>{escape(repr(self))}</code>{learned}"

    def __getstate__(self) -> dict[str, Any]:
        """Return the parameters and the model, for pickle and copies."""
        return {**self._get_params(), "_own_model": self._own_model}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Restore parameters and model."""
        self.__dict__.update({**state, "_learner": None})
        self._count_as_rivers()

    # ---- attributes and methods that River's pipelines and checks need ----

    _supervised = True
    _is_stochastic = False
    _mutable_attributes: frozenset[str] = frozenset()

    @property
    def _multiclass(self) -> bool:
        return self._several_classes is not None

    @property
    def _tags(self) -> set[str]:
        return set()

    @property
    def _raw_memory_usage(self) -> int:
        """Return the bytes of the cells in use and of the names."""
        if self._own_model is None:
            return 0
        cells, names = self._own_model.engine.take(self._own_model.engine.touched()), self._own_model.names
        return cells.nbytes + (0 if names is None else names.bytes)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {}

    def _unit_test_skips(self) -> set[str]:
        return set()

    def __ror__(self, other: Any) -> Any:
        from river import compose

        return compose.Pipeline(other, self)
