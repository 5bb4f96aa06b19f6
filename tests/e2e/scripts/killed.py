"""In step 3 rank 3 is killed, as the kernel does where memory runs out."""

import os
import signal

import torch
import torch.distributed as dist

import job

rank, world = job.start()
for step in range(6):
    if rank == 3 and step == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    gradient = torch.ones(1024)
    dist.all_reduce(gradient)
    loss = torch.ones(1)
    dist.all_reduce(loss)
job.finish()
