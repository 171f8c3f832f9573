"""Types for values of the format that have no Python type of their own."""

from __future__ import annotations

import enum
from dataclasses import dataclass, is_dataclass
from typing import Any

import cbor2
import numpy as np
import numpy.typing as npt
from cbor2 import CBORSimpleValue as Simple
from cbor2 import CBORTag as Tag

from . import dlpack, dtypes
from .dtypes import Order
from .errors import Mismatch, Unsupported
from .items import encode_name

__all__ = ["Numbers", "Raw", "Simple", "Some", "Tag"]


@dataclass(frozen=True)
class Some:
    """Rust's `Some(None)`, an optional value that is present and is itself `None` (SPEC 1.1).

    Around any other value it has no effect, and is not written.
    """

    value: Any = None


class Numbers(np.ndarray):
    """A numpy array that is written as a sequence of numbers (SPEC 3), such as a `Vec<f32>` of Rust.

    Other arrays are written as tensors. `Numbers([0.5, 1.0], "f4")` makes one. Sequences that are stored as
    one block are read as `Numbers` with `numbers=True`, and in views. `numbers.tolist()` is a list, also for json:
    `json.dumps(row, default=numpy.ndarray.tolist)`.
    """

    def __new__(cls, values: Any, dtype: npt.DTypeLike | None = None) -> Numbers:
        return np.array(values, dtype, ndmin=1).view(cls)


@dataclass(frozen=True, eq=False)
class Raw:
    """A tensor of a dtype that numpy does not have. It can be read and written again without loss.

    Elements of 6 and 4 bits (`f6_e2m3`, `f6_e3m2`, `f4`) stay packed in `data` as they were written.
    """

    #: The name of the dtype in the format.
    dtype: str
    shape: tuple[int, ...]
    #: The payload, as a `uint8` array of one dimension.
    data: npt.NDArray[np.uint8]
    order: Order = "C"

    def __post_init__(self) -> None:
        data = self.data
        if not isinstance(data, np.ndarray):
            data = np.frombuffer(data, np.uint8)
        object.__setattr__(self, "data", data.reshape(-1).view(np.uint8))
        object.__setattr__(self, "shape", tuple(map(int, self.shape)))
        encode_name(self.dtype, dtypes.MAX_NAME, "a dtype's name")
        if any(dimension < 0 for dimension in self.shape):
            raise Unsupported(f"a shape: {list(self.shape)} has a negative dimension")
        if self.order not in ("C", "F"):
            raise Unsupported(f"expected the order C or F, found {self.order!r}")
        try:
            wanted = dtypes.payload_length(self.dtype, self.shape)
        except ValueError as error:
            raise Unsupported(str(error)) from None
        if wanted not in (None, self.data.nbytes):
            what = f"{self.dtype} of shape {list(self.shape)}"
            raise Unsupported(f"{what}: expected {wanted} bytes, found {self.data.nbytes}")

    @property
    def bits(self) -> npt.NDArray[Any]:
        """The elements as an array of unsigned integers of the same width; of 16 bytes, as numpy's void.

        Packed elements of 6 and 4 bits are copied, each into a byte.
        """
        known = dtypes.BY_NAME.get(self.dtype)
        if known is None:
            raise Unsupported(f"elements of {self.dtype} are of unknown size")
        width = known.bits // 8
        kind = f"<u{width}" if width <= 8 else f"V{width}"
        elements = dlpack.unpacked(self.data, known.bits) if known.bits % 8 else self.data.view(kind)
        return elements.reshape(self.shape, order=self.order)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """The elements as a numpy array of their dtype, or if numpy lacks it, of float32, which holds them all.

        `Mismatch` if there is none: for f128 and for unknown dtypes.
        """
        known = dtypes.BY_NAME.get(self.dtype)
        if known is not None and known.numpy is not None:
            array = self.data.view(known.numpy).reshape(self.shape, order=self.order)
        elif self.dtype in dlpack.SHORT:
            if copy is False:
                raise ValueError(f"elements of {self.dtype} become float32, which makes a copy")
            array = dlpack.as_float32(self.dtype, self.bits)
        else:
            raise Mismatch(f"numpy has no dtype that holds {self.dtype}")
        if dtype is not None and array.dtype != dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def __dlpack__(self, **options: Any) -> Any:
        """Exports the elements by DLPack, without a copy: `torch.from_dlpack(raw)`.

        `BufferError` for dtypes that DLPack does not have, and for packed elements.
        """
        code = dlpack.CODES.get(self.dtype)
        if code is not None:
            return dlpack.capsule_of(self.bits, code, options)
        known = dtypes.BY_NAME.get(self.dtype)
        if known is None or known.numpy is None:
            raise BufferError(f"DLPack has no dtype for {self.dtype}")
        return np.asarray(self).__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """The device of the elements: the CPU."""
        return dlpack.CPU

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Raw):
            return NotImplemented
        same = (self.dtype, self.shape, self.order) == (other.dtype, other.shape, other.order)
        return same and np.array_equal(self.data, other.data)

    __hash__ = None  # type: ignore[assignment]


# The simple values null and undefined.
_NULLS = (22, 23)


def is_record(kind: type) -> bool:
    """Whether values of a class are written as the fields of a dataclass.

    `Some` and `Raw` are dataclasses too, and a member of an enum can be one, but these are written in other ways.
    """
    return is_dataclass(kind) and not issubclass(kind, (Some, Raw, Tag, Simple, enum.Enum))


def is_none(value: Any) -> bool:
    """Whether a value is written as null or undefined, which are both read as `None`."""
    return value is None or value is cbor2.undefined or (type(value) is Simple and value.value in _NULLS)
