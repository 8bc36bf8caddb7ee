import doctest
import importlib

import pytest

import privfit

NAMES = ("_account", "_audit", "_estimators", "_evaluate", "_ledger", "_network", "_report", "_schema", "_tune")
MODULES = ["privfit", *(f"privfit.{name}" for name in NAMES)]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    found = doctest.testmod(importlib.import_module(name), extraglobs={"privfit": privfit})
    assert found.attempted > 0 and found.failed == 0
