"""Converts to and from torch tensors. torch is imported only when it is needed."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from . import dtypes
from .errors import Fault, Mismatch, Unsupported
from .values import Raw

#: torch's names for the dtypes of the format.
_NAMES = {
    "bool": "bool",
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
    "bf16": "bfloat16",
    "c64": "complex64",
    "c128": "complex128",
    "f8_e5m2": "float8_e5m2",
    "f8_e4m3": "float8_e4m3fn",
    "f8_e8m0": "float8_e8m0fnu",
    "f8_e5m2fnuz": "float8_e5m2fnuz",
    "f8_e4m3fnuz": "float8_e4m3fnuz",
    # Each byte holds two elements; torch counts a byte as one element.
    "f4": "float4_e2m1fn_x2",
}


@functools.cache
def _tables() -> tuple[dict[str, Any], dict[Any, str]]:
    """The dtypes that the installed torch has, by name, and the names by dtype."""
    import torch

    found = {name: getattr(torch, theirs, None) for name, theirs in _NAMES.items()}
    known = {name: dtype for name, dtype in found.items() if dtype is not None}
    return known, {dtype: name for name, dtype in known.items()}


def torch_dtype(name: str) -> Any | None:
    """The dtype of torch with this name in the format; `None` if the installed torch has none."""
    return _tables()[0].get(name)


def from_torch(tensor: Any) -> tuple[str, tuple[int, ...], npt.NDArray[Any]]:
    """The name of a tensor's dtype, its shape, and a numpy array of its bits that shares its memory.

    Tensors on other devices are copied to the CPU.
    """
    import torch

    name = _tables()[1].get(tensor.dtype)
    if name is None or tensor.layout is not torch.strided:
        found = f"cannot write a torch tensor of {tensor.dtype} with layout {tensor.layout}"
        raise Fault(Unsupported, found)
    try:
        tensor = tensor.detach().cpu().resolve_conj().resolve_neg()
        if name == "f4":
            *outer, last = tensor.shape
            return name, (*outer, 2 * last), tensor.contiguous().view(torch.uint8).numpy()
        if not (tensor.dtype.is_complex or tensor.dtype is torch.bool):
            integers = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
            tensor = tensor.view(integers[tensor.dtype.itemsize])
        return name, tuple(tensor.shape), tensor.numpy()
    except (TypeError, ValueError, RuntimeError) as error:
        what = f"cannot convert a torch tensor to numpy: {str(error).partition(chr(10))[0]}"
        raise Fault(Unsupported, what) from error


def to_torch(value: Any, *, copy: bool = True) -> Any:
    """Replaces every array in a value by a torch tensor, also inside dicts, lists and tuples.

    A tensor shares the memory of its array if the array is writable. Read-only arrays, such as views of a file,
    are copied, as torch has no read-only tensors. Without `copy` they share memory too, and writing to such a
    tensor of a mapped file crashes the process. Arrays of dtypes that torch lacks stay as they are.
    """
    if isinstance(value, np.ndarray):
        return _of_array(value, copy)
    if isinstance(value, Raw):
        return _of_raw(value, copy)
    if isinstance(value, Mapping):
        return {key: to_torch(item, copy=copy) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        content = [to_torch(item, copy=copy) for item in value]
        return type(value)(*content) if hasattr(value, "_fields") else type(value)(content)
    return value


def _of_array(array: npt.NDArray[Any], copy: bool) -> Any:
    known = dtypes.of_numpy(array.dtype)
    if known is None and array.dtype.kind in "mM":
        return array
    if known is None:
        raise Mismatch(f"cannot convert numpy's dtype {array.dtype} to torch")
    dtype = _tables()[0].get(known.name)
    if dtype is None:
        return array
    bits = dtypes.little_endian(array.view(np.ndarray))
    if bits.dtype.kind not in "bc":
        # torch does not support all other dtypes of numpy arrays, but integers of every width.
        bits = bits.view(f"<i{bits.itemsize}")
    return _shared(bits, copy).view(dtype)


def _of_raw(value: Raw, copy: bool) -> Any:
    """Converts a `Raw`, for example a bfloat16 tensor if ml_dtypes is not installed."""
    dtype, shape = _tables()[0].get(value.dtype), value.shape
    if dtype is None:
        return value
    if value.dtype == "f4":
        if not shape or shape[-1] % 2 or value.order != "C":
            return value
        shape = (*shape[:-1], shape[-1] // 2)
    flat = _shared(value.data, copy).view(dtype)
    if value.order == "C":
        return flat.reshape(shape)
    return flat.reshape(shape[::-1]).permute(*reversed(range(len(shape))))


class _Writable:
    """Presents a read-only array as writable through the array interface, and keeps it alive."""

    def __init__(self, array: npt.NDArray[Any]) -> None:
        shown = dict(array.__array_interface__)
        shown["data"] = (shown["data"][0], False)
        self.array, self.__array_interface__ = array, shown


def _shared(array: npt.NDArray[Any], copy: bool) -> Any:
    """A tensor that shares an array's memory.

    It is a copy if the array has negative strides, or is read-only and `copy` is set.
    """
    import torch

    if any(stride < 0 for stride in array.strides):
        array = array.copy()
    elif not array.flags.writeable:
        array = array.copy(order="K") if copy else np.asarray(_Writable(array))
    return torch.from_numpy(array)
