"""In step 3 rank 2 reduces a larger tensor. Gloo aborts the rank that receives from it (1), and the rest follow."""

import torch
import torch.distributed as dist

import job

rank, world = job.start()
for step in range(6):
    count = 1040 if rank == 2 and step == 3 else 1024
    gradient = torch.ones(count)
    dist.all_reduce(gradient)
    loss = torch.ones(1)
    dist.all_reduce(loss)
job.finish()
