#!/usr/bin/env python3
"""Measures `ddx analyze` on dumps of a hung job, and PyTorch's own analyzer beside it in the same run.

Needs a build with -DDDX_BENCH=ON (--build, or DDX_BUILD). For the peer, a Python that has torch (--torch-python, or
DDX_TORCH_PYTHON); without one that part is skipped, and says so. Prints a Markdown table and writes all figures as JSON.
"""

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

PEER_MODULE = "torch.distributed.flight_recorder.fr_trace"


def arguments():
    root = Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=Path(os.environ.get("DDX_BUILD") or root / "build/bench"))
    parser.add_argument("--ranks", default="64,256,1024", help="sizes to measure (%(default)s)")
    parser.add_argument("--large", action="store_true", help="4,096 ranks as well")
    parser.add_argument("--entries", type=int, default=2000, help="operations of a rank (%(default)s)")
    parser.add_argument("--repeat", type=int, default=5, help="runs of ddx at each size (%(default)s)")
    parser.add_argument("--torch-python", default=os.environ.get("DDX_TORCH_PYTHON", ""))
    parser.add_argument("--torch-limit", type=float, default=600, help="seconds that the peer may take (%(default)s)")
    parser.add_argument("--no-micro", action="store_true", help="leave out the parts in memory")
    parser.add_argument("--work", type=Path, help="where dumps are made (a temporary folder, removed)")
    parser.add_argument("--out", type=Path, help="JSON of all figures (BUILD/bench.json)")
    options = parser.parse_args()
    options.sizes = [int(size) for size in options.ranks.split(",")] + ([4096] if options.large else [])
    options.out = options.out or options.build / "bench.json"
    return options


def measured(command, limit=None):
    """Runs a command; seconds by the clock and of the processor, MiB at the peak, status, output. Past the limit: None."""
    with tempfile.TemporaryFile() as output:
        begin = time.monotonic()
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        late = threading.Event()
        timer = threading.Timer(limit, lambda: (late.set(), process.kill())) if limit else None
        if timer:
            timer.start()
        # wait4 and not wait: it tells what this one child used.
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        if timer:
            timer.cancel()
        output.seek(0)
        text = output.read().decode(errors="replace")
    if late.is_set():
        return None
    return {"wall_s": wall, "cpu_s": usage.ru_utime + usage.ru_stime, "mib": usage.ru_maxrss / 1024,
            "status": process.returncode, "output": text}


def machine():
    model = "unknown"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {"cpu": model, "cores": len(os.sched_getaffinity(0)), "memory_gib": round(memory),
            "system": platform.platform(), "load_before": os.getloadavg()[0]}


def make_dumps(options, ranks, folder):
    generator = options.build / "tests/bench/ddx_generate_dumps"
    said = subprocess.run([generator, "--ranks", str(ranks), "--entries", str(options.entries), "--out", folder],
                          check=True, capture_output=True, text=True).stdout
    culprit = int(said.split("\n")[1].split()[1])  # "rank 37 skips operation 1985"
    for dump in folder.iterdir():
        dump.read_bytes()  # in the page cache for all alike
    return culprit, sum(dump.stat().st_size for dump in folder.iterdir())


def measure_ddx(options, ranks, folder, culprit, size):
    runs = []
    for _ in range(options.repeat):
        run = measured([options.build / "ddx", "analyze", folder, "--format", "json"])
        found = [finding for finding in json.loads(run.pop("output"))["findings"] if finding["severity"] == "error"]
        if run["status"] != 1 or len(found) != 1 or found[0]["code"] != "rank-skipped" or found[0]["ranks"] != [culprit]:
            raise SystemExit(f"run_bench: {ranks} ranks: ddx did not name rank {culprit} alone; no figure is worth it")
        runs.append(run)
    return {"ranks": ranks, "entries": options.entries, "bytes": size, "runs": runs,
            "wall_s": min(run["wall_s"] for run in runs), "wall_median_s": statistics.median(r["wall_s"] for r in runs),
            "cpu_s": min(run["cpu_s"] for run in runs), "mib": max(run["mib"] for run in runs)}


def peer_of(options):
    """(command, "torch 2.13.0+cpu"), or (None, why not)."""
    if not options.torch_python:
        return None, "no Python with torch was given (--torch-python or DDX_TORCH_PYTHON)"
    check = subprocess.run([options.torch_python, "-c", f"import torch, {PEER_MODULE}; print(torch.__version__)"],
                           capture_output=True, text=True)
    if check.returncode != 0:
        return None, f"{options.torch_python} cannot import {PEER_MODULE}: {check.stderr.strip().splitlines()[-1]}"
    return [options.torch_python, "-m", PEER_MODULE], "torch " + check.stdout.split()[-1]


