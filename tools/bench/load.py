"""How long a sharded bf16 checkpoint takes to become a model in f32, beside Python's safetensors and torch.

    cargo build --release -p burn-zoo-tests
    pip install -r tools/golden/requirements.txt
    python tools/bench/load.py --bin target/release/load --gib 2

The zoo writes the checkpoint and both load it, in turn, each in a process of its own: Python with
`safe_open`, tensor by tensor into the parameters of a model that is there already, as `load_state_dict`
does. Anonymous memory (RssAnon) is looked at every millisecond. Prints a table and the ratio.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

SIDE = 4096

PEER = """
import json, sys, threading, time
import torch
from safetensors import safe_open
torch.set_num_threads(int(sys.argv[4]))

def anonymous():
    line = next(l for l in open("/proc/self/status") if l.startswith("RssAnon"))
    return int(line.split()[1]) * 1024

folder, count, side = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
before, peak, done = anonymous(), 0, False

def watch():
    global peak
    while not done:
        peak = max(peak, anonymous())
        time.sleep(0.001)

thread = threading.Thread(target=watch)
thread.start()
started = time.perf_counter()
model = {f"weights.{i}": torch.empty(side, side) for i in range(count)}
index = json.load(open(folder + "/model.safetensors.index.json"))["weight_map"]
for shard in sorted(set(index.values())):
    with safe_open(f"{folder}/{shard}", framework="pt") as tensors:
        for key in tensors.keys():
            model[key].copy_(tensors.get_tensor(key))
seconds = time.perf_counter() - started
done = True
thread.join()
peak = max(peak, anonymous())
assert float(model[f"weights.{count - 1}"][0, 0]) == count - 1
bytes = sum(t.numel() * 4 for t in model.values())
print(json.dumps({"seconds": seconds, "peak_anonymous": peak - before, "model_bytes": bytes}))
"""


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout) if done.stdout.strip() else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=Path, required=True, help="the program `load`")
    parser.add_argument("--gib", type=float, default=2, help="size of the checkpoint")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    count = round(args.gib * 2**30 / (2 * SIDE * SIDE))
    with tempfile.TemporaryDirectory() as folder:
        run(args.bin, "write", folder, count, SIDE, 500_000_000)
        sides = {
            "zoo, flex": lambda: run(args.bin, "read", folder, count, SIDE),
            "Python": lambda: run(sys.executable, "-c", PEER, folder, count, SIDE, args.threads),
        }
        runs = {name: [] for name in sides}
        for _ in range(args.runs):
            for name, side in sides.items():
                runs[name].append(side())
    print(f"{count} matrices of {SIDE} x {SIDE}, bf16 in the file, f32 in memory; {args.runs} runs in turn\n")
    print("| | median s | least s | peak RssAnon / model |")
    print("|---|---|---|---|")
    median = {}
    for name, results in runs.items():
        seconds = [r["seconds"] for r in results]
        median[name] = statistics.median(seconds)
        peak = max(r["peak_anonymous"] / r["model_bytes"] for r in results)
        print(f"| {name} | {median[name]:.2f} | {min(seconds):.2f} | {peak:.3f} |")
    print(f"\nspeed of the zoo / of Python: {median['Python'] / median['zoo, flex']:.2f}")


if __name__ == "__main__":
    main()
