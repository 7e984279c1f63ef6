"""Events for tests: a run with every kind of event, and files with arbitrary content."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

SCALES = ["0.02", "0.16", "1.28"]
HOSTILE = "<script>alert(1)</script>\"'&\x00\x1b[31m\u202e\ud800 $x_1^{"


def receipt(rows: int, more: float = 0.0) -> dict[str, Any]:
    """Return numbers of a receipt in the order that the theory demands."""
    bound = 3.0 * rows**0.75 + more
    return {
        "rows": rows,
        "weight": float(rows),
        "loss": 0.5 * rows,
        "scale": 0.16,
        "excess": -0.01 * rows,
        "regret": 0.3 * bound,
        "tight": 0.5 * bound,
        "bound": bound,
        "theorem": 1.8 * bound,
        "post_hoc": 1.2 * bound,
        "const": 6.0 * bound,
        "gain": 5.0,
        "ratio": 1.5,
        "shared": {"regret": -3.0, "bound": 5.0},
    }


def floor(rows: int) -> dict[str, Any]:
    """Return a run that beats weights up to length 2, while weights beyond length 12 may be perfect."""
    return {
        "norm": "2",
        "loss": 0.5 * rows,
        "weight": float(rows),
        "unit": 1.0,
        "least": 0.0,
        "lines": [[0.6 * rows, 0.05 * rows], [0.4 * rows, 0.01 * rows]],
    }


def calibration(rows: int) -> list[list[float]]:
    """Return twenty calibration bins, the last of them empty."""
    bins = [[rows / 10.0, rows * (i + 0.5) / 200.0, rows * (i + 0.4) / 200.0] for i in range(10)]
    return [*bins, *([[0.0, 0.0, 0.0]] * 10)]


def start(**more: Any) -> dict[str, Any]:
    """The first event."""
    spec = {"loss": "logistic", "dim": 1024, "scale": [0.02, 0.16, 1.28], "l1": 0.0, "lower": None, "stack": True}
    data = {"format": "csv", "files": ["a.csv"], "columns": {"y": "label", "x": "numeric"}, "labels": "1 is +1"}
    settings = {"version": "0.1.0", "spec": spec, "data": data, "passes": 1, "holdout_every": None, "retire": True}
    return {"event": "start", "rows": 0, "pass": 1, "seconds": 0.0, **settings, "receipt": True, **more}


def progress(rows: int, **more: Any) -> dict[str, Any]:
    """Return a progress event with all its fields."""
    return {
        "event": "progress",
        "rows": rows,
        "pass": 1,
        "seconds": rows / 100.0,
        "loss": 0.5 + 1.0 / rows,
        "baseline": 0.625,
        "improvement": 100.0 * (1.0 - (0.5 + 1.0 / rows) / 0.625),
        "since": 0.5 + 2.0 / rows,
        "since_baseline": 0.625,
        "since_improvement": 0.0,
        "holdout": None,
        "mixture": {"names": [*SCALES, "stack"], "weights": [0.1, 0.2, 0.3, 0.4], "losses": [1.0, 2.0, 3.0, 4.0]},
        "receipt": receipt(rows),
        "floor": floor(rows),
        "rates": {"scale": 0.16, "loss": 0.51 * rows, "mixture": 0.5 * rows, "guaranteed": 7.0},
        "calibration": calibration(rows),
        **more,
    }


def finished() -> list[dict[str, Any]]:
    """Return the events of a whole run of 1000 rows."""
    group = {"count": 5, "regret": 1.0, "bound": 2.0}
    means = {"loss": 0.5, "baseline": 0.625, "improvement": 20.0}
    return [
        start(),
        *(progress(2**k) for k in range(10)),
        {"event": "retire", "rows": 512, "pass": 1, "seconds": 5.2, "kept": [0.02, 0.16], "retired": [1.28]},
        {"event": "checkpoint", "rows": 600, "pass": 1, "seconds": 6.0, "path": "a.part"},
        {"event": "pass", "rows": 1000, "pass": 1, "seconds": 10.0, "holdout": None, **means},
        {
            "event": "end",
            "rows": 1000,
            "pass": 1,
            "seconds": 10.5,
            **means,
            "bad_rows": 0,
            "receipt": receipt(512, 1.0),
            "calibration": calibration(1000),
            "coordinates_by": "rows",
            "digests": [{"file": "a.csv", "bytes": 12345, "sha256": "ab" * 32}],
            "coordinates": [
                {"seen_from": 1, "seen_to": 2, "post_hoc": 3.0, **group},
                {"seen_from": 2, "seen_to": 4, "post_hoc": 4.0, **group},
                {"seen_from": None, "seen_to": None, "post_hoc": 5.0, **group},
            ],
        },
    ]


def _values() -> st.SearchStrategy[Any]:
    plain = st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.just(HOSTILE), st.just(10**400)
    )
    return st.recursive(
        plain,
        lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
        max_leaves=6,
    )


def any_events() -> st.SearchStrategy[list[dict[str, Any]]]:
    """Lists of events in which every field may have any value."""
    value = _values()
    names = [
        "pass",
        "since",
        "holdout",
        "holdout_baseline",
        "holdout_improvement",
        "message",
        "path",
        "kept",
        "retired",
        "bad_rows",
        "spec",
        "data",
        "version",
    ]
    number = st.one_of(st.none(), st.integers(-3, 300), st.floats(), st.just(HOSTILE))
    record = st.dictionaries(st.sampled_from(list(receipt(1))), number)
    mixture = st.fixed_dictionaries({"names": st.lists(st.text(max_size=3)), "weights": st.lists(number)})
    triples = st.lists(st.lists(number, min_size=2, max_size=4))
    groups = st.lists(st.dictionaries(st.sampled_from(["seen_from", "seen_to", "count", "post_hoc", "regret"]), number))
    event = st.fixed_dictionaries(
        {
            "event": st.sampled_from(
                ["start", "resume", *(["progress"] * 4), "retire", "pass", "checkpoint", "end", "x"]
            )
        },
        optional={
            **dict.fromkeys(names, value),
            "rows": st.one_of(st.integers(0, 10**7), value),
            "seconds": st.one_of(st.floats(0, 1e5), value),
            "loss": number,
            "baseline": number,
            "improvement": number,
            "receipt": st.one_of(record, value),
            "mixture": st.one_of(mixture, value),
            "calibration": st.one_of(triples, value),
            "coordinates": st.one_of(groups, value),
        },
    )
    return st.lists(event, max_size=8)
