"""Measures the time that the command takes for the files of memory.py, and prints it as a table: a multiple of what the library
of the format takes to read the file. It is the time on a processor, the least of three runs, without the start of the program
and the imports of the library.

python times.py TENARC DIRECTORY   # as memory.py, and torch for the file of PyTorch
"""

import os
import subprocess
import sys
from pathlib import Path

COMMANDS = ("info", "verify", "convert")
LIBRARIES = {
    "npz": ("import numpy as np", "[*np.load(path).values()]"),
    "npy": ("import numpy as np", "np.load(path)"),
    "safetensors": ("from safetensors.numpy import load_file", "load_file(path)"),
    "pt": ("import torch", "torch.load(path, weights_only=True)"),
    "gguf": ("import gguf", "[tensor.data.copy() for tensor in gguf.GGUFReader(path).tensors]"),
    "onnx": ("import onnx; from onnx.numpy_helper import to_array", "[*map(to_array, onnx.load(path).graph.initializer)]"),
    "arrow": ("import pyarrow as pa", "pa.ipc.open_file(pa.OSFile(path)).read_all()"),
    "parquet": ("import pyarrow.parquet as pq", "pq.read_table(path)"),
    "ten": ("from webdataset import tenbin", "tenbin.load(path)"),
    "msgpack": (
        "import msgpack, msgpack_numpy",
        "[*msgpack.Unpacker(open(path, 'rb'), object_hook=msgpack_numpy.decode, max_buffer_size=0)]",
    ),
    "json": ("import json", "json.load(open(path))"),
    "jsonl": ("import json", "[*map(json.loads, open(path))]"),
    "cbor": (
        "import cbor2, io, os",
        "file = io.BytesIO(open(path, 'rb').read())\nwhile file.read(1): file.seek(-1, 1); cbor2.load(file)",
    ),
    "h5": ("import h5py", "file = h5py.File(path)\nfor name in file: file[name][()]"),
}
READ = """
import sys, time
path = sys.argv[1]
{}
start = time.process_time()
{}
print(time.process_time() - start)
"""


def library(path):
    imports, read = LIBRARIES[path.suffix[1:]]
    run = [sys.executable, "-c", READ.format(imports, read), path]
    return min(float(subprocess.run(run, check=True, capture_output=True, text=True).stdout) for _ in range(3))


def command(*arguments):
    def once():
        null = os.open(os.devnull, os.O_WRONLY)
        try:
            pid = os.posix_spawn(arguments[0], arguments, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, null, 1)])
        finally:
            os.close(null)
        _, status, usage = os.wait4(pid, 0)
        assert status == 0, arguments
        return usage.ru_utime + usage.ru_stime

    return min(once() for _ in range(3))


def main():
    binary, directory = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    if not directory.exists():
        subprocess.run([sys.executable, Path(__file__).with_name("memory.py"), binary, directory], check=True)
    os.chdir(directory)
    own = command(str(binary), "--version")
    print(f"| file | MB | library, ms | {' | '.join(COMMANDS)} |\n|---|---|---|{'---|' * len(COMMANDS)}")
    for path in sorted(path for path in Path(".").iterdir() if path.suffix != ".tenarc"):
        theirs, found = library(path), []
        for name in COMMANDS:
            more = ["--no-sync", "--to", "tenarc", path.name, "../times.out"] if name == "convert" else [path.name]
            ours = command(str(binary), "--quiet", name, *more) - own
            found.append(f"{max(ours, 0) / theirs:.1f}")
        print(f"| {path.name} | {path.stat().st_size / 1e6:.0f} | {theirs * 1e3:.0f} | {' | '.join(found)} |", flush=True)


main()
