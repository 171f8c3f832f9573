"""What notebooks show of archives, values, tables and lazy arrays, as HTML.

It is short whatever is in a file, and few bytes are read for it: pictures of tensors are made of some hundred
elements. All texts of the file are escaped. Colours are those of the page, so that it can be dark or light.
"""

from __future__ import annotations

import base64
import html
import itertools
import reprlib
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .errors import Error, escaped
from .paths import pointer_steps
from .values import Raw

if TYPE_CHECKING:
    from .archive import Archive
    from .lazy import LazyArray
    from .saved import Segment, TensorInfo
    from .table import Table

#: The most lines of a tree, lines under one line, values of an archive, pictures, and rows and columns of a table.
_LINES, _CHILDREN, _VALUES, _PICTURES, _ROWS, _COLUMNS = 300, 30, 8, 24, 5, 16
#: The most characters of a name or a value, and of the longest metadata whose values are shown.
_TEXT, _METADATA = 60, 1 << 20
#: The most elements along each side of a picture, and its size in pixels.
_SIDE, _PIXELS = 32, 48
#: The most bytes that are read for a picture, or for rows, if they are not mapped or are compressed.
_FEW_BYTES = 1 << 20
#: The most rows of a group of which some are shown.
_GROUP = 1 << 21
#: Colours from the least to the greatest value, and of what is no finite number.
_COLOURS = np.array([[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]], np.float64)
_NOT_FINITE = [255, 0, 128]

_STYLE = """<style>
.tenarc{font-size:13px;line-height:1.5}
.tenarc details details,.tenarc .leaf{margin-left:1.4em}
.tenarc summary{cursor:pointer}
.tenarc code{background:none;color:inherit;padding:0}
.tenarc .note{opacity:.65;margin-left:.6em}
.tenarc img{vertical-align:middle;margin-left:.6em;image-rendering:pixelated;border:1px solid rgba(127,127,127,.4)}
.tenarc table{border-collapse:collapse;margin:.4em 0;color:inherit;font-size:inherit}
.tenarc th div{margin:0;font-weight:normal}
.tenarc th,.tenarc td{border:1px solid rgba(127,127,127,.4);padding:.1em .5em;text-align:left}
</style>"""

_shown = reprlib.Repr()
_shown.maxstring = _shown.maxother = _shown.maxlong = _TEXT


def of_archive(archive: Archive, closed: bool) -> str:
    """The values of an archive."""
    if closed:
        return _page(_text(repr(archive)))
    if archive.count == 1:
        return _page(_text(repr(archive)), *_or_error(lambda: [_Tree(archive.segment(0)).html()]))
    lines: list[str] = []
    pictures = itertools.count()

    def folded(number: int) -> list[str]:
        return [_Tree(archive.segment(number), pictures).folded()]

    for number in range(min(archive.count, _VALUES)):
        lines += _or_error(partial(folded, number))
    return _page(_text(repr(archive)), *lines, _more(archive.count - len(lines), "value"))


def of_segment(segment: Segment) -> str:
    """One value."""
    return _page(_text(repr(segment)), *_or_error(lambda: [_Tree(segment).html()]))


