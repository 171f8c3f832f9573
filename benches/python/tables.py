"""Case m in Python: the records that the Rust benchmark wrote, in tenarc, Parquet and sqlite.

    tables.py FILE ROUNDS ROW    FILE is a tenarc archive with the records as columns

Writes the other files beside FILE, and checks that all readers find the same. Prints rows of results
as JSON in the form of `RowResults` in ../report/src/results.rs. Files are in the page cache and not synced.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from measure import figures

sys.path.insert(0, str(Path(__file__).parents[2] / "python/src"))
import tenarc

SCHEMA = pa.schema(
    {
        "id": pa.uint64(),
        "timestamp": pa.uint64(),
        "label": pa.string(),
        "score": pa.float32(),
        "embedding": pa.list_(pa.float32(), 64),
        "tags": pa.list_(pa.string()),
        # Parquet has no unions.
        "kind": pa.struct({"name": pa.string(), "x": pa.uint16(), "y": pa.uint16(), "buy": pa.uint32()}),
    }
)


class Tenarc:
    """Reading makes a `Table`, which keeps columns as numpy arrays."""

    peer, form = "tenarc", "columns"
    compression: str | None = None

    def __init__(self, path: Path, records: tenarc.Table) -> None:
        self.path, self.records = path.with_suffix(f".{self.compression}.again"), records

    def write(self) -> None:
        tenarc.save(self.path, self.records, sync=False, compression=self.compression)

    def read(self) -> Any:
        return tenarc.load(self.path, tables=True)

    def count(self) -> int:
        with tenarc.open(self.path) as archive:
            return len(archive.table(None))

    def row(self, at: int) -> Any:
        with tenarc.open(self.path) as archive:
            return archive.table(None)[at]["label"]

    def scores(self) -> Any:
        with tenarc.open(self.path) as archive:
            return archive.table(None)["score"]


class TenarcZstd(Tenarc):
    """Compressed. Python's standard threads decompress."""

    form, compression = "columns, zstd", "zstd"


class Parquet:
    """With the options that pyarrow has by default. Reading makes an Arrow table."""

    peer, form = "Parquet", "pyarrow"

    def __init__(self, path: Path, records: tenarc.Table) -> None:
        self.path = path.with_suffix(".parquet")
        rows = records.rows()
        for row in rows:
            row["kind"] = arrow_kind(row["kind"])
        self.table = pa.Table.from_pylist(rows, SCHEMA)

    def write(self) -> None:
        pq.write_table(self.table, self.path)

    def read(self) -> Any:
        return pq.read_table(self.path)

    def count(self) -> int:
        return pq.ParquetFile(self.path).metadata.num_rows

    def row(self, at: int) -> Any:
        return pq.read_table(self.path).slice(at, 1).to_pylist()[0]["label"]

    def scores(self) -> Any:
        return pq.read_table(self.path, columns=["score"])["score"]


class ParquetZstd(Parquet):
    """With zstd at pyarrow's default level in place of Snappy."""

    form = "zstd"

    def __init__(self, path: Path, records: tenarc.Table) -> None:
        super().__init__(path, records)
        self.path = path.with_suffix(".zstd.parquet")

    def write(self) -> None:
        pq.write_table(self.table, self.path, compression="zstd")


class Sqlite:
    """Reading makes a tuple for each record: floats are a blob, and tags and kinds are JSON."""

    peer, form = "sqlite", "sqlite3"

    def __init__(self, path: Path, records: tenarc.Table) -> None:
        self.path = path.with_suffix(".sqlite")
        self.rows = [
            (
                row["id"],
                row["timestamp"],
                row["label"],
                row["score"],
                floats.tobytes(),
                json.dumps(row["tags"]),
                json.dumps(row["kind"]),
            )
            for row, floats in zip(records.rows(), records["embedding"], strict=True)
        ]

    def write(self) -> None:
        self.path.unlink(missing_ok=True)
        with sqlite3.connect(self.path) as connection:
            connection.execute("PRAGMA journal_mode = OFF")
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute(
                "CREATE TABLE records (id INTEGER PRIMARY KEY, timestamp INTEGER, label TEXT, score REAL,"
                " embedding BLOB, tags TEXT, kind TEXT)"
            )
            connection.executemany("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?)", self.rows)
        connection.close()

    def ask(self, query: str) -> Any:
        connection = sqlite3.connect(self.path)
        rows = connection.execute(query).fetchall()
        connection.close()
        return rows

    def read(self) -> Any:
        return self.ask("SELECT * FROM records")

    def count(self) -> int:
        return self.ask("SELECT count(*) FROM records")[0][0]

    def row(self, at: int) -> Any:
        return self.ask(f"SELECT * FROM records WHERE id = {at}")[0][2]

    def scores(self) -> Any:
        return [score for (score,) in self.ask("SELECT score FROM records")]


def arrow_kind(kind: Any) -> dict[str, Any]:
    if isinstance(kind, str):
        return {"name": kind}
    [(name, content)] = kind.items()
    return {"name": name, **(content if isinstance(content, dict) else {"buy": content})}


def main(file: str, rounds: int, at: int) -> None:
    path = Path(file)
    records = tenarc.load(path, tables=True)
    peers = [kind(path, records) for kind in (Parquet, ParquetZstd, Sqlite, Tenarc, TenarcZstd)]
    expected = (len(records), records[at]["label"], records["score"].count())
    results = []
    for peer in peers:
        peer.write()
        scores = peer.scores()
        known = scores.count() if isinstance(peer, Tenarc) else sum(score is not None for score in to_list(scores))
        found = (peer.count(), peer.row(at), known)
        if found != expected or len(peer.read()) != len(records):
            raise SystemExit(f"{peer.peer} has other records: found {found}, expected {expected}")
        work = {
            "write": peer.write,
            "read": peer.read,
            "count": peer.count,
            "one row": partial(peer.row, at),
            "scores": peer.scores,
        }
        measured = figures(work, rounds)
        results.append(
            {"peer": peer.peer, "form": peer.form, "bytes": peer.path.stat().st_size, "figures": measured}
        )
    # The first one is the floor.
    for result in results:
        for figure, floor in zip(result["figures"], results[0]["figures"], strict=True):
            figure["floor"] = floor["median"]
    print(json.dumps(results))


def to_list(values: Any) -> list[Any]:
    return values.to_pylist() if isinstance(values, pa.ChunkedArray) else values


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
