"""Runs the Python example of the repository's first page."""

import re

import numpy as np
from conftest import ROOT

import tenarc


def test_the_example_reads_what_the_one_in_rust_saves(tmp_path, monkeypatch, capsys):
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    tenarc.save("run.tenarc", {"step": 1000, "weights": np.eye(256, dtype="f4")})
    exec(example, {})
    assert capsys.readouterr().out == "1000 (256, 256) (8, 256)\n"
