"""The files in `conformance/` are read as the JSON beside each of them says."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tenarc
from tenarc import dtypes, named

FOLDER = Path(__file__).resolve().parents[2] / "conformance" / "files"
FILES = sorted(path for path in FOLDER.glob("*") if path.suffix not in (".json", ".seq"))

if not FILES:
    pytest.skip("the files are only in the repository", allow_module_level=True)

#: What Python does not have: a dictionary has each key once, and no key that is a dictionary.
NOT_HERE = {"keys-twice", "path-key-twice"}


def plain(said: Any) -> Any:
    """An expected value in a form that can be compared: floats of all widths are floats."""
    if isinstance(said, list):
        return [plain(item) for item in said]
    if not isinstance(said, dict):
        return said
    ((kind, content),) = said.items()
    if kind == "int":
        return int(content)
    if kind in ("f16", "f32", "f64"):
        return number(struct.unpack({"f16": ">e", "f32": ">f", "f64": ">d"}[kind], bytes.fromhex(content))[0])
    if kind == "map":
        return {"map": [[plain(key), plain(value)] for key, value in content]}
    return {"some": plain(content)} if kind == "some" else said


def number(value: float) -> Any:
    return "NaN" if math.isnan(value) else {"float": value.hex()}


def shown(value: Any) -> Any:
    """A value that was read, in the same form."""
    if isinstance(value, (np.bool_, np.integer)):
        return value.item()
    if isinstance(value, (float, np.floating)):
        return number(float(value))
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"bytes": bytes(value).hex()}
    if isinstance(value, dict):
        return {"map": [[shown(key), shown(item)] for key, item in value.items()]}
    if isinstance(value, tenarc.Some):
        return (
            {"some": shown(value.value)}
            if value.value is None or isinstance(value.value, tenarc.Some)
            else shown(value.value)
        )
    if isinstance(value, tenarc.Tag):
        return shown(value.value)
    if isinstance(value, tenarc.Raw):
        return tensor(value.dtype, value.shape, value.order, value.data.tobytes())
    if isinstance(value, np.ndarray):
        order = dtypes.order_of(value)
        return tensor(name_of(value), value.shape, order, dtypes.little_endian(value).tobytes(order))
    if isinstance(value, (list, tuple)):
        return [shown(item) for item in value]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return None if "undefined" in repr(value) else repr(value)


def name_of(array: np.ndarray[Any, Any]) -> str:
    known = dtypes.of_numpy(array.dtype)
    return "?" if known is None else known.name


def tensor(dtype: str, shape: Any, order: str, payload: bytes) -> Any:
    return {"tensor": {"dtype": dtype, "shape": list(shape), "order": order, "payload": payload.hex()}}


def same(said: Any, found: Any) -> bool:
    """Whether two values are equal. True is not 1."""
    if isinstance(said, dict) and isinstance(found, dict):
        return said.keys() == found.keys() and all(same(said[key], found[key]) for key in said)
    if isinstance(said, list) and isinstance(found, list):
        return len(said) == len(found) and all(map(same, said, found))
    return type(said) is type(found) and said == found


def listed(said: Any, found: Any) -> Any:
    """A path to a column of numbers leads to an array of numpy, which stands for the array of the numbers."""
    if isinstance(said, list) and isinstance(found, np.ndarray):
        return found.tolist()
    if isinstance(said, list) and isinstance(found, list) and len(said) == len(found):
        return list(map(listed, said, found))
    return found


def check_value(said: Any, found: Any) -> None:
    expected, found = plain(said), shown(listed(said, found))
    assert same(expected, found), f"expected {expected}, found {found}"


def verdict(error: Exception | None, *, opening: bool, archive: bool) -> dict[str, Any]:
    if error is None:
        return {"verdict": "ok"}
    what = str(error)
    if isinstance(error, (tenarc.Unsupported, tenarc.Version)):
        return {"verdict": "unsupported", "what": what}
    if not archive:
        return {"verdict": "refused", "what": what}
    # That a part of what was committed seems to be cut off means that it is damaged.
    if isinstance(error, tenarc.Torn) and opening:
        return {"verdict": "torn", "what": what}
    return {"verdict": "damaged", "what": what, "at": getattr(error, "offset", None)}


def check_verdict(step: str, said: Any, found: dict[str, Any]) -> None:
    if said is None:
        return
    several = said if isinstance(said, list) else [said]
    assert any(agrees(one, found) for one in several), f"{step}: expected {said}, found {found}"


def agrees(said: dict[str, Any], found: dict[str, Any]) -> bool:
    same_name = said.get("what", "") in found.get("what", "")
    at = "at" not in said or said["at"] == found.get("at")
    segments = "segments" not in said or said["segments"] == found.get("segments")
    return said["verdict"] == found["verdict"] and same_name and at and segments


def attempt(call: Any) -> tuple[Any, Exception | None]:
    try:
        return call(), None
    except tenarc.Error as error:
        return None, error


@pytest.fixture
def items(monkeypatch: pytest.MonkeyPatch) -> None:
    """The files say what the items of named types are."""
    monkeypatch.setattr(named, "is_known", lambda *_: False)
    monkeypatch.setattr(named, "value_of", lambda _, __, item: item)


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_a_file(path: Path, tmp_path: Path, items: None) -> None:
    if path.stem in NOT_HERE:
        pytest.skip("a dictionary has each key once")
    said = json.loads(path.with_suffix(".json").read_text())
    if said["kind"] == "archive":
        check_archive(path, said, tmp_path)
    elif said["kind"] == "parts":
        check_parts(path, said)
    else:
        value, error = attempt(lambda: tenarc.loads(path.read_bytes()))
        found = verdict(error, opening=False, archive=False)
        check_verdict("read", said["read"], {**found, "verdict": "refused"} if error else found)
        if error is None and "value" in said:
            check_value(said["value"], value)


def check_parts(path: Path, said: dict[str, Any]) -> None:
    content, pieces = path.read_bytes(), []
    for length in said["pieces"]:
        pieces.append(content[:length])
        content = content[length:]
    value, error = attempt(lambda: tenarc.from_parts(pieces[0], pieces[1:]))
    check_verdict("read", said["read"], verdict(error, opening=False, archive=False))
    if error is None and "value" in said:
        check_value(said["value"], value)
    if "unverified" in said:
        check_value(said["unverified"], tenarc.from_parts(pieces[0], pieces[1:], verify=False))


def check_archive(path: Path, said: dict[str, Any], tmp_path: Path) -> None:
    archive, error = attempt(lambda: tenarc.open(path))
    found = verdict(error, opening=True, archive=True)
    if archive is not None and archive.unfinished_bytes:
        found = {"verdict": "unfinished", "segments": archive.count}
    check_verdict("open", said["open"], found)
    if "after" in said["open"]:
        assert whole(path, tmp_path) == said["open"]["after"]
    if archive is None:
        return
    with archive:
        check_segments(path, said, archive)
        _, error = attempt(lambda: [segment.load() for segment in archive.segments()])
        check_verdict("read", said.get("read"), verdict(error, opening=False, archive=True))
        _, error = attempt(archive.verify)
        check_verdict("verify", said.get("verify"), verdict(error, opening=False, archive=True))
        if "digest" in said:
            assert attempt(archive.digest)[0] == said["digest"]
        for name, rows in said.get("tables", []):
            check_value(rows, archive.table(name).rows())


def check_segments(path: Path, said: dict[str, Any], archive: tenarc.Archive) -> None:
    if "segments" not in said:
        return
    assert archive.count == len(said["segments"])
    with tenarc.open(path, verify=False) as unverified:
        for expected, segment, other in zip(
            said["segments"], archive.segments(), unverified.segments(), strict=True
        ):
            check_segment(expected, segment, other)


def check_segment(said: dict[str, Any], segment: tenarc.Segment, unverified: tenarc.Segment) -> None:
    found = [segment.name, segment.offset, segment.byte_length, segment.header_length, attempt(segment.digest)[0]]
    assert found == [said["name"], said["offset"], said["length"], said["header"], said["digest"]]
    value, error = attempt(segment.load)
    check_verdict("read", said.get("read", {"verdict": "ok"}), verdict(error, opening=False, archive=True))
    if error is None and "value" in said:
        check_value(said["value"], value)
    if "unverified" in said:
        check_value(said["unverified"], unverified.load())
    if said.get("tensors") == "error":
        with pytest.raises(tenarc.Error):
            list(segment.tensors())
    elif "tensors" in said:
        assert sorted([info.path, info.dtype, list(info.shape)] for info in segment.tensors()) == said["tensors"]
    for name, *expected in said.get("paths", []):
        value, error = attempt(lambda name=name: segment[name])
        assert (error is None) == bool(expected), f"`{name}`: expected {expected}, found {value!r} {error}"
        for one in expected:
            check_value(one, value)


def whole(path: Path, tmp_path: Path) -> int:
    """How many segments of a torn archive a repair keeps."""
    copy = tmp_path / "torn.tenarc"
    copy.write_bytes(path.read_bytes())
    recovered, error = attempt(lambda: tenarc.recover(copy))
    # Nothing would be left.
    return 0 if isinstance(error, tenarc.Torn) else recovered.segments
