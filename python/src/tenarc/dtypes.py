"""Dtypes: their names in the format, their tags in RFC 8746, and what numpy calls them."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

try:
    import ml_dtypes
except ImportError:  # pragma: no cover - depends on what is installed
    ml_dtypes = None  # type: ignore[assignment]

MAX_NAME = 256
_MAX_PRODUCT = 1 << 63

Order = Literal["C", "F"]
#: The bytes of a tensor.
Payload = npt.NDArray[np.uint8]


class DType(NamedTuple):
    """An entry of the tables in SPEC 2."""

    name: str
    bits: int
    #: Where numpy has elements of this type; of the little-endian form.
    numpy: np.dtype[Any] | None = None
    #: Tags of the typed arrays of RFC 8746, little- and big-endian.
    tag: int | None = None
    big_tag: int | None = None

    @property
    def is_complex(self) -> bool:
        return self.name in COMPLEX_OF.values()


def _table() -> list[DType]:
    table = [
        DType("bool", 8, np.dtype(np.bool_)),
        DType("u8", 8, np.dtype("<u1"), 64, 68),
        DType("u16", 16, np.dtype("<u2"), 69, 65),
        DType("u32", 32, np.dtype("<u4"), 70, 66),
        DType("u64", 64, np.dtype("<u8"), 71, 67),
        DType("i8", 8, np.dtype("<i1"), 72, 72),
        DType("i16", 16, np.dtype("<i2"), 77, 73),
        DType("i32", 32, np.dtype("<i4"), 78, 74),
        DType("i64", 64, np.dtype("<i8"), 79, 75),
        DType("f16", 16, np.dtype("<f2"), 84, 80),
        DType("f32", 32, np.dtype("<f4"), 85, 81),
        DType("f64", 64, np.dtype("<f8"), 86, 82),
        # numpy's `longdouble` is another type on most machines.
        DType("f128", 128, None, 87, 83),
        DType("c64", 64, np.dtype("<c8"), 85, 81),
        DType("c128", 128, np.dtype("<c16"), 86, 82),
        # How elements of less than a byte are packed is not numpy's way.
        DType("f6_e2m3", 6),
        DType("f6_e3m2", 6),
        DType("f4", 4),
    ]
    for name, bits, theirs in (
        ("bf16", 16, "bfloat16"),
        ("f8_e5m2", 8, "float8_e5m2"),
        ("f8_e4m3", 8, "float8_e4m3fn"),
        ("f8_e8m0", 8, "float8_e8m0fnu"),
        ("f8_e5m2fnuz", 8, "float8_e5m2fnuz"),
        ("f8_e4m3fnuz", 8, "float8_e4m3fnuz"),
    ):
        # They have the byte order of the machine, and no other.
        has_order = bits > 8 and sys.byteorder == "big"
        known = None if has_order else getattr(ml_dtypes, theirs, None)
        table.append(DType(name, bits, None if known is None else np.dtype(known)))
    return table


#: Complex types by the type of their parts.
COMPLEX_OF = {"f32": "c64", "f64": "c128"}
BY_NAME = {dtype.name: dtype for dtype in _table()}
_BY_NUMPY = {dtype.numpy: dtype for dtype in BY_NAME.values() if dtype.numpy is not None}
#: The dtype of a typed array, and whether it is big-endian. 68, clamped bytes, reads as 64.
BY_TAG: dict[int, tuple[DType, bool]] = {}
for _dtype in BY_NAME.values():
    if not _dtype.is_complex and _dtype.tag is not None and _dtype.big_tag is not None:
        BY_TAG[_dtype.big_tag] = (_dtype, _dtype.bits > 8)
        BY_TAG[_dtype.tag] = (_dtype, False)


def of_numpy(dtype: np.dtype[Any]) -> DType | None:
    """The entry for numpy's dtype of either byte order, if there is one."""
    return _BY_NUMPY.get(dtype) or _BY_NUMPY.get(dtype.newbyteorder("<"))


def payload_length(name: str, shape: Sequence[int]) -> int | None:
    """The bytes of a tensor; `None` where the dtype is unknown and any length will do.

    Raises `ValueError` where the dimensions, but for those of zero, overflow (SPEC 4), or where
    elements fill no whole number of bytes.
    """
    product = math.prod(dimension for dimension in shape if dimension)
    known = BY_NAME.get(name)
    bits = 8 if known is None else known.bits
    if product * bits // 8 >= _MAX_PRODUCT or product >= _MAX_PRODUCT:
        raise ValueError(f"the shape {list(shape)} of {name} overflows")
    if known is None:
        return None
    total = 0 if 0 in shape else product * bits
    if total % 8:
        raise ValueError(f"{product} elements of {name} fill no whole number of bytes")
    return total // 8


def order_of(array: npt.NDArray[Any]) -> Order:
    """In which order the elements of an array are written."""
    return "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"


def little_endian(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same bits in little-endian order; a conversion of values might change NaNs."""
    if array.dtype.str[0] != ">":
        return array
    return array.byteswap().view(array.dtype.newbyteorder("<"))
