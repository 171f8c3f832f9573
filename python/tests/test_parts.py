"""Parts, and sending them over several transports."""

import multiprocessing
import pickle
from dataclasses import dataclass

import numpy as np
import pytest

import tenarc


@dataclass
class Batch:
    id: int
    pixels: np.ndarray
    columns: np.ndarray
    raw: bytes


def batch() -> Batch:
    pixels = np.arange(10_000, dtype="f4").reshape(100, 100)
    return Batch(7, pixels, np.asfortranarray(pixels), bytes(range(256)) * 10)


def assert_same(found: Batch, wanted: Batch) -> None:
    assert found.id == wanted.id and found.raw == wanted.raw
    assert np.array_equal(found.pixels, wanted.pixels)
    assert np.array_equal(found.columns, wanted.columns) and found.columns.flags.f_contiguous


def test_nothing_is_copied_on_either_side():
    value = batch()
    parts = tenarc.to_parts(value)
    assert len(parts.metadata) < 300 and len(parts.buffers) == 3
    assert np.shares_memory(np.asarray(parts.buffers[0]), value.pixels)
    assert np.shares_memory(np.asarray(parts.buffers[1]), value.columns)
    found = tenarc.from_parts(parts.metadata, parts.buffers, cls=Batch)
    assert_same(found, value)
    assert np.shares_memory(found.pixels, value.pixels)
    copied = tenarc.from_parts(parts.metadata, parts.buffers, copy=True)
    assert not np.shares_memory(copied["pixels"], value.pixels) and type(copied["raw"]) is bytes


def test_buffers_of_any_kind_are_taken():
    value = batch()
    parts = tenarc.to_parts(value)
    kinds = [bytes, bytearray, memoryview, pickle.PickleBuffer, lambda b: np.frombuffer(b, "u1")]
    for kind in kinds:
        found = tenarc.from_parts(bytearray(parts.metadata), [kind(b) for b in parts.buffers], cls=Batch)
        assert_same(found, value)
    # numpy supports unaligned arrays.
    odd = [memoryview(b"\0" + bytes(buffer))[1:] for buffer in parts.buffers]
    assert_same(tenarc.from_parts(parts.metadata, odd, cls=Batch), value)


def test_lengths_are_known_before_buffers_are_there():
    parts = tenarc.to_parts(batch())
    assert tenarc.buffer_lengths(parts.metadata) == [40_000, 40_000, 2560]


def test_a_value_without_large_arrays_is_metadata_alone():
    parts = tenarc.to_parts({"a": 1})
    assert parts.buffers == [] and tenarc.from_parts(parts.metadata, []) == {"a": 1}


def test_wrong_buffers_are_refused():
    parts = tenarc.to_parts(batch())
    first, second, third = map(bytes, parts.buffers)
    for buffers in (
        [first, second],
        [first, second, third, third],
        [second, first, third],
        [first, second, third[:-1]],
        [first, second, third + b"\0"],
        [first, second, third[:-1] + b"\0"],
        [],
    ):
        with pytest.raises(tenarc.Damaged):
            tenarc.from_parts(parts.metadata, buffers)
    swapped = tenarc.from_parts(parts.metadata, [second, first, third], verify=False)
    assert not np.array_equal(swapped["pixels"], batch().pixels)
    for cut in range(len(parts.metadata)):
        with pytest.raises(tenarc.Error):
            tenarc.from_parts(parts.metadata[:cut], parts.buffers)
    with pytest.raises(tenarc.Damaged):
        tenarc.from_parts(parts.metadata + b"\0", parts.buffers)


def test_parts_without_checksums():
    parts = tenarc.to_parts(batch(), checksums=False)
    assert_same(tenarc.from_parts(parts.metadata, parts.buffers, cls=Batch), batch())


def test_pickle_takes_buffers_out_of_band():
    value = batch()
    parts = tenarc.to_parts(value)
    buffers: list = []
    stream = pickle.dumps(parts, protocol=5, buffer_callback=buffers.append)
    assert len(stream) < 500 and len(buffers) == 3
    back = pickle.loads(stream, buffers=buffers)
    found = tenarc.from_parts(back.metadata, back.buffers, cls=Batch)
    assert np.shares_memory(found.pixels, value.pixels)
    # Every protocol can also pickle the buffers in band.
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        back = pickle.loads(pickle.dumps(parts, protocol=protocol))
        assert_same(tenarc.from_parts(back.metadata, back.buffers, cls=Batch), value)


def _child(connection) -> None:
    metadata = connection.recv_bytes()
    buffers = [connection.recv_bytes() for _ in tenarc.buffer_lengths(metadata)]
    found = tenarc.from_parts(metadata, buffers, cls=Batch)
    found.pixels = found.pixels * 2
    for piece in tenarc.to_parts(found):
        connection.send_bytes(piece)
    connection.close()


def test_parts_travel_through_multiprocessing():
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_child, args=(there,))
    process.start()
    there.close()
    for piece in tenarc.to_parts(batch()):
        here.send_bytes(piece)
    metadata = here.recv_bytes()
    buffers = [here.recv_bytes() for _ in tenarc.buffer_lengths(metadata)]
    found = tenarc.from_parts(metadata, buffers, cls=Batch)
    process.join()
    here.close()
    assert np.array_equal(found.pixels, batch().pixels * 2)


def test_parts_travel_as_frames_of_zeromq():
    zmq = pytest.importorskip("zmq", reason="pyzmq is not installed")
    with zmq.Context() as context, context.socket(zmq.PAIR) as send, context.socket(zmq.PAIR) as receive:
        send.bind("inproc://parts")
        receive.connect("inproc://parts")
        send.send_multipart(list(tenarc.to_parts(batch())), copy=False)
        metadata, *buffers = receive.recv_multipart(copy=False)
        assert_same(tenarc.from_parts(metadata.buffer, buffers, cls=Batch), batch())
