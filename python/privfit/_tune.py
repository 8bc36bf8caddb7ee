"""Choosing settings: privately, with one price for everything together, or on public rows, for free."""

from __future__ import annotations

import itertools
import json
from typing import Any, TypeVar

from . import _privfit
from ._arguments import whole
from ._base import Estimator
from ._data import labels_of
from ._errors import PrivfitError
from ._result import TunePlan

Kind = TypeVar("Kind", bound=Estimator)


def tune(
    estimator: Kind,
    X: Any,
    y: Any = None,
    candidates: Any = None,
    *,
    grid: dict[str, Any] | None = None,
    runs: int | None = None,
    distribution: str | None = None,
    held_out: float | None = None,
    public: tuple[Any, Any] | None = None,
) -> Kind:
    """The best of several candidates: a fitted copy of the estimator, whose certificate covers the whole selection.

    ``candidates`` is a list of dicts like ``{"ridge": 10, "method": "objective"}``; ``grid={"ridge": [1, 10]}`` means every combination.
    A candidate names settings and the method; whatever it leaves out is as in the estimator, whose epsilon pays for everything together.

    ``runs`` is the most runs that count, ``distribution`` how their number is drawn (``harmonic``, ``uniform``; or ``geometric``, ``logarithmic``,
    ``poisson`` with a mean of ``runs``), ``held_out`` the part of the records that scores are made from. See ``tune_plan`` for the price.

    ``public=(X, y)`` chooses on rows that you declare public. That is free, and the winner is fitted with the whole budget.

    The copy has ``best_params_``, and with ``public`` also ``tried_``: candidates with their scores, best first.

    >>> import numpy as np, privfit
    >>> rng = np.random.default_rng(1)
    >>> X = rng.uniform(-1, 1, size=(5000, 2)); y = (X[:, 0] > 0).astype(int)
    >>> model = privfit.LogisticRegression(epsilon=2, delta=1e-8, bounds=(-1, 1), classes=[0, 1], method="objective")
    >>> best = privfit.tune(model, X, y, grid={"ridge": [1, 100]}, runs=6)
    >>> best.epsilon_ <= 2, best.best_params_ in ({"ridge": 1}, {"ridge": 100})
    (True, True)
    """
    if not isinstance(estimator, Estimator):
        raise PrivfitError(f"{type(estimator).__name__} is not an estimator of privfit: give one, like privfit.LogisticRegression(...)")
    listed = _candidates(candidates, grid)
    tuning = _tuning(listed, runs, distribution, held_out)
    own = type(estimator)(**estimator.get_params())
    data, labels, schema, names = own._given(X, y)
    if public is None:
        model = _privfit.tune(data, labels, schema._schema, own._asked(), tuning)
        best, tried = _chosen(model), None
    else:
        if runs is not None or distribution is not None or held_out is not None:
            raise PrivfitError("on public rows every candidate is tried: leave out runs, distribution and held_out")
        X_public, y_public = public
        other = own._rows(X_public)
        others = labels_of(y_public, schema.classes, other)
        model, tried = _privfit.tune_public(data, labels, other, others, schema._schema, own._asked(), tuning)
        best = tried[0][0]
    own._keep(model, data.shape[1], names, own.schema is not None)
    own._remember(y)
    own.best_params_ = dict(listed[best])
    if tried is not None:
        own.tried_ = [(dict(listed[number]), score) for number, score in tried]
    return own


def tune_plan(
    estimator: Estimator,
    candidates: Any = None,
    *,
    grid: dict[str, Any] | None = None,
    runs: int | None = None,
    distribution: str | None = None,
    held_out: float | None = None,
    rows: int | None = None,
    features: int | None = None,
) -> TunePlan:
    """What ``tune`` would do and cost, from public facts alone: ``epsilon``, ``runs``, ``plan``, ``candidates``, ``event``, ``ledger``.

    >>> model = privfit.LogisticRegression(epsilon=1, delta=1e-8, bounds=(0, 1), classes=[0, 1], method="objective")
    >>> plan = privfit.tune_plan(model, grid={"ridge": [1, 10, 100]}, rows=5000, features=4)
    >>> plan["epsilon"]["zero_out"] <= 1, plan["runs"], [c["candidate"] for c in plan["candidates"]]
    (True, 18, ['ridge 1', 'ridge 10', 'ridge 100'])
    """
    tuning = _tuning(_candidates(candidates, grid), runs, distribution, held_out)
    schema, asked = estimator._planned(rows, features)
    found = json.loads(_privfit.tune_plan(schema._schema, asked, tuning))
    return TunePlan({**found, "plan": dict(found["plan"])})


def _candidates(candidates: Any, grid: dict[str, Any] | None) -> list[dict[str, Any]]:
    """A list of dicts, in the order of the job file."""
    if (candidates is None) == (grid is None):
        raise PrivfitError('say what is tried: give candidates=[{"ridge": 1}, {"ridge": 10}], or grid={"ridge": [1, 10]}')
    if grid is None:
        listed = [dict(one) for one in candidates]
    else:
        for name, values in grid.items():
            if isinstance(values, str) or not hasattr(values, "__len__"):
                raise PrivfitError(f"grid has no list for {name!r}: give one, like [1, 10, 100]")
        listed = [dict(zip(grid, values)) for values in itertools.product(*grid.values())]
    if not listed:
        raise PrivfitError("there are no candidates: give at least one")
    return listed


def _tuning(listed: list[dict[str, Any]], runs: int | None, distribution: str | None, held_out: float | None) -> dict[str, Any]:
    for one in listed:
        if not isinstance(one.get("method", ""), str):
            raise PrivfitError(f"method is {one['method']!r}: give the name of one, or leave it out")
    return {
        "candidates": [(one.get("method"), {str(k): v for k, v in one.items() if k != "method"}) for one in listed],
        "runs": whole("runs", runs),
        "distribution": None if distribution is None else str(distribution),
        "held_out": None if held_out is None else float(held_out),
    }


def _chosen(model: _privfit.Model) -> int:
    """Place of the winner in the list of candidates."""
    return int(json.loads(model.facts())["chosen"])
