"""Functional collectives, whose calls are made in C++."""

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from ledger import finish, start

rank, size = start()
world = dist.group.WORLD
t = torch.ones(4 * size)
functional.wait_tensor(functional.all_reduce(t, "max", world))
functional.wait_tensor(functional.all_gather_tensor(t.to(torch.float64), 0, world))
functional.wait_tensor(functional.reduce_scatter_tensor(t, "sum", 0, world))
functional.wait_tensor(functional.broadcast(t.to(torch.int32), 1, world))
rows = torch.ones(2 * size, 3)
functional.wait_tensor(functional.all_to_all_single(rows, None, None, world))
functional.wait_tensor(functional.all_to_all_single(rows, [2] * size, [2] * size, world))
for reduced in functional.all_reduce_coalesced([t, t], "sum", world):
    functional.wait_tensor(reduced)
finish()
