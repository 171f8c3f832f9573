"""Fixtures for several tests."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


class Rust:
    """The Rust program in `tests/interop`, which writes and checks directories of files."""

    def __init__(self, binary: Path) -> None:
        self._binary = binary

    def run(self, mode: str, directory: Path) -> str:
        """Runs the program and returns its output: lines that start with `FAILED`, and counts at the end."""
        done = subprocess.run([self._binary, mode, directory], capture_output=True, text=True, timeout=300)
        assert "passed=" in done.stdout, done.stdout + done.stderr
        return done.stdout

    def failed(self, mode: str, directory: Path) -> list[str]:
        return [line for line in self.run(mode, directory).splitlines() if line.startswith("FAILED")]


@pytest.fixture(scope="session")
def rust() -> Rust:
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    binary = target / "debug" / "tenarc-interop"
    if not binary.exists():
        pytest.skip(f"{binary} does not exist: run `cargo build -p tenarc-interop`, or python/run-tests")
    return Rust(binary)


@pytest.fixture(scope="session")
def command() -> Path:
    """The command `tenarc`."""
    binary = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug" / "tenarc"
    if not binary.exists():
        pytest.skip(f"{binary} does not exist: run `cargo build -p tenarc-cli`")
    return binary


@pytest.fixture(scope="session")
def example() -> bytes:
    """The worked example of SPEC 5.9."""
    return worked_examples()[0]


def worked_examples() -> tuple[bytes, bytes]:
    """The bytes of the worked examples in SPEC 5.9 and 6, joined in the order of their positions."""
    found: list[dict[int, bytes]] = []
    for line in (ROOT / "SPEC.md").read_text().splitlines():
        at, colon, rest = line.partition(": ")
        if not (line.startswith("   ") and colon and at.strip().isdigit()):
            continue
        if int(at) == 0:
            found.append({})
        digits = []
        # A comment follows after at least three spaces, and may start with hexadecimal digits.
        for word in rest.split("   ")[0].split():
            digits.append(word)
        found[-1][int(at)] = bytes.fromhex("".join(digits))
    pieces = []
    for lines in found:
        data = b""
        for at, content in sorted(lines.items()):
            assert at == len(data), f"{at} follows {len(data)}"
            data += content
        pieces.append(data)
    assert len(pieces) == 2
    return pieces[0], pieces[1]
