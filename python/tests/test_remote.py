"""Archives in object stores and on servers, which are read by ranges."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tenarc

fsspec: Any = pytest.importorskip("fsspec")
obstore: Any = pytest.importorskip("obstore")
MemoryStore: Any = pytest.importorskip("obstore.store").MemoryStore
MemoryFileSystem: Any = pytest.importorskip("fsspec.implementations.memory").MemoryFileSystem


class Counted:
    """A store of obstore or a file system, whose answers take a while. It counts."""

    def __init__(self, inner: Any, wait: float = 0.0) -> None:
        self._inner, self._wait, self._lock = inner, wait, threading.Lock()
        self.requests, self.bytes, self._now, self.together = 0, 0, 0, 0
        if hasattr(inner, "cat_file"):
            self.cat_file = self._cat_file

    def _asked(self, work: Any) -> Any:
        with self._lock:
            self.requests += 1
            self._now += 1
            self.together = max(self.together, self._now)
        time.sleep(self._wait)
        found = work()
        with self._lock:
            self._now -= 1
        return found

    def _cat_file(self, path: str, start: int, end: int) -> bytes:
        found: bytes = self._asked(lambda: self._inner.cat_file(path, start=start, end=end))
        self.bytes += len(found)
        return found

    def info(self, path: str) -> Any:
        return self._asked(lambda: self._inner.info(path))

    def head(self, path: str) -> Any:
        return self._asked(lambda: obstore.head(self._inner, path))

    def get(self, path: str, options: Any) -> Any:
        found = self._asked(lambda: obstore.get(self._inner, path, options=options))
        self.bytes += options["range"][1] - options["range"][0]
        return found

    def take(self) -> tuple[int, int]:
        found = self.requests, self.bytes
        self.requests = self.bytes = self.together = 0
        return found


def made(kind: str, value: Any, tmp_path: Path, wait: float = 0.0, **options: Any) -> Counted:
    """A store with an archive."""
    path = tmp_path / "model.tenarc"
    tenarc.save(path, value, **options)
    if kind == "obstore":
        store = MemoryStore()
        store.put("model.tenarc", path.read_bytes())
        return Counted(store, wait)
    files = MemoryFileSystem()
    files.pipe("/model.tenarc", path.read_bytes())
    return Counted(files, wait)


@pytest.fixture(autouse=True)
def _empty() -> Iterator[None]:
    yield
    MemoryFileSystem.store.clear()


KINDS = pytest.mark.parametrize("kind", ["obstore", "fsspec"])


@KINDS
def test_values_are_what_they_are_in_a_file(kind: str, tmp_path: Path) -> None:
    value = {
        "name": "model",
        "w": np.arange(5_000_000, dtype="f4"),
        "layers": [np.full((100, 30), number, "f8") for number in range(20)],
        "rows": [{"id": number, "name": f"row {number % 7}"} for number in range(5000)],
    }
    store = made(kind, value, tmp_path)
    found = tenarc.load("model.tenarc", store=store)
    np.testing.assert_array_equal(found["w"], value["w"])
    assert found["rows"] == value["rows"]
    for number, layer in enumerate(found["layers"]):
        assert (layer == number).all()
        assert layer.flags.writeable
    with tenarc.open("model.tenarc", store=store) as archive:
        np.testing.assert_array_equal(archive.tensor("w"), value["w"])
        np.testing.assert_array_equal(archive.slice("w", np.s_[100:200]), value["w"][100:200])
        assert archive.get("rows")[8]["name"] == "row 1"
    with pytest.raises(ValueError, match="closed"):
        archive.tensor("layers.3")


@KINDS
def test_only_what_is_needed_is_read(kind: str, tmp_path: Path) -> None:
    value = {f"w{number:02}": np.full(500_000, number, "f4") for number in range(20)}
    store = made(kind, value, tmp_path)
    with tenarc.open("model.tenarc", store=store) as archive:
        requests, _ = store.take()
        # How long it is, and the last bytes. fsspec is asked for the version after each request.
        each = 2 if kind == "fsspec" else 1
        assert requests == 1 + each
        assert archive.tensor("w07")[9] == 7
        requests, read = store.take()
        assert requests <= 3 * each and read < 2_000_000 + (200 << 10)
        assert archive.slice("w11", np.s_[1000:1010]).tolist() == [11] * 10
        requests, read = store.take()
        # A chunk with its checksum.
        assert requests <= 2 * each and read <= (1 << 20) + (64 << 10)


@KINDS
def test_what_is_read_from_front_to_end_is_requested_before(kind: str, tmp_path: Path) -> None:
    value = {f"w{number:03}": np.full(1 << 18, number, "f4") for number in range(100)}
    store = made(kind, value, tmp_path, wait=0.1)
    found = tenarc.load("model.tenarc", store=store)
    assert all((found[name] == array).all() for name, array in value.items())
    assert store.together > 3
    requests, read = store.take()
    assert requests < (80 if kind == "fsspec" else 40) and read < 1.2 * (100 << 20)


@KINDS
def test_one_long_array_is_read_by_several_requests(kind: str, tmp_path: Path) -> None:
    array = np.arange(12 << 20, dtype="f4")
    store = made(kind, array, tmp_path, wait=0.1)
    np.testing.assert_array_equal(tenarc.load("model.tenarc", store=store), array)
    assert store.together > 3
    requests, read = store.take()
    assert requests < (24 if kind == "fsspec" else 12) and read < (49 << 20)


@KINDS
def test_errors_say_what_was_wrong_and_where(kind: str, tmp_path: Path) -> None:
    store = made(kind, {"w": np.zeros(100_000, "f4")}, tmp_path)
    with pytest.raises(FileNotFoundError):
        tenarc.open("nothing.tenarc", store=store)
    whole = (tmp_path / "model.tenarc").read_bytes()
    middle = len(whole) // 2
    damaged = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
    (tmp_path / "damaged").write_bytes(damaged)
    if kind == "obstore":
        store._inner.put("damaged", damaged)
        store._inner.put("text", b"this is no archive")
        store._inner.put("empty", b"")
    else:
        store._inner.pipe("/damaged", damaged)
        store._inner.pipe("/text", b"this is no archive")
        store._inner.pipe("/empty", b"")
    with tenarc.open("damaged", store=store) as archive, pytest.raises(tenarc.Damaged, match="w"):
        archive.tensor("w")
    for name in ["text", "empty"]:
        with pytest.raises(tenarc.Error, match=name):
            tenarc.open(name, store=store)
    with pytest.raises(TypeError, match="expected a store of obstore or a file system of fsspec, found int"):
        tenarc.open("model.tenarc", store=7)


def test_an_object_that_was_replaced_is_not_mixed(tmp_path: Path) -> None:
    store = made("obstore", {"w": np.zeros(1_000_000, "f4")}, tmp_path)
    with tenarc.open("model.tenarc", store=store) as archive:
        store._inner.put("model.tenarc", (tmp_path / "model.tenarc").read_bytes())
        with pytest.raises(Exception, match=r"[Pp]recondition"):
            archive.tensor("w")


@pytest.mark.parametrize("same_size", [False, True])
@pytest.mark.parametrize("local", [False, True])
def test_a_file_of_a_file_system_that_was_replaced_is_not_mixed(
    tmp_path: Path, local: bool, same_size: bool
) -> None:
    value = {"w": np.zeros(1_000_000, "f4"), "v": np.ones(9, "f4")}
    files = made("fsspec", value, tmp_path)._inner
    path = "/model.tenarc"
    if local:
        files, path = fsspec.filesystem("file"), str(tmp_path / "model.tenarc")
    other = tmp_path / "other"
    tenarc.save(other, value if same_size else {**value, "u": 1})
    with tenarc.open(path, store=files) as archive:
        assert archive.slice("w", np.s_[5:7]).tolist() == [0, 0]
        if local:
            other.replace(path)
        else:
            files.pipe(path, other.read_bytes())
        with pytest.raises(OSError, match="was replaced since it was opened"):
            archive.tensor("w")
    assert tenarc.load(path, store=files)["v"].tolist() == [1] * 9


def test_a_server_that_sends_less_is_an_error(tmp_path: Path) -> None:
    store = made("fsspec", {"w": np.zeros(1_000_000, "f4")}, tmp_path)
    with tenarc.open("model.tenarc", store=store) as archive:
        whole = store.cat_file
        store.cat_file = lambda path, start, end: whole(path, start, end)[:-1]
        with pytest.raises(tenarc.Torn, match="the server sent"):
            archive.tensor("w")


def test_urls_are_opened_by_fsspec_and_can_be_pickled(tmp_path: Path) -> None:
    made("fsspec", {"w": np.arange(1000, dtype="f4")}, tmp_path)
    assert isinstance(fsspec.filesystem("memory"), MemoryFileSystem)
    with tenarc.open("memory://model.tenarc") as archive:
        again = pickle.loads(pickle.dumps(archive))
        np.testing.assert_array_equal(again.tensor("w"), archive.tensor("w"))
        again.close()
    assert tenarc.load("memory://model.tenarc")["w"][7] == 7
    (tmp_path / "local.tenarc").write_bytes((tmp_path / "model.tenarc").read_bytes())
    assert tenarc.load((tmp_path / "local.tenarc").as_uri())["w"][7] == 7


def test_an_archive_in_a_store_is_not_pickled(tmp_path: Path) -> None:
    store = made("obstore", {"w": np.zeros(1000, "f4")}, tmp_path)
    with tenarc.open("model.tenarc", store=store) as archive, pytest.raises(TypeError):
        pickle.dumps(archive)


def test_several_threads_read_at_once(tmp_path: Path) -> None:
    value = {f"w{number:02}": np.full(300_000, number, "f4") for number in range(24)}
    store = made("obstore", value, tmp_path)
    with tenarc.open("model.tenarc", store=store) as archive:
        wrong: list[str] = []

        def read(names: list[str]) -> None:
            wrong.extend(name for name in names if not (archive.tensor(name) == value[name]).all())

        names = list(value)
        threads = [threading.Thread(target=read, args=(names[start::4] + names,)) for start in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong
