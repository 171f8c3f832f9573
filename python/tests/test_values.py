"""Writing values to messages and archives, and reading them back."""

import dataclasses
import enum
import io
import json
import struct
import subprocess
import sys
from typing import Any, NamedTuple

import cbor2
import numpy as np
import pytest
import samples
from described import describe, difference

import tenarc
from tenarc import Numbers, Simple, Some


def through_archive(value, numbers=True, **options):
    out = io.BytesIO()
    with tenarc.Writer(out, **options) as writer:
        writer.save(value)
    return tenarc.Reader(io.BytesIO(out.getvalue())).load(numbers=numbers)


WAYS = {
    "message": lambda value: tenarc.loads(tenarc.dumps(value), numbers=True),
    "message, uncopied": lambda value: tenarc.loads(tenarc.dumps(value), copy=False, numbers=True),
    "archive": through_archive,
    "buffers": lambda value: through_archive(value, inline_below=0),
    "parts": lambda value: through_parts(value),
}


def through_parts(value):
    parts = tenarc.to_parts(value, inline_below=0)
    return tenarc.from_parts(parts.metadata, parts.buffers, numbers=True)


@pytest.mark.parametrize("way", WAYS)
def test_every_value_comes_back_bit_for_bit(way):
    for name, value in samples.values():
        found = WAYS[way](value)
        assert difference(describe(found), describe(value)) is None, name
        if isinstance(value, np.ndarray):
            assert type(found) is type(value) and found.dtype == value.dtype.newbyteorder("<"), name
            assert found.flags.aligned, name


def test_owned_arrays_can_be_written_to_and_are_apart():
    array = np.arange(1000.0)
    for value in (through_archive([array, array], dedup=True), tenarc.loads(tenarc.dumps([array, array]))):
        value[0][0] = 7
        assert value[1][0] == 0 and array[0] == 0


def test_equal_payloads_are_stored_once_when_asked():
    array = np.arange(1000.0)
    once, twice = (tenarc.to_parts([array, array.copy()], dedup=dedup).buffers for dedup in (True, False))
    assert (len(once), len(twice)) == (1, 2)


def test_what_fits_the_threshold_stands_in_a_buffer():
    for length, count in ((2047, 0), (2048, 1)):
        assert len(tenarc.to_parts(np.zeros(length, "u1")).buffers) == count
        assert len(tenarc.to_parts(bytes(length)).buffers) == count
    assert tenarc.to_parts([b"", np.zeros(0)], inline_below=0).buffers == []


def test_floats_keep_their_bits_and_width():
    quiet = struct.unpack(">d", bytes.fromhex("7ff8000000000001"))[0]
    assert tenarc.dumps([quiet, float("inf"), 1.0]).hex() == (
        "83fb7ff8000000000001fb7ff0000000000000fb3ff0000000000000"
    )
    assert tenarc.dumps(np.float32(1)).hex() == "fa3f800000"
    assert tenarc.dumps([quiet] * 20) == b"\x94" + tenarc.dumps(quiet) * 20


def test_numpy_numbers_are_numbers():
    values = [
        np.int8(-3),
        np.uint64(2**64 - 1),
        np.bool_(True),
        np.float64(0.5),
        np.float16(0.5),
        np.str_("a"),
    ]
    assert tenarc.loads(tenarc.dumps(values)) == [-3, 2**64 - 1, True, 0.5, 0.5, "a"]
    assert tenarc.loads(tenarc.dumps(np.complex64(1 + 2j))) == 1 + 2j


def test_other_bytes_than_0_and_1_of_a_bool_view_are_true():
    odd = np.array([0, 2, 255], "u1").view(bool)
    assert tenarc.loads(tenarc.dumps(odd)).view("u1").tolist() == [0, 1, 1]


@dataclasses.dataclass
class Point:
    x: float
    label: str = "none"


class Pair(NamedTuple):
    first: int
    second: str


