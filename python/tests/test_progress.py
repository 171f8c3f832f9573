"""How far a save, a load or a check has come."""

import io
import sys

import numpy as np
import pytest

import tenarc

VALUE = {f"w{n}": np.random.default_rng(n).normal(size=500_000) for n in range(3)}
LENGTH = 12_000_000


class Told(list):
    """What a function was told."""

    def __call__(self, done, total):
        self.append((done, total))

    def check(self, total):
        assert {found for _, found in self} == {total} and self[-1][0] == total
        assert [done for done, _ in self] == sorted({done for done, _ in self}) and len(self) >= 10


@pytest.mark.parametrize("compression", [None, "zstd", lambda path, *_: "lz4" if path == "w1" else None])
def test_the_bytes_are_told(tmp_path, compression):
    path, told = tmp_path / "a", Told()
    tenarc.save(path, VALUE, compression=compression, progress=told)
    told.check(LENGTH)
    tenarc.save(tmp_path / "b", VALUE, compression=compression)
    assert path.read_bytes() == (tmp_path / "b").read_bytes()
    length = path.stat().st_size
    with open(path, "rb") as file:
        for given in (path, io.BytesIO(path.read_bytes()), file):
            told = Told()
            found = tenarc.load(given, progress=told)
            assert all(np.array_equal(found[name], VALUE[name]) for name in VALUE)
            if isinstance(given, io.BytesIO):
                assert {total for _, total in told} == {0} and told[-1][0] >= length
            else:
                told.check(length)
    with tenarc.open(path) as archive:
        told = Told()
        archive.verify(progress=told)
        told.check(length)
        archive.verify()


def test_a_bar_of_tqdm(tmp_path, capsys):
    pytest.importorskip("tqdm")
    tenarc.save(tmp_path / "a", VALUE, progress=True)
    assert tenarc.load(tmp_path / "a", progress=True)["w0"].shape == (500_000,)
    with tenarc.open(tmp_path / "a") as archive:
        archive.verify(progress=True)
    shown = capsys.readouterr().err
    for what in ("saving: 100%", "loading: 100%", "verifying: 100%", "12.0M/12.0M"):
        assert what in shown, shown


def test_after_an_error_the_bar_is_closed_where_it_was(tmp_path):
    path, told = tmp_path / "a", Told()
    tenarc.save(path, VALUE)
    data = bytearray(path.read_bytes())
    data[6_000_000] ^= 1
    path.write_bytes(data)
    with tenarc.open(path) as archive, pytest.raises(tenarc.Damaged):
        archive.verify(progress=told)
    assert 0 < told[-1][0] < len(data)

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tenarc.save(path, VALUE, progress=stop)
    assert path.read_bytes() == data


def test_without_tqdm_the_error_says_so(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(tenarc.Unsupported, match="tqdm"):
        tenarc.save(tmp_path / "a", VALUE, progress=True)
    assert not (tmp_path / "a").exists()
