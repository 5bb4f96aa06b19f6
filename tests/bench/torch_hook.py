"""What the PyTorch hook costs a call, beside what torch's own recorders cost: small all-reduces of one gloo rank.

    torch_hook.py --library libddx_trace.so [--rounds 5] [--calls 2000]

Prints JSON: for each of "none", "flight_recorder" (torch's, 20,000 entries), "hook", "hook_and_flight_recorder" and
"profiler" (torch.profiler, CPU), the median microseconds of a call over all rounds, and its ratio to "none". A round has
one process of each, in turn, so that a slow moment of the machine falls on all alike.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))

VARIANTS = ("none", "flight_recorder", "hook", "hook_and_flight_recorder", "profiler")

JOB = """
import sys, time
import torch
import torch.distributed as dist

calls, profiled = int(sys.argv[1]), sys.argv[2] == "profiler"
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
tensor = torch.ones(4)

def some(number):
    began = time.perf_counter()
    for _ in range(number):
        dist.all_reduce(tensor)
    return (time.perf_counter() - began) / number * 1e6

some(200)
if profiled:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
        times = [some(calls // 10) for _ in range(10)]
else:
    times = [some(calls // 10) for _ in range(10)]
print(*times)
dist.destroy_process_group()
"""


def run(python, variant, library, calls):
    variables = dict(os.environ, OMP_NUM_THREADS="1", TORCH_FR_BUFFER_SIZE="20000" if "flight" in variant else "0")
    with tempfile.TemporaryDirectory() as folder:
        if "hook" in variant:
            variables.update(DDX_TRACE_LIB=str(library), DDX_TRACE_DIR=folder, PYTHONPATH=str(ROOT / "live/torch"))
        done = subprocess.run(
            [python, "-W", "ignore", "-c", JOB, str(calls), variant], env=variables, capture_output=True, text=True, timeout=600
        )
        if "hook" in variant and not list(pathlib.Path(folder).glob("*.ddx")):
            sys.exit("the hook recorded nothing: " + done.stderr)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return [float(word) for word in done.stdout.split()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True, type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=2000)
    options = parser.parse_args()
    from run_fault import find_python

    python = find_python()
    if python is None:
        sys.exit("no Python with torch (set DDX_TORCH_PYTHON)")
    times = {variant: [] for variant in VARIANTS}
    for _ in range(options.rounds):
        for variant in VARIANTS:
            times[variant] += run(python, variant, options.library.resolve(), options.calls)
    medians = {variant: statistics.median(all_times) for variant, all_times in times.items()}
    rows = {v: {"us_per_call": round(m, 2), "ratio": round(m / medians["none"], 2)} for v, m in medians.items()}
    print(json.dumps({"rounds": options.rounds, "calls": options.calls, "variants": rows}, indent=1))


if __name__ == "__main__":
    main()
