"""What the hook does where things go wrong: the job runs as it would without.

    run_hook.py TEST --library libddx_trace.so

Exit status 77 (ctest: skipped) where no Python with torch is found; under CI=true that is a failure. DDX_SOAK_CALLS: calls
of the test `soak`, 2000 where it is not set.
"""

import argparse
import os
import pathlib
import pickle
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from capture_reader import ELEMENTS, EVENTS, FIELDS, KINDS, REDUCTIONS, captures  # noqa: E402
from run_capture import ROOT, environment, find_python, run_job  # noqa: E402

LIMIT_S = 300


class Place:
    """A folder for one job, and how the job is run in it."""

    def __init__(self, python, library, folder):
        self.python, self.library, self.folder = python, library, folder
        self.variables = environment(library, folder)

    def alone(self, what, *arguments, options=()):
        command = [self.python, *options, str(HERE / "scripts/broken.py"), what, *arguments]
        return subprocess.run(
            command, env=self.variables, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S
        )

    def ranks(self, script, number, *arguments, release=None):
        """(status, output) of each rank, without a launcher that ends the others. `release`: after which rank's end the
        others are told to go."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        jobs = []
        for rank in range(number):
            variables = dict(self.variables, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(number))
            variables.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
            command = [self.python, str(HERE / "scripts" / script), *arguments]
            jobs.append(
                subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            )
        try:
            if release is not None:
                jobs[release].wait(LIMIT_S)
                (self.folder / "go").touch()
            return [(job.wait(LIMIT_S), job.stdout.read()) for job in jobs]
        finally:
            for job in jobs:
                job.kill()

    def has_recorder(self):
        """Whether this torch has a flight recorder for gloo."""
        asked = "import sys, torch; sys.exit(not hasattr(torch._C._distributed_c10d, '_dump_fr_trace'))"
        return subprocess.run([self.python, "-c", asked], timeout=LIMIT_S).returncode == 0

    def captures(self):
        return captures(self.folder)

    def capture(self):
        (found,) = self.captures()
        return found


def is_plain(done):
    assert (done.returncode, done.stdout) == (0, "sum [1.0, 1.0, 1.0]\n"), (done.returncode, done.stdout, done.stderr)
    assert "ddx" not in done.stderr, done.stderr


def event(capture, code):
    (found,) = [event for event in capture.events if event["code"] == code]
    return found


def test_numbers(place):
    """Those in Python are those of record.h."""
    sys.path.insert(0, str(ROOT / "live/torch"))
    from ddx_torch import numbers

    assert numbers.KINDS == {word: number for number, word in KINDS.items()}
    names = {"bool": "boolean", "float8_e4m3fn": "f8e4m3", "float8_e5m2": "f8e5m2", "bfloat16": "bf16"}
    short = {n: names.get(n, n.replace("uint", "u").replace("float", "f").replace("int", "i")) for n in numbers.ELEMENTS}
    assert {short[name]: number for name, number in numbers.ELEMENTS.items()} == {
        word: number for number, word in ELEMENTS.items() if number
    }
    words = {"PRODUCT": "prod"}
    for name, number in numbers.REDUCTIONS.items():
        assert REDUCTIONS[number] == words.get(name, name.lower()), name
    for mine, theirs in ((numbers.FIELDS, FIELDS), (numbers.EVENTS, EVENTS)):
        for name, number in mine.items():
            assert theirs[number] == name, name


def test_plain(place):
    is_plain(place.alone("plain"))
    assert [call["kind"] for call in place.capture().calls] == ["all_reduce"]


def test_isolated(place):
    """python -I reads no PYTHONPATH: no hook, no capture, the same job."""
    is_plain(place.alone("plain", options=["-I"]))
    assert not place.captures()


def test_no_library(place):
    place.variables["DDX_TRACE_LIB"] = str(place.folder / "missing.so")
    is_plain(place.alone("plain"))
    assert not place.captures()


def test_broken_library(place):
    broken = place.folder / "broken.so"
    broken.write_bytes(b"no library")
    place.variables["DDX_TRACE_LIB"] = str(broken)
    is_plain(place.alone("plain"))


def test_other_library(place):
    """One without our functions."""
    place.variables["DDX_TRACE_LIB"] = "libm.so.6"
    is_plain(place.alone("plain"))


def test_no_folder(place):
    place.variables["DDX_TRACE_DIR"] = str(place.folder / "missing")
    is_plain(place.alone("plain"))
    assert not list(place.folder.rglob("*.ddx"))


def test_sitecustomize(place):
    """An own one is run, and needs no help of ours."""
    own = place.folder / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import os\nopen(os.environ['DDX_LEDGER'] + '/was_here', 'w').close()\n")
    place.variables["PYTHONPATH"] += os.pathsep + str(own)
    is_plain(place.alone("plain"))
    assert (place.folder / "was_here").exists()
    assert len(place.capture().calls) == 1


def test_trouble(place):
    """An error in the hook itself ends the recording, which says so, and nothing else."""
    is_plain(place.alone("trouble"))
    capture = place.capture()
    assert len(capture.calls) == 1
    assert "KeyError: 'of ours'" in event(capture, "layer_blind")["text"]


def raised_in_deep(place, what, *arguments, own_words=None):
    done = place.alone(what, *arguments)
    assert done.returncode == (0 if what == "raises_in_thread" else 1), done.stderr
    if own_words is None:
        assert "ValueError: the words of it" in done.stderr
    else:
        assert own_words in done.stdout
    capture = place.capture()
    told = event(capture, "exception")
    assert told["text"] == "ValueError: the words of it\nand more", told
    function, file, line = told["site"][0]
    assert function == "deep" and file.endswith("broken.py"), told
    assert "raise ValueError" in pathlib.Path(file).read_text().splitlines()[line - 1]
    return capture, told


def test_raises(place):
    capture, told = raised_in_deep(place, "raises")
    assert [function for function, _, _ in told["site"]] == ["deep", "raises", "<module>"]
    stacks = (place.folder / "stacks/rank_0.txt").read_text()
    assert "thread" in stacks.lower(), stacks
    dump = place.folder / "flight_recorder/rank_0"
    if place.has_recorder():
        assert len(pickle.loads(dump.read_bytes())["entries"]) == 1


def test_raises_early(place):
    """Of a rank, its exception is known before it has any group; of a program that is none, nothing is written."""
    place.alone("raises_early")
    assert not place.captures()
    place.variables["RANK"] = "3"
    capture, _ = raised_in_deep(place, "raises_early")
    assert capture.rank == 3


def test_raises_hooked(place):
    raised_in_deep(place, "raises_hooked", own_words="own hook ValueError")


def test_raises_in_thread(place):
    raised_in_deep(place, "raises_in_thread")


def test_spawns(place):
    capture, _ = raised_in_deep(place, "spawns")
    assert all(call["end"] for call in capture.calls)


def test_processes(place):
    processes_by(place, "spawn")


def test_forked_processes(place):
    processes_by(place, "fork")


def processes_by(place, way):
    """multiprocessing prints exceptions itself, and leaves forked processes without atexit."""
    capture, _ = raised_in_deep(place, "processes", way)
    assert all(call["end"] for call in capture.calls)
    assert (place.folder / "flight_recorder/rank_0").exists() == place.has_recorder()
    assert event(capture, "torn_down")
    assert not list(place.folder.glob("*.request"))


def test_arguments_of_callers(place):
    assert place.alone("arguments_of_callers").returncode == 0
    capture = place.capture()
    assert [call["reduction"] for call in capture.calls] == ["max", "min", "prod", "none"]
    assert ["async" in call["flags"] for call in capture.calls] == [False, True, False, True]
    assert "reductions" in event(capture, "layer_blind")["text"]


def test_fake(place):
    done = place.alone("fake")
    assert done.returncode == 0, done.stderr
    capture = place.capture()
    told = [(call["group"]["name"], call["kind"], call["count"], call["peer"], call["end"] > 0) for call in capture.calls]
    assert told == [("0", "new_group", 0, -1, True), ("0", "all_reduce", 4, -1, True), ("1", "broadcast", 5, 2, True)], told
    groups = [(g["backend"], g["size"], g["position"], g["ranks"]) for g in capture.groups.values()]
    assert groups == [("fake", 8, 3, list(range(8))), ("fake", 3, 1, [1, 3, 5])], groups
    assert (capture.rank, capture.world_size) == (3, 8)


def test_refused(place):
    done = place.alone("refused")
    assert (done.returncode, done.stdout) == (0, "refused\n"), done.stderr
    capture = place.capture()
    first, second = capture.calls
    assert "failed" in first["flags"] and not first["end"], first
    assert event(capture, "call_failed")["call"] == first["number"] + 1
    # It is not taken for the one that makes the next.
    assert second["outer"] == 0 and second["end"] and "failed" not in second["flags"], second


def test_native_thread(place):
    done = place.alone("native_thread")
    assert done.returncode == 0, done.stderr
    (call,) = [call for call in place.capture().calls if call["count"] == 5]
    assert [function for function, _, _ in call["site"]] == ["native_thread", "<module>"], call["site"]


def test_forks(place):
    done = place.alone("forks")
    assert done.returncode == 0, done.stderr
    found = {tuple(call["count"] for call in capture.calls): capture for capture in place.captures()}
    assert sorted(found) == [(2, 4), (7,)], found
    for capture in found.values():
        assert {call["group"]["name"] for call in capture.calls} == {"0"}
        assert all(call["site"] for call in capture.calls)


def test_meta(place):
    done = place.alone("meta")
    assert done.returncode == 0, done.stderr
    assert [call["count"] for call in place.capture().calls] == [3]


def test_pending_at_exit(place):
    """A rank that leaves while a call is open ends by its exception, not by a signal."""
    (status, said), _ = place.ranks("pending.py", 2, "raise", release=0)
    assert status == 1 and "with a call open" in said, (status, said)
    capture = place.captures()[0]
    assert event(capture, "exception")["text"] == "ValueError: with a call open"
    (call,) = [call for call in capture.calls if call["kind"] == "all_reduce"]
    assert not call["end"] and "no_end" not in call["flags"], call


def test_dropped(place):
    """Nothing tells when a send that nobody waits for is over, and the capture says that."""
    (status, said), _ = place.ranks("pending.py", 2, "dropped", release=0)
    assert status == 1, said
    (call,) = [call for call in place.captures()[0].calls if call["kind"] == "send"]
    assert not call["end"] and "no_end" in call["flags"], call


def test_times_out(place):
    (status, said), _ = place.ranks("pending.py", 2, "late", release=0)
    assert status == 0 and "timed out" in said, said
    capture = place.captures()[0]
    assert "imed out" in event(capture, "async_error")["text"]
    (call,) = [call for call in capture.calls if call["kind"] == "all_reduce"]
    assert not call["end"], call


def test_request(place):
    """A byte in the FIFO, and the stacks of a process that does nothing are written; the job goes on."""
    command = [place.python, str(HERE / "scripts/broken.py"), "asleep"]
    job = subprocess.Popen(
        command, env=place.variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert job.stdout.readline() == "ready\n", job.stderr.read()
        (fifo,) = place.folder.glob("*-%d.request" % job.pid)
        for _ in range(2):  # again and again
            with open(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK), "wb") as request:
                request.write(b"d")
            stacks = place.folder / "stacks/rank_0.txt"
            wait_for(stacks.exists)
            assert "in asleep" in stacks.read_text()
            stacks.unlink()
        _, errors = job.communicate("\n", timeout=LIMIT_S)
    finally:
        job.kill()
    assert job.returncode == 0, errors
    assert not fifo.exists()
    assert [call["count"] for call in place.capture().calls] == [1, 2]


def wait_for(condition):
    until = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < until, "nothing came"
        time.sleep(0.05)


def test_soak(place):
    calls = int(os.environ.get("DDX_SOAK_CALLS", "2000"))
    place.variables["DDX_SOAK_CALLS"] = str(calls)
    done = run_job(place.python, HERE / "scripts/soak.py", 2, place.variables, limit_s=max(600, calls / 20))
    assert done.returncode == 0, done.stdout
    for capture in place.captures():
        reduced = [call for call in capture.calls if call["kind"] == "all_reduce"]
        assert len(reduced) == calls, (len(reduced), capture.stopped)
        assert all(call["end"] for call in reduced)
        assert not [event for event in capture.events if event["code"] == "layer_blind"]


TESTS = {name[5:]: test for name, test in list(globals().items()) if name.startswith("test_")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("test", choices=sorted(TESTS))
    parser.add_argument("--library", required=True, type=pathlib.Path)
    options = parser.parse_args()
    python = find_python()
    if python is None and options.test != "numbers":
        print("SKIPPED: no Python with torch (set DDX_TORCH_PYTHON, or let ./dev test set up .venv-torch)")
        return 1 if os.environ.get("CI") == "true" else 77
    with tempfile.TemporaryDirectory() as folder:
        TESTS[options.test](Place(python, options.library.resolve(), pathlib.Path(folder)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
