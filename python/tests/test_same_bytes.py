"""One model file, whoever writes it: the command on a CSV or NumPy file, and Python on the same rows in memory."""

import json
import subprocess

import numpy as np
import pandas as pd
import pytest

import privfit
from test_inputs import SCHEMA, visits


def run(command, *arguments):
    done = subprocess.run([command, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_tables(command, tmp_path):
    table, y = visits()
    frame = pd.DataFrame(table)
    frame.assign(ill=y).to_csv(tmp_path / "visits.csv", index=False)
    (tmp_path / "visits.toml").write_text(SCHEMA)
    run(command, "fit", "--data", tmp_path / "visits.csv", "--schema", tmp_path / "visits.toml", "--epsilon", 2, "--delta", 1e-8,
        "--simulate", 5, "--method", "linear", "--out", tmp_path / "command.json")  # fmt: skip
    schema = privfit.Schema.from_file(tmp_path / "visits.toml")
    model = privfit.LogisticRegression(epsilon=2, delta=1e-8, schema=schema, simulate=5).fit(frame, y)
    model.save(tmp_path / "python.json")
    assert (tmp_path / "python.json").read_bytes() == (tmp_path / "command.json").read_bytes()
    # And each reads what the other wrote.
    run(command, "predict", "--model", tmp_path / "python.json", "--data", tmp_path / "visits.csv", "--out", tmp_path / "p.csv")
    predicted = pd.read_csv(tmp_path / "p.csv")
    assert np.array_equal(predicted["prediction"], model.predict(frame))
    np.testing.assert_allclose(predicted["p(yes)"], model.predict_proba(frame)[:, 1], atol=1e-6)
    assert np.array_equal(privfit.load(tmp_path / "command.json").predict(frame), model.predict(frame))


def test_curves(command, tmp_path):
    table, y = visits()
    frame = pd.DataFrame(table)
    frame.assign(ill=y).to_csv(tmp_path / "visits.csv", index=False)
    (tmp_path / "visits.toml").write_text(SCHEMA)
    run(command, "fit", "--data", tmp_path / "visits.csv", "--schema", tmp_path / "visits.toml", "--epsilon", 2, "--delta", 1e-8,
        "--simulate", 5, "--method", "additive", "--out", tmp_path / "command.json")  # fmt: skip
    model = privfit.AdditiveClassifier(epsilon=2, delta=1e-8, schema=privfit.Schema.from_file(tmp_path / "visits.toml"), simulate=5)
    model.fit(frame, y).save(tmp_path / "python.json")
    assert (tmp_path / "python.json").read_bytes() == (tmp_path / "command.json").read_bytes()


LAYERS = ["convolution 4 3 padding 1", "tanh", "max_pool 2", "flatten", "dense 6", "relu"]


def test_networks_of_images(command, tmp_path):
    rng = np.random.default_rng(3)
    X = rng.integers(0, 256, size=(600, 6, 5), dtype=np.uint8)
    y = (X[:, :, :2].mean(axis=(1, 2)) > 127).astype(np.uint8)
    # IDX: the type 8 is bytes, and sizes are of four bytes, the large ones first.
    for name, array in (("x", X), ("y", y)):
        head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, dtype=">u4").tobytes()
        (tmp_path / f"{name}.idx").write_bytes(head + array.tobytes())
    schema = privfit.Schema.of_images((6, 5), classes=[0, 1])
    (tmp_path / "s.toml").write_text(schema.text)
    run(command, "fit", "--data", tmp_path / "x.idx", "--labels", tmp_path / "y.idx", "--schema", tmp_path / "s.toml", "--epsilon", 2, "--delta", 1e-8,
        "--layers", ", ".join(LAYERS), "--set", "steps=12", "--set", "sampling_rate=0.5", "--set", "learning_rate=0.3", "--set", "averaged=0.5",
        "--simulate", 7, "--out", tmp_path / "command.json")  # fmt: skip
    how = dict(epsilon=2, delta=1e-8, layers=LAYERS, steps=12, sampling_rate=0.5, learning_rate=0.3, settings={"averaged": 0.5}, simulate=7)
    for model, rows in (
        (privfit.NetworkClassifier(**how, classes=[0, 1]), X),
        (privfit.NetworkClassifier(**how, classes=[0, 1], image_shape=(6, 5)), X[..., None]),
        (privfit.NetworkClassifier(**how, classes=[0, 1], image_shape=(6, 5)), X.reshape(600, 30)),
        (privfit.NetworkClassifier(**how, classes=[0, 1], image_shape=(6, 5), max=255), X.astype(float)),
        (privfit.NetworkClassifier(**how, schema=schema), X),
    ):
        model.fit(rows, y).save(tmp_path / "python.json")
        assert (tmp_path / "python.json").read_bytes() == (tmp_path / "command.json").read_bytes()
    run(command, "predict", "--model", tmp_path / "python.json", "--data", tmp_path / "x.idx", "--out", tmp_path / "p.csv")
    predicted = pd.read_csv(tmp_path / "p.csv")
    again = privfit.load(tmp_path / "command.json")
    assert type(again) is privfit.NetworkClassifier and np.array_equal(again.predict(X), model.predict(X))
    np.testing.assert_allclose(predicted["p(1)"], again.predict_proba(X)[:, 1], atol=1e-6)
    # The exported file is that of the command.
    run(command, "export", tmp_path / "command.json", "--format", "onnx", "--out", tmp_path / "command.onnx")
    again.export(tmp_path / "python.onnx")
    assert (tmp_path / "python.onnx").read_bytes() == (tmp_path / "command.onnx").read_bytes()


def test_networks_of_tables(command, tmp_path, numbers):
    X, y = numbers
    schema = privfit.Schema.from_bounds((0, 10), features=3, target_bounds=(0, 20))
    (tmp_path / "s.toml").write_text(schema.text)
    pd.DataFrame(X, columns=["x0", "x1", "x2"]).assign(target=y).to_csv(tmp_path / "d.csv", index=False)
    run(command, "fit", "--data", tmp_path / "d.csv", "--schema", tmp_path / "s.toml", "--epsilon", 2, "--delta", 1e-8, "--method", "network",
        "--simulate", 6, "--out", tmp_path / "command.json", "--set", "steps=20", "--set", "adam=1")  # fmt: skip
    model = privfit.NetworkRegressor(epsilon=2, delta=1e-8, bounds=(0, 10), target_bounds=(0, 20), simulate=6, steps=20, adam=True)
    model.fit(X, y).save(tmp_path / "python.json")
    assert (tmp_path / "python.json").read_bytes() == (tmp_path / "command.json").read_bytes()


def test_bounds(command, tmp_path, numbers):
    X, y = numbers
    estimator = privfit.LinearRegression(epsilon=2, delta=1e-8, bounds=(0, 10), target_bounds=(0, 20), simulate=6)
    estimator.fit(X, y).save(tmp_path / "python.json")
    schema = privfit.Schema.from_bounds((0, 10), features=3, target_bounds=(0, 20))
    (tmp_path / "s.toml").write_text(schema.text)
    pd.DataFrame(X, columns=["x0", "x1", "x2"]).assign(target=y).to_csv(tmp_path / "d.csv", index=False)
    run(command, "fit", "--data", tmp_path / "d.csv", "--schema", tmp_path / "s.toml", "--epsilon", 2, "--delta", 1e-8,
        "--simulate", 6, "--method", "linear", "--out", tmp_path / "command.json")  # fmt: skip
    assert (tmp_path / "python.json").read_bytes() == (tmp_path / "command.json").read_bytes()


def test_arrays(command, tmp_path, two_classes):
    X, y = two_classes
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", y)
    schema = privfit.Schema.from_bounds(row_norm=6.0, features=4, classes=[0, 1])
    (tmp_path / "s.toml").write_text(schema.text)
    run(command, "fit", "--data", tmp_path / "x.npy", "--labels", tmp_path / "y.npy", "--schema", tmp_path / "s.toml", "--epsilon", 2,
        "--delta", 1e-8, "--simulate", 7, "--out", tmp_path / "command.json", "--threads", 2)  # fmt: skip
    model = privfit.LogisticRegression(epsilon=2, delta=1e-8, row_norm=6.0, classes=[0, 1], simulate=7, threads=1)
    for order in (X, np.asfortranarray(X), X.tolist()):
        model.fit(order, y).save(tmp_path / "python.json")
        assert (tmp_path / "python.json").read_bytes() == (tmp_path / "command.json").read_bytes()


JOB = """data = "d.csv"
schema = "s.toml"
epsilon = 2.0
delta = 1e-8
method = "objective"
out = "command.json"

[tune]
{tune}
[tune.grid]
method = ["objective", "noisy-gd"]
ridge = [1, 10.5]
"""
GRID = {"method": ["objective", "noisy-gd"], "ridge": [1, 10.5]}


def stored(tmp_path, X, y, **more):
    """Rows and public facts as the command has them, and the estimator for the same."""
    schema = privfit.Schema.from_bounds((-2, 3), features=4, classes=[0, 1])
    (tmp_path / "s.toml").write_text(schema.text)
    pd.DataFrame(X, columns=["x0", "x1", "x2", "x3"]).assign(target=y).to_csv(tmp_path / "d.csv", index=False)
    return privfit.LogisticRegression(**{**dict(epsilon=2, delta=1e-8, bounds=(-2, 3), classes=[0, 1], method="objective"), **more})


def test_tuning(command, tmp_path, two_classes):
    X, y = two_classes
    estimator = stored(tmp_path, X, y, simulate=9)
    (tmp_path / "job.toml").write_text(JOB.format(tune='runs = 7\nlaw = "uniform"\nheld_out = 0.2'))
    run(command, "tune", tmp_path / "job.toml", "--simulate", 9)
    how = dict(runs=7, distribution="uniform", held_out=0.2)
    privfit.tune(estimator, X, y, grid=GRID, **how).save(tmp_path / "python.json")
    assert (tmp_path / "python.json").read_bytes() == (tmp_path / "command.json").read_bytes()
    said = json.loads(run(command, "tune", tmp_path / "job.toml", "--dry-run", "--rows", 1500, "--format", "json"))
    plan = privfit.tune_plan(estimator, grid=GRID, **how, rows=1500, features=4)
    assert {**said, "rows": 1500, "ledger": None} == plan


def test_tuning_on_public_rows(command, tmp_path, two_classes):
    X, y = two_classes
    estimator = stored(tmp_path, X, y, simulate=9)
    pd.read_csv(tmp_path / "d.csv").iloc[:300].to_csv(tmp_path / "public.csv", index=False)
    (tmp_path / "job.toml").write_text(JOB.format(tune=""))
    run(command, "tune", tmp_path / "job.toml", "--public", tmp_path / "public.csv", "--simulate", 9)
    privfit.tune(estimator, X, y, grid=GRID, public=(X[:300], y[:300])).save(tmp_path / "python.json")
    assert (tmp_path / "python.json").read_bytes() == (tmp_path / "command.json").read_bytes()


@pytest.mark.parametrize("private", [[], ["--epsilon", 1, "--delta", 1e-8, "--simulate", 3]])
def test_metrics(command, tmp_path, two_classes, private):
    X, y = two_classes
    model = stored(tmp_path, X, y).fit(X, y)
    model.save(tmp_path / "m.json")
    said = run(command, "evaluate", "--model", tmp_path / "m.json", "--data", tmp_path / "d.csv", "--format", "json", *private)
    how = dict(epsilon=1, delta=1e-8, simulate=3) if private else {}
    assert json.loads(said) == privfit.evaluate(model, X, y, **how) == privfit.evaluate(tmp_path / "m.json", X, y, **how)


def test_bought_bounds(command, tmp_path):
    table, y = visits()
    frame = pd.DataFrame(table).assign(ill=y)
    frame.to_csv(tmp_path / "visits.csv", index=False)
    draft = SCHEMA.replace("max = 120", 'max = "?"')
    assert draft != SCHEMA
    (tmp_path / "draft.toml").write_text(draft)
    run(command, "schema", "bounds", tmp_path / "draft.toml", "--data", tmp_path / "visits.csv", "--epsilon", 1, "--delta", 1e-9,
        "--simulate", 4, "--out", tmp_path / "bought.toml")  # fmt: skip
    expected = (tmp_path / "bought.toml").read_text()
    for rows in (frame, frame.drop(columns="ill")):
        bought = privfit.Schema.buy_bounds(tmp_path / "draft.toml", rows, y, epsilon=1, delta=1e-9, simulate=4)
        assert bought.text == expected
    assert privfit.Schema.buy_bounds(draft, frame, epsilon=1, delta=1e-9, simulate=4).text == expected


def test_reports(command, tmp_path, two_classes):
    X, y = two_classes
    model = stored(tmp_path, X, y).fit(X, y)
    model.save(tmp_path / "m.json")
    run(command, "report", tmp_path / "m.json", "--out", tmp_path / "command.html")
    privfit.report(model, tmp_path / "python.html")
    assert (tmp_path / "python.html").read_bytes() == (tmp_path / "command.html").read_bytes()
