"""Runs the Python program of docs/columns-elsewhere.md.

elsewhere.py PROGRAM DIR    reads the records in DIR as columns, and compares them with the same as rows
"""

import importlib.util
import sys
from pathlib import Path

import numpy as np

# The example in SPEC.md 7.
EXAMPLE = "da54434f4c 8202 a2 626964 d840420709 63746167 836474657874 d840420201 63616263"


# A column of tensors of bool.
UNREADABLE = "da54434f4c 8202 a1 6168 da54454e53 84 64626f6f6c 820201 6143 420100"


def same(a, b):
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return type(a) is type(b) and a.dtype == b.dtype and np.array_equal(a, b)
    if type(a) is not type(b):
        return False
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(map(same, a.values(), b.values()))
    return a == b


def check(name, decoded, columns, rows):
    """Whether a message with columns is decoded to these rows."""
    try:
        is_right = b"TCOL" in columns and same(decoded(columns), rows)
    except Exception as error:
        print(f"{name}: {type(error).__name__}: {error}")
        return False
    if not is_right:
        print(f"{name}: other rows")
    return is_right


def is_refused(decoded):
    """Whether the program says which column it cannot read."""
    try:
        print(f"a column of bool: {decoded(bytes.fromhex(UNREADABLE))}")
    except ValueError as error:
        return "a column that this program cannot read: CBORTag(1413828179, ('bool', " in str(error)
    return False


def main(program, directory):
    spec = importlib.util.spec_from_file_location("columns_elsewhere", program)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    decoded = module.decoded
    rows = [{"id": 7, "tag": "ab"}, {"id": 9, "tag": "c"}]
    results = [check("SPEC.md", decoded, bytes.fromhex(EXAMPLE), rows), is_refused(decoded)]
    for path in sorted(Path(directory).glob("*.columns")):
        rows = decoded(path.with_suffix(".rows").read_bytes())
        results.append(check(path.name, decoded, path.read_bytes(), rows))
    print(f"passed={sum(results)} failed={len(results) - sum(results)}")


main(*sys.argv[1:])
