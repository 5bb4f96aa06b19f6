"""Runs ddx wrap over small jobs and looks at what it passes on, keeps and says.

Jobs that wait do so for files that others make; times (--hang-after 2s and the like) are only lower bounds of what is
waited for."""

import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

ARGS = None
LIMIT = 120  # seconds that nothing here comes near, on a loaded machine either


class WrapTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ddx-wrap-test-"))
        self.out = self.folder / "capture"
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def command(self, job, *options):
        return [ARGS.ddx, "wrap", "--out", str(self.out), "--no-torch", *options, "--", *job]

    def wrap(self, job, *options, env=None, **more):
        return subprocess.run(self.command(job, *options), cwd=self.folder, env={**os.environ, **(env or {})},
                              capture_output=True, text=True, timeout=LIMIT, check=False, **more)

    def start(self, job, *options, **more):
        process = subprocess.Popen(self.command(job, *options), cwd=self.folder, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, **more)
        self.addCleanup(process.kill)
        return process

    def ranks(self, *words_of_ranks):
        """A launcher of such ranks: `wrap_rank WORDS` each; it ends with the worst status."""
        lines = ["import os, subprocess, sys", f"size = {len(words_of_ranks)}", "children = []"]
        for rank, words in enumerate(words_of_ranks):
            lines.append(f"env = dict(os.environ, RANK='{rank}', WORLD_SIZE=str(size), LOCAL_RANK='{rank}')")
            lines.append(f"children.append(subprocess.Popen({[ARGS.rank, *words.split()]!r}, env=env))")
        lines.append("codes = [child.wait() for child in children]")
        lines.append("sys.exit(max(code if code >= 0 else 128 - code for code in codes))")
        path = self.folder / "launcher.py"
        path.write_text("\n".join(lines) + "\n")
        return [sys.executable, str(path)]

    def log(self, name):
        """(stream, whole or part, text) of each line."""
        lines = []
        for line in (self.out / name).read_text().splitlines():
            match = re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z (stdout|stderr) ([FP]) (.*)", line)
            self.assertTrue(match, line)
            lines.append(match.groups())
        return lines

    def processes(self):
        return json.loads((self.out / "processes.json").read_text())["processes"]

    def await_path(self, path, process):
        end = time.monotonic() + LIMIT
        while not path.exists():
            self.assertIsNone(process.poll(), "wrap ended early")
            self.assertLess(time.monotonic(), end, f"{path} did not come")
            time.sleep(0.01)

    # Exit statuses

    def test_the_job_has_the_limits_and_the_input_that_it_would_have(self):
        script = "ulimit -n; cat; ls -l /proc/self/fd/0 | sed 's/.*-> //; s/:.*//'"
        limit = ["sh", "-c", "ulimit -Sn 321; exec \"$@\"", "sh"]
        plain = subprocess.run([*limit, "sh", "-c", script], input="typed\n", capture_output=True, text=True, check=False)
        done = subprocess.run([*limit, *self.command(["sh", "-c", script])], input="typed\n", cwd=self.folder,
                              capture_output=True, text=True, timeout=LIMIT, check=False)
        self.assertEqual(done.stdout, plain.stdout)
        self.assertTrue(plain.stdout.startswith("321\n"))

    def test_passes_statuses_on(self):
        for script, status in [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 137), ("kill -TERM $$", 143)]:
            with self.subTest(script):
                self.out = self.folder / script.replace(" ", "_").replace("$", "")
                self.assertEqual(self.wrap(["sh", "-c", script]).returncode, status)
                job = self.processes()[0]
                self.assertEqual(job["exit_code"], None if status > 128 else status)
                self.assertEqual(job["signal"], status - 128 if status > 128 else None)

    def test_a_command_that_is_none(self):
        (self.folder / "data").write_text("no program")
        self.assertEqual(self.wrap(["./data"]).returncode, 126)
        done = self.wrap(["no-such-program-here"])
        self.assertEqual(done.returncode, 127)
        self.assertIn("no-such-program-here", done.stderr)
        self.assertFalse(self.out.exists())

    def test_wrong_usage(self):
        for options in (["--hang-after", "soon"], ["--hang-after", "0s"], ["--on-hang", "weep"], ["--only-rank", "x"]):
            with self.subTest(options):
                self.assertEqual(self.wrap(["true"], *options).returncode, 2)
        self.out.mkdir()
        (self.out / "older").write_text("x")
        done = self.wrap(["true"])
        self.assertEqual(done.returncode, 2)
        self.assertIn("not empty", done.stderr)
        self.assertEqual(subprocess.run([ARGS.ddx, "wrap"], capture_output=True, check=False).returncode, 2)

    def test_options_behind_the_command_are_the_jobs(self):
        done = self.wrap(["echo", "--out", "-q", "--", "--help"])
        self.assertEqual(done.stdout, "--out -q -- --help\n")

    def test_statuses_of_grandchildren(self):
        self.assertEqual(self.wrap(self.ranks("exit=0", "exit=5", "kill=9")).returncode, 137)
        by_rank = {row["rank"]: row for row in self.processes() if row["rank"] is not None}
        self.assertEqual({rank: row["exit_code"] for rank, row in by_rank.items()}, {0: 0, 1: 5, 2: None})
        # Which signal ended a process that is another's child is for the kernel to keep (Linux 6.15).
        if tuple(int(part) for part in os.uname().release.split(".")[:2]) >= (6, 15):
            self.assertEqual(by_rank[2]["signal"], 9)

    # Output

    def test_output_is_shown_where_it_was_written(self):
        done = self.wrap(["sh", "-c", "echo out; echo err >&2; cat"], input="typed\n")
        self.assertEqual(done.stdout, "out\ntyped\n")
        self.assertIn("err\n", done.stderr)
        self.assertNotIn("err", done.stdout)

    def test_lines_of_ranks_are_whole_and_in_order_under_load(self):
        count = 10000
        script = ("import os, sys\nr = os.environ['RANK']\nfor i in range(%d):\n"
                  "    os.write(1, f'line {i} of {r}\\n'.encode())\n    if i %% 100 == 0: os.write(2, f'note {i}\\n'.encode())\n"
                  % count)
        (self.folder / "rank.py").write_text(script)
        (self.folder / "all.py").write_text(
            "import os, subprocess, sys\n"
            "jobs = [subprocess.Popen([sys.executable, 'rank.py'], env=dict(os.environ, RANK=str(r))) for r in range(4)]\n"
            "print('launched', flush=True)\n"
            "sys.exit(max(job.wait() for job in jobs))\n")
        done = self.wrap([sys.executable, "all.py"])
        self.assertEqual(done.returncode, 0, done.stderr)
        shown = done.stdout.splitlines()
        for rank in range(4):
            lines = self.log(f"rank_{rank}.log")
            self.assertEqual([text for stream, _, text in lines if stream == "stdout"],
                             [f"line {i} of {rank}" for i in range(count)])
            self.assertEqual([text for stream, _, text in lines if stream == "stderr"],
                             [f"note {i}" for i in range(0, count, 100)])
            prefix = f"[rank {rank}] "
            self.assertEqual([line[len(prefix):] for line in shown if line.startswith(prefix)],
                             [f"line {i} of {rank}" for i in range(count)])
        self.assertIn("launched", shown)
        self.assertEqual(len(shown), 4 * count + 1)
        self.assertEqual(self.log("launcher.log"), [("stdout", "F", "launched")])

    def test_a_process_that_is_killed_in_mid_line(self):
        script = "import os, signal\nos.write(1, b'one\\ntwo is cut')\nos.kill(os.getpid(), signal.SIGKILL)\n"
        (self.folder / "rank.py").write_text(script)
        done = self.wrap(["sh", "-c", f"RANK=1 {sys.executable} rank.py; echo after"])
        self.assertEqual(done.stdout, "[rank 1] one\n[rank 1] two is cut\nafter\n")
        self.assertEqual(self.log("rank_1.log"), [("stdout", "F", "one"), ("stdout", "P", "two is cut")])

    def test_quiet_and_only_rank(self):
        job = self.ranks("say=zero", "say=one")
        done = self.wrap(job, "--quiet")
        self.assertEqual(done.stdout, "")
        self.assertEqual(self.log("rank_1.log"), [("stdout", "F", "one")])
        shutil.rmtree(self.out)
        done = self.wrap(job, "--only-rank", "1")
        self.assertEqual(done.stdout, "[rank 1] one\n")
        self.assertEqual(self.log("rank_0.log"), [("stdout", "F", "zero")])

    def test_redirections_of_the_users_stay(self):
        script = ("echo to file > file.txt; echo to pipe | cat > piped.txt; "
                  "x=$(sh -c 'echo captured'); echo got $x; sh -c 'echo both; echo two >&2' > both.txt 2>&1")
        done = self.wrap(["sh", "-c", script], env={"RANK": "0"})
        self.assertEqual(done.stdout, "[rank 0] got captured\n")
        self.assertEqual((self.folder / "file.txt").read_text(), "to file\n")
        self.assertEqual((self.folder / "piped.txt").read_text(), "to pipe\n")
        self.assertEqual((self.folder / "both.txt").read_text(), "both\ntwo\n")

    def test_one_pipe_for_both_streams_keeps_their_order(self):
        job = "RANK=0 sh -c 'for i in 1 2 3 4 5; do echo o$i; echo e$i >&2; done' 2>&1"
        done = self.wrap(["sh", "-c", job])
        self.assertEqual(done.stdout, "".join(f"[rank 0] o{i}\n[rank 0] e{i}\n" for i in range(1, 6)))

    def test_a_rank_started_by_another_has_its_own_log(self):
        # As pods have RANK in the environment of the launcher itself.
        job = "RANK=0 sh -c 'echo agent; RANK=1 sh -c \"echo worker\"'"
        done = self.wrap(["sh", "-c", job])
        self.assertEqual(sorted(done.stdout.splitlines()), ["[rank 0] agent", "[rank 1] worker"])

    def test_a_question_is_shown_before_its_answer(self):
        answered = self.folder / "answered"
        script = f"n = input('name? '); print('hi', n); open({str(answered)!r}, 'w')"
        process = self.start([sys.executable, "-c", script], stdin=subprocess.PIPE)
        shown = ""
        while not shown.endswith("name? "):
            piece = os.read(process.stdout.fileno(), 100).decode()
            self.assertTrue(piece, "it ended without asking")
            shown += piece
        process.stdin.write("joe\n")
        process.stdin.flush()
        out, err = process.communicate(timeout=LIMIT)
        self.assertEqual((process.returncode, out), (0, "hi joe\n"), err)

    def test_a_ranks_helpers_are_no_ranks(self):
        done = self.wrap(["sh", "-c", "RANK=0 sh -c '(sh -c \"exit 9\"; true); sh -c \"exit 8\"; exit 3'"])
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertRegex(done.stderr, r"rank 0 \(pid \d+\) exited with status 3")
        self.assertNotRegex(done.stderr, r"exited with status [89]")
        rows = [row for row in self.processes() if row["rank"] == 0]
        self.assertEqual([row["exit_code"] for row in rows if not row["helper"]], [3])

    # What cannot be captured

    def test_a_folder_that_cannot_be_written(self):
        (self.folder / "file").write_text("")
        self.out = self.folder / "file" / "below"
        done = self.wrap(["sh", "-c", "echo as ever; exit 3"])
        self.assertEqual((done.returncode, done.stdout), (3, "as ever\n"))
        self.assertIn("as without wrap", done.stderr)

    def test_a_full_folder(self):
        disk = self.folder / "disk"
        disk.mkdir()
        made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "ddx-test", str(disk)], capture_output=True,
                              check=False)
        if made.returncode != 0:
            self.skipTest("a small file system takes root")
        self.addCleanup(subprocess.run, ["umount", "-l", str(disk)], check=False)
        self.out = disk / "capture"
        script = "import os\nfor i in range(40000): os.write(1, b'%d and forty letters that fill a small disk\\n' % i)\n"
        (self.folder / "rank.py").write_text(script)
        done = self.wrap(["sh", "-c", f"RANK=0 {sys.executable} rank.py; exit 3"])
        self.assertEqual(done.returncode, 3)
        self.assertEqual(len(done.stdout.splitlines()), 40000)
        self.assertIn("no longer kept", done.stderr)

    def test_a_missing_library(self):
        done = self.wrap(["sh", "-c", "echo as ever; exit 3"], env={"DDX_WRAP_LIB": "/nowhere/libddx_trace.so"})
        self.assertEqual((done.returncode, done.stdout), (3, "as ever\n"))
        self.assertIn("libddx_trace.so is not there", done.stderr)

    # Signals, and wrap's own end

    def test_forwards_signals_and_kills_at_the_second(self):
        for first in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(first):
                self.out = self.folder / f"capture-{int(first)}"
                ready = self.folder / f"ready-{int(first)}"
                script = ("import pathlib, signal, sys, time\n"
                          "def leave(number, frame): print('signal', number, flush=True); sys.exit(7)\n"
                          "signal.signal(signal.SIGINT, leave); signal.signal(signal.SIGTERM, leave)\n"
                          f"pathlib.Path({str(ready)!r}).touch()\n"
                          "while True: signal.pause()\n")
                (self.folder / "job.py").write_text(script)
                process = self.start([sys.executable, "job.py"])
                self.await_path(ready, process)
                process.send_signal(first)
                out, err = process.communicate(timeout=LIMIT)
                self.assertEqual((process.returncode, out), (7, f"signal {int(first)}\n"), err)

    def test_a_second_signal_kills_what_will_not_go(self):
        ready, got = self.folder / "ready", self.folder / "got"
        script = ("import pathlib, signal\n"
                  f"signal.signal(signal.SIGTERM, lambda *_: pathlib.Path({str(got)!r}).touch())\n"
                  f"pathlib.Path({str(ready)!r}).touch()\n"
                  "while True: signal.pause()\n")
        (self.folder / "job.py").write_text(script)
        process = self.start([sys.executable, "job.py"])
        self.await_path(ready, process)
        process.terminate()
        self.await_path(got, process)
        process.terminate()
        process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 137)

    def test_the_job_outlives_wrap(self):
        ready, go, done = self.folder / "ready", self.folder / "go", self.folder / "done"
        script = (f"import os, pathlib, time\npathlib.Path({str(ready)!r}).touch()\n"
                  f"while not os.path.exists({str(go)!r}): time.sleep(0.01)\n"
                  # More than any pipe holds.
                  "for i in range(50000): os.write(1, b'%d after wrap, and a bit more of it\\n' % i)\n"
                  f"pathlib.Path({str(done)!r}).touch()\n")
        (self.folder / "job.py").write_text(script)
        process = self.start(["sh", "-c", f"RANK=0 {sys.executable} job.py"])
        self.await_path(ready, process)
        lines = []
        reader = threading.Thread(target=lambda: lines.extend(process.stdout))
        reader.start()
        process.kill()
        process.wait(timeout=LIMIT)
        go.touch()
        end = time.monotonic() + LIMIT
        while not done.exists():
            self.assertLess(time.monotonic(), end, "the job did not come to its end")
            time.sleep(0.01)
        reader.join(timeout=LIMIT)
        process.stderr.close()
        self.assertEqual(len(lines), 50000)

    # Several nodes

    def test_node_0_judges_what_all_nodes_kept(self):
        first = self.start(["env", "RANK=0", "WORLD_SIZE=2", ARGS.rank, "call", "say=zero"], "--nodes", "2", "--node-rank",
                           "0", "--grace", f"{LIMIT}s", "--format", "json")
        self.await_path(self.out / "node_0" / "ended", first)  # it waits for the other
        second = self.wrap(["env", "RANK=1", "WORLD_SIZE=2", ARGS.rank, "call", "say=one"], "--nodes", "2", "--node-rank",
                           "1")
        self.assertEqual(second.returncode, 0, second.stderr)
        _, err = first.communicate(timeout=LIMIT)
        self.assertEqual(first.returncode, 0, err)
        self.assertEqual(json.loads((self.out / "report.json").read_text())["ranks_seen"], [0, 1])
        self.assertEqual(json.loads((self.out / "node_1" / "report.json").read_text())["ranks_seen"], [1])

    def test_a_node_that_does_not_come_is_not_waited_for_longer_than_grace(self):
        done = self.wrap(["true"], "--nodes", "2", "--node-rank", "0", "--grace", "1s")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue((self.out / "node_0" / "ended").exists())

    def test_nodes_that_cannot_be(self):
        self.assertEqual(self.wrap(["true"], "--nodes", "2", "--node-rank", "2").returncode, 2)
        self.assertEqual(subprocess.run([ARGS.ddx, "wrap", "--nodes", "2", "--", "true"], cwd=self.folder,
                                        capture_output=True, check=False).returncode, 2)

    # Jobs that stand still

    def test_a_hang_is_told_with_its_evidence(self):
        go = self.folder / "go"
        process = self.start(self.ranks("call enter stay", f"call await={go} exit=0"), "--hang-after", "2s",
                             "--on-hang", "report", "--grace", "100s")
        self.await_path(self.out / "report.json", process)
        self.assertIsNone(process.poll())
        (self.folder / "go").touch()  # rank 1 leaves; rank 0 stays in its call
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=LIMIT)
        self.assertIn("stands still", err)
        self.assertRegex(err, r"rank 0 \(pid \d+\) has waited .* in all_reduce \(group world, seq 2\)")
        self.assertRegex(err, r"rank 1 \(pid \d+\) is in no call")
        self.assertEqual(process.returncode, 143, err)
        self.assertRegex((self.out / "stacks" / "rank_0.native.txt").read_text(), r"kernel: thread \d+ \(ddx_wrap_rank\)")
        self.assertTrue((self.out / "stacks" / "rank_1.native.txt").exists())

    def test_a_hang_may_end_the_job(self):
        done = self.wrap(self.ranks("call enter stay", "call stay"), "--hang-after", "2s", "--on-hang", "kill")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("the job is ended", done.stderr)
        self.assertTrue((self.out / "report.json").exists())
        for row in self.processes():
            self.assertIsNotNone(row["ended"], row)
            self.assertFalse(pathlib.Path(f"/proc/{row['pid']}/cmdline").exists() and
                             "wrap_rank" in pathlib.Path(f"/proc/{row['pid']}/cmdline").read_text())

    def test_a_rank_that_dies_while_others_wait(self):
        entered = self.folder / "entered"
        done = self.wrap(self.ranks(f"call enter touch={entered} stay", f"call await={entered} kill=9"),
                         "--hang-after", "100s", "--grace", "2s")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"rank 1 \(pid \d+\) (was killed by SIGKILL|ended)")
        self.assertIn("others wait for it", done.stderr)

    def test_a_rank_that_the_kernel_kills_for_want_of_memory(self):
        group = self.memory_group("64M")
        (self.folder / "eat.py").write_text("kept = []\nwhile True: kept.append(b'x' * (1 << 20))\n")
        job = (f"(export WORLD_SIZE=2 RANK=0; exec {ARGS.rank} call enter stay) &"
               f"(export WORLD_SIZE=2 RANK=1; {ARGS.rank} call; exec {sys.executable} eat.py) & wait")
        inside = ["sh", "-c", f"echo $$ > {group}/cgroup.procs && exec \"$@\"", "sh",
                  *self.command(["sh", "-c", job], "--hang-after", f"{LIMIT}s", "--grace", "2s")]
        done = subprocess.run(inside, cwd=self.folder, capture_output=True, text=True, timeout=LIMIT, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"rank 1 .* for want of memory")
        killed = [row for row in self.processes() if row["out_of_memory"]]
        self.assertEqual([(row["rank"], row["signal"]) for row in killed], [(1, 9)])

    def memory_group(self, limit):
        """A control group with so much memory."""
        name = f"ddx-wrap-test-{os.getpid()}"
        for top, file in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
            group = pathlib.Path(top) / name
            try:
                group.mkdir()
                self.addCleanup(group.rmdir)
                (group / file).write_text(limit)
                return group
            except OSError:
                continue
        self.skipTest("control groups of memory take root")

    def test_a_rank_that_raises_and_stays(self):
        done = self.wrap(self.ranks("call enter stay", "call raise stay"), "--hang-after", "100s", "--grace", "2s")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"rank 1 \(pid \d+\) raised ValueError: no such batch")

    def test_a_job_that_only_takes_long_is_left_alone(self):
        first, second = self.folder / "first", self.folder / "second"
        # Rank 0 is in a call for longer than --hang-after takes to be looked at; others come, and it ends.
        process = self.start(self.ranks(f"call touch={first} await={second} call", f"call await={second} call"),
                             "--hang-after", "1s", "--grace", "1s")
        self.await_path(first, process)
        self.await_path(self.out, process)
        time.sleep(3)  # nothing is waited for: longer than a hang would take to be told
        second.touch()
        _, err = process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 0, err)
        self.assertNotIn("stands still", err)

    def test_a_stopped_rank_is_named(self):
        entered = self.folder / "entered"
        process = self.start(self.ranks(f"call enter touch={entered} stay", f"call await={entered} kill={int(signal.SIGSTOP)}"),
                             "--hang-after", "2s", "--grace", "100s", "--on-hang", "kill")
        _, err = process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 1, err)
        self.assertRegex(err, r"rank 1 \(pid \d+\) is stopped by a signal")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--ddx", required=True, type=os.path.abspath)
    parser.add_argument("--rank", required=True, type=os.path.abspath)
    ARGS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
