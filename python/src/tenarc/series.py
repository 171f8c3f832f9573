"""`Series`: one variable of the values that were saved under one name, step by step."""

from __future__ import annotations

import datetime
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from . import named
from .errors import Error, Fault, Mismatch
from .listing import lists_without
from .options import check_memory
from .origin import refuse
from .saved import Segment

#: Opens a value by its number in the archive.
_Open = Callable[[int], Segment]


@lists_without("reopen")
class Series(Sequence[Any]):
    """What is at one path in each of the values that were saved under one name: `Archive.series`.

    `series[3]` is the value at the path in step 3, as `Segment.__getitem__` gives it: an array is a view. A slice
    is a series of some of the steps. Iterating reads one step after the other. `stack` makes one array of all
    steps, and so does `numpy.asarray`. Only the steps that are asked for are read.
    """

    def __init__(self, name: str, path: str, numbers: Sequence[int], open_value: _Open) -> None:
        #: The name under which the values were saved.
        self.name = name
        #: The path in each of them.
        self.path = path
        #: What makes a series of values by their numbers in another process, and the arguments before them.
        self.reopen: tuple[Callable[..., Any], tuple[Any, ...]] | None = None
        self._numbers, self._open = numbers, open_value

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the path of the archive. Unpickling opens the file again."""
        again, arguments = self.reopen or refuse(self)
        return again, (*arguments, [*self._numbers], self.path)

    def __len__(self) -> int:
        """The number of steps."""
        return len(self._numbers)

    def __repr__(self) -> str:
        where = f", {self.path!r:.80}" if self.path else ""
        return f"<tenarc.Series {self.name!r:.80}{where}: {len(self):,} step{'s' * (len(self) != 1)}>"

    @overload
    def __getitem__(self, step: int) -> Any: ...
    @overload
    def __getitem__(self, step: slice) -> Series: ...
    def __getitem__(self, step: Any) -> Any:
        if isinstance(step, slice):
            some = Series(self.name, self.path, self._numbers[step], self._open)
            some.reopen = self.reopen
            return some
        index = operator.index(step)
        if not -len(self) <= index < len(self):
            raise IndexError(f"the series has {len(self)} steps, there is no step {index}")
        return self._at(index % len(self), lambda segment: segment[self.path])

    def __iter__(self) -> Iterator[Any]:
        return (self[step] for step in range(len(self)))

    def _at(self, step: int, read: Callable[[Segment], Any]) -> Any:
        try:
            return read(self._open(self._numbers[step]))
        except Error as error:
            error.message = f"step {step} of {self.name!r:.80}: {error.message}"
            raise

    def stack(self) -> npt.NDArray[Any]:
        """All steps as one array, whose first dimension is the steps. They are arrays or numbers.

        The checksums of the arrays are verified, except with `open(path, verify=False)`. `Mismatch` if the dtypes
        or shapes differ.
        """
        return self._stacked(None)

    def read(self, rows: Any) -> npt.NDArray[Any]:
        """Part of the array in each step, as one array: `series[100:].read(rows=slice(0, 10))`.

        Only the chunks with this part are read and verified. `rows` can be any index that `Segment.slice` takes.
        """
        return self._stacked(rows)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError("a series is read from a file: an array of it is always a copy")
        found = self.stack()
        return found if dtype is None else found.astype(dtype, copy=False)

    def _stacked(self, rows: Any) -> npt.NDArray[Any]:
        whole: npt.NDArray[Any] | None = None
        plain = packed = 0
        for step in range(len(self)):
            segment, found = self._at(step, lambda segment: (segment, _verified(segment, self.path, rows)))
            found = np.asarray(_timed(found))
            plain, packed = plain + segment.input[0], packed + segment.input[1]
            try:
                # A few bytes of each of many values could become much memory.
                check_memory((step + 1) * found.nbytes, segment.limits.memory(plain, packed))
            except Fault as fault:
                raise fault.kind(fault.message, path=self.path or None) from None
            if found.dtype.hasobject or found.dtype.kind in "US":
                raise Mismatch(f"step {step}: expected an array or a number", path=self.path or None)
            if whole is None:
                whole = np.empty((len(self), *found.shape), found.dtype)
            if found.shape != whole.shape[1:] or found.dtype != whole.dtype:
                text = f"step {step} has {found.dtype} of shape {found.shape}, which is no one array with step 0"
                raise Mismatch(f"{text}: {whole.dtype} of shape {whole.shape[1:]}", path=self.path or None)
            whole[step] = found
        return np.empty(0) if whole is None else whole


def _timed(found: Any) -> Any:
    """A time or duration of Python as one of numpy."""
    if not isinstance(found, (datetime.date, datetime.timedelta)):
        return found
    item = named.typed(found)
    return found if item is None else named.array_of(item.name, item.parameters, np.asarray(item.item))


def _verified(segment: Segment, path: str, rows: Any) -> Any:
    """Part of an array, or all of it; or the number at the path."""
    if rows is not None:
        return segment.slice(path, rows)
    try:
        return segment.slice(path, ...)
    except Mismatch:
        # A number.
        return segment[path]
