"""Private labels on real data: accuracy of students, and the time of 250 teachers.

    cargo build --release && python3 bench/labels.py --shared ../shared [--only adult,mnist] [--runs 5] [--validation] [--time] [--set KEY=VALUE ...]

Public points are cut from the training rows by splitmix64 of row and run, and are in no part. Test rows are those of `accuracy.py`. With --validation, a tenth of the training
rows takes their place, which is what settings were chosen on. --time labels once with 250 parts and prints seconds. Every line is one run, the last lines are means.
"""
import argparse, gzip, json, os, statistics, struct, subprocess, tempfile, time

from accuracy import GOLDEN, IMAGE, MASK, splitmix64, test_row

# name, points, epsilon, delta (None: 1/n^2), bar
CASES = [("adult", 2000, 1.0, None, 0.835), ("mnist", 1000, 2.0, 1e-5, 0.96), ("mnist", 5000, 2.0, 1e-5, 0.975)]


def order(rows, run):
    """Rows by chance: the first ones are public, the next ones are for validation."""
    return sorted(rows, key=lambda i: splitmix64((GOLDEN * (run + 2) + i) & MASK))


def parts(rows, points, run, validation):
    rows = order(rows, run)
    public, rest = rows[:points], rows[points:]
    held = rest[: len(rest) // 10] if validation else []
    return public, sorted(rest[len(held):]), held


def adult(shared, out, points, run, validation):
    with gzip.open(os.path.join(shared, "data", "adult.csv.gz"), "rt", newline="") as f:
        lines = f.read().split("\n")
    head, rows = lines[0], [line for line in lines[1:] if line]
    train = [i for i in range(len(rows)) if not test_row(i)]
    public, private, held = parts(train, points, run, validation)
    files = {"public": public, "private": private, "test": held or [i for i in range(len(rows)) if test_row(i)]}
    for name, chosen in files.items():
        with open(os.path.join(out, name + ".csv"), "w") as f:
            f.write("\n".join([head] + [rows[i] for i in chosen]) + "\n")
    place = lambda name: os.path.join(out, name + ".csv")
    schema = os.path.join(shared, "schemas", "adult.toml")
    return dict(schema=schema, rows=len(private), data=["--data", place("private")], points=place("public"), test=["--data", place("test")])


def idx(path):
    raw = gzip.open(path).read()
    count = struct.unpack(">I", raw[4:8])[0]
    start = 4 + 4 * raw[3]
    size = (len(raw) - start) // count
    return raw, start, size, count


def mnist(shared, out, points, run, validation):
    data = lambda name: os.path.join(shared, "data", name)
    images, labels = idx(data("mnist_train_images.idx3.gz")), idx(data("mnist_train_labels.idx1.gz"))
    public, private, held = parts(range(images[3]), points, run, validation)

    def write(name, source, chosen):
        raw, start, size, _ = source
        with open(os.path.join(out, name), "wb") as f:
            f.write(raw[:4] + struct.pack(">I", len(chosen)) + raw[8:start])
            f.write(b"".join(raw[start + i * size : start + (i + 1) * size] for i in chosen))
        return os.path.join(out, name)

    schema = os.path.join(out, "schema.toml")
    open(schema, "w").write(IMAGE)
    own = ["--data", write("private.idx3", images, private), "--labels", write("private.idx1", labels, private)]
    test = ["--data", data("mnist_t10k_even_images.idx3.gz"), "--labels", data("mnist_t10k_even_labels.idx1.gz")]
    if held:
        test = ["--data", write("held.idx3", images, held), "--labels", write("held.idx1", labels, held)]
    return dict(schema=schema, rows=len(private), data=own, points=write("public.idx3", images, public), test=test)


def run_json(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[0])


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--shared", default="../shared")
    a.add_argument("--binary", default="target/release/privfit")
    a.add_argument("--only", default="")
    a.add_argument("--points", type=int)
    a.add_argument("--runs", type=int, default=5)
    a.add_argument("--epsilon", type=float, help="in the place of that of the case")
    a.add_argument("--student", default="auto")
    a.add_argument("--validation", action="store_true")
    a.add_argument("--time", action="store_true")
    a.add_argument("--set", action="append", default=[])
    a = a.parse_args()
    means = []
    for name, points, epsilon, delta, bar in CASES:
        if a.only and name not in a.only.split(",") or a.points and points != a.points:
            continue
        accuracies, answered = [], []
        for run in range(1 if a.time else a.runs):
            with tempfile.TemporaryDirectory() as out:
                case = {"adult": adult, "mnist": mnist}[name](a.shared, out, points, run, a.validation)
                delta_here = delta or 1.0 / case["rows"] ** 2
                sets = a.set + (["parts=250"] if a.time else [])
                model, labels = os.path.join(out, "model.json"), os.path.join(out, "labels.json")
                command = [a.binary, "label", *case["data"], "--schema", case["schema"], "--points", case["points"], "--epsilon", str(a.epsilon or epsilon),
                           "--delta", repr(delta_here), "--out", labels, "--model", model, "--student", a.student, "--format", "json"]
                for one in sets:
                    command += ["--set", one]
                start = time.time()
                found = run_json(command)
                seconds = time.time() - start
                measured = run_json([a.binary, "evaluate", "--model", model, *case["test"], "--format", "json"])
                accuracies.append(measured["accuracy"])
                answered.append(found["answered"])
                line = {"data": name, "points": points, "run": run, "accuracy": measured["accuracy"], "answered": found["answered"], "parts": found["parts"],
                        "noise": round(found["noise"], 2), "epsilon": found["epsilon"]["zero_out"], "seconds": round(seconds, 1)}
                print(json.dumps(line), flush=True)
        means.append({"data": name, "points": points, "runs": len(accuracies), "accuracy": round(statistics.mean(accuracies), 5),
                      "deviation": round(statistics.stdev(accuracies), 5) if len(accuracies) > 1 else None, "answered": statistics.mean(answered),
                      "bar": bar, "rows": "validation" if a.validation else "test"})
    for mean in means:
        print(json.dumps(mean))


if __name__ == "__main__":
    main()
