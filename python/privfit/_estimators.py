"""Estimators in the style of scikit-learn, which is not needed for them.

Bounds, classes and target bounds are stated, never read off the data. A scaler or a selector that is fitted on private rows in front of
an estimator reads the data without protection: state bounds instead. `score` on private rows is not protected either: `private_score` is.
"""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

from . import _privfit
from ._base import Estimator, read_model
from ._errors import PrivfitError
from ._schema import Schema, class_name

_PARAMETERS = """
    Parameters
    ----------
    epsilon : float
        Privacy parameter.
    delta : float
        Privacy parameter, below 1/rows; 1/rows^2 is usual. Needed unless the method is pure.
    bounds : (low, high) or dict
        The least and the largest value that can occur: one number for all features or one for each; or a dict from column to
        ``(low, high)`` or to a list of categories. Public facts, from documentation and never from the data.
    schema : Schema, path or text
        All public facts together, instead of bounds and {target}.
    {target} : {what}
    row_norm : float
        An alternative to bounds: rows are scaled down to this length.
    fit_intercept : bool
        Whether a constant is fitted.
    rows : int
        Number of rows, if it is declared; needed under add-remove, where it is private.
    adjacency : str
        What one record differs means: ``zero-out``, ``replace-one`` or ``add-remove``.
    method : str
        ``auto``, or a method of ``privfit.methods()``; ``settings`` are its numbers.
    ledger : Ledger or path
        The budget that pays. ``request`` is a public name: asking again under it gives the same model and spends nothing.
    dataset : str
        Name of the data set; that of the ledger by default.
    threads : int
        All cores by default.
    simulate : int
        Take noise from a seed: repeatable, and NOT private.
    allow_large_delta : bool
        Accept a delta of 1/rows or more.

    Attributes
    ----------
    {released}
    certificate_ : what is guaranteed, and ``verify()``
    epsilon_ : the epsilon that is guaranteed
    n_features_in_, feature_names_in_{more}
    """


class _Classifier(Estimator):
    _estimator_type = "classifier"
    _scored_by = "accuracy"

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        bounds: Any = None,
        schema: Any = None,
        classes: Any = None,
        row_norm: float | None = None,
        fit_intercept: bool = True,
        rows: int | None = None,
        adjacency: str = "zero-out",
        method: str = "auto",
        settings: dict[str, Any] | None = None,
        ledger: Any = None,
        request: str | None = None,
        dataset: str | None = None,
        threads: int | None = None,
        simulate: int | None = None,
        allow_large_delta: bool = False,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.schema = schema
        self.classes = classes
        self.row_norm = row_norm
        self.fit_intercept = fit_intercept
        self.rows = rows
        self.adjacency = adjacency
        self.method = method
        self.settings = settings
        self.ledger = ledger
        self.request = request
        self.dataset = dataset
        self.threads = threads
        self.simulate = simulate
        self.allow_large_delta = allow_large_delta

    def _target(self, y: Any) -> dict[str, Any]:
        classes = self._declared_classes(y)
        if classes is None:
            raise PrivfitError(
                "classes are missing: add every class that can occur (they are public facts, and not read off y), like\n"
                f"  {classes_line(y)}"
            )
        if len(classes) < 2:
            raise PrivfitError(f"there is one class: list at least two classes, like\n  {classes_line(y)}")
        return {"classes": classes}

    def _declared_classes(self, y: Any) -> Any:
        return None if self.classes is None else list(self.classes)

    def _check_schema(self, schema: Schema) -> None:
        if not schema.classes:
            raise PrivfitError('the schema has no classes: use a regressor, or write in [target], in place of bounds\n  classes = ["no", "yes"]')
        if self.classes is not None and [class_name(c) for c in self.classes] != schema.classes:
            raise PrivfitError("the schema has other classes: leave out classes")

    def _remember(self, y: Any) -> None:
        declared = self._declared_classes(y)
        self.classes_ = _values(self._model.schema.classes) if declared is None else _array(declared)

    def _recall(self, schema: _privfit.Schema) -> None:
        self.classes_ = _values(schema.classes)

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row. Costs nothing."""
        found = self._apply(X, "class").astype(np.intp)
        return self.classes_[found]

    def decision_function(self, X: Any) -> np.ndarray:
        """``X @ coef_.T + intercept_`` for rows inside of the bounds; numbers beyond them count as the bound."""
        scores = json.loads(self._fitted().facts())["scores"]
        return self._apply(X, "score", scores)

    @property
    def coef_(self) -> np.ndarray:
        """Weights in the units of the columns, one row for each score."""
        return self._linear()[0]

    @property
    def intercept_(self) -> np.ndarray:
        """What is added to them."""
        return self._linear()[1]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Part of the rows whose class is right. The rows count as public: nothing protects this number; ``private_score`` does."""
        return float(np.average(np.asarray(y) == self.predict(X), weights=sample_weight))

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags  # type: ignore[import-untyped]

        return self._tags(estimator_type="classifier", classifier_tags=ClassifierTags(poor_score=True))


