"""Times conversions of a large model by the command, beside what Python's own libraries take for the same.

    speed.py TENARC DIR [MEGABYTES]

TENARC is a release build of the command. DIR should be on the disk that is meant. Every run writes a new file and does not wait
for the disk. The libraries load the whole model into memory; starting Python and importing them is not counted.
"""

import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import safetensors.numpy

RUNS = 5


def timed(run, *outputs):
    """The median of some runs, in seconds."""
    times = []
    for _ in range(RUNS):
        for output in outputs:
            output.unlink(missing_ok=True)
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main(command, directory, megabytes):
    directory.mkdir(parents=True, exist_ok=True)
    model = directory / "model.safetensors"
    rows = megabytes * 1_000_000 // 40 // 4096
    random = np.random.default_rng(1)
    tensors = {f"layers.{n}.weight": random.standard_normal((rows, 1024), np.float32) for n in range(40)}
    safetensors.numpy.save_file(tensors, model)
    # Writing fresh pages is the floor.
    copy = directory / "copy"
    data = model.read_bytes()
    floor = timed(lambda: copy.write_bytes(data), copy)
    size = len(data)
    del data

    def tenarc(*arguments):
        return lambda: subprocess.run([command, *map(str, arguments)], check=True, capture_output=True)

    def native(save):
        return lambda: save(safetensors.numpy.load_file(model))

    def arrow(loaded):
        columns = [pa.array([array.reshape(-1)]) for array in loaded.values()]
        table = pa.table(columns, names=list(loaded))
        with pa.OSFile(str(directory / "n.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)

    convert = lambda name: tenarc("convert", "--no-sync", "--quiet", model, directory / name)  # noqa: E731
    results = [
        ("safetensors to tenarc", timed(convert("a.tenarc"), directory / "a.tenarc"), None),
        ("verify the archive", timed(tenarc("verify", directory / "a.tenarc")), None),
        (
            "safetensors to safetensors",
            timed(convert("a.safetensors"), directory / "a.safetensors"),
            timed(native(lambda loaded: safetensors.numpy.save_file(loaded, directory / "n.safetensors"))),
        ),
        (
            "safetensors to npz",
            timed(convert("a.npz"), directory / "a.npz"),
            timed(native(lambda loaded: np.savez(directory / "n.npz", **loaded))),
        ),
        (
            "safetensors to Arrow",
            timed(convert("a.arrow"), directory / "a.arrow"),
            timed(native(arrow)),
        ),
    ]
    print(f"{size / 1e6:.0f} MB; writing as many bytes to a new file takes {floor * 1e3:.0f} ms")
    print("| | tenarc, ms | Python's libraries, ms |\n|---|---|---|")
    for what, ours, theirs in results:
        print(f"| {what} | {ours * 1e3:.0f} | {f'{theirs * 1e3:.0f}' if theirs else ''} |")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 420)
