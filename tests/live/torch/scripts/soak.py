"""Many small all-reduces beside a thread that never lets the interpreter rest."""

import os
import threading

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
over = threading.Event()


def busy():
    tensors = []
    while not over.is_set():
        # Makes and drops tensors, as who fills queues of batches does: dropping needs the GIL.
        tensors.append(torch.ones(8))
        if len(tensors) > 100:
            tensors.clear()


thread = threading.Thread(target=busy)
thread.start()
pending = []
for i in range(int(os.environ["DDX_SOAK_CALLS"])):
    if i % 2:
        pending.append(dist.all_reduce(torch.ones(2), async_op=True))
        if len(pending) == 16:
            for work in pending:
                work.wait()
            pending.clear()
    else:
        dist.all_reduce(torch.ones(2))
for work in pending:
    work.wait()
over.set()
thread.join()
dist.barrier()
dist.destroy_process_group()
