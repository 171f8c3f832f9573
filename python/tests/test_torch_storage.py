"""`torch.distributed.checkpoint` in sets of archives. The tests are skipped if torch is not installed."""

import os
import pickle
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

import tenarc
from tenarc.sets import State

torch = pytest.importorskip("torch", reason="torch is not installed")
dcp = pytest.importorskip("torch.distributed.checkpoint", reason="torch was built without torch.distributed")

import torch.distributed as dist  # noqa: E402
from torch.distributed._shard import sharded_tensor  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")

#: All tensors of the state, and along which axis the ranks of a row of the mesh divide them.
WHOLE = {
    "rows": (torch.arange(1037 * 64, dtype=torch.float32).reshape(1037, 64), 0),
    "columns": (torch.arange(33 * 1001, dtype=torch.int64).reshape(33, 1001), 1),
    "few": (torch.arange(2, dtype=torch.float64), 0),
    "short": (torch.arange(300 * 7).reshape(300, 7).to(torch.bfloat16), 0),
    "bytes": (torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn), 0),
    "complex": (torch.complex(torch.arange(50.0), -torch.arange(50.0)), 0),
    "bools": (torch.arange(64) % 3 == 0, 0),
}
PLAIN = {"step": 7, "name": "a/b.c", "lr": 0.1, "betas": (0.9, 0.999), "order": [1, "x", None], "on": True}


def in_processes(count: int, work, *args) -> None:
    """Calls a function in so many processes, which are a group on the loopback interface."""
    torch.multiprocessing.start_processes(_in_group, (count, work, args), nprocs=count, start_method="spawn")


