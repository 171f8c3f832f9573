"""Files exchanged with the Rust library."""

import io
import math

import ml_dtypes
import numpy as np
import pytest
import samples
import test_metadata
from conftest import ROOT
from described import describe, difference, read_manifest, write_manifest

import tenarc
from tenarc.segment import Header


def rewritten(segments) -> list:
    """Writes a value that was read, and reads it again."""
    out = io.BytesIO()
    with tenarc.Writer(out) as writer:
        for value in segments:
            writer.save(value)
    return streamed(out.getvalue())


def streamed(data: bytes) -> list:
    """Reads all values of a stream."""
    reader, found = tenarc.Reader(io.BytesIO(data)), []
    while reader.next_header() is not None:
        found.append(reader.load(numbers=True))
    return found


def test_python_reads_the_archives_of_rust(rust, tmp_path):
    rust.run("save", tmp_path)
    count = 0
    for entry in read_manifest(tmp_path)["archives"]:
        path, want = tmp_path / entry["file"], entry["values"]
        with tenarc.open(path) as archive:
            archive.verify()
            assert archive.names() == [value["name"] for value in want]
            ways = {
                "load": [segment.load(numbers=True) for segment in archive.segments()],
                "view": [segment.view() for segment in archive.segments()],
                "stream": streamed(path.read_bytes()),
            }
            ways["rewritten"] = rewritten(ways["view"])
            for segment, value in zip(archive.segments(), want, strict=True):
                assert segment.alignment == entry["alignment"]
                assert [length for _, length in segment.buffers] == value["buffers"]
                aligned = [at for number, (at, _) in enumerate(segment.buffers) if not segment.compressed(number)]
                assert all(start % segment.alignment == 0 for start in aligned)
                if "codecs" in value:
                    stored = map(segment.compressed, range(len(segment.buffers)))
                    assert [packed and packed.codec for packed in stored] == value["codecs"]
            for way, found in ways.items():
                for got, value in zip(found, want, strict=True):
                    assert difference(describe(got), value["value"]) is None, (path.name, value["name"], way)
                    count += 1
    assert count > 10_000


def test_python_reads_the_messages_of_rust(rust, tmp_path):
    rust.run("write", tmp_path)
    for entry in read_manifest(tmp_path)["files"]:
        message = (tmp_path / entry["file"]).read_bytes()
        for copy in (True, False):
            value = tenarc.loads(message, copy=copy, numbers=True)
            assert difference(describe(value), entry["value"]) is None, entry["file"]
        again = tenarc.loads(tenarc.dumps(value), numbers=True)
        assert difference(describe(again), entry["value"]) is None, entry["file"]


#: The shortest length of chunks.
CHUNK = 1 << 16
ARCHIVES = {
    "default": {},
    "all-in-buffers": {"inline_below": 0, "alignment": 8},
    "aligned-to-512": {"inline_below": 3, "alignment": 512},
    "aligned-to-65536": {"inline_below": 4096, "alignment": 65536},
    "inline": {"inline_below": math.inf},
    "unchecked": {"inline_below": 0, "checksums": False},
    "dedup": {"inline_below": 0, "dedup": True, "alignment": 64},
}


COMPRESSIONS = {
    "zstd": "zstd",
    "zstd-19": ("zstd", 19),
    "zstd-fast": ("zstd", -5),
    "lz4": "lz4",
    "mixed": lambda path, dtype, shape: "lz4" if len(dtype) > 3 else "zstd" if sum(shape) % 2 else None,
}


def compressible() -> list:
    """Names and values that shrink: few and several chunks, odd lengths, every width."""
    bits = np.random.default_rng(513)
    found = []
    for length in (33, 3001, 70_003):
        small, tiny = bits.normal(size=length) * 0.02, bits.integers(3, size=length)
        names = ("f2", "f4", "f8", "c8", "c16", ml_dtypes.bfloat16)
        found += [(f"floats-{length}-{name}", small.astype(name)) for name in names]
        names = ("i1", "u1", "u2", "i4", "i8", "u8", "?")
        found += [(f"integers-{length}-{name}", tiny.astype(name)) for name in names]
        found.append((f"numbers-{length}", tiny.astype("i4").view(tenarc.Numbers)))
        found.append((f"bytes-{length}", (b"tenarc " * length)[:length]))
        found.append((f"f128-{length}", tenarc.Raw("f128", (length,), np.zeros(16 * length, "u1"))))
        found.append((f"f6-{4 * length}", tenarc.Raw("f6_e2m3", (4 * length,), np.ones(3 * length, "u1"))))
    rows = bits.integers(9, size=(300, 500)).astype("u2")
    found.append(("shared", [rows, rows.T, rows, rows.tobytes()]))
    return found


