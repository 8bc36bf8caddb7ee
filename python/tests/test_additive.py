"""Additive models: curves, reasons, edits, files."""

import json

import numpy as np
import pytest

import privfit

RNG = np.random.default_rng(5)
X = RNG.uniform(-1, 1, size=(6000, 3))
Y = (X[:, 0] ** 2 - 0.4 * X[:, 1] + 0.1 * RNG.normal(size=6000) > 0.3).astype(int)


def classifier(**more):
    return privfit.AdditiveClassifier(epsilon=2, delta=1e-8, bounds=(-1, 1), classes=[0, 1], simulate=3, **more)


def test_curves_are_learned_and_add_up():
    model = classifier().fit(X, Y)
    assert model.method_ == "additive" and model.score(X, Y) > 0.9
    # A linear model can't see the square.
    linear = privfit.LogisticRegression(epsilon=2, delta=1e-8, bounds=(-1, 1), classes=[0, 1], simulate=3).fit(X, Y)
    assert linear.method_ != "additive" and linear.score(X, Y) < 0.85
    curves = model.curves_
    assert set(curves) == {"x0", "x1", "x2"} and list(curves)[-1] == "x2"
    first = curves["x0"]
    scores, middles = np.array(first["scores"]["score"]), np.array(first["middles"])
    assert len(first["cells"]) == len(scores) == len(first["shares"]) and abs(sum(first["shares"]) - 1) < 1e-6
    inside = np.abs(middles) < 0.2
    outside = (np.abs(middles) > 0.8) & (np.abs(middles) < 1)
    assert scores[:-1][inside].mean() < scores[:-1][outside].mean() - 1
    names, parts = model.reasons(X[:50])
    assert names[:4] == ["base", "x0", "x1", "x2"]
    assert np.allclose(parts.sum(axis=1), model.decision_function(X[:50]), atol=1e-9)
    assert np.allclose(model.predict_proba(X[:50]).sum(axis=1), 1)
    with pytest.raises(AttributeError):
        model.coef_


def test_edits_are_recorded_and_hold(tmp_path):
    model = classifier().fit(X, Y)
    edited = model.edit(monotone={"x1": "down"}, drop=["x2"], clamp={"x0": (-0.5, 0.5)})
    assert model.edits_ == [] and len(edited.edits_) == 3
    line = np.column_stack([np.full(400, 0.3), np.linspace(-1, 1, 400), np.full(400, 0.1)])
    assert (np.diff(edited.decision_function(line)) <= 0).all()
    other = line.copy()
    other[:, 2] = -0.9
    assert (edited.decision_function(line) == edited.decision_function(other)).all()
    far, near = line.copy(), line.copy()
    far[:, 0], near[:, 0] = 0.99, 0.5
    assert (edited.decision_function(far) == edited.decision_function(near)).all()
    edited.save(tmp_path / "m.json")
    again = privfit.load(tmp_path / "m.json")
    assert type(again) is privfit.AdditiveClassifier and again.edits_ == edited.edits_
    assert (again.predict(X[:20]) == edited.predict(X[:20])).all()
    facts = json.loads((tmp_path / "m.json").read_text())["artifact"]["certificate"]
    assert len(facts["mechanism"]["edits"]) == 3
    with pytest.raises(privfit.PrivfitError, match="up"):
        model.edit(monotone={"x1": "sideways"})
    with pytest.raises(privfit.PrivfitError, match="no column"):
        model.edit(drop=["nobody"])
    with pytest.raises(privfit.PrivfitError, match="privfit.load"):
        privfit.LogisticRegression.load(tmp_path / "m.json")


def test_numbers_and_private_measures():
    y = 10 + 5 * X[:, 0] ** 2 - 2 * X[:, 1]
    model = privfit.AdditiveRegressor(epsilon=2, delta=1e-8, bounds=(-1, 1), target_bounds=(0, 20), simulate=1).fit(X, y)
    assert model.score(X, y) > 0.8
    private = model.private_score(X, y, epsilon=5, delta=1e-8, simulate=2)
    assert abs(private - model.score(X, y)) < 0.05
    several = np.digitize(y, [10, 11.5])
    model = privfit.AdditiveClassifier(epsilon=4, delta=1e-8, bounds=(-1, 1), classes=[0, 1, 2], simulate=1).fit(X, several)
    assert model.score(X, several) > 0.7
    names, parts = model.reasons(X[:30])
    chosen = model.decision_function(X[:30]).max(axis=1)
    assert np.allclose(parts.sum(axis=1), chosen, atol=1e-9)


def test_tuning_of_curves():
    model = classifier(method="additive", settings={"steps": 40, "trees": 0})
    best = privfit.tune(model, X, Y, grid={"smoothness": [0.3, 0.7]})
    assert best.method_ == "additive" and best.score(X, Y) > 0.8


def test_plot_asks_for_matplotlib_or_draws():
    model = classifier().fit(X, Y)
    try:
        import matplotlib

        matplotlib.use("Agg")
    except ImportError:
        with pytest.raises(privfit.PrivfitError, match="matplotlib"):
            model.plot()
        return
    assert len(model.plot(["x0", "x1"]).axes) >= 2
