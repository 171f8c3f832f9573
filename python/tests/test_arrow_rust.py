"""Rust and this package give the same record batches for the same table (`docs/decisions/arrow.md`)."""

import io
import subprocess
from pathlib import Path
from typing import Any

import cbor2
import pytest
from columns_by_hand import KINDS, TCOL
from test_arrow_export import LOST, write_random

import tenarc
from tenarc import Tag

pa: Any = pytest.importorskip("pyarrow")

# The last section of the page says where both differ.
DIFFERENT = {"empty struct", "categories", "empty maps"}


def by_rust(command: Path, path: Path) -> Any:
    """What the command makes of the table, as Arrow's file."""
    out = path.with_suffix(".arrow")
    done = subprocess.run([command, "convert", path, out], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    with pa.ipc.open_file(out) as file:
        return file.read_all()


def compare(command: Path, path: Path) -> None:
    found = by_rust(command, path)
    with tenarc.open(path) as archive:
        want = archive.table("log").to_arrow()
    assert found.schema.equals(want.schema, check_metadata=True), f"{found.schema}\n\n{want.schema}"
    assert found.to_pylist() == want.to_pylist()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in LOST | DIFFERENT])
def test_each_kind_is_the_same(kind, command, tmp_path):
    column, _ = KINDS[kind]
    out = io.BytesIO()
    with tenarc.Writer(out) as writer:
        writer._save(cbor2.dumps(Tag(TCOL, [4, {"id": KINDS["u8"][0], "a": column}])), [], "log")
    (tmp_path / "a.tenarc").write_bytes(out.getvalue())
    compare(command, tmp_path / "a.tenarc")


@pytest.mark.parametrize("seed", range(12))
def test_random_tables_are_the_same(seed, command, tmp_path):
    write_random(tmp_path / "a.tenarc", seed)
    compare(command, tmp_path / "a.tenarc")
