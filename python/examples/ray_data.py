"""Computes with the rows of a table in Ray Data, whose tasks read them from the archive.

    python ray_data.py [ARCHIVE]

Each task reads some of the rows, as Arrow record batches. All machines must see the archive under its path;
`tenarc.open` takes URLs of object stores, too.
"""

import sys

import numpy as np
import pyarrow as pa
import ray

import tenarc

EACH = 2500


def rows_of(part: dict, path: str, name: str) -> pa.Table:
    """Some of the rows of a table: the numbers of the first ones of each part are in a column."""
    with tenarc.open(path) as archive:
        table = archive.table(name)
        wanted = [np.arange(start, min(start + EACH, len(table))) for start in part["start"]]
        return pa.table(table.take(np.concatenate(wanted)))


def dataset(path: str, name: str) -> ray.data.Dataset:
    """A table as a dataset of Ray."""
    with tenarc.open(path) as archive:
        count = len(archive.table(name))
    parts = ray.data.from_items([{"start": start} for start in range(0, count, EACH)])
    return parts.map_batches(rows_of, batch_size=1, fn_kwargs={"path": path, "name": name})


def main(path: str) -> None:
    rows = 10_000
    columns = {"host": [f"host {n % 4}" for n in range(rows)], "load": np.arange(rows) % 100}
    tenarc.save(path, tenarc.Table(columns), name="log")
    ray.init(num_cpus=2, include_dashboard=False, logging_level="error")
    log = dataset(path, "log")
    print(f"{log.count()} rows, columns {log.columns()}")
    print(sorted((row["host"], row["max(load)"]) for row in log.groupby("host").max("load").take_all()))
    # A short table is read at once, by its Arrow stream.
    with tenarc.open(path) as archive:
        print(ray.data.from_arrow(pa.table(archive)).count())
    ray.shutdown()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "log.tenarc")
