"""`StorageWriter` and `StorageReader` for `torch.distributed.checkpoint`, which `tenarc.torch` has.

They are in a module of their own because their base classes need torch.
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from math import prod
from typing import Any, TypeVar

import torch
from torch.distributed.checkpoint import storage
from torch.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)
from torch.distributed.checkpoint.planner import (
    LoadItemType,
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    WriteItem,
    WriteItemType,
)
from torch.futures import Future

from . import dtypes
from .blocks import Block, Region
from .errors import Damaged, Fault, Mismatch, NotFound, Unsupported
from .places import Place, place_of
from .progress import Counter, Progress
from .sets import Shard, State, StoredValue, Written, commit
from .torch_arrays import from_torch, to_torch, torch_dtype
from .values import Raw

T = TypeVar("T")

#: The path of what torch needs to know of the state dict, beside the tensors and values.
_ABOUT = "__torch__"
_PLAIN = (bool, int, float, str, bytes, type(None))


class StorageWriter(storage.StorageWriter):
    """Saves the state of several processes in one directory or store, for `torch.distributed.checkpoint.save`.

    >>> dcp.save(state_dict, storage_writer=tenarc.torch.StorageWriter("run", step=100))  # doctest: +SKIP

    Each process writes an archive, and at last one of them a manifest, which appears at once. Before, readers see
    the state that was committed before: if a process dies, nothing is committed. States of the same directory stay
    until somebody deletes them. Others can read the tensors, such as the crate `tenarc-store`: the layout is its.

    The path is that of a directory that all processes see, or a URL such as `s3://bucket/run`, which needs
    obstore. With `store`, it is the path in that store of obstore.

    Values beside the tensors are stored as what they are: numbers, texts, bytes, lists, tuples and dicts. Other
    objects are refused with `Unsupported`, unless `pickle` is set. `step` is stored with the state. `progress` is
    that of `tenarc.save`, for the bytes that this process saves.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        step: int = 0,
        pickle: bool = False,
        progress: Progress = False,
        store: Any = None,
    ) -> None:
        super().__init__()
        self._path, self._step, self._pickle, self._progress = path, step, pickle, progress
        self._store = store

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        self._path = checkpoint_id or self._path

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        if not kwargs.get("use_collectives", True):
            raise Unsupported("all processes commit one state together: `use_collectives=False` is not supported")
        _place(self._path, self._store)

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        return plans

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[storage.WriteResult]]:
        if not plan.items:
            return _done([])
        written: list[tuple[MetadataIndex, int, Block | StoredValue, str]] = []
        tensors = [item.tensor_data for item in plan.items if item.tensor_data is not None]
        total = sum(prod(tensor.chunk.sizes) * tensor.properties.dtype.itemsize for tensor in tensors)
        with Counter(self._progress, total, "saving") as counter, Shard(_place(self._path, self._store)) as shard:
            for item in plan.items:
                found = planner.resolve_data(item)
                if item.type == WriteItemType.BYTE_IO:
                    written.append((item.index, *self._value(shard, item.index.fqn, found)))
                else:
                    written.append((item.index, *_block(shard, item, found)))
                counter.add(written[-1][1])
            done = shard.finish().object
        return _done([storage.WriteResult(index, size, (done, *stored)) for index, size, *stored in written])

    def _value(self, shard: Shard, path: str, found: Any) -> tuple[int, StoredValue, str]:
        data = found.getvalue()
        form, value = _unpickled(data)
        if form == "pickle" and not self._pickle:
            what = "the format has no such value; `StorageWriter(..., pickle=True)` stores it by pickle"
            raise Unsupported(what, path=path)
        return len(data), shard.value(path, value), form

    def finish(self, metadata: Metadata, results: list[list[storage.WriteResult]]) -> None:
        root, written = _place(self._path, self._store), []
        forms: dict[str, list[str]] = {}
        for result in results:
            blocks, values = [], []
            for one in result:
                _, stored, form = one.storage_data
                if isinstance(stored, Block):
                    blocks.append(stored)
                else:
                    values.append(stored)
                    forms.setdefault(form, []).append(stored.path)
            if result:
                written.append(Written(result[0].storage_data[0], blocks, values))
        forms.pop("plain", None)
        about = {"torch": str(torch.__version__), "forms": forms}
        with Shard(root) as shard:
            shard.value(_ABOUT, about | {"planner_data": _keys_of(metadata.planner_data)})
            written.append(shard.finish())
        commit(root, self._step, written)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        return True

    def storage_meta(self) -> StorageMeta | None:
        return StorageMeta(checkpoint_id=self._path)


