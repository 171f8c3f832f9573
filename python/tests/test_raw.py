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


@pytest.mark.parametrize(
    ("name", "bits", "theirs"),
    [("f4", 4, "float4_e2m1fn"), ("f6_e2m3", 6, "float6_e2m3fn"), ("f6_e3m2", 6, "float6_e3m2fn")],
)
def test_packed_elements_become_float32(name, bits, theirs):
    """SPEC 2: element i has the bits from i times the width on, the lowest first."""
    codes = np.arange(1 << bits, dtype="u1").reshape(-1, 4)
    together = sum(int(code) << bits * place for place, code in enumerate(codes.reshape(-1)))
    payload = together.to_bytes((bits << bits) // 8, "little")
    for order in "CF":
        raw = tenarc.Raw(name, codes.shape, payload, order)
        assert np.array_equal(raw.bits, codes.reshape(-1).reshape(codes.shape, order=order))
        assert np.asarray(raw).dtype == np.float32 and np.asarray(raw).shape == codes.shape
    found = np.asarray(tenarc.Raw(name, (1 << bits,), payload))
    ml_dtypes = pytest.importorskip("ml_dtypes")
    want = codes.reshape(-1).view(getattr(ml_dtypes, theirs)).astype(np.float32)
    assert found.tobytes() == want.tobytes()
    if name == "f4":
        assert found[:8].tolist() == [0, 0.5, 1, 1.5, 2, 3, 4, 6]
