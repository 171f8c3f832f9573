"""What notebooks show: short and well-formed HTML, in which nothing of the file is markup."""

import base64
import re
import struct
import zlib
from html.parser import HTMLParser

import numpy as np
import pytest

import tenarc
from tenarc import notebook

VOID = {"img", "meta"}
#: Tags and attributes that the package writes.
TAGS = {"style", "div", "details", "summary", "code", "span", "b", "table", "tr", "th", "td", "img"}
ATTRIBUTES = {"class", "open", "title", "alt", "src", "width", "height"}


class Page(HTMLParser):
    """Checks that tags are closed in order, and keeps what is visible."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open, self.text, self.images = [], "", []
        self.feed(html)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        assert tag in TAGS and {name for name, _ in attributes} <= ATTRIBUTES, (tag, attributes)
        if tag == "img":
            self.images.append(dict(attributes))
        elif tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.text += data + "|"


def pixels(image) -> np.ndarray:
    """The colours of an image."""
    kind, data = image["src"].split(",")
    assert kind == "data:image/png;base64"
    data = base64.b64decode(data)
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, found = 8, {}
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        name, content = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length : at + 12 + length])[0] == zlib.crc32(name + content)
        found[name] = content
        at += 12 + length
    width, height = struct.unpack(">II", found[b"IHDR"][:8])
    rows = np.frombuffer(zlib.decompress(found[b"IDAT"]), np.uint8).reshape(height, 1 + 3 * width)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 3)


@pytest.fixture
def model(tmp_path):
    layers = [{"weight": np.arange(64 * 48, dtype="f4").reshape(64, 48), "bias": np.zeros(40)} for _ in range(3)]
    value = {"name": "small", "layers": layers, "empty": np.zeros((0, 3)), "step": 7, "rates": [0.1, 0.2]}
    tenarc.save(tmp_path / "model.tenarc", value)
    with tenarc.open(tmp_path / "model.tenarc") as archive:
        yield archive


def test_an_archive_is_a_tree(model):
    for found in (model._repr_html_(), model.segment(0)._repr_html_()):
        page = Page(found)
        for text in (
            "layers|",
            "6 tensors, 37.8 kB",
            "weight|",
            "f32 [64, 48]",
            "12.3 kB",
            "'small'",
            "[0.1, 0.2]",
        ):
            assert text in page.text, text
        assert len(page.images) == 6 and page.images[0]["title"] == "0 to 3022 in 768 of 3,072 elements"
        assert page.text.index("name|") < page.text.index("layers|") < page.text.index("step|")
    model.close()
    assert "closed" in Page(model._repr_html_()).text


def test_colours_follow_the_values(model):
    image = pixels(Page(model._repr_html_()).images[0])
    assert image.shape == (32, 24, 3)
    assert image[0, 0].tolist() == [68, 1, 84] and image[-1, -1].tolist() == [253, 231, 37]
    assert (np.diff(image[:, 0, 1].astype(int)) >= 0).all()
    # What is not finite has a colour of its own, and numbers near the greatest ones overflow nothing.
    array = np.array([[np.nan, -1.7e308], [1.7e308, np.inf]])
    found = pixels(Page(notebook._picture(array)).images[0])
    assert found.tolist() == [[[255, 0, 128], [68, 1, 84]], [[253, 231, 37], [255, 0, 128]]]


def test_pictures_are_of_all_numbers():
    import ml_dtypes

    values = [0, 1, 2, 3]
    for dtype in ("?", "u1", "i8", "f2", "c8", "M8[s]", "m8[ns]", ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn):
        found = notebook._picture(np.array(values).astype(dtype))
        assert pixels(Page(found).images[0]).shape == (1, 4, 3), dtype
    for array in (np.array(["a"]), np.array([b"a"]), np.zeros(3, "V16"), np.zeros(()), np.zeros((3, 0))):
        assert notebook._picture(array) == ""
    assert notebook._picture(np.array(["NaT"], "M8[s]")) != ""


HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</div></details>",
    "&lt;b&gt;",
    "\x1b[2J\x00\u202e",
]


def test_nothing_of_a_file_is_markup(tmp_path):
    for number, name in enumerate(HOSTILE):
        path = tmp_path / f"{number}{'<b>' * (number % 2)}.tenarc"
        inner = {name: {name: np.ones(3000), "value": name, f"{name}.{name}": [name, {name: 1}]}}
        table = tenarc.Table([{name: name, "list": [name]}] * 3)
        with open(path, "wb") as file, tenarc.Writer(file) as out:
            out.save(inner, name=name, notes={name: name})
            out.save(table, name="rows")
        with tenarc.open(path) as archive:
            shown = [archive, archive.segment(0), archive.table("rows"), tenarc.Table([{name: name}])]
            for value in shown:
                html = value._repr_html_()
                # The parser knows only the package's own tags and attributes.
                page = Page(html)
                assert "\x1b" not in html and "\x00" not in html and "\u202e" not in html
                if number == 0:
                    assert name in page.text
        tenarc.save(path, {name: np.ones(3000)})
        with tenarc.open(path) as archive:
            page = Page(archive.lazy(archive.keys()[0])._repr_html_())
            assert len(page.images) == 1


def test_ten_thousand_tensors_are_short(tmp_path):
    flat = {f"layers.{n // 10}.part.{n % 10}": np.zeros(600, "f4") for n in range(10_000)}
    deep: dict = {}
    for _ in range(60):
        deep = {"a": deep, "b": np.zeros(600)}
    for number, value in enumerate((flat, {"x": flat}, [np.zeros(600)] * 10_000, deep)):
        tenarc.save(tmp_path / f"{number}", value)
        with tenarc.open(tmp_path / f"{number}") as archive:
            html = archive._repr_html_()
            page = Page(html)
            assert len(html) < 150_000 and len(page.images) <= 24
            assert "more" in page.text or value is deep
    with tenarc.append(tmp_path / "many") as out:
        for n in range(1000):
            out.save({"w": np.zeros(600)}, name=f"step {n}")
    with tenarc.open(tmp_path / "many") as archive:
        assert len(archive._repr_html_()) < 50_000 and "and 992 more values" in archive._repr_html_()


def test_few_bytes_are_read(tmp_path, monkeypatch):
    value = {"big": np.zeros((4000, 1000), "f4"), "small": np.arange(3000.0)}
    tenarc.save(tmp_path / "packed", value, compression=lambda path, *_: "zstd" if path == "big" else None)
    tenarc.save(tmp_path / "plain", value)
    read = []
    monkeypatch.setattr(notebook, "_picture", lambda array, about="": read.append(array.nbytes) or "")
    with tenarc.open(tmp_path / "plain") as archive:
        archive._repr_html_()
        # A view of the file, of which the picture uses 1,024 elements.
        assert read == [16_000_000, 24_000]
        assert not archive["big"].flags.owndata
        read.clear()
        archive.lazy("big")._repr_html_()
        assert len(read) == 1 and read[0] <= 1 << 20
    read.clear()
    with tenarc.open(tmp_path / "packed") as archive:
        archive._repr_html_()
        assert read == [24_000]


def test_rows_of_a_table(tmp_path):
    rows = [{"id": n, "text": f"t{n}" * 100, "more": None} for n in range(1000)]
    tenarc.save(tmp_path / "a", {"log": tenarc.Table(rows)})
    with tenarc.open(tmp_path / "a") as archive:
        html = archive.table("log")._repr_html_()
    for found in (html, tenarc.Table(rows)._repr_html_()):
        page = Page(found)
        assert "1,000 rows" in page.text and "and 995 more rows" in page.text and "u16|" in page.text
        assert len(found) < 10_000 and re.search(r"<td>4</td><td>&#x27;t4t4", found)
    wide = Page(tenarc.Table({f"c{n}": [1] for n in range(500)})._repr_html_())
    assert "and 484 more columns" in wide.text
    assert "0 rows" in Page(tenarc.Table([])._repr_html_()).text
    assert "<td>3</td>" in tenarc.Table([3, 4])._repr_html_()
    # Of a long compressed table, only what the columns are is known without reading it.
    random = np.random.default_rng(0).integers(0, 1 << 20, 900_000)
    tenarc.save(tmp_path / "b", tenarc.Table({"id": random}), compression="zstd")
    with tenarc.open(tmp_path / "b") as archive:
        page = Page(archive.table("")._repr_html_())
        assert "id|" in page.text and "and 900,000 more rows" in page.text


def test_a_damaged_or_torn_file_is_shown_as_far_as_it_can_be(tmp_path):
    path = tmp_path / "a"
    with open(path, "wb") as file, tenarc.Writer(file) as out:
        out.save({"a": np.arange(30_000.0)})
        out.save({"b": np.arange(30_000.0)})
    data = bytearray(path.read_bytes())
    data[20] ^= 1
    path.write_bytes(data)
    with tenarc.open(path) as archive:
        page = Page(archive._repr_html_())
        assert "Damaged" in page.text and "b|" in page.text
    data[20] ^= 1
    path.write_bytes(data[:-200_000])
    with tenarc.open(path, torn=True) as archive:
        assert "bytes missing" in Page(archive._repr_html_()).text
