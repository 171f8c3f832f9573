"""CBOR items by hand, for forms that no encoder writes."""

break_ = b"\xff"


def head(major, argument, width=None):
    """A head: of the shortest form, in so many bytes, or for an indefinite length (None)."""
    if argument is None:
        return bytes([major << 5 | 31])
    if width is None:
        if argument < 24:
            return bytes([major << 5 | argument])
        width = next(width for width in (1, 2, 4, 8) if argument < 1 << 8 * width)
    return bytes([major << 5 | 23 + width.bit_length()]) + argument.to_bytes(width, "big")


def tag(number, content):
    return head(6, number) + content


def bytes_(content):
    return head(2, len(content)) + content


def array(items, definite=True):
    end = b"" if definite else break_
    return head(4, len(items) if definite else None) + b"".join(items) + end


def chunks(major, *parts):
    """A string of indefinite length."""
    return head(major, None) + b"".join(head(major, len(part)) + part for part in parts) + break_
