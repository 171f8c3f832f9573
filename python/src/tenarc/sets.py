"""States that many processes save together in one directory, as the crate `tenarc-store` has them.

Each process writes a *shard*: an archive under a random name, with *blocks* of tensors and with values. Nobody
looks at it before one process *commits*: it creates a manifest, an archive that lists all shards and blocks. So
readers see all of a state, or the one before. Manifests are numbered downwards, so that the newest comes first in
a list.

`docs/decisions/store.md` says why. torch is not needed here: see `torch_storage`.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import io
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import PurePath
from types import TracebackType
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
import xxhash

from . import dtypes
from .archive import Archive
from .blocks import Block, Region, key_of, meet, tile_shape, tiles
from .errors import Damaged, Mismatch, NotFound, Unsupported, Version, in_file
from .files import save
from .message import dumps
from .places import Place, Root, place_of
from .stream import Writer
from .table import Table
from .values import Raw

T = TypeVar("T")

#: The version of manifests.
_VERSION = 1
_SHARDS, _MANIFESTS = "shards", "manifests"
_SUFFIX = ".tenarc"
_MOST = (1 << 64) - 1
#: The length of chunks of shards. A reader of some rows reads whole chunks, so they are short.
_CHUNK = 64 << 10
#: How many of the last bytes of a shard have a digest in the manifest.
_END = 4096
#: How often a commit is tried while others commit.
_TRIES = 50
#: How many shards a commit looks at at the same time.
_TOGETHER = 16
#: How many names an error has.
_SHOWN = 5


@dataclass(frozen=True)
class StoredObject:
    """A shard."""

    #: Its path in the directory of the set, which may be copied to another place.
    name: str
    size: int
    #: What the crate `object_store` takes as the entity tag of a file. A copy has another one.
    version: str | None
    #: The SHA-256 of the last bytes. An archive has offsets and hashes of what it consists of there.
    end: str


@dataclass(frozen=True)
class StoredValue:
    """A value that is no block of a tensor."""

    path: str
    object: int
    segment: int


@dataclass(frozen=True)
class Manifest:
    """A state of a set."""

    version: int
    #: Which commit wrote it.
    write: str
    number: int
    #: The number of the manifest with the tensors: this one, or an earlier one if this one only says what is
    #: deleted.
    commit: int
    #: What wrote the manifest before.
    parent: str | None
    step: int
    objects: list[StoredObject]
    blocks: list[Block]
    values: list[StoredValue]
    #: The names of objects that the last collection deletes. Later manifests repeat them until the next one.
    deleted: list[str] = field(default_factory=list)


#: What is before the first manifest.
_NONE = Manifest(_VERSION, "", 0, 0, None, 0, [], [], [])


@dataclass(frozen=True)
class Collected:
    """What was deleted: `collect`."""

    #: The number of shards, and of their bytes.
    objects: int
    bytes: int
    #: The number of manifests.
    manifests: int


class _Gone(Exception):
    """A collection has deleted a manifest meanwhile, so there is a newer one."""


@dataclass(frozen=True)
class Written:
    """What one process has written."""

    object: StoredObject
    blocks: list[Block]
    values: list[StoredValue]


# Writing


class Shard:
    """What one process writes. After an exception in a `with` block, nothing is left."""

    def __init__(self, root: Root) -> None:
        self._place = place_of(root)
        self._name = f"{_SHARDS}/{secrets.token_hex(16)}{_SUFFIX}"
        self._file = self._place.start(self._name)
        self._is_kept = False
        self._out = Writer(self._file, chunk_len=_CHUNK)
        self._blocks: list[Block] = []
        self._values: list[StoredValue] = []
        self._segments = 0

    def __enter__(self) -> Shard:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None or not self._is_kept:
            self._place.drop(self._name, self._file)

    def block(self, path: str, block: Raw, whole: Sequence[int], offset: Sequence[int]) -> Block:
        """Writes a block of a tensor that has the shape `whole`: its elements from `offset` on."""
        known = dtypes.BY_NAME.get(block.dtype)
        if known is None or known.bits % 8:
            what = f"a tensor of {block.dtype} cannot be stored in blocks: its elements are not whole bytes"
            raise Unsupported(what, path=path)
        shape = list(block.shape)
        tile = tile_shape(shape, whole, known.bits // 8)
        bits, region = block.bits, [(0, length) for length in shape]
        # Not a list, which would be stored as columns.
        parts = {
            str(number): Raw(
                block.dtype, tuple(end - start for start, end in part), _bytes(bits[key_of(part, region)])
            )
            for number, part in tiles(shape, tile, region)
        }
        found = Block(path, block.dtype, list(whole), list(offset), shape, tile, 0, self._save(parts))
        self._blocks.append(found)
        return found

    def value(self, path: str, value: Any) -> StoredValue:
        """Writes a value that no other process writes."""
        found = StoredValue(path, 0, self._save(value))
        self._values.append(found)
        return found

    def _save(self, value: Any) -> int:
        self._out.save(value)
        self._segments += 1
        return self._segments - 1

    def finish(self) -> Written:
        """Makes the shard durable, and returns what a commit needs of it."""
        self._out.finish()
        self._place.keep(self._name, self._file)
        self._is_kept = True
        return Written(_object(self._place, self._name), self._blocks, self._values)


def _bytes(bits: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    return np.ascontiguousarray(bits).reshape(-1).view(np.uint8)


def _object(place: Place, name: str) -> StoredObject:
    """A shard as it is now."""
    found = place.find(name)
    return StoredObject(name, found.size, found.version, _end(place, name))


def _end(place: Place, name: str) -> str:
    return hashlib.sha256(place.last(name, _END)).hexdigest()


def commit(root: Root, step: int, written: Iterable[Written]) -> Manifest:
    """Makes what processes have written the latest state. Readers see all of it, or what was there before.

    `Damaged` names what is missing, and nothing is committed: a shard that is not there as it was written, or
    blocks that do not make whole tensors.
    """
    place = place_of(root)
    objects, blocks, values = [], [], []
    for number, one in enumerate(written):
        objects.append(one.object)
        blocks += [replace(block, object=number) for block in one.blocks]
        values += [replace(value, object=number) for value in one.values]
    manifest = replace(_NONE, step=step, objects=objects, blocks=blocks, values=values)
    _check_whole(manifest)
    manifest = replace(manifest, write=xxhash.xxh3_128(dumps([step, [one.name for one in objects]])).hexdigest())

    def tried() -> Manifest | None:
        numbers = _numbers(place)
        newest = _manifest(place, numbers[-1]) if numbers else _NONE
        if newest.write == manifest.write:
            # It was created, but the answer was lost.
            return newest
        with ThreadPoolExecutor(_TOGETHER) as pool:
            found = [*pool.map(lambda one: _still(place, one, newest.deleted), objects)]
        number, parent = newest.number + 1, newest.write or None
        made = replace(
            manifest, objects=found, number=number, commit=number, parent=parent, deleted=newest.deleted
        )
        return made if _create(place, made) else None

    return _until(place, tried)


def collect(
    root: Root,
    *,
    keep: int = 1,
    age: datetime.timedelta = datetime.timedelta(days=1),
    store: Any = None,
) -> Collected:
    """Deletes all states but the last `keep`, and shards that no kept state refers to and that are older than
    `age`. So shards that are being written, or are written and not committed yet, stay.

    What is deleted is written down first, in a manifest of its own. A commit that needs one of these shards then
    fails, and names it. After a failure, the next call deletes what is left over. Whoever still reads one of the
    states that are deleted gets errors about missing shards.
    """
    place = place_of(root, store)
    return _until(place, lambda: _collected(place, max(keep, 1), age.total_seconds()))


def _collected(place: Place, keep: int, age: float) -> Collected | None:
    """`None` if others have committed or collected meanwhile, and may use what was found."""
    numbers = _numbers(place)
    newest = _manifest(place, numbers[-1]) if numbers else _NONE
    kept: list[Manifest] = []
    surplus: list[int] = []
    for number in reversed(numbers):
        manifest = None if len(kept) >= keep else _manifest(place, number)
        if manifest is not None and manifest.commit == number:
            kept.append(manifest)
        elif number != newest.number:
            # The newest one is always kept: it says what comes next.
            surplus.append(number)
    used = {shard.name for manifest in kept for shard in manifest.objects}
    now, size = time.time(), 0
    old: list[str] = []
    for file, found in sorted(place.list(_SHARDS).items()):
        name = f"{_SHARDS}/{file}"
        if file.endswith(_SUFFIX) and name not in used and now - found.modified >= age:
            old.append(name)
            size += found.size
    if old:
        number = newest.number + 1
        write = xxhash.xxh3_128(dumps([newest.number, old])).hexdigest()
        parts: Any = dict(objects=[], blocks=[], values=[])
        if not _create(place, replace(newest, write=write, number=number, deleted=old, **parts)):
            return None
    # The oldest manifest goes first: whoever finds one that was listed beside a newer one that is gone must not
    # take it for the newest.
    for name in (*old, *map(_manifest_name, reversed(surplus))):
        place.remove(name)
    return Collected(len(old), size, len(surplus))


def _until(place: Place, call: Callable[[], T | None]) -> T:
    """What a call gives when no others have committed or collected meanwhile."""
    for _ in range(_TRIES):
        with contextlib.suppress(_Gone):
            found = call()
            if found is not None:
                return found
    raise OSError(f"others have committed {_TRIES} times meanwhile: {place}")


def _still(place: Place, written: StoredObject, deleted: list[str]) -> StoredObject:
    """A shard as the committing process sees it: others may have the directory elsewhere."""
    with in_file(place.path(written.name)):
        try:
            found = _same(place, written)
        except FileNotFoundError:
            raise Damaged("the shard is not there any more: nothing is committed") from None
        if found.name in deleted:
            raise Damaged("a collection is deleting the shard: nothing is committed")
        return found


def _same(place: Place, written: StoredObject) -> StoredObject:
    """A shard as it is now. It must be what was written, or a copy of it."""
    found = place.find(written.name)
    if found.size != written.size:
        raise Damaged(f"expected a shard of {written.size} bytes, found {found.size}")
    if found.version != written.version and _end(place, written.name) != written.end:
        raise Damaged("the shard was replaced since it was written")
    return replace(written, version=found.version)


def _create(place: Place, manifest: Manifest) -> bool:
    """Creates the file of a manifest. Returns `False` if another one has its number."""
    value: dict[str, Any] = dict(vars(manifest))
    for name in ("objects", "blocks", "values"):
        rows = [vars(row) for row in value[name]]
        value[name] = Table(rows) if rows else []
    content = io.BytesIO()
    save(content, value)
    if not place.create(_manifest_name(manifest.number), content.getvalue()):
        return False
    # If others have committed since the newest one was looked for, and a collection has deleted theirs, this
    # number was there before, and nobody will read it.
    if _numbers(place)[-1:] == [manifest.number]:
        return True
    try:
        return _manifest(place, manifest.number + 1).parent == manifest.write
    except _Gone:
        raise OSError(f"others have committed and collected meanwhile: {place}") from None


def _check_whole(manifest: Manifest) -> None:
    """Checks that the blocks of each tensor make all of it, and that no path occurs twice."""
    paths = [value.path for value in manifest.values]
    for path, blocks in _by_path(manifest.blocks).items():
        paths.append(path)
        first = blocks[0]
        for block in blocks:
            if (block.whole, block.dtype) != (first.whole, first.dtype):
                found = f"blocks of {first.dtype} {first.whole} and of {block.dtype} {block.whole}"
                raise Damaged(found, path=path)
        blocks = [block for block in blocks if prod(block.shape)]
        starts = np.array([block.offset for block in blocks], np.int64).reshape(len(blocks), len(first.whole))
        ends = starts + np.array([block.shape for block in blocks], np.int64).reshape(starts.shape)
        if (starts < 0).any() or (ends > first.whole).any():
            raise Damaged(f"a block is not in the tensor of the shape {first.whole}", path=path)
        for number in range(1, len(blocks)):
            meet = (starts[:number] < ends[number]) & (starts[number] < ends[:number])
            for other in np.flatnonzero(meet.all(axis=1))[:1]:
                what = f"the blocks {blocks[other].region} and {blocks[number].region} overlap"
                raise Damaged(what, path=path)
        count = sum(prod(block.shape) for block in blocks)
        if count != prod(first.whole):
            raise Damaged(f"the blocks have {count} of the {prod(first.whole)} elements", path=path)
    seen: set[str] = set()
    for path in paths:
        if path in seen:
            raise Damaged("two processes have written it, or one has written it twice", path=path)
        seen.add(path)


def _by_path(blocks: Iterable[Block]) -> dict[str, list[Block]]:
    found: dict[str, list[Block]] = {}
    for block in blocks:
        found.setdefault(block.path, []).append(block)
    return found


# Reading


def _manifest_name(number: int) -> str:
    return f"{_MANIFESTS}/{_MOST - number:020}{_SUFFIX}"


def _numbers(place: Place) -> list[int]:
    """The numbers of all manifests, in ascending order."""
    stems = [name.removesuffix(_SUFFIX) for name in place.list(_MANIFESTS) if name.endswith(_SUFFIX)]
    return sorted(_MOST - int(stem) for stem in stems if len(stem) == 20 and stem.isascii() and stem.isdigit())


def _manifest(place: Place, number: int) -> Manifest:
    name = _manifest_name(number)
    try:
        with place.open(name) as archive:
            found: Manifest = archive.load(cls=Manifest)
    except FileNotFoundError:
        raise _Gone from None
    with in_file(place.path(name)):
        if found.version != _VERSION:
            raise Version(f"expected a manifest of version {_VERSION}, found version {found.version}")
        if found.number != number:
            raise Damaged(f"expected manifest {number}, found manifest {found.number}")
        for block in found.blocks:
            ends = zip(block.offset, block.shape, block.tile, block.whole, strict=False)
            lengths = {len(block.offset), len(block.shape), len(block.tile), len(block.whole)}
            fits = all(min(at, length, tile) >= 0 and at + length <= most for at, length, tile, most in ends)
            if len(lengths) > 1 or not fits or (0 in block.tile and 0 not in block.shape):
                what = f"the block {block.shape} at {block.offset} is not in a tensor of {block.whole}"
                raise Damaged(what, path=block.path)
        for shard in found.objects:
            folder, _, name = shard.name.partition("/")
            if folder != _SHARDS or name != PurePath(name).name:
                raise Damaged(f"expected a file in {_SHARDS!r}, found the name {shard.name!r}")
        parts: list[Block | StoredValue] = [*found.blocks, *found.values]
        for part in parts:
            if not 0 <= part.object < len(found.objects) or part.segment < 0:
                raise Damaged("it is in a shard that the manifest does not list", path=part.path)
    return found


class State:
    """A state that was committed: the latest one, or the latest one of a step."""

    def __init__(self, root: Root, step: int | None = None) -> None:
        self._place = place_of(root)
        self.manifest = _until(self._place, lambda: self._find(step))
        #: The blocks of each tensor.
        self.tensors = _by_path(self.manifest.blocks)
        self._values = {value.path: value for value in self.manifest.values}
        self._opened: dict[int, Archive] = {}

    def _find(self, step: int | None) -> Manifest:
        numbers = _numbers(self._place)
        if not numbers:
            raise NotFound(f"nothing was committed in {self._place}: there is no manifest")
        steps = []
        for number in reversed(numbers):
            found = _manifest(self._place, number)
            if found.commit != number:
                continue
            if step is None or found.step == step:
                return found
            steps.append(found.step)
        known = ", ".join(map(str, steps[:_SHOWN])) + ", ..." * (len(steps) > _SHOWN)
        what = "no state" if step is None else f"no state of step {step}, but of {known}"
        raise NotFound(f"{self._place} has {what}")

    def close(self) -> None:
        for archive in self._opened.values():
            archive.close()
        self._opened.clear()

    @property
    def values(self) -> list[str]:
        """The paths of all values that are no tensors in blocks."""
        return list(self._values)

    def value(self, path: str) -> Any:
        """A value that was written by one process."""
        stored = self._values.get(path)
        if stored is None:
            raise NotFound("there is no such value", path=path)
        return self._open(stored.object, path).segment(stored.segment).load()

    def read(self, block: Block, part: Region) -> Raw:
        """Part of a block, counted from its first element. Only the tiles that meet it are read, and verified."""
        shape = tuple(end - start for start, end in part)
        if len(part) != len(block.shape) or not all(
            0 <= start <= end <= length for (start, end), length in zip(part, block.shape, strict=True)
        ):
            raise Mismatch(f"the part {part} is not in a block of {block.shape}", path=block.path)
        known = dtypes.BY_NAME.get(block.dtype)
        if known is None or known.bits % 8:
            raise Unsupported(
                f"elements of {block.dtype} are not whole bytes, or of unknown size", path=block.path
            )
        width = known.bits // 8
        out = np.empty(shape, f"<u{width}" if width <= 8 else f"V{width}")
        if out.size:
            archive = self._open(block.object, block.path)
            segment = archive.segment(block.segment)
            infos = {info.path: info for info in segment.tensors()}
            for number, region in tiles(block.shape, block.tile, part):
                info, common = infos.get(str(number)), meet(region, part)
                if common is None:
                    continue
                wanted = tuple(end - start for start, end in region)
                if info is None or (info.dtype, info.shape) != (block.dtype, wanted):
                    there = "nothing" if info is None else f"one of {info.dtype} {list(info.shape)}"
                    what = f"expected a tile of {block.dtype} {list(wanted)}, found {there}"
                    raise Damaged(f"{what}, in shard {self.manifest.objects[block.object].name}", path=block.path)
                if info.buffer is None:
                    found = segment.tensor(info.path)
                    payload = found.data if isinstance(found, Raw) else _bytes(found)
                else:
                    payload = segment.payload(info.buffer, True)
                bits = Raw(block.dtype, wanted, payload, cast(dtypes.Order, info.order)).bits
                out[key_of(common, part)] = bits[key_of(common, region)]
        return Raw(block.dtype, shape, _bytes(out))

    def _open(self, number: int, path: str) -> Archive:
        archive = self._opened.get(number)
        if archive is not None:
            return archive
        stored = self.manifest.objects[number]
        file = self._place.path(stored.name)
        try:
            with in_file(file):
                _same(self._place, stored)
            archive = self._place.open(stored.name)
        except FileNotFoundError:
            raise NotFound(f"the shard {file!r} is missing, which has part of it", path=path) from None
        self._opened[number] = archive
        return archive
