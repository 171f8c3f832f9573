"""Tensors of other libraries, by `__array__` and DLPack, in both directions."""

import gc
import weakref

import numpy as np
import pytest

import tenarc
from tenarc import Raw, dlpack, dtypes

ml_dtypes = pytest.importorskip("ml_dtypes")

NAMES = tuple(dlpack.CODES)


@pytest.fixture
def without_ml_dtypes(monkeypatch):
    for name in NAMES:
        monkeypatch.setitem(dtypes.BY_NAME, name, dtypes.BY_NAME[name]._replace(numpy=None))


def raw_of(name: str, order="C") -> tuple[Raw, np.ndarray]:
    """A tensor with every element of a dtype, and its numbers as ml_dtypes has them."""
    kind = {"f8_e4m3": "float8_e4m3fn", "f8_e8m0": "float8_e8m0fnu", "bf16": "bfloat16"}.get(name)
    kind = kind or "float8_" + name.removeprefix("f8_")
    width = 2 if name == "bf16" else 1
    bits = np.arange(256**width, dtype=f"<u{width}")
    numbers = bits.view(getattr(ml_dtypes, kind)).astype("f4").reshape((-1, 16), order=order)
    return Raw(name, (256**width // 16, 16), bits, order), numbers


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.usefixtures("without_ml_dtypes")
def test_elements_that_numpy_lacks_become_float32(name):
    for order in "CF":
        raw, numbers = raw_of(name, order)
        with np.errstate(invalid="ignore"):
            found = np.asarray(raw)
            assert found.dtype == np.float32 and np.array_equal(found, numbers, equal_nan=True)
            is_nan = np.isnan(numbers)
            assert np.array_equal(np.signbit(found) | is_nan, np.signbit(numbers) | is_nan)
            assert np.asarray(raw, "f8").dtype == np.float64
    with pytest.raises(ValueError, match="copy"):
        raw.__array__(copy=False)


def test_with_ml_dtypes_the_array_has_the_dtype():
    raw, numbers = raw_of("bf16")
    found = np.asarray(raw)
    assert found.dtype == ml_dtypes.bfloat16 and np.shares_memory(found, raw.data)
    assert np.array_equal(found.astype("f4"), numbers, equal_nan=True)
    assert np.asarray(Raw("f32", (2,), np.ones(2, "f4"))).tolist() == [1, 1]


@pytest.mark.parametrize("name", ["f128", "f4", "f6_e2m3", "posit16"])
def test_what_others_do_not_hold_is_refused(name):
    raw = Raw(name, (4,), np.zeros({"f128": 64, "f4": 2, "f6_e2m3": 3, "posit16": 8}[name], "u1"))
    if name in ("f128", "posit16"):
        with pytest.raises(tenarc.Mismatch, match=name):
            np.asarray(raw)
    with pytest.raises(BufferError, match=name):
        raw.__dlpack__()


@pytest.mark.parametrize("name", NAMES)
def test_torch_takes_them_by_dlpack(name):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    for order in "CF":
        raw, _ = raw_of(name, order)
        tensor = torch.from_dlpack(raw)
        assert raw.__dlpack_device__() == (1, 0)
        assert tensor.data_ptr() == raw.data.ctypes.data and tuple(tensor.shape) == raw.shape
        assert tensor.dtype is tenarc.to_torch(raw).dtype
        assert np.array_equal(
            tensor.view(torch.int16 if name == "bf16" else torch.int8).numpy().view(raw.bits.dtype), raw.bits
        )
        payload = weakref.ref(raw.data.base if raw.data.base is not None else raw.data)
        del raw
        gc.collect()
        assert payload() is not None
        del tensor
        gc.collect()
        assert payload() is None
    assert torch.from_dlpack(Raw("f32", (2,), np.ones(2, "f4"))).tolist() == [1, 1]


def test_the_old_and_the_new_capsule_have_the_code_of_the_dtype():
    raw, _ = raw_of("bf16")
    for options, name, structure in (
        ({}, b"dltensor", dlpack._Tensor),
        ({"max_version": (1, 0)}, b"dltensor_versioned", dlpack._Versioned),
    ):
        try:
            capsule = raw.__dlpack__(**options)
        except TypeError:
            assert options and np.lib.NumpyVersion(np.__version__) < "2.1.0"
            continue
        found = structure.from_address(dlpack._pointer(capsule, name))
        tensor = found.tensor if options else found
        assert (tensor.code, tensor.ndim, tensor.data) == (4, 2, raw.data.ctypes.data)


class Exports:
    """A tensor of a library that has DLPack only, as cupy refuses `__array__`."""

    def __init__(self, array, refuses=False):
        self.array, self.refuses = array, refuses

    def __array__(self, *_, **__):
        raise TypeError("Implicit conversion to a NumPy array is not allowed")

    def __dlpack__(self, **options):
        if self.refuses:
            raise RuntimeError("no memory\non the device")
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_tensors_of_other_libraries_are_saved():
    array = np.arange(12, dtype="f4").reshape(3, 4)
    found = tenarc.loads(tenarc.dumps({"a": Exports(array), "b": [Exports(array.T)]}))
    assert np.array_equal(found["a"], array) and found["b"][0].flags.f_contiguous
    (buffer,) = tenarc.to_parts(Exports(np.ones(5000))).buffers
    assert buffer.nbytes == 40_000
    with pytest.raises(tenarc.Unsupported, match=r"Exports to numpy: no memory at `a.0`"):
        tenarc.dumps({"a": [Exports(array, refuses=True)]})


def test_arrays_of_jax_are_saved_and_made():
    jax = pytest.importorskip("jax", reason="jax is not installed")
    jnp = jax.numpy
    for dtype in ("float32", "bfloat16", "float8_e5m2", "int8", "bool", "complex64"):
        array = jnp.arange(6).reshape(2, 3).astype(dtype)
        found = tenarc.loads(tenarc.dumps([array]))[0]
        assert found.dtype == array.dtype and np.array_equal(found, np.asarray(array))
        assert (jnp.asarray(found) == array).all()
    raw, numbers = raw_of("bf16")
    assert np.array_equal(np.asarray(jnp.from_dlpack(raw)).astype("f4"), numbers, equal_nan=True)
    with pytest.raises(tenarc.Unsupported):
        tenarc.dumps([jax.random.key(0)])
