"""How well a model does: exactly on public rows, with noise on private ones."""

from __future__ import annotations

import json
import os
from typing import Any

from . import _privfit
from ._arguments import ledger_of, whole
from ._base import Estimator
from ._data import labels_of
from ._errors import PrivfitError


def evaluate(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    adjacency: str | None = None,
    rows: int | None = None,
    ledger: Any = None,
    request: str | None = None,
    threads: int | None = None,
    simulate: int | None = None,
) -> dict[str, Any]:
    """Metrics of a fitted model (or of a model file) on labelled rows, as a dict.

    Without ``epsilon`` the metrics are exact and the rows count as public: nothing protects these numbers. ``rows`` of ``records`` have a
    label that the model knows; none at all is an error.

    With ``epsilon`` (and ``delta``; 0 for pure privacy) the rows may be private. All metrics are made from one release with noise; the
    dict also has ``noise`` (the standard deviation of the noise in each metric), ``bias`` (what bins may hide of ``auc``), ``private``,
    ``epsilon``, ``delta`` and ``event``. A metric whose error would leave it saying nothing is None, and ``withheld`` names it.
    ``adjacency`` is that of the model by default; ``rows`` declares the number of rows, which add-remove needs. A ``ledger`` pays.

    >>> import numpy as np, privfit
    >>> rng = np.random.default_rng(1)
    >>> X = rng.uniform(-1, 1, size=(5000, 2)); y = (X[:, 0] > 0).astype(int)
    >>> model = privfit.LogisticRegression(epsilon=2, delta=1e-8, bounds=(-1, 1), classes=[0, 1]).fit(X, y)
    >>> exact = privfit.evaluate(model, X, y)["accuracy"]
    >>> found = privfit.evaluate(model, X, y, epsilon=1, delta=1e-8)
    >>> abs(found["accuracy"] - exact) < 10 * found["noise"]["accuracy"], found["epsilon"]["zero_out"] <= 1
    (True, True)
    """
    if isinstance(model, (str, os.PathLike)):
        from ._estimators import load

        model = load(model)
    if not isinstance(model, Estimator):
        raise PrivfitError(f"{type(model).__name__} is not an estimator of privfit: give a fitted one, or the path of a model file")
    own = model._fitted()
    given, data = model._rows_of(X)
    schema = own.schema
    if y is None and schema.target not in {name for name, _ in data.columns or ()}:
        raise PrivfitError("labels are missing: give evaluate(model, X, y), or a table that holds the target column of the schema")
    labels = labels_of(y, schema.classes, data)
    if epsilon is None:
        given_too = {"delta": delta, "adjacency": adjacency, "rows": rows, "ledger": ledger, "request": request, "simulate": simulate}
        for name, value in given_too.items():
            if value is not None:
                raise PrivfitError(f"{name} is for private metrics: leave it out, or add\n  epsilon=1.0")
        return json.loads(_privfit.evaluate(own, given, labels))
    asked = {
        "epsilon": float(epsilon),
        "delta": None if delta is None else float(delta),
        "adjacency": adjacency,
        "rows": whole("rows", rows),
        **paid_by(ledger, request, threads, simulate),
    }
    return json.loads(_privfit.measure(own, given, labels, asked))


def paid_by(ledger: Any, request: str | None, threads: int | None, simulate: int | None) -> dict[str, Any]:
    """Arguments that every job has which spends."""
    owner = None if ledger is None else ledger_of(ledger)
    return {
        "ledger": None if owner is None else owner.place,
        "ledger_key": None if owner is None else owner.key,
        "request": request,
        "threads": whole("threads", threads),
        "simulate": None if simulate is None else int(simulate),
    }
