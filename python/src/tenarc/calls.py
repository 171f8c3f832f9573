"""What one call of a public method reads, if it reads several places of a saved value, each by itself.

A short archive can refer to one buffer from any number of columns and rows. So the limits are for all reads of a
call together. What calls before it have read does not count: the caller decides what to keep of it.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextvars import ContextVar
from threading import Lock
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from .dtypes import Payload
from .options import check_memory

if TYPE_CHECKING:
    from .paths import Step

P = ParamSpec("P")
R = TypeVar("R")


class _Totals:
    """The sum of the most that one read took at each place.

    A call may read a place several times, but keeps only one result of it.
    """

    __slots__ = ("_lock", "_most", "_total")

    def __init__(self) -> None:
        self._most: dict[Hashable, int] = {}
        self._total = 0
        # Several threads can work on one call.
        self._lock = Lock()

    def add(self, place: Hashable, count: int) -> int:
        """Says how much a read at a place has taken so far. Returns the sum for all places."""
        with self._lock:
            more = count - self._most.get(place, 0)
            if more > 0:
                self._most[place] = count
                self._total += more
            return self._total

    def more(self, count: int) -> int:
        """Adds what is at no place that is read again. Returns the sum for all places."""
        with self._lock:
            self._total += count
            return self._total

    def forget(self) -> None:
        """Forgets the places, but not the sum."""
        self._most.clear()


class Call:
    """A call, for which `with` is around what it reads. Inside another call, it is a part of that one."""

    __slots__ = ("_taken", "_token", "alive", "first", "is_joined")

    def __init__(self, *, is_joined: bool = True) -> None:
        #: Whether an array can be made of the values of several rows. Otherwise they stay views.
        self.is_joined = is_joined
        self._taken = _Totals()
        #: The place that was the first to take each of them.
        self.first: dict[tuple[int, int], Hashable] = {}
        #: The other buffers, if they are still in memory.
        self.alive: dict[tuple[int, int], weakref.ref[Payload]] = {}
        self._token: Any = None

    @staticmethod
    def current() -> Call:
        """The call that is in progress. A read outside any call is one of its own."""
        return _current.get() or Call()

    def forget(self) -> None:
        """Forgets the places so far, which are not read again. A call can read any number of them."""
        self._taken.forget()
        self.alive.clear()

    def take(self, count: int, limit: int) -> None:
        """Counts memory that is at no place, such as that of rows."""
        check_memory(self._taken.more(count), limit)

    def take_at(self, place: Hashable, count: int, limit: int) -> None:
        """Counts what is read at a place. `count`: all that it has taken there so far."""
        check_memory(self._taken.add(place, count), limit)

    def __enter__(self) -> Call:
        outer = _current.get()
        self._token = _current.set(self) if outer is None else None
        return outer or self

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            _current.reset(self._token)
            self._token = None


_current: ContextVar[Call | None] = ContextVar("tenarc.calls.current", default=None)


def one_call(method: Callable[P, R]) -> Callable[P, R]:
    """Makes everything that a method reads part of one `Call`."""

    @functools.wraps(method)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        with Call():
            return method(*args, **kwargs)

    return called


class Read:
    """One of the reads of a call, at the place in a value that some steps lead to.

    What is read are views. If `is_counted`, every reference but the first one to a buffer counts as a copy of it.
    That is for columns, as groups are joined to one array, and numbers become objects of Python.
    """

    __slots__ = ("_call", "_found", "_index", "_limit", "_number", "_trail", "is_counted")

    def __init__(
        self, call: Call, number: int, index: int, trail: Sequence[Step], limit: int, *, is_counted: bool
    ) -> None:
        self.is_counted = is_counted
        self._call, self._number, self._index, self._trail, self._limit = call, number, index, trail, limit
        self._found: Hashable = None

    @property
    def _place(self) -> Hashable:
        # Not made before it is needed, because most rows have no buffers.
        if self._found is None:
            self._found = self._number, self._index, *[step.key for step in self._trail]
        return self._found

    @contextlib.contextmanager
    def copying(self) -> Iterator[None]:
        """Counts what the block takes, because it makes copies."""
        before, self.is_counted = self.is_counted, True
        try:
            yield
        finally:
            self.is_counted = before

    def in_memory(self, buffer: int) -> Payload | None:
        """A buffer that another read of the call has taken, if it can be shared and is still in memory."""
        found = None if self.is_counted else self._call.alive.get((self._number, buffer))
        return None if found is None else found()

    def is_repeated(self, buffer: int) -> bool:
        """Whether the call has taken a buffer at another place."""
        first = self._call.first.get((self._number, buffer)) if self.is_counted else None
        return first is not None and first != self._place

    def took(self, buffer: int, payload: Payload) -> None:
        """Notes a buffer that was read."""
        key = self._number, buffer
        if not self.is_counted:
            self._call.alive[key] = weakref.ref(payload)
        elif key not in self._call.first:
            self._call.first[key] = self._place

    def take(self, count: int) -> None:
        """Checks the memory of the call. `count`: what this read has taken."""
        self._call.take_at(self._place, count, self._limit)
