#!/usr/bin/env python3
"""Every report that ddx prints keeps to docs/report-schema.json.

usage: report_schema_test.py --ddx PATH

Asks ddx for the JSON report of each case of tests/cases, of each recorded job of tests/e2e and of things that are no
evidence, and checks it with the part of JSON Schema that the file uses; what it may use is listed, so that a keyword
that is not checked here cannot come in unseen.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[2]
TYPES = {"object": dict, "array": list, "string": str, "integer": int, "null": type(None)}
SAID = {"$schema", "$id", "title", "description", "definitions"}  # say nothing of the value
CHECKED = {"type", "required", "properties", "items", "enum", "const", "pattern", "minimum", "$ref"}


def is_type(value, name):
    return isinstance(value, TYPES[name]) and not (name == "integer" and isinstance(value, bool))


def problems(value, schema, root, at="report"):
    unknown = set(schema) - SAID - CHECKED
    if unknown:
        raise NotImplementedError(f"{at}: {unknown}")
    if "$ref" in schema:
        target = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        yield from problems(value, target, root, at)
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(is_type(value, name) for name in types):
        yield f"{at} is {value!r}, not of type {types}"
        return
    if "const" in schema and value != schema["const"]:
        yield f"{at} is {value!r}, not {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{at} is {value!r}, none of {schema['enum']}"
    if "minimum" in schema and value < schema["minimum"]:
        yield f"{at} is {value}, below {schema['minimum']}"
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{at} is {value!r}, not like {schema['pattern']}"
    for key in schema.get("required", []):
        if key not in value:
            yield f"{at} has no {key}"
    for key, part in schema.get("properties", {}).items():
        if key in value:
            yield from problems(value[key], part, root, f"{at}.{key}")
    if "items" in schema:
        for number, item in enumerate(value):
            yield from problems(item, schema["items"], root, f"{at}[{number}]")


def undescribed(value, schema, root, at="report"):
    """Keys that ddx writes and the schema does not speak of."""
    if "$ref" in schema:
        return
    if isinstance(value, dict):
        for key, part in value.items():
            if key not in schema.get("properties", {}):
                yield f"{at}.{key} is not in the schema"
            else:
                yield from undescribed(part, schema["properties"][key], root, f"{at}.{key}")
    elif isinstance(value, list) and "items" in schema:
        for number, item in enumerate(value):
            yield from undescribed(item, schema["items"], root, f"{at}[{number}]")


def evidence(scratch):
    """(name, what to give to ddx)"""
    for case in sorted((TREE / "tests/cases").glob("*/*/expected.json")):
        folder = case.parent
        if (folder / "make.py").exists():
            made = scratch / folder.name
            made.mkdir()
            subprocess.run([sys.executable, "-B", folder / "make.py", made], check=True, timeout=60,
                           env={"PYTHONPATH": str(TREE / "tests/cases")})
            folder = made
        yield case.parent.name, [folder]
    for folder in sorted((TREE / "tests/e2e/data").iterdir()):
        yield folder.name, [folder]
    noise = scratch / "noise.bin"
    noise.write_bytes(b"\x00\x01\xff")
    yield "noise", [noise]
    yield "nowhere", [scratch / "nowhere\n\x1b[31m"]


def check_the_checker(schema):
    """A validator that finds nothing wrong would pass everything."""
    broken = [{}, {"schema": "ddx.report/1"}, []]
    good = {"schema": "ddx.report/1", "command": "analyze", "verdict": "clean", "inputs": [], "world_size": None,
            "ranks_seen": [], "ranks_absent": [], "findings": [], "diagnostics": []}
    broken += [dict(good, verdict="fine"), dict(good, ranks_seen=["0"]), dict(good, world_size=True),
               dict(good, findings=[{}]), dict(good, diagnostics=[{"name": "x", "severity": "info", "count": 0,
                                                                   "detail": ""}])]
    assert not list(problems(good, schema, schema))
    for report in broken:
        assert list(problems(report, schema, schema)), report
    assert list(undescribed(dict(good, more=1), schema, schema))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ddx", required=True)
    ddx = parser.parse_args().ddx
    schema = json.loads((TREE / "docs/report-schema.json").read_text())
    check_the_checker(schema)
    wrong, reports, findings = [], 0, 0
    with tempfile.TemporaryDirectory(prefix="ddx_schema_") as folder:
        for name, paths in evidence(pathlib.Path(folder)):
            done = subprocess.run([ddx, "analyze", *paths, "--format", "json"], capture_output=True, timeout=60)
            try:
                report = json.loads(done.stdout)
            except ValueError as error:
                wrong.append(f"{name}: exit status {done.returncode}, no JSON ({error})")
                continue
            reports += 1
            findings += len(report.get("findings", []))
            for check in (problems, undescribed):
                wrong += [f"{name}: {line}" for line in check(report, schema, schema)]
    print(f"{reports} reports, {findings} findings, {len(wrong)} complaints")
    for line in wrong[:50]:
        print(line)
    return 1 if wrong or reports < 50 or findings < 50 else 0


sys.exit(main())
