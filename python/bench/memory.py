"""Peak memory of a fit above the array itself: 10^6 x 100 numbers of 8 bytes. Prints gigabytes, for C and Fortran order."""

import argparse
import resource
import subprocess
import sys

import numpy as np


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def measure(order: str, rows: int, features: int) -> None:
    import privfit

    X = np.empty((rows, features), order=order)
    rng = np.random.default_rng(0)
    for start in range(0, rows, 10_000):
        X[start : start + 10_000] = rng.uniform(size=(min(10_000, rows - start), features))
    y = (X[:, 0] > 0.5).astype(np.int8)
    before = peak()
    privfit.LogisticRegression(epsilon=1, delta=1e-12, bounds=(0, 1), classes=[0, 1]).fit(X, y)
    print(f"order {order}: array {X.nbytes / 1e9:.2f} GB, peak before {before:.2f} GB, above it {peak() - before:.2f} GB", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--order")
    given = parser.parse_args()
    if given.order:
        measure(given.order, given.rows, given.features)
    else:
        # Each in a process of its own: a peak never falls.
        for order in ("C", "F"):
            shape = ["--rows", str(given.rows), "--features", str(given.features)]
            subprocess.run([sys.executable, __file__, "--order", order, *shape], check=True)
