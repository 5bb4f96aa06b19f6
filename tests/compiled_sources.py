"""Lists the project's own files of a compile_commands.json, each once."""

import json
import os
import sys

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
with open(sys.argv[1]) as commands:
    files = {os.path.normpath(os.path.join(entry["directory"], entry["file"])) for entry in json.load(commands)}
for file in sorted(files):
    if file.startswith(root + os.sep) and not file.startswith(os.path.join(root, "build")):
        print(file)