def _in_group(rank: int, count: int, work, args) -> None:
    os.environ.update(GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1")
    torch.set_num_threads(1)
    rendezvous = Path(args[0]).with_name(f"{Path(args[0]).name}-{count}-{work.__name__}")
    options = dict(rank=rank, world_size=count, timeout=timedelta(seconds=60))
    dist.init_process_group("gloo", init_method=f"file://{rendezvous}", **options)
    try:
        work(*args)
    finally:
        dist.destroy_process_group()


def state_of(make) -> dict:
    """The state of one rank. Its tensors are what `make` gives for a whole tensor and an axis."""
    model = {name: make(whole, axis) for name, (whole, axis) in WHOLE.items()}
    return {"model": model, "replicated": torch.arange(5000.0), "scalar": torch.tensor(2.5), **PLAIN}


def empty(state):
    """The same state, with other content."""
    if isinstance(state, dict):
        return {name: empty(value) for name, value in state.items()}
    return torch.zeros_like(state) if isinstance(state, torch.Tensor) else None


def divided(whole, mesh, placements):
    """A tensor that all ranks have, divided without communication: gloo cannot send all dtypes."""
    return distribute_tensor(whole, mesh, placements, src_data_rank=None)


def bits(tensor) -> bytes:
    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def check(state: dict) -> None:
    for name, (whole, _) in WHOLE.items():
        found = state["model"][name]
        if isinstance(found, DTensor):
            whole = divided(whole, found.device_mesh, found.placements).to_local()
            found = found.to_local()
        assert (found.dtype, found.shape, bits(found)) == (whole.dtype, whole.shape, bits(whole)), name
    assert torch.equal(state["replicated"], torch.arange(5000.0)) and state["scalar"].item() == 2.5
    found = {name: state[name] for name in PLAIN}
    assert found == PLAIN and [*map(type, found.values())] == [*map(type, PLAIN.values())]


def meshed(mesh):
    """Divides tensors by one axis of ranks, or by two of a mesh of two dimensions."""
    placements = [Shard(0), Shard(1)] if mesh.ndim == 2 else None

    def make(whole, axis):
        if placements is not None:
            return divided(whole, mesh, placements if whole.ndim == 2 else [Shard(0), Replicate()])
        return divided(whole, mesh, [Shard(axis)])

    return make


def save_meshed(path, shape, step=0) -> None:
    mesh = init_device_mesh("cpu", shape)
    dcp.save(state_of(meshed(mesh)), storage_writer=tenarc.torch.StorageWriter(path, step=step))


def load_meshed(*paths) -> None:
    mesh = init_device_mesh("cpu", (2,))
    for path in paths:
        for axis in (0, 1):
            make = lambda whole, _, axis=axis: divided(whole, mesh, [Shard(min(axis, whole.ndim - 1))])  # noqa: E731
            state = empty(state_of(make))
            dcp.load(state, storage_reader=tenarc.torch.StorageReader(path))
            check(state)


def load_alone(path, **options) -> dict:
    state = empty(state_of(lambda whole, _: whole))
    dcp.load(state, storage_reader=tenarc.torch.StorageReader(path, **options))
    return state


def save_both(path, square) -> None:
    save_meshed(path, (4,))
    save_meshed(square, (2, 2))


def test_four_processes_save_and_two_or_one_load(tmp_path):
    path, square = tmp_path / "row", tmp_path / "square"
    in_processes(4, save_both, str(path), str(square))
    in_processes(2, load_meshed, str(path), str(square))
    check(load_alone(path))
    check(load_alone(square))
    assert len([*path.glob("shards/*.tenarc")]) == 5 and len([*path.glob("manifests/*")]) == 1
    others_read(path)


def others_read(path) -> None:
    state = State(path)
    assert state.value("step") == 7 and state.value("order") == [1, "x", None]
    blocks = state.tensors["model.rows"]
    rows = [state.read(block, [(0, length) for length in block.shape]) for block in blocks]
    assert len(blocks) == 4 and all(block.whole == [1037, 64] for block in blocks)
    found = np.concatenate([np.asarray(block) for block in rows])
    assert np.array_equal(found, WHOLE["rows"][0].numpy())
    # Each of them is an archive that says nothing of torch.
    for file in path.glob("*/*.tenarc"):
        with tenarc.open(file) as archive:
            archive.verify()
    assert b"PK\x03\x04" not in b"".join(file.read_bytes() for file in path.glob("*/*"))
    state.close()


def sharded(path, load: bool) -> None:
    rank, count = dist.get_rank(), dist.get_world_size()
    whole = torch.arange(40 * 8.0).reshape(40, 8)
    each = 40 // count
    local = whole[rank * each : (rank + 1) * each].clone()
    shard = sharded_tensor.Shard.from_tensor_and_offsets(
        torch.zeros_like(local) if load else local, [rank * each, 0], rank
    )
    state = {"w": sharded_tensor.init_from_local_shards([shard], 40, 8)}
    if load:
        dcp.load(state, storage_reader=tenarc.torch.StorageReader(path))
        assert torch.equal(shard.tensor, local)
    else:
        dcp.save(state, storage_writer=tenarc.torch.StorageWriter(path))


def test_sharded_tensors(tmp_path):
    in_processes(4, sharded, str(tmp_path / "run"), False)
    in_processes(2, sharded, str(tmp_path / "run"), True)
    state = {"w": torch.zeros(40, 8)}
    dcp.load(state, storage_reader=tenarc.torch.StorageReader(tmp_path / "run"))
    assert torch.equal(state["w"], torch.arange(320.0).reshape(40, 8))


class Dying(dcp.DefaultSavePlanner):
    """A planner of a process that dies when it has written some of its tensors."""

    count = 0

    def resolve_data(self, item):
        self.count += 1
        if self.count == 4 and dist.get_rank() == 2:
            os._exit(1)
        return super().resolve_data(item)


def save_and_die(path) -> None:
    mesh = init_device_mesh("cpu", (4,))
    state = state_of(meshed(mesh))
    state["step"] = 8
    writer = tenarc.torch.StorageWriter(path, step=8)
    dcp.save(state, storage_writer=writer, planner=Dying())
    raise AssertionError("the save of a group with a dead process came to its end")


def test_if_a_process_dies_the_state_before_stays(tmp_path):
    path = tmp_path / "run"
    with pytest.raises(dcp.api.CheckpointException, match="nothing was committed"):
        load_alone(path)
    dcp.save(
        state_of(lambda whole, _: whole), storage_writer=tenarc.torch.StorageWriter(path, step=7), no_dist=True
    )
    with pytest.raises(Exception, match=r"process 2|exit code 1|terminated"):
        in_processes(4, save_and_die, str(path))
    # Others have written their shards.
    assert len([*path.glob("shards/*")]) > 2 and len([*path.glob("manifests/*")]) == 1
    check(load_alone(path))
    assert State(path).manifest.step == 7


def save_small(path, **values) -> None:
    state = {"w": torch.arange(20000.0), **values}
    dcp.save(
        state, storage_writer=tenarc.torch.StorageWriter(path, **{"step": values.get("step", 0)}), no_dist=True
    )


def load_small(path, **options):
    state = {"w": torch.zeros(20000)}
    dcp.load(state, storage_reader=tenarc.torch.StorageReader(path, **options), no_dist=True)
    return state


def shard_with(path: Path, name: str) -> Path:
    state = State(path)
    (block,) = state.tensors[name]
    return path / "shards" / Path(state.manifest.objects[block.object].name).name


def test_missing_and_damaged_shards_are_named(tmp_path):
    for what, harm in {
        "is missing, which has part of it at `w`": Path.unlink,
        "Torn|has no end mark|expected .* bytes": lambda file: os.truncate(file, file.stat().st_size - 100),
        "chunk": lambda file: file.write_bytes(flipped(file.read_bytes())),
    }.items():
        path = tmp_path / what[:5]
        save_small(path)
        harm(shard_with(path, "w"))
        with pytest.raises(dcp.api.CheckpointException, match=what):
            load_small(path)


def flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def save_in_store(path) -> None:
    mesh = init_device_mesh("cpu", (4,))
    store = pytest.importorskip("obstore.store").LocalStore(path)
    writer = tenarc.torch.StorageWriter("runs/7", store=store)
    dcp.save(state_of(meshed(mesh)), storage_writer=writer)


def test_states_are_saved_in_stores(tmp_path):
    LocalStore = pytest.importorskip("obstore.store").LocalStore
    in_processes(4, save_in_store, str(tmp_path))
    # The same files as in a directory.
    check(load_alone(tmp_path / "runs" / "7"))
    check(load_alone("runs/7", store=LocalStore(tmp_path)))
    check(load_alone((tmp_path / "runs" / "7").as_uri()))
    others_read(tmp_path / "runs" / "7")


def test_states_are_chosen_by_their_step(tmp_path):
    for step in (1, 2, 3):
        save_small(tmp_path, step=step)
    for asked, found in {None: 3, 1: 1, 2: 2}.items():
        state = {"step": 0}
        dcp.load(state, storage_reader=tenarc.torch.StorageReader(tmp_path, step=asked), no_dist=True)
        assert state["step"] == found
    with pytest.raises(dcp.api.CheckpointException, match="no state of step 4, but of 3, 2, 1"):
        load_small(tmp_path, step=4)
    moved = tmp_path.rename(tmp_path.with_name("moved"))
    assert torch.equal(load_small(moved)["w"], torch.arange(20000.0))


def test_the_bytes_are_told(tmp_path):
    state = {"a": torch.ones(300, 400), "b": {"c": torch.zeros(500, dtype=torch.bfloat16), "n": 1, "t": "text"}}
    told = []
    options = {"progress": lambda done, total: told.append((done, total))}
    dcp.save(state, storage_writer=tenarc.torch.StorageWriter(tmp_path, **options), no_dist=True)
    assert told[-1] == (481_000, 481_000) and len(told) >= 2
    told.clear()
    dcp.load(state, storage_reader=tenarc.torch.StorageReader(tmp_path, **options), no_dist=True)
    assert told[-1] == (481_000, 481_000) and len(told) == 2


class Foreign:
    """An object that the format does not have."""

    def __eq__(self, other):
        return type(self) is type(other)


def test_other_objects_are_pickled_only_if_asked(tmp_path):
    with pytest.raises(dcp.api.CheckpointException, match=r"pickle=True.* at `thing`"):
        save_small(tmp_path, thing=Foreign())
    assert not [*tmp_path.glob("*/*")]
    writer = tenarc.torch.StorageWriter(tmp_path, pickle=True)
    dcp.save({"thing": Foreign(), "step": 1}, storage_writer=writer, no_dist=True)
    with pytest.raises(dcp.api.CheckpointException, match=r"can run any code.* at `thing`"):
        dcp.load({"thing": None}, storage_reader=tenarc.torch.StorageReader(tmp_path), no_dist=True)
    state = {"thing": None}
    dcp.load(state, storage_reader=tenarc.torch.StorageReader(tmp_path, pickle=True), no_dist=True)
    assert state == {"thing": Foreign()}
    # What needs no pickle is read without it.
    state = {"step": 0}
    dcp.load(state, storage_reader=tenarc.torch.StorageReader(tmp_path), no_dist=True)
    assert state == {"step": 1}


def test_a_training_run_is_resumed_bit_for_bit(tmp_path):
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

    def made():
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(20, 40), torch.nn.ReLU(), torch.nn.Linear(40, 3))
        return model, torch.optim.AdamW(model.parameters(), lr=0.01)

    def train(model, optimizer):
        for step in range(5):
            torch.manual_seed(step)
            optimizer.zero_grad()
            model(torch.randn(8, 20)).square().sum().backward()
            optimizer.step()

    model, optimizer = made()
    train(model, optimizer)
    states = dict(zip(("model", "optimizer"), get_state_dict(model, optimizer), strict=True))
    dcp.save(states, checkpoint_id=tmp_path, storage_writer=tenarc.torch.StorageWriter(), no_dist=True)
    train(model, optimizer)

    again, its_optimizer = made()
    states = dict(zip(("model", "optimizer"), get_state_dict(again, its_optimizer), strict=True))
    dcp.load(states, checkpoint_id=tmp_path, storage_reader=tenarc.torch.StorageReader(), no_dist=True)
    set_state_dict(again, its_optimizer, model_state_dict=states["model"], optim_state_dict=states["optimizer"])
    train(again, its_optimizer)
    for found, wanted in zip(again.parameters(), model.parameters(), strict=True):
        assert torch.equal(found, wanted)


