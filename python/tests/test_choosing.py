"""Tuning, private metrics, bought bounds and pages: what they give, what they spend and what they refuse."""

import numpy as np
import pandas as pd
import pytest

import privfit

FACTS = dict(epsilon=2, delta=1e-8, bounds=(-2, 3), classes=[0, 1], method="objective")


@pytest.fixture
def ledger(tmp_path):
    return privfit.Ledger.create(tmp_path / "l.ledger", dataset="rows", epsilon=8, delta=1e-6)


def test_tuning_gives_a_fitted_copy_that_is_paid_once(ledger, two_classes):
    X, y = two_classes
    estimator = privfit.LogisticRegression(**FACTS, ledger=ledger, request="choice")
    plan = privfit.tune_plan(estimator, [{"ridge": 1}, {"ridge": 50}], runs=5, rows=1500, features=4)
    assert plan["ledger"]["fits"] and plan["runs"] == 5 and 1.5 < plan["epsilon"]["zero_out"] <= 2
    assert "ridge 50 (objective)" in repr(plan) and "for everything together" in repr(plan)
    assert ledger.status()["jobs"] == []
    best = privfit.tune(estimator, X, y, [{"ridge": 1}, {"ridge": 50}], runs=5)
    assert type(best) is type(estimator) and not hasattr(estimator, "n_features_in_")
    assert best.get_params() == estimator.get_params() and best.best_params_ in ({"ridge": 1}, {"ridge": 50})
    assert best.score(X, y) > 0.6 and best.epsilon_ == plan["epsilon"]["zero_out"] and best.certificate_.verify(ledger).holds
    assert "2 candidates" in best.certificate_.text
    again = privfit.tune(estimator, X, y, [{"ridge": 1}, {"ridge": 50}], runs=5)
    assert again._model.bytes == best._model.bytes and len(ledger.status()["jobs"]) == 1
    with pytest.raises(privfit.BudgetError):
        privfit.tune(estimator.set_params(epsilon=20, request=None), X, y, grid={"ridge": [1, 2]})
    assert len(ledger.status()["jobs"]) == 1


def test_tuning_on_public_rows_leaves_the_budget_whole(ledger, two_classes):
    X, y = two_classes
    estimator = privfit.LogisticRegression(**FACTS, ledger=ledger)
    best = privfit.tune(estimator, X, y, grid={"ridge": [1, 2000]}, public=(X[:400], y[:400]))
    assert best.best_params_ == {"ridge": 1} and [c for c, _ in best.tried_] == [{"ridge": 1}, {"ridge": 2000}]
    assert best.tried_[0][1] > best.tried_[1][1] and "declared public" in best.certificate_.text
    assert len(ledger.status()["jobs"]) == 1 and best.epsilon_ == pytest.approx(2, abs=1e-4)


def test_tuning_regressions_and_tables(numbers):
    X, y = numbers
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    estimator = privfit.LinearRegression(epsilon=5, delta=1e-8, bounds=(0, 10), target_bounds=(0, 20), simulate=1)
    best = privfit.tune(estimator, frame, y, grid={"method": ["objective", "noisy-gd"]}, runs=4)
    assert best.score(frame, y) > 0.5 and list(best.feature_names_in_) == ["a", "b", "c"]
    assert np.array_equal(best.coef_, privfit.tune(estimator, frame, y, grid={"method": ["objective", "noisy-gd"]}, runs=4).coef_)


