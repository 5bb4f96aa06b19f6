"""In step 3 rank 2 hands a shorter tensor to a gather. Gloo takes it without a word, and the job ends well."""

import torch
import torch.distributed as dist

import job

rank, world = job.start(hangs=False)
for step in range(5):
    gradient = torch.ones(1024)
    dist.all_reduce(gradient)
    scores = torch.ones(200 if rank == 2 and step == 3 else 256)
    dist.gather(scores, [torch.zeros(256) for _ in range(world)] if rank == 0 else None, dst=0)
job.finish()
