"""Public facts about a data set: bounds, categories, classes, privacy unit. Nothing in them is read off the data."""

from __future__ import annotations

import json
import os
from typing import Any

from . import _privfit
from ._errors import PrivfitError

#: Name of a data set that has none.
UNNAMED = "unnamed"


class Schema:
    """Public facts in the text format of schema files.

    >>> schema = privfit.Schema.from_bounds({"age": (0, 120), "ward": ["A", "B", "C"]}, classes=["no", "yes"], name="visits")
    >>> schema.columns, schema.classes
    (['age', 'ward'], ['no', 'yes'])
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._schema = _privfit.Schema(text)

    @classmethod
    def from_string(cls, text: str) -> Schema:
        """Read the text of a schema."""
        return cls(text)

    @classmethod
    def from_file(cls, path: str | os.PathLike) -> Schema:
        """Read a schema file."""
        return cls(_text(path))

    @classmethod
    def of(cls, schema: Schema | str | os.PathLike) -> Schema:
        """A schema from itself, from a path, or from its text."""
        if isinstance(schema, Schema):
            return schema
        if isinstance(schema, str) and "\n" in schema:
            return cls(schema)
        return cls.from_file(schema)

    @classmethod
    def from_bounds(
        cls,
        bounds: Any = None,
        *,
        classes: Any = None,
        target_bounds: Any = None,
        names: Any = None,
        name: str = UNNAMED,
        target: str = "target",
        row_norm: float | None = None,
        features: int | None = None,
        sparse: bool = False,
        fit_intercept: bool = True,
    ) -> Schema:
        """Public facts from bounds.

        ``bounds`` is a dict from column to ``(low, high)`` or to a list of categories; or ``(low, high)``, each a number or one number
        per feature (then give ``names`` or ``features``). ``row_norm`` is an alternative: rows of numbers, scaled down to this length.
        """
        head = _head(name)
        if row_norm is None:
            columns = _columns(bounds, names, features)
            while target in columns:
                target += "_"
            head += f"column = {_quote(target)}\n"
            body = "".join(_feature(column, what) for column, what in columns.items())
        else:
            kind = "sparse" if sparse else "dense"
            body = f'\n[features]\nkind = "{kind}"\ndimension = {features}\nrow_norm = {float(row_norm)!r}\n'
        head += _target(classes, target_bounds)
        return cls(head + body + ("" if fit_intercept else "\n[encoding]\nintercept = false\n"))

    @classmethod
    def of_images(
        cls,
        shape: Any,
        *,
        max: float = 255.0,
        classes: Any = None,
        target_bounds: Any = None,
        name: str = UNNAMED,
    ) -> Schema:
        """Public facts of images: ``(height, width)`` or ``(height, width, channels)``, and the largest value of a pixel.

        >>> privfit.Schema.of_images((28, 28), classes=range(10), name="digits")
        Schema('digits', 784 encoded features, predicts classes)
        """
        sides = [_side(s) for s in shape]
        if len(sides) not in (2, 3):
            raise PrivfitError(f"images have the shape {tuple(shape)!r}: give height and width, and channels where there are several")
        body = f'\n[features]\nkind = "image"\nshape = {sides}\nmax = {_number(float(max))}\n'
        return cls(_head(name) + _target(classes, target_bounds) + body)

    @staticmethod
    def draft(X: Any, name: str = "data") -> str:
        """A draft for a table: names and types of its columns only, with "?" for every public fact that you must fill in.

        No cell is read. ``Schema(draft)`` names the lines that are still open.
        """
        from ._data import columns_of

        out = '# Public facts: replace every "?" from documentation or domain knowledge, never from the private rows.\n'
        out += f'[dataset]\nname = {_quote(name)}\nunit = "row"\n\n[target]\ncolumn = "?"\nclasses = ["?"]\n'
        for column, text in columns_of(X):
            kind = 'type = "category"\nvalues = ["?"]' if text else 'type = "number"\nmin = "?"\nmax = "?"'
            out += f"\n[features.{_key(column)}]\n{kind}\n"
        return out

    @classmethod
    def buy_bounds(
        cls,
        draft: str | os.PathLike,
        X: Any,
        y: Any = None,
        *,
        epsilon: float,
        delta: float,
        adjacency: str = "zero-out",
        rows: int | None = None,
        beyond: float = 0.005,
        ledger: Any = None,
        request: str | None = None,
        threads: int | None = None,
        simulate: int | None = None,
    ) -> Schema:
        """A schema whose open bounds (``min = "?"``, ``max = "?"``) are private quantiles of the records. Costs budget.

        ``draft`` is the text of a schema or its path; everything else in it must be there. ``X`` is a table with the columns that it
        names; ``y`` the labels, unless the table holds them. ``beyond`` is the part of the records that may lie outside at either end.
        Bounds from documentation are free and better. What is released stands in the schema and in every certificate that rests on it.

        If noise hides some bounds the error says so, and its ``draft`` is the text with those that were found.

        >>> import numpy as np, privfit
        >>> rng = np.random.default_rng(1)
        >>> pay = rng.uniform(900, 4000, size=(5000, 1)); left = (pay[:, 0] < 2000).astype(int)
        >>> draft = privfit.Schema.from_bounds({"pay": (0, 1)}, classes=[0, 1]).text.replace("max = 1.0", 'max = "?"')
        >>> schema = privfit.Schema.buy_bounds(draft, pay, left, epsilon=4, delta=1e-9)
        >>> [line for line in schema.text.splitlines() if line.startswith("max")]
        ['max = 5000.0']
        """
        from ._arguments import whole
        from ._data import labels, rows as rows_of
        from ._evaluate import paid_by

        text = _text(draft) if not (isinstance(draft, str) and "\n" in draft) else draft
        asked = {
            "epsilon": float(epsilon),
            "delta": float(delta),
            "adjacency": adjacency,
            "rows": whole("rows", rows),
            "beyond": float(beyond),
            **paid_by(ledger, request, threads, simulate),
        }
        released = _privfit.buy_bounds(text, rows_of(X), None if y is None else labels(y, None), asked)
        try:
            return cls(released)
        except PrivfitError:
            error = PrivfitError('some bounds are still "?", because noise hides them: give them yourself, or release them with a larger epsilon')
            error.draft = released  # type: ignore[attr-defined]
            raise error from None

    @property
    def name(self) -> str:
        """Name of the data set."""
        return self._schema.name

    @property
    def classes(self) -> list[str]:
        """Names of the classes; empty for a number."""
        return self._schema.classes

    @property
    def target_bounds(self) -> tuple[float, float] | None:
        """Bounds of the target, if it is a number."""
        return self._schema.target_bounds

    @property
    def columns(self) -> list[str] | None:
        """Columns that are used, or None if rows have no names."""
        return self._schema.columns

    def __deepcopy__(self, memo: dict) -> Schema:
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __reduce__(self) -> tuple:
        return Schema, (self.text,)

    def __repr__(self) -> str:
        return f"Schema({self.name!r}, {len(self._schema.encoded)} encoded features, predicts {self._schema.task})"


def _text(path: str | os.PathLike) -> str:
    try:
        return _privfit.read_file(os.fspath(path), False).decode()
    except OSError as error:
        raise PrivfitError(f"cannot read the schema {os.fspath(path)}: {error.strerror or error}; check the path") from None
    except UnicodeDecodeError:
        raise PrivfitError(f"cannot read the schema {os.fspath(path)}: it is not text in UTF-8; check the path") from None


def _head(name: str) -> str:
    return f"[dataset]\nname = {_quote(name)}\n\n[target]\n"


def _target(classes: Any, target_bounds: Any) -> str:
    if target_bounds is not None:
        low, high = target_bounds
        return f"bounds = [{float(low)!r}, {float(high)!r}]\n"
    return f"classes = [{', '.join(_quote(class_name(c)) for c in classes)}]\n"


def _side(value: Any) -> int:
    try:
        side = int(value)
    except (TypeError, ValueError, OverflowError):
        side = 0
    if side < 1 or side != value:
        raise PrivfitError(f"a side of images is {value!r}: give a whole number of pixels from 1 on")
    return side


def class_name(value: Any) -> str:
    """Name of a class in a schema: that of the command line for the same value."""
    if isinstance(value, bool) or type(value).__name__ == "bool":
        return "true" if value else "false"
    if isinstance(value, str):
        return str(value)
    if float(value) == int(value):
        return str(int(value))
    return repr(float(value))


def _columns(bounds: Any, names: Any, features: int | None) -> dict[str, Any]:
    if isinstance(bounds, dict):
        return {str(k): v for k, v in bounds.items()}
    try:
        low, high = bounds
    except (TypeError, ValueError):
        raise PrivfitError("bounds are two, each a number or one number per feature: give them like\n  bounds=(0, 100)") from None
    listed = [f"x{i}" for i in range(features or 0)] if names is None else [str(n) for n in names]
    return dict(zip(listed, zip(_spread(low, len(listed)), _spread(high, len(listed)))))


def _spread(bound: Any, count: int) -> list[float]:
    if hasattr(bound, "__len__"):
        if len(bound) != count:
            raise PrivfitError(f"there are {len(bound)} bounds and {count} features: give one number, or one for each feature")
        return [float(b) for b in bound]
    return [float(bound)] * count


def _feature(column: str, what: Any) -> str:
    values = list(what)
    if values and all(isinstance(v, str) for v in values) or len(values) != 2:
        listed = ", ".join(_quote(class_name(v)) for v in values)
        return f'\n[features.{_key(column)}]\ntype = "category"\nvalues = [{listed}]\n'
    low, high = (float(v) for v in values)
    return f'\n[features.{_key(column)}]\ntype = "number"\nmin = {_number(low)}\nmax = {_number(high)}\n'


def _number(x: float) -> str:
    """A number as TOML has it; what is not finite is refused there with the place."""
    return repr(x)


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(text: str) -> str:
    bare = text.isascii() and text.replace("_", "a").replace("-", "a").isalnum()
    return text if bare else _quote(text)
