"""What the README shows, run."""

import re
import sys
import types

from conftest import ROOT


def test_the_example_runs(tmp_path, monkeypatch):
    text = (ROOT / "python" / "README.md").read_text()
    example = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert example is not None
    monkeypatch.chdir(tmp_path)
    # Dataclasses look for the module that they are in.
    monkeypatch.setitem(sys.modules, "readme", types.ModuleType("readme"))
    names: dict = {"__name__": "readme"}
    exec(example.group(1), names)
    assert names["model"].name == "identity" and names["weight"].shape == (64, 64)
    assert names["value"] == {"step": 2}
