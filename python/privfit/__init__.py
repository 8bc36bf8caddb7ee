"""Train models on sensitive data with a differential-privacy guarantee that can be read, recomputed and tested.

>>> import numpy as np, privfit
>>> rng = np.random.default_rng(0)
>>> X = rng.uniform(0, 1, size=(2000, 3)); y = (X[:, 0] > 0.5).astype(int)
>>> model = privfit.LogisticRegression(epsilon=1.0, delta=1e-6, bounds=(0, 1), classes=[0, 1])
>>> model.fit(X, y).predict(X[:2]).shape
(2,)
>>> model.epsilon_ <= 1.0
True

Bounds, classes and target bounds are public facts that you state; nothing is read off the data.
"""

from __future__ import annotations

from ._account import Account as _Account
from ._additive import AdditiveClassifier, AdditiveRegressor
from ._audit import Audit, audit
from ._errors import BudgetError, DamagedError, NotFittedError, PrivfitError
from ._estimators import HuberRegressor, LinearRegression, LinearSVC, LogisticRegression, load
from ._evaluate import evaluate
from ._label import Labels, label
from ._ledger import Ledger
from ._network import NetworkClassifier, NetworkRegressor
from ._privfit import __version__
from ._report import report
from ._result import Certificate
from ._schema import Schema
from ._tune import tune, tune_plan

account = _Account()


def methods() -> dict:
    """Every method and loss: what it needs, what it guarantees, where it comes from and which settings it takes.

    >>> "objective" in [m["name"] for m in privfit.methods()["methods"]]
    True
    """
    import json

    from . import _privfit

    return json.loads(_privfit.methods())


__all__ = [
    "AdditiveClassifier",
    "AdditiveRegressor",
    "Audit",
    "BudgetError",
    "Certificate",
    "DamagedError",
    "HuberRegressor",
    "Labels",
    "Ledger",
    "LinearRegression",
    "LinearSVC",
    "LogisticRegression",
    "NetworkClassifier",
    "NetworkRegressor",
    "NotFittedError",
    "PrivfitError",
    "Schema",
    "__version__",
    "account",
    "audit",
    "evaluate",
    "label",
    "load",
    "methods",
    "report",
    "tune",
    "tune_plan",
]
