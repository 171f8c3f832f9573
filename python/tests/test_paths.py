"""Paths to tensors under keys of every kind (SPEC Annex A)."""

import numpy as np
import pytest

import tenarc
from tenarc import Tag, paths
from tenarc.options import Limits
from tenarc.tree import parse

# As `src/path/spelling.rs` has them.
SPELLED = [
    (b"\x63a.b", "a.b"),
    (b"\x7f\x61a\x61b\xff", "ab"),
    (b"\x07", "7"),
    (b"\x3b" + b"\xff" * 8, "-18446744073709551616"),
    (b"\xc2\x49\x01" + bytes(8), "18446744073709551616"),
    (b"\xc3\x49\x01" + bytes(8), "-18446744073709551617"),
    (b"\xc2\x50" + b"\xff" * 16, "340282366920938463463374607431768211455"),
    (b"\xc3\x50\x80" + bytes(15), "3(h'80000000000000000000000000000000')"),
    (b"\xc2\x01", "2(1)"),
    (b"\x43\x00\xab\xff", "h'00abff'"),
    (b"\x5f\x41\x00\x42\xab\xff\xff", "h'00abff'"),
    (b"\x40", "h''"),
    (b"\x82\x01\x61a", '[1, "a"]'),
    (b"\x9f\x01\x02\xff", "[1, 2]"),
    (b'\xa1\x61"\xf6', '{"\\"": null}'),
    (b"\xbf\xf4\xf5\xff", "{false: true}"),
    (b"\x81\x65a\n\x7f\xc2\x85", '["a\\n\\u007f\\u0085"]'),
    (b"\xf9\x3e\x00", "1.5"),
    (b"\xfa\x3f\xc0\0\0", "1.5"),
    (b"\xfa\x3d\xcc\xcc\xcd", "0.10000000149011612"),
    (b"\xfb\x7e\x37\xe4\x3c\x88\x00\x75\x9c", "1e300"),
    (b"\xfb\x3e\x7a\xd7\xf2\x9a\xbc\xaf\x48", "1e-7"),
    (b"\xfb\x43\x41\xc3\x79\x37\xe0\x80\x00", "1e16"),
    (b"\xf9\x7e\x00", "NaN"),
    (b"\xf9\xfc\x00", "-Infinity"),
    (b"\xf6", "null"),
    (b"\xf7", "undefined"),
    (b"\xf8\xff", "simple(255)"),
    (b"\xd8\x20\x61a", '32("a")'),
]
TENSOR = b"\xd8\x28\x82\x81\x01\xd8\x40\x41\x07"


@pytest.mark.parametrize(("key", "component"), SPELLED)
def test_keys_have_components_that_find_their_values(key, component):
    tree = parse(b"\xa1\x61x\xa1" + key + TENSOR, 0, Limits(), is_metadata=False)
    (found,) = tree["x"]
    assert paths.component(found) == component
    ((place, node),) = paths.payloads(tree)
    path = place.unique_path()
    assert path == f"x.{component}"
    assert paths.find(tree, path)[0] is node
    assert paths.find(tree, "/x/" + component.replace("~", "~0").replace("/", "~1"))[0] is node


def test_tensors_under_keys_of_all_kinds_are_listed(tmp_path):
    keys = [bytes(16), True, None, 0.5, (2, "a"), Tag(32, "x"), "a.b", 7]
    value = {key: np.full(1000, at, "f4") for at, key in enumerate(keys)}
    tenarc.save(tmp_path / "a.tenarc", value)
    with tenarc.open(tmp_path / "a.tenarc") as archive:
        listed = [info.path for info in archive.tensors()]
        expected = [f"h'{bytes(16).hex()}'", "true", "null", "0.5", '[2, "a"]', '32("x")', "a.b", "7"]
        assert listed == expected
        for at, path in enumerate(listed):
            assert archive.tensor(path)[0] == at


def test_paths_that_lead_to_several_values_are_json_pointers(tmp_path):
    one = np.ones(3, "f4")
    tenarc.save(tmp_path / "a.tenarc", {"a.b": one, "a": {"b": one, "": one}, "/c": one, "": one, "d.e": one})
    with tenarc.open(tmp_path / "a.tenarc") as archive:
        assert [info.path for info in archive.tensors()] == ["/a.b", "/a/b", "a.", "/~1c", "/", "d.e"]
        for info in archive.tensors():
            assert archive.tensor(info.path).shape == (3,)


def test_two_keys_with_one_component_name_nothing(tmp_path):
    tenarc.save(tmp_path / "a.tenarc", {"7": np.ones(3, "f4"), 7: np.ones(3, "f4")})
    with tenarc.open(tmp_path / "a.tenarc") as archive:
        with pytest.raises(tenarc.Error, match="occurs twice"):
            list(archive.tensors())
        with pytest.raises(tenarc.NotFound, match="several"):
            archive["/7"]


def test_keys_in_keys_are_frozen_but_written_alike():
    tree = parse(b"\xa1\x82\xa1\x01\x02\x81\xf4" + TENSOR, 0, Limits())
    assert [place.unique_path() for place, _ in paths.payloads(tree)] == ["[{1: 2}, [false]]"]


def test_byte_strings_are_not_listed_whatever_their_path(tmp_path):
    tenarc.save(tmp_path / "a.tenarc", {"7": bytes(4000), 7: bytes(4000), "a": np.ones(3, "f4")})
    with tenarc.open(tmp_path / "a.tenarc") as archive:
        assert [info.path for info in archive.tensors()] == ["a"]
