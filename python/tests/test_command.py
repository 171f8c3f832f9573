"""Files of PyTorch, converted by the command and loaded here: their keys and tensors are those of the file."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tenarc

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "crates/convert/tests/fixtures/torch"


def converted(command: Path, name: str, directory: Path) -> Any:
    archive = directory / "a.tenarc"
    subprocess.run([command, "convert", "--no-sync", FIXTURES / name, archive], check=True, timeout=60)
    return tenarc.load(archive)


def leaves(value: Any, path: tuple[str, ...] = ()) -> dict[str, Any]:
    """The arrays or tensors in a value, by their dotted paths."""
    if isinstance(value, dict):
        return {
            name: leaf for key, item in value.items() for name, leaf in leaves(item, (*path, str(key))).items()
        }
    if isinstance(value, list):
        return {
            name: leaf for at, item in enumerate(value) for name, leaf in leaves(item, (*path, str(at))).items()
        }
    return {".".join(path): value} if hasattr(value, "shape") else {}


@pytest.mark.parametrize("name", ["state_dict.pt", "plain_checkpoint.pt", "legacy_checkpoint.pt", "list.pt"])
def test_keys_and_tensors_are_those_of_the_file(command: Path, tmp_path: Path, name: str) -> None:
    expected = json.loads((FIXTURES / "MANIFEST.json").read_text())["files"][name]
    found = leaves(converted(command, name, tmp_path))
    assert list(found) == list(expected)
    for path, array in found.items():
        assert (str(array.dtype), list(array.shape)) == (expected[path]["dtype"], expected[path]["shape"])
        assert hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest() == expected[path]["sha256"]


def test_a_state_dict_loads_into_its_model(command: Path, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    value = tenarc.to_torch(converted(command, "state_dict.pt", tmp_path))
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    expected = torch.load(FIXTURES / "state_dict.pt", weights_only=True)
    assert list(value) == list(expected)
    model.load_state_dict(value)
    assert all(torch.equal(model.state_dict()[key], expected[key]) for key in expected)
