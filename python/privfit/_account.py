"""The privacy calculator: epsilon, delta or noise of described computations. Nothing private is read."""

from __future__ import annotations

import json
from typing import Any

from . import _privfit


class Account:
    """Call it with requests in the format of ``privfit account --request``, or ask for one number.

    >>> step = {"type": "gaussian", "noise_multiplier": 1.0, "count": 1000,
    ...         "sampling": "poisson", "sampling_probability": 0.01}
    >>> round(privfit.account.epsilon(step, delta=1e-5, adjacency="add-remove"), 2)
    1.83
    >>> answer = privfit.account({"query": "epsilon", "delta": 1e-5, "adjacency": "add-remove", "mechanisms": [step]})
    >>> answer["lower"] <= answer["value"] <= answer["upper"], answer["accountant"]
    (True, 'pld')
    """

    def __call__(self, request: dict | list | str) -> Any:
        """Answer a request (a dict or JSON text: one answer) or several (a list, or ``{"vectors": [...]}``: a list of answers).

        Each answer has ``value`` (a certified upper bound), ``lower``, ``upper``, ``accountant`` and ``adjacency``.
        """
        text = request if isinstance(request, str) else json.dumps(request)
        answers = json.loads(_privfit.answer(text))
        plain = json.loads(text)
        one = isinstance(plain, dict) and "vectors" not in plain
        return answers[0] if one else answers

    def epsilon(self, mechanisms: Any, *, delta: float, adjacency: str = "zero-out") -> float:
        """The least epsilon at this delta of all mechanisms together: a certified upper bound."""
        return self._number("epsilon", mechanisms, adjacency, delta=delta)

    def delta(self, mechanisms: Any, *, epsilon: float, adjacency: str = "zero-out") -> float:
        """The least delta at this epsilon of all mechanisms together: a certified upper bound."""
        return self._number("delta", mechanisms, adjacency, epsilon=epsilon)

    def noise(self, mechanisms: Any, *, epsilon: float, delta: float, adjacency: str = "zero-out") -> float:
        """The least noise multiplier that meets epsilon and delta; leave ``noise_multiplier`` out of the mechanisms.

        >>> 0.4 < privfit.account.noise({"type": "gaussian"}, epsilon=10, delta=1e-5) < 1
        True
        """
        return self._number("noise", mechanisms, adjacency, epsilon=epsilon, delta=delta)

    def _number(self, query: str, mechanisms: Any, adjacency: str, **given: float) -> float:
        listed = [mechanisms] if isinstance(mechanisms, dict) else list(mechanisms)
        request = {"query": query, "adjacency": adjacency, "mechanisms": listed, **given}
        value = self(request)["value"]
        return float("inf") if value is None else value

    def __repr__(self) -> str:
        return "privfit.account: epsilon(...), delta(...), noise(...), or call it with a request"
