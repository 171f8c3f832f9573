"""Measures how long it takes to save and load archives, compared with numpy's npy files of the same arrays.

    python bench.py [DIRECTORY]             the directory needs 600 MB of free space
    python bench.py records [DIRECTORY]     many small values instead: 102,000 records of three fields

Files are in the page cache. The fastest of several runs counts. Readers that are compared take turns, with a few
runs in a row each, so that no reader gets only memory that another has just freed.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tenarc

MB = 1_000_000
ROUNDS, RUNS = 3, 4


def fastest(*readers: Callable[[], Any]) -> list[float]:
    """The shortest time of each reader, in milliseconds."""
    best = [float("inf")] * len(readers)
    for _ in range(ROUNDS):
        for number, read in enumerate(readers):
            for _ in range(RUNS):
                start = time.perf_counter()
                kept = read()
                best[number] = min(best[number], (time.perf_counter() - start) * 1000)
                del kept
    return best


def views(path: Path) -> Any:
    with tenarc.open(path) as archive:
        return archive.view()


def stream(path: Path) -> Any:
    with path.open("rb", buffering=0) as file:
        return tenarc.Reader(file).load()


def all_of(paths: list[Path]) -> Any:
    return [np.load(path) for path in paths]


def main(directory: Path) -> None:
    for count, size in ((1, 200), (20, 10)):
        arrays = {f"w{n}": np.random.default_rng(n).random(size * MB // 4, "f4") for n in range(count)}
        large, small = directory / "large.tenarc", directory / "small.tenarc"
        paths = [directory / f"{name}.npy" for name in arrays]
        for path, array in zip(paths, arrays.values(), strict=True):
            np.save(path, array)

        def save(target: Path = large, value: Any = arrays) -> None:
            tenarc.save(target, value, sync=False)

        def save_numpy(paths: list[Path] = paths, arrays: dict[str, Any] = arrays) -> None:
            for path, array in zip(paths, arrays.values(), strict=True):
                # `tenarc.save` makes a new file, so numpy must not overwrite the old one in place either.
                path.unlink()
                np.save(path, array)

        ours, theirs = fastest(save, save_numpy)
        tenarc.save(small, {name: array[: len(array) // 100] for name, array in arrays.items()})
        print(f"{count} arrays of {size} MB, {large.stat().st_size / MB:.0f} MB")
        print(f"  save, not synced       {ours:9.2f} ms, numpy.save {theirs:9.2f} ms")
        del arrays
        ours, hundredth = fastest(lambda p=large: views(p), lambda p=small: views(p))
        print(f"  open, views of all     {ours:9.3f} ms, of 2 MB {hundredth:9.3f} ms")
        read, theirs, streamed = fastest(
            lambda p=large: tenarc.load(p), lambda p=paths: all_of(p), lambda p=large: stream(p)
        )
        ratio = f"{read / theirs:.2f} times"
        print(f"  load, checksums        {read:9.2f} ms, numpy.load {theirs:9.2f} ms: {ratio}")
        print(f"  stream, checksums      {streamed:9.2f} ms: {streamed / theirs:.2f} times")
        for path in (large, small, *paths):
            path.unlink()


def records(directory: Path) -> None:
    rows = [{"step": n, "loss": 1 / (n + 1), "note": None if n % 2 else "saved"} for n in range(102_000)]
    files = {name: directory / f"{name}.tenarc" for name in ("list", "columns", "values", "small")}

    def write(path: Path, values: list[Any]) -> None:
        with path.open("wb") as file, tenarc.Writer(file) as out:
            for value in values:
                out.save(value, name="log")

    def read(path: Path) -> Any:
        with path.open("rb") as file:
            return list(tenarc.Reader(file))

    def segments(path: Path) -> Any:
        with tenarc.open(path) as archive:
            return [segment.load() for segment in archive.segments()]

    def table(path: Path) -> tenarc.Table:
        with tenarc.open(path) as archive:
            return archive.table("log")

    def tensors(path: Path) -> Any:
        with tenarc.open(path) as archive:
            return list(archive.tensors())

    tasks: dict[str, Callable[[], Any]] = {
        "one list: save": lambda: tenarc.save(files["list"], rows, name="log", sync=False),
        "one list: load": lambda: tenarc.load(files["list"]),
        "one list: list tensors": lambda: tensors(files["list"]),
        "one list: rows of the table": lambda: table(files["list"]).rows(),
        "one list: a column of the table": lambda: table(files["list"])["loss"],
        "columns: save": lambda: tenarc.save(files["columns"], tenarc.Table(rows), name="log", sync=False),
        "columns: load as rows": lambda: tenarc.load(files["columns"]),
        "columns: a column": lambda: table(files["columns"])["loss"],
        "a value each: write": lambda: write(files["values"], rows),
        "a value each: read as a stream": lambda: read(files["values"]),
        "a value each: load each": lambda: segments(files["values"]),
        "a list of one each: write": lambda: write(files["small"], [[row] for row in rows]),
        "a list of one each: open as a table": lambda: table(files["small"]),
        "a list of one each: rows of the table": lambda: table(files["small"]).rows(),
        "a list of one each: a column": lambda: table(files["small"])["loss"],
    }
    for name, task in tasks.items():
        best = float("inf")
        for _ in range(3):
            start = time.perf_counter()
            kept = task()
            best = min(best, (time.perf_counter() - start) * 1000)
            del kept
        print(f"{name:40} {best:9.0f} ms")


if __name__ == "__main__":
    arguments = sys.argv[1:]
    measure = records if arguments[:1] == ["records"] else main
    arguments = arguments[measure is records :]
    if arguments:
        measure(Path(arguments[0]))
    else:
        with tempfile.TemporaryDirectory() as made:
            measure(Path(made))
