"""Open archives, their values and their tables go to other processes: they are opened again there."""

import concurrent.futures
import copy
import multiprocessing
import operator
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tenarc
from tenarc import Table


@pytest.fixture
def path(tmp_path) -> Path:
    with tenarc.append(tmp_path / "a.tenarc") as out:
        for number in range(3):
            rows = {"x": np.arange(5000) + number, "at": [{"y": n, "b": b"abc"} for n in range(5000)]}
            out.save(Table(rows), name="log")
        out.save({"a": np.arange(4000), "log": Table({"x": np.arange(3000)})}, name="value")
    return tmp_path / "a.tenarc"


def again(value: Any, protocol: int = 5) -> Any:
    return pickle.loads(pickle.dumps(value, protocol))


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_everything_open_can_be_pickled(path, protocol, monkeypatch):
    monkeypatch.chdir(path.parent)
    limits = tenarc.Limits(max_alloc=1 << 30)
    with tenarc.open(path.name, limits=limits, verify=False) as archive:
        monkeypatch.chdir("/")
        table = archive.table("log")
        for values in ([archive, archive.segment(3), table, table["at"], archive.segment(3).table("log")],):
            found, segment, rows, inner, part = again(values, protocol)
            assert found.names() == archive.names() and found._limits == limits and not found._verify
            assert segment["a"].tolist() == [*range(4000)] and segment.limits == limits and segment.number == 3
            assert len(rows) == 15_000 and rows[-1] == table[-1] and rows["x"].tolist() == table["x"].tolist()
            assert isinstance(inner, Table) and inner[4] == {"y": 4, "b": b"abc"}
            assert part["x"].tolist() == [*range(3000)]
            found.close()
        assert len(pickle.dumps(table)) < 1000
        # A copy does not need it, nor the archive after it was closed.
        assert again(again(table))[3] == table[3]
    assert again(table)[3] == table[3]
    with pytest.raises(ValueError, match="closed"):
        pickle.dumps(archive)


def test_loaded_tables_are_pickled_with_their_columns(path):
    for table in (
        Table([{"a": 1, "b": b"x", "c": None}, {"a": 2}]),
        tenarc.open(path).segment(0).load(tables=True),
        tenarc.open(path).segment(0).view(tables=True),
        copy.deepcopy(Table({"a": np.ones(3)})),
    ):
        found = again(table)
        assert found.rows() == table.rows() and found.names() == table.names()


def test_what_was_appended_is_no_part_of_a_pickled_table(path):
    table, segment = pickle.dumps(tenarc.open(path).table("log")), pickle.dumps(tenarc.open(path).segment(3))
    with tenarc.append(path) as out:
        out.save([{"x": 1}], name="log")
    assert len(pickle.loads(table)) == 15_000 and len(tenarc.open(path).table("log")) == 15_001
    assert pickle.loads(segment)["a"].shape == (4000,)
    for other in ({"a": 1}, None):
        tenarc.save(path, other, name="log")
        for pickled in (table, segment):
            with pytest.raises(tenarc.NotFound, match=r"was replaced after .* in .*a\.tenarc"):
                pickle.loads(pickled)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        pickle.loads(table)


def row(table: Table, number: int) -> Any:
    return table[number]["x"]


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_workers_read_a_table(path, method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"there is no {method} here")
    table, lazy = tenarc.open(path).table("log"), tenarc.open(path).segment(3).lazy("a")
    found = table.filter(tenarc.col("x") > 4998)
    context = multiprocessing.get_context(method)
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        assert [*pool.map(row, [table] * 3, [0, 7000, 14_999])] == [0, 2001, 5001]
        assert pool.submit(operator.getitem, lazy, slice(3, 5)).result().tolist() == [3, 4]
        assert len(pool.submit(tenarc.Selection.rows, found).result()) == len(found) == 6


def test_what_has_no_path_is_refused(path):
    segment = tenarc.open(path).segment(0)
    segment.reopen = None
    for value in (segment, segment.table(""), tenarc.open(path).segment(3).lazy("a")):
        value.reopen = None
        with pytest.raises(TypeError, match=r"cannot pickle this (Segment|Table|LazyArray): .*tenarc\.open"):
            pickle.dumps(value)
