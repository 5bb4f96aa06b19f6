"""A compiled function with collectives in it, and DDP of a compiled model: nothing is recorded while it is traced."""

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from ledger import finish, start
from torch.nn.parallel import DistributedDataParallel

rank, size = start()


@torch.compile(backend="aot_eager", fullgraph=True)
def step(x):
    y = functional.all_reduce(x * 2, "sum", dist.group.WORLD)
    dist.all_reduce(y)
    return y + 1


for _ in range(3):
    step(torch.ones(4))

model = DistributedDataParallel(torch.compile(torch.nn.Linear(8, 8), backend="aot_eager"))
for _ in range(2):
    model(torch.ones(2, 8)).sum().backward()
finish()
