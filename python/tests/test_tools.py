"""Accounting, audits, schemas, methods."""

import json

import pandas as pd
import pytest

import privfit

STEP = {"type": "gaussian", "noise_multiplier": 1.0, "count": 1000, "sampling": "poisson", "sampling_probability": 0.01}


def test_account():
    epsilon = privfit.account.epsilon(STEP, delta=1e-5, adjacency="add-remove")
    assert 1.8282 < epsilon < 1.829
    assert privfit.account.delta([STEP], epsilon=epsilon, adjacency="add-remove") <= 1.001e-5
    open_step = {k: v for k, v in STEP.items() if k != "noise_multiplier"}
    assert abs(privfit.account.noise(open_step, epsilon=epsilon, delta=1e-5, adjacency="add-remove") - 1) < 1e-3
    request = {"query": "epsilon", "adjacency": "add_remove", "delta": 1e-5, "mechanisms": [STEP]}
    one = privfit.account(request)
    assert one == privfit.account(json.dumps(request)) and one["value"] == epsilon
    assert [a["value"] for a in privfit.account([request, request])] == [epsilon] * 2
    assert len(privfit.account({"vectors": [request]})) == 1
    with pytest.raises(privfit.PrivfitError, match="query"):
        privfit.account({"query": "what"})


def test_audit():
    found = privfit.audit("objective", "sensitivity", pairs=50)
    assert not found.violated and found.claim["epsilon"] <= 10 and "no contradiction" in repr(found)
    found = privfit.audit("noisy-gd", "distribution", runs=100, settings={"steps": 1})
    assert not found.violated and found.epsilon <= found.claim["epsilon"]
    found = privfit.audit("noisy-sgd", "canaries", canaries=100, settings={"sampling_rate": 0.1, "steps": 5})
    assert not found.violated and found.measured["canaries"] == 100
    assert not privfit.audit("objective", "precision", runs=300).violated
    with pytest.raises(privfit.PrivfitError, match="sensitivity, distribution"):
        privfit.audit("objective", "magic")
    with pytest.raises(privfit.PrivfitError):
        privfit.audit("magic")


def test_schema(tmp_path):
    frame = pd.DataFrame({"age": [1, 2], "the ward": ["A", "B"], "y": [0, 1]})
    draft = privfit.Schema.draft(frame, "visits")
    assert '[features."the ward"]\ntype = "category"\nvalues = ["?"]' in draft and "A" not in draft.replace("And", "")
    with pytest.raises(privfit.PrivfitError, match="min = 0"):
        privfit.Schema(draft)
    schema = privfit.Schema.from_bounds({"age": (0, 120), 'the "ward"': ["A", "B"]}, classes=["é", 2, True], name="v")
    assert schema.columns == ["age", 'the "ward"'] and schema.classes == ["é", "2", "true"]
    (tmp_path / "s.toml").write_text(schema.text, encoding="utf-8")
    assert privfit.Schema.from_file(tmp_path / "s.toml") == schema == privfit.Schema.from_string(schema.text)
    with pytest.raises(privfit.PrivfitError, match="check the path"):
        privfit.Schema.from_file(tmp_path / "none.toml")
    # A feature may have the name that the target has by default.
    assert privfit.Schema.from_bounds({"target": (0, 1)}, classes=[0, 1])._schema.target == "target_"


def test_methods():
    listed = privfit.methods()
    assert {"objective", "noisy-gd", "output"} <= {m["name"] for m in listed["methods"]}
    assert {"logistic", "softmax"} <= {loss["name"] for loss in listed["losses"]}
    assert privfit.__version__ == "0.1.0"