class Colour(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    HIGH = 3


def test_dataclasses_tuples_and_enums_are_maps_arrays_and_names():
    value = [Point(0.5), Pair(1, "b"), Colour.RED, Level.HIGH, (1, 2)]
    found = tenarc.loads(tenarc.dumps(value))
    assert found == [{"x": 0.5, "label": "none"}, [1, "b"], "RED", "HIGH", [1, 2]]


def test_matrices_and_their_like_are_arrays():
    found = tenarc.loads(tenarc.dumps([np.eye(3)[:, ::2].view(np.matrix), np.arange(3).view(np.recarray)]))
    assert found[0].shape == (3, 2) and found[1].tolist() == [0, 1, 2]


def test_memory_of_any_kind_is_bytes():
    for value in (bytearray(b"abc"), memoryview(b"abc"), memoryview(b"aXbXc")[::2]):
        assert tenarc.loads(tenarc.dumps(value)) == b"abc"


@pytest.mark.parametrize(
    ("value", "path", "said"),
    [
        ({"a": [1, {1, 2}]}, "a.1", "a builtins.set"),
        ({"a": [2**128]}, "a.0", "128 bits"),
        ([-(2**127) - 1], "0", "128 bits"),
        ({"a": {"b": np.zeros(2, "V3")}}, "a.b", "dtype |V3"),
        ([np.array([None])], "0", "dtype object"),
        ([np.zeros((2, 1), [("a", "i4")])], "0", "structured array"),
        ([np.ma.masked_array([1], [True])], "0", "MaskedArray"),
        ({"a": tenarc.Tag(int.from_bytes(b"TBUF", "big"), [0])}, "a", "refers to a buffer"),
        (["\ud800"], "0", "not valid Unicode"),
        ({"a": ["ok"] * 20 + ["\ud800"]}, "a.20", "not valid Unicode"),
        ([complex], "0", "builtins.type"),
        ([int], "0", "builtins.type"),
    ],
)
def test_what_has_no_place_is_refused_with_its_path(value, path, said):
    for write in (tenarc.dumps, tenarc.to_parts):
        with pytest.raises(tenarc.Unsupported) as caught:
            write(value)
        assert caught.value.path == path and said in str(caught.value)


@pytest.mark.skipif(np.dtype(np.longdouble).itemsize == 8, reason="longdouble is float64 here")
def test_numpys_long_double_is_not_taken_for_f128():
    with pytest.raises(tenarc.Unsupported):
        tenarc.dumps(np.zeros(2, np.longdouble))


def nested(levels, inner=None):
    value = inner
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("inner", "takes"),
    [
        (None, 0),
        ([], 1),
        ({}, 1),
        (np.zeros(3), 3),
        (np.zeros(3, "c8"), 4),
        (np.zeros(0), 3),
        (tenarc.Some(None), 1),
        (2**64, 1),
        (bytes(9), 0),
    ],
)
def test_what_is_written_at_the_limit_is_read_at_it(inner, takes):
    deepest = nested(128 - takes, inner)
    assert difference(describe(tenarc.loads(tenarc.dumps(deepest))), describe(deepest)) is None
    with pytest.raises(tenarc.Limit):
        tenarc.dumps([deepest])


def test_references_take_their_levels_too():
    for inner, takes in ((np.zeros(3), 3), (np.zeros(3).view(tenarc.Numbers), 2), (bytes(9), 2)):
        through_archive(nested(128 - takes, inner), inline_below=0)
        with pytest.raises(tenarc.Limit):
            through_archive(nested(129 - takes, inner), inline_below=0)


def test_a_value_that_holds_itself_is_refused():
    value: list = []
    value.append(value)
    with pytest.raises(tenarc.Limit):
        tenarc.dumps(value)