@pytest.mark.parametrize(
    "how, words",
    [
        (dict(), "grid="),
        (dict(candidates=[]), "at least one"),
        (dict(candidates=[{"ridge": "much"}]), "give a number"),
        (dict(grid={"ridge": 3}), "like \\[1, 10, 100\\]"),
        (dict(grid={"ridge": []}), "at least one"),
        (dict(grid={"ridge": [1]}, distribution="magic"), "^distribution is"),
        (dict(grid={"ridge": [1]}, held_out=2), "^held_out is"),
        (dict(grid={"ridge": [float("nan")]}), "give a number"),
        (dict(grid={"method": [3]}), "name of one"),
        (dict(grid={"ridge": [1]}, runs=-1), "^runs is"),
        (dict(grid={"ridge": [1]}, runs=2.5), "^runs is"),
        (dict(grid={"wings": [1]}), "wings"),
        (dict(grid={"method": ["magic"]}), "magic"),
        (dict(grid={"ridge": [1]}, runs=3, public=(np.zeros((50, 4)), np.zeros(50))), "leave out runs"),
        (dict(grid={"ridge": [1]}, public=(np.zeros((5, 4)), np.zeros(5))), "at least 30"),
        (dict(grid={"ridge": [1]}, public=(np.zeros((50, 3)), np.zeros(50))), "3 features"),
        (dict(grid={"ridge": [1]}, public=(np.zeros((50, 4)), None)), "label"),
        (dict(grid={"ridge": [1]}, public=(np.zeros((50, 4)), np.zeros(49))), "one label for each row"),
    ],
)
def test_what_can_not_be_tuned_is_said_before_anything_is_spent(ledger, two_classes, how, words):
    X, y = two_classes
    with pytest.raises(privfit.PrivfitError, match=words):
        privfit.tune(privfit.LogisticRegression(**FACTS, ledger=ledger), X, y, **how)
    assert ledger.status()["jobs"] == []


def test_private_metrics_are_near_the_exact_ones_and_paid_for(ledger, two_classes):
    X, y = two_classes
    model = privfit.LogisticRegression(**FACTS, dataset="rows").fit(X, y)
    exact = privfit.evaluate(model, X, y)
    assert exact["rows"] == 1500 and exact["accuracy"] == pytest.approx(model.score(X, y)) and "noise" not in exact
    found = privfit.evaluate(model, X, y, epsilon=1, delta=1e-8, ledger=ledger, request="how-good")
    assert abs(found["accuracy"] - exact["accuracy"]) < 8 * found["noise"]["accuracy"]
    assert found["private"] and 0 < found["epsilon"]["zero_out"] <= 1 and found["delta"] == 1e-8 and found["event"]
    assert found == privfit.evaluate(model, X, y, epsilon=1, delta=1e-8, ledger=ledger, request="how-good")
    assert len(ledger.status()["jobs"]) == 1 and ledger.status()["jobs"][0]["job"] == "evaluate"
    score = model.private_score(X, y, epsilon=5, delta=1e-8, ledger=ledger)
    assert abs(score - model.score(X, y)) < 0.1 and len(ledger.status()["jobs"]) == 2
    with pytest.raises(privfit.BudgetError):
        model.private_score(X, y, epsilon=50, delta=1e-8, ledger=ledger)
    loaded = privfit.evaluate(model, X, y, epsilon=3, delta=0, adjacency="add-remove", rows=1400, simulate=1)
    assert not loaded["private"] and loaded["epsilon"]["zero_out"] is None


def test_metrics_of_regressions_and_tables(numbers):
    X, y = numbers
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    schema = privfit.Schema.from_bounds({c: (0, 10) for c in "cab"}, target_bounds=(0, 20), target="y")
    model = privfit.LinearRegression(epsilon=5, delta=1e-8, schema=schema).fit(frame, y)
    exact = privfit.evaluate(model, frame, y)
    assert exact["r2"] == pytest.approx(model.score(frame, y)) and exact == privfit.evaluate(model, frame.assign(y=y))
    assert abs(model.private_score(frame, y, epsilon=20, delta=1e-8) - exact["r2"]) < 0.2


def test_metrics_that_can_not_be_had(two_classes):
    X, y = two_classes
    with pytest.raises(privfit.NotFittedError):
        privfit.evaluate(privfit.LogisticRegression(**FACTS), X, y)
    model = privfit.LogisticRegression(**FACTS).fit(X, y)
    for how, words in (
        (dict(delta=1e-8), "epsilon=1.0"),
        (dict(epsilon=1), "delta is missing: add delta"),
        (dict(epsilon=1, delta=0.5), "give a smaller one"),
        (dict(epsilon=-1, delta=1e-8), "positive number"),
        (dict(epsilon=1, delta=1e-8, adjacency="add-remove"), "rows"),
        (dict(epsilon=1, delta=1e-8, adjacency="sideways"), "adjacency"),
        (dict(epsilon=1, delta=1e-8, request="a"), "add ledger"),
        (dict(epsilon=1, delta=1e-8, rows=-5), "^rows is"),
    ):
        with pytest.raises(privfit.PrivfitError, match=words):
            privfit.evaluate(model, X, y, **how)
    for call in (privfit.evaluate, privfit.tune):
        with pytest.raises(privfit.PrivfitError, match="not an estimator"):
            call(3, X, y)
    with pytest.raises(privfit.PrivfitError, match="labels are missing"):
        privfit.evaluate(model, X)
    with pytest.raises(privfit.PrivfitError, match="one label for each row"):
        privfit.evaluate(model, X, y[:9])


