"""Examples a second in private training of networks, beside other tools, in one run.

    cargo build --release -p privfit-bench && python3 bench/networks.py --shared ../shared --python PYTHON [--threads 1]

PYTHON is an interpreter with torch and opacus. Every line is one measurement in the form of the shared harness (`peers/dpsgd.py`), examples per processor second; the last
lines are ratios of medians. Ours include Poisson samples and exact noise, theirs take batches that are ready.
"""
import argparse, json, os, statistics, subprocess

PEERS = {"cnn": ["torch", "opacus-hooks", "opacus-ew", "opacus-ghost"], "linear": ["torch", "opacus-ghost"]}


def measure(command):
    done = subprocess.run(command, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not lines:
        return None
    print(lines[-1], flush=True)
    return statistics.median(json.loads(lines[-1])["ex_per_cpu_s"])


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--shared", default="../shared")
    a.add_argument("--binary", default="target/release/privfit-bench")
    a.add_argument("--python", required=True)
    a.add_argument("--threads", default="1")
    a.add_argument("--seconds", default="2")
    a = a.parse_args()
    ratios = []
    for model, peers in PEERS.items():
        for batch in ["256", "1024"]:
            rest = ["--model", model, "--batch", batch, "--threads", a.threads, "--seconds", a.seconds]
            own = measure([a.binary, "network", *rest])
            for peer in peers:
                other = measure([a.python, os.path.join(a.shared, "peers", "dpsgd.py"), "--peer", peer, *rest])
                if own and other:
                    ratios.append({"model": model, "batch": int(batch), "peer": peer, "ratio": round(own / other, 2)})
    for ratio in ratios:
        print(json.dumps(ratio))


main()
