"""Conditions that rows of a table meet or do not meet: `Table.filter`."""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from . import named
from .errors import Mismatch
from .listing import lists_without

#: For each row, whether it meets a condition.
Mask = npt.NDArray[np.bool_]
COMPARES: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
#: How the kinds of values are called in errors. Only values of one kind are compared.
NUMBER, BOOL, TEXT, BYTES = "number", "boolean", "text string", "byte string"
KINDS: dict[type, str] = {int: NUMBER, Fraction: NUMBER, float: NUMBER, bool: BOOL, str: TEXT, bytes: BYTES}
# How many of the values of `is_in` are shown, and how many characters of each.
_FEW, _SHOWN = 3, 64
_METHODS = ("is_in", "starts_with", "contains", "is_null")


class Test(NamedTuple):
    """What the values of a column are tested for. A value that is not null meets either a test or its opposite."""

    #: `is_in`, `<`, `<=`, `>`, `>=`, `starts_with`, `contains` or `is_null`.
    how: str
    #: What the values are compared with: each an int, float, bool, `str`, `bytes`, or one of `named.KINDS`.
    constants: tuple[Any, ...] = ()

    def describe(self) -> str:
        """What the values are compared with, for errors."""
        words = [_described(constant) for constant in self.constants[:_FEW]]
        if self.how in ("starts_with", "contains"):
            return (
                f"{'the start' if self.how == 'starts_with' else 'the part'} {words[0].removeprefix('the text ')}"
            )
        return words[0] if len(self.constants) == 1 else f"one of {', '.join(words)}"


def _described(constant: Any) -> str:
    kind = {bool: "the bool", str: "the text", bytes: "the byte string"}.get(type(constant), "the number")
    if isinstance(constant, named.KINDS):
        kind = f"the {type(constant).__name__}"
    return f"{kind} {constant!r:.{_SHOWN}}"


def col(path: str) -> Col:
    """The column at a path, in a condition: see `Table.filter`.

    The path is one that `Table.__getitem__` takes for a column: a name, or several that are joined by dots, such
    as `request.size`. The fields of a variant of an enum follow its name, such as `kind.Click.x`, and are null in
    rows of other variants.
    """
    if not isinstance(path, str):
        raise Mismatch(f"expected the path of a column as text, found {type(path).__name__}")
    return Col(path)


class Col:
    """A column in a condition, which `col` makes. Comparisons and methods make conditions of it.

    What a column is compared with can be a number, a bool, a text, `bytes`, a date, a time, a duration, a decimal,
    a UUID, or a member of an `Enum`, which stands for its name:

    - **Numbers** are compared by their value, whatever their types are. Nothing is rounded. Comparisons with NaN
      are false, and `!=` is true.
    - **Texts and byte strings** are compared byte by byte.
    - **Dates, times, durations, decimals and UUIDs** are compared with values of the same type. A number is
      compared with what the format stores, such as the days since 1970. A decimal is not compared with numbers.
    - **Bools**: false is less than true.
    - **Enums** are compared with texts, which are names of variants. What is in the variant makes no difference.
    - **Null** meets no condition but `is_null`, not even `!=`. A key that a row does not have is null.

    A column with values of another kind than what it is compared with is an error, when the filter is used.
    """

    __slots__ = ("_path",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, path: str) -> None:
        self._path = path

    def __eq__(self, other: object) -> Filter:  # type: ignore[override]
        return self.is_in([other])

    def __ne__(self, other: object) -> Filter:  # type: ignore[override]
        return ~self.is_in([other])

    def __lt__(self, other: Any) -> Filter:
        return self._meets("<", other)

    def __le__(self, other: Any) -> Filter:
        return self._meets("<=", other)

    def __gt__(self, other: Any) -> Filter:
        return self._meets(">", other)

    def __ge__(self, other: Any) -> Filter:
        return self._meets(">=", other)

    def is_in(self, values: Iterable[Any]) -> Filter:
        """The value equals one of these, which must be of one kind. No value equals one of none."""
        if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
            raise Mismatch(f"is_in: expected a list of values, found {type(values).__name__}")
        return self._meets("is_in", *values)

    def is_null(self) -> Filter:
        """There is no value: it is `None`, or the row does not have the key."""
        return self._meets("is_null")

    def is_not_null(self) -> Filter:
        """There is a value."""
        return ~self.is_null()

    def starts_with(self, text: str) -> Filter:
        """The text starts with this one."""
        return self._meets("starts_with", _text("starts_with", text))

    def contains(self, text: str) -> Filter:
        """The text contains this one."""
        return self._meets("contains", _text("contains", text))

    def _meets(self, how: str, *constants: Any) -> Filter:
        return Filter(self._path, (Test(how, tuple(map(_constant, constants))),))

    def __repr__(self) -> str:
        return f"col({self._path!r})"

    def __bool__(self) -> NoReturn:
        raise Mismatch(f"{self!r} is no condition: compare it with something, as in `{self!r} > 5`")

    def _no_condition(self, *_: object) -> NoReturn:
        # `col("a") > 1 & col("b") == 2` comes here, because `&` goes before comparisons.
        what = "`&`, `|` and `~` are for conditions"
        raise Mismatch(f"{what}: put each comparison in parentheses, and write `{self!r} == True` for a bool")

    __and__ = __rand__ = __or__ = __ror__ = __invert__ = _no_condition


