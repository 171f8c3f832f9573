"""Says of each file whose path is a line of the input what the reader in Python says: see `conformance/README.md`."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "python/src"))
import tenarc  # noqa: E402


def verdict(call, other="damaged"):
    """The verdict of a call, and its result. `None` if only Python cannot say it: a dictionary has each key once."""
    try:
        result = call()
    except (tenarc.Unsupported, tenarc.Version):
        return "unsupported", None
    except tenarc.Error as error:
        if "same key twice" in str(error) or "Duplicate map key" in str(error):
            return None, None
        return ("torn" if other is None and isinstance(error, tenarc.Torn) else other or "damaged"), None
    return "ok", result


def of_archive(path):
    found, archive = verdict(lambda: tenarc.open(path), None)
    if archive is None:
        return {"open": found}
    with archive:
        said = {"open": "unfinished" if archive.unfinished_bytes else found}
        said["read"], _ = verdict(lambda: [segment.load() for segment in archive.segments()])
        said["verify"], _ = verdict(archive.verify)
    return said


def of(path):
    if path.endswith(".tenarc"):
        return of_archive(path)
    with open(path, "rb") as file:
        content = file.read()
    # There is no function for several messages, and none that says how long the metadata of parts is.
    if path.endswith(".cbor"):
        found, _ = verdict(lambda: tenarc.loads(content), "refused")
        return {"read": "refused" if found == "unsupported" else found}
    return {}


for line in sys.stdin:
    path = line.rstrip("\n")
    print(json.dumps({"file": path, **of(path)}), flush=True)
