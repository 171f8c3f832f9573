"""CBOR items by their heads (RFC 8949, section 3), for what is not metadata."""

from __future__ import annotations

from collections.abc import Sequence

from .errors import Damaged, Error, Unsupported

UNSIGNED, NEGATIVE, BYTES, TEXT, ARRAY, MAP, TAG, SIMPLE = range(8)
NULL = b"\xf6"


def four_letters(letters: str) -> int:
    """The number of a tag of this format."""
    return int.from_bytes(letters.encode(), "big")


def head(major: int, argument: int) -> bytes:
    """The shortest head."""
    if argument < 24:
        return bytes((major << 5 | argument,))
    for info, width in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if argument < 1 << 8 * width:
            return bytes((major << 5 | info,)) + argument.to_bytes(width, "big")
    raise OverflowError(f"no head holds {argument}")


def tag(number: int, content: bytes) -> bytes:
    return head(TAG, number) + content


def byte_string(content: bytes) -> bytes:
    return head(BYTES, len(content)) + content


def text(content: str) -> bytes:
    encoded = content.encode()
    return head(TEXT, len(encoded)) + encoded


def encode_name(name: str, most: int, what: str) -> bytes:
    """A name that a caller gives, as UTF-8."""
    if not isinstance(name, str):
        raise Unsupported(f"{what}: expected text, found {type(name).__name__}")
    try:
        encoded = name.encode()
    except UnicodeEncodeError as error:
        raise Unsupported(f"{what} that is not Unicode: {error}") from None
    if len(encoded) > most:
        raise Unsupported(f"{what} of more than {most} bytes")
    return encoded


def text_or_null(content: str | None) -> bytes:
    return NULL if content is None else text(content)


def array(items: Sequence[bytes]) -> bytes:
    return head(ARRAY, len(items)) + b"".join(items)


class Items:
    """Items in memory, read one after the other; heads may be longer than they need be."""

    def __init__(self, data: bytes, offset: int, cut: type[Error] = Damaged) -> None:
        self.data = data
        self.at = 0
        #: Where `data` begins in the archive, for errors.
        self.offset = offset
        #: What it is when `data` ends too early.
        self.cut = cut

    def damaged(self, message: str, at: int | None = None) -> Damaged:
        return Damaged(message, offset=self.offset + (self.at if at is None else at))

    def take(self, length: int, what: str) -> bytes:
        if length > len(self.data) - self.at:
            left = len(self.data) - self.at
            message = f"{what}: expected {length} bytes, {left} are left"
            raise self.cut(message, offset=self.offset + self.at)
        self.at += length
        return self.data[self.at - length : self.at]

    def any_head(self, what: str) -> tuple[int, int | None]:
        """Major type and argument, which is `None` for an indefinite length."""
        start = self.at
        first = self.take(1, what)[0]
        major, info = first >> 5, first & 31
        if info < 24:
            return major, info
        if info < 28:
            return major, int.from_bytes(self.take(1 << info - 24, what), "big")
        if info == 31 and major not in (UNSIGNED, NEGATIVE, TAG):
            return major, None
        raise self.damaged(f"{what}: 0x{first:02x} starts no item", start)

    def definite(self, major: int, what: str) -> int:
        """The argument of a head of this type."""
        start = self.at
        found, argument = self.any_head(what)
        if found != major or argument is None:
            raise self.damaged(f"{what}: found an item of another kind", start)
        return argument

    def count(self, what: str) -> int:
        """The length of an array. Each element takes a byte, which bounds it."""
        start = self.at
        count = self.definite(ARRAY, what)
        if count > len(self.data) - self.at:
            raise self.damaged(f"{what}: {count} elements do not fit", start)
        return count

    def text_or_null(self, what: str) -> str | None:
        if self.data[self.at : self.at + 1] == NULL:
            self.at += 1
            return None
        length = self.definite(TEXT, what)
        start = self.at
        try:
            return self.take(length, what).decode()
        except UnicodeDecodeError:
            raise self.damaged(f"{what}: not UTF-8", start) from None

    def end(self, what: str) -> None:
        if self.at != len(self.data):
            raise self.damaged(f"{what}: {len(self.data) - self.at} bytes behind it")
