"""Tensors of torch, where it is installed."""

import numpy as np
import pytest

import tenarc

torch = pytest.importorskip("torch", reason="torch is not installed")


@pytest.mark.parametrize("name", ["float32", "float64", "float16", "int8", "uint8", "int64", "bool", "complex64"])
def test_dtypes_that_numpy_shares(name):
    tensor = torch.arange(6).reshape(2, 3).to(getattr(torch, name))
    found = tenarc.to_torch(tenarc.loads(tenarc.dumps({"a": [tensor, tensor.T]})))
    for back, want in zip(found["a"], (tensor, tensor.T), strict=True):
        assert back.dtype == want.dtype and torch.equal(back, want)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e5m2", "float8_e4m3fn"])
def test_dtypes_that_numpy_lacks(name):
    tensor = torch.arange(6).reshape(2, 3).to(torch.float32).to(getattr(torch, name))
    back = tenarc.to_torch(tenarc.loads(tenarc.dumps(tensor)))
    assert back.dtype == tensor.dtype and torch.equal(back.float(), tensor.float())


def test_parameters_and_views_are_written_as_they_are(tmp_path):
    layer = torch.nn.Linear(30, 40)
    tenarc.save(tmp_path / "a", layer.state_dict())
    state = tenarc.to_torch(tenarc.load(tmp_path / "a"))
    layer.load_state_dict(state)
    assert np.array_equal(state["weight"].numpy(), layer.weight.detach().numpy())
