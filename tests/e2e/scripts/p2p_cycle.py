"""A pipeline in a ring: in step 2 every rank receives before it sends."""

import torch
import torch.distributed as dist

import job

rank, world = job.start()
dist.all_reduce(torch.ones(1024))
for step in range(4):
    incoming, outgoing = torch.empty(4096), torch.ones(4096)
    if rank % 2 == 0 and step != 2:
        dist.send(outgoing, (rank + 1) % world)
        dist.recv(incoming, (rank - 1) % world)
    else:
        dist.recv(incoming, (rank - 1) % world)
        dist.send(outgoing, (rank + 1) % world)
job.finish()
