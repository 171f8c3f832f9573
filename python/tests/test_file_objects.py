"""File objects in `load` and `save`."""

import gzip
import io
import os
import threading

import numpy as np
import pytest

import tenarc

VALUE = {"a": np.arange(300_000, dtype="f4"), "b": [1, "two", None]}


def same(found) -> bool:
    return np.array_equal(found["a"], VALUE["a"]) and found["b"] == VALUE["b"]


class Sink:
    """Has `write` and nothing else."""

    def __init__(self):
        self.data = b""

    def write(self, data):
        self.data += data


class Drops:
    """Has `read` and nothing else, and gives few bytes at a time."""

    def __init__(self, data):
        self.file = io.BytesIO(data)

    def read(self, length):
        return self.file.read(min(length, 10_000))


def test_a_file_object_gets_the_bytes_of_a_file(tmp_path):
    options = {"name": "n", "compression": "zstd", "chunk_len": 65536, "inline_below": 10, "alignment": 64}
    tenarc.save(tmp_path / "a", VALUE, **options)
    memory, sink = io.BytesIO(), Sink()
    with open(tmp_path / "b", "wb") as file, open(tmp_path / "c", "wb", buffering=0) as raw:
        for target in memory, sink, file, raw:
            tenarc.save(target, VALUE, **options)
        # They are flushed, and stay open.
        assert (tmp_path / "b").stat().st_size == (tmp_path / "a").stat().st_size and not file.closed
    wanted = (tmp_path / "a").read_bytes()
    assert [memory.getvalue(), sink.data] == [wanted] * 2
    assert [(tmp_path / name).read_bytes() for name in "bc"] == [wanted] * 2


def test_a_value_is_loaded_from_whatever_reads(tmp_path):
    tenarc.save(tmp_path / "a", VALUE)
    data = (tmp_path / "a").read_bytes()
    with open(tmp_path / "a", "rb") as file, open(tmp_path / "a", "rb", buffering=0) as raw:
        for source in file, raw, io.BytesIO(data), Drops(data):
            found = tenarc.load(source)
            assert same(found) and found["a"].flags.writeable
    with gzip.open(tmp_path / "z", "wb") as packed:
        tenarc.save(packed, VALUE)
    with gzip.open(tmp_path / "z", "rb") as packed:
        assert same(tenarc.load(packed))


def test_a_pipe_need_not_seek():
    reading, writing = os.pipe()
    with open(reading, "rb") as source, open(writing, "wb") as target:

        def write():
            with target:
                tenarc.save(target, VALUE)

        thread = threading.Thread(target=write)
        thread.start()
        found = tenarc.load(source)
        thread.join()
    assert same(found)


def test_a_file_is_read_and_written_from_its_position_on(tmp_path):
    with open(tmp_path / "a", "w+b") as file:
        file.write(b"header")
        tenarc.save(file, VALUE)
        file.seek(6)
        assert same(tenarc.load(file))
        file.seek(5)
        with pytest.raises(tenarc.Damaged, match=r"in .*a$"):
            tenarc.load(file)


def test_cls_tables_and_limits_are_those_of_files():
    memory = io.BytesIO()
    tenarc.save(memory, tenarc.Table([{"a": 1}, {"a": 2}]))
    assert tenarc.load(io.BytesIO(memory.getvalue()), cls=list[dict[str, int]]) == [{"a": 1}, {"a": 2}]
    assert isinstance(tenarc.load(io.BytesIO(memory.getvalue()), tables=True), tenarc.Table)
    with pytest.raises(tenarc.Limit):
        tenarc.load(io.BytesIO(memory.getvalue()), limits=tenarc.Limits(max_depth=1))


def test_one_value_is_expected():
    for count in (0, 2):
        memory = io.BytesIO()
        with tenarc.Writer(memory) as out:
            for _ in range(count):
                out.save(1)
        with pytest.raises(tenarc.NotFound, match=r"values|value:"):
            tenarc.load(io.BytesIO(memory.getvalue()))


def test_a_cut_stream_is_torn_at_every_length():
    memory = io.BytesIO()
    tenarc.save(memory, VALUE["b"])
    for length in range(len(memory.getvalue())):
        with pytest.raises(tenarc.Torn):
            tenarc.load(io.BytesIO(memory.getvalue()[:length]))


def test_nothing_is_written_of_what_cannot_be_saved():
    for value, options in ((object(), {}), (1, {"name": "x" * 2000}), (1, {"alignment": 3})):
        memory = io.BytesIO()
        with pytest.raises(tenarc.Unsupported):
            tenarc.save(memory, value, **options)
        assert memory.getvalue() == b""


def test_other_objects_are_refused(tmp_path):
    tenarc.save(tmp_path / "a", 1)
    for wrong in (3.5, None, object(), Sink()):
        with pytest.raises(TypeError):
            tenarc.load(wrong)
    for wrong in (3.5, None, object(), Drops(b"")):
        with pytest.raises(TypeError):
            tenarc.save(wrong, 1)
    with open(tmp_path / "a", errors="replace") as text, pytest.raises(TypeError, match="binary mode"):
        tenarc.load(text)
    with open(tmp_path / "t", "w") as text, pytest.raises(TypeError):
        tenarc.save(text, 1)
