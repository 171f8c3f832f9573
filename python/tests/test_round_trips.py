"""What is saved can be loaded with default options, whatever its type and length."""

import dataclasses
import enum
import io
import math
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tenarc
from tenarc import Numbers, Raw, Simple, Some, Table, Tag

SIZES = [0, 1, 3, 4, 16, 31, 32, 255, 256, 2047, 2048, 65536]
#: Of all types, there are so many values at most.
MANY = 32


class Colour(enum.Enum):
    RED = 1
    GREEN = 2


@dataclasses.dataclass(frozen=True)
class Point:
    x: int
    y: float = 0.5


Make = Callable[[random.Random], Any]

SCALARS: dict[str, Make] = {
    "none": lambda rng: None,
    "bool": lambda rng: rng.random() < 0.5,
    "small": lambda rng: rng.randrange(-30, 30),
    "int": lambda rng: rng.randrange(-(1 << 63), 1 << 64),
    "huge": lambda rng: rng.choice([-(1 << 127), (1 << 128) - 1, 1 << 64, -(1 << 64) - 1]),
    "float": lambda rng: rng.choice([rng.random(), math.nan, math.inf, -0.0, 5e-324]),
    "single": lambda rng: np.float32(rng.random()),
    "half": lambda rng: np.float16(rng.random()),
    "long": lambda rng: np.int64(rng.randrange(100)),
    "text": lambda rng: "".join(rng.choices("aé水𐅑\0", k=rng.randrange(5))),
    "bytes": lambda rng: rng.randbytes(rng.randrange(5)),
    "complex": lambda rng: complex(rng.random(), rng.random()),
    "enum": lambda rng: rng.choice([*Colour]),
    "some": lambda rng: rng.choice([Some(None), Some(Some(None)), Some(Some(Some(None))), Some(5)]),
    "simple": lambda rng: Simple(rng.choice([0, 19, 32, 255])),
    "tag": lambda rng: Tag(rng.choice([0, 1, 4, 25, 28, 30, 37, 4242, 1 << 60]), rng.randrange(5)),
    "array": lambda rng: np.full(rng.randrange(4), rng.random(), rng.choice(["<f4", ">f8", "u1", "?"])),
    "scalar array": lambda rng: np.array(rng.random()),
    "numbers": lambda rng: Numbers([rng.randrange(9) for _ in range(rng.randrange(4))], "u2"),
    "raw": lambda rng: Raw("f128", (2,), rng.randbytes(32)),
    "record": lambda rng: Point(rng.randrange(5)),
    "list": lambda rng: [rng.randrange(5)] * rng.randrange(4),
    "tuple": lambda rng: (1, "a", None)[: rng.randrange(4)],
    "dict": lambda rng: {rng.choice(["a", 1, b"x", None]): [rng.random()]},
    "table": lambda rng: Table([{"a": n} for n in range(rng.randrange(3))]),
}
#: What can be a key, besides tuples of these.
KEYS = [
    "none",
    "bool",
    "small",
    "int",
    "huge",
    "float",
    "single",
    "long",
    "text",
    "bytes",
    "complex",
    "enum",
    "some",
]
KEYS += ["simple", "tag", "record"]


def value(rng: random.Random, depth: int) -> Any:
    """Any value."""
    kind = rng.choice([*SCALARS, "mixed", "map", "columns"] if depth else [*SCALARS])
    if kind == "mixed":
        return [value(rng, depth - 1) for _ in range(rng.randrange(20))]
    if kind == "map":
        return {key(rng): value(rng, depth - 1) for _ in range(rng.randrange(20))}
    if kind == "columns":
        return table(rng, rng.randrange(40), depth - 1)
    return SCALARS[kind](rng)


def key(rng: random.Random) -> Any:
    found = tuple(SCALARS[rng.choice(KEYS)](rng) for _ in range(2))
    return found if rng.random() < 0.2 else found[0]


def table(rng: random.Random, count: int, depth: int = 0) -> Table:
    """Rows in which each field has values of one type, of one type or `None`, or of any type."""
    fields = {}
    for number, kind in enumerate(rng.sample([*SCALARS], 6)):
        form = rng.randrange(4)
        make = SCALARS[kind] if form < 3 else lambda rng: value(rng, depth)
        fields[f"{kind} {number}"] = [
            None if form == 1 and rng.random() < 0.5 else make(rng) for _ in range(count)
        ]
        if form == 2:
            fields[f"{kind} {number}"] = [[item] * rng.randrange(3) for item in fields[f"{kind} {number}"]]
    rows = [dict(zip(fields, row, strict=True)) for row in zip(*fields.values(), strict=True)]
    for row in rows:
        if rng.random() < 0.1:
            row.pop(next(iter(row)))
    return Table(rows)


