"""Case p in Python: one tensor, compressed by other libraries, each with one thread.

    weights.py FILE DTYPE ROUNDS    FILE holds the bytes of the tensor, DTYPE is bf16 or f32

Writes other files beside FILE, and checks that what is loaded is equal. Prints rows of results as JSON in
the form of `RowResults` in ../report/src/results.rs. Files are in the page cache and not synced.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import blosc2
import numpy as np
import zarr
import zarrs  # noqa: F401: its codecs are chosen in `main`
import zipnn
from measure import figures

CHUNK = 1 << 20


class Npz:
    """`numpy.savez_compressed`."""

    peer, form = "npz", "deflated"

    def __init__(self, path: Path, values: np.ndarray) -> None:
        self.path, self.values = path.with_suffix(".npz"), values

    def save(self) -> None:
        np.savez_compressed(self.path, weight=self.values)

    def load(self) -> np.ndarray:
        return np.load(self.path)["weight"]


class ZipNN:
    """With one thread, and otherwise what it does by default."""

    peer, form = "ZipNN", "Huffman codes"

    def __init__(self, path: Path, values: np.ndarray) -> None:
        self.path, self.values = path.with_suffix(".znn"), values
        dtype = "bfloat16" if values.dtype == np.uint16 else "float32"
        # It may change its input.
        self.codec = lambda: zipnn.ZipNN(input_format="byte", bytearray_dtype=dtype, threads=1)

    def save(self) -> None:
        self.path.write_bytes(self.codec().compress(bytearray(self.values.tobytes())))

    def load(self) -> np.ndarray:
        data = self.codec().decompress(self.path.read_bytes())
        return np.frombuffer(bytearray(data), self.values.dtype)


class Blosc2:
    """Byte planes and zstd, level 1, in chunks of 1 MiB."""

    peer, form = "blosc2", "shuffle, zstd"
    filters = blosc2.Filter.SHUFFLE

    def __init__(self, path: Path, values: np.ndarray) -> None:
        self.path, self.values = path.with_suffix(f".{self.filters.name}.b2nd"), values

    def save(self) -> None:
        cparams = blosc2.CParams(codec=blosc2.Codec.ZSTD, clevel=1, nthreads=1, filters=[self.filters])
        chunks = (CHUNK // self.values.itemsize,)
        blosc2.asarray(self.values, chunks=chunks, cparams=cparams, urlpath=str(self.path), mode="w")

    def load(self) -> np.ndarray:
        return blosc2.open(str(self.path), mode="r", dparams=blosc2.DParams(nthreads=1))[:]


class Blosc2Bits(Blosc2):
    """Bit planes."""

    form = "bitshuffle, zstd"
    filters = blosc2.Filter.BITSHUFFLE


class Zarr:
    """One shard with chunks of 1 MiB, zstd level 3, by the codecs of zarrs."""

    peer, form = "zarrs", "shard, zstd -3"

    def __init__(self, path: Path, values: np.ndarray) -> None:
        self.path, self.values = path.with_suffix(".zarr"), values

    def save(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        chunk = CHUNK // self.values.itemsize
        array = zarr.create_array(
            self.path,
            shape=self.values.shape,
            dtype=self.values.dtype,
            chunks=(chunk,),
            shards=(-(-len(self.values) // chunk) * chunk,),
            compressors=zarr.codecs.ZstdCodec(level=3),
        )
        array[:] = self.values

    def load(self) -> np.ndarray:
        return zarr.open_array(self.path, mode="r")[:]


def size(path: Path) -> int:
    files = [path] if path.is_file() else path.rglob("*")
    return sum(file.stat().st_size for file in files if file.is_file())


def main(file: str, dtype: str, rounds: int) -> None:
    path = Path(file)
    zarr.config.set(
        {
            "codec_pipeline.path": "zarrs.ZarrsCodecPipeline",
            "threading.max_workers": 1,
            "codec_pipeline.chunk_concurrent_maximum": 1,
        }
    )
    # numpy has no bf16. Its bits do as well.
    values = np.fromfile(path, np.uint16 if dtype == "bf16" else np.float32)
    results = []
    for kind in (Npz, ZipNN, Blosc2, Blosc2Bits, Zarr):
        peer = kind(path, values)
        peer.save()
        if not np.array_equal(peer.load().view(np.uint8), values.view(np.uint8)):
            raise SystemExit(f"{peer.peer} loads other values")
        # npz takes seconds.
        measured = figures({"save": peer.save, "load": peer.load}, 1 if kind is Npz else rounds)
        results.append({"peer": peer.peer, "form": peer.form, "bytes": size(peer.path), "figures": measured})
    print(json.dumps(results))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
