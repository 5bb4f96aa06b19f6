"""Lists the project's own files of a compile_commands.json, each once.

    compiled_sources.py COMMANDS [--without FOLDER]
"""

import json
import os
import sys

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
left_out = ["build"] + sys.argv[3:]
with open(sys.argv[1]) as commands:
    files = {os.path.normpath(os.path.join(entry["directory"], entry["file"])) for entry in json.load(commands)}
for file in sorted(files):
    inside = os.path.relpath(file, root)
    if not inside.startswith("..") and not any(inside.startswith(folder) for folder in left_out):
        print(file)
