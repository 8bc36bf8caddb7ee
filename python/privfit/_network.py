"""Networks: layers in words, for images and for tables. The gradient of each example is clipped before noise is added."""

from __future__ import annotations

import json
import math
from typing import Any

from . import _privfit
from ._base import Estimator
from ._data import image_shape_of, images, rows
from ._errors import PrivfitError
from ._estimators import _Probabilities, _Regressor, describe
from ._schema import Schema

#: Settings of the method that are arguments of their own.
_SETTINGS = ("sampling_rate", "steps", "learning_rate", "momentum", "clip", "adam")


class _Network(Estimator):
    _auto = "network"
    _family = "layers"
    # Sums of layers have constants of their own.
    fit_intercept = True

    layers: Any
    image_shape: Any
    max: float | None
    sampling_rate: float | None
    steps: int | None
    learning_rate: float | None
    momentum: float | None
    clip: float | None
    adam: bool | None

    #: Shape of the images that are being fitted, off the shape of the array.
    _found_shape: tuple[int, ...] | None = None

    def _shape(self) -> tuple[int, ...] | None:
        """Shape of the images, where rows are images."""
        return self._found_shape if self.image_shape is None else tuple(self.image_shape)

    def _given(self, X: Any, y: Any) -> tuple[_privfit.Data, _privfit.Labels | None, Schema, list[str] | None]:
        # A shape and a type are public, and no pixel is looked at.
        self._found_shape = image_shape_of(X) if self.schema is None else None
        kind = getattr(getattr(X, "dtype", None), "kind", "O")
        if self.schema is None and self._shape() is not None and self.max is None and kind == "f":
            raise PrivfitError(
                "max is missing: pixels are numbers with a point, so add the largest value that one can have, like\n  max=1.0 (or max=255)"
            )
        return super()._given(X, y)

    def _rows(self, X: Any) -> _privfit.Data:
        return super()._rows(X) if self.schema is not None else rows(images(X, self._shape()))

    def _width(self, features: int | None) -> int | None:
        return super()._width(features) if self.image_shape is None else math.prod(self.image_shape)

    def _facts(
        self, width: int, names: list[str] | None, sparse: bool, y: Any, columns: list[tuple[str, bool]] | None = None
    ) -> Schema:
        shape = self._shape()
        if self.schema is not None and (self.image_shape is not None or self.max is not None):
            raise PrivfitError("the schema has the shape of images: leave out image_shape and max")
        if self.schema is not None or shape is None:
            return super()._facts(width, names, sparse, y, columns)
        if self.bounds is not None or self.row_norm is not None:
            raise PrivfitError("pixels lie between 0 and max: leave out bounds and row_norm, or image_shape")
        largest = 255.0 if self.max is None else float(self.max)
        schema = Schema.of_images(shape, max=largest, name=self._dataset(), **self._target(y))
        if width != math.prod(shape):
            raise PrivfitError(f"X has {width} features, and images of the shape {shape} have {math.prod(shape)}: give whole images")
        return schema

    def _asked(self) -> dict[str, Any]:
        asked = super()._asked()
        named = {name: getattr(self, name) for name in _SETTINGS if getattr(self, name) is not None}
        twice = [name for name in named if name in asked["settings"]]
        if twice:
            raise PrivfitError(f"{twice[0]} is given twice: leave it out of settings")
        asked["settings"] = {**named, **asked["settings"]}
        asked["layers"] = _words(self.layers)
        return asked

    @property
    def layers_(self) -> list[dict[str, Any]]:
        """Layers in order, the scores at the end: ``layer`` in words, ``shape`` of what comes out, number of ``weights``."""
        return json.loads(self._fitted().layers())["layers"]

    @property
    def history_(self) -> dict[str, Any] | None:
        """How training went, from released numbers alone: ``steps``, the length ``noise`` that noise alone gives a gradient, and ``points``.

        A point has ``step``, the lengths ``noisy`` (as released) and ``signal`` (without noise, estimated) of the mean gradient in units of
        the clip, ``learning_rate``, and how far the weights ``moved`` in a step.
        """
        return json.loads(self._fitted().layers())["history"]

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        state.pop("_found_shape", None)
        return state


def _words(layers: Any) -> list[str] | None:
    """Layers as a list of words; a name, or layers with commas between them, may be one text."""
    if layers is None:
        return None
    listed = layers.split(",") if isinstance(layers, str) else list(layers)
    if not all(isinstance(layer, str) for layer in listed):
        raise PrivfitError('layers are words: give them like\n  layers=["dense 64", "tanh"]')
    return [layer.strip() for layer in listed] or ["linear"]


