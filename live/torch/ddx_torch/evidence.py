"""What is kept beside the capture: the flight recorder's dump and the stacks of all threads, as

    DDX_TRACE_DIR/flight_recorder/rank_N     what torch dumps, a pickle
    DDX_TRACE_DIR/stacks/rank_N.txt          faulthandler's words

on an uncaught exception, on request, and (the dump alone) when the process leaves. A request is one byte written to the
FIFO DDX_TRACE_DIR/HOST-PID.request: a thread of ours is blocked in read() on it, so that the job polls nothing and no
signal is taken from it. Each file is complete once it has its name."""

import _thread
import atexit
import faulthandler
import os
import socket
import sys
import threading


class Evidence:
    def __init__(self, torch, recorder, sites, groups):
        self._torch, self._recorder, self._sites, self._groups = torch, recorder, sites, groups
        self._folder = os.environ["DDX_TRACE_DIR"]
        self._rank = os.environ.get("RANK", "")
        self._lock = _thread.allocate_lock()
        self._told = None
        self.forget()
        self._forked = False

    def forget(self):
        """Of a forked child: requests are its parent's, and so are the exceptions until it makes a group."""
        fifo = getattr(self, "_fifo", None)
        if fifo is not None:
            try:
                os.close(fifo)
            except OSError:
                pass
        self._fifo = self._fifo_path = None
        self._dumped = self._begun = False
        self._forked = True
        self._lock = _thread.allocate_lock()

    def begin(self):
        """The program has begun to use torch.distributed."""
        if self._begun:
            return
        self._begun = True
        self._hook_exceptions()
        self._listen()
        at_end(self._leave)

    def set_rank(self, rank):
        self._rank = str(rank)

    # Requests

    def _listen(self):
        path = os.path.join(self._folder, "%s-%d.request" % (socket.gethostname(), os.getpid()))
        try:
            if os.path.exists(path):  # of an earlier process of this number
                os.unlink(path)
            os.mkfifo(path, 0o600)
            self._fifo = os.open(path, os.O_RDWR | os.O_CLOEXEC)  # for writing too: it never ends
        except OSError as error:
            self._recorder.event("layer_blind", 0, "torch: hears no requests for dumps: %s" % error)
            return
        self._fifo_path = path
        _thread.start_new_thread(self._answer, (self._fifo,))

    def _answer(self, fifo):
        try:
            while os.read(fifo, 4096):
                self.keep(stacks=True)
        except BaseException:
            pass

    # Exceptions

    def install(self):
        self._hook_exceptions()

    def _hook_exceptions(self):
        """Again when a process group is made: by then programs have set hooks of their own, which ours calls."""
        if getattr(sys.excepthook, "_ddx", None) is not self:
            sys.excepthook = self._chained(sys.excepthook, lambda kind, value, trace: (kind, value, trace))
        if getattr(threading.excepthook, "_ddx", None) is not self:
            threading.excepthook = self._chained(
                threading.excepthook, lambda told: (told.exc_type, told.exc_value, told.exc_traceback)
            )

    def _chained(self, inner, parts):
        def excepthook(*arguments):
            try:
                self._raised(*parts(*arguments))
            except BaseException:
                pass
            return inner(*arguments)

        excepthook._ddx = self
        return excepthook

    def _raised(self, kind, value, trace):
        # Of a program that is no rank (torchrun's agent, a tool) nothing is written.
        if not self._begun and (not self._rank or _is_multiprocessing_child()):
            return
        if value is not None and value is self._told:
            return
        self._told = value
        try:
            words = str(value)
        except BaseException:
            words = "?"
        site = self._sites.of_traceback(trace)
        self._recorder.event("exception", 0, ("%s: %s" % (kind.__name__, words))[:4000], site)
        if self._begun:
            self.keep(stacks=True)

    def _leave(self):
        try:
            # Where a program's own hook replaced ours, the interpreter has noted what it could not catch. Processes of
            # multiprocessing have no hook: there it is still on its way, or has become an exit.
            value = sys.exc_info()[1] or getattr(sys, "last_value", None)
            if isinstance(value, SystemExit):
                value = value.__context__ if value.code else None
            if isinstance(value, BaseException):
                self._raised(type(value), value, value.__traceback__)
            if not self._dumped:
                self.keep(stacks=False)
            if self._forked and _is_multiprocessing_child():  # it leaves without the library's own last word
                self._recorder.event("torn_down")
            if self._fifo_path is not None:
                os.unlink(self._fifo_path)
        except BaseException:
            pass

    # Dumps

    def keep(self, stacks):
        name = "rank_" + self._rank if self._rank else "pid_%d" % os.getpid()
        with self._lock:
            self._dumped = True
            if stacks:
                _write(self._folder, "stacks", name + ".txt", lambda file: faulthandler.dump_traceback(file, all_threads=True))
            dump = self._flight_recorder()
            if dump:
                _write(self._folder, "flight_recorder", name, lambda file: file.write(dump))

    def _flight_recorder(self):
        bindings = self._torch._C._distributed_c10d
        names = ["_dump_fr_trace", "_dump_nccl_trace"]
        if any("nccl" in backend for backend in self._groups.seen):
            names.reverse()  # NCCL's groups have a recorder of their own
        for name in names:
            dump = getattr(bindings, name, None)
            if dump is not None:
                # With stacks, torch asks torch.compile for the names of compiled code, and that import takes seconds.
                frames = "torch._inductor.codecache" in sys.modules
                return dump(includeCollectives=True, includeStackTraces=frames, onlyActive=False)
        return None


def at_end(function):
    """Before the interpreter is taken down. Processes of multiprocessing leave without a word to atexit."""
    atexit.register(function)
    if _is_multiprocessing_child():
        sys.modules["multiprocessing.util"].Finalize(None, function, exitpriority=-1000)


def _is_multiprocessing_child():
    module = sys.modules.get("multiprocessing.process")
    return module is not None and module.parent_process() is not None


def _write(folder, kind, name, write):
    try:
        os.makedirs(os.path.join(folder, kind), exist_ok=True)
        path = os.path.join(folder, kind, name)
        part = "%s.part%d" % (path, os.getpid())
        with open(part, "wb") as file:
            write(file)
        os.rename(part, path)
    except Exception:
        pass
