"""What type checkers say of the package. mypy checks this file; it is not run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt
import polars
from typing_extensions import assert_type

import tenarc


@dataclass
class Model:
    name: str


class Keys(TypedDict):
    count: int


def what_is_loaded_has_the_type_that_was_asked_for(data: bytes, reader: tenarc.Reader) -> None:
    assert_type(tenarc.load("a"), Any)
    assert_type(tenarc.load("a", cls=Model), Model)
    assert_type(tenarc.load("a", cls=list[int], tables=True), list[int])
    assert_type(tenarc.load("a", cls=Keys)["count"], int)
    assert_type(tenarc.loads(data), Any)
    assert_type(tenarc.loads(data, cls=dict[str, float], copy=False), dict[str, float])
    assert_type(tenarc.from_parts(data, [data], cls=Model), Model)
    assert_type(reader.load(Model), Model)
    with tenarc.open("a") as archive:
        assert_type(archive.load(Model), Model)
        assert_type(archive.view(Model), Model)
        assert_type(archive.segment(0).load(Model, numbers=True), Model)
        assert_type(archive.segment(0).view(cls=Model), Model)
        assert_type(archive["a.b"], Any)
        assert_type(archive.segment(0).get("a", 5), Any | int)
        assert_type(archive.get("a", 5), Any | int)
    print(tenarc.load("a", cls=Model).title)  # type: ignore[attr-defined]
    tenarc.load("a", Model)  # type: ignore[call-overload]


def parts_have_types(archive: tenarc.Archive) -> None:
    lazy = archive.lazy("a")
    assert_type(lazy, tenarc.LazyArray)
    assert_type(lazy.shape, tuple[int, ...])
    assert_type(lazy.dtype, np.dtype[Any])
    # Some of them are numbers or `Raw`, so `Any` is one of the types, but names are checked and completed.
    assert_type(lazy[:3], npt.NDArray[Any] | Any)
    assert_type(archive.slice("a", np.s_[:3]).mean(axis=0), Any)
    archive.tensor("a").men()  # type: ignore[union-attr]
    assert_type(archive.keys(), list[str])
    assert_type(archive.tensors(), Iterator[tenarc.TensorInfo])
    table = archive.table("log")
    assert_type(table[1:], list[Any])
    found = table.filter(tenarc.col("x") > 1)
    assert_type(found, tenarc.Selection)
    assert_type(found.to_polars(), polars.DataFrame)
    archive[0]  # type: ignore[index]


def compression_is_one_of_the_codecs() -> None:
    tenarc.save("a", 1, compression="zstd")
    tenarc.save("a", 1, compression=("zstd", 9))
    tenarc.save("a", 1, compression=lambda path, dtype, shape: "lz4" if path else None)
    tenarc.save("a", 1, compression="gzip")  # type: ignore[arg-type]
    tenarc.save("a", 1, compression=("lz4", 9))  # type: ignore[arg-type]
