"""Exchanges tables in Parquet and Arrow files between pyarrow and tenarc.

    tables.py read DIR         reads what tenarc wrote
    tables.py write DIR FROM   writes what tenarc wrote again, for tenarc to read

The records are those of ../src/tables.rs. FROM and DIR of `read` have them as JSON, too.
"""

import json
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from columns import table_of


def told(value):
    """A value of pyarrow as JSON has it: maps as objects, and structs of a tuple as arrays."""
    if isinstance(value, dict):
        inner = {key: told(item) for key, item in value.items()}
        return list(inner.values()) if list(inner) == ["0", "1"] else inner
    if isinstance(value, list):
        if value and all(isinstance(item, tuple) for item in value):
            return {key: told(item) for key, item in value}
        return [told(item) for item in value]
    return value


def rows_of(table):
    rows = table.to_pylist()
    for row in rows:
        row["counts"] = dict(row["counts"])
        row["embedding"] = list(row["embedding"])
    return told(rows)


def read(directory):
    passed = failed = 0
    expected = json.loads((directory / "events.json").read_text())
    for path in sorted(directory.glob("*.parquet")) + sorted(directory.glob("*.arrow*")):
        try:
            table = pq.read_table(path) if path.suffix == ".parquet" else table_of(path)
            table.validate(full=True)
            if rows_of(table) != expected:
                raise ValueError(f"expected {expected[0]}, found {rows_of(table)[0]}")
            kind = table.schema.field("embedding").type
            if not isinstance(kind, pa.FixedShapeTensorType) or kind.shape != [4]:
                raise ValueError(f"embedding is {kind}")
            window = pa.list_(pa.field("item", pa.uint16(), nullable=False), 3)
            types = {"id": pa.uint64(), "delta": pa.int8(), "score": pa.float32(), "window": window}
            for name, kind in types.items():
                if table.schema.field(name).type != kind:
                    raise ValueError(f"{name} is {table.schema.field(name).type}")
            if path.suffix == ".parquet":
                metadata = pq.ParquetFile(path).metadata
                groups = [metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)]
            else:
                groups = [batch.num_rows for batch in table.to_batches()]
            if groups != [3, 100, 1]:
                raise ValueError(f"row groups of {groups}")
            passed += 1
        except Exception as error:
            failed += 1
            print(f"FAILED {path.name} by pyarrow: {error!r:.800}")
    print(f"passed={passed} failed={failed}")
    sys.exit(failed > 0)


def write(directory, source):
    directory.mkdir(parents=True, exist_ok=True)
    table = pq.read_table(source / "snappy.parquet")
    for codec in ("none", "snappy", "gzip", "lz4"):
        for version in ("1.0", "2.0"):
            for rows in (None, 7):
                path = directory / f"{codec}_{version}_{rows}.parquet"
                pq.write_table(table, path, compression=codec, data_page_version=version, row_group_size=rows)
    # A file has one dictionary for all batches.
    table = table.unify_dictionaries()
    for codec in (None, "lz4", "zstd"):
        for kind, end in ((pa.ipc.new_file, "arrow"), (pa.ipc.new_stream, "arrows")):
            options = pa.ipc.IpcWriteOptions(compression=codec)
            with kind(str(directory / f"{codec}.{end}"), table.schema, options=options) as out:
                out.write_table(table, max_chunksize=7)


if __name__ == "__main__":
    {"read": read, "write": write}[sys.argv[1]](*map(Path, sys.argv[2:]))
