"""Saves and loads values that hold tensors, as files, streams, messages and parts.

>>> import numpy, tenarc, tempfile, os
>>> path = os.path.join(tempfile.mkdtemp(), "model.tenarc")
>>> tenarc.save(path, {"name": "two", "layers": [{"weight": numpy.eye(64, dtype="f4")}]})
>>> tenarc.load(path)["name"]
'two'
>>> with tenarc.open(path) as archive:
...     archive["layers.0.weight"].shape
(64, 64)

An **archive** (`save`, `load`, `open`, `append`, `Writer`, `Reader`) is a file or stream of values. Its tensors
are aligned and have checksums. A **message** (`dumps`, `loads`) is one value as CBOR. **Parts** (`to_parts`,
`from_parts`) are one value as metadata and separate buffers. `SPEC.md` of the project specifies the format.
"""

from . import accelerator as _accelerator
from . import numpy as numpy
from . import torch as torch
from .archive import Archive, load
from .archive import open_archive as open
from .conditions import Filter, col
from .errors import (
    Damaged,
    End,
    Error,
    Limit,
    Mismatch,
    NotFound,
    Torn,
    Unsupported,
    Version,
)
from .files import Appender, append, save
from .lazy import LazyArray
from .mend import Recovered, recover, recover_to
from .message import dumps, loads
from .options import Limits
from .parts import Parts, buffer_lengths, from_parts, to_parts
from .salvage import Salvaged
from .saved import Segment, TensorInfo
from .segment import Header
from .selection import Selection
from .series import Series
from .stream import Reader, Writer
from .table import Table
from .torch_arrays import to_torch
from .values import Numbers, Raw, Simple, Some, Tag

__version__ = "0.1.0"
#: Whether the compiled module `tenarc_accelerator` makes slow parts fast.
accelerated = _accelerator.compiled is not None

__all__ = [
    "Appender",
    "Archive",
    "Damaged",
    "End",
    "Error",
    "Filter",
    "Header",
    "LazyArray",
    "Limit",
    "Limits",
    "Mismatch",
    "NotFound",
    "Numbers",
    "Parts",
    "Raw",
    "Reader",
    "Recovered",
    "Salvaged",
    "Segment",
    "Selection",
    "Series",
    "Simple",
    "Some",
    "Table",
    "Tag",
    "TensorInfo",
    "Torn",
    "Unsupported",
    "Version",
    "Writer",
    "accelerated",
    "append",
    "buffer_lengths",
    "col",
    "dumps",
    "from_parts",
    "load",
    "loads",
    "open",
    "recover",
    "recover_to",
    "save",
    "to_parts",
    "to_torch",
]


def __dir__() -> list[str]:
    return sorted(
        [*__all__, "__all__", "__doc__", "__file__", "__name__", "__path__", "__version__", "numpy", "torch"]
    )
