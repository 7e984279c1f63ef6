"""What the classifier and the regressor share: parameters, checked data, training, and weights in the data's units."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from ftprl.data import Source
from ftprl.data.columns import SAMPLE_ROWS, listed
from ftprl.data.labels import check_no_missing
from ftprl.data.memory import check_no_label
from ftprl.data.options import column_names
from ftprl.data.order import AT_ONCE, WAITING, GivenOrder, Order, RandomOrder
from ftprl.errors import InvalidInput, warn
from ftprl.linear.bounds import Bound, fits, parse_bounds
from ftprl.linear.experts import mean_class_weights, mean_weights
from ftprl.linear.model import Model
from ftprl.options import names
from ftprl.options.keywords import complete
from ftprl.options.option import Columns
from ftprl.options.table import LearningOptions, ModelOptions
from ftprl.runlog.rows import Caution
from ftprl.training.api import trained
from ftprl.training.cautions import of_columns, of_loss
from ftprl.training.run import Run
from ftprl.training.run_state import TrainingHistory
from ftprl.training.setup import model_options, new_model, resumed_model

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ftprl.receipt.certificate import StreamCertificate

Vector = NDArray[np.float64]
AUTO_PASSES = 20  # at most so many with passes="auto"
_OF_TABLES = ("bits", "seed", "categorical", "text")  # the features of arrays and matrices are not hashed
_NOT_TAKEN = ("classes", "intercept", "admit")  # the data has the classes
_OF_TRAIN = tuple(name for name in names("model") if name not in (*_NOT_TAKEN, *_OF_TABLES))
KEYWORDS: dict[str, Any] = {
    **dict.fromkeys(_OF_TRAIN),
    **{"fit_intercept": True, "passes": 1, "shuffle": True, "random_state": 0, "holdout": None, "receipt": False},
    **{"categorical": None, "text": None, "bits": 22, "seed": 0, "warm_start": False},
}


class EstimatorOptions(ModelOptions, LearningOptions, total=False):
    """The parameters of an estimator: the options of its model, and how `fit` learns the rows."""

    fit_intercept: bool
    passes: int | str
    shuffle: bool
    random_state: int | np.random.RandomState | None
    holdout: int | None
    receipt: bool
    categorical: Columns | None
    text: Columns | None
    warm_start: bool
    class_weight: Mapping[Any, float] | str | None
    multi_class: str


class LinearEstimator(BaseEstimator):  # type: ignore[misc]
    """One linear model per output (a regressor and two classes have one), trained by `ftprl.train`."""

    models_: list[Model]
    runs_: list[Run]

    def _set(self, keywords: Mapping[str, Any], parameters: Mapping[str, Any]) -> None:
        """Have each parameter as an attribute, as scikit-learn expects it."""
        for name, value in complete(type(self).__name__, keywords, parameters).items():
            setattr(self, name, value)

    # ---- training ----

    def _fit(self, X: Any, outputs: Sequence[Vector], weight: Vector | None) -> Self:
        """Train from the first row on; with `warm_start` go on with what `fit` or `partial_fit` has learned."""
        if self.warm_start and len(getattr(self, "models_", ())) == len(outputs):
            order = self._order()
            return self._learn_more(X, outputs, weight, order["order_seed"] if order["order"] == "random" else None)
        passes = AUTO_PASSES if self.passes == "auto" else self.passes
        options = self._chosen((*_OF_TRAIN, "holdout")) | self._reading(X, weight) | self._class_options()
        options |= self._order()
        self.runs_ = [trained(X, y, receipt=self.receipt, passes=passes, **options) for y in outputs]
        self.models_ = [run.model for run in self.runs_]
        self.n_iter_ = max(1, *(run.best_pass or passes for run in self.runs_))
        self.__dict__.pop("coefficients_", None)
        _warn_once([run.cautions for run in self.runs_])
        return self

    def _order(self) -> dict[str, Any]:
        """The options of `train` for the order in which `fit` learns the rows."""
        if not isinstance(self.shuffle, bool | np.bool_):
            raise ValueError(f"shuffle needs True or False, got {self.shuffle!r}; pass one.")
        own = self.random_state
        is_seed = isinstance(own, int | np.integer)
        if is_seed and not 0 <= own < 2**64:
            raise ValueError(f"random_state needs a whole number from 0 to 2^64 - 1, got {own}; pass one.")
        seed = own if is_seed else check_random_state(own).randint(2**31)
        return {"order": "random" if self.shuffle else "given", "order_seed": int(seed)}

    def _learn_more(
        self, X: Any, outputs: Sequence[Vector], weight: Vector | None, order_seed: int | None = None
    ) -> Self:
        """Learn rows in one pass, in new models if there are none; in random order if it has a seed."""
        models = getattr(self, "models_", None) or [None] * len(outputs)
        learned = [self._learned(model, X, y, weight, order_seed) for model, y in zip(models, outputs, strict=True)]
        self.models_ = [model for model, _ in learned]
        self.runs_ = []
        self.n_iter_ = 1
        self.__dict__.pop("coefficients_", None)
        _warn_once([found for _, found in learned])
        return self

    def _learned(
        self, model: Model | None, X: Any, y: Vector, weight: Vector | None, order_seed: int | None
    ) -> tuple[Model, list[Caution]]:
        """Learn rows in one pass; returns the model, and the warnings that no earlier call gave."""
        is_new = model is None
        reading = self._reading(X, weight) | {"y": y}
        if model is None:
            classes = self._class_options()
            options = self._chosen(_OF_TRAIN) | reading | classes
            model, source = new_model(X, model_options(options), self.receipt, classes=classes.get("classes"))
        else:
            beside = {name: value for name, value in reading.items() if name in ("y", "weight")}
            model, source = resumed_model(model, X, beside, None)
        float64 = model.spec.float64
        was_above = model.progress.above_baseline
        _learn(model, source, GivenOrder() if order_seed is None else RandomOrder(order_seed, WAITING, float64=float64))
        found = list(of_columns(source.describe().to_dict())) if is_new else []
        return model, found + ([] if was_above else list(of_loss(model.progress)))

    def _class_options(self) -> dict[str, Any]:
        """The options of `train` for several classes in one model; none by default."""
        return {}

    def _chosen(self, names: Sequence[str]) -> dict[str, Any]:
        """The options of `train` that are not left at their default."""
        values = {name: getattr(self, name, None) for name in names} | {"intercept": self.fit_intercept}
        return {name: value for name, value in values.items() if value is not None}

    def _numbered_bounds(self) -> list[Bound]:
        """The bounds by the numbers of columns; those of a frame of numbers have names, too."""
        names = [str(name) for name in getattr(self, "feature_names_in_", ())]
        numbered: list[Bound] = []
        for pattern, lower, upper in parse_bounds(self.bounds):
            columns = [i for i, name in enumerate(names) if fits(pattern, name, False)]
            numbered += [(str(i), lower, upper) for i in columns] or [(pattern, lower, upper)]
        return numbered

    def _reading(self, X: Any, weight: Vector | None) -> dict[str, Any]:
        """How the rows are read: columns of a table are hashed, those of an array or a matrix are not."""
        if self._is_table(X):
            options = self._chosen(_OF_TABLES)
        else:
            options = {"bounds": self._numbered_bounds()} if self.bounds else {}
        return options if weight is None else options | {"weight": weight}

    # ---- data ----

    def _checked(
        self, X: Any, y: Any = None, *, reset: bool, labelled: bool = True, numeric: bool = False
    ) -> tuple[Any, Any]:
        """Data as it is read: a table with columns of any kind, or an array or a matrix of numbers."""
        if reset and labelled and is_frame(X) and np.ndim(y) == 1 and len(y) == len(X):
            self._check_no_label(X, y)
        if self._is_table(X) or (not reset and is_frame(X) and self._is_fitted_on_table):
            return self._checked_table(X, y, reset=reset)
        if self.categorical or self.text:
            name = "categorical" if self.categorical else "text"
            raise InvalidInput(
                f"{name}= names columns of a data frame, got {type(X).__name__}; pass a frame, or drop it."
            )
        wanted: dict[str, Any] = {"accept_sparse": "csr", "dtype": (np.float64, np.float32), "reset": reset}
        if not labelled:
            return validate_data(self, X, **wanted), None
        return validate_data(self, X, y, y_numeric=numeric, **wanted)  # type: ignore[no-any-return]

    def _is_table(self, X: Any) -> bool:
        """Whether data is read by the names of its columns: some are no numbers, or are to be read as others."""
        return is_table(X) or (is_frame(X) and bool(self.categorical or self.text))

    @property
    def _is_fitted_on_table(self) -> bool:
        """Whether the features are columns that are hashed by name."""
        models: Sequence[Model] = getattr(self, "models_", ())
        return any(model.reading.get("columns") is not None for model in models)

    def _check_no_label(self, X: Any, y: Any) -> None:
        """Refuse a frame that has the labels in a column, too."""
        chosen = {*column_names(self.categorical or ()), *column_names(self.text or ())}
        names = [name for name in getattr(X, "column_names", None) or X.columns if str(name) not in chosen]
        check_no_label({str(name): X[name] for name in names}, np.asarray(y)[:SAMPLE_ROWS].tolist(), _first_values)

    def _checked_table(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, Any]:
        names = [str(name) for name in getattr(X, "column_names", None) or X.columns]
        if reset:
            self.n_features_in_, self.feature_names_in_ = len(names), np.array(names, dtype=object)
        elif names != list(getattr(self, "feature_names_in_", ())):
            raise _mismatch(list(getattr(self, "feature_names_in_", ())), names)
        if y is not None and not len(X):  # as scikit-learn does for arrays
            raise ValueError("Found a table with 0 sample(s) while a minimum of 1 is required; pass some rows.")
        if y is not None:
            check_no_missing(y)
        return X, None if y is None else np.asarray(y)

    def _weight(self, sample_weight: Any, X: Any) -> Vector | None:
        """One weight per row, or None where all are 1."""
        if sample_weight is None:
            return None
        rows = np.empty((len(X), 0)) if self._is_table(X) else X
        weight: Vector = _check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True)
        return weight

    def _scores(self, X: Any) -> Vector:
        """The score of each row by each model: one column per output."""
        check_is_fitted(self)
        checked, _ = self._checked(X, reset=False, labelled=False)
        return np.column_stack([model.predict(checked, raw=True) for model in self.models_])

    def predict_uncertainty(self, X: Any) -> Vector:
        """How far one more row like each could move its score: large for features that were hardly seen.

        In log-odds with the logistic loss, otherwise in the unit of the score. With several models, one per class, the
        largest of theirs.
        """
        check_is_fitted(self)
        checked, _ = self._checked(X, reset=False, labelled=False)
        return np.asarray(np.max([model.uncertainty(checked) for model in self.models_], axis=0))

    # ---- what was learned ----

    @property
    def coef_(self) -> Any:
        """The weights of the columns: the mixture-weighted mean over the scales, one row per output.

        The mixture itself is not a linear model, so `decision_function` and `predict` differ from `X @ coef_.T`.
        """
        return self._coefficients()[0]

    @property
    def intercept_(self) -> Vector:
        """The weight of the intercept, as in `coef_`, with the offset of the labels where a loss has one."""
        return self._coefficients()[1]

    def _coefficients(self) -> tuple[Any, Vector]:
        self._check_numbered()
        if "coefficients_" not in self.__dict__:
            slots = np.arange(self.n_features_in_)
            if self.models_[0].classes is not None:
                self.coefficients_ = mean_class_weights(self.models_[0].engine, slots)
            else:
                parts = [mean_weights(model.engine, slots) for model in self.models_]
                self.coefficients_ = (
                    np.array([part.weights for part in parts]),
                    np.array([part.intercept for part in parts]),
                )
        coef, intercept = self.coefficients_
        return (csr_matrix(coef) if getattr(self, "is_sparse_", False) else coef), intercept

    def _check_numbered(self) -> None:
        check_is_fitted(self)
        if self.models_[0].spec.dim != max(2, self.n_features_in_):
            raise AttributeError("coef_ needs columns of numbers; the features of this table are hashed by name.")

    def sparsify(self) -> Self:
        """Give `coef_` as a SciPy CSR matrix from now on."""
        self._check_numbered()
        self.is_sparse_ = True
        return self

    def densify(self) -> Self:
        """Give `coef_` as an array from now on."""
        self._check_numbered()
        self.is_sparse_ = False
        return self

    @property
    def model_(self) -> Model:
        """The model, for `save`, `predict` on files and `certify`; with several classes one-vs-rest there are more."""
        check_is_fitted(self)
        if len(self.models_) > 1:
            raise AttributeError(f"there are {len(self.models_)} models, one per class; take them from models_.")
        return self.models_[0]

    @property
    def certificate_(self) -> StreamCertificate:
        """The certificate of all rows learned, against the model's own weights; needs `receipt=True`."""
        check_is_fitted(self)
        if len(self.models_) > 1:
            raise AttributeError(
                f"there are {len(self.models_)} certificates, one per class; take them from certificates_."
            )
        return self.certificates_[0]

    @property
    def certificates_(self) -> list[StreamCertificate]:
        """The certificate of each model: one, or with several classes one-vs-rest one per class, as in `classes_`."""
        from ftprl.receipt.certificate import own_certificate

        check_is_fitted(self)
        if not all(model.receipt for model in self.models_):  # who lists attributes expects this kind of error
            raise AttributeError("a certificate needs receipt=True, got an estimator without it; fit it with that.")
        return [own_certificate(one.engine).with_latest(one) for one in self.models_]

    @property
    def progressive_loss_(self) -> float:
        """The mean loss of the first pass, each row before it was learned; over all classes where there are several."""
        check_is_fitted(self)
        return float(np.mean([model.progressive.mean for model in self.models_]))

    def plot(self) -> Figure:
        """The progressive loss over the rows of `fit`, as a Matplotlib figure."""
        check_is_fitted(self)
        if not self.runs_:
            raise InvalidInput("plot needs the events of a run, got a model of partial_fit; call fit.")
        return self.runs_[0].plot()

    def __getstate__(self) -> dict[str, Any]:
        """For pickle: models as the bytes of their files, and no events of runs."""
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "runs_"} | {"runs_": []}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def is_frame(X: Any) -> bool:
    """Whether data is a frame of pandas, Polars or pyarrow."""
    if issparse(X) or isinstance(X, np.ndarray):
        return False
    return hasattr(X, "column_names") or hasattr(X, "columns")