class NetworkClassifier(_Network, _Probabilities):
    """Classes by a network: of images, or of the columns of a table.

    >>> import numpy as np, privfit
    >>> rng = np.random.default_rng(1)
    >>> X = rng.integers(0, 256, size=(3000, 6, 6), dtype=np.uint8); y = (X[:, :, :3].mean(axis=(1, 2)) > 127).astype(int)
    >>> layers = ["convolution 4 3", "tanh", "flatten", "dense 8", "tanh"]
    >>> model = privfit.NetworkClassifier(epsilon=4, delta=1e-7, classes=[0, 1], layers=layers, steps=40, sampling_rate=0.2).fit(X, y)
    >>> model.epsilon_ <= 4, model.predict(X[:2]).shape
    (True, (2,))
    >>> [layer["weights"] for layer in model.layers_]
    [40, 0, 0, 520, 0, 18]
    """

    _losses = ("softmax",)

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        layers: Any = None,
        image_shape: Any = None,
        max: float | None = None,
        bounds: Any = None,
        schema: Any = None,
        classes: Any = None,
        row_norm: float | None = None,
        sampling_rate: float | None = None,
        steps: int | None = None,
        learning_rate: float | None = None,
        momentum: float | None = None,
        clip: float | None = None,
        adam: bool | None = None,
        rows: int | None = None,
        adjacency: str = "zero-out",
        method: str = "auto",
        settings: dict[str, Any] | None = None,
        ledger: Any = None,
        request: str | None = None,
        dataset: str | None = None,
        threads: int | None = None,
        simulate: int | None = None,
        allow_large_delta: bool = False,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.layers = layers
        self.image_shape = image_shape
        self.max = max
        self.bounds = bounds
        self.schema = schema
        self.classes = classes
        self.row_norm = row_norm
        self.sampling_rate = sampling_rate
        self.steps = steps
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.clip = clip
        self.adam = adam
        self.rows = rows
        self.adjacency = adjacency
        self.method = method
        self.settings = settings
        self.ledger = ledger
        self.request = request
        self.dataset = dataset
        self.threads = threads
        self.simulate = simulate
        self.allow_large_delta = allow_large_delta

    def decision_function(self, X: Any) -> Any:
        """The scores of the network, one for each class; of two classes how much the second one is above the first."""
        scores = super().decision_function(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores


class NetworkRegressor(_Network, _Regressor):
    """A number between bounds by a network: of images, or of the columns of a table.

    >>> import numpy as np, privfit
    >>> rng = np.random.default_rng(1)
    >>> X = rng.uniform(0, 10, size=(4000, 2)); y = X[:, 0] * X[:, 1]
    >>> model = privfit.NetworkRegressor(epsilon=8, delta=1e-7, bounds=(0, 10), target_bounds=(0, 100), layers=["dense 16", "tanh"], steps=100)
    >>> bool(model.fit(X, y).score(X, y) > 0.5)
    True
    """

    _losses = ("squared",)

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        layers: Any = None,
        image_shape: Any = None,
        max: float | None = None,
        bounds: Any = None,
        schema: Any = None,
        target_bounds: Any = None,
        row_norm: float | None = None,
        sampling_rate: float | None = None,
        steps: int | None = None,
        learning_rate: float | None = None,
        momentum: float | None = None,
        clip: float | None = None,
        adam: bool | None = None,
        rows: int | None = None,
        adjacency: str = "zero-out",
        method: str = "auto",
        settings: dict[str, Any] | None = None,
        ledger: Any = None,
        request: str | None = None,
        dataset: str | None = None,
        threads: int | None = None,
        simulate: int | None = None,
        allow_large_delta: bool = False,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.layers = layers
        self.image_shape = image_shape
        self.max = max
        self.bounds = bounds
        self.schema = schema
        self.target_bounds = target_bounds
        self.row_norm = row_norm
        self.sampling_rate = sampling_rate
        self.steps = steps
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.clip = clip
        self.adam = adam
        self.rows = rows
        self.adjacency = adjacency
        self.method = method
        self.settings = settings
        self.ledger = ledger
        self.request = request
        self.dataset = dataset
        self.threads = threads
        self.simulate = simulate
        self.allow_large_delta = allow_large_delta


_CONSTANT = """    fit_intercept : bool
        Whether a constant is fitted.
"""
_OWN = """    layers : list or str
        Layers before the scores, like ``["convolution 16 3 padding 1", "tanh", "max_pool 2", "flatten", "dense 32", "tanh"]``, or the name
        of a network: ``linear``, ``mlp``, ``mnist_cnn``, ``cifar_cnn5``, ``cifar_cnn6``. What the shape of the rows suggests by default.
    image_shape : (height, width) or (height, width, channels)
        For rows that are images. An array of shape (n, height, width) or (n, height, width, channels) tells it by itself.
    max : float
        The largest value of a pixel. 255 by default; it must be stated for pixels that are numbers with a point.
    sampling_rate, steps, learning_rate, momentum, clip, adam
        How it is trained; ``settings`` has the rest, and ``privfit.methods()`` says what they mean.
"""
_RELEASED = "layers_, history_ : the layers, and how training went (from released numbers alone)"
describe(NetworkClassifier, _RELEASED, "classes")
describe(NetworkRegressor, _RELEASED, "target_bounds")
for _kind in (NetworkClassifier, NetworkRegressor):
    if _kind.__doc__:
        _kind.__doc__ = _kind.__doc__.replace(_CONSTANT, _OWN)
