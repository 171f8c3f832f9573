"""Values as metadata and buffers a second time, from section 5 of SPEC.md alone.

Archives and parts hold values in this form. As in `archive.py`, nothing is a translation of the
crate's code.
"""

import math
from collections.abc import Mapping

import cbor2
import numpy as np
from cbor2 import CBORTag

from check import (
    COLUMN_MAJOR,
    COMPLEX,
    COMPLEX_TAG,
    NAMED_TAG,
    ROW_MAJOR,
    TYPED,
    Mismatch,
    Numbers,
    Tensor,
    as_tensor,
    is_typed,
    little,
    typed,
    typed_tag,
)
from heads import array, bytes_, head, tag

BUFFER = int.from_bytes(b"TBUF", "big")

# What numpy sees in an element; void where it has no such number.
NUMPY = {name: "<" + entry[-1] for name, entry in {**TYPED, **COMPLEX}.items()}
NUMPY |= {"bool": "?", "f128": "V16", "bf16": "V2", "f8_e5m2": "V1", "f8_e4m3": "V1"}
NUMPY |= {"f8_e8m0": "V1", "f8_e5m2fnuz": "V1", "f8_e4m3fnuz": "V1"}
PACKED_BITS = {"f6_e2m3": 6, "f6_e3m2": 6, "f4": 4}


# Reading


class Resolver:
    """Puts tensors, sequences and byte strings in the place of references and tags."""

    def __init__(self, buffers):
        self.buffers, self.used = buffers, set()

    def whole(self, value):
        value = self.value(value)
        if len(self.used) != len(self.buffers):
            raise Mismatch("a buffer that nothing refers to")
        return value

    def value(self, value):
        if isinstance(value, (list, tuple)):
            return type(value)(map(self.value, value))
        # cbor2 has frozen maps inside of tags.
        if isinstance(value, Mapping):
            return {self.value(key): self.value(item) for key, item in value.items()}
        if not isinstance(value, CBORTag):
            return value
        if value.tag == BUFFER:
            return self.reference(value.value)
        if value.tag in (ROW_MAJOR, COLUMN_MAJOR):
            shape, flat = value.value
            if isinstance(flat, CBORTag) and flat.tag == BUFFER:
                raise Mismatch("a reference in the place of a tensor's elements")
            order = "C" if value.tag == ROW_MAJOR else "F"
            numbers = self.value(flat)
            return shaped(numbers.dtype, shape, order, numbers.values)
        if value.tag == NAMED_TAG:
            return tensor(*value.value)
        if is_typed(value):
            parts = value.value.value if value.tag == COMPLEX_TAG else value.value
            if type(parts) is not bytes:
                raise Mismatch(f"a typed array of {parts!r:.100}")
            return Numbers(*typed(value))
        return CBORTag(value.tag, self.value(value.value))

    def reference(self, fields):
        if not isinstance(fields, (list, tuple)) or len(fields) not in (1, 2, 4):
            raise Mismatch("a reference that is not one, two or four fields")
        *about, number = fields
        if type(number) is not int or not 0 <= number < len(self.buffers):
            raise Mismatch(f"a reference to buffer {number!r} of {len(self.buffers)}")
        self.used.add(number)
        payload = self.buffers[number]
        if not about:
            return payload
        if len(about) == 3:
            return tensor(*about, payload)
        (dtype,) = about
        if dtype not in TYPED:
            raise Mismatch(f"a sequence of {dtype!r}")
        return Numbers(dtype, np.frombuffer(payload, NUMPY[dtype]))


def tensor(dtype, shape, order, payload):
    """A tensor over its payload, which must be what dtype and shape ask for."""
    if type(dtype) is not str or len(dtype.encode()) > 256 or order not in ("C", "F"):
        raise Mismatch(f"a tensor of dtype {dtype!r}, order {order!r}")
    if type(payload) is not bytes:
        raise Mismatch(f"a tensor over {payload!r:.100}")
    dims = shape if isinstance(shape, (list, tuple)) else [None]
    if len(dims) > 64 or any(type(dim) is not int or dim < 0 for dim in dims):
        raise Mismatch(f"a tensor of shape {shape!r}")
    if dtype in PACKED_BITS:
        if math.prod(shape) * PACKED_BITS[dtype] != len(payload) * 8:
            raise Mismatch(f"{len(payload)} bytes for {dtype} of shape {shape}")
        return shaped_bytes(dtype, shape, order, payload)
    if dtype not in NUMPY:
        return shaped_bytes(dtype, shape, order, payload)
    if dtype == "bool" and payload.strip(b"\0\1"):
        raise Mismatch("a bool that is neither 0 nor 1")
    return shaped(dtype, shape, order, np.frombuffer(payload, NUMPY[dtype]))


