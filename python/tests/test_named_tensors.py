"""`tenarc.torch` and `tenarc.numpy`: files of named tensors, as safetensors has them."""

import io
import subprocess
import sys

import numpy as np
import pytest

import tenarc
import tenarc.numpy
import tenarc.torch
from tenarc import dtypes

ARRAYS = {
    "layers.0.weight": np.arange(6000, dtype="f4").reshape(60, 100),
    "layers.0.bias": np.zeros(3),
    "scalar": np.array(3, "i2"),
    "empty": np.zeros((0, 3), "u1"),
    "": np.ones(2),
    "/a/b": np.ones(1, bool),
    "columns": np.arange(6000.0).reshape(60, 100).T,
}


def same(found, wanted) -> bool:
    return list(found) == list(wanted) and all(
        found[name].dtype == array.dtype
        and found[name].shape == array.shape
        and np.array_equal(found[name], array)
        for name, array in wanted.items()
    )


def test_arrays_come_back_by_their_names(tmp_path):
    tenarc.numpy.save_file(ARRAYS, tmp_path / "a")
    assert same(tenarc.numpy.load_file(tmp_path / "a"), ARRAYS)
    assert same(tenarc.load(tmp_path / "a"), ARRAYS)
    memory = io.BytesIO()
    tenarc.numpy.save_file(ARRAYS, memory, compression="zstd")
    memory.seek(0)
    assert same(tenarc.numpy.load_file(memory), ARRAYS)
    assert same(tenarc.numpy.load(tenarc.numpy.save(ARRAYS)), ARRAYS)
    assert tenarc.numpy.load(tenarc.numpy.save({})) == {}


def test_metadata_is_kept_beside_the_tensors(tmp_path):
    tenarc.numpy.save_file(ARRAYS, tmp_path / "a", {"format": "np", "step": "3"})
    assert same(tenarc.numpy.load_file(tmp_path / "a"), ARRAYS)
    with tenarc.open(tmp_path / "a") as archive:
        assert archive["__metadata__"] == {"format": "np", "step": "3"}


def test_nested_tensors_have_names_with_dots(tmp_path):
    value = {
        "epoch": 3,
        "model": {"layers": [{"w": ARRAYS[""]}, {"w": ARRAYS["columns"], "b": None}]},
        "log": tenarc.Table({"step": np.arange(4), "at": [{"x": 1.5}] * 4, "note": ["a"] * 4}),
        "parts": [[np.ones(1)], (np.ones(2), "text")],
        7: np.zeros(7),
    }
    tenarc.save(tmp_path / "a", value)
    found = tenarc.numpy.load_file(tmp_path / "a")
    assert {name: array.shape for name, array in found.items()} == {
        "model.layers.0.w": (2,),
        "model.layers.1.w": (100, 60),
        "log.step": (4,),
        "log.at.x": (4,),
        "parts.0.0": (1,),
        "parts.1.0": (2,),
        "7": (7,),
    }
    for value, said in (
        ({"a.b": np.ones(1), "a": {"b": np.ones(1)}}, r"have this name at `a\.b`"),
        (np.ones(1), "dict of tensors"),
        ("text", "dict of tensors"),
    ):
        tenarc.save(tmp_path / "b", value)
        with pytest.raises(tenarc.Mismatch, match=said + r".* in .*b$"):
            tenarc.numpy.load_file(tmp_path / "b")


@pytest.mark.parametrize(
    ("tensors", "metadata"),
    [
        ({"a": [1.0]}, None),
        ({"a": {"b": np.ones(1)}}, None),
        ({1: np.ones(1)}, None),
        ({"__metadata__": np.ones(1)}, None),
        ([np.ones(1)], None),
        ({"a": np.ones(1)}, {"step": 3}),
        ({"a": np.ones(1)}, {3: "step"}),
    ],
)
def test_what_is_no_dict_of_arrays_is_refused(tensors, metadata, tmp_path):
    with pytest.raises(tenarc.Unsupported):
        tenarc.numpy.save_file(tensors, tmp_path / "a", metadata)
    assert not (tmp_path / "a").exists()


def test_names_of_the_modules():
    assert dir(tenarc.numpy) == ["load", "load_file", "save", "save_file"]
    names = ["StorageReader", "StorageWriter", "collect", "load", "load_file", "save", "save_file", "to_torch"]
    assert dir(tenarc.torch) == names
    assert {"numpy", "torch"} <= {*dir(tenarc)} and not {"numpy", "torch"} & {*tenarc.__all__}


