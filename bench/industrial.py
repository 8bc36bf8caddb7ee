"""Four million generated rows of 23 features: privfit at epsilon 0.1 beside scikit-learn without privacy, on the same rows, in one run.

    cargo build --release && python3 bench/industrial.py [--rows 4000000] [--features 23] [--epsilon 0.1] [--repeats 3] [--threads N]

Needs numpy and scikit-learn. Rows are normal, divided by their norm; labels follow a logistic model, so that three in four can be
predicted. privfit's time is that of the whole fit, reading the file included; scikit-learn has its rows in memory. Prints one JSON line.
"""
import argparse, json, os, subprocess, sys, tempfile, time

a = argparse.ArgumentParser()
a.add_argument("--rows", type=int, default=4_000_000)
a.add_argument("--features", type=int, default=23)
a.add_argument("--epsilon", type=float, default=0.1)
a.add_argument("--repeats", type=int, default=3)
a.add_argument("--threads", type=int, default=os.cpu_count())
a.add_argument("--binary", default="target/release/privfit")
a = a.parse_args()
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = str(a.threads)
import numpy as np
from sklearn.linear_model import LogisticRegression

rng = np.random.default_rng(4)
n, d, test = a.rows, a.features, 200_000
truth = rng.standard_normal(d)
truth *= 1.7 * np.sqrt(d) / np.linalg.norm(truth)
X = np.empty((n + test, d))
for start in range(0, n + test, 500_000):
    part = rng.standard_normal((min(500_000, n + test - start), d))
    X[start:start + len(part)] = part / np.linalg.norm(part, axis=1, keepdims=True)
y = np.where(rng.random(n + test) < 1 / (1 + np.exp(-(X @ truth))), 1.0, -1.0)

with tempfile.TemporaryDirectory() as directory:
    for name, part in (("Xtr", X[:n]), ("ytr", y[:n]), ("Xte", X[n:]), ("yte", y[n:])):
        np.save(os.path.join(directory, name + ".npy"), part)
    meta = dict(name="industrial", n_train=n, n_test=test, d=d, density=1.0)
    json.dump(meta, open(os.path.join(directory, "meta.json"), "w"))
    peer, ours = [], []
    for _ in range(a.repeats):
        start, cpu = time.perf_counter(), time.process_time()
        model = LogisticRegression(C=1.0, fit_intercept=False, max_iter=1000).fit(X[:n], y[:n])
        peer.append((time.perf_counter() - start, time.process_time() - cpu, float(model.score(X[n:], y[n:]))))
        done = subprocess.run([a.binary, "bench", "fit", "--data", directory, "--epsilon", str(a.epsilon), "--threads", str(a.threads)],
                              capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stderr)
        line = json.loads(done.stdout)
        ours.append((line["fit_s"], line["cpu_s"], line["acc"]))

middle = lambda rows, i: sorted(r[i] for r in rows)[len(rows) // 2]
print(json.dumps({
    "rows": n, "features": d, "epsilon": a.epsilon, "adjacency": "zero-out", "delta": 1 / n ** 2, "threads": a.threads,
    "scikit_learn": {"wall_s": middle(peer, 0), "cpu_s": middle(peer, 1), "accuracy": middle(peer, 2)},
    "privfit": {"wall_s": middle(ours, 0), "cpu_s": middle(ours, 1), "accuracy": middle(ours, 2)},
    "wall_ratio": middle(ours, 0) / middle(peer, 0), "cpu_ratio": middle(ours, 1) / middle(peer, 1),
    "points_lost": 100 * (middle(peer, 2) - middle(ours, 2)),
}))
