"""Files of named tensors: an archive with one dict of them, as `tenarc.torch` and `tenarc.numpy` save and load."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from .archive import load
from .errors import Mismatch, Unsupported, in_file
from .files import save
from .table import Table
from .values import Raw

#: The key of a dict of texts that say something about the tensors, as in safetensors.
METADATA = "__metadata__"


def save_flat(
    file: Any,
    tensors: Mapping[str, Any],
    metadata: Mapping[str, str] | None,
    is_tensor: Callable[[Any], bool],
    what: str,
    options: dict[str, Any],
) -> None:
    """Saves a dict of tensors, and texts if there are any. `what` says what a tensor is."""
    if not isinstance(tensors, Mapping):
        raise Unsupported(f"expected a dict of tensors, found {type(tensors).__name__}")
    for name, tensor in tensors.items():
        if not isinstance(name, str) or name == METADATA:
            raise Unsupported(f"expected text other than {METADATA!r} as the name of a tensor, found {name!r:.80}")
        if not is_tensor(tensor):
            raise Unsupported(f"expected {what}, found {type(tensor).__name__}", path=name)
    value = dict(tensors)
    if metadata is not None:
        for key, text in metadata.items():
            if not isinstance(key, str) or not isinstance(text, str):
                raise Unsupported(f"expected metadata of texts, found {key!r:.40}: {text!r:.40}", path=METADATA)
        value = {METADATA: dict(metadata), **value}
    save(file, value, **options)


def load_flat(file: Any) -> dict[str, Any]:
    """Loads the tensors of an archive by their names: its keys, joined by dots where it is nested."""
    with in_file(file):
        value = load(file, tables=True)
        if not isinstance(value, (Mapping, list)):
            raise Mismatch(f"expected a dict of tensors, found {type(value).__name__}")
        if isinstance(value, Mapping):
            value = {key: item for key, item in value.items() if key != METADATA}
        found: dict[str, Any] = {}
        for name, tensor in _tensors(value, ""):
            if name in found:
                raise Mismatch("two tensors have this name", path=name)
            found[name] = tensor
        return found


def _tensors(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Raw) or (isinstance(value, np.ndarray) and not np.ma.isMaskedArray(value)):
        yield name, value
        return
    before = f"{name}." if name else ""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _tensors(item, f"{before}{key}")
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _tensors(item, f"{before}{index}")
    elif isinstance(value, Table):
        for column in value.names():
            yield from _columns(value[column], f"{before}{column}")


def _columns(column: Any, name: str) -> Iterator[tuple[str, Any]]:
    # Of columns that are lists, the values are not tensors by name, but rows.
    if not isinstance(column, list):
        yield from _tensors(column, name)
