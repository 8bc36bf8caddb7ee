"""Budgets of data sets, across processes and crashes."""

from __future__ import annotations

import json
import os
from typing import Any

from . import _privfit
from ._result import Checks


class Ledger:
    """The budget of a data set: a file, or ``postgres://user@host/database#name``.

    A job spends before data are opened, whatever becomes of it. Nothing is ever paid back. Copies share the budget: ``clone`` of an
    estimator keeps the same ledger, so that a search spends what it really spends.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "visits.ledger")
    >>> ledger = privfit.Ledger.create(path, dataset="visits", epsilon=4, delta=1e-6)
    >>> ledger.dataset, ledger.status()["spent"]["part"]
    ('visits', 0.0)
    """

    def __init__(self, place: str | os.PathLike, key: str | os.PathLike | None = None) -> None:
        self.place = os.fspath(place)
        self.key = None if key is None else os.fspath(key)

    @classmethod
    def create(
        cls,
        place: str | os.PathLike,
        *,
        epsilon: float | str,
        delta: float,
        dataset: str | None = None,
        schema: Any = None,
        adjacency: str = "zero-out",
        key: str | os.PathLike | None = None,
    ) -> Ledger:
        """Make a ledger: one budget for everything that is ever released about a data set."""
        from ._schema import Schema

        ledger = cls(place, key)
        own = None if schema is None else Schema.of(schema)._schema
        cap = epsilon if isinstance(epsilon, str) else _decimal(epsilon)
        _privfit.ledger_create(ledger.place, ledger.key, own, dataset, cap, float(delta), adjacency)
        return ledger

    @classmethod
    def open(cls, place: str | os.PathLike, key: str | os.PathLike | None = None) -> Ledger:
        """Open a ledger, and see that it is one."""
        ledger = cls(place, key)
        ledger.status()
        return ledger

    def status(self) -> dict:
        """Where it stands: ``dataset``, ``epsilon``, ``delta``, ``jobs``, ``spent`` (``part``: the part of the budget), ``next``."""
        return json.loads(_privfit.ledger_show(self.place, self.key))

    show = status

    @property
    def dataset(self) -> str:
        """Name of the data set that the budget is for."""
        return self.status()["dataset"]

    def verify(self, models: Any = ()) -> Checks:
        """Check the chain, the sums and the charges, and model files (paths or fitted estimators) against them."""
        listed = [models] if isinstance(models, (str, os.PathLike)) or hasattr(models, "_model") else list(models)
        return Checks(json.loads(_privfit.ledger_verify(self.place, self.key, [_bytes(m) for m in listed])))

    def export(self, request: str | None = None) -> Any:
        """All records as a dict, or with the name of a request the bytes that were released for it."""
        data = _privfit.ledger_export(self.place, self.key, request)
        return data if request is not None else json.loads(data)

    def __deepcopy__(self, memo: dict) -> Ledger:
        return self

    def __copy__(self) -> Ledger:
        return self

    def __repr__(self) -> str:
        return f"Ledger({self.place!r})"


def _decimal(x: float) -> str:
    """A number as a plain decimal."""
    return format(x, ".12f").rstrip("0").rstrip(".")


def _bytes(model: Any) -> bytes:
    if hasattr(model, "_fitted"):
        return model._fitted().bytes
    return _privfit.read_file(os.fspath(model), True)
