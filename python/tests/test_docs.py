import doctest
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import privfit

NAMES = ("_account", "_audit", "_estimators", "_evaluate", "_label", "_ledger", "_network", "_report", "_schema", "_tune")
MODULES = ["privfit", *(f"privfit.{name}" for name in NAMES)]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    found = doctest.testmod(importlib.import_module(name), extraglobs={"privfit": privfit})
    assert found.attempted > 0 and found.failed == 0


def test_the_notebook_runs():
    notebook = Path(__file__).parents[2] / "examples" / "pictures" / "notebook.py"
    run = subprocess.run([sys.executable, "-B", notebook], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    # Features that are not learned are better than a network that has to learn them through noise.
    features, network = (float(line.split()[-1]) for line in run.stdout.splitlines() if line.startswith("accuracy"))
    assert features > 0.85 and features > network and "recomputed: holds" in run.stdout