def write_archive(directory, file, entries, ends=(), **options):
    """Writes an archive with end marks after the given numbers of values; returns its entry of the manifest."""
    out = io.BytesIO()
    with tenarc.Writer(out, **options) as writer:
        for number, (name, value) in enumerate(entries):
            if number in ends:
                writer.commit()
            writer.save(value, name=name)
    path = directory / f"{file}.tenarc"
    path.write_bytes(out.getvalue())
    with tenarc.open(path) as archive:
        archive.verify()
        lengths = [[length for _, length in segment.buffers] for segment in archive.segments()]
    described = [
        {"name": name, "value": describe(value), "buffers": buffers}
        for (name, value), buffers in zip(entries, lengths, strict=True)
    ]
    ends = [*ends, len(entries)]
    alignment = options.get("alignment", 256)
    return {"file": path.name, "alignment": alignment, "ends": ends, "values": described}


def test_rust_reads_the_archives_of_python(rust, tmp_path):
    everything = list(samples.values())
    archives = [write_archive(tmp_path, file, everything, **o) for file, o in ARCHIVES.items()]
    unnamed = [(None if number % 3 else name, v) for number, (name, v) in enumerate(everything)]
    ends = [1, 63, 64, 65, 128, 200]
    archives.append(write_archive(tmp_path, "committed", unnamed, ends, inline_below=0, alignment=128))
    archives.append(write_archive(tmp_path, "empty", []))
    many = [(f"number {number}", number) for number in range(64 * 64 + 65)]
    archives.append(write_archive(tmp_path, "three-levels", many, [4095, 4096]))
    archives.append(write_archive(tmp_path, "names", [("", 1), ("ß" * 512, 2), ("a.b", 3), ("/", 4)]))
    lengths = [1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 2 * CHUNK + 1]
    chunks = [(f"chunks-{length}", np.random.default_rng(1).integers(256, size=length)) for length in lengths]
    chunks = [(name, bits.astype("u1")) for name, bits in chunks]
    chunks.append(("together", [content for _, content in chunks]))
    archives.append(write_archive(tmp_path, "chunks", chunks, chunk_len=CHUNK, inline_below=0))
    archives.append(write_archive(tmp_path, "unchecked-chunks", chunks, chunk_len=CHUNK, checksums=False))
    archives.append(write_archive(tmp_path, "long-chunks", chunks, chunk_len=1 << 30))
    for file, compression in COMPRESSIONS.items():
        options = {"inline_below": 0, "compression": compression}
        archives.append(write_archive(tmp_path, file, compressible(), chunk_len=CHUNK, **options))
    archives.append(write_archive(tmp_path, "others", everything[::7] + compressible(), dedup=True, **options))
    write_manifest(tmp_path, {"writer": "Python", "archives": archives})
    assert rust.failed("load", tmp_path) == []


def test_rust_reads_what_python_appended(rust, tmp_path):
    everything = list(samples.values())[:150]
    path = tmp_path / "appended.tenarc"
    with path.open("wb") as file, tenarc.Writer(file, inline_below=0):
        pass
    described, ends = [], [0]
    for start in range(0, len(everything), 11):
        with tenarc.append(path, inline_below=0) as out:
            for name, value in everything[start : start + 11]:
                out.save(value, name=name)
        ends.append(min(start + 11, len(everything)))
    with tenarc.open(path) as archive:
        archive.verify()
        for segment, (name, value) in zip(archive.segments(), everything, strict=True):
            buffers = [length for _, length in segment.buffers]
            described.append({"name": name, "value": describe(value), "buffers": buffers})
    entry = {"file": path.name, "alignment": 256, "ends": ends, "values": described}
    write_manifest(tmp_path, {"writer": "Python", "archives": [entry]})
    assert rust.failed("load", tmp_path) == []


