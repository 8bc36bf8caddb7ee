"""Correlated noise: factors next to jax-privacy, and digits with it next to Poisson samples.

    cargo build --release && python3 bench/correlated.py [--shared ../shared] [--fits 3] [--skip-digits | --skip-factors]

Factors: sensitivity over epochs and root-mean-square error of prefix sums, for up to 2,048 steps and 16 bands, against the public
reference implementation, in double precision; it is installed into a virtual environment beside this file (ignored by git) when it is
missing. The largest relative differences are printed. Digits: MNIST at epsilon 8, zero-out, delta 1e-5; the same scattering features
and scores, `correlated` against samples, and what `auto` takes.
"""
import argparse, json, os, pathlib, statistics, subprocess, sys, tempfile, venv

here = pathlib.Path(__file__).resolve().parent
STEPS, BANDS, SEPARATIONS, DECAYS = [16, 100, 777, 2048], [1, 2, 3, 4, 8, 16], [1, 7, 32, 128, 2048], [0.5, 0.9, 0.99]
SCHEMA = '[dataset]\nname = "mnist"\n[target]\nclasses = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]\n[features]\nkind = "image"\nshape = [28, 28]\nmax = 255\n'

PEER = """
import json, sys
import jax
jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp
from jax_privacy.matrix_factorization import toeplitz
worst = {"sensitivity": 0.0, "error": 0.0}
count = 0
for line in sys.stdin:
    ours = json.loads(line)
    n, factor = ours["steps"], ours["factor"]
    if "bands" in factor:
        noising = toeplitz.optimal_max_error_noising_coefs(max(n, 2))[: min(factor["bands"], n)]
    else:
        noising = jnp.array([1.0, -factor["decay"]])
    strategy = toeplitz.inverse_coef(noising, n)
    # Coefficients that are equal up to rounding are not to be taken for growing ones.
    square = toeplitz.minsep_sensitivity_squared(strategy, ours["separation"], ours["times"], n, skip_checks=True)
    # It takes as many steps as there are coefficients.
    error = jnp.sqrt(jnp.mean(toeplitz.per_query_error(noising_coef=toeplitz.pad_coefs_to_n(noising, n), n=n, skip_checks=True)))
    for name, theirs in (("sensitivity", float(jnp.sqrt(square))), ("error", float(error))):
        worst[name] = max(worst[name], abs(ours[name] / theirs - 1.0))
    count += 1
print(json.dumps({"settings": count, "largest relative difference": worst, "reached": max(worst.values()) <= 1e-6}))
"""


def factors(binary):
    env = here / ".venv-jax"
    if not env.exists():
        venv.create(env, with_pip=True)
        subprocess.run([env / "bin" / "pip", "install", "-q", "jax-privacy"], check=True)
    text = lambda numbers: ",".join(map(str, numbers))
    ours = subprocess.run([binary, "factors", "--steps", text(STEPS), "--bands", text(BANDS), "--separations", text(SEPARATIONS), "--decays", text(DECAYS)], check=True, capture_output=True)
    subprocess.run([env / "bin" / "python", "-c", PEER], input=ours.stdout, check=True)


def digits(binary, shared, fits, threads):
    at = lambda part: os.path.join(shared, "data", part)
    pair = lambda part: ["--data", at(part + "_images.idx3.gz"), "--labels", at(part + "_labels.idx1.gz")]
    means = {}
    with tempfile.TemporaryDirectory() as out:
        facts, model = os.path.join(out, "schema.toml"), os.path.join(out, "model.json")
        open(facts, "w").write(SCHEMA)
        for name, more in (("correlated", ["--set", "correlated=true"]), ("samples", ["--set", "correlated=false"]), ("auto", [])):
            found = []
            for _ in range(fits):
                subprocess.run([binary, "fit", *pair("mnist_train"), "--schema", facts, "--epsilon", "8", "--delta", "1e-5", "--threads", threads, "--out", model, "--force", *more], check=True, capture_output=True)
                rows = subprocess.run([binary, "evaluate", "--model", model, *pair("mnist_t10k_even"), "--format", "json"], check=True, capture_output=True)
                found.append(json.loads(rows.stdout)["accuracy"])
            means[name] = statistics.mean(found)
            print(json.dumps({"data": "mnist", "epsilon": 8, "noise": name, "accuracy": round(means[name], 4), "fits": found}), flush=True)
    print(json.dumps({"not below samples": means["correlated"] >= means["samples"]}))


a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
a.add_argument("--shared", default=str(here.parent.parent / "shared"))
a.add_argument("--binaries", default=str(here.parent / "target" / "release"))
a.add_argument("--fits", type=int, default=3)
a.add_argument("--threads", default="2")
a.add_argument("--skip-digits", action="store_true")
a.add_argument("--skip-factors", action="store_true")
a = a.parse_args()
if not a.skip_factors:
    factors(os.path.join(a.binaries, "privfit-bench"))
if not a.skip_digits:
    digits(os.path.join(a.binaries, "privfit"), a.shared, a.fits, a.threads)
