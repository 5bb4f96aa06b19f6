#!/usr/bin/env python3
"""ddx on evidence that is broken: it answers, or says why not; it never crashes, hangs or eats the machine.

usage: DDX=path/to/ddx broken_evidence.py [unittest arguments]

Whatever it is given, ddx must end within a minute, with exit status 0, 1 or 3 (2, with a message, where the path itself
cannot be used), valid JSON on stdout when it judged, and less than 1 GiB of memory. Broken dumps and logs are laid into a
folder by the hundred; when such a folder fails, its files are tried singly to name the one.
"""
import json
import os
import pathlib
import pickle
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

TREE = pathlib.Path(__file__).resolve().parents[2]
DUMPS = TREE / "tests/traces/formats/flight_recorder/data"
CASES = TREE / "tests/cases/public"
DDX = os.environ.get("DDX", "ddx")
TIME_LIMIT_S = 60
MEMORY_LIMIT_KIB = int(os.environ.get("DDX_MEMORY_LIMIT_MIB", "1024")) << 10
# Only those raise the bound: they take two or three times the memory, and as much longer.
UNDER_SANITIZERS = MEMORY_LIMIT_KIB > 1 << 20
GIB = 1 << 30

SEEDS = {
    "pickle": DUMPS / "nccl_rank_1",
    "json": DUMPS / "nccl_rank_1.json",
    "gloo": DUMPS / "gloo_rank_1",
    "watchdog": CASES / "s50_all_entered_none_left/watchdog.log",
    "calls": CASES / "s48_hexadecimal_op_count/nccl_coll.log",
    "ras": CASES / "s47_the_listed_lead/ras.txt",
    "store": CASES / "s04_one_of_two_arrived/rank0.log",
    "ops": CASES / "s23_same_order_on_all_stages/ops.txt",
    "table": CASES / "s30_crash_seen_by_a_peer/addresses.csv",
}
# The dumps of all ranks of a job in which nothing is wrong.
HEALTHY = [TREE / f"tests/e2e/data/clean/rank_{rank}" for rank in range(4)]
# What the file is called, so that ddx takes it for what it was.
NAMES = {"pickle": "rank_{}", "gloo": "rank_{}", "json": "rank_{}.json", "ops": "job{}.ops", "table": "ranks{}.csv"}


