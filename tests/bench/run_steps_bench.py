#!/usr/bin/env python3
"""Measures ring all_reduces message by message, and SimGrid's SMPI replay of the same beside it in one run.

Needs a build with -DDDX_BENCH=ON (--build, or DDX_BUILD). For the peer, smpirun (Debian: libsimgrid-dev); without it that
part is skipped, and says so. Both simulate n ranks with a full-duplex port of 50 GB/s each and 1 us between them; both must
come to 2 (n - 1) (L + S / (n B)), or there are no figures. Prints a Markdown table and writes all figures as JSON.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from run_bench import machine, measured

BYTES = 1 << 20
BYTES_PER_SECOND = 50e9
LATENCY = 1e-6

# The plainest network model that SimGrid has: rate and latency as given, no protocol, both directions apart. lr is the
# logical ring.
SIMGRID = ["--cfg=smpi/allreduce:lr", "--cfg=network/model:CM02", "--cfg=network/TCP-gamma:0", "--cfg=smpi/os:0:0:0",
           "--cfg=smpi/or:0:0:0", "--cfg=smpi/ois:0:0:0", "--cfg=network/latency-factor:1",
           "--cfg=network/bandwidth-factor:1", "--cfg=network/weight-S:0", "--cfg=network/crosstraffic:0"]
PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="flat" prefix="h" suffix="" radical="0-{last}" speed="1Gf" bw="50GBps" lat="500ns"
           sharing_policy="SPLITDUPLEX"/>
</platform>
"""


def arguments():
    root = Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=Path(os.environ.get("DDX_BUILD") or root / "build/bench"))
    parser.add_argument("--ranks", default="8,64,256,512,1024,4096", help="sizes to measure (%(default)s)")
    parser.add_argument("--peer-up-to", type=int, default=1024, help="ranks that the peer gets at most (%(default)s)")
    parser.add_argument("--peer-limit", type=float, default=300, help="seconds that the peer may take (%(default)s)")
    parser.add_argument("--repeat", type=int, default=3, help="runs of ddx at each size (%(default)s)")
    parser.add_argument("--no-micro", action="store_true", help="leave out the parts in memory")
    parser.add_argument("--out", type=Path, help="JSON of all figures (BUILD/steps-bench.json)")
    options = parser.parse_args()
    options.sizes = sorted(int(size) for size in options.ranks.split(","))
    options.out = options.out or options.build / "steps-bench.json"
    return options


def closed_form(ranks):
    return 2 * (ranks - 1) * (LATENCY + BYTES / ranks / BYTES_PER_SECOND)


def measure_ddx(options, ranks):
    runs = []
    for _ in range(options.repeat):
        run = measured([options.build / "tests/bench/ddx_time_steps", "ring", str(ranks), str(BYTES)])
        picos, kib = map(int, run.pop("output").split())
        run["mib"] = kib / 1024
        if abs(picos * 1e-12 - closed_form(ranks)) > 1e-12:
            raise SystemExit(f"run_steps_bench: ddx is off the closed form at {ranks} ranks; no figure is worth it")
        runs.append(run)
    return {"ranks": ranks, "wall_s": min(run["wall_s"] for run in runs), "cpu_s": min(run["cpu_s"] for run in runs),
            "mib": max(run["mib"] for run in runs), "runs": runs}


def write_job(folder, ranks):
    (folder / "platform.xml").write_text(PLATFORM.format(last=ranks - 1))
    (folder / "hosts").write_text("".join(f"h{rank}\n" for rank in range(ranks)))
    for rank in range(ranks):
        # 2 is MPI_BYTE, so a count is bytes; reducing costs no flops.
        (folder / f"rank{rank}").write_text(f"{rank} init\n{rank} allreduce {BYTES} 0 2\n{rank} finalize\n")
    (folder / "traces").write_text("".join(f"{folder}/rank{rank}\n" for rank in range(ranks)))


