"""With the compiled module, results and errors are the same as without it."""

from __future__ import annotations

import datetime
import io
import os
import random
import struct
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import samples
from conftest import ROOT

import tenarc
from tenarc import accelerator, tree

pytestmark = pytest.mark.skipif(not tenarc.accelerated, reason="the compiled module is not installed")

FILES = sorted((ROOT / "conformance" / "files").glob("*"))
MESSAGES = {path.name: path.read_bytes() for path in FILES if path.suffix == ".cbor"}


@dataclass
class Point:
    x: Any
    y: Any = None


def exact(value: Any) -> Any:
    """All of a value that a caller can see, in a form that can be compared."""
    kind = type(value)
    if kind is float:
        return kind, struct.pack(">d", value)
    if isinstance(value, np.ndarray):
        flags = value.flags.writeable, value.flags.f_contiguous, value.flags.c_contiguous
        return kind, value.dtype, value.shape, flags, value.tobytes()
    if kind in (list, tuple):
        return kind, [exact(item) for item in value]
    if kind is dict:
        return kind, [(exact(key), exact(item)) for key, item in value.items()]
    if kind is tenarc.Tag:
        return kind, value.tag, exact(value.value)
    if kind is tenarc.Some:
        return kind, exact(value.value)
    if kind is tenarc.Raw:
        return kind, value.dtype, value.shape, value.order, exact(value.data)
    if kind is tenarc.Table:
        return kind, exact(value.rows())
    return kind, bytes(value) if kind is memoryview else repr(value)


def thawed(node: Any) -> Any:
    """A tree with one class of arrays and one of maps. cbor2 has others in keys and in most tags."""
    if isinstance(node, (list, tuple)):
        return [*map(thawed, node)]
    if isinstance(node, Mapping):
        return {key: thawed(item) for key, item in node.items()}
    return tenarc.Tag(node.tag, thawed(node.value)) if type(node) is tenarc.Tag else node


def outcome(call: Any) -> Any:
    """What a call gives or raises."""
    try:
        return exact(call())
    except tenarc.Error as error:
        return type(error), str(error), error.offset, error.path
    except Exception as error:
        return type(error), str(error)


