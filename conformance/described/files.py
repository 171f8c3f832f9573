"""Collects the files that the other modules describe."""

from __future__ import annotations

from .build import Archive

ENDINGS = {"message": "cbor", "sequence": "seq", "archive": "tenarc", "parts": "parts"}


class Files:
    """Files by name: the bytes and the JSON of each."""

    def __init__(self) -> None:
        self.all: dict[str, tuple[bytes, dict]] = {}

    def _add(self, name: str, kind: str, content: bytes, about: str, rules: str, keeps: bool, said: dict) -> None:
        assert name not in self.all, name
        assert about.endswith(".") and about.count(". ") == 0, about
        described = {"about": about, "kind": kind, "rules": rules.split(), "keeps": keeps, **said}
        self.all[name] = (content, described)

    def message(self, name: str, content: bytes, value: object, about: str, rules: str = "") -> None:
        """A message that is read. The value is left out if it is `...`."""
        said = {"read": OK} if value is ... else {"read": OK, "value": value}
        self._add(name, "message", content, about, rules, True, said)

    def refused(self, name: str, content: bytes, about: str, rules: str = "") -> None:
        """A message that is refused."""
        self._add(name, "message", content, about, rules, False, {"read": {"verdict": "refused"}})

    def sequence(self, name: str, content: bytes, values: list, about: str, rules: str = "") -> None:
        self._add(name, "sequence", content, about, rules, True, {"read": OK, "values": values})

    def archive(self, name: str, made: Archive, about: str, rules: str = "", **said: object) -> None:
        """An archive that is good. What is said to be `...` is left out."""
        said = {"open": OK, "read": OK, "verify": OK, **made.json(), "reads": made.reads(), **said}
        said = {field: value for field, value in said.items() if value is not ...}
        self._add(name, "archive", made.bytes, about, rules, True, said)

    def bad(self, name: str, made: Archive | bytes, about: str, rules: str = "", keeps: bool = False, **said: object) -> None:
        """An archive with a fault, or that is not whole. What is not said is not in the JSON."""
        content = made if isinstance(made, bytes) else made.bytes
        self._add(name, "archive", content, about, rules, keeps, said)

    def parts(self, name: str, pieces: list[bytes], about: str, rules: str = "", keeps: bool = True, **said: object) -> None:
        said = {"read": OK, "pieces": [len(piece) for piece in pieces], **said}
        self._add(name, "parts", b"".join(pieces), about, rules, keeps, said)


OK = {"verdict": "ok"}


def damaged(at: int | None = None) -> dict:
    return {"verdict": "damaged"} if at is None else {"verdict": "damaged", "at": at}


def torn(after: int) -> dict:
    return {"verdict": "torn", "after": after}


def unfinished(segments: int) -> dict:
    return {"verdict": "unfinished", "segments": segments}


def unsupported(what: str) -> dict:
    return {"verdict": "unsupported", "what": what}
