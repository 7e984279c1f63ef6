"""What the kinds of columns gain: buckets, dates and missing values, on and off, on the real data sets.

The progressive loss is shown as the improvement over the baseline in percent, where more is better. Values are deleted
at random, or more often where the label is high, in every column of numbers.

    python benchmarks/columns.py [--data ../shared/data]
"""

from __future__ import annotations

import argparse
import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

import ftprl

SETS: dict[str, tuple[str, dict[str, Any], list[str]]] = {  # loss, how it is read, columns that may be cut into buckets
    "bank": ("logistic", {"label": "y"}, ["age", "campaign", "pdays", "euribor3m"]),
    "bikes": ("squared", {"label": "bikers"}, ["hr", "temp", "hum", "windspeed"]),
    "diamonds": ("squared", {"label": "price"}, ["carat", "depth", "table", "x", "y", "z"]),
    "visits": ("poisson", {"label": "mdvis"}, ["lncoins", "lpi", "disea"]),
}


def improvement(data: Any, **options: Any) -> float:
    """How much better than the baseline the progressive loss is, in percent."""
    return float(ftprl.train(data, bits=18, order="given", **options).improvement)


def holes(table: pa.Table, label: str, share: float, *, at_random: bool) -> pa.Table:
    """The table with values deleted from its columns of numbers."""
    random = np.random.default_rng(1)
    y = table[label].to_pylist()
    order = np.argsort(np.argsort([float(v in (1, "yes")) if isinstance(v, str) else v for v in y], kind="stable"))
    chance = np.full(len(y), share) if at_random else 2 * share * order / len(y)
    for i, name in enumerate(table.column_names):
        type = table.schema.types[i]
        if name != label and (pa.types.is_floating(type) or pa.types.is_integer(type)):
            gone = pa.array(random.random(len(y)) < chance)
            table = table.set_column(i, name, pc.if_else(gone, None, table[name].combine_chunks()))
    return table


def with_times(bikes: pa.Table) -> pa.Table:
    """The hour of every row of `bikes`, in the year 2011, in the place of season, month, hour and weekday."""
    day, before, times = datetime.date(2011, 1, 1), -1, []
    for hour, weekday in zip(bikes["hr"].to_pylist(), bikes["weekday"].to_pylist(), strict=True):
        if hour <= before:
            day += datetime.timedelta(days=1)
            while day.isoweekday() % 7 != weekday:
                day += datetime.timedelta(days=1)
        before = hour
        times.append(datetime.datetime(day.year, day.month, day.day, hour))
    return bikes.drop_columns(["season", "mnth", "hr", "weekday"]).append_column("when", pa.array(times))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--data", type=Path, default=Path("../shared/data"))
    folder = arguments.parse_args().data
    tables = {}
    for name in SETS:
        sep = ";" if name == "bank" else ","
        tables[name] = pa_csv.read_csv(folder / f"{name}.csv.gz", parse_options=pa_csv.ParseOptions(delimiter=sep))

    print("buckets: % better than the baseline")
    print(f"{'data':<10}{'numbers':>10}" + "".join(f"{n:>10}" for n in (4, 8, 16, 32, 64)))
    for name, (loss, options, columns) in SETS.items():
        cells = [improvement(tables[name], loss=loss, **options)]
        for count in (4, 8, 16, 32, 64):
            buckets = [f"{column}={count}" for column in columns]
            cells.append(improvement(tables[name], loss=loss, bucket=buckets, **options))
        print(f"{name:<10}" + "".join(f"{cell:>10.2f}" for cell in cells), flush=True)

    print("\nmissing values: % better than the baseline")
    print(f"{'data':<10}{'deleted':<24}{'ignore':>10}{'indicator':>10}")
    for name, (loss, options, _) in SETS.items():
        for share in (0.0, 0.1, 0.3):
            for at_random in (True, False) if share else (True,):
                table = holes(tables[name], options["label"], share, at_random=at_random)
                both = [improvement(table, loss=loss, missing=m, **options) for m in ("ignore", "indicator")]
                what = f"{share:.0%}" + (" at random" if at_random else ", with the label") if share else "none"
                print(f"{name:<10}{what:<24}" + "".join(f"{value:>10.2f}" for value in both), flush=True)

    print("\ndates: bikes, % better than the baseline")
    bikes = with_times(tables["bikes"])
    for loss in ("squared", "poisson"):
        for what, options in (("left out", {"ignore": "when"}), ("as a date", {})):
            print(f"{loss:<10}{what:<12}{improvement(bikes, loss=loss, label='bikers', **options):>8.2f}", flush=True)


if __name__ == "__main__":
    main()
