"""Converts real files to archives by the command, and compares the tensors by the libraries that the files are made for.

    corpus.py TENARC DIR EXPECTED

TENARC is the command. Every file below DIR whose name ends as that of a format is converted. A file counts as lossless if
the command says so, and its tensors in the archive have the dtypes, shapes and bits that the format's own library reads. If
there is no such library here, it is counted apart. What is refused is listed with its reason.

EXPECTED is a JSON file with the counts, which do not change, as the files do not. If it is -, they are printed in its form.
Without torch, the counts of PyTorch are not compared.
"""

import json
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

import h5py
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
    "Arrow": ["feather", "arrow"], "Parquet": ["parquet"], "HDF5": ["h5", "hdf5", "h5ad"],
}  # fmt: skip
# Some tests of HDF5 have datasets that are almost only fill values.
MOST_ELEMENTS = 1 << 26
EXTENSIONS = {extension: family for family, extensions in FAMILIES.items() for extension in extensions}


class NotCompared(Exception):
    pass


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
    try:
        if path.suffix == ".jit":
            value = torch.jit.load(path, map_location="cpu").state_dict()
        else:
            value = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        # Whole modules need their classes.
        raise NotCompared from error
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
        for path, array in columns(name.replace("/", "."), np.asarray(item[()])).items():
            if array.dtype == object and not h5py.check_string_dtype(array.dtype):
                # Lists of different lengths, and references.
                raise NotCompared
            found[path] = array

    try:
        # A dataset with several names is visited by one of them, and groups only once.
        with h5py.File(path) as file:
            file.visititems(dataset)
    except Exception as error:
        # Files and objects that h5py does not read, and chunks of a filter that is a plugin, such as Blosc.
        raise NotCompared from error
    return found


LIBRARIES = {"HDF5": of_hdf5, "numpy": of_numpy, "ONNX": of_onnx, "PyTorch": of_torch, "safetensors": safetensors.numpy.load_file}


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


def compare(family, path, archive):
    """Returns what differs."""
    if family in TABLES:
        return compare_tables(TABLES[family](path), archive)
    value, expected = tenarc.load(archive), LIBRARIES[family](path)
    if isinstance(expected, dict):
        expected = [([name], array) for name, array in expected.items()]
    found = tensors(value)
    for names, array in expected:
        candidates = [as_array(found[name]) for name in names if name in found]
        if array.dtype.kind in "OUS":
            # Texts, which are plain values in an archive, and byte strings if they are not UTF-8.
            same = lambda other: [*map(as_text, other.ravel())] == [*map(as_text, array.ravel())]  # noqa: E731
        else:
            same = lambda other: (other.dtype, other.shape) == (array.dtype.newbyteorder("="), array.shape) and (  # noqa: E731
                other.tobytes() == array.astype(array.dtype.newbyteorder("=")).tobytes())  # fmt: skip
        if not any(map(same, candidates)):
            return names[0]
    return None


def main(command, directory, expected):
    counts, refused, wrong = defaultdict(Counter), defaultdict(Counter), []
    with tempfile.TemporaryDirectory() as folder:
        for path in sorted(directory.rglob("*.*")):
            family = EXTENSIONS.get(path.suffix[1:])
            if not family or not path.is_file():
                continue
            archive = Path(folder) / "a.tenarc"
            run = [command, "convert", "--no-sync", "--quiet", str(path), str(archive)]
            ran = subprocess.run(run, capture_output=True, text=True)
            counts[family]["files"] += 1
            if ran.returncode:
                reason = ran.stderr.strip().removeprefix("tenarc: ").removeprefix(f"{path}: ")
                refused[family][reason[:160]] += 1
                counts[family]["refused"] += 1
                continue
            try:
                different = compare(family, path, archive)
                if different is not None:
                    wrong.append(f"WRONG {path.relative_to(directory)}: {different}")
                counts[family]["wrong" if different is not None else "lossless"] += 1
            except NotCompared:
                counts[family]["converted, not compared"] += 1
    columns = ["files", "lossless", "converted, not compared", "refused", "wrong"]
    print("| kind |", " | ".join(columns), "|")
    print("|---|" + "---|" * len(columns))
    for family in FAMILIES:
        print(f"| {family} |", " | ".join(str(counts[family][column]) for column in columns), "|")
    for family, reasons in refused.items():
        for reason, count in reasons.most_common():
            print(f"{family}, {count} refused: {reason}")
    print(*wrong, sep="\n")
    found = {family: {name: counts[family][name] for name in columns} for family in FAMILIES}
    if expected == "-":
        print(json.dumps(found, indent=1))
        sys.exit(bool(wrong))
    expected = json.loads(Path(expected).read_text())
    differ = [family for family in FAMILIES if (torch or family != "PyTorch") and found[family] != expected[family]]
    for family in differ:
        print(f"{family}: expected {expected[family]}, found {found[family]}")
    sys.exit(bool(wrong or differ))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