def test_tags_and_simple_values_are_kept_whatever_they_mean_elsewhere():
    for number in (
        0,
        1,
        4,
        5,
        24,
        25,
        28,
        29,
        30,
        35,
        37,
        76,
        100,
        256,
        258,
        260,
        1004,
        43000,
        55799,
        2**64 - 1,
    ):
        for content in ("x", 1, [1, 2], b"\x01"):
            value = tenarc.Tag(number, content)
            assert tenarc.loads(tenarc.dumps(value)) == value
    assert tenarc.loads(tenarc.dumps(tenarc.Simple(99))) == tenarc.Simple(99)
    assert tenarc.loads(b"\xf7") is None


def test_bignums_beyond_128_bits_stay_tags():
    value = tenarc.Tag(2, b"\1" + bytes(16))
    assert tenarc.loads(tenarc.dumps(value)) == value
    assert tenarc.loads(bytes.fromhex("c2 5100" + "ff" * 16)) == 2**128 - 1


def test_arrays_inside_unknown_tags_go_to_buffers():
    value = tenarc.Tag(4242, np.arange(1000))
    assert len(tenarc.to_parts(value).buffers) == 1
    assert np.array_equal(through_archive(value).value, np.arange(1000))


def test_a_big_endian_typed_array_and_clamped_bytes_are_read():
    found = tenarc.loads(bytes.fromhex("d841 4401020304"), numbers=True)
    assert found.dtype == np.dtype("<u2") and found.tolist() == [0x0102, 0x0304]
    for copy in (True, False):
        assert tenarc.loads(bytes.fromhex("d841 420102"), copy=copy, numbers=True).tolist() == [0x0102]
    assert tenarc.loads(bytes.fromhex("d844 430001ff")) == [0, 1, 255]
    complex_ = tenarc.loads(bytes.fromhex("d9a7f9 d851 48 3f800000 40000000"))
    assert complex_.dtype == np.dtype("<c8") and complex_.tolist() == [1 + 2j]


def test_tensors_of_plain_numbers_take_the_type_that_holds_them():
    for digits, dtype, values in (
        ("d828 82 820202 84 00010203", "i8", [[0, 1], [2, 3]]),
        ("d90410 82 820202 84 00010203", "i8", [[0, 2], [1, 3]]),
        ("d828 82 8101 81 1bffffffffffffffff", "u8", [2**64 - 1]),
        ("d828 82 8102 82 01 f93e00", "f8", [1.0, 1.5]),
        ("d828 82 80 81 05", "i8", 5),
    ):
        found = tenarc.loads(bytes.fromhex(digits))
        assert found.dtype == np.dtype(dtype) and found.tolist() == values
    with pytest.raises(tenarc.Mismatch):
        tenarc.loads(bytes.fromhex("d828 82 8101 81 6161"))


def test_forms_that_other_writers_choose_are_read():
    want = np.arange(6, dtype="f4").reshape(2, 3)
    data = want.tobytes().hex()
    chunks = "5f 43" + data[:6] + "40 55" + data[6:] + "ff"
    for digits in (
        f"d828 9f 9f 02 03 ff d855 {chunks} ff",
        f"db0000000000000028 9a00000002 820203 d90055 5b0000000000000018 {data}",
    ):
        assert np.array_equal(tenarc.loads(bytes.fromhex(digits)), want)
    assert tenarc.loads(bytes.fromhex("bf 6161 9f 01 ff ff")) == {"a": [1]}


def test_keys_that_python_cannot_tell_apart_are_no_silent_loss():
    for digits in ("a2 01 00 f5 00", "a2 6161 00 6161 01", "a2 01 00 1801 00", "bf 01 00 f90000 01 00 02 ff"):
        with pytest.raises(tenarc.Error):
            tenarc.loads(bytes.fromhex(digits))
    with pytest.raises(tenarc.Mismatch):
        tenarc.loads(bytes.fromhex("a1 d828 82 8101 d840 4101 00"))
    for numbers in (False, True):
        assert tenarc.loads(bytes.fromhex("a1 d840 4101 00"), numbers=numbers) == {(1,): 0}


