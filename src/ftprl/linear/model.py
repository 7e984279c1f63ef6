"""A trained model: an engine with what is needed to read data as it was read, saved to and loaded from one file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ftprl import data as readers
from ftprl._core import HASH_VERSION
from ftprl.data import Batch, Source
from ftprl.data.files import shown
from ftprl.errors import BadModel, FtprlError, InvalidInput
from ftprl.linear import model_file
from ftprl.linear.engine import Engine
from ftprl.linear.spec import Spec
from ftprl.linear.tensors import restore, tensors_of

Vector = NDArray[np.float64]
PROVENANCE = "provenance"  # the tensor that holds it
_OF_RECEIPTS = ("S", "calibration", "mixture.sums")  # tensors that only a receipt needs


@final
class Model:
    """An `Engine` with `reading` (how its data is read) and `history` (what it has read), as plain JSON values.

    `run` is the state of the unfinished run in a checkpoint, otherwise None. `provenance` is what a receipt needs
    besides the engine, or None without one. Both are plain JSON values here;
    `ftprl.training` and `ftprl.receipt` parse them.

    >>> model = Model(Engine(Spec(loss="squared", dim=4)))
    >>> model.engine.learn(Batch.from_rows([{0: 1.0}], y=[1])).rows
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
        run: Mapping[str, Any] | None = None,
        provenance: Mapping[str, Any] | None = None,
    ) -> None:
        self.engine = engine
        self.reading = dict(reading or {})
        self.history = dict(history or {})
        self.run = None if run is None else dict(run)
        self.provenance = None if provenance is None else dict(provenance)

    def __repr__(self) -> str:
        return f"Model({self.engine.spec.loss}, {self.occupied} of {self.engine.spec.dim} cells)"

    @property
    def occupied(self) -> int:
        """How many cells have been touched."""
        return len(self.engine.touched())

    def weights(self, scale: int | None = None) -> Vector:
        """The point played in each cell; of several scales by the one of this number, or else by the leading one."""
        return self.engine.weights(scale)

    def open(self, data: Any, **more: Any) -> Source:
        """Data read as in training, except that labels and weights do not matter; `more` as for `ftprl.data.open`."""
        kept = {**self.reading, "dim": self.engine.spec.dim, "seed": self.engine.spec.seed}
        options = {**readers.settings_for(kept, data, more.get("format")), **more}
        columns = options.get("columns")
        if columns is not None:
            unread = ("label", "weight")
            options["columns"] = {name: "ignore" if kind in unread else kind for name, kind in columns.items()}
        return readers.open(data, **{**options, "loss": "squared", "positive": None})

    def predict(self, data: Any, *, raw: bool = False) -> Vector:
        """One mean or probability per row of a batch or of what `open` takes; with `raw` the scores.

        While another thread learns, each batch is predicted with the state between two of its calls of `Engine.learn`.
        """
        if not isinstance(data, Batch):
            source = data if isinstance(data, Source) else self.open(data)
            parts = [self.predict(batch, raw=raw) for batch, _ in source.read()]
            return np.concatenate(parts) if parts else np.empty(0)
        scores = self.engine.score(data)
        return scores if raw else self.mean(scores)

    def mean(self, scores: Vector) -> Vector:
        """What scores predict, by the loss: the probability of +1, the mean of the label, or the score itself."""
        return self.engine.spec.scalar_loss().mean(scores)

    def save(self, path: str | os.PathLike[str]) -> str:
        """Write the model, atomically; returns its digest. Only touched cells are kept when they are under half.

        While another thread learns, the state between two of its calls of `Engine.learn` is saved; it waits meanwhile.
        """
        with self.engine.unchanged():
            tensors = tensors_of(self.engine)
            if self.provenance is not None:  # it grows with every run, and a header may not
                tensors[PROVENANCE] = model_file.pack(self.provenance)
            return model_file.write(path, self._content(), tensors)

    def state_digest(self) -> str:
        """The SHA-256 of all that was learned; it does not depend on the file, its header or the settings."""
        with self.engine.unchanged():
            return model_file.digest_of_tensors(tensors_of(self.engine))

    def _content(self) -> dict[str, Any]:
        return {
            "hash_version": HASH_VERSION,
            "history": self.history,
            "reading": self.reading,
            "receipt": self.engine.receipt,
            "record": None,  # where earlier versions had the provenance
            "run": self.run,
            "spec": self.engine.spec.to_dict(),
        }

    def check_size(self) -> None:
        """Refuse, before any work, settings that would not fit into a file after it."""
        model_file.check_header(self._content())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Model:
        """The model that `save` wrote: learning goes on from it bit for bit."""
        content, tensors = model_file.read(path)
        name = os.fspath(path)
        try:
            if content["hash_version"] != HASH_VERSION:
                found = f"{content['hash_version']!r:.40}"
                raise BadModel(f"{name}: expected feature hash {HASH_VERSION}, got {found}; use its own ftprl.")
            for key in ("spec", "reading", "history"):
                if not isinstance(content[key], dict):
                    raise BadModel(f"{name}: expected {key} with names and values, got something else; train it again.")
            if not isinstance(content["run"], dict | None):
                raise BadModel(f"{name}: expected a run or none, got something else; train it again.")
            if not isinstance(content["receipt"], bool):
                raise BadModel(f"{name}: expected receipt true or false, got something else; train it again.")
            spec = Spec.from_dict(content["spec"])
            _check_reading(content["reading"], spec)
            packed = tensors.pop(PROVENANCE, None)
            provenance = content.get("record") if packed is None else model_file.unpack(packed)
            if not isinstance(provenance, dict | None):
                raise BadModel(f"{name}: expected a provenance or none, got something else; train it again.")
            receipt = content["receipt"]
            if (
                receipt and "rounding" not in tensors
            ):  # of a version whose receipts could not be proved: it still predicts
                receipt, provenance = False, None
                tensors = {key: a for key, a in tensors.items() if key not in _OF_RECEIPTS}
            engine = Engine(spec, receipt=receipt)
            restore(engine, tensors)
            return cls(
                engine, content["reading"], history=content["history"], run=content["run"], provenance=provenance
            )
        except BadModel:
            raise
        except (FtprlError, KeyError, TypeError, ValueError, IndexError, OverflowError) as wrong:
            raise BadModel(f"{name}: expected a whole model, got {shown(str(wrong))[:200]}; train it again.") from None


def load(path: str | os.PathLike[str]) -> Model:
    """The model in a file."""
    return Model.load(path)


def _check_reading(reading: Mapping[str, Any], spec: Spec) -> None:
    """Settings that `ftprl.data.open` takes, for a table of the same size and hash."""
    known = {"columns", "dim", "dtype", "format", "header", "intercept", "loss", "positive", "quote", "seed", "sep"}
    for name in reading:
        if name not in known:
            raise InvalidInput(f"the setting {name!r:.40} for reading, which this ftprl does not know")
    for name in ("dim", "seed"):
        if reading.get(name, getattr(spec, name)) != getattr(spec, name):
            raise InvalidInput(f"{name} {reading[name]!r:.40} for reading and {getattr(spec, name)} for learning")
