#!/usr/bin/env python3
"""Timelines that `ddx convert` writes, against the rules of the trace event format and against their inputs.

The format: complete events (X) have name, ph, ts, dur, pid, tid; ts and dur are microseconds. Slices of one track do not
overlap unless one holds the other. A flow (s, t, f) has one start and one end, in this order of time, each inside a slice
of its track.
"""
import argparse
import collections
import decimal
import json
import pathlib
import subprocess
import tempfile
import unittest

OPTIONS = None


def convert(folder, *inputs, output="out.perfetto.json"):
    out = pathlib.Path(folder) / output
    done = subprocess.run([OPTIONS.ddx, "convert", *map(str, inputs), "-o", str(out)], capture_output=True, text=True,
                          timeout=120)
    if done.returncode != 0:
        raise AssertionError(f"exit {done.returncode}: {done.stderr}")
    return out.read_bytes(), done.stderr


def rules(test, data):
    """Checks what holds of every timeline; gives slices, flows by id, names of processes, otherData."""
    timeline = json.loads(data.decode("utf-8"), parse_float=decimal.Decimal)
    slices, flows, names, tracks = [], collections.defaultdict(list), {}, set()
    for event in timeline["traceEvents"]:
        test.assertIsInstance(event["pid"], int)
        if event["ph"] == "X":
            for key in ("name", "cat", "tid", "args"):
                test.assertIn(key, event)
            for key in ("ts", "dur"):
                test.assertIsInstance(event[key], (int, decimal.Decimal))
                test.assertGreaterEqual(event[key], 0)
                test.assertEqual(event[key] * 1000 % 1, 0, "finer than nanoseconds")
            slices.append(event)
        elif event["ph"] in "stf":
            flows[event["id"]].append(event)
        else:
            test.assertEqual(event["ph"], "M")
            if event["name"] == "process_name":
                test.assertNotIn(event["pid"], names, "two processes of one number")
                names[event["pid"]] = event["args"]["name"]
            if event["name"] == "thread_name":
                tracks.add((event["pid"], event["tid"]))
    by_track = collections.defaultdict(list)
    for event in slices:
        test.assertIn((event["pid"], event["tid"]), tracks, "a track without a name")
        by_track[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    for spans in by_track.values():
        spans.sort()
        for (_, end), (begin, _) in zip(spans, spans[1:]):
            test.assertLessEqual(end, begin, "slices of one track overlap")
    for events in flows.values():
        phases = [event["ph"] for event in sorted(events, key=lambda e: e["ts"])]  # stable: then by place in the file
        test.assertEqual(phases, ["s"] + ["t"] * (len(phases) - 2) + ["f"])
        for event in events:
            spans = by_track[event["pid"], event["tid"]]
            test.assertTrue(any(a <= event["ts"] <= b for a, b in spans), "an arrow outside of every slice")
    return slices, flows, names, timeline["otherData"]


class Timeline(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def write(self, name, text):
        path = pathlib.Path(self.folder.name) / name
        path.write_text(text)
        return path

    def timeline(self, *inputs):
        data, _ = convert(self.folder.name, *inputs)
        return rules(self, data)

    def test_times_are_micros_from_the_earliest(self):
        ops = self.write("a.ops", "world 2\n0 all_reduce f32 256 redop=sum seq=7 start=1000000123 end=1000002124 [completed]\n"
                                  "1 all_reduce f32 256 redop=sum seq=7 start=1000001000 end=1000002124 [completed]\n")
        slices, flows, names, other = self.timeline(ops)
        self.assertEqual([(s["pid"], s["ts"], s["dur"]) for s in slices],
                         [(0, 0, decimal.Decimal("2.001")), (1, decimal.Decimal("0.877"), decimal.Decimal("1.124"))])
        self.assertEqual(other["base_time_ns"], "1000000123")
        args = slices[0]["args"]
        self.assertEqual((args["kind"], args["group"], args["seq"], args["count"], args["dtype"], args["bytes"],
                          args["redop"]), ("all_reduce", "pg0", 7, 256, "f32", 1024, "sum"))
        self.assertEqual(names, {0: "rank 0", 1: "rank 1"})
        self.assertEqual([[(e["ph"], e["pid"]) for e in flow] for flow in flows.values()], [[("s", 0), ("f", 1)]])

    def test_arrows_join_sends_with_receives_and_members_of_collectives(self):
        ops = self.write("b.ops", "world 4\npg tp = 1,3\n0 send f32 8 to 2\n0 send f32 8 to 2\n2 recv f32 8 from 0\n"
                                  "2 recv f32 8 from 0\n1 barrier tp\n3 barrier tp\nall barrier\n")
        slices, flows, _, other = self.timeline(ops)
        pairs = sorted(tuple(sorted(e["pid"] for e in flow)) for flow in flows.values())
        self.assertEqual(pairs, [(0, 1, 2, 3), (0, 2), (0, 2), (1, 3)])
        self.assertEqual(len(slices), 10)
        self.assertIn("placed by order", other["without_times"])

    def test_without_times_the_file_says_so_and_loops_run_out(self):
        ops = self.write("c.ops", "world 2\nrepeat 50\n0 compute 3us\nall all_reduce f32 4\nend\n")
        data, told = convert(self.folder.name, ops)
        slices, flows, names, _ = rules(self, data)
        self.assertEqual(len(slices), 150)
        self.assertEqual(len(flows), 50)
        self.assertIn("no times recorded", names[0])
        self.assertIn("150 of 150 operations have no recorded time", told)
        self.assertEqual([s["dur"] for s in slices[:2]], [3, 10])

    def test_calls_in_flight_go_on_to_the_end_and_overlap_on_tracks_of_their_own(self):
        ops = self.write("d.ops", "world 1\n0 record snapshot\n0 all_reduce f32 4 stream=3 start=1000 [started]\n"
                                  "0 all_reduce f32 4 stream=3 start=2000 [started]\n"
                                  "0 barrier stream=4 start=1000 end=9000 [completed]\n")
        slices, _, _, _ = self.timeline(ops)
        self.assertEqual([(s["ts"], s["dur"]) for s in slices], [(0, 8), (1, 7), (0, 8)])
        self.assertEqual(slices[0]["args"]["end"], "not recorded")
        self.assertEqual(len({s["tid"] for s in slices}), 3)

    def test_names_of_any_kind_stay_json(self):
        ops = self.write("e.ops", 'world 1\npg "a\\"b\\\\\\x01" = 0\n0 barrier "a\\"b\\\\\\x01"\n0 compute 1us name="x\\ty"\n')
        self.timeline(ops)

    def test_real_profiles_and_traces(self):
        data = pathlib.Path(OPTIONS.source) / "tests/traces/formats"
        slices, _, _, _ = self.timeline(data / "kineto/data/ddp_rank0_of_2.json")
        kinds = collections.Counter(s["args"]["kind"] for s in slices)
        self.assertEqual(kinds, {"all_reduce": 5, "broadcast": 2, "compute": 14})
        slices, flows, _, _ = self.timeline(*sorted((data / "chakra/data").glob("all_reduce.*.et")))
        self.assertEqual((len(slices), len(flows)), (8, 1))

    def test_peers_and_roots_are_global_ranks(self):
        ops = self.write("f.ops", "world 4\npg pp = 1,3\n1 send f32 8 to 3 pp\n3 recv f32 8 from 1 pp\n"
                                  "1,3 broadcast f32 8 pp root=3\n")
        slices, _, _, _ = self.timeline(ops)
        self.assertEqual([s["name"] for s in slices if s["cat"] == "p2p"], ["send to 3", "recv from 1"])
        self.assertEqual([s["args"]["root"] for s in slices if s["name"] == "broadcast"], [3, 3])

    def test_same_bytes_each_time(self):
        data = pathlib.Path(OPTIONS.source) / "tests/traces/formats/kineto/data"
        inputs = sorted(data.glob("*.json"))
        self.assertEqual(convert(self.folder.name, *inputs)[0], convert(self.folder.name, *inputs)[0])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--ddx", required=True)
    parser.add_argument("--source", required=True)
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=["perfetto_test", *rest])
