"""The same rows give the same weights, in whatever container and order they come. Noise comes from a seed, so that this can be seen."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

import privfit

COMMON = dict(epsilon=5, delta=1e-7, simulate=11)


def weights(X, y, **more):
    model = privfit.LogisticRegression(**{**COMMON, "bounds": (-2, 3), "classes": [0, 1], **more}).fit(X, y)
    return model.coef_, model.intercept_


def same(a, b):
    return np.array_equal(a[0], b[0]) and np.array_equal(a[1], b[1])


def test_numpy_layouts(two_classes):
    X, y = two_classes
    expected = weights(X, y)
    # Fortran order must not be read as if it were C order.
    fortran = np.asfortranarray(X)
    assert not fortran.flags.c_contiguous
    assert same(weights(fortran, y), expected)
    wide = np.zeros((2 * len(X), 9))
    wide[::2, 1:9:2] = X
    assert same(weights(wide[::2, 1:9:2], np.repeat(y, 2)[::2]), expected)
    assert same(weights(X[::-1][::-1], y), expected)
    assert same(weights(X[::-1], y[::-1])[:1] * 2, weights(X[::-1].copy(), y[::-1].copy())[:1] * 2)
    assert same(weights(X.tolist(), y.tolist()), expected)
    assert same(weights(X.astype(object), y.astype(object)), expected)
    assert same(weights(X.astype(">f8"), y.astype(">i4")), expected)
    readonly = X.copy()
    readonly.flags.writeable = False
    assert same(weights(readonly, y), expected)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "bool"])
def test_numpy_types(two_classes, dtype):
    X, y = two_classes
    rounded = np.abs(np.round(X)).astype(dtype)
    assert same(weights(rounded, y), weights(rounded.astype(float), y))
    assert same(weights(np.asfortranarray(rounded), y), weights(rounded.astype(float), y))


@pytest.mark.parametrize("facts", [dict(bounds=(-2, 3)), dict(bounds=None, row_norm=4.0)])
def test_compressed_rows(two_classes, facts):
    X, y = two_classes
    X = np.where(np.abs(X) < 1, 0.0, X)
    expected = weights(X, y, **facts)
    assert same(weights(sp.csr_matrix(X), y, **facts), expected)
    assert same(weights(sp.csc_matrix(X), y, **facts), expected)
    assert same(weights(sp.coo_array(X), y, **facts), expected)
    # Indices of 64 bits, out of order and twice the same.
    csr = sp.csr_matrix(X)
    csr.indices, csr.indptr = csr.indices.astype(np.int64), csr.indptr.astype(np.int64)
    assert same(weights(csr, y, **facts), expected)
    twice = sp.csr_matrix((np.repeat(csr.data / 2, 2), np.repeat(csr.indices, 2), csr.indptr * 2), shape=csr.shape)
    assert same(weights(twice, y, **facts), expected)


def test_wide_compressed_rows():
    rng = np.random.default_rng(3)
    X = sp.random(400, 3000, density=0.01, random_state=rng, format="csr")
    y = (np.asarray(X[:, :1500].sum(axis=1)).ravel() > 7.5).astype(int)
    model = privfit.LogisticRegression(**COMMON, row_norm=5.0, classes=[0, 1]).fit(X, y)
    assert model.coef_.shape == (1, 3000)
    assert np.array_equal(model.predict(X), model.predict(X.toarray()))


def test_tables(two_classes):
    X, y = two_classes
    names = ["a", "b b", "c", "d"]
    frame = pd.DataFrame(X, columns=names)
    expected = weights(X, y)
    assert same(weights(frame, y), expected)
    assert same(weights(frame, pd.Series(y)), expected)
    assert same(weights(pd.DataFrame({n: X[:, i] for i, n in enumerate(names)}), y), expected)
    polars = pl.DataFrame({n: X[:, i] for i, n in enumerate(names)})
    assert same(weights(polars, pl.Series(y)), expected)
    assert same(weights(pl.concat([polars[:700], polars[700:]], rechunk=False), y), expected)
    table = pa.table({n: X[:, i] for i, n in enumerate(names)})
    assert same(weights(table, pa.array(y)), expected)
    assert same(weights(pa.concat_tables([table.slice(0, 3), table.slice(3)]), y), expected)
    assert same(weights(table.to_reader(max_chunksize=100), y), expected)
    for facts in (dict(bounds=None, row_norm=4.0), dict(bounds={n: (-2, 3) for n in names})):
        expected = weights(frame, y, **facts)
        assert same(weights(polars, y, **facts), expected)
        assert same(weights(table, y, **facts), expected)


SCHEMA = """
[dataset]
name = "visits"
[target]
column = "ill"
classes = ["no", "yes"]
[features.age]
type = "number"
min = 0
max = 120
[features.ward]
type = "category"
values = ["A", "B", "C and a long name of a ward"]
[features.flag]
type = "category"
values = ["0", "1"]
[features.dose]
type = "number"
min = 0
max = 1000
scale = "log"
[features.note]
type = "ignore"
"""


def visits():
    rng = np.random.default_rng(5)
    n = 900
    table = {
        "note": ["x"] * n,
        "ward": [[None, "A", "B", "C and a long name of a ward", "D"][i] for i in rng.integers(0, 5, n)],
        "age": rng.integers(-5, 130, n),
        "flag": rng.integers(0, 2, n),
        "dose": np.where(rng.uniform(size=n) < 0.1, np.nan, rng.uniform(0, 1200, n)),
    }
    y = np.where(table["age"] + rng.normal(0, 9, n) > 60, "yes", "no")
    return table, y


def test_mixed_tables_are_read_as_files_are(tmp_path):
    table, y = visits()
    frame = pd.DataFrame(table)
    model = privfit.LogisticRegression(**COMMON, schema=SCHEMA)
    expected = model.fit(frame, y)._model.bytes

    def fitted(X, y=y):
        return privfit.LogisticRegression(**COMMON, schema=SCHEMA).fit(X, y)._model.bytes

    assert fitted(frame.assign(ward=frame.ward.astype("category"))) == expected
    assert fitted(frame.assign(ward=frame.ward.astype("string"), age=frame.age.astype("Int64"))) == expected
    assert fitted(frame[["dose", "flag", "age", "ward"]]) == expected
    assert fitted(frame.assign(flag=frame.flag.astype(bool).astype(int).astype(str))) == expected
    polars = pl.DataFrame({**table, "dose": pl.Series(table["dose"]).fill_nan(None)})
    assert fitted(polars) == expected
    assert fitted(polars, pl.Series(y)) == expected
    assert fitted(polars.with_columns(pl.col("ward").cast(pl.Categorical))) == expected
    arrow = pa.Table.from_pandas(frame)
    assert fitted(arrow) == expected
    for kind in (pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())):
        assert fitted(arrow.set_column(1, "ward", arrow["ward"].cast(kind))) == expected
    # The target may stand in the table.
    assert fitted(frame.assign(ill=y), None) == expected
    # And the same from a file.
    path = tmp_path / "visits.csv"
    frame.assign(ill=y).to_csv(path, index=False)
    assert fitted(pd.read_csv(path), None) == expected
    assert np.array_equal(model.predict(polars), model.predict(frame))
    assert len(model.coef_[0]) == 6 and list(model._model.schema.encoded)[1] == "ward=A"


def test_columns_of_types_that_are_not_read():
    table, y = visits()
    polars = pl.DataFrame(table).with_columns(pl.lit(0).cast(pl.Date).alias("age"))
    with pytest.raises(privfit.PrivfitError, match='"age".*cast'):
        privfit.LogisticRegression(**COMMON, schema=SCHEMA).fit(polars, y)
    # One that is not used does not matter.
    polars = pl.DataFrame(table).with_columns(pl.lit(0).cast(pl.Date).alias("note"))
    privfit.LogisticRegression(**COMMON, schema=SCHEMA).fit(polars, y)


def test_texts_need_categories():
    table, y = visits()
    facts = dict(COMMON, classes=["no", "yes"])
    for frame in (pd.DataFrame(table), pl.DataFrame(table)):
        with pytest.raises(privfit.PrivfitError, match="'ward' holds text"):
            privfit.LogisticRegression(**facts, bounds=(0, 100)).fit(frame[["age", "ward"]], y)
        bounds = {"age": (0, 120), "ward": ["A", "B"]}
        assert privfit.LogisticRegression(**facts, bounds=bounds).fit(frame, y).coef_.shape == (1, 2)
    twice = pd.DataFrame(np.zeros((5, 2)), columns=["a", "a"])
    with pytest.raises(privfit.PrivfitError, match="same name"):
        privfit.LogisticRegression(**facts, bounds=(0, 1)).fit(twice, y[:5])


def test_bad_cells_are_not_reported(two_classes):
    X, y = two_classes
    broken = X.astype(object)
    broken[3, 2], broken[4, 1], broken[5, 0] = "what", None, {"a": 1}
    clean = X.copy()
    clean[3, 2] = clean[4, 1] = clean[5, 0] = np.nan
    assert same(weights(broken, y), weights(clean, y))
    odd = y.astype(object)
    odd[:5] = ["other", None, 7, 3.5, object()]
    weights(X, odd)
    weights(np.where(X > 2.9, np.inf, X), y)


def test_labels(two_classes):
    X, y = two_classes
    expected = weights(X, y)
    assert same(weights(X, y.astype(float)), expected)
    assert same(weights(X, y.astype(bool)), expected)
    assert same(weights(X, y.astype(bool), classes=[False, True]), expected)
    assert same(weights(X, y.astype(bool).astype(object), classes=[False, True]), expected)
    assert same(weights(X, y.astype(bool).astype(object)), expected)
    assert same(weights(X, np.array(["no", "yes"])[y], classes=["no", "yes"]), expected)
    assert same(weights(X, np.array(["no", "yes"], dtype=object)[y], classes=["no", "yes"]), expected)
    assert same(weights(X, pd.Categorical.from_codes(y, ["no", "yes"]), classes=["no", "yes"]), expected)
    assert same(weights(X, y * 2.5, classes=[0.0, 2.5]), expected)
    model = privfit.LogisticRegression(**COMMON, bounds=(-2, 3), classes=[True, False]).fit(X, y == 1)
    assert model.classes_.tolist() == [True, False] and model.predict(X).dtype == bool
    assert model.score(X, y == 1) > 0.9


def test_masked_arrays_are_refused(two_classes):
    X, y = two_classes
    hidden = np.ma.masked_array(X.copy(), mask=np.zeros_like(X, dtype=bool))
    hidden.data[3, 2], hidden.mask[3, 2] = 1e6, True
    model = privfit.LogisticRegression(**COMMON, bounds=(-2, 3), classes=[0, 1])
    fitted = privfit.LogisticRegression(**COMMON, bounds=(-2, 3), classes=[0, 1]).fit(X, y)
    for rows in (hidden, np.ma.masked_array(X), list(hidden), tuple(hidden), np.ma.masked_array(X.astype(object))):
        for use in (lambda: model.fit(rows, y), lambda: fitted.predict(rows), lambda: privfit.evaluate(fitted, rows, y)):
            with pytest.raises(privfit.PrivfitError, match="X is masked") as error:
                use()
        # What the error says can be pasted.
        (line,) = [line.strip() for line in str(error.value).splitlines() if line.startswith("  ")]
        clean = np.ma.stack(rows) if isinstance(rows, (list, tuple)) else rows
        expected = clean.astype(float).filled(np.nan)
        assert same(weights(eval(line, {"X": rows, "np": np}), y), weights(expected, y))
    labels = np.ma.masked_array(y, mask=y * 0)
    with pytest.raises(privfit.PrivfitError, match="y is masked") as error:
        model.fit(X, labels)
    line = str(error.value).splitlines()[-1].strip()
    assert same(weights(X, eval(line, {"y": labels})), weights(X, y))
    sparse = sp.csr_matrix(X)
    sparse.data = np.ma.masked_array(sparse.data)
    if isinstance(sparse.data, np.ma.MaskedArray):
        with pytest.raises(privfit.PrivfitError, match="masked"):
            model.fit(sparse, y)


@pytest.mark.filterwarnings("error")
def test_masked_cells_among_others_are_missing_and_nobody_is_told(two_classes):
    X, y = two_classes
    cells, labels = X.astype(object), y.astype(object)
    cells[3, 2] = labels[5] = np.ma.masked
    clean, known = X.copy(), y.astype(object)
    clean[3, 2], known[5] = np.nan, None
    expected = weights(clean, known)
    assert same(weights(cells, labels), expected)
    assert same(weights(cells.tolist(), labels.tolist()), expected)
    assert same(weights(pd.DataFrame(cells), labels), expected)

    class Odd:
        def __float__(self):
            raise RuntimeError("what is in a cell decides nothing")

    cells[3, 2] = Odd()
    assert same(weights(cells, labels), expected)


@pytest.mark.filterwarnings("error")
def test_what_is_missing_is_missing_in_every_container(two_classes):
    X, y = two_classes
    clean, known = X.copy(), y.astype(object)
    clean[3, 2], known[5] = np.nan, None
    expected = weights(clean, known)
    names = list("abcd")
    frame = pd.DataFrame(clean, columns=names)
    nullable = frame.astype("Float64")
    nullable.iloc[3, 2] = pd.NA
    ints = pd.Series(known, dtype="Int64")
    assert ints.isna().sum() == 1 and nullable.isna().sum().sum() == 1
    for rows in (nullable, frame.astype("float64[pyarrow]"), frame.astype(pd.SparseDtype(float)), nullable.astype(object)):
        assert same(weights(rows, known), expected)
    for labels in (ints, ints.astype("int64[pyarrow]"), pa.array(known.tolist()), pa.chunked_array([known[:9].tolist(), known[9:].tolist()])):
        assert same(weights(clean, labels), expected), type(labels)
    assert same(weights(clean, pl.Series(known.tolist())), expected)
    arrow = pa.table({n: pa.array(clean[:, i], mask=np.isnan(clean[:, i])) for i, n in enumerate(names)})
    assert arrow.column("c").null_count == 1
    assert same(weights(arrow, known), expected)
    coded = pd.Categorical.from_codes(np.where([k is None for k in known], -1, y), [0, 1])
    assert same(weights(clean, coded), expected)


def test_structured_arrays_are_refused(two_classes):
    X, y = two_classes
    rows = np.array([tuple(r) for r in X], dtype=[(n, float) for n in "abcd"])
    for made in (rows, rows.view(np.recarray), rows[:, None]):
        with pytest.raises(privfit.PrivfitError, match="structured"):
            weights(made, y)
    assert same(weights(eval("pandas.DataFrame(X)", {"pandas": pd, "X": rows}), y), weights(X, y))


class Shown:
    """An array interface with a mask of its own."""

    def __init__(self, array, mask):
        self.array, self.__array_interface__ = array, {**array.__array_interface__, "mask": mask}


def test_masks_of_the_interface_are_refused():
    array = np.zeros((3, 2))
    privfit._privfit.Data.dense(Shown(array, None))
    with pytest.raises(privfit.PrivfitError, match="mask"):
        privfit._privfit.Data.dense(Shown(array, np.zeros(3, bool)))


def test_hints_work_as_they_are_printed():
    """Every line that an error prints as code, pasted as it is, is what was missing: for all columns at once, with awkward names."""
    rng = np.random.default_rng(2)
    n = 300
    awkward = ['net "income"', "it's", "a.b", "back\\slash", "größe"]
    frame = pd.DataFrame({name: rng.uniform(0, 9, n) for name in awkward})
    frame["ward"], frame["city"] = pd.Series(["a", "b"] * (n // 2)).astype("category"), pd.Series(["x"] * n, dtype="string")
    frame["old"] = pd.Series(["a", "c"] * (n // 2), dtype=object)
    texts, number = np.array(["no", "yes"])[rng.integers(0, 2, n)], rng.uniform(0, 9, n)
    wide, plain = pd.DataFrame(rng.uniform(0, 1, (n, 30))).add_prefix("c"), rng.uniform(0, 1, (n, 3))
    numbered = pd.DataFrame({0: rng.uniform(0, 1, n), 1: pd.Series(["a", "b"] * (n // 2)).astype("category")})
    cases = [
        (privfit.LogisticRegression, rows, labels, facts)
        for rows in (frame, frame[awkward], pl.DataFrame(frame), wide, plain, numbered, pa.table({"x": number, "t": texts}))
        for labels, facts in ((texts, {}), (number > 4, {}), (pd.Series(texts), {"classes": ["no"]}), ((number > 4).astype(int), {}))
    ]
    cases += [(privfit.LinearRegression, rows, number, {}) for rows in (frame, plain)]
    cases += [(privfit.LogisticRegression, frame, texts, {"bounds": (0, 9), "classes": ["no", "yes"]})]
    cases += [(privfit.LogisticRegression, frame[["ward", "it's", "city"]], texts, {"bounds": ([0, 0, 0], [9, 9.5, 9]), "classes": ["no", "yes"]})]
    cases += [(privfit.LogisticRegression, plain, texts, {"bounds": 3, "classes": ["no", "yes"]})]
    seen = set()
    for kind, rows, labels, facts in cases:
        facts = dict(facts)
        for _ in range(5):
            try:
                kind(epsilon=5, delta=1e-7, **facts).fit(rows, labels)
                break
            except privfit.PrivfitError as error:
                (line,) = [line.strip() for line in str(error).splitlines() if line.startswith("  ")]
                seen.add(line.split("=")[0])
                facts.update(eval(f"dict({line})"))
        else:
            raise AssertionError(facts)
    assert seen == {"bounds", "classes", "target_bounds"}
    found = privfit.LogisticRegression(epsilon=5, delta=1e-7, **{"bounds": (0, 9), "classes": [0, 1]})
    with pytest.raises(privfit.PrivfitError) as error:
        found.plan(rows=500)
    assert found.plan(rows=500, **eval(f"dict({str(error.value).splitlines()[-1]})"))
    with pytest.raises(privfit.PrivfitError) as error:
        privfit.evaluate(found.fit(plain, number > 4), plain, number > 4, delta=1e-7)
    assert privfit.evaluate(found, plain, number > 4, delta=1e-7, **eval(f"dict({str(error.value).splitlines()[-1]})"))["private"]
    with pytest.raises(privfit.PrivfitError, match="none of the 300 rows"):
        privfit.evaluate(found, plain, texts)
