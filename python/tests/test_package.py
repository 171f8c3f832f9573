"""What the package shows of itself: names, version, licence, README and the versions that it needs."""

import re
import sys

import numpy as np
import pytest
from conftest import ROOT

import tenarc

PYTHON = ROOT / "python"
DUNDER = re.compile(r"__\w+__")


def public(value) -> set[str]:
    return {name for name in dir(value) if not DUNDER.fullmatch(name)}


def test_the_package_lists_its_public_names_only():
    assert public(tenarc) == {*tenarc.__all__, "numpy", "torch"}
    assert {"__version__", "__doc__", "__all__"} <= {*dir(tenarc)}
    for name in dir(tenarc):
        assert hasattr(tenarc, name)
    # A star import takes neither `numpy` nor `torch` from whoever has imported them.
    names: dict = {}
    exec("from tenarc import *", names)
    assert "numpy" not in names and "torch" not in names and "save" in names


def test_objects_list_their_public_names_only(tmp_path):
    path = tmp_path / "a.tenarc"
    tenarc.save(path, {"a": np.ones(1000), "log": tenarc.Table([{"x": 1}])})
    names = "close digest get items keys lazy load slice table tensor tensors view"
    shared = {*names.split()}
    with tenarc.open(path) as archive:
        values = "count names named notes segment segments series verify torn unfinished_bytes"
        assert public(archive) == shared | {*values.split()}
        segment = archive.segment(0)
        fields = (
            "alignment buffers byte_length compressed elsewhere end hashes header limits missing_bytes name notes "
            "number offset"
        )
        assert public(segment) == shared - {"close"} | {*fields.split()}
        header = "name alignment checksums chunk_len lengths metadata packed stored_lengths elsewhere algorithm"
        assert public(segment.header) == {*header.split(), "ext", "notes"}
        in_arrow = {"name", "to_arrow", "to_pandas", "to_polars"}
        shared = {"columns", "count", "dtypes", "filter", "index", "keys", "names", "rows", "take"}
        assert public(archive.table("log")) == shared | in_arrow
        (info, _) = archive.tensors()
        assert public(info) == {"path", "dtype", "shape", "order", "nbytes", "buffer", "count", "index"}
        for value in (archive, segment, segment.header, info, tenarc.Limits()):
            assert all(hasattr(value, name) for name in public(value))
        # A header shows no metadata, which can be long.
        assert len(repr(segment.header)) < 300
    assert public(tenarc.Limits()) == {"max_depth", "max_rank", "max_alloc"}
    with open(path, "wb") as file, tenarc.Writer(file) as out:
        assert public(out) == {"save", "commit", "finish"}
        out.save(1)
    with open(path, "rb") as file:
        assert public(tenarc.Reader(file)) == {"load", "next_header", "skip"}
    with tenarc.append(path) as out:
        assert public(out) == {"save", "commit", "finish", "close"}
    parts = tenarc.to_parts([np.ones(1000), np.ones(2000)])
    assert public(parts) == {"metadata", "buffers"}
    assert repr(parts) == f"<tenarc.Parts: {len(parts.metadata)} bytes of metadata, 2 buffers of 24,000 bytes>"


def test_the_version_is_that_of_the_rust_library():
    found = re.search(r'^version = "(.*)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    assert found is not None and tenarc.__version__ == found[1]


def test_the_licence_files_are_those_of_the_project():
    for name in ("LICENSE-APACHE", "LICENSE-MIT"):
        assert (PYTHON / name).read_bytes() == (ROOT / name).read_bytes()


def test_the_readme_has_no_relative_links():
    text = (PYTHON / "README.md").read_text()
    links = re.findall(r"\]\(([^)]*)\)|^\[[^]]*\]: *(\S+)|(?:src|href)=\"([^\"]*)\"", text, re.MULTILINE)
    for link in (target for found in links for target in found if target):
        assert link.startswith(("https://", "#")), link
    assert "../" not in text and "./" not in text


@pytest.mark.skipif(sys.version_info < (3, 11), reason="tomllib is in Python from 3.11 on")
def test_the_lowest_versions_that_are_tested_are_those_that_are_allowed():
    import tomllib

    project = tomllib.loads((PYTHON / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = {}
    for line in (*project["dependencies"], *extras["lz4"], *extras["ml-dtypes"], *extras["zstd"]):
        name, version = re.match(r"([\w.-]+)>=([\d.]+)", line).groups()
        wanted[name] = version
    lines = (PYTHON / "lowest.txt").read_text().splitlines()
    found = dict(re.match(r"([\w.-]+)==([\d.]+)", line).groups() for line in lines if not line.startswith("#"))
    assert {name: padded(found[name]) for name in wanted} == {name: padded(wanted[name]) for name in wanted}


def padded(version: str) -> tuple[int, ...]:
    parts = [*map(int, version.split(".")), 0, 0]
    return tuple(parts[:3])
