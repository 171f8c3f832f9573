"""Runs the examples of the README."""

import re
import sys
import types

import numpy as np
import pytest
from conftest import ROOT


def examples() -> list[str]:
    text = (ROOT / "python" / "README.md").read_text()
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def run(block: int, directory, monkeypatch) -> dict:
    """Runs one of the examples, and returns its variables."""
    example = examples()[block]
    monkeypatch.chdir(directory)
    # Dataclasses look up their module in `sys.modules`.
    monkeypatch.setitem(sys.modules, "readme", types.ModuleType("readme"))
    names: dict = {"__name__": "readme"}
    exec(example, names)
    return names


def test_the_example_runs(tmp_path, monkeypatch):
    names = run(0, tmp_path, monkeypatch)
    assert names["model"].name == "identity" and names["weight"].shape == (64, 64)
    assert names["value"] == {"step": 2}


def test_the_example_with_compression_runs(tmp_path, monkeypatch):
    names = run(1, tmp_path, monkeypatch)
    assert (tmp_path / "small.tenarc").stat().st_size < 0.86 * names["weights"].nbytes
    assert np.array_equal(names["moments"], names["state"]["optimizer"]["moments"])
    assert names["tensor"].path == "optimizer.moments" and names["found"].codec == "zstd"


def test_the_example_with_torch_runs(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    names = run(2, tmp_path, monkeypatch)
    assert names["layer"].weight.dtype is torch.bfloat16 and set(names["state"]) == {"weight", "bias"}
    assert torch.equal(names["state"]["bias"], names["layer"].bias)


@pytest.mark.filterwarnings("ignore:torch.distributed is")
def test_the_example_with_distributed_checkpoints_runs(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    names = run(3, tmp_path, monkeypatch)
    assert names["state"]["step"] == 100
    assert torch.equal(names["state"]["model"]["weight"], names["model"].weight)


def test_the_example_with_tables_runs(tmp_path, monkeypatch):
    names = run(4, tmp_path, monkeypatch)
    assert len(names["rows"]) == 1000 and names["rows"][3] == {"step": 3, "loss": 0.25, "note": None}
    assert names["row"] == names["rows"][3] and names["step"] == 3 and names["loss"][3] == 0.25
    assert len(names["log"]) == 1000 and names["other"].tolist() == np.linspace(1, 0, 1000).tolist()


def test_the_example_with_a_table_of_several_values_runs(tmp_path, monkeypatch, capsys):
    names = run(5, tmp_path, monkeypatch)
    assert names["loss"].tolist() == [0.9, 0.5, 0.3, 0.2] and len(names["last"]) == 2
    assert names["row"] == {"step": 3, "loss": 0.2, "note": "last"} == names["last"][1]
    *steps, dtypes = capsys.readouterr().out.splitlines()
    assert steps == ["0", "1", "2", "3"] and dtypes == text_after("print(log.dtypes)  # ")


def test_the_example_with_arrow_runs(tmp_path, monkeypatch):
    for name in ("duckdb", "pandas", "pyarrow"):
        pytest.importorskip(name, reason=f"{name} is not installed")
    names = run(6, tmp_path, monkeypatch)
    assert names["most"] == [("a", 998), ("b", 999)] and names["load"]["load"].to_pylist() == [*range(1000)]
    assert str(names["schema"].field("at").type) == "timestamp[us, tz=UTC]"
    assert names["frame"]["at"][999] == names["start"] + names["datetime"].timedelta(hours=999)


def test_the_example_with_filters_runs(tmp_path, monkeypatch):
    for name in ("pandas", "pyarrow"):
        pytest.importorskip(name, reason=f"{name} is not installed")
    names = run(7, tmp_path, monkeypatch)
    ids = [n for n in range(99_000, 100_000) if n % 20 == 10]
    assert names["ids"].tolist() == names["numbers"].tolist() == names["frame"]["id"].tolist() == ids
    assert [row["id"] for row in names["rows"]] == ids and names["weekend"].count() == 14_500
    assert names["batch"].tolist() == names["events"]["score"][[70_000, 3, 3]].tolist()


def test_the_example_with_a_series_runs(tmp_path, monkeypatch):
    names = run(8, tmp_path, monkeypatch)
    assert len(names["velocity"]) == 20 and names["last"][0, 0] == 19 and names["some"].shape == (10, 1000, 3)
    assert names["rows"].shape == (20, 10, 3) and names["losses"][3] == 0.25


def test_the_example_with_parts_runs(tmp_path, monkeypatch):
    pytest.importorskip("zmq", reason="pyzmq is not installed")
    names = run(9, tmp_path, monkeypatch)
    assert np.array_equal(names["state"]["weight"], np.eye(64)) and not names["state"]["weight"].flags.owndata
    assert len(names["buffers"]) == 1


def test_the_example_with_dates_runs(tmp_path, monkeypatch):
    names = run(10, tmp_path, monkeypatch)
    order = names["order"]
    assert order["at"] == names["now"] and str(order["price"]) == "19.90" and order["days"].dtype == "M8[D]"


def test_all_examples_are_run():
    assert len(examples()) == 11


def text_after(start: str) -> str:
    """The rest of a line of the README."""
    return (ROOT / "python" / "README.md").read_text().split(start)[1].splitlines()[0]


def test_what_the_example_prints_is_said_beside_it(tmp_path, monkeypatch, capsys):
    run(0, tmp_path, monkeypatch)
    archive, keys, *_ = capsys.readouterr().out.splitlines()
    assert archive == text_after("print(archive)  # ") and keys == text_after("print(archive.keys())  # ")
