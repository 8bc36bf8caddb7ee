"""What all estimators share: parameters, the order of a fit, rows at prediction, files."""

from __future__ import annotations

import json
import os
from typing import Any, TypeVar

import numpy as np

from . import _privfit
from ._arguments import bounds_line, check_names, count, differs, is_pair, ledger_of, missing_bounds, short, whole
from ._data import images, labels_of, names_of, rows
from ._errors import PrivfitError, not_fitted
from ._result import Certificate, Plan
from ._schema import UNNAMED, Schema

Self = TypeVar("Self", bound="Estimator")


class Estimator:
    """A model that is fitted under differential privacy."""

    #: Loss by name; none for the usual one of the task.
    _loss: str | None = None
    #: What ``method="auto"`` means, and the kind of models that it makes.
    _auto: str = "linear"
    _family: str = "linear"
    #: Metric that ``score`` is.
    _scored_by: str
    #: Losses of model files that this class reads.
    _losses: tuple[str, ...] = ()

    # Arguments of every constructor.
    epsilon: float
    delta: float | None
    bounds: Any
    schema: Any
    row_norm: float | None
    fit_intercept: bool
    rows: int | None
    adjacency: str
    method: str
    settings: dict[str, Any] | None
    ledger: Any
    request: str | None
    dataset: str | None
    threads: int | None
    simulate: int | None
    allow_large_delta: bool

    # What a fit leaves behind.
    _model: _privfit.Model
    _by_name: bool
    n_features_in_: int
    feature_names_in_: np.ndarray
    # What tuning leaves behind.
    best_params_: dict[str, Any]
    tried_: list[tuple[dict[str, Any], float]]

    # Parameters, as scikit-learn wants them: stored untouched, listed by the constructor's names.

    @classmethod
    def _get_param_names(cls) -> list[str]:
        code = cls.__init__.__code__
        return sorted(code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount])

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments."""
        return {name: getattr(self, name) for name in self._get_param_names()}

    def set_params(self: Self, **params: Any) -> Self:
        """Change arguments of the constructor."""
        known = self._get_param_names()
        for name, value in params.items():
            if name not in known:
                raise PrivfitError(f"Invalid parameter {name!r} for estimator {self!r}: known are {', '.join(known)}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        code, defaults = type(self).__init__.__code__, type(self).__init__.__kwdefaults__ or {}
        order = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
        given = [f"{n}={short(getattr(self, n))}" for n in order if differs(getattr(self, n), defaults.get(n))]
        text = f"{type(self).__name__}({', '.join(given)})"
        return text if "_model" not in vars(self) else f"{text}  # {self._model.guarantee()}"

    # Fitting.

    def fit(self: Self, X: Any, y: Any = None) -> Self:
        """Fit: reserve the budget, open the data, train, commit. Returns the estimator.

        ``X`` is a NumPy array, a SciPy sparse matrix, a pandas or Polars table, or anything with an Arrow stream. ``y`` may be left out
        if the table holds the target column of the schema.
        """
        data, own, schema, names = self._given(X, y)
        model = _privfit.fit(data, own, schema._schema, self._asked())
        self._keep(model, data.shape[1], names, self.schema is not None)
        self._remember(y)
        return self

    def _given(self, X: Any, y: Any) -> tuple[_privfit.Data, _privfit.Labels | None, Schema, list[str] | None]:
        """Rows, labels, public facts and names of columns for a fit."""
        data = self._rows(X)
        names = names_of(X, data)
        if y is None and not self._holds_target(data):
            raise PrivfitError(
                f"{type(self).__name__} requires y to be passed, but the target y is None: give labels with fit(X, y)"
            )
        schema = self._facts(data.shape[1], names, hasattr(X, "tocsr"), y, data.columns)
        self._check_texts(X, data)
        return data, labels_of(y, schema.classes, data), schema, names

    def _rows(self, X: Any) -> _privfit.Data:
        """Rows for a fit. Where a schema is of images, arrays of them are rows of pixels."""
        schema = None if self.schema is None else Schema.of(self.schema)
        return rows(images(X, None if schema is None else schema._schema.image_shape))

    def plan(self, rows: int | None = None, features: int | None = None) -> Plan:
        """What a fit would do and cost, from public facts alone. ``features`` is needed if ``bounds`` is one pair for all."""
        schema, asked = self._planned(rows, features)
        found = json.loads(_privfit.plan(schema._schema, asked))
        return Plan({**found, "plan": dict(found["plan"])})

    def _planned(self, rows: int | None, features: int | None) -> tuple[Schema, dict[str, Any]]:
        """Public facts and arguments of a job without data."""
        width = self._width(features)
        if width is None and self.schema is None:
            raise PrivfitError("the number of features is not known without data: add it, like\n  features=20")
        names = list(self.bounds) if isinstance(self.bounds, dict) else None
        asked = self._asked()
        asked["rows"] = asked["rows"] if rows is None else whole("rows", rows)
        return self._facts(width or 0, names, False, None), asked

    def _width(self, features: int | None) -> int | None:
        """Number of features without data, where it is known."""
        return features or count(self.bounds)

    def _asked(self) -> dict[str, Any]:
        ledger = None if self.ledger is None else ledger_of(self.ledger)
        return {
            "rows": whole("rows", self.rows),
            "epsilon": float(self.epsilon),
            "delta": None if self.delta is None else float(self.delta),
            "adjacency": str(self.adjacency),
            "loss": self._loss,
            "method": self._auto if self.method == "auto" else str(self.method),
            "settings": dict(self.settings or {}),
            "layers": None,
            "allow_large_delta": bool(self.allow_large_delta),
            "ledger": None if ledger is None else ledger.place,
            "ledger_key": None if ledger is None else ledger.key,
            "request": self.request,
            "threads": None if self.threads is None else int(self.threads),
            "simulate": None if self.simulate is None else int(self.simulate),
        }

    def _facts(
        self, width: int, names: list[str] | None, sparse: bool, y: Any, columns: list[tuple[str, bool]] | None = None
    ) -> Schema:
        """The public facts: the schema that was given, or one made of the bounds that were given."""
        if self.schema is not None:
            schema = Schema.of(self.schema)
            if self.bounds is not None or self.row_norm is not None:
                raise PrivfitError("the schema has the bounds: leave out bounds and row_norm")
            if self.dataset is not None and self.dataset != schema.name:
                raise PrivfitError(f"the schema is of {schema.name!r}: leave out dataset")
            self._check_schema(schema)
            return schema
        if names is not None and len(set(names)) < len(names):
            raise PrivfitError("two columns have the same name: rename one of them")
        if self.bounds is None and self.row_norm is None:
            raise PrivfitError(missing_bounds(columns if names is not None or any(text for _, text in columns or ()) else None))
        if self.bounds is not None and self.row_norm is not None:
            raise PrivfitError("bounds and row_norm are two ways to say the same: leave out one of them")
        return Schema.from_bounds(
            self.bounds,
            names=names,
            name=self._dataset(),
            row_norm=self.row_norm,
            features=width,
            sparse=sparse,
            fit_intercept=bool(self.fit_intercept),
            **self._target(y),
        )

    def _holds_target(self, data: _privfit.Data) -> bool:
        """Whether a table holds the target that the schema names; without a schema nobody knows which column that is."""
        target = None if self.schema is None else Schema.of(self.schema)._schema.target
        return target is not None and target in {name for name, _ in data.columns or ()}

    def _check_texts(self, X: Any, data: _privfit.Data) -> None:
        """A column whose type is text has no least and largest value. Types are public; what objects hold is not looked at."""
        if self.schema is not None:
            return
        categories = self.bounds if isinstance(self.bounds, dict) else {}
        types = getattr(X, "dtypes", None) if hasattr(X, "iloc") else None
        wrong = []
        for i, (name, text) in enumerate(data.columns or ()):
            listed = name in categories and not is_pair(categories[name])
            unused = isinstance(self.bounds, dict) and name not in categories
            if text and not listed and not unused and (types is None or types.iloc[i] != object):
                wrong.append(name)
        if wrong and self.bounds is not None:
            marked = [(name, name in wrong) for name, _ in data.columns or ()]
            raise PrivfitError(
                f"column {', '.join(map(repr, wrong))} holds text: list the categories in place of bounds, or leave the column out\n"
                f"  {bounds_line(marked, self.bounds)}"
            )
        if wrong:
            raise PrivfitError(f"column {', '.join(map(repr, wrong))} holds text: give bounds in place of row_norm, or leave it out")

    def _dataset(self) -> str:
        if self.dataset is not None:
            return str(self.dataset)
        return UNNAMED if self.ledger is None else ledger_of(self.ledger).dataset

    def _target(self, y: Any) -> dict[str, Any]:
        raise NotImplementedError

    def _check_schema(self, schema: Schema) -> None:
        raise NotImplementedError

    def _remember(self, y: Any) -> None:
        """What a class keeps beside the model."""

    def _keep(self, model: _privfit.Model, width: int, names: list[str] | None, by_name: bool) -> None:
        self._model = model
        self._by_name = by_name
        self.n_features_in_ = width
        vars(self).pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = np.asarray(names, dtype=object)

    # Prediction.

    def _fitted(self) -> _privfit.Model:
        if "_model" not in vars(self):
            raise not_fitted(type(self).__name__)
        return self._model

    def __sklearn_is_fitted__(self) -> bool:
        return "_model" in vars(self)

    def _apply(self, X: Any, what: str, width: int = 1) -> np.ndarray:
        model = self._fitted()
        given, data = self._rows_of(X)
        out = np.empty((data.shape[0], width))
        model.apply(given, what, out)
        return out if width > 1 else out[:, 0]

    def _rows_of(self, X: Any) -> tuple[Any, _privfit.Data]:
        """Rows for the fitted model, under the names that it knows."""
        data = rows(images(X, self._fitted().schema.image_shape))
        names = names_of(X, data)
        # Columns that a schema names are found by their names, among others and in any order.
        if self._by_name and data.columns is not None:
            return data, data
        check_names(type(self).__name__, names, getattr(self, "feature_names_in_", None))
        if data.shape[1] != self.n_features_in_:
            raise PrivfitError(
                f"X has {data.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} features as input"
            )
        columns = self._model.schema.columns
        if data.columns is not None and columns is not None and not hasattr(self, "feature_names_in_"):
            return data.renamed(columns), data
        return data, data

    def private_score(
        self,
        X: Any,
        y: Any = None,
        *,
        epsilon: float,
        delta: float | None = None,
        adjacency: str | None = None,
        rows: int | None = None,
        ledger: Any = None,
        request: str | None = None,
        simulate: int | None = None,
    ) -> float:
        """What ``score`` says, with noise: the rows may be private. Costs epsilon; ``privfit.evaluate`` gives all metrics for the same.

        Not a number where the noise would hide it.
        """
        from ._evaluate import evaluate

        found = evaluate(
            self, X, y, epsilon=epsilon, delta=delta, adjacency=adjacency, rows=rows, ledger=ledger, request=request, simulate=simulate
        )
        score = found.get(self._scored_by)
        return float("nan") if score is None else score

    # What a fit leaves behind.

    @property
    def certificate_(self) -> Certificate:
        """The statement about privacy: ``text``, ``dict``, ``epsilon``, ``delta``, ``verify()``."""
        return Certificate(self._fitted())

    @property
    def epsilon_(self) -> float:
        """Epsilon that is guaranteed under the adjacency that was asked for; infinite for a simulation."""
        return self.certificate_.epsilon

    @property
    def method_(self) -> str:
        """The method that was used."""
        return json.loads(self._fitted().facts())["method"]

    def _linear(self) -> tuple[np.ndarray, np.ndarray]:
        found = self._fitted().linear()
        if found is None:
            raise AttributeError("this model has no coefficients: its rows are mapped in a way that is not linear; use predict")
        return np.asarray(found[0]), np.asarray(found[1])

    # Files.

    def save(self, path: str | os.PathLike) -> None:
        """Write the model file: the same that the command writes."""
        self._fitted().save(os.fspath(path))

    def export(self, path: str | os.PathLike) -> None:
        """Write the model as an ONNX file: columns in their units go in, predictions come out. Costs nothing."""
        self._fitted().export(os.fspath(path))

    @classmethod
    def load(cls, path: str | os.PathLike) -> Any:
        """Read a model file of this kind of model."""
        return cls._from_model(read_model(path))

    @classmethod
    def _from_model(cls, model: _privfit.Model) -> Any:
        facts, schema = json.loads(model.facts()), model.schema
        if facts["loss"] not in cls._losses:
            raise PrivfitError(f"the model has the loss {facts['loss']!r}, which {cls.__name__} does not have: use privfit.load")
        if facts["family"] != cls._family:
            raise PrivfitError(f"the model is of another kind ({facts['family']}) than {cls.__name__} ({cls._family}): use privfit.load")
        kind: Any = cls
        own = kind(epsilon=facts["asked_epsilon"], delta=facts["delta"], adjacency=facts["adjacency"], method=facts["method"])
        columns = schema.columns
        width = len(schema.encoded if columns is None else columns)
        plain = columns is None or columns == [f"x{i}" for i in range(width)]
        own._keep(model, width, None if plain else columns, not plain)
        own._recall(schema)
        return own

    def _recall(self, schema: _privfit.Schema) -> None:
        """What a class takes from a model file."""

    def __getstate__(self) -> dict[str, Any]:
        state = dict(vars(self))
        if "_model" in state:
            state["_model"] = state["_model"].bytes
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if isinstance(state.get("_model"), bytes):
            self._model = _privfit.Model.from_bytes(state["_model"])

    def _tags(self, **own: Any) -> Any:
        """Tags, in the words of scikit-learn, which is the only one that asks."""
        from sklearn.utils import InputTags, Tags, TargetTags  # type: ignore[import-untyped]

        return Tags(
            target_tags=TargetTags(required=True),
            transformer_tags=None,
            input_tags=InputTags(sparse=True, allow_nan=True),
            non_deterministic=self.simulate is None,
            **own,
        )


def read_model(path: str | os.PathLike) -> _privfit.Model:
    """A model file."""
    try:
        return _privfit.Model.from_bytes(_privfit.read_file(os.fspath(path), True))
    except OSError as error:
        raise PrivfitError(f"cannot read the model {os.fspath(path)}: {error.strerror or error}; check the path") from None
