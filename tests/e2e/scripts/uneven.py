"""Rank 1 was given four batches where the others have six: it leaves the loop early. The time-out is seen."""

import torch
import torch.distributed as dist

import job

rank, world = job.start(timeout_s=3)
batches = 4 if rank == 1 else 6
for step in range(batches):
    gradient = torch.ones(1024)
    dist.all_reduce(gradient)
    loss = torch.ones(1)
    dist.all_reduce(loss)
job.finish()
