"""Tensors of torch, which is imported only where the caller has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from . import dtypes
from .errors import Fault, Unsupported
from .values import Order, Raw

#: What torch calls dtypes that it shares with no numpy of its own.
_NAMES = {
    "bf16": "bfloat16",
    "f8_e5m2": "float8_e5m2",
    "f8_e4m3": "float8_e4m3fn",
    "f8_e8m0": "float8_e8m0fnu",
    "f8_e5m2fnuz": "float8_e5m2fnuz",
    "f8_e4m3fnuz": "float8_e4m3fnuz",
}


def from_torch(tensor: Any) -> Any:
    """A numpy array of a tensor's memory, or `Raw` where numpy has no such dtype.

    Tensors of other devices are copied to the host.
    """
    import torch

    tensor = tensor.detach().cpu().resolve_conj().resolve_neg()
    for name, theirs in _NAMES.items():
        if tensor.dtype is getattr(torch, theirs, None):
            payload = tensor.contiguous().reshape(-1).view(torch.uint8).numpy()
            return Raw(name, tuple(tensor.shape), payload)
    try:
        return tensor.numpy()
    except (TypeError, RuntimeError) as error:
        raise Fault(Unsupported, f"a tensor of torch that numpy cannot show: {error}") from error


def to_torch(value: Any) -> Any:
    """The value with a torch tensor for every array: of the same memory where torch can write there.

    Arrays inside dicts, lists and tuples are found; `Raw` tensors of dtypes that torch lacks stay.
    """
    import torch

    if isinstance(value, np.ndarray):
        known = dtypes.of_numpy(value.dtype)
        if known is not None and known.name in _NAMES:
            order: Order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
            payload = value.reshape(-1, order=order).view(np.uint8)
            value = Raw(known.name, value.shape, payload, order)
        else:
            array = value.view(np.ndarray)
            # torch has no tensors that cannot be written to.
            return torch.from_numpy(array if array.flags.writeable else array.copy(order="K"))
    if isinstance(value, Raw):
        dtype = getattr(torch, _NAMES.get(value.dtype, ""), None)
        if dtype is None:
            return value
        payload = value.data if value.data.flags.writeable else value.data.copy()
        flat = torch.from_numpy(payload).view(dtype)
        if value.order == "C":
            return flat.reshape(value.shape)
        return flat.reshape(value.shape[::-1]).permute(*reversed(range(len(value.shape))))
    if isinstance(value, Mapping):
        return {key: to_torch(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        content = map(to_torch, value)
        return type(value)(*content) if hasattr(value, "_fields") else type(value)(content)
    return value
