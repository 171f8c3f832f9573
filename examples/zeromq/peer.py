"""The side of ../src/main.rs that asks, in Python: `peer.py ADDRESS`.

Sends a record as one message and as frames, and compares what comes back. Values are encoded by the
second implementation of SPEC.md in tests/interop/python.
"""

import math
import sys
from pathlib import Path

import cbor2
import numpy as np
import zmq

sys.path.append(str(Path(__file__).parents[2] / "tests/interop/python"))

from archives import same  # noqa: E402
from check import Numbers, Tensor  # noqa: E402
from metadata import Encoder, Resolver  # noqa: E402
from parts import join, split  # noqa: E402


def record(seed):
    """The same record as `Record::new` in Rust."""
    row, column = np.indices((40, 30))
    weight = (row * 100 + column + seed / 4).astype("<f4")
    row, column = np.indices((20, 50))
    counts = np.asfortranarray((seed - row * 100 - column).astype("<i8"))
    return {
        "name": f"record {seed}",
        "seed": seed,
        "weight": Tensor("f32", weight, "C"),
        "counts": Tensor("i64", counts, "F"),
        "bias": Tensor("f64", seed + np.arange(5) / 8, "C"),
        "curve": Numbers("f64", seed * np.arange(500) / 2),
        "note": None if seed % 2 else "ß, even",
    }


def main():
    with zmq.Context() as context, context.socket(zmq.REQ) as socket:
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.RCVTIMEO, 30_000)
        socket.connect(sys.argv[1])

        message, _ = Encoder(inline_below=math.inf).whole(record(1))
        socket.send(message)
        same(Resolver([]).whole(cbor2.loads(socket.recv())), record(2))
        print("peer.py: received the expected answer as a message")

        frames = split(None, record(1))
        socket.send_multipart(frames)
        received = socket.recv_multipart()
        same(join(received).value, record(2))
        print(f"peer.py: received the expected answer in {len(received)} frames")


if __name__ == "__main__":
    main()
