"""In step 3 rank 1 raises."""

import torch
import torch.distributed as dist

import job

rank, world = job.start()
for step in range(6):
    if rank == 1 and step == 3:
        raise ValueError("sample 4711 has no label")
    gradient = torch.ones(1024)
    dist.all_reduce(gradient)
    loss = torch.ones(1)
    dist.all_reduce(loss)
job.finish()
