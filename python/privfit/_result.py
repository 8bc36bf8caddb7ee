"""What a plan says, and what a model states about privacy."""

from __future__ import annotations

import json
import os
from typing import Any

from . import _privfit


class Plan(dict):
    """What a job would do and cost."""

    def __repr__(self) -> str:
        steps = ", ".join(f"{k} {v}" for k, v in self["plan"].items())
        lines = [
            f"method    {self['method']}, loss {self['loss']}" + (f" because {self['reason']}" if self["reason"] else ""),
            f"data      {self['rows']} rows, {self['features']} encoded features",
            f"plan      {steps}",
            f"cost      epsilon {self['epsilon']['zero_out']} under zero-out, {self['epsilon']['replace_one']} under replace-one, "
            f"at delta {self['delta']:g}",
            f"forecast  {self['forecast']['what']}: {self['forecast']['text']}",
        ]
        if self["ledger"] is not None:
            lines.append(f"ledger    {'fits' if self['ledger']['fits'] else self['ledger']['why']}")
        return "\n".join([*lines, "no data were opened"])


class TunePlan(dict):
    """What tuning would do and cost."""

    def __repr__(self) -> str:
        lines = [f"plan      {key}: {value}" for key, value in self["plan"].items()]
        lines += [f"candidate {i + 1}: {c['candidate']} ({c['method']})" for i, c in enumerate(self["candidates"])]
        epsilon = self["epsilon"]
        lines.append(
            f"cost      epsilon {epsilon['zero_out']} under zero-out, {epsilon['replace_one']} under replace-one, "
            f"at delta {self['delta']:g}, for everything together"
        )
        if self["ledger"] is not None:
            lines.append(f"ledger    {'fits' if self['ledger']['fits'] else self['ledger']['why']}")
        return "\n".join([*lines, "no data were opened"])


class Checks(list):
    """Checks, each with ``name``, ``answer`` and ``text``. There are four answers: ``holds``, ``does-not-hold``, ``not-checked`` and
    ``declared``, which is the publisher's word."""

    @property
    def holds(self) -> bool:
        """Whether everything that can be recomputed was, and agrees."""
        return all(check["answer"] in ("holds", "declared") for check in self)

    def __repr__(self) -> str:
        return "\n".join(f"{c['answer'].replace('-', ' '):<14} {c['name']:<26} {c['text']}" for c in self)


class Certificate:
    """The statement a model carries: ``text`` for people, ``json`` and ``dict`` for programs, ``verify()`` for everybody."""

    def __init__(self, model: _privfit.Model) -> None:
        self._model = model
        facts = json.loads(model.facts())
        self.private: bool = facts["private"]
        self.adjacency: str = facts["adjacency"]
        #: Epsilon under the adjacency that was asked for; infinite if nothing is guaranteed.
        self.epsilon: float = _finite(facts["replace_one" if self.adjacency == "replace-one" else "zero_out"])
        self.delta: float = facts["delta"]
        self.zero_out: float = _finite(facts["zero_out"])
        self.replace_one: float = _finite(facts["replace_one"])

    @property
    def text(self) -> str:
        """A page for people."""
        return self._model.certificate_text()

    @property
    def json(self) -> str:
        """All of it, as JSON text."""
        return self._model.certificate_json()

    @property
    def dict(self) -> dict:
        """All of it, as a dict."""
        return json.loads(self.json)

    def verify(self, ledger: Any = None) -> Checks:
        """Recompute every number from the recorded noise; with a ledger, see that the model stands in it."""
        from ._ledger import Ledger

        if ledger is not None and not isinstance(ledger, Ledger):
            ledger = Ledger(os.fspath(ledger))
        place, key = (None, None) if ledger is None else (ledger.place, ledger.key)
        return Checks(json.loads(self._model.verify(place, key)))

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Certificate({self._model.guarantee()})"


def _finite(x: float | None) -> float:
    return float("inf") if x is None else x
