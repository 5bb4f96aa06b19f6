"""Says in plain words how a ctest run went, from its JUnit file. Exit status 0 only if all that ran passed.

With --counts it prints "PASSED FAILED SKIPPED" instead.
"""

import argparse
import collections
import os
import sys
import xml.etree.ElementTree as ET


def skip_reason(case):
    """The test's own words: what follows 'SKIPPED:' (scripts), or GoogleTest's line behind 'Skipped'."""
    output = (case.findtext("system-out") or "").splitlines()
    for index, line in enumerate(output):
        if line.startswith("SKIPPED:"):
            return line[len("SKIPPED:") :].strip()
        if line.endswith(": Skipped") and index + 1 < len(output):
            return output[index + 1].strip() or "no reason given"
    return "no reason given"


def read(path):
    """(passed, failed names, {reason: names}) of a JUnit file; a missing file is a run that never ended."""
    if not os.path.exists(path):
        return 0, ["(ctest wrote no result)"], {}
    passed, failed, skipped = 0, [], collections.defaultdict(list)
    for case in ET.parse(path).getroot().iter("testcase"):
        name = case.get("name")
        if case.get("status") == "run":
            passed += 1
        elif case.get("status") == "notrun" and case.find("skipped") is not None and case.findtext("system-out"):
            skipped[skip_reason(case)].append(name)
        elif case.get("status") == "disabled":
            skipped["disabled"].append(name)
        else:  # failed, or could not be started
            failed.append(name)
    return passed, failed, skipped


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("junit")
    parser.add_argument("--counts", action="store_true")
    parser.add_argument("--ctest-status", type=int, default=0)
    parser.add_argument("--log")
    options = parser.parse_args()

    passed, failed, skipped = read(options.junit)
    skips = sum(len(names) for names in skipped.values())
    if options.ctest_status != 0 and not failed:
        failed = ["(ctest ended with status %d)" % options.ctest_status]
    if passed == 0 and not failed:
        failed = ["(no test was run)"]
    if options.counts:
        print(passed, len(failed), skips)
        return 0 if not failed else 1

    if failed and options.log and os.path.exists(options.log):
        with open(options.log, errors="replace") as log:
            sys.stdout.write("".join(log.readlines()[-150:]))
    for reason, names in sorted(skipped.items()):
        shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        print(f"ddx: skipped {len(names)} ({shown}): {reason}")
    tail = f", {skips} skipped (reasons above)" if skips else ""
    if failed:
        print(f"ddx: {len(failed)} of {passed + len(failed)} tests FAILED{tail}:")
        for name in failed:
            print(f"  {name}")
        if options.log:
            print(f"ddx: their output is in {options.log}.")
        return 1
    print(f"ddx: all {passed} tests passed{tail}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
