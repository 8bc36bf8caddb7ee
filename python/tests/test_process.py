"""What an extension may not do to its process: hold the lock, swallow Ctrl-C, print data, import the world."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import privfit

SLOW = dict(epsilon=1, delta=1e-7, bounds=(0, 1), classes=[0, 1], method="noisy-gd", settings={"steps": 100_000}, threads=1)


@pytest.fixture
def listening():
    """A process that was started in the background may ignore interrupts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_interrupts(tmp_path, listening):
    ledger = privfit.Ledger.create(tmp_path / "l", dataset="a", epsilon=3, delta=1e-6)
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(20_000, 50))
    model = privfit.LogisticRegression(**SLOW, ledger=ledger)
    threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, (X[:, 0] > 0.5).astype(int))
    assert time.monotonic() - start < 60
    # What was reserved stays spent, and there is no model.
    status = ledger.status()
    assert len(status["jobs"]) == 1 and status["released"] == 0 and not hasattr(model, "coef_")


def test_interrupts_of_tuning(tmp_path, listening):
    ledger = privfit.Ledger.create(tmp_path / "l", dataset="a", epsilon=3, delta=1e-6)
    X = np.random.default_rng(0).uniform(size=(20_000, 20))
    model = privfit.LogisticRegression(epsilon=1, delta=1e-8, bounds=(0, 1), classes=[0, 1], method="noisy-gd", ledger=ledger)
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        privfit.tune(model, X, (X[:, 0] > 0.5).astype(int), grid={"steps": [50, 100]}, runs=5000)
    status = ledger.status()
    assert len(status["jobs"]) == 1 and status["released"] == 0


def test_other_threads_go_on():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(20_000, 50))
    model = privfit.LogisticRegression(**{**SLOW, "settings": {"steps": 300}})
    worker = threading.Thread(target=model.fit, args=(X, (X[:, 0] > 0.5).astype(int)))
    worker.start()
    ticks = 0
    while worker.is_alive():
        time.sleep(0.005)
        ticks += 1
    worker.join()
    assert ticks > 3 and model.coef_.shape == (1, 50)


def test_nothing_else_is_imported():
    program = (
        "import sys, numpy, privfit\n"
        "X = numpy.random.rand(200, 2); y = (X[:, 0] > 0.5)\n"
        "privfit.LogisticRegression(epsilon=1, delta=1e-5, bounds=(0, 1), classes=[False, True]).fit(X, y).predict(X)\n"
        "print([m for m in ('sklearn', 'scipy', 'pandas', 'polars', 'pyarrow') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]" and done.stderr == ""