def measure_peer(options, command, ranks, folder, culprit):
    run = measured([*command, str(folder), "-p", "rank_"], options.torch_limit)
    if run is None:
        return {"ranks": ranks, "finished": False, "limit_s": options.torch_limit}
    text = run.pop("output")
    if run["status"] != 0:
        return {"ranks": ranks, "finished": False, "problem": "failed: " + (text.strip().splitlines() or ["no output"])[-1]}
    return {"ranks": ranks, "finished": True, "names_culprit": f"Culprit rank {culprit};" in text, **run}


def why_not_start(options, figures, ranks):
    """Why the peer is not even started at this size, going by the last one; empty: it is."""
    runs = figures["peer"]["runs"]
    if not runs:
        return ""
    last = runs[-1]
    if not last["finished"]:
        return "not started: a smaller set did not finish"
    growth = ranks / last["ranks"]
    if last["wall_s"] * growth > options.torch_limit:
        return f"not started: {last['wall_s'] * growth:.0f} s in proportion, more than {options.torch_limit:.0f} s"
    if last["mib"] / 1024 * growth > 0.7 * figures["machine"]["memory_gib"]:
        return f"not started: {last['mib'] / 1024 * growth:.0f} GiB in proportion, too much for this machine"
    return ""


def measure_micro(options):
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "micro.json"
        subprocess.run([options.build / "tests/bench/ddx_analyze_bench", f"--benchmark_out={out}",
                        "--benchmark_out_format=json", "--benchmark_min_time=1"], check=True, capture_output=True)
        return json.loads(out.read_text())["benchmarks"]


def measure_all(options, work):
    command, peer = peer_of(options)
    figures = {"machine": machine(), "ddx": [], "peer": {"name": peer, "runs": []}}
    for ranks in sorted(options.sizes):
        folder = work / f"ranks_{ranks}"
        culprit, size = make_dumps(options, ranks, folder)
        figures["ddx"].append(measure_ddx(options, ranks, folder, culprit, size))
        if command:
            problem = why_not_start(options, figures, ranks)
            figures["peer"]["runs"].append({"ranks": ranks, "finished": False, "problem": problem} if problem else
                                           measure_peer(options, command, ranks, folder, culprit))
        print(f"run_bench: {ranks} ranks measured", file=sys.stderr)
        shutil.rmtree(folder)
    figures["micro"] = [] if options.no_micro else measure_micro(options)
    return figures


def peer_cells(figures, row):
    run = next((run for run in figures["peer"]["runs"] if run["ranks"] == row["ranks"]), None)
    if run is None:
        return "-", "-", "-", "-"
    if not run["finished"]:
        reason = f"over {run['limit_s']:.0f} s" if "limit_s" in run else run["problem"]
        return reason, "-", "-", "-"
    ratios = run["wall_s"] / row["wall_s"], run["cpu_s"] / row["cpu_s"]
    return (f"{run['wall_s']:.1f} s ({run['cpu_s']:.1f})", f"{run['mib']:,.0f} MiB", "{:.0f} x ({:.0f} x)".format(*ratios),
            f"{run['mib'] / row['mib']:.0f} x")


def print_tables(figures):
    about = figures["machine"]
    print(f"{about['cores']} cores of {about['cpu']}, {about['memory_gib']} GiB, {about['system']}; load before the run "
          f"{about['load_before']:.1f}. Peer: {figures['peer']['name']}\n")
    print("| ranks | dumps | ddx: wall, best (median) | processor | memory | peer: wall (processor) | memory |"
          " ratio of wall (processor) | of memory |\n|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for row in figures["ddx"]:
        cells = (f"{row['ranks']:,}", f"{row['bytes'] / 1e6:,.0f} MB",
                 f"{row['wall_s']:.2f} s ({row['wall_median_s']:.2f})", f"{row['cpu_s']:.2f} s", f"{row['mib']:.0f} MiB",
                 *peer_cells(figures, row))
        print("| " + " | ".join(cells) + " |")
    if figures["micro"]:
        print("\n| part, in memory, one core | processor | entries a second | bytes a second |\n|---|--:|--:|--:|")
    for part in figures["micro"]:
        rate = f"{part['bytes_per_second'] / 1e6:,.0f} MB" if "bytes_per_second" in part else "-"
        print(f"| {part['name']} | {part['cpu_time']:.1f} {part['time_unit']} | {part['items_per_second'] / 1e6:.1f} M |"
              f" {rate} |")


def main():
    options = arguments()
    with tempfile.TemporaryDirectory(prefix="ddx-bench-", dir=options.work) as work:
        figures = measure_all(options, Path(work))
    options.out.write_text(json.dumps(figures, indent=1) + "\n")
    print_tables(figures)
    print(f"\nAll figures: {options.out}")


if __name__ == "__main__":
    main()
