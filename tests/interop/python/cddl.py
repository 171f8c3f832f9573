"""Compares messages and the records of archives with `tenarc.cddl`.

The messages and archives are the golden ones and the good ones of `conformance/`. Some broken items must not match.
"""

import json
import re
import sys
from pathlib import Path

import cbor2
import xxhash
from rules import Rules, decoded

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / "tenarc.cddl").read_text()
RULES = Rules(TEXT)
TAGS = set(re.findall(r"#6\.\d+", TEXT))

#: Items that break the rules: a dtype that is a number, an order that is none, a column without rows, a kind that does not
#: exist, a type without parameters.
BROKEN_MESSAGES = [
    "da54454e53 84 01 80 6143 41 00",
    "da54454e53 84 627538 80 6141 41 00",
    "da54434f4c 81 02",
    "da54434f4c 82 02 81 64 6e6f6e65",
    "da54545950 82 64 64617465 00",
]
#: A header of version 2, one without extensions, an end mark with an entry of a block, an auxiliary record without payload.
BROKEN_RECORDS = [
    "da54534547 88 02 f6 08 f6 1a00010000 80 a0 f6",
    "da54534547 87 01 f6 08 f6 1a00010000 80 f6",
    "da54454e44 85 01 01 82 80 81 85 0c f6 18 1e f6 f6 80 a0",
    "da54415558 82 01 00",
]


def matches(rule: str, item: bytes) -> bool:
    """Whether an item has the form that a rule asks for."""
    return RULES.types[rule](decoded(item))


def has_other_tags(item: object) -> bool:
    """Whether an item has tags without a meaning in the format, which can be around any item of a message."""
    if isinstance(item, cbor2.CBORTag):
        return f"#6.{item.tag}" not in TAGS or has_other_tags(item.value)
    if isinstance(item, dict):
        return any(has_other_tags(part) for pair in item.items() for part in pair)
    return isinstance(item, list) and any(map(has_other_tags, item))


def records(archive: bytes) -> list[bytes]:
    """The contents of the intact records of version 1."""
    found = []
    for start in range(len(archive) - 9):
        if archive[start : start + 2] != b"\xd8\x18":
            continue
        head = archive[start + 2]
        width = {0x58: 1, 0x59: 2, 0x5A: 4}.get(head, 0)
        content = start + 3 + width
        end = content + (int.from_bytes(archive[start + 3 : content], "big") if width else head - 0x40)
        if archive[content : content + 2] != b"\xdaT" or archive[content + 6 : content + 7] != b"\1":
            continue
        if archive[end : end + 9] == b"\x48" + xxhash.xxh3_64_digest(archive[start:end], seed=start):
            found.append(archive[content:end])
    return found


def good_files(suffix: str) -> list[Path]:
    """The golden files, and those of `conformance/` that keep the rules."""
    golden = sorted((ROOT / "tests" / "golden").glob(f"*.{suffix}"))
    described = sorted((ROOT / "conformance").rglob(f"*.{suffix}"))
    return golden + [path for path in described if json.loads(path.with_suffix(".json").read_text())["keeps"]]


def main() -> None:
    # Each of up to 128 levels takes several calls.
    sys.setrecursionlimit(10_000)
    passed, wrong = 0, []
    messages = {path.name: path.read_bytes() for path in good_files("cbor")}
    messages = {name: item for name, item in messages.items() if not has_other_tags(decoded(item))}
    checks = [(name, matches("value", item)) for name, item in messages.items()]
    for path in good_files("tenarc"):
        found = [matches("record", record) for record in records(path.read_bytes())]
        checks.append((f"{path.name}: {found.count(False)} of {len(found)} records", all(found)))
    checks += [(item, not matches("value", bytes.fromhex(item))) for item in BROKEN_MESSAGES]
    checks += [(item, not matches("record", bytes.fromhex(item))) for item in BROKEN_RECORDS]
    for name, good in checks:
        passed += good
        if not good:
            wrong.append(name)
            print(f"not as tenarc.cddl says: {name}")
    print(f"passed={passed} failed={len(wrong)}")
    sys.exit(bool(wrong))


main()