def shaped(dtype, shape, order, flat):
    if math.prod(shape) != flat.size:
        raise Mismatch(f"{flat.nbytes} bytes for {dtype} of shape {shape}")
    return Tensor(dtype, flat.reshape(shape, order=order), order if len(shape) > 1 else "C")


def shaped_bytes(dtype, shape, order, payload):
    """Elements that are not whole bytes, or that nobody here knows, as voids of the last axis."""
    *outer, last = shape or [1]
    rows = math.prod(outer)
    if rows == 0 or last == 0 or len(payload) % rows:
        return Tensor(dtype, np.frombuffer(payload, "V1"), order)
    width = len(payload) // rows
    void = f"V{width // last}" if width % last == 0 and width else "V1"
    flat = np.frombuffer(payload, void)
    return Tensor(dtype, flat.reshape((*outer, -1), order=order), order if len(shape) > 1 else "C")


# Writing


class Encoder:
    """A value as metadata and buffers."""

    def __init__(self, inline_below=2048, tied=False, backwards=False):
        self.inline_below, self.tied, self.backwards = inline_below, tied, backwards
        self.buffers = []
        # The dtype of each buffer; None for a byte string.
        self.dtypes = []

    def whole(self, value):
        if self.backwards:
            # Metadata only says how many buffers there are once it is made.
            first = Encoder(self.inline_below, self.tied)
            first.whole(value)
            self.last = len(first.buffers) - 1
        metadata = self.value(value)
        return metadata, self.buffers[::-1] if self.backwards else self.buffers

    def reference(self, about, payload):
        """A reference to a buffer of this payload, or None where it belongs inline."""
        if not payload or len(payload) < self.inline_below:
            return None
        if self.tied and payload in self.buffers:
            number = self.buffers.index(payload)
        else:
            number = len(self.buffers)
            self.buffers.append(payload)
            self.dtypes.append(cbor2.loads(about[0]) if about else None)
        if self.backwards:
            number = self.last - number
        return tag(BUFFER, array([*about, head(0, number)]))

    def value(self, value):
        if isinstance(value, Tensor):
            return self.tensor(*value)
        if isinstance(value, Numbers):
            values = little(value.values)
            about = [cbor2.dumps(value.dtype)]
            # There are no references to complex numbers.
            found = self.reference(about, values.tobytes()) if value.dtype in TYPED else None
            return found or cbor2.dumps(typed_tag(values))
        if isinstance(value, np.ndarray):
            return self.tensor(*as_tensor(value))
        if isinstance(value, bytes):
            return self.reference([], value) or bytes_(value)
        if isinstance(value, (list, tuple)):
            return array(list(map(self.value, value)))
        if isinstance(value, dict):
            items = b"".join(self.value(part) for entry in value.items() for part in entry)
            return head(5, len(value)) + items
        if isinstance(value, CBORTag):
            return tag(value.tag, self.value(value.value))
        return cbor2.dumps(value)

    def tensor(self, dtype, values, order):
        values = little(values)
        shape = array([head(0, length) for length in values.shape])
        order = order if values.ndim > 1 else "C"
        payload = values.tobytes(order=order)
        about = [cbor2.dumps(dtype), shape, cbor2.dumps(order)]
        reference = self.reference(about, payload)
        if reference:
            return reference
        if dtype in NUMPY and dtype != "bool" and values.dtype.kind != "V" and values.size:
            flat = cbor2.dumps(typed_tag(np.frombuffer(payload, values.dtype)))
            return tag(COLUMN_MAJOR if order == "F" else ROW_MAJOR, array([shape, flat]))
        return tag(NAMED_TAG, array([*about, bytes_(payload)]))
