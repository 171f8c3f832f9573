"""`Raw`: tensors of dtypes that numpy lacks."""

import numpy as np
import pytest

import tenarc


@pytest.mark.parametrize(("name", "bits"), [("f4", 4), ("f6_e2m3", 6), ("f6_e3m2", 6)])
def test_packed_elements_are_carried_bit_for_bit(tmp_path, name, bits):
    payload = np.random.default_rng(4).bytes(1000 * bits)
    value = {order: tenarc.Raw(name, (80, 100), payload, order) for order in "CF"}
    tenarc.save(tmp_path / "a", value)
    with tenarc.open(tmp_path / "a") as archive:
        for found in (archive.load(), archive.view()):
            assert found == value and found["F"].data.tobytes() == payload
            tenarc.save(tmp_path / "b", found)
        assert {(t.dtype, t.shape, t.nbytes) for t in archive.tensors()} == {(name, (80, 100), 1000 * bits)}
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("name", ["float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn"])
def test_elements_that_are_not_packed_are_refused_with_advice(name):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    with pytest.raises(tenarc.Unsupported, match=f"{name}.*`Raw`"):
        tenarc.dumps(np.zeros(4, getattr(ml_dtypes, name)))


def test_raw_tensors_refuse_names_and_shapes_that_are_none():
    for wrong in (("\ud800", (4,)), ("x" * 257, (4,)), ("f4", (-4,)), ("f4", (3,))):
        with pytest.raises(tenarc.Unsupported):
            tenarc.Raw(*wrong, b"\0\0")