def _text(method: str, text: Any) -> str:
    if not isinstance(text, str):
        raise Mismatch(f"{method}: expected a text, found {type(text).__name__}")
    return text


def _constant(value: Any) -> Any:
    """What a column is compared with, as a plain value of Python."""
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, named.KINDS) and value == value:
        return value
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    kinds: tuple[Any, ...] = (bool, int, float, str, bytes)
    for kind in kinds:
        if isinstance(value, kind):
            return kind(value)
    if value is None:
        raise Mismatch("cannot compare with None: there are is_null() and is_not_null()")
    found = "another column" if isinstance(value, Col) else type(value).__name__
    raise Mismatch(f"expected a number, bool, text, bytes or time to compare a column with, found {found}")


@lists_without("mask", "may_be_met", "paths")
class Filter:
    """A condition that rows meet or do not meet: `Table.filter`. `col` starts one.

    `a & b` is met by rows that meet both, `a | b` by rows that meet at least one of them, and `~a` where `a` is
    not. Null meets neither a comparison nor its opposite: both `col("size") > 5` and `~(col("size") > 5)` leave
    out rows whose size is null, as in SQL.
    """

    __slots__ = ("_how", "_parts")

    def __init__(self, how: str, parts: tuple[Any, ...]) -> None:
        # The path of a column and what it is tested for; or `&`, `|` or `~` and conditions.
        self._how, self._parts = how, parts

    @property
    def _is_test(self) -> bool:
        return isinstance(self._parts[0], Test)

    def __and__(self, other: Filter) -> Filter:
        return self._joined("&", other) if isinstance(other, Filter) else NotImplemented

    def __or__(self, other: Filter) -> Filter:
        return self._joined("|", other) if isinstance(other, Filter) else NotImplemented

    def __invert__(self) -> Filter:
        if self._how != "~" or self._is_test:
            return Filter("~", (self,))
        inner: Filter = self._parts[0]
        return inner

    def _joined(self, how: str, other: Filter) -> Filter:
        # Conditions that are joined in the same way are one list, so that many of them are not nested.
        first = self._parts if self._how == how and not self._is_test else (self,)
        return Filter(how, (*first, other))

    def __bool__(self) -> NoReturn:
        what = "a condition is neither true nor false: join conditions by `&`, `|` and `~` in place of `and`, `or`"
        raise Mismatch(
            f"{what} and `not`, with comparisons in parentheses, and write `a < x < b` as two comparisons"
        )

    def __repr__(self) -> str:
        if self._is_test:
            how, constants = self._parts[0]
            column = f"col({self._how!r})"
            if how == "is_in" and len(constants) == 1:
                return f"{column} == {constants[0]!r}"
            if how in _METHODS:
                shown = [*constants] if how == "is_in" else "".join(map(repr, constants))
                return f"{column}.{how}({shown})"
            return f"{column} {how} {constants[0]!r}"
        if self._how == "~":
            return f"~({self._parts[0]!r})"
        return f" {self._how} ".join(f"({part!r})" for part in self._parts)

    def paths(self) -> list[str]:
        """The paths of all columns, each once."""
        return [*dict.fromkeys(self._paths())]

    def _paths(self) -> Iterator[str]:
        if self._is_test:
            yield self._how
        else:
            for part in self._parts:
                yield from part._paths()

    def mask(self, of_column: Callable[[str, Test, bool], Mask], *, is_opposite: bool = False) -> Mask:
        """For each row, whether it meets the condition, or the opposite of it.

        `of_column` tests the column at a path, or answers with the opposite. Null meets neither a test nor its
        opposite. So the opposite of several conditions is made of their opposites.
        """
        if self._is_test:
            return of_column(self._how, self._parts[0], is_opposite)
        if self._how == "~":
            inner: Filter = self._parts[0]
            return inner.mask(of_column, is_opposite=not is_opposite)
        join = np.logical_or if (self._how == "&") == is_opposite else np.logical_and
        mask: Mask = self._parts[0].mask(of_column, is_opposite=is_opposite)
        for part in self._parts[1:]:
            mask = join(mask, part.mask(of_column, is_opposite=is_opposite))
        return mask

    def may_be_met(
        self, of_column: Callable[[str, Test, bool], bool | None], *, is_opposite: bool = False
    ) -> bool | None:
        """Whether any row may meet the condition, or the opposite of it. `None` if to test it can be an error.

        `of_column` says this of the column at a path.
        """
        if self._is_test:
            return of_column(self._how, self._parts[0], is_opposite)
        if self._how == "~":
            inner: Filter = self._parts[0]
            return inner.may_be_met(of_column, is_opposite=not is_opposite)
        found = [part.may_be_met(of_column, is_opposite=is_opposite) for part in self._parts]
        if None in found:
            return None
        return any(found) if (self._how == "&") == is_opposite else all(found)
