"""torch tensors. The tests are skipped if torch is not installed."""

import subprocess
import sys
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
import pytest
from described import describe, write_manifest

import tenarc
from tenarc import dtypes

torch = pytest.importorskip("torch", reason="torch is not installed")

#: torch's names for the dtypes of the format, and their widths in bits.
DTYPES = {
    "bool": torch.bool,
    "u8": torch.uint8,
    "u16": torch.uint16,
    "u32": torch.uint32,
    "u64": torch.uint64,
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
    "c64": torch.complex64,
    "c128": torch.complex128,
    "f8_e5m2": torch.float8_e5m2,
    "f8_e4m3": torch.float8_e4m3fn,
    "f8_e8m0": torch.float8_e8m0fnu,
    "f8_e5m2fnuz": torch.float8_e5m2fnuz,
    "f8_e4m3fnuz": torch.float8_e4m3fnuz,
}


def flat(dtype):
    """Twenty-four elements with arbitrary bits, which include NaN payloads."""
    if dtype is torch.bool:
        return torch.arange(24) % 3 == 0
    width = dtype.itemsize
    payload = np.random.default_rng(8746).integers(0, 256, 24 * width, "u1")
    return torch.from_numpy(payload).view(dtype)


def bits(tensor) -> bytes:
    """The elements in row-major order."""
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def same(found, wanted) -> bool:
    return (found.dtype, found.shape, bits(found)) == (wanted.dtype, wanted.shape, bits(wanted))


def layouts(values):
    rows = values.reshape(4, 6)
    return {
        "flat": values,
        "rows": rows,
        "transposed": rows.T,
        "stepped": rows[::2, ::3],
        "behind": rows[1:3],
        "permuted": values.reshape(2, 3, 4).permute(1, 2, 0),
        "columns": values.reshape(2, 3, 4).permute(2, 1, 0),
        "expanded": rows[0].expand(3, 6),
        "scalar": values[5],
        "empty": values[:0].reshape(0, 3),
    }


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_and_layout_comes_back(name, tmp_path):
    wanted = layouts(flat(DTYPES[name]))
    tenarc.save(tmp_path / "a", wanted, inline_below=0)
    with tenarc.open(tmp_path / "a") as archive:
        assert {tensor.dtype for tensor in archive.tensors()} == {name}
        assert {t.path for t in archive.tensors() if t.order == "F"} == {"transposed", "columns"}
        ways = {
            "load": archive.load(),
            "view": archive.view(),
            "message": tenarc.loads(tenarc.dumps(wanted)),
        }
        for way, value in ways.items():
            found = tenarc.to_torch(value)
            for layout, tensor in wanted.items():
                assert same(found[layout], tensor), (way, layout)


def test_without_ml_dtypes_torch_has_them_all_the_same(monkeypatch):
    names = ("bf16", "f8_e5m2", "f8_e4m3", "f8_e8m0", "f8_e5m2fnuz", "f8_e4m3fnuz")
    for name in names:
        monkeypatch.setitem(dtypes.BY_NAME, name, dtypes.BY_NAME[name]._replace(numpy=None))
    for name in names:
        for layout, tensor in layouts(flat(DTYPES[name])).items():
            found = tenarc.loads(tenarc.dumps([tensor]))[0]
            assert type(found) is tenarc.Raw and found.dtype == name
            assert same(tenarc.to_torch(found), tensor), (name, layout)


def test_rust_reads_the_tensors_of_torch(rust, tmp_path):
    files = []
    for name, dtype in DTYPES.items():
        for layout, tensor in layouts(flat(dtype)).items():
            message = tenarc.dumps(tensor)
            (tmp_path / f"{name}-{layout}").write_bytes(message)
            files.append({"file": f"{name}-{layout}", "value": describe(tenarc.loads(message))})
    write_manifest(tmp_path, {"writer": "Python", "files": files})
    assert rust.failed("check", tmp_path) == []


def test_parameters_state_dicts_and_what_stands_beside_them(tmp_path):
    layer = torch.nn.Linear(30, 40)
    optimizer = torch.optim.Adam(layer.parameters())
    layer(torch.ones(30)).sum().backward()
    optimizer.step()
    value = OrderedDict(
        model=layer.state_dict(), optimizer=optimizer.state_dict(), parameter=layer.weight, epoch=3
    )
    tenarc.save(tmp_path / "a", value)
    found = tenarc.to_torch(tenarc.load(tmp_path / "a"))
    other = torch.nn.Linear(30, 40)
    other.load_state_dict(found["model"])
    assert same(other.weight, layer.weight) and same(found["parameter"], layer.weight)
    torch.optim.Adam(other.parameters()).load_state_dict(found["optimizer"])
    assert found["epoch"] == 3 and not found["parameter"].requires_grad


