"""In step 3 rank 1 reduces in double what the others reduce in single precision.

Gloo aborts the rank that receives from it (0), and the rest follow.
"""

import torch
import torch.distributed as dist

import job

rank, world = job.start()
for step in range(6):
    dtype = torch.float64 if rank == 1 and step == 3 else torch.float32
    gradient = torch.ones(1024, dtype=dtype)
    dist.all_reduce(gradient)
    loss = torch.ones(1)
    dist.all_reduce(loss)
job.finish()
