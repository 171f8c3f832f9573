"""Converts files of each format to each other format and back by the command, and compares them by the original libraries.

    matrix.py TENARC DIR

TENARC is the command. Files are written to DIR. Every conversion must give the same dtypes, shapes, order of elements and
bits, or it must be refused, leave no file and name what cannot be kept. What each format holds is listed here, so that a
refusal that should not be, and a conversion that should not be possible, both fail.

PyTorch's files are included if torch is installed.
"""

import json
import math
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import gguf
import h5py
import msgpack
import msgpack_numpy
import numpy as np
import onnx
import pyarrow as pa
import safetensors.numpy
from arrays import DTYPES, sample
from columns import array_of, table_of
from onnx import helper, numpy_helper
from webdataset import tenbin

sys.path.insert(0, str(Path(__file__).parents[3] / "python/src"))
import tenarc  # noqa: E402

try:
    import torch
except ImportError:
    torch = None

ALL = set(DTYPES)
COMPLEX = {"c64", "c128"}


def cases():
    """Named arrays, by a name of what is special about them."""
    for dtype in DTYPES:
        # Of one length: an Arrow file has the same number of rows in all columns.
        yield dtype, {"matrix": sample(dtype, (6, 3)), "layer.b": sample(dtype, (6,))}
    yield "f32 scalar", {"scalar": sample("f32", ())}
    yield "f32 empty", {"empty": sample("f32", (0, 3)), "none": sample("f32", (0,))}
    yield "f32 deep", {"deep": sample("f32", (2, 1, 3, 2, 2))}
    yield "f32 lengths", {"long": sample("f32", (9,)), "short": sample("f32", (2, 2))}
    special = np.array([0x7FC12345, 0xFFC00001, 0x7F800000, 0x80000000, 1], np.uint32)
    yield "f32 special", {"special": special.view(np.float32)}


def tensor_dict(value):
    return {name: np.asarray(array) for name, array in value.items()}


# Readers and writers by the libraries of the formats.


def read_arrow(path):
    table = table_of(path)
    arrays = {name: array_of(table.column(name)) for name in table.column_names}
    # Tensors of different lengths stand in one row, each in a cell.
    cells = (table.schema.metadata or {}).get(b"tenarc.layout") == b"one row"
    return {name: array[0] if cells else array for name, array in arrays.items()}


def write_arrow(path, arrays):
    columns = []
    for array in arrays.values():
        flat = pa.array(np.ascontiguousarray(array).reshape(-1))
        if array.ndim > 1:
            kind = pa.fixed_shape_tensor(flat.type, array.shape[1:])
            width = math.prod(array.shape[1:])
            storage = pa.FixedSizeListArray.from_arrays(flat, width)
            flat = pa.ExtensionArray.from_storage(kind, storage)
        columns.append(flat)
    table = pa.table(columns, names=list(arrays))
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


def read_json(path):
    def array(tensor):
        data = tensor["data"]
        if tensor["dtype"] in COMPLEX:
            data = [complex(*parts) for parts in data]
        return np.array(data, DTYPES[tensor["dtype"]]).reshape(tensor["shape"])

    return {name: array(tensor) for name, tensor in json.loads(path.read_text()).items()}


def write_json(path, arrays):
    names = {np.dtype(code): name for name, code in DTYPES.items()}

    def data(array):
        numbers = array.ravel().tolist()
        return [[number.real, number.imag] for number in numbers] if array.dtype.kind == "c" else numbers

    value = {
        name: {"dtype": names[array.dtype], "shape": list(array.shape), "data": data(array)}
        for name, array in arrays.items()
    }
    path.write_text(json.dumps(value))


def write_onnx(path, arrays):
    tensors = [numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name) for name, array in arrays.items()]
    graph = helper.make_graph([], "g", [], [], initializer=tensors)
    path.write_bytes(helper.make_model(graph).SerializeToString())


def write_gguf(path, arrays):
    writer = gguf.GGUFWriter(str(path), "test")
    # Nothing but tensors, as the other formats cannot hold metadata.
    writer.kv_data[0].clear()
    for name, array in arrays.items():
        writer.add_tensor(name, np.ascontiguousarray(array).reshape(array.shape))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def read_gguf(path):
    # Its reader gives bytes of the dtypes that it does not know, and no dimensions that are missing.
    return {
        tensor.name: np.asarray(tensor.data).reshape(tuple(reversed(tensor.shape.tolist())))
        for tensor in gguf.GGUFReader(path).tensors
    }


def write_hdf5(path, arrays):
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file[name] = array


def read_ten(path):
    values, names = tenbin.load(str(path), infos=True)
    return dict(zip(names, values))


def write_ten(path, arrays):
    tenbin.save(str(path), *arrays.values(), infos=list(arrays))


def read_cbor(path):
    return tensor_dict(tenarc.loads(path.read_bytes()))


def read_npz(path):
    with np.load(path) as arrays:
        return dict(arrays)


class Format:
    def __init__(self, extension, read, write, dtypes=ALL, lacks=(), not_from=(), not_read=()):
        self.extension, self.read, self.write = extension, read, write
        self.dtypes, self.lacks = dtypes, set(lacks)
        # Cases that the library has no direct way to write, or to read.
        self.not_from, self.not_read = set(not_from), set(not_read)

    def holds(self, case):
        """Whether the format can hold the arrays of a case as they are."""
        return case.split()[0] in self.dtypes and case not in self.lacks


