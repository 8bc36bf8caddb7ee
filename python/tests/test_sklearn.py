"""scikit-learn's own checks, and its tools around our estimators.

Checks make data of their own and fit on them, with labels of their own choice. So the estimators here declare wide bounds, and classes
that are read off y: which is what nobody may do with private rows, and why it needs a class of its own.
"""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

import privfit


class Declared:
    """Classes off y: for checks only."""

    def _declared_classes(self, y):
        return None if y is None else np.unique(np.asarray(y))


class CheckedLogisticRegression(Declared, privfit.LogisticRegression):
    pass


class CheckedLinearSVC(Declared, privfit.LinearSVC):
    pass


class CheckedNetworkClassifier(Declared, privfit.NetworkClassifier):
    pass


FACTS = dict(epsilon=20.0, delta=1e-3, allow_large_delta=True, bounds=(-100, 100), simulate=0, threads=1)
LAYERS = dict(layers=["dense 4", "tanh"], steps=5, sampling_rate=1.0)
ESTIMATORS = {
    "LogisticRegression": CheckedLogisticRegression(**FACTS),
    "LinearSVC": CheckedLinearSVC(**FACTS),
    "LinearRegression": privfit.LinearRegression(**FACTS, target_bounds=(-500, 500)),
    "HuberRegressor": privfit.HuberRegressor(**FACTS, target_bounds=(-500, 500)),
    "NetworkClassifier": CheckedNetworkClassifier(**FACTS, **LAYERS),
    "NetworkRegressor": privfit.NetworkRegressor(**FACTS, **LAYERS, target_bounds=(-500, 500)),
}
NOT_TOLD = "what is in a cell or label must not decide whether a fit fails: it follows a fixed rule instead"
EXEMPT = {
    "check_dtype_object": NOT_TOLD,
    "check_classifiers_regression_target": NOT_TOLD,
    "check_supervised_y_no_nan": NOT_TOLD,
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_checks(name):
    results = check_estimator(ESTIMATORS[name], expected_failed_checks=EXEMPT, on_fail=None, on_skip=None)
    by = {status: [r for r in results if r["status"] == status] for status in ("passed", "failed", "xfail", "skipped")}
    print(f"\n{name}: {len(results)} checks, " + ", ".join(f"{len(found)} {status}" for status, found in by.items()))
    for result in by["failed"]:
        print(f"  failed {result['check_name']}: {result['exception']!r}")
    for result in by["skipped"]:
        print(f"  skipped {result['check_name']}: {result['exception']}")
    for result in by["xfail"]:
        print(f"  exempt {result['check_name']}: {EXEMPT[result['check_name']]}")
    assert not by["failed"], [r["check_name"] for r in by["failed"]]
    assert len(by["passed"]) >= 0.8 * len(results)


@pytest.fixture
def ledger(tmp_path):
    return privfit.Ledger.create(tmp_path / "l", dataset="visits", epsilon=2, delta=1e-6)


def make(ledger, **more):
    given = dict(epsilon=0.4, delta=1e-7, bounds=(-2, 3), classes=[0, 1], ledger=ledger, threads=1)
    return privfit.LogisticRegression(**{**given, **more})


def test_clones_share_the_ledger(ledger):
    model = make(ledger)
    assert clone(model).ledger is ledger and clone(model).get_params() == model.get_params()


def test_pipeline(ledger, two_classes):
    X, y = two_classes
    # A transformer that looks at no data may stand in front; one that is fitted on private rows leaks them.
    steps = make_pipeline(FunctionTransformer(lambda X: X), make(ledger))
    assert steps.fit(X, y).score(X, y) > 0.5 and len(ledger.status()["jobs"]) == 1
    assert "LogisticRegression" in repr(steps)


def test_cross_validation_spends_what_it_spends(ledger, two_classes):
    X, y = two_classes
    scores = cross_val_score(make(ledger), X, y, cv=3)
    status = ledger.status()
    assert len(scores) == 3 and len(status["jobs"]) == 3 == status["released"]
    each = [job["epsilon"] for job in status["jobs"]]
    assert max(each) <= 0.4 * 1.0001 and max(each) <= status["spent"]["fixed"] <= sum(each) and status["spent"]["filter"] <= 2


def test_a_search_raises_before_it_overspends(ledger, two_classes):
    X, y = two_classes
    search = GridSearchCV(make(ledger), {"epsilon": [0.2, 0.4]}, cv=2)
    search.fit(X, y)
    # Two values in two folds, and once more on all rows.
    before = ledger.status()
    assert len(before["jobs"]) == 5 == before["released"] and before["spent"]["part"] < 1
    greedy = GridSearchCV(make(ledger), {"epsilon": [0.4, 0.5, 0.6]}, cv=5, error_score="raise")
    with pytest.raises(privfit.BudgetError, match="budget"):
        greedy.fit(X, y)
    after = ledger.status()
    # What fitted was released; what would have been too much was never begun.
    assert after["spent"]["part"] <= 1 and len(after["jobs"]) == after["released"] < 20
    assert ledger.verify().holds
