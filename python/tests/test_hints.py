"""Errors say what was probably meant, and what a file is that is no archive."""

import enum
import io
import os
import pickle
import zipfile
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np
import pytest

import tenarc
from tenarc import Table, near


@pytest.fixture
def path(tmp_path):
    layers = [{"weight": np.zeros(3), "bias": 1.0}, {"weight": np.zeros(3)}]
    rows = Table([{"step": 1, "at": {"loss": 0.5}}])
    state = {"layers.0.weight": np.zeros(3), "layers.1.weight": np.zeros(3)}
    tenarc.save(tmp_path / "a", {"layers": layers, "log": rows, "state": state, "a/b": {"count": 1}, 7: 5})
    return tmp_path / "a"


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("layers.0.wieght", "layers.0.weight"),
        ("layer.1.weihgt", "layers.1.weight"),
        ("/layers/0/Bias", "/layers/0/bias"),
        ("lgo.step", "log.step"),
        ("log.stpe", "log.step"),
        ("log.at.los", "log.at.loss"),
        ("state.layers.0.weigth", "state.layers.0.weight"),
        ("state.layer.1.weight", "state.layers.1.weight"),
        ("/a~1c/count", "/a~1b/count"),
        # There is no layer 9, and no name that is similar.
        ("layers.9.weight", None),
        ("optimizer", None),
        ("", None),
        ("x" * 10_000, None),
    ],
)
def test_a_path_that_leads_to_nothing(path, wrong, meant):
    with tenarc.open(path) as archive:
        if not wrong:
            assert near.question("", ["a"]) == ""
            return
        for read in (archive.__getitem__, archive.tensor, archive.lazy, lambda path: archive.slice(path, 0)):
            with pytest.raises(tenarc.NotFound) as caught:
                read(wrong)
            said = str(caught.value)
            assert said.endswith(f"; did you mean `{meant}`?") if meant else "mean" not in said
            # It can go to another process.
            assert str(pickle.loads(pickle.dumps(caught.value))) == said
        assert meant is None or meant in archive


def test_nothing_is_compared_if_no_error_is_shown(path, monkeypatch):
    monkeypatch.setattr(near, "_nearest", None)
    with tenarc.open(path) as archive:
        assert "layers.0.wieght" not in archive and archive.get("layers.0.wieght", 5) == 5
        with pytest.raises(tenarc.NotFound):
            archive["layers.0.wieght"]


class Level(enum.Enum):
    low = 1
    high = 2


@dataclass
class Layer:
    weight: Any
    level: Level = Level.low


class Keys(TypedDict):
    count: int


@pytest.mark.parametrize(
    ("value", "cls", "said"),
    [
        ({"wieght": 1, 7: 2}, Layer, "the field `weight` of Layer is missing; did you mean `wieght`?"),
        ([{"wieght": 1}], list[Layer], "the field `weight` of Layer is missing at `0`; did you mean `wieght`?"),
        ({"bias": 1}, Layer, "the field `weight` of Layer is missing"),
        ({"weight": 1, "level": "hihg"}, Layer, "found str 'hihg' at `level`; did you mean `high`?"),
        ({"counts": 1}, Keys, "the key `count` of Keys is missing; did you mean `counts`?"),
        ({"a": {"wieght": 1}}, dict[str, Layer | None], "is missing at `a`; did you mean `wieght`?"),
    ],
)
def test_names_in_classes(value, cls, said):
    with pytest.raises(tenarc.Mismatch) as caught:
        tenarc.loads(tenarc.dumps(value), cls=cls)
    assert str(caught.value).endswith(said)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_names_in_classes_are_compared_only_for_errors_that_are_shown(monkeypatch):
    monkeypatch.setattr(near, "_nearest", None)
    assert tenarc.loads(tenarc.dumps([{"counts": 1}]), cls=list[Layer | dict[str, int]]) == [{"counts": 1}]


def test_names_of_values_and_columns(tmp_path):
    with tenarc.append(tmp_path / "a") as out:
        out.save([{"step": 1}], name="training")
        out.save({"a": 1}, name="final\n")
    with tenarc.open(tmp_path / "a") as archive:
        for read in (archive.named, archive.table, archive.series):
            with pytest.raises(tenarc.NotFound, match=r"no value named 'trainig'; did you mean `training`\?"):
                read("trainig")
        with pytest.raises(tenarc.NotFound, match=r"did you mean `final\\n`"):
            archive.named("final")
        table = archive.table("training")
        for read in (
            table.__getitem__,
            lambda name: table.filter(tenarc.col(name) > 1).rows(),
            table.take([0]).column,
        ):
            with pytest.raises(tenarc.NotFound, match=r"no column 'stpe'; did you mean `step`\?"):
                read("stpe")


def from_file(path):
    with path.open("rb") as file:
        return tenarc.load(file)


def test_files_of_other_formats(tmp_path):
    npz, zipped, npy = io.BytesIO(), io.BytesIO(), io.BytesIO()
    np.savez(npz, a=np.zeros(100))
    np.save(npy, np.zeros(100))
    with zipfile.ZipFile(zipped, "w") as file:
        file.writestr("model/data.pkl", "")
    header = b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'
    for content, said in (
        (npz.getvalue(), r"a zip file.*npz.*`tenarc convert`"),
        (zipped.getvalue(), r"PyTorch; the command `tenarc convert`"),
        (npy.getvalue(), "an npy file"),
        (len(header).to_bytes(8, "little") + header + b"\0", "a safetensors file"),
        (b"\x89HDF\r\n\x1a\n" + bytes(600), "an HDF5 file"),
        (b"GGUF" + bytes(100), "a GGUF file"),
        (b"PAR1" + bytes(100), "a Parquet file"),
        (b"ARROW1\0\0" + bytes(100), "an Arrow file"),
        (pickle.dumps(list(range(100)), 2), "a pickle"),
        (b"\x1f\x8b" + bytes(100), "compressed with gzip; decompress it first"),
        (b"<!DOCTYPE html>\n<html>" + b" " * 600, r"a text that starts with '<!DOCTYPE html>\\n<html>"),
        (b'<?xml version="1.0"?><Error><Code>NoSuchKey</Code></Error>', "a text that starts .*<Code>NoSuchKey"),
        (b"version https://git-lfs.github.com/spec/v1\noid", "a text that starts with 'version https://git-lfs"),
        ("PKü".encode(), "starts with other bytes"),
        (b"text\x1b[31m", "starts with other bytes"),
    ):
        (tmp_path / "a").write_bytes(content)
        for read in (
            tenarc.load,
            tenarc.open,
            lambda path: tenarc.open(path, torn=True),
            from_file,
            lambda path: tenarc.load(io.BytesIO(path.read_bytes())),
        ):
            with pytest.raises(tenarc.Damaged, match=f"not a tenarc archive: it .*{said}"):
                read(tmp_path / "a")


def test_a_pipe_is_not_read_further_to_name_what_it_has():
    read, write = os.pipe()
    with open(read, "rb", 0) as file:
        os.write(write, b"GET / HTTP/1.1")
        with pytest.raises(tenarc.Damaged, match=r"it starts with other bytes \(byte 0\)"):
            tenarc.load(file)
        assert os.read(read, 3) == b"ET "
        os.close(write)
