"""Knows files of other formats by their first bytes, for the error about what is no archive."""

from __future__ import annotations

from .errors import Damaged

#: How many of the first bytes tell.
MOST = 64
# The first bytes of files, and what `tenarc convert` reads of them.
_CONVERTED = (
    (b"PK\x03\x04", "a zip file, such as npz files and those of PyTorch"),
    (b"\x93NUMPY", "an npy file"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    (b"GGUF", "a GGUF file"),
    (b"PAR1", "a Parquet file"),
    (b"ARROW1", "an Arrow file"),
    *((b"\x80" + bytes([version]), "a pickle, such as older files of PyTorch") for version in range(2, 6)),
)
_COMPRESSED = ((b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"\xfd7zXZ\0", "xz"))
# The longest header that safetensors allows.
_LONGEST_HEADER = 100_000_000


def no_archive(start: bytes, at: int = 0) -> Damaged:
    """The error for a file that starts with other bytes than an archive. `at`: the first of them."""
    what = "it starts with other bytes"
    text = start[:MOST].decode("latin-1")
    if text and text.isascii() and all(character.isprintable() or character.isspace() for character in text):
        # Such as a web page, the error of a server, or a pointer of Git LFS.
        what = f"it is a text that starts with {text!r}"
    found = next((name for magic, name in _CONVERTED if start.startswith(magic)), None)
    if start[8:9] == b"{" and 2 <= int.from_bytes(start[:8], "little") <= _LONGEST_HEADER:
        found = "a safetensors file"
    packed = next((name for magic, name in _COMPRESSED if start.startswith(magic)), None)
    if found is not None:
        what = f"it starts as {found}; the command `tenarc convert` makes archives of these"
    elif packed is not None:
        what = f"it is compressed with {packed}; decompress it first"
    return Damaged(f"not a tenarc archive: {what}", offset=at)
