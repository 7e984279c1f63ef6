"""The random order of rows, which depends only on a seed, and the checks of the saved model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import ftprl
from ftprl._core import RowOrder, order_keys
from ftprl.data import Batch
from ftprl.data.order import Stage
from ftprl.errors import BadModel, FtprlWarning, InvalidInput
from ftprl.linear.frozen import LossMoments
from ftprl.linear.model import Model
from ftprl.receipt.certify import certify_model
from ftprl.receipt.document import make_receipt, write_receipt
from ftprl.receipt.row_order import ReplayedSample
from ftprl.receipt.verify import verify_receipt
from ftprl.training.sample import LearnedSample
from oracles import order_twin

SHARED = Path(__file__).parents[4] / "shared" / "data"


# ---- the plan of the order ----


def test_keys_are_splitmix64() -> None:
    """The first numbers of the generator started at 0, as its author published them."""
    known = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F, 0xF88BB8A8724C81EC, 0x1B39896A51A8749B]
    assert order_keys(0, 0, 5).tolist() == known == [order_twin.key(0, t) for t in range(5)]
    for seed in (1, 12345, 2**64 - 1):
        assert order_keys(seed, 7, 20).tolist() == [order_twin.key(seed, t) for t in range(7, 27)]


def _learned(
    rows: int, waiting: int, seed: int, sizes: NDArray[np.int64], most: int, cuts: Iterator[int]
) -> tuple[list[int], dict[str, int], list[int], int]:
    """Return the core's order of rows, the starts of its stages, the checked rows, and the most rows that waited."""
    order = RowOrder(seed, waiting, most, False)
    learned: list[int] = []
    starts: dict[str, int] = {}
    checked: list[int] = []
    waited = 0

    def take(count: int) -> None:
        nonlocal checked
        while (taken := order.take(count)) is not None:
            stage, arrays = taken
            if Stage(stage) is not Stage.PASSING and not starts:
                starts["last"] = len(learned)
            if stage >= Stage.THIRD_QUARTER and "check" not in starts:
                starts["check"] = len(learned)
                checked = order.checked(0, 10**9)[-1].tolist()
            if stage == Stage.LAST_QUARTER and "quarter" not in starts:
                starts["quarter"] = len(learned)
            numbers = arrays[-1].tolist()
            assert arrays[3].tolist() == [float(number) for number in numbers]  # labels are the numbers of rows
            assert arrays[0].tolist() == np.append(0, np.cumsum(sizes[numbers])).tolist()
            assert arrays[1].tolist() == [number for number in numbers for _ in range(sizes[number])]
            learned.extend(numbers)

    start = 0
    while start < rows:
        end = min(rows, start + next(cuts))
        some = np.arange(start, end)
        entries = np.repeat(some, sizes[some]).astype(np.uint32)
        indptr = np.append(0, np.cumsum(sizes[some])).astype(np.int64)
        values = np.ones(len(entries), np.float32)
        order.add(indptr, entries, values, some.astype(float), np.ones(len(some)), start)
        waited = max(waited, order.waiting)
        take(1 + start % 5)
        start = end
    order.finish()
    take(7)
    return learned, starts, checked, waited


