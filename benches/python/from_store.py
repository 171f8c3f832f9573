"""How long obstore takes to load 200 tensors of 1 MiB in safetensors' format from a server.

`crates/store/examples/latency.rs` serves them, and starts this program with its address. It needs numpy, obstore
and safetensors.

safetensors reads files and bytes only, so a program has two ways: it gets the object whole and gives it to
`safetensors.numpy.load`, or it reads the header, as the format's documentation shows, and gets the ranges of the
tensors.
"""

import json
import statistics
import sys
import time

import numpy as np
import obstore
import safetensors.numpy
from obstore.store import HTTPStore

COUNT, ROUNDS = 200, 9
NAME = "model.safetensors"
store = HTTPStore.from_url(sys.argv[1], client_options={"allow_http": True})


def whole():
    return safetensors.numpy.load(obstore.get(store, NAME).bytes().to_bytes())


def ranges():
    length = int.from_bytes(obstore.get_range(store, NAME, start=0, end=8).to_bytes(), "little")
    header = json.loads(obstore.get_range(store, NAME, start=8, end=8 + length).to_bytes())
    places = [tensor["data_offsets"] for tensor in header.values()]
    starts, ends = ([8 + length + place[side] for place in places] for side in (0, 1))
    found = obstore.get_ranges(store, NAME, starts=starts, ends=ends)
    return {name: np.frombuffer(data, "<f4") for name, data in zip(header, found, strict=True)}


def timed(load):
    start = time.perf_counter()
    found = load()
    took = 1e3 * (time.perf_counter() - start)
    assert len(found) == COUNT and found["w199"][-1] == 0.5
    return took


times = {whole: [], ranges: []}
for _ in range(ROUNDS):
    for load, each in times.items():
        each.append(timed(load))
for load, each in times.items():
    print(f"  safetensors, {load.__name__:15} {min(each):7.1f} {statistics.median(each):7.1f}")
