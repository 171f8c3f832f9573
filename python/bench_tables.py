"""Measures how long it takes to read a table of 1,000,000 rows of 13 columns, compared with Parquet.

    python bench_tables.py [DIRECTORY]      the directory needs 200 MB of free space

Both files are compressed with zstd, and in the page cache. The readers take turns. The times are those of the
fastest runs. The ratio is the median of those of each run and the next run of the other reader: other programs
disturb it less.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas
import polars
import pyarrow
import pyarrow.parquet

import tenarc
from bench import fastest

ROWS = 1_000_000
PAIRS = 15


def table() -> Any:
    """Integers, floats, bools, texts, optional values, dates and a category."""
    random = np.random.default_rng(0)
    levels = np.array(["debug", "info", "warning", "error"])
    hosts = np.array([f"host-{n:03}.example.com" for n in range(200)])
    days = np.datetime64("2026-01-01") + random.integers(0, 300, ROWS)
    return pyarrow.table(
        {
            "id": np.arange(ROWS),
            "user": random.integers(0, 50_000, ROWS).astype("u4"),
            "status": random.integers(200, 600, ROWS).astype("i2"),
            "bytes": random.integers(0, 1 << 40, ROWS),
            "duration": random.exponential(1, ROWS),
            "score": random.normal(size=ROWS).astype("f4"),
            "ok": random.random(ROWS) < 0.9,
            "cached": random.random(ROWS) < 0.5,
            "host": hosts[random.integers(0, len(hosts), ROWS)],
            "message": [f"request {n} of session {m}" for n, m in enumerate(random.integers(0, 1 << 30, ROWS))],
            "retries": pyarrow.array(random.integers(0, 9, ROWS), mask=random.random(ROWS) < 0.7),
            "day": days.astype(str),
            "level": pyarrow.array(levels[random.integers(0, 4, ROWS)]).dictionary_encode(),
        }
    )


def compare(name: str, mine: Callable[[], Any], other: Callable[[], Any]) -> None:
    def took(run: Callable[[], Any]) -> float:
        start = time.perf_counter()
        kept = run()
        end = time.perf_counter()
        del kept
        return (end - start) * 1000

    pairs = [(took(mine), took(other)) for _ in range(PAIRS + 1)][1:]
    ratio = statistics.median(mine / other for mine, other in pairs)
    best, best_other = map(min, zip(*pairs, strict=True))
    print(f"{name:10} {best:8.1f} ms    Parquet {best_other:8.1f} ms    {ratio:.2f} times")


def main(directory: Path) -> None:
    ours, parquet = directory / "log.tenarc", directory / "log.parquet"
    rows = table()
    with ours.open("wb") as file, tenarc.Writer(file, compression="zstd") as out:
        out.save(tenarc.Table(rows), name="log")
    pyarrow.parquet.write_table(rows, parquet, compression="zstd")
    print(f"{ours.stat().st_size:,} bytes, as Parquet {parquet.stat().st_size:,}")

    def read(method: str) -> Callable[[], Any]:
        def run() -> Any:
            with tenarc.open(ours) as archive:
                return getattr(archive.table("log"), method)()

        return run

    assert read("to_arrow")().to_pydict() == rows.to_pydict()
    for method, other in (
        ("to_arrow", lambda: pyarrow.parquet.read_table(parquet)),
        ("to_pandas", lambda: pandas.read_parquet(parquet)),
        ("to_polars", lambda: polars.read_parquet(parquet)),
    ):
        compare(method, read(method), other)

    connection = duckdb.connect()

    def to_duckdb(source: str) -> Callable[[], Any]:
        def run() -> Any:
            with tenarc.open(ours) as archive:
                connection.register("log", archive.table("log"))
                connection.execute(f"CREATE OR REPLACE TEMP TABLE copy AS SELECT * FROM {source}")

        return run

    compare("to duckdb", to_duckdb("log"), to_duckdb(f"read_parquet('{parquet}')"))

    chosen = np.random.default_rng(1).integers(0, ROWS, 1000)
    with tenarc.open(ours) as archive:
        log = archive.table("log")
        one_by_one, together = fastest(
            lambda: [log[row] for row in chosen[:50].tolist()], lambda: log.take(np.sort(chosen)).rows()
        )
    print(f"random rows: {one_by_one / 50:.2f} ms each; 1,000 sorted, by `take`, {together / 1000:.2f} ms each")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as name:
            main(Path(name))
