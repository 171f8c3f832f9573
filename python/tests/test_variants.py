"""Paths of columns into variants of enums (SPEC Annex A)."""

import io

import cbor2
import pytest
from columns_by_hand import TCOL, columns, of, u8

import tenarc
from tenarc import Tag
from tenarc.source import MemorySource

#: Unit, {"Click": {"x": 1.5, "at": None}}, {"Key": 7}, {"Click": {"x": 2.5, "at": 3}}
EVENT = [
    "enum",
    u8(0, 1, 2, 1),
    ["Open", "Click", "Key"],
    [None, {"x": of("<f4", 85, 1.5, 2.5), "at": ["option", b"\x02", u8(3)]}, u8(7)],
]
#: In another group, the variants have other codes, and one is not there.
OTHER = ["enum", u8(0, 1), ["Key", "Late"], [u8(8), ["unit"]]]
GROUPS = [
    *(4, {"id": u8(1, 2, 3, 4), "event": EVENT}),
    *(2, {"id": u8(5, 6), "event": ["option", b"\x01", ["enum", u8(0), ["Key"], [u8(8)]]]}),
    *(2, {"id": u8(7, 8), "event": OTHER}),
]
WANT = {
    "event.Key": [None, None, 7, None, 8, None, 8, None],
    "event.Click.x": [None, 1.5, None, 2.5, None, None, None, None],
    "event.Click.at": [None, None, None, 3, None, None, None, None],
    "event.Click": [None, {"x": 1.5, "at": None}, None, {"x": 2.5, "at": 3}, None, None, None, None],
    "event.Late": [None] * 8,
}


def stored(groups):
    out = io.BytesIO()
    with tenarc.Writer(out) as writer:
        writer._save(cbor2.dumps(Tag(TCOL, groups)), [], "log")
    return tenarc.Archive(MemorySource(out.getvalue()))


@pytest.mark.parametrize("path", WANT)
def test_a_variant_is_like_a_field(path):
    archive = stored(GROUPS)
    names = path.split(".")
    for table in (tenarc.loads(columns(*GROUPS), tables=True), archive.table("log")):
        assert list(table[path]) == WANT[path]
    assert list(next(archive.segments()).get(path)) == WANT[path]
    pointer = "/" + "/".join(names)
    assert list(next(archive.segments()).get(pointer)) == WANT[path]
    # The path of a row means the same as before.
    assert next(archive.segments()).get(f"3.{path}") == WANT[path][3]


@pytest.mark.parametrize("path", ["event.Open", "event.Other", "event.Click.y", "event.Key.x"])
def test_what_is_in_no_row_has_no_path(path):
    archive = stored(GROUPS)
    assert next(archive.segments()).get(path, "nothing") == "nothing"
    with pytest.raises(KeyError):
        archive.table("log")[path]


def test_variants_are_no_tensors_and_are_listed():
    archive = stored([2, {"event": ["enum", u8(0, 0), ["A"], [u8(1, 2)]]}])
    assert [info.path for info in next(archive.segments()).tensors()] == []
    assert list(archive.table("log")["event.A"]) == [1, 2]
