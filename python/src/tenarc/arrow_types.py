"""Chooses the types of Arrow for the columns of a table: see `docs/decisions/arrow.md`."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from math import prod
from typing import Any, NamedTuple

import numpy as np

from . import dtypes
from .column_maker import column_of
from .columns import (
    ABSENT,
    ORDERED,
    BoolColumn,
    BytesColumn,
    Column,
    DictColumn,
    EnumColumn,
    GapColumn,
    ItemColumn,
    ListColumn,
    MapColumn,
    NumberColumn,
    OptionColumn,
    PresentColumn,
    RawColumn,
    StructColumn,
    TensorColumn,
    TextColumn,
    TupleColumn,
    TypeColumn,
    UnitColumn,
    name_of,
)
from .errors import Unsupported

#: The units of times, and the types of Arrow for times of day of these units.
_UNITS = {"s": "time32", "ms": "time32", "us": "time64", "ns": "time64"}
#: The most digits of a decimal, and of one of 128 bits.
_MOST_DIGITS, _DIGITS_OF_128 = 76, 38
#: The names of types of Arrow for dtypes.
_NUMBERS = {
    "bool": "bool_",
    **{f"{kind[0]}{bits}": f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
    "whole": "int64",
}
_FLOATS = ("f16", "f32", "f64")
_INTEGERS = frozenset(name for name in _NUMBERS.values() if "int" in name)


class Type(NamedTuple):
    """The type of the rows of a column in all groups."""

    #: `null`, `number` (bools too), `text`, `bytes`, `tensor`, `list`, `struct`, `tuple`, `map`, `enum`, `named`,
    #: or `lost` if Arrow has no type for the rows.
    kind: str
    #: The dtype; dtype and shape of tensors; the length of all lists; name and parameters; why it is lost.
    what: Any = None
    #: The fields, the variants (`none` if they have no data), or the one column in the rows.
    parts: dict[str, Type] = {}  # noqa: RUF012
    nullable: bool = False
    #: What the nulls are, if some are fields that are missing: `only` these, or others `too`.
    missing: str = ""

    @property
    def has_nulls(self) -> bool:
        return self.nullable and self.missing != "only"

    def as_nullable(self) -> Type:
        return self._replace(nullable=True)


_NULL = Type("null", nullable=True)
#: The type of a field that is missing in all rows.
_MISSING = _NULL._replace(missing="only")
#: The type of the data of a variant that has none.
_NONE = Type("none")


def type_of(column: Column | None) -> Type:
    """The type of the rows of a column in one group, or of a field that no row of a group has."""
    if column is None:
        return _MISSING
    if column.by_item:
        return _as_items(type_of(as_column(column)))
    column = column.outline()
    found: Type = _TYPES[type(column)](column)
    return found


def as_column(column: Column) -> Column:
    """A column with rows of a type in place of values that were stored one by one."""
    column = column.loaded()
    if not column.by_item:
        return column
    if isinstance(column, PresentColumn):
        return PresentColumn(column.bits, as_column(column.column))
    rows = [None if row is ABSENT else row for row in column.rows(0, column.count)]
    kinds = {type(row) for row in rows} - {type(None)}
    if kinds == {int, float} and all(type(row) is not int or abs(row) <= 1 << 53 for row in rows):
        rows = [row if row is None else float(row) for row in rows]
    return _signed(column_of(rows))


def _signed(column: Column) -> Column:
    """Integers of rows that were stored one by one: which type is the narrowest depends on their values."""
    if isinstance(column, OptionColumn):
        return OptionColumn(column.bits, _signed(column.column))
    is_integer = isinstance(column, NumberColumn) and column.values.dtype.kind == "u"
    if isinstance(column, NumberColumn) and is_integer and not int(column.values.max(initial=0)) >> 63:
        return NumberColumn(column.values.astype(np.int64))
    return column


def _as_items(found: Type) -> Type:
    """The type of rows that are stored one by one. Their integers and lists have no type of their own."""
    if found.kind == "number" and found.what[0] in "iu" and found.what != "u64":
        return found._replace(what="whole")
    parts = {name: _as_items(part) for name, part in found.parts.items()}
    return found._replace(parts=parts, what=None if found.kind == "list" else found.what)


def merged(types: Iterable[Type]) -> Type:
    """The type that can hold the rows of all types."""
    return _with_lists(reduce(_merged, types))


def _with_lists(found: Type) -> Type:
    """Lists of one length in place of tuples whose elements are of one type in all groups."""
    parts = {name: _with_lists(part) for name, part in found.parts.items()}
    if found.kind == "tuple" and parts:
        nullable = any(part.nullable for part in parts.values())
        first, *others = (part._replace(nullable=nullable) for part in parts.values())
        if all(other == first for other in others):
            return found._replace(kind="list", what=len(parts), parts={"item": first})
    return found._replace(parts=parts)


def _merged(a: Type, b: Type) -> Type:
    found = b if a.kind == "none" else a if b.kind == "none" else _both(a, b)
    missing = ("too" if a.has_nulls or b.has_nulls else "only") if a.missing or b.missing else ""
    return found._replace(nullable=a.nullable or b.nullable, missing=missing)


def _both(a: Type, b: Type) -> Type:
    if a.kind in ("null", "lost") or b.kind in ("null", "lost"):
        return b if a.kind == "null" or b.kind == "lost" else a
    if "named" in (a.kind, b.kind):
        inner = _merged(_untyped(a), _untyped(b))
        if a.what == b.what and a.kind == b.kind:
            return a._replace(parts={"": inner})
        if a.kind == b.kind and {a.what[0], b.what[0]} <= {"category", ORDERED}:
            return _category(a, b)
        return inner
    if {a.kind, b.kind} == {"tuple", "list"}:
        (kind, what, parts), other = (a[:3], b) if a.kind == "tuple" else (b[:3], a)
        item = other.parts["item"]
        if other.what == len(parts):
            return Type(kind, what, {name: _merged(part, item) for name, part in parts.items()})
        return Type("list", None, {"item": reduce(_merged, parts.values(), item)})
    if {a.kind, b.kind} == {"enum", "text"} and not any(map(has_data, (a, b))):
        return Type("text")
    if a.kind == b.kind == "number":
        dtype = _common(a.what, b.what)
        if dtype is not None:
            return Type("number", dtype)
    elif a.kind == b.kind and (a.kind != "tuple" or len(a.parts) == len(b.parts)):
        if a.kind == "tensor" and a.what != b.what:
            return _mixed(a, b)
        names = [*a.parts, *(name for name in b.parts if name not in a.parts)]
        no = _NONE if a.kind == "enum" else _MISSING
        parts = {name: _merged(a.parts.get(name, no), b.parts.get(name, no)) for name in names}
        return Type(a.kind, a.what if a.what == b.what else None, parts)
    return _mixed(a, b)


def _category(a: Type, b: Type) -> Type:
    """The category of the rows of two. The one in which the other's names have the same order, or without one."""
    for found, other in ((a, b), (b, a)):
        if found.what[0] == other.what[0] == ORDERED:
            (index, *names), (other_index, *some) = found.what[1], other.what[1]
            if [name for name in names if name in {*some}] == some:
                index = index if index == other_index else "int32"
                return found._replace(what=(ORDERED, (index, *names)))
    return Type("named", ("category", (0,)), {"": Type("text")})


