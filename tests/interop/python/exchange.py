"""Exchanges parts: what Python writes for tenarc to read, and reads of tenarc's.

    exchange.py spec FILE    checks the example in SPEC.md, and refuses it with any bit changed
    exchange.py read DIR     reads what tenarc wrote and compares it with the manifest beside it
    exchange.py write DIR    writes parts and a manifest for tenarc to read, and broken ones
    exchange.py broken DIR   refuses the broken ones

The form of manifests is described in ../src/parts.rs.
"""

import io
import json
import math
import sys
from pathlib import Path

import numpy as np

from archive import Damaged
from archives import Tally, chunk_values, known_struct, require, same, values, worked_example
from broken import cases
from check import Mismatch, Tensor, compare, describe
from parts import join, pieces, read_from, split


def read_both(received):
    """The parts of pieces, once a stream and a second writer agree on them."""
    parts = join(received)
    stream = io.BytesIO(b"".join(received) + b"behind")
    streamed = read_from(stream)
    require(stream.read() == b"behind", "the stream was left at another place")
    require(streamed[:6] == parts[:6], "a stream gives others")
    require(pieces(*parts[:6]) == received, "written again, they are others")
    return parts


def refused(received):
    try:
        join(received)
    except Damaged:
        return
    raise Mismatch("read as if nothing were wrong")


def refused_stream(data):
    try:
        read_from(io.BytesIO(data))
    except Damaged:
        return
    raise Mismatch("read from a stream as if nothing were wrong")


def spec(file):
    """The worked example, and all that differ from it in one bit or are cut."""
    tally = Tally()
    metadata = worked_example(file, "6")
    buffer = bytes.fromhex("0000003f 000080bf")
    bias = np.array([0.5, -1], "<f4")

    def written():
        value = {"name": "two", "bias": bias}
        made = split("layer", value, alignment=32, inline_below=0)
        require(made == [metadata, buffer], [piece.hex() for piece in made])

    def read():
        parts = read_both([metadata, buffer])
        require((parts.name, parts.alignment) == ("layer", 32), "another name or alignment")
        same(parts.value, {"name": "two", "bias": Tensor("f32", bias, "C")})

    tally.check("example of parts, written", written)
    tally.check("example of parts, read", read)
    whole = metadata + buffer
    for bit in range(len(whole) * 8):
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        changed = bytes(changed)
        split_up = [changed[: len(metadata)], changed[len(metadata) :]]
        tally.check(f"example of parts, changed in bit {bit}", lambda: refused(split_up))
        tally.check(f"the same, bit {bit}, as a stream", lambda: refused_stream(changed))
    for length in range(len(whole)):
        cut = whole[:length]
        split_up = [cut[: len(metadata)], cut[len(metadata) :]]
        tally.check(f"example of parts, cut to {length}", lambda: refused(split_up))
        tally.check(f"the same, cut to {length}, as a stream", lambda: refused_stream(cut))
    return tally


def read(directory):
    manifest = json.loads((directory / "manifest.json").read_text())
    tally = Tally()
    for entry in manifest["streams"]:
        file = entry["file"]
        data = (directory / file).read_bytes()
        stream, at = io.BytesIO(data), 0
        for want in entry["values"]:
            received = []
            for length in want["pieces"]:
                received.append(data[at : at + length])
                at += length

            def matches():
                parts = read_both(received)
                require(parts.name == want["name"], f"name {parts.name!r}")
                require(parts.alignment == entry["alignment"], "another alignment")
                compare(parts.value, want["value"])
                require(read_from(stream)[:6] == parts[:6], "the stream gives others")

            tally.check(f"{file}, {want['title']}", matches)
        tally.check(f"{file}, its end", lambda: require(stream.read() == data[at:] == b"", "more"))
    return tally


# Options of the parts in each file.
STREAMS = {
    "default": {},
    "all-in-buffers": {"inline_below": 0, "alignment": 8},
    "aligned-to-65536": {"inline_below": 3, "alignment": 65536},
    "inline": {"inline_below": math.inf},
    "unchecked": {"inline_below": 0, "checked": False},
    "tied": {"inline_below": 0, "tied": True, "alignment": 64},
    "aligned-to-16": {"inline_below": 16, "alignment": 16},
    # A writer numbers buffers by their first references, a reader takes any order.
    "backwards": {"inline_below": 0, "backwards": True, "alignment": 32},
}


def write(directory):
    directory.mkdir(parents=True, exist_ok=True)
    everything = [("record", known_struct())]
    # The paddings that many lengths of metadata are for are none of parts.
    everything += [(title, value) for title, value in values() if "padding" not in title]
    streams = []

    def add(file, entries, **options):
        out, described = b"", []
        for number, (title, value) in enumerate(entries):
            name = title if number % 2 else None
            made = split(name, value, **options)
            out += b"".join(made)
            about = {"title": title, "name": name, "pieces": list(map(len, made))}
            described.append({**about, "value": describe(value)})
            if title == "record":
                known = {key: item for key, item in value.items() if key != "unknown"}
                described[-1] |= {"as": "record", "known": describe(known)}
        (directory / f"{file}.parts").write_bytes(out)
        alignment = options.get("alignment", 256)
        streams.append({"file": f"{file}.parts", "alignment": alignment, "values": described})

    for file, options in STREAMS.items():
        add(file, everything, **options)
    add("chunks", list(chunk_values(1 << 16)), inline_below=0, chunk=1 << 16)
    add("chunks-unchecked", list(chunk_values(1 << 16)), checked=False, chunk=1 << 16)
    broken = [
        {"name": name, "sound": sound, "pieces": [piece.hex() for piece in made]}
        for name, sound, made in cases()
    ]
    manifest = {"writer": "Python", "streams": streams, "broken": broken}
    (directory / "manifest.json").write_text(json.dumps(manifest))


def broken(directory):
    tally = Tally()
    for case in json.loads((directory / "manifest.json").read_text())["broken"]:
        received = list(map(bytes.fromhex, case["pieces"]))
        check = join if case["sound"] else refused
        tally.check(case["name"], lambda: check(received))
    return tally


def main():
    command, place = sys.argv[1], Path(sys.argv[2])
    if command == "write":
        return write(place)
    tally = {"spec": spec, "read": read, "broken": broken}[command](place)
    # Read by the script that adds up all steps.
    print(f"passed={tally.passed} failed={tally.failed}")
    sys.exit(tally.failed > 0)


if __name__ == "__main__":
    main()