def torch_state():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    layer = torch.nn.Linear(50, 60, dtype=torch.bfloat16)
    return {
        **layer.state_dict(),
        "half": torch.ones(3, dtype=torch.float16),
        "small": torch.arange(20, dtype=torch.float32).to(torch.float8_e4m3fn),
        "transposed": torch.arange(6000).reshape(60, 100).T,
        "steps": torch.arange(10)[::3],
        "number": torch.tensor(3),
        "parameter": layer.weight,
    }


def test_torch_tensors_come_back_by_their_names(tmp_path):
    state = torch_state()
    import torch

    def agrees(found):
        return list(found) == list(state) and all(
            tensor.dtype is state[name].dtype and torch.equal(tensor.float(), state[name].float())
            for name, tensor in found.items()
        )

    tenarc.torch.save_file(state, tmp_path / "a", metadata={"format": "pt"})
    for device in ("cpu", torch.device("cpu")):
        assert agrees(tenarc.torch.load_file(tmp_path / "a", device=device))
    assert agrees(tenarc.torch.load(tenarc.torch.save(state)))
    memory = io.BytesIO()
    tenarc.torch.save_file(state, memory, dedup=True, compression="zstd")
    memory.seek(0)
    assert agrees(tenarc.torch.load_file(memory))
    # A device without memory shows that tensors are moved.
    found = tenarc.torch.load_file(tmp_path / "a", device="meta")
    assert {tensor.device.type for tensor in found.values()} == {"meta"}
    other = torch.nn.Linear(50, 60, dtype=torch.bfloat16)
    found = tenarc.torch.load_file(tmp_path / "a")
    other.load_state_dict({name: found[name] for name in ("weight", "bias")})
    assert torch.equal(other.weight, state["weight"]) and found["weight"].is_contiguous()
    # They can be written to.
    found["weight"].zero_()


def test_bfloat16_needs_torch_only(tmp_path):
    """In a process without ml_dtypes, as most of those with torch are."""
    pytest.importorskip("torch", reason="torch is not installed")
    code = """
import sys
sys.modules["ml_dtypes"] = None
import torch, tenarc.torch
path = sys.argv[1]
bits = torch.arange(65536, dtype=torch.int32).to(torch.int16)
state = {"a": bits.view(torch.bfloat16), "b": bits[:3].view(torch.bfloat16).reshape(3, 1),
    "c": bits.view(torch.bfloat16).reshape(256, 256).T, "d": torch.ones(5000).to(torch.float8_e5m2)}
tenarc.torch.save_file(state, path)
found = tenarc.torch.load_file(path)
for name in state:
    assert found[name].dtype is state[name].dtype and found[name].shape == state[name].shape
    width = torch.int8 if name == "d" else torch.int16
    assert torch.equal(found[name].contiguous().view(width), state[name].contiguous().view(width)), name
"""
    subprocess.run([sys.executable, "-c", code, tmp_path / "a"], check=True)


def test_what_is_no_torch_tensor_is_refused(tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    for value in (np.ones(1), [torch.ones(1)], 1.0):
        with pytest.raises(tenarc.Unsupported, match="expected a torch tensor"):
            tenarc.torch.save_file({"a": value}, tmp_path / "a")
    tenarc.save(tmp_path / "b", {"a": tenarc.Raw("f128", (1,), np.zeros(16, "u1"))})
    with pytest.raises(tenarc.Mismatch, match=r"torch tensor of f128.*`a`.* in .*b$"):
        tenarc.torch.load_file(tmp_path / "b")


def test_the_modules_can_be_used_without_torch_and_ml_dtypes(tmp_path):
    code = """
import sys
sys.modules["torch"] = sys.modules["ml_dtypes"] = None
import tenarc, numpy
tenarc.numpy.save_file({"a": numpy.ones(3), "b": tenarc.Raw("bf16", (2,), b"1234")}, sys.argv[1])
found = tenarc.numpy.load_file(sys.argv[1])
assert found["a"].tolist() == [1, 1, 1] and found["b"].dtype == "bf16"
try:
    tenarc.torch.load_file(sys.argv[1])
except ImportError:
    pass
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", code, tmp_path / "a"], check=True)


def test_dtypes_of_the_format_are_those_that_numpy_loads(tmp_path):
    arrays = {name: np.zeros(3, known.numpy) for name, known in dtypes.BY_NAME.items() if known.numpy is not None}
    tenarc.numpy.save_file(arrays, tmp_path / "a")
    assert same(tenarc.numpy.load_file(tmp_path / "a"), arrays)
