#!/usr/bin/env python3
"""Holds the first table of docs/algorithms.md against what ddx_list_algorithms says of every algorithm.

The cells in back quotes are expressions; the page says what their names mean, and so do the definitions below.
"""

import argparse
import json
import math
import re
import subprocess
import sys
from pathlib import Path

KIB, MIB = 1 << 10, 1 << 20
COLUMNS = ["algorithm", "kinds", "with", "steps", "bytes", "time", "source"]


def ceil_div(a, b):
    return -(-a // b)


def cut(size, most):
    count = min(max(ceil_div(size, most), 1), 65536)
    return count, ceil_div(size, count)


def tree_chunk(size, height):
    chunk = 512 * KIB
    for least, times in ((128, 8), (64, 4), (32, 1)):
        while chunk > least * KIB and size // chunk < times * height:
            chunk //= 2
    return chunk


def factors(n):
    """[(prime factor, product of it and all before it)], ascending."""
    found, product, f = [], 1, 2
    while n > 1:
        if n % f == 0:
            product *= f
            found.append((f, product))
            n //= f
        else:
            f += 1
    return found


def names_for(case, latency, byte_picos):
    n, size = case["n"], case["S"]

    def t(size):
        return size * byte_picos

    def pipeline(d, chunks, w):
        return d * (latency + t(w)) + (chunks - 1) * t(w) if d else 0

    k, q = (n - 1).bit_length(), n.bit_length() - 1
    return {"n": n, "S": size, "m": case["m"], "L": latency, "t": t, "P": pipeline, "c": ceil_div(size, n), "k": k, "q": q,
            "p": 1 << q, "ceil": math.ceil, "min": min, "max": max, "sum": sum, "range": range, "cut": cut, "factors": factors,
            "tree_chunk": tree_chunk, "ceil_div": ceil_div, "log2_up": lambda x: (x - 1).bit_length(),
            "ones": lambda x: bin(x).count("1"), "KiB": KIB, "MiB": MIB}


def evaluate(row, column, case, latency, byte_picos):
    names = names_for(case, latency, byte_picos)
    scope = {"__builtins__": {}, **names}
    if row["with"] != "-":
        exec(row["with"], scope)  # a page of our own
    return eval(row[column], scope)


def table(page):
    rows = []
    for line in page.read_text().splitlines():
        if not line.startswith("| `"):
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != len(COLUMNS):
            sys.exit(f"{page}: expected {len(COLUMNS)} cells: {line}")
        row = dict(zip(COLUMNS, cells))
        for column in ("algorithm", "with", "steps", "bytes", "time"):
            row[column] = re.sub("^`(.*)`$", r"\1", row[column])
        rows.append(row)
    return {(row["algorithm"], kind.strip()): row for row in rows for kind in row["kinds"].split(",")}


def check(rows, case):
    row = rows.get((case["algorithm"], case["kind"]))
    if row is None:
        return f"no row for {case['algorithm']} {case['kind']}"
    alone = case["n"] == 1
    expected = {
        "time": 0 if alone else evaluate(row, "time", case, 1_000_000, case["byte_picos"]),
        "sent": 0 if alone else evaluate(row, "bytes", case, 1_000_000, case["byte_picos"]),
    }
    if expected["time"] != case["closed"] or expected["time"] != case["steps"] or expected["sent"] != case["sent"]:
        return f"the page has {expected}, ddx {case}"
    # The steps are what the time is of messages that take none.
    if not alone and evaluate(row, "steps", case, 1, 0) != evaluate(row, "time", case, 1, 0):
        return f"the steps of {case['algorithm']} {case['kind']} on {case['n']} ranks are not those of its time"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lister", type=Path, required=True)
    parser.add_argument("--page", type=Path, required=True)
    options = parser.parse_args()
    rows = table(options.page)
    lines = subprocess.run([options.lister], check=True, capture_output=True, text=True).stdout.splitlines()
    cases = [json.loads(line) for line in lines]
    wrong = [problem for case in cases if (problem := check(rows, case))]
    unheld = set(rows) - {(case["algorithm"], case["kind"]) for case in cases}
    wrong += [f"nothing is known of the row {row}" for row in sorted(unheld)]
    for problem in wrong[:20]:
        print(problem)
    print(f"{len(rows)} rows, {len(cases)} cases, {len(wrong)} wrong")
    return 1 if wrong or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
