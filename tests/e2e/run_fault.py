"""Runs one small PyTorch job with one fault, lets ddx analyze what it left, and compares with what is expected.

    run_fault.py FAULT --ddx EXE              the job of scripts/FAULT.py, on four gloo ranks of this machine
    run_fault.py FAULT --ddx EXE --recorded   the evidence that such a job left once, in data/FAULT
    run_fault.py FAULT --ddx EXE --evidence D the same, of a job that left its evidence in D
    run_fault.py FAULT --record               runs the job and keeps its evidence in data/FAULT

faults.json, for each fault: "story"; "codes" of which the first finding has one ([]: healthy); "ranks", lists of which it
names one; "also", ranks that other errors may name; "victims", lists of which it has one; "says_not", regular expressions
that the text report must not hold.

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

HERE = pathlib.Path(__file__).resolve().parent
JOB_LIMIT_S = 120
# Where a rank dies, torchrun ends the others at once unless it looks more seldom; jobs whose survivors are to leave
# their dumps are looked at so seldom: on a busy machine a job needs 15 s to begin. (Under a scheduler that waits for a
# time-out it is the same.)
SLOW_MONITOR_S = 30
SLOW_MONITOR = ("raises", "killed", "size", "dtype")


def find_python():
    """A Python that has torch, or None."""
    named = os.environ.get("DDX_TORCH_PYTHON")
    candidates = [named] if named is not None else [str(HERE.parent.parent / ".venv-torch/bin/python"), sys.executable]
    for candidate in filter(None, candidates):
        try:
            probe = subprocess.run([candidate, "-c", "import torch.distributed"], capture_output=True, timeout=120)
        except OSError:
            continue
        if probe.returncode == 0:
            return candidate
    return None


def run_job(python, fault, evidence, scripts):
    """Leaves dumps and logs in the folder `evidence`; what the job returns is of no interest, its evidence is."""
    environment = dict(
        os.environ, DDX_EVIDENCE=str(evidence), OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1", TORCH_FR_BUFFER_SIZE="2000"
    )
    command = [python, "-m", "torch.distributed.run", "--nproc_per_node", "4"]
    command += ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", "--rdzv-id", "job"]
    command += ["--monitor-interval", str(SLOW_MONITOR_S if fault in SLOW_MONITOR else 0.1)]
    command += ["--log-dir", str(evidence / "logs"), "--redirects", "3", fault + ".py"]
    with open(evidence / "torchrun.log", "wb") as log:
        subprocess.run(
            command, cwd=scripts, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, timeout=JOB_LIMIT_S
        )
    if not list(evidence.glob("rank_?")):
        sys.exit("the job left no dump; torchrun said:\n" + (evidence / "torchrun.log").read_text(errors="replace"))


def analyze(ddx, evidence):
    """(exit status, report, what a person reads)"""
    done = subprocess.run([ddx, "analyze", str(evidence), "--format", "json"], capture_output=True, timeout=120)
    text = subprocess.run([ddx, "analyze", str(evidence), "--no-color"], capture_output=True, text=True, timeout=120)
    try:
        return done.returncode, json.loads(done.stdout), " ".join(text.stdout.split())
    except ValueError:
        sys.exit("ddx ended with %d and no report: %s%s" % (done.returncode, done.stdout[:2000], done.stderr[:2000]))


def complaints(expected, status, report, text):
    """What is wrong with the report; empty where it is right."""
    return wrong_findings(expected, status, report) + wrong_words(expected, text)


def wrong_words(expected, text):
    found = [re.search(pattern, text, re.IGNORECASE) for pattern in expected.get("says_not", [])]
    return ["says '%s'" % match.group(0) for match in found if match]


def wrong_findings(expected, status, report):
    told = [finding for finding in report["findings"] if finding["severity"] != "info"]
    if not expected["codes"]:  # a healthy job
        wrong = ["%s of ranks %s, where nothing is wrong" % (f["code"], f["ranks"]) for f in told]
        return wrong + (["exit status %d, not 0" % status] if status else [])

    wrong = []
    first = (told or report["findings"] or [None])[0]
    if first is None:
        return ["no finding"]
    if first["code"] not in expected["codes"]:
        wrong.append("the first finding is %s, not %s" % (first["code"], " or ".join(expected["codes"])))
    if first["ranks"] not in expected["ranks"]:
        wrong.append("it names ranks %s, not %s" % (first["ranks"], " or ".join(map(str, expected["ranks"]))))
    if "victims" in expected and first["victims"] not in expected["victims"]:
        wrong.append("victims are %s, not %s" % (first["victims"], " or ".join(map(str, expected["victims"]))))
    allowed = set(expected.get("also", [])).union(*map(set, expected["ranks"]))
    for finding in told:
        if finding["severity"] == "error" and not allowed.issuperset(finding["ranks"]):
            wrong.append("%s blames ranks %s" % (finding["code"], finding["ranks"]))
    if any(finding["severity"] == "error" for finding in told) and status != 1:
        wrong.append("exit status %d, not 1" % status)
    return wrong


def scrub(evidence):
    """Takes this machine's paths out of logs that are kept. Dumps hold only those of torch and of the script."""
    for log in evidence.rglob("*.log"):
        text = log.read_text(errors="replace")
        text = re.sub(r"/[^\s\"']*/(?=lib/python3[.\d]*/site-packages/)", "/opt/torch/", text)
        text = re.sub(r"/[^\s\"']*/(?=scripts/\w+\.py)", "/home/user/", text)
        text = re.sub(r"/[^\s\"']*/lib/(?=python3[.\d]*/(?!site-packages))", "/usr/lib/", text)
        text = re.sub(r"/[^\s\"']*/bin/python3?\b", "/opt/torch/bin/python", text)
        log.write_text(text)


def record(python, fault, scripts):
    with tempfile.TemporaryDirectory() as folder:
        evidence = pathlib.Path(folder)
        run_job(python, fault, evidence, scripts)
        scrub(evidence)
        shutil.rmtree(HERE / "data" / fault, ignore_errors=True)
        shutil.copytree(evidence, HERE / "data" / fault)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fault")
    parser.add_argument("--ddx")
    parser.add_argument("--recorded", action="store_true")
    parser.add_argument("--evidence", type=pathlib.Path)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--scripts", default=HERE / "scripts", help="a copy of scripts/: dumps hold its path")
    options = parser.parse_args()
    expected = json.loads((HERE / "faults.json").read_text())[options.fault]

    kept = HERE / "data" / options.fault if options.recorded else options.evidence
    python = None
    if kept is None:
        python = find_python()
        if python is None:
            print("SKIPPED: no Python with torch (set DDX_TORCH_PYTHON, or let ./dev test set up .venv-torch)")
            return 1 if os.environ.get("CI") == "true" else 77
    if options.record:
        record(python, options.fault, options.scripts)
        return 0

    with tempfile.TemporaryDirectory() as folder:
        evidence = kept or pathlib.Path(folder)
        if kept is None:
            run_job(python, options.fault, evidence, options.scripts)
        status, report, text = analyze(options.ddx, evidence)
        wrong = complaints(expected, status, report, text)
        if not wrong:
            return 0
        print("%s: %s" % (options.fault, expected["story"]))
        for line in wrong:
            print("WRONG: " + line)
        print(json.dumps(report, indent=1))
        if kept is None:  # so that the failure can be looked into
            place = tempfile.mkdtemp(prefix="ddx_%s_" % options.fault)
            shutil.copytree(evidence, place, dirs_exist_ok=True)
            print("the evidence is kept in " + place)
        return 1


if __name__ == "__main__":
    sys.exit(main())
