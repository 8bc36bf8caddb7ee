"""Generated tables of many shapes: the default model against the linear default, on fresh rows of the same distribution.

    cargo build --release && python3 bench/shapes.py [--epsilon 1] [--fits 6] [--only bent,zeros] [--set key=value ...]

Every line is a table: rows, columns, kind of target, then the mean test loss of the linear default (or of another method, --against) and of the default, and the ratio of
the two with its standard error over fits. The loss is the log loss of classes (or the share of wrong ones, --measure error) and the squared error of a number. Defaults are chosen
here, never on test rows of real tables. Needs numpy.
"""
import argparse, json, os, subprocess, sys, tempfile
import numpy as np

TEST = 20_000


def sigmoid(s):
    return 1 / (1 + np.exp(-s))


def standard(s):
    return (s - s.mean()) / s.std()


class Table:
    """Columns with bounds or values, a score, and what the target is made of."""

    def __init__(self, rng, n):
        self.rng, self.n, self.columns = rng, n, []

    def number(self, x, low, high):
        self.columns.append((np.clip(x, low, high), ("number", low, high)))
        return x

    def category(self, k, weights=None):
        x = self.rng.choice(k, self.n, p=weights)
        self.columns.append((x, ("category", k)))
        return x

    def uniforms(self, count):
        return [self.number(self.rng.uniform(-1, 1, self.n), -1, 1) for _ in range(count)]


def linear(t, columns=10):
    x = t.uniforms(columns)
    return sum(x[j] * (1.5 / (1 + j)) * (-1) ** j for j in range(columns))


def bent(t):
    x = t.uniforms(10)
    return np.abs(x[0]) * 2 + np.sin(4 * x[1]) + (x[2] > 0.3) - x[3] + np.exp(x[4]) / 2


def zeros(t):
    score = 0
    for j in range(8):
        x = np.where(t.rng.random(t.n) < 0.85, 0, t.rng.lognormal(4, 1, t.n))
        t.number(x, 0, 10_000)
        score = score + (x > 0) * (1 - 0.3 * j) + 0.2 * np.log1p(x) * (j % 2)
    return score


def lognormal(t):
    return sum(np.log(t.number(t.rng.lognormal(0, 1.5, t.n), 0, 1000)) * (0.8 - 0.1 * j) for j in range(8))


def cauchy(t):
    return sum(np.arctan(t.number(t.rng.standard_cauchy(t.n), -1e4, 1e4)) * (1 - 0.2 * j) for j in range(8))


def rare(t):
    x = t.uniforms(6)
    c = t.category(5)
    return x[0] + x[1] ** 2 - x[2] + 0.3 * c - 2


def three(t):
    x = t.uniforms(3)
    return np.sin(3 * x[0]) * 2 + x[1] ** 2 * 2 - np.abs(x[2])


def wide(t):
    x = t.uniforms(300)
    return sum((x[j] + np.abs(x[j])) * 0.5 for j in range(20))


def loose(t):
    x = [t.number(t.rng.normal(0, 1, t.n), -40, 40) for _ in range(8)]
    return x[0] - x[1] + np.abs(x[2]) + np.tanh(2 * x[3])


def useless(t):
    x = t.uniforms(40)
    return 2 * x[0] + np.abs(x[1]) * 2


def pairs(t):
    x = t.uniforms(8)
    c = t.category(4)
    return 3 * x[0] * x[1] + 2 * x[2] * (c == 1) + x[3]


def mixed(t):
    x = t.uniforms(4)
    y = t.number(t.rng.lognormal(2, 1, t.n), 0, 500)
    z = np.where(t.rng.random(t.n) < 0.6, 0, t.rng.exponential(20, t.n))
    t.number(z, 0, 1000)
    c, d = t.category(12, np.arange(1, 13)[::-1] / 78), t.category(3)
    return x[0] + np.abs(x[1]) + np.log1p(y) / 2 + (z > 0) + 0.4 * np.sin(c) * 2 + (d == 1) * x[2]


def clusters(t):
    centre = t.rng.integers(0, 6, t.n)
    middle = np.random.default_rng(5).normal(0, 1, (6, 8))
    x = middle[centre] + t.rng.normal(0, 0.6, (t.n, 8))
    for j in range(8):
        t.number(x[:, j], -4, 4)
    return np.array([2.0, -1.5, 0.5, -2.0, 1.5, 0.0])[centre] + 0.3 * x[:, 0]


def steps(t):
    """Thresholds and plateaus, as rules of offices make them."""
    a = t.number(np.floor(t.rng.gamma(4, 10, t.n)), 0, 120)
    b = t.number(np.round(t.rng.exponential(3, t.n)), 0, 60)
    c = t.category(2)
    x = t.uniforms(3)
    return (a > 25) * 1.0 + (a > 65) - (b == 0) * 1.5 + (b > 6) * c + 0.5 * x[0]


def alike(t):
    """Columns that say nearly the same."""
    base = t.rng.normal(0, 1, t.n)
    x = [t.number(base + t.rng.normal(0, 0.4, t.n), -6, 6) for _ in range(12)]
    return base * 1.5 + np.maximum(x[0] - x[1], 0)


SHAPES = [
    ("linear", linear, 500), ("linear", linear, 5_000), ("linear", linear, 50_000), ("bent", bent, 500), ("bent", bent, 5_000), ("bent", bent, 50_000),
    ("zeros", zeros, 20_000), ("lognormal", lognormal, 20_000), ("cauchy", cauchy, 20_000), ("rare", rare, 20_000),
    ("three", three, 5_000), ("wide", wide, 50_000), ("loose", loose, 20_000), ("useless", useless, 10_000), ("pairs", pairs, 50_000),
    ("mixed", mixed, 5_000), ("mixed", mixed, 50_000), ("clusters", clusters, 20_000), ("steps", steps, 2_000), ("steps", steps, 20_000), ("alike", alike, 10_000),
    ("million", bent, 1_000_000),
]


