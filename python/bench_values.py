"""Measures how long messages take to write and to read, compared with other formats of the same values.

    python bench_values.py

The columns are tenarc with the accelerator, tenarc without it, and other packages. It prints CPU times, so that
other programs disturb them little. The fastest of several runs counts, and all take turns. Needs the accelerator,
msgpack and safetensors.
"""

from __future__ import annotations

import gc
import json
import pickle
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import cbor2
import msgpack
import numpy as np
import safetensors.numpy

import tenarc
from tenarc import accelerator

ROUNDS = 7
Task = Callable[[], Any]


def json_dumps(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


#: What writes and reads values of any kind.
PACKAGES: dict[str, tuple[Callable[[Any], bytes], Callable[[bytes], Any]]] = {
    "cbor2": (cbor2.dumps, cbor2.loads),
    "pickle": (pickle.dumps, pickle.loads),
    "msgpack": (msgpack.packb, msgpack.unpackb),
    "json": (json_dumps, json.loads),
}
COLUMNS = ("tenarc", "without", *PACKAGES, "safetensors")


def pure(task: Task) -> Task:
    """The same without the accelerator."""

    def run() -> Any:
        compiled, accelerator.compiled = accelerator.compiled, None
        try:
            return task()
        finally:
            accelerator.compiled = compiled

    return run


def measured(tasks: dict[str, Task]) -> dict[str, float]:
    """The shortest time of each, in milliseconds."""
    best = dict.fromkeys(tasks, float("inf"))
    for _ in range(ROUNDS):
        for name, task in tasks.items():
            gc.collect()
            start = time.process_time()
            kept = task()
            best[name] = min(best[name], (time.process_time() - start) * 1000)
            del kept
    return best


def compare(name: str, tasks: dict[str, Task]) -> None:
    """Prints a line of the table."""
    best = measured({"without": pure(tasks["tenarc"]), **tasks})
    print(
        f"| {name} | " + " | ".join(f"{best[column]:.1f}" if column in best else "" for column in COLUMNS) + " |"
    )


def main() -> None:
    assert tenarc.accelerated, "the accelerator is not installed"
    print("| ms | tenarc | without accelerator | " + " | ".join(COLUMNS[2:]) + " |")
    print("|---|" + "---:|" * len(COLUMNS))
    records = [
        {"id": n, "name": f"record {n}", "loss": 1 / (n + 1), "ok": n % 3 == 0, "note": None, "tags": ["a", n % 7]}
        for n in range(100_000)
    ]
    values = {
        "100,000 records": records,
        "1,000,000 floats": np.random.default_rng(0).random(1_000_000).tolist(),
        "1,000,000 integers": list(range(1_000_000)),
        "300,000 texts": [f"text number {n}" for n in range(300_000)],
    }
    packages = {"tenarc": (tenarc.dumps, tenarc.loads), **PACKAGES}
    for name, value in values.items():
        compare(f"{name}: write", {each: partial(dumps, value) for each, (dumps, _) in packages.items()})
        compare(f"{name}: read", {each: partial(loads, dumps(value)) for each, (dumps, loads) in packages.items()})

    mixed = tenarc.dumps([{"weight": np.zeros(3)}, *records])
    compare("the same records and one array: read", {"tenarc": lambda: tenarc.loads(mixed)})
    table = tenarc.dumps(tenarc.Table(records))
    compare("the same records as a table: read as rows", {"tenarc": lambda: tenarc.loads(table)})
    texts = tenarc.loads(tenarc.dumps(tenarc.Table({"text": values["300,000 texts"]})), tables=True)
    compare("a column of 300,000 texts as a list", {"tenarc": lambda: texts["text"]})

    for length in (100, 1000):
        state = {f"layers.{n}.weight": np.random.default_rng(n).random((100, length), "f4") for n in range(200)}
        size = f"200 arrays, {200 * 100 * length * 4 // 1_000_000} MB"
        packages = {
            "tenarc": (tenarc.dumps, tenarc.loads),
            "pickle": (partial(pickle.dumps, protocol=5), pickle.loads),
            "safetensors": (safetensors.numpy.save, safetensors.numpy.load),
        }
        compare(f"{size}: write", {each: partial(dumps, state) for each, (dumps, _) in packages.items()})
        compare(f"{size}: read", {each: partial(loads, dumps(state)) for each, (dumps, loads) in packages.items()})


if __name__ == "__main__":
    main()