class StorageReader(storage.StorageReader):
    """Loads what `StorageWriter` has saved, for `torch.distributed.checkpoint.load`.

    >>> dcp.load(state_dict, storage_reader=tenarc.torch.StorageReader("run"))  # doctest: +SKIP

    It reads the state that was committed last, or the last one of a `step`. Any number of processes can load it,
    which divide the tensors otherwise than those that saved it. Only the parts that are needed are read, and their
    checksums are verified. The path and `store` are those of `StorageWriter`.

    What was stored by pickle is refused with `Unsupported`, unless `pickle` is set: it can run any code.
    `progress` is that of `tenarc.load`, for the bytes of tensors that this process loads.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        step: int | None = None,
        pickle: bool = False,
        progress: Progress = False,
        store: Any = None,
    ) -> None:
        super().__init__()
        self._path, self._step, self._pickle, self._progress = path, step, pickle, progress
        self._store = store
        self._state: State | None = None

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        self._path = checkpoint_id or self._path
        self._close()

    def _close(self) -> None:
        if self._state is not None:
            self._state.close()
            self._state = None

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        self._close()
        self._state = state = State(_place(self._path, self._store), self._step)
        with closing(state):
            about = state.value(_ABOUT) if _ABOUT in state.values else {}
        found: dict[str, Any] = {path: _described(path, blocks) for path, blocks in state.tensors.items()}
        found |= {path: BytesStorageMetadata() for path in state.values if path != _ABOUT}
        forms = about.get("forms") or {}
        self._forms = {path: form for form, paths in forms.items() for path in paths}
        keys = about.get("planner_data")
        return Metadata(
            found,
            planner_data=None if keys is None else {name: tuple(path) for name, path in keys.items()},
            storage_meta=StorageMeta(checkpoint_id=self._path),
        )

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        self._opened()

    def _opened(self) -> State:
        if self._state is None:
            self.read_metadata()
        assert self._state is not None
        return self._state

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        return replace(plan, storage_data=self._opened().manifest.number)

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        numbers = sorted({plan.storage_data for plan in plans})
        if len(numbers) > 1:
            what = (
                f"a state was committed while processes began to load: they found those with the numbers {numbers}"
            )
            raise Mismatch(f"{what}; load again, or choose a step")
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        with closing(self._opened()) as state:
            blocks = {(path, *block.offset): block for path, found in state.tensors.items() for block in found}
            items = sorted(plan.items, key=lambda item: _order(item, blocks))
            with Counter(self._progress, sum(_length(item, blocks) for item in items), "loading") as counter:
                for item in items:
                    self._read(item, state, blocks, planner)
                    counter.add(_length(item, blocks))
        return _done(None)

    def _read(self, item: ReadItem, state: State, blocks: Mapping[Any, Block], planner: LoadPlanner) -> None:
        path = item.storage_index.fqn
        if item.type == LoadItemType.BYTE_IO:
            planner.load_bytes(item, self._bytes(state, path))
            return
        block = blocks.get((path, *(item.storage_index.offset or ())))
        if block is None:
            raise NotFound(f"there is no block at {list(item.storage_index.offset or ())}", path=path)
        target = planner.resolve_tensor(item).detach()
        target.copy_(_part(state, block, item))
        planner.commit_tensor(item, target)

    def _bytes(self, state: State, path: str) -> io.BytesIO:
        form, value = self._forms.get(path, "plain"), state.value(path)
        if form == "pickle":
            if not self._pickle:
                what = "it was stored by pickle, which can run any code when it is loaded"
                raise Unsupported(f"{what}; `StorageReader(..., pickle=True)` loads it", path=path)
            if not isinstance(value, bytes):
                raise Damaged(f"expected bytes, found {type(value).__name__}", path=path)
            return io.BytesIO(value)
        data = io.BytesIO()
        torch.save(tuple(value) if form == "tuple" else value, data)
        data.seek(0)
        return data

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        return True


def _place(path: str | os.PathLike[str] | None, store: Any) -> Place:
    if path is None:
        raise Unsupported("expected a directory or a URL, as the argument of the class or as `checkpoint_id`")
    return place_of(path, store)


def _done(value: T) -> Future[T]:
    future: Future[T] = Future()
    future.set_result(value)
    return future


# Writing


def _block(shard: Shard, item: WriteItem, tensor: Any) -> tuple[int, Block, str]:
    assert item.tensor_data is not None
    path = item.index.fqn
    try:
        name, shape, bits = from_torch(tensor)
    except Fault as fault:
        raise fault.kind(fault.message, path=path) from None
    data = bits if bits.flags.c_contiguous else bits.copy()
    raw = Raw(name, shape, data.reshape(-1).view("u1"))
    return raw.data.nbytes, shard.block(path, raw, item.tensor_data.size, item.tensor_data.chunk.offsets), "block"


def _unpickled(data: bytes) -> tuple[str, Any]:
    """How a value of torch's planner is stored, and what is stored. torch has pickled it."""
    try:
        value = torch.load(io.BytesIO(data), weights_only=True)
    except Exception:
        # It needs other types, or is of another planner.
        return "pickle", data
    if _is_plain(value):
        return "plain", value
    if type(value) is tuple and _is_plain(list(value)):
        return "tuple", list(value)
    return "pickle", data


