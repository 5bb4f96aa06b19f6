"""Holds the tree to the include table of docs/architecture.md.

    layering_test.py ROOT         says what breaks the rules; exit status 1 if anything does
    layering_test.py --self-test  shows that every rule can be broken: one bad tree for each

Rules: a room includes only the rooms of its row; a third party's headers stand only where its row says; no include
cycle between files, none between rooms; a quoted include names a file from the root; a file has at most 800 lines, a
function at most 100.
"""

import pathlib
import re
import sys
import tempfile

MAX_FILE_LINES = 800
MAX_FUNCTION_LINES = 100
TABLE_HEAD = ("room", "may include", "third parties")

# Which library a header belongs to.
THIRD_PARTIES = [
    (re.compile(r"fmt/"), "fmt"),
    (re.compile(r"simdjson\.h$"), "simdjson"),
    (re.compile(r"nlohmann/"), "nlohmann_json"),
    (re.compile(r"zlib\.h$"), "zlib"),
    (re.compile(r"CLI/"), "CLI11"),
    (re.compile(r"boost/asio"), "Boost.Asio"),
    (re.compile(r"(gtest|gmock)/"), "GoogleTest"),
    (re.compile(r"benchmark/"), "Google Benchmark"),
]
# The standard library's have neither dot nor folder; these are the system's.
SYSTEM = re.compile(r"[a-z_0-9]+$|(unistd|fcntl|signal|dlfcn|link|poll|pthread|sched|spawn|dirent|termios|stddef|stdint)\.h$|sys/[a-z]+\.h$")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]')


class Table:
    """rooms: {room: rooms it may include}; parties: {library: paths below which it may stand}."""

    def __init__(self, text):
        self.rooms, self.parties = {}, {}
        for cells in self._rows(text):
            room = cells[0].strip("`/ ")
            self.rooms[room] = {name.strip("`/ ") for name in cells[1].split(",") if name.strip("`/ ") not in ("", "-")}
            for party in cells[2].split(","):
                name, _, place = party.strip().partition(" in ")
                if name not in ("", "-"):
                    self.parties.setdefault(name, []).append(place.strip("`/ ") or room)

    @staticmethod
    def _rows(text):
        inside = False
        for line in text.splitlines():
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if tuple(cell.lower() for cell in cells) == TABLE_HEAD:
                inside = True
            elif inside and not line.startswith("|"):
                return
            elif inside and not set(line) <= set("|-: "):
                yield cells

    def room_of(self, path):
        """The room of a file: the longest row that its path begins with."""
        fitting = [room for room in self.rooms if path.startswith(room + "/")]
        return max(fitting, key=len, default=None)

    def may(self, room, other):
        return room == other or other in self.rooms[room] or "all" in self.rooms[room]


def sources(root):
    for top in sorted(root.iterdir()):
        if top.is_dir() and not top.name.startswith(("build", ".")):
            for path in sorted(top.rglob("*")):
                if path.suffix in (".h", ".cc") and path.is_file():
                    yield path.relative_to(root).as_posix(), path.read_text(errors="replace").splitlines()


def check_includes(root, table, path, lines, graph):
    room = table.room_of(path)
    if room is None:
        yield f"{path}: in no room of the table in docs/architecture.md"
        return
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        where, quoted, name = f"{path}:{number}", match[1] == '"', match[2]
        if quoted:
            graph.setdefault(path, set()).add(name)
            other = table.room_of(name)
            if other is None or not (root / name).is_file():
                yield f'{where}: "{name}" is no file of the tree (name it from the root)'
            elif not table.may(room, other):
                yield f'{where}: {room} may not include {other} ("{name}")'
            continue
        party = next((party for pattern, party in THIRD_PARTIES if pattern.match(name)), None)
        if party is not None:
            if not any(path.startswith(place + "/") for place in table.parties.get(party, [])):
                yield f"{where}: {party} may not be used here (<{name}>)"
        elif not SYSTEM.match(name):
            yield f"{where}: <{name}> belongs to no known library: add it to layering_test.py and to the table"


def cycle_in(graph):
    """Some cycle of a graph {node: nodes}, as a list that ends where it begins; None if there is none."""
    done = set()
    for start in sorted(graph):
        trail, stack = [], [(start, iter(sorted(graph.get(start, ()))))]
        if start in done:
            continue
        trail.append(start)
        while stack:
            node, rest = stack[-1]
            following = next(rest, None)
            if following is None:
                done.add(node)
                trail.pop()
                stack.pop()
            elif following in trail:
                return trail[trail.index(following) :] + [following]
            elif following not in done:
                trail.append(following)
                stack.append((following, iter(sorted(graph.get(following, ())))))
    return None


