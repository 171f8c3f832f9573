"""Converts real files to archives by the command, and compares the tensors by the libraries that the files are made for.

    corpus.py TENARC DIR EXPECTED

TENARC is the command. Every file below DIR whose name ends as that of a format is read by the format's own library, without
running code from the file, and converted without accepting losses. What the library does not read is counted apart. A file
counts as equal if its tensors in the archive have the dtypes, shapes and bits that the library reads. Tables, texts, and files of
MessagePack and CBOR written back, have the same values. What is refused is listed with its reason.

EXPECTED is a JSON file with the counts, which do not change, as the files do not. If it is -, they are printed in its form. A kind
that it lacks is not counted, but still no value may be wrong.
Without torch, the counts of PyTorch are not compared.
"""

import io
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter, defaultdict
from pathlib import Path

import cbor2
import gguf
import h5py
import msgpack
import msgpack_numpy
import numpy as np
import onnx
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet
import safetensors.numpy
from onnx import numpy_helper

sys.path.insert(0, str(Path(__file__).parents[3] / "python/src"))
import tenarc  # noqa: E402

try:
    import torch
except ImportError:
    torch = None

FAMILIES = {
    "safetensors": ["safetensors"], "numpy": ["npz", "npy"], "ONNX": ["onnx"], "PyTorch": ["pt", "pth", "jit"],
    "Arrow": ["feather", "arrow", "arrows"], "Parquet": ["parquet"], "GGUF": ["gguf"], "MessagePack": ["msgpack", "mpk"],
    "HDF5": ["h5", "hdf5", "h5ad", "he5", "nc", "nc4", "mat", "keras"], "tenbin": ["ten"], "JSON": ["json", "jsonl", "ndjson"],
    "CBOR": ["cbor", "cborseq"],
}  # fmt: skip
# Some tests of HDF5 have datasets that are almost only fill values.
MOST_ELEMENTS = 1 << 27
# Prints each file that is not compared.
LOG = "LOG" in os.environ
EXTENSIONS = {extension: family for family, extensions in FAMILIES.items() for extension in extensions}


class NotCompared(Exception):
    """What neither the library nor this program can say."""


def table_of_arrow(path):
    with path.open("rb") as file:
        if file.read(4) in (b"ARRO", b"FEA1"):
            return pyarrow.feather.read_table(path)
        file.seek(0)
        return pyarrow.ipc.open_stream(file).read_all()


TABLES = {"Parquet": pyarrow.parquet.read_table, "Arrow": table_of_arrow}


def compare_tables(expected, archive):
    """Returns the column of a table that differs."""
    with tenarc.open(archive) as opened:
        value = opened.load()
        if isinstance(value, dict):
            # The columns of an Arrow file without texts and nulls become tensors.
            found = pyarrow.table({name: value[name] for name in expected.column_names if name in value})
        else:
            found = opened.table(opened.names()[0]).to_arrow()
    for name, theirs in zip(expected.column_names, expected.columns, strict=True):
        if name not in found.column_names:
            return name
        ours = found[name]
        # The extension types of tenarc are for what Arrow has not.
        if hasattr(ours.type, "storage_type") or hasattr(theirs.type, "storage_type"):
            raise NotCompared
        # As texts, because NaN is not equal to itself.
        if repr(ours.cast(theirs.type).to_pylist()) != repr(theirs.to_pylist()):
            return name
    return None


def columns(name, array):
    """An array, or each field of an array of records, by its name."""
    if not array.dtype.names:
        return {name: array}
    found = {}
    for field in array.dtype.names:
        found |= columns(f"{name}.{field}" if name else field, array[field])
    return found


def of_numpy(path):
    """Arrays without objects; an object array needs a pickle, which is refused. Of records, each field."""
    if path.suffix == ".npy":
        return columns("", np.load(path))
    found = {}
    with np.load(path) as arrays:
        for name, array in arrays.items():
            found |= columns(name, array)
    return found


def of_onnx(path):
    """Each tensor of a model, with the names that it may have."""
    found = []

    def graph(initializers, nodes, inside):
        for tensor in initializers:
            found.append(([tensor.name, "/".join([*inside, tensor.name])], numpy_helper.to_array(tensor)))
        for node in nodes:
            output = next((name for name in [*node.output[:1], node.name] if name), "")
            for attribute in node.attribute:
                name = output if node.op_type == "Constant" else f"{output}/{attribute.name}"
                if attribute.type == onnx.AttributeProto.TENSOR:
                    found.append(([name, "/".join([*inside, name])], numpy_helper.to_array(attribute.t)))
                if attribute.type == onnx.AttributeProto.GRAPH:
                    graph(attribute.g.initializer, attribute.g.node, [*inside, f"{output}/{attribute.name}"])

    model = onnx.load(path)
    graph(model.graph.initializer, model.graph.node, [])
    for function in model.functions:
        graph([], function.node, [function.name])
    return found


