"""Audits: a lower bound on what a method leaks, held against its claim. They find bugs; they prove a guarantee wrong, never right."""

from __future__ import annotations

import json
from typing import Any

from . import _privfit
from ._schema import Schema


class Audit:
    """What an audit found: ``claim``, ``measured``, ``violated`` and ``violations``."""

    def __init__(self, found: dict) -> None:
        self.kind: str = found["kind"]
        self.method: str = found["method"]
        self.loss: str = found["loss"]
        self.claim: dict = found["claim"]
        self.measured: dict = found["measured"]
        self.violations: list[str] = found["violations"]

    @property
    def violated(self) -> bool:
        """Whether the claim does not hold."""
        return bool(self.violations)

    @property
    def epsilon(self) -> float | None:
        """The measured lower bound on epsilon, for audits that have one."""
        return self.measured.get("epsilon")

    def __repr__(self) -> str:
        verdict = f"violated: {self.violations[0]}" if self.violated else "no contradiction found (which proves nothing)"
        bound = "" if self.epsilon is None else f", measured at least {self.epsilon:.4f}"
        claimed = self.claim.get("epsilon")
        claim = "no epsilon" if claimed is None else f"epsilon {claimed:.4f}"
        return f"Audit({self.kind} of {self.method}: claimed {claim} at delta {self.claim['delta']:g}{bound}; {verdict})"


def audit(
    method: str,
    kind: str = "sensitivity",
    *,
    loss: str | None = None,
    schema: Schema | str | None = None,
    epsilon: float = 10.0,
    delta: float | None = None,
    adjacency: str = "zero-out",
    settings: dict[str, Any] | None = None,
    rows: int | None = None,
    runs: int | None = None,
    pairs: int = 2000,
    canaries: int = 1000,
) -> Audit:
    """Audit a method on generated records, as ``privfit audit`` does.

    ``kind`` is ``sensitivity`` (neighbouring pairs before noise: exact, seconds), ``distribution`` (two worlds, ``runs`` runs in each),
    ``canaries`` (one run with many canaries) or ``precision`` (released numbers lie on their public grid).

    >>> found = privfit.audit("objective", "sensitivity", pairs=50)
    >>> found.violated, found.measured["largest"] <= 1
    (False, True)
    """
    asked: dict[str, Any] = {
        "kind": kind,
        "method": method,
        "loss": loss,
        "rows": rows,
        "runs": runs,
        "pairs": pairs,
        "canaries": canaries,
        "epsilon": float(epsilon),
        "delta": None if delta is None else float(delta),
        "adjacency": adjacency,
        "settings": dict(settings or {}),
    }
    own = None if schema is None else Schema.of(schema)._schema
    return Audit(json.loads(_privfit.audit(own, asked)))
