#!/usr/bin/env python3
"""dumps_test.py GENERATOR DDX: the dumps that the bench measures on are dumps that PyTorch could have written."""

import json
import pickle
import pickletools
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

# All that torch::jit::Pickler writes for a dump.
PYTORCH_OPCODES = {"PROTO", "STOP", "EMPTY_DICT", "SETITEMS", "EMPTY_LIST", "APPENDS", "MARK", "TUPLE2", "BINUNICODE",
                   "BINPUT", "LONG_BINPUT", "BINGET", "LONG_BINGET", "BININT1", "BININT2", "BININT", "LONG1",
                   "BINFLOAT", "NEWTRUE", "NEWFALSE", "NONE"}


class Dumps(unittest.TestCase):
    generator = ddx = ""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def make(self, *options, ranks=16, entries=60):
        subprocess.run([self.generator, "--ranks", str(ranks), "--entries", str(entries), "--out", self.folder,
                        *options], check=True, capture_output=True)
        return [(self.folder / f"rank_{rank}").read_bytes() for rank in range(ranks)]

    def findings(self):
        done = subprocess.run([self.ddx, "analyze", self.folder, "--format", "json"], capture_output=True, check=False)
        return [(f["code"], f["ranks"]) for f in json.loads(done.stdout)["findings"]]

    def test_only_opcodes_of_pytorch(self):
        first = self.make()[0]
        self.assertEqual({opcode.name for opcode, _, _ in pickletools.genops(first)} - PYTORCH_OPCODES, set())

    def test_python_loads_what_was_asked_for(self):
        dump = pickle.loads(self.make("--fault", "none")[9])
        self.assertEqual(dump["version"], "2.10")
        self.assertEqual(len(dump["entries"]), 60)
        self.assertEqual({len(entry["frames"]) for entry in dump["entries"]}, {20})
        self.assertEqual({group["desc"]: group["ranks"] for group in dump["pg_config"].values()},
                         {"default_pg": "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]",
                          "mesh_tp": "[8, 9, 10, 11, 12, 13, 14, 15]", "mesh_dp": "[1, 9]"})

    def test_an_entry_costs_what_it_costs_in_a_real_dump(self):
        size = len(self.make("--fault", "none", entries=2000)[0])
        self.assertTrue(165 <= size / 2000 <= 200, size / 2000)

    def test_outputs_are_members_times_inputs(self):
        members = {"mesh_tp": 8, "mesh_dp": 4, "default_pg": 32}
        for entry in pickle.loads(self.make(ranks=32)[3])["entries"]:
            small, large = sorted(self.elements(entry[side]) for side in ("input_sizes", "output_sizes"))
            factor = 1 if entry["profiling_name"] == "nccl:all_reduce" else members[entry["process_group"][1]]
            self.assertEqual(small * factor, large, entry)

    def test_a_skip_of_a_tensor_parallel_call_stops_everybody(self):
        # Operation 45 is rank 5's 3rd step's 3rd all_reduce; ranks 0-7 hang in it, the others at their next exchange.
        dumps = [pickle.loads(dump) for dump in self.make("--fault", "skip@5:45")]
        self.assertEqual([len(dump["entries"]) for dump in dumps], [60] * 5 + [59] + [60] * 10)
        first_open = [next(e["record_id"] for e in d["entries"] if e["state"] == "scheduled") for d in dumps]
        self.assertEqual(first_open, [45] * 8 + [52] * 8)
        self.assertEqual(self.findings(), [("rank-skipped", [5])])

    def test_a_skip_of_a_data_parallel_call(self):
        self.make("--fault", "skip@13:53", ranks=32)
        self.assertEqual(self.findings(), [("rank-skipped", [13])])

    def test_without_a_fault_nothing_is_found(self):
        self.make("--fault", "none")
        self.assertEqual(self.findings(), [])

    def test_json_says_the_same(self):
        dumps = self.make()
        texts = [json.loads(text) for text in self.make("--format", "json")]
        for dump, text in zip(map(pickle.loads, dumps), texts):
            for entry in dump["entries"]:
                del entry["frames"]  # a JSON dump holds none, writes a list for a tuple and 0 for None
                entry["process_group"] = list(entry["process_group"])
                for key in ("time_discovered_started_ns", "time_discovered_completed_ns"):
                    entry[key] = entry[key] or 0
            self.assertEqual(dump["entries"], text["entries"])

    @staticmethod
    def elements(sizes):
        product = 1
        for dimension in sizes[0]:
            product *= dimension
        return product


if __name__ == "__main__":
    Dumps.generator, Dumps.ddx = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1])
