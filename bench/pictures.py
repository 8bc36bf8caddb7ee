"""Accuracy of default fits on shared pictures, next to the numbers to beat.

    cargo build --release && python3 bench/pictures.py --shared ../shared [--fits 3] [--only mnist,cifar]

Nothing is tuned: every fit is `privfit fit` with epsilon, delta and threads alone, zero-out, delta 1e-5; test rows are looked at once.
Pictures of CIFAR-10 are read from their zip file in place.
"""
import argparse, json, os, statistics, subprocess, tempfile, time

DIGITS = '[dataset]\nname = "{name}"\n[target]\nclasses = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]\n[features]\nkind = "image"\nshape = [28, 28]\nmax = 255\n'
CIFAR = ('[dataset]\nname = "cifar"\n[target]\nclasses = ["0_airplane", "1_automobile", "2_bird", "3_cat", "4_deer", "5_dog", "6_frog", "7_horse", "8_ship", "9_truck"]\n'
         '[features]\nkind = "image"\nshape = [32, 32, 3]\nmax = 255\n')

# name, epsilon, least accuracy, published with comparable means
TASKS = [
    ("mnist", 1.2, 0.980, "0.955 recursive momentum"), ("mnist", 3.0, 0.987, "0.987 scattering"), ("mnist", 7.0, 0.989, "0.971 recursive momentum"),
    ("fashion", 1.0, 0.875, ""), ("fashion", 3.0, 0.895, "0.897 scattering"), ("cifar", 3.0, 0.62, "0.670 scattering, twice as many pictures"),
]


def files(name, shared):
    data = os.path.join(shared, "data")
    at = lambda part: os.path.join(data, part)
    if name == "cifar":
        return CIFAR, ["--data", at("cifar10_jpeg_half.zip/train")], ["--data", at("cifar10_jpeg_half.zip/test")]
    train, test = {"mnist": ("mnist_train", "mnist_t10k_even"), "fashion": ("fashion_mnist_train", "fashion_mnist_t10k")}[name]
    pair = lambda part: ["--data", at(part + "_images.idx3.gz"), "--labels", at(part + "_labels.idx1.gz")]
    return DIGITS.format(name=name), pair(train), pair(test)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--shared", default="../shared")
    a.add_argument("--binary", default="target/release/privfit")
    a.add_argument("--fits", type=int, default=3)
    a.add_argument("--only", default="")
    a.add_argument("--threads", default="2")
    a = a.parse_args()
    for name, epsilon, bar, published in TASKS:
        if a.only and name not in a.only.split(","):
            continue
        schema, train, test = files(name, a.shared)
        found, seconds = [], []
        with tempfile.TemporaryDirectory() as out:
            facts, model = os.path.join(out, "schema.toml"), os.path.join(out, "model.json")
            open(facts, "w").write(schema)
            for _ in range(a.fits):
                begin = time.time()
                fit = [a.binary, "fit", *train, "--schema", facts, "--epsilon", str(epsilon), "--delta", "1e-5", "--threads", a.threads, "--out", model, "--force"]
                subprocess.run(fit, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                seconds.append(time.time() - begin)
                rows = subprocess.run([a.binary, "evaluate", "--model", model, *test, "--format", "json"], check=True, capture_output=True)
                found.append(json.loads(rows.stdout)["accuracy"])
        deviation = statistics.stdev(found) if len(found) > 1 else 0.0
        print(json.dumps({"data": name, "epsilon": epsilon, "accuracy": round(statistics.mean(found), 4), "deviation": round(deviation, 4), "bar": bar,
                          "reached": statistics.mean(found) >= bar, "published": published, "seconds": round(statistics.mean(seconds), 1), "fits": len(found)}), flush=True)


main()