def _mixed(a: Type, b: Type) -> Type:
    return Type("lost", f"rows of {_described(a)} and of {_described(b)} have no common type of Arrow")


def _described(found: Type) -> str:
    if found.kind == "tensor":
        return f"{found.what[0]}{list(found.what[1])}"
    if found.kind == "number":
        return "i64" if found.what == "whole" else str(found.what)
    return f"the kind {found.kind}"


def _untyped(found: Type) -> Type:
    return found.parts[""] if found.kind == "named" else found


def has_data(found: Type) -> bool:
    return any(part.kind != "none" for part in found.parts.values())


def _common(a: str, b: str) -> str | None:
    """The least dtype that holds the numbers of both exactly; `None` if there is none."""
    if "whole" in (a, b) and a != b:
        other = b if a == "whole" else a
        return "f64" if other in _FLOATS else None if other == "bool" else dtypes.holding("i64", other)
    found = dtypes.holding(a, b)
    if found is not None or "bool" in (a, b):
        return found
    bits = [int(name[1:]) << (name[0] != "f") for name in (a, b)]
    # All integers of so many bits are floats of twice as many.
    return None if max(bits) > 64 or not {a, b} & {*_FLOATS} else f"f{max(32, *bits)}"


# The types of columns


def _type_of_numbers(column: Any) -> Type:
    return Type("number", name_of(column.values))


