"""A trained model: an engine with what is needed to read data as it was read, saved to and loaded from one file."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, final

import numpy as np
from numpy.typing import NDArray

from ftprl import data as readers
from ftprl._core import HASH_VERSION
from ftprl.data import Batch, Source
from ftprl.data.files import shown
from ftprl.data.formats import are_paths
from ftprl.data.kinds import BESIDE
from ftprl.data.parts import has_no_labels
from ftprl.errors import BadModel, FtprlError, InvalidInput, OutOfMemory, warn
from ftprl.linear import model_file
from ftprl.linear.admission import Admission
from ftprl.linear.classes import ClassTable, Label, known_chances, shown_label, whole_as_ints
from ftprl.linear.engine import Engine
from ftprl.linear.experts import uncertainty
from ftprl.linear.mixture import Mixture
from ftprl.linear.names import Names
from ftprl.linear.spec import Spec
from ftprl.linear.state import PROVENANCE, few_cells, restore, tensors_of
from ftprl.linear.totals import LossTotals
from ftprl.runlog.rows import Caution, checked, measured, name_of_check

if TYPE_CHECKING:
    from ftprl.confidence import RunConfidence
    from ftprl.data.tables import FrameBatches
    from ftprl.evaluation import ClassEvaluation, Evaluation
    from ftprl.linear.explain import Explanation
    from ftprl.linear.one_row import RowLearner

Vector = NDArray[np.float64]
START = "start"  # the tensor that holds it
ADMISSION = "admission"  # likewise
WAITING = "waiting."  # how the names begin of those that hold rows whose labels have not arrived
_ROWS_AT_ONCE = 16384  # of a frame; longer ones are parsed by threads while rows are scored
_LISTED = 0.9  # of the cells, below which a list of them is the smaller file


@final
class Model:
    """An `Engine` with `reading` (how its data is read) and `history` (what it has read), as plain JSON values.

    `checkpoint` is the state of the unfinished run, in a checkpoint, otherwise None. `provenance` is what a receipt
    needs besides the engine, or None without one. Both are plain JSON values here; `ftprl.training` and
    `ftprl.receipt` parse them.

    >>> model = Model(Engine(Spec(dim=4)))
    >>> model.learn(Batch.from_rows([{0: 1.0}], y=[1])).rows
    1
    >>> model.occupied
    1
    """

    def __init__(
        self,
        engine: Engine,
        reading: Mapping[str, Any] | None = None,
        *,
        history: Mapping[str, Any] | None = None,
        checkpoint: Mapping[str, Any] | None = None,
        provenance: Mapping[str, Any] | None = None,
        names: Names | None = None,
        classes: ClassTable | None = None,
    ) -> None:
        self.engine = engine
        if engine.bounds is not None and "format" in (reading or {}):
            engine.bounds.is_named = (reading or {})["format"] not in readers.NUMBERED
        self.reading = dict(reading or {})
        self._row_learner: RowLearner | None = None
        self._known_namespaces: tuple[int, tuple[str, ...]] | None = None  # of so many names
        self._frames: tuple[Engine, FrameBatches | None] | None = None
        self._history: dict[str, Any] = dict(history or {})
        self.checkpoint = None if checkpoint is None else dict(checkpoint)
        self.provenance = None if provenance is None else dict(provenance)
        self.names = names  # of its features, if they are kept
        if classes is None and engine.spec.classes:  # labels are the numbers of classes
            classes = ClassTable(engine.spec.classes, map(float, range(engine.classes)))
        self.class_table = classes  # with a loss of several classes
        self.is_compact = False  # whether only what predictions need is left
        self.start: bytes | None = None  # in a run that goes back to it: the model before its first row
        self.admission: Admission | None = None  # of rare features
        self.waiting: dict[str, NDArray[Any]] = {}  # in a checkpoint: tensors of rows whose labels have not arrived
        self.file_digest, self.file_size = "", 0  # of the file it was loaded from, if any

    # ---- the engine, as users of a model see it ----

    @property
    def spec(self) -> Spec:
        """The settings, without the scales that were dropped."""
        return self.engine.spec

    @property
    def receipt(self) -> bool:
        """Whether the sums of a receipt are kept."""
        return self.engine.receipt

    @property
    def progress(self) -> LossTotals:
        """The loss of all rows that were learned, each before it was."""
        return self.engine.progress

    @property
    def mixture(self) -> Mixture | None:
        """The weights and total losses of the experts; None with one scale, which mixes nothing."""
        return self.engine.mixture

    @property
    def leader(self) -> int:
        """The number of the scale with the smallest total loss."""
        return self.engine.leader

    def learn(self, batch: Batch, **more: Any) -> LossTotals:
        """Predict and then learn each row of a batch; `more` as for `Engine.learn`."""
        return self.engine.learn(batch, **more)

    def score(self, batch: Batch) -> Vector:
        """Return the scores of a batch: `Engine.score`."""
        return self.engine.score(batch)

    def touched(self) -> NDArray[np.uint32]:
        """Return the cells that were touched."""
        return self.engine.touched()

    def bias(self, scale: int | None = None) -> float:
        """Return the weight of the intercept, as in `weights`."""
        return self.engine.bias(scale)

    def __repr__(self) -> str:
        return f"Model({self.spec.loss}, {self.occupied} of {self.spec.dim} cells)"

    def _repr_html_(self) -> str:
        """As a notebook shows it."""
        from ftprl.draw.card import card

        spec, progress, learned = self.spec, self.progressive, self.progress.rows
        scales = ", ".join(f"{scale:g}" for scale in spec.scales)
        rows = [
            ("loss", spec.scalar_loss().unit or spec.loss),
            ("learning-rate scales", f"{len(spec.scales)}: {scales}" if spec.several else scales),
            ("rows learned", f"{learned:,}" + (" in several passes" if learned > progress.rows else "")),
            (
                "progressive loss",
                measured(spec.loss, progress.mean, progress.baseline_mean, progress.improvement),
            ),
            ("cells in use", f"{self.occupied:,} of {spec.dim:,}"),
        ]
        if self.positive is not None:
            rows.append(("positive label", self.positive))
        if (drawn := self.history.get("sample")) is not None:
            last = LossTotals.from_list(drawn)
            means = measured(spec.loss, last.mean, last.baseline_mean, last.improvement)
            rows.append(("learned last", f"{last.rows:,} rows, drawn at random from those of the last run: {means}"))
        if (check := self.history.get("check")) is not None:
            rows.append((name_of_check(check), checked(spec.loss, check)))
        rows += [("warning", caution.text) for caution in self.cautions]
        if self.names is not None:
            rows.append(("features with a name", f"{len(self.names):,}"))
        if self.receipt:
            rows.append(("receipt", "kept"))
        if spec.calibrate != "none":
            rows.append(("calibration", spec.calibrate))
        return card("Model", [*rows, ("reads", str(self.reading.get("format", "arrays")))])

    @property
    def progressive(self) -> LossTotals:
        """The loss of the rows in the first pass of each run, as each was predicted before it was learned."""
        known = LossTotals.from_list(self.history["progressive"]) if self.history else None
        if self.checkpoint is None:
            return known if known is not None and known.rows else self.progress
        state = self.checkpoint["state"]
        now = state["progressive"] or state.get("arrived") or self.progress.to_list()
        own = LossTotals.from_list(now) - LossTotals.from_list(state["began"])
        return own if known is None else known + own

    @property
    def occupied(self) -> int:
        """How many cells have been touched."""
        return len(self.touched())

    @property
    def history(self) -> dict[str, Any]:
        """What it has read in all its runs and row by row, as plain JSON values; empty before the first row."""
        row_learner = self._row_learner
        if row_learner is not None and (learned := row_learner.take_rows()):
            rows, bad_rows = (int(self._history.get(name, 0)) for name in ("rows", "bad_rows"))
            self._history = {
                "rows": rows + learned,
                "bad_rows": bad_rows,
                "progressive": self.progress.to_list(),
                "holdout": self._history.get("holdout", LossTotals(0.0, 0.0, 0, baseline=0.0).to_list()),
            }  # without a monitor, which has not seen these rows
            self.provenance = None  # likewise
        return self._history

    @history.setter
    def history(self, values: Mapping[str, Any]) -> None:
        self._history, self._row_learner = dict(values), None

    @property
    def classes(self) -> tuple[Label, ...] | None:
        """The labels of the classes, numbers or text, in the order of their columns; None with a loss of one score.

        With two classes and one score, `positive` is the label whose probability is predicted.

        A class is there once a row of it was learned, or if it was declared. Whole numbers are ints, unless another
        label has a fraction.
        """
        return None if self.class_table is None else whole_as_ints(self.class_table.labels[: self.engine.classes])

    @property
    def positive(self) -> str | None:
        """The label that counts as 1, of which predictions are the probability; None for a loss without two classes.

        If training named none it is 1 against 0 or -1, yes against no, or true against false, whatever the data has.
        """
        if not self.spec.scalar_loss().binary:
            return None
        named = self.reading.get("positive")
        return "1, yes or true" if named is None else str(named)

    @property
    def class_names(self) -> list[str]:
        """The labels of the classes as they are printed."""
        return [shown_label(label) for label in self.classes or ()]

    def numbered(self, batch: Batch) -> Batch:
        """A labelled batch with the numbers of its classes as labels; as it is with a loss of one score."""
        return batch if self.class_table is None else self.class_table.numbered(batch, batch.label_texts)

    @property
    def cautions(self) -> list[Caution]:
        """The warnings of the runs that trained it."""
        return [
            Caution(kind, text, tuple(options)) for kind, (text, *options) in self.history.get("cautions", {}).items()
        ]

    @property
    def confidence(self) -> RunConfidence | None:
        """What to expect of rows to come, from all rows it was trained on; None for a model without such a record."""
        numbers = self.history.get("monitor", ())
        if not numbers:
            return None
        from ftprl.confidence import RunMonitor

        is_random = self.history.get("order", {}).get("order") == "random"
        return RunMonitor(self.spec.loss, numbers).confidence(is_random=is_random)

    @property
    def shared_bounds(self) -> tuple[int, int | None]:
        """How many cells have bounds by name, and how many of them several names share; None if not known."""
        if self.engine.bounds is None:
            return 0, 0
        cells = self.engine.bounds.cells()[0]
        if not self.engine.bounds.is_named:
            return len(cells), 0
        shared = self.engine.bounds.table.shared
        return len(cells), None if shared < 0 else shared

    def weights(self, scale: int | None = None) -> Vector:
        """The point played in each cell; of several scales by the one of this number, or else by the leading one."""
        return self.engine.weights(scale)

    def open(self, data: Any, **more: Any) -> Source:
        """Data read as in training, except that labels and weights do not matter; `more` as for `ftprl.data.open`."""
        data = readers.as_data(data)
        kept = {**self.reading, "dim": self.spec.dim, "seed": self.spec.seed}
        readers.check_format(kept, data, more.get("format"))
        options = {**readers.settings_for(kept, data, more.get("format")), **more}
        columns = options.get("columns")
        if columns is not None:
            options["columns"] = {name: "ignore" if kind in BESIDE else kind for name, kind in columns.items()}
        if "namespaces" in options:
            options["namespaces"] = self._namespaces()
        loss = "squared" if self.class_table is None else self.spec.loss  # any number, or any label at all
        return readers.open(data, **{**options, "loss": loss, "positive": None})

    def open_labelled(self, data: Any, **more: Any) -> Source:
        """Data read as in training, with its labels and weights; `more` as for `ftprl.data.open`."""
        data = readers.as_data(data)
        spec = self.spec
        kept = {"dim": spec.dim, "seed": spec.seed, "loss": spec.loss, **self.reading}
        readers.check_format(kept, data, more.get("format"))
        options = {**readers.settings_for(kept, data, more.get("format")), **more}
        if "namespaces" in options:
            options["namespaces"] = self._namespaces()
        is_beside = options.get("y") is not None or not (are_paths(data) or has_no_labels(data))
        options = self._with_label(options, is_beside=is_beside)
        return readers.open(data, **{"labelled": True, **options})

    def _with_label(self, options: dict[str, Any], *, is_beside: bool) -> dict[str, Any]:
        """Reading options with the column of the label, which a model that was trained with `y=` does not know."""
        columns = options.get("columns")
        label = options.get("label")
        if not columns:
            return options
        known = next((name for name, kind in columns.items() if kind == "label"), None)
        if known is None and label is None and not is_beside:
            raise InvalidInput(
                "label= needs the column with the labels, which a model that was trained with y= does not know, got"
                " none; pass its name, or y=.",
                option="label",
            )
        if known is None and columns.get(str(label)) not in (None, "ignore"):
            raise InvalidInput(
                f"label= needs a column that is no feature of the model, got {label!r}; pass another.", option="label"
            )
        if known is not None and label not in (None, known):
            raise InvalidInput(f"label= comes from the model, {known!r}, got {label!r}; drop it.", option="label")
        if known is not None or label is None:
            return {**options, "label": None}
        order = options.get("order")
        new = {} if order is None else {"order": [*(name for name in order if name != label), str(label)]}
        return {**options, **new, "columns": {**columns, str(label): "label"}, "label": None}

    def _namespaces(self) -> tuple[str, ...]:
        """The namespaces of the features of a model of VW text, "" for the default one; none if not all are known."""
        names = self.names
        if names is None or not names.has_all:
            return ()
        if self._known_namespaces is None or self._known_namespaces[0] != len(names):
            found = {name.partition("^")[:2] for name in names.all()}
            is_product = "*" if self.reading.get("interactions") else "^"
            own = {group if caret else "" for group, caret in found if is_product not in group}
            self._known_namespaces = len(names), tuple(sorted(own))
        return self._known_namespaces[1]

    def predict(self, data: Any, *, raw: bool = False) -> Vector:
        """One mean or probability per row of a batch or of what `open` takes; with `raw` the scores.

        A row that a `Source` with `on_bad_row="skip"` leaves out has NaN, so that every row has its place. With several
        classes there is one column per class, in the order of `classes`: their probabilities, or with `raw` logarithms
        of them; `predict_classes` gives the most probable class.

        While another thread learns, each batch is predicted with the state between two of its calls of `Engine.learn`.
        """
        scores = self._array_scores(data) if isinstance(data, np.ndarray) else None
        if scores is None:
            nothing = np.empty(0 if self.class_table is None else (0, self.engine.classes))
            scores = self._of_rows(data, self.engine.score, nothing)
        return scores if raw else self.mean(scores)

    def _array_scores(self, data: NDArray[Any]) -> Vector | None:
        """Return the scores of an array whose columns are all dense; None where it has to be read in batches."""
        is_usual = type(data) is np.ndarray and data.ndim == 2 and data.dtype.kind in "biuf" and len(data) > 0
        if not is_usual or self.reading.get("format") != "arrays" or self.reading.get("features") != data.shape[1]:
            return None
        from ftprl.linear.experts import score_array

        return score_array(self.engine, data, narrow=self.reading.get("dtype", "float32") == "float32")

    def _of_rows(self, data: Any, of_batch: Callable[[Batch], Vector], nothing: Vector) -> Vector:
        """What `of_batch` gives for all rows of some data, with NaN for those that are left out."""
        if isinstance(data, Batch):
            return of_batch(data)
        if self.reading.get("format") == "vw" and (lines := self._as_lines(data)) is not None:
            from ftprl.linear.row_input import read_lines

            return of_batch(read_lines(self.reading, self.spec, lines))
        from ftprl.data.frames import is_frame  # most runs do without

        is_short = is_frame(data) and hasattr(data, "__len__") and 0 < len(data) <= _ROWS_AT_ONCE
        if is_short and (reader := self._frame_batches(data)) is not None:
            return np.concatenate(list(map(of_batch, reader.batches_of(data))))
        source = data if isinstance(data, Source) else self.open(data)
        parts, left_out = [nothing], Counter[int]()
        for batch, _ in source.read():
            parts.append(of_batch(batch))
            left_out.update(source.take_left_out())
        left_out.update(source.take_left_out())
        return np.insert(np.concatenate(parts), sorted(left_out.elements()), np.nan, axis=0)

    def _as_lines(self, data: Any) -> list[str | bytes] | None:
        """Lines of VW text for a model of it: each has a bar, and is no path of a file; None for anything else."""
        lines = [data] if isinstance(data, str | bytes) else data
        if not isinstance(lines, list | tuple) or not lines or not all(isinstance(line, str | bytes) for line in lines):
            return None
        has_bars = all((b"|" if isinstance(line, bytes) else "|") in line for line in lines)
        return list(lines) if has_bars and not os.path.exists(lines[0]) else None

    def _frame_batches(self, frame: Any) -> FrameBatches | None:
        """What turns frames into batches, for as long as the engine is the same; None if each decides for itself."""
        if self._frames is None or self._frames[0] is not self.engine:
            import pyarrow as pa

            from ftprl.data.tables import FrameBatches, TableSource

            source, reader = self.open(pa.table({})), None
            if isinstance(source, TableSource) and source.settings.has_known_columns:
                reader = FrameBatches(source.settings)
            self._frames = self.engine, reader
        return self._frames[1]

    def uncertainty(self, data: Any) -> Vector:
        """How uncertain the prediction of each row is: how far one more such row could move its score.

        In log-odds for probabilities, otherwise in the unit of the score (docs/calibration.md). `data` as in `predict`;
        a row that is left out has NaN.

        >>> model = Model(Engine(Spec(dim=4)))
        >>> _ = model.learn(Batch.from_rows([{0: 1.0}] * 9, y=[1] * 9))
        >>> often, never = model.uncertainty(Batch.from_rows([{0: 1.0}, {3: 1.0}]))
        >>> bool(often < never)
        True
        """
        return self._of_rows(data, lambda batch: uncertainty(self.engine, batch), np.empty(0))

    def learn_one(self, x: Mapping[Any, Any] | str | bytes, y: Any, weight: float = 1.0) -> None:
        """Predict and learn one row, a dict by name: the same bits as training on the same rows (docs/one-row.md).

        With a model of VW text `x` may be a line of it, of which the features and the importance count.

        >>> from ftprl import train
        >>> model = train([{"city": "Ulm", "size": 2.0}, {"city": "Bonn", "size": 1.0}] * 5, [1, 0] * 5).model
        >>> model.learn_one({"city": "Ulm", "size": 3.0}, 1)
        >>> round(model.predict_one({"city": "Bonn", "size": 1.0}), 1)
        0.2
        """
        self.row_learner().learn(x, y, weight)

    def predict_one(self, x: Mapping[Any, Any] | str | bytes, *, raw: bool = False) -> float:
        """The mean or probability of one row, a dict by name or a line of VW text; with `raw` the score."""
        row = self.row_learner()
        if self.class_table is not None:
            raise InvalidInput("predict_one needs a loss of one score, got several classes; call predict_proba_one.")
        return row.score(x) if raw else row.mean(x)

    def predict_proba_one(self, x: Mapping[Any, Any] | str | bytes) -> dict[Label, float]:
        """With several classes the probability of each that is known, by its label."""
        if self.classes is None:
            raise InvalidInput(
                f"predict_proba_one needs a loss of several classes, got {self.spec.loss}; call predict_one."
            )
        return dict(zip(self.classes, self.row_learner().chances(x), strict=True))

    def row_learner(self) -> RowLearner:
        """What learns and scores dicts, for as long as the engine is the same."""
        known = self._row_learner
        if known is None or known.engine is not self.engine:
            _ = self.history  # with the rows of the engine before
            from ftprl.linear.one_row import RowLearner

            known = self._row_learner = RowLearner(self)
        return known

    def predict_classes(self, data: Any) -> NDArray[Any]:
        """The most probable class of each row, as its label: a number or text; None for a row that was left out."""
        if self.classes is None:
            raise InvalidInput(f"predict_classes needs a loss of several classes, got {self.spec.loss}; call predict.")
        chances, labels = self.predict(data), np.array([*self.classes, None], dtype=object)
        best = np.full(len(chances), -1)
        known = ~np.isnan(chances).any(axis=1)
        best[known] = chances[known].argmax(axis=1)
        return np.asarray(labels[best])

    def evaluate(
        self, data: Any, *, thresholds: Sequence[float] | float | None = None, by: str | None = None, **more: Any
    ) -> Evaluation | ClassEvaluation:
        """The usual metrics on data with labels, each with an interval and beside the base rate's (docs/evaluate.md).

        `thresholds` are probabilities from which a row counts as positive, 0.5 by default (with the hinge losses
        scores, 0 by default); `by` is a column whose values are measured one by one.
        `more` as for `ftprl.data.open`: `y=` and `weight=` for data in memory.
        """
        from ftprl.evaluation import evaluate_classes, evaluate_predictions
        from ftprl.linear.scoring import Systems

        data = readers.as_data(data)
        if thresholds is not None and self.class_table is not None:
            raise InvalidInput("threshold= is for two classes, got several; drop it.", option="threshold")
        source = data if isinstance(data, Source) else self.open_labelled(data, **more)
        systems = Systems.of_model(self, source, data, by)
        for caution in self.cautions:
            warn(f"of the training of this model: {caution.text}")
        result: Evaluation | ClassEvaluation
        if self.class_table is not None:
            result = evaluate_classes(systems.blocks(), systems.predictors[0].name, self.class_names, by=by)
        else:
            result = evaluate_predictions(
                systems.blocks(), systems.predictors[0].name, systems.loss, thresholds=thresholds, by=by
            )
        if source.bad_rows:
            warn(f"left out {source.bad_rows} bad rows; the first: {shown(source.first_bad or '')[:400]}")
        for caution in systems.of_labels:
            warn(caution.text)
        return result

    def mean(self, scores: Vector) -> Vector:
        """What scores predict, by the loss: the probability of +1, the mean of the label, or the score itself.

        With several classes the probability of each, which sum to 1: what is left for classes to come is not shown.
        """
        if self.class_table is not None:
            return known_chances(scores)
        return self.engine.loss.mean(scores)

    def explain(self, row: Any, label: Any = None) -> Explanation:
        """What each feature adds to the score of one row, by name: docs/names.md.

        With several classes to that of class `label`, by default the most probable one: docs/classes.md.

        `row` is a dict, a frame or an array with one row, or a line of text: of the model's own format, a CSV line with
        the model's columns, or a JSON object.
        """
        from ftprl.linear.explain import explain

        return explain(self, row, label)

    def weights_table(self) -> Any:
        """The weights by name as a pyarrow table, the largest first: docs/names.md.

        Its columns are `name`, `cell`, `weight` (the coefficient of its value), `unit_weight` (with the feature at its
        unit), `unit`, and `seen` (rows that had the feature; null with a single scale).
        """
        from ftprl.linear.weights import weights_table

        return weights_table(self)

    def save(self, path: str | os.PathLike[str]) -> str:
        """Write the model, atomically; returns its digest. Only touched cells are kept when they are under half.

        While another thread learns, the state between two of its calls of `Engine.learn` is saved; it waits meanwhile.
        """
        with self.engine.unchanged():
            return model_file.write(path, self._content(), self._tensors())

    def write(self, out: BinaryIO) -> str:
        """Write the bytes of the file to a stream; returns their digest."""
        with self.engine.unchanged():
            return model_file.write_to(out, self._content(), self._tensors())

    def to_bytes(self, *, names: bool = True) -> bytes:
        """The bytes that `save` writes; `from_bytes` reads them. Those of the names may be left out."""
        with self.engine.unchanged():
            return model_file.to_bytes(self._content(names), self._tensors(names))

    def size_in_bytes(self) -> int:
        """The size of the file that `save` writes."""
        with self.engine.unchanged():
            return model_file.size(self._content(), self._tensors())

    def compact(self) -> Model:
        """A smaller model that predicts the same, to the bit, and cannot be trained further or certified.

        Cells whose weight is 0 in every scale are left out, as are the names of features, the sums of a receipt and
        the state of a run.

        >>> model = Model(Engine(Spec(dim=8, l1=5.0, scale=0.1)))
        >>> _ = model.learn(Batch.from_rows([{0: 1.0}, {3: 1.0}], y=[1, -1]))
        >>> model.occupied, model.compact().occupied
        (2, 0)
        """
        from ftprl.linear.derived import compacted

        small = Model(compacted(self.engine), self.reading, history=self.history, classes=self.class_table)
        small.is_compact = True
        return small

    def __reduce__(self) -> tuple[Any, ...]:
        """How a model is pickled and copied: as the bytes of its file."""
        return Model.from_bytes, (self.to_bytes(),)

    def _tensors(self, names: bool = True) -> dict[str, model_file.Tensor]:
        tensors = tensors_of(self.engine, _LISTED if self.is_compact else 0.5)
        _ = self.history  # rows that were learned one by one have no provenance
        if names and self.names is not None:
            tensors |= self.names.tensors()
        if self.provenance is not None:  # it grows with every run, and a header may not
            tensors[PROVENANCE] = model_file.pack(self.provenance)
        if self.start is not None:
            tensors[START] = model_file.pack_bytes(self.start)
        if self.admission is not None:
            tensors[ADMISSION] = model_file.pack_bytes(self.admission.to_bytes())
        return tensors | self.waiting

    def digest(self) -> str:
        """Return the SHA-256 in the header of the file that `save` writes: it covers the whole file."""
        with self.engine.unchanged():
            return model_file.digest_of(self._content(), self._tensors())

    def state_digest(self) -> str:
        """The SHA-256 of all that was learned; it does not depend on the file, its header or the settings."""
        with self.engine.unchanged():
            return model_file.digest_of_tensors(tensors_of(self.engine))

    def _content(self, names: bool = True) -> dict[str, Any]:
        return {
            **({} if self.names is None or not names else {"names": self.names.content()}),
            **({"compact": True} if self.is_compact else {}),
            **({} if self.class_table is None else {"classes": list(self.class_table.labels)}),
            **({"declared_classes": True} if self.class_table is not None and self.class_table.declared else {}),
            "hash_version": HASH_VERSION,
            "history": self.history,
            "reading": self.reading,
            "receipt": self.receipt,
            "run": self.checkpoint,
            "spec": self.spec.to_dict(),
        }

    def check_size(self) -> None:
        """Refuse, before any work, settings that would not fit into a file after it."""
        model_file.check_header(self._content())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Model:
        """The model that `save` wrote: learning goes on from it bit for bit."""
        return cls._from_file(os.fspath(path), model_file.load(path))

    @classmethod
    def from_bytes(cls, body: bytes, name: str = "bytes") -> Model:
        """The model whose file has these bytes; `name` is where they come from, for messages."""
        return cls._from_file(name, model_file.parse(body, name))

    @classmethod
    def _from_file(cls, name: str, loaded: model_file.Loaded) -> Model:
        from ftprl.linear.loaded import check_content, check_reading, classes_of, names_of, provenance_of

        content = loaded.content
        try:
            check_content(content)
            spec = Spec.from_dict(content["spec"])
            check_reading(content["reading"], spec)
            start = loaded.tensors.pop(START, None)
            waiting = [name for name in loaded.tensors if name.startswith(WAITING)]
            late = {name: loaded.tensors.pop(name) for name in waiting}
            names = names_of(content, loaded.tensors, spec.dim)
            packed = loaded.tensors.pop(ADMISSION, None)
            admission = None
            if packed is not None:
                admission = Admission.from_bytes(model_file.unpack_bytes(packed), spec.dim)
            provenance, tensors = provenance_of(loaded.tensors)
            receipt = content["receipt"]
            known = len(tensors["baseline.classes"]) if spec.classes else 0
            classes = classes_of(content, spec, known)
            few = few_cells(spec, tensors) if content.get("compact") else None
            engine = Engine(spec, receipt=receipt, classes=known, slots=few)
            restore(engine, tensors)
        except BadModel as wrong:
            raise BadModel(f"{name}: {wrong}") from None
        except OutOfMemory as wrong:
            raise OutOfMemory(f"{name}: {wrong}", option=wrong.options) from None
        except (FtprlError, KeyError, TypeError, ValueError, IndexError, OverflowError) as wrong:
            raise BadModel(f"{name}: expected a whole model, got {shown(str(wrong))[:200]}; train it again.") from None
        model = cls(
            engine,
            content["reading"],
            history=content.get("history"),
            checkpoint=content.get("run"),
            provenance=provenance,
            names=names,
            classes=classes,
        )
        model.is_compact = bool(content.get("compact", False))
        model.start = None if start is None else model_file.unpack_bytes(start)
        model.admission = admission
        model.waiting = late
        model.file_digest, model.file_size = loaded.sha256, loaded.size
        return model


def load(path: str | os.PathLike[str]) -> Model:
    """The model in a file."""
    return Model.load(path)