def is_table(X: Any) -> bool:
    """Whether data is a frame with columns that are no numbers: these are read by name, as categories and text."""
    if issparse(X) or isinstance(X, np.ndarray):
        return False
    if hasattr(X, "schema") and hasattr(X, "column_names"):  # pyarrow
        return True
    kinds = getattr(X, "dtypes", None)
    if kinds is None or not hasattr(X, "columns"):
        return False
    return any(not _is_number(kind) for kind in list(kinds))


def _is_number(kind: Any) -> bool:
    if isinstance(kind, np.dtype):
        return kind.kind in "biuf"
    numeric = getattr(kind, "is_numeric", None)  # Polars
    return bool(numeric() if callable(numeric) else getattr(kind, "_is_numeric", False))


def _warn_once(of_models: Sequence[Iterable[Caution]]) -> None:
    """Warn of what was found in the training of some models, such as one per class: of each kind once."""
    found: dict[str, list[str]] = {}
    for cautions in of_models:
        for one in cautions:
            text = one.text.replace("train with order=random", "fit with shuffle=True")
            found.setdefault(one.kind, []).append(text)
    for first, *others in found.values():
        more = f" (so for {len(others) + 1} of {len(of_models)} models)" if set(others) - {first} else ""
        warn(first + more)


def _learn(model: Model, source: Source, order: Order) -> None:
    before, start, rows = TrainingHistory.from_dict(model.history), model.progress, 0
    for batch, _ in source.read():
        numbered = model.numbered(batch)
        if order.is_random:  # only now do rows have their numbers and their names
            model.engine.check_rows(numbered)
            model.engine.meet_names(numbered)
        order.add(numbered)
        rows += len(batch)
        _learn_due(model, order)
    order.finish()
    _learn_due(model, order)
    # The sum could differ from the engine's in the last bit.
    total = model.progress
    total = total if before.progressive == start else before.progressive + (total - start)
    # Without the record of rows to come, warnings and provenance, which are of the runs before.
    model.history = TrainingHistory(before.rows + rows, before.bad_rows, total, before.holdout).to_dict()
    model.provenance = None


def _learn_due(model: Model, order: Order) -> None:
    while (due := order.take(AT_ONCE)) is not None:
        model.learn(due.batch, has_met=order.is_random)


def _first_values(column: Any) -> list[Any]:
    return list(np.asarray(column[:SAMPLE_ROWS]).tolist())


def _mismatch(known: list[str], names: list[str]) -> ValueError:
    """The error of a table that has not the columns of `fit`, in their order."""
    lists = (
        ("missing", [name for name in known if name not in names]),
        ("unseen", [n for n in names if n not in known]),
    )
    wrong = "; ".join(f"{what} {listed(some)}" for what, some in lists if some) or "they are in another order"
    return ValueError(
        f"The feature names should match those that were passed during fit: {wrong}; pass X[feature_names_in_]."
    )
