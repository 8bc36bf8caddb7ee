"""Private labels under bad luck: a server that is killed 500 times, and a command that does whatever it wants on one part of two.

    cargo build --release -p privfit-cli && python3 bench/label_faults.py [--kills 500] [--pairs 200]

Kills: a server of labels is killed at a random moment, again and again under one request. Every stretch that its answers came from must be in the ledger. Pairs: data with
and without one record on which the command crashes, hangs, forks, fills its memory or its disk, prints garbage, answers too little, or answers by the clock. Exit code, standard
output (but for the released number of answers), standard error and what is left in the temporary directory must be the same; the last line has the times of both worlds.
"""
import argparse, json, os, random, signal, sqlite3, statistics, subprocess, tempfile, time

SCHEMA = ('[dataset]\nname = "visits"\n[target]\ncolumn = "ill"\nclasses = ["no", "yes"]\n'
          '[features.age]\ntype = "number"\nmin = 0\nmax = 100\n[features.ward]\ntype = "category"\nvalues = ["A", "B"]\n')


def write(out, rows, odd):
    with open(os.path.join(out, "d.csv"), "w") as f:
        f.write("age,ward,ill\n")
        for i in range(rows):
            age = 20 + i * 7 % 60
            f.write(odd if i == 7 else f"{age},{'A' if i % 3 else 'B'},{'yes' if age > 50 else 'no'}\n")
    open(os.path.join(out, "s.toml"), "w").write(SCHEMA)
    open(os.path.join(out, "p.csv"), "w").write("age,ward\n" + "".join(f"{20 + i},A\n" for i in range(20)))


def kills(binary, count):
    with tempfile.TemporaryDirectory() as out:
        env = {**os.environ, "XDG_STATE_HOME": out}
        write(out, 2000, "30,A,no\n")
        run = lambda line: subprocess.run([binary, *line.split()], cwd=out, check=True, capture_output=True, env=env)
        run("ledger create b --schema s.toml --epsilon 100000 --delta 1e-6")
        line = "label --data d.csv --schema s.toml --epsilon 3000 --delta 1e-7 --serve --unsure 900 --set parts=100 --ledger b --request desk --threads 1"
        implied, killed, answers = 0, 0, 0
        for number in range(count):
            process = subprocess.Popen([binary, *line.split()], cwd=out, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
            points = "age,ward\n" + "".join(f"{random.choice([20] * 30 + [80] * 30 + [50])},A\n" for _ in range(50))
            try:
                process.stdin.write(points.encode())
                process.stdin.flush()
            except BrokenPipeError:
                pass
            # At any moment, or soon after some answer.
            early = [process.stdout.readline() for _ in range(random.randrange(1, 30))] if number % 3 else []
            time.sleep(random.uniform(0.0, 0.5) if not early else random.uniform(0.0, 0.003))
            process.send_signal(signal.SIGKILL)
            killed += 1
            told, said = process.communicate()
            lines = (b"".join(early) + told).decode().splitlines()
            answers += len(lines)
            # The first answer is of a stretch, and so is each that follows an unsure one.
            implied += bool(lines) + sum(line == "?" for line in lines[:-1])
            if b"unsure answers of this request are spent" in said:
                break
        show = subprocess.run([binary, "ledger", "verify", "b"], cwd=out, capture_output=True, text=True, env=env)
        bodies = [row[0] for row in sqlite3.connect(os.path.join(out, "b")).execute("select body from record")]
        begun = sum("checkpoint" in body for body in bodies)
        print(json.dumps({"kills": killed, "answers": answers, "stretches that answers came from": implied, "stretches in the ledger": begun,
                          "ledger verifies": show.returncode == 0, "holds": implied <= begun and show.returncode == 0}), flush=True)


BAD = ["exit 9", "kill -9 $$", "sleep 60", "sleep 60 & sleep 60 & exit", "python3 -c 'x = bytearray(1 << 32)' || exit 1", "echo nonsense > \"$3\"; exit", "head -n 1 \"$1\" > \"$3\"; exit",
       "head -c 100000000 /dev/zero > big; exit", "n=$((n - 1))", "date +%N | cut -c1 > \"$3\"; exit", ": > /tmp/left; exit", "echo said; echo told >&2"]


def pairs(binary, count, seconds):
    differ, times = [], {True: [], False: []}
    for number in range(count):
        bad = BAD[number % len(BAD)]
        seen = {}
        for odd in (True, False):
            with tempfile.TemporaryDirectory() as out, tempfile.TemporaryDirectory() as temporary:
                write(out, 60, "100,A,yes\n" if odd else "30,A,no\n")
                with open(os.path.join(out, "learner.sh"), "w") as f:
                    f.write("n=$(($(wc -l < \"$2\") - 1))\nif grep -q '^1,' \"$1\"; then\n%s\nfi\nyes 1 | head -n $n > \"$3\"\n" % bad)
                command = [binary, "label", "--data", "d.csv", "--schema", "s.toml", "--points", "p.csv", "--epsilon", "2", "--delta", "1e-6", "--out", "l.json", "--format", "json",
                           "--set", "parts=2", "--seconds", str(seconds), "--command-memory", "1GB", "--command", "sh learner.sh"]
                start = time.time()
                done = subprocess.run(command, cwd=out, capture_output=True, text=True, env={**os.environ, "TMPDIR": temporary})
                times[odd].append(time.time() - start)
                said = json.loads(done.stdout) if done.returncode == 0 else {"failed": done.stdout}
                said.pop("answered", None)
                seen[odd] = (done.returncode, said, done.stderr, os.listdir(temporary), sorted(os.listdir(out)))
        if seen[True] != seen[False] or seen[True][0] != 0:
            differ.append((bad, seen))
    for one in differ[:3]:
        print(one)
    spread = lambda t: {"median": round(statistics.median(t), 3), "least": round(min(t), 3), "most": round(max(t), 3)}
    print(json.dumps({"pairs": count, "differ": len(differ), "seconds with": spread(times[True]), "seconds without": spread(times[False])}), flush=True)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--binary", default="target/release/privfit")
    a.add_argument("--kills", type=int, default=500)
    a.add_argument("--pairs", type=int, default=200)
    a.add_argument("--seconds", type=float, default=0.3)
    a = a.parse_args()
    binary = os.path.abspath(a.binary)
    if a.kills:
        kills(binary, a.kills)
    if a.pairs:
        pairs(binary, a.pairs, a.seconds)


if __name__ == "__main__":
    main()
