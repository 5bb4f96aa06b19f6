"""What every job here has: a process group over gloo, and a recorder that leaves evidence where the job hangs.

The evidence goes to the folder $DDX_EVIDENCE: rank_N is the flight recorder's dump (a pickle), as NCCL's watchdog
would write it; the stacks of all threads go to stderr, which torchrun keeps as a log.
"""

import datetime
import faulthandler
import os
import pickle
import sys
import threading
import time
import traceback
import types

import torch
import torch.distributed as dist

DUMP_AFTER_S = 4.0  # from the end of init, when the ranks are level: by then a job of milliseconds hangs
SETTLE_S = 30.0
LEAVE_AFTER_S = 2.0  # from the dump, so that no rank is ended by the launcher before it has written


_dumped = threading.Lock()

# To give frames their names a dump asks torch.compile for those of compiled code, and that import takes seconds in
# every rank. Nothing is compiled here.
_no_frames = types.SimpleNamespace(stack_frames_for_code=lambda path, line: None)
torch._inductor = types.SimpleNamespace(codecache=types.SimpleNamespace(PyCodeCache=_no_frames))


def _dump():
    """The first dump stays: a later one would show the collapse of the job, not the hang."""
    if not _dumped.acquire(blocking=False):
        return
    path = os.path.join(os.environ["DDX_EVIDENCE"], "rank_%d" % dist.get_rank())
    with open(path + ".part", "wb") as file:
        file.write(torch._C._distributed_c10d._dump_fr_trace())
    os.rename(path + ".part", path)


def _watch():
    time.sleep(DUMP_AFTER_S)
    _dump()
    faulthandler.dump_traceback(file=sys.stderr, all_threads=True)
    time.sleep(LEAVE_AFTER_S)
    os._exit(1)  # the main thread may be inside a collective for ever


def _on_exception(kind, value, trace):
    traceback.print_exception(kind, value, trace)
    sys.stderr.flush()
    _dump()
    time.sleep(DUMP_AFTER_S)  # one rank's exit ends the others: let them write first


def start(timeout_s=60, hangs=True):
    """Joins the job; returns (rank, world size). `timeout_s` holds for collectives, not for joining.

    `hangs` False: it ends well, and on a slow machine is not to be taken for one that does not.
    """
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=60))
    dist.distributed_c10d._set_pg_timeout(datetime.timedelta(seconds=timeout_s))
    sys.excepthook = _on_exception
    if hangs:
        threading.Thread(target=_watch, name="recorder", daemon=True).start()
    return dist.get_rank(), dist.get_world_size()


def _settle():
    """The recorder hears of a call's end a moment after its caller: where all ranks dump in that moment, all seem to hang."""
    until = time.monotonic() + SETTLE_S
    while time.monotonic() < until:
        entries = pickle.loads(torch._C._distributed_c10d._dump_fr_trace())["entries"]
        if all(entry["retired"] for entry in entries):
            return
        time.sleep(0.01)


def finish():
    """Ends a job that did not hang, leaving the same evidence."""
    dist.barrier()
    _settle()
    _dump()
    dist.barrier()
    dist.destroy_process_group()
    os._exit(0)