DRAFT = """[dataset]
name = "rows"
[target]
column = "left"
classes = [0, 1]
[features.pay]
type = "number"
min = "?"
max = "?"
[features.age]
type = "number"
min = 0
max = 120
"""


def test_bounds_are_bought_and_stand_in_every_certificate(ledger):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"age": rng.uniform(20, 60, 3000), "pay": rng.uniform(1100, 2900, 3000), "note": "secret"})
    y = (frame["pay"] > 2000).astype(int)
    # Enough for noise to be far below what may lie beyond.
    how = dict(epsilon=4, delta=1e-8, ledger=ledger, request="bounds")
    schema = privfit.Schema.buy_bounds(DRAFT, frame, y, **how)
    assert "min = 1000.0\nmax = 3000.0" in schema.text and schema == privfit.Schema.buy_bounds(DRAFT, frame, y, **how)
    assert [job["job"] for job in ledger.status()["jobs"]] == ["bounds"]
    model = privfit.LogisticRegression(epsilon=2, delta=1e-8, schema=schema, ledger=ledger).fit(frame, y)
    assert "were released from the same records" in model.certificate_.text and model.certificate_.verify(ledger).holds
    with pytest.raises(privfit.PrivfitError, match="noise hides") as hidden:
        privfit.Schema.buy_bounds(DRAFT, frame, y, epsilon=0.001, delta=1e-12, simulate=0)
    assert 'min = "?"' in hidden.value.draft
    spent = len(ledger.status()["jobs"])
    for draft, rows, more, words in (
        (schema.text, frame, {}, "no numeric column"),
        (DRAFT, frame.drop(columns="pay"), {}, "pay"),
        (DRAFT, frame, dict(delta=0.1), "smaller"),
        (DRAFT, frame, dict(beyond=0.9), "^beyond is"),
        (DRAFT, frame, dict(simulate=1), "simulation"),
    ):
        with pytest.raises(privfit.PrivfitError, match=words):
            privfit.Schema.buy_bounds(draft, rows, y, **{**how, "request": None, **more})
    assert len(ledger.status()["jobs"]) == spent


def test_reports(tmp_path, ledger, two_classes):
    X, y = two_classes
    model = privfit.LogisticRegression(**FACTS, ledger=ledger).fit(X, y)
    page = privfit.report(model, tmp_path / "model.html")
    assert page.lower().startswith("<!doctype html>") and (tmp_path / "model.html").read_text("utf-8") == page
    model.save(tmp_path / "m.json")
    assert privfit.report(tmp_path / "m.json", tmp_path / "model.html") == page
    assert privfit.report(model, results=privfit.evaluate(model, X, y)) != page
    budget = privfit.report(ledger)
    assert budget != page and privfit.report(ledger.place) == budget
    with pytest.raises(privfit.PrivfitError, match="leave out results"):
        privfit.report(ledger, results={"accuracy": 1})
    (tmp_path / "other.html").write_text("mine")
    refused = {tmp_path / "other.html": "not a report", ledger.place: "not a report", tmp_path / "no/page.html": "directory"}
    for place, words in refused.items():
        with pytest.raises(privfit.PrivfitError, match=words):
            privfit.report(model, place)
    assert (tmp_path / "other.html").read_text() == "mine"
    with pytest.raises(privfit.PrivfitError, match="check the path"):
        privfit.report(tmp_path / "none.json")
    with pytest.raises(privfit.PrivfitError, match="has no report"):
        privfit.report(3)


@pytest.mark.parametrize("rows", [-1, 0, 1.5, "many"])
def test_numbers_of_rows_are_whole(two_classes, rows):
    with pytest.raises(privfit.PrivfitError, match="^rows is"):
        privfit.LogisticRegression(**FACTS, rows=rows).fit(*two_classes)
    with pytest.raises(privfit.PrivfitError, match="^rows is"):
        privfit.LogisticRegression(**FACTS).plan(rows=rows, features=4)
