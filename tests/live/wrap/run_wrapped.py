"""Runs one small PyTorch job with one fault under ddx wrap, with no change to it, and compares wrap's report.

    run_wrapped.py FAULT --ddx EXE [--show]     FAULT: one of tests/e2e/faults.json, or of faults.json here

The jobs are those of tests/e2e, but for the recorder that those bring along. What is expected is what tests/e2e expects,
and besides: that the call site is named, that what the job printed is kept by rank, that wrap's status is right, and that
nothing of the job is left. How long after the last progress wrap told is printed, not judged.

Exit status 77 (ctest: skipped) where no Python with torch is found; under CI=true that is a failure.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
E2E = HERE.parent.parent / "e2e"
sys.path.insert(0, str(E2E))
import run_fault  # noqa: E402

HANG_AFTER_S, GRACE_S, JOB_LIMIT_S = 6, 6, 150


def run_job(ddx, python, fault, folder):
    """(wrap's status, what a person saw, the folder of the capture)"""
    scripts = folder / "scripts"
    shutil.copytree(E2E / "scripts", scripts)
    shutil.copy(HERE / "plain_job.py", scripts / "job.py")
    out = folder / "capture"
    command = [ddx, "wrap", "--out", str(out), "--no-color", "--hang-after", "%ds" % HANG_AFTER_S]
    command += ["--on-hang", "kill", "--grace", "%ds" % GRACE_S, "--", python, "-m", "torch.distributed.run"]
    command += ["--nproc_per_node", "4", "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", "--rdzv-id", "job"]
    # A launcher that looks seldom, as those of clusters: the others find out by themselves that a rank is gone.
    command += ["--monitor-interval", "5" if fault in ("raises", "killed") else "0.1", fault + ".py"]
    environment = dict(os.environ, OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1")
    begun = time.monotonic()
    done = subprocess.run(command, cwd=scripts, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=JOB_LIMIT_S)
    print("%s: %.1f s in all" % (fault, time.monotonic() - begun))
    return done.returncode, (done.stdout + done.stderr).decode(errors="replace"), out


def still_there(folder):
    """Processes of the job that outlived it: those that stand in its folder."""
    left = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(entry / "cwd").startswith(str(folder)):
                left.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            pass
    return left


def complaints(expected, status, shown, out, folder):
    try:
        report = json.loads((out / "report.json").read_text())
    except (OSError, ValueError) as error:
        return ["no report: %s" % error]
    found = [finding for finding in report["findings"] if finding["severity"] == "error"]
    judged = 1 if found else 0
    wrong = run_fault.complaints(expected, judged, report, " ".join(shown.split()))
    if expected["codes"] and status == 0:
        wrong.append("wrap ended with 0")
    if not expected["codes"] and status != 0:
        wrong.append("wrap ended with %d" % status)
    site = expected.get("site")
    if site and not any(re.search(site, evidence["text"]) for finding in found[:1] for evidence in finding["evidence"]):
        wrong.append("the first finding shows no call at %s" % site)
    ranks = {int(re.search(r"\d+", path.name)[0]) for path in out.glob("rank_*.log")}
    if expected.get("prints", False) and ranks != {0, 1, 2, 3}:
        wrong.append("logs of ranks %s" % sorted(ranks))
    if len(list(out.glob("*.ddx"))) != 4:
        wrong.append("%d captures, not 4" % len(list(out.glob("*.ddx"))))
    return wrong + ["left behind: " + command for command in still_there(folder)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fault")
    parser.add_argument("--ddx", required=True)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    expected = dict(json.loads((E2E / "faults.json").read_text()).get(options.fault, {}))
    expected.update(json.loads((HERE / "faults.json").read_text()).get(options.fault, {}))
    python = run_fault.find_python()
    if python is None:
        print("SKIPPED: no Python with torch (set DDX_TORCH_PYTHON, or let ./dev test set up .venv-torch)")
        return 1 if os.environ.get("CI") == "true" else 77
    with tempfile.TemporaryDirectory(prefix="ddx_wrapped_") as name:
        folder = pathlib.Path(name)
        status, shown, out = run_job(options.ddx, python, options.fault, folder)
        wrong = complaints(expected, status, shown, out, folder)
        if options.show or wrong:
            print(shown)
        for line in wrong:
            print("WRONG: " + line)
        if wrong:
            place = tempfile.mkdtemp(prefix="ddx_wrapped_%s_" % options.fault)
            shutil.copytree(folder, place, dirs_exist_ok=True)
            print("all of it is kept in " + place)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
