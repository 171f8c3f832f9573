"""Values that Python has no type of its own for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from cbor2 import CBORSimpleValue as Simple
from cbor2 import CBORTag as Tag

from . import dtypes
from .dtypes import Order
from .errors import Unsupported
from .items import encode_name

__all__ = ["Numbers", "Raw", "Simple", "Some", "Tag"]


@dataclass(frozen=True)
class Some:
    """An optional value that is there although it reads as none: `Some(None)` (SPEC 1.1).

    Around anything else it says nothing, and is not written.
    """

    value: Any = None


class Numbers(np.ndarray):
    """A sequence of numbers of one type (SPEC 3): a numpy array that is written as a sequence.

    `Numbers([0.5, 1.0], "f4")` makes one; so read are the `Vec<f32>` and their like of Rust.
    """

    def __new__(cls, values: Any, dtype: npt.DTypeLike | None = None) -> Numbers:
        return np.array(values, dtype, ndmin=1).view(cls)


@dataclass(frozen=True, eq=False)
class Raw:
    """A tensor whose elements numpy does not know: nothing of it is lost when it is written again.

    Elements of 6 and 4 bits (`f6_e2m3`, `f6_e3m2`, `f4`) stay packed in `data`, as whoever wrote them packed them.
    """

    #: Name of the dtype, as in the format.
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
            found = f"{self.data.nbytes} bytes for {self.dtype} of shape {list(self.shape)}"
            raise Unsupported(f"found {found}, expected {wanted}")

    @property
    def bits(self) -> npt.NDArray[Any]:
        """The elements as unsigned integers of their width, in their shape; void of 16 bytes."""
        known = dtypes.BY_NAME.get(self.dtype)
        if known is None or known.bits % 8:
            raise Unsupported(f"elements of {self.dtype} are no whole bytes that can be told apart")
        width = known.bits // 8
        kind = f"<u{width}" if width <= 8 else f"V{width}"
        return self.data.view(kind).reshape(self.shape, order=self.order)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Raw):
            return NotImplemented
        same = (self.dtype, self.shape, self.order) == (other.dtype, other.shape, other.order)
        return same and np.array_equal(self.data, other.data)

    __hash__ = None  # type: ignore[assignment]
