"""Private labels: any learner, one budget, and a student of what was released."""

import json

import numpy as np
import pytest

import privfit


class Mean:
    """The nearest mean of a class; anything with fit and predict is a learner."""

    def fit(self, X, y):
        self.means = np.array([X[y == c].mean(axis=0) for c in (0, 1)])
        return self

    def predict(self, X):
        return np.argmin([((X - m) ** 2).sum(axis=1) for m in self.means], axis=0)


def data(rows=4000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(rows, 3))
    return X, (X[:, 0] + 0.3 * X[:, 1] > 0).astype(int), rng.uniform(-1, 1, size=(60, 3))


def model(**more):
    return privfit.LogisticRegression(epsilon=4, delta=1e-7, bounds=(-1, 1), classes=[0, 1], **more)


@pytest.mark.parametrize("learner", ["linear", "additive", "network"])
def test_labels_are_those_of_the_ensemble(learner):
    X, y, points = data()
    found = privfit.label(model(), X, y, points, learner=learner)
    truth = (points[:, 0] + 0.3 * points[:, 1] > 0).astype(int)
    answered = np.array([label is not None for label in found.labels_])
    assert answered.sum() > 20 and (found.labels_[answered] == truth[answered]).mean() > 0.75
    assert found.votes_.shape == (60, 2) and np.isnan(found.votes_[~answered]).all()
    assert found.student_.epsilon_ <= 4 and found.student_.score(points, truth) > 0.7


def test_any_learner_will_do():
    linear = pytest.importorskip("sklearn.linear_model")
    X, y, points = data(600)
    found = privfit.label(model(), X, y, points, learner=linear.LogisticRegression(), parts=4, seconds=8.0, at_once=2)
    assert found.parts_ == 4 and found.student_.epsilon_ <= 4


def test_what_is_no_learner_is_refused():
    X, y, points = data(300)
    for bad in ["forest", 3]:
        with pytest.raises(privfit.PrivfitError, match="learner|fit and predict"):
            privfit.label(model(), X, y, points, learner=bad)
    with pytest.raises(privfit.PrivfitError, match="zero-out"):
        privfit.label(model(adjacency="add-remove", rows=300), X, y, points)
