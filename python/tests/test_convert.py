"""Converting values to the types that a caller asks for."""

import contextlib
import dataclasses
import enum
import sys
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

import tenarc


class Kind(enum.Enum):
    DENSE = 1
    SPARSE = 2


@dataclass
class Size:
    width: int


class Paper(Size, enum.Enum):
    A4 = 210
    A3 = 297


class Pair(NamedTuple):
    first: int
    second: str = "b"


@dataclass
class Layer:
    weight: npt.NDArray[np.float32]
    bias: np.ndarray | None = None
    kind: Kind = Kind.DENSE


@dataclass(frozen=True)
class Model:
    name: str
    layers: list[Layer]
    history: list[float]
    shape: tuple[int, ...]
    pair: Pair
    extra: dict[str, Any]
    scale: np.float32
    steps: int = 0
    tags: list[str] = field(default_factory=list)
    best: float | None = None


def model() -> Model:
    layers = [Layer(np.eye(40, dtype="f4"), np.zeros(3), Kind.SPARSE), Layer(np.ones((2, 3), "f4"))]
    return Model("m", layers, [0.5, 1.0], (1, 2), Pair(1), {"a": [1]}, np.float32(0.1), 3, ["x"])


def assert_same(found: Model, wanted: Model) -> None:
    for wanted_layer, layer in zip(wanted.layers, found.layers, strict=True):
        assert np.array_equal(layer.weight, wanted_layer.weight) and layer.kind is wanted_layer.kind
        assert (layer.bias is None) == (wanted_layer.bias is None)
    assert dataclasses.replace(found, layers=[]) == dataclasses.replace(wanted, layers=[])
    assert type(found.scale) is np.float32 and type(found.pair) is Pair and type(found.shape) is tuple


def test_a_dataclass_comes_back_in_every_way(tmp_path):
    wanted = model()
    tenarc.save(tmp_path / "a", wanted)
    parts = tenarc.to_parts(wanted)
    assert_same(tenarc.load(tmp_path / "a", cls=Model), wanted)
    assert_same(tenarc.loads(tenarc.dumps(wanted), cls=Model), wanted)
    assert_same(tenarc.from_parts(parts.metadata, parts.buffers, cls=Model), wanted)
    with tenarc.open(tmp_path / "a") as archive:
        found = archive.view(Model)
        assert_same(found, wanted)
        assert not found.layers[0].weight.flags.writeable


def test_fields_may_be_added_and_removed():
    @dataclass
    class Older:
        name: str

    @dataclass
    class Newer:
        name: str
        note: str | None
        count: int = 4
        computed: int = field(init=False, default=9)

    message = tenarc.dumps({"name": "m", "gone": np.zeros(3)})
    assert tenarc.loads(message, cls=Older) == Older("m")
    assert tenarc.loads(message, cls=Newer) == Newer("m", None)


def read(value: Any, cls: Any) -> Any:
    return tenarc.loads(tenarc.dumps(value), cls=cls)


@pytest.mark.parametrize(
    ("value", "cls", "wanted"),
    [
        (1, float, 1.0),
        (2.0, int, 2),
        (1, int | float, 1),
        (1.0, int | float, 1.0),
        (None, int | None, None),
        ([], type(None), None),
        ([1, 2], tuple[int, int], (1, 2)),
        (np.arange(3), list[int], [0, 1, 2]),
        (tenarc.Numbers([0.5], "f4"), list[float], [0.5]),
        (tenarc.Numbers([0.5], "f4"), tuple[float, ...], (0.5,)),
        ({"a": 1}, dict[str, int], {"a": 1}),
        ({1: [None]}, dict[int, list[str | None]], {1: [None]}),
        (tenarc.Tag(4242, [1]), list[int], [1]),
        ("SPARSE", Kind, Kind.SPARSE),
        # A member that is a dataclass is written as its name too.
        ("A4", Paper, Paper.A4),
        ("b", Literal["a", "b"], "b"),
        (3, np.int8, np.int8(3)),
        (np.complex64(1j), complex, 1j),
        (tenarc.Some(None), tenarc.Some, tenarc.Some(None)),
        (b"ab", bytes, b"ab"),
        ([1, "x"], Any, [1, "x"]),
        ([1, 2], Pair, None),
    ],
)
def test_values_fit_their_types(value, cls, wanted):
    if wanted is None and cls is Pair:
        with pytest.raises(tenarc.Mismatch):
            read(value, cls)
        return
    found = read(value, cls)
    assert found == wanted and type(found) is type(wanted)


