"""States that many processes save together: blocks, commits, and what the crate `tenarc-store` makes of them."""

import datetime
import itertools
import multiprocessing
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT

import tenarc
from tenarc import sets
from tenarc.blocks import tile_shape, tiles
from tenarc.places import Directory, place_of
from tenarc.sets import Collected, Shard, State, collect, commit


def share(length: int, count: int) -> list[tuple[int, int]]:
    return [(rank * length // count, (rank + 1) * length // count) for rank in range(count)]


def grid(shape, ranks):
    return itertools.product(*(share(length, count) for length, count in zip(shape, ranks, strict=True)))


def raw(array: np.ndarray, dtype: str) -> tenarc.Raw:
    return tenarc.Raw(dtype, array.shape, np.ascontiguousarray(array).reshape(-1).view("u1"))


def key(region) -> tuple[slice, ...]:
    return tuple(slice(*ends) for ends in region)


def written(root, tensors: dict, ranks: int):
    """Each of the ranks writes some blocks of each tensor: it is divided along all axes."""
    shards = []
    for rank in range(ranks):
        with Shard(root) as shard:
            for name, (dtype, whole) in tensors.items():
                counts = [2 if axis else ranks for axis in range(whole.ndim)]
                for number, region in enumerate(grid(whole.shape, counts)):
                    if number % ranks == rank:
                        block = raw(whole[key(region)], dtype)
                        shard.block(name, block, whole.shape, [start for start, _ in region])
            shard.value(f"rank.{rank}", {"rank": rank, "rows": [rank] * 3})
            shards.append(shard.finish())
    return shards


def samples() -> dict:
    random = np.random.default_rng(1)
    return {
        "rows": ("f32", random.normal(size=(1037, 300)).astype("f4")),
        "deep": ("i16", random.integers(-9, 9, (40, 50, 60)).astype("i2")),
        "brain": ("bf16", random.integers(0, 60000, (300, 500)).astype("u2")),
        "wide": ("f128", random.integers(0, 255, (30, 16 * 400), "u1").view("V16")),
        "empty": ("u8", np.zeros((0, 7), "u1")),
        "one": ("f64", np.array(2.5)),
    }


def part_of(state: State, name: str, region=None) -> np.ndarray:
    """The bits of part of a tensor, which are in several blocks."""
    blocks = state.tensors[name]
    region = region or [(0, length) for length in blocks[0].whole]
    out = np.zeros(
        [end - start for start, end in region], state.read(blocks[0], [(0, 0)] * len(region)).bits.dtype
    )
    for block in blocks:
        ends = zip(region, block.region, strict=True)
        common = [(max(start, at), min(end, behind)) for (start, end), (at, behind) in ends]
        if all(start < end for start, end in common):
            out[key(within(common, region))] = state.read(block, within(common, block.region)).bits
    return out


def within(region, base):
    return [(start - at, end - at) for (start, end), (at, _) in zip(region, base, strict=True)]


def test_any_part_of_a_state_is_read(tmp_path):
    tensors = samples()
    # What was committed before is another state.
    commit(tmp_path, 1, written(tmp_path, {"rows": tensors["rows"]}, 1))
    commit(tmp_path, 2, written(tmp_path, tensors, 3))
    state, random = State(tmp_path), np.random.default_rng(2)
    assert (state.manifest.number, state.manifest.step) == (2, 2)
    assert state.value("rank.2") == {"rank": 2, "rows": [2, 2, 2]}
    for name, (dtype, whole) in tensors.items():
        bits = raw(whole, dtype).bits
        assert part_of(state, name).tobytes() == bits.tobytes(), name
        for _ in range(10 if whole.size else 0):
            region = [
                tuple(sorted(random.choice(length + 1, 2, replace=False).tolist())) for length in whole.shape
            ]
            assert np.array_equal(part_of(state, name, region or None), bits[key(region)]), (name, region)
    with pytest.raises(tenarc.Mismatch, match=r"not in a block of .* at `rows`"):
        state.read(state.tensors["rows"][0], [(0, 1038), (0, 1)])
    with pytest.raises(tenarc.NotFound, match=r"no such value at `rank\.7`"):
        state.value("rank.7")
    state.close()
    assert State(tmp_path, step=1).values == ["rank.0"]


@pytest.mark.parametrize(
    "shape", [(), (0,), (5,), (1_000_003,), (4096, 4096), (1, 1 << 20), (300, 7, 900), (0, 9)]
)
def test_tiles_make_the_block(shape):
    for whole in (shape, tuple(2 * length for length in shape)):
        tile = tile_shape(shape, whole, 4)
        found = [*tiles(shape, tile, [(0, length) for length in shape])]
        assert [number for number, _ in found] == [*range(len(found))] and len(found) <= 64
        sizes = [np.prod([end - start for start, end in region]) for _, region in found]
        assert sum(sizes) == np.prod(shape) and (len(found) == 1 or 4 * max(sizes) >= 65536)
    if shape == (4096, 4096):
        # Tiles are longer along the axis that the processes have not divided.
        assert tile_shape(shape, (8192, 4096), 4)[0] < tile_shape(shape, (8192, 4096), 4)[1]


def commit_five(root, rank) -> None:
    for step in range(5):
        commit(root, step, written(root, {f"w{rank}": ("u8", np.full((9, 9), rank, "u1"))}, 1))


def test_commits_at_the_same_time_come_one_after_the_other(tmp_path):
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=commit_five, args=(tmp_path, rank)) for rank in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 4
    place = place_of(tmp_path)
    manifests = [sets._manifest(place, number) for number in sets._numbers(place)]
    assert [manifest.number for manifest in manifests] == [*range(1, 21)]
    assert [manifest.parent for manifest in manifests[1:]] == [manifest.write for manifest in manifests[:-1]]
    assert {block.path for manifest in manifests for block in manifest.blocks} == {"w0", "w1", "w2", "w3"}
    assert not [name for name in os.listdir(tmp_path / "manifests") if not name.endswith(".tenarc")]


def shards_in(root) -> int:
    return len(os.listdir(root / "shards"))


NONE, DAY = datetime.timedelta(0), datetime.timedelta(days=1)


def test_what_nobody_refers_to_is_collected(tmp_path):
    assert collect(tmp_path) == Collected(0, 0, 0) and os.listdir(tmp_path) == []
    tensors = {"w": ("f32", np.arange(1000, dtype="f4").reshape(100, 10))}
    for step in range(1, 6):
        commit(tmp_path, step, written(tmp_path, tensors, 2))
    late = written(tmp_path, tensors, 2)
    # All shards are young.
    assert collect(tmp_path, keep=2) == Collected(0, 0, 3)
    commit(tmp_path, 6, late)
    old = State(tmp_path)
    commit(tmp_path, 7, written(tmp_path, tensors, 3))
    for path in (tmp_path / "shards").iterdir():
        os.utime(path, (0, 0))
    unfinished = Shard(tmp_path)
    done = collect(tmp_path, keep=1, age=DAY)
    # Two shards of each of the steps 1 to 6. The one that is being written stays.
    assert (done.objects, done.manifests) == (12, 3) and done.bytes > 12 * 2000
    assert shards_in(tmp_path) == 4
    latest = State(tmp_path)
    assert latest.manifest.step == 7 and np.array_equal(part_of(latest, "w"), raw(tensors["w"][1], "f32").bits)
    with pytest.raises(tenarc.NotFound, match=r"the shard .* is missing, which has part of it at `w`"):
        part_of(old, "w")
    with pytest.raises(tenarc.NotFound, match="no state of step 6, but of 7"):
        State(tmp_path, step=6)
    assert collect(tmp_path) == Collected(0, 0, 0)
    with unfinished:
        unfinished.value("a", 1)
        assert commit(tmp_path, 8, [unfinished.finish()]).number == 9
    assert State(tmp_path).value("a") == 1


def test_what_is_being_deleted_is_not_used_by_later_commits(tmp_path, monkeypatch):
    tensors = {"w": ("u8", np.zeros((8, 4), "u1"))}
    late = written(tmp_path, tensors, 2)

    unlink = Path.unlink

    def dies(path, **how):
        if path.parent.name == "shards":
            raise KeyboardInterrupt
        unlink(path, **how)

    # Before the first commit, too. It dies before it deletes anything.
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Path, "unlink", dies)
        collect(tmp_path, age=NONE)
    with pytest.raises(tenarc.NotFound, match="has no state"):
        State(tmp_path)
    for step in (3, 4):
        assert shards_in(tmp_path) == 2 * step - 4
        commit(tmp_path, step, written(tmp_path, tensors, 2))
        with pytest.raises(tenarc.Damaged, match=r"a collection is deleting the shard.* in .*shards"):
            commit(tmp_path, 2, late)
    assert collect(tmp_path, age=NONE).objects == 4
    with pytest.raises(tenarc.Damaged, match="not there any more"):
        commit(tmp_path, 2, late)
    assert State(tmp_path).manifest.step == 4 and shards_in(tmp_path) == 2


