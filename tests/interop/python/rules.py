"""The part of CDDL (RFC 8610) that `tenarc.cddl` uses: a reader of the rules, and a comparison of items with them.

The validators that could be installed take every tag in a choice for a match, or do not know recursion.
"""

import re
from collections.abc import Callable, Iterator

import cbor2

#: A type is a test of an item.
Type = Callable[[object], bool]
#: An entry of a group: how often it may occur, and the types of one occurrence, one after the other; in a map, key and value.
Entry = tuple[int, int, list[Type]]

TOKEN = re.compile(r'\s*(?:;[^\n]*\n\s*)*("[^"]*"|#6\.\d+|\d+\.\.\d+|\*\d+|\d+|[a-z][a-z0-9-]*|\.size|=>|[=/\[\]{}(),*+?])')

PRELUDE: dict[str, Type] = {
    "any": lambda item: True,
    "null": lambda item: item is None,
    "undefined": lambda item: item is cbor2.undefined,
    "bool": lambda item: isinstance(item, bool),
    "uint": lambda item: type(item) is int and item >= 0,
    "int": lambda item: type(item) is int,
    "float": lambda item: isinstance(item, float),
    "tstr": lambda item: isinstance(item, str),
    "bstr": lambda item: isinstance(item, bytes),
    # The rules do not list the other simple values.
    "simple": lambda item: isinstance(item, cbor2.CBORSimpleValue),
}


class Rules:
    """The rules of a CDDL text."""

    def __init__(self, text: str) -> None:
        self.types: dict[str, Type] = dict(PRELUDE)
        self.tokens = TOKEN.findall(text + "\n")
        left = re.sub(r"\s+", "", re.sub(r";[^\n]*", "", text))
        if "".join(self.tokens) != left.replace(" ", ""):
            raise ValueError("some of the text is no token")
        while self.tokens:
            name, equals = self.tokens.pop(0), self.tokens.pop(0)
            if equals != "=":
                raise ValueError(f"expected = after {name}")
            self.types[name] = self.choice()

    def next_is(self, *tokens: str) -> bool:
        return bool(self.tokens) and self.tokens[0] in tokens

    def choice(self) -> Type:
        types = [self.single()]
        while self.next_is("/"):
            self.tokens.pop(0)
            types.append(self.single())
        return lambda item: any(matches(item) for matches in types)

    def single(self) -> Type:
        token = self.tokens.pop(0)
        if token.startswith("#6."):
            self.tokens.pop(0)
            number, inner = int(token[3:]), self.choice()
            self.tokens.pop(0)
            return lambda item: isinstance(item, cbor2.CBORTag) and item.tag == number and inner(item.value)
        if token.startswith('"'):
            return lambda item: item == token[1:-1]
        if token[0].isdigit():
            return in_range(token, lambda item: item if type(item) is int else None)
        if token == "(":
            inner = self.choice()
            self.tokens.pop(0)
            return inner
        if token == "[":
            entries = self.group("]")
            return lambda item: isinstance(item, list) and fits(entries, item)
        if token == "{":
            entries = self.group("}")
            return lambda item: isinstance(item, dict) and all(
                any(key(found) and value(content) for _, _, (key, value) in entries) for found, content in item.items()
            )
        if self.next_is(".size"):
            self.tokens.pop(0)
            size = self.tokens.pop(0)
            if size == "(":
                size = self.tokens.pop(0)
                self.tokens.pop(0)
            fits_size = in_range(size, lambda item: len(item.encode() if isinstance(item, str) else item))
            return lambda item: self.types[token](item) and fits_size(item)
        # Looked up when an item is compared: the rule may stand further below.
        return lambda item: self.types[token](item)

    def group(self, end: str) -> list[Entry]:
        entries = []
        while not self.next_is(end):
            least, most = 1, 1
            if self.next_is("*", "+", "?") or self.tokens[0].startswith("*"):
                sign = self.tokens.pop(0)
                least, most = int(sign == "+"), 1 if sign == "?" else int(sign[1:] or 1 << 62) if sign[0] == "*" else 1 << 62
            if least != most and self.next_is("("):
                self.tokens.pop(0)
                types = [types[0] for _, _, types in self.group(")")]
            else:
                types = [self.choice()]
                if self.next_is("=>"):
                    self.tokens.pop(0)
                    types.append(self.choice())
            entries.append((least, most, types))
            if self.next_is(","):
                self.tokens.pop(0)
        self.tokens.pop(0)
        return entries


def in_range(text: str, number: Callable[[object], int | None]) -> Type:
    first, _, last = text.partition("..")

    def matches(item: object) -> bool:
        found = number(item)
        return found is not None and int(first) <= found <= int(last or first)

    return matches


def fits(entries: list[Entry], items: list[object]) -> bool:
    """Whether the items of an array are those of a group."""
    return len(items) in ends(entries, items, 0)


def ends(entries: list[Entry], items: list[object], start: int) -> Iterator[int]:
    """The positions behind the items that the entries can stand for."""
    if not entries:
        yield start
        return
    (least, most, types), others = entries[0], entries[1:]
    times = 0
    while True:
        if times >= least and others:
            yield from ends(others, items, start)
        after = start + len(types)
        part = items[start:after]
        if times == most or len(part) < len(types) or not all(map(lambda fit, item: fit(item), types, part)):
            break
        start, times = after, times + 1
    if times >= least and not others:
        yield start


def decoded(item: bytes) -> object:
    """An item with all tags kept, also those that the library knows, and with all maps as dicts."""
    return Decoder(item).item()


class Decoder:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, length: int) -> bytes:
        self.at += length
        return self.data[self.at - length : self.at]

    def item(self) -> object:
        first = self.take(1)[0]
        major, low = first >> 5, first & 31
        if major == 7:
            start = self.at - 1
            self.take({24: 1, 25: 2, 26: 4, 27: 8}.get(low, 0))
            return cbor2.loads(self.data[start : self.at])
        number = low if low < 24 else None if low == 31 else int.from_bytes(self.take(1 << (low - 24)), "big")
        if major < 2:
            return number if major == 0 else -1 - number
        if major == 6:
            return cbor2.CBORTag(number, self.item())
        if major in (2, 3):
            raw = b"".join(self.pieces()) if number is None else self.take(number)
            return raw if major == 2 else raw.decode()
        items = list(self.until_break()) if number is None else [self.item() for _ in range(number * (major - 3))]
        # The keys can be anything, and only their form is compared: position and key are there once.
        return items if major == 4 else Pairs(items[::2], items[1::2])

    def until_break(self) -> Iterator[object]:
        while self.data[self.at] != 0xFF:
            yield self.item()
        self.at += 1

    def pieces(self) -> Iterator[bytes]:
        for piece in self.until_break():
            yield piece if isinstance(piece, bytes) else piece.encode()


class Pairs(dict):
    """A map whose keys need not be hashable, and may occur twice."""

    def __init__(self, keys: list[object], values: list[object]) -> None:
        super().__init__()
        self.pairs = list(zip(keys, values, strict=True))

    def items(self) -> list[tuple[object, object]]:
        return self.pairs
