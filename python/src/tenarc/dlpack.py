"""Exchanges tensors with other libraries by DLPack, also those of dtypes that numpy lacks."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import Fault, Unsupported

#: The device of memory that the CPU can read: its kind and number.
CPU = (1, 0)
#: The codes of DLPack (`DLDataTypeCode`) for the dtypes that numpy lacks.
CODES = {
    "bf16": 4,
    "f8_e4m3": 10,
    "f8_e4m3fnuz": 11,
    "f8_e5m2": 12,
    "f8_e5m2fnuz": 13,
    "f8_e8m0": 14,
}
#: The bits of the short floats with a sign, those of their mantissa, the bias of their exponent, and their NaNs.
_FLOATS: dict[str, tuple[int, int, int, tuple[int, ...]]] = {
    "f8_e4m3": (8, 3, 7, (0x7F, 0xFF)),
    "f8_e4m3fnuz": (8, 3, 8, (0x80,)),
    "f8_e5m2": (8, 2, 15, (0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF)),
    "f8_e5m2fnuz": (8, 2, 16, (0x80,)),
    "f6_e2m3": (6, 3, 1, ()),
    "f6_e3m2": (6, 2, 3, ()),
    "f4": (4, 1, 1, ()),
}
#: The dtypes that numpy lacks and whose elements float32 holds exactly.
SHORT = frozenset((*CODES, *_FLOATS))


class _Tensor(ctypes.Structure):
    """`DLTensor`, as far as it is needed here."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
    )


class _Versioned(ctypes.Structure):
    """`DLManagedTensorVersioned`, as far as it is needed here.

    The older `DLManagedTensor` starts with the tensor.
    """

    _fields_ = (
        ("version", ctypes.c_uint32 * 2),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


_pointer: Any = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_is_valid: Any = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)


def capsule_of(bits: npt.NDArray[Any], code: int, options: dict[str, Any]) -> Any:
    """Exports an array of unsigned integers as elements of a dtype of the same width."""
    capsule = bits.__dlpack__(**options)
    # numpy has filled in everything but the kind of the elements, and releases the memory later.
    if _is_valid(capsule, b"dltensor_versioned"):
        tensor = _Versioned.from_address(_pointer(capsule, b"dltensor_versioned")).tensor
    else:
        tensor = _Tensor.from_address(_pointer(capsule, b"dltensor"))
    tensor.code = code
    return capsule


def as_float32(dtype: str, bits: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """The numbers that elements of one of `SHORT` stand for."""
    if dtype == "bf16":
        return (bits.astype(np.uint32) << 16).view(np.float32)
    found: npt.NDArray[np.float32] = _table(dtype)[bits]
    return found


def unpacked(payload: npt.NDArray[np.uint8], bits: int) -> npt.NDArray[np.uint8]:
    """Elements of 6 or 4 bits, each in a byte of its own."""
    each = np.unpackbits(payload, bitorder="little").reshape(-1, bits)
    return np.packbits(each, axis=1, bitorder="little").reshape(-1)


@functools.cache
def _table(dtype: str) -> npt.NDArray[np.float32]:
    """The numbers for all elements of a dtype of at most 8 bits."""
    if dtype == "f8_e8m0":
        numbers = np.ldexp(1.0, np.arange(256) - 127)
        nans: tuple[int, ...] = (0xFF,)
    else:
        bits, width, bias, nans = _FLOATS[dtype]
        codes, sign = np.arange(1 << bits), 1 << bits - 1
        exponents, mantissas = (codes & sign - 1) >> width, codes & ((1 << width) - 1)
        # Numbers with the exponent 0 are subnormal.
        whole = np.where(exponents == 0, mantissas, mantissas + (1 << width))
        numbers = np.ldexp(whole.astype(np.float64), np.maximum(exponents, 1) - bias - width)
        if dtype == "f8_e5m2":
            numbers[0x7C::0x80] = np.inf
        numbers = np.where(codes < sign, numbers, -numbers)
    numbers[list(nans)] = np.nan
    return numbers.astype(np.float32)


def array_of(value: Any) -> npt.NDArray[Any]:
    """The array of a tensor of another library, which is copied to the CPU if it is on another device."""
    try:
        try:
            return np.asarray(value.__array__())
        except (AttributeError, TypeError):
            # Libraries for GPUs refuse to copy unless they are asked to.
            return _imported(value)
    except Exception as error:
        kind = type(value)
        what = (
            f"cannot convert a {kind.__module__}.{kind.__qualname__} to numpy: {str(error).partition(chr(10))[0]}"
        )
        raise Fault(Unsupported, what) from error


def _imported(value: Any) -> npt.NDArray[Any]:
    if tuple(value.__dlpack_device__()) == CPU:
        return np.from_dlpack(value)
    # numpy has the argument since version 2.1.
    options: dict[str, Any] = {"device": "cpu"}
    return np.from_dlpack(value, **options)
