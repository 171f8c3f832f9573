"""Reads and writes the heads of CBOR items (RFC 8949, section 3), for everything but metadata."""

from __future__ import annotations

from collections.abc import Sequence

from .errors import Damaged, Error, Unsupported

UNSIGNED, NEGATIVE, BYTES, TEXT, ARRAY, MAP, TAG, SIMPLE = range(8)
NULL = b"\xf6"
#: The major types, for errors.
_NAMES = (
    "an unsigned integer",
    "a negative integer",
    "bytes",
    "text",
    "an array",
    "a map",
    "a tag",
    "a simple value",
)


def four_letters(letters: str) -> int:
    """The number of a tag of this format."""
    return int.from_bytes(letters.encode(), "big")


#: Every byte by itself. Most heads have one byte or two, and there is one for each value in an archive.
_BYTES = tuple(bytes((byte,)) for byte in range(256))


#: The least arguments that need 1, 2, 4 and 8 bytes after the first byte of a head.
_LEAST = (24, 1 << 8, 1 << 16, 1 << 32)
#: The most bytes of the name of a codec or of a hash function.
MAX_NAME = 64


def head(major: int, argument: int) -> bytes:
    """The head of an item in its shortest form."""
    if argument < 24:
        return _BYTES[major << 5 | argument]
    if argument < 256:
        return _BYTES[major << 5 | 24] + _BYTES[argument]
    for info, width in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if argument < 1 << 8 * width:
            return bytes((major << 5 | info,)) + argument.to_bytes(width, "big")
    raise OverflowError(f"{argument} does not fit the head of a CBOR item")


def tag(number: int, content: bytes) -> bytes:
    return head(TAG, number) + content


def byte_string(content: bytes) -> bytes:
    return head(BYTES, len(content)) + content


def text(content: str) -> bytes:
    encoded = content.encode()
    return head(TEXT, len(encoded)) + encoded


def encode_name(name: str, most: int, what: str) -> bytes:
    """Checks a name that a caller gives, and encodes it as UTF-8."""
    if not isinstance(name, str):
        raise Unsupported(f"{what}: expected text, found {type(name).__name__}")
    try:
        encoded = name.encode()
    except UnicodeEncodeError as error:
        raise Unsupported(f"{what} is not valid Unicode: {error}") from None
    if len(encoded) > most:
        raise Unsupported(f"{what} is longer than {most} bytes")
    return encoded


def text_or_null(content: str | None) -> bytes:
    return NULL if content is None else text(content)


def array(items: Sequence[bytes]) -> bytes:
    return head(ARRAY, len(items)) + b"".join(items)


class Items:
    """Reads items in memory, one after the other. If not `strict`, heads need not be in their shortest form."""

    def __init__(self, data: bytes, offset: int, cut: type[Error] = Damaged, *, strict: bool = False) -> None:
        self.data = data
        self.at = 0
        #: The position of `data` in the archive, for errors.
        self.offset = offset
        #: The error if `data` ends too early.
        self.cut = cut
        self.strict = strict

    def damaged(self, message: str, at: int | None = None) -> Damaged:
        return Damaged(message, offset=self.offset + (self.at if at is None else at))

    def take(self, length: int, what: str) -> bytes:
        if length > len(self.data) - self.at:
            left = len(self.data) - self.at
            message = f"{what}: expected {length} bytes, found {left}"
            raise self.cut(message, offset=self.offset + self.at)
        self.at += length
        return self.data[self.at - length : self.at]

    def any_head(self, what: str) -> tuple[int, int | None]:
        """Major type and argument, which is `None` for an indefinite length."""
        start = self.at
        if start >= len(self.data):
            self.take(1, what)
        first = self.data[start]
        self.at = start + 1
        major, info = first >> 5, first & 31
        if info < 24:
            return major, info
        if info < 28:
            argument = int.from_bytes(self.take(1 << info - 24, what), "big")
            if self.strict and argument < _LEAST[info - 24] and (major != SIMPLE or info == 24):
                raise self.damaged(f"{what}: expected the shortest head", start)
            return major, argument
        if info == 31 and major not in (UNSIGNED, NEGATIVE, TAG):
            return major, None
        raise self.damaged(f"{what}: no CBOR item starts with the byte 0x{first:02x}", start)

    def definite(self, major: int, what: str) -> int:
        """The argument of a head of this type."""
        start = self.at
        # Most heads have one byte.
        if start < len(self.data):
            first = self.data[start]
            if first >> 5 == major and first & 31 < 24:
                self.at = start + 1
                return first & 31
        found, argument = self.any_head(what)
        if found != major:
            raise self.damaged(f"{what}: expected {_NAMES[major]}, found {_NAMES[found]}", start)
        if argument is None:
            raise self.damaged(f"{what}: expected {_NAMES[major]} of definite length", start)
        return argument

    def is_next(self, major: int) -> bool:
        """Whether the next item has this type."""
        return self.at < len(self.data) and self.data[self.at] >> 5 == major

    def count(self, what: str) -> int:
        """The length of an array. Each element takes at least a byte, so the length is bounded by the input."""
        start = self.at
        count = self.definite(ARRAY, what)
        if count > len(self.data) - self.at:
            raise self.damaged(f"{what}: an array of {count} elements is longer than the input", start)
        return count

    def take_null(self) -> bool:
        """Skips a null, if it is next."""
        if self.data[self.at : self.at + 1] != NULL:
            return False
        self.at += 1
        return True

    def text_or_null(self, what: str) -> str | None:
        if self.take_null():
            return None
        length = self.definite(TEXT, what)
        start = self.at
        try:
            return self.take(length, what).decode()
        except UnicodeDecodeError:
            raise self.damaged(f"{what}: not UTF-8", start) from None

    def name(self, what: str) -> str:
        """The name of a codec or of a hash function."""
        start = self.at
        length = self.definite(TEXT, what)
        if not 1 <= length <= MAX_NAME:
            raise self.damaged(f"expected {what} of 1 to {MAX_NAME} bytes, found {length}", start)
        start = self.at
        try:
            return self.take(length, what).decode()
        except UnicodeDecodeError:
            raise self.damaged(f"{what}: not UTF-8", start) from None

    def skip(self, what: str, max_depth: int) -> None:
        """Skips an item, of which all lengths must be definite. This is not recursive."""
        # How many items are missing of each array, map and tag around the next item.
        left = [1]
        while left:
            if not left[-1]:
                left.pop()
                continue
            left[-1] -= 1
            start = self.at
            major, argument = self.any_head(what)
            if argument is None:
                raise self.damaged(f"{what}: expected a definite length", start)
            if major in (BYTES, TEXT):
                content, at = self.take(argument, what), self.at - argument
                try:
                    content.decode() if major == TEXT else None
                except UnicodeDecodeError as error:
                    raise self.damaged(f"{what}: text is not UTF-8", at + error.start) from None
            elif major in (ARRAY, MAP, TAG):
                if len(left) > max_depth:
                    raise self.damaged(f"{what}: nested deeper than {max_depth} levels", start)
                left.append({ARRAY: argument, MAP: 2 * argument, TAG: 1}[major])
            elif major == SIMPLE and self.data[start] == 0xF8 and argument < 32:
                raise self.damaged(f"{what}: the simple value {argument} in two bytes", start)

    def end(self, what: str) -> None:
        if self.at != len(self.data):
            raise self.damaged(f"{what}: {len(self.data) - self.at} unexpected bytes after it")