def _type_of_tensors(column: TensorColumn) -> Type:
    dtype, shape = name_of(column.values), column.values.shape[1:]
    if dtype not in _NUMBERS:
        return Type("lost", f"Arrow has no dtype {dtype}")
    if not prod(shape):
        return Type("lost", "the tensors have no elements")
    return Type("tensor", (dtype, shape))


def _type_of_optional(column: Any) -> Type:
    inner = type_of(column.column)
    if inner.nullable and inner.kind != "null" and isinstance(column, OptionColumn):
        return Type("lost", "options in options have two kinds of null, and Arrow has one")
    return inner.as_nullable()


def _type_of_present(column: PresentColumn) -> Type:
    inner = type_of(column.column)
    return inner._replace(nullable=True, missing=inner.missing or ("too" if inner.nullable else "only"))


def _type_of_lists(column: ListColumn) -> Type:
    inner, each = type_of(column.column), column.lengths.same()
    is_fixed = each and not inner.nullable and (inner.kind == "number" or (inner.kind == "list" and inner.what))
    return Type("list", each if is_fixed else None, {"item": inner})


def _type_of_maps(column: MapColumn) -> Type:
    keys, values = type_of(column.keys), type_of(column.values)
    if keys.nullable and keys.kind != "null":
        return Type("lost", "keys of a map can be null")
    return Type("map", None, {"key": keys, "value": values})


def _type_of_structs(column: StructColumn) -> Type:
    return Type("struct", None, {name: type_of(field) for name, field in column.fields.items()})


def _type_of_tuples(column: TupleColumn) -> Type:
    return Type("tuple", None, {str(n): type_of(inner) for n, inner in enumerate(column.columns)})


def _type_of_enums(column: EnumColumn) -> Type:
    columns = zip(column.variants, column.columns, strict=True)
    return Type("enum", None, {name: _NONE if inner is None else type_of(inner) for name, inner in columns})


def _type_of_named(column: TypeColumn) -> Type:
    inner = type_of(column.column)
    return Type("named", (column.name, column.parameters), {"": inner}) if _fits(column, inner) else inner


def _fits(column: TypeColumn, inner: Type) -> bool:
    """Whether a column is what the name of its type says (SPEC 7.2), and Arrow has the type."""
    name, content = column.name, column.column
    is_integer = inner.kind == "number" and inner.what[0] in "iu" and inner.what != "u64"
    each = content.lengths.same() if isinstance(content, BytesColumn) else None
    match (name, *column.parameters):
        case ("timestamp", str(unit), str()) | ("time" | "duration", str(unit)):
            return is_integer and unit in _UNITS and not inner.nullable
        case ("date",):
            return is_integer and not inner.nullable
        case ("decimal", int(precision), int(scale)):
            is_known = 1 <= precision <= _MOST_DIGITS and -(1 << 31) <= scale < 1 << 31
            return is_known and ((is_integer and not inner.nullable) or (each is not None and 1 <= each <= 32))
        case ("uuid",):
            return each == 16
        case ("category", 0 | 1):
            return isinstance(content, DictColumn) and isinstance(content.column, TextColumn)
        case (found, str(index), str(), *names) if found == ORDERED:
            is_category = inner.kind == "named" and inner.what[0] == "category" and not inner.nullable
            return is_category and index in _INTEGERS and all(type(name) is str for name in names)
    return False


