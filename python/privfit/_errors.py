"""Exceptions. Each text is one sentence that ends with the fix; after data are open it never tells anything about them."""

from __future__ import annotations

import sys


class PrivfitError(ValueError):
    """Something that was given is not allowed, or can't be done; the text says what to do."""


class BudgetError(PrivfitError):
    """The budget does not allow it. Raised before the data are touched."""


class DamagedError(PrivfitError):
    """A model or ledger file is damaged."""


class NotFittedError(PrivfitError, AttributeError):
    """The estimator has no model yet."""


def not_fitted(name: str) -> Exception:
    """The exception for an estimator without a model: also scikit-learn's own, where that is in use."""
    text = f"this {name} has no model yet: call fit(X, y), or load a model file"
    exceptions = sys.modules.get("sklearn.exceptions")
    if exceptions is None:
        return NotFittedError(text)
    both = type("NotFittedError", (NotFittedError, exceptions.NotFittedError), {"__module__": __name__})
    return both(text)
