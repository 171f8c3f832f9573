"""Work on the chunks of large buffers by several threads.

The libraries for codecs, hashes and arrays let other threads run while they work.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")

#: Buffers with fewer bytes are worked on by one thread: starting others would take longer.
MIN_PARALLEL = 4 << 20
_MAX_THREADS = 8
#: Each thread gets so many chunks before the next bytes are read.
_CHUNKS_A_THREAD = 4


def _cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def mapped(length: int) -> Iterator[tuple[Callable[..., Iterator[Any]], int]]:
    """A function like `map` for a buffer of `length` bytes, and how many chunks it should get at a time."""
    threads = min(_cpus(), _MAX_THREADS) if length >= MIN_PARALLEL else 1
    if threads == 1:
        yield map, _CHUNKS_A_THREAD
        return
    pool = ThreadPoolExecutor(threads, thread_name_prefix="tenarc")
    try:
        yield pool.map, threads * _CHUNKS_A_THREAD
    finally:
        pool.shutdown(cancel_futures=True)


def groups(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Divides a sequence into pieces."""
    return (items[start : start + size] for start in range(0, len(items), size))
