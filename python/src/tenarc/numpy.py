"""Archives of named numpy arrays, with the functions that `safetensors.numpy` has.

>>> import numpy, tenarc.numpy, tempfile, os
>>> path = os.path.join(tempfile.mkdtemp(), "layer.tenarc")
>>> tenarc.numpy.save_file({"weight": numpy.ones((3, 4), "f4")}, path)
>>> tenarc.numpy.load_file(path)["weight"].shape
(3, 4)
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from .flat import load_flat, save_flat
from .values import Raw

__all__ = ["load", "load_file", "save", "save_file"]


def __dir__() -> list[str]:
    return __all__


def save_file(
    tensor_dict: Mapping[str, npt.NDArray[Any] | Raw],
    filename: str | os.PathLike[str] | BinaryIO,
    metadata: Mapping[str, str] | None = None,
    **options: Any,
) -> None:
    """Saves a dict of arrays as an archive file.

    `metadata` is a dict of texts, which the archive has under `__metadata__`. The options are those of
    `tenarc.save`.
    """
    save_flat(filename, tensor_dict, metadata, _is_array, "an array", options)


def _is_array(value: Any) -> bool:
    return isinstance(value, (np.ndarray, Raw))


def load_file(filename: str | os.PathLike[str] | BinaryIO) -> dict[str, npt.NDArray[Any] | Raw]:
    """Loads the arrays of an archive file, and verifies all checksums.

    The names of arrays in dicts and lists in other dicts are joined by dots, as in `layers.0.weight`. What is not
    an array is left out, also the metadata: `tenarc.load` reads it. An array is a `Raw` if numpy lacks its dtype:
    bfloat16 and the float8 dtypes need the package `ml_dtypes`.
    """
    return load_flat(filename)


def save(
    tensor_dict: Mapping[str, npt.NDArray[Any] | Raw], metadata: Mapping[str, str] | None = None, **options: Any
) -> bytes:
    """The bytes of an archive of arrays: see `save_file`."""
    file = io.BytesIO()
    save_file(tensor_dict, file, metadata, **options)
    return file.getvalue()


def load(data: bytes | bytearray | memoryview) -> dict[str, npt.NDArray[Any] | Raw]:
    """Loads the arrays of an archive from its bytes: see `load_file`."""
    return load_file(io.BytesIO(data))
