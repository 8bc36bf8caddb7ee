"""Accuracy of default fits on the shared data sets, next to the numbers to beat.

    cargo build --release && python3 bench/accuracy.py --shared ../shared [--fits 10] [--only adult,bike]

Splits: row i of a table is in fold splitmix64(golden + i) mod 10; folds 0 and 1 are the test rows, all others are for training.
MNIST, a9a and ijcnn1 have test files of their own; KDDCup99 is cut to the 70,000 rows with the smallest splitmix64(i) first.
Nothing is tuned: every fit is `privfit fit` with epsilon, delta and adjacency alone. Regression is compared with ridge regression
on the same encoding without privacy, which needs numpy; the rest needs the standard library only.
"""
import argparse, csv, gzip, io, json, os, statistics, subprocess, sys, tempfile

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def splitmix64(x):
    z = (x + GOLDEN) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def test_row(i):
    return splitmix64((GOLDEN + i) & MASK) % 10 < 2


def split_table(path, out, keep=None):
    """Writes train.csv and test.csv; returns their lengths."""
    with gzip.open(path, "rt", newline="") as f:
        lines = f.read().split("\n")
    head, rows = lines[0], [line for line in lines[1:] if line]
    if keep:
        order = sorted(range(len(rows)), key=splitmix64)[:keep]
        rows = [rows[i] for i in sorted(order)]
    parts = {"train": [], "test": []}
    for i, row in enumerate(rows):
        parts["test" if test_row(i) else "train"].append(row)
    for name, part in parts.items():
        with open(os.path.join(out, name + ".csv"), "w") as f:
            f.write("\n".join([head] + part) + "\n")
    return len(parts["train"])


SPARSE = '[dataset]\nname = "{name}"\n[target]\nclasses = ["-1", "1"]\n[features]\nkind = "sparse"\ndimension = {d}\nrow_norm = {r}\n'
IMAGE = ('[dataset]\nname = "mnist"\n[target]\nclasses = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]\n'
         '[features]\nkind = "image"\nshape = [28, 28]\nmax = 255\n')

# name, epsilon, delta (None: 1/n^2), adjacency, bar, kind
TASKS = [
    ("adult", 0.1, None, "replace-one", ">= 0.810"),
    ("adult", 0.1, None, "zero-out", ">= 0.825"),
    ("adult", 1.0, None, "zero-out", ">= 0.850"),
    ("kddcup99", 0.1, None, "replace-one", ">= 0.984"),
    ("a9a", 0.5, 1e-5, "replace-one", ">= without privacy - 0.01"),
    ("ijcnn1", 0.5, 1e-5, "replace-one", ">= without privacy - 0.01"),
    ("bike", 1.0, None, "zero-out", "<= 1.15 x ridge"),
    ("california", 1.0, None, "zero-out", "<= 1.08 x ridge"),
    ("wine", 1.0, None, "zero-out", "<= 1.12 x ridge"),
    ("mnist", 1.0, None, "replace-one", ">= 0.89"),
    ("covertype", 1.0, None, "replace-one", ">= 0.705"),
]
TABLES = {"adult": "adult", "kddcup99": "kddcup99_10pct", "bike": "bike_sharing_hour", "california": "california_housing",
          "wine": "wine_quality", "covertype": "covertype"}


def prepare(name, shared, out):
    data = os.path.join(shared, "data")
    if name in TABLES:
        rows = split_table(os.path.join(data, TABLES[name] + ".csv.gz"), out, 70000 if name == "kddcup99" else None)
        schema = os.path.join(shared, "schemas", TABLES[name] + ".toml")
        return dict(schema=schema, rows=rows, train=["--data", os.path.join(out, "train.csv")],
                    test=["--data", os.path.join(out, "test.csv")])
    if name == "mnist":
        schema = os.path.join(out, "schema.toml")
        open(schema, "w").write(IMAGE)
        file = lambda part: os.path.join(data, part)
        return dict(schema=schema, rows=60000,
                    train=["--data", file("mnist_train_images.idx3.gz"), "--labels", file("mnist_train_labels.idx1.gz")],
                    test=["--data", file("mnist_t10k_even_images.idx3.gz"), "--labels", file("mnist_t10k_even_labels.idx1.gz")])
    d, r, rows = {"a9a": (123, 3.7417, 32561), "ijcnn1": (22, 2.0, 49990)}[name]
    schema = os.path.join(out, "schema.toml")
    open(schema, "w").write(SPARSE.format(name=name, d=d, r=r))
    file = lambda part: os.path.join(data, "%s.%s.libsvm.gz" % (name, part))
    return dict(schema=schema, rows=rows, train=["--data", file("train")], test=["--data", file("test")])


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit("failed: %s\n%s" % (" ".join(command), done.stderr))
    return json.loads(done.stdout.strip().split("\n")[-1])


