import numpy as np
import pytest

import privfit


@pytest.fixture
def ledger(tmp_path):
    return privfit.Ledger.create(tmp_path / "visits.ledger", dataset="visits", epsilon=3, delta=1e-6)


def test_a_fit_spends_and_is_repeated_for_nothing(ledger, two_classes):
    X, y = two_classes
    make = lambda **more: privfit.LogisticRegression(  # noqa: E731
        **{**dict(epsilon=1, delta=1e-7, bounds=(-2, 3), classes=[0, 1], ledger=ledger), **more}
    )
    assert make().plan(rows=1500, features=4)["ledger"]["fits"]
    first = make(request="monday").fit(X, y)
    status = ledger.status()
    assert len(status["jobs"]) == 1 and 0 < status["spent"]["part"] < 1 and status["released"] == 1
    again = make(request="monday").fit(X, y)
    assert np.array_equal(again.coef_, first.coef_) and again._model.before and len(ledger.status()["jobs"]) == 1
    assert ledger.verify([first]).holds and first.certificate_.verify(ledger).holds
    assert ledger.export("monday") == first._model.bytes and len(ledger.export()["records"]) == 3
    with pytest.raises(privfit.BudgetError, match="budget"):
        make(epsilon=5).fit(X, y)
    assert len(ledger.status()["jobs"]) == 1
    with pytest.raises(privfit.PrivfitError, match="leave out ledger"):
        make(simulate=1).fit(X, y)
    with pytest.raises(privfit.PrivfitError, match="ledger is for"):
        make(dataset="other").fit(X, y)
    # By its path as well.
    make(ledger=ledger.place).fit(X, y)
    assert len(privfit.Ledger.open(ledger.place).show()["jobs"]) == 2


def test_overspending_raises_before_the_data_are_touched(ledger, two_classes):
    X, y = two_classes
    model = privfit.LogisticRegression(epsilon=50, delta=1e-7, bounds=(-2, 3), classes=[0, 1], ledger=ledger)
    with pytest.raises(privfit.BudgetError):
        model.fit(X, y)
    assert ledger.status()["jobs"] == [] and not hasattr(model, "n_features_in_")


def test_files_that_are_no_ledger(tmp_path, two_classes):
    X, y = two_classes
    (tmp_path / "x").write_text("nothing")
    for place in (tmp_path / "x", tmp_path / "none"):
        with pytest.raises(privfit.PrivfitError):
            privfit.Ledger.open(place)
    with pytest.raises(privfit.PrivfitError, match="dataset"):
        privfit.Ledger.create(tmp_path / "y", epsilon=1, delta=1e-6)


def test_keys(tmp_path):
    (tmp_path / "key").write_bytes(b"0123456789abcdef0123456789abcdef")
    made = privfit.Ledger.create(tmp_path / "l", dataset="a", epsilon="0.5", delta=1e-6, key=tmp_path / "key")
    assert made.status()["epsilon"] in ("0.5", 0.5)
    with pytest.raises(privfit.DamagedError):
        privfit.Ledger.open(tmp_path / "l")