def test_rust_reads_the_messages_of_python(rust, tmp_path):
    files = []
    for name, value in samples.values():
        (tmp_path / f"{name}.cbor").write_bytes(tenarc.dumps(value))
        files.append({"file": f"{name}.cbor", "value": describe(value)})
    write_manifest(tmp_path, {"writer": "Python", "files": files})
    assert rust.failed("check", tmp_path) == []


def test_rust_reads_the_tensors_in_tables_of_python(rust, tmp_path):
    files = []
    values = [*samples.tensors(), ("some", tenarc.Some(None)), ("nested", tenarc.Some(tenarc.Some(None)))]
    for name, value in values:
        if isinstance(value, tenarc.Numbers):
            continue  # In a column, Rust reads them as a list.
        for kind, rows in (("all", [{"v": value}] * 3), ("some", [{"v": value}, {"v": None}])):
            file = f"{name}-{kind}.cbor"
            (tmp_path / file).write_bytes(tenarc.dumps(tenarc.Table(rows)))
            files.append({"file": file, "value": describe(rows)})
    write_manifest(tmp_path, {"writer": "Python", "files": files})
    assert rust.failed("check", tmp_path) == []


# Input that both refuse


def refused_by_rust(rust, directory, names) -> set[str]:
    """The archives of a directory that Rust refuses, whatever they contain."""
    archives = [{"file": name, "alignment": 256, "ends": [0], "values": []} for name in names]
    write_manifest(directory, {"writer": "Python", "archives": archives})
    lines = rust.failed("load", directory)
    return {name for name in names if any(line.startswith(f"FAILED {name}, verified: ") for line in lines)}


def refused_by_python(directory, names) -> set[str]:
    refused = set()
    for name in names:
        try:
            with tenarc.open(directory / name) as archive:
                archive.verify()
                # The manifest says that these archives have no values.
                if archive.count:
                    raise tenarc.Damaged("values that the manifest does not list")
        except tenarc.Error:
            refused.add(name)
    return refused


def test_both_refuse_every_cut_and_changed_byte(rust, example, tmp_path):
    broken = {f"cut-{n}": example[:n] for n in range(len(example))}
    for at in range(len(example)):
        for change in (0x01, 0x20, 0x80, 0xFF):
            changed = bytearray(example)
            changed[at] ^= change
            broken[f"byte-{at}-{change}"] = bytes(changed)
    names = sorted(broken)
    for name in names:
        (tmp_path / name).write_bytes(broken[name])
    assert refused_by_python(tmp_path, names) == set(names)
    assert refused_by_rust(rust, tmp_path, names) == set(names)


TBUF = "da54425546"
#: Metadata of a segment with one buffer of 8 bytes. All hashes are correct.
REFERENCES = {
    "number-too-high": TBUF + "84 63663332 8102 6143 01",
    "negative-number": TBUF + "84 63663332 8102 6143 20",
    "wrong-length": TBUF + "84 63663332 8103 6143 00",
    "unknown-order": TBUF + "84 63663332 8102 6141 00",
    "shape-is-text": TBUF + "84 63663332 6161 6143 00",
    "dimension-is-float": TBUF + "84 63663332 81f94000 6143 00",
    "dimension-is-bignum": TBUF + "84 63663332 81c24102 6143 00",
    "shape-overflows": TBUF + "84 63663332 821b80000000000000001b8000000000000000 6143 00",
    "name-is-bytes": TBUF + "84 43663332 8102 6143 00",
    "name-too-long": TBUF + "84 790101" + "61" * 257 + "8102 6143 00",
    "three-fields": TBUF + "83 63663332 8102 00",
    "five-fields": TBUF + "85 63663332 8102 6143 00 00",
    "no-fields": TBUF + "80",
    "indefinite": TBUF + "9f 63663332 8102 6143 00 ff",
    "sequence-of-bool": TBUF + "82 64626f6f6c 00",
    "sequence-of-bf16": TBUF + "82 6462663136 00",
    "sequence-cut": TBUF + "82 6463313238 00",
    "not-an-array": TBUF + "00",
    "no-reference": "01",
    "payload-of-a-tensor": "d828 82 8102" + TBUF + "82 63663332 00",
    "rank-65": TBUF + "84 63663332 9841" + "01" * 64 + "02 6143 00",
    "indefinite-shape": TBUF + "84 63663332 9f02ff 6143 00",
    **{name: f"82 {TBUF} 81 00 {digits}" for name, (digits, *_) in test_metadata.OTHERS.items()},
}
CONTROL = {
    "tensor": TBUF + "84 63663332 8102 6143 00",
    "sequence": TBUF + "82 63663332 00",
    "byte-string": TBUF + "81 00",
    "long-heads": TBUF + "9800 04".replace("00 ", "") + "63663332 8102 6143 1800",
    "unknown-dtype": TBUF + "84 6161 8107 6143 00",
    "twice": "82" + TBUF + "8100" + TBUF + "84 63663332 8102 6143 00",
    "key": "a1" + TBUF + "8100 01",
    "column": TBUF + "84 63663332 8102 6146 00",
    "zero-sized-behind": "82" + TBUF + "8100" + "da54454e53 84 63663332 821b100000000000000000 6143 40",
}