def test_conjugates_and_negatives_are_written_as_what_they_are():
    values = flat(torch.complex64)
    for lazy in (values.conj(), values.conj().imag, torch.view_as_real(values)):
        found = tenarc.to_torch(tenarc.loads(tenarc.dumps(lazy)))
        assert same(found, lazy.resolve_conj().resolve_neg())


def test_memory_is_shared_where_it_can_be_written_to(tmp_path):
    tenarc.save(tmp_path / "a", {"f": torch.ones(40, 30).T, "b": torch.ones(3000).to(torch.bfloat16)})
    value = tenarc.load(tmp_path / "a")
    found = tenarc.to_torch(value)
    for name in value:
        assert found[name].data_ptr() == value[name].ctypes.data
    with tenarc.open(tmp_path / "a") as archive:
        views = archive.view()
    for name, tensor in tenarc.to_torch(views).items():
        assert tensor.data_ptr() != views[name].ctypes.data
        tensor.fill_(0)
    shared = tenarc.to_torch(views, copy=False)
    for name, tensor in shared.items():
        assert tensor.data_ptr() == views[name].ctypes.data and same(tensor, found[name])
    del views, archive
    assert same(shared["f"], found["f"])


def test_a_save_does_not_copy_what_lies_in_one_piece():
    for name, dtype in DTYPES.items():
        tensor = flat(dtype).repeat(1000).reshape(100, -1)
        for part in (tensor, tensor.T, tensor[3:]):
            (buffer,) = tenarc.to_parts(part).buffers
            assert np.frombuffer(buffer, "u1").ctypes.data == part.data_ptr(), name


def test_arrays_of_any_kind_become_tensors():
    array = np.arange(12, dtype=">f4").reshape(3, 4)
    for given in (array, array[::-1], array[:, ::2], array.astype("<f4"), tenarc.Numbers([1, 2], "<u2")):
        tensor = tenarc.to_torch(given)
        assert tensor.numpy().tolist() == given.tolist()
    assert tenarc.to_torch((1, [np.ones(1, "f4")]))[1][0].dtype is torch.float32
    with pytest.raises(tenarc.Mismatch, match="<U1"):
        tenarc.to_torch(np.array(["a"]))
    raw = tenarc.Raw("f128", (2,), np.zeros(32, "u1"))
    assert tenarc.to_torch([raw])[0] is raw


def test_four_bits_are_two_elements_to_a_byte():
    tensor = torch.arange(12, dtype=torch.uint8).reshape(3, 4).view(torch.float4_e2m1fn_x2)
    for given in (tensor, tensor.T, tensor[::2], tensor[:0]):
        found = tenarc.loads(tenarc.dumps(given))
        assert (found.dtype, found.shape) == ("f4", (*given.shape[:-1], 2 * given.shape[-1]))
        back = tenarc.to_torch(found)
        assert back.dtype is given.dtype and back.shape == given.shape
        assert torch.equal(back.view(torch.uint8), given.contiguous().view(torch.uint8))
    columns = tenarc.Raw("f4", (2, 2), np.zeros(2, "u1"), "F")
    assert tenarc.to_torch(columns) is columns
    with pytest.raises(tenarc.Unsupported):
        tenarc.dumps(tensor[0, 0])


def test_fields_that_are_tensors():
    @dataclass
    class Layer:
        weight: torch.Tensor
        bias: torch.Tensor | None = None

    layer = Layer(torch.ones(2, 3).to(torch.bfloat16))
    found = tenarc.loads(tenarc.dumps([layer]), cls=list[Layer])[0]
    assert same(found.weight, layer.weight) and found.bias is None
    with pytest.raises(tenarc.Mismatch) as caught:
        tenarc.loads(tenarc.dumps({"weight": [1.0]}), cls=Layer)
    assert caught.value.path == "weight"


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.empty(3, device="meta"),
        lambda: torch.eye(3).to_sparse(),
        lambda: torch.zeros(2, dtype=torch.complex32),
        lambda: torch.empty(3, dtype=torch.uint4),
        lambda: torch.nn.Linear(2, 2),
        lambda: torch.float32,
        lambda: torch.ones(3).untyped_storage(),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_what_has_no_place_is_refused_by_its_path(make):
    with pytest.raises(tenarc.Unsupported) as caught:
        tenarc.dumps({"a": [make()]})
    assert caught.value.path == "a.0" and "\n" not in str(caught.value)


def test_the_package_does_not_import_torch():
    code = "import sys, tenarc; tenarc.dumps([1]); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