def test_a_commit_before_a_collection_keeps_its_shards(tmp_path, monkeypatch):
    tensors = {"w": ("u8", np.zeros((8, 4), "u1"))}
    commit(tmp_path, 1, written(tmp_path, tensors, 1))
    late, create = written(tmp_path, tensors, 2), sets._create

    def after_another(place, manifest):
        monkeypatch.setattr(sets, "_create", create)
        commit(tmp_path, 2, late)
        return create(place, manifest)

    monkeypatch.setattr(sets, "_create", after_another)
    # It had found those of step 2 to be unused, and that of step 1 to be needed.
    assert collect(tmp_path, age=NONE).objects == 1
    assert State(tmp_path).manifest.step == 2 and part_of(State(tmp_path), "w").shape == (8, 4)


def test_a_number_that_was_there_before_is_no_commit(tmp_path, monkeypatch):
    tensors = {"w": ("u8", np.zeros((8, 4), "u1"))}
    commit(tmp_path, 1, written(tmp_path, tensors, 1))
    late, create = written(tmp_path, tensors, 2), Directory.create

    def slow(place, name, content):
        monkeypatch.setattr(Directory, "create", create)
        for step in (3, 4):
            commit(tmp_path, step, written(tmp_path, tensors, 1))
        assert collect(tmp_path).manifests == 2
        return create(place, name, content)

    monkeypatch.setattr(Directory, "create", slow)
    assert commit(tmp_path, 2, late).number == 4
    assert State(tmp_path).manifest.step == 2


