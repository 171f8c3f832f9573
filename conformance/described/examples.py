"""The examples of SPEC.md."""

from .build import *
from .files import *

ELEMENTS = bytes.fromhex("0000003f000080bf")
VALUE = v_map(name="two", bias=v_tensor("f32", [2], ELEMENTS))


def metadata() -> bytes:
    return fields(name=text("two"), bias=buffer_tensor("f32", [2], 0))


def describe(files: Files) -> None:
    made = Archive()
    made.segment("layer", metadata(), ELEMENTS, alignment=32, chunk=1 << 20, value=VALUE, tensors=[["bias", "f32", [2]]], paths=[["name", "two"]])
    made.end()
    files.archive("example-archive", made, "The archive of the worked example.", "")

    cut = Archive()
    cut.bytes = made.bytes[:-1]
    files.bad("example-torn", cut, "The archive of the worked example without its last byte: no end mark is committed.", "", True, open=torn(1))

    small = tensor([2, 3], typed("u16", 1, 2, 3, 4, 5, 6))
    files.message("example-tensor", small, v_tensor("u16", [2, 3], raw("u16", 1, 2, 3, 4, 5, 6)), "The example of a tensor.", "")

    pieces = parts(metadata(), ELEMENTS, name="layer", alignment=32, chunk=1 << 20)
    files.parts("example-parts", pieces, "The parts of the worked example.", "", value=VALUE, tensors=[["bias", "f32", [2]]])
