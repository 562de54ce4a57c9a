"""`zoo bench` beside PyTorch: the same jobs in turn, in processes of their own, and the ratios of their times.

    python tools/bench/compare.py --zoo target/release/zoo [--rounds 5] [--threads 2] [--job NAME] [--json FILE]

Ends with 1 if results are not the same. Leave the machine idle.
"""

import argparse
import datetime
import json
import math
import platform
import statistics
import subprocess
import sys
from pathlib import Path

import pytorch

HERE = Path(__file__).parent


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout)


def processor():
    """The processor's name and the widest vectors that it has."""
    info = Path("/proc/cpuinfo")
    text = info.read_text() if info.exists() else ""
    names = [line.split(":")[1].strip() for line in text.splitlines() if line.startswith("model name")]
    wide = next((f" with {name}" for name in ("avx512f", "avx2") if f" {name} " in text), "")
    return (names[0] if names else platform.machine()) + wide


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--zoo", required=True, help="the zoo program")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--job", action="append", help="only these")
    parser.add_argument("--json", type=Path, help="also write what was measured")
    args = parser.parse_args()

    rows, wrong = [], 0
    for job in args.job or list(pytorch.JOBS):
        rounds = []
        for _ in range(args.rounds):
            ours = run([args.zoo, "bench", "--json", "--job", job, "--threads", str(args.threads)])
            theirs = run([sys.executable, HERE / "pytorch.py", job, str(args.threads)])
            rounds.append((ours, theirs))
        ours, theirs = rounds[0]
        scale = max(map(abs, theirs["result"]))
        apart = max(abs(a - b) for a, b in zip(ours["result"], theirs["result"], strict=True)) / scale
        wrong += not apart < 1e-4
        row = {
            "job": job,
            "zoo_ms": statistics.median(r[0]["median_ms"] for r in rounds),
            "pytorch_ms": statistics.median(r[1]["median_ms"] for r in rounds),
            "ratios": sorted(r[0]["median_ms"] / r[1]["median_ms"] for r in rounds),
            "zoo_peak_mb": max(r[0]["peak_rss_mb"] for r in rounds),
            "pytorch_peak_mb": max(r[1]["peak_rss_mb"] for r in rounds),
            "results_apart": apart,
        }
        row["ratio"] = statistics.median(row["ratios"])
        rows.append(row)
        print(
            f"{job:<30}{row['zoo_ms']:>10.2f} ms {row['pytorch_ms']:>10.2f} ms   ratio {row['ratio']:.2f}"
            f" ({row['ratios'][0]:.2f} to {row['ratios'][-1]:.2f})   results {apart:.0e} apart"
            f"   peak {row['zoo_peak_mb']:.0f} and {row['pytorch_peak_mb']:.0f} MiB",
            flush=True,
        )
    mean = math.exp(statistics.fmean(math.log(row["ratio"]) for row in rows))
    print(f"geometric mean of the ratios {mean:.2f}")
    if args.json:
        about = {
            "machine": processor(),
            "date": datetime.date.today().isoformat(),
            "threads": args.threads,
            "rounds": args.rounds,
            "pytorch": theirs["program"],
            "geometric_mean": mean,
            "rows": rows,
        }
        args.json.write_text(json.dumps(about, indent=1) + "\n")
    if wrong:
        print(f"{wrong} jobs gave other results")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
