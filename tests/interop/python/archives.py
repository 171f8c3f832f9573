"""Exchanges archives: what Python writes for tenarc to read, and reads of tenarc's.

    archives.py spec FILE     checks the example in SPEC.md, and refuses it with any bit changed
    archives.py golden DIR    reads the archives that stay as they are, and compares their values
    archives.py read DIR      reads what tenarc wrote and compares it with the manifest beside it
    archives.py write DIR     writes archives and a manifest for tenarc to read

The form of manifests is described in ../src/archives.rs.
"""

import json
import math
import re
import struct
import sys
from pathlib import Path

import cbor2
import numpy as np
from cbor2 import CBORTag

import check
from archive import (
    MIB,
    Damaged,
    Writer,
    archive_digest,
    digest_of,
    find_segments,
    read_archive,
)
from check import Mismatch, Numbers, Tensor, compare, describe, plain, samples
from compressed import length_of
from metadata import Resolver


def rewrite(segments, ends):
    """What a writer makes of what a reader found: the same archive, as there is only one."""
    out = Writer()
    for number in range(len(segments) + 1):
        for _ in range(ends.count(number)):
            out.end()
        if number < len(segments):
            out.segment(*segments[number][1:8])
    return bytes(out.out)


class Tally:
    def __init__(self):
        self.passed = self.failed = 0

    def check(self, what, run):
        try:
            run()
            self.passed += 1
        except Exception as error:
            self.failed += 1
            print(f"FAILED {what} by Python's archive reader: {error!r:.400}")


def require(truth, what):
    if not truth:
        raise Mismatch(what)


def read_everywhere(data):
    """The segments from the front, once the directory and a second writer agree on them."""
    segments, ends = read_archive(data)
    named = [(segment.offset, segment.name) for segment in segments]
    require(find_segments(data) == named, "the directory leads elsewhere")
    require(rewrite(segments, ends) == data, "written again, it is another archive")
    return segments, ends


def worked_example(file, section):
    """The bytes of a dump, which stands in one section of the text."""
    text = re.search(rf"^##+ {section}\.? .*?(?=^##|\Z)", file.read_text(), re.M | re.S)[0]
    digits = re.findall(r"^ +\d+: ((?:[0-9a-f]+(?: {1,2}|$))+)", text, re.MULTILINE)
    return bytes.fromhex("".join(digits))


