"""After step 2 rank 0 alone saves a checkpoint, and saving holds a collective. The job overlaps."""

import torch
import torch.distributed as dist

import job


def save_checkpoint():
    return dist.broadcast(torch.ones(2048), src=0, async_op=True)


rank, world = job.start()
works = []
for step in range(5):
    gradient = torch.ones(1024)
    works.append(dist.all_reduce(gradient, async_op=True))
    if step == 2 and rank == 0:
        works.append(save_checkpoint())
    loss = torch.ones(1)
    works.append(dist.all_reduce(loss, async_op=True))
    weights = torch.ones(256)
    works.append(dist.broadcast(weights, src=0, async_op=True))
for work in works:
    work.wait()
job.finish()
