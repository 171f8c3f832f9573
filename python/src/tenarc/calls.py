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
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from .dtypes import Payload
from .errors import Fault, Limit

if TYPE_CHECKING:
    from .options import Limits
    from .paths import Step

#: The most rows without bytes in a document, and in a call, which may have more if it reads many bytes.
MAX_EMPTY = 1 << 24

P = ParamSpec("P")
R = TypeVar("R")


class _Totals:
    """The sum of the most that one read took at each place.

    A call may read a place several times, but keeps only one result of it.
    """

    __slots__ = ("_most", "_total")

    def __init__(self) -> None:
        self._most: dict[Hashable, int] = {}
        self._total = 0

    def add(self, place: Hashable, count: int) -> int:
        """Says how much a read at a place has taken so far. Returns the sum for all places."""
        more = count - self._most.get(place, 0)
        if more > 0:
            self._most[place] = count
            self._total += more
        return self._total

    def more(self, count: int) -> int:
        """Adds what is at no place that is read again. Returns the sum for all places."""
        self._total += count
        return self._total

    def forget(self) -> None:
        """Forgets the places, but not the sum."""
        self._most.clear()


class Call:
    """A call, for which `with` is around what it reads. Inside another call, it is a part of that one."""

    __slots__ = ("_token", "alive", "empty", "first", "is_joined", "read", "repeated", "unpacked")

    def __init__(self, *, is_joined: bool = True) -> None:
        #: Whether an array can be made of the values of several rows. Otherwise they stay views.
        self.is_joined = is_joined
        self.unpacked = _Totals()
        self.repeated = _Totals()
        #: Rows for which the archive has no bytes: of columns without content, and without a field.
        self.empty = _Totals()
        #: The bytes of the buffers whose copies count, as they are stored. Each buffer counts once.
        self.read = 0
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
        self.unpacked.forget()
        self.repeated.forget()
        self.empty.forget()
        self.alive.clear()

    def check_missing(self, count: int, most: Callable[[], int]) -> None:
        """Counts rows that do not have a field. `most` computes how many there may be if there are many."""
        total = self.empty.more(count)
        if total > MAX_EMPTY:
            _check_empty(total, most())

    def __enter__(self) -> Call:
        outer = _current.get()
        self._token = _current.set(self) if outer is None else None
        return outer or self

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            _current.reset(self._token)
            self._token = None


def _check_empty(total: int, most: int) -> None:
    if total > most:
        raise Fault(Limit, f"more than {most} rows without content")


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

    __slots__ = ("_call", "_found", "_index", "_length", "_number", "_trail", "is_counted")

    def __init__(
        self, call: Call, number: int, index: int, trail: Sequence[Step], length: int, *, is_counted: bool
    ) -> None:
        self.is_counted = is_counted
        self._call, self._number, self._index, self._trail, self._length = call, number, index, trail, length
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

    def took(self, buffer: int, payload: Payload, stored: int) -> None:
        """Notes a buffer that was read, and its stored length."""
        key = self._number, buffer
        if not self.is_counted:
            self._call.alive[key] = weakref.ref(payload)
        elif key not in self._call.first:
            self._call.first[key] = self._place
            self._call.read += stored

    def check_unpacked(self, count: int, limits: Limits) -> None:
        """Checks the compressed buffers of the call. `count`: the bytes of those that this read has taken."""
        limits.check_unpacked(self._call.unpacked.add(self._place, count), self._length)

    def check_empty(self, count: int, most: int) -> None:
        """Checks the rows of the call that take no bytes. `count`: those that this read has made."""
        if count:
            _check_empty(self._call.empty.add(self._place, count), most)

    def check_repeated(self, count: int, limits: Limits) -> None:
        """Checks the copies of buffers in the call. `count`: the bytes of those that this read has made."""
        limits.check_repeated(self._call.repeated.add(self._place, count), self._call.read)