def measure_peer(options, ranks):
    with tempfile.TemporaryDirectory(prefix="ddx-smpi-") as name:
        folder = Path(name)
        write_job(folder, ranks)
        run = measured(["smpirun", "-np", str(ranks), "-hostfile", folder / "hosts", "-platform", folder / "platform.xml",
                        "-replay", folder / "traces", *SIMGRID], options.peer_limit)
    if run is None:
        return {"ranks": ranks, "finished": False, "problem": f"over {options.peer_limit:.0f} s"}
    said = re.search(r"Simulation time ([0-9.]+)", run["output"])
    if run["status"] != 0 or said is None:
        return {"ranks": ranks, "finished": False, "problem": "failed: " + run["output"].strip().splitlines()[-1]}
    # It prints whole microseconds.
    off = abs(float(said[1]) - closed_form(ranks))
    del run["output"]
    return {"ranks": ranks, "finished": off < 1e-6 + 0.01 * closed_form(ranks), "simulated_s": float(said[1]),
            "problem": f"came to {said[1]} s", **run}


def measure_micro(options):
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "micro.json"
        subprocess.run([options.build / "tests/bench/ddx_steps_bench", f"--benchmark_out={out}",
                        "--benchmark_out_format=json", "--benchmark_min_time=1"], check=True, capture_output=True)
        return json.loads(out.read_text())["benchmarks"]


def peer_of():
    """"SimGrid 3.32", or None and why not."""
    if shutil.which("smpirun") is None:
        return None, "smpirun is not there (Debian: libsimgrid-dev)"
    said = subprocess.run(["smpirun", "-version"], capture_output=True, text=True).stdout
    version = re.search(r"[0-9]+\.[0-9.]+", said)
    return "SimGrid " + (version[0].rstrip(".") if version else "of an unknown version"), ""


def measure_all(options):
    peer, problem = peer_of()
    figures = {"machine": machine(), "peer": peer or f"none: {problem}", "ddx": [], "peer_runs": []}
    for ranks in options.sizes:
        figures["ddx"].append(measure_ddx(options, ranks))
        if peer and ranks <= options.peer_up_to:
            figures["peer_runs"].append(measure_peer(options, ranks))
        print(f"run_steps_bench: {ranks} ranks measured", file=sys.stderr)
    figures["micro"] = [] if options.no_micro else measure_micro(options)
    figures["load_after"] = os.getloadavg()[0]
    return figures


def peer_cells(figures, row):
    run = next((run for run in figures["peer_runs"] if run["ranks"] == row["ranks"]), None)
    if run is None:
        return "not started", "-", "-", "-"
    if not run["finished"]:
        return run["problem"], "-", "-", "-"
    ratios = run["wall_s"] / row["wall_s"], run["cpu_s"] / max(row["cpu_s"], 1e-3)
    return (f"{run['wall_s']:.2f} s ({run['cpu_s']:.2f})", f"{run['mib']:,.0f} MiB",
            "{:.0f} x ({:.0f} x)".format(*ratios), f"{run['mib'] / row['mib']:.0f} x")


def print_tables(figures):
    about = figures["machine"]
    print(f"{about['cores']} cores of {about['cpu']}, {about['memory_gib']} GiB, {about['system']}; load before "
          f"{about['load_before']:.1f}, after {figures['load_after']:.1f}. Peer: {figures['peer']}\n")
    print("| ranks | messages | ddx: wall, best (processor) | messages a second of processor | memory | peer: wall (processor) |"
          " memory | ratio of wall (processor) | of memory |\n|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for row in figures["ddx"]:
        messages = 2 * row["ranks"] * (row["ranks"] - 1)
        cells = (f"{row['ranks']:,}", f"{messages:,}", f"{row['wall_s']:.3f} s ({row['cpu_s']:.3f})",
                 f"{messages / max(row['cpu_s'], 1e-3) / 1e6:.1f} M",
                 f"{row['mib']:.0f} MiB", *peer_cells(figures, row))
        print("| " + " | ".join(cells) + " |")
    if figures["micro"]:
        print("\n| part, in memory, one core | processor | messages (flows) a second |\n|---|--:|--:|")
    for part in figures["micro"]:
        print(f"| {part['name']} | {part['cpu_time']:.1f} {part['time_unit']} | {part['items_per_second'] / 1e6:.1f} M |")


def main():
    options = arguments()
    figures = measure_all(options)
    options.out.write_text(json.dumps(figures, indent=1) + "\n")
    print_tables(figures)
    print(f"\nAll figures: {options.out}")


if __name__ == "__main__":
    main()
