"""Says of each file whose path is a line of the input what the reader in Python says: see `conformance/README.md`."""

import json
import sys

import tenarc


def verdict(call, opening=False, archive=True):
    try:
        result = call()
    except tenarc.Version:
        return "unsupported", None
    except tenarc.Error as error:
        if not archive:
            return "refused", None
        return ("torn" if opening and isinstance(error, tenarc.Torn) else "damaged"), None
    return "ok", result


def of_archive(path):
    found, archive = verdict(lambda: tenarc.open(path), opening=True)
    if archive is None:
        return {"open": found}
    with archive:
        said = {"open": "unfinished" if archive.unfinished_bytes else found}
        said["read"], _ = verdict(lambda: [segment.load() and None for segment in archive.segments()])
        said["verify"], _ = verdict(archive.verify)
    return said


def of_parts(path):
    def read():
        with open(path, "rb") as file:
            content = file.read()
        return tenarc.loads(content)

    return {"read": verdict(read, archive=False)[0]}


for line in sys.stdin:
    path = line.rstrip("\n")
    said = of_archive(path) if path.endswith(".tenarc") else of_parts(path)
    # A message has one verdict for all errors.
    if said.get("read") == "unsupported" and not path.endswith(".tenarc"):
        said["read"] = "refused"
    print(json.dumps({"file": path, **said}), flush=True)