WHOLE = {"u8", "i8", "i16", "i32", "i64"}
FORMATS = {
    "tenarc": Format("tenarc", lambda path: tensor_dict(tenarc.load(path)), tenarc.save),
    "cbor": Format("cbor", read_cbor, lambda path, arrays: path.write_bytes(tenarc.dumps(arrays))),
    "safetensors": Format("safetensors", safetensors.numpy.load_file, lambda path, arrays: safetensors.numpy.save_file(
        {name: np.ascontiguousarray(array).reshape(array.shape) for name, array in arrays.items()}, path), ALL - {"c128"}),
    "npz": Format("npz", read_npz, lambda path, arrays: np.savez(path, **arrays)),
    "arrow": Format("arrow", read_arrow, write_arrow, ALL - COMPLEX, not_from=["f32 scalar", "f32 lengths"]),
    # webdataset spells one dtype `unit32`, and neither writes nor reads it. It also reads no array without dimensions.
    "ten": Format("ten", read_ten, write_ten, {"f16", "f32", "f64", "u16", "u32", "u64", *WHOLE}, not_from=["u32", "f32 scalar"],
                  not_read=["u32", "f32 scalar"]),
    "msgpack": Format("msgpack", lambda path: msgpack.unpackb(path.read_bytes(), object_hook=msgpack_numpy.decode),
                      lambda path, arrays: path.write_bytes(msgpack.packb(arrays, default=msgpack_numpy.encode))),
    "json": Format("json", read_json, write_json, ALL, ["f32 special"]),
    "onnx": Format("onnx", None, write_onnx),
    "gguf": Format("gguf", read_gguf, write_gguf, {"f16", "f32", "f64", *WHOLE - {"u8"}}, ["f32 deep"],
                   not_from=["f32 scalar", "f32 empty"]),
    "hdf5": Format("h5", None, write_hdf5),
}  # fmt: skip
if torch:
    to_torch = lambda arrays: {name: torch.from_numpy(array) for name, array in arrays.items()}  # noqa: E731
    FORMATS["torch"] = Format("pt", None, lambda path, arrays: torch.save(to_torch(arrays), path))


def same(found, expected):
    """What differs, if anything."""
    if set(found) != set(expected):
        return f"names {sorted(found)}"
    for name, array in expected.items():
        other = np.asarray(found[name])
        if (other.dtype, other.shape) != (array.dtype, array.shape):
            return f"{name} is {other.dtype} {other.shape}, expected {array.dtype} {array.shape}"
        if other.tobytes() != array.tobytes():
            return f"{name} has other elements"
    return None


def main(command, directory):
    directory.mkdir(parents=True, exist_ok=True)
    passed, problems = 0, []
    cells = defaultdict(Counter)
    for source, (case, arrays) in ((source, case) for source in FORMATS for case in cases()):
        if not FORMATS[source].holds(case) or case in FORMATS[source].not_from:
            continue
        start = directory / f"a.{FORMATS[source].extension}"
        FORMATS[source].write(start, arrays)
        for target, format in FORMATS.items():
            if target == source or not format.read:
                continue
            there = directory / f"b.{format.extension}"
            back = directory / f"c.{FORMATS[source].extension}"
            there.unlink(missing_ok=True)

            def convert(*paths):
                run = [command, "convert", "--no-sync", "--quiet", *map(str, paths)]
                return subprocess.run(run, capture_output=True, text=True)

            ran, wrong = convert(start, there), None
            if ran.returncode:
                reason = ran.stderr.strip()
                if format.holds(case):
                    wrong = f"refused: {reason}"
                elif ran.returncode != 2 or there.exists() or not reason:
                    wrong = f"status {ran.returncode}, output {there.exists()}: {reason}"
                cells[source, target]["refused"] += 1
            elif not format.holds(case):
                wrong = "converted, though the format cannot hold it"
            else:
                try:
                    wrong = case not in format.not_read and same(format.read(there), arrays)
                    if not wrong and FORMATS[source].read:
                        ran = convert(there, back)
                        wrong = ran.stderr.strip() or same(FORMATS[source].read(back), arrays)
                        wrong = wrong and f"back: {wrong}"
                except Exception as error:  # noqa: BLE001
                    wrong = f"{type(error).__name__}: {error}"
                cells[source, target]["lossless"] += 1
            passed += not wrong
            if wrong:
                problems.append(f"FAILED {source} to {target}, {case}: {wrong}")
    targets = [target for target, format in FORMATS.items() if format.read]
    print("files converted without a loss + refused, from each format (left) to each (top):")
    print(" " * 11, *(f"{target:>11}" for target in targets))
    for source in FORMATS:
        counts = [cells[source, target] for target in targets]
        shown = [f"{count['lossless']}+{count['refused']}" if count else "-" for count in counts]
        print(f"{source:11}", *(f"{cell:>11}" for cell in shown))
    print(*problems, sep="\n")
    print(f"passed={passed} failed={len(problems)}")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