def collect_and_commit(root, rank) -> None:
    if rank == 0:
        for _ in range(30):
            collect(root, age=NONE)
    elif rank == 1:
        for _ in range(60):
            assert part_or_collected(State(root))
    else:
        for step in range(1, 8):
            try:
                commit(root, step, written(root, {"w": ("u8", np.full((9, 9), rank, "u1"))}, 2))
            except tenarc.Damaged as error:
                assert "a collection is deleting" in str(error) or "not there any more" in str(error)
            except FileNotFoundError as error:
                # Without an age, shards are deleted while they are written.
                assert "shards" in str(error)


def part_or_collected(state: State) -> bool:
    try:
        return part_of(state, "w").shape == (9, 9)
    except tenarc.NotFound as error:
        return "is missing" in str(error)


def test_commits_and_collections_at_the_same_time_leave_whole_states(tmp_path):
    commit(tmp_path, 0, written(tmp_path, {"w": ("u8", np.zeros((9, 9), "u1"))}, 2))
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=collect_and_commit, args=(tmp_path, rank)) for rank in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 4
    collect(tmp_path, age=NONE)
    assert part_of(State(tmp_path), "w").shape == (9, 9)
    assert shards_in(tmp_path) == len(State(tmp_path).manifest.objects) == 2
    assert len(os.listdir(tmp_path / "manifests")) <= 3


