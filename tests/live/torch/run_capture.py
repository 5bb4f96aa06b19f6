"""Runs a real PyTorch job under the hook and holds its capture against what others say of the same calls.

    run_capture.py CASE --library libddx_trace.so [--keep DIR]

CASE is a script of scripts/, on gloo ranks of this machine, by torchrun. Right is, op by op and in order, for each rank:
what torch's dispatcher was asked for (a ledger that the script keeps), what the groups' own hooks said (where this torch has
them), what its flight recorder holds of the calls that it records, and what is worked out by hand below.

Exit status 77 (ctest: skipped) where no Python with torch is found; under CI=true that is a failure.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(ROOT / "tests/e2e"))

import expected  # noqa: E402
from capture_reader import captures  # noqa: E402
from run_fault import find_python  # noqa: E402

JOB_LIMIT_S = 600


def environment(library, folder):
    """Of a job under the hook, as wrap sets it."""
    path = [str(ROOT / "live/torch")] + [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
    return dict(
        os.environ,
        DDX_TRACE_LIB=str(library),
        DDX_TRACE_DIR=str(folder),
        DDX_LEDGER=str(folder),
        PYTHONPATH=os.pathsep.join(path),
        PYTHONDONTWRITEBYTECODE="1",
        PYTHONWARNINGS="ignore",
        OMP_NUM_THREADS="1",
        TORCH_FR_BUFFER_SIZE="20000",
    )


def run_job(python, script, ranks, variables, limit_s=JOB_LIMIT_S, options=()):
    """What torchrun returned and said."""
    command = [python, *options, "-m", "torch.distributed.run", "--nproc_per_node", str(ranks)]
    command += ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", "--rdzv-id", "job", str(script)]
    return subprocess.run(
        command, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=limit_s,
    )  # fmt: skip


def complaints(case, folder):
    ranks = expected.CASES[case]["ranks"]
    found = captures(folder)
    if [capture.rank for capture in found] != list(range(ranks)):
        return ["captures of ranks %s, not of each of %d" % ([c.rank for c in found], ranks)]
    wrong = []
    for capture in found:
        told = json.loads((folder / ("rank_%d.json" % capture.rank)).read_text())
        for line in rank_complaints(case, capture, told, ranks):
            wrong.append("rank %d: %s" % (capture.rank, line))
    return wrong


def rank_complaints(case, capture, told, ranks):
    yield from expected.of_process(capture, ranks)
    yield from expected.of_dispatch(capture, told["dispatch"])
    yield from expected.of_recorder(capture, told["recorder"])
    yield from expected.of_hooks(capture, told["hooks"])
    for check in expected.CASES[case]["checks"]:
        yield from check(capture, ranks)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=sorted(expected.CASES))
    parser.add_argument("--library", required=True, type=pathlib.Path)
    parser.add_argument("--keep", type=pathlib.Path, help="leave captures and ledgers in this folder")
    options = parser.parse_args()
    python = find_python()
    if python is None:
        print("SKIPPED: no Python with torch (set DDX_TORCH_PYTHON, or let ./dev test set up .venv-torch)")
        return 1 if os.environ.get("CI") == "true" else 77
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        case = expected.CASES[options.case]
        done = run_job(python, HERE / "scripts" / (options.case + ".py"), case["ranks"], environment(options.library, folder))
        wrong = ["torchrun ended with %d" % done.returncode] if done.returncode else complaints(options.case, folder)
        for line in wrong:
            print("WRONG: " + line)
        if wrong:
            print(done.stdout)
        if options.keep:
            shutil.copytree(folder, options.keep, dirs_exist_ok=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
