"""One variable over all values that were saved under one name: `Archive.series`."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tenarc

STEPS, ROWS = 12, 40_000


def state(step: int) -> dict[str, Any]:
    velocity = np.full((ROWS, 4), step, "f4") + np.arange(ROWS, dtype="f4")[:, None]
    return {"step": step, "loss": 1 / (step + 1), "velocity": velocity, "small": np.arange(3) + step}


@pytest.fixture(params=[None, "zstd"])
def path(request, tmp_path) -> Path:
    path: Path = tmp_path / "run.tenarc"
    with path.open("wb") as file, tenarc.Writer(file, compression=request.param) as out:
        for step in range(STEPS):
            out.save(state(step), name="state")
            out.save({"note": "between"}, name="log")
    return path


def test_a_series_has_the_values_of_all_steps(path):
    with tenarc.open(path) as archive:
        velocity = archive.series("state", "velocity")
        assert repr(velocity) == f"<tenarc.Series 'state', 'velocity': {STEPS} steps>"
        want = np.stack([state(step)["velocity"] for step in range(STEPS)])
        assert (
            len(velocity) == STEPS
            and np.array_equal(velocity[3], want[3])
            and np.array_equal(velocity[-1], want[11])
        )
        assert np.array_equal(velocity.stack(), want) and np.array_equal(np.asarray(velocity), want)
        assert all(np.array_equal(found, one) for found, one in zip(velocity, want, strict=True))
        some = velocity[10:2:-3]
        assert isinstance(some, tenarc.Series) and np.array_equal(some.stack(), want[10:2:-3])
        assert np.array_equal(velocity[5:].read(rows=slice(7, 20)), want[5:, 7:20])
        assert np.array_equal(velocity.read(rows=-1), want[:, -1])
        assert np.asarray(archive.series("state", "small"), dtype="f4").dtype == np.float32
        loss = archive.series("state", "loss")
        assert [*loss] == loss.stack().tolist() == [1 / (step + 1) for step in range(STEPS)]
        assert archive.series("state", "step").stack().dtype == np.int64
        assert archive.series("state")[2]["step"] == 2 and archive.series("log", "note")[0] == "between"
        assert len(velocity[:0].stack()) == 0
    # It can be used after the archive was closed.
    assert velocity[4][0, 0] == 4


def test_only_the_steps_and_rows_that_are_asked_for_are_read(path, monkeypatch):
    read = []
    segment_of = tenarc.Archive._segment

    def opened(archive: Any, number: int, entry: Any) -> Any:
        read.append(number)
        return segment_of(archive, number, entry)

    monkeypatch.setattr(tenarc.Archive, "_segment", opened)
    with tenarc.open(path) as archive:
        series = archive.series("state", "velocity")
        assert not read
        series[3:5].stack()
        assert read == [6, 8]


def test_damage_is_found(path):
    data = bytearray(path.read_bytes())
    with tenarc.open(path) as archive:
        (at, _), *_ = archive.segment(6).buffers
    data[at + 5] ^= 1
    path.write_bytes(data)
    with tenarc.open(path) as archive:
        series = archive.series("state", "velocity")
        with pytest.raises(tenarc.Damaged, match="step 3 of 'state': checksum of"):
            series.stack()
        assert series[4:].stack().shape == (STEPS - 4, ROWS, 4)


def test_steps_that_differ_are_no_array(tmp_path):
    with (tmp_path / "a").open("wb") as file, tenarc.Writer(file) as out:
        for value in (np.zeros(3), np.zeros(4), np.zeros(3, "f4"), "text"):
            out.save({"x": value}, name="s")
        out.save({"y": 1}, name="s")
    with tenarc.open(tmp_path / "a") as archive:
        x = archive.series("s", "x")
        for steps, said in [
            (
                x[:2],
                r"step 1 has float64 of shape \(4,\), which is no one array with step 0: float64 of shape \(3,\)",
            ),
            (x[::2], "step 1 has float32 of shape"),
            (x[3:4], "step 0: expected an array or a number"),
        ]:
            with pytest.raises(tenarc.Mismatch, match=said):
                steps.stack()
        with pytest.raises(tenarc.NotFound, match="step 4 of 's': there is no value at `x`"):
            x[4]
        with pytest.raises(IndexError, match="the series has 5 steps, there is no step 5"):
            x[5]
        with pytest.raises(tenarc.NotFound, match="no value named 't'"):
            archive.series("t", "x")
        with pytest.raises(ValueError, match="always a copy"):
            x.__array__(copy=False)


def test_a_series_is_pickled(path):
    with tenarc.open(path) as archive:
        series = archive.series("state", "velocity")[2:8:2]
        again = pickle.loads(pickle.dumps(series))
    assert repr(again) == repr(series) and np.array_equal(again.stack(), series.stack())
    with tenarc.append(path) as out:
        out.save(state(99), name="state")
    assert len(pickle.loads(pickle.dumps(series))) == 3
    tenarc.save(path, {"other": 1})
    with pytest.raises(tenarc.NotFound, match="replaced"):
        pickle.loads(pickle.dumps(series))


def test_steps_of_few_bytes_do_not_become_much_memory(tmp_path):
    zeros = np.zeros(4 << 20, "u1")
    with (tmp_path / "a").open("wb") as file, tenarc.Writer(file, compression="zstd") as out:
        for _ in range(20):
            out.save(zeros, name="s")
    assert (tmp_path / "a").stat().st_size < 20_000
    with tenarc.open(tmp_path / "a") as archive:
        series = archive.series("s")
        assert series[:12].stack().nbytes == 12 * zeros.nbytes and len(series[19]) == len(zeros)
        with pytest.raises(tenarc.Limit):
            series.stack()