def test_what_is_not_whole_is_not_committed(tmp_path):
    def shards(*blocks, values=(), whole=(10, 4)):
        with Shard(tmp_path) as shard:
            for rows, start, *more in blocks:
                block = raw(np.zeros((rows, 4), "f8"), "f64") if more else raw(np.zeros((rows, 4), "f4"), "f32")
                shard.block("w", block, whole, [start, 0])
            for name in values:
                shard.value(name, 1)
            return [shard.finish()]

    for found, what in (
        (shards((4, 0), (5, 5)), "36 of the 40 elements at `w`"),
        (shards((6, 0), (5, 5)), r"\[\(0, 6\), \(0, 4\)\] and \[\(5, 10\), \(0, 4\)\] overlap at `w`"),
        (shards((6, 0), (6, 5)), "a block is not in the tensor"),
        (shards((5, 0), (5, 5, "f64")), r"blocks of f32 \[10, 4\] and of f64 \[10, 4\] at `w`"),
        (shards(values=["a", "a"]), "two processes have written it, or one has written it twice at `a`"),
        (shards((10, 0), values=["w"]), "written it twice at `w`"),
    ):
        with pytest.raises(tenarc.Damaged, match=what):
            commit(tmp_path, 1, found)
    (one,) = shards((10, 0))
    path = tmp_path / "shards" / Path(one.object.name).name
    content = path.read_bytes()
    path.write_bytes(content + b"0")
    with pytest.raises(
        tenarc.Damaged, match=f"expected a shard of {len(content)} bytes, found {len(content) + 1}"
    ):
        commit(tmp_path, 1, [one])
    path.unlink()
    with pytest.raises(tenarc.Damaged, match=r"not there any more: nothing is committed in .*shards"):
        commit(tmp_path, 1, [one])
    with pytest.raises(tenarc.NotFound, match="nothing was committed"):
        State(tmp_path)
    # The same shards are committed once.
    found = shards((10, 0))
    assert commit(tmp_path, 1, found) == commit(tmp_path, 1, found)


def test_after_an_error_no_shard_is_left(tmp_path):
    with pytest.raises(tenarc.Unsupported, match="not whole bytes at `w`"), Shard(tmp_path) as shard:
        shard.value("a", 1)
        shard.block("w", tenarc.Raw("f4", (2,), np.zeros(1, "u1")), [2], [0])
    assert os.listdir(tmp_path / "shards") == []


def changed(root, **names) -> None:
    """Writes a manifest with other content than the newest."""
    manifest = State(root).manifest
    path = root / sets._manifest_name(manifest.number)
    value = vars(manifest) | {
        name: [vars(row) for row in getattr(manifest, name)] for name in ("objects", "blocks")
    }
    value["values"] = []
    for name, change in names.items():
        change(value[name]) if callable(change) else value.update({name: change})
    tenarc.save(path, value)