def with_metadata(digits: str) -> bytes:
    """An archive of one segment with the given metadata, one buffer of 8 bytes, and correct hashes."""
    out = io.BytesIO()
    writer = tenarc.Writer(out, alignment=8)
    writer._save(bytes.fromhex(digits), [np.frombuffer(b"\0\0\0?\0\0\x80\xbf", "u1")], None)
    writer.finish()
    return out.getvalue()


@pytest.mark.parametrize(("cases", "wanted"), [(REFERENCES, True), (CONTROL, False)])
def test_both_judge_references_alike(rust, tmp_path, cases, wanted):
    for name, digits in cases.items():
        (tmp_path / name).write_bytes(with_metadata(digits))
        try:
            with tenarc.open(tmp_path / name) as archive:
                archive.verify()
            refused = False
        except tenarc.Error:
            refused = True
        assert refused == wanted, name
    archives = [
        {
            "file": name,
            "alignment": 8,
            "ends": [1],
            "values": [{"name": None, "value": {"t": "null"}, "buffers": [8]}],
        }
        for name in cases
    ]
    write_manifest(tmp_path, {"writer": "Python", "archives": archives})
    lines = rust.failed("load", tmp_path)
    for name in cases:
        assert any(line.startswith(f"FAILED {name}, verified") for line in lines) == wanted, name


#: Messages that must be refused. The last ones are well-formed CBOR.
MESSAGES = {
    "empty": "",
    "reserved": "1c",
    "break": "ff",
    "open-array": "82 01",
    "open-map": "a1 01",
    "odd-map": "bf 01 ff",
    "cut-text": "63 6161",
    "behind": "01 02",
    "text": "62 c328",
    "surrogate": "63 eda080",
    "split-text": "7f 61c3 61bc ff",
    "chunk-of-text": "5f 6161 ff",
    "nested-chunk": "5f 5f4101ff ff",
    "indefinite-integer": "1f",
    "indefinite-tag": "df 01",
    "simple-in-two": "f8 01",
    "huge-array": "9b ffffffffffffffff",
    "huge-map": "bb ffffffffffffffff",
    "huge-bytes": "5b 7fffffffffffffff 00",
    "deep": "81" * 129 + "00",
    "very-deep": "81" * 100_000 + "00",
    "deep-tags": "c1" * 129 + "00",
    "deep-key": "a1" * 129 + "00" * 130,
    "reference": TBUF + "81 00",
    "bool-of-2": "da54454e53 84 64626f6f6c 8101 6143 4102",
    "payload-short": "d828 82 8102 d855 44 00000000",
    "payload-long": "d828 82 8101 d855 48 0000000000000000",
    "payload-cut": "d855 43 000000",
    "payload-text": "d855 6161",
    "shape-overflow": "d828 82 82 1b8000000000000000 1b8000000000000000 d855 40",
    "shape-overflow-zero": "d828 82 83 00 1b8000000000000000 1b8000000000000000 d855 40",
    "shape-negative": "d828 82 81 20 d855 40",
    "f4-half-a-byte": "da54454e53 84 626634 8101 6143 4100",
    "order": "da54454e53 84 63663332 8101 6158 4400000000",
    "rank-65": "d828 82 9841" + "01" * 65 + "d840 4100",
}


