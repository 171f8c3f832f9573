"""Work on the chunks of large buffers, and on the columns of a group of rows, by several threads.

The libraries for codecs, hashes and arrays let other threads run while they work.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")

#: Buffers with fewer bytes are worked on by one thread: starting others would take longer.
MIN_PARALLEL = 4 << 20
#: So are groups with fewer rows.
MIN_ROWS = 1 << 13
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


class Pool:
    """Threads that work on parts of one call, until the pool is closed or not used any more."""

    def __init__(self) -> None:
        self._threads = min(_cpus(), _MAX_THREADS)
        self._pool: ThreadPoolExecutor | None = None

    def map(self, work: Callable[[T], R], items: Sequence[T], rows: int) -> list[R]:
        """What the work makes of each item, in a group of so many rows. It is part of the caller's `Call`."""
        if rows < MIN_ROWS or len(items) < 2 or self._threads < 2:
            return [work(item) for item in items]
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="tenarc")
        # Each thread has its own context. Without a copy of this one, it would not know the call.
        contexts = [copy_context() for _ in items]
        return list(self._pool.map(lambda context, item: context.run(work, item), contexts, items))

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
