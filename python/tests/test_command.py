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


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_times_of_numpy_come_back_from_npz(command: Path, tmp_path: Path, save: Any) -> None:
    def run(*arguments: str) -> str:
        done = subprocess.run(
            [command, *arguments], cwd=tmp_path, timeout=60, check=True, capture_output=True, text=True
        )
        return done.stdout

    dtypes = [
        "M8[D]",
        "M8[s]",
        "M8[ms]",
        "M8[us]",
        "m8[ns]",
        "M8[Y]",
        "m8[h]",
        "M8[25s]",
        "m8[as]",
        ">M8[ns]",
        "M8",
        "m8",
    ]
    arrays: dict[str, Any] = {"far": np.array([2**40], "M8[D]"), "empty": np.zeros((0, 3), "m8[s]")}
    for name in dtypes:
        array = np.arange(-3, 9).view(np.dtype(name).newbyteorder("=")).astype(name).reshape(3, 4)
        missing = array.copy()
        missing[1, 2] = "NaT"
        arrays |= {
            name: array,
            f"{name} F": np.asfortranarray(array),
            f"{name} NaT": missing,
            f"{name} 0": array[1, 0],
        }
    save(tmp_path / "a.npz", **arrays)
    run("convert", "--no-sync", "a.npz", "a.tenarc")
    tenarc.save(tmp_path / "b.tenarc", {name: np.asarray(array) for name, array in arrays.items()})
    assert run("diff", "a.tenarc", "b.tenarc") == ""
    loaded = tenarc.load(tmp_path / "a.tenarc")
    for of in ("a", "b"):
        run("convert", "--no-sync", f"{of}.tenarc", f"{of}2.npz")
        again = np.load(tmp_path / f"{of}2.npz")
        for name, array in arrays.items():
            for found in (loaded[name], again[name]):
                assert found.dtype == array.dtype.newbyteorder("<") and found.shape == array.shape
                assert np.array_equal(found.astype("i8"), array.astype("i8"))
    np.save(tmp_path / "a.npy", arrays["M8[D] NaT"])
    run("convert", "--no-sync", "a.npy", "c.tenarc")
    run("convert", "--no-sync", "c.tenarc", "c.npy")
    assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "c.npy").read_bytes()


def test_fields_of_records_can_be_times(command: Path, tmp_path: Path) -> None:
    records = np.zeros(3, [("at", "M8[ms]"), ("x", "f4"), ("days", ">M8[D]", (2,))])
    records["at"][1], records["days"][2] = "2026-03-01", ["2026-11-28", "1969-12-31"]
    np.save(tmp_path / "a.npy", records)
    subprocess.run([command, "convert", "--no-sync", "a.npy", "a.tenarc"], cwd=tmp_path, check=True, timeout=60)
    found = tenarc.load(tmp_path / "a.tenarc")
    assert all(np.array_equal(found[name], records[name]) for name in ("at", "x", "days"))
    assert found["days"].dtype == "<M8[D]" and found["at"].dtype == "<M8[ms]"


def test_data_frames_come_back_from_parquet(command: Path, tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    kinds = pd.DataFrame(
        {
            "i": pd.array([1, None, 3], "Int64"),
            "c": pd.Categorical(["a", "b", "a"]),
            "t": pd.to_datetime(["2026-01-01"] * 3).tz_localize("Europe/Berlin"),
            "s": pd.array(["x", None, "z"], "string"),
            "f": np.float32([1, 2, 3]),
        },
        index=pd.Index([10, 20, 30], name="id"),
    )
    ranged = pd.DataFrame({"a": [1, 2, 3]}, index=pd.RangeIndex(5, 11, 2, name="r"))
    levels = pd.DataFrame({"a": [1, 2]}, index=pd.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=["k", "n"]))
    levels.columns.name = "columns"
    for number, frame in enumerate((kinds, ranged, levels)):
        frame.to_parquet(tmp_path / f"{number}.parquet")
        for source, to in (("parquet", "tenarc"), ("tenarc", "again.parquet")):
            subprocess.run(
                [command, "convert", "--no-sync", f"{number}.{source}", f"{number}.{to}"],
                cwd=tmp_path,
                check=True,
                timeout=60,
            )
        pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / f"{number}.again.parquet"), frame)
