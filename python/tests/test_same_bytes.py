"""One model file, whoever writes it: the command on a CSV or NumPy file, and Python on the same rows in memory."""

import subprocess

import numpy as np
import pandas as pd

import privfit
from test_inputs import SCHEMA, visits


def run(command, *arguments):
    done = subprocess.run([command, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_tables(command, tmp_path):
    table, y = visits()
    frame = pd.DataFrame(table)
    frame.assign(ill=y).to_csv(tmp_path / "visits.csv", index=False)
    (tmp_path / "visits.toml").write_text(SCHEMA)
    run(command, "fit", "--data", tmp_path / "visits.csv", "--schema", tmp_path / "visits.toml", "--epsilon", 2, "--delta", 1e-8,
        "--simulate", 5, "--out", tmp_path / "command.json")  # fmt: skip
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


def test_bounds(command, tmp_path, numbers):
    X, y = numbers
    estimator = privfit.LinearRegression(epsilon=2, delta=1e-8, bounds=(0, 10), target_bounds=(0, 20), simulate=6)
    estimator.fit(X, y).save(tmp_path / "python.json")
    schema = privfit.Schema.from_bounds((0, 10), features=3, target_bounds=(0, 20))
    (tmp_path / "s.toml").write_text(schema.text)
    pd.DataFrame(X, columns=["x0", "x1", "x2"]).assign(target=y).to_csv(tmp_path / "d.csv", index=False)
    run(command, "fit", "--data", tmp_path / "d.csv", "--schema", tmp_path / "s.toml", "--epsilon", 2, "--delta", 1e-8,
        "--simulate", 6, "--out", tmp_path / "command.json")  # fmt: skip
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
