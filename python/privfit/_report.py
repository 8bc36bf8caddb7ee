"""Pages about models and ledgers, for people who never saw the program."""

from __future__ import annotations

import json
import os
from typing import Any

from . import _privfit
from ._base import Estimator, read_model
from ._errors import PrivfitError
from ._ledger import Ledger

#: What every file of a ledger begins with.
_SQLITE = b"SQLite format 3\0"


def report(what: Any, out: str | os.PathLike | None = None, *, results: dict | None = None) -> str:
    """The HTML page of a model (fitted, or its file) or of a ledger, as text; with ``out`` it is also written there.

    The page loads nothing: open it in a browser, print it, or send it by mail. A certificate or a ledger that does not hold gets none.
    ``results`` are metrics for the page of a model, as ``privfit.evaluate`` gives them. A file that is not a report is not written over.

    >>> import numpy as np, privfit
    >>> model = privfit.LinearRegression(epsilon=1, delta=1e-8, bounds=(0, 1), target_bounds=(0, 1))
    >>> page = privfit.report(model.fit(np.full((1000, 1), 0.5), np.full(1000, 0.5)))
    >>> page.startswith("<!DOCTYPE html>")
    True
    """
    if isinstance(what, (str, os.PathLike)) and _is_ledger(what):
        what = Ledger(what)
    if isinstance(what, Ledger):
        if results is not None:
            raise PrivfitError("results belong to a model and this is a ledger: leave out results")
        text = _privfit.report_ledger(what.place, what.key)
    else:
        if not isinstance(what, (str, os.PathLike, Estimator)):
            raise PrivfitError(f"{type(what).__name__} has no report: give a fitted model, a Ledger, or the path of one")
        model = what._fitted() if isinstance(what, Estimator) else read_model(what)
        text = _privfit.report_model(model, None if results is None else json.dumps(results))
    if out is not None:
        _privfit.report_write(os.fspath(out), text)
    return text


def _is_ledger(place: str | os.PathLike) -> bool:
    if str(place).startswith(("postgres://", "postgresql://")):
        return True
    try:
        with open(place, "rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False
