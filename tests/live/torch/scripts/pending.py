"""Rank 0 raises while calls of its own are open; or (argv[1] "late") waits for one that times out."""

import datetime
import os
import sys
import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=5))
rank = dist.get_rank()
dist.barrier()
if rank == 0:
    work = dist.all_reduce(torch.ones(4), async_op=True)
    if sys.argv[1] == "late":
        try:
            work.wait()
        except RuntimeError:
            print("timed out", flush=True)
        os._exit(0)
    if sys.argv[1] == "dropped":
        dist.isend(torch.ones(3), 1)
    raise ValueError("with a call open")
while os.getppid() != 1 and not os.path.exists(os.path.join(os.environ["DDX_LEDGER"], "go")):
    time.sleep(0.1)
os._exit(0)