def _is_plain(value: Any) -> bool:
    """Whether the format keeps a value and its types."""
    kind = type(value)
    if kind is list:
        return all(map(_is_plain, value))
    if kind is dict:
        return all(type(key) is str and _is_plain(item) for key, item in value.items())
    return kind in _PLAIN and (kind is not int or -(1 << 63) <= value < 1 << 64)


def _keys_of(planner_data: Any) -> dict[str, list[Any]] | None:
    """The keys that lead to each value of the state dict, which torch has joined by dots."""
    if planner_data is None:
        return None
    if isinstance(planner_data, Mapping) and all(
        type(keys) is tuple and _is_plain(list(keys)) for keys in planner_data.values()
    ):
        return {name: list(keys) for name, keys in planner_data.items()}
    raise Unsupported("the planner's data: expected what torch's default planner has")


# Reading


def _described(path: str, blocks: list[Block]) -> TensorStorageMetadata:
    dtype = torch_dtype(blocks[0].dtype)
    if dtype is None:
        raise Mismatch(f"torch has no dtype for {blocks[0].dtype}", path=path)
    chunks = [ChunkStorageMetadata(torch.Size(block.offset), torch.Size(block.shape)) for block in blocks]
    return TensorStorageMetadata(TensorProperties(dtype=dtype), torch.Size(blocks[0].whole), chunks)


def _order(item: ReadItem, blocks: Mapping[Any, Block]) -> tuple[int, int]:
    """Where a block is, so that shards are read from front to end."""
    block = blocks.get((item.storage_index.fqn, *(item.storage_index.offset or ())))
    return (0, 0) if block is None else (block.object, block.segment)


def _length(item: ReadItem, blocks: Mapping[Any, Block]) -> int:
    """The bytes of what is read of a block."""
    block = blocks.get((item.storage_index.fqn, *(item.storage_index.offset or ())))
    known = None if block is None else dtypes.BY_NAME.get(block.dtype)
    return 0 if known is None else prod(item.lengths) * known.bits // 8


def _part(state: State, block: Block, item: ReadItem) -> Any:
    offsets, lengths = item.storage_offsets, item.lengths
    region: Region = [(start, start + length) for start, length in zip(offsets, lengths, strict=True)]
    found = to_torch(state.read(block, region))
    return found.reshape(tuple(lengths))
