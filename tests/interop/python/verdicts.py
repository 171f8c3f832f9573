"""Compares what the readers in Rust, Python and JavaScript say of changed files.

Usage: verdicts.py TENARC_INTEROP CONFORMANCE COUNT WORK [VERDICT_MJS]

COUNT files are made of ten files: with changed bits, cut, or with changed bits in a record whose hash is made anew. The verdicts must
be of one class. The files themselves, without changes, are compared too.
"""

import json
import random
import subprocess
import sys
from pathlib import Path

tool, conformance, count, work, *script = sys.argv[1:]
sys.path.insert(0, conformance)
sys.dont_write_bytecode = True

from described import build  # noqa: E402

CHANGED = [
    "columns-example-optional.cbor",
    "columns-example-groups.cbor",
    "type-category.cbor",
    "dtype-f4.cbor",
    "append-2.tenarc",
    "archive-buffers.tenarc",
    "aux.tenarc",
]
#: Files whose first header is changed, and hashed anew.
REHASHED = ["columns-in-buffers.tenarc", "compressed-lz4-planes.tenarc", "ext-even.tenarc"]


tally = {"passed": 0, "failed": 0}


def changed(content: bytes, rng: random.Random) -> bytes:
    """Some bits or a byte changed, or the end cut off."""
    what = rng.randrange(8)
    if what == 0:
        return content[: rng.randrange(len(content))]
    made = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        at = rng.randrange(len(made))
        if what == 1:
            made[at] = rng.choice((0, 0xFF, 0x40, 0x60, 0x80, 0xA0, 0xC0, 0xF6, 0xF7))
        else:
            made[at] ^= 1 << rng.randrange(8)
    return bytes(made)


def rehashed(content: bytes, rng: random.Random) -> bytes:
    """The content of the first record changed, and its hash and the hash of the list of hashes made anew.

    The directory stays as it is, as far as the lengths do.
    """
    start = len(build.MAGIC)
    head = {24: 2, 25: 3}.get(content[start + 2] & 31, 1)
    length = int.from_bytes(content[start + 3 : start + 2 + head], "big") if head > 1 else content[start + 2] & 31
    at = start + 2 + head
    inner = content[at : at + length]
    made = bytearray(inner)
    for _ in range(rng.choice((1, 1, 2))):
        made[rng.randrange(len(made))] ^= 1 << rng.randrange(8)
    item = content[start:at] + bytes(made)
    seed = build.xxh(item, start)
    rest = content[at + length + 9 :]
    # The list of hashes is followed by its hash, whose seed is that of the header.
    for place in range(len(rest) - 11):
        if rest[place : place + 2] == b"\xd8\x43":
            size = {24: 2}.get(rest[place + 2] & 31, 1)
            hashes = rest[place + 3] if size == 2 else rest[place + 2] & 31
            end = place + 2 + size + hashes
            own = rest[place:end]
            old = int.from_bytes(content[at + length + 1 : at + length + 9], "big")
            if rest[end : end + 9] == build.data(build.xxh(own, old)):
                rest = rest[:end] + build.data(build.xxh(own, int.from_bytes(seed, "big"))) + rest[end + 9 :]
                break
    return content[:start] + item + build.data(seed) + rest


def verdicts(command: list[str], paths: list[Path]) -> list[dict]:
    lines = "".join(f"{path}\n" for path in paths)
    done = subprocess.run(command, input=lines, capture_output=True, text=True)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode or len(found) != len(paths):
        sys.exit(f"{command[0]} died at {paths[min(len(found), len(paths) - 1)]}: {done.stderr[-2000:]}")
    return found


def differ(one: dict, other: dict) -> str | None:
    """How two verdicts contradict each other."""
    if "open" in one and "open" in other:
        if one["open"] != other["open"]:
            # The magic is looked at when the first header is read, and a block when it is needed.
            late = {one["open"], other["open"]} == {"ok", "damaged"}
            opened = one if one["open"] == "ok" else other
            if not late or opened["verify"] == "ok":
                return "open"
            return None
        facts = [said.get(step) for said in (one, other) for step in ("read", "verify")]
        if None in facts:
            return None
        # What reading need not look at, verifying finds. Verifying may find more than it must, if reading finds that too.
        if one["verify"] != other["verify"]:
            return "verify" if "ok" in (one["read"], other["read"]) else None
        return "read" if one["read"] != other["read"] and one["verify"] == "ok" else None
    # Parts that a reader cannot read may be refused with any reason.
    reads = {one.get("read"), other.get("read")} - {None}
    return "read" if len(reads) > 1 and "ok" in reads else None


def main() -> int:
    folder = Path(conformance) / "files"
    readers = {"Rust": [tool, "verdict"], "Python": [sys.executable, "-B", str(Path(__file__).with_name("verdict.py"))]}
    if script:
        readers["JavaScript"] = ["node", script[0]]
    out = Path(work)
    out.mkdir(parents=True, exist_ok=True)
    paths = sorted(path for path in folder.iterdir() if path.suffix != ".json")
    rng = random.Random(1)
    contents = {}
    for number in range(int(count)):
        name = rng.choice(CHANGED + REHASHED)
        change = rehashed if name in REHASHED else changed
        path = out / f"{number % 1000}-{name}"
        contents[path] = change((folder / name).read_bytes(), rng)
        if len(contents) == 1000 or number == int(count) - 1:
            for made, content in contents.items():
                made.write_bytes(content)
            compare(readers, paths + list(contents), out)
            paths, contents = [], {}
    print(f"passed={tally['passed']} failed={tally['failed']}")
    return 1 if tally["failed"] else 0


def compare(readers: dict, paths: list[Path], out: Path) -> None:
    said = {name: verdicts(command, paths) for name, command in readers.items()}
    for number, path in enumerate(paths):
        found = {name: all_of[number] for name, all_of in said.items()}
        if "JavaScript" in found and b"zstd" in path.read_bytes():
            # Its decoder is plugged in, and Node has one from version 22.15 on.
            found["JavaScript"].pop("read", None)
        first = found["Rust"]
        wrong = [differ(first, other) for name, other in found.items() if name != "Rust"]
        if not any(wrong):
            tally["passed"] += 1
            continue
        tally["failed"] += 1
        kept = out / f"kept-{tally['failed']}-{path.name}"
        kept.write_bytes(path.read_bytes())
        shown = {name: {key: value for key, value in one.items() if key != "file"} for name, one in found.items()}
        print(f"FAILED {kept}: {json.dumps(shown)}")


sys.exit(main())
