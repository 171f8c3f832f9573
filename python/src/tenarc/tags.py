"""The numbers of the CBOR tags in values (SPEC 1 to 5)."""

from __future__ import annotations

from . import dtypes
from .items import four_letters

BIGNUM, NEGATIVE_BIGNUM = 2, 3
EMBEDDED = 24
#: Tags that refer to values elsewhere in the input.
ELSEWHERE = (25, 29)
ROW_MAJOR, COLUMN_MAJOR = 40, 1040
COMPLEX = 43001
NAMED, SOME, REFERENCE, COLUMNS, TYPE = (four_letters(name) for name in ("TENS", "TSOM", "TBUF", "TCOL", "TTYP"))

#: The tags of tensors and sequences of numbers.
PAYLOADS = frozenset((ROW_MAJOR, COLUMN_MAJOR, NAMED, REFERENCE, COMPLEX, *dtypes.BY_TAG))
#: The tags with a meaning; a reader ignores all others (SPEC 4).
MEANINGS = PAYLOADS | {BIGNUM, NEGATIVE_BIGNUM, SOME, COLUMNS, *ELSEWHERE}
