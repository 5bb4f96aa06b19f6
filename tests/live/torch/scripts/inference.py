"""Calls in inference mode, and under a mode of torch functions."""

import torch
import torch.distributed as dist
from ledger import finish, ledger, start

rank, size = start()
with ledger(), torch.inference_mode():
    t = torch.ones(3)
    dist.all_reduce(t, op=dist.ReduceOp.MIN)
    with torch.device("cpu"):
        dist.broadcast(t, src=size - 1)
    with torch.no_grad():
        dist.all_gather([torch.empty(3) for _ in range(size)], t)
finish()
