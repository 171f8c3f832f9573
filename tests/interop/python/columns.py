"""Exchanges Arrow's files and streams between pyarrow and tenarc.

    columns.py read DIR     reads what tenarc wrote
    columns.py write DIR    writes files for tenarc to read

What a column holds follows from its name, as ../src/columns.rs says.
"""

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
from arrays import DTYPES, sample

ROWS = [(3,), (3, 2), (3, 2, 4), (3, 1)]


def table_of(path):
    source = pa.memory_map(str(path))
    reader = pa.ipc.open_stream(source) if path.suffix == ".arrows" else pa.ipc.open_file(source)
    table = reader.read_all()
    table.validate(full=True)
    return table


def array_of(column):
    column = column.combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0)
    if not isinstance(column.type, pa.FixedShapeTensorType):
        return column.to_numpy(zero_copy_only=False)
    if pa.types.is_boolean(column.type.value_type):
        # pyarrow makes no ndarray of bits.
        flat = column.storage.flatten().to_numpy(zero_copy_only=False)
        found = flat.reshape(len(column), *column.type.shape)
        axes = column.type.permutation or range(found.ndim - 1)
        return found.transpose(0, *(axis + 1 for axis in axes))
    return column.to_numpy_ndarray()


def compare(name, found, cells):
    dtype, shape, _ = name.split("-")
    shape = tuple(int(dim) for dim in shape.split("x") if dim)
    found = found[0] if cells else found
    expected = sample(dtype, shape)
    if found.dtype != expected.dtype or found.shape != shape:
        raise ValueError(f"{found.dtype} {found.shape}")
    if not np.array_equal(found, expected):
        raise ValueError(f"expected {expected}, found {found}")


def read(directory):
    passed = failed = 0
    for path in sorted(directory.iterdir()):
        table = table_of(path)
        cells = (table.schema.metadata or {}).get(b"tenarc.layout") == b"one row"
        for name in table.column_names:
            try:
                compare(name, np.asarray(array_of(table[name])), cells)
                passed += 1
            except Exception as error:
                failed += 1
                print(f"FAILED {path.name}, {name} by pyarrow: {error!r:.400}")
    print(f"passed={passed} failed={failed}")
    sys.exit(failed > 0)


def lists(array):
    column = pa.array(array.reshape(-1))
    for size in reversed(array.shape[1:]):
        column = pa.FixedSizeListArray.from_arrays(column, size)
    return column


def tensors(array):
    if array.ndim == 1:
        return pa.array(array)
    if array.dtype == bool:
        kind = pa.fixed_shape_tensor(pa.bool_(), array.shape[1:])
        size = int(np.prod(array.shape[1:]))
        return pa.ExtensionArray.from_storage(kind, lists(array.reshape(-1, size)))
    return pa.FixedShapeTensorArray.from_numpy_ndarray(array)


def write(directory):
    directory.mkdir(parents=True, exist_ok=True)
    arrays = {
        f"{dtype}-{'x'.join(map(str, shape))}-C": sample(dtype, shape)
        for dtype in DTYPES
        if dtype[0] != "c"
        for shape in ROWS
    }
    for kind, columns in (("lists", lists), ("tensors", tensors)):
        table = pa.table({name: columns(array) for name, array in arrays.items()})
        for codec in (None, "lz4", "zstd"):
            options = pa.ipc.IpcWriteOptions(compression=codec)
            for suffix, new in ((".arrow", pa.ipc.new_file), (".arrows", pa.ipc.new_stream)):
                for rows in (None, 2):
                    path = directory / f"{kind}_{codec}_{rows}{suffix}"
                    with new(str(path), table.schema, options=options) as out:
                        out.write_table(table, max_chunksize=rows)


if __name__ == "__main__":
    {"read": read, "write": write}[sys.argv[1]](Path(sys.argv[2]))
