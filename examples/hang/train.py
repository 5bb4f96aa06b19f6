"""A small data-parallel job that hangs: in one step one rank's batch is empty, and it returns before a collective.

    DUMPS=evidence torchrun --nproc_per_node 4 --log-dir evidence/logs --redirects 3 train.py 2> evidence/torchrun.log

Afterwards evidence/ holds what ddx needs: each rank's flight-recorder dump, its log, and torchrun's own.
"""

import faulthandler
import os
import sys
import threading
import time

import torch
import torch.distributed as dist

# NCCL's watchdog dumps by itself when a collective times out (TORCH_NCCL_DUMP_ON_TIMEOUT). Gloo has no watchdog, so
# this thread does it, after a time in which the job should long have ended.
DUMP_AFTER_S = 10
LEAVE_AFTER_S = 5


def record(rank):
    time.sleep(DUMP_AFTER_S)
    with open(os.path.join(os.environ["DUMPS"], "rank_%d" % rank), "wb") as file:
        file.write(torch._C._distributed_c10d._dump_fr_trace())
    faulthandler.dump_traceback(file=sys.stderr, all_threads=True)
    time.sleep(LEAVE_AFTER_S)  # torchrun ends all ranks when the first leaves
    os._exit(1)


def load_batch(rank, step):
    return torch.ones(0 if rank == 2 and step == 3 else 32)


def average_loss(batch, works):
    if batch.numel() == 0:
        return  # nothing to average: and here rank 2 misses a collective
    works.append(dist.all_reduce(batch.sum(), async_op=True))


def train_step(rank, step, works):
    batch = load_batch(rank, step)
    gradients = torch.ones(1024)
    works.append(dist.all_reduce(gradients, async_op=True))
    average_loss(batch, works)
    weights = torch.ones(256)
    works.append(dist.broadcast(weights, src=0, async_op=True))


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    threading.Thread(target=record, args=(rank,), daemon=True).start()
    works = []
    for step in range(6):
        train_step(rank, step, works)
    for work in works:
        work.wait()


main()
