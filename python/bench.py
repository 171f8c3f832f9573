"""Measures how long it takes to save and load archives, compared with numpy's npy files of the same arrays.

    python bench.py [DIRECTORY]     the directory needs 600 MB of free space

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


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as made:
            main(Path(made))
