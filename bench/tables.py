"""Learning on tables beside other tools: ours, DP-EBM, diffprivlib and boosting without privacy, in one run.

    cargo build --release
    python3 -m venv ebm && ebm/bin/pip install interpret scikit-learn pandas
    python3 -m venv ibm && ibm/bin/pip install diffprivlib "scikit-learn<1.7" pandas
    ebm/bin/python bench/tables.py --shared ../shared --diffprivlib ibm/bin/python [--epsilon 1] [--fits 3] [--only adult,bike]
    ebm/bin/python bench/tables.py --speed [--rows 1000000] [--columns 30]

Splits are those of bench/accuracy.py, delta is 1/n^2, zero-out for ours; every tool has its default settings and the bounds of the schema.
Processor seconds: ours with its process and the CSV file, the others the fit alone. diffprivlib has no model of a table: numbers are
scaled by their bounds, categories become indicators, rows have norm at most 1. `--speed` compares the fit of ours with histogram
boosting of scikit-learn on generated rows: two classes, numbers between bounds.
"""
import argparse, json, os, resource, subprocess, sys, tempfile, time, tomllib
import accuracy

NAMES = {"adult": "adult", "credit": "credit_default", "california": "california_housing", "bike": "bike_sharing_hour", "wine": "wine_quality"}


def read(directory, part, schema):
    """Columns as pandas has them, and the target."""
    import pandas
    table = pandas.read_csv(os.path.join(directory, part + ".csv"), dtype=str, keep_default_na=False)
    columns, kinds = {}, {}
    for name, feature in schema["features"].items():
        if feature["type"] == "number":
            columns[name] = pandas.to_numeric(table[name], errors="coerce").clip(feature["min"], feature["max"])
        elif feature["type"] == "category":
            listed = [str(v) for v in feature["values"]]
            columns[name] = table[name].where(table[name].isin(listed), "other")
        else:
            continue
        kinds[name] = feature
    target, y = schema["target"], table[schema["target"]["column"]]
    if "bounds" in target:
        return pandas.DataFrame(columns), y.astype(float).to_numpy(), kinds
    second = target["positive"] if "positive" in target else [str(c) for c in target["classes"]][1:]
    return pandas.DataFrame(columns), y.isin(second).astype(int).to_numpy(), kinds


def metrics(y, found, classes):
    import numpy
    if not classes:
        return {"rmse": float(numpy.sqrt(numpy.mean((found - y) ** 2)))}
    from sklearn.metrics import roc_auc_score
    return {"accuracy": float(numpy.mean((found > 0.5) == y)), "auc": float(roc_auc_score(y, found))}


def timed(work):
    start = time.process_time()
    out = work()
    return out, time.process_time() - start


def ebm(train, test, schema, epsilon, delta):
    from interpret.privacy import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor
    kinds = train[2]
    bounds = {n: (k["min"], k["max"]) if k["type"] == "number" else None for n, k in kinds.items()}
    options = dict(epsilon=epsilon, delta=delta, feature_names=list(kinds), n_jobs=1,
                   feature_types=["continuous" if k["type"] == "number" else "nominal" for k in kinds.values()],
                   privacy_bounds={n: b for n, b in bounds.items() if b})
    target = schema["target"]
    if "bounds" in target:
        model = DPExplainableBoostingRegressor(privacy_target_min=target["bounds"][0], privacy_target_max=target["bounds"][1], **options)
        _, seconds = timed(lambda: model.fit(train[0], train[1]))
        return model.predict(test[0]), seconds
    model = DPExplainableBoostingClassifier(**options)
    _, seconds = timed(lambda: model.fit(train[0], train[1]))
    return model.predict_proba(test[0])[:, 1], seconds


def boosting(train, test, schema, epsilon, delta):
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    frames = [x[0].copy() for x in (train, test)]
    for name, kind in train[2].items():
        if kind["type"] == "category":
            import pandas
            values = [str(v) for v in kind["values"]] + ["other"]
            for frame in frames:
                frame[name] = pandas.Categorical(frame[name], categories=values)
    number = "bounds" in schema["target"]
    model = (HistGradientBoostingRegressor if number else HistGradientBoostingClassifier)(categorical_features="from_dtype")
    _, seconds = timed(lambda: model.fit(frames[0], train[1]))
    return model.predict(frames[1]) if number else model.predict_proba(frames[1])[:, 1], seconds


def diffprivlib(train, test, schema, epsilon, delta):
    import numpy
    import diffprivlib.models as models

    def encode(frame):
        parts = []
        for name, kind in train[2].items():
            if kind["type"] == "number":
                middle, half = (kind["min"] + kind["max"]) / 2, (kind["max"] - kind["min"]) / 2
                parts.append(((frame[name].fillna(middle) - middle) / half).to_numpy()[:, None])
            else:
                parts.append(numpy.stack([(frame[name] == str(v)).to_numpy(float) for v in kind["values"]], axis=1))
        x = numpy.hstack(parts)
        return x / numpy.sqrt(len(train[2]))

    x, held = encode(train[0]), encode(test[0])
    if "bounds" in schema["target"]:
        model = models.LinearRegression(epsilon=epsilon, bounds_X=(-1, 1), bounds_y=tuple(schema["target"]["bounds"]))
        _, seconds = timed(lambda: model.fit(x, train[1]))
        return model.predict(held), seconds
    model = models.LogisticRegression(epsilon=epsilon, data_norm=1.0, max_iter=1000)
    _, seconds = timed(lambda: model.fit(x, train[1]))
    return model.predict_proba(held)[:, 1], seconds


PEERS = {"dp-ebm": ebm, "boosting, not private": boosting, "diffprivlib": diffprivlib}


