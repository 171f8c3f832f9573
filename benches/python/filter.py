"""Measures filters of pyarrow over a Parquet file, beside `examples/filter.rs`, which has the same values.

    python3 benches/python/filter.py [threads]
"""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

ROWS = 1_000_000


def random(column):
    rows = np.arange(ROWS, dtype=np.uint64)
    bits = (rows * np.uint64(0x9E3779B97F4A7C15)) ^ np.uint64(column * 0xD1B54A32D192ED03 % 2**64)
    for shift in [30, 27, 31]:
        bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(0xBF58476D1CE4E5B9)
    return bits ^ (bits >> np.uint64(31))


def share(column):
    return (random(column) >> np.uint64(11)).astype(np.float64) / 2**53


def events():
    ids = np.arange(ROWS, dtype=np.uint64)
    days = pa.array([f"2026-11-{day:02}" for day in range(1, 3)])
    kinds = pa.array(["Click", "Scroll", "Key"])
    referrers = (random(11) % 1000).astype(np.uint32)
    return pa.table(
        {
            "id": ids,
            "time": 1_790_000_000_000 + ids.astype(np.int64) * 350,
            "score": share(1) * 100.0,
            "day": days.take(pa.array(random(2) % 2)),
            "kind": kinds.take(pa.array(random(3) % 3)),
            "user": (random(4) % 50_000).astype(np.uint32),
            "session": random(5),
            "size": (random(6) % 4096).astype(np.uint32),
            "price": np.round(share(7) * 1e4) / 100.0,
            "ratio": share(8).astype(np.float32),
            "note": [f"note {number}" for number in random(9) % 1_000_000],
            "referrer": pa.array(referrers, mask=random(10) % 4 != 0),
            "is_new": random(12) % 2 == 0,
        }
    )


def measure(run):
    least = float("inf")
    for _ in range(9):
        start = time.perf_counter()
        run()
        least = min(least, time.perf_counter() - start)
    return f"{least * 1e3:.1f} ms"


def main():
    if len(sys.argv) > 1:
        pa.set_cpu_count(int(sys.argv[1]))
    table = events()
    both = (pc.field("score") > 98.0) & (pc.field("day") == "2026-11-02")
    score, note = pc.field("score") > 98.0, pc.field("note") == "note 77"
    with tempfile.TemporaryDirectory() as folder:
        for name, codec in [("plain", "none"), ("zstd", "zstd")]:
            path = Path(folder) / name
            pq.write_table(table, path, compression=codec, row_group_size=65_536)

            def rows(columns, where):
                return pq.read_table(path, columns=columns, filters=where)

            found = rows(["id"], both).num_rows
            column, every = measure(lambda: rows(["id"], both)), measure(lambda: rows(None, both))
            print(f"{name}: {found} rows; one column {column}, rows {every}")
            numbers, texts = measure(lambda: rows(["id"], score)), measure(lambda: rows(["id"], note))
            print(f"{name}: one column by numbers {numbers}, by texts {texts}")


main()
