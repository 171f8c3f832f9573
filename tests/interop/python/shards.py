"""Reads models that the command wrote in shards, as transformers does: by the index and the package safetensors.

    shards.py TENARC DIR
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import safetensors.numpy


def loaded(index):
    """What transformers' `load_sharded_checkpoint` reads, with its checks."""
    text = json.loads(index.read_text())
    weights, found = text["weight_map"], {}
    for file in sorted(set(weights.values())):
        shard = safetensors.numpy.load_file(index.parent / file)
        if sorted(shard) != sorted(name for name, place in weights.items() if place == file):
            raise ValueError(f"{file} holds other tensors than the index says")
        found |= shard
    size = sum(array.nbytes for array in found.values())
    if text["metadata"]["total_size"] != size:
        raise ValueError(f"total_size {text['metadata']['total_size']}, expected {size}")
    return found, len(set(weights.values()))


def main(command, directory):
    directory.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(1)
    model = {f"layers.{n}.weight": rng.random((100, 10 * n), np.float32) for n in range(1, 8)}
    model["scale"] = np.array(0.5, np.float16)
    safetensors.numpy.save_file(model, directory / "model.safetensors", metadata={"format": "pt"})
    passed, problems = 0, []
    for size, count in (("10KB", 8), ("16KB", 7), ("1MiB", 1)):
        out = directory / size
        out.mkdir()
        to = out / "model.safetensors"
        run = [command, "convert", "--quiet", directory / "model.safetensors", to, "--shard-size", size]
        try:
            subprocess.run(run, check=True)
            index = out / "model.safetensors.index.json"
            # A model of one file has no index.
            found, files = loaded(index) if count > 1 else (safetensors.numpy.load_file(to), len(list(out.iterdir())))
            if files != count:
                raise ValueError(f"{files} files, expected {count}")
            if set(found) != set(model) or not all(np.array_equal(found[name], model[name]) for name in model):
                raise ValueError("other tensors")
            passed += 1
        except Exception as error:  # noqa: BLE001
            problems.append(f"FAILED shards of {size}: {error!r}")
    print(*problems, sep="\n")
    print(f"passed={passed} failed={len(problems)}")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