def spent():
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


def ours(binary, directory, schema, epsilon, delta):
    model, start = os.path.join(directory, "model.json"), spent()
    accuracy.run([binary, "fit", "--data", os.path.join(directory, "train.csv"), "--schema", schema, "--epsilon", str(epsilon), "--delta",
                  repr(delta), "--out", model, "--force", "--format", "json"])
    seconds = spent() - start
    found = accuracy.run([binary, "evaluate", "--model", model, "--data", os.path.join(directory, "test.csv"), "--format", "json"])
    return {k: found[k] for k in ("accuracy", "auc", "rmse") if k in found}, seconds


def compare(a):
    print("| table | tool | result | processor seconds |\n|---|---|---|---|")
    for name, file in NAMES.items():
        if a.only and name not in a.only.split(","):
            continue
        with tempfile.TemporaryDirectory() as directory:
            rows = accuracy.split_table(os.path.join(a.shared, "data", file + ".csv.gz"), directory)
            path = os.path.join(a.shared, "schemas", file + ".toml")
            schema = tomllib.load(open(path, "rb"))
            train, test = (read(directory, part, schema) for part in ("train", "test"))
            results = {} if a.peer else {"privfit": [ours(a.binary, directory, path, a.epsilon, rows ** -2.0) for _ in range(a.fits)]}
            for tool, fit in PEERS.items():
                if tool == "diffprivlib" and a.peer != tool:
                    if a.diffprivlib:
                        command = [a.diffprivlib, __file__, "--peer", tool, "--only", name, "--fits", str(a.fits), "--epsilon", str(a.epsilon), "--shared", a.shared]
                        done = subprocess.run(command, capture_output=True, text=True)
                        results[tool] = json.loads(done.stdout.split("\n")[-2]) if done.returncode == 0 else done.stderr.strip().split("\n")[-1]
                    continue
                if a.peer and tool != a.peer:
                    continue
                try:
                    found = [fit(train, test, schema, a.epsilon, rows ** -2.0) for _ in range(a.fits)]
                    results[tool] = [(metrics(test[1], f, "bounds" not in schema["target"]), s) for f, s in found]
                except Exception as error:
                    results[tool] = "refuses: " + str(error).split("\n")[0][:80]
            if a.peer:
                print("\n" + json.dumps(results[a.peer]))
                return
            for tool, found in results.items():
                if isinstance(found, str):
                    print("| %s | %s | %s | |" % (name, tool, found))
                    continue
                mean = lambda values: sum(values) / len(values)
                text = ", ".join("%s %.5g" % (key, mean([m[key] for m, _ in found])) for key in found[0][0])
                print("| %s | %s | %s | %.3f |" % (name, tool, text, mean([s for _, s in found])), flush=True)


def speed(a):
    """The whole fit on generated rows. A fit of one step stands for reading the file, and is subtracted."""
    import numpy
    from sklearn.ensemble import HistGradientBoostingClassifier
    rng = numpy.random.default_rng(1)
    x = rng.uniform(-1, 1, (a.rows, a.columns)).astype(numpy.float32)
    score = 2 * numpy.abs(x[:, 0]) + numpy.sin(4 * x[:, 1]) - x[:, 3] + x[:, 4] * x[:, 5] - 1
    y = (rng.random(a.rows) < 1 / (1 + numpy.exp(-2 * score))).astype(int)
    with tempfile.TemporaryDirectory() as directory:
        names = ["c%d" % j for j in range(a.columns)]
        schema = os.path.join(directory, "schema.toml")
        open(schema, "w").write('[dataset]\nname = "speed"\n[target]\ncolumn = "y"\nclasses = ["0", "1"]\n' + "".join(
            '[features.%s]\ntype = "number"\nmin = -1\nmax = 1\n' % n for n in names))
        data = os.path.join(directory, "train.csv")
        import pandas
        frame = pandas.DataFrame(x, columns=names)
        frame["y"] = y
        frame.to_csv(data, index=False, float_format="%.5g")
        common = [a.binary, "fit", "--data", data, "--schema", schema, "--epsilon", str(a.epsilon), "--delta", repr(a.rows ** -2.0), "--out",
                  os.path.join(directory, "model.json"), "--force", "--format", "json", "--threads", "1", "--method", "additive"]

        def fit(settings):
            start = spent()
            accuracy.run(common + [w for s in settings for w in ("--set", s)])
            return spent() - start

        read_only = fit(["steps=1", "pairs=0", "trees=0"])
        _, boosted = timed(lambda: HistGradientBoostingClassifier().fit(x, y))
        out = {"rows": a.rows, "columns": a.columns, "reading_cpu_s": read_only, "boosting_cpu_s": boosted}
        for what, settings in (("additive", ["pairs=0", "trees=0"]), ("with_pairs", ["trees=0"]), ("with_trees", ["trees=500"])):
            seconds = fit(settings) - read_only
            out[what + "_cpu_s"], out[what + "_over_boosting"] = seconds, seconds / boosted
        print(json.dumps(out))


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--shared", default="../shared")
    a.add_argument("--binary", default="target/release/privfit")
    a.add_argument("--epsilon", type=float, default=1.0)
    a.add_argument("--fits", type=int, default=3)
    a.add_argument("--only", default="")
    a.add_argument("--diffprivlib", default="", help="a Python that has diffprivlib")
    a.add_argument("--peer", default="", help=argparse.SUPPRESS)
    a.add_argument("--speed", action="store_true")
    a.add_argument("--rows", type=int, default=1_000_000)
    a.add_argument("--columns", type=int, default=30)
    a = a.parse_args()
    speed(a) if a.speed else compare(a)


if __name__ == "__main__":
    main()
