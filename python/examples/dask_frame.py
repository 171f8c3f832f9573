"""Computes with the rows of a table in Dask, whose tasks read them from the archive.

    python dask_frame.py [ARCHIVE]

Each task reads some of the rows, as Arrow record batches. The graph has their numbers, not the rows.
"""

import sys

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa

import tenarc

EACH = 2500


def rows_from(start: int, path: str, name: str) -> pd.DataFrame:
    """Some of the rows of a table, from one of them on."""
    with tenarc.open(path) as archive:
        table = archive.table(name)
        stop = min(start + EACH, len(table))
        # Dask makes a table without rows to find the types.
        return pa.table(table.take(np.arange(start, stop))).to_pandas()


def frame(path: str, name: str) -> dd.DataFrame:
    """A table as a data frame of Dask."""
    with tenarc.open(path) as archive:
        count = len(archive.table(name))
    return dd.from_map(rows_from, range(0, count, EACH), path=path, name=name)


def main(path: str) -> None:
    rows = 10_000
    columns = {"host": [f"host {n % 4}" for n in range(rows)], "load": np.arange(rows) % 100}
    tenarc.save(path, tenarc.Table(columns), name="log")
    log = frame(path, "log")
    print(f"{log.npartitions} partitions, {len(log)} rows")
    print(log.groupby("host")["load"].max().compute().sort_index().to_string())


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "log.tenarc")
