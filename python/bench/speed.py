"""Processor time of one fit of logistic regression, one thread, beside scikit-learn (not private) and diffprivlib (its pins need an
environment of their own). Prints ratios of the least and of the median time; measure on a machine that is not busy.

    python speed.py --data DATA --peer-python IBM/bin/python     # DATA/NAME/{Xtr,ytr,Xte,yte}.npy, rows of norm at most 1
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"


def make(who: str, rows: int):
    if who == "privfit":
        import privfit

        return lambda: privfit.LogisticRegression(
            epsilon=1.0, delta=rows**-2.0, row_norm=1.0, classes=[-1, 1], fit_intercept=False, threads=1
        )
    if who == "scikit-learn":
        from sklearn.linear_model import LogisticRegression

        return lambda: LogisticRegression(C=1.0, fit_intercept=False, max_iter=1000)
    from diffprivlib.models import LogisticRegression

    return lambda: LogisticRegression(epsilon=1.0, data_norm=1.0, fit_intercept=False)


def measure(who: str, folder: Path, repeats: int) -> None:
    import numpy as np

    warnings.simplefilter("ignore")
    X, y, Xt, yt = (np.load(folder / f"{name}.npy") for name in ("Xtr", "ytr", "Xte", "yte"))
    new = make(who, len(X))
    times = []
    for _ in range(repeats):
        model = new()
        start = time.process_time()
        model.fit(X, y)
        times.append(time.process_time() - start)
    accuracy = float((model.predict(Xt) == yt).mean())
    print(json.dumps({"least": min(times), "median": statistics.median(times), "accuracy": accuracy, "shape": X.shape}))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", default="syn50k,adult")
    parser.add_argument("--peer-python", help="Python that has diffprivlib")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--who")
    given = parser.parse_args()
    if given.who:
        return measure(given.who, given.data, given.repeats)
    peers = {"privfit": sys.executable, "scikit-learn": sys.executable}
    if given.peer_python:
        peers["diffprivlib"] = given.peer_python
    for name in given.sets.split(","):
        found = {}
        for who, python in peers.items():
            call = [python, __file__, "--who", who, "--data", str(given.data / name), "--repeats", str(given.repeats)]
            found[who] = json.loads(subprocess.run(call, check=True, capture_output=True, text=True).stdout)
        own = found["privfit"]
        for who, peer in found.items():
            print(
                f"{name:<8} {who:<13} least {peer['least'] * 1e3:8.1f} ms  median {peer['median'] * 1e3:8.1f} ms  "
                f"privfit over it {own['least'] / peer['least']:.2f} {own['median'] / peer['median']:.2f}  "
                f"accuracy {peer['accuracy']:.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