def check_lengths(path, lines):
    if len(lines) > MAX_FILE_LINES:
        yield f"{path}: {len(lines)} lines, more than {MAX_FILE_LINES}"
    # The tree is formatted: a function begins on a line that ends in ") {" or the like, and ends at a "}" below its
    # first letter. Classes, namespaces and tables of data are no functions.
    opened, head = {}, None
    for number, line in enumerate(lines, 1):
        indent = len(line) - len(line.lstrip())
        text = line.strip()
        if indent <= 2 and text and not text.startswith(("//", "#")):
            head = (indent, number, text)
        if text in ("}", "};") and indent in opened:
            start, is_function = opened.pop(indent)
            if is_function and number - start + 1 > MAX_FUNCTION_LINES:
                yield f"{path}:{start}: a function of {number - start + 1} lines, more than {MAX_FUNCTION_LINES}"
        elif text.endswith("{") and head and head[0] not in opened:
            first = head[2]
            if number != head[1] and first.endswith((";", "}", "{", ":")):
                continue  # inside a body, not the rest of a signature
            if re.match(r"(inline )?namespace\b|extern \"C\"", first):
                continue  # what is inside is not indented
            data = re.match(r"(template.*> )?(class|struct|enum|union)\b", first) or " = {" in text or text.endswith("{{")
            opened[head[0]] = (head[1], ")" in text and not data)


def check(root):
    document = root / "docs/architecture.md"
    table = Table(document.read_text() if document.is_file() else "")
    if not table.rooms:
        return ["docs/architecture.md: no table with the columns " + " | ".join(TABLE_HEAD)]
    problems, graph = [], {}
    for room, others in table.rooms.items():
        for other in sorted(others - set(table.rooms) - {"all"}):
            problems.append(f"docs/architecture.md: {room} may include {other}, which is no room")
    for path, lines in sources(root):
        problems += check_includes(root, table, path, lines, graph)
        problems += check_lengths(path, lines)
    for kind, edges in (("files", graph), ("rooms", table.rooms)):
        cycle = cycle_in(edges)
        if cycle:
            problems.append(f"an include cycle between {kind}: " + " -> ".join(cycle))
    return problems


TEST_TABLE = """
| room | may include | third parties |
|---|---|---|
| `base/` | - | fmt |
| `model/` | base | fmt |
| `cli/` | base, model | CLI11, nlohmann_json in cli/report |
| `tests/` | all | GoogleTest |
"""

GOOD = {
    "docs/architecture.md": TEST_TABLE,
    "base/a.h": "#include <vector>\n#include <fmt/format.h>\n",
    "model/m.h": '#include "base/a.h"\n#include <sys/stat.h>\n',
    "cli/report/r.cc": '#include <nlohmann/json.hpp>\n#include "model/m.h"\n',
    "tests/t.cc": '#include <gtest/gtest.h>\n#include "cli/c.h"\n',
    "cli/c.h": "int f() {\n" + "  g();\n" * 98 + "}\n",
}

# What is added to the good tree, and the words that the complaint must hold.
BAD = [
    ({"base/b.h": '#include "model/m.h"\n'}, "base may not include model"),
    ({"cli/c.cc": '#include <nlohmann/json.hpp>\n'}, "nlohmann_json may not be used here"),
    ({"model/n.cc": '#include <gtest/gtest.h>\n'}, "GoogleTest may not be used here"),
    ({"model/n.cc": '#include <boost/asio.hpp>\n'}, "Boost.Asio may not be used here"),
    ({"model/n.cc": '#include <boost/hana.hpp>\n'}, "belongs to no known library"),
    ({"model/n.cc": '#include "m.h"\n'}, "is no file of the tree"),
    ({"model/x.h": '#include "model/y.h"\n', "model/y.h": '#include "model/x.h"\n'}, "cycle between files: model/x.h"),
    ({"docs/architecture.md": TEST_TABLE.replace("| - | fmt |", "| model | fmt |")}, "cycle between rooms: base"),
    ({"docs/architecture.md": TEST_TABLE.replace("base, model |", "base, modl |")}, "modl, which is no room"),
    ({"docs/architecture.md": "# Rooms\n"}, "no table"),
    ({"extra/e.cc": "\n"}, "in no room"),
    ({"base/long.cc": "\n" * 801}, "801 lines"),
    ({"base/long.cc": "namespace x {\nvoid f(int a,\n       int b) {\n" + "  g();\n" * 100 + "}\n"}, "a function of 103 lines"),
    ({"base/long.cc": "class C {\n  int f() const {\n" + "    g();\n" * 100 + "  }\n};\n"}, "a function of 102 lines"),
]


def problems_of(files):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        return check(root)


def self_test():
    failures = [f"the good tree: {problem}" for problem in problems_of(GOOD)]
    for files, words in BAD:
        found = problems_of({**GOOD, **files})
        if not any(words in problem for problem in found):
            failures.append(f"not found: {words!r} in {sorted(files)}; found was {found}")
    return failures


def main():
    problems = self_test() if sys.argv[1:] == ["--self-test"] else check(pathlib.Path(sys.argv[1]).resolve())
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