def target(name, kind, score, rng):
    """Labels of rows, and the lines of the schema."""
    if kind == "class":
        shift = -3.5 if name == "rare" else 0
        y = (rng.random(len(score)) < sigmoid(1.3 * standard(score) + shift)).astype(int)
        return y.astype(str), 'classes = ["0", "1"]'
    if kind == "classes":
        s = standard(score)
        at = np.stack([1.2 * s, -1.2 * s, 0.8 * np.cos(2 * s), np.full(len(s), -1.5)], axis=1) + rng.gumbel(size=(len(s), 4))
        return at.argmax(axis=1).astype(str), 'classes = ["0", "1", "2", "3"]'
    y = np.clip(50 + 15 * standard(score) + rng.normal(0, 6, len(score)), 0, 120)
    if name in ("zeros", "lognormal"):
        y = np.clip(10 * np.exp(0.7 * standard(score) + rng.normal(0, 0.3, len(score))), 0, 200)
        return y, "bounds = [0, 200]"
    return y, "bounds = [0, 120]"


def write(directory, name, make, n, kind, seed):
    rng = np.random.default_rng([seed, n])
    t = Table(rng, n + TEST)
    y, lines = target(name, kind, make(t), rng)
    names = ["c%d" % j for j in range(len(t.columns))]
    out = ['[dataset]\nname = "shape"\n[target]\ncolumn = "y"\n' + lines]
    for column, (_, what) in zip(names, t.columns):
        if what[0] == "number":
            out.append('[features.%s]\ntype = "number"\nmin = %r\nmax = %r' % (column, float(what[1]), float(what[2])))
        else:
            out.append('[features.%s]\ntype = "category"\nvalues = %s' % (column, json.dumps([str(v) for v in range(what[1])])))
    open(os.path.join(directory, "schema.toml"), "w").write("\n".join(out) + "\n")
    cells = [np.char.mod("%.6g", x) if what[0] == "number" else x.astype(str) for x, what in t.columns]
    cells.append(y if kind != "number" else np.char.mod("%.5g", y))
    lines = [",".join(row) for row in zip(*cells)]
    for part, own in (("train", lines[:n]), ("test", lines[n:])):
        open(os.path.join(directory, part + ".csv"), "w").write("\n".join([",".join(names + ["y"])] + own) + "\n")


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit("failed: %s\n%s" % (" ".join(command), done.stderr))
    return json.loads(done.stdout.strip().split("\n")[-1])


def losses(binary, directory, n, fits, epsilon, extra, measure):
    model, out = os.path.join(directory, "model.json"), []
    for _ in range(fits):
        run([binary, "fit", "--data", os.path.join(directory, "train.csv"), "--schema", os.path.join(directory, "schema.toml"), "--epsilon",
             str(epsilon), "--delta", repr(1 / n ** 2), "--out", model, "--force", "--format", "json", *extra])
        found = run([binary, "evaluate", "--model", model, "--data", os.path.join(directory, "test.csv"), "--format", "json"])
        out.append(1 - found["accuracy"] if measure == "error" else found["log_loss"] if "log_loss" in found else found["rmse"] ** 2)
    return np.array(out)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--binary", default="target/release/privfit")
    a.add_argument("--epsilon", type=float, default=1.0)
    a.add_argument("--fits", type=int, default=6)
    a.add_argument("--only", default="")
    a.add_argument("--kinds", default="class,number")
    a.add_argument("--rows", type=int, default=200_000, help="skip larger tables")
    a.add_argument("--make", type=int, default=0, help="every shape once, with so many rows")
    a.add_argument("--against", default="linear", help="method to compare the default with")
    a.add_argument("--measure", default="loss", choices=["loss", "error"], help="error is the share of wrong classes")
    a.add_argument("--set", action="append", default=[], help="given to the default model too, together with --method additive")
    a = a.parse_args()
    only = [x for x in a.only.split(",") if x]
    extra = ["--method", "additive"] + [w for s in a.set for w in ("--set", s)] if a.set else []
    shapes = SHAPES if not a.make else [(name, make, a.make) for name, make in {name: make for name, make, _ in SHAPES}.items() if name != "million"]
    a.rows = max(a.rows, a.make)
    print("| shape | rows | target | " + a.against + " | default | ratio |\n|---|---|---|---|---|---|")
    for i, (name, make, n) in enumerate(shapes):
        if (only and name not in only) or n > a.rows:
            continue
        for kind in a.kinds.split(","):
            if name == "rare" and kind == "number":
                continue
            with tempfile.TemporaryDirectory() as directory:
                write(directory, name, make, n, kind, i)
                base = losses(a.binary, directory, n, a.fits, a.epsilon, ["--method", a.against], a.measure)
                ours = losses(a.binary, directory, n, a.fits, a.epsilon, extra, a.measure)
            error = np.sqrt((ours.std() / ours.mean()) ** 2 + (base.std() / base.mean()) ** 2) / np.sqrt(max(a.fits - 1, 1))
            ratio = ours.mean() / base.mean()
            print("| %s | %d | %s | %.4g | %.4g | %.3f ± %.3f |" % (name, n, kind, base.mean(), ours.mean(), ratio, ratio * error), flush=True)


if __name__ == "__main__":
    main()