def of_size(size: int, rng: random.Random) -> Iterator[tuple[str, Any]]:
    """Values with so many bytes, characters, elements, entries or rows."""
    yield "text", "a" * size
    yield "wide text", "水" * size
    yield "bytes", rng.randbytes(size)
    for dtype in ("?", "u1", "i2", "<f2", ">f4", "<f8", "c8", "c16"):
        elements = np.frombuffer(rng.randbytes(size * 16), "u1")[:size].astype(dtype)
        yield f"array of {dtype}", elements
        yield f"2 by {size} array of {dtype}", np.stack([elements, elements], axis=1)
        if dtype not in ("?", "c8", "c16"):
            yield f"numbers of {dtype}", elements.view(Numbers)
            yield (
                f"rows of numbers of {dtype}",
                Table([{"a": elements.view(Numbers)}, {"a": elements[:1].view(Numbers)}]),
            )
    yield "raw", Raw("f4", (size, 2), rng.randbytes(size))
    yield "unknown", Raw("posit16", (size,), rng.randbytes(3 * size))
    # The others take much time.
    size = size // 16 if size > 2048 else size
    for dtype in ("?", "<f4", "u1"):
        column = np.frombuffer(rng.randbytes(size), "u1").astype(dtype)
        yield f"columns of {dtype}", Table({"a": column, "b": np.stack([column, column], axis=1)})
    for name, make in SCALARS.items():
        if size <= MANY or name in ("bool", "float", "text"):
            yield f"list of {name}", [make(rng) for _ in range(size)]
            yield f"rows of {name}", Table([{"a": make(rng), "b": 1} for _ in range(size)])
            yield f"optional rows of {name}", Table([{"a": make(rng) if n % 3 else None} for n in range(size)])
    for name in KEYS:
        if size <= MANY:
            yield f"map of {name}", {(n, SCALARS[name](rng)): n for n in range(size)}
            yield f"keys of {name}", {SCALARS[name](rng): n for n in range(size)}
    yield "map of integers", {n * 7 - 100: str(n) for n in range(size)}
    yield "map of texts", {str(n): n for n in range(size)}
    yield "map of bytes", {n.to_bytes(3, "big"): n for n in range(size)}
    yield "map of floats", {n / 3: n for n in range(size)}
    yield "map of one key", {"k" * size: 1, b"k" * size: 2, ("k" * size, b"k" * size): 3}
    yield "lists", [[n] for n in range(size)]
    yield "empty lists", [[]] * size
    yield "empty maps", [{}] * size
    yield "one list", [[0.5] * size]
    yield "column of texts", Table([{"a": "x" * size}, {"a": ""}])
    yield "column of one length", Table([{"a": bytes(7), "t": "abc"} for _ in range(size)])
    yield "rows of rows", Table([{"a": [{"b": n}] * (n % 3)} for n in range(size)])
    yield "rows of nothing", Table([{}] * size)


def through_file(value: Any, directory: Any) -> Any:
    tenarc.save(directory / "a", value)
    with tenarc.open(directory / "a") as archive:
        archive.verify()
        archive.keys()
        [*archive.tensors()]
        same(archive.view(), value)
        same(archive.load(tables=True), value)
    return tenarc.load(directory / "a")


def through_stream(value: Any) -> Any:
    out = io.BytesIO()
    with tenarc.Writer(out) as writer:
        writer.save(value)
        writer.save(1)
    first, second = tenarc.Reader(io.BytesIO(out.getvalue()))
    assert second == 1
    return first


def through_parts(value: Any) -> Any:
    parts = tenarc.to_parts(value)
    return tenarc.from_parts(parts.metadata, parts.buffers)


