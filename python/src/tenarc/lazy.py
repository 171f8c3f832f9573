"""`LazyArray`: an array in an archive, of which only the parts are read that are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from . import notebook
from .listing import lists_without
from .origin import refuse

# About so many bytes are read at once when the rows are read one after the other.
_BLOCK = 16 << 20


@lists_without("reopen")
class LazyArray:
    """An array in an archive, of which nothing has been read: `Archive.lazy`.

    It is indexed as a dataset of h5py or zarr, by integers, slices, `...` and `None`: see `Segment.slice`.
    `lazy[:]` and `numpy.asarray(lazy)` read all of it. What is read is verified, except with
    `open(path, verify=False)`.
    """

    def __init__(
        self, path: str, dtype: np.dtype[Any], shape: tuple[int, ...], read: Callable[[Any], Any]
    ) -> None:
        #: The path of the array in the value.
        self.path = path
        self.dtype = dtype
        self.shape = shape
        #: What makes it in another process, and its arguments.
        self.reopen: tuple[Callable[..., Any], tuple[Any, ...]] | None = None
        self._read = read

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the path of the archive. Unpickling opens the file again."""
        return self.reopen or refuse(self)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The number of bytes that all elements take in memory."""
        return self.size * self.dtype.itemsize

    def __len__(self) -> int:
        """The length of the first dimension."""
        if not self.shape:
            raise TypeError("an array without dimensions has no length")
        return self.shape[0]

    def __getitem__(self, key: Any) -> npt.NDArray[Any] | Any:
        return self._read(key)

    def __iter__(self) -> Iterator[Any]:
        count = len(self)
        each = max(_BLOCK // max(self.nbytes // max(count, 1), 1), 1)
        for start in range(0, count, each):
            yield from self._read(slice(start, start + each))

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError("a lazy array is read from a file: an array of it is always a copy")
        found = np.asarray(self._read(...))
        return found if dtype is None else found.astype(dtype, copy=False)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return notebook.of_lazy(self)

    def __repr__(self) -> str:
        return f"<tenarc.LazyArray {self.path!r:.80}: {self.dtype}, shape {self.shape}>"
