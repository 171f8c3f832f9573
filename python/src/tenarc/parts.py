"""Parts: a value as metadata and separate buffers, for transports that send several pieces (SPEC 6)."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar, overload

import numpy as np

from .chunks import DEFAULT_CHUNK, Hashes, hashes_of
from .convert import convert
from .decode import value_of
from .dtypes import Payload
from .encode import encode
from .errors import Damaged, Torn
from .options import DEFAULT_LIMITS, Limits, Reading, SaveOptions
from .segment import (
    HASH_ITEM,
    HEADER,
    MAX_RECORD_HEAD,
    Header,
    check_name,
    hash_list,
    opened,
    read_hash_list,
    record_length,
)

T = TypeVar("T")


@dataclass(frozen=True)
class Parts:
    """The metadata of a value, and its buffers, which are views of the arrays in the value.

    Iterating gives the metadata, then the buffers: send them in this order, for example as frames of a ZeroMQ
    message. `pickle` with protocol 5 passes the buffers out of band, without a copy.
    """

    metadata: bytes
    buffers: list[memoryview]

    def __repr__(self) -> str:
        total = sum(buffer.nbytes for buffer in self.buffers)
        count = f"{len(self.buffers):,} buffer" + "s" * (len(self.buffers) != 1)
        return f"<tenarc.Parts: {len(self.metadata):,} bytes of metadata, {count} of {total:,} bytes>"

    def __iter__(self) -> Iterator[bytes | memoryview]:
        yield self.metadata
        yield from self.buffers

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        if protocol >= 5:
            return _unpickled, (self.metadata, [pickle.PickleBuffer(b) for b in self.buffers])
        return _unpickled, (self.metadata, [bytes(buffer) for buffer in self.buffers])


def _unpickled(metadata: bytes, buffers: Iterable[Any]) -> Parts:
    return Parts(metadata, [memoryview(buffer).cast("B") for buffer in buffers])


def to_parts(
    value: Any,
    *,
    name: str | None = None,
    alignment: int = 256,
    inline_below: int = 2048,
    checksums: bool = True,
    dedup: bool = False,
    chunk_len: int = DEFAULT_CHUNK,
) -> Parts:
    """Splits a value into metadata and buffers.

    Contiguous arrays are not copied: do not change them before the buffers are sent. `alignment` tells the
    receiver how to align its memory. The other options are those of `Writer`.
    """
    check_name(name)
    options = SaveOptions(alignment, inline_below, checksums, dedup, chunk_len)
    metadata, payloads, _ = encode(value, options)
    lengths = tuple(payload.nbytes for payload in payloads)
    item = Header(name, alignment, checksums, chunk_len, lengths, metadata).write(0)
    buffers = [payload.data for payload in payloads]
    if buffers:
        hashes = [hashes_of(buffer, chunk_len) for buffer in buffers if checksums]
        item += hash_list(b"".join(hashes), item[1 - HASH_ITEM :])
    return Parts(item, buffers)


def buffer_lengths(metadata: bytes | bytearray | memoryview) -> list[int]:
    """The lengths of the buffers that belong to the metadata, so that a receiver can allocate memory for them."""
    return list(_Received(bytes(memoryview(metadata))).header.lengths)


@overload
def from_parts(
    metadata: bytes | bytearray | memoryview,
    buffers: Iterable[Any],
    *,
    cls: type[T],
    copy: bool = ...,
    verify: bool = ...,
    tables: bool = ...,
    numbers: bool = ...,
    limits: Limits = ...,
) -> T: ...
@overload
def from_parts(
    metadata: bytes | bytearray | memoryview,
    buffers: Iterable[Any],
    *,
    cls: Any = None,
    copy: bool = ...,
    verify: bool = ...,
    tables: bool = ...,
    numbers: bool = ...,
    limits: Limits = ...,
) -> Any: ...
def from_parts(
    metadata: bytes | bytearray | memoryview,
    buffers: Iterable[Any],
    *,
    cls: Any = None,
    copy: bool = False,
    verify: bool = True,
    tables: bool = False,
    numbers: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> Any:
    """Decodes parts. The buffers can be any objects that `memoryview` accepts.

    Arrays are views of the buffers, and writable if the buffer is. With `copy`, arrays have memory of their own.
    Without `verify`, the checksums of the buffers are not checked. With `cls` the value is converted, as by
    `load`. `tables` and `numbers` are those of `load` too.
    """
    received = _Received(bytes(memoryview(metadata)))
    received.header.check_extensions(0)
    received.take(buffers, verify)
    metadata, at = received.header.metadata, received.metadata_at
    reading = Reading.of(cls, tables=tables, numbers=numbers)
    value = value_of(metadata, at, received, owned=copy, reading=reading, limits=limits)
    return convert(value, cls)


class _Received:
    """Metadata of parts, and the buffers that came with it."""

    def __init__(self, metadata: bytes) -> None:
        _, total = record_length(metadata[:MAX_RECORD_HEAD], 0)
        if total > len(metadata):
            raise Torn(f"expected {total} bytes of metadata, found {len(metadata)}", offset=len(metadata))
        item, behind = metadata[:total], metadata[total:]
        kind, fields = opened(item, 0)
        if kind != HEADER:
            raise Damaged("expected the metadata of parts", offset=0)
        self.header, self.metadata_at = Header.read(fields)
        if self.header.packed:
            raise Damaged("parts have no compressed buffers, but their metadata describes one", offset=0)
        if self.header.elsewhere:
            raise Damaged("parts have no buffers elsewhere, but their metadata describes one", offset=0)
        wanted = self.header.hashes_length()
        if len(behind) != wanted:
            text = f"expected {wanted} bytes of hashes, found {len(behind)}"
            raise Damaged(text, offset=total)
        self._hashes: Hashes | None = None
        if wanted:
            seed = item[1 - HASH_ITEM :]
            self._hashes = read_hash_list(behind, self.header, seed, total, "the metadata")
        self._payloads: list[Payload] = []

    def take(self, buffers: Iterable[Any], verify: bool) -> None:
        payloads: list[Payload] = []
        for buffer in buffers:
            view = memoryview(buffer)
            payloads.append(np.frombuffer(view, np.uint8) if view.nbytes else np.empty(0, np.uint8))
        lengths = self.header.lengths
        if len(payloads) != len(lengths):
            raise Damaged(f"expected {len(lengths)} buffers, found {len(payloads)}")
        for number, (payload, length) in enumerate(zip(payloads, lengths, strict=True)):
            if payload.nbytes != length:
                text = f"buffer {number}: expected {length} bytes, found {payload.nbytes}"
                raise Damaged(text)
        if verify and self._hashes is not None:
            if self.header.algorithm is not None and lengths:
                raise self.header.unknown_check()
            for number, payload in enumerate(payloads):
                self._hashes.check(number, hashes_of(payload.data, self.header.chunk_len), None)
        self._payloads = payloads

    @property
    def input(self) -> tuple[int, int]:
        # No buffer of parts is compressed.
        return len(self.header.metadata) + sum(self.header.lengths), 0

    def payload(self, number: int, owned: bool) -> Payload:
        payload = self._payloads[number]
        return payload.copy() if owned else payload
