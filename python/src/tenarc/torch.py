"""Archives of named torch tensors, with the functions that `safetensors.torch` has, and sets of archives that many
processes save together, by `torch.distributed.checkpoint`: `StorageWriter`, `StorageReader` and `collect`.

>>> import torch, tenarc.torch, tempfile, os
>>> path = os.path.join(tempfile.mkdtemp(), "layer.tenarc")
>>> tenarc.torch.save_file({"weight": torch.ones(3, 4, dtype=torch.bfloat16)}, path)
>>> tenarc.torch.load_file(path, device="cpu")["weight"].dtype
torch.bfloat16

torch is imported when it is needed. All dtypes of torch that the format has are kept bit by bit, whether or not
`ml_dtypes` is installed.
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, BinaryIO

from .errors import Mismatch, in_file
from .flat import load_flat, save_flat
from .torch_arrays import to_torch

if TYPE_CHECKING:
    import torch

    from .sets import collect
    from .torch_storage import StorageReader, StorageWriter

__all__ = ["StorageReader", "StorageWriter", "collect", "load", "load_file", "save", "save_file", "to_torch"]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    if name not in ("StorageReader", "StorageWriter", "collect"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import sets

    if name == "collect":
        return sets.collect
    from . import torch_storage

    return getattr(torch_storage, name)


def save_file(
    tensors: Mapping[str, torch.Tensor],
    filename: str | os.PathLike[str] | BinaryIO,
    metadata: Mapping[str, str] | None = None,
    **options: Any,
) -> None:
    """Saves a dict of tensors, such as a `state_dict`, as an archive file.

    `metadata` is a dict of texts, which the archive has under `__metadata__`. The options are those of
    `tenarc.save`. Tensors that share memory are stored one by one; with `dedup=True`, equal ones are stored once.
    """
    import torch

    def is_tensor(value: Any) -> bool:
        return isinstance(value, torch.Tensor)

    save_flat(filename, tensors, metadata, is_tensor, "a torch tensor", options)


def load_file(
    filename: str | os.PathLike[str] | BinaryIO, device: str | int | torch.device = "cpu"
) -> dict[str, torch.Tensor]:
    """Loads the tensors of an archive file to a device, and verifies all checksums.

    The names of tensors in dicts and lists in other dicts are joined by dots, as in `layers.0.weight`. What is not
    a tensor is left out, also the metadata: `tenarc.load` reads it. `Mismatch` if torch lacks the dtype of a
    tensor.
    """
    import torch

    found = load_flat(filename)
    for name, array in found.items():
        with in_file(filename):
            tensor = to_torch(array)
            if not isinstance(tensor, torch.Tensor):
                raise Mismatch(f"cannot make a torch tensor of {array.dtype}{list(array.shape)}", path=name)
        # The array is released when its tensor is on the device.
        found[name] = tensor.to(device)
    return found


def save(tensors: Mapping[str, torch.Tensor], metadata: Mapping[str, str] | None = None, **options: Any) -> bytes:
    """The bytes of an archive of tensors: see `save_file`."""
    file = io.BytesIO()
    save_file(tensors, file, metadata, **options)
    return file.getvalue()


def load(
    data: bytes | bytearray | memoryview, device: str | int | torch.device = "cpu"
) -> dict[str, torch.Tensor]:
    """Loads the tensors of an archive from its bytes: see `load_file`."""
    return load_file(io.BytesIO(data), device)