_TYPES: dict[type, Any] = {
    NumberColumn: _type_of_numbers,
    BoolColumn: _type_of_numbers,
    TensorColumn: _type_of_tensors,
    RawColumn: lambda column: Type("lost", f"Arrow has no dtype {column.tensor().dtype}"),
    TextColumn: lambda _: Type("text"),
    BytesColumn: lambda _: Type("bytes"),
    UnitColumn: lambda _: _NULL,
    OptionColumn: _type_of_optional,
    PresentColumn: _type_of_present,
    GapColumn: _type_of_optional,
    ListColumn: _type_of_lists,
    MapColumn: _type_of_maps,
    StructColumn: _type_of_structs,
    TupleColumn: _type_of_tuples,
    EnumColumn: _type_of_enums,
    DictColumn: lambda column: type_of(column.column),
    TypeColumn: _type_of_named,
    ItemColumn: lambda _: Type("lost", "its rows have different forms, for which Arrow has no type"),
}


# Types of pyarrow


class Types:
    """The types of pyarrow for types. `pa` is the module."""

    def __init__(self, pa: Any, groups: int) -> None:
        self._pa, self._groups = pa, groups

    def field(self, name: str, found: Type, path: str) -> Any:
        kind = (
            {"tuple": "tuple", "enum": "enum"}.get(found.kind) if found.kind != "enum" or has_data(found) else None
        )
        metadata = {} if kind is None else {"tenarc.kind": kind}
        if found.missing == "only":
            metadata["tenarc.null"] = "missing"
        return self._pa.field(name, self.of(found, path), nullable=found.nullable, metadata=metadata or None)

    def number(self, dtype: str) -> Any:
        return getattr(self._pa, _NUMBERS[dtype])()

    def of(self, found: Type, path: str) -> Any:
        """The type of Arrow. `path` is for the error if there is none."""
        pa = self._pa
        if found.kind == "lost":
            text = f"{found.what}: leave the column out, as by `to_arrow(columns=[...])` with the other ones"
            raise Unsupported(text, path=path)
        if found.kind == "null":
            return pa.null()
        if found.kind == "number":
            return self.number(found.what)
        if found.kind == "text":
            return pa.string()
        if found.kind == "bytes":
            return pa.binary()
        if found.kind == "tensor":
            dtype, shape = found.what
            return pa.fixed_shape_tensor(self.number(dtype), shape)
        if found.kind == "list":
            item = self.field("item", found.parts["item"], path)
            return pa.list_(item) if found.what is None else pa.list_(item, found.what)
        if found.kind == "map":
            key = pa.field("key", self.of(key_of(found), path), nullable=False)
            return pa.map_(key, self.field("value", found.parts["value"], path))
        if found.kind == "named":
            return self._named(*found.what)
        if found.kind == "enum":
            names = pa.dictionary(pa.int32(), pa.string())
            if not has_data(found):
                return names
            fields = [pa.field(variant_field(found), names, nullable=False)]
            parts = {name: part.as_nullable() for name, part in found.parts.items() if part.kind != "none"}
        else:
            fields, parts = [], found.parts
        return pa.struct([*fields, *(self.field(name, part, f"{path}.{name}") for name, part in parts.items())])

    def _named(self, name: str, parameters: tuple[Any, ...]) -> Any:
        pa = self._pa
        if name == "timestamp":
            return pa.timestamp(parameters[0], parameters[1] or None)
        if name == "date":
            return pa.date32()
        if name == "time":
            return getattr(pa, _UNITS[parameters[0]])(parameters[0])
        if name == "duration":
            return pa.duration(parameters[0])
        if name == "decimal":
            make = pa.decimal128 if parameters[0] <= _DIGITS_OF_128 else pa.decimal256
            return make(*parameters)
        if name == "uuid":
            return pa.uuid()
        if name == ORDERED:
            return pa.dictionary(getattr(pa, parameters[0])(), pa.string(), ordered=True)
        return pa.dictionary(pa.int32(), pa.string(), ordered=parameters[0] == 1 and self._groups == 1)


def key_of(found: Type) -> Type:
    """The type of the keys of maps. pyarrow has no maps with keys of the type null, which only empty maps have."""
    key = found.parts["key"]
    return Type("text") if key.kind == "null" else key


def variant_field(found: Type) -> str:
    """The name of the field that says which variant of an enum a row is."""
    name = "variant"
    while name in found.parts:
        name += "_"
    return name
