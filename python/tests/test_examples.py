"""Runs the programs in `examples`. Those whose libraries are not installed are skipped."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

import tenarc


def lines_of(name: str, directory: Path, *needs: str) -> list[str]:
    """What an example prints."""
    for module in needs:
        pytest.importorskip(module, reason=f"{module} is not installed")
    package = Path(tenarc.__file__).parents[1]
    environment = os.environ | {"PYTHONPATH": str(package), "RAY_USAGE_STATS_ENABLED": "0"}
    program = ROOT / "python" / "examples" / name
    done = subprocess.run(
        [sys.executable, program], cwd=directory, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_workers_of_a_dataloader_read_a_table(tmp_path):
    lines = lines_of("dataloader.py", tmp_path, "torch")
    assert all(line.startswith(f"epoch {epoch}: 2000 rows, loss ") for epoch, line in enumerate(lines))
    losses = [float(line.rpartition(" ")[2]) for line in lines]
    assert len(losses) == 6 and losses[0] > 1 > 0.01 > losses[-1]


def test_dask_reads_a_table(tmp_path):
    first, _, *groups = lines_of("dask_frame.py", tmp_path, "dask.dataframe", "pyarrow")
    assert first == "4 partitions, 10000 rows"
    assert [line.split() for line in groups] == [["host", str(n), str(96 + n)] for n in range(4)]


def test_ray_reads_a_table(tmp_path):
    lines = lines_of("ray_data.py", tmp_path, "ray.data", "pyarrow")
    assert lines == [
        "10000 rows, columns ['host', 'load']",
        "[('host 0', 96), ('host 1', 97), ('host 2', 98), ('host 3', 99)]",
        "10000",
    ]


def test_all_examples_are_run():
    names = {path.name for path in (ROOT / "python" / "examples").iterdir() if path.suffix == ".py"}
    assert names == {"dataloader.py", "dask_frame.py", "ray_data.py"}