@pytest.mark.parametrize("rows", [0, 1, 2, 999, 1000, 1001, 5000])
@pytest.mark.parametrize("waiting", [10, 300, 1000, 4999, 5000])
def test_rows_are_learned_as_the_plan_says(rows: int, waiting: int) -> None:
    sizes = np.arange(rows) % 4
    wanted = order_twin.plan(rows, waiting, 3, [24 + 8 * int(size) for size in sizes])
    learned, starts, checked, waited = _learned(rows, waiting, 3, sizes, 256 << 20, iter(lambda: 97, None))
    assert learned == wanted.order
    assert sorted(learned) == list(range(rows))
    assert checked == wanted.checked[: len(checked)]
    assert waited <= max(waiting, wanted.waited)
    if rows > 20 and waiting >= 300:
        assert (starts["last"], starts["check"], starts["quarter"]) == (wanted.last, wanted.check, wanted.quarter)
    if rows >= 1000:
        assert checked == list(range(rows - min(rows, waiting) // 10, rows))
        assert not set(learned[: starts.get("check", 0)]) & set(checked)


@given(
    st.integers(0, 1500),
    st.integers(10, 400),
    st.integers(0, 2**64 - 1),
    st.integers(1000, 60000),
    st.lists(st.integers(1, 200), min_size=1, max_size=5),
)
def test_neither_batches_nor_memory_can_be_seen(rows: int, waiting: int, seed: int, most: int, cuts: list[int]) -> None:
    """A limit in bytes counts as one in rows does."""
    sizes = (np.arange(rows) * 7) % 13
    endless = (cut for _ in range(10**6) for cut in cuts)
    learned, _, _, _ = _learned(rows, waiting, seed, sizes, most, endless)
    assert learned == order_twin.plan(rows, waiting, seed, [24 + 8 * int(size) for size in sizes], most).order


def test_the_last_quarter_is_a_random_draw_and_that_of_a_plain_shuffle() -> None:
    wanted = order_twin.plan(4000, 10_000)
    plain = sorted(range(4000), key=lambda t: order_twin.key(0, t))
    assert wanted.order[wanted.quarter :] == plain[len(plain) - len(wanted.order[wanted.quarter :]) :]
    more = order_twin.plan(60_000, 3000)
    drawn = np.array(more.order[more.quarter :]) / 60_000
    assert abs(drawn.mean() - 0.5) < 4 * 0.2887 / np.sqrt(len(drawn))
    assert abs(np.corrcoef(np.arange(len(drawn)), drawn)[0, 1]) < 4 / np.sqrt(len(drawn))
    assert 3000 * 0.9 / 2 - 300 <= 60_000 - more.last <= 3000


# ---- models ----


def _sorted_rows(rows: int, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return rows whose label depends on one of five numbers, sorted by label."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 5))
    y = (rng.random(rows) < 1 / (1 + np.exp(-2 * X[:, 0]))).astype(float)
    order = np.argsort(y, kind="stable")
    return X[order], y[order]


def _frozen(model: Model, X: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    p = model.predict(X)
    return float(np.mean(np.where(y > 0, -np.log(p), -np.log1p(-p))))


@pytest.mark.parametrize("waiting", [100_000, 700])
def test_rows_sorted_by_label_make_a_model_as_good_as_shuffled_ones(waiting: int) -> None:
    X, y = _sorted_rows(12_000)
    rest, labels = _sorted_rows(4000, 1)
    order = np.random.default_rng(2).permutation(len(y))
    best = _frozen(ftprl.train(X[order], y[order], order="given").model, rest, labels)
    own = ftprl.train(X, y, waiting=waiting)
    assert _frozen(own.model, rest, labels) < (1.05 if waiting > 12_000 else 1.3) * best
    with pytest.warns(FtprlWarning, match="the saved model has forgotten earlier rows"):
        given = ftprl.train(X, y, order="given")
    assert _frozen(given.model, rest, labels) > 3 * best
    assert given.check is not None
    assert (given.check.kind, given.check.rows, given.check.has_forgotten) == ("again", 2000, True)


def test_settings_that_do_not_count_change_no_bit(tmp_path: Path) -> None:
    """Threads, files and batches do not change the order; the seed and the limit do."""
    X, y = _sorted_rows(5000)
    lines = [",".join(map(str, [*row, int(label)])) + "\n" for row, label in zip(X, y, strict=True)]
    head = "a,b,c,d,e,y\n"
    (tmp_path / "all.csv").write_text(head + "".join(lines))
    (tmp_path / "1.csv").write_text(head + "".join(lines[:1777]))
    (tmp_path / "2.csv").write_text(head + "".join(lines[1777:]))

    def digest(data: Any, **options: Any) -> str:
        return ftprl.train(data, label="y", bits=10, names=0, **options).model.state_digest()

    whole = digest(tmp_path / "all.csv")
    assert whole == digest(tmp_path / "all.csv", threads=1)
    assert whole == digest([tmp_path / "1.csv", tmp_path / "2.csv"])
    assert whole != digest(tmp_path / "all.csv", order_seed=1)
    small = digest(tmp_path / "all.csv", waiting=500)
    assert small == digest([tmp_path / "1.csv", tmp_path / "2.csv"], waiting=500, threads=3)
    assert len({whole, small, digest(tmp_path / "all.csv", order="given")}) == 3


@pytest.mark.parametrize("waiting", [100_000, 500])
@pytest.mark.parametrize("options", [{}, {"passes": 2, "receipt": True}, {"passes": 2, "holdout": 5}])
def test_an_interrupted_run_goes_on_to_the_same_bytes(
    tmp_path: Path, waiting: int, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run interrupted with rows waiting reads the data of the pass again and skips learned rows."""
    X, y = _sorted_rows(3000)
    lines = [",".join(map(str, [*row, int(label)])) + "\n" for row, label in zip(X, y, strict=True)]
    file = tmp_path / "rows.csv"
    file.write_text("a,b,c,d,e,y\n" + "".join(lines))
    settings = {"label": "y", "bits": 10, "waiting": waiting, **options}
    whole = ftprl.train(file, **settings, output=tmp_path / "whole.ftprl")
    for stop in (300, 1600, 2300, 2900, *([3500, 5900] if options else [])):

        def halt(event: dict[str, Any], stop: int = stop) -> None:
            if event["event"] == "checkpoint" and event["rows"] >= stop:
                raise InterruptedError

        part = tmp_path / "part.ftprl"
        with pytest.raises(InterruptedError):
            ftprl.train(file, **settings, checkpoint=part, every=100, listener=halt)
        resumed = ftprl.train(file, resume=part, label="y", output=tmp_path / "resumed.ftprl")
        assert (tmp_path / "resumed.ftprl").read_bytes() == (tmp_path / "whole.ftprl").read_bytes()
        assert resumed.check == whole.check
        assert resumed.headline.split(";")[-1] == whole.headline.split(";")[-1]


@pytest.mark.parametrize("order", ["random", "given"])
@pytest.mark.parametrize("refused", [[1499], [0, 700, 1498, 1499]])
def test_rows_that_are_refused_are_counted_once(tmp_path: Path, order: str, refused: list[int]) -> None:
    """Refused rows also count at the end of a batch, after the last waiting row, if the run is resumed."""
    X, y = _sorted_rows(1500)
    X[refused, 1] = np.nan
    settings: dict[str, Any] = {"on_bad_row": "skip", "order": order, "waiting": 400}
    whole = ftprl.train(X, y, **settings, output=tmp_path / "whole.ftprl")
    assert whole.bad_rows == len(refused)
    for stop in (100, 700, 1400):

        def halt(event: dict[str, Any], stop: int = stop) -> None:
            if event["event"] == "checkpoint" and event["rows"] >= stop:
                raise InterruptedError

        part = tmp_path / "part.ftprl"
        with pytest.raises(InterruptedError):
            ftprl.train(X, y, **settings, checkpoint=part, every=100, listener=halt)
        resumed = ftprl.train(X, y, resume=part, on_bad_row="skip", output=tmp_path / "resumed.ftprl")
        assert (resumed.bad_rows, resumed.first_bad) == (whole.bad_rows, whole.first_bad)
        assert (tmp_path / "resumed.ftprl").read_bytes() == (tmp_path / "whole.ftprl").read_bytes()


@pytest.mark.parametrize("waiting", [100_000, 300])
@pytest.mark.parametrize("sizes", [(700, 700), (700, 1 << 20), (1 << 20, 700)], ids=str)
def test_a_resumed_run_counts_refused_rows_and_names_once(tmp_path: Path, waiting: int, sizes: tuple[int, int]) -> None:
    """Counts are also right if a resumed run cuts the data differently, or if the last row was refused."""
    file = tmp_path / "counts.vw"
    bad = (5, 999, 1777, 2998, 2999)
    file.write_text("".join(f"{-7 if i in bad else i % 4} | a{i % 7} b{i % 11} c{i}\n" for i in range(3000)))

    def source(size: int) -> ftprl.data.Source:
        settings: dict[str, Any] = {"dim": 1024, "loss": "poisson", "names": True, "on_bad_row": "skip"}
        return ftprl.data.open(file, block_size=size, **settings)

    settings: dict[str, Any] = {"loss": "poisson", "waiting": waiting}
    whole = ftprl.train(source(1 << 20), output=tmp_path / "whole.ftprl", **settings)
    assert whole.bad_rows == len(bad)
    for stop in (300, 900, 2700):

        def halt(event: dict[str, Any], stop: int = stop) -> None:
            if event["event"] == "checkpoint" and event["rows"] >= stop:
                raise InterruptedError

        part = tmp_path / "part.ftprl"
        with pytest.raises(InterruptedError):
            ftprl.train(source(sizes[0]), checkpoint=part, every=300, listener=halt, **settings)
        run = ftprl.train(source(sizes[1]), resume=part, output=tmp_path / "resumed.ftprl")
        assert (run.bad_rows, run.first_bad) == (whole.bad_rows, whole.first_bad)
        assert (tmp_path / "resumed.ftprl").read_bytes() == (tmp_path / "whole.ftprl").read_bytes()


def test_a_model_that_is_resumed_keeps_the_order_of_its_last_run(tmp_path: Path) -> None:
    X, y = _sorted_rows(1500)
    ftprl.train(X, y, order="given", output=tmp_path / "a.ftprl")
    assert ftprl.train(X, y, resume=tmp_path / "a.ftprl").order["order"] == "given"
    ftprl.train(X, y, order_seed=7, waiting=400, output=tmp_path / "b.ftprl")
    more = ftprl.train(X, y, resume=tmp_path / "b.ftprl")
    assert more.order == {"order": "random", "order_seed": 7, "waiting": 400}
    assert ftprl.train(X, y, resume=tmp_path / "b.ftprl", order="given").order["order"] == "given"


def test_rows_are_written_and_wait_for_labels_in_their_own_order(tmp_path: Path) -> None:
    X, y = _sorted_rows(1200)
    for options in ({"predictions": tmp_path / "p.txt"}, {"delay": 3}):
        assert ftprl.train(X, y, **options).order["order"] == "given"
        with pytest.raises(InvalidInput, match=f"^order= is random, but {next(iter(options))}= ") as refused:
            ftprl.train(X, y, order="random", **options)
        assert "order" in refused.value.options


# ---- checks of the saved model ----


def _drifting(rows: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return rows whose level follows a slow wave, which their features do not show."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(rows, 3))
    level = 3 * np.sin(np.arange(rows) / rows * 4.5)
    return X, (rng.random(rows) < 1 / (1 + np.exp(-X[:, 0] - level))).astype(float)


def test_the_last_rows_are_predicted_before_any_of_them_is_learned() -> None:
    X, y = _drifting(6000)
    with pytest.warns(FtprlWarning, match="the data change along the file: other rows have a loss of 0"):
        run = ftprl.train(X, y)
    check = run.check
    assert check is not None
    assert (check.kind, check.rows) == ("last", 600)
    plan = order_twin.plan(6000, 1 << 17)
    half = ftprl.train(X[plan.order[: plan.check]], y[plan.order[: plan.check]], order="given")
    assert _frozen(half.model, X[-600:], y[-600:]) == pytest.approx(check.loss, rel=1e-4)
    assert str(run).startswith("6,000 rows in random order, each predicted before it was learned: log loss 0.")
    assert [caution.kind for caution in run.model.cautions] == ["changed", "worse"]


def test_more_rows_than_wait_are_said_to_be_drawn() -> None:
    X, y = _drifting(9000)
    run = ftprl.train(X, y, waiting=2000)
    assert run.drawn is not None
    assert f"9,000 rows; {run.drawn.rows:,} of them, drawn at random from all, were learned last" in str(run)
    assert run.check is not None
    assert (run.check.kind, run.check.rows) == ("last", 200)
    plan = order_twin.plan(9000, 2000)
    assert run.drawn.rows == 9000 - plan.quarter
    assert "drift" not in run.to_dict()["confidence"]


def test_random_rows_raise_no_alarm() -> None:
    """At 4 standard errors there are two chances in 100,000 per run; three at 3 for the other alarm."""
    rng = np.random.default_rng(0)
    for seed in range(30):
        X = rng.normal(size=(1500, 3))
        y = (rng.random(1500) < 1 / (1 + np.exp(-X[:, 0]))).astype(float)
        for order in ("random", "given"):
            run = ftprl.train(X, y, order=order, order_seed=seed)
            assert run.check is not None
            assert not run.check.alarms


def test_a_warning_is_kept_and_repeated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    X, y = _sorted_rows(3000)
    lines = [",".join(map(str, [*row, int(label)])) + "\n" for row, label in zip(X, y, strict=True)]
    file, model = tmp_path / "rows.csv", tmp_path / "m.ftprl"
    file.write_text("a,b,c,d,e,y\n" + "".join(lines))
    events = tmp_path / "run.jsonl"
    base = ["train", str(file), "--label", "y", "--order", "given", "--receipt", "-o", str(model)]
    assert _command(*base, "--events", str(events), "--json") == 0
    out = capsys.readouterr()
    text = "the saved model has forgotten earlier rows: their loss has risen from 0."
    assert f"ftprl: {text}" in out.err
    assert "train with --order random, or compare both orders" in out.err
    assert json.loads(out.out)["check"]["alarms"] == ["worse", "forgotten"]
    for arguments in (["certify", str(model)], ["evaluate", str(model), str(file)]):
        assert _command(*arguments) == 0
        assert text in capsys.readouterr().err
    assert _command("inspect", str(model)) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert text in shown
    assert "saved model 2,000 of these rows, predicted again by the saved model" in shown
    assert _command("report", str(events), "-o", str(tmp_path / "r.html")) == 0
    page = (tmp_path / "r.html").read_text()
    assert text.replace("the saved", "The saved") in page
    assert "if the model goes on learning" in page
    assert "saved model" in Model.load(model)._repr_html_()


def _command(*arguments: str) -> int:
    from ftprl.cli.app import run

    return run(list(arguments))


def test_a_short_run_after_a_long_one_keeps_its_warnings(tmp_path: Path) -> None:
    X, y = _sorted_rows(3000)
    ftprl.train(X, y, order="given", output=tmp_path / "m.ftprl")
    run = ftprl.train(X[:50], y[:50], resume=tmp_path / "m.ftprl")
    assert "forgotten" in [caution.kind for caution in run.model.cautions]
    order = np.random.default_rng(0).permutation(3000)
    again = ftprl.train(X[order], y[order], resume=tmp_path / "m.ftprl", order="random")
    assert "forgotten" not in [caution.kind for caution in again.model.cautions]


# ---- real data ----


@pytest.mark.skipif(not SHARED.exists(), reason="the shared data is not here")
def test_a_model_of_electricity_prices_is_better_than_guessing(tmp_path: Path) -> None:
    """In the order of time, the saved model had a log loss of 1.43 while the run reported 0.20."""
    rows = np.genfromtxt(SHARED / "elec.csv.gz", delimiter=",", skip_header=1)
    first = int(0.8 * len(rows))
    with pytest.warns(FtprlWarning, match="the data change along the file"):
        run = ftprl.train(rows[:first, :-1], rows[:first, -1])
    frozen = _frozen(run.model, rows[first:, :-1], rows[first:, -1])
    assert frozen < 0.52
    assert run.progressive_loss == pytest.approx(0.516, rel=0.05)


# ---- rows of any weight, and few of them ----


@pytest.mark.parametrize("order", ["random", "given"])
@pytest.mark.parametrize("ratio", [0.97, 1.0, 1.03])
@pytest.mark.parametrize("unit", [1e-200, 1.0, 1e25])
def test_checks_do_not_depend_on_the_unit_of_the_weights(order: str, ratio: float, unit: float) -> None:
    X, y = _sorted_rows(1500)
    weight = ratio ** np.arange(1500.0)
    weight /= weight.max()
    checks = [ftprl.train(X, y, weight=w, order=order, scale=0.1).check for w in (weight, weight * unit)]
    if unit == 1.0:
        assert checks[0] == checks[1]
    assert all(one is not None and np.isfinite([one.loss, one.progressive, one.above_baseline]).all() for one in checks)


def test_moments_are_those_of_their_definition_however_they_are_added() -> None:
    rng = np.random.default_rng(0)
    losses, weight = rng.exponential(size=500), 0.9 ** np.arange(500.0)
    whole, parts = LossMoments(), LossMoments()
    whole.add(losses, weight)
    for start in range(0, 500, 7):
        parts.add(losses[start : start + 7], weight[start : start + 7])
    assert whole.sums == parts.sums
    mean = weight @ losses / weight.sum()
    assert whole.mean == pytest.approx(mean, rel=1e-12)
    assert whole.variance == pytest.approx((weight**2 @ (losses - mean) ** 2) / weight.sum() ** 2, rel=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_a_run_without_rows_to_compare_has_no_check(tmp_path: Path, seed: int) -> None:
    X, y = _sorted_rows(1500)
    run = ftprl.train(X, y, waiting=10, holdout=2, order_seed=seed, receipt=True, output=tmp_path / "m.ftprl")
    assert "nan" not in str(run)
    assert run.check is None or np.isfinite(run.check.progressive)
    assert run.drawn is None or run.drawn.rows > 0
    model = ftprl.load(tmp_path / "m.ftprl")
    write_receipt(tmp_path / "r", make_receipt(model, certify_model(model)))
    assert verify_receipt(tmp_path / "r", [ftprl.data.open(X, y=y)]).confirmed


def test_refused_rows_are_counted_once_if_all_rows_still_wait(tmp_path: Path) -> None:
    """A checkpoint by the clock can be written before a row was learned."""
    X, y = _sorted_rows(60_000)
    X[[3, 20_000, 59_000], 0] = np.nan
    settings: dict[str, Any] = {"on_bad_row": "skip", "scale": 0.1}
    whole = ftprl.train(X, y, **settings, output=tmp_path / "whole.ftprl")
    for number in (1, 2, 3):
        written = 0

        def halt(event: dict[str, Any], number: int = number) -> None:
            nonlocal written
            written += event["event"] == "checkpoint"
            if written == number:
                raise InterruptedError

        with pytest.raises(InterruptedError):
            ftprl.train(X, y, **settings, checkpoint=tmp_path / "c", every="0.000001s", listener=halt)
        resumed = ftprl.train(X, y, resume=tmp_path / "c", on_bad_row="skip", output=tmp_path / "again.ftprl")
        assert (resumed.bad_rows, resumed.first_bad) == (3, whole.first_bad)
        assert (tmp_path / "again.ftprl").read_bytes() == (tmp_path / "whole.ftprl").read_bytes()


def test_the_sample_has_a_limit_of_features(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sample has as many rows as there is room for, for any batches; `verify` keeps the same limit."""
    rng = np.random.default_rng(1)
    sizes = rng.integers(0, 30, 3000)
    indptr = np.append(0, np.cumsum(sizes))
    entries = int(indptr[-1])
    batch = Batch(
        indptr, np.arange(entries, dtype=np.uint32), np.ones(entries, np.float32), np.arange(3000.0), np.ones(3000)
    )
    monkeypatch.setattr("ftprl.training.sample.MOST_ENTRIES", 2000)
    monkeypatch.setattr("ftprl.receipt.row_order.ReplayedSample.MOST_ENTRIES", 2000)
    kept = []
    for size in (1, 37, 3000):
        sample, replayed = LearnedSample(5), ReplayedSample(5)
        for start in range(0, 3000, size):
            some = batch[start : start + size]
            sample.see(some, some.y, np.zeros((len(some), 2)))
            replayed.see(some, np.column_stack([some.y] * 3))
        sample.check(lambda rows: kept.append(rows.y.tolist()) or rows.y)
        result = replayed.result()
        assert result is not None
        kept.append(result[0].y.tolist())
    assert all(one == kept[0] for one in kept)
    assert sizes[np.array(kept[0], int)].sum() <= 2000 < sizes[np.array(kept[0], int)].sum() + 30


def test_texts_of_a_forged_model_are_refused(tmp_path: Path) -> None:
    X, y = _sorted_rows(1500)
    ftprl.train(X, y, output=tmp_path / "m.ftprl")
    forged = ftprl.load(tmp_path / "m.ftprl")
    forged.history = {**forged.history, "cautions": {"a": ["\x1b[2J", "x"]}}
    forged.save(tmp_path / "f.ftprl")
    with pytest.raises(BadModel, match="printable"):
        ftprl.load(tmp_path / "f.ftprl")
    forged.history = {**forged.history, "cautions": {"a": ["boo", "(a+)+$", "y[1m"]}}
    forged.save(tmp_path / "f.ftprl")
    assert _command("inspect", str(tmp_path / "f.ftprl")) == 0


def test_intervals_begin_anew_when_the_order_of_the_rows_changes(tmp_path: Path) -> None:
    X, y = _sorted_rows(1500)
    ftprl.train(X, y, order="random", receipt=True, output=tmp_path / "a.ftprl")
    run = ftprl.train(X, y, resume=tmp_path / "a.ftprl", order="given", output=tmp_path / "b.ftprl")
    assert run.confidence is not None
    assert run.confidence.loss.rows == 1500
    model = ftprl.load(tmp_path / "b.ftprl")
    write_receipt(tmp_path / "r", make_receipt(model, certify_model(model)))
    assert verify_receipt(tmp_path / "r", [ftprl.data.open(X, y=y)] * 2).confirmed


def test_the_interval_of_counts_leaves_out_what_no_prediction_can_change() -> None:
    """The interval is of the last rows' loss above the least possible one, which alone depends on the model."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(3000, 2))
    y = rng.poisson(np.exp(3.0 + X[:, 0])).astype(float)
    check = ftprl.train(X, y, loss="poisson").check
    assert check is not None
    assert check.lower - check.least < check.loss - check.least < 2.0 * (check.lower - check.least)


def test_a_certificate_of_rows_drawn_from_many_is_not_about_the_saved_model(tmp_path: Path) -> None:
    X, y = _sorted_rows(3000)
    model = ftprl.train(X, y, waiting=300, receipt=True, output=tmp_path / "m.ftprl").model
    text = " ".join(str(certify_model(model)).split())
    assert "that were drawn at random from all and learned last" in text
    assert "These losses are those of all rows." in text
    assert "This is about the model while it went on learning, not about the saved one." in text
    assert "learned last" in model._repr_html_()