def of_lazy(lazy: LazyArray) -> str:
    """An array that is not read. The picture shows its first rows."""
    rows = max(_FEW_BYTES // max(lazy.nbytes // max(len(lazy), 1), 1), 1) if lazy.shape else 0

    def picture() -> list[str]:
        if lazy.ndim == 0 or not lazy.size or lazy.nbytes // len(lazy) > _FEW_BYTES:
            return []
        return [_picture(lazy[:rows], "of the first rows" if rows < len(lazy) else "")]

    return _page(_text(repr(lazy)), _note(_bytes(lazy.nbytes)), *_or_error(picture))


def of_table(table: Table) -> str:
    """The first rows of a table."""

    def rows() -> list[str]:
        if not table.groups:
            return []
        group, forms = table.groups[0], table.dtypes if len(table.groups) <= _COLUMNS else {}
        # Rows that are no structs are shown as one column.
        names = table.names()[:_COLUMNS] or [""]
        few = table[:_ROWS] if group.count <= _GROUP and group.is_near(_FEW_BYTES) else []
        head = [f"<th>{_text(name)}<div class=note>{_text(forms.get(name, ''))}</div></th>" for name in names]
        hidden = len(table.names()) - len(names)
        cells = [
            [f"<td>{_value(row.get(name, '') if isinstance(row, dict) else row)}</td>" for name in names]
            for row in few
        ]
        lines = [f"<tr>{''.join(line)}</tr>" for line in [head, *cells]]
        more = [_more(hidden, "column"), _more(len(table) - len(few), "row")]
        return [f"<table>{''.join(lines)}</table>", *more]

    count = f"{len(table):,} row" + "s" * (len(table) != 1)
    return _page(f"<b>{_text('tenarc.Table')}</b>{_note(count)}", *_or_error(rows))


class _Tree:
    """The tree of a value, by the parts of its paths."""

    def __init__(self, segment: Segment, pictures: Iterator[int] | None = None) -> None:
        self._segment = segment
        self._pictures = itertools.count() if pictures is None else pictures
        self._infos = {info.path: info for info in segment.tensors()}
        self._lines = 0
        #: Leaves are paths.
        self._root: dict[str, Any] = {}
        for path in segment:
            *outer, last = pointer_steps(path) if path.startswith("/") else path.split(".")
            node = self._root
            # A key with dots can start as another one does: `a` and `a.b`.
            for part in outer:
                while not isinstance(node.get(part, {}), dict):
                    part += "."
                node = node.setdefault(part, {})
            while last in node:
                last += "."
            node[last] = path

    def folded(self) -> str:
        return f"<details><summary>{_text(repr(self._segment))}</summary>{self.html()}</details>"

    def html(self) -> str:
        if [*self._root.values()] == [""]:
            return self._leaf("", "")
        return "".join(self._children(self._root, 0))

    def _children(self, node: dict[str, Any], depth: int) -> Iterator[str]:
        # A level that is deep in a large tree may have no room left.
        for number, (name, child) in enumerate(node.items()):
            if number == _CHILDREN or self._lines >= _LINES:
                yield f"<div class=leaf>{_more(len(node) - number, 'more', plural='more')}</div>"
                return
            self._lines += 1
            if isinstance(child, dict):
                tensors, length = self._size(child)
                note = _note(f"{tensors:,} tensor{'s' * (tensors != 1)}, {_bytes(length)}") if tensors else ""
                inner = "".join(self._children(child, depth + 1))
                opened = " open" * (depth == 0 and len(node) <= 4)
                yield f"<details{opened}><summary><code>{_text(name)}</code>{note}</summary>{inner}</details>"
            else:
                yield self._leaf(name, child)

    def _size(self, node: dict[str, Any]) -> tuple[int, int]:
        """How many tensors there are under a node, and their bytes."""
        found, stack = [], [node]
        while stack:
            for child in stack.pop().values():
                if isinstance(child, dict):
                    stack.append(child)
                elif child in self._infos:
                    found.append(self._infos[child].nbytes)
        return len(found), sum(found)

    def _leaf(self, name: str, path: str) -> str:
        info = self._infos.get(path)
        if info is None:
            found = ""
            if len(self._segment.header.metadata) <= _METADATA:
                found = "".join(_or_error(lambda: [_value(self._segment[path])]))
            return f"<div class=leaf><code>{_text(name)}</code>{_note(found, is_html=True)}</div>"
        about = f"{info.dtype} [{', '.join(map(str, info.shape))}]"
        notes = f"{_note(about)}{_note(_bytes(info.nbytes))}{self._image(info)}"
        return f"<div class=leaf><code>{_text(name)}</code>{notes}</div>"

    def _image(self, info: TensorInfo) -> str:
        if not info.shape or 0 in info.shape or not self._segment.is_near(info.buffer, info.nbytes, _FEW_BYTES):
            return ""
        if next(self._pictures) >= _PICTURES:
            return ""
        with suppress(Error, OSError, ValueError, TypeError):
            return _picture(self._segment.tensor(info.path))
        return ""


# Pictures


def _picture(array: Any, about: str = "") -> str:
    """A heat map of some elements, or nothing if they are no numbers. It has the last two dimensions."""
    if isinstance(array, Raw) or array.ndim == 0 or not array.size:
        return ""
    count = array.size
    array = array[(0,) * (array.ndim - 2)]
    if array.ndim == 1:
        array = array[None]
    sample = array[tuple(slice(None, None, -(-length // _SIDE)) for length in array.shape)]
    numbers = _numbers(np.ascontiguousarray(sample))
    if numbers is None:
        return ""
    finite = numbers[np.isfinite(numbers)]
    least, most = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    # Of numbers that are near the greatest ones, the difference can be infinite.
    with np.errstate(all="ignore"):
        place = (numbers / 2 - least / 2) / ((most / 2 - least / 2) or 1.0) * (len(_COLOURS) - 1)
    place = np.nan_to_num(place, nan=0.0)
    steps = np.arange(len(_COLOURS))
    colours = np.stack([np.interp(place, steps, _COLOURS[:, channel]) for channel in range(3)], axis=-1)
    colours[~np.isfinite(numbers)] = _NOT_FINITE
    data = base64.b64encode(_png(colours.astype(np.uint8))).decode()
    title = f"{least:.4g} to {most:.4g} in {numbers.size:,} of {count:,} elements {about}".strip()
    height, width = numbers.shape
    scale = _PIXELS / max(height, width)
    size = f"width={max(round(width * scale), 8)} height={max(round(height * scale), 8)}"
    return f'<img {size} title="{title}" alt="heat map: {title}" src="data:image/png;base64,{data}">'


def _numbers(sample: npt.NDArray[Any]) -> npt.NDArray[np.float64] | None:
    if sample.dtype.kind == "c":
        sample = np.abs(sample)
    elif sample.dtype.kind in "mM":
        sample = np.where(np.isnat(sample), np.nan, sample.view("i8").astype("f8"))
    # The kind of the types of ml_dtypes is that of bytes.
    try:
        return sample.astype(np.float64) if sample.dtype.names is None and sample.dtype.kind not in "OSU" else None
    except (TypeError, ValueError):
        return None


def _png(pixels: npt.NDArray[np.uint8]) -> bytes:
    """A PNG image of rows of pixels, each of three bytes."""
    height, width, _ = pixels.shape

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    # Each row starts with the number of its filter, which is none.
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows.tobytes(), 9)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


# HTML


def _page(*lines: str) -> str:
    return f'{_STYLE}<div class="tenarc">{"".join(f"<div>{line}</div>" for line in lines if line)}</div>'


def _text(text: str) -> str:
    cut = text if len(text) <= 2 * _TEXT else text[: 2 * _TEXT - 3] + "..."
    return html.escape(escaped(cut))


def _value(value: Any) -> str:
    try:
        return _text(_shown.repr(value))
    except Exception as error:
        return _text(f"<{type(error).__name__}>")


def _note(text: str, *, is_html: bool = False) -> str:
    return f"<span class=note>{text if is_html else _text(text)}</span>" if text else ""


def _more(count: int, what: str, *, plural: str | None = None) -> str:
    if count <= 0:
        return ""
    return _note(
        f"... and {count:,} more {what}{'s' * (count != 1)}" if plural is None else f"... and {count:,} {plural}"
    )


def _or_error(make: Callable[[], Iterable[str]]) -> Sequence[str]:
    """What a function makes, or what is wrong with the file: a notebook shows the rest all the same."""
    try:
        return [*make()]
    except (Error, OSError, ValueError) as error:
        return [_note(f"{type(error).__name__}: {error}")]


def _bytes(count: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            break
        count /= 1000
    return f"{count:,.0f} {unit}" if unit == "bytes" or count >= 100 else f"{count:.3g} {unit}"