def test_manifests_are_checked(tmp_path):
    def read():
        state = State(tmp_path)
        return state.read(state.tensors["w"][0], [(0, 10), (0, 1)])

    for number, (names, kind, what) in enumerate(
        [
            ({"version": 2}, tenarc.Version, "version 1, found version 2 in .*manifests"),
            ({"number": 77}, tenarc.Damaged, r"expected manifest \d, found manifest 77"),
            ({"objects": []}, tenarc.Damaged, "a shard that the manifest does not list at `w`"),
            (
                {"blocks": lambda rows: rows[0].update(shape=[11, 3])},
                tenarc.Damaged,
                r"\[11, 3\] at \[0, 0\] is not",
            ),
            ({"blocks": lambda rows: rows[0].update(tile=[0, 3])}, tenarc.Damaged, "is not in a tensor"),
            ({"blocks": lambda rows: rows[0].update(offset=[0])}, tenarc.Damaged, "is not in a tensor"),
            ({"blocks": lambda rows: rows[0].update(segment=5)}, tenarc.NotFound, "there is no value 5"),
            (
                {"blocks": lambda rows: rows[0].update(tile=[2, 1])},
                tenarc.Damaged,
                r"a tile of f32 \[2, 1\], found one",
            ),
            ({"blocks": lambda rows: rows[0].update(dtype="i32")}, tenarc.Damaged, r"found one of f32 \[10, 1\]"),
            ({"blocks": lambda rows: rows[0].update(dtype="x9")}, tenarc.Unsupported, "of unknown size at `w`"),
            (
                {"objects": lambda rows: rows[0].update(name="shards/../a")},
                tenarc.Damaged,
                r"expected a file in 'shards', found the name 'shards/\.\./a'",
            ),
            (
                {"objects": lambda rows: rows[0].update(name="shards/a")},
                tenarc.NotFound,
                "is missing, which has part of it",
            ),
            (
                {"objects": lambda rows: rows[0].update(size=1)},
                tenarc.Damaged,
                "expected a shard of 1 bytes, found",
            ),
            (
                {"objects": lambda rows: rows[0].update(end="0" * 64, version=None)},
                tenarc.Damaged,
                "the shard was replaced since it was written",
            ),
        ]
    ):
        for file in (tmp_path / "manifests").glob("*") if number else ():
            file.unlink()
        commit(tmp_path, 1, written(tmp_path, {"w": ("f32", np.zeros((10, 3), "f4"))}, 1))
        read()
        changed(tmp_path, **names)
        with pytest.raises(kind, match=what):
            read()


