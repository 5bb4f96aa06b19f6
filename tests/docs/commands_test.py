#!/usr/bin/env python3
"""Runs every ddx command line that the documents show, and checks that it ends with the status that it should have.

A command line is a line of a code block, or code within a line, that begins with "ddx" and has something to work on.
Words in capitals stand for a file: PLACEHOLDERS says which."""

import argparse
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

DOCUMENTS = [
    "README.md",
    "docs/simulator.md",
    "docs/scaling.md",
    "docs/clusters.md",
    "examples/hang/README.md",
    "examples/training/README.md",
]
PLACEHOLDERS = {
    "PATH...": "examples/hang/evidence",
    "COMMAND...": "true",
    "IN": "examples/hang/evidence",
    "TRACE": "job.ops",
    "TRACE...": "job.ops",
    "CODE": "rank-skipped",
    "TABLE.csv": "runs.csv",
    "RUNS.json": "benchmarks.json",
    "OUT.ops": "out.ops",
    "OUT.perfetto.json": "out.perfetto.json",
}
# What is found there is the point of it. All others end with 0.
FINDS = [re.compile(r"ddx analyze (PATH|examples/hang)"), re.compile(r"--inject")]


def command_lines(text):
    """Of one document, in their order."""
    found = []
    inside = False
    for line in text.splitlines():
        if line.startswith("```"):
            inside = not inside
        elif inside:
            found += re.findall(r"^(?:\$ )?(ddx [^#]*)", line)
        else:
            found += re.findall(r"`(ddx [^`]*)`", line)
    return [command.strip() for command in found if has_operand(shlex.split(command))]


def has_operand(words):
    """Not the bare name of a command or of one of its options."""
    return len(words) > 2 and not (len(words) == 3 and words[2].startswith("--"))


def expected_status(command):
    return 1 if any(pattern.search(command) for pattern in FINDS) else 0


def run(command, ddx, source):
    """What is wrong with it; None: nothing."""
    words = [PLACEHOLDERS.get(word, word) for word in shlex.split(command)]
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        (scratch / "examples").symlink_to(source / "examples")
        for file in (source / "examples" / "training").iterdir():
            shutil.copy(file, scratch)
        done = subprocess.run([ddx] + words[1:], cwd=scratch, capture_output=True, text=True, timeout=120, check=False)
    expected = expected_status(command)
    if done.returncode == expected:
        return None
    return f"status {done.returncode}, expected {expected}\n{done.stderr or done.stdout}"


def self_test():
    text = "`ddx sim` and `ddx predict --scale` ask\n`ddx explain CODE`\n```\n$ ddx sim a.ops # why\nls\n```\n"
    assert command_lines(text) == ["ddx explain CODE", "ddx sim a.ops"], command_lines(text)
    assert expected_status("ddx sim a --inject b") == 1
    assert expected_status("ddx info PATH...") == 0


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--ddx", required=True)
    arguments.add_argument("--source", type=pathlib.Path, required=True)
    given = arguments.parse_args()
    self_test()
    failed = 0
    ran = 0
    for document in DOCUMENTS:
        commands = command_lines((given.source / document).read_text(encoding="utf-8"))
        for command in commands:
            ran += 1
            wrong = run(command, given.ddx, given.source.resolve())
            if wrong:
                failed += 1
                print(f"{document}: {command}\n  {wrong}")
    print(f"{ran} command lines, {failed} failed")
    return 1 if failed or ran < 20 else 0


if __name__ == "__main__":
    sys.exit(main())
