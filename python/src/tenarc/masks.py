"""Tests all rows of a column at once, for the conditions of filters."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from . import named
from .columns import (
    ABSENT,
    BoolColumn,
    BytesColumn,
    Column,
    DictColumn,
    EnumColumn,
    GapColumn,
    ItemColumn,
    Lengths,
    ListColumn,
    MapColumn,
    NumberColumn,
    OptionColumn,
    PresentColumn,
    StructColumn,
    TextColumn,
    TupleColumn,
    TypeColumn,
    UnitColumn,
    spread,
)
from .conditions import BOOL, BYTES, COMPARES, KINDS, NUMBER, TEXT, Mask, Test
from .errors import Fault, Mismatch
from .values import Some, Tag

# The kinds of columns without values that can be compared.
_OTHERS = {StructColumn: "struct", ListColumn: "sequence", TupleColumn: "tuple", MapColumn: "map"}
# More texts than this are looked up in a set.
_FEW = 8


def mask_of(column: Column | None, rows: int, test: Test, is_opposite: bool) -> Mask:
    """For each row of a column, whether it meets a test, or the opposite of it. Without a column, all are null.

    A `Fault` if the values are of another kind than what they are compared with.
    """
    while isinstance(column, TypeColumn):
        test, is_decimal, column = _in_units(test, column), column.name == "decimal", column.column
        if is_decimal and isinstance(column, BytesColumn):
            numbers = [int.from_bytes(row, "big", signed=True) for row in column.rows(0, rows)]
            return _of_values(numbers, test, is_opposite)
    of_null = test.how == "is_null" and not is_opposite
    if column is None or isinstance(column, UnitColumn):
        return np.full(rows, of_null)
    if isinstance(column, (OptionColumn, PresentColumn, GapColumn)):
        inside = mask_of(column.column, column.column.count, test, is_opposite)
        mask: Mask = spread(inside, column.bits)
        return mask | ~column.bits if of_null else mask
    if isinstance(column, DictColumn):
        # Each distinct row is tested once.
        mask = mask_of(column.column, column.column.count, test, is_opposite)[column.codes]
        return mask
    if isinstance(column, ItemColumn):
        return _of_values(column.rows(0, rows), test, is_opposite)
    if test.how == "is_null":
        return np.full(rows, is_opposite)
    mask = _of_rows(column, test)
    return ~mask if is_opposite else mask


def of_items(test: Test, column: Column | None) -> Test:
    """A test of the values of a column as one of its items, if it has a named type."""
    while isinstance(column, (TypeColumn, OptionColumn, PresentColumn, GapColumn)):
        if isinstance(column, TypeColumn):
            test = _in_units(test, column)
        column = column.column
    return test


def _in_units(test: Test, column: TypeColumn) -> Test:
    """A test of values of a type, as one of the items."""
    is_decimal = column.name == "decimal" and column.is_known

    def item(constant: Any) -> Any:
        if not isinstance(constant, named.KINDS):
            # A number could stand for the decimal, or for the digits that are stored.
            if is_decimal:
                raise _mismatch(test, "a decimal, which is compared with decimals")
            return constant
        found = named.in_units(column.name, column.parameters, constant)
        if found is None:
            raise _mismatch(test, f"{column.name} {[*column.parameters]}")
        return found

    return test._replace(constants=tuple(map(item, test.constants)))


def _of_rows(column: Column, test: Test) -> Mask:
    """Tests rows that all have a value."""
    if isinstance(column, NumberColumn):
        _check(test, NUMBER)
        return _of_numbers(column.values, test)
    if isinstance(column, BoolColumn):
        _check(test, BOOL)
        no, yes = (_of_value(value, test) for value in (False, True))
        return np.where(column.values, yes, no)
    if isinstance(column, (TextColumn, BytesColumn)):
        _check(test, column_kind := TEXT if isinstance(column, TextColumn) else BYTES)
        strings = [text.encode() for text in test.constants] if column_kind is TEXT else [*test.constants]
        return _of_strings(Strings(column.lengths, column.data), test.how, strings)
    if isinstance(column, EnumColumn):
        _check(test, TEXT)
        mask: Mask = np.array([_of_value(name, test) for name in column.variants], bool)[column.codes]
        return mask
    raise _mismatch(test, _OTHERS.get(type(column), "tensor"))


def _check(test: Test, kind: str) -> None:
    """Checks that values of a kind can be compared as the test says."""
    if any(KINDS.get(type(constant)) is not kind for constant in test.constants):
        raise _mismatch(test, kind)


def _mismatch(test: Test, found: str) -> Fault:
    what = f"expected values to compare with {test.describe()}, found a value such as {found}"
    return Fault(Mismatch, what)


# Values one by one


def _of_values(values: list[Any], test: Test, is_opposite: bool) -> Mask:
    of_null = test.how == "is_null" and not is_opposite
    kinds = {*map(type, test.constants)}
    allowed = {kind: {*map(KINDS.get, kinds)} <= {name} for kind, name in KINDS.items()}
    known = {constant for constant in test.constants if constant == constant}

    def answer(value: Any) -> bool:
        while type(value) in (Some, Tag):
            value = value.value
        if value is None or value is ABSENT:
            return of_null
        if test.how == "is_null":
            return is_opposite
        if isinstance(value, dict) and len(value) == 1:
            # A variant with content.
            [value] = value
        if isinstance(value, named.KINDS):
            return _of_typed(value, test) != is_opposite
        if not allowed.get(type(value), False):
            raise _mismatch(test, KINDS.get(type(value), type(value).__name__))
        met = value in known if test.how == "is_in" else _of_value(value, test)
        return met != is_opposite

    return np.fromiter(map(answer, values), np.bool_, len(values))


def _of_typed(value: Any, test: Test) -> bool:
    """Tests a value of a named type that was stored by itself. Nothing is known of its unit here."""
    found = named.typed(value)
    assert found is not None
    if found.name in ("date", "uuid") and not any(
        isinstance(constant, named.KINDS) for constant in test.constants
    ):
        value, constants = found.item, test.constants
    else:
        items = [
            named.in_units(found.name, found.parameters, constant) if isinstance(constant, named.KINDS) else None
            for constant in test.constants
        ]
        if None in items:
            raise _mismatch(test, f"{found.name} {[*found.parameters]}")
        value, constants = found.item, tuple(items)
    if any(KINDS.get(type(constant)) != KINDS[type(value)] for constant in constants):
        raise _mismatch(test, found.name)
    return _of_value(value, test._replace(constants=constants))


def _of_value(value: Any, test: Test) -> bool:
    """Tests a value of the kind that it is compared with. Python compares integers with floats exactly."""
    if test.how == "is_in":
        return any(value == constant for constant in test.constants)
    (constant,) = test.constants
    if test.how in COMPARES:
        if isinstance(value, str):
            # By bytes, which is the order of code points, too.
            value, constant = value.encode(), constant.encode()
        return bool(COMPARES[test.how](value, constant))
    return bool(value.startswith(constant) if test.how == "starts_with" else constant in value)


# Numbers


def _of_numbers(values: npt.NDArray[Any], test: Test) -> Mask:
    dtype = values.dtype
    if test.how == "is_in":
        points = [
            point for point in (_exactly(constant, dtype) for constant in test.constants) if point is not None
        ]
        mask: Mask = values == points[0] if len(points) == 1 else np.isin(values, np.array(points, dtype))
        return mask
    (constant,) = test.constants
    if constant != constant:
        return np.zeros(len(values), np.bool_)
    # A number of the dtype is less than the constant if it is less than the least one that is not.
    limit = _near(constant, dtype, up=test.how in ("<", ">="))
    if limit is None:
        # All numbers of the dtype are on one side.
        return np.full(len(values), test.how in ("<", ">"))
    compared: Mask = COMPARES[test.how](values, limit)
    return compared


def _exactly(constant: Any, dtype: np.dtype[Any]) -> Any:
    """The number of a dtype that equals a constant; `None` if there is none."""
    if constant != constant:
        return None
    below, above = _near(constant, dtype, up=False), _near(constant, dtype, up=True)
    return below if below == above else None


def _near(constant: Any, dtype: np.dtype[Any], *, up: bool) -> Any:
    """The least number of a dtype that is at least the constant, or the greatest one that is at most the constant.

    `None` if there is none.
    """
    if dtype.kind == "f":
        try:
            number = float(constant)
        except OverflowError:
            number = math.inf if constant > 0 else -math.inf
        with np.errstate(over="ignore"):
            near = dtype.type(number)
        # It is one of the two numbers around the constant. Python compares floats with integers exactly.
        if float(near) < constant if up else float(near) > constant:
            near = np.nextafter(near, dtype.type(math.inf if up else -math.inf))
        return near
    limits = np.iinfo(dtype)
    low, high = int(limits.min), int(limits.max)
    if isinstance(constant, (float, Fraction)):
        if constant in (math.inf, -math.inf):
            constant = high + 1 if constant > 0 else low - 1
        else:
            constant = math.ceil(constant) if up else math.floor(constant)
    if constant > high if up else constant < low:
        return None
    return dtype.type(max(constant, low) if up else min(constant, high))


# Texts and byte strings


class Strings:
    """Strings that follow each other, which are compared without making objects of them."""

    def __init__(self, lengths: Lengths, data: bytes | memoryview) -> None:
        offsets = lengths.offsets()
        self.count, self.data = lengths.count, data
        self.starts, self.lengths = offsets[:-1], np.diff(offsets)

    def __getitem__(self, row: int) -> bytes:
        start = int(self.starts[row])
        return bytes(self.data[start : start + int(self.lengths[row])])

    def equal(self, string: bytes) -> Mask:
        return self._with(np.flatnonzero(self.lengths == len(string)), string)

    def starting_with(self, string: bytes) -> Mask:
        return self._with(np.flatnonzero(self.lengths >= len(string)), string)

    def _with(self, rows: npt.NDArray[Any], start: bytes) -> Mask:
        """Which strings begin with some bytes, among rows that are long enough."""
        width = next(width for width in (8, 4, 2, 1) if width <= max(len(start), 1))
        words = _words(self.data, f"<u{width}")
        # The end first, as strings often begin in the same way. The last words overlap.
        places = [len(start) - width, *range(0, len(start) - width, width)] if start else []
        for at in places:
            if not len(rows):
                break
            word = int.from_bytes(start[at : at + width], "little")
            rows = rows[words[self.starts[rows] + at] == words.dtype.type(word)]
        return self._only(rows)

    def _only(self, rows: npt.NDArray[Any] | list[int]) -> Mask:
        mask = np.zeros(self.count, np.bool_)
        mask[rows] = True
        return mask

    def among(self, strings: list[bytes]) -> Mask:
        if len(strings) <= _FEW:
            mask = np.zeros(self.count, np.bool_)
            for string in strings:
                mask |= self.equal(string)
            return mask
        known = {*strings}
        rows = np.flatnonzero(np.isin(self.lengths, [*{*map(len, known)}])).tolist()
        return self._only([row for row in rows if self[row] in known])

    def containing(self, string: bytes) -> Mask:
        if not string:
            return np.ones(self.count, np.bool_)
        data, ends, rows = bytes(self.data), self.starts + self.lengths, []
        at = data.find(string)
        while at >= 0:
            # The row with the first byte that was found. The last byte can be in a row behind it.
            row = int(np.searchsorted(ends, at, "right"))
            end = int(ends[row])
            is_inside = at + len(string) <= end
            if is_inside:
                rows.append(row)
            at = data.find(string, end if is_inside else at + 1)
        return self._only(rows)

    def order(self, string: bytes) -> npt.NDArray[np.int8]:
        """For each string, -1, 0 or 1: whether it is less than another one, equals it, or is greater."""
        # If one begins with the other, the shorter one is less. In what follows, missing bytes count as zeros.
        order: npt.NDArray[np.int8] = np.sign(self.lengths - len(string)).astype(np.int8)
        rows = np.arange(self.count)
        words = _words(b"".join([self.data, bytes(8)]), ">u8")
        for at in range(0, len(string), 8):
            there = np.clip(self.lengths[rows] - at, 0, 8)
            found = words[np.minimum(self.starts[rows] + at, len(words) - 1)] & _FIRST[there]
            wanted = np.uint64(int.from_bytes(string[at : at + 8].ljust(8, b"\0"), "big"))
            order[rows[found < wanted]] = -1
            order[rows[found > wanted]] = 1
            rows = rows[found == wanted]
            if not len(rows):
                break
        return order


# The first bytes of a word, by their number.
_FIRST = np.array([(1 << 64) - (1 << 8 * (8 - count)) for count in range(9)], np.uint64)


def _words(data: bytes | memoryview, dtype: str) -> npt.NDArray[Any]:
    """The words that start at each byte."""
    count = len(data) - np.dtype(dtype).itemsize + 1
    return np.ndarray((max(count, 0),), dtype, buffer=data, strides=(1,))


def _of_strings(strings: Strings, how: str, constants: list[bytes]) -> Mask:
    if how == "is_in":
        return strings.among(constants)
    (constant,) = constants
    if how == "starts_with":
        return strings.starting_with(constant)
    if how == "contains":
        return strings.containing(constant)
    mask: Mask = COMPARES[how](strings.order(constant), 0)
    return mask