def spec(file):
    """The worked example, and every archive that differs from it in one bit."""
    tally = Tally()
    example = worked_example(file, "5.9")
    out = Writer()
    value = {"name": "two", "bias": np.array([0.5, -1], "<f4")}
    out.save("layer", value, alignment=32, inline_below=0)
    out.end()
    tally.check("example, written", lambda: require(out.out == example, example.hex()))

    def read():
        ((segment,), ends) = read_everywhere(example)
        require((segment.name, ends) == ("layer", [1]), "another name")
        same(segment.value, {"name": "two", "bias": Tensor("f32", value["bias"], "C")})

    tally.check("example, read", read)

    def digests():
        text = file.read_text().partition("### 5.10")[2].partition("\n### ")[0]
        segments, _ = read_archive(example)
        made = [digest_of(segments[0]).hex(), archive_digest(segments)]
        require(re.findall("`([0-9a-f]{32})`", text) == made, f"digests {made}")

    tally.check("digests of the example", digests)
    for bit in range(len(example) * 8):
        changed = bytearray(example)
        changed[bit // 8] ^= 1 << bit % 8
        tally.check(f"example, changed in bit {bit}", lambda: require_damage(bytes(changed)))
    for length in range(len(example)):
        tally.check(f"example, cut to {length}", lambda: require_damage(example[:length]))
    return tally


def require_damage(data):
    try:
        read_archive(data)
    except Damaged:
        return
    raise Mismatch("read as if nothing were wrong")


def same(got, want):
    """Raises a Mismatch unless two resolved values are the same, packed or not."""
    if isinstance(got, Tensor) and isinstance(want, Tensor):
        alike = got.values.shape == want.values.shape and (got.dtype, got.order) == (
            want.dtype,
            want.order,
        )
        require(alike and got.values.tobytes() == want.values.tobytes(), f"{got} for {want}")
        return
    got, want = (
        value.values.tolist() if isinstance(value, Numbers) else value for value in (got, want)
    )
    require(type(got) is type(want), f"{got!r:.200} for {want!r:.200}")
    if isinstance(got, (list, tuple)):
        require(len(got) == len(want), f"{len(got)} items for {len(want)}")
        for pair in zip(got, want):
            same(*pair)
    elif isinstance(got, dict):
        require(list(got) == list(want), f"keys {list(got)} for {list(want)}")
        for key in got:
            same(got[key], want[key])
    elif isinstance(got, CBORTag):
        require(got.tag == want.tag, f"tag {got.tag} for {want.tag}")
        same(got.value, want.value)
    elif isinstance(got, float):
        equal = struct.pack("d", got) == struct.pack("d", want)
        require(equal or math.isnan(got) and math.isnan(want), f"{got} for {want}")
    else:
        require(got == want, f"{got!r} for {want!r}")


def golden(directory):
    tally = Tally()
    for file in sorted(directory.glob("*.tenarc")):
        data = file.read_bytes()
        try:
            segments, _ = read_everywhere(data)
        except (Damaged, Mismatch) as error:
            tally.check(file.name, lambda: require(False, error))
            continue
        tally.check(file.name, lambda: None)
        if file.name == "columns.tenarc":
            # This reader gives columns as they are stored. The tests of the Python package read their rows.
            continue
        for number, segment in enumerate(segments):
            # The archive that was appended to holds numbers, the others the messages beside them.
            if file.name == "appended.tenarc":
                name = None if number % 2 else f"number {number}"
                want = [number, Numbers("f32", np.full(600, number, "<f4"))]
            elif file.name == "compressed.tenarc":
                # The same value, compressed in several ways.
                name, want = segment.name, segments[0].value
            else:
                name = segment.name
                stored = (directory / f"{name}.cbor").read_bytes()
                want = Resolver([]).whole(cbor2.loads(stored))

            def matches():
                require(segment.name == name, f"name {segment.name!r}")
                same(segment.value, want)

            tally.check(f"{file.name}, {name}", matches)
    return tally


def read(directory):
    manifest = json.loads((directory / "manifest.json").read_text())
    tally = Tally()
    for entry in manifest["archives"]:
        file = entry["file"]
        try:
            segments, ends = read_everywhere((directory / file).read_bytes())
            require(len(segments) == len(entry["values"]), f"{len(segments)} segments")
            require(ends == entry["ends"], f"end marks behind {ends}")
            digest = archive_digest(segments)
            # A manifest without digests says nothing about them.
            require(digest == entry.get("digest", digest), f"the digest {digest}")
        except (Damaged, Mismatch) as error:
            tally.check(file, lambda: require(False, error))
            continue
        tally.check(file, lambda: None)
        for segment, want in zip(segments, entry["values"]):

            def matches():
                require(segment.name == want["name"], f"name {segment.name!r}")
                require(segment.alignment == entry["alignment"], "another alignment")
                lengths = list(map(length_of, segment.buffers))
                require(lengths == want["buffers"], "other buffers")
                if "codecs" in want:
                    codecs = [getattr(buffer, "codec", None) for buffer in segment.buffers]
                    require(codecs == want["codecs"], f"the codecs {codecs}")
                compare(segment.value, want["value"])

            tally.check(f"{file}, {want['name']}", matches)
    return tally


def values():
    """Names and values: every dtype in the layouts that are written differently, plain ones."""
    for name, order, flat in samples():
        end = "le" if order == "<" else "be"
        if name != "bool":
            yield f"numbers-{name}-{end}", Numbers(name, flat)
        yield f"tensor-{name}-{end}-1d", flat
        yield f"tensor-{name}-{end}-rows", flat.reshape(2, 3)
        yield f"tensor-{name}-{end}-columns", np.asfortranarray(flat.reshape(2, 3))
        yield f"tensor-{name}-{end}-scalar", flat[2:3].reshape(())
    for name, value in plain():
        yield f"plain-{name}", value
    for name in ("bf16", "f8_e4m3", "f128", "posit16"):
        void = {"f128": "V16", "bf16": "V2", "posit16": "V2"}.get(name, "V1")
        rows = np.frombuffer(bytes(range(6 * int(void[1:]))), void).reshape(2, 3)
        yield f"tensor-{name}", Tensor(name, rows, "C")
    yield "tensor-empty", np.zeros((2, 0, 3), "<f4")
    large = np.arange(6000, dtype="<f4")
    yield "large", {"matrix": large.reshape(60, 100), "columns": large.reshape(100, 60).T}
    # The same bytes as tensors of two shapes and of another type, as numbers and as bytes.
    kinds = [large, large.reshape(2, 3000), large.view("<u4"), Numbers("f32", large)]
    yield "tied", [large + 1, *kinds, large.tobytes(), large + 1]
    # Every length of the padding, the two of a form of their own among them.
    for length in range(300):
        yield f"padding-{length}", ["x" * length, np.arange(5, dtype="u1"), b"abc"]


def chunk_values(chunk):
    """Names and values with buffers of as many bytes as one or more chunks have, and around that."""
    lengths = [1, chunk - 1, chunk, chunk + 1, 2 * chunk, 2 * chunk + 1]
    # Chunks that are alike could be in each other's place.
    bits = np.random.default_rng(67)
    for length in lengths:
        yield f"chunks-{length}", bits.integers(256, size=length, dtype="u1")
    yield "chunks-together", [bits.bytes(length) for length in reversed(lengths)]


def compressible():
    """Names and values whose buffers shrink: of few and of several chunks, of odd lengths too."""
    bits = np.random.default_rng(513)
    for length in (37, 3001, 70_003, 140_001):
        small, tiny = bits.normal(size=length) * 0.02, bits.integers(3, size=length)
        floats = [small.astype(kind) for kind in ("<f2", "<f4", "<f8", "<c8", "<c16")]
        halves = (floats[1].view("<u4") >> 16).astype("<u2").view("V2")
        numbers = [tiny.astype(kind) for kind in ("i1", "u1", "<u2", "<i4", "<i8", "<u8", "?")]
        yield f"compressed-{length}", [*floats, *numbers, Tensor("bf16", halves, "C"), tiny.tobytes()[:length]]
        yield f"compressed-bytes-{length}", (b"tenarc " * length)[:length]
    rows = bits.integers(9, size=(300, 500)).astype("<u2")
    yield "compressed-columns", {"rows": rows, "columns": rows.T, "same": np.full(9999, 7, "<f4")}
    yield "compressed-noise", bits.bytes(70_003)


def known_struct():
    """The struct that tenarc knows, with arrays instead of tags."""
    return Resolver([]).whole(cbor2.loads(cbor2.dumps(check.record())))


# What each archive is saved with: options of all its segments, then of the archive itself.
ARCHIVES = {
    "default": {},
    "all-in-buffers": {"inline_below": 0, "alignment": 8},
    "aligned-to-512": {"inline_below": 3, "alignment": 512},
    "aligned-to-65536": {"inline_below": 4096, "alignment": 65536},
    "inline": {"inline_below": math.inf},
    "unchecked": {"inline_below": 0, "checked": False},
    "tied": {"inline_below": 0, "tied": True, "alignment": 64},
    "aligned-to-16": {"inline_below": 16, "alignment": 16},
    # A writer numbers buffers by their first references, a reader takes any order.
    "backwards": {"inline_below": 0, "backwards": True, "alignment": 32},
}


def write(directory):
    directory.mkdir(parents=True, exist_ok=True)
    archives = []

    def add(file, entries, ends=(), **options):
        """Writes an archive with end marks behind so many segments, and behind the last."""
        out, described = Writer(), []
        for number, (name, value) in enumerate(entries):
            for _ in range(ends.count(number)):
                out.end()
            lengths = out.save(name, value, **options)
            entry = {"name": name, "value": describe(value), "buffers": lengths}
            if name == "record":
                # The struct takes only the fields it knows, which is what its description lists.
                known = {key: item for key, item in value.items() if key != "unknown"}
                entry |= {"as": "record", "known": describe(known)}
            described.append(entry)
        out.end()
        (directory / f"{file}.tenarc").write_bytes(out.out)
        alignment = options.get("alignment", 256)
        ends = [*ends, len(described)]
        entry = {"file": f"{file}.tenarc", "alignment": alignment, "ends": ends}
        digest = archive_digest(read_archive(out.out)[0])
        archives.append({**entry, "digest": digest, "values": described})

    everything = [("record", known_struct()), *values()]
    for file, options in ARCHIVES.items():
        add(file, everything, **options)
    unnamed = [(None if number % 3 else name, v) for number, (name, v) in enumerate(everything)]
    # Before anything, where a block has just been written and where one entry stands again.
    add("appended", unnamed, ends=(0, 1, 63, 64, 65, 128, 200), inline_below=0, alignment=128)
    add("empty", [])
    many = [(f"number {number}", number) for number in range(64 * 64 + 65)]
    add("three-levels", many, ends=(4095, 4096))
    names = [("", 1), ("ß" * 512, 2), ("a.b", 3), ("/", 4)]
    add("names", names)
    add("chunks", list(chunk_values(1 << 16)), inline_below=0, alignment=8, chunk=1 << 16)
    add("chunks-unchecked", list(chunk_values(1 << 16)), checked=False, chunk=1 << 16)
    add("chunks-of-a-mebibyte", [("two", np.arange(MIB // 8 + 1, dtype="<u8"))])
    for codec in ("zstd", "lz4"):
        options = {"inline_below": 0, "chunk": 1 << 16, "codec": codec}
        add(f"compressed-{codec}", list(compressible()), alignment=64, **options)
        add(f"unchecked-{codec}", list(compressible()), checked=False, **options)
        # No dtype has all of these, and the bytes behind the last word are not always none.
        for width in (1, 2, 4, 8, 16):
            for rotated in (0, 1):
                some = [entry for entry in compressible() if "bytes" in entry[0]]
                file = f"planes-{codec}-{width}-{rotated}"
                add(file, some, parameters=[width, rotated], **options)
    add("chunks-of-a-gibibyte", list(chunk_values(1 << 16)), chunk=1 << 30)

    manifest = {"writer": "Python", "archives": archives}
    (directory / "manifest.json").write_text(json.dumps(manifest))


def main():
    command, place = sys.argv[1], Path(sys.argv[2])
    if command == "write":
        return write(place)
    tally = {"spec": spec, "golden": golden, "read": read}[command](place)
    # Read by the script that adds up all steps.
    print(f"passed={tally.passed} failed={tally.failed}")
    sys.exit(tally.failed > 0)


if __name__ == "__main__":
    main()
