#!/usr/bin/env python3
"""Compares `privfit predict` with onnxruntime on exported models: adult, energy, generated sets of numbers alone, networks of every layer, and scattering features.

Models are simulations (seeded noise): only the arithmetic is compared. How to run, from the root of the repository:

    python3 -m venv /tmp/onnx-venv && /tmp/onnx-venv/bin/pip install onnx onnxruntime numpy
    cargo build --release --bin privfit
    /tmp/onnx-venv/bin/python crates/privfit-cli/tests/onnx_check.py target/release/privfit

Prints the largest difference of each model and fails above 1e-5 (of the target's range, for numbers). Scattering features are convolutions in an
ONNX file and Fourier transforms in privfit, both in single precision: there it fails above 1e-3. Rows are rounded to 16 bits for training alone.
"""

import csv
import gzip
import math
import pathlib
import random
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime

TOLERANCE = 1e-5
SCATTERING_TOLERANCE = 1e-3
root = pathlib.Path(__file__).resolve().parents[3]
privfit = str(pathlib.Path(sys.argv[1]).resolve())


def run(*arguments):
    done = subprocess.run([privfit, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"privfit {' '.join(map(str, arguments))}: {done.stderr}")
    return done.stdout


def read(path):
    opened = gzip.open(path, "rt") if str(path).endswith(".gz") else open(path)
    with opened as file:
        return list(csv.DictReader(file))


def number(text):
    try:
        return float(text)
    except ValueError:
        return math.nan


def feed(session, rows, columns):
    """Tensors in the form that the graph asks for."""
    inputs = session.get_inputs()
    if isinstance(rows, np.ndarray):
        return {"features": rows}
    if [i.name for i in inputs] == ["features"]:
        return {"features": np.array([[number(r[c]) for c in columns] for r in rows], dtype=np.float32)}
    out = {}
    for i in inputs:
        cells = [r[i.name] for r in rows]
        text = i.type == "tensor(string)"
        out[i.name] = np.array(cells, dtype=object if text else None).reshape(-1, 1) if text else np.array(
            [number(c) for c in cells], dtype=np.float32).reshape(-1, 1)
    return out


def compare(name, folder, data, schema, columns, span, *flags, tolerance=TOLERANCE):
    model, graph, predicted = folder / f"{name}.json", folder / f"{name}.onnx", folder / f"{name}.csv"
    run("fit", "--data", data, "--schema", schema, "--epsilon", 1, "--simulate", 7, "--out", model, "--format", "json", *flags)
    run("export", model, "--format", "onnx", "--out", graph)
    run("predict", "--model", model, "--data", data, "--out", predicted)
    onnx.checker.check_model(onnx.load(graph), full_check=True)
    facts = {p.key: p.value for p in onnx.load(graph).metadata_props}
    assert facts["privfit.simulated"] == "true" and len(facts["privfit.model_sha256"]) == 64, facts
    session = onnxruntime.InferenceSession(str(graph), providers=["CPUExecutionProvider"])
    rows = np.load(data) if str(data).endswith(".npy") else read(data)
    expected = read(predicted)
    assert len(rows) == len(expected)
    outputs = {o.name: v for o, v in zip(session.get_outputs(), session.run(None, feed(session, rows, columns)))}
    worst, wrong = 0.0, 0
    if "value" in outputs:
        ours = np.array([float(e["prediction"]) for e in expected])
        worst = float(np.max(np.abs(outputs["value"][:, 0] - ours))) / span
        assert np.ptp(ours) > 0, f"{name} predicts one number for all rows"
    else:
        ours = [e["prediction"] for e in expected]
        wrong = sum(a != b for a, b in zip(outputs["label"], ours))
        heads = [k for k in expected[0] if k.startswith("p(")]
        if heads:
            table = np.array([[float(e[h]) for h in heads] for e in expected])
            worst = float(np.max(np.abs(outputs["probabilities"] - table)))
    size = graph.stat().st_size
    print(f"{name:<28} {len(rows):>6} rows  largest difference {worst:.2e}  other labels {wrong}  {size} bytes")
    # A label may differ only where two scores are equal to the precision of a float.
    return worst <= tolerance and wrong <= len(rows) / 10000


def dense(folder):
    """Rows of numbers in a NumPy file, many of them longer than row_norm, one of zeros, one with NaN and infinity."""
    generator = np.random.default_rng(3)
    x = (generator.normal(size=(2000, 6)) * generator.exponential(1.0, size=(2000, 1))).astype(np.float32)
    y = (x[:, 0] - x[:, 1] + generator.normal(size=2000) > 0).astype(np.float32)
    x[0], x[1, :2] = 0, [np.nan, np.inf]
    rows, labels = folder / "dense.npy", folder / "labels.npy"
    np.save(rows, x)
    np.save(labels, y)
    schemas = []
    for name, more in [("plain", ""), ("cells", "bound = 2.0\n"), ("bare", "intercept = false\n")]:
        schemas.append((name, folder / f"dense-{name}.toml"))
        schemas[-1][1].write_text(f'[dataset]\nname = "dense"\n[target]\nclasses = [0, 1]\n[features]\nkind = "dense"\n'
                                  f'dimension = 6\nrow_norm = 1.5\n{more}')
    return rows, labels, schemas


def generated(folder):
    random.seed(5)
    path = folder / "numbers.csv"
    with open(path, "w") as file:
        file.write("a,b,c,label,three,count\n")
        for i in range(3000):
            a, b, c = random.uniform(-20, 120), random.gauss(50, 40), random.expovariate(0.001)
            s = 0.02 * a - 0.01 * b + 0.3 * math.log1p(c) - 2.5
            cells = ["" if random.random() < 0.02 else f"{x:.6g}" for x in (a, b, c)]
            label = "yes" if s + random.gauss(0, 1) > 0 else "no"
            three = ["x", "y", "z"][min(2, max(0, int(s + 1.5)))]
            file.write(",".join(cells) + f",{label},{three},{min(40, int(math.exp(min(s, 3)) * 2))}\n")
    features = "".join(
        f'[features.{n}]\ntype = "number"\nmin = {lo}\nmax = {hi}\n{more}\n'
        for n, lo, hi, more in [("a", 0, 100, ""), ("b", -10, 90, ""), ("c", 0, 5000, 'scale = "log"')])
    schemas = {}
    for name, target in [("two", 'column = "label"\nclasses = ["no", "yes"]'), ("three", 'column = "three"\nclasses = ["x", "y", "z"]'),
                         ("count", 'column = "count"\nbounds = [0, 40]')]:
        for scaling in ["ball", "sphere"]:
            text = f'[dataset]\nname = "numbers"\n[target]\n{target}\n{features}[encoding]\nscaling = "{scaling}"\n'
            schemas[name, scaling] = folder / f"{name}-{scaling}.toml"
            schemas[name, scaling].write_text(text)
    return path, schemas


def images(folder):
    """Pictures of 9 x 7 pixels in two channels as rows of a NumPy file; one is black, one has a pixel that is no number."""
    generator = np.random.default_rng(4)
    x = generator.integers(0, 256, size=(1500, 9 * 7 * 2)).astype(np.float32)
    y = (x[:, ::2].mean(axis=1) > x[:, 1::2].mean(axis=1)).astype(np.float32) + (x[:, 0] > 128)
    x[0], x[1, 0], x[2, 0] = 0, np.nan, 1e6
    np.save(folder / "images.npy", x)
    np.save(folder / "images-labels.npy", y)
    schemas = {}
    for name, target, more in [("ball", "classes = [0, 1, 2]", '[encoding]\nscaling = "ball"\n'), ("sphere", "classes = [0, 1, 2]", '[encoding]\nscaling = "sphere"\n'),
                               ("number", "bounds = [0, 2]", "[encoding]\nintercept = false\n")]:
        schemas[name] = folder / f"images-{name}.toml"
        schemas[name].write_text(f'[dataset]\nname = "images"\n[target]\n{target}\n[features]\nkind = "image"\nshape = [9, 7, 2]\nmax = 255\n{more}')
    return folder / "images.npy", folder / "images-labels.npy", schemas


def scattered(folder):
    """Pictures for scattering features: waves of a direction for each class, with noise; an even one, one with pixels that are no numbers or beyond the bounds."""
    generator = np.random.default_rng(6)
    for name, (height, width, channels), encoder, more in [
            ("small", (9, 7, 1), "scattering", ""), ("grey", (28, 28, 1), "scattering", ""), ("two", (17, 30, 2), "mirrored-scattering", ""),
            ("colour", (32, 32, 3), None, ""), ("ball", (16, 20, 1), "scattering", '[encoding]\nscaling = "ball"\n')]:
        y = generator.integers(0, 4, size=400)
        rows, columns = np.mgrid[:height, :width]
        angles = np.pi / 4 * y[:, None, None] + generator.normal(size=(400, 1, 1)) * 0.1
        waves = np.sin(1.2 * (np.cos(angles) * columns + np.sin(angles) * rows) + generator.uniform(0, 6, size=(400, 1, 1)))
        x = 128 + 90 * waves[..., None] + 40 * generator.normal(size=(400, height, width, channels))
        x = np.clip(x, 0, 255).astype(np.float32).reshape(400, -1)
        x[0], x[1, 0], x[2, :3] = 77, np.nan, [1e6, -20, np.inf]
        data, labels, schema = folder / f"scattered-{name}.npy", folder / f"scattered-{name}-labels.npy", folder / f"scattered-{name}.toml"
        np.save(data, x)
        np.save(labels, y.astype(np.float32))
        given = f'encoder = "{encoder}"\n' if encoder else ""
        shape = [height, width] if channels == 1 else [height, width, channels]
        schema.write_text(f'[dataset]\nname = "waves"\n[target]\nclasses = [0, 1, 2, 3]\n[features]\nkind = "image"\nshape = {shape}\nmax = 255\n{given}{more}')
        yield name, data, labels, schema


#: Every layer, pictures and rows of numbers, borders, strides, windows that do not divide, groups of a picture and of a row.
NETWORKS = {
    "linear": [],
    "dense": ["flatten", "dense 12", "tanh", "dense 6", "relu"],
    "windows": ["convolution 6 3 stride 2 padding 1", "relu", "max_pool 2 stride 1", "convolution 5 2", "tanh"],
    "groups": ["average_pool 2 stride 1", "convolution 6 3 padding 2", "group_norm 2", "relu", "average_pool 3", "flatten", "group_norm 6", "tanh"],
    "rows": ["flatten", "dense 8", "convolution 6 1", "group_norm 2", "tanh", "max_pool 1", "group_norm 1"],
}


with tempfile.TemporaryDirectory() as place:
    folder = pathlib.Path(place)
    good = []
    adult = root / "examples/adult/adult.csv.gz"
    for loss in ["logistic", "softmax", "huber-svm"]:
        good.append(compare(f"adult-{loss}", folder, adult, root / "examples/adult/schema.toml", None, 1.0, "--loss", loss, "--delta", "4e-10"))
    good.append(compare("adult-weighted-columns", folder, adult, root / "examples/adult/schema.toml", None, 1.0, "--delta", "4e-10",
                        "--method", "weighted-columns", "--set", "sparsity=20"))
    subprocess.run(["bash", root / "examples/energy/generate.sh"], check=True)
    good.append(compare("energy-squared", folder, root / "examples/energy/made/test.csv", root / "examples/energy/schema.toml", None, 400.0,
                        "--delta", "1e-8", "--loss", "squared"))
    # Curves, pairs and trees, of one score, of several, and of numbers alone.
    for loss, more in [("logistic", ["trees=40"]), ("softmax", ["trees=20", "depth=3"])]:
        sets = [word for setting in ["steps=40", *more] for word in ("--set", setting)]
        good.append(compare(f"adult-additive-{loss}", folder, adult, root / "examples/adult/schema.toml", None, 1.0, "--loss", loss,
                            "--delta", "4e-10", "--method", "additive", *sets))
    path, schemas = generated(folder)
    for target in ["two", "count"]:
        good.append(compare(f"{target}-additive", folder, path, schemas[target, "ball"], ["a", "b", "c"], 40.0, "--delta", "1e-8",
                            "--method", "additive", "--set", "pairs=3", "--set", "trees=50"))
    for scaling in ["ball", "sphere"]:
        for target, losses in [("two", ["logistic", "hinge"]), ("three", ["softmax", "logistic", "huber-svm"]),
                               ("count", ["squared", "huber", "quantile", "poisson"])]:
            for loss in losses:
                good.append(compare(f"{target}-{scaling}-{loss}", folder, path, schemas[target, scaling], ["a", "b", "c"], 40.0,
                                    "--loss", loss, "--delta", "1e-8"))
    rows, labels, schemas = dense(folder)
    for name, schema in schemas:
        good.append(compare(f"dense-{name}", folder, rows, schema, None, 1.0, "--labels", labels, "--delta", "1e-8"))
    # Large steps, so that weights are far from where they begin; but numbers must not all leave their bounds.
    few = {facts: ["--delta", "1e-8", "--set", "steps=8", "--set", f"learning_rate={rate}"] for facts, rate in [("ball", 3), ("sphere", 3), ("number", 0.05)]}
    rows, labels, schemas = images(folder)
    for name, layers in NETWORKS.items():
        for facts in schemas:
            good.append(compare(f"network-{name}-{facts}", folder, rows, schemas[facts], None, 2.0, "--labels", labels, *few[facts],
                                "--layers", ",".join(layers) or "linear"))
    # Inputs that are normalised: by what was paid for, and by what the schema states.
    for name in ["dense", "windows"]:
        good.append(compare(f"network-{name}-normalised", folder, rows, schemas["sphere"], None, 2.0, "--labels", labels, *few["sphere"],
                            "--set", "normalise=0.2", "--layers", ",".join(NETWORKS[name])))
        stated = folder / "images-stated.toml"
        stated.write_text(schemas["ball"].read_text().replace("max = 255", "max = 255\nmean = [120, 130]\ndeviation = [70, 80]"))
        good.append(compare(f"network-{name}-stated", folder, rows, stated, None, 2.0, "--labels", labels, *few["ball"],
                            "--layers", ",".join(NETWORKS[name])))
    good.append(compare("network-adult-normalised", folder, adult, root / "examples/adult/schema.toml", None, 1.0, "--delta", "4e-10",
                        "--layers", "dense 8, tanh", "--set", "steps=8", "--set", "normalise=0.1"))
    good.append(compare("network-adult", folder, adult, root / "examples/adult/schema.toml", None, 1.0, "--delta", "4e-10",
                        "--layers", "dense 8, tanh", "--set", "steps=8"))
    path, schemas = generated(folder)
    good.append(compare("network-numbers", folder, path, schemas["count", "ball"], ["a", "b", "c"], 40.0, *few["number"],
                        "--layers", "dense 8, group_norm 2, relu"))
    for name, data, labels, schema in scattered(folder):
        # So few rows teach noise, and long steps make scores of it that turn the last digits of features into whole percents.
        flags = ["--labels", labels, "--delta", "1e-8", "--set", "steps=20", "--set", "learning_rate=0.005"]
        good.append(compare(f"scattering-{name}", folder, data, schema, None, 1.0, *flags, tolerance=SCATTERING_TOLERANCE))
        if name == "grey":
            good.append(compare("scattering-layers", folder, data, schema, None, 1.0, *flags, "--layers", "convolution 6 3, tanh",
                                tolerance=SCATTERING_TOLERANCE))
            good.append(compare("scattering-linear", folder, data, schema, None, 1.0, "--labels", labels, "--delta", "1e-8", "--method", "noisy-gd",
                                "--loss", "softmax", tolerance=SCATTERING_TOLERANCE))
    sys.exit(0 if all(good) else 1)
