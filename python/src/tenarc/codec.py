"""The codecs of compressed buffers (SPEC 5.11), and the libraries for them.

A library is imported when it is needed. Without it, everything but the buffers of its codec can be read.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

from .dtypes import Payload
from .errors import Unsupported, Version
from .planes import BadChunk, Compress, Decompress

MAX_WINDOW = 8 << 20
_MAX_WINDOW_LOG = 23
_MAGIC = b"\x28\xb5\x2f\xfd"
#: Higher levels take more time, and on weights gain nothing.
DEFAULT_LEVEL = 1
_LEVELS = range(-(1 << 17), 23)
#: From this level on, the library would use larger windows than an archive may have.
_LARGE_WINDOWS = 20


class Library(NamedTuple):
    """A library for a codec."""

    #: Makes a function that compresses planes with a level.
    compressor: Callable[[int], Compress]
    decompress: Decompress


def _import(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


#: The libraries that were imported, by their codecs.
_libraries: dict[str, Library] = {}


def _library(codec: str) -> Library | None:
    """The library for a codec; `None` if none is installed."""
    # What is missing is looked for again each time, as it may have been installed meanwhile.
    if codec not in _libraries:
        for module, library in _MODULES[codec]:
            found = _import(module)
            if found is not None:
                _libraries[codec] = library(found)
                break
    return _libraries.get(codec)


#: What to install for each codec.
_PACKAGES = {"zstd": "zstandard", "lz4": "lz4"}


def is_known(codec: str) -> bool:
    """Whether this package knows a codec, with or without its library."""
    return codec in _PACKAGES


def _advice(codec: str) -> str:
    return f"install the package {_PACKAGES[codec]}, or tenarc[{codec}]"


def decompressor(codec: str, what: str, offset: int | None = None) -> Decompress:
    """What decompresses the planes of a codec.

    `Version` if the codec is unknown, `Unsupported` if its library is missing. The message starts with `what`.
    """
    if not is_known(codec):
        raise Version(f"{what}: this version of tenarc does not know the codec {codec!r}", offset=offset)
    library = _library(codec)
    if library is None:
        raise Unsupported(f"{what}: reading the codec {codec} needs a library: {_advice(codec)}", offset=offset)
    return library.decompress


def compressor(codec: str, level: int) -> Compress:
    """What compresses planes. `Unsupported` if the codec or the level is unknown, or the library is missing."""
    if not is_known(codec):
        raise Unsupported(f"expected the codec zstd or lz4, found {codec!r:.40}")
    if codec == "zstd" and level not in _LEVELS:
        raise Unsupported(f"expected a level of zstd from {_LEVELS[0]} to {_LEVELS[-1]}, found {level}")
    library = _library(codec)
    if library is None:
        raise Unsupported(f"writing the codec {codec} needs a library: {_advice(codec)}")
    return library.compressor(level)


def _lz4(block: Any) -> Library:
    def compressor(_: int) -> Compress:
        return lambda plane: bytes(block.compress(plane.data, store_size=False))

    def decompress(content: memoryview, length: int) -> bytes:
        return bytes(block.decompress(content, uncompressed_size=length))

    return Library(compressor, decompress)


def _zstandard(library: Any) -> Library:
    """The package `zstandard`."""

    def compressor(level: int) -> Compress:
        window = {"window_log": _MAX_WINDOW_LOG} if level >= _LARGE_WINDOWS else {}

        def compress(plane: Payload) -> bytes:
            parameters = library.ZstdCompressionParameters.from_level(
                level, source_size=plane.nbytes, write_checksum=False, write_dict_id=False, **window
            )
            return bytes(library.ZstdCompressor(compression_params=parameters).compress(plane.data))

        return compress

    def decompress(frame: memoryview, length: int) -> bytes:
        _check_frame(frame, length)
        decoder = library.ZstdDecompressor(max_window_size=MAX_WINDOW)
        return bytes(decoder.decompress(frame, max_output_size=length, allow_extra_data=False))

    return Library(compressor, decompress)


def _zstd_of_python(library: Any) -> Library:
    """The module `compression.zstd` of Python 3.14."""

    def compressor(level: int) -> Compress:
        names = library.CompressionParameter
        options = {names.compression_level: level, names.checksum_flag: 0, names.dict_id_flag: 0}
        if level >= _LARGE_WINDOWS:
            options[names.window_log] = _MAX_WINDOW_LOG
        return lambda plane: bytes(library.compress(plane.data, options=options))

    def decompress(frame: memoryview, length: int) -> bytes:
        _check_frame(frame, length)
        decoder = library.ZstdDecompressor(
            options={library.DecompressionParameter.window_log_max: _MAX_WINDOW_LOG}
        )
        found = bytes(decoder.decompress(frame, max_length=length))
        # An empty last block is not read while there is no room for more.
        more = b"" if decoder.eof else decoder.decompress(b"", max_length=1)
        if more or not decoder.eof or decoder.unused_data:
            raise BadChunk(0, f"the zstd frame does not end after {length} bytes of content")
        return found

    return Library(compressor, decompress)


#: The modules for each codec, best first.
_MODULES: dict[str, tuple[tuple[str, Callable[[Any], Library]], ...]] = {
    "zstd": (("compression.zstd", _zstd_of_python), ("zstandard", _zstandard)),
    "lz4": (("lz4.block", _lz4),),
}


def _check_frame(frame: memoryview, length: int) -> None:
    """Checks the head of a zstd frame (RFC 8878, 3.1.1.1) whose content must have `length` bytes."""
    if frame[:4] != _MAGIC or len(frame) < 6:
        raise BadChunk(0, "expected a zstd frame")
    flags = frame[4]
    is_single, size_flag = flags >> 5 & 1, flags >> 6
    if flags & 8:
        raise BadChunk(4, "a reserved bit is set in the head of the zstd frame")
    if flags & 4:
        raise BadChunk(4, "the zstd frame has a checksum, which is not allowed")
    if flags & 3:
        raise BadChunk(4, "the zstd frame needs a dictionary, which is not allowed")
    at = 5 if is_single else 6
    width = (is_single, 2, 4, 8)[size_flag]
    if len(frame) < at + width:
        raise BadChunk(len(frame), "the head of the zstd frame is cut off")
    if width:
        content = int.from_bytes(frame[at : at + width], "little") + 256 * (width == 2)
        if content != length:
            raise BadChunk(at, f"expected a zstd frame with {length} bytes of content, found {content}")
    if is_single:
        window = length
    else:
        base = 1 << 10 + (frame[5] >> 3)
        window = base + base // 8 * (frame[5] & 7)
    if window > MAX_WINDOW:
        raise BadChunk(5, f"the zstd frame needs a window of {window} bytes, more than {MAX_WINDOW}")
