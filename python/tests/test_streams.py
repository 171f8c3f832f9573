"""Writers and readers over file objects of every kind."""

import bz2
import io
import os
import threading

import numpy as np
import pytest

import tenarc

VALUES = [{"a": np.arange(5000, dtype="f4")}, [1, 2], np.ones((3, 4)), "text", {"b": bytes(3000), "c": None}]


def archive_of(values, **options) -> bytes:
    out = io.BytesIO()
    with tenarc.Writer(out, **options) as writer:
        for number, value in enumerate(values):
            writer.save(value, name=f"n{number}")
    return out.getvalue()


def same(found, wanted) -> bool:
    return tenarc.dumps(found) == tenarc.dumps(wanted)


class OneByte(io.RawIOBase):
    """A file object that reads and writes one byte at a time, and cannot seek."""

    def __init__(self, data=b""):
        self.data = bytearray(data)

    def readable(self):
        return True

    def writable(self):
        return True

    def readinto(self, out):
        count = min(len(out), len(self.data), 1)
        out[:count] = self.data[:count]
        del self.data[:count]
        return count

    def write(self, data):
        self.data += bytes(data[:1])
        return min(len(data), 1)


class OnlyRead:
    """A file object with nothing but `read`."""

    def __init__(self, data):
        self._file = io.BytesIO(data)

    def read(self, length):
        return self._file.read(min(length, 1000))


def test_readers_of_any_kind_give_the_same():
    data = archive_of(VALUES)
    for file in (io.BytesIO(data), OneByte(data), OnlyRead(data), io.BufferedReader(OneByte(data))):
        found = list(tenarc.Reader(file))
        assert all(map(same, found, VALUES)) and len(found) == len(VALUES)
        assert found[0]["a"].flags.writeable


def test_writers_of_any_kind_get_the_same():
    data = archive_of(VALUES)
    raw, said_nothing = OneByte(), io.BytesIO()

    class Silent:
        def write(self, content):
            said_nothing.write(content)

    for file in (raw, Silent()):
        with tenarc.Writer(file) as writer:
            for number, value in enumerate(VALUES):
                writer.save(value, name=f"n{number}")
    assert bytes(raw.data) == data and said_nothing.getvalue() == data


def test_compressors_and_pipes_carry_archives(tmp_path):
    with bz2.open(tmp_path / "a", "wb") as file, tenarc.Writer(file) as out:
        out.save(VALUES[0])
    with bz2.open(tmp_path / "a", "rb") as file:
        assert same(next(iter(tenarc.Reader(file))), VALUES[0])

    receive, send = os.pipe()
    got = []

    def read():
        with open(receive, "rb", buffering=0) as file:
            got.extend(tenarc.Reader(file))

    thread = threading.Thread(target=read)
    thread.start()
    with open(send, "wb", buffering=0) as file, tenarc.Writer(file) as out:
        for value in VALUES:
            out.save(value)
    thread.join()
    assert all(map(same, got, VALUES)) and len(got) == len(VALUES)


def test_headers_come_before_the_values():
    reader = tenarc.Reader(io.BytesIO(archive_of(VALUES)))
    header = reader.next_header()
    assert (header.name, header.alignment, header.lengths) == ("n0", 256, (20_000,))
    reader.skip()
    assert reader.next_header().name == "n1" and reader.load() == [1, 2]
    reader.skip()
    assert reader.load(str) == "text"
    assert same(reader.load(dict), VALUES[4])
    assert reader.next_header() is None
    with pytest.raises(tenarc.End):
        reader.load()
    with pytest.raises(EOFError):
        reader.skip()


def test_reading_goes_on_behind_a_value_of_another_type():
    reader = tenarc.Reader(io.BytesIO(archive_of(VALUES)))
    with pytest.raises(tenarc.Mismatch):
        reader.load(int)
    assert reader.load(list[int]) == [1, 2]


def test_a_torn_archive_gives_its_whole_values_first():
    data = archive_of(VALUES)
    for length in range(20_600, len(data)):
        reader, found = tenarc.Reader(io.BytesIO(data[:length])), []
        with pytest.raises(tenarc.Torn):
            for value in reader:
                found.append(value)
        assert all(map(same, found, VALUES)) and len(found) > 0
        with pytest.raises(tenarc.Torn):
            reader.next_header()


def test_a_changed_buffer_is_found_whether_read_or_skipped():
    data = bytearray(archive_of(VALUES))
    data[1000] ^= 1
    for use in (tenarc.Reader.load, tenarc.Reader.skip):
        reader = tenarc.Reader(io.BytesIO(bytes(data)))
        with pytest.raises(tenarc.Damaged, match="checksum of buffer 0"):
            use(reader)
        # After an error, nothing more is read.
        with pytest.raises(tenarc.Damaged):
            reader.load()


def test_values_may_follow_an_end_mark():
    out = io.BytesIO()
    writer = tenarc.Writer(out)
    for number in range(3):
        writer.save(number)
        writer.commit()
        writer.commit()
    writer.finish()
    assert list(tenarc.Reader(io.BytesIO(out.getvalue()))) == [0, 1, 2]


def test_an_exception_leaves_an_archive_without_an_end():
    out = io.BytesIO()
    with pytest.raises(ZeroDivisionError), tenarc.Writer(out) as writer:
        writer.save(1)
        raise ZeroDivisionError
    with pytest.raises(tenarc.Torn):
        list(tenarc.Reader(io.BytesIO(out.getvalue())))


def test_a_writer_that_failed_does_not_go_on():
    class Full(io.RawIOBase):
        room = 100

        def writable(self):
            return True

        def write(self, data):
            if self.room == 0:
                raise OSError(28, "full")
            count = min(len(data), self.room)
            self.room -= count
            return count

    writer = tenarc.Writer(Full())
    with pytest.raises(OSError, match="full"):
        writer.save("x" * 200)
    for call in (writer.finish, lambda: writer.save(1)):
        with pytest.raises(OSError, match="torn"):
            call()


def test_a_stream_that_would_block_says_so():
    class Nothing(io.RawIOBase):
        def readable(self):
            return True

        def readinto(self, out):
            return None

    with pytest.raises(BlockingIOError):
        tenarc.Reader(Nothing())


def test_files_in_text_mode_are_refused(tmp_path):
    (tmp_path / "a").write_bytes(archive_of([1])[:3])
    with (tmp_path / "a").open(encoding="latin-1") as file, pytest.raises(TypeError, match="binary"):
        tenarc.Reader(file)
    with (tmp_path / "b").open("w") as file, pytest.raises(TypeError):
        tenarc.Writer(file)
