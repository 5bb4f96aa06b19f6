#!/usr/bin/env python3
"""Does ddx answer one case as its expected.json demands?

usage: run_cases.py --ddx PATH CASE_FOLDER...

A case folder holds evidence (all files but expected.json and make.py), or make.py, which writes the evidence into the
folder that it is given. The evidence is copied to a scratch folder, so that ddx never sees what is expected of it.

expected.json:
  finding    codes of which one must be found; [] means that nothing may be found but notes (severity info)
  nothing    true: no finding at all, notes included
  severity   the severity of that finding
  confidence its confidence, where that matters
  ranks      rank lists of which the finding must have exactly one; [[]] nobody; left out: not judged
  victims    rank lists of which the finding has exactly one as those who wait for these; [[]] nobody
  also       ranks that other error findings may name beside these
  subjects   texts that must be among the finding's subjects
  says       regular expressions that the text report must hold; white space counts as one blank, case does not count
  says_not   regular expressions that it must not hold
  verdict    the report's verdict, where codes alone do not tell
  status     the exit status; left out: 1 exactly when there is an error finding

Exit status 0 when every case is answered rightly, else 1, with a line for each thing that is wrong.
"""
import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
NOT_EVIDENCE = {"expected.json", "make.py"}


def lay_out(case, scratch):
    evidence = scratch / "evidence"
    evidence.mkdir()
    for path in case.iterdir():
        if path.name in NOT_EVIDENCE:
            continue
        if path.is_dir():
            shutil.copytree(path, evidence / path.name)
        else:
            shutil.copy(path, evidence / path.name)
    if (case / "make.py").exists():
        subprocess.run([sys.executable, "-B", case / "make.py", evidence], check=True, timeout=60,
                       env={"PYTHONPATH": str(HERE)})
    return evidence


def ask(ddx, evidence, form):
    done = subprocess.run([ddx, "analyze", evidence, "--format", form, "--no-color", "--verbose"],
                          capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def right_findings(expected, findings):
    """The findings that answer the case; with them, what is wrong when there is none."""
    named = [f for f in findings if f["code"] in expected["finding"]]
    told = ", ".join(f"{f['code']} {f['severity']} {f['ranks']}" for f in findings) or "nothing"
    if not named:
        return [], [f"found {told}; one of {expected['finding']} is right"]
    lists = expected.get("ranks")
    right = [f for f in named if lists is None or sorted(f["ranks"]) in [sorted(r) for r in lists]]
    if not right:
        return [], [f"found {told}; the ranks are one of {lists}"]
    return right, []


def check_finding(expected, right):
    wrong = []
    for key in ("severity", "confidence"):
        if key in expected and all(f[key] != expected[key] for f in right):
            wrong.append(f"{key} is {right[0][key]}, not {expected[key]}")
    if "victims" in expected and all(f["victims"] not in expected["victims"] for f in right):
        wrong.append(f"victims are {right[0]['victims']}, not one of {expected['victims']}")
    for subject in expected.get("subjects", []):
        if not any(subject in told for f in right for told in f["subjects"]):
            wrong.append(f"subject {subject!r} is not among {right[0]['subjects']}")
    return wrong


def check_blame(expected, findings):
    """No error finding may name a rank that is not at fault."""
    lists = expected.get("ranks")
    if lists is None:
        return []
    allowed = {rank for ranks in lists for rank in ranks} | set(expected.get("also", []))
    return [f"blames {f['code']} {f['ranks']}" for f in findings
            if f["severity"] == "error" and not set(f["ranks"]) <= allowed]


def check_findings(expected, report, status):
    findings = report["findings"]
    errors = [f for f in findings if f["severity"] == "error"]
    wrong = []
    if expected["finding"]:
        right, wrong = right_findings(expected, findings)
        if right:
            wrong += check_finding(expected, right)
    else:
        loud = [f for f in findings if f["severity"] != "info" or expected.get("nothing")]
        wrong += [f"found {f['code']} {f['severity']} {f['ranks']}: {f['summary']}" for f in loud]
    wrong += check_blame(expected, findings)
    if "status" in expected:
        if status != expected["status"]:
            wrong.append(f"exit status {status}, not {expected['status']}")
    elif (status == 1) != bool(errors):
        wrong.append(f"exit status {status} with {len(errors)} errors")
    if "verdict" in expected and report["verdict"] != expected["verdict"]:
        wrong.append(f"verdict {report['verdict']}, not {expected['verdict']}")
    return wrong


def check_text(expected, text):
    flat = " ".join(text.split())
    wrong = [f"does not say {pattern!r}" for pattern in expected.get("says", [])
             if not re.search(pattern, flat, re.IGNORECASE)]
    for pattern in expected.get("says_not", []):
        found = re.search(pattern, flat, re.IGNORECASE)
        if found:
            wrong.append(f"says {found.group(0)!r}, which is wrong ({pattern!r})")
    return wrong


def run_case(ddx, case):
    expected = json.loads((case / "expected.json").read_text())
    with tempfile.TemporaryDirectory(prefix="ddx_case_") as scratch:
        evidence = lay_out(case, pathlib.Path(scratch))
        status, out, err = ask(ddx, evidence, "json")
        try:
            report = json.loads(out)
        except ValueError as error:
            return [f"exit status {status}, no JSON on stdout ({error}): {err.strip()[:300]}"], ""
        text_status, text, _ = ask(ddx, evidence, "text")
    wrong = check_findings(expected, report, status) + check_text(expected, text)
    if text_status != status:
        wrong.append(f"exit status {status} as JSON, {text_status} as text")
    return wrong, text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ddx", required=True)
    parser.add_argument("--show", action="store_true", help="print the report of every case, right or wrong")
    parser.add_argument("cases", nargs="+", type=pathlib.Path)
    args = parser.parse_args()
    failed = 0
    for case in args.cases:
        wrong, text = run_case(args.ddx, case)
        failed += bool(wrong)
        print(f"{'FAIL' if wrong else 'ok  '} {case.name}")
        for line in wrong:
            print(f"     {line}")
        if wrong or args.show:
            print(text)
    return 1 if failed else 0


sys.exit(main())
