"""Private labels of public points, by an ensemble of any learner."""

from __future__ import annotations

import os
import pickle
import sys
import tempfile
from typing import Any

import numpy as np

from . import _privfit
from ._base import Estimator
from ._errors import PrivfitError

#: What is trained on a part, without a learner of the caller's.
TEACHERS = ("linear", "additive", "network")


class Labels:
    """Released labels: ``labels_`` (a class for each point; None without an answer), ``votes_`` (noisy counts, NaN without an answer), ``parts_``, ``noise_``
    (standard deviation of a count), and ``student_``, a fitted copy of the estimator that learned from them at no further cost."""

    labels_: np.ndarray
    votes_: np.ndarray
    parts_: int
    noise_: float
    student_: Estimator

    def __repr__(self) -> str:
        answered = sum(label is not None for label in self.labels_)
        return f"Labels({answered} of {len(self.labels_)} points answered)  # {self.student_._model.guarantee()}"


def label(
    estimator: Estimator,
    X: Any,
    y: Any,
    points: Any,
    *,
    learner: Any = "linear",
    parts: int | None = None,
    answers: int | None = None,
    seconds: float = 10.0,
    memory: int = 2_000_000_000,
    at_once: int = 1,
) -> Labels:
    """Labels of public points from an ensemble on disjoint parts of the private records ``X, y``.

    ``estimator`` is a classifier of privfit with epsilon, delta, bounds, classes and ledger: its copy is the student. ``learner`` is "linear", "additive" or
    "network", or any scikit-learn classifier: it is trained on each part in a process of its own, without a network, for ``seconds`` and with ``memory`` bytes;
    whatever goes wrong there counts as no answer of that part. ``points`` must be public, and their labels are what the budget buys.

    >>> import numpy as np, privfit
    >>> rng = np.random.default_rng(1)
    >>> X = rng.uniform(-1, 1, size=(6000, 2)); y = (X[:, 0] > 0).astype(int); points = rng.uniform(-1, 1, size=(50, 2))
    >>> model = privfit.LogisticRegression(epsilon=2, delta=1e-8, bounds=(-1, 1), classes=[0, 1])
    >>> found = privfit.label(model, X, y, points)
    >>> found.student_.epsilon_ <= 2, len(found.labels_)
    (True, 50)
    """
    if not isinstance(estimator, Estimator):
        raise PrivfitError(f"{type(estimator).__name__} is not an estimator of privfit: give one, like privfit.LogisticRegression(...)")
    own = type(estimator)(**estimator.get_params())
    data, labels, schema, names = own._given(X, y)
    asked = own._asked()
    settings = dict(asked["settings"])
    settings.update({k: v for k, v in (("parts", parts), ("answers", answers)) if v is not None})
    asked.update(settings=settings, method="private-labels", loss=None)
    if isinstance(learner, str):
        if learner not in TEACHERS:
            raise PrivfitError(f"learner is {learner!r}: give linear, additive, network, or a scikit-learn classifier")
        settings["teachers"] = TEACHERS.index(learner)
        released = _privfit.label(data, labels, own._rows(points), schema._schema, asked, None)
    elif hasattr(learner, "fit") and hasattr(learner, "predict"):
        with tempfile.TemporaryDirectory() as folder:
            place = os.path.join(folder, "learner")
            with open(place, "wb") as file:
                pickle.dump(learner, file)
            script = os.path.join(os.path.dirname(__file__), "_learner.py")
            command = ([sys.executable, script, place], float(seconds), int(memory), int(at_once))
            released = _privfit.label(data, labels, own._rows(points), schema._schema, asked, command)
    else:
        raise PrivfitError(f"{type(learner).__name__} has no fit and predict: give linear, additive, network, or a scikit-learn classifier")
    votes, count, noise, model = released
    own._keep(model, data.shape[1], names, own.schema is not None)
    own._remember(y)
    out = Labels()
    classes = list(own.classes_)
    out.votes_ = np.array([[np.nan] * len(classes) if v is None else v for v in votes])
    out.labels_ = np.array([None if v is None else classes[int(np.argmax(v))] for v in votes], dtype=object)
    out.parts_, out.noise_, out.student_ = count, noise, own
    return out
