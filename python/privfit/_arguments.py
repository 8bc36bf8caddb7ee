"""Arguments of estimators: what they mean, and what is said when one is missing."""

from __future__ import annotations

from typing import Any

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


def missing_bounds(names: list[str] | None) -> str:
    """The error that says what to add."""
    if names:
        some = ", ".join(f'"{n}": (low, high)' for n in names[:20]) + (", ..." if len(names) > 20 else "")
        line = f"bounds={{{some}}}"
    else:
        line = "bounds=(low, high)"
    return (
        f"bounds are missing: add {line} with the least and the largest value that can occur, from documentation or domain knowledge and "
        "never from the data (one number for all features or one for each; or row_norm=R for rows of length at most R)"
    )


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
