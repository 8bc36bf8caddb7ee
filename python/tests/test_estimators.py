import copy
import pickle

import numpy as np
import pandas as pd
import pytest

import privfit

BINARY = dict(epsilon=5, delta=1e-7, bounds=(-2, 3), classes=[0, 1])


def test_nothing_is_read_off_the_data(two_classes):
    X, y = two_classes
    frame = pd.DataFrame(X, columns=["age", "b", "c", "d"])
    for estimator, rows, what in [
        (privfit.LogisticRegression(delta=1e-7, classes=[0, 1]), X, r"bounds are missing: .*\n  bounds=\(0, 100\)"),
        (privfit.LogisticRegression(delta=1e-7, classes=[0, 1]), frame, r"\n  bounds={'age': \(0, 100\), 'b'"),
        (privfit.LogisticRegression(delta=1e-7, bounds=(-2, 3)), X, r"classes are missing: .*\n  classes=\[0, 1\]"),
        (privfit.LogisticRegression(bounds=(-2, 3), classes=[0, 1]), X, r"delta is missing: add delta=4.4e-7"),
        (privfit.LinearRegression(delta=1e-7, bounds=(-2, 3)), X, r"target_bounds are missing: .*\n  target_bounds=\(0, 100\)"),
        (privfit.LogisticRegression(**{**BINARY, "delta": 0.01}), X, r"allow_large_delta=True"),
        (privfit.LogisticRegression(**BINARY, adjacency="add-remove"), X, r"add-remove .* rows=N"),
        (privfit.LogisticRegression(**BINARY, rows=3), X, r"3 rows are declared"),
        (privfit.LogisticRegression(**{**BINARY, "bounds": ([0, 0], [1, 1])}), X, r"2 bounds and 4 features"),
        (privfit.LogisticRegression(**{**BINARY, "bounds": (3, -2)}), X, r"above min"),
        (privfit.LogisticRegression(**{**BINARY, "epsilon": -1}), X, r"epsilon is -1"),
        (privfit.LogisticRegression(**{**BINARY, "method": "magic"}), X, r"magic"),
        (privfit.LogisticRegression(**BINARY, row_norm=1), X, r"leave out one"),
    ]:
        with pytest.raises(privfit.PrivfitError, match=what):
            estimator.fit(rows, y)
    assert issubclass(privfit.PrivfitError, ValueError)
    with pytest.raises(privfit.PrivfitError, match="inconsistent"):
        privfit.LogisticRegression(**BINARY).fit(X, y[:-1])


@pytest.mark.parametrize("facts", [dict(bounds=(-2, 3)), dict(bounds=([-2, -2, -3, -2], [3, 4, 5, 3])), dict(row_norm=7.0)])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kind", [privfit.LogisticRegression, privfit.LinearSVC])
def test_coefficients_are_in_the_units_of_the_columns(two_classes, facts, intercept, classes, kind):
    X, y = two_classes
    y = y + (X[:, 3] > 2) if classes == 3 else y
    model = kind(epsilon=5, delta=1e-7, classes=list(range(classes)), fit_intercept=intercept, **facts).fit(X, y)
    inside = X[np.linalg.norm(X, axis=1) < 7]
    scores = inside @ model.coef_.T + model.intercept_
    assert model.coef_.shape == (1 if classes == 2 else 3, 4)
    found = model.decision_function(inside)
    np.testing.assert_allclose(found if classes == 3 else found[:, None], scores, rtol=1e-9, atol=1e-9)
    best = scores.argmax(axis=1) if classes == 3 else (scores[:, 0] > 0).astype(int)
    assert np.array_equal(model.predict(inside), best)
    if kind is privfit.LogisticRegression:
        p = model.predict_proba(inside)
        assert p.shape == (len(inside), classes) and np.allclose(p.sum(axis=1), 1)
        assert np.array_equal(p.argmax(axis=1), best)
    # Beyond the bounds numbers count as the bound.
    if "bounds" in facts:
        low, high = facts["bounds"]
        np.testing.assert_allclose(model.decision_function(X * 9), model.decision_function(np.clip(X * 9, low, high)))


@pytest.mark.parametrize("kind", [privfit.LinearRegression, privfit.HuberRegressor])
def test_regressors(numbers, kind):
    X, y = numbers
    model = kind(epsilon=10, delta=1e-8, bounds=(0, 10), target_bounds=(-5, 20)).fit(X, y)
    np.testing.assert_allclose(model.predict(X), np.clip(X @ model.coef_ + model.intercept_, -5, 20), atol=1e-9)
    assert model.score(X, y) > 0.7
    assert model.coef_.shape == (3,) and isinstance(model.intercept_, float)
    if kind is privfit.LinearRegression:
        assert model.method_.startswith("statistics")
        np.testing.assert_allclose(model.coef_, [1.0, 0.5, -0.3], atol=0.2)


def test_guarantee(two_classes):
    X, y = two_classes
    model = privfit.LogisticRegression(**BINARY).fit(X, y)
    certificate = model.certificate_
    assert model.epsilon_ == certificate.epsilon <= 5 and certificate.delta == 1e-7 and certificate.private
    assert certificate.verify().holds and "epsilon" in certificate.text and certificate.dict["guarantee"]
    assert "epsilon" in repr(model) and "delta 1e-7" in repr(model) and repr(model).startswith("LogisticRegression(epsilon=5")
    replaced = privfit.LogisticRegression(**BINARY, adjacency="replace-one").fit(X, y)
    assert replaced.epsilon_ <= 5
    pure = privfit.LogisticRegression(bounds=(-2, 3), classes=[0, 1], method="output").fit(X, y)
    assert pure.certificate_.delta == 0
    simulated = privfit.LogisticRegression(**BINARY, simulate=3).fit(X, y)
    assert simulated.epsilon_ == float("inf") and "not private" in repr(simulated)
    unknown = privfit.LogisticRegression(**BINARY, adjacency="add-remove", rows=1400).fit(X, y)
    assert unknown.epsilon_ <= 5
    with pytest.raises(AttributeError):
        privfit.LogisticRegression().certificate_


