"""The compiled module `tenarc_accelerator` (`crates/python`), if it is installed.

It has the loops over plain values. What it does not know, and whatever is wrong, it leaves to this package, so
that results and errors are the same without it.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

# It changes with the functions of the module and what they take.
_INTERFACE = 1


def _found() -> Any:
    if os.environ.get("TENARC_PURE", "0") not in ("", "0"):
        return None
    try:
        module = importlib.import_module("tenarc_accelerator")
    except ImportError:
        return None
    return module if getattr(module, "INTERFACE", None) == _INTERFACE else None


#: The module; `None` if it is not there, or if the environment variable `TENARC_PURE` is set to 1.
compiled = _found()