def test_raw_tensors_refuse_payloads_of_other_lengths():
    with pytest.raises(tenarc.Unsupported):
        tenarc.Raw("f4", (3,), np.zeros(2, "u1"))
    with pytest.raises(tenarc.Unsupported):
        tenarc.Raw("bf16", (3,), np.zeros(5, "u1"))
    bits = tenarc.Raw("bf16", (2, 2), np.arange(8, dtype="u1"), "F").bits
    assert bits.dtype == np.uint16 and bits[1, 0] == 0x0302


WITHOUT = """
import sys
sys.modules["ml_dtypes"] = None
import tenarc
data = open(sys.argv[1], "rb").read()
value = tenarc.loads(data)
kinds = {type(item) for item in value.values()}
assert kinds == {tenarc.Raw}, kinds
assert value["bf16"].bits.dtype == "uint16" and value["f8_e4m3"].bits.dtype == "uint8"
sys.stdout.buffer.write(tenarc.dumps(value))
"""


def test_without_ml_dtypes_its_tensors_are_carried(tmp_path):
    pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    names = ("bf16", "f8_e5m2", "f8_e4m3", "f8_e8m0", "f8_e5m2fnuz", "f8_e4m3fnuz")
    arrays = {name: np.asfortranarray(samples.flat(name).reshape(3, 4)) for name in names}
    (tmp_path / "a").write_bytes(tenarc.dumps(arrays))
    done = subprocess.run([sys.executable, "-c", WITHOUT, tmp_path / "a"], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout == tenarc.dumps(arrays)


def test_maps_arrays_and_tags_are_keys():
    message = bytes.fromhex("a3 820102 01 a1 01 820203 02 d91092 8103 03")
    found = tenarc.loads(message)
    assert found[1, 2] == 1 and list(found)[2] == tenarc.Tag(4242, (3,))
    assert tenarc.dumps(found) == message


@pytest.mark.parametrize("wrong", ["text", 3, [1, 2], None])
def test_what_is_no_bytes_is_no_message(wrong):
    for call in (tenarc.loads, tenarc.buffer_lengths):
        with pytest.raises(TypeError, match="bytes-like"):
            call(wrong)


@pytest.mark.parametrize("wrong", [5, "\ud800", b"name"])
def test_a_name_is_text(tmp_path, wrong):
    for call in (lambda: tenarc.save(tmp_path / "a", 1, name=wrong), lambda: tenarc.to_parts(1, name=wrong)):
        with pytest.raises(tenarc.Unsupported, match="a name"):
            call()
    assert not (tmp_path / "a").exists()


def test_complex_numbers_are_tensors_without_dimensions(tmp_path):
    values = [1 + 2j, -0j, complex("nan+infj"), np.complex128(1j)]
    for write, read in (
        (tenarc.dumps, tenarc.loads),
        (tenarc.to_parts, lambda parts: tenarc.from_parts(*unpacked(parts))),
    ):
        found = read(write(values))
        assert [array.shape for array in found] == [()] * 4 and {array.dtype for array in found} == {
            np.dtype("c16")
        }
        assert [array.tobytes() for array in found] == [np.complex128(value).tobytes() for value in values]
    assert tenarc.loads(tenarc.dumps({"a": 2j}), cls=dict[str, complex]) == {"a": 2j}
    tenarc.save(tmp_path / "a", tenarc.Table([{"z": 1j}, {"z": 2 + 0j}]))
    with tenarc.open(tmp_path / "a") as archive:
        assert archive.tensor("z").tolist() == [1j, 2 + 0j]


def unpacked(parts: tenarc.Parts):
    return parts.metadata, parts.buffers


def test_a_sequence_is_a_list_whatever_its_length_and_form(tmp_path):
    """Rust packs sequences from a length on."""
    for count in (0, 2, 5, 1000):
        config = {"xs": [0.5] * count, "ids": [7] * count}
        packed = {"xs": Numbers([0.5] * count, "f8"), "ids": Numbers([7] * count, "u4")}
        tenarc.save(tmp_path / "a", packed)
        parts = tenarc.to_parts(packed)
        for found in (
            tenarc.load(tmp_path / "a"),
            tenarc.load(tmp_path / "a", cls=dict),
            tenarc.loads(tenarc.dumps(packed)),
            tenarc.from_parts(parts.metadata, parts.buffers),
            through_archive(packed, numbers=False),
            tenarc.loads(tenarc.dumps(tenarc.Table([packed])))[0],
            tenarc.loads(tenarc.dumps(tenarc.Table([packed])), tables=True)[0],
            tenarc.open(tmp_path / "a").view(numbers=False),
        ):
            assert json.loads(json.dumps(found)) == config
        for found in (
            tenarc.load(tmp_path / "a", numbers=True),
            tenarc.open(tmp_path / "a").view(),
            tenarc.loads(tenarc.dumps(packed), numbers=True),
            through_archive(packed),
            # Columns without elements have no type.
            *(tenarc.loads(tenarc.dumps(tenarc.Table([packed])), numbers=True)[: count > 0]),
        ):
            assert {type(value) for value in found.values()} == {Numbers}
            assert [value.dtype for value in found.values()] == [np.float64, np.uint32]

    @dataclasses.dataclass
    class Config:
        xs: Any
        ids: np.ndarray

    found = tenarc.load(tmp_path / "a", cls=Config)
    assert type(found.xs) is list and type(found.ids) is np.ndarray


def test_a_list_of_numbers_is_an_array_for_whoever_asks_for_one(tmp_path):
    value = {"xs": [0.5, 1], "ids": [7, 2**40], "large": [2**64 - 1], "packed": Numbers([1, 2], "u2")}
    tenarc.save(tmp_path / "a", {**value, "texts": ["a"], "empty": [], "exact": [2**60, 0.5], "bools": [True]})
    with tenarc.open(tmp_path / "a") as archive:
        for name, dtype in (("xs", "f8"), ("ids", "i8"), ("large", "u8"), ("packed", "u2")):
            for found in (archive.tensor(name), archive.slice(name, ...), archive.lazy(name)[:]):
                assert type(found) is Numbers and found.dtype == dtype and found.tolist() == list(value[name])
        for name in ("texts", "empty", "exact", "bools"):
            with pytest.raises(tenarc.Mismatch) as caught:
                archive.tensor(name)
            assert caught.value.path == name


def test_loaded_values_are_independent(tmp_path):
    rows = [{"n": number, "list": [number, {"a": "b"}]} for number in range(100)]
    for value in ({"rows": rows, "array": np.zeros(3)}, rows):
        tenarc.save(tmp_path / "a", value)
        path = "rows" if value is not rows else ""
        with tenarc.open(tmp_path / "a") as archive:
            for _ in range(2):
                found = [archive.load(), archive.load(), archive.view(), archive[path], archive[path]]
                found = [one[path] if path and type(one) is dict else one for one in found]
                for one in found:
                    assert one == rows
                    one[3]["list"][1]["a"] = "changed"
                    one.clear()


@pytest.mark.parametrize("where", [0, 50, 99])
@pytest.mark.parametrize("other", [np.zeros(2), Some(None), 2**80, cbor2.undefined, tenarc.Tag(99, 1), Simple(40)])
def test_few_values_that_are_not_plain_are_found_among_plain_ones(where, other):
    for around in (
        lambda item: item,
        lambda item: {"a": item},
        lambda item: [1, [item]],
        lambda item: {"b": {"c": item}},
    ):
        value = [around(number) for number in range(100)]
        value[where] = around(other)
        found = tenarc.loads(tenarc.dumps({"x": value}))["x"]
        want = around(None if other is cbor2.undefined else other)
        assert found[:where] + found[where + 1 :] == value[:where] + value[where + 1 :]
        assert repr(found[where]) == repr(want)