class _Regressor(Estimator):
    _estimator_type = "regressor"
    _scored_by = "r2"

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        bounds: Any = None,
        schema: Any = None,
        target_bounds: Any = None,
        row_norm: float | None = None,
        fit_intercept: bool = True,
        rows: int | None = None,
        adjacency: str = "zero-out",
        method: str = "auto",
        settings: dict[str, Any] | None = None,
        ledger: Any = None,
        request: str | None = None,
        dataset: str | None = None,
        threads: int | None = None,
        simulate: int | None = None,
        allow_large_delta: bool = False,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.schema = schema
        self.target_bounds = target_bounds
        self.row_norm = row_norm
        self.fit_intercept = fit_intercept
        self.rows = rows
        self.adjacency = adjacency
        self.method = method
        self.settings = settings
        self.ledger = ledger
        self.request = request
        self.dataset = dataset
        self.threads = threads
        self.simulate = simulate
        self.allow_large_delta = allow_large_delta

    def _target(self, y: Any) -> dict[str, Any]:
        if self.target_bounds is None:
            raise PrivfitError(
                "target_bounds are missing: add the least and the largest target that can occur, from documentation or domain knowledge and "
                "never from the data, like\n  target_bounds=(0, 100)"
            )
        return {"target_bounds": self.target_bounds}

    def _check_schema(self, schema: Schema) -> None:
        if schema.target_bounds is None:
            raise PrivfitError("the target of the schema is no number: use a classifier, or write in [target], in place of classes\n  bounds = [0.0, 100.0]")
        if self.target_bounds is not None and tuple(self.target_bounds) != tuple(schema.target_bounds):
            raise PrivfitError("the schema has other target bounds: leave out target_bounds")

    def predict(self, X: Any) -> np.ndarray:
        """The number of each row, within the bounds of the target. Costs nothing."""
        return self._apply(X, "number")

    @property
    def coef_(self) -> np.ndarray:
        """Weights in the units of columns and target."""
        return self._linear()[0][0]

    @property
    def intercept_(self) -> float:
        """What is added to them."""
        return float(self._linear()[1][0])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R squared. The rows count as public: nothing protects this number; ``private_score`` does."""
        y = np.asarray(y, dtype=float)
        errors, spread = (y - self.predict(X)) ** 2, (y - np.average(y, weights=sample_weight)) ** 2
        total = np.average(spread, weights=sample_weight)
        return float(1.0 - np.average(errors, weights=sample_weight) / total) if total > 0 else 0.0

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import RegressorTags  # type: ignore[import-untyped]

        return self._tags(estimator_type="regressor", regressor_tags=RegressorTags(poor_score=True))


class _Probabilities(_Classifier):
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, in the order of ``classes_``."""
        return self._apply(X, "probability", len(self.classes_) if "_model" in vars(self) else 2)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Their logarithms."""
        return np.log(self.predict_proba(X))


class LogisticRegression(_Probabilities):
    """Logistic regression for two classes, softmax regression for more.

    >>> import numpy as np, privfit
    >>> rng = np.random.default_rng(1)
    >>> X = rng.uniform(-1, 1, size=(5000, 2)); y = np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")
    >>> model = privfit.LogisticRegression(epsilon=2, delta=1e-7, bounds=(-1, 1), classes=["no", "yes"]).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    >>> model.certificate_.verify().holds
    True
    """

    _losses = ("logistic", "softmax")


class LinearSVC(_Classifier):
    """Support vector machine with a rounded kink; several classes are one against the rest.

    >>> import numpy as np, privfit
    >>> rng = np.random.default_rng(1)
    >>> X = rng.uniform(0, 10, size=(5000, 2)); y = X[:, 0] > 5
    >>> model = privfit.LinearSVC(epsilon=2, delta=1e-7, bounds=(0, 10), classes=[False, True]).fit(X, y)
    >>> model.predict([[9, 5], [1, 5]])
    array([ True, False])
    """

    _loss = "huber-svm"
    _losses = ("huber-svm", "hinge")


class LinearRegression(_Regressor):
    """Linear regression by the squared error.

    >>> import numpy as np, privfit
    >>> rng = np.random.default_rng(1)
    >>> X = rng.uniform(0, 10, size=(5000, 1)); y = 3 * X[:, 0] + 2
    >>> model = privfit.LinearRegression(epsilon=2, delta=1e-7, bounds=(0, 10), target_bounds=(0, 40)).fit(X, y)
    >>> bool(abs(model.coef_[0] - 3) < 0.5)
    True
    """

    _losses = ("squared",)


class HuberRegressor(_Regressor):
    """Linear regression by the Huber loss: squared for small residuals, absolute for large ones.

    >>> import numpy as np, privfit
    >>> rng = np.random.default_rng(1)
    >>> X = rng.uniform(0, 10, size=(5000, 1)); y = 3 * X[:, 0] + 2
    >>> model = privfit.HuberRegressor(epsilon=2, delta=1e-7, bounds=(0, 10), target_bounds=(0, 40)).fit(X, y)
    >>> bool(model.score(X, y) > 0.8)
    True
    """

    _loss = "huber"
    _losses = ("huber",)


def describe(kind: type, released: str, target: str) -> None:
    """Parameters and attributes, after the docstring of a class."""
    what, more = {
        "classes": ("list\n        Every class that can occur, in the order of ``classes_``.", ", classes_"),
        "target_bounds": ("(low, high)\n        The least and the largest target that can occur.", ""),
    }[target]
    if kind.__doc__:
        kind.__doc__ = kind.__doc__.rstrip() + "\n" + _PARAMETERS.format(released=released, target=target, what=what, more=more)


_LINEAR = "coef_, intercept_ : the linear function in the units of the columns"
describe(LogisticRegression, _LINEAR, "classes")
describe(LinearSVC, _LINEAR, "classes")
describe(LinearRegression, _LINEAR, "target_bounds")
describe(HuberRegressor, _LINEAR, "target_bounds")


def load(path: str | os.PathLike) -> Any:
    """Read a model file, whoever wrote it: the command, the library or ``save``."""
    model = read_model(path)
    from ._additive import AdditiveClassifier, AdditiveRegressor
    from ._network import NetworkClassifier, NetworkRegressor

    facts = json.loads(model.facts())
    loss, family = facts["loss"], facts["family"]
    linear: tuple[Any, ...] = (LogisticRegression, LinearSVC, LinearRegression, HuberRegressor)
    kinds = (*linear, AdditiveClassifier, AdditiveRegressor, NetworkClassifier, NetworkRegressor)
    for kind in kinds:
        if loss in kind._losses and family == kind._family:
            return kind._from_model(model)
    raise PrivfitError(f"the model has the loss {loss!r}, which has no estimator here: apply it with `privfit predict`")


def _array(classes: list[Any]) -> np.ndarray:
    return np.asarray(classes)


def _values(names: list[str]) -> np.ndarray:
    """Classes of a model file, as the values that they look like."""
    for kind in (int, float):
        try:
            return np.asarray([kind(name) for name in names])
        except ValueError:
            pass
    flags = {"false": False, "true": True}
    return np.asarray([flags[n] for n in names]) if set(names) <= set(flags) else np.asarray(names)


def classes_line(y: Any) -> str:
    """Two classes of the type that the labels have, as code. Types are public."""
    kind = getattr(getattr(y, "dtype", None), "kind", "O")
    return "classes=[0, 1]" if kind in "iuf" else "classes=[False, True]" if kind == "b" else 'classes=["no", "yes"]'
