"""Rows and labels of whatever the caller has. Nothing but NumPy is imported; other libraries are known by what their objects can do."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from . import _privfit
from ._errors import PrivfitError


def rows(X: Any) -> _privfit.Data:
    """Rows, read where they lie: NumPy, SciPy sparse, pandas, or anything with an Arrow stream."""
    _refuse_masked(X, "X", "X.astype(float).filled(np.nan)")
    if hasattr(X, "tocsr"):
        compressed = X.tocsr()
        _check_width(compressed.shape)
        _refuse_masked(compressed.data, "X", "a matrix of X.data.filled(np.nan)")
        values = _numbers(compressed.data)
        return _privfit.Data.sparse(values, compressed.indices, compressed.indptr, compressed.shape[1])
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        _check_width(X.shape)
        with _quiet():
            return _privfit.Data.table(_names(X.columns), [_series(X.iloc[:, i]) for i in range(X.shape[1])])
    if hasattr(X, "__arrow_c_stream__"):
        data = _privfit.Data.arrow(X)
        _check_width(data.shape)
        return data
    array = _array(X)
    if array.dtype.names is not None:
        raise PrivfitError("a structured array is not rows and columns: make a table of it, like\n  pandas.DataFrame(X)")
    if array.ndim != 2:
        found = "a scalar" if array.ndim == 0 else f"{array.ndim}D array"
        raise PrivfitError(
            f"Expected 2D array, got {found} instead: give rows and columns. Reshape your data either using array.reshape(-1, 1) "
            "if it has one feature or array.reshape(1, -1) if it is one row"
        )
    _check_width(array.shape)
    return _privfit.Data.dense(_numbers(array))


def image_shape_of(X: Any) -> tuple[int, ...] | None:
    """Height, width and channels of an array of images, from its shape alone; none for rows and columns."""
    shape = getattr(X, "shape", None)
    if shape is None and isinstance(X, (list, tuple)):
        shape = _array(X).shape
    return tuple(int(side) for side in shape[1:]) if shape is not None and len(shape) in (3, 4) else None


def images(X: Any, shape: Any) -> Any:
    """An array of images as rows of pixels: row by row, the channels of a pixel side by side. Everything else is left as it is."""
    found = image_shape_of(X)
    if found is None or shape is None:
        return X
    _refuse_masked(X, "X", "X.astype(float).filled(np.nan)")
    if _without_one(found) != _without_one(tuple(shape)):
        raise PrivfitError(f"the images of X have the shape {found}, and {tuple(shape)} is stated: give images of that shape")
    array = _array(X)
    return array.reshape(len(array), -1)


def _without_one(shape: tuple[int, ...]) -> tuple[int, ...]:
    """A single channel may be left out."""
    return shape[:2] if len(shape) == 3 and shape[2] == 1 else shape


def labels(y: Any, classes: list[str] | None) -> _privfit.Labels:
    """Labels: numbers or objects. A label that is not one of the classes is the null record, and nobody is told."""
    _refuse_masked(y, "y", "y.astype(object).filled(None)")
    if hasattr(y, "iloc") and hasattr(y, "columns") and y.shape[1] == 1:
        y = y.iloc[:, 0]
    array = _array(y)
    if array.ndim == 2 and array.shape[1] == 1:
        _warn_column()
        array = array[:, 0]
    if array.ndim != 1:
        raise PrivfitError(f"y should be a 1d array, got an array of shape {array.shape} instead: give one label for each row")
    if array.dtype.kind in "bO" and classes is not None and {"true", "false"} & set(classes):
        array = np.asarray(np.frompyfunc(_flag, 1, 1)(array), dtype=object)
    if array.dtype.kind not in "biufc":
        with _quiet():
            return _privfit.Labels(array.astype(object))
    return _privfit.Labels(_numbers(array))


def labels_of(y: Any, classes: list[str] | None, data: _privfit.Data) -> _privfit.Labels | None:
    """Labels, one for each row; none if the table holds them."""
    own = None if y is None else labels(y, classes)
    if own is not None and len(own) != data.shape[0]:
        raise PrivfitError(
            f"Found input variables with inconsistent numbers of samples: [{data.shape[0]}, {len(own)}]; give one label for each row"
        )
    return own


def _flag(x: Any) -> Any:
    """A truth value by the name that its class has."""
    return ("true" if x else "false") if isinstance(x, (bool, np.bool_)) else x


def columns_of(X: Any) -> list[tuple[str, bool]]:
    """Names of the columns, and whether they hold text: from their types alone."""
    data = rows(X)
    known = data.columns
    return [(f"x{i}", False) for i in range(data.shape[1])] if known is None else known


def names_of(X: Any, data: _privfit.Data) -> list[str] | None:
    """Names of the columns, if they have names that are text."""
    known = data.columns
    if known is None:
        return None
    if hasattr(X, "iloc") and not all(isinstance(c, str) for c in X.columns):
        return None
    return [name for name, _ in known]


def _names(columns: Any) -> list[str]:
    if all(isinstance(c, str) for c in columns):
        return list(columns)
    return [f"x{i}" for i in range(len(columns))]


def _series(column: Any) -> Any:
    """A column of a pandas table: numbers where they lie, codes with their categories, or objects."""
    if hasattr(column, "cat"):
        return column.cat.codes.to_numpy(), list(column.cat.categories)
    dtype = column.dtype
    if isinstance(dtype, np.dtype):
        values = column.to_numpy()
        return _numbers(values) if dtype.kind in "biufc" else values.astype(object)
    if getattr(dtype, "kind", "O") in "biuf":
        return column.to_numpy(dtype=float, na_value=np.nan)
    return column.to_numpy(dtype=object)


def _numbers(array: np.ndarray) -> np.ndarray:
    """The array itself if its numbers can be read where they lie."""
    kind = array.dtype.kind
    if kind in "biu" or kind == "f" and array.dtype.itemsize in (4, 8):
        return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
    if kind == "f":
        return array.astype(float)
    if kind == "c":
        raise PrivfitError("Complex data not supported: give real numbers")
    if kind in "OUS":
        with _quiet():
            return np.asarray(np.frompyfunc(_cell, 1, 1)(array), dtype=float)
    raise PrivfitError(f"numbers of type {array.dtype} are not read: convert them with .astype(float)")


def _cell(x: Any) -> float:
    """A number, or nothing: what is in a cell must not decide whether a fit fails."""
    try:
        return float(x)
    except Exception:
        return float("nan")


def _refuse_masked(values: Any, name: str, fix: str) -> None:
    """A masked array keeps what it masks, and everybody who reads its memory reads that. Refused by its type, whatever is masked."""
    masked = isinstance(values, np.ma.MaskedArray)
    if isinstance(values, (list, tuple)):
        # NumPy makes an array of masked rows without their masks. A single masked cell is a missing one.
        masked = any(isinstance(row, np.ma.MaskedArray) and row is not np.ma.masked for row in values)
        fix = f"np.ma.stack({name})" + fix[1:]
    if masked:
        raise PrivfitError(f"{name} is masked, and what is masked would be read all the same: fill it first, like\n  {fix}")


@contextmanager
def _quiet() -> Iterator[None]:
    """Warnings about what is in a cell would depend on the data: nobody hears them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _array(values: Any) -> np.ndarray:
    """An array of whatever is given."""
    with _quiet():
        return np.asarray(values)


def _check_width(shape: tuple[int, int]) -> None:
    if shape[1] == 0:
        raise PrivfitError(
            f"Found array with 0 feature(s) (shape={tuple(shape)}) while a minimum of 1 is required: give rows with features"
        )
    if shape[0] == 0:
        raise PrivfitError(
            f"Found array with 0 sample(s) (shape={tuple(shape)}) while a minimum of 1 is required: give at least one row"
        )


def _warn_column() -> None:
    import sys

    exceptions = sys.modules.get("sklearn.exceptions")
    category = UserWarning if exceptions is None else exceptions.DataConversionWarning
    warnings.warn("A column-vector y was passed when a 1d array was expected: use y.ravel()", category, stacklevel=4)