def same(found: Any, wanted: Any) -> None:
    """Checks that a value that was read is what was written, as far as Python has the types."""
    is_long = type(found) in (list, dict) and type(wanted) is type(found) and len(found) > MANY
    if is_long and repr(found) == repr(wanted):
        return
    if isinstance(found, Table):
        found = found.rows()
    if isinstance(wanted, Table):
        wanted = wanted.rows()
    if isinstance(wanted, enum.Enum):
        wanted = wanted.name
    elif dataclasses.is_dataclass(wanted) and not isinstance(wanted, (Some, Raw)):
        wanted = vars(wanted)
    elif isinstance(wanted, Some) and wanted.value is not None and not isinstance(wanted.value, Some):
        wanted = wanted.value
    if isinstance(wanted, (complex, np.complexfloating)):
        assert found == wanted and (isinstance(found, complex) or found.shape == ())
    elif isinstance(wanted, float):
        assert isinstance(found, float) and (found == wanted or (wanted != wanted and found != found))
    elif isinstance(wanted, np.generic):
        same(found, wanted.item())
    elif isinstance(wanted, Numbers):
        dtype = wanted.dtype.newbyteorder("<")
        assert np.asarray(found, dtype).tobytes() == np.asarray(wanted, dtype).tobytes()
        assert np.ndim(found) == 1
    elif isinstance(wanted, np.ndarray):
        assert found.shape == wanted.shape and found.dtype == wanted.dtype.newbyteorder("<")
        assert found.tobytes() == wanted.astype(found.dtype).tobytes()
    elif isinstance(wanted, dict):
        assert isinstance(found, dict) and len(found) == len(wanted)
        for one, other in zip(found.items(), wanted.items(), strict=True):
            same_key(one[0], other[0])
            same(one[1], other[1])
    elif isinstance(wanted, (list, tuple)):
        found = found.tolist() if isinstance(found, Numbers) else found
        assert isinstance(found, list) and len(found) == len(wanted)
        for pair in zip(found, wanted, strict=True):
            same(*pair)
    elif isinstance(wanted, (bytes, memoryview)):
        assert bytes(found) == bytes(wanted)
    elif isinstance(wanted, Tag):
        assert isinstance(found, Tag) and found.tag == wanted.tag
        same(found.value, wanted.value)
    else:
        assert type(found) is type(wanted) and found == wanted


def same_key(found: Any, wanted: Any) -> None:
    if isinstance(wanted, tuple):
        assert isinstance(found, tuple) and len(found) == len(wanted)
        for pair in zip(found, wanted, strict=True):
            same_key(*pair)
    elif isinstance(wanted, Point):
        assert dict(found) == vars(wanted)
    else:
        same(found, wanted)


def check(value: Any, directory: Any) -> None:
    message = tenarc.dumps(value)
    same(tenarc.loads(message), value)
    same(tenarc.loads(message, copy=False, tables=True), value)
    same(through_file(value, directory), value)
    same(through_stream(value), value)
    same(through_parts(value), value)


@pytest.mark.parametrize("size", SIZES)
def test_every_length_is_read(size, tmp_path):
    for name, found in of_size(size, random.Random(size)):
        try:
            check(found, tmp_path)
        except (AssertionError, tenarc.Error) as error:
            raise AssertionError(f"{name} of {size}: {error}") from error


@pytest.mark.parametrize("seed", range(20))
def test_any_value_is_read(seed, tmp_path):
    rng = random.Random(seed)
    for number in range(10):
        found = value(rng, 4)
        try:
            check(found, tmp_path)
        except (AssertionError, tenarc.Error) as error:
            raise AssertionError(f"value {number}: {found!r:.200}: {error}") from error


class Odd:
    """Can be a key, but what is written of it is none."""

    def __array__(self, *_, **__):
        return np.arange(3)

    def __dlpack__(self, **_):
        raise NotImplementedError


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ({Colour.RED: 1, "RED": 2}, "two keys are read as the same: <Colour.RED: 1> and 'RED'"),
        ({None: 1, Simple(23): 2}, "two keys are read as the same"),
        ({5: 1, Some(5): 2}, "two keys are read as the same"),
        ({(1, Colour.RED): 1, (1, "RED"): 2}, "two keys are read as the same"),
        ({1: 1, Tag(2, b"\1"): 2}, "two keys are read as the same"),
        ({Odd(): 1}, "cannot write a Odd as a key"),
        ({(1, Odd()): 1}, "cannot write a tuple as a key"),
    ],
)
def test_keys_that_could_not_be_read_are_not_written(found, message, tmp_path):
    for value in (found, [{"a": found}]):
        with pytest.raises(tenarc.Unsupported, match=message):
            tenarc.dumps(value)
        with pytest.raises(tenarc.Unsupported, match=message):
            tenarc.save(tmp_path / "a", value)