def test_both_refuse_the_same_messages(rust, tmp_path):
    files = []
    for name, digits in MESSAGES.items():
        data = bytes.fromhex(digits)
        with pytest.raises(tenarc.Error):
            print(name, tenarc.loads(data))
        (tmp_path / name).write_bytes(data)
        files.append({"file": name, "value": {"t": "null"}})
    write_manifest(tmp_path, {"writer": "Python", "files": files})
    lines = rust.failed("check", tmp_path)
    for name in MESSAGES:
        assert any(line.startswith(f"FAILED {name}") for line in lines), name
        # It must fail when it is read, not because its description differs.
        assert not any(line.startswith(f"FAILED {name}") and ": found {" in line for line in lines), name


# Files of earlier versions


def test_golden_messages_are_read_as_the_same_in_archives():
    directory = ROOT / "tests" / "golden"
    for path in directory.glob("*.cbor"):
        value = tenarc.loads(path.read_bytes(), numbers=True)
        again = tenarc.loads(tenarc.dumps(value), numbers=True)
        assert difference(describe(again), describe(value)) is None, path.name
    for file in ("samples.tenarc", "buffers.tenarc"):
        with tenarc.open(directory / file) as archive:
            archive.verify()
            assert archive.count > 10
            for segment in archive.segments():
                want = tenarc.loads((directory / f"{segment.name}.cbor").read_bytes(), numbers=True)
                for found in (segment.load(numbers=True), segment.view()):
                    assert difference(describe(found), describe(want)) is None, segment.name


def test_the_golden_columns_have_the_same_rows_in_every_form():
    with tenarc.open(ROOT / "tests" / "golden" / "columns.tenarc") as archive:
        archive.verify()
        values = {segment.name: segment.load() for segment in archive.segments()}
    rows = tenarc.loads(values["message"])
    assert len(rows) == 40 and rows[39]["kind"] == {"Struct": {"text": "number 39"}}
    for name in ("default", "as columns"):
        assert difference(describe(values[name]), describe(rows)) is None, name
    assert [row["flag"] for row in values["two groups"]] == [row % 1000 == 0 for row in range(66_000)]


def test_the_golden_archive_that_was_appended_to():
    path = ROOT / "tests" / "golden" / "appended.tenarc"
    with tenarc.open(path) as archive:
        archive.verify()
        for number, segment in enumerate(archive.segments()):
            assert segment.name == (None if number % 2 else f"number {number}")
            found, numbers = segment.load()
            assert found == number and np.array_equal(numbers, np.full(600, number, "f4"))
    with path.open("rb") as file:
        assert len(list(tenarc.Reader(file))) == number + 1


def test_headers_have_one_encoding():
    header = Header("a", 64, True, 1 << 20, (3, 5), b"\xf6")
    assert header.places() == [0, 64] and header.body_length() == 69


def test_python_reads_the_columns_of_rust_and_rust_those_of_python(rust, tmp_path):
    rust.run("records-write", tmp_path)
    names = sorted(path.stem for path in tmp_path.glob("*.rows"))
    assert len(names) == 8
    for name in names:
        rows = tenarc.loads((tmp_path / f"{name}.rows").read_bytes())
        message = (tmp_path / f"{name}.columns").read_bytes()
        assert b"TCOL" in message
        want = describe(rows)
        assert difference(describe(tenarc.loads(message)), want) is None, name
        with tenarc.open(tmp_path / f"{name}.tenarc") as archive:
            archive.verify()
            assert difference(describe(archive.load()), want) is None, name
        if isinstance(rows, list):
            (tmp_path / f"{name}.plain").write_bytes(tenarc.dumps(rows))
            (tmp_path / f"{name}.again").write_bytes(tenarc.dumps(tenarc.Table(rows)))
    assert rust.failed("records-check", tmp_path) == []