@pytest.mark.parametrize(
    ("value", "cls", "path"),
    [
        ({"a": [1, "x"]}, dict[str, list[int]], "a.1"),
        ([0.5], list[int], "0"),
        ([-0.0], list[int], "0"),
        ([2**53 + 1], list[float], "0"),
        ([10**38], list[float], "0"),
        ([True], list[int], "0"),
        ([1], list[bool], "0"),
        ([None], list[str], "0"),
        ([300], list[np.uint8], "0"),
        ([0.1], list[np.float32], "0"),
        (["GREEN"], list[Kind], "0"),
        ([np.zeros(2)], list[npt.NDArray[np.float32]], "0"),
        ([np.zeros((2, 2))], list[list[float]], "0"),
        ([[1, 2, 3]], list[tuple[int, int]], "0"),
        ([tenarc.Tag(29, 0)], list[int], "0"),
        ([1], list[set[int]], "0"),
        ({"weight": 5}, Layer, "weight"),
        ({"bias": None}, Layer, None),
        ([1], Layer, None),
    ],
)
def test_what_does_not_fit_is_named_with_its_path(value, cls, path):
    with pytest.raises(tenarc.Mismatch) as caught:
        read(value, cls)
    assert caught.value.path == path


def test_arrays_of_any_dtype_of_a_kind():
    assert read(np.zeros(2, "f4"), npt.NDArray[np.floating]).dtype == np.float32
    assert read(np.zeros(2, "f4"), npt.NDArray[Any]).dtype == np.float32
    with pytest.raises(tenarc.Mismatch):
        read(np.zeros(2, "i4"), npt.NDArray[np.floating])
    found = read([1, 2], npt.NDArray[np.uint8])
    assert found.dtype == np.uint8 and found.tolist() == [1, 2]
    assert type(read(tenarc.Numbers([1]), np.ndarray)) is np.ndarray


@dataclass
class Add:
    left: "Add | Mul | int"
    right: "Add | Mul | int"
    add: bool


@dataclass
class Mul:
    left: "Add | Mul | int"
    right: "Add | Mul | int"
    mul: bool


@pytest.mark.parametrize("tagged", [False, True])
@pytest.mark.parametrize("innermost", [1, "neither"])
def test_unions_inside_of_unions_take_no_time(innermost, tagged):
    value: Any = innermost
    for _ in range(50):
        value = {"left": tenarc.Tag(4242, value) if tagged else value, "right": 1, "mul": True}
    message, start = tenarc.dumps(value), time.monotonic()
    if innermost == 1:
        found = tenarc.loads(message, cls=Mul)
        assert type(found.left.left) is Mul and found.right == 1
    else:
        with pytest.raises(tenarc.Mismatch) as caught:
            tenarc.loads(message, cls=Mul)
        assert caught.value.path == "left" and len(str(caught.value)) < 1000
    assert time.monotonic() - start < 5


def test_faults_in_unions_keep_their_paths():
    hint = list[Layer | None]
    for _ in range(2):
        with pytest.raises(tenarc.Mismatch) as caught:
            read([{"weight": np.zeros(1, "f4")}, {"weight": 5}], hint)
        assert caught.value.path == "1.weight"


def test_an_error_shows_no_more_of_a_value_than_fits_a_line():
    with pytest.raises(tenarc.Mismatch) as caught:
        read([["x" * 100_000] * 10] * 10, dict[str, int])
    assert len(str(caught.value)) < 200


@dataclass
class Links:
    next: "Links | None" = None


def test_recursion_that_python_has_no_room_for_is_a_limit():
    value: Any = {}
    for _ in range(120):
        value = {"next": value}
    message = tenarc.dumps(value)
    found = tenarc.loads(message, cls=Links)
    assert found.next.next.next is not None

    def below(levels: int, call: Any) -> Any:
        return below(levels - 1, call) if levels else call()

    calls = [lambda: tenarc.loads(message, cls=Links)]
    # The accelerator needs no room.
    if not tenarc.accelerated:
        calls += [lambda: tenarc.loads(message), lambda: tenarc.dumps(value)]
    for call in calls:
        for levels in range(100, sys.getrecursionlimit() - 150, 20):
            with contextlib.suppress(tenarc.Limit):
                below(levels, call)
        with pytest.raises(tenarc.Limit, match="recursion"):
            below(sys.getrecursionlimit() - 110, call)


@dataclass
class Fields:
    pairs: list[None]
    noted: Annotated[int | None, "note"]


def test_only_optional_fields_may_be_missing():
    assert read({"pairs": [None]}, Fields) == Fields([None], None)
    with pytest.raises(tenarc.Mismatch, match="pairs"):
        read({"noted": 1}, Fields)


@pytest.mark.parametrize("hint", [dict[list[int], int], OrderedDict[str, int], set[int], int | bytes])
def test_hints_that_nothing_can_be_read_into(hint):
    with pytest.raises(tenarc.Mismatch):
        read({(1, 2): 3}, hint)
