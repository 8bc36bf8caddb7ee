"""Additive models: a curve for each column, a few pairs of columns, random trees. They can be read, drawn and edited."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np

from ._base import Estimator
from ._errors import PrivfitError
from ._estimators import _Probabilities, _Regressor, describe


class _Additive(Estimator):
    _auto = "additive"
    _family = "curves"

    @property
    def curves_(self) -> dict[str, dict[str, Any]]:
        """For each column, the most important first: ``cells``, ``middles`` of numbers, ``shares`` of the rows, ``scores``, ``noise``, ``spread``."""
        found = json.loads(self._fitted().curves())["columns"]
        return {c.pop("column"): c for c in sorted(found, key=lambda c: -c["spread"])}

    @property
    def pairs_(self) -> list[dict[str, Any]]:
        """Pairs of columns that add something together: ``columns``, ``groups`` of their cells, ``scores``."""
        return json.loads(self._fitted().curves())["pairs"]

    @property
    def edits_(self) -> list[str]:
        """What was changed after the fit, in words."""
        return json.loads(self._fitted().curves())["edits"]

    def reasons(self, X: Any) -> tuple[list[str], np.ndarray]:
        """Names of the terms, and what each of them adds to the score of each row's prediction; the first one is where the score begins."""
        names = ["base", *self._fitted().terms()]
        return names, self._apply(X, "reasons", len(names))

    def edit(
        self,
        *,
        monotone: dict[str, str] | None = None,
        smooth: Any = (),
        drop: Any = (),
        clamp: dict[str, tuple[float, float]] | None = None,
        drop_trees: bool = False,
    ) -> Any:
        """A model with edited curves: ``monotone={"age": "up"}``, ``smooth=["hours"]``, ``drop=["zip"]``, ``clamp={"income": (0, 1e5)}``.

        Edits look at released numbers only: they cost nothing, the guarantee stays, and the certificate records them.
        """
        for way in (monotone or {}).values():
            if way not in ("up", "down"):
                raise PrivfitError(f"monotone goes {way!r}: give 'up' or 'down'")
        edits: list[Any] = [{"drop": {"column": c}} for c in drop]
        edits += [{"clamp": {"column": c, "low": float(low), "high": float(high)}} for c, (low, high) in (clamp or {}).items()]
        edits += [{"smooth": {"column": c}} for c in smooth]
        edits += [{"monotone": {"column": c, "direction": way}} for c, way in (monotone or {}).items()]
        edits += ["drop-trees"] if drop_trees else []
        if not edits:
            raise PrivfitError("there is no edit: give one, like\n  monotone={'age': 'up'}")
        edited = copy.copy(self)
        edited._model = self._fitted().edited(json.dumps(edits))
        return edited

    def plot(self, columns: Any = None, *, score: str | None = None) -> Any:
        """Curves of some columns, by default the twelve most important ones, as a figure of matplotlib."""
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            raise PrivfitError("plot() needs matplotlib: run\n  pip install matplotlib") from None
        curves = self.curves_
        names = list(curves)[:12] if columns is None else [columns] if isinstance(columns, str) else list(columns)
        for name in names:
            if name not in curves:
                raise PrivfitError(f"there is no column {name!r}: it has {', '.join(curves)}")
        wide = min(3, len(names))
        figure, axes = plt.subplots(-(-len(names) // wide), wide, figsize=(4.2 * wide, 2.8 * -(-len(names) // wide)), squeeze=False)
        for axis in axes.flat[len(names) :]:
            axis.set_visible(False)
        for axis, name in zip(axes.flat, names):
            curve = curves[name]
            lines = curve["scores"] if score is None else {score: curve["scores"][score]}
            middles, noise = curve["middles"], np.asarray(curve["noise"] or np.zeros(len(curve["cells"])))
            for label, values in lines.items():
                values = np.asarray(values)
                if middles is None:
                    axis.barh(curve["cells"], values, xerr=noise if noise.any() else None, label=label)
                    continue
                n = len(middles)
                axis.step(middles, values[:n], where="mid", label=label)
                axis.fill_between(middles, values[:n] - noise[:n], values[:n] + noise[:n], step="mid", alpha=0.2)
            axis.set_title(name)
            if len(lines) > 1:
                axis.legend()
        figure.tight_layout()
        return figure


class AdditiveClassifier(_Additive, _Probabilities):
    """Classes from curves of the columns, pairs of columns and random trees.

    >>> import numpy as np, privfit
    >>> rng = np.random.default_rng(1)
    >>> X = rng.uniform(-1, 1, size=(5000, 2)); y = np.where(X[:, 0] ** 2 + X[:, 1] > 0.3, "yes", "no")
    >>> model = privfit.AdditiveClassifier(epsilon=2, delta=1e-7, bounds=(-1, 1), classes=["no", "yes"]).fit(X, y)
    >>> model.score(X, y) > 0.85
    True
    >>> sorted(model.curves_)
    ['x0', 'x1']
    >>> model.edit(monotone={"x1": "up"}).certificate_.verify().holds
    True
    """

    _losses = ("logistic", "softmax")

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores: what curves, pairs and trees add up to."""
        return super().decision_function(X)


class AdditiveRegressor(_Additive, _Regressor):
    """A number between bounds from curves of the columns, pairs of columns and random trees.

    >>> import numpy as np, privfit
    >>> rng = np.random.default_rng(1)
    >>> X = rng.uniform(0, 10, size=(5000, 2)); y = (X[:, 0] - 5) ** 2 + X[:, 1]
    >>> model = privfit.AdditiveRegressor(epsilon=2, delta=1e-7, bounds=(0, 10), target_bounds=(0, 40)).fit(X, y)
    >>> bool(model.score(X, y) > 0.8)
    True
    """

    _losses = ("fractional",)


describe(AdditiveClassifier, "curves_, pairs_ : what each column, and each two of them, add to a score", "classes")
describe(AdditiveRegressor, "curves_, pairs_ : what each column, and each two of them, add to a score", "target_bounds")