def test_without_a_state_dict_all_is_loaded(tmp_path):
    from torch.distributed.checkpoint.format_utils import _EmptyStateDictLoadPlanner
    from torch.distributed.checkpoint.state_dict_loader import _load_state_dict

    dcp.save(state_of(lambda whole, _: whole), storage_writer=tenarc.torch.StorageWriter(tmp_path), no_dist=True)
    state = {}
    reader = tenarc.torch.StorageReader(tmp_path)
    # As torch's own converters of checkpoints do.
    _load_state_dict(state, storage_reader=reader, planner=_EmptyStateDictLoadPlanner(), no_dist=True)
    check(state)


def test_what_cannot_be_is_refused(tmp_path):
    writer, reader = tenarc.torch.StorageWriter, tenarc.torch.StorageReader
    with pytest.raises(dcp.api.CheckpointException, match="a directory or a URL, as the argument"):
        dcp.load({"a": 1}, storage_reader=reader(), no_dist=True)
    assert writer.validate_checkpoint_id(tmp_path) and reader.validate_checkpoint_id("gs://bucket")
    fours = torch.zeros(4, 4, dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    with pytest.raises(dcp.api.CheckpointException, match="not whole bytes at `a`"):
        dcp.save({"a": fours}, storage_writer=writer(tmp_path), no_dist=True)
    with pytest.raises(AttributeError):
        tenarc.torch.Unknown  # noqa: B018


def test_the_classes_are_pickled_for_a_save_in_the_background(tmp_path):
    for kind in (tenarc.torch.StorageWriter, tenarc.torch.StorageReader):
        assert type(pickle.loads(pickle.dumps(kind(tmp_path)))) is kind