def of_torch(path):
    if not torch:
        raise NotCompared
    if path.suffix == ".jit":
        value = torch.jit.load(path, map_location="cpu").state_dict()
    else:
        value = torch.load(path, map_location="cpu", weights_only=True)
    found = {}

    def walk(value, name):
        if isinstance(value, torch.Tensor):
            found[".".join(name)] = value.detach().contiguous().view(-1).numpy().reshape(value.shape)
        elif isinstance(value, dict):
            for key, inner in value.items():
                walk(inner, [*name, str(key)])
        elif isinstance(value, (list, tuple)):
            for number, inner in enumerate(value):
                walk(inner, [*name, str(number)])

    walk(value, [])
    return found


def of_hdf5(path):
    """Each dataset that has elements, by the names of the groups that lead to it first."""
    found = {}

    def dataset(name, item):
        if not isinstance(item, h5py.Dataset) or item.shape is None:
            return
        if item.size > MOST_ELEMENTS:
            raise NotCompared
        value = np.asarray(item[()])
        if item.shape == () and isinstance(h5py.check_vlen_dtype(item.dtype), np.dtype):
            # One list.
            value, inner = np.empty((), object), value
            value[()] = inner
        for path, array in columns(name.replace("/", "."), value).items():
            found[path] = array
            kind, reference = h5py.check_vlen_dtype(array.dtype), h5py.check_ref_dtype(array.dtype)
            if reference is h5py.Reference:
                names = [item.file[to].name if to else None for to in array.ravel()]
                found[path] = np.array(names, object).reshape(array.shape)
            elif reference:
                raise NotCompared
            elif isinstance(kind, np.dtype):
                # h5py gives the bytes of lists of another byte order as if they were of this machine's.
                found[path] = np.empty(array.shape, object)
                for index, each in np.ndenumerate(array):
                    found[path][index] = each.view(kind)

    file = path
    if zipfile.is_zipfile(path):
        file = io.BytesIO(zipfile.ZipFile(path).read("model.weights.h5"))
    # A dataset with several names is visited by one of them, and groups only once.
    with h5py.File(file) as file:
        file.visititems(dataset)
    return found


def of_gguf(path):
    """The metadata, and each tensor whose dtype numpy has, or else its bytes."""
    found, reader = {}, gguf.GGUFReader(path)
    for tensor in reader.tensors:
        shape = tuple(reversed(tensor.shape.tolist()))
        found[tensor.name] = tensor.data.reshape(shape) if tensor.data.size == np.prod(shape) else tensor.data
    for name, field in reader.fields.items():
        if not name.startswith("GGUF."):
            found[f"__metadata__.{name}"] = np.asarray(field.contents(), object)
    return found


def of_tenbin(path):
    from webdataset import tenbin

    values, names = tenbin.load(str(path), infos=True)
    return dict(zip(names, values, strict=True))


LIBRARIES = {
    "HDF5": of_hdf5, "numpy": of_numpy, "ONNX": of_onnx, "PyTorch": of_torch, "safetensors": safetensors.numpy.load_file,
    "GGUF": of_gguf, "tenbin": of_tenbin,
}  # fmt: skip


def all_json(path):
    text = path.read_text("utf-8-sig")
    try:
        return [json.loads(text)]
    except json.JSONDecodeError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]


def all_msgpack(path):
    hook = msgpack_numpy.decode
    return list(msgpack.Unpacker(io.BytesIO(path.read_bytes()), object_hook=hook, strict_map_key=False, max_buffer_size=0))


def all_cbor(path):
    found, file = [], io.BytesIO(path.read_bytes())
    while file.tell() < len(file.getbuffer()):
        found.append(cbor2.load(file))
    return found


#: All values of a file.
VALUES = {"JSON": all_json, "MessagePack": all_msgpack, "CBOR": all_cbor}


def is_plain(value):
    """Whether a value is a text, a byte string or a number, or nested lists of them."""
    return isinstance(value, (str, bytes, int, float)) or isinstance(value, (list, tuple)) and all(map(is_plain, value))


def tensors(value, name=()):
    """All tensors of a value, by their names as PyTorch, numpy and safetensors give them."""
    entries = []
    if isinstance(value, dict):
        entries = value.items()
    elif isinstance(value, (list, tuple)) and not is_plain(value):
        entries = enumerate(value)
    else:
        return {".".join(name): value}
    found = {}
    for key, inner in entries:
        found |= tensors(inner, (*name, str(key)))
    return found


def as_text(text):
    return text.decode(errors="surrogateescape") if isinstance(text, bytes) else str(text)


def as_array(value):
    try:
        return np.asarray(value)
    except ValueError:
        # Lists of different lengths.
        return np.array(value, object)


