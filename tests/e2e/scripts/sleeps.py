"""In step 3 rank 2 is busy with something else; the time-out is short enough to be seen."""

import time

import torch
import torch.distributed as dist

import job

rank, world = job.start(timeout_s=3)
for step in range(6):
    if rank == 2 and step == 3:
        time.sleep(600)
    gradient = torch.ones(1024)
    dist.all_reduce(gradient)
    loss = torch.ones(1)
    dist.all_reduce(loss)
job.finish()
