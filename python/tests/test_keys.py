"""Archives, their values and tables as what holds keys: `keys`, `in`, iteration, `len` and `repr`."""

from typing import Any

import cbor2
import numpy as np
import pytest
import samples
from columns_by_hand import KINDS, columns
from described import describe

import tenarc
from tenarc import Table


@pytest.fixture
def opened(tmp_path):
    def save_and_open(value: Any, **options: Any) -> tenarc.Archive:
        tenarc.save(tmp_path / "a.tenarc", value, **options)
        return tenarc.open(tmp_path / "a.tenarc")

    return save_and_open


VALUE = {
    "name": "two",
    "layers": [{"weight": np.ones((50, 50)), "bias": np.zeros(3)}, {"weight": np.eye(2), "bias": None}],
    "sizes": [1, 2, 3],
    "nothing": {},
    "log": Table({"step": np.arange(3), "at": [{"x": 1, "y": 2.5}] * 3, "note": ["a", "b", "c"]}),
    "pairs": [[1, 2], [3, np.ones(2)]],
}
KEYS = [
    "name",
    "layers.0.weight",
    "layers.0.bias",
    "layers.1.weight",
    "layers.1.bias",
    "sizes",
    "nothing",
    "log.step",
    "log.at.x",
    "log.at.y",
    "log.note",
    "pairs.0",
    "pairs.1.0",
    "pairs.1.1",
]


def test_keys_are_the_paths_of_everything(opened):
    with opened(VALUE) as archive:
        for found in archive, archive.segment(0):
            assert found.keys() == list(found) == KEYS and len(found) == len(KEYS)
            assert [path for path, _ in found.items()] == KEYS
            assert found["sizes"] == [1, 2, 3] and found["log.at.y"].tolist() == [2.5] * 3
            assert dict(found).keys() == {*KEYS} and dict(found.items())["log.note"] == ["a", "b", "c"]
            for path in KEYS:
                assert path in found
            for path in ("layers", "layers.0", "log", "log.0.step", "/layers/0/bias", ""):
                assert path in found and path not in found.keys()  # noqa: SIM118
            for path in ("layer", "layers.2", "sizes.3", "log.loss", 0, None, b"name"):
                assert path not in found
            assert found


def test_every_key_leads_to_its_value(opened):
    values = [value for _, value in samples.plain()]
    values += [{"a": value} for value in values] + [[value, np.ones(1)] for value in values]
    values += [{"a.b": 1, "a": {"b": [np.ones(2)], "c": 2}}, {"": {"": 1}, "/": 2, "1": 3, 1: 4, "x/y": {"~": 5}}]
    for value in values:
        with opened(value) as archive:
            found = archive.keys()
            assert len({*found}) == len(found)
            # What no path leads to is left out, and everything else is there once.
            assert [describe(archive[path]) for path in found] == [
                describe(leaf) for leaf, path in leaves(tenarc.loads(tenarc.dumps(value))) if path
            ]


def leaves(value: Any, has_path: bool = True) -> list[tuple[Any, bool]]:
    """What is in a value, and whether a path leads to it."""
    plain = (str, int, float, bool, bytes, type(None), tenarc.Simple, type(cbor2.undefined))
    while isinstance(value, tenarc.Tag | tenarc.Some):
        if isinstance(value, tenarc.Some) and value.value is None:
            break
        value = value.value
    if isinstance(value, dict) and value:
        # The integer 1 and the text "1" have the same component.
        twice = "1" in value and 1 in value
        found = []
        for key, item in value.items():
            found += leaves(item, has_path and not (twice and key in ("1", 1)))
        return found
    if isinstance(value, list) and not all(isinstance(item, (*plain, tenarc.Some)) for item in value):
        return [leaf for item in value for leaf in leaves(item, has_path)]
    return [(value, has_path)]


@pytest.mark.parametrize("kind", KINDS)
def test_keys_of_columns_of_each_kind_can_be_read(kind, tmp_path):
    column, _ = KINDS[kind]
    with open(tmp_path / "a", "wb") as file, tenarc.Writer(file) as out:
        out._save(b"\xa1\x63log" + columns(4, column), [], None)
    with tenarc.open(tmp_path / "a") as archive:
        found = archive.keys()
        assert found and all(path.startswith("log") for path in found)
        for path in found:
            assert len(archive[path]) == 4


def test_several_values_have_no_paths(tmp_path):
    with open(tmp_path / "a", "wb") as file, tenarc.Writer(file) as out:
        out.save({"x": np.ones(1000)}, name="first")
        out.save(2)
    with tenarc.open(tmp_path / "a") as archive:
        for read in (
            archive.keys,
            archive.items,
            lambda: "x" in archive,
            lambda: len(archive),
            lambda: [*archive],
        ):
            with pytest.raises(tenarc.NotFound, match="2 values"):
                read()
        assert archive and archive.count == 2
        assert "x" in archive.named("first") and archive.segment(1).keys() == [""]
        size = (tmp_path / "a").stat().st_size
        assert repr(archive) == (
            f"<tenarc.Archive {str(tmp_path / 'a')!r}: 2 values ('first', unnamed), {size:,} bytes>"
        )
        assert repr(archive.segment(0)).startswith("<tenarc.Segment 0 'first': 1 tensor, 8,")
        assert repr(archive.segment(1)) == f"<tenarc.Segment 1: 0 tensors, {archive.segment(1).byte_length} bytes>"


def test_an_archive_says_what_is_inside(tmp_path, opened):
    with opened(VALUE) as archive:
        size = (tmp_path / "a.tenarc").stat().st_size
        name = repr(str(tmp_path / "a.tenarc"))
        assert repr(archive) == f"<tenarc.Archive {name}: 1 value, 7 tensors, {size:,} bytes>"
    assert repr(archive) == f"<tenarc.Archive {name}: closed>"
    data = (tmp_path / "a.tenarc").read_bytes()
    # Neither a damaged nor a cut archive makes `repr` fail.
    for at in range(0, len(data), 97):
        (tmp_path / "b").write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        try:
            found = tenarc.open(tmp_path / "b")
        except tenarc.Error:
            continue
        with found:
            assert repr(found).startswith("<tenarc.Archive ")
    (tmp_path / "c").write_bytes(data[: len(data) - 5000])
    with tenarc.open(tmp_path / "c", torn=True) as archive:
        assert repr(archive).endswith("torn>") and "bytes missing" in repr(archive.segment(0))


def test_a_table_says_what_is_inside():
    table = Table([{"step": 1, "loss": 0.5, "note": None}, {"step": 2, "loss": 0.25, "note": "x"}])
    assert repr(table) == "<tenarc.Table: 2 rows, 3 columns: 'step' u8, 'loss' f64, 'note' optional text>"
    assert repr(Table([1])) == "<tenarc.Table: 1 row of u8>" and repr(Table([])) == "<tenarc.Table: 0 rows>"
    wide = Table([{f"c{n}": n for n in range(100)}])
    assert "100 columns" in repr(wide) and len(repr(wide)) < 300
    assert table.keys() == table.names() == ["step", "loss", "note"]
    assert "loss" in table and "a" not in table and 0 not in table
    # Rows of text have no columns.
    assert "a" in Table(["a", "b"]) and "c" not in Table(["a", "b"])
    assert {"step": 1, "loss": 0.5, "note": None} in table
