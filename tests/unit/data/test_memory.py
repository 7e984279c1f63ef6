"""Data in memory: CSR matrices and batches are read, learned, resumed and verified as files are."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import ftprl
from ftprl import data
from ftprl.data import Batch
from ftprl.errors import InvalidInput
from ftprl.receipt import certify_model, make_receipt, verify_receipt, write_receipt
from oracles.batches import keys, rows_of

ROWS, COLUMNS = 3000, 40


def matrix(seed: int = 1, rows: int = ROWS) -> tuple[sp.csr_matrix, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = sp.random(rows, COLUMNS, density=0.2, format="csr", random_state=rng)
    X.data = rng.normal(size=X.nnz).astype(np.float32).astype(np.float64)
    y = np.where(X @ rng.normal(size=COLUMNS) + rng.normal(size=rows) > 0, 1.0, -1.0)
    return X, y


def as_libsvm(path: Path, X: sp.csr_matrix, y: np.ndarray) -> Path:
    lines = []
    for i in range(X.shape[0]):
        own = slice(X.indptr[i], X.indptr[i + 1])
        pairs = " ".join(
            f"{j}:{v!r}" for j, v in zip(X.indices[own].tolist(), X.data[own].tolist(), strict=True) if v != 0
        )
        lines.append(f"{y[i]:g} {pairs}\n")
    path.write_text("".join(lines))
    return path


def stopped(source: Any, path: Path, **options: Any) -> None:
    """Return a run that is interrupted right after its second checkpoint."""
    seen = 0

    def listener(event: dict[str, Any]) -> None:
        nonlocal seen
        seen += event["event"] == "checkpoint"
        if seen == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ftprl.train(source, checkpoint=path, every=700, listener=listener, **options)


def test_a_matrix_is_read_as_its_libsvm_file(tmp_path: Path) -> None:
    X, y = matrix()
    X.data[::50] = 0.0  # zeros are left out, as they are in files
    from_file = data.open(as_libsvm(tmp_path / "a.libsvm", X, y), dim=COLUMNS)
    in_memory = data.open(X, y=y)
    assert [keys(row) for row in rows_of(in_memory.batches())] == [keys(row) for row in rows_of(from_file.batches())]
    weights = data.open(X, y=y, weight=np.arange(ROWS)).batches(start_row=5)
    assert next(weights).weight[0] == 5


def test_columns_that_stand_twice_are_summed(tmp_path: Path) -> None:
    X = sp.csr_matrix((np.array([1.0, 2.0, 0.5, 1.0, -1.0]), [3, 0, 3, 1, 1], [0, 3, 5]), shape=(2, 4))
    assert not X.has_canonical_format
    rows = rows_of(data.open(X).batches())
    assert [row.features for row in rows] == [{3: 1.5, 0: 2.0}, {}]


@pytest.mark.parametrize("options", [{}, {"scale": 0.1}, {"passes": 2, "holdout": 7}, {"float64": True}])
def test_training_in_memory_gives_the_model_of_the_file(tmp_path: Path, options: dict[str, Any]) -> None:
    X, y = matrix()
    path = as_libsvm(tmp_path / "a.libsvm", X, y)
    dtype = "float64" if options.get("float64") else "float32"
    one = ftprl.train(data.open(path, dim=COLUMNS, dtype=dtype), **options)
    source = data.open(X, y=y, dtype=dtype)
    two = ftprl.train(source, **options)
    np.testing.assert_array_equal(one.model.weights(), two.model.weights())
    assert one.progressive == two.progressive
    assert one.holdout == two.holdout
    batches = [batch for batch, _ in source.read()]
    three = ftprl.train(data.open(batches, dim=COLUMNS, dtype=dtype), **options)
    np.testing.assert_array_equal(three.model.weights(), one.model.weights())


def test_predictions_of_matrices_batches_and_libsvm_agree(tmp_path: Path) -> None:
    X, y = matrix()
    model = ftprl.train(data.open(X, y=y), output=tmp_path / "m").model
    path = as_libsvm(tmp_path / "a.libsvm", X, y)
    expected = model.predict(path)
    np.testing.assert_array_equal(model.predict(X), expected)
    np.testing.assert_array_equal(model.predict(sp.csr_array(X)), expected)
    np.testing.assert_array_equal(model.predict([Batch.from_csr(X[:7]), Batch.from_csr(X[7:])]), expected)
    np.testing.assert_array_equal(ftprl.load(tmp_path / "m").predict(X), expected)
    np.testing.assert_array_equal(ftprl.train(data.open(path, dim=COLUMNS)).model.predict(X), expected)
    with pytest.raises(InvalidInput, match="the model, which has numbers for them and no names, got files"):
        model.predict(as_libsvm(tmp_path / "a.vw", X, y), raw=True)


def test_a_model_of_names_takes_batches_and_no_matrix(tmp_path: Path) -> None:
    (tmp_path / "a.vw").write_text("1 | a b\n-1 | b c\n" * 5)
    model = ftprl.train(tmp_path / "a.vw", bits=10).model
    batches = list(data.open(tmp_path / "a.vw", dim=1024).batches())
    np.testing.assert_array_equal(model.predict(batches), model.predict(tmp_path / "a.vw"))
    with pytest.raises(InvalidInput, match="whose names are hashed by format 'vw', got a NumPy array or SciPy matrix"):
        model.predict(sp.csr_matrix((2, 1024)))


@pytest.mark.parametrize("passes", [1, 2])
def test_a_run_is_resumed_with_the_same_rows(tmp_path: Path, passes: int) -> None:
    X, y = matrix()
    whole = ftprl.train(data.open(X, y=y), passes=passes, output=tmp_path / "whole")
    stopped(data.open(X, y=y), tmp_path / "part", passes=passes)
    ftprl.train(data.open(X, y=y), resume=tmp_path / "part", output=tmp_path / "resumed")
    assert (tmp_path / "resumed").read_bytes() == (tmp_path / "whole").read_bytes()
    learned_again = 0 if passes == 1 else whole.best_pass  # passes are compared, and then all rows learned in the best
    assert (learned_again in (1, 2)) == (passes == 2)
    assert whole.rows == (passes + learned_again) * ROWS
    batches = [Batch.from_csr(X[:100], y[:100]), Batch.from_csr(X[100:], y[100:])]
    ftprl.train(batches, resume=tmp_path / "part", output=tmp_path / "from batches")
    assert (tmp_path / "from batches").read_bytes() == (tmp_path / "whole").read_bytes()


def test_other_rows_are_refused(tmp_path: Path) -> None:
    X, y = matrix()
    stopped(data.open(X, y=y), tmp_path / "part")
    other = X.copy()
    other.data[-1] += 1.0
    with pytest.raises(InvalidInput, match="resume= needs the data of the checkpoint, expected the same 3000 rows"):
        ftprl.train(data.open(other, y=y), resume=tmp_path / "part")
    with pytest.raises(InvalidInput, match="expected 3000 rows, got 2999; pass it"):
        ftprl.train(data.open(X[:-1], y=y[:-1]), resume=tmp_path / "part")
    path = as_libsvm(tmp_path / "a.libsvm", X, y)
    with pytest.raises(InvalidInput, match="resume= needs the data of the checkpoint"):
        ftprl.train(path, resume=tmp_path / "part")


def test_a_receipt_of_data_in_memory_is_verified(tmp_path: Path) -> None:
    X, y = matrix(rows=600)
    source = data.open(X, y=y)
    run = ftprl.train(source, receipt=True, passes=2, output=tmp_path / "m")
    assert run.events[-1]["digests"] == [{"file": "<memory>", **source.fingerprint()}]
    write_receipt(tmp_path / "m.receipt", make_receipt(run.model, certify_model(run.model)))
    assert verify_receipt(tmp_path / "m.receipt", source).confirmed
    assert not verify_receipt(tmp_path / "m.receipt", data.open(X, y=-y)).confirmed


def test_labels_of_two_classes() -> None:
    X, _ = matrix(rows=4)
    zeros = np.array([1.0, 0.0, np.nan, 1.0])
    (batch,) = data.open(X, y=zeros).batches()
    np.testing.assert_array_equal(batch.y, [1.0, -1.0, np.nan, 1.0])
    (batch,) = data.open(X, y=[3, 5, 3, 7], positive=3).batches()
    np.testing.assert_array_equal(batch.y, [1.0, -1.0, 1.0, -1.0])
    (batch,) = data.open(X, y=[3, 5, 3, 7], loss="squared").batches()
    np.testing.assert_array_equal(batch.y, [3, 5, 3, 7])
    with pytest.raises(
        InvalidInput, match=r"logistic needs the labels 1 and -1, or 1 and 0, got 3, 5, 7; pass positive= with"
    ):
        data.open(X, y=[3, 5, 3, 7])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"y": [1, 1]}, "y= needs one entry for each of the 4 rows, got shape (2,)"),
        ({"weight": [[1]] * 4}, "weight= needs one entry for each of the 4 rows"),
        ({"dim": 30}, "dim= needs to be at least 40, the number of columns, got 30; raise it."),
        ({"label": "y"}, "label= needs a table with named columns, got data in memory; drop it."),
        ({"sep": ";"}, "sep= needs a table with named columns"),
        ({"format": "vw"}, "format= is for files, got 'vw' for a NumPy array or SciPy matrix; drop it."),
        ({"intercept": True}, "intercept= is for files, got data in memory; add a column of ones."),
    ],
)
def test_bad_arguments(options: dict[str, Any], message: str) -> None:
    X, _ = matrix(rows=4)
    with pytest.raises(InvalidInput) as caught:
        data.open(X, **options)
    assert str(caught.value).startswith(message)


def test_what_is_no_data_is_refused() -> None:
    class Frame:
        """A container that iterates over the names of its columns, as data frames do."""

        def __iter__(self) -> Any:
            return iter(["data"])

    for wrong in (Frame(), {"a": 1}, [1.0, 2.0], b"a.vw", None, 3):
        with pytest.raises(
            InvalidInput, match=r"data needs paths, Batch objects, a data frame .* iterator of these, got"
        ):
            data.open(wrong)
    with pytest.raises(InvalidInput, match=r"data needs a CSR matrix with two dimensions, got coo; call \.tocsr\(\)"):
        data.open(matrix()[0].tocoo())
    with pytest.raises(InvalidInput, match="y= is for a matrix, got Batch objects, which have their own"):
        data.open([Batch.from_rows([{0: 1.0}])], y=[1])
    with pytest.raises(InvalidInput, match="y= is for data in memory, got files"):
        data.open("a.vw", y=[1])


def test_positions_and_settings_of_data_in_memory() -> None:
    X, y = matrix()
    source = data.open(X, y=y)
    assert isinstance(source, data.Source)
    (_, _), (_, here) = list(data.open([Batch.from_csr(X[:9]), Batch.from_csr(X[9:])]).read())
    assert (here.rows, here.to_dict()["offset"]) == (9, 9)
    again = source.position(json.loads(json.dumps(here.after(3).to_dict())))
    assert next(source.read(again))[0].first_row == 12
    with pytest.raises(InvalidInput, match="a position needs counts of at least 0, got"):
        source.position({"rows": 3})
    assert data.open(X, y=y, **source.to_dict()).to_dict() == source.to_dict()
    assert source.describe().to_dict()["files"] == ["<memory>"]
