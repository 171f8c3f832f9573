"""The rules in `rules.txt`, and where they stand in SPEC.md."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple


class Rule(NamedTuple):
    name: str
    #: What is in brackets: why there are no files that keep or break it.
    without: str
    words: str


LINE = re.compile(r"(\S+) (\S+) (?:\[([^\]]*)\] )?(.*)")


def read(path: Path) -> tuple[list[str], list[Rule]]:
    """The comments, and the rules."""
    lines = path.read_text().splitlines()
    comments = [line for line in lines if not line or line.startswith("#")]
    found = [LINE.fullmatch(line) for line in lines if line and not line.startswith("#")]
    return comments, [Rule(match[2], match[3] or "", match[4]) for match in found if match]


class Text:
    """SPEC.md as one line, and the section of each place in it."""

    def __init__(self, path: Path) -> None:
        self.line, self.sections = "", []
        for line in path.read_text().splitlines():
            heading = re.match(r"#+ (?:Annex )?(\d+(?:\.\d+)*|[A-Z])\.? ", line)
            if heading:
                self.sections.append((len(self.line), heading[1]))
            self.line += " ".join(line.split()) + " " if line.strip() else ""

    def section(self, place: int) -> str:
        return [section for start, section in self.sections if start <= place][-1]


def numbered(rules: list[Rule], text: Text) -> tuple[dict[str, str], list[str]]:
    """The numbers of the rules by name, and what is wrong."""
    faults, places = [], []
    for rule in rules:
        count = text.line.count(rule.words)
        if count != 1:
            faults.append(f"{rule.name}: its words are {count} times in SPEC.md")
        else:
            places.append((text.line.index(rule.words), rule))
    places.sort(key=lambda place: place[0])
    numbers, counts = {}, {}
    for place, rule in places:
        section = text.section(place)
        counts[section] = counts.get(section, 0) + 1
        numbers[rule.name] = f"{section}-{counts[section]}"
    spans = [range(place, place + len(rule.words)) for place, rule in places]
    for match in re.finditer(r"\bmust\b", text.line):
        if not any(match.start() in span for span in spans):
            start = text.line.rfind(". ", 0, match.start()) + 2
            faults.append(f"no rule has this must: {text.line[start : match.end() + 60]}")
    return numbers, faults


def shown(comments: list[str], rules: list[Rule], numbers: dict[str, str]) -> str:
    """`rules.txt` in the order of SPEC.md."""

    def order(rule: Rule) -> list[tuple[int, str]]:
        return [(int(part) if part.isdigit() else 1000, part) for part in re.split("[.-]", numbers[rule.name])]

    def line(rule: Rule) -> str:
        return f"{numbers[rule.name]} {rule.name} {f'[{rule.without}] ' if rule.without else ''}{rule.words}"

    return "\n".join(comments + [line(rule) for rule in sorted(rules, key=order)]) + "\n"


def uncovered(rules: list[Rule], files: dict[str, tuple[bytes, dict]]) -> list[str]:
    """Rules without a file that keeps them, or without one that breaks them, and names of rules that are not there."""
    faults, known = [], {rule.name for rule in rules}
    used = [(rule, described["keeps"]) for _, described in files.values() for rule in described["rules"]]
    for name in sorted({name for name, _ in used} - known):
        faults.append(f"{name}: no rule has this name")
    for rule in rules:
        wanted = {True, False}
        if rule.without:
            wanted = {"kept": {True}, "broken": {False}}.get(rule.without.split(":")[0], set())
        for keeps in wanted:
            if (rule.name, keeps) not in used:
                faults.append(f"{rule.name}: no file {'keeps' if keeps else 'breaks'} it")
    return faults