def fit(binary, p, out, epsilon, delta, adjacency, extra=()):
    model = os.path.join(out, "model.json")
    run([binary, "fit", *p["train"], "--schema", p["schema"], "--epsilon", str(epsilon), "--delta", repr(delta), "--adjacency",
         adjacency, "--out", model, "--force", "--format", "json", *extra])
    return run([binary, "evaluate", "--model", model, *p["test"], "--format", "json"])


def ridge(p, out):
    """Root mean squared error of ridge regression without privacy on the encoding of the schema, ridge chosen on every seventh row."""
    import numpy, tomllib
    schema = tomllib.load(open(p["schema"], "rb"))
    low, high = schema["target"]["bounds"]

    def encode(part):
        rows = list(csv.DictReader(open(os.path.join(out, part + ".csv"), newline="")))
        columns = [[1.0] * len(rows)]
        for name, f in schema["features"].items():
            cells = [r[name] for r in rows]
            if f["type"] == "number":
                def number(c):
                    try:
                        u = (min(max(float(c), f["min"]), f["max"]) - f["min"])
                    except ValueError:
                        return 0.0
                    import math
                    span = f["max"] - f["min"]
                    return 2 * (math.log1p(u) / math.log1p(span) if f.get("scale") == "log" else u / span) - 1
                columns.append([number(c) for c in cells])
            elif f["type"] == "category":
                values = f["values"][1:] if len(f["values"]) == 2 else f["values"]
                columns += [[float(c == v) for c in cells] for v in values]
        y = numpy.array([float(r[schema["target"]["column"]]) for r in rows])
        return numpy.array(columns).T, y

    (x, y), (xt, yt) = encode("train"), encode("test")
    solve = lambda x, y, l: numpy.linalg.solve(x.T @ x + l * numpy.eye(x.shape[1]), x.T @ y)
    rmse = lambda w, x, y: float(numpy.sqrt(numpy.mean((numpy.clip(x @ w, low, high) - y) ** 2)))
    held = numpy.arange(len(y)) % 7 == 0
    best = min((1e-4, 1e-2, 1.0, 10.0, 100.0), key=lambda l: rmse(solve(x[~held], y[~held], l), x[held], y[held]))
    return rmse(solve(x, y, best), xt, yt)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--shared", default="../shared")
    a.add_argument("--binary", default="target/release/privfit")
    a.add_argument("--fits", type=int, default=10)
    a.add_argument("--only", default="")
    a = a.parse_args()
    only = [x for x in a.only.split(",") if x]
    print("| data | epsilon, delta | adjacency | mean of %d fits | deviation | without privacy | bar |" % a.fits)
    print("|---|---|---|---|---|---|---|")
    for name, epsilon, delta, adjacency, bar in TASKS:
        if only and name not in only:
            continue
        with tempfile.TemporaryDirectory() as out:
            p = prepare(name, a.shared, out)
            delta = delta or 1.0 / p["rows"] ** 2
            results = [fit(a.binary, p, out, epsilon, delta, adjacency) for _ in range(a.fits)]
            key = "rmse" if "rmse" in results[0] else "accuracy"
            values = [r[key] for r in results]
            mean, deviation = statistics.mean(values), statistics.pstdev(values)
            if key == "rmse":
                plain = ridge(p, out)
                text = "%.6g (%.3f x)" % (mean, mean / plain)
            else:
                # A huge epsilon: the same code with next to no noise.
                extra = [] if name in ("mnist", "covertype") else ["--method", "objective"]
                plain = fit(a.binary, p, out, 30, delta, adjacency, extra)[key]
                text = "%.4f" % mean
            print("| %s | %g, %.2g | %s | %s | %.2g | %.6g | %s |" % (name, epsilon, delta, adjacency, text, deviation, plain, bar), flush=True)


if __name__ == "__main__":
    main()
