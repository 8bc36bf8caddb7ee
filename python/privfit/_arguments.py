"""Arguments of estimators: what they mean, and what is said when one is missing."""

from __future__ import annotations

import math
import warnings
from typing import Any

from ._errors import PrivfitError
from ._ledger import Ledger


def is_pair(bounds: Any) -> bool:
    """Whether bounds are two numbers."""
    return len(bounds) == 2 and not any(isinstance(b, str) for b in bounds)


def ledger_of(ledger: Any) -> Ledger:
    """A ledger from itself or from its place."""
    return ledger if isinstance(ledger, Ledger) else Ledger(ledger)


def count(bounds: Any) -> int | None:
    """Number of features, if the bounds tell."""
    if isinstance(bounds, dict):
        return len(bounds)
    for side in bounds or ():
        if hasattr(side, "__len__"):
            return len(side)
    return None


def missing_bounds(columns: list[tuple[str, bool]] | None) -> str:
    """The error that says what to add: a line that can be pasted."""
    return (
        "bounds are missing: add a line like the one below, with the least and the largest value that can occur (all categories of a text), "
        "from documentation or domain knowledge and never from the data. One pair stands for all features; row_norm=1.0 is for rows of "
        f"length at most 1\n  {bounds_line(columns, None)}"
    )


def bounds_line(columns: list[tuple[str, bool]] | None, known: Any) -> str:
    """Bounds for all columns at once, as code: what is known, categories for texts, and two numbers for all others."""
    if columns is None or not any(text for _, text in columns) and known is None and len(columns) > 20:
        return "bounds=(0, 100)"
    parts = []
    for i, (name, text) in enumerate(columns):
        if isinstance(known, dict):
            if name not in known:
                continue
            value = known[name]
        else:
            value = (0, 100) if known is None else tuple(side[i] if hasattr(side, "__len__") else side for side in known)
        if text and is_pair(value):
            value = ["a", "b"]
        listed = [v if isinstance(v, (str, int)) else float(v) for v in value]
        body = ", ".join(repr(v) for v in listed)
        parts.append(f"{name!r}: ({body})" if is_pair(value) else f"{name!r}: [{body}]")
    return f"bounds={{{', '.join(parts)}}}"


def short(value: Any) -> str:
    """A value in few letters."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def differs(value: Any, default: Any) -> bool:
    """Whether an argument is not its default."""
    if value is default:
        return False
    try:
        return bool(value != default)
    except ValueError:
        return True


def check_names(own: str, names: list[str] | None, fitted: Any) -> None:
    """Names of columns are those of the fit, in its order."""
    if names is None and fitted is not None:
        warnings.warn(f"X does not have valid feature names, but {own} was fitted with feature names", stacklevel=5)
    elif names is not None and fitted is None:
        warnings.warn(f"X has feature names, but {own} was fitted without feature names", stacklevel=5)
    elif names is not None and list(fitted) != names:
        text = "The feature names should match those that were passed during fit.\n"
        for title, listed in (
            ("Feature names unseen at fit time", sorted(set(names) - set(fitted))),
            ("Feature names seen at fit time, yet now missing", sorted(set(fitted) - set(names))),
        ):
            if listed:
                text += f"{title}:\n" + "".join(f"- {name}\n" for name in listed[:5])
        if set(names) == set(fitted):
            text += "Feature names must be in the same order as they were in fit.\n"
        raise PrivfitError(text)


def whole(name: str, value: Any) -> int | None:
    """A number of things, or nothing."""
    if value is None:
        return None
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        number = 0
    if number < 1 or number != value or number >= 2**63:
        raise PrivfitError(f"{name} is {value!r}: give a whole number from 1 on")
    return number
