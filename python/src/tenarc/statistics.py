"""Statistics of groups of rows (SPEC 5.13), which tell whether rows can meet a test without reading them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from .conditions import COMPARES, KINDS, Test
from .errors import Error
from .items import BYTES, NEGATIVE, NULL, TEXT, UNSIGNED, Items

# The most bytes of a bound that is a text or a byte string.
_LONGEST = 16
# The first bytes of floats, and how they are unpacked.
_FLOATS = {0xF9: ">e", 0xFA: ">f", 0xFB: ">d"}


class Statistic(NamedTuple):
    """What is known about the values of a column in some rows."""

    rows: int
    nulls: int
    nans: int
    #: No other value is less than the first one or greater than the second one. `None` if that is not known.
    least: Any
    greatest: Any

    def may_meet(self, test: Test, is_opposite: bool) -> bool | None:
        """Whether some rows may meet a test, or the opposite of it.

        `None` if it is not known that they can be compared as the test says: to read them can be an error.
        """
        if test.how == "is_null":
            return self.nulls < self.rows if is_opposite else self.nulls > 0
        # NaN meets no test, and the opposite of each.
        nans = is_opposite and self.nans > 0
        known = [bound for bound in (self.least, self.greatest) if bound is not None]
        if self.nulls + self.nans >= self.rows:
            known = [0.0] if self.nans else []
            return nans if _are_compared(test, known) else None
        if not known or not _are_compared(test, known):
            return None
        return nans or _may_meet(_bytes(self.least), _bytes(self.greatest), test, is_opposite)


def _are_compared(test: Test, values: Sequence[Any]) -> bool:
    kinds = {KINDS.get(type(value)) for value in (*values, *test.constants)}
    return len(kinds) <= 1 and None not in kinds


def _bytes(value: Any) -> Any:
    """Texts are compared by their bytes."""
    return value.encode() if isinstance(value, str) else value


def _may_meet(least: Any, greatest: Any, test: Test, is_opposite: bool) -> bool:
    """Whether a value between two bounds, each `None` if it is not known, may meet a test."""
    constants = [*map(_bytes, test.constants)]
    if test.how == "is_in":
        if is_opposite:
            return least is None or least != greatest or least not in constants
        return any(
            (least is None or least <= constant) and (greatest is None or constant <= greatest)
            for constant in constants
        )
    if test.how == "contains":
        return True
    (constant,) = constants
    if test.how == "starts_with":
        if is_opposite:
            bounds = (least, greatest)
            return not all(bound is not None and bound.startswith(constant) for bound in bounds)
        return (least is None or least <= constant or least.startswith(constant)) and (
            greatest is None or greatest >= constant
        )
    # If any value does, the one at this end does.
    end = least if (test.how in ("<", "<=")) != is_opposite else greatest
    return end is None or bool(COMPARES[test.how](end, constant)) != is_opposite


class Statistics:
    """The statistics of all groups of a sequence that is stored as columns."""

    def __init__(self, encoded: bytes, counts: Sequence[int]) -> None:
        """Reads the statistics of groups with these numbers of rows. `Error` if they have another form."""
        fields = Items(encoded, 0)
        _array(fields, 2)
        # How many groups each statistic covers.
        self._step = fields.definite(UNSIGNED, "number of groups")
        if self._step == 0:
            raise fields.damaged("expected a number of groups, found 0")
        spans = [sum(counts[start : start + self._step]) for start in range(0, len(counts), self._step)]
        self._columns: dict[tuple[str, ...], list[Statistic | None]] = {}
        for _ in range(fields.count("columns")):
            _array(fields, 2)
            path = tuple(_string(fields, TEXT).decode() for _ in range(fields.count("path")))
            _array(fields, len(spans))
            found = [_statistic(fields, rows) for rows in spans]
            if path in self._columns:
                raise fields.damaged("a path is there twice")
            self._columns[path] = found

    def of_group(self, group: int, path: tuple[str, ...]) -> Statistic | None:
        """What is known about the rows of a group. If the statistic covers several groups, of all of them."""
        spans = self._columns.get(path)
        return None if spans is None else spans[group // self._step]


def read(encoded: bytes | None, counts: Sequence[int]) -> Statistics | None:
    """Reads statistics. `None` if there are none, or they have another form: then they are ignored."""
    try:
        return None if encoded is None else Statistics(encoded, counts)
    except Error:
        return None


def _array(fields: Items, length: int) -> None:
    found = fields.count("statistics")
    if found != length:
        raise fields.damaged(f"statistics: expected an array of {length}, found one of {found}")


def _string(fields: Items, major: int) -> bytes:
    # Texts are UTF-8: this was checked when they were skipped.
    return fields.take(fields.definite(major, "statistics"), "statistics")


def _statistic(fields: Items, rows: int) -> Statistic | None:
    if fields.data[fields.at : fields.at + 1] == NULL:
        fields.at += 1
        return None
    _array(fields, 4)
    nulls, nans = (fields.definite(UNSIGNED, "number of rows") for _ in range(2))
    if nulls + nans > rows:
        raise fields.damaged(f"expected at most {rows} nulls and NaNs, found {nulls} and {nans}")
    least, greatest = _bound(fields), _bound(fields)
    has_both = least is not None and greatest is not None
    if has_both and (type(least) is not type(greatest) or _bytes(least) > _bytes(greatest)):
        raise fields.damaged("expected an upper bound that is not below the lower one")
    return Statistic(rows, nulls, nans, least, greatest)


def _bound(fields: Items) -> Any:
    start, first = fields.at, fields.data[fields.at]
    major = first >> 5
    if major in (TEXT, BYTES):
        string = _string(fields, major)
        if len(string) <= _LONGEST:
            return string.decode() if major == TEXT else string
    else:
        _, argument = fields.any_head("bound")
        if argument is not None and major in (UNSIGNED, NEGATIVE):
            return argument if major == UNSIGNED else -1 - argument
        if first in (0xF4, 0xF5):
            return first == 0xF5
        if first == NULL[0]:
            return None
        if argument is not None and first in _FLOATS:
            (number,) = struct.unpack(_FLOATS[first], fields.data[start + 1 : fields.at])
            if number == number:
                return number
    raise fields.damaged("expected a number, bool, null, or text or byte string of at most 16 bytes", start)