@pytest.fixture
def same(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Fails unless a call has the same outcome with and without the module. Returns whether it gives a value."""
    compiled = accelerator.compiled

    def check(call: Any, what: Any = "") -> bool:
        found = outcome(call)
        with monkeypatch.context() as patched:
            patched.setattr(accelerator, "compiled", None)
            wanted = outcome(call)
        assert accelerator.compiled is compiled
        assert found == wanted, f"{what}: {found} with the module, {wanted} without it"
        return not issubclass(found[0], Exception)

    return check


def readers(data: bytes, depth: int = 128) -> list[Any]:
    limits = tenarc.Limits(max_depth=depth)
    return [
        lambda: tenarc.loads(data, limits=limits),
        lambda: tenarc.loads(data, limits=limits, copy=False, numbers=True, tables=True),
        lambda: thawed(tree.parse(data, 7, limits)),
    ]


def test_the_files_of_all_readers(same, tmp_path):
    read = 0
    for path in FILES:
        if path.suffix == ".tenarc":
            data = path.read_bytes()
            read += same(lambda data=data: tenarc.load(io.BytesIO(data)), path.name)
            read += same(lambda path=path: tenarc.load(path), path.name)
        elif path.suffix == ".cbor":
            read += sum(same(call, path.name) for call in readers(path.read_bytes()))
    assert read > 500


def changed(chosen: random.Random, data: bytes) -> bytes:
    """Data in which some bytes are others, missing, or there once more."""
    out = bytearray(data)
    for _ in range(chosen.choice((1, 1, 2, 4))):
        at = chosen.randrange(len(out) + 1)
        end = min(len(out), at + chosen.choice((1, 1, 2, 9)))
        how = chosen.randrange(4)
        if how == 0:
            del out[at:end]
        elif how == 1:
            out[at:at] = out[at:end]
        else:
            # Heads of every kind, and of lengths that are longer than the input.
            heads = b"\x9b", b"\xbf", b"\xff", b"\xd8\x40", b"\xf9"
            out[at:end] = chosen.choice((chosen.randbytes(end - at), *heads))
    return bytes(out)


def test_changed_messages(same):
    chosen = random.Random(11)
    for name, data in MESSAGES.items():
        for _ in range(12):
            message = changed(chosen, data)
            for call in readers(message, chosen.choice((128, 128, 3, 1000)))[chosen.randrange(2) :]:
                same(call, (name, message.hex()))


def a_number(chosen: random.Random) -> Any:
    return (chosen.choice((-1, 1)) << chosen.randrange(130)) + chosen.randrange(-1, 2)


def a_text(chosen: random.Random) -> str:
    letters = chosen.choice(("ab", "aä", "水a", "😀", "\0"))
    return letters * chosen.choice((0, 1, 2, 12, 40, 2000)) + str(chosen.randrange(3))


def a_value(chosen: random.Random, depth: int) -> Any:
    """A value of any kind. Few have something in them that cannot be written."""
    inside = lambda: a_value(chosen, depth - 1)  # noqa: E731
    count = chosen.choice((0, 1, 2, 5, 20)) if depth else 0
    kinds = [
        lambda: chosen.choice((None, True, False, 0, 23, 24, 255, 256, -1, -24, -25)),
        lambda: a_number(chosen),
        lambda: chosen.choice((0.0, -0.0, float("nan"), float("inf"), chosen.random(), 1e300)),
        lambda: a_text(chosen),
        lambda: chosen.randbytes(chosen.choice((0, 3, 23, 300, 5000))),
        lambda: [inside() for _ in range(count)],
        lambda: tuple(inside() for _ in range(count)),
        lambda: [chosen.choice((None, 1, "a", 2**70)) for _ in range(count)],
        lambda: {a_text(chosen)[:50]: inside() for _ in range(count)},
        lambda: {a_number(chosen): inside() for _ in range(count)},
        lambda: {chosen.choice(("k", b"k", 1, 1.5, None, True, (1, "a"))): inside() for _ in range(count)},
        lambda: Point(inside() if depth else 1),
        lambda: chosen.choice(SAMPLES),
        lambda: tenarc.Some(inside() if depth else None),
        lambda: tenarc.Tag(chosen.choice((2, 3, 5, 24, 40, 64, 70, 32, 999)), inside() if depth else b"abc"),
        lambda: datetime.datetime(2020, 1, 1, microsecond=chosen.randrange(1000)),
        lambda: tenarc.Table([{"a": n, "b": a_text(chosen), "c": None} for n in range(count + 1)]),
        lambda: tenarc.Table(
            [{"a": None if n % 3 else "x"} | dict.fromkeys("b" * (n % 2), n) for n in range(count + 1)]
        ),
        lambda: np.zeros(2000, chosen.choice(("f4", ">i2", "c8"))),
    ]
    if chosen.random() < 0.003:
        return chosen.choice(("\ud800", {"\udfff": 1}, {1, 2}, 2**200, object, {np.int64(1): 1, 1.0: 2}))
    return chosen.choice(kinds)()


SAMPLES = [value for _, value in samples.values()]


def test_values_of_all_kinds(same):
    for seed in range(250):
        value = [a_value(random.Random(seed), depth) for depth in (1, 2, 4)]
        if not same(lambda value=value: tenarc.dumps(value), seed):
            continue
        same(lambda value=value: bytes(tenarc.to_parts(value, inline_below=100).metadata), seed)
        same(lambda value=value: tenarc.from_parts(*tenarc.to_parts(value)), seed)
        for call in readers(tenarc.dumps(value)):
            same(call, seed)


def test_levels(same):
    for unit, end in ((b"\x81", b"\x01"), (b"\xa1\x00", b"\x80"), (b"\xc1", b"\xa0"), (b"\x81\xa1a", b"\xd8@@")):
        for levels in (1, 2, 3, 40, 62, 63, 64, 65, 126, 127, 128, 129, 130, 300):
            for depth in (1, 3, 127, 128, 129, 400):
                for call in readers(unit * levels + end, depth):
                    same(call, (unit, levels, depth))
    value: Any = 1
    for levels in range(1, 140):
        value = [value] if levels % 3 else {"a": value}
        same(lambda value=value: tenarc.dumps(value), levels)
        same(lambda value=value: tenarc.dumps({"a": Point([value])}), levels)
    loop: list[Any] = []
    loop.append(loop)
    assert not same(lambda: tenarc.dumps(loop))


def test_lengths_in_the_input_allocate_nothing(same):
    for head in (b"\x9b", b"\xbb", b"\x5b", b"\x7b", b"\xd8\x40\x5b"):
        for length in (b"\xff" * 8, b"\x7f" + b"\xff" * 7, b"\x00\x00\x00\x10" + b"\0" * 4):
            assert not same(lambda data=head + length + b"a": tenarc.loads(data))


def test_floats_of_16_bits(same):
    for bits in range(1 << 16):
        data = b"\xf9" + bits.to_bytes(2, "big")
        found = tree.parse(data, 0, tenarc.Limits())
        wanted = struct.unpack(">e", data[1:])[0]
        assert found == wanted or (found != found and wanted != wanted)
    assert same(lambda: tenarc.loads(b"\x83\xf9\x80\x00\xf9\x7e\x00\xfa\x7f\xc0\x00\x01"))


def test_values_that_change_while_they_are_written():
    class Changing:
        def __init__(self, call: Any) -> None:
            self.call = call

        def __dlpack__(self, **_: Any) -> Any:
            self.call()
            raise BufferError("changed")

    entries: dict[str, Any] = {}
    entries |= {"a": Changing(lambda: entries.update(b=1)), "c": 1}
    items: list[Any] = []
    items += [Changing(items.clear), 1]
    for value in (entries, items):
        with pytest.raises((tenarc.Error, BufferError, AttributeError)):
            tenarc.dumps(value)


def test_long_payloads_are_copied_once():
    array = np.arange(100_000, dtype="f4")
    message = tenarc.dumps([array, array.view(tenarc.Numbers)])
    copied, viewed = tenarc.loads(message), tenarc.loads(message, copy=False)
    copied[0][0] = 1
    assert viewed[0][0] == 0 and tenarc.loads(message)[0][0] == 0
    with pytest.raises(ValueError, match="read-only"):
        viewed[0][0] = 1
    # Views of the message itself.
    assert np.shares_memory(viewed[0], np.frombuffer(message, np.uint8))


def test_it_can_be_turned_off():
    for pure, found in (("1", "False"), ("0", "True"), ("", "True")):
        program = "import tenarc; print(tenarc.accelerated, tenarc.loads(tenarc.dumps([1, {'a': 2}])))"
        environment = {**os.environ, "TENARC_PURE": pure}
        run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
        assert run.stdout == f"{found} [1, {{'a': 2}}]\n", run.stderr


def test_a_module_of_another_version_is_not_used(monkeypatch):
    assert accelerator._found() is accelerator.compiled
    monkeypatch.setitem(sys.modules, "tenarc_accelerator", SimpleNamespace(INTERFACE=0))
    assert accelerator._found() is None
