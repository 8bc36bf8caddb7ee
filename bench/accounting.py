"""privfit beside dp-accounting and prv-accountant, one run on one machine.

    python3 bench/accounting.py [--peers ../shared/peers/accounting.py] [--privfit target/release/privfit]

Installs the peers into a virtual environment beside this file (ignored by git) when it is missing. Prints one line a setting:
certified bounds, processor seconds, and the ratio of each peer's processor time to ours.
"""
import argparse, json, pathlib, subprocess, sys, venv

here = pathlib.Path(__file__).resolve().parent
ap = argparse.ArgumentParser()
ap.add_argument("--peers", default=here.parent.parent / "shared" / "peers" / "accounting.py")
ap.add_argument("--privfit", default=here.parent / "target" / "release" / "privfit")
ap.add_argument("--repeats", default="3")
a = ap.parse_args()
env = here / ".venv"
if not env.exists():
    venv.create(env, with_pip=True)
    subprocess.run([env / "bin" / "pip", "install", "-q", "dp-accounting", "prv-accountant"], check=True)


def lines(command):
    out = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=True).stdout
    return {r["setting"]: r for r in map(json.loads, out.splitlines())}


ours = lines([a.privfit, "bench", "account", "--repeats", "10"])
peers = {}
for peer in ("dp-accounting-pld", "prv-accountant"):
    try:
        peers[peer] = lines([env / "bin" / "python", a.peers, "--peer", peer, "--repeats", a.repeats])
    except subprocess.CalledProcessError as e:
        print(f"{peer} failed: {e.stderr.strip().splitlines()[-1]}", file=sys.stderr)
for name, r in ours.items():
    text = f"{name:10} [{r['lower']:.6f}, {r['upper']:.6f}] gap {100 * r['relative_gap']:.3f} % {1e3 * r['cpu_s']:8.3f} ms {r['rss_mb']:5.0f} MB"
    for peer, rows in peers.items():
        p = rows.get(name, {})
        if "eps" in p:
            cpu = min(p["cpu_s"])
            text += f" | {peer} {p['eps']:.6f} {1e3 * cpu:8.1f} ms = {cpu / r['cpu_s']:.0f}x"
        else:
            text += f" | {peer} {p.get('error', 'absent')[:40]}"
    print(text, flush=True)