def ask(target, *more, prefix=()):
    """Exit status, report (None where there is none), stderr, KiB of memory at the most."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen([*prefix, DDX, "analyze", target, "--format", "json", *more], stdout=out, stderr=err)
        begun = time.monotonic()
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() - begun > TIME_LIMIT_S:
                process.kill()
                os.wait4(process.pid, 0)
                process.returncode = -9
                return "no end within a minute", None, "", 0
            time.sleep(0.001)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0), err.seek(0)
        text = out.read()
        try:
            report = json.loads(text.decode("utf-8"))  # strict: bytes that are no UTF-8 are an error
        except ValueError as error:
            report = None if not text else f"invalid: {error}"
        return process.returncode, report, err.read().decode("utf-8", "replace"), usage.ru_maxrss


class Broken(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ddx_broken_"))

    def tearDown(self):
        for path in self.folder.rglob("*"):
            if not path.is_symlink() and path.is_dir():
                path.chmod(0o755)
        shutil.rmtree(self.folder)

    def complaint(self, target, *more, prefix=()):
        """What is wrong with the answer, or ""; with it the report."""
        status, report, err, memory = ask(target, *more, prefix=prefix)
        if status not in (0, 1, 3):
            return f"exit status {status}: {err[:300]}", report
        if not isinstance(report, dict) or report.get("schema") != "ddx.report/1":
            return f"no report on stdout: {report}", report
        if memory > MEMORY_LIMIT_KIB:
            return f"{memory} KiB of memory", report
        return "", report

    def answers(self, target=None, *more, prefix=()):
        wrong, report = self.complaint(target or self.folder, *more, prefix=prefix)
        self.assertEqual(wrong, "", target)
        return report

    def answers_each(self, files, batch=100):
        """files: (name pattern with {} for a number, bytes)."""
        for first in range(0, len(files), batch):
            part = files[first:first + batch]
            folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
            paths = []
            for number, (name, data) in enumerate(part):
                paths.append(folder / name.format(number))
                paths[-1].write_bytes(data)
            wrong, _ = self.complaint(folder)
            if wrong:
                for path in paths:
                    alone, _ = self.complaint(path)
                    self.assertEqual(alone, "", path.read_bytes()[:4000])
                self.fail(f"the files {first} to {first + len(part) - 1} together: {wrong}")


def name_of(kind):
    return NAMES.get(kind, "rank{}.log")


class Truncated(Broken):
    """A file ends wherever the process that wrote it was killed."""

    def test_every_length(self):
        for kind in ("pickle", "json", "store", "ras", "table"):
            data = SEEDS[kind].read_bytes()
            self.answers_each([(name_of(kind), data[:n]) for n in range(len(data))])

    def test_single_file_of_every_tenth_length(self):
        for kind in ("pickle", "json"):
            data = SEEDS[kind].read_bytes()
            path = self.folder / name_of(kind).format(1)
            for n in range(0, len(data), 29):
                path.write_bytes(data[:n])
                self.answers(path)

    def test_a_cut_dump_is_not_called_clean_and_whole(self):
        # All ranks of a healthy job, so that nothing but the cut is wrong.
        pickles = [path.read_bytes() for path in HEALTHY]
        texts = [json.dumps(pickle.loads(data)).encode() for data in pickles]
        for kind, ranks in (("pickle", pickles), ("json", texts)):
            dumps = {name_of(kind).format(rank): data for rank, data in enumerate(ranks)}
            for name, data in dumps.items():
                (self.folder / name).write_bytes(data)
            whole = self.answers()
            self.assertEqual(whole["verdict"], "clean", kind)
            self.assertEqual(whole["diagnostics"], [], kind)
            for victim, data in dumps.items():
                for cut in (len(data) // 4, len(data) // 2, len(data) * 3 // 4, len(data) - 1):
                    (self.folder / victim).write_bytes(data[:cut])
                    report = self.answers()
                    self.assertIn("trunc", " ".join(d["name"] for d in report["diagnostics"]), (kind, victim, cut))
                    self.assertNotEqual(report["verdict"], "clean", (kind, victim, cut))
                (self.folder / victim).write_bytes(data)
            for name in dumps:
                (self.folder / name).unlink()


class Holes(Broken):
    # What each job died of (tests/e2e), and who was at fault there.
    CULPRITS = {"clean": [], "dtype": [1], "dtype_silent": [1], "killed": [3], "order": [3], "p2p_cycle": [0, 1, 2, 3],
                "raises": [1], "rank0_only": [0], "size": [2], "size_silent": [2], "skipped": [2], "sleeps": [2],
                "uneven": [1]}

    def test_a_lost_or_cut_dump_makes_nobody_else_the_culprit(self):
        """Of four ranks one dump less may leave two sides of equal size: then both are named, and that is said."""
        for job, culprits in self.CULPRITS.items():
            whole = TREE / "tests/e2e/data" / job
            for dump in sorted(whole.glob("rank_*")):
                data = dump.read_bytes()
                for kept in (None, 0, len(data) // 4, len(data) - 200):
                    folder = self.folder / f"{job}-{dump.name}-{kept}"
                    shutil.copytree(whole, folder)
                    (folder / dump.name).unlink()
                    if kept is not None:
                        (folder / dump.name).write_bytes(data[:kept])
                    _, report, _, _ = ask(folder)
                    for finding in report["findings"]:
                        if finding["severity"] != "error" or set(finding["ranks"]) <= set(culprits):
                            continue
                        self.assertLessEqual(set(culprits), set(finding["ranks"]), (folder.name, finding))
                        self.assertIn("none is right by majority", finding["explanation"], (folder.name, finding))
                    shutil.rmtree(folder)


class Flipped(Broken):
    def test_one_bit(self):
        chance = random.Random(20260302)
        files = []
        for kind, seed in SEEDS.items():
            data = seed.read_bytes()
            for _ in range(2000 // len(SEEDS) + 1):
                broken = bytearray(data)
                broken[chance.randrange(len(broken))] ^= 1 << chance.randrange(8)
                files.append((name_of(kind), bytes(broken)))
        self.answers_each(files)

    def test_a_run_of_bytes(self):
        chance = random.Random(20260303)
        files = []
        for kind, seed in SEEDS.items():
            data = seed.read_bytes()
            for _ in range(60):
                at, length = chance.randrange(len(data)), chance.randrange(1, 64)
                files.append((name_of(kind), data[:at] + chance.randbytes(length) + data[at + length // 2:]))
        self.answers_each(files)


class Deep(Broken):
    def test_nested_containers(self):
        deep = 200_000
        self.answers_each([
            ("rank_{}.json", b'{"entries":' + b"[" * deep),
            ("rank_{}.json", b'{"entries":' + b"[" * deep + b"]" * deep + b"}"),
            ("rank_{}.json", b'{"version":"2.10","pg_config":' + b'{"0":' * deep + b"1" + b"}" * deep + b"}"),
            ("rank_{}.json", b"[" * deep),
            ("rank_{}", b"\x80\x02" + b"]" * deep + b"a" * (deep - 1) + b"."),
            ("rank_{}", b"\x80\x02}X\x07\x00\x00\x00entries" + b"]" * deep + b"a" * (deep - 1) + b"s."),
            ("rank_{}", b"\x80\x02" + b"(" * deep + b"t" * deep + b"."),
            ("rank_{}", b"\x80\x02}" + b"0}" * deep + b"."),
            ("rank_{}", b"\x80\x02]q\x00h\x00a" + b"h\x00a" * 1000 + b"."),  # a list that holds itself
            ("job{}.ops", b"world 4\n" + b"repeat 1000000000\n" * 5000 + b"0 barrier\n" + b"end\n" * 5000),
            ("job{}.ops", b"world 4\n" + b"0 group_begin\n" * 20000),
        ])


class Claims(Broken):
    """Lengths and counts that the file does not hold."""

    def test_lengths(self):
        huge32, huge64 = b"\xff\xff\xff\x7f", b"\xff\xff\xff\xff\xff\xff\xff\x7f"
        files = [("rank_{}", b"\x80\x04" + op + length + b"abc") for op, length in [
            (b"X", huge32), (b"X", b"\xff\xff\xff\xff"), (b"T", huge32), (b"T", b"\xff\xff\xff\xff"), (b"B", huge32),
            (b"\x8d", huge64), (b"\x8e", huge64), (b"\x96", huge64), (b"\x95", huge64), (b"\x8b", huge32),
            (b"\x8b", b"\xff\xff\xff\xff"), (b"\x8a", b"\xff"), (b"r", b"\xff\xff\xff\xff"), (b"j", b"\xff\xff\xff\xff"),
            (b"LONG_BINPUT", huge32), (b"c", b"os\nsystem\n(S'false'\ntR."), (b"I", b"9" * 5000 + b"\n."),
            (b"L", b"9" * 100_000 + b"L\n."), (b"F", b"1e999999\n."),
        ]]
        files += [("rank_{}", b"\x80\x02]" + b"r\xff\xff\xff\x7f" * 1000 + b".")]
        files += [("job{}.ops", text) for text in [
            b"world 300000\nall barrier\n", b"world 99999999999999999999\n", b"world -1\n",
            b"world 300000\n1-299999 send f32 1 to 0\n", b"world 2\nrepeat 18446744073709551615\nall barrier\nend\n",
            b"world 2\n0 all_to_all f32 9 splits=" + b"1," * 300_000 + b"1\n", b"world 300000\nall new_group all\n",
        ]]
        self.answers_each(files)

    def test_programs_that_are_far_larger_than_their_text(self):
        for text in [
            b"world 100000\n" + b"".join(b"%d-99999 send f32 1 to %d\n" % (i, i) for i in range(600)),
            b"world 300000\n" + b"".join(b"pg g%d = 0-299999\nall barrier g%d\n" % (i, i) for i in range(60)),
            b"world 300000\n" + b"all barrier\n" * 100,
            b"world 2\nrepeat 1000000000\nall barrier\nend\n",
        ]:
            path = self.folder / "job.ops"
            path.write_bytes(text)
            report = self.answers(path)
            self.assertEqual(report["findings"], [], text[:60])
            # Not read, not run, or run as one rank for all that are alike and judged by its end: told each time.
            told = {d["name"] for d in report["diagnostics"]}
            self.assertTrue(told & {"load.failed_file", "replay.refused", "replay.judged_in_part"}, (text[:60], told))

    def test_numbers_of_a_log(self):
        lines = [line.replace("120049", number) for line in SEEDS["watchdog"].read_text().splitlines()[:2]
                 for number in ("0", "-1", "18446744073709551615", "9" * 400, "1e99", "0x7f", "")]
        lines += [line.replace("[rank2]", f"[rank{rank}]") for line in SEEDS["watchdog"].read_text().splitlines()[:2]
                  for rank in ("-1", "4294967295", "99999999999999999999", "", "2]" * 100)]
        lines += ["node-a:1:1 [0] NCCL INFO AllReduce: opCount ffffffffffffffff sendbuff 0 recvbuff 0 count "
                  "18446744073709551615 datatype 99 op 99 root -5 comm 0x1 [nranks=2147483647] stream 0x1",
                  "node-a:1:1 [0] NCCL INFO comm 0x1 rank 2147483647 nranks 2147483647 cudaDev 0 busId 0 - Init COMPLETE",
                  "rank 5: store_based_barrier_key:1 (world_size=2147483647, worker_count=2147483646, timeout=0:10:00)",
                  "Timed out initializing process group in store based barrier on rank: 0, for key: "
                  "store_based_barrier_key:1 (world_size=4194304, worker_count=1, timeout=0:10:00)",
                  "    2147483640 ranks have launched up to operation 9223372036854775807"]
        self.answers_each([("rank{}.log", (line + "\n").encode()) for line in lines] +
                          [("all{}.log", "\n".join(lines).encode())])

    def test_ranks_and_worlds_of_a_dump(self):
        files = []
        for ranks in ("[0, 4294967295]", "[-1]", "[" + "0, " * 100_000 + "0]", "[0-999999999]", "0, 1", "[[0]]", "", "[1e9]"):
            dump = json.loads(SEEDS["json"].read_text())
            dump["pg_config"]["0"]["ranks"] = ranks
            files += [("rank_{}.json", json.dumps(dump).encode()), ("rank_{}", pickle.dumps(dump, protocol=2))]
        for rank in ("4294967295", "99999999999999999999", "-1", "1000000"):
            files += [(f"rank_{rank}" + ".json", SEEDS["json"].read_bytes())]
        self.answers_each(files)


class WrongTypes(Broken):
    """Every key that ddx knows, with every type that it does not expect."""

    VALUES = (None, True, -1, 0, 1 << 62, 1 << 63, 1 << 70, 0.5, 1e308, "", "7", "text", "\x00\x1b[31m", [], [[]], [None],
              [-1], [[1 << 62, 1 << 62]], ["Float", 3], {}, {"": 1}, {"ranks": "[0]"})

    def replaced(self, dump, keys):
        for key in keys:
            for value in (*self.VALUES, KeyError):
                copy = json.loads(json.dumps(dump))
                inner = copy
                for step in key[:-1]:
                    inner = inner[step]
                if value is KeyError:
                    del inner[key[-1]]
                else:
                    inner[key[-1]] = value
                yield copy

    def test_every_key(self):
        dump = json.loads(SEEDS["json"].read_text())
        dump["entries"] = dump["entries"][:2]
        keys = [(key,) for key in dump]
        keys += [("pg_config", "0"), ("pg_status", "0"), ("entries", 0), ("entries", 0, "frames", 0)]
        keys += [("pg_config", "0", key) for key in dump["pg_config"]["0"]]
        keys += [("pg_status", "0", key) for key in dump["pg_status"]["0"]]
        keys += [("entries", 0, key) for key in dump["entries"][0]]
        keys += [("entries", 0, "frames", 0, key) for key in dump["entries"][0]["frames"][0]]
        files = []
        for copy in self.replaced(dump, keys):
            files.append(("rank_{}.json", json.dumps(copy).encode()))
            files.append(("rank_{}", pickle.dumps(copy, protocol=2)))
        self.assertGreater(len(files), 1000)
        self.answers_each(files)


class Long(Broken):
    def test_line_of_one_gib(self):
        # Sparse: the middle is bytes of value 0 that take no room on the disk.
        path = self.folder / "rank0.log"
        with path.open("wb") as out:
            out.write(b"[rank0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=")
            out.truncate(GIB >> 2 if UNDER_SANITIZERS else GIB)
            out.seek(0, os.SEEK_END)
            out.write(b"x rank " * 1000)
        # The mapped file counts as memory that the system may take back at will: it is not the process's own.
        status, report, err, _ = ask(path)
        self.assertIn(status, (0, 1, 3), err)
        self.assertEqual(report["schema"], "ddx.report/1")

    def test_lines_of_eight_mib(self):
        size = 8 << 20
        self.answers_each([
            ("rank{}.log", b"[rank0] " + b"x" * size),
            ("rank{}.log", b"[rank0] NCCL WARN " * (size // 18)),
            ("rank{}.log", b"\n" * size),
            ("rank{}.log", b"[" * size),
            ("rank{}.log", b"\xff\xfe" * (size // 2)),
            ("rank{}.log", b"\x1b[31m" * (size // 5)),
            ("rank_{}.json", b'{"version":"2.10","entries":[' + b'{"state":"' + b"\\u0000" * (size // 6) + b'"}]}'),
            ("rank_{}.json", b" " * size),
            ("job{}.ops", b"world 2\n0 raise " + b"x" * size),
            ("ranks{}.csv", b"rank,host\n" + b"," * size),
            ("ranks{}.csv", b'rank,host\n0,"' + b"x" * size),
        ])


class SpecialFiles(Broken):
    def test_pipe_socket_device_and_links(self):
        shutil.copy(SEEDS["watchdog"], self.folder / "watchdog.log")
        os.mkfifo(self.folder / "rank_0")
        os.mkfifo(self.folder / "rank_1.log")
        os.symlink("/dev/zero", self.folder / "rank_2")
        os.symlink("/dev/stdin", self.folder / "rank_3.log")
        os.symlink("/proc/self/mem", self.folder / "rank_4.log")
        os.symlink("loop_b", self.folder / "loop_a")
        os.symlink("loop_a", self.folder / "loop_b")
        os.symlink(".", self.folder / "again")
        os.symlink(self.folder, self.folder / "whole")
        os.symlink("nowhere", self.folder / "rank_5.json")
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(str(self.folder / "rank_6.log"))
        report = self.answers()
        self.assertEqual([f["code"] for f in report["findings"] if f["severity"] == "error"], ["stuck-in-collective"])

    def test_given_by_name(self):
        os.mkfifo(self.folder / "pipe")
        for target in (self.folder / "pipe", pathlib.Path("/dev/zero"), pathlib.Path("/dev/null")):
            status, report, err, _ = ask(target)
            # No regular file is read, as it may never end: what is left is nothing.
            self.assertEqual(status, 3, (target, err))
            self.assertEqual(report["verdict"], "inconclusive", target)
            self.assertIn("no regular file", json.dumps(report["inputs"]), target)

    def test_unreadable_file_and_folder(self):
        prefix = ()
        if os.geteuid() == 0:
            if not shutil.which("setpriv"):
                self.skipTest("root reads everything, and setpriv is not here to become someone else")
            prefix = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
            self.folder.chmod(0o755)
            if subprocess.run([*prefix, DDX, "--version"], capture_output=True).returncode:
                self.skipTest("another user cannot start ddx here")
        shutil.copy(SEEDS["watchdog"], self.folder / "watchdog.log")
        secret = self.folder / "rank_1.json"
        shutil.copy(SEEDS["json"], secret)
        secret.chmod(0)
        closed = self.folder / "closed"
        closed.mkdir()
        closed.chmod(0)
        report = self.answers(self.folder, prefix=prefix)
        told = json.dumps(report)
        self.assertIn("rank_1.json", told)
        self.assertIn("closed", told)
        self.assertIn("stuck-in-collective", told)

    def test_empty_folder_and_empty_files(self):
        for names in ((), ("rank_0", "rank_1.json", "rank_2.log", "job.ops", "ranks.csv")):
            for name in names:
                (self.folder / name).touch()
            status, report, err, _ = ask(self.folder)
            self.assertEqual(status, 3, (names, err))
            self.assertEqual(report["verdict"], "inconclusive", names)
            self.assertEqual(report["findings"], [], names)
            self.assertEqual(len(report["inputs"]), len(names))

    def test_deep_folders(self):
        path = self.folder
        for _ in range(300):
            path = path / "d"
            path.mkdir()
        shutil.copy(SEEDS["watchdog"], self.folder / "watchdog.log")
        self.answers()


class Names(Broken):
    def test_hostile_names(self):
        data = SEEDS["json"].read_bytes()
        names = [b"rank_0\nrank_1.json", b"rank_2\x1b[2J\x1b]0;owned\x07.json", b"rank_3\xff\xfe\xc3.json", b"-rf", b"--help",
                 b"rank_4 $(touch owned).json", b"rank_5;x.json", b"rank_\xf0\x9f\x92\xa5.json", b"%s%n%d.json", b"{}{0}.json",
                 b"rank_6\xe2\x80\xae.json", b"a" * 255, b"rank_7\r.json", b"rank_8\".json", b"rank_9<script>.json"]
        for name in names:
            with open(os.path.join(os.fsencode(self.folder), name), "wb") as out:
                out.write(data)
        self.answers()
        for form in ("text", "json", "sarif", "junit", "github"):
            done = subprocess.run([DDX, "analyze", self.folder, "--format", form, "--no-color", "-v"],
                                  capture_output=True, timeout=TIME_LIMIT_S)
            self.assertIn(done.returncode, (0, 1, 3))
            out = done.stdout.decode("utf-8")  # strict
            self.assertNotIn("\x1b", out, form)
            self.assertNotIn("\x07", out, form)
            if form not in ("json", "sarif"):  # data for programs: these hold names as they are
                self.assertNotIn("\u202e", out, form)
        self.assertFalse((self.folder / "owned").exists())

    def test_escape_sequences_in_a_log(self):
        line = "[rank2] NCCL WARN \x1b[2J\x1b]0;owned\x07 Call to recv from 192.0.2.21<58355> failed : Broken pipe\n"
        (self.folder / "rank2.log").write_text(line + "RuntimeError: \x1b[31mred\x9b5m \u202e\x08 ::error::fake\n")
        for form in ("text", "json", "sarif", "junit", "github"):
            done = subprocess.run([DDX, "analyze", self.folder, "--format", form, "--no-color", "-v"],
                                  capture_output=True, timeout=TIME_LIMIT_S)
            out = done.stdout.decode("utf-8")
            for character in "\x1b\x07\x08" + ("" if form in ("json", "sarif") else "\x9b\u202e"):
                self.assertNotIn(character, out, form)
            if form == "github":
                for told in out.splitlines():
                    self.assertFalse(told.startswith("::error::fake"), told)


class Many(Broken):
    def test_ten_thousand_small_files(self):
        for number in range(10_000):
            (self.folder / f"rank_{number}.log").write_text(f"step {number} loss 0.5\n")
        self.answers()

    def test_two_thousand_files_of_one_rank(self):
        data = SEEDS["store"].read_bytes()
        for number in range(2_000):
            folder = self.folder / str(number)
            folder.mkdir()
            (folder / "rank_0.json").write_bytes(data if number % 2 else SEEDS["json"].read_bytes())
        self.answers()


if __name__ == "__main__":
    unittest.main(verbosity=2)
