"""Reads tenarc archives. "minimal_reader.py FILE" lists the segments, and with a NAME it shows the value. It does not verify
hashes or decompress buffers, and gives columns and big integers as they are stored. The archive must end with a tail."""
import struct, sys
from itertools import accumulate
DTYPES = dict(zip((64, 69, 70, 71, 72, 77, 78, 79, 84, 85, 86, 87), "u8 u16 u32 u64 i8 i16 i32 i64 f16 f32 f64 f128".split()))
FILE = open(sys.argv[1], "rb")

def head():
    first = FILE.read(1)[0]
    raw = FILE.read(1 << (first & 31) - 24) if first & 31 > 23 else b""
    return first >> 5, int.from_bytes(raw, "big") if raw else first & 31, raw

def item(buffers=None):
    major, n, raw = head()
    if major == 0: return n
    if major == 1: return -1 - n
    if major == 2: return FILE.read(n)
    if major == 3: return FILE.read(n).decode()
    if major == 4: return [item(buffers) for _ in range(n)]
    if major == 5: return [(item(buffers), item(buffers)) for _ in range(n)]
    if major == 6: return meaning(n, item(buffers), buffers)
    return struct.unpack(">f" if len(raw) == 4 else ">d", raw)[0] if raw else {20: False, 21: True}.get(n)

def meaning(tag, content, buffers):
    if tag in DTYPES: return {"dtype": DTYPES[tag], "payload": content}
    if tag == 43001: return {**content, "dtype": {"f32": "c64", "f64": "c128"}[content["dtype"]]}
    if tag in (40, 1040): return {"shape": content[0], "order": "C" if tag == 40 else "F", **content[1]}
    if tag == 1413828179 or tag == 1413633350 and buffers is not None:  # TENS, TBUF
        payload = content[-1] if tag == 1413828179 else buffers[content[-1]]
        return {**dict(zip(("dtype", "shape", "order"), content[:-1])), "payload": payload} if len(content) > 1 else payload
    return content

def record(offset, buffers=None):
    FILE.seek(offset + 2)  # behind the head of tag 24
    head()
    return item(buffers)

def segments(level, lists):
    if level == 0:
        return [(None if entry[1] is None else lists[0][entry[1]], entry[0]) for entry in lists[1]]
    return [found for block in lists for found in segments(level - 1, record(block[0])[2])]

def value(offset):
    alignment, _, _, lengths = record(offset)[2:6]
    after, up, buffers = FILE.tell() + 9, lambda n: -(-n // alignment) * alignment, []
    ends = list(accumulate(lengths, lambda end, length: up(end) + length, initial=0))
    body = up(after + (1, 2, 3, 5, 9)[sum(ends[-1] >= most for most in (24, 256, 1 << 16, 1 << 32))])
    for end, length in zip(ends, lengths):
        FILE.seek(body + up(end))
        buffers.append(FILE.read(length))
    return record(offset, buffers)[7]

FILE.seek(-40, 2)
letters, mark_offset = struct.unpack(">8sQ", FILE.read(16))
assert letters == b"TARCTAIL", "the archive does not end with a tail"
_, _, last, blocks, _ = record(mark_offset)
for level, lists in reversed(list(enumerate([last, *blocks]))):
    for name, offset in segments(level, lists):
        if len(sys.argv) < 3 or name == sys.argv[2]:
            print(value(offset) if len(sys.argv) == 3 else f"{offset} {name}")
