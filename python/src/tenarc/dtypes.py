"""The table of dtypes: name in the format, tags of RFC 8746, and numpy's dtype."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
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
#: The dtype and the shape of the rows of a column.
Rows = tuple[str, tuple[int, ...]]
#: The bytes of a tensor.
Payload = npt.NDArray[np.uint8]


class DType(NamedTuple):
    """An entry of the tables in SPEC 2."""

    name: str
    bits: int
    #: numpy's dtype in little-endian order, if numpy has one.
    numpy: np.dtype[Any] | None = None
    #: Tags of the typed arrays of RFC 8746, little- and big-endian.
    tag: int | None = None
    big_tag: int | None = None

    @property
    def is_packed(self) -> bool:
        """Whether sequences of such numbers can be packed: real numbers of 8 to 64 bits (SPEC 3)."""
        return self.tag is not None and not self.is_complex and self.bits <= 64

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
        # numpy's `longdouble` is not IEEE binary128 on most machines.
        DType("f128", 128, None, 87, 83),
        DType("c64", 64, np.dtype("<c8"), 85, 81),
        DType("c128", 128, np.dtype("<c16"), 86, 82),
        # numpy cannot pack elements of less than a byte.
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
        # ml_dtypes supports only the machine's byte order.
        has_order = bits > 8 and sys.byteorder == "big"
        known = None if has_order else getattr(ml_dtypes, theirs, None)
        table.append(DType(name, bits, None if known is None else np.dtype(known)))
    return table


#: The complex dtype for each dtype of real and imaginary parts.
COMPLEX_OF = {"f32": "c64", "f64": "c128"}
BY_NAME = {dtype.name: dtype for dtype in _table()}
_BY_NUMPY = {dtype.numpy: dtype for dtype in BY_NAME.values() if dtype.numpy is not None}
#: The dtype of each tag of a typed array, and whether it is big-endian. Tag 68 (clamped u8) is read as 64.
BY_TAG: dict[int, tuple[DType, bool]] = {}
for _dtype in BY_NAME.values():
    if not _dtype.is_complex and _dtype.tag is not None and _dtype.big_tag is not None:
        BY_TAG[_dtype.big_tag] = (_dtype, _dtype.bits > 8)
        BY_TAG[_dtype.tag] = (_dtype, False)


#: Tags that metadata does not have (SPEC 5.3): of big-endian and clamped numbers, and one without a meaning.
NOT_IN_METADATA = frozenset(tag for tag, (dtype, _) in BY_TAG.items() if tag != dtype.tag) | {76}
_INTEGERS = frozenset(name for name in BY_NAME if name[0] in "iu")


#: The kinds of numpy's dtypes of texts, byte strings and objects.
TEXTS = "OSTU"


def of_numpy(dtype: np.dtype[Any]) -> DType | None:
    """The entry for a numpy dtype in any byte order, if there is one."""
    if dtype.kind in TEXTS:
        return None
    return _BY_NUMPY.get(dtype) or _BY_NUMPY.get(dtype.newbyteorder("<"))


def holding(one: str, other: str) -> str | None:
    """The least dtype that holds all elements of both (SPEC 7.1); `None` if there is none."""
    if one == other:
        return one
    if not _INTEGERS.issuperset((one, other)):
        return None
    # A signed type must have twice as many bits as an unsigned one.
    is_mixed = one[0] != other[0]
    bits = max(int(name[1:]) << (is_mixed and name[0] == "u") for name in (one, other))
    return None if bits > 64 else f"i{bits}" if is_mixed else f"{one[0]}{bits}"


def common(found: Iterable[Rows | None]) -> Rows | None:
    """The least dtype that holds the elements of all, and the shape that all have; `None` if there is none."""
    result: Rows | None = None
    for rows in found:
        if rows is None:
            return None
        dtype = rows[0] if result is None else holding(result[0], rows[0])
        if dtype is None or (result is not None and result[1] != rows[1]):
            return None
        result = dtype, rows[1]
    return result


def payload_length(name: str, shape: Sequence[int]) -> int | None:
    """The length of a tensor's payload in bytes; `None` if the dtype is unknown, as any length is valid then.

    `ValueError` if the product of the nonzero dimensions overflows (SPEC 4), or if the elements do not fill a
    whole number of bytes.
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
        raise ValueError(f"{product} elements of {name} do not fill a whole number of bytes")
    return total // 8


def texts_in(array: npt.NDArray[Any]) -> Any:
    """The texts in an array, as lists in lists. A text that is missing is `None`."""
    if array.dtype.kind != "T":
        return array.tolist()
    texts = [text if isinstance(text, str) else None for text in array.reshape(-1).tolist()]
    found = np.empty(len(texts), object)
    found[:] = texts
    return found.reshape(array.shape).tolist()


def order_of(array: npt.NDArray[Any]) -> Order:
    """The order in which the elements of an array are written."""
    return "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"


def little_endian(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array in little-endian order. Bytes are swapped, as a conversion of values might change NaNs."""
    if array.dtype.str[0] != ">":
        return array
    return array.byteswap().view(array.dtype.newbyteorder("<"))
