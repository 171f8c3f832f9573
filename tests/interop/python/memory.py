"""Measures how much memory the command takes for files of about 30 MB, and prints it as a table: the most bytes that it had
at once, as a multiple of the file.

python memory.py TENARC DIRECTORY   # needs numpy, h5py, pyarrow, msgpack and onnx; writes 1 GB to the directory
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import h5py
import msgpack
import numpy as np
import onnx
import pyarrow as pa
import pyarrow.parquet as pq

SIZE = 30 << 20
COMMANDS = ("info", "ls", "verify", "convert")


def rows(number):
    """Rows of a log, with about 60 bytes each as JSON."""
    return [{"id": i, "score": i * 0.37, "name": f"user {i % 977}"} for i in range(number)]


def tensors(directory, run):
    """Files with some tensors."""
    rng = np.random.default_rng(1)
    arrays = {f"w{i}": rng.standard_normal((1024, SIZE // 8 // 4 // 1024), np.float32) for i in range(8)}
    np.savez(directory / "tensors.npz", **arrays)
    np.savez_compressed(directory / "deflated.npz", **{name: np.round(a, 1) for name, a in arrays.items()})
    np.save(directory / "tensor.npy", np.concatenate([*arrays.values()]))
    run("convert", "tensors.npz", "tensors.tenarc")
    for name in ("safetensors", "pt", "gguf", "arrow", "ten", "msgpack", "json", "cbor"):
        run("convert", "tensors.tenarc", f"tensors.{name}")
    initializers = [onnx.numpy_helper.from_array(array, name) for name, array in arrays.items()]
    onnx.save(onnx.helper.make_model(onnx.helper.make_graph([], "g", [], [], initializers)), directory / "tensors.onnx")
    with h5py.File(directory / "contiguous.h5", "w") as file:
        for name, array in arrays.items():
            file[name] = array
    with h5py.File(directory / "chunked.h5", "w") as file:
        for name, array in arrays.items():
            file.create_dataset(name, data=np.round(array, 1), chunks=(256, 256), compression="gzip", shuffle=True)
    with h5py.File(directory / "one_chunk.h5", "w") as file:
        array = np.concatenate([*arrays.values()])
        file.create_dataset("w", data=array, chunks=array.shape, compression="gzip", compression_opts=1)


def tables(directory, run):
    """Files with many rows."""
    some = rows(SIZE // 60)
    table = pa.Table.from_pylist(some * 3)
    pq.write_table(table, directory / "one_group.parquet", row_group_size=len(table))
    pq.write_table(table, directory / "groups.parquet", row_group_size=1 << 17)
    with pa.OSFile(str(directory / "batches.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=1 << 16)
    (directory / "rows.json").write_text(json.dumps(some))
    (directory / "lines.jsonl").write_text("".join(json.dumps(row) + "\n" for row in some))
    (directory / "rows.msgpack").write_bytes(msgpack.packb(some))
    (directory / "nested.msgpack").write_bytes(msgpack.packb({"rows": some}))
    (directory / "each.msgpack").write_bytes(b"".join(map(msgpack.packb, some)))
    (directory / "numbers.json").write_text(json.dumps([i * 0.37 for i in range(SIZE // 20)]))
    run("convert", "lines.jsonl", "columns.tenarc")
    run("convert", "each.msgpack", "rows.cbor")
    texts = h5py.string_dtype()
    with h5py.File(directory / "texts.h5", "w") as file:
        file.create_dataset("texts", data=[f"a text of the row {i}, which is a bit longer" for i in range(SIZE // 60)], dtype=texts)


#: Prints the memory of a program. Linux counts that of the process that starts it, too, so this one is small.
PEAK = """
import os, sys
null = os.open(os.devnull, os.O_WRONLY)
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, null, 1)])
_, status, usage = os.wait4(pid, 0)
print(usage.ru_maxrss * 1024)
sys.exit(status != 0)
"""


def peak(*command):
    """The most memory of a program, in bytes."""
    done = subprocess.run([sys.executable, "-S", "-c", PEAK, *command], check=True, capture_output=True, text=True)
    return int(done.stdout)


def main():
    binary, directory = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    directory.mkdir(parents=True, exist_ok=True)

    def run(*arguments):
        subprocess.run([binary, *arguments], cwd=directory, check=True)

    if not any(directory.iterdir()):
        tensors(directory, run)
        tables(directory, run)
    os.chdir(directory)
    # The program itself, without a file.
    own = peak(str(binary), "--version")
    print(f"| file | MB | {' | '.join(COMMANDS)} |\n|---|---|{'---|' * len(COMMANDS)}")
    for path in sorted(Path(".").iterdir()):
        size, found = path.stat().st_size, []
        for command in COMMANDS:
            more = ["--no-sync", "--to", "tenarc", path.name, "../memory.out"] if command == "convert" else [path.name]
            most = peak(str(binary), "--quiet", command, *more)
            found.append(f"{max(most - own, 0) / size:.1f}")
        print(f"| {path.name} | {size / 1e6:.0f} | {' | '.join(found)} |", flush=True)


main()