@pytest.fixture(scope="session")
def example() -> Path:
    """The example of the crate `tenarc-store` that joins and divides sets."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    binary = target / "debug" / "examples" / "set"
    if not binary.exists():
        pytest.skip(f"{binary} does not exist: run `cargo build --example set` in crates/store")
    return binary


@pytest.mark.parametrize("moved", [False, True])
def test_rust_joins_what_python_has_written(example, tmp_path, moved):
    root, tensors = tmp_path / "a run", samples()
    commit(root, 5, written(root, tensors, 3))
    if moved:
        root = shutil.copytree(root, tmp_path / "copies" / "of a run")
    subprocess.run([example, "join", root, tmp_path / "joined"], check=True)
    with tenarc.open(tmp_path / "joined") as archive:
        assert archive["step"] == 5 and archive["values"]["rank.1"] == {"rank": 1, "rows": [1, 1, 1]}
        for name, (dtype, whole) in tensors.items():
            found = archive.tensor(f"tensors.{name}")
            data = found.data if isinstance(found, tenarc.Raw) else found
            assert (data.tobytes(), found.shape) == (whole.tobytes(), whole.shape)
            assert {t.path: t.dtype for t in archive.tensors()}[f"tensors.{name}"] == dtype


def test_python_reads_what_rust_has_divided(example, tmp_path):
    root, tensors = tmp_path / "run", samples()
    tenarc.save(tmp_path / "whole", {name: raw(whole, dtype) for name, (dtype, whole) in tensors.items()})
    subprocess.run([example, "divide", tmp_path / "whole", root, "5"], check=True)
    state = State(root)
    assert {len(blocks) for blocks in state.tensors.values()} == {5, 1} and state.value("rank.4") == 4
    for name, (dtype, whole) in tensors.items():
        assert part_of(state, name).tobytes() == whole.tobytes(), name
        assert {block.dtype for block in state.tensors[name]} == {dtype}
    # Python's commits come after those of Rust, and the reverse.
    commit(root, 2, written(root, {"rows": tensors["rows"]}, 2))
    subprocess.run([example, "divide", tmp_path / "whole", root, "2"], check=True)
    assert [State(root).manifest.number, State(root).manifest.parent] == [3, State(root, step=2).manifest.write]
    # Rust reads and commits after a collection.
    assert collect(root, age=NONE).objects == 7
    subprocess.run([example, "join", root, tmp_path / "joined"], check=True)
    subprocess.run([example, "divide", tmp_path / "whole", root, "2"], check=True)
    assert State(root).manifest.number == 5 and State(root).value("rank.1") == 1


class Faulty:
    """A store of obstore whose answers are lost, or wrong, once for each name that is set."""

    def __init__(self) -> None:
        self.inner, self.lost, self.wrong, self.replaces = obstore_store().MemoryStore(), False, False, False

    def put(self, path, content, mode="overwrite"):
        if self.wrong and "manifests" in path:
            self.wrong = False
            raise pytest.importorskip("obstore.exceptions").AlreadyExistsError("409 Conflict")
        done = self.inner.put(path, content, mode="overwrite" if self.replaces else mode)
        if self.lost and "manifests" in path:
            self.lost = False
            raise OSError("503 Service Unavailable")
        return done

    def __getattr__(self, name):
        return getattr(self.inner, name)


def obstore_store():
    return pytest.importorskip("obstore.store")


@pytest.fixture
def faulty(monkeypatch):
    # Writers are made by a function, which wants a store of its own.
    obstore, found = pytest.importorskip("obstore"), Faulty()
    opened = obstore.open_writer
    monkeypatch.setattr(obstore, "open_writer", lambda store, path: opened(store.inner, path))
    return found


def test_sets_in_stores_are_those_of_directories(tmp_path):
    store, tensors = obstore_store().MemoryStore(), samples()
    place = place_of("runs/7", store)
    with pytest.raises(tenarc.NotFound, match="nothing was committed in 'runs/7' in a MemoryStore"):
        State(place)
    for step in (1, 2):
        commit(place, step, written(place, tensors, 3))
    old, late = State(place, step=1), written(place, tensors, 2)
    for name, (dtype, whole) in tensors.items():
        assert part_of(State(place), name).tobytes() == raw(whole, dtype).bits.tobytes(), name
    # The same files.
    for page in store.list("runs/7"):
        for found in page:
            file = tmp_path / found["path"]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(store.get(found["path"]).bytes())
    assert State(tmp_path / "runs/7").value("rank.2") == {"rank": 2, "rows": [2, 2, 2]}

    assert collect("runs/7", store=store, keep=2) == Collected(0, 0, 0)
    done = collect("runs/7", store=store, age=NONE)
    assert (done.objects, done.manifests) == (3 + 2, 1)
    with pytest.raises(tenarc.Damaged, match=r"a collection is deleting|not there any more"):
        commit(place, 3, late)
    with pytest.raises(tenarc.NotFound, match="is missing, which has part of it at `rows`"):
        part_of(old, "rows")
    assert State(place).manifest.step == 2 and part_of(State(place), "rows").shape == (1037, 300)
    with pytest.raises(KeyError), Shard(place) as shard:
        shard.value("a", 1)
        raise KeyError
    assert len(place.list("shards")) == 3


def test_an_answer_of_a_store_that_is_lost_or_wrong_commits_once(faulty):
    place = place_of("", faulty)
    tensors = {"w": ("u8", np.zeros((8, 4), "u1"))}
    shards = written(place, tensors, 2)
    faulty.lost = True
    with pytest.raises(OSError, match="503"):
        commit(place, 1, shards)
    assert State(place).manifest.number == 1 and commit(place, 1, shards).number == 1
    # S3 can refuse one of two that create an object at once, although there is none.
    faulty.wrong = True
    assert commit(place, 2, written(place, tensors, 2)).number == 2 and not faulty.wrong
    for name in place.list("shards"):
        faulty.inner.put(f"shards/{name}", b"")
    with pytest.raises(tenarc.Damaged, match="expected a shard of"):
        commit(place, 3, shards)
    with pytest.raises(tenarc.Damaged, match="expected a shard of"):
        part_of(State(place), "w")


def test_a_store_that_replaces_objects_is_refused(faulty):
    faulty.replaces, place = True, place_of("run", faulty)
    with pytest.raises(tenarc.Unsupported, match="the store replaces an object"):
        commit(place, 1, written(place, {"w": ("u8", np.zeros((8, 4), "u1"))}, 2))
    assert place.list("manifests") == {}