def nested(value):
    """Arrays as nested lists, and what is in them as texts."""
    if isinstance(value, np.ndarray):
        return nested(value.tolist())
    return [*map(nested, value)] if isinstance(value, (list, tuple)) else as_text(value)


def is_same(found, expected):
    """Whether two arrays have the same dtype, shape and bits, in any order of bytes."""
    if expected.dtype.kind in "OUS":
        # Texts and lists, which are plain values in an archive. Of empty ones, the shape is left out.
        return nested(found) == nested(expected) or not found.size and not expected.size
    native = expected.astype(expected.dtype.newbyteorder("="))
    return (found.dtype, found.shape, found.tobytes()) == (native.dtype, native.shape, native.tobytes())


def read(family, path):
    """What the original library reads."""
    if family in TABLES:
        return TABLES[family](path)
    return (VALUES if family in VALUES else LIBRARIES)[family](path)


def compare(family, path, archive, expected, again):
    """Returns what differs."""
    if family in TABLES:
        return compare_tables(expected, archive)
    if family in VALUES:
        back = archive.with_suffix(path.suffix)
        again(archive, back)
        # As texts, because NaN is not equal to itself, and true is equal to 1.
        return None if repr(VALUES[family](back)) == repr(expected) else "values"
    value = tenarc.load(archive)
    if isinstance(expected, dict):
        expected = [([name], array) for name, array in expected.items()]
    found = tensors(value)
    for names, array in expected:
        if not any(is_same(as_array(found[name]), array) for name in names if name in found):
            return names[0]
    return None


COLUMNS = ["files", "read by the library", "equal", "not compared", "refused", "wrong"]


def main(command, directory, expected):
    counts, refused, wrong = defaultdict(Counter), defaultdict(Counter), []

    def convert(source, target):
        run = [command, "convert", "--no-sync", "--quiet", str(source), str(target)]
        return subprocess.run(run, capture_output=True, text=True)

    def outcome(family, path, archive):
        """The column in which a file counts."""
        ran = convert(path, archive)
        reason = ran.stderr.strip().removeprefix("tenarc: ").removeprefix(f"{path}: ")
        if ran.returncode not in (0, 1, 2):
            wrong.append(f"CRASHED {path.relative_to(directory)}: {reason}")
            return "wrong"
        try:
            content = read(family, path)
        except NotCompared:
            content = None
        except Exception as error:  # noqa: BLE001
            log(path, "not read by the library", f"{type(error).__name__}: {error}; {reason or 'converted'}")
            return "files"
        counts[family]["read by the library"] += 1
        if ran.returncode:
            log(path, "refused", reason)
            refused[family][reason[:160]] += 1
            return "refused"
        if content is None:
            log(path, "not compared", "")
            return "not compared"
        try:
            different = compare(family, path, archive, content, lambda *paths: convert(*paths).check_returncode())
        except NotCompared:
            log(path, "not compared", "")
            return "not compared"
        if different is not None:
            wrong.append(f"WRONG {path.relative_to(directory)}: {different}")
            return "wrong"
        return "equal"

    def log(path, what, why):
        if LOG:
            print(f"{path.relative_to(directory)}: {what}: {why}"[:400], flush=True)

    with tempfile.TemporaryDirectory() as folder:
        for path in sorted(directory.rglob("*.*")):
            family = EXTENSIONS.get(path.suffix[1:])
            if not family or not path.is_file():
                continue
            column = outcome(family, path, Path(folder) / "a.tenarc")
            counts[family]["files"] += column != "files"
            counts[family][column] += 1
    print("| kind |", " | ".join([*COLUMNS, "converted"]), "|")
    print("|---|" + "---|" * (len(COLUMNS) + 1))
    for family in FAMILIES:
        count = counts[family]
        share = (
            f"{1 - (count['refused'] + count['wrong']) / count['read by the library']:.1%}"
            if count["read by the library"]
            else ""
        )
        print(f"| {family} |", " | ".join([*(str(count[column]) for column in COLUMNS), share]), "|")
    for family, reasons in refused.items():
        for reason, count in reasons.most_common():
            print(f"{family}, {count} refused: {reason}")
    print(*wrong, sep="\n")
    found = {family: {name: counts[family][name] for name in COLUMNS} for family in FAMILIES if counts[family]}
    if expected == "-":
        print("{", ",\n".join(f" {json.dumps(family)}: {json.dumps(found[family])}" for family in found), "}", sep="\n")
        sys.exit(bool(wrong))
    expected = json.loads(Path(expected).read_text())
    differ = [family for family in expected if (torch or family != "PyTorch") and found.get(family) != expected[family]]
    for family in differ:
        print(f"{family}: expected {expected[family]}, found {found.get(family)}")
    sys.exit(bool(wrong or differ))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
