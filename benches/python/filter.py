"""Measures filters of the Python package, and of pyarrow over a Parquet file.

`examples/filter.rs` has the same values.

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

sys.path.insert(0, str(Path(__file__).parents[2] / "python/src"))
import tenarc
from tenarc import col

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


def measure(read, *arguments):
    least = float("inf")
    for _ in range(9):
        start = time.perf_counter()
        read(*arguments)
        least = min(least, time.perf_counter() - start)
    return f"{least * 1e3:.1f} ms"


def of_parquet(path):
    """Reads columns of the rows that meet a condition; without columns, whole rows."""

    def read(columns, where):
        return pq.read_table(path, columns=columns, filters=where)

    both = (pc.field("score") > 98.0) & (pc.field("day") == "2026-11-02")
    return read, both, pc.field("score") > 98.0, pc.field("note") == "note 77"


def of_tenarc(path):
    def read(columns, where):
        with tenarc.open(path) as archive:
            found = archive.table("events").filter(where)
            return found.to_arrow() if columns is None else found.to_arrow(columns)

    both = (col("score") > 98.0) & (col("day") == "2026-11-02")
    return read, both, col("score") > 98.0, col("note") == "note 77"


def main():
    if len(sys.argv) > 1:
        pa.set_cpu_count(int(sys.argv[1]))
    table = events()
    with tempfile.TemporaryDirectory() as folder:
        for name, codec in [("plain", None), ("zstd", "zstd")]:
            parquet, ours = Path(folder) / f"{name}.parquet", Path(folder) / f"{name}.tenarc"
            pq.write_table(table, parquet, compression=codec or "none", row_group_size=65_536)
            tenarc.save(ours, table, name="events", compression=codec, sync=False)
            for peer, (read, both, score, note) in [("Parquet", of_parquet(parquet)), ("tenarc", of_tenarc(ours))]:
                found = read(["id"], both).num_rows
                one, rows = measure(read, ["id"], both), measure(read, None, both)
                numbers, texts = measure(read, ["id"], score), measure(read, ["id"], note)
                print(f"{peer}, {name}: {found} rows by two columns: one column {one}, all columns {rows}")
                print(f"{peer}, {name}: one column by numbers {numbers}, by texts {texts}")


main()
