"""In step 3 rank 2 has no loss to report and skips that all_reduce. The job overlaps: it waits for a whole epoch."""

import torch
import torch.distributed as dist

import job

rank, world = job.start()
works = []
for step in range(6):
    gradient = torch.ones(1024)
    works.append(dist.all_reduce(gradient, async_op=True))
    if not (rank == 2 and step == 3):
        loss = torch.ones(1)
        works.append(dist.all_reduce(loss, async_op=True))
    weights = torch.ones(256)
    works.append(dist.broadcast(weights, src=0, async_op=True))
for work in works:
    work.wait()
job.finish()