def test_two_fits_differ_and_threads_do_not_matter(two_classes):
    X, y = two_classes
    fit = lambda **more: privfit.LogisticRegression(**BINARY, **more).fit(X, y).coef_  # noqa: E731
    assert not np.array_equal(fit(), fit())
    assert np.array_equal(fit(simulate=1, threads=1), fit(simulate=1, threads=2))


def test_files(two_classes, tmp_path):
    X, y = two_classes
    model = privfit.LogisticRegression(**{**BINARY, "classes": ["a", "b"]}).fit(X, np.array(["a", "b"])[y])
    model.save(tmp_path / "model.json")
    for again in (privfit.load(tmp_path / "model.json"), privfit.LogisticRegression.load(tmp_path / "model.json")):
        assert np.array_equal(again.predict(X), model.predict(X)) and again.epsilon_ == model.epsilon_
        assert np.array_equal(again.coef_, model.coef_)
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert np.array_equal(again.predict_proba(X), model.predict_proba(X)) and again.get_params() == model.get_params()
    with pytest.raises(privfit.PrivfitError, match="use privfit.load"):
        privfit.LinearSVC.load(tmp_path / "model.json")
    data = bytearray((tmp_path / "model.json").read_bytes())
    data[200] ^= 1
    (tmp_path / "model.json").write_bytes(data)
    with pytest.raises(privfit.DamagedError):
        privfit.load(tmp_path / "model.json")
    with pytest.raises(privfit.PrivfitError, match="check the path"):
        privfit.load(tmp_path / "none.json")
    with pytest.raises(privfit.PrivfitError, match="check the directory"):
        model.save(tmp_path / "none" / "model.json")


def test_plan():
    model = privfit.LogisticRegression(**BINARY)
    plan = model.plan(rows=10_000, features=4)
    assert plan["method"] and plan["epsilon"]["zero_out"] <= 5 and "no data were opened" in repr(plan)
    with pytest.raises(privfit.PrivfitError, match="rows=N"):
        model.plan(features=4)
    with pytest.raises(privfit.PrivfitError, match="features=20"):
        model.plan(rows=10)
    named = privfit.LogisticRegression(delta=1e-9, bounds={"age": (0, 120), "ward": ["A", "B", "C"]}, classes=[0, 1])
    assert named.plan(rows=1000)["features"] == 5


def test_names(two_classes):
    X, y = two_classes
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = privfit.LogisticRegression(**BINARY).fit(frame, y)
    assert model.feature_names_in_.tolist() == list("abcd") and model.n_features_in_ == 4
    with pytest.raises(privfit.PrivfitError, match="same order"):
        model.predict(frame[list("bacd")])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        assert np.array_equal(model.predict(X), model.predict(frame))
    plain = privfit.LogisticRegression(**BINARY).fit(X, y)
    with pytest.warns(UserWarning, match="fitted without feature names"):
        assert np.array_equal(plain.predict(frame), plain.predict(X))
    with pytest.raises(privfit.PrivfitError, match="3 features"):
        plain.predict(X[:, :3])


@pytest.mark.parametrize(
    ("method", "settings", "says"),
    [
        ("recursive-momentum", {"fresh": 0.4, "steps": 40, "smoothing": 0.5}, "fresh part of a gradient"),
        ("adaptive-gd", {"steps": 20}, "steps"),
        ("correlated-noise", {"epochs": 4, "batches": 5}, "batches"),
        ("correlated-noise", {"epochs": 1, "batches": 20, "in_order": True}, "order of the records"),
        ("noisy-gd", {"smoothing": 1, "nonconvex": 0.001}, "strength of Laplacian smoothing"),
        ("random-round-sgd", {"steps": 40}, "steps"),
    ],
)
def test_ways_of_taking_steps(two_classes, method, settings, says):
    X, y = two_classes
    model = privfit.LogisticRegression(**BINARY, method=method, settings=settings).fit(X, y)
    assert model.method_ == method and model.epsilon_ <= 5 and model.certificate_.verify().holds
    assert method in {m["name"] for m in privfit.methods()["methods"]}
    assert says in model.certificate_.json


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"random_rounds": True}, "steps that are taken"),
        ({"fresh": 0.5}, "fresh part of a gradient"),
        ({"smoothing": 1}, "strength of Laplacian smoothing"),
        ({"correlated": True}, "batches"),
        ({"in_order": True}, "order of the records"),
        ({"sampling_rate": 1}, "steps"),
    ],
)
def test_ways_of_taking_steps_of_a_network(two_classes, settings, says):
    X, y = two_classes
    model = privfit.NetworkClassifier(**BINARY, layers=["dense 4", "tanh"], steps=12, settings={"sampling_rate": 0.25, **settings}).fit(X, y)
    assert model.method_ == "network" and model.epsilon_ <= 5 and model.certificate_.verify().holds
    assert says in model.certificate_.json
    taken = model.history_["steps"]
    assert taken <= 12 if "random_rounds" in settings else taken == 12
